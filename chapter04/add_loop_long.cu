// SPDX-License-Identifier: MIT
/*
 * add_loop_long: vector addition with more elements than blocks
 *
 * Teaches: A grid need not be as large as the data. Each of 128 blocks starts at its own index and
 *          steps by the number of blocks, gridDim.x, so that any grid covers a vector of any length.
 * Terms:   grid-stride loop, blockIdx, gridDim, block, grid, vector addition
 * Book:    4.2.1 (archive)
 * Build:   nvcc -o add_loop_long chapter04/add_loop_long.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter04/add_loop_long --size 1M
 * Differs: the length is an option and may exceed 2^31, so the index is a size_t.
 * Check:   --size 1001
 */
#include "../common/book.h"
#include "../common/checks/add.h"

#define N (32 * 1024)

static size_t n = N; // --size

// Grid-stride loop: the step is the number of threads in the grid. A block has one thread here, so that is
// the number of blocks.
__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t tid = blockIdx.x;
    while (tid < n) {
        c[tid] = a[tid] + b[tid];
        tid += gridDim.x;
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *a = (int *)malloc(n * sizeof(int)), *b = (int *)malloc(n * sizeof(int));
    int *c = (int *)malloc(n * sizeof(int));
    HANDLE_NULL(a && b && c);

    int *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_c, n * sizeof(int)));

    for (size_t i = 0; i < n; i++) {
        int k = i % 46341; // 46340 is the largest number whose square fits an int
        a[i] = k;
        b[i] = k * k;
    }
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(int), cudaMemcpyHostToDevice));

    add<<<128, 1>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, n * sizeof(int), cudaMemcpyDeviceToHost));
    bool ok = check_sums("c", c, n, 1);
    if (ok)
        printf("All %zu sums are right.\n", n);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Adds two long vectors on the device with 128 blocks.", 0,
              {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector")});
    require_memory(4 * n * sizeof(int), 3 * n * sizeof(int));
}

// Task: add(): Write a grid-stride loop. The grid has blocks of one thread, and may have fewer blocks than
// there are elements. The thread of block i stores a[k] + b[k] in c[k] for k = i, i + s, i + 2 * s and so on,
// while k < n. The stride s is the number of blocks in the grid.
