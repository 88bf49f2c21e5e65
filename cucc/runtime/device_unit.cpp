// SPDX-License-Identifier: MIT
// Devices, errors and faults
#include "device/device.cpp"
#include "device/error.cpp"
#include "device/properties.cpp"
#ifndef __wasm__ // which has no signals
#include "device/fault.cpp"
#endif

#include "device/unsupported.cpp" // last: it ignores a warning
