// SPDX-License-Identifier: MIT
/*
 * add_loop_blocks: adding vectors, one thread for each element
 *
 * Teaches: A block can have many threads, and one block of N threads does the work of N blocks.
 *          Each thread finds its element by its number in the block, threadIdx.x. A block has
 *          1024 threads at most, so this alone does not go far.
 * Book:    5.2.1
 * Run:     ./bin/chapter05/add_loop_blocks
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"

#define N 10

__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t tid = threadIdx.x; // the element of this thread
    if (tid < n)
        c[tid] = a[tid] + b[tid];
}

static void print_sums(const int *a, const int *b, const int *c, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (n > 20 && i == 5) {
            printf("... %zu more ...\n", n - 10);
            i = n - 5;
        }
        printf("%d + %d = %d\n", a[i], b[i], c[i]);
    }
}

int main(int argc, char **argv) {
    size_t n = N;
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, 1024, "elements in a vector, and threads in the block"),
        OPTION_END};
    parse_options(argc, argv, "Adds two vectors on the device, one thread for each element.", 0,
                  own);
    select_device();

    size_t bytes = n * sizeof(int);
    int *a = (int *)malloc(bytes), *b = (int *)malloc(bytes), *c = (int *)malloc(bytes);
    int *expected = (int *)malloc(bytes);
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(c);
    HANDLE_NULL(expected);
    for (int i = 0; i < (int)n; i++) {
        a[i] = i;
        b[i] = i * i;
        expected[i] = i * (i + 1);
    }

    int *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));

    add<<<1, (unsigned)n>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));
    inject_error(c, bytes);
    print_sums(a, b, c, n);
    bool ok = check_ints("c", c, expected, n);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    free(expected);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
