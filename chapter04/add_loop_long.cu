// SPDX-License-Identifier: MIT
/*
 * add_loop_long: more elements than blocks
 *
 * Teaches: A grid need not be as large as the data. Each of 128 blocks starts at its own number
 *          and steps by the number of blocks, gridDim.x, so any grid covers any length.
 * Book:    4.2.1 (archive)
 * Run:     ./bin/chapter04/add_loop_long
 * Differs: the length is an option and may pass 2^31, so the index is a size_t
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/memory.h"

#define N (32 * 1024)

__global__ void add(const int *a, const int *b, int *c, size_t n) {
    for (size_t tid = blockIdx.x; tid < n; tid += gridDim.x)
        c[tid] = a[tid] + b[tid];
}

// a = i and b = 2 * i. From 2^29 on i starts over, so that three times as much fits an int.
static int index_value(size_t i) {
    return (int)(i % ((size_t)1 << 29));
}

int main(int argc, char **argv) {
    size_t n = N;
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
                          OPTION_END};
    parse_options(argc, argv, "Adds two long vectors on the device with 128 blocks.", 0, own);
    select_device();

    size_t bytes = n * sizeof(int);
    require_memory(3 * bytes, 3 * bytes);
    int *a = (int *)malloc(bytes), *b = (int *)malloc(bytes), *c = (int *)malloc(bytes);
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(c);
    for (size_t i = 0; i < n; i++) {
        a[i] = index_value(i);
        b[i] = 2 * index_value(i);
    }

    int *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));

    add<<<128, 1>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));
    inject_error(c, bytes);

    int *expected = a; // a has served: three times it is what c has to be
    for (size_t i = 0; i < n; i++)
        expected[i] = 3 * index_value(i);
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
