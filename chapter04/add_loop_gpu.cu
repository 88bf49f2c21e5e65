// SPDX-License-Identifier: MIT
/*
 * add_loop_gpu: adding vectors, one block for each element
 *
 * Teaches: The loop is gone, and each element has a block of its own. As many copies of the
 *          kernel run as there are elements, and each finds its own by the number of its block,
 *          blockIdx.x.
 * Book:    4.2.1 (GPU)
 * Run:     ./bin/chapter04/add_loop_gpu
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/memory.h"

#define N 10

__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t tid = blockIdx.x; // the element of this block
    if (tid < n)
        c[tid] = a[tid] + b[tid];
}

// a = -i and b = i * i. 46340 is the last i with a square that fits an int: after it, i starts
// over.
static int index_value(size_t i) {
    return (int)(i % 46341);
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
    size_t n = N; // a grid has at most INT_MAX blocks in x
    const Option own[] = {OPTION_SIZE("size", &n, 1, INT_MAX, "elements in a vector"), OPTION_END};
    parse_options(argc, argv, "Adds two vectors on the device, one block for each element.", 0,
                  own);
    select_device();

    size_t bytes = n * sizeof(int);
    require_memory(4 * bytes, 3 * bytes);
    int *a = (int *)malloc(bytes), *b = (int *)malloc(bytes), *c = (int *)malloc(bytes);
    int *expected = (int *)malloc(bytes);
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(c);
    HANDLE_NULL(expected);
    for (size_t i = 0; i < n; i++) {
        int value = index_value(i);
        a[i] = -value;
        b[i] = value * value;
        expected[i] = value * (value - 1);
    }

    int *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));

    add<<<(unsigned)n, 1>>>(dev_a, dev_b, dev_c, n);
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
