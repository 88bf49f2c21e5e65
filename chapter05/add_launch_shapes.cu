// SPDX-License-Identifier: MIT
/*
 * add_launch_shapes: one sum of vectors under every shape of launch
 *
 * Teaches: The same additions can be one thread's loop, a block each, a thread each, blocks of 128
 *          threads, or a grid that steps through the vectors. All give the same sums, but only many
 *          threads in many blocks keep a device busy, and one block has 1024 threads at most.
 * Book:    5.2.1 (course)
 * Run:     ./bin/chapter05/add_launch_shapes --size 64K
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/book.h"
#include "../common/memory.h"

#define N    1024
#define RUNS 11

__global__ void add_alone(const int *a, const int *b, int *c, size_t n) {
    for (size_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

__global__ void add_blocks(const int *a, const int *b, int *c, size_t n) {
    size_t i = blockIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

__global__ void add_threads(const int *a, const int *b, int *c, size_t n) {
    size_t i = threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

__global__ void add_both(const int *a, const int *b, int *c, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n) // the last block may reach past the end
        c[i] = a[i] + b[i];
}

// Right under any shape, the others' too.
__global__ void add_stride(const int *a, const int *b, int *c, size_t n) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        c[i] = a[i] + b[i];
}

struct Shape {
    const char *name;
    void (*kernel)(const int *a, const int *b, int *c, size_t n);
    unsigned blocks, threads;
};

struct Vectors {
    int *a, *b, *c, *expected;
    int *dev_a, *dev_b, *dev_c;
    cudaEvent_t start, stop;
};

// Milliseconds of the kernel: the median of RUNS runs after one to warm up, or of those that half a
// second has room for.
static float time_kernel(const Shape &shape, const Vectors &v, size_t n) {
    float ms[RUNS], total = 0;
    int runs = -1;
    while (runs < RUNS && total < 500) {
        float once;
        HANDLE_ERROR(cudaEventRecord(v.start));
        shape.kernel<<<shape.blocks, shape.threads>>>(v.dev_a, v.dev_b, v.dev_c, n);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaEventRecord(v.stop));
        HANDLE_ERROR(cudaEventSynchronize(v.stop));
        HANDLE_ERROR(cudaEventElapsedTime(&once, v.start, v.stop));
        if (runs >= 0)
            total += ms[runs] = once;
        runs++;
    }
    std::nth_element(ms, ms + runs / 2, ms + runs);
    return ms[runs / 2];
}

static bool show(const Shape &shape, const Vectors &v, size_t n) {
    HANDLE_ERROR(cudaMemset(v.dev_c, 0xff, n * sizeof(int))); // -1, which is no sum
    float ms = time_kernel(shape, v, n);
    HANDLE_ERROR(cudaMemcpy(v.c, v.dev_c, n * sizeof(int), cudaMemcpyDeviceToHost));
    inject_error(v.c, n * sizeof(int));
    char launch[40];
    snprintf(launch, sizeof launch, "<<<%u, %u>>>", shape.blocks, shape.threads);
    // Two vectors are read and one is written.
    double bytes = 3.0 * n * sizeof(int);
    printf("%-20s %-20s %10.4f ms %9.3f GB/s\n", shape.name, launch, ms, bytes / ms / 1e6);
    return check_ints(shape.name, v.c, v.expected, n);
}

int main(int argc, char **argv) {
    size_t n = N; // a grid has at most INT_MAX blocks in x
    const Option own[] = {OPTION_SIZE("size", &n, 1, INT_MAX, "elements in a vector"), OPTION_END};
    parse_options(argc, argv, "Adds two vectors under every shape of launch.", TIMES, own);
    select_device();

    const size_t few = 1600; // of the last launch
    size_t bytes = std::max(n, few) * sizeof(int);
    require_memory(4 * bytes, 3 * bytes);
    Vectors v;
    v.a = (int *)malloc(bytes);
    v.b = (int *)malloc(bytes);
    v.c = (int *)malloc(bytes);
    v.expected = (int *)malloc(bytes);
    HANDLE_NULL(v.a);
    HANDLE_NULL(v.b);
    HANDLE_NULL(v.c);
    HANDLE_NULL(v.expected);
    for (size_t i = 0; i < bytes / sizeof(int); i++) {
        int value = i % (1 << 29); // so that three times as much fits an int
        v.a[i] = value;
        v.b[i] = 2 * value;
        v.expected[i] = 3 * value;
    }
    HANDLE_ERROR(cudaMalloc((void **)&v.dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&v.dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&v.dev_c, bytes));
    HANDLE_ERROR(cudaMemcpy(v.dev_a, v.a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(v.dev_b, v.b, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaEventCreate(&v.start));
    HANDLE_ERROR(cudaEventCreate(&v.stop));

    int most;
    HANDLE_ERROR(cudaDeviceGetAttribute(&most, cudaDevAttrMaxThreadsPerBlock, options.device));
    printf("%zu elements\n", n);
    bool ok = show({"one thread", add_alone, 1, 1}, v, n);
    ok = show({"a block each", add_blocks, (unsigned)n, 1}, v, n) && ok;
    if (n <= (size_t)most)
        ok = show({"a thread each", add_threads, 1, (unsigned)n}, v, n) && ok;
    else
        printf("%-20s a block has at most %d threads\n", "a thread each", most);
    ok = show({"blocks and threads", add_both, (unsigned)((n + 127) / 128), 128}, v, n) && ok;
    ok = show({"a grid that steps", add_stride, 128, 128}, v, n) && ok;
    printf("%zu elements, 10 for each of 160 threads\n", few);
    ok = show({"a grid that steps", add_stride, 10, 16}, v, few) && ok;

    HANDLE_ERROR(cudaEventDestroy(v.start));
    HANDLE_ERROR(cudaEventDestroy(v.stop));
    HANDLE_ERROR(cudaFree(v.dev_a));
    HANDLE_ERROR(cudaFree(v.dev_b));
    HANDLE_ERROR(cudaFree(v.dev_c));
    free(v.a);
    free(v.b);
    free(v.c);
    free(v.expected);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
