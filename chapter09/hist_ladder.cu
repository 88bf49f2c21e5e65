// SPDX-License-Identifier: MIT
/*
 * hist_ladder: histogram of bytes, from atomics in global memory to memory bandwidth
 *
 * Teaches: A histogram is slow when threads contend for a bin, or for bins in the same bank. Privatization
 *          reduces that: one copy of the bins per block, then per warp, and finally per lane, with
 *          each copy in a bank of its own. Then no data can cause a bank conflict, and random bytes take
 *          the same time as equal bytes. With little data, launches take most of the time.
 * Terms:   histogram, privatization, contention, bank conflict, atomic operation, vectorized load,
 *          shared memory, lane, launch overhead, CUB, throughput, cold
 * Book:    9.4.2 (ladder)
 * Rungs:   0 book, global atomics (256 threads, 2 blocks per multiprocessor); 1 book, shared atomics
 *          (privatization: bins per block); 2 vectorized loads (uint4, 1024 threads per block); 3 bins per
 *          warp (no contention between warps); 4 bins per lane (no bank conflicts); 5 single launch (the
 *          last block to add clears the bins)
 * Build:   nvcc -o hist_ladder chapter09/hist_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter09/hist_ladder --size 1G
 * Differs: the bins of the book's two kernels have 32 bits, which suffice for less than 4 GiB. The other
 *          rungs have bins of 64 bits in global memory. Clearing the bins is part of the time.
 * Limit:   reads from device memory; from 1 GiB on the last rung reaches 97 % of their rate. With less data,
 *          adding the bins of the blocks takes a larger part of the time.
 * Bench:   64K 1M 16M 104857600 1G 4294967295
 * Check:   --size 50011 | --size 3001 --fill equal
 */
#include "../common/book.h"
#include "../common/bench.h"
#ifdef HAVE_CUB
#include <cub/device/device_histogram.cuh>
#endif
#include "hist.h" // BINS, size, fill, fill_bytes()

typedef unsigned long long Count;

const unsigned THREADS = 1024;       // per block, from rung 2 on
const unsigned LANES = 32, SETS = 2; // of rung 4: copies of the bins per set, sets of copies

size_t size = 100 * 1024 * 1024; // --size
static unsigned char *dev_buffer;
static Count *dev_histo, expected[BINS];
static unsigned *dev_narrow;     // bins of 32 bits
static unsigned multiprocessors; // of the device
static int only;                 // --fill: 0: all data sets, else data_sets[only - 1]
static const int data_sets[] = {RANDOM, SKEWED, EQUAL};
static void count_on_host(const unsigned char *buffer);

// Rung 0, the book's first kernel: one atomic addition in global memory per byte.
__global__ void histo_global(const unsigned char *buffer, size_t size, unsigned *histo) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&histo[buffer[i]], 1);
}

// Rung 1, the book's second kernel: privatization. Each block counts into bins of its own in shared memory,
// where only the threads of the block contend.
__global__ void histo_shared(const unsigned char *buffer, size_t size, unsigned *histo) {
    __shared__ unsigned temp[BINS];
    temp[threadIdx.x] = 0;
    __syncthreads();
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&temp[buffer[i]], 1);
    __syncthreads();
    atomicAdd(&histo[threadIdx.x], temp[threadIdx.x]);
}

// Index of a byte of the tail after the last uint4, which the first threads of the grid count: up to 15
// bytes, one per thread. The other threads get an index that is not less than size.
__device__ static size_t tail(size_t size) {
    return blockIdx.x == 0 ? size / 16 * 16 + threadIdx.x : size;
}

__device__ static void count_word(unsigned *bins, unsigned word) {
    atomicAdd(&bins[word & 255], 1);
    atomicAdd(&bins[word >> 8 & 255], 1);
    atomicAdd(&bins[word >> 16 & 255], 1);
    atomicAdd(&bins[word >> 24], 1);
}

// Rungs 2 and 3: one load brings 16 bytes. With one copy of the bins per warp, only the lanes of a warp
// contend; at the end one thread per bin adds the copies.
template <int copies> __global__ void histo_vectors(const unsigned char *buffer, size_t size, Count *histo) {
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
    if (tail(size) < size)
        atomicAdd(&mine[buffer[tail(size)]], 1);
    __syncthreads();
    if (threadIdx.x < BINS) {
        unsigned sum = 0;
        for (int i = 0; i < copies; i++)
            sum += temp[i][threadIdx.x];
        atomicAdd(&histo[threadIdx.x], sum);
    }
}

// Rung 4: one copy of the bins per lane. Bin b of lane l is word l of row b, which lies in bank l. So the
// lanes of a warp access different banks, whatever the data: no bank conflicts and no contention within
// the warp. A row has two sets of 32 words, for even and for odd warps, which makes it 256 bytes long. The
// address of a counter is therefore byte << 8 | offset, where `offset` is fixed for the thread:
// __byte_perm computes it in one instruction. Its bytes 0 to 3 are those of word, 4 to 7 those of offset, and
// 0x5504 takes 4, 0, 5, 5, from the lowest: of word 0xddccbbaa and offset 0x14 it makes 0x0000aa14.
__device__ static void count_lane(unsigned char *rows, unsigned word, unsigned offset) {
    atomicAdd((unsigned *)(rows + __byte_perm(word, offset, 0x5504)), 1);
    atomicAdd((unsigned *)(rows + __byte_perm(word, offset, 0x5514)), 1);
    atomicAdd((unsigned *)(rows + __byte_perm(word, offset, 0x5524)), 1);
    atomicAdd((unsigned *)(rows + __byte_perm(word, offset, 0x5534)), 1);
}

__device__ static void count_vector(unsigned char *rows, uint4 bytes, unsigned offset) {
    count_lane(rows, bytes.x, offset);
    count_lane(rows, bytes.y, offset);
    count_lane(rows, bytes.z, offset);
    count_lane(rows, bytes.w, offset);
}

// Adds the 64 words of each row: four neighbouring threads per row, sixteen words each, in an order without
// bank conflicts. The first of the four threads has the sum.
__device__ static unsigned add_row(const unsigned *rows, unsigned bin, unsigned quarter) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 16; i++)
        sum += rows[bin * 64 + quarter * 16 + (i + 2 * bin + quarter / 2) % 16];
    sum += __shfl_down_sync(0xffffffff, sum, 2);
    return sum + __shfl_down_sync(0xffffffff, sum, 1);
}

const size_t LANE_BYTES = BINS * SETS * LANES * sizeof(unsigned);

// Counts the bytes of the block. The first of four threads returns the sum of their bin.
__device__ static unsigned count_lanes(const unsigned char *buffer, size_t size, unsigned *rows) {
    for (unsigned i = threadIdx.x; i < BINS * SETS * LANES / 4; i += THREADS)
        ((uint4 *)rows)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    unsigned offset = threadIdx.x % (SETS * LANES) * sizeof(unsigned);
    size_t stride = (size_t)THREADS * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * THREADS; i < size / 16; i += stride)
        count_vector((unsigned char *)rows, ((const uint4 *)buffer)[i], offset);
    if (tail(size) < size)
        atomicAdd(&rows[buffer[tail(size)] * SETS * LANES + threadIdx.x % LANES], 1);
    __syncthreads();
    return add_row(rows, threadIdx.x / 4, threadIdx.x % 4);
}

__global__ void __launch_bounds__(THREADS)
    histo_lanes(const unsigned char *buffer, size_t size, Count *histo) {
    extern __shared__ __align__(16) unsigned rows[];
    unsigned sum = count_lanes(buffer, size, rows);
    if (threadIdx.x % 4 == 0)
        atomicAdd(&histo[threadIdx.x / 4], sum);
}

// Rung 5: a single launch, without a memset before it. The blocks add their sums to bins that are 0 before
// and after each launch. The upper 16 bits of such a bin count the blocks that have added to it. The value
// that atomicAdd() returns tells the last block that it is the last: it writes the result and clears the bin.
const int BLOCKS_SHIFT = 48;
__device__ static Count merged[BINS];

__global__ void __launch_bounds__(THREADS)
    histo_single(const unsigned char *buffer, size_t size, Count *histo) {
    extern __shared__ __align__(16) unsigned rows[];
    unsigned sum = count_lanes(buffer, size, rows), bin = threadIdx.x / 4;
    if (threadIdx.x % 4 != 0)
        return;
    Count old = atomicAdd(&merged[bin], ((Count)1 << BLOCKS_SHIFT) + sum);
    if (old >> BLOCKS_SHIFT == gridDim.x - 1) {
        histo[bin] = (old + sum) % ((Count)1 << BLOCKS_SHIFT);
        atomicExch(&merged[bin], 0);
    }
}

// Two blocks per multiprocessor, fewer where a thread would have nothing to load, but at least one per 2 GiB,
// so that no 32-bit bin overflows
static unsigned blocks(unsigned threads) {
    size_t loads = threads == THREADS ? size / 16 : size; // of a uint4 or, in the book's kernels, a byte
    return max_of(min_of(2 * multiprocessors, loads / threads), (size >> 31) + 1);
}

static const char *needs_32_bits(void) {
    return size >> 32 ? "needs less than 4 GiB" : NULL;
}

// Clearing the bins is part of the work.
template <class Bin>
static void run(void (*kernel)(const unsigned char *, size_t, Bin *), Bin *histo, unsigned threads,
                size_t shared = 0) {
    HANDLE_ERROR(cudaMemsetAsync(histo, 0, BINS * sizeof(Bin)));
    kernel<<<blocks(threads), threads, shared>>>(dev_buffer, size, histo);
    HANDLE_LAUNCH();
}

static void run_single(void) {
    histo_single<<<blocks(THREADS), THREADS, LANE_BYTES>>>(dev_buffer, size, dev_histo);
    HANDLE_LAUNCH();
}

#ifdef HAVE_CUB
static void run_cub(void) {
    bench_cub([](void *memory, size_t &bytes) {
        return cub::DeviceHistogram::HistogramEven(memory, bytes, dev_buffer, dev_narrow, BINS + 1, 0, BINS,
                                                   (long long)size);
    });
}
#endif

static const Rung rungs[] = {
    {"book, global atomics", "256 threads, 2 blocks per multiprocessor",
     [] { run(histo_global, dev_narrow, BINS); }, needs_32_bits},
    {"book, shared atomics", "privatization: bins per block", [] { run(histo_shared, dev_narrow, BINS); },
     needs_32_bits},
    {"vectorized loads", "uint4, 1024 threads per block", [] { run(histo_vectors<1>, dev_histo, THREADS); }},
    {"bins per warp", "no contention between warps", [] { run(histo_vectors<32>, dev_histo, THREADS); }},
    {"bins per lane", "no bank conflicts", [] { run(histo_lanes, dev_histo, THREADS, LANE_BYTES); }},
    {"single launch", "the last block to add clears the bins", run_single},
#ifdef HAVE_CUB
    {"CUB", "DeviceHistogram::HistogramEven", run_cub, LIBRARY, 0, 0, needs_32_bits},
#endif
};

int main(int argc, char **argv) {
    settings(argc, argv);
    bench_malloc(&dev_buffer, size);
    bench_malloc(&dev_histo, BINS * sizeof(Count));
    bench_malloc(&dev_narrow, BINS * sizeof(unsigned));
    bench_shared(histo_lanes, LANE_BYTES);
    bench_shared(histo_single, LANE_BYTES);

    for (int set : data_sets) {
        if (only && data_sets[only - 1] != set)
            continue;
        fill = set;
        unsigned char *buffer = (unsigned char *)big_random_block(size);
        fill_bytes(buffer);
        count_on_host(buffer);
        HANDLE_ERROR(cudaMemcpy(dev_buffer, buffer, size, cudaMemcpyHostToDevice));
        free(buffer);
        bench.data = set == RANDOM ? "random" : set == SKEWED ? "skewed" : "equal";
        bench_run(rungs);
    }
    return bench_finish();
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    size = BENCH_SIZE(1 << 30, 1 << 20);
    configure(argc, argv, "Histogram of bytes, from the book's kernels to the fastest.", LADDER,
              {OPTION_SIZE("size", &size, 1, 1LL << 40, "bytes to count"),
               OPTION_WORD("fill", &only, "all|random|skewed|equal", "distribution of the bytes")});
    multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
    require_memory(size, size + bench_memory(size));
    bench.title = std::to_string(size) + " bytes";
    bench.size = size;
    bench.work = bench.footprint = size; // each byte is read once
    bench.reads = true;
}

// Each thread has four sets of counters, since successive increments of one counter would wait for each
// other.
static void count_on_host(const unsigned char *buffer) {
    memset(expected, 0, sizeof expected);
    in_threads(size, [=](size_t begin, size_t end) {
        Count sets[4][BINS] = {};
        for (size_t i = begin; i < end; i++)
            sets[i % 4][buffer[i]]++;
        for (int bin = 0; bin < BINS; bin++)
            __atomic_fetch_add(&expected[bin], sets[0][bin] + sets[1][bin] + sets[2][bin] + sets[3][bin],
                               __ATOMIC_RELAXED);
    });
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_histo, 0xff, BINS * sizeof(Count)));
    HANDLE_ERROR(cudaMemset(dev_narrow, 0xff, BINS * sizeof(unsigned)));
}

static bool check(const char *name, BenchError *) {
    HostArray<Count> histo(dev_histo, BINS);
    if (strncmp(name, "book, ", 6) == 0 || strcmp(name, "CUB") == 0) {
        HostArray<unsigned> counts(dev_narrow, BINS);
        std::copy(counts + 0, counts + BINS, histo + 0);
    }
    return check_counts(name, histo, expected, BINS);
}
