// SPDX-License-Identifier: MIT
/*
 * hist_ladder: the histogram of bytes, from atomics in global memory to the speed of memory
 *
 * Teaches: What makes a histogram slow is threads that want the same bin, or bins in the same bank,
 *          at the same time. So the bins are copied: one copy a block, one a warp, and in the end
 *          one a lane, each in a bank of its own. Then no data can cause a conflict, and random
 *          bytes and equal bytes take the same time.
 * Book:    9.4.2 (ladder)
 * Run:     ./bin/chapter09/hist_ladder --size 1G
 * Differs: sums have 64 bits. Clearing the bins belongs to the time.
 * Bench:   1M 16M 100000000 1G 4294967295
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include "../common/bench.h"
#include "../common/book.h"
#include "../common/memory.h"
#ifdef __NVCC__
#include <cub/device/device_histogram.cuh>
#endif

#define BINS 256

typedef unsigned long long Count;

const unsigned THREADS = 1024;       // in a block, where warps share the bins
const unsigned LANES = 32, SETS = 2; // copies: one a lane, for odd and for even warps

static size_t size;
static unsigned char *buffer, *dev_buffer;
static Count *dev_histo;
static unsigned multiprocessors;

// The book's first: every byte is an atomic addition in global memory.
__global__ void histo_global(const unsigned char *buffer, size_t size, Count *histo) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&histo[buffer[i]], 1);
}

// The book's second: each block has bins in shared memory. Threads of a block still meet there.
__global__ void histo_shared(const unsigned char *buffer, size_t size, Count *histo) {
    __shared__ unsigned temp[BINS];
    temp[threadIdx.x] = 0;
    __syncthreads();
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&temp[buffer[i]], 1);
    __syncthreads();
    atomicAdd(&histo[threadIdx.x], temp[threadIdx.x]);
}

// Bytes after the last sixteen, for the first threads of the grid
__device__ static void count_rest(const unsigned char *buffer, size_t size, Count *histo) {
    size_t i = size / 16 * 16 + threadIdx.x;
    if (blockIdx.x == 0 && i < size)
        atomicAdd(&histo[buffer[i]], 1);
}

__device__ static void count_word(unsigned *bins, unsigned word) {
    atomicAdd(&bins[word & 255], 1);
    atomicAdd(&bins[word >> 8 & 255], 1);
    atomicAdd(&bins[word >> 16 & 255], 1);
    atomicAdd(&bins[word >> 24], 1);
}

// One load brings sixteen bytes. With `copies` more than one, each warp counts into bins of its own
// and a thread a bin adds them up.
template <int copies>
__global__ void histo_vectors(const unsigned char *buffer, size_t size, Count *histo) {
    __shared__ unsigned temp[copies][BINS];
    for (unsigned i = threadIdx.x; i < copies * BINS; i += blockDim.x)
        temp[i / BINS][i % BINS] = 0;
    __syncthreads();
    unsigned *mine = temp[threadIdx.x / 32 % copies];
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size / 16; i += stride) {
        uint4 bytes = ((const uint4 *)buffer)[i];
        count_word(mine, bytes.x);
        count_word(mine, bytes.y);
        count_word(mine, bytes.z);
        count_word(mine, bytes.w);
    }
    count_rest(buffer, size, histo);
    __syncthreads();
    if (threadIdx.x < BINS) {
        unsigned sum = 0;
        for (int i = 0; i < copies; i++)
            sum += temp[i][threadIdx.x];
        atomicAdd(&histo[threadIdx.x], sum);
    }
}

// A copy for each lane: bin b of lane l is word l of row b. Word l of any row lies in bank l, so
// the lanes of a warp never meet, whatever they count. A row holds two sets of 32 words, for even
// and for odd warps; so it is 256 bytes long, and where a counter lies is the byte that is counted
// put in front of a byte that the thread never changes: one instruction.
__device__ static void count_lane(unsigned char *rows, unsigned word, unsigned place) {
    atomicAdd((unsigned *)(rows + __byte_perm(word, place, 0x5504)), 1);
    atomicAdd((unsigned *)(rows + __byte_perm(word, place, 0x5514)), 1);
    atomicAdd((unsigned *)(rows + __byte_perm(word, place, 0x5524)), 1);
    atomicAdd((unsigned *)(rows + __byte_perm(word, place, 0x5534)), 1);
}

__device__ static void count_vector(unsigned char *rows, uint4 bytes, unsigned place) {
    count_lane(rows, bytes.x, place);
    count_lane(rows, bytes.y, place);
    count_lane(rows, bytes.z, place);
    count_lane(rows, bytes.w, place);
}

// Adds up the 64 words of each row: four neighbouring threads a row, sixteen words each, in an
// order that keeps the lanes of a warp in different banks. The first of the four returns the sum.
__device__ static unsigned add_row(const unsigned *rows, unsigned bin, unsigned quarter) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 16; i++)
        sum += rows[bin * 64 + quarter * 16 + (i + 2 * bin + quarter / 2) % 16];
    sum += __shfl_down_sync(0xffffffff, sum, 2);
    return sum + __shfl_down_sync(0xffffffff, sum, 1);
}

const size_t LANE_BYTES = BINS * SETS * LANES * sizeof(unsigned);

__global__ void __launch_bounds__(THREADS)
    histo_lanes(const unsigned char *buffer, size_t size, Count *histo) {
    extern __shared__ unsigned rows[];
    for (unsigned i = threadIdx.x; i < BINS * SETS * LANES / 4; i += THREADS)
        ((uint4 *)rows)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    unsigned place = threadIdx.x % (SETS * LANES) * sizeof(unsigned);
    size_t stride = (size_t)THREADS * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * THREADS; i < size / 16; i += stride)
        count_vector((unsigned char *)rows, ((const uint4 *)buffer)[i], place);
    count_rest(buffer, size, histo);
    __syncthreads();
    unsigned sum = add_row(rows, threadIdx.x / 4, threadIdx.x % 4);
    if (threadIdx.x % 4 == 0)
        atomicAdd(&histo[threadIdx.x / 4], sum);
}

// Two a multiprocessor, but so many that the 32 bits of a bin are enough
static unsigned blocks(void) {
    return std::max<size_t>(2 * multiprocessors, (size >> 31) + 1);
}

static void run(void (*kernel)(const unsigned char *, size_t, Count *), unsigned threads,
                size_t shared) {
    HANDLE_ERROR(cudaMemsetAsync(dev_histo, 0, BINS * sizeof(Count)));
    kernel<<<blocks(), threads, shared>>>(dev_buffer, size, dev_histo);
    HANDLE_LAUNCH();
}

#ifdef __NVCC__
// CUB counts into 32 bits here, as long as that is enough.
static void *cub_memory;
static size_t cub_bytes;
static unsigned *cub_histo;

template <typename T> static void cub_count(T *histo) {
    HANDLE_ERROR(cub::DeviceHistogram::HistogramEven(cub_memory, cub_bytes, dev_buffer, histo,
                                                     BINS + 1, 0, BINS, (long long)size));
}

static bool small(void) {
    return size >> 32 == 0;
}

static void run_cub(void) {
    if (small())
        cub_count(cub_histo);
    else
        cub_count(dev_histo);
}
#endif

static const Rung rungs[] = {
    {"book, global memory", "256 threads, 2 blocks a multiprocessor",
     [] { run(histo_global, BINS, 0); }},
    {"book, shared memory", "bins for each block", [] { run(histo_shared, BINS, 0); }},
    {"16-byte loads", "and as many threads as fit", [] { run(histo_vectors<1>, THREADS, 0); }},
    {"a copy a warp", "warps do not meet", [] { run(histo_vectors<32>, THREADS, 0); }},
    {"a copy a lane", "no two lanes in a bank", [] { run(histo_lanes, THREADS, LANE_BYTES); }},
#ifdef __NVCC__
    {"CUB", "DeviceHistogram::HistogramEven", run_cub, PEER},
#endif
};

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_histo, 0xff, BINS * sizeof(Count)));
#ifdef __NVCC__
    HANDLE_ERROR(cudaMemset(cub_histo, 0xff, BINS * sizeof(unsigned)));
#endif
}

static Count expected[BINS];

static void count_on_host(void) {
    // Four sets, so that equal bytes in a row do not wait for each other
    static Count sets[4][BINS];
    memset(sets, 0, sizeof sets);
    for (size_t i = 0; i < size; i++)
        sets[i % 4][buffer[i]]++;
    for (int bin = 0; bin < BINS; bin++)
        expected[bin] = sets[0][bin] + sets[1][bin] + sets[2][bin] + sets[3][bin];
}

static bool check(const char *name, BenchError *) {
    Count histo[BINS];
    HANDLE_ERROR(cudaMemcpy(histo, dev_histo, sizeof histo, cudaMemcpyDeviceToHost));
#ifdef __NVCC__
    if (strcmp(name, "CUB") == 0 && small()) {
        unsigned narrow[BINS];
        HANDLE_ERROR(cudaMemcpy(narrow, cub_histo, sizeof narrow, cudaMemcpyDeviceToHost));
        std::copy(narrow, narrow + BINS, histo);
    }
#endif
    inject_error(histo, sizeof histo);
    int wrong = 0;
    for (int bin = 0; bin < BINS; bin++)
        if (histo[bin] != expected[bin] && wrong++ < 3)
            fprintf(stderr, "%s: bin %d: got %llu, expected %llu\n", name, bin, histo[bin],
                    expected[bin]);
    return wrong == 0;
}

enum { ALL, RANDOM, SKEWED, EQUAL };
static const char *const fills[] = {"all", "random", "skewed", "equal"};

static void fill_buffer(int fill) {
    random_bytes(buffer, size);
    if (fill == EQUAL)
        memset(buffer, buffer[0], size);
    for (size_t i = 0; fill == SKEWED && i < size; i++)
        buffer[i] = buffer[i] * buffer[i] * buffer[i] >> 16;
}

int main(int argc, char **argv) {
    size = BENCH_SIZE(1 << 30, 1 << 20);
    int only = ALL;
    const Option own[] = {OPTION_SIZE("size", &size, 1, 1LL << 40, "bytes to count"),
                          OPTION_WORD("fill", &only, "all|random|skewed|equal", "what they are"),
                          OPTION_END};
    parse_options(argc, argv, "Histograms of bytes, from the book's kernel to the fastest.", LADDER,
                  own);
    select_device();
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    multiprocessors = prop.multiProcessorCount;

    require_memory(size, size + bench_memory(size));
    buffer = (unsigned char *)malloc(size);
    HANDLE_NULL(buffer);
    HANDLE_ERROR(cudaMalloc((void **)&dev_buffer, size));
    HANDLE_ERROR(cudaMalloc((void **)&dev_histo, BINS * sizeof(Count)));
    HANDLE_ERROR(
        cudaFuncSetAttribute(histo_lanes, cudaFuncAttributeMaxDynamicSharedMemorySize, LANE_BYTES));
#ifdef __NVCC__
    HANDLE_ERROR(cudaMalloc((void **)&cub_histo, BINS * sizeof(unsigned)));
    run_cub(); // asks how much memory it wants
    HANDLE_ERROR(cudaMalloc(&cub_memory, cub_bytes));
#endif

    bool ok = true;
    char title[64];
    snprintf(title, sizeof title, "%zu bytes", size);
    for (int fill = RANDOM; fill <= EQUAL; fill++) {
        if (only != ALL && fill != only)
            continue;
        fill_buffer(fill);
        count_on_host();
        HANDLE_ERROR(cudaMemcpy(dev_buffer, buffer, size, cudaMemcpyHostToDevice));
        ok = bench_run({title, fills[fill], size, (double)size, "GB/s", size, rungs,
                        sizeof rungs / sizeof *rungs, poison, check}) &&
             ok;
    }
    bench_finish();

#ifdef __NVCC__
    HANDLE_ERROR(cudaFree(cub_memory));
    HANDLE_ERROR(cudaFree(cub_histo));
#endif
    HANDLE_ERROR(cudaFree(dev_buffer));
    HANDLE_ERROR(cudaFree(dev_histo));
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
