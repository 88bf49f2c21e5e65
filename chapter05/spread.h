// SPDX-License-Identifier: MIT
// Kernels that keep few or many values in registers or in local memory, for memory_kinds and occupancy.
#ifndef CHAPTER05_SPREAD_H
#define CHAPTER05_SPREAD_H

#include "../common/book.h"

#define N (64 * 1024) // numbers that the kernels read

// Each thread loads VALUES numbers, finds the smallest and writes the sum of the differences from it. It
// needs all of the numbers at once. The sum starts with value[first]; value[VALUES - 1] is followed by
// value[0].
template <int VALUES> __device__ void sum_differences(const int *in, int *out, int first) {
    int threads = N / VALUES;
    for (int t = threadIdx.x + blockIdx.x * blockDim.x; t < threads; t += blockDim.x * gridDim.x) {
        int value[VALUES], least = INT_MAX, sum = 0;
#pragma unroll
        for (int i = 0; i < VALUES; i++) {
            value[i] = in[t + i * threads];
            least = min(least, value[i]);
        }
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            sum += value[(i + first) % VALUES] - least;
        out[t] = sum;
    }
}

// When the loops are unrolled, each index is a constant, so the array can be in registers.
template <int VALUES> __global__ void spread(const int *in, int *out) {
    sum_differences<VALUES>(in, out, 0);
}

// Registers have no index. Here the index is known only at run time, so the array is in local memory.
template <int VALUES> __global__ void spread_indexed(const int *in, int *out) {
    sum_differences<VALUES>(in, out, in[0]);
}

// __launch_bounds__ promises that no block has more than 1024 threads, so the compiler may use 1/1024 of the
// registers for a thread. For 64 values nvcc 13.0 then needs register spilling, up to compute capability 9.0.
template <int VALUES> __global__ void __launch_bounds__(1024) spread_1024(const int *in, int *out) {
    sum_differences<VALUES>(in, out, 0);
}

struct Kernel {
    void (*function)(const int *in, int *out);
    int values;
    size_t shared; // bytes per block that the launch requests
};

// ---------------------------------------------------------------------------------------- proof

// N numbers from 0 to 1023, in host memory
static inline int *make_values(void) {
    int *in = big_random_ints(N);
    for (int i = 0; i < N; i++)
        in[i] &= 1023;
    return in;
}

static inline bool check_spread(const Kernel &kernel, const int *in, const int *dev_out) {
    int threads = N / kernel.values;
    int *out = host_array<int>(threads), *expected = host_array<int>(threads);
    HANDLE_ERROR(cudaMemcpy(out, dev_out, threads * sizeof(int), cudaMemcpyDeviceToHost));
    for (int t = 0; t < threads; t++) {
        int least = in[t], sum = 0;
        for (int i = 0; i < kernel.values; i++) {
            least = min_of(least, in[t + i * threads]);
            sum += in[t + i * threads];
        }
        expected[t] = sum - least * kernel.values;
    }
    bool ok = check_ints("spread", out, expected, threads);
    free(out);
    free(expected);
    return ok;
}

#endif
