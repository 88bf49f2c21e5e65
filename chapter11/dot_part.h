// SPDX-License-Identifier: MIT
// The device functions of the kernels of dot_ladder and dot_mpi. Both programs share them, so that the rate
// of a rank in dot_mpi can be compared with the rungs of dot_ladder.
#pragma once

#include "../common/book.h"

const unsigned THREADS = 512; // per block, two blocks per multiprocessor

__device__ static float dot4(float4 x, float4 y) {
    return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}

// Grid-stride loop: the partial sum of a thread. It issues eight vectorized loads before the first product.
__device__ static float thread_dot(const float *a, const float *b, size_t n) {
    const float4 *a4 = (const float4 *)a, *b4 = (const float4 *)b;
    size_t fours = n / 4, stride = (size_t)4 * blockDim.x * gridDim.x;
    float temp[4] = {0, 0, 0, 0};
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * 4 * blockDim.x; i < fours; i += stride) {
        float4 x[4], y[4];
        for (int k = 0; k < 4; k++) {
            bool inside = i + k * blockDim.x < fours;
            x[k] = inside ? a4[i + k * blockDim.x] : make_float4(0, 0, 0, 0);
            y[k] = inside ? b4[i + k * blockDim.x] : make_float4(0, 0, 0, 0);
        }
        for (int k = 0; k < 4; k++)
            temp[k] += dot4(x[k], y[k]);
    }
    size_t tail = fours * 4 + threadIdx.x; // up to three elements, for the first threads
    float last = blockIdx.x == 0 && tail < n ? a[tail] * b[tail] : 0;
    return temp[0] + temp[1] + temp[2] + temp[3] + last;
}

// The sum over all threads of the block, by warp shuffles. Thread 0 has the result.
__device__ static float block_sum(float x) {
    __shared__ float of_warp[32];
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_down_sync(0xffffffff, x, lanes);
    __syncthreads(); // the previous call has read of_warp
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = x;
    __syncthreads();
    x = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0;
    for (int lanes = 16; lanes > 0 && threadIdx.x < 32; lanes /= 2)
        x += __shfl_down_sync(0xffffffff, x, lanes);
    return x;
}

__device__ static unsigned finished; // blocks of this launch; atomicInc resets it to 0

// Last-block reduction: the block that finishes last adds the sums of all blocks. It returns true there, and
// thread 0 has the sum.
__device__ static bool part_dot(const float *a, const float *b, size_t n, float *sums, float *sum) {
    __shared__ bool last;
    float x = block_sum(thread_dot(a, b, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = x;
        __threadfence(); // the sum is written before the block counts itself
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last)
        return false;
    x = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x)
        x += __ldcg(&sums[i]); // from the L2 cache, where the other blocks wrote it
    *sum = block_sum(x);
    return true;
}

// ---------------------------------------------------------------------------------------- check

// Two blocks per multiprocessor, several times that for long vectors, so that a block reads about 512 KiB of
// each vector.
static unsigned blocks_for(size_t n, int device) {
    int multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount, device);
    size_t turns = n / ((size_t)2 * multiprocessors << 17) + 1;
    return max_of(1, min_of(2 * turns * multiprocessors, n / (16 * THREADS)));
}
