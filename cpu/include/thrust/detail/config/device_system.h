// SPDX-License-Identifier: MIT
// Thrust's headers come from the system (Debian's package libthrust-dev). This folder holds the few that the
// CPU back end changes, and is searched first. Thrust's device system would be CUDA, which needs PTX; here it
// is plain C++.
#pragma once
#define THRUST_DEVICE_SYSTEM_CUDA 1
#define THRUST_DEVICE_SYSTEM_CPP  4
#if !defined(THRUST_DEVICE_SYSTEM) || THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
#undef THRUST_DEVICE_SYSTEM
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif
#include_next <thrust/detail/config/device_system.h>
