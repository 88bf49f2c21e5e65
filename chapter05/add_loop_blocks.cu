// SPDX-License-Identifier: MIT
/*
 * add_loop_blocks: vector addition, one thread for each element
 *
 * Teaches: A block can have many threads, and threadIdx.x is the index of a thread in its block. One
 *          block of N threads adds the same elements as N blocks of one thread, but a block has at
 *          most 1024 threads.
 * Terms:   thread, threadIdx, block, vector addition
 * Book:    5.2.1
 * Build:   nvcc -o add_loop_blocks chapter05/add_loop_blocks.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/add_loop_blocks --size 1000
 * Check:   --size 1001
 */
#include "../common/book.h"

#define N 10

static size_t n = N; // --size
static bool check(const int *c);

__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t tid = threadIdx.x; // the element that this thread adds
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
        a[i] = i;
        b[i] = i * i;
    }
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(int), cudaMemcpyHostToDevice));

    add<<<1, n>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++)
        printf("%d + %d = %d\n", a[i], b[i], c[i]);
    bool ok = check(c);

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
    configure(argc, argv, "Adds two vectors on the device, one thread for each element.", 0,
              {OPTION_SIZE("size", &n, 1, 1024, "elements in a vector, and threads in the block")});
}

static bool check(const int *c) {
    return check_ints("c", c, n, [](int i) { return i * (i + 1); });
}

// Task: add(): The grid has one block of n threads. Thread i stores a[i] + b[i] in c[i]. If i >= n, it does
// nothing.
