// SPDX-License-Identifier: MIT
/*
 * add_loop_gpu: vector addition, one block for each element
 *
 * Teaches: The kernel runs once for each block of the grid. It needs no loop over the elements: each
 *          block adds one pair, and blockIdx.x is the index of its element.
 * Terms:   kernel, launch, grid, block, blockIdx, device memory
 * Book:    4.2.1 (GPU)
 * Run:     ./bin/chapter04/add_loop_gpu --size 1000
 */
#include "../common/book.h"
#include "../common/proofs/add.h"

#define N 10

static size_t n = N; // --size

__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t tid = blockIdx.x; // the element that this block adds
    if (tid < n)
        c[tid] = a[tid] + b[tid];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *a = host_array<int>(n), *b = host_array<int>(n), *c = host_array<int>(n);
    int *dev_a, *dev_b, *dev_c;

    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_c, n * sizeof(int)));

    fill_vectors(a, b, n, -1); // a[i] = -i, b[i] = i * i
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(int), cudaMemcpyHostToDevice));

    add<<<n, 1>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, n * sizeof(int), cudaMemcpyDeviceToHost));
    print_sums(a, b, c, n);
    bool ok = check_sums("c", c, n, -1);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    // A grid has at most INT_MAX blocks in x.
    const Option own[] = {OPTION_SIZE("size", &n, 1, INT_MAX, "elements in a vector"), OPTION_END};
    parse_options(argc, argv, "Adds two vectors on the device, one block for each element.", 0, own);
    select_device();
    require_memory(4 * n * sizeof(int), 3 * n * sizeof(int));
}
