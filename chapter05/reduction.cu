// SPDX-License-Identifier: MIT
/*
 * reduction: the sum of an array with nine kernels, each with one change
 *
 * Teaches: The speed of a reduction depends on how its threads address shared memory and share the work. The
 *          costs are warp divergence, bank conflicts, idle threads, barriers, loop overhead, too few loads
 *          in flight, and a second launch. Each kernel removes one of them, and some bring another: kernel 1
 *          has bank conflicts, kernel 6 has few blocks.
 * Terms:   reduction, interleaved addressing, sequential addressing, warp divergence, bank conflict, loop
 *          unrolling, coarsening, warp shuffle, last-block reduction, CUB, pass, speedup
 * Book:    5.3.1 (course); T reduction, Kernel 1: --kernel 0; T reduction, Kernel 2: --kernel 1; T reduction,
 *          Kernel 3: --kernel 2; T reduction, Kernel 4: --kernel 3; T reduction, Kernel 5: --kernel 4; T
 *          reduction, Kernel 6: --kernel 6; T reduction, block size: --threads 128; T reduction, what limits
 *          a kernel: --counts
 * Rungs:   0 interleaved addressing (branch on t % (2 * step)); 1 no warp divergence (interleaved,
 *          consecutive threads add); 2 sequential addressing (no bank conflicts); 3 first add on load (two
 *          elements per thread); 4 last warp unrolled (__syncwarp instead of __syncthreads); 5 complete
 *          unrolling (block size as template parameter); 6 coarsening (grid-stride loop, at most 512
 *          blocks); 7 vectorized loads (int4, eight in flight, warp shuffles); 8 single pass (sum and block
 *          count in one atomicAdd)
 * Build:   nvcc -o reduction chapter05/reduction.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/reduction --size 256M
 * Differs: the lab counts from 1: its kernels 1 to 5 are 0 to 4 here, its last one is 6. Any size;
 *          __syncwarp() where the originals rely on the lanes of a warp running in lockstep, which is no
 *          longer guaranteed. The times include all passes, down to one number.
 * Limit:   reads from device memory; the last rung reaches it. A small array takes the time of a launch.
 * Bench:   4K 64K 1M 4M 32M 256M
 * Check:   --size 66003 | --size 66003 --threads 128 | --size 66003 --threads 512 |
 *          --size 300 --every --threads 64 | --counts --size 66003 --threads 64
 */
#include "../common/book.h"
#include "../common/bench.h"
#ifdef HAVE_CUB
#include <cub/device/device_reduce.cuh>
#endif

const unsigned MOST_THREADS = 512; // of a block

static size_t n = BENCH_SIZE(4 << 20, 1 << 16); // --size
static bool counts;                             // --counts: no times, but what the threads do
static bool every;                              // --every: no times, but every size up to --size
static int block_size = 2;                      // --threads: 64, 128, 256 or 512 …
static unsigned threads;                        // … of a block in kernels 0 to 6: 64 << block_size
static int *in, expected;                       // on the host: the array, its sum
static int *dev_in, *dev_sums[2];               // dev_sums: the output of a pass; passes alternate
static const int *dev_sum;                      // where the result of the last pass is
static size_t sums_bytes;
static void make_array(void);
static bool check_every_size(void);
static bool print_counts(void);

// Kernel 0, interleaved addressing: threads 0, 2, 4, … add their neighbour, then threads 0, 4, 8, … the
// result of the next pair, and so on. The adding threads are spread over all warps, so every warp
// diverges and most of its lanes are idle.
__global__ void reduce0(const int *in, int *out, unsigned n) {
    __shared__ int cache[MOST_THREADS];
    unsigned t = threadIdx.x, i = t + blockIdx.x * blockDim.x;
    cache[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned step = 1; step < blockDim.x; step *= 2) {
        if (t % (2 * step) == 0)
            cache[t] += cache[t + step];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 1: the same additions, by threads with consecutive indices. A warp diverges only when fewer than 32
// threads are active, in the last five steps. The lanes of a warp access words of shared memory at a stride
// of 2, 4, 8, …, which causes bank conflicts.
__global__ void reduce1(const int *in, int *out, unsigned n) {
    __shared__ int cache[MOST_THREADS];
    unsigned t = threadIdx.x, i = t + blockIdx.x * blockDim.x;
    cache[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned step = 1; step < blockDim.x; step *= 2) {
        unsigned at = 2 * step * t;
        if (at < blockDim.x)
            cache[at] += cache[at + step];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 2, sequential addressing: the first half of the threads adds the second half of the words.
// Neighbouring lanes read neighbouring words, which lie in different banks.
__device__ void add_halves(int *cache, unsigned last) {
    for (unsigned half = blockDim.x / 2; half > last; half /= 2) {
        if (threadIdx.x < half)
            cache[threadIdx.x] += cache[threadIdx.x + half];
        __syncthreads();
    }
}

__global__ void reduce2(const int *in, int *out, unsigned n) {
    __shared__ int cache[MOST_THREADS];
    unsigned t = threadIdx.x, i = t + blockIdx.x * blockDim.x;
    cache[t] = i < n ? in[i] : 0;
    __syncthreads();
    add_halves(cache, 0);
    if (t == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 3: in kernel 2 half of the threads never add. Here each thread adds two elements when it loads
// them, so half as many blocks do the work.
__device__ int load_two(const int *in, unsigned n, unsigned threads) {
    unsigned i = threadIdx.x + blockIdx.x * 2 * threads;
    return (i < n ? in[i] : 0) + (i + threads < n ? in[i + threads] : 0);
}

__global__ void reduce3(const int *in, int *out, unsigned n) {
    __shared__ int cache[MOST_THREADS];
    cache[threadIdx.x] = load_two(in, n, blockDim.x);
    __syncthreads();
    add_halves(cache, 0);
    if (threadIdx.x == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 4: one warp adds the last 64 numbers, with __syncwarp() instead of the barrier of the block. Two
// barriers per step: all lanes have read before any lane writes, and have written before any lane reads.
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
    __shared__ int cache[MOST_THREADS];
    cache[threadIdx.x] = load_two(in, n, blockDim.x);
    __syncthreads();
    add_halves(cache, 32);
    if (threadIdx.x < 32)
        add_last_warp(cache);
    if (threadIdx.x == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 5: the block size is a template parameter, so the comparisons with it are evaluated at compile time
// and no loop is left: a kernel for 256 threads has two steps before the last warp.
template <unsigned threads> __device__ void add_block(int *cache) {
    if (threads >= 512) {
        if (threadIdx.x < 256)
            cache[threadIdx.x] += cache[threadIdx.x + 256];
        __syncthreads();
    }
    if (threads >= 256) {
        if (threadIdx.x < 128)
            cache[threadIdx.x] += cache[threadIdx.x + 128];
        __syncthreads();
    }
    if (threads >= 128) {
        if (threadIdx.x < 64)
            cache[threadIdx.x] += cache[threadIdx.x + 64];
        __syncthreads();
    }
    if (threadIdx.x < 32)
        add_last_warp(cache);
}

template <unsigned threads> __global__ void reduce5(const int *in, int *out, unsigned n) {
    __shared__ int cache[threads];
    cache[threadIdx.x] = load_two(in, n, threads);
    __syncthreads();
    add_block<threads>(cache);
    if (threadIdx.x == 0)
        out[blockIdx.x] = cache[0];
}

// Kernel 6, coarsening: a grid-stride loop, with at most as many blocks as one block of the next pass adds.
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

// Kernel 7: vectorized loads of 16 bytes, eight in flight per thread. A block adds only one tile, and blocks
// start in order, so the blocks that run at the same time read neighbouring addresses. The lanes of a warp
// add in registers, by warp shuffles; from compute capability 8.0 on, ints by one instruction.
const unsigned TILE_THREADS = 512, LOADS = 8, TILE = TILE_THREADS * LOADS * 4;

// The sum of what the lanes of a warp have. Only the result of lane 0 is used.
__device__ int add_warp(int sum) {
#if __CUDA_ARCH__ >= 800
    sum = __reduce_add_sync(0xffffffff, sum);
#else
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, lanes);
#endif
    return sum;
}

__device__ int add_tile(const int *in, unsigned n) {
    __shared__ int cache[32];
    const int4 *fours = (const int4 *)in;
    unsigned first = threadIdx.x + blockIdx.x * LOADS * TILE_THREADS, tail = n / 4 * 4 + threadIdx.x;
    int4 x[LOADS], none = {0, 0, 0, 0};
    for (unsigned k = 0; k < LOADS; k++)
        x[k] = first + k * TILE_THREADS < n / 4 ? fours[first + k * TILE_THREADS] : none;
    int sum = blockIdx.x == 0 && tail < n ? in[tail] : 0;
    for (unsigned k = 0; k < LOADS; k++)
        sum += x[k].x + x[k].y + x[k].z + x[k].w;

    sum = add_warp(sum);
    if (threadIdx.x % 32 == 0)
        cache[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32)
        sum = add_warp(threadIdx.x < TILE_THREADS / 32 ? cache[threadIdx.x] : 0);
    return sum;
}

__global__ void __launch_bounds__(TILE_THREADS) reduce7(const int *in, int *out, unsigned n) {
    int sum = add_tile(in, n);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

// Kernel 8: a single pass. Each block adds its sum and a 1 to one word of 8 bytes, in one atomic
// operation: the sum in the upper half, where overflow is lost as in any int, the count of blocks in the
// lower half. The block that finds all others counted has the whole sum; it resets the word to 0 for
// the next launch. One block alone has the sum without that.
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

typedef void (*Kernel)(const int *in, int *out, unsigned n);
static const Kernel kernels5[] = {reduce5<64>, reduce5<128>, reduce5<256>, reduce5<512>};
static const Kernel kernels6[] = {reduce6<64>, reduce6<128>, reduce6<256>, reduce6<512>};

// Adds the first n elements. Each pass writes one partial sum per block, until there is only one. block: its
// threads; per_block: the elements that it adds; most: blocks
static void reduce(Kernel kernel, unsigned block, unsigned per_block, unsigned most = UINT_MAX) {
    const int *from = dev_in;
    unsigned left = n;
    for (int pass = 0;; pass++) {
        dev_sum = dev_sums[pass % 2];
        unsigned blocks = min_of((left - 1) / per_block + 1, most);
        kernel<<<blocks, block>>>(from, dev_sums[pass % 2], left);
        HANDLE_LAUNCH();
        if (blocks == 1 || kernel == reduce8)
            return;
        from = dev_sum;
        left = blocks;
    }
}

#ifdef HAVE_CUB
static void run_cub(void) {
    dev_sum = dev_sums[0];
    bench_cub([](void *memory, size_t &bytes) {
        return cub::DeviceReduce::Sum(memory, bytes, dev_in, dev_sums[0], (int)n);
    });
}
#endif

static const Rung rungs[] = {
    {"interleaved addressing", "branch on t % (2 * step)", [] { reduce(reduce0, threads, threads); }},
    {"no warp divergence", "interleaved, consecutive threads add", [] { reduce(reduce1, threads, threads); }},
    {"sequential addressing", "no bank conflicts", [] { reduce(reduce2, threads, threads); }},
    {"first add on load", "two elements per thread", [] { reduce(reduce3, threads, 2 * threads); }},
    {"last warp unrolled", "__syncwarp instead of __syncthreads",
     [] { reduce(reduce4, threads, 2 * threads); }},
    {"complete unrolling", "block size as template parameter",
     [] { reduce(kernels5[block_size], threads, 2 * threads); }},
    {"coarsening", "grid-stride loop, at most 512 blocks",
     [] { reduce(kernels6[block_size], threads, 2 * threads, 2 * threads); }},
    {"vectorized loads", "int4, eight in flight, warp shuffles", [] { reduce(reduce7, TILE_THREADS, TILE); }},
    {"single pass", "sum and block count in one atomicAdd",
     [] { reduce(n > TILE ? reduce8 : reduce7, TILE_THREADS, TILE); }},
#ifdef HAVE_CUB
    {"CUB", "DeviceReduce::Sum", run_cub, LIBRARY},
#endif
};

int main(int argc, char **argv) {
    settings(argc, argv);
    bench_malloc(&dev_in, n * sizeof(int));
    bench_malloc(&dev_sums[0], sums_bytes);
    bench_malloc(&dev_sums[1], sums_bytes);
    make_array();

    bool ok = counts ? print_counts() : every ? check_every_size() : bench_run(rungs);

    return bench_finish({in}, ok);
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Adds up an array with nine kernels, each with one change.", LADDER,
              {OPTION_SIZE("size", &n, 1, INT_MAX, "ints to add up"),
               OPTION_WORD("threads", &block_size, "64|128|256|512", "threads of a block in kernels 0 to 6"),
               OPTION_FLAG("counts", &counts, "no times, but what the threads of each kernel do"),
               OPTION_FLAG("every", &every, "no times, but check every size from 1 to --size")});
    threads = 64 << block_size;
    sums_bytes = ((n - 1) / threads + 1) * sizeof(int); // a block adds at least `threads` elements
    require_memory((every ? 3 : 1) * n * sizeof(int) + sums_bytes,
                   n * sizeof(int) + 2 * sums_bytes + bench_memory(n * sizeof(int)));
    bench.title = std::to_string(n) + " ints";
    bench.size = n;
    bench.work = bench.footprint = n * sizeof(int); // each element is read once; partial sums are not counted
    bench.reads = bench.steps = true;
}

// Random numbers of at least 1, so that a missing one changes the sum, and so small that the sum fits an int
static void make_array(void) {
    in = big_random_ints(n);
    int most = min_of(255, INT_MAX / n);
    for (size_t i = 0; i < n; i++) {
        in[i] = 1 + (unsigned)in[i] % most;
        expected += in[i];
    }
    HANDLE_ERROR(cudaMemcpy(dev_in, in, n * sizeof(int), cudaMemcpyHostToDevice));
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_sums[0], 0x80, sums_bytes));
    HANDLE_ERROR(cudaMemset(dev_sums[1], 0x80, sums_bytes));
}

static bool check(const char *name, BenchError *) {
    int sum;
    HANDLE_ERROR(cudaMemcpy(&sum, dev_sum, sizeof(int), cudaMemcpyDeviceToHost));
    return check_ints(name, &sum, &expected, 1);
}

const int KERNELS = 9;

// The sums of the first element, of the first two, of the first three, …
static bool check_every_size(void) {
    HostArray<int> got(n), wanted(n);
    bool ok = true;
    bench_device()->rungs = KERNELS; // as after a table
    for (int k = 0; k < KERNELS; k++) {
        if (options.kernel >= 0 && k != options.kernel)
            continue;
        for (size_t i = 0, all = n; i < all; i++) {
            wanted[i] = in[i] + (i > 0 ? wanted[i - 1] : 0);
            poison();
            Smaller part(n, i + 1);
            rungs[k].run();
            HANDLE_ERROR(cudaMemcpy(&got[i], dev_sum, sizeof(int), cudaMemcpyDeviceToHost));
        }
        bool right = check_ints(rungs[k].name, got, wanted, n);
        if (right)
            printf("%d %s: right for every size from 1 to %zu\n", k, rungs[k].name, n);
        ok = ok && right;
    }
    return ok;
}

// ---- --counts: what the threads do. The index arithmetic of the kernels, once more, on the host ----

enum { PASSES, BLOCKS, DIVERGING, IDLE, BARRIERS, TURNS, CONFLICTS, BYTES, COLUMNS };
static const char *const columns[] = {"passes",   "blocks", "diverging", "idle",
                                      "barriers", "turns",  "conflicts", "bytes read"};
const unsigned NONE = UINT_MAX;

// One access to shared memory by the threads of a block: thread t accesses word(t), or none if that is NONE.
// No two lanes of a warp access the same word. Word w is in bank w % 32, and a bank serves one word in a
// turn; a warp whose access needs more than one turn has bank conflicts.
template <class Word> static void count_access(int *count, unsigned block, Word word) {
    for (unsigned warp = 0; warp < block; warp += 32) {
        int wanted[32] = {}, turns = 0; // wanted: words of each bank
        for (unsigned t = warp; t < min_of(warp + 32, block); t++)
            if (word(t) != NONE)
                turns = max_of(turns, ++wanted[word(t) % 32]);
        count[TURNS] += turns;
        count[CONFLICTS] += max_of(turns - 1, 0);
    }
}

// A step with a barrier: each thread t with a word at(t) adds to it the word that is `distance` further on,
// in two reads and a write.
template <class At> static void count_step(int *count, unsigned block, unsigned distance, At at) {
    for (unsigned warp = 0; warp < block; warp += 32) {
        int adding = 0;
        for (unsigned lane = 0; lane < 32; lane++)
            adding += at(warp + lane) != NONE;
        count[DIVERGING] += adding > 0 && adding < 32;
        count[IDLE] += 32 - adding;
    }
    count_access(count, block, at);
    count_access(count, block, [=](unsigned t) { return at(t) == NONE ? NONE : at(t) + distance; });
    count_access(count, block, at);
    count[BARRIERS]++;
}

// Adds to count what a block does.
static void count_block(int kernel, unsigned block, int *count) {
    auto own = [](unsigned t) { return t; };
    if (kernel >= 7) { // each lane 0 writes the sum of its warp, and the first warp reads them
        count_access(count, block, [](unsigned t) { return t % 32 == 0 ? t / 32 : NONE; });
        count_access(count, block / 32, own);
        count[BARRIERS]++;
        return;
    }
    count_access(count, block, own);
    count[BARRIERS]++;
    for (unsigned step = 1, half = block / 2; half > (kernel < 4 ? 0 : 32); step *= 2, half /= 2)
        if (kernel == 0)
            count_step(count, block, step, [=](unsigned t) { return t % (2 * step) == 0 ? t : NONE; });
        else if (kernel == 1)
            count_step(count, block, step, [=](unsigned t) { return t < half ? 2 * step * t : NONE; });
        else
            count_step(count, block, half, [=](unsigned t) { return t < half ? t : NONE; });
    if (kernel >= 4) { // add_last_warp()
        count_access(count, 32, own);
        for (unsigned half = 32; half > 0; half /= 2) {
            count_access(count, 32, [=](unsigned t) { return t + half; });
            count_access(count, 32, own);
        }
    }
    count_access(count, 1, own); // thread 0 reads the sum
}

// Compares the counts of a block with closed formulas. `adding` is the number of warps in which a thread
// adds, summed over all steps. In kernel 0 all warps add in the first five steps, then half of them, a
// quarter and so on. In the other kernels half of the warps add in the first step, a quarter in the second,
// and one warp in each of the last five. `turns` is that of kernel 1 for one access, summed over all steps:
// as many as the block has warps while several warps add; in the last five steps, where 16, 8, 4, 2 and 1
// lanes add, whose words lie 2 * warps or more words apart, the smaller of the numbers of warps and of lanes.
static bool check_block(int kernel, int block, const int *count) {
    int warps = block / 32, steps = log2(block), expected[COLUMNS] = {};
    int adding = kernel == 0 ? 6 * warps - 1 : warps + 4, turns = warps * log2(warps);
    const int all = steps * block - (block - 1); // each step has `block` threads, and block - 1 additions
    for (int lanes = 16; lanes > 0; lanes /= 2)
        turns += min_of(warps, lanes);
    int conflicts = kernel == 1 ? 3 * (turns - adding) : 0;
    const int tree[] = {kernel == 0 ? adding : 5, all, 1 + steps, warps + 3 * adding + 1 + conflicts,
                        conflicts};
    const int unrolled[] = {0, (steps - 6) * block - (block - 64), steps - 5, warps + 3 * (warps - 2) + 14,
                            0};
    const int shuffles[] = {0, 0, 1, warps + 1, 0};
    std::copy_n(kernel < 4 ? tree : kernel < 7 ? unrolled : shuffles, 5, expected + DIVERGING);
    return check_ints("counts of a block", count, expected, COLUMNS);
}

// Runs the kernel: its first pass stores as many sums as it has blocks. Kernel 8 stores one.
static bool check_launch(int kernel, size_t blocks) {
    poison();
    rungs[kernel].run();
    HostArray<int> sums(dev_sums[0], sums_bytes / sizeof(int));
    int unwritten, stored = 0;
    memset(&unwritten, 0x80, sizeof unwritten);
    for (size_t i = 0; i < sums_bytes / sizeof(int); i++)
        stored += sums[i] != unwritten;
    bool ok = check_value("blocks of the first pass", stored, kernel == 8 ? 1 : blocks, 0);
    return check(rungs[kernel].name, NULL) && ok;
}

// A count that is less in the next kernel is what limited the one before.
static bool print_counts(void) {
    bench_device()->rungs = KERNELS; // as after a table
    double before[COLUMNS] = {};
    bool ok = true;
    printf("%s, blocks of %u threads (%u in kernels 7 and 8), counted over all passes\n", bench.title.c_str(),
           threads, TILE_THREADS);
    printf(" #  kernel                ");
    for (const char *column : columns)
        printf(" %10s", column);
    printf("  compared with the kernel before\n");
    for (int k = 0; k < KERNELS; k++) {
        if (options.kernel >= 0 && k != options.kernel)
            continue;
        unsigned block = k < 7 ? threads : TILE_THREADS, most = k == 6 ? 2 * threads : UINT_MAX, first = 0;
        unsigned per_block = k < 3 ? threads : k < 7 ? 2 * threads : TILE, left = n;
        int of_block[COLUMNS] = {};
        count_block(k, block, of_block);
        double all[COLUMNS] = {};
        do {
            all[PASSES]++;
            all[BYTES] += (double)left * sizeof(int);
            left = min_of((left - 1) / per_block + 1, most);
            all[BLOCKS] += left;
            first = first ? first : left;
        } while (left > 1 && k < 8);
        for (int c = DIVERGING; c < BYTES; c++)
            all[c] = of_block[c] * all[BLOCKS];
        std::string less, more;
        printf("%2d  %-22s", k, rungs[k].name);
        for (int c = 0; c < COLUMNS; c++) {
            printf(" %10.0f", all[c]);
            if (before[PASSES] && all[c] != before[c])
                (all[c] < before[c] ? less : more) += std::string(" ") + columns[c];
        }
        std::copy_n(all, (int)COLUMNS, before);
        printf("  %s%s%s%s\n", less.empty() ? "" : "less:", less.c_str(),
               more.empty() ? "" : " more:", more.c_str());
        ok = check_block(k, block, of_block) && check_launch(k, first) && ok;
    }
    printf(
        "diverging: steps of a warp in which some lanes add and others do not\n"
        "idle:      threads that add nothing in a step with a barrier\n"
        "turns:     of the banks of shared memory; conflicts: how many of them bank conflicts cause\n"
        "Floats have the same counts. Instructions of loops (fewer in kernel 5) and loads in flight (more in "
        "kernel 7) are not counted.\n");
    return ok;
}

// Task: Write one kernel at a time, and run it alone: with --every --size 2000 --kernel 0 its result, with
// --size 4M --kernel 0 its time. A block adds its part of `in`, n ints, where an element from n on counts as
// 0, and thread 0 stores the sum in out[blockIdx.x].
// reduce0(): Thread t loads element t + blockIdx.x * blockDim.x into shared memory. In each step 1, 2, 4, …
// below blockDim.x every thread whose index is a multiple of 2 * step adds the word of thread t + step.
// reduce1(): The same steps, but thread t works on the word 2 * step * t, if there is one.
// add_halves(): For half = blockDim.x / 2, and half of that, and so on while half > last, each of the first
// `half` threads adds the word that is `half` further on. All threads of the block reach a barrier after
// each step.
// reduce2(): Load as reduce0() does, then add_halves() down to one word.
// load_two(): Return the sum of two elements that are `threads` apart. A block has 2 * threads of them.
// reduce3(): Store what load_two() returns in shared memory, then add_halves() down to one word.
// add_last_warp(): The first warp adds 64 words in steps of 32, 16, … 1. Each lane keeps its sum in a
// register too, and each step has two barriers of the warp.
// reduce4(): As reduce3(), but add_halves() stops at 64 words, which add_last_warp() adds.
// add_block(): Add the words of `threads` threads, at most 512, without a loop. In blocks of 512 threads the
// first 256 add the words of the others, and all reach a barrier; then, in blocks of 256 or more, the first
// 128; then, in blocks of 128 or more, the first 64. The first warp calls add_last_warp().
// reduce5(): As reduce4(), with add_block() for a block of `threads` threads. It needs load_two() too.
// reduce6(): A grid-stride loop adds the elements of a thread, then add_block() the threads of the block.
