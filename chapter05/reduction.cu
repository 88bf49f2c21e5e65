// SPDX-License-Identifier: MIT
/*
 * reduction: one sum, nine kernels, from the slowest to the fastest
 *
 * Teaches: All threads can add up an array together, in halves. How they share the work decides the
 *          speed: idle lanes, bank conflicts, barriers, loop overhead, too little work for a thread
 *          and a second launch each cost something, and each kernel here removes one of them. What
 *          is gained by that may be lost in part: kernel 1 has bank conflicts, kernel 6 few blocks.
 * Book:    5.3.1 (lab)
 * Run:     ./bin/chapter05/reduction --size 256M
 * Differs: __syncwarp() where the originals rely on the lanes of a warp running in lockstep, which
 *          they no longer do. Any size, not only powers of two. The times are those of all passes,
 *          down to one number. --every checks all sizes up to --size instead.
 * Bench:   64K 4M 32M 256M
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/bench.h"
#include "../common/book.h"
#include "../common/memory.h"
#ifdef __NVCC__
#include <cub/device/device_reduce.cuh>
#endif

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

// Kernel 7: loads of 16 bytes, eight of them on their way at once, and a block that takes one tile
// and is gone. The lanes of a warp add up in registers.
const unsigned TILE_THREADS = 512, LOADS = 8, TILE = TILE_THREADS * LOADS * 4;

__device__ int add_tile(const int *in, unsigned n) {
    __shared__ int cache[32];
    const int4 *fours = (const int4 *)in;
    unsigned first = threadIdx.x + blockIdx.x * LOADS * TILE_THREADS,
             rest = n / 4 * 4 + threadIdx.x;
    int4 x[LOADS];
    for (unsigned k = 0; k < LOADS; k++)
        x[k] = first + k * TILE_THREADS < n / 4 ? fours[first + k * TILE_THREADS]
                                                : make_int4(0, 0, 0, 0);
    int sum = blockIdx.x == 0 && rest < n ? in[rest] : 0;
    for (unsigned k = 0; k < LOADS; k++)
        sum += x[k].x + x[k].y + x[k].z + x[k].w;

    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, lanes);
    if (threadIdx.x % 32 == 0)
        cache[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < TILE_THREADS / 32 ? cache[threadIdx.x] : 0;
        for (int lanes = 16; lanes > 0; lanes /= 2)
            sum += __shfl_down_sync(0xffffffff, sum, lanes);
    }
    return sum;
}

__global__ void __launch_bounds__(TILE_THREADS) reduce7(const int *in, int *out, unsigned n) {
    int sum = add_tile(in, n);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

// Kernel 8: no second pass. One atomic addition carries both the sum of a block, in the upper half
// of a word, where overflow is lost as in any int, and a 1 for the block, in the lower. The block
// that finds all others counted has the whole sum, and clears the word for the next launch.
__device__ unsigned long long sum_and_count;

__global__ void __launch_bounds__(TILE_THREADS) reduce8(const int *in, int *out, unsigned n) {
    unsigned long long sum = add_tile(in, n);
    if (threadIdx.x == 0) {
        sum = sum << 32 | 1;
        unsigned long long before = atomicAdd(&sum_and_count, sum);
        if ((unsigned)before == gridDim.x - 1) {
            *out = (before + sum) >> 32;
            sum_and_count = 0;
        }
    }
}

static const struct Kernel {
    void (*function)(const int *in, int *out, unsigned n);
    unsigned threads, per_block, most_blocks; // elements in a block, as far as there are so many
    bool finishes;                            // in one pass
} kernels[] = {
    {reduce0, THREADS, THREADS, UINT_MAX, false},
    {reduce1, THREADS, THREADS, UINT_MAX, false},
    {reduce2, THREADS, THREADS, UINT_MAX, false},
    {reduce3, THREADS, 2 * THREADS, UINT_MAX, false},
    {reduce4, THREADS, 2 * THREADS, UINT_MAX, false},
    {reduce5<THREADS>, THREADS, 2 * THREADS, UINT_MAX, false},
    {reduce6<THREADS>, THREADS, 2 * THREADS, 2 * THREADS, false},
    {reduce7, TILE_THREADS, TILE, UINT_MAX, false},
    {reduce8, TILE_THREADS, TILE, UINT_MAX, true},
};

static unsigned size;    // of the array
static int *in, *dev_in; // host, device
static int *dev_sums[2]; // what passes leave, in turn
static size_t sums_bytes;
static const int *dev_sum; // where the last sum is
static int expected;

// Adds up the first n elements in passes, each of which leaves a number a block, until there is
// one.
static void reduce(const Kernel &kernel, unsigned n) {
    const int *from = dev_in;
    for (int pass = 0;; pass++) {
        dev_sum = dev_sums[pass % 2];
        unsigned blocks = std::min((n - 1) / kernel.per_block + 1, kernel.most_blocks);
        kernel.function<<<blocks, kernel.threads>>>(from, dev_sums[pass % 2], n);
        HANDLE_LAUNCH();
        if (blocks == 1 || kernel.finishes)
            return;
        from = dev_sum;
        n = blocks;
    }
}

template <int k> static void run(void) {
    reduce(kernels[k], size);
}

#ifdef __NVCC__
static void *cub_memory;
static size_t cub_bytes;

static void run_cub(void) {
    dev_sum = dev_sums[0];
    HANDLE_ERROR(cub::DeviceReduce::Sum(cub_memory, cub_bytes, dev_in, dev_sums[0], (int)size));
}
#endif

static const Rung rungs[] = {
    {"halves, with %", "neighbours", run<0>},
    {"first threads", "no idle lanes", run<1>},
    {"sequential halves", "no bank conflicts", run<2>},
    {"add on loading", "no idle half", run<3>},
    {"last warp", "without barriers", run<4>},
    {"unrolled", "no loop, by templates", run<5>},
    {"several elements", "a thread, few blocks", run<6>},
    {"16-byte loads", "eight in flight", run<7>},
    {"one launch", "sum and count in one atomic", run<8>},
#ifdef __NVCC__
    {"CUB", "DeviceReduce::Sum", run_cub, PEER},
#endif
};
const int KERNELS = sizeof kernels / sizeof *kernels;

// What is there before a pass must not look like a sum.
static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_sums[0], 0xff, sums_bytes));
    HANDLE_ERROR(cudaMemset(dev_sums[1], 0xff, sums_bytes));
}

static bool check(const char *name, BenchError *) {
    int sum;
    HANDLE_ERROR(cudaMemcpy(&sum, dev_sum, sizeof(int), cudaMemcpyDeviceToHost));
    inject_error(&sum, sizeof(int));
    return check_ints(name, &sum, &expected, 1);
}

// The table: each element is read once, 4 bytes; what the passes leave is not counted.
static bool show_times(void) {
    char title[64];
    snprintf(title, sizeof title, "%u ints", size);
    return bench_run({title, NULL, size, 4.0 * size, "GB/s", 4 * (size_t)size, rungs,
                      sizeof rungs / sizeof *rungs, poison, check});
}

// The sum of the first element, of the first two, of the first three …
static bool check_every_size(void) {
    int *got = (int *)malloc(size * sizeof(int)), *wanted = (int *)malloc(size * sizeof(int));
    HANDLE_NULL(got);
    HANDLE_NULL(wanted);
    for (unsigned i = 0; i < size; i++)
        wanted[i] = in[i] + (i > 0 ? wanted[i - 1] : 0);
    bool ok = true;
    for (int k = 0; k < KERNELS; k++) {
        if (options.kernel >= 0 && k != options.kernel)
            continue;
        for (unsigned i = 0; i < size; i++) {
            poison();
            reduce(kernels[k], i + 1);
            HANDLE_ERROR(cudaMemcpy(&got[i], dev_sum, sizeof(int), cudaMemcpyDeviceToHost));
        }
        inject_error(got, size * sizeof(int));
        bool right = check_ints(rungs[k].name, got, wanted, size);
        if (right)
            printf("%d %s: right for every size from 1 to %u\n", k, rungs[k].name, size);
        ok = right && ok;
    }
    free(got);
    free(wanted);
    return ok;
}

int main(int argc, char **argv) {
    size_t n = BENCH_SIZE(4 << 20, 1 << 16);
    bool every = false;
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, INT_MAX, "ints to add up"),
        OPTION_FLAG("every", &every, "no times, but check every size from 1 to --size"),
        OPTION_END};
    parse_options(argc, argv,
                  "Adds up an array with nine kernels, from the slowest to the fastest.", LADDER,
                  own);
    select_device();

    size = n;
    sums_bytes = ((n - 1) / THREADS + 1) * sizeof(int);
    require_memory((every ? 3 : 1) * n * sizeof(int),
                   n * sizeof(int) + 2 * sums_bytes + bench_memory(n * sizeof(int)));
    // From 1 up, so that none can be left out unnoticed, to as much as the sum has room for.
    in = big_random_ints(n);
    int most = std::min<size_t>(255, INT_MAX / n);
    for (size_t i = 0; i < n; i++) {
        in[i] = 1 + (unsigned)in[i] % most;
        expected += in[i];
    }
    HANDLE_ERROR(cudaMalloc((void **)&dev_in, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_sums[0], sums_bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_sums[1], sums_bytes));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, n * sizeof(int), cudaMemcpyHostToDevice));
#ifdef __NVCC__
    run_cub(); // asks how much memory it wants
    HANDLE_ERROR(cudaMalloc(&cub_memory, cub_bytes));
#endif

    bool ok = every ? check_every_size() : show_times();
    bench_finish();

#ifdef __NVCC__
    HANDLE_ERROR(cudaFree(cub_memory));
#endif
    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_sums[0]));
    HANDLE_ERROR(cudaFree(dev_sums[1]));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
