// SPDX-License-Identifier: MIT
/*
 * hist_wide_ladder: histogram of 16-bit values, whose 65,536 bins exceed shared memory
 *
 * Teaches: Privatization needs a copy of all bins per block, but 65,536 bins of 32 bits take 256 KiB, more
 *          than the shared memory of a multiprocessor. Half of the bins fit, so two blocks can read the
 *          same values and count half of the bins each. All bins fit if they have 16 bits, two in a word;
 *          then the kernel must handle overflow. A frequent value makes lanes contend for one word; each lane
 *          gets a copy of that word, which a sample of the input finds.
 * Terms:   histogram, privatization, shared memory, dynamic shared memory, atomic operation, contention,
 *          vectorized load, in flight, bank conflict, CUB
 * Book:    9.4.2 (ladder)
 * Rungs:   0 book, global atomics (256 threads, 2 blocks per multiprocessor); 1 half the bins
 *          (privatization: each value is read by two blocks); 2 two bins per word (all bins in shared
 *          memory, overflow spilled); 3 loads in flight (six uint4 per thread); 4 hot value (a copy per lane
 *          of its word)
 * Build:   nvcc -o hist_wide_ladder chapter09/hist_wide_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter09/hist_wide_ladder --size 512M
 * Differs: the book counts bytes. There are fewer than 2^32 values, since the bins in global memory have
 *          32 bits, as those of CUB have here. Clearing the bins is part of the time.
 * Limit:   reads from device memory, and for random values the bank conflicts of the atomic operations: of 32
 *          random words, 3.5 on average are in the bank that has the most of them.
 * Bench:   64K 1M 16M 128M 512M
 * Check:   --size 48891 | --size 300001 --fill pair
 */
#include "../common/book.h"
#include "../common/bench.h"
#ifdef HAVE_CUB
#include <cub/device/device_histogram.cuh>
#endif

#define BINS 65536

const unsigned THREADS = 1024;   // per block, from rung 1 on; one block per multiprocessor
const unsigned WORDS = BINS / 2; // in shared memory
const unsigned LANES = 32;       // of a warp: copies of a word, behind the words
const unsigned NONE = BINS;      // no value is hot
const size_t SHARED = (WORDS + LANES) * sizeof(unsigned);
const unsigned VALUES = 8; // in a uint4

static size_t n = BENCH_SIZE(512 << 20, 1 << 19); // --size
static unsigned short *dev_values;
static unsigned *dev_histo;
static cudaDeviceProp prop;
static int only; // --fill: 0: the first three data sets, else data_sets[only - 1]
static void set_values(int fill);

// Rung 0, the book's first kernel: one atomic addition in global memory per value. Random values cause little
// contention for so many bins, but each addition is an access to the L2 cache.
__global__ void histo_global(const unsigned short *values, size_t n, unsigned *histo) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        atomicAdd(&histo[values[i]], 1);
}

__device__ static unsigned low(unsigned word) {
    return word & 0xffff;
}

__device__ static unsigned high(unsigned word) {
    return word >> 16;
}

__device__ static void clear(unsigned *words) {
    for (unsigned i = threadIdx.x; i < WORDS + LANES; i += THREADS)
        words[i] = 0;
    __syncthreads();
}

// Two neighbouring bins in global memory, in one addition of 64 bits
__device__ static void add_pair(unsigned *histo, unsigned pair, unsigned even, unsigned odd) {
    atomicAdd((unsigned long long *)histo + pair, (unsigned long long)odd << 32 | even);
}

// The tail after the last uint4: up to 7 values, for the first threads of the grid.
__device__ static void count_tail(const unsigned short *values, size_t n, unsigned *histo) {
    size_t i = n / VALUES * VALUES + threadIdx.x;
    if (blockIdx.x == 0 && i < n)
        add_pair(histo, values[i] / 2, values[i] % 2 == 0, values[i] % 2);
}

// Rung 1: privatization. Block 0 counts the lower half of the bins in shared memory, block 1 reads the same
// values and counts the upper half; blocks 2 and 3 read the next values, and so on.
__device__ static void count_half(unsigned *words, unsigned word, unsigned first) {
    if (low(word) - first < WORDS)
        atomicAdd(&words[low(word) - first], 1);
    if (high(word) - first < WORDS)
        atomicAdd(&words[high(word) - first], 1);
}

__global__ void __launch_bounds__(THREADS)
    histo_halves(const unsigned short *values, size_t n, unsigned *histo) {
    extern __shared__ unsigned words[];
    clear(words);
    unsigned first = blockIdx.x % 2 * WORDS;
    size_t stride = (size_t)THREADS * (gridDim.x / 2);
    for (size_t i = threadIdx.x + (size_t)(blockIdx.x / 2) * THREADS; i < n / VALUES; i += stride) {
        uint4 v = ((const uint4 *)values)[i];
        count_half(words, v.x, first);
        count_half(words, v.y, first);
        count_half(words, v.z, first);
        count_half(words, v.w, first);
    }
    count_tail(values, n, histo);
    __syncthreads();
    for (unsigned i = 2 * threadIdx.x; i < WORDS; i += 2 * THREADS)
        if (words[i] || words[i + 1])
            add_pair(histo, (first + i) / 2, words[i], words[i + 1]);
}

// Rung 2: two bins of 16 bits in one word, that of an even value in the lower half and that of the odd value
// after it in the upper half. So all bins fit into shared memory, and each value is read once.
__device__ static unsigned half_of(unsigned word, unsigned value) {
    return value % 2 ? high(word) : low(word);
}

// Where a value is counted: in its word, or in the lane's copy of the hot word (rung 4; WORDS: there is none)
__device__ static unsigned place(unsigned value, unsigned hot) {
    return value / 2 == hot ? WORDS + threadIdx.x % LANES : value / 2;
}

// Handles overflow. When a count of 16 bits has reached 2^15, its highest bit is set. A thread that finds it
// set clears it before its next vector, and adds 2^15 to the bin in global memory instead. Until then each
// thread adds at most twice VALUES to the count, and all threads together less than 2^15: no count overflows.
__device__ static void spill(unsigned *words, unsigned *histo, unsigned value, unsigned hot, unsigned old) {
    unsigned bit = value % 2 ? 0x80000000 : 0x8000;
    if (old & bit && atomicAnd(&words[place(value, hot)], ~bit) & bit)
        add_pair(histo, value / 2, value % 2 ? 0 : 0x8000, value % 2 ? 0x8000 : 0);
}

// One test of the highest bits covers eight values.
__device__ static void count_vector(unsigned *words, uint4 v, unsigned *histo, unsigned hot) {
    const unsigned twos[] = {v.x, v.y, v.z, v.w};
    unsigned old[VALUES], any = 0;
    for (unsigned k = 0; k < VALUES; k++) {
        unsigned value = half_of(twos[k / 2], k);
        old[k] = atomicAdd(&words[place(value, hot)], value % 2 ? 0x10000 : 1);
        any |= old[k];
    }
    if (any & 0x80008000)
        for (unsigned k = 0; k < VALUES; k++)
            spill(words, histo, half_of(twos[k / 2], k), hot, old[k]);
}

// Rung 3: a thread issues several loads before the first addition, so more bytes are in flight. Rung 4 counts
// vectors of eight hot values in a register. Returns their number.
template <int loads, bool copies>
__device__ static unsigned count_all(unsigned *words, const unsigned short *values, size_t n, unsigned *histo,
                                     unsigned hot) {
    size_t chunk = (size_t)loads * THREADS, vectors = n / VALUES;
    unsigned two = hot << 16 | hot, eights = 0;
    for (size_t at = blockIdx.x * chunk; at < vectors; at += gridDim.x * chunk) {
        uint4 v[loads];
        for (int k = 0; k < loads; k++)
            if (at + k * THREADS + threadIdx.x < vectors)
                v[k] = ((const uint4 *)values)[at + k * THREADS + threadIdx.x];
        for (int k = 0; k < loads; k++)
            if (at + k * THREADS + threadIdx.x < vectors) {
                if (copies && v[k].x == two && v[k].y == two && v[k].z == two && v[k].w == two)
                    eights++;
                else
                    count_vector(words, v[k], histo, copies ? hot / 2 : WORDS);
            }
    }
    count_tail(values, n, histo);
    return eights;
}

// Rung 4: lanes that add to one word do so one after the other. If a value is frequent in a sample of one
// value per thread, each lane counts its word in a copy, and the 32 copies are in different banks. Returns a
// value of the most frequent word, or NONE unless that has more than one value in 32.
__device__ static unsigned find_hot(unsigned *words, unsigned value, unsigned *most) {
    unsigned before = atomicAdd(&words[value / 2], 1);
    if (before >= THREADS / 32)
        atomicMax(most, before << 16 | value);
    __syncthreads();
    if (before == 0)
        words[value / 2] = 0;
    __syncthreads();
    return *most ? low(*most) : NONE;
}

template <int loads, bool copies>
__global__ void __launch_bounds__(THREADS)
    histo_packed(const unsigned short *values, size_t n, unsigned *histo) {
    extern __shared__ unsigned words[];
    __shared__ unsigned eights, most;                                 // most: of find_hot(), number and value
    unsigned sample = copies ? values[n / THREADS * threadIdx.x] : 0; // arrives while the bins are cleared
    if (threadIdx.x == 0)
        eights = most = 0;
    clear(words);
    unsigned hot = copies ? find_hot(words, sample, &most) : NONE;
    if (hot != NONE)
        atomicAdd(&eights, count_all<loads, true>(words, values, n, histo, hot));
    else
        count_all<loads, false>(words, values, n, histo, NONE);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < WORDS; i += THREADS) {
        unsigned even = low(words[i]), odd = high(words[i]);
        for (unsigned k = WORDS; i == hot / 2 && k < WORDS + LANES; k++)
            even += low(words[k]), odd += high(words[k]);
        if (i == hot / 2)
            (hot % 2 ? odd : even) += VALUES * eights;
        if (even || odd)
            add_pair(histo, i, even, odd);
    }
}

// Clearing the bins is part of the work.
static void run(void (*kernel)(const unsigned short *, size_t, unsigned *), unsigned blocks, unsigned threads,
                size_t shared) {
    HANDLE_ERROR(cudaMemsetAsync(dev_histo, 0, BINS * sizeof(unsigned)));
    kernel<<<blocks, threads, shared>>>(dev_values, n, dev_histo);
    HANDLE_LAUNCH();
}

// One block per multiprocessor, fewer where a block would have nothing to load
static void run_packed(void (*kernel)(const unsigned short *, size_t, unsigned *)) {
    run(kernel, max_of(1, min_of(prop.multiProcessorCount, n / (VALUES * THREADS))), THREADS, SHARED);
}

static const char *needs_shared(void) {
    return prop.sharedMemPerBlockOptin < SHARED ? "needs 129 KiB of shared memory per block" : NULL;
}

#ifdef HAVE_CUB
static void run_cub(void) {
    bench_cub([](void *memory, size_t &bytes) {
        return cub::DeviceHistogram::HistogramEven(memory, bytes, dev_values, dev_histo, BINS + 1, 0, BINS,
                                                   (long long)n);
    });
}
#endif

static const Rung rungs[] = {
    {"book, global atomics", "256 threads, 2 blocks per multiprocessor",
     [] { run(histo_global, 2 * prop.multiProcessorCount, 256, 0); }},
    {"half the bins", "privatization: each value is read by two blocks",
     [] { run(histo_halves, max_of(2, prop.multiProcessorCount / 2 * 2), THREADS, SHARED); }, needs_shared},
    {"two bins per word", "all bins in shared memory, overflow spilled",
     [] { run_packed(histo_packed<1, false>); }, needs_shared},
    {"loads in flight", "six uint4 per thread", [] { run_packed(histo_packed<6, false>); }, needs_shared},
    {"hot value", "a copy per lane of its word", [] { run_packed(histo_packed<6, true>); }, needs_shared},
#ifdef HAVE_CUB
    {"CUB", "DeviceHistogram::HistogramEven", run_cub, LIBRARY},
#endif
};

enum { RANDOM, SKEWED, EQUAL, PAIR };
static const char *const data_sets[] = {"random", "skewed", "equal", "pair"};

int main(int argc, char **argv) {
    settings(argc, argv);
    bench_malloc(&dev_values, n * sizeof(short));
    bench_malloc(&dev_histo, BINS * sizeof(unsigned));
    if (!needs_shared())
        for (auto kernel :
             {histo_halves, histo_packed<1, false>, histo_packed<6, false>, histo_packed<6, true>})
            bench_shared(kernel, SHARED);

    for (int set = RANDOM; set <= PAIR; set++) {
        if (only ? set != only - 1 : set == PAIR)
            continue;
        set_values(set);
        bench.data = data_sets[set];
        bench_run(rungs);
    }
    return bench_finish();
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Histogram of 16-bit values, from the book's kernel to the fastest.", LADDER,
              {OPTION_SIZE("size", &n, 1, 1LL << 40, "values to count"),
               OPTION_WORD("fill", &only, "all|random|skewed|equal|pair",
                           "distribution of the values; all: all but pair")});
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    size_t bytes = n * sizeof(short);
    require_memory(bytes, bytes + bench_memory(bytes));
    if (n > UINT_MAX)
        quit(EXIT_USAGE, "--size %zu: at most 4294967295, since the bins have 32 bits", n);
    bench.title = std::to_string(n) + " values";
    bench.size = n;
    bench.work = bench.footprint = bytes; // each value is read once
    bench.reads = true;
}

static unsigned expected[BINS];

// Fills the input. RANDOM: uniformly distributed values. SKEWED: 65536 u^6 with uniformly distributed u, so
// small values are frequent, and about one value in six is 0. EQUAL: all values are equal. PAIR: only the two
// values whose bins share a word, in turn, so that both halves of it overflow together. RANDOM begins with
// both ends of each half of the bins. The values are counted on the host as the reference, in four sets of
// bins: with one set, successive increments of the same bin would depend on each other (store-to-load
// latency).
static void set_values(int fill) {
    unsigned short *values = (unsigned short *)big_random_block(n * sizeof(short));
    const unsigned short one = values[0];
    memset(expected, 0, sizeof expected);
    in_threads(n, [=](size_t begin, size_t end) {
        HostArray<unsigned> sets(4 * BINS, 0);
        for (size_t i = begin; i < end; i++) {
            unsigned long long x = values[i], cube = x * x * x >> 32;
            if (fill == RANDOM && i < 4)
                x = i % 2 * (WORDS - 1) + i / 2 % 2 * WORDS;
            values[i] = fill == SKEWED  ? cube * cube >> 16
                        : fill == EQUAL ? one
                        : fill == PAIR  ? one / 2 * 2 + i % 2
                                        : x;
            sets[i % 4 * BINS + values[i]]++;
        }
        for (int bin = 0; bin < BINS; bin++)
            for (int set = 0; set < 4; set++)
                __atomic_fetch_add(&expected[bin], sets[set * BINS + bin], __ATOMIC_RELAXED);
    });
    HANDLE_ERROR(cudaMemcpy(dev_values, values, n * sizeof(short), cudaMemcpyHostToDevice));
    free(values);
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_histo, 0xff, BINS * sizeof(unsigned)));
}

static bool check(const char *name, BenchError *) {
    HostArray<unsigned> histo(dev_histo, BINS);
    return check_ints(name, (int *)(unsigned *)histo, (int *)expected, BINS);
}
