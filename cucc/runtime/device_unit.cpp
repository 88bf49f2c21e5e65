// SPDX-License-Identifier: MIT
// Devices, errors and faults
#include "device/device.cpp"
#include "device/error.cpp"
#include "device/properties.cpp"
#if defined __SANITIZE_ADDRESS__ || defined __wasm__ // which reports faults itself; which has no signals
void cuda_cpu::watch_faults() {}
#else
#include "device/fault.cpp"
#endif

#include "device/unsupported.cpp" // last: it ignores a warning
