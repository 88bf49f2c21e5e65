// SPDX-License-Identifier: MIT
/*
 * dot: the dot product, finished on the device under a lock
 *
 * Teaches: Blocks cannot wait for each other, but under a lock one at a time can read a sum in
 *          global memory, add to it and write it back: the dot product of chapter 5 comes to one
 *          number without the host. Where all that is done under the lock is an addition,
 *          atomicAdd() does it without one.
 * Book:    A.1.2
 * Run:     ./bin/appendix_a/dot
 * Differs: unlocking is atomic, with fences on both sides of what the lock guards; the lock is made
 *          and freed by calls, because the page's destructor runs for each copy that a kernel gets.
 *          The same with atomicAdd() beside it. The result is checked in double.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/book.h"
#include "../common/memory.h"
#include "lock.h"

#define imin(a, b) ((a) < (b) ? (a) : (b))

#define N    (33 * 1024 * 1024)
#define RUNS 11

const unsigned threadsPerBlock = 256;

// The sum of this block's part, in its thread 0.
__device__ float block_sum(const float *a, const float *b, size_t n) {
    __shared__ float cache[threadsPerBlock];
    unsigned cacheIndex = threadIdx.x;

    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n; tid += stride)
        temp += a[tid] * b[tid];
    cache[cacheIndex] = temp;

    __syncthreads();

    for (unsigned i = blockDim.x / 2; i != 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }
    return cache[0];
}

__global__ void dot(Lock lock, const float *a, const float *b, float *c, size_t n) {
    float sum = block_sum(a, b, n);
    if (threadIdx.x == 0) { // one thread a block: a warp whose lanes compete could block itself
        lock.lock();
        *c += sum;
        lock.unlock();
    }
}

__global__ void dot_atomic(Lock, const float *a, const float *b, float *c, size_t n) {
    float sum = block_sum(a, b, n);
    if (threadIdx.x == 0)
        atomicAdd(c, sum);
}

// 0² + 1² + … + x²
static double sum_squares(double x) {
    return x * (x + 1) * (2 * x + 1) / 6;
}

// What the float sum may be off by, relative to the true one. No term is negative, so each rounding
// costs 2^-24 of the sum at most: of the inputs (from 2^24 on), of the product, of what a thread
// adds, of each halving and of each block.
static double rounding_limit(size_t n, unsigned blocks) {
    double per_thread = ceil((double)n / ((double)blocks * threadsPerBlock));
    return (2 + 1 + per_thread + log2(threadsPerBlock) + blocks) * 0x1p-24;
}

struct Data {
    size_t n;
    unsigned blocks;
    Lock lock;
    float *dev_a, *dev_b, *dev_c;
    cudaEvent_t start, stop;
};

typedef void (*Kernel)(Lock, const float *, const float *, float *, size_t);

// The kernel's sum, and on a line of its own its time: the median of RUNS runs, or of those that
// half a second has room for, after one to warm up.
static bool show(const char *name, Kernel kernel, const Data &d) {
    float ms[RUNS], total = 0, c = 0;
    int runs = -1;
    while (runs < RUNS && total < 500) {
        float once;
        HANDLE_ERROR(cudaMemset(d.dev_c, 0, sizeof(float)));
        HANDLE_ERROR(cudaEventRecord(d.start, 0));
        kernel<<<d.blocks, threadsPerBlock>>>(d.lock, d.dev_a, d.dev_b, d.dev_c, d.n);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaEventRecord(d.stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(d.stop));
        HANDLE_ERROR(cudaEventElapsedTime(&once, d.start, d.stop));
        if (runs >= 0)
            total += ms[runs] = once;
        runs++;
    }
    std::nth_element(ms, ms + runs / 2, ms + runs);
    HANDLE_ERROR(cudaMemcpy(&c, d.dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    inject_error(&c, sizeof(c));

    double expected = 2 * sum_squares(d.n - 1.0), bytes = 2.0 * d.n * sizeof(float); // all are read
    printf("Does GPU value %.6g = %.6g?\n", c, expected);
    printf("%-18s %.3f ms, %.3f GB/s\n", name, ms[runs / 2], bytes / ms[runs / 2] / 1e6);
    return check_value(name, c, expected, rounding_limit(d.n, d.blocks));
}

int main(int argc, char **argv) {
    Data d = {};
    int blocks = 0;
    d.n = N;
    const Option own[] = {
        OPTION_SIZE("size", &d.n, 1, (size_t)1 << 33, "elements in a vector"),
        OPTION_INT("blocks", &blocks, 0, 65536, "blocks; 0 stands for as many as fit, up to 32"),
        OPTION_END};
    parse_options(argc, argv, "Dot product on the device, under a lock.", TIMES, own);
    select_device();

    d.blocks = blocks ? blocks : imin(32, (d.n + threadsPerBlock - 1) / threadsPerBlock);
    size_t bytes = d.n * sizeof(float);
    require_memory(2 * bytes, 2 * bytes);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes);
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    for (size_t i = 0; i < d.n; i++) {
        a[i] = i;
        b[i] = 2 * a[i];
    }
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_c, sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(d.dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(d.dev_b, b, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaEventCreate(&d.start));
    HANDLE_ERROR(cudaEventCreate(&d.stop));
    d.lock.init();

    bool ok = show("With a lock:", dot, d);
    ok = show("With atomicAdd():", dot_atomic, d) && ok;

    d.lock.release();
    HANDLE_ERROR(cudaEventDestroy(d.start));
    HANDLE_ERROR(cudaEventDestroy(d.stop));
    HANDLE_ERROR(cudaFree(d.dev_a));
    HANDLE_ERROR(cudaFree(d.dev_b));
    HANDLE_ERROR(cudaFree(d.dev_c));
    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
