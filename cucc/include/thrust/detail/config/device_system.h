// SPDX-License-Identifier: MIT
// Thrust's headers come from the system (Debian's package libthrust-dev). The headers in this folder replace
// a few of them; the compiler finds them because this include folder is searched first. Here Thrust's device
// system is C++ and not CUDA, because its CUDA system needs PTX.
#pragma once
#include <cassert> // contiguous_storage.inl of Thrust 2.3 uses it and does not include it
#define THRUST_DEVICE_SYSTEM_CUDA 1
#define THRUST_DEVICE_SYSTEM_CPP  4
#if !defined(THRUST_DEVICE_SYSTEM) || THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
#undef THRUST_DEVICE_SYSTEM
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif
#include_next <thrust/detail/config/device_system.h>

namespace cuda_cpu {
void host_uses_device_memory() __attribute__((weak));
inline __attribute__((used)) void host_uses_device_memory() {} // guard.cpp: the host may access device memory
} // namespace cuda_cpu
