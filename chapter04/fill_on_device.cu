// SPDX-License-Identifier: MIT
/*
 * fill_on_device: vectors that a kernel makes in device memory
 *
 * Teaches: Data that only the device reads need not be made on the host and copied: a kernel makes it where
 *          it is needed, each element in a block of its own. The program times both ways.
 * Terms:   device memory, kernel, blockIdx, cudaMemcpy, asynchronous launch
 * Book:    4.2.1 (after the book)
 * Build:   nvcc -o fill_on_device chapter04/fill_on_device.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter04/fill_on_device --size 64M
 * Check:   --size 60000
 */
#include "../common/book.h"

static size_t n = 1024 * 1024; // --size
static double now_ms(void);    // the host's clock in milliseconds
static bool check(int *dev_a, int *dev_b);

__global__ void fill(int *a, int *b, size_t n) {
    size_t tid = blockIdx.x;
    if (tid < n) {
        int k = tid % 46341; // 46340 is the largest number whose square fits an int
        a[tid] = -k;
        b[tid] = k * k;
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *a = (int *)malloc(n * sizeof(int)), *b = (int *)malloc(n * sizeof(int));
    HANDLE_NULL(a && b);
    int *dev_a, *dev_b;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(int)));

    fill<<<n, 1>>>(dev_a, dev_b, n); // not timed: the first launch of a kernel also loads it
    HANDLE_LAUNCH();
    bool ok = check(dev_a, dev_b);

    double start = now_ms();
    for (size_t i = 0; i < n; i++) {
        a[i] = -(int)(i % 46341);
        b[i] = a[i] * a[i];
    }
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(int), cudaMemcpyHostToDevice));
    printf("Inputs made on the host and copied:  %8.3f ms\n", now_ms() - start);
    ok = check(dev_a, dev_b) && ok;

    start = now_ms();
    fill<<<n, 1>>>(dev_a, dev_b, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDeviceSynchronize()); // the launch has returned before the kernel ends
    printf("Inputs made on the device:           %8.3f ms\n", now_ms() - start);
    ok = check(dev_a, dev_b) && ok;

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include <time.h>

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

void settings(int argc, char **argv) {
    configure(argc, argv, "Makes two vectors on the host and on the device.", TIMES,
              {OPTION_SIZE("size", &n, 1, INT_MAX, "elements in a vector")}); // blocks in x: at most INT_MAX
    require_memory(4 * n * sizeof(int), 2 * n * sizeof(int));
}

// Overwrites both vectors, so that a later check cannot find these values.
static bool check(int *dev_a, int *dev_b) {
    bool ok = check_ints("a", HostArray<int>(dev_a, n), n, [](size_t i) { return -(int)(i % 46341); });
    ok = check_ints("b", HostArray<int>(dev_b, n), n, [](size_t i) { return i % 46341 * (i % 46341); }) && ok;
    HANDLE_ERROR(cudaMemset(dev_a, 0xff, n * sizeof(int)));
    HANDLE_ERROR(cudaMemset(dev_b, 0xff, n * sizeof(int)));
    HANDLE_ERROR(cudaDeviceSynchronize()); // not part of the next time
    return ok;
}

// Task: fill(): The grid has n blocks of one thread. For k = i % 46341 the thread of block i stores -k in
// a[i] and k * k in b[i]. If i >= n, it does nothing. Both arrays are in device memory.
