// SPDX-License-Identifier: MIT
/*
 * reduction: one sum, seven kernels, each a step faster than the one before
 *
 * Teaches: All threads can add up an array together, in halves. How they share the work decides the
 *          speed: idle lanes, bank conflicts, barriers, loop overhead and too little work for a
 *          thread each cost something, and each kernel here removes one of them.
 * Book:    5.3.1 (lab)
 * Run:     ./bin/chapter05/reduction --kernel 6 --size 256M
 * Differs: __syncwarp() where the originals rely on the lanes of a warp running in lockstep, which
 *          they no longer do. Any size, not only powers of two. The times are those of all passes,
 *          down to one number. --every checks all sizes up to --size instead.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/book.h"
#include "../common/memory.h"

#define N    (4 * 1024 * 1024)
#define RUNS 11

const unsigned THREADS = 256; // in a block

// Kernel 0: thread 0, 2, 4 … adds its neighbour, then 0, 4, 8 … the next one, and so on. The
// threads that add are spread over all warps, so every warp runs on with most of its lanes idle.
__global__ void reduce0(const int *in, int *out, unsigned n) {
    __shared__ int cache[THREADS];
    unsigned t = threadIdx.x, i = t + blockIdx.x * THREADS;
    cache[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned step = 1; step < THREADS; step *= 2) {
        if (t % (2 * step) == 0)
            cache[t] += cache[t + step];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 1: the same additions by the first threads, so whole warps are done early. But now the
// lanes of a warp want words that lie 2, 4, 8 … apart, several in one bank.
__global__ void reduce1(const int *in, int *out, unsigned n) {
    __shared__ int cache[THREADS];
    unsigned t = threadIdx.x, i = t + blockIdx.x * THREADS;
    cache[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned step = 1; step < THREADS; step *= 2) {
        unsigned at = 2 * step * t;
        if (at < THREADS)
            cache[at] += cache[at + step];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 2: the first half adds the second half. Neighbouring lanes read neighbouring words.
__device__ void add_halves(int *cache, unsigned last) {
    for (unsigned half = THREADS / 2; half > last; half /= 2) {
        if (threadIdx.x < half)
            cache[threadIdx.x] += cache[threadIdx.x + half];
        __syncthreads();
    }
}

__global__ void reduce2(const int *in, int *out, unsigned n) {
    __shared__ int cache[THREADS];
    unsigned t = threadIdx.x, i = t + blockIdx.x * THREADS;
    cache[t] = i < n ? in[i] : 0;
    __syncthreads();
    add_halves(cache, 0);
    if (t == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 3: half of the threads were idle from the start. Each now adds two elements on the way in,
// and a block does the work of two.
__device__ int load_two(const int *in, unsigned n) {
    unsigned i = threadIdx.x + blockIdx.x * 2 * THREADS;
    return (i < n ? in[i] : 0) + (i + THREADS < n ? in[i + THREADS] : 0);
}

__global__ void reduce3(const int *in, int *out, unsigned n) {
    __shared__ int cache[THREADS];
    cache[threadIdx.x] = load_two(in, n);
    __syncthreads();
    add_halves(cache, 0);
    if (threadIdx.x == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 4: the last 64 numbers are the business of a single warp, which needs no barrier of the
// block. Its lanes must all have read before any of them writes, and have written before any reads.
__device__ void add_last_warp(int *cache) {
    int sum = cache[threadIdx.x];
#pragma unroll
    for (unsigned half = 32; half > 0; half /= 2) {
        sum += cache[threadIdx.x + half];
        __syncwarp();
        cache[threadIdx.x] = sum;
        __syncwarp();
    }
}

__global__ void reduce4(const int *in, int *out, unsigned n) {
    __shared__ int cache[THREADS];
    cache[threadIdx.x] = load_two(in, n);
    __syncthreads();
    add_halves(cache, 32);
    if (threadIdx.x < 32)
        add_last_warp(cache);
    if (threadIdx.x == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 5: the compiler knows the number of threads, so no loop is left.
template <unsigned threads> __device__ void add_block(int *cache) {
    if constexpr (threads > 64) {
        if (threadIdx.x < threads / 2)
            cache[threadIdx.x] += cache[threadIdx.x + threads / 2];
        __syncthreads();
        add_block<threads / 2>(cache);
    } else if (threadIdx.x < 32) {
        add_last_warp(cache);
    }
}

template <unsigned threads> __global__ void reduce5(const int *in, int *out, unsigned n) {
    __shared__ int cache[threads];
    cache[threadIdx.x] = load_two(in, n);
    __syncthreads();
    add_block<threads>(cache);
    if (threadIdx.x == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 6: as many blocks as the next pass can add up at once, and each thread adds as many
// elements as it takes.
template <unsigned threads> __global__ void reduce6(const int *in, int *out, unsigned n) {
    __shared__ int cache[threads];
    int sum = 0;
    for (unsigned i = threadIdx.x + blockIdx.x * threads; i < n; i += threads * gridDim.x)
        sum += in[i];
    cache[threadIdx.x] = sum;
    __syncthreads();
    add_block<threads>(cache);
    if (threadIdx.x == 0)
        out[blockIdx.x] = cache[0];
}

static const struct Kernel {
    const char *name;
    void (*function)(const int *in, int *out, unsigned n);
    unsigned per_block, most_blocks; // elements in a block, as far as there are so many blocks
} kernels[] = {
    {"interleaved, with %", reduce0, THREADS, UINT_MAX},
    {"interleaved, first threads", reduce1, THREADS, UINT_MAX},
    {"sequential halves", reduce2, THREADS, UINT_MAX},
    {"first addition on loading", reduce3, 2 * THREADS, UINT_MAX},
    {"last warp without barriers", reduce4, 2 * THREADS, UINT_MAX},
    {"unrolled by templates", reduce5<THREADS>, 2 * THREADS, UINT_MAX},
    {"several elements a thread", reduce6<THREADS>, 2 * THREADS, 2 * THREADS},
};
const int KERNELS = sizeof(kernels) / sizeof(*kernels);

struct Data {
    unsigned n;
    int *dev_in;
    int *dev_sums[2]; // what passes leave, in turn
    size_t sums_bytes;
    cudaEvent_t start, stop;
};

// Adds up the first n elements in passes, each of which leaves a number a block, until there is
// one. Returns where that is.
static const int *reduce(const Kernel &kernel, const Data &d, unsigned n) {
    const int *in = d.dev_in;
    for (int pass = 0;; pass++) {
        int *out = d.dev_sums[pass % 2];
        unsigned blocks = std::min((n - 1) / kernel.per_block + 1, kernel.most_blocks);
        kernel.function<<<blocks, THREADS>>>(in, out, n);
        HANDLE_LAUNCH();
        if (blocks == 1)
            return out;
        in = out;
        n = blocks;
    }
}

// What is there before a pass must not look like a sum.
static void poison(const Data &d) {
    HANDLE_ERROR(cudaMemset(d.dev_sums[0], 0xff, d.sums_bytes));
    HANDLE_ERROR(cudaMemset(d.dev_sums[1], 0xff, d.sums_bytes));
}

// One timed reduction of all elements. Returns where the sum is.
static const int *timed(const Kernel &kernel, const Data &d, float *ms) {
    HANDLE_ERROR(cudaEventRecord(d.start));
    const int *dev_sum = reduce(kernel, d, d.n);
    HANDLE_ERROR(cudaEventRecord(d.stop));
    HANDLE_ERROR(cudaEventSynchronize(d.stop));
    HANDLE_ERROR(cudaEventElapsedTime(ms, d.start, d.stop));
    return dev_sum;
}

static bool check(const Kernel &kernel, const int *dev_sum, int expected) {
    int sum;
    HANDLE_ERROR(cudaMemcpy(&sum, dev_sum, sizeof(int), cudaMemcpyDeviceToHost));
    inject_error(&sum, sizeof(int));
    return check_ints(kernel.name, &sum, &expected, 1);
}

// Checks the kernel, times it and checks it again. Sets the time in milliseconds: the median of
// RUNS runs, or of those that a quarter of a second has room for. The first one warms up; when it
// is as long as that, it is the only one.
static bool run(const Kernel &kernel, const Data &d, int expected, float *median) {
    poison(d);
    bool ok = check(kernel, timed(kernel, d, median), expected);
    if (*median >= 250)
        return ok;

    poison(d);
    const int *dev_sum;
    float ms[RUNS], total = 0;
    int runs = 0;
    do {
        dev_sum = timed(kernel, d, &ms[runs]);
        total += ms[runs++];
    } while (runs < RUNS && total < 250);
    std::nth_element(ms, ms + runs / 2, ms + runs);
    *median = ms[runs / 2];
    return check(kernel, dev_sum, expected) && ok;
}

// The table: each element is read once, 4 bytes; what the passes leave is not counted.
static bool show_times(const Data &d, int expected, int only) {
    bool ok = true;
    float first = 0, before = 0, ms;
    printf("%u ints\n    %-28s %15s %17s %9s %9s\n", d.n, "kernel", "time", "rate", "step",
           "in all");
    for (int k = 0; k < KERNELS; k++) {
        if (only >= 0 && k != only)
            continue;
        ok = run(kernels[k], d, expected, &ms) && ok;
        first = first ? first : ms;
        before = before ? before : ms;
        printf("%-3d %-28s %12.4f ms %12.2f GB/s %8.2fx %8.2fx\n", k, kernels[k].name, ms,
               d.n * sizeof(int) / ms / 1e6, before / ms, first / ms);
        before = ms;
    }
    return ok;
}

// The sum of the first element, of the first two, of the first three …
static bool check_every_size(const Data &d, const int *in, int only) {
    int *got = (int *)malloc(d.n * sizeof(int)), *expected = (int *)malloc(d.n * sizeof(int));
    HANDLE_NULL(got);
    HANDLE_NULL(expected);
    for (unsigned i = 0; i < d.n; i++)
        expected[i] = in[i] + (i > 0 ? expected[i - 1] : 0);
    bool ok = true;
    for (int k = 0; k < KERNELS; k++) {
        if (only >= 0 && k != only)
            continue;
        for (unsigned i = 0; i < d.n; i++) {
            poison(d);
            HANDLE_ERROR(cudaMemcpy(&got[i], reduce(kernels[k], d, i + 1), sizeof(int),
                                    cudaMemcpyDeviceToHost));
        }
        inject_error(got, d.n * sizeof(int));
        bool right = check_ints(kernels[k].name, got, expected, d.n);
        if (right)
            printf("%d %s: right for every size from 1 to %u\n", k, kernels[k].name, d.n);
        ok = right && ok;
    }
    free(got);
    free(expected);
    return ok;
}

int main(int argc, char **argv) {
    size_t n = N;
    int only = -1;
    bool every = false;
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, INT_MAX, "ints to add up"),
        OPTION_INT("kernel", &only, -1, KERNELS - 1, "run this one alone, -1 for all"),
        OPTION_FLAG("every", &every, "no times, but check every size from 1 to --size"),
        OPTION_END};
    parse_options(argc, argv, "Adds up an array with seven kernels, one faster than the other.", 0,
                  own);
    select_device();

    Data d;
    d.n = n;
    d.sums_bytes = ((n - 1) / THREADS + 1) * sizeof(int);
    require_memory((every ? 3 : 1) * n * sizeof(int), n * sizeof(int) + 2 * d.sums_bytes);
    // From 1 up, so that none can be left out unnoticed, to as much as the sum has room for.
    int *in = big_random_ints(n), most = std::min<size_t>(255, INT_MAX / n), expected = 0;
    for (size_t i = 0; i < n; i++) {
        in[i] = 1 + (unsigned)in[i] % most;
        expected += in[i];
    }
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_in, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_sums[0], d.sums_bytes));
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_sums[1], d.sums_bytes));
    HANDLE_ERROR(cudaMemcpy(d.dev_in, in, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaEventCreate(&d.start));
    HANDLE_ERROR(cudaEventCreate(&d.stop));

    bool ok = every ? check_every_size(d, in, only) : show_times(d, expected, only);

    HANDLE_ERROR(cudaEventDestroy(d.start));
    HANDLE_ERROR(cudaEventDestroy(d.stop));
    HANDLE_ERROR(cudaFree(d.dev_in));
    HANDLE_ERROR(cudaFree(d.dev_sums[0]));
    HANDLE_ERROR(cudaFree(d.dev_sums[1]));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
