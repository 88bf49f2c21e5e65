// SPDX-License-Identifier: MIT
/*
 * minimum: the smallest element of an array, by a tree reduction
 *
 * Teaches: The tree that adds numbers also finds their minimum: a reduction works for every operator whose
 *          result does not depend on the order. Only the operator changes, and its neutral element, which
 *          stands for elements beyond the end: 0 for sums, INT_MAX for minima.
 * Terms:   reduction, tree reduction, shared memory, barrier, grid-stride loop
 * Book:    5.3.1 (course); T reduction (minimum)
 * After:   chapter05/matmul_shared
 * Build:   nvcc -o minimum chapter05/minimum.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/minimum --size 16M
 * Check:   --size 90003 | --size 100
 */
#include "../common/book.h"

#define N          (1024 * 1024)
#define imin(a, b) ((a) < (b) ? (a) : (b))
const int threadsPerBlock = 256, blocksPerGrid = 32;

static size_t n = N; // --size
static bool check(const int *partial, int min);

__global__ void minimum(const int *in, int *out, size_t n) {
    __shared__ int cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;

    int least = INT_MAX; // in a sum: 0
    while (tid < n) {
        least = imin(least, in[tid]); // in a sum: +
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[threadIdx.x] = least;
    __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] = imin(cache[threadIdx.x], cache[threadIdx.x + i]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = cache[0];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *in = (int *)malloc(n * sizeof(int)), partial[blocksPerGrid], *dev_in, *dev_partial;
    HANDLE_NULL(in);
    for (size_t i = 0; i < n; i++)
        in[i] = (int)((unsigned)i * 3141592653u); // modulo 2^32: neither rising nor falling
    HANDLE_ERROR(cudaMalloc(&dev_in, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_partial, sizeof(partial)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, n * sizeof(int), cudaMemcpyHostToDevice));

    minimum<<<blocksPerGrid, threadsPerBlock>>>(dev_in, dev_partial, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(partial, dev_partial, sizeof(partial), cudaMemcpyDeviceToHost));
    int min = INT_MAX;
    for (int i = 0; i < blocksPerGrid; i++)
        min = imin(min, partial[i]);
    printf("Minimum of %zu ints: %d\n", n, min);

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_partial));
    free(in);
    return check(partial, min) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Finds the smallest of many ints.", 0,
              {OPTION_SIZE("size", &n, 1, INT_MAX, "ints")});
    require_memory(n * sizeof(int), n * sizeof(int));
}

// Element i belongs to block i / threadsPerBlock, counted again from 0 after the last one. With --size 90003
// the minimum is in the last block.
static bool check(const int *partial, int min) {
    int expected[blocksPerGrid];
    std::fill(expected, expected + blocksPerGrid, INT_MAX);
    for (size_t i = 0; i < n; i++) {
        int *least = &expected[i / threadsPerBlock % blocksPerGrid];
        *least = min_of(*least, (int)((unsigned)i * 3141592653u));
    }
    return check_ints("minimum of block", partial, expected, blocksPerGrid) &&
           check_value("minimum", min, *std::min_element(expected, expected + blocksPerGrid), 0);
}

// Task: minimum(): A grid-stride loop finds the smallest of the elements of a thread, INT_MAX if it has none,
// and stores it in shared memory. A tree reduction with barriers, in a block whose size is a power of two,
// finds the smallest of the block, which thread 0 stores in out[blockIdx.x].
