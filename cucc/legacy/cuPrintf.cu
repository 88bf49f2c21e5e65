// SPDX-License-Identifier: MIT
// cuPrintf of the SDK's samples, from before printf in kernels: printf, shown at the next synchronization.
#pragma once
#include <stdio.h>
#include <cuda_runtime.h>

#define CUPRINTF_UNRESTRICTED -1
#define cuPrintf(...)         printf(__VA_ARGS__)

inline void cuPrintfRestrict(int, int) {}
inline cudaError_t cudaPrintfInit(size_t = 0) {
    return cudaSuccess;
}
inline cudaError_t cudaPrintfDisplay(void * = nullptr, bool = false) {
    return cudaDeviceSynchronize();
}
inline void cudaPrintfEnd() {
    cudaDeviceSynchronize();
}
