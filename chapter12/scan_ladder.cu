// SPDX-License-Identifier: MIT
/*
 * scan_ladder: prefix sums, from three kernels to a single pass with decoupled look-back
 *
 * Teaches: The blocks of a scan depend on each other: each needs the sum of all elements before its tile.
 *          With three kernels each element is read from global memory twice and written twice. With
 *          decoupled look-back a block stores the sum of its tile for the blocks after it while it runs, so
 *          one kernel is enough, which reads each element once and writes it once. Within a tile, a tree has
 *          fewer additions, and shuffles between registers need fewer barriers.
 * Terms:   scan, work-efficient, partial sum, tile, barrier, warp shuffle, vectorized load, relaxed,
 *          decoupled look-back, CUB
 * Book:    12.4.1 (ladder); T Thrust (how scans work)
 * Rungs:   0 three kernels (in steps: tiles, sums of tiles, additions); 1 work-efficient (a tree: 2 additions
 *          per element); 2 registers (24 elements per thread, shuffles); 3 sums first (12 bytes per element
 *          instead of 16); 4 single pass (decoupled look-back: 8 bytes per element); 5 latency hiding
 *          (persistent blocks, tiles copied ahead)
 * Build:   nvcc -o scan_ladder chapter12/scan_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/scan_ladder --size 256M
 * Differs: the book names a library for scans, CUDPP, and has no code. The kernels of rung 0 are those of
 *          chapter12/scan. The floats are small whole numbers, so that no sum is rounded.
 * Limit:   copies within device memory: a scan reads and writes as many bytes. On an H200 they take 88 to
 *          95 % of the time of rung 5 (256M and more). With 64K and 1M elements a block has only one tile,
 *          and no next tile to copy: there rung 5 launches the kernel of rung 4.
 * Bench:   64K 1M 16M 256M 1G
 * Check:   --size 50011 | --size 300 --all
 */
#include <cuda_pipeline_primitives.h> // __pipeline_memcpy_async()
#include "../common/book.h"
#include "../common/bench.h"
#include "../common/ptx.h" // load_relaxed(), store_relaxed(), let_other_blocks_run()
#ifdef HAVE_CUB
#include <cub/device/device_scan.cuh>
#endif

const unsigned STEPS = 256;                // threads per block, and elements of a tile, of rung 0
const unsigned TREE = 2 * STEPS;           // elements of a tile of rung 1
const unsigned LOADS = 6;                  // vectors of 4 elements per thread, from rung 2 on
const unsigned THREADS = 256;              // per block, in rungs 2 to 4
const unsigned TILE = THREADS * LOADS * 4; // elements of a tile there
const unsigned MOST = 1024;                // threads per block of rung 5, if there are many tiles
const unsigned AHEAD = 2;                  // tiles that a block of rung 5 copies ahead
const unsigned ALL_LANES = 0xffffffff;

static size_t n = BENCH_SIZE(256 << 20, (1 << 16) - 5); // --size
static bool both;                                       // --all: both scans of both types
static unsigned runs;                                   // of rungs 4 and 5
static unsigned started;                                // blocks in all runs of rung 4
static void *dev_in, *dev_out;
static void *dev_sums;                // sums of tiles of elements, of tiles of these sums, and so on
static unsigned long long *dev_words; // for the look-back: one word per tile
static unsigned *dev_started;         // the same, counted by the blocks as they start
static void (*compare)(void);         // checks the result of the table that is measured
template <class T, bool inclusive> static void compare_on_device(void);
static void fill(bool floats);

// out[i] is in[0] + … + in[i - 1] in an exclusive scan, and in[0] + … + in[i] in an inclusive one.
// The kernels of a tile compute it for the tile alone, and store the sum of the tile in sums[blockIdx.x].

// Rung 0: log2(256) = 8 steps. After the step with this distance, cache[t] is the sum of the last
// 2 * distance elements up to t. All threads read before any thread writes.
template <class T, bool inclusive> __global__ void scan_in_steps(const T *in, T *out, T *sums, unsigned n) {
    __shared__ T cache[STEPS];
    unsigned t = threadIdx.x, i = t + blockIdx.x * STEPS;
    cache[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned distance = 1; distance < STEPS; distance *= 2) {
        T left = t >= distance ? cache[t - distance] : 0;
        __syncthreads();
        cache[t] += left;
        __syncthreads();
    }
    if (i < n)
        out[i] = inclusive ? cache[t] : t ? cache[t - 1] : 0;
    if (t == STEPS - 1)
        sums[blockIdx.x] = cache[t];
}

// Rung 1 (Blelloch, 1990): the steps of rung 0 make 8 additions per element, a tree makes 2. On the way up
// the last element of each part becomes the sum of the part, as in a reduction. On the way down it becomes
// the sum of all elements before the part: the left half of the part takes this sum over, the right half
// adds the sum of the left half.
template <class T, bool inclusive> __global__ void scan_in_tree(const T *in, T *out, T *sums, unsigned n) {
    __shared__ T cache[TREE];
    const unsigned t = threadIdx.x, first = blockIdx.x * TREE;
    for (unsigned i = t; i < TREE; i += STEPS)
        cache[i] = first + i < n ? in[first + i] : 0;
    for (unsigned half = 1; half < TREE; half *= 2) {
        __syncthreads();
        unsigned last = (t + 1) * 2 * half - 1;
        if (last < TREE)
            cache[last] += cache[last - half];
    }
    __syncthreads();
    if (t == 0) {
        sums[blockIdx.x] = cache[TREE - 1];
        cache[TREE - 1] = 0;
    }
    for (unsigned half = TREE / 2; half > 0; half /= 2) {
        __syncthreads();
        unsigned last = (t + 1) * 2 * half - 1;
        if (last < TREE) {
            T left = cache[last - half];
            cache[last - half] = cache[last];
            cache[last] += left;
        }
    }
    __syncthreads();
    for (unsigned i = t; i < TREE && first + i < n; i += STEPS)
        out[first + i] = inclusive ? cache[i] + in[first + i] : cache[i];
}

// ---- From rung 2 on, a thread has LOADS vectors of four elements in registers. The vectors of a warp lie
// side by side: first one of each lane, then the next one of each lane, and so on.

template <class T> struct alignas(16) Vector { T x[4]; };

// The index of the first element of vector k of this thread
__device__ static unsigned vector_index(unsigned tile, unsigned k) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return (tile * blockDim.x * LOADS + (warp * LOADS + k) * 32 + lane) * 4;
}

// Elements from n on count as 0.
template <class T> __device__ static void load_tile(const T *in, Vector<T> *v, unsigned tile, unsigned n) {
    const unsigned size = blockDim.x * LOADS * 4;
    const bool full = n - tile * size >= size;
#pragma unroll
    for (unsigned k = 0; k < LOADS; k++) {
        unsigned i = vector_index(tile, k);
        if (full)
            v[k] = *(const Vector<T> *)&in[i];
        else
            for (unsigned j = 0; j < 4; j++)
                v[k].x[j] = i + j < n ? in[i + j] : 0;
    }
}

// before[k] is the sum of all elements before vector k.
template <class T, bool inclusive>
__device__ static void store_tile(T *out, Vector<T> *v, const T *before, unsigned tile, unsigned n) {
    const unsigned size = blockDim.x * LOADS * 4;
    const bool full = n - tile * size >= size;
#pragma unroll
    for (unsigned k = 0; k < LOADS; k++) {
        unsigned i = vector_index(tile, k);
        T sum = before[k];
        for (unsigned j = 0; j < 4; j++) {
            T x = v[k].x[j];
            v[k].x[j] = inclusive ? sum + x : sum;
            sum += x;
        }
        if (full)
            *(Vector<T> *)&out[i] = v[k];
        else
            for (unsigned j = 0; j < 4 && i + j < n; j++)
                out[i + j] = v[k].x[j];
    }
}

// The sum of what the lanes of a warp have, in all lanes
template <class T> __device__ static T sum_of_lanes(T sum) {
    for (unsigned distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(ALL_LANES, sum, distance);
    return sum;
}

// Sets before[k] to the sum of those elements of the tile that lie before vector k. Returns the sum of all
// elements of the tile. The lanes of a warp scan the sums of their vectors in five shuffles; then the sums of
// the warps are exchanged in shared memory, with one barrier.
template <class T> __device__ static T scan_tile(const Vector<T> *v, T *before, unsigned stride = 1) {
    __shared__ T sums[32];
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T warp_sum = 0;
#pragma unroll
    for (unsigned k = 0; k < LOADS; k++) {
        const Vector<T> four = v[k * stride];
        T sum = four.x[0] + four.x[1] + four.x[2] + four.x[3];
        for (unsigned distance = 1; distance < 32; distance *= 2) {
            T other = __shfl_up_sync(ALL_LANES, sum, distance);
            sum += lane >= distance ? other : 0;
        }
        T up = __shfl_up_sync(ALL_LANES, sum, 1);
        before[k] = warp_sum + (lane ? up : 0);
        warp_sum += __shfl_sync(ALL_LANES, sum, 31);
    }
    if (lane == 0)
        sums[warp] = warp_sum;
    __syncthreads();
    T sum = lane < blockDim.x / 32 ? sums[lane] : 0, left = sum_of_lanes<T>(lane < warp ? sum : 0);
    for (unsigned k = 0; k < LOADS; k++)
        before[k] += left;
    return sum_of_lanes(sum);
}

// Rung 2
template <class T, bool inclusive>
__global__ void __launch_bounds__(THREADS) scan_in_registers(const T *in, T *out, T *sums, unsigned n) {
    Vector<T> v[LOADS];
    T before[LOADS];
    load_tile(in, v, blockIdx.x, n);
    T sum = scan_tile(v, before);
    store_tile<T, inclusive>(out, v, before, blockIdx.x, n);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

// Rung 3: one kernel only adds. After the scan of the sums, a second one reads the elements again, and scans
// each tile with the sum of all tiles before it.
template <class T> __global__ void __launch_bounds__(THREADS) sum_tiles(const T *in, T *sums, unsigned n) {
    __shared__ T cache[THREADS / 32];
    Vector<T> v[LOADS];
    T sum = 0;
    load_tile(in, v, blockIdx.x, n);
    for (unsigned k = 0; k < LOADS; k++)
        sum += v[k].x[0] + v[k].x[1] + v[k].x[2] + v[k].x[3];
    sum = sum_of_lanes(sum);
    if (threadIdx.x % 32 == 0)
        cache[threadIdx.x / 32] = sum;
    __syncthreads();
    for (unsigned w = 1; w < THREADS / 32 && threadIdx.x == 0; w++)
        sum += cache[w];
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

template <class T, bool inclusive>
__global__ void __launch_bounds__(THREADS) scan_after_sums(const T *in, T *out, const T *sums, unsigned n) {
    Vector<T> v[LOADS];
    T before[LOADS];
    load_tile(in, v, blockIdx.x, n);
    scan_tile(v, before);
    for (unsigned k = 0; k < LOADS; k++)
        before[k] += sums[blockIdx.x];
    store_tile<T, inclusive>(out, v, before, blockIdx.x, n);
}

// Rung 4, decoupled look-back (Merrill and Garland, 2016): each tile has a word in global memory, with
// a sum in its lower half, and in its upper half whether it is the sum of the tile, or of all elements up to
// the end of the tile. A word is read and written as a whole, so no memory fence is needed. The
// upper half has the number of the run too, so words of earlier runs need not be cleared.
const unsigned OF_TILE = 1, OF_ALL = 2; // plus 2 * number of the run, which is 0 at first

template <class T> __device__ static unsigned long long make_word(T sum, unsigned which) {
    unsigned bits;
    memcpy(&bits, &sum, sizeof bits);
    return (unsigned long long)which << 32 | bits;
}

template <class T> __device__ static T sum_of(unsigned long long word) {
    unsigned bits = word;
    T sum;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

// Waits until tile `tile` has a sum in this run.
__device__ static unsigned long long wait_for(const unsigned long long *words, unsigned tile, unsigned run) {
    for (;;) {
        unsigned long long word = load_relaxed(&words[tile]);
        if (word >> 32 > 2 * run)
            return word;
        let_other_blocks_run();
    }
}

// Adds the sums of the tiles before this one, the nearest first, up to the first word that has the sum of all
// elements. Each lane of a warp reads the word of another tile, so 32 loads are in flight. All lanes return
// the sum.
template <class T>
__device__ static T look_back(const unsigned long long *words, unsigned tile, unsigned run) {
    const unsigned lane = threadIdx.x % 32;
    T before = 0;
    for (unsigned last = 32; last == 32 && tile > 0; tile -= min(tile, 32)) {
        unsigned long long word = lane < tile ? wait_for(words, tile - 1 - lane, run) : 0;
        unsigned found = __ballot_sync(ALL_LANES, word >> 32 == 2 * run + OF_ALL);
        last = found ? __ffs(found) - 1 : 32; // the nearest tile with the sum of all elements
        before += sum_of_lanes<T>(lane <= last ? sum_of<T>(word) : 0);
    }
    return before;
}

// The tiles are numbered in the order in which their blocks start. So a block waits only for blocks that run
// already, and there is no deadlock. `started` also counts the `earlier` blocks of other runs.
template <class T, bool inclusive>
__global__ void __launch_bounds__(THREADS)
    scan_looking_back(const T *in, T *out, unsigned long long *words, unsigned *started, unsigned earlier,
                      unsigned run, unsigned n) {
    __shared__ unsigned number;
    __shared__ T before_tile;
    Vector<T> v[LOADS];
    T before[LOADS];
    if (threadIdx.x == 0)
        number = atomicAdd(started, 1) - earlier;
    __syncthreads();
    const unsigned tile = number;
    load_tile(in, v, tile, n);
    T sum = scan_tile(v, before);
    if (threadIdx.x < 32) {
        if (threadIdx.x == 0)
            store_relaxed(&words[tile], make_word(sum, 2 * run + OF_TILE));
        T all = look_back<T>(words, tile, run);
        if (threadIdx.x == 0) {
            store_relaxed(&words[tile], make_word(all + sum, 2 * run + OF_ALL));
            before_tile = all;
        }
    }
    __syncthreads();
    for (unsigned k = 0; k < LOADS; k++)
        before[k] += before_tile;
    store_tile<T, inclusive>(out, v, before, tile, n);
}

// Rung 5, latency hiding: only as many blocks as run at the same time (cooperative launch); in each round
// each block has a tile. The sum of all elements before a tile is that of the block's last tile, and the sums
// of the tiles in between, which the other blocks have written; none is passed on from tile to tile. A block
// adds up its next tile before it needs the sums for this one, so they have been written by then. Meanwhile
// the tiles of the rounds to come are copied to shared memory. A thread copies the vectors that it will read
// itself, so no barrier is needed for them.
template <class T> __device__ static void copy_ahead(Vector<T> *to, const T *in, unsigned tile, unsigned n) {
#pragma unroll
    for (unsigned k = 0; k < LOADS; k++) {
        unsigned i = vector_index(tile, k);
        Vector<T> *v = &to[k * blockDim.x];
        if (i + 4 <= n)
            __pipeline_memcpy_async(v, &in[i], sizeof *v);
        else
            for (unsigned j = 0; j < 4; j++)
                v->x[j] = i + j < n ? in[i + j] : 0;
    }
    __pipeline_commit();
}

template <class T, bool inclusive>
__global__ void __launch_bounds__(MOST)
    scan_in_rounds(const T *in, T *out, unsigned long long *words, unsigned run, unsigned n) {
    extern __shared__ uint4 ahead[];
    __shared__ T sums[2][32]; // of warps, in this round and the last one
    const unsigned vectors = LOADS * blockDim.x, lane = threadIdx.x % 32; // vectors: of a tile
    Vector<T> v[LOADS], *slots = (Vector<T> *)ahead + threadIdx.x;
    T before[LOADS], before_next[LOADS], all_before = 0;
    for (unsigned round = 0; round < AHEAD; round++)
        copy_ahead(slots + round * vectors, in, blockIdx.x + round * gridDim.x, n);
    for (unsigned tile = blockIdx.x, round = 0;; tile += gridDim.x, round++) {
        Vector<T> *next = slots + round % AHEAD * vectors;
        const bool more = tile * vectors * 4 < n;
        if (more) {
            __pipeline_wait_prior(AHEAD - 1);
            T sum = scan_tile(next, before_next, blockDim.x);
            if (threadIdx.x == 0)
                store_relaxed(&words[tile], make_word(sum, 2 * run + OF_TILE));
        }
        T between = 0; // this block's tiles of the last two rounds; 0 in the first round
        if (round > 0)
            for (unsigned i = tile - min(tile, 2 * gridDim.x) + threadIdx.x; i < tile - gridDim.x;
                 i += blockDim.x)
                between += sum_of<T>(wait_for(words, i, run));
        between = sum_of_lanes(between);
        if (lane == 0)
            sums[round % 2][threadIdx.x / 32] = between;
        __syncthreads();
        all_before += sum_of_lanes<T>(lane < blockDim.x / 32 ? sums[round % 2][lane] : 0);
        if (round > 0) {
            for (unsigned k = 0; k < LOADS; k++)
                before[k] += all_before;
            store_tile<T, inclusive>(out, v, before, tile - gridDim.x, n);
        }
        if (!more)
            break;
#pragma unroll
        for (unsigned k = 0; k < LOADS; k++) {
            v[k] = next[k * blockDim.x];
            before[k] = before_next[k];
        }
        copy_ahead(next, in, tile + AHEAD * gridDim.x, n);
    }
}

// ---- the rungs ----

template <class T> __global__ void add_sums(T *out, const T *sums, unsigned tile, unsigned n) {
    unsigned first = blockIdx.x * tile;
    for (unsigned i = threadIdx.x; i < tile && first + i < n; i += blockDim.x)
        out[first + i] += sums[blockIdx.x];
}

static unsigned tiles_of(size_t n, unsigned tile) {
    return (n + tile - 1) / tile;
}

// All sums of tiles: of the n elements, of their sums, …, up to one tile
static size_t sums_of(size_t n, unsigned tile) {
    return tiles_of(n, tile) + (n > tile ? sums_of(tiles_of(n, tile), tile) : 0);
}

template <class T> using Kernel = void(const T *in, T *out, T *sums, unsigned n);

// Scans the tiles with the first kernel and their sums with the other one, likewise in tiles, until there is
// only one. Then each tile gets the sum of all tiles before it.
template <class T>
static void scan_levels(Kernel<T> *first, Kernel<T> *others, unsigned tile, unsigned threads, const T *in,
                        T *out, T *sums, size_t n) {
    const unsigned tiles = tiles_of(n, tile);
    first<<<tiles, threads>>>(in, out, sums, n);
    HANDLE_LAUNCH();
    if (tiles > 1) {
        scan_levels(others, others, tile, threads, sums, sums, sums + tiles, tiles);
        add_sums<<<tiles, threads>>>(out, sums, tile, n);
        HANDLE_LAUNCH();
    }
}

// The arrays of a scan of this type
template <class T> struct Arrays { T *in = (T *)dev_in, *out = (T *)dev_out, *sums = (T *)dev_sums; };

template <class T>
static void run_levels(Kernel<T> *first, Kernel<T> *others, unsigned tile, unsigned threads) {
    Arrays<T> a;
    scan_levels(first, others, tile, threads, a.in, a.out, a.sums, n);
}

template <class T, bool inclusive> static void run_sums_first(void) {
    Arrays<T> a;
    const unsigned tiles = tiles_of(n, TILE);
    sum_tiles<<<tiles, THREADS>>>(a.in, a.sums, n);
    HANDLE_LAUNCH();
    Kernel<T> *kernel = scan_in_registers<T, false>;
    scan_levels(kernel, kernel, TILE, THREADS, a.sums, a.sums, a.sums + tiles, tiles);
    scan_after_sums<T, inclusive><<<tiles, THREADS>>>(a.in, a.out, a.sums, n);
    HANDLE_LAUNCH();
}

template <class T, bool inclusive> static void run_single_pass(void) {
    Arrays<T> a;
    scan_looking_back<T, inclusive>
        <<<tiles_of(n, TILE), THREADS>>>(a.in, a.out, dev_words, dev_started, started, runs++, n);
    HANDLE_LAUNCH();
    started += tiles_of(n, TILE);
}

// Blocks of MOST threads have larger tiles, so there are fewer barriers per element. If the elements are too
// few for eight such tiles per multiprocessor, blocks of THREADS threads share the work more evenly.
template <class T, bool inclusive> static void run_rounds(void) {
    Arrays<T> a;
    auto kernel = scan_in_rounds<T, inclusive>;
    const int processors = device_attribute(cudaDevAttrMultiProcessorCount);
    const size_t per_thread = AHEAD * LOADS * sizeof(Vector<T>); // bytes of shared memory
    bool fits = (size_t)device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) >= MOST * per_thread + 1024;
    unsigned threads = fits && n >= (size_t)8 * processors * MOST * LOADS * 4 ? MOST : THREADS, size = n;
    unsigned tiles = tiles_of(n, threads * LOADS * 4);
    int each;
    bench_shared(kernel, threads * per_thread);
    HANDLE_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads, threads * per_thread));
    if (tiles <= (unsigned)(each * processors)) // a block has one tile: there is no next tile to copy
        return run_single_pass<T, inclusive>();
    void *arguments[] = {&a.in, &a.out, &dev_words, &runs, &size};
    HANDLE_ERROR(
        cudaLaunchCooperativeKernel(kernel, each * processors, threads, arguments, threads * per_thread, 0));
    runs++;
}

#ifdef HAVE_CUB
template <class T, bool inclusive> static void run_cub(void) {
    Arrays<T> a;
    bench_cub([=](void *memory, size_t &bytes) {
        return inclusive ? cub::DeviceScan::InclusiveSum(memory, bytes, a.in, a.out, (int)n)
                         : cub::DeviceScan::ExclusiveSum(memory, bytes, a.in, a.out, (int)n);
    });
}
#endif

template <class T, bool inclusive> static void run_table(void) {
    static const Rung rungs[] = {
        {"three kernels", "in steps: tiles, sums of tiles, additions",
         [] { run_levels<T>(scan_in_steps<T, inclusive>, scan_in_steps<T, false>, STEPS, STEPS); }},
        {"work-efficient", "a tree: 2 additions per element",
         [] { run_levels<T>(scan_in_tree<T, inclusive>, scan_in_tree<T, false>, TREE, STEPS); }},
        {"registers", "24 elements per thread, shuffles",
         [] { run_levels<T>(scan_in_registers<T, inclusive>, scan_in_registers<T, false>, TILE, THREADS); }},
        {"sums first", "12 bytes per element instead of 16", run_sums_first<T, inclusive>},
        {"single pass", "decoupled look-back: 8 bytes per element", run_single_pass<T, inclusive>},
        {"latency hiding", "persistent blocks, tiles copied ahead", run_rounds<T, inclusive>},
#ifdef HAVE_CUB
        {"CUB", "DeviceScan", run_cub<T, inclusive>, LIBRARY},
#endif
    };
    const bool floats = std::is_same<T, float>::value;
    fill(floats);
    compare = compare_on_device<T, inclusive>;
    bench.data = std::string(inclusive ? "inclusive, " : "exclusive, ") + (floats ? "float" : "int");
    bench_run(rungs);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    bench_malloc(&dev_in, n * sizeof(int));
    bench_malloc(&dev_out, n * sizeof(int));
    bench_malloc(&dev_sums, (sums_of(n, STEPS) + 1) * sizeof(int)); // rung 3 has one level more
    bench_malloc(&dev_words, tiles_of(n, TILE) * sizeof(dev_words[0]));
    bench_malloc(&dev_started, sizeof(unsigned));
    HANDLE_ERROR(cudaMemset(dev_words, 0, tiles_of(n, TILE) * sizeof(dev_words[0])));
    HANDLE_ERROR(cudaMemset(dev_started, 0, sizeof(unsigned)));

    run_table<unsigned, false>();
    run_table<float, true>();
    if (both) {
        run_table<unsigned, true>();
        run_table<float, false>();
    }
    return bench_finish();
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(
        argc, argv, "Prefix sums, from three kernels to a single pass.", LADDER,
        {OPTION_SIZE("size", &n, 1, 1 << 30, "elements"),
         OPTION_FLAG("all", &both, "also the inclusive scan of ints, and the exclusive scan of floats")});
    const size_t bytes = n * sizeof(int);
    require_memory(bytes, 2 * bytes + 2 * (sums_of(n, STEPS) + 1) * sizeof(int) + bench_memory(2 * bytes));
    bench.title = std::to_string(n) + " elements";
    bench.size = n;
    bench.work = bench.footprint = 2 * bytes; // each element is read and written
}

// Random ints, whose sums are taken modulo 2^32; or floats that are random whole numbers from -8 to 8. The
// sums of 2^30 of these are a random walk with a standard deviation of 160,000, far below 2^24, up to which
// a float represents each whole number. So no sum is rounded, in whatever order the elements are added.
static void fill(bool floats) {
    HostArray<unsigned> words(n);
    random_bytes(words, n * sizeof(unsigned));
    in_threads(n, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end && floats; i++) {
            float x = (float)(words[i] % 17) - 8;
            memcpy(&words[i], &x, sizeof x);
        }
    });
    HANDLE_ERROR(cudaMemcpy(dev_in, words, n * sizeof(unsigned), cudaMemcpyHostToDevice));
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_out, 0xff, n * sizeof(unsigned)));
}

__device__ static unsigned long long wrong_sums;

// Counts the wrong sums. The first sum has to be 0, or the first element; each other sum has to be the sum
// before it plus one element. Then by induction all sums are right.
template <class T, bool inclusive> __global__ void compare_neighbours(const T *in, const T *out, unsigned n) {
    unsigned stride = blockDim.x * gridDim.x, wrong = 0;
    for (size_t i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += stride) {
        T before = i ? out[i - 1] : 0, x = inclusive ? in[i] : i ? in[i - 1] : 0;
        wrong += !(out[i] == before + x);
    }
    if (wrong)
        atomicAdd(&wrong_sums, wrong);
}

template <class T, bool inclusive> static void compare_on_device(void) {
    Arrays<T> a;
    compare_neighbours<T, inclusive><<<1024, 256>>>(a.in, a.out, n);
    HANDLE_LAUNCH();
}

static bool check(const char *name, BenchError *) {
    const unsigned long long right = 0;
    unsigned long long wrong;
    HANDLE_ERROR(cudaMemcpyToSymbol(wrong_sums, &right, sizeof right));
    compare();
    HANDLE_ERROR(cudaMemcpyFromSymbol(&wrong, wrong_sums, sizeof wrong));
    return check_counts((std::string(name) + ": wrong sums").c_str(), &wrong, &right, 1);
}
