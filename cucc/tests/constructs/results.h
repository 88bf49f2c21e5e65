// SPDX-License-Identifier: MIT
// For the lists of constructs: 64 ints of managed memory that kernels write to.
#pragma once
#ifndef __CUDACC__
#include <cuda_runtime.h>
#endif
#include "../unit.h"

__managed__ int out[64];

// Waits for the kernels, and returns out[i]; -1 after an error.
static inline int result(int i = 0) {
    return cudaDeviceSynchronize() == cudaSuccess ? out[i] : -1;
}

__global__ void set(int value) {
    out[0] = value;
}

// After the statement, out[0] is `expected`: GIVES(3, set<<<1, 1>>>(3));
#define GIVES(expected, ...)                                                                                 \
    do {                                                                                                     \
        __VA_ARGS__;                                                                                         \
        EXPECT(result() == (expected));                                                                      \
    } while (0)
