// SPDX-License-Identifier: MIT
/*
 * add_ladder: the vector sum, from the book's launch to the speed of a copy
 *
 * Teaches: A sum of vectors does nothing but move memory, so the goal is the rate of a copy. Memory
 *          is fast when very many bytes are on their way at once: first through more threads, then
 *          through more bytes a load. More loads a thread add nothing to that; a little comes from
 *          saying that the sums are not read again soon.
 * Book:    5.2.1 (ladder)
 * Run:     ./bin/chapter05/add_ladder
 * Bench:   1M 16M 256M
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/bench.h"
#include "../common/book.h"
#include "../common/memory.h"

const unsigned THREADS = 256;

static size_t n;
static int *a, *b, *c, *dev_a, *dev_b, *dev_c;

// The book's: 128 blocks of 128 threads step through the vectors. They are too few to keep the
// memory busy; each waits for its two loads before it asks for the next ones.
__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        c[i] = a[i] + b[i];
}

__device__ static int4 sum(int4 x, int4 y) {
    return make_int4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

// What is left of n after the fours: up to three elements, for the first threads of the grid.
__device__ static void add_rest(const int *a, const int *b, int *c, size_t n) {
    size_t i = n / 4 * 4 + threadIdx.x;
    if (blockIdx.x == 0 && i < n)
        c[i] = a[i] + b[i];
}

// One load instruction brings 16 bytes a thread, 512 a warp.
__global__ void add_vectors(const int *a, const int *b, int *c, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * THREADS;
    if (i < n / 4)
        ((int4 *)c)[i] = sum(((const int4 *)a)[i], ((const int4 *)b)[i]);
    add_rest(a, b, c, n);
}

// All loads of a thread are under way before the first sum needs one. With as many threads as this,
// it gains nothing any more: the memory is busy.
__global__ void add_many(const int *a, const int *b, int *c, size_t n) {
    const int4 *a4 = (const int4 *)a, *b4 = (const int4 *)b;
    size_t i = threadIdx.x + (size_t)blockIdx.x * 2 * THREADS, next = i + THREADS;
    if (next < n / 4) {
        int4 x = a4[i], y = b4[i], x_next = a4[next], y_next = b4[next];
        ((int4 *)c)[i] = sum(x, y);
        ((int4 *)c)[next] = sum(x_next, y_next);
    } else if (i < n / 4) {
        ((int4 *)c)[i] = sum(a4[i], b4[i]);
    }
    add_rest(a, b, c, n);
}

// What is written is not read soon, so it need not stay in the cache: __stcs says so. The same hint
// for the loads, __ldcs, made an H200 slower.
__global__ void add_streaming(const int *a, const int *b, int *c, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n / 4)
        __stcs(&((int4 *)c)[i], sum(((const int4 *)a)[i], ((const int4 *)b)[i]));
    add_rest(a, b, c, n);
}

// Blocks for so many elements a thread
static unsigned blocks(size_t each) {
    return (n - 1) / (each * THREADS) + 1;
}

static void run(void (*kernel)(const int *, const int *, int *, size_t), unsigned blocks,
                unsigned threads) {
    kernel<<<blocks, threads>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
}

static const Rung rungs[] = {
    {"book", "128 blocks of 128 threads", [] { run(add, 128, 128); }},
    {"enough blocks", "a thread an element", [] { run(add, blocks(1), THREADS); }},
    {"16-byte loads", "a thread four elements", [] { run(add_vectors, blocks(4), THREADS); }},
    {"loads in flight", "two of each vector, then sums", [] { run(add_many, blocks(8), THREADS); }},
    {"streaming stores", "blocks of 1024 threads", [] { run(add_streaming, blocks(16), 1024); }},
};

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, n * sizeof(int)));
}

static bool check(const char *name, BenchError *) {
    HANDLE_ERROR(cudaMemcpy(c, dev_c, n * sizeof(int), cudaMemcpyDeviceToHost));
    inject_error(c, n * sizeof(int));
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += c[i] != a[i] + b[i];
    if (wrong)
        fprintf(stderr, "%s: %zu of %zu sums are wrong\n", name, wrong, n);
    return !wrong;
}

int main(int argc, char **argv) {
    n = BENCH_SIZE(256 << 20, 1 << 20);
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 36, "elements in a vector"),
                          OPTION_END};
    parse_options(argc, argv, "The sum of two vectors, from the book's kernel to the fastest.",
                  LADDER, own);
    select_device();

    size_t bytes = n * sizeof(int);
    require_memory(3 * bytes, 3 * bytes + bench_memory(3 * bytes));
    a = big_random_ints(n);
    b = big_random_ints(n);
    for (size_t i = 0; i < n; i++) { // so that no sum overflows
        a[i] /= 2;
        b[i] /= 2;
    }
    c = (int *)malloc(bytes);
    HANDLE_NULL(c);
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));

    char title[64];
    snprintf(title, sizeof title, "%zu ints", n);
    bool ok = bench_run({title, NULL, n, 3.0 * bytes, "GB/s", 3 * bytes, rungs,
                         sizeof rungs / sizeof *rungs, poison, check});
    bench_finish();

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
