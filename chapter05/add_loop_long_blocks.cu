// SPDX-License-Identifier: MIT
/*
 * add_loop_long_blocks: more elements than threads
 *
 * Teaches: Blocks and threads together give each thread a number in the whole grid,
 *          threadIdx.x + blockIdx.x * blockDim.x. Stepping by the number of threads in the grid,
 *          blockDim.x * gridDim.x, 128 blocks of 128 threads cover vectors of any length.
 * Book:    5.2.1
 * Run:     ./bin/chapter05/add_loop_long_blocks
 * Differs: the length is an option and may pass 2^31, so the index is a size_t
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/memory.h"

#define N (33 * 1024)

__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n; tid += stride)
        c[tid] = a[tid] + b[tid];
}

// a = i and b = i * i. 46340 is the last i with a square that fits an int: after it, i starts
// over.
static int index_value(size_t i) {
    return (int)(i % 46341);
}

int main(int argc, char **argv) {
    size_t n = N;
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
                          OPTION_END};
    parse_options(argc, argv, "Adds two long vectors on the device with 128 blocks of 128 threads.",
                  0, own);
    select_device();

    size_t bytes = n * sizeof(int);
    require_memory(3 * bytes, 3 * bytes);
    int *a = (int *)malloc(bytes), *b = (int *)malloc(bytes), *c = (int *)malloc(bytes);
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(c);
    for (size_t i = 0; i < n; i++) {
        int value = index_value(i);
        a[i] = value;
        b[i] = value * value;
    }

    int *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));

    add<<<128, 128>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));
    inject_error(c, bytes);

    int *expected = a; // a has served
    for (size_t i = 0; i < n; i++)
        expected[i] = index_value(i) * (index_value(i) + 1);
    bool ok = check_ints("c", c, expected, n);
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
