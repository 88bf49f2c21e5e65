// SPDX-License-Identifier: MIT
/*
 * dot: the dot product, added up in shared memory
 *
 * Teaches: The threads of a block work together through shared memory, and __syncthreads() makes
 *          each wait until all have written what the others are about to read. Every block adds up
 *          its own part, in halves, and the host adds the few numbers that are left.
 * Book:    5.3.1
 * Run:     ./bin/chapter05/dot
 * Differs: the result is checked against the closed form in double, with a limit that follows from
 *          the number of roundings. The length may pass 2^31.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/memory.h"

#define imin(a, b) ((a) < (b) ? (a) : (b))

#define N (33 * 1024)

const unsigned threadsPerBlock = 256;

__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
    unsigned cacheIndex = threadIdx.x;

    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n; tid += stride)
        temp += a[tid] * b[tid];
    cache[cacheIndex] = temp;

    __syncthreads();

    // In halves, so the number of threads must be a power of two. The barrier is for all of them,
    // also for those that have nothing to add any more.
    for (unsigned i = blockDim.x / 2; i != 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }

    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

// 0² + 1² + … + x²
static double sum_squares(double x) {
    return x * (x + 1) * (2 * x + 1) / 6;
}

// What the float sum may be off by, relative to the true one. No term is negative, so each rounding
// costs 2^-24 of the sum at most: of the inputs (from 2^24 on), of the product, of what a thread
// adds, of each halving and of each block that the host adds.
static double rounding_limit(size_t n, unsigned blocks) {
    double per_thread = ceil((double)n / (blocks * threadsPerBlock));
    return (2 + 1 + per_thread + log2(threadsPerBlock) + blocks) * 0x1p-24;
}

int main(int argc, char **argv) {
    size_t n = N;
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
                          OPTION_END};
    parse_options(argc, argv, "Dot product of two vectors on the device.", 0, own);
    select_device();

    unsigned blocksPerGrid = imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    size_t bytes = n * sizeof(float);
    require_memory(2 * bytes, 2 * bytes);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes);
    float *partial_c = (float *)malloc(blocksPerGrid * sizeof(float));
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(partial_c);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = 2 * a[i];
    }

    float *dev_a, *dev_b, *dev_partial_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_partial_c, blocksPerGrid * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));

    dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float),
                            cudaMemcpyDeviceToHost));
    inject_error(partial_c, blocksPerGrid * sizeof(float));
    float c = 0;
    for (unsigned i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];

    double expected = 2 * sum_squares(n - 1);
    printf("Does GPU value %.6g = %.6g?\n", c, expected);
    bool ok = check_value("dot product", c, expected, rounding_limit(n, blocksPerGrid));

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a);
    free(b);
    free(partial_c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
