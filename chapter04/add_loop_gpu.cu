// SPDX-License-Identifier: MIT
/*
 * add_loop_gpu: vector addition, one block for each element
 *
 * Teaches: A launch runs the kernel in each block of the grid, here with one thread in a block. The kernel
 *          needs no loop over the elements: each block adds one pair, and blockIdx.x is the index of its
 *          element.
 * Terms:   kernel, launch, grid, block, blockIdx, device memory
 * Book:    4.2.1 (GPU)
 * Build:   nvcc -o add_loop_gpu chapter04/add_loop_gpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter04/add_loop_gpu --size 1000
 * Check:   --size 1001
 */
#include "../common/book.h"
#include "../common/checks/add.h"

#define N 10

static size_t n = N; // --size

// Drawn in docs/drawings.md#the-sum-of-two-vectors
__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t tid = blockIdx.x; // the element that this block adds
    if (tid < n)
        c[tid] = a[tid] + b[tid];
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
        a[i] = -k;
        b[i] = k * k;
    }
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(int), cudaMemcpyHostToDevice));

    add<<<n, 1>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, n * sizeof(int), cudaMemcpyDeviceToHost));
    print_sums(a, b, c, n); // of more than 20 sums the first and the last five
    bool ok = check_sums("c", c, n, -1);

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
    configure(argc, argv, "Adds two vectors on the device, one block for each element.", 0,
              {OPTION_SIZE("size", &n, 1, INT_MAX, "elements in a vector")}); // blocks in x: at most INT_MAX
    require_memory(4 * n * sizeof(int), 3 * n * sizeof(int));
}

// Task: add(): The grid has n blocks of one thread. The thread of block i stores a[i] + b[i] in c[i]. If
// i >= n, it does nothing. All arrays are in device memory.
