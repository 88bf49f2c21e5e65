// SPDX-License-Identifier: MIT
/*
 * sort_ladder: radix sort, from one bit per pass to single passes with decoupled look-back
 *
 * Teaches: Each pass of a radix sort reads and writes all keys, so fewer passes with larger digits are
 *          faster. A pass must keep the order of equal digits: each key needs its rank, the number of keys
 *          before it with the same digit. The lanes of a warp find it by votes, without sorting. In the last
 * rung a pass reads the keys once: its tiles pass the counts of digits on while they run. Terms:   radix
 * sort, stable sort, decoupled look-back, warp vote, histogram, scan, scatter, pass, tile, lane, bank
 * conflict, atomic operation, relaxed, CUB Book:    12.4.1 (course, ladder) Run: ./bin/chapter12/sort_ladder
 * --size 256M Differs: the course sorts ints with one bit per pass. --signed does so here; without it the
 * keys are unsigned. The table "with values" sorts the number of each key along with it. The input stays as
 * it is. The last rung counts the tiles' digits in 30 bits, so there may be at most 2^30 - 1 keys. Bench: 1M
 * 16M 256M Check:   --size 3000
 */
#include "../common/book.h"
#include "../common/bench.h"
#include "../common/ptx.h" // load_relaxed_if(), store_relaxed_if()
#include "scan.h"          // scan()
#ifdef HAVE_CUB
#include <cub/device/device_radix_sort.cuh>
#endif

const unsigned FULL = 0xffffffff; // all lanes of a warp
const unsigned BLOCK = 256;       // threads of the small kernels
const unsigned ITEMS_4 = 16;      // keys per thread of rung 1
const unsigned DIGITS = 256;      // values of a digit from rung 2 on; a block has one thread for each
const unsigned HALVES = DIGITS / 16;
const unsigned ITEMS = 24, TILE = DIGITS * ITEMS; // keys per thread and per block
const unsigned PASSES = 4;
const unsigned COUNTERS = 512, BLOCKS = 4; // threads of count_all, and its blocks per multiprocessor
const size_t MOST = (1 << 30) - 1;         // keys: the last rung has 30 bits for a count

struct Records {
    unsigned *keys, *values; // values: NULL in a sort of keys alone
};

// The digit of a pass: some bits of the key. `flip` inverts the sign bit of signed keys, so that negative
// ones come first.
struct Digit {
    unsigned shift, flip;
};

// Of the last rung. All are 0 before and after a sort.
struct Totals {
    unsigned counts[PASSES * DIGITS]; // of all keys
    unsigned tickets[PASSES];        // blocks that have started
    unsigned finished;               // blocks of count_all
};

static size_t n = BENCH_SIZE(256 << 20, 1 << 16); // --size
static bool with_values, is_signed;               // --signed
static Records dev_in, dev_other, dev_out;
static unsigned *dev_scratch; // flags, or counts of each tile
static unsigned *dev_sums;    // for scan()
static Totals *dev_totals;
static int multiprocessors;
static void prepare_proof(void);
static void end_proof(void);
static void make_keys(int fill);
static void poison(void);
static bool check(const char *name, BenchError *error);

// Pass 0 reads the input; the others read what the pass before has written. The number of passes is even, so
// the last one writes to dev_out.
static Records source(unsigned pass) {
    Records r = pass == 0 ? dev_in : pass % 2 ? dev_other : dev_out;
    return {r.keys, with_values ? r.values : NULL};
}

static Records target(unsigned pass) {
    return source(pass + 1);
}

static unsigned flip(void) {
    return is_signed ? 1u << 31 : 0;
}

// ---- Rung 0: one bit per pass, as in radix_sort.cu. A scan of flags tells each key its place.

__global__ void mark_zeros(const unsigned *keys, unsigned *zeros, Digit digit, unsigned n) {
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n)
        zeros[i] = !((keys[i] ^ digit.flip) >> digit.shift & 1);
}

// zeros[i] is the number of zeros before key i, *all_zeros how many there are.
__global__ void split(Records from, Records to, const unsigned *zeros, const unsigned *all_zeros, Digit digit,
                      unsigned n) {
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n)
        return;
    bool one = (from.keys[i] ^ digit.flip) >> digit.shift & 1;
    unsigned place = one ? *all_zeros + i - zeros[i] : zeros[i];
    to.keys[place] = from.keys[i];
    if (from.values)
        to.values[place] = from.values[i];
}

static void run_bits(void) {
    for (unsigned bit = 0; bit < 32; bit++) {
        unsigned blocks = (n + BLOCK - 1) / BLOCK;
        mark_zeros<<<blocks, BLOCK>>>(source(bit).keys, dev_scratch, {bit, flip()}, n);
        HANDLE_LAUNCH();
        scan(dev_scratch, dev_scratch, dev_sums, n);
        split<<<blocks, BLOCK>>>(source(bit), target(bit), dev_scratch, dev_sums + scan_sums(n) - 1,
                                 {bit, flip()}, n);
        HANDLE_LAUNCH();
    }
}

// ---- Rungs 1 and 2: digits of several bits, three kernels per pass: histogram, scan and scatter.

template <unsigned digits> __device__ static unsigned digit_of(unsigned key, Digit digit) {
    return (key ^ digit.flip) >> digit.shift & (digits - 1);
}

// One block per tile counts its digits. In the order of `counts`, first all tiles of digit 0, a scan turns
// the counts into places: of the first key with digit d of tile b.
template <unsigned digits>
__global__ void count_digits(const unsigned *keys, unsigned *counts, unsigned tile, Digit digit, unsigned n) {
    __shared__ unsigned bins[digits];
    if (threadIdx.x < digits)
        bins[threadIdx.x] = 0;
    __syncthreads();
    unsigned first = blockIdx.x * tile;
    for (unsigned i = threadIdx.x; i < tile && first + i < n; i += blockDim.x)
        atomicAdd(&bins[digit_of<digits>(keys[first + i], digit)], 1);
    __syncthreads();
    if (threadIdx.x < digits)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// The sum of x over the threads before this one. All threads of the block call it.
__device__ static unsigned sum_before(unsigned x) {
    __shared__ unsigned sums[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = x;
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        unsigned left = __shfl_up_sync(FULL, sum, distance);
        sum += lane >= distance ? left : 0;
    }
    if (lane == 31)
        sums[warp] = sum;
    __syncthreads();
    for (unsigned w = 0; w < warp; w++)
        sum += sums[w];
    return sum - x;
}

// Rung 1: each thread has ITEMS_4 consecutive keys, and a counter for each digit that no other thread uses. A
// scan of the block's counters, first those of digit 0, gives the rank of the thread's first key with that
// digit.
__global__ void scatter_4_bits(Records from, Records to, const unsigned *places, Digit digit, unsigned n) {
    __shared__ unsigned ranks[16][BLOCK];
    __shared__ unsigned moves[16]; // from a key's place in the sorted tile to its place among all keys
    unsigned first = (threadIdx.x + blockIdx.x * BLOCK) * ITEMS_4, sum = 0;
    for (unsigned d = 0; d < 16; d++)
        ranks[d][threadIdx.x] = 0;
    for (unsigned i = first; i < first + ITEMS_4 && i < n; i++)
        ranks[digit_of<16>(from.keys[i], digit)][threadIdx.x]++;
    __syncthreads();
    unsigned *mine = &ranks[0][0] + threadIdx.x * 16;
    for (unsigned k = 0; k < 16; k++)
        sum += mine[k];
    sum = sum_before(sum);
    for (unsigned k = 0; k < 16; k++) {
        unsigned count = mine[k];
        mine[k] = sum;
        sum += count;
    }
    __syncthreads();
    if (threadIdx.x < 16)
        moves[threadIdx.x] = places[threadIdx.x * gridDim.x + blockIdx.x] - ranks[threadIdx.x][0];
    __syncthreads();
    for (unsigned i = first; i < first + ITEMS_4 && i < n; i++) {
        unsigned d = digit_of<16>(from.keys[i], digit);
        unsigned place = moves[d] + ranks[d][threadIdx.x]++;
        to.keys[place] = from.keys[i];
        if (from.values)
            to.values[place] = from.values[i];
    }
}

static void run_4_bits(void) {
    const unsigned tile = BLOCK * ITEMS_4, tiles = (n + tile - 1) / tile;
    for (unsigned pass = 0; pass < 8; pass++) {
        Digit digit = {4 * pass, flip()};
        count_digits<16><<<tiles, BLOCK>>>(source(pass).keys, dev_scratch, tile, digit, n);
        HANDLE_LAUNCH();
        scan(dev_scratch, dev_scratch, dev_sums, 16 * tiles);
        scatter_4_bits<<<tiles, BLOCK>>>(source(pass), target(pass), dev_scratch, digit, n);
        HANDLE_LAUNCH();
    }
}

// ---- Rungs 2 to 4: digits of eight bits. A block sorts a tile by a digit in shared memory, and then writes
// it in that order: keys with the same digit go to consecutive places, in coalesced accesses.

struct Tile {
    alignas(16) unsigned moves[DIGITS]; // from a key's place in the sorted tile to its place among all keys
    alignas(16) unsigned counts[DIGITS];
    // For each half-warp and digit: a counter in the upper 16 bits; in the lower ones, a bit for each lane
    alignas(16) unsigned words[HALVES][DIGITS];
    unsigned keys[TILE]; // sorted; then the values
    unsigned number;     // of the tile
    unsigned common;     // the digit that most keys have, below their count; 0: no digit is frequent
};

// The index of element i of this thread. Each half-warp has a part of the tile.
__device__ static unsigned element(const Tile &tile, unsigned i) {
    return tile.number * TILE + (threadIdx.x / 16 * ITEMS + i) * 16 + threadIdx.x % 16;
}

// `status` has a row for each tile: for each digit a count of 30 bits and a flag that says what is counted.
const unsigned ALONE = 1u << 30;  // keys of this tile
const unsigned SO_FAR = 2u << 30; // keys of this tile and of all before it, and all keys with smaller digits
const unsigned FLAGS = 3u << 30;  // 0: not counted yet

// Counts the digits of each half-warp. Then thread d replaces the counts of digit d by places in the sorted
// tile: those of the first such key of each half-warp.
__device__ static void count_tile(Tile &tile, const unsigned *key, unsigned *status, Digit digit) {
    unsigned d = threadIdx.x, before[HALVES], count = 0;
    if (d < DIGITS)
        for (unsigned i = 0; i < ITEMS; i++)
            atomicAdd(&tile.words[d / 16][digit_of<DIGITS>(key[i], digit)], 1);
    __syncthreads();
    for (unsigned h = 0; h < HALVES && d < DIGITS; h++) {
        before[h] = count;
        count += tile.words[h][d];
    }
    if (status && d < DIGITS)
        store_relaxed(&status[d], ALONE | count);
    unsigned place = sum_before(count);
    if (d >= DIGITS)
        return;
    for (unsigned h = 0; h < HALVES; h++)
        tile.words[h][d] = (place + before[h]) << 16;
    tile.counts[d] = count;
    tile.moves[d] = -place;
    if (count > TILE / 8)
        atomicMax(&tile.common, count << 8 | d);
}

// Finds the place of each key in the sorted tile and puts it there. A half-warp does so for 16 keys at a
// time: a place is the counter of the digit plus the number of lower lanes with the same digit. The highest
// of these lanes updates the counter. How the lanes find each other: MATCH:  by __match_any_sync, whose time
// grows with the number of different digits. ATOMIC: each lane sets its bit in the word of its digit. The
// update of the counter clears the bits. COMMON: the same, but the lanes with the most frequent digit vote,
// because they would contend for its word.
enum Method { MATCH, ATOMIC, COMMON };

template <Method method>
__device__ static void place_keys(Tile &tile, const unsigned *key, unsigned *places, Digit digit) {
    unsigned lane = threadIdx.x % 16, bit = 1u << lane, upper = threadIdx.x & 16,
             common = tile.common % DIGITS;
    for (unsigned i = 0; i < ITEMS; i++) {
        unsigned d = digit_of<DIGITS>(key[i], digit), *word = &tile.words[threadIdx.x / 16][d], lanes = 0;
        bool found = method == MATCH || (method == COMMON && d == common);
        if (method == MATCH)
            lanes = __match_any_sync(FULL, d);
        if (method == COMMON)
            lanes = __ballot_sync(FULL, found);
        if (!found)
            atomicOr(word, bit);
        __syncwarp();
        unsigned w = *word | (found ? lanes >> upper & 0xffff : 0);
        unsigned place = (w >> 16) + __popc(w & (bit - 1));
        __syncwarp();
        if ((w & 0xffff) < 2 * bit) // no higher lane
            *word = (place + 1) << 16;
        __syncwarp();
        tile.keys[place] = key[i];
        places[i] = place;
    }
}

// Rung 4, the decoupled look-back: a warp adds the counts of the tiles before this one, from the nearest
// backwards to one whose flag is SO_FAR; there is such a row before the first tile. Tiles are numbered in the
// order in which their blocks start, so this waits only for blocks that run already, and there is no
// deadlock. A flag and its count are one word, so no memory fence is needed. Each lane has 2 x 4 digits.
__device__ static void look_back(Tile &tile, unsigned *status) {
    unsigned first = threadIdx.x % 32 * 4, words[8], sum[8] = {}, flags = 0;
    for (unsigned *row = status - DIGITS; flags != SO_FAR;) {
        uint4 a = load_relaxed_if((uint4 *)&row[first], true);
        uint4 b = load_relaxed_if((uint4 *)&row[first + DIGITS / 2], true);
        flags = FLAGS & a.x & a.y & a.z & a.w & b.x & b.y & b.z & b.w;
        if (!flags) { // not all are counted, or their flags differ: read them again
            let_other_blocks_run();
            continue;
        }
        const unsigned counts[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        for (unsigned k = 0; k < 8; k++)
            sum[k] += counts[k];
        row -= DIGITS;
    }
    for (unsigned k = 0; k < 8; k++) {
        unsigned d = first + k % 4 + k / 4 * (DIGITS / 2), before = sum[k] & ~FLAGS;
        words[k] = SO_FAR | (before + tile.counts[d]);
        tile.moves[d] += before;
    }
    store_relaxed_if((uint4 *)&status[first], make_uint4(words[0], words[1], words[2], words[3]), true);
    store_relaxed_if((uint4 *)&status[first + DIGITS / 2], make_uint4(words[4], words[5], words[6], words[7]),
                     true);
}

// One block per tile, with a thread for each digit, and a warp more for the look-back.
template <Method method, bool looks_back, bool with_values>
__global__ void __launch_bounds__(DIGITS + (looks_back ? 32 : 0), with_values ? 3 : 4)
    scatter_8_bits(Records from, Records to, unsigned *counts, unsigned *ticket, Digit digit, unsigned n) {
    __shared__ Tile tile;
    const bool sorts = threadIdx.x < DIGITS; // not the warp of the look-back
    for (unsigned h = 0; h < HALVES && sorts; h++)
        tile.words[h][threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        tile.number = looks_back ? atomicAdd(ticket, 1) : blockIdx.x;
        tile.common = 0;
    }
    __syncthreads();
    const unsigned valid = min(TILE, n - tile.number * TILE);
    unsigned *status = looks_back ? counts + (tile.number + 1) * DIGITS : NULL;
    unsigned key[ITEMS], places[ITEMS], to_place[ITEMS];
    for (unsigned i = 0; i < ITEMS && sorts;
         i++) // beyond the last key, there are keys that stay behind all others
        key[i] = valid == TILE || element(tile, i) < n ? from.keys[element(tile, i)] : ~digit.flip;
    count_tile(tile, key, status, digit);
    if (!looks_back)
        tile.moves[threadIdx.x] += counts[threadIdx.x * gridDim.x + tile.number];
    __syncthreads();
    if (!sorts)
        look_back(tile, status);
    else if (method == MATCH)
        place_keys<MATCH>(tile, key, places, digit);
    else if (tile.common)
        place_keys<COMMON>(tile, key, places, digit);
    else
        place_keys<ATOMIC>(tile, key, places, digit);
    __syncthreads();
    for (unsigned i = 0; i < ITEMS && sorts; i++) {
        unsigned place = i * DIGITS + threadIdx.x, sorted = tile.keys[place];
        to_place[i] = tile.moves[digit_of<DIGITS>(sorted, digit)] + place;
        if (place < valid)
            to.keys[to_place[i]] = sorted;
    }
    if (!with_values)
        return;
    for (unsigned i = 0; i < ITEMS && sorts; i++)
        key[i] = element(tile, i) < n ? from.values[element(tile, i)] : 0;
    __syncthreads();
    for (unsigned i = 0; i < ITEMS && sorts; i++)
        tile.keys[places[i]] = key[i];
    __syncthreads();
    for (unsigned i = 0; i < ITEMS && sorts; i++)
        if (i * DIGITS + threadIdx.x < valid)
            to.values[to_place[i]] = tile.keys[i * DIGITS + threadIdx.x];
}

static unsigned tiles(void) {
    return (n + TILE - 1) / TILE;
}

template <Method method> static void run_8_bits(void) {
    auto scatter = with_values ? scatter_8_bits<method, false, true> : scatter_8_bits<method, false, false>;
    for (unsigned pass = 0; pass < PASSES; pass++) {
        Digit digit = {8 * pass, flip()};
        count_digits<DIGITS><<<tiles(), BLOCK>>>(source(pass).keys, dev_scratch, TILE, digit, n);
        HANDLE_LAUNCH();
        scan(dev_scratch, dev_scratch, dev_sums, (size_t)DIGITS * tiles());
        scatter<<<tiles(), DIGITS>>>(source(pass), target(pass), dev_scratch, NULL, digit, n);
        HANDLE_LAUNCH();
    }
}

// Rung 4: one kernel counts the digits of all passes at once. It has 8 copies of the counters, whose lanes
// are in different banks. The block that finishes last writes the row before the first tile, for each pass.
__global__ void __launch_bounds__(COUNTERS) count_all(const unsigned *keys, Totals *totals, unsigned *status,
                                                      unsigned rows, unsigned flip, unsigned n) {
    __shared__ unsigned bins[PASSES * DIGITS][8];
    __shared__ bool last;
    const unsigned first = threadIdx.x + blockIdx.x * COUNTERS, stride = COUNTERS * gridDim.x;
    for (unsigned i = threadIdx.x; i < sizeof bins / 4; i += COUNTERS)
        bins[i / 8][i % 8] = 0;
    for (size_t i = first; i < (size_t)PASSES * rows * DIGITS; i += stride)
        status[i] = 0;
    if (first < PASSES)
        totals->tickets[first] = 0;
    __syncthreads();
    auto count = [&](unsigned key) {
        for (unsigned pass = 0; pass < PASSES; pass++)
            atomicAdd(&bins[pass * DIGITS + digit_of<DIGITS>(key, {8 * pass, flip})][threadIdx.x % 8], 1);
    };
    for (unsigned i = first; i < n / 4; i += stride) {
        uint4 four = ((const uint4 *)keys)[i];
        count(four.x);
        count(four.y);
        count(four.z);
        count(four.w);
    }
    if (first < n % 4)
        count(keys[n / 4 * 4 + first]);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < PASSES * DIGITS; i += COUNTERS) {
        unsigned sum = 0;
        for (unsigned copy = 0; copy < 8; copy++)
            sum += bins[i][copy];
        atomicAdd(&totals->counts[i], sum);
    }
    __threadfence(); // the counts are there before the block counts as finished
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(&totals->finished, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    for (unsigned pass = 0; pass < PASSES; pass++) {
        unsigned *total = &totals->counts[pass * DIGITS + threadIdx.x % DIGITS],
                 count = threadIdx.x < DIGITS ? *total : 0;
        unsigned place = sum_before(count);
        if (threadIdx.x < DIGITS) {
            status[(size_t)pass * rows * DIGITS + threadIdx.x] = SO_FAR | place;
            *total = 0; // for the next sort
        }
        __syncthreads(); // before the next call of sum_before
    }
    totals->finished = 0;
}

static void run_look_back(void) {
    auto scatter = with_values ? scatter_8_bits<ATOMIC, true, true> : scatter_8_bits<ATOMIC, true, false>;
    count_all<<<BLOCKS * multiprocessors, COUNTERS>>>(dev_in.keys, dev_totals, dev_scratch, tiles() + 1,
                                                      flip(), n);
    HANDLE_LAUNCH();
    for (unsigned pass = 0; pass < PASSES; pass++) {
        unsigned *status = dev_scratch + (size_t)pass * (tiles() + 1) * DIGITS;
        scatter<<<tiles(), DIGITS + 32>>>(source(pass), target(pass), status, &dev_totals->tickets[pass],
                                          {8 * pass, flip()}, n);
        HANDLE_LAUNCH();
    }
}

static size_t scratch_words(void) {
    return max_of(n, (size_t)PASSES * (tiles() + 1) * DIGITS);
}

#ifdef HAVE_CUB
static void *cub_memory;
static size_t cub_bytes;

template <class T> static void cub_sort(void) {
    const T *in = (const T *)dev_in.keys;
    T *out = (T *)dev_out.keys;
    if (with_values)
        HANDLE_ERROR(cub::DeviceRadixSort::SortPairs(cub_memory, cub_bytes, in, out, dev_in.values,
                                                     dev_out.values, (int)n));
    else
        HANDLE_ERROR(cub::DeviceRadixSort::SortKeys(cub_memory, cub_bytes, in, out, (int)n));
}

static void run_cub(void) {
    if (is_signed)
        cub_sort<int>();
    else
        cub_sort<unsigned>();
}
#endif

// What every sort with four passes must do: read and write all records four times, and read the keys once
// more to count the digits. One read is as much as a copy of half the keys.
static void run_copies(void) {
    for (unsigned pass = 0; pass < PASSES; pass++) {
        HANDLE_ERROR(cudaMemcpyAsync(target(pass).keys, source(pass).keys, 4 * n, cudaMemcpyDeviceToDevice));
        if (with_values)
            HANDLE_ERROR(
                cudaMemcpyAsync(target(pass).values, source(pass).values, 4 * n, cudaMemcpyDeviceToDevice));
    }
    HANDLE_ERROR(cudaMemcpyAsync(dev_other.keys, dev_in.keys, 2 * n, cudaMemcpyDeviceToDevice));
}

static const Rung rungs[] = {
    {"book, one bit", "32 passes: flags, scan, scatter", run_bits},
    {"four bits", "8 passes; counters for each thread", run_4_bits},
    {"eight bits", "4 passes; lanes match digits, coalesced writes", run_8_bits<MATCH>},
    {"lanes as bits", "matched by atomic operations in shared memory", run_8_bits<ATOMIC>},
    {"single pass", "decoupled look-back: keys are read once a pass", run_look_back},
#ifdef HAVE_CUB
    {"CUB", "DeviceRadixSort", run_cub, LIBRARY},
#endif
    {"copies", "as many bytes as four passes and a count move", run_copies, COPY_RATE},
};

enum { UNIFORM, SKEWED, EQUAL, SORTED, REVERSED };
static const char *const fills[] = {"uniform", "skewed", "equal", "sorted", "reversed"};
static int only; // --fill: 0: all data sets, else fills[only - 1]

static Records allocate(void) {
    Records r;
    HANDLE_ERROR(cudaMalloc(&r.keys, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&r.values, n * sizeof(unsigned)));
    return r;
}

static void release(Records r) {
    HANDLE_ERROR(cudaFree(r.keys));
    HANDLE_ERROR(cudaFree(r.values));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    dev_in = allocate();
    dev_other = allocate();
    dev_out = allocate();
    HANDLE_ERROR(cudaMalloc(&dev_scratch, scratch_words() * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_sums, scan_sums(scratch_words()) * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_totals, sizeof(Totals)));
    HANDLE_ERROR(cudaMemset(dev_totals, 0, sizeof(Totals)));
    prepare_proof();
#ifdef HAVE_CUB
    with_values = true; // needs more memory
    run_cub();          // without memory it only computes cub_bytes
    HANDLE_ERROR(cudaMalloc(&cub_memory, cub_bytes));
#endif

    bool ok = true;
    for (int fill = UNIFORM; fill <= REVERSED; fill++) {
        if (only ? only - 1 != fill : fill > EQUAL)
            continue;
        make_keys(fill);
        for (bool values : {false, true}) {
            if (values && !only && fill != UNIFORM)
                continue;
            with_values = values;
            Bench bench;
            std::string data = std::string(fills[fill]) + (values ? ", with values" : "");
            bench.title = std::to_string(n) + (is_signed ? " ints" : " unsigned ints");
            bench.data = data.c_str();
            bench.size = n;
            bench.work = n;
            bench.unit = "Gkeys/s";
            bench.footprint = (values ? 6 : 3) * n * sizeof(unsigned);
            bench.poison = poison;
            bench.check = check;
            ok = bench_run(bench, rungs) && ok;
        }
    }
    bench_finish();

#ifdef HAVE_CUB
    HANDLE_ERROR(cudaFree(cub_memory));
#endif
    release(dev_in);
    release(dev_other);
    release(dev_out);
    HANDLE_ERROR(cudaFree(dev_scratch));
    HANDLE_ERROR(cudaFree(dev_sums));
    HANDLE_ERROR(cudaFree(dev_totals));
    end_proof();
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, MOST, "keys to sort"),
        OPTION_WORD("fill", &only, "all|uniform|skewed|equal|sorted|reversed", "distribution of the keys"),
        OPTION_FLAG("signed", &is_signed, "sort ints instead of unsigned ints"), OPTION_END};
    parse_options(argc, argv, "Radix sort, from one bit per pass to decoupled look-back.", LADDER, own);
    select_device();
    HANDLE_ERROR(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, options.device));
    size_t bytes = n * sizeof(unsigned), cub = 2 * bytes + (64 << 20);
    require_memory(2 * bytes,
                   6 * bytes + (scratch_words() + scan_sums(scratch_words())) * sizeof(unsigned) + cub);
}

static const size_t HOST_SORT = 1 << 20; // up to so many keys are compared with a sort on the host

// Hashes of the keys: sums that do not depend on their order
struct Found {
    unsigned long long misplaced, hash[2], wrong_values;
};

static unsigned *keys, *expected; // the input; the values in the order of a stable sort
static Found *dev_found, expected_found;

static void prepare_proof(void) {
    keys = host_array<unsigned>(n);
    expected = host_array<unsigned>(n);
    HANDLE_ERROR(cudaMalloc(&dev_found, sizeof(Found)));
}

static void end_proof(void) {
    HANDLE_ERROR(cudaFree(dev_found));
    free(keys);
    free(expected);
}

// Mixes the bits of a key: the last step of MurmurHash3, an invertible function.
__device__ static unsigned mix(unsigned x) {
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

// Compares each key with the one before it.
__global__ void examine(Records sorted, const unsigned *in, Found *found, unsigned flip, unsigned n) {
    Found f = {0, {0, 0}, 0};
    for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) {
        unsigned key = sorted.keys[i], left = i ? sorted.keys[i - 1] : key;
        f.misplaced += (left ^ flip) > (key ^ flip);
        f.hash[0] += mix(key);
        f.hash[1] += (unsigned long long)mix(~key) * mix(key + 1);
        if (sorted.values) {
            unsigned value = sorted.values[i];
            bool ordered = i == 0 || left != key || sorted.values[i - 1] < value;
            f.wrong_values += !(value < n && in[value] == key && ordered);
        }
    }
    atomicAdd(&found->misplaced, f.misplaced);
    atomicAdd(&found->hash[0], f.hash[0]);
    atomicAdd(&found->hash[1], f.hash[1]);
    atomicAdd(&found->wrong_values, f.wrong_values);
}

static Found examined(Records sorted) {
    Found found;
    HANDLE_ERROR(cudaMemset(dev_found, 0, sizeof found));
    examine<<<min_of(16 * multiprocessors, (n + BLOCK - 1) / BLOCK), BLOCK>>>(sorted, dev_in.keys, dev_found,
                                                                              flip(), n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(&found, dev_found, sizeof found, cudaMemcpyDeviceToHost));
    return found;
}

// SKEWED: the bits of three random numbers and-ed, each bit is 1 once in eight times (Thearling and Smith,
// 1992). SORTED, REVERSED: keys of the whole range in equal steps. The value of each key is its number.
static void make_keys(int fill) {
    random_bytes(keys, n * sizeof(unsigned));
    unsigned *more = expected; // not needed yet
    for (int i = 0; i < 2 && fill == SKEWED; i++) {
        random_bytes(more, n * sizeof(unsigned));
        for (size_t k = 0; k < n; k++)
            keys[k] &= more[k];
    }
    for (size_t i = 0; i < n; i++) {
        unsigned step = ((uint64_t)i << 32) / n ^ flip();
        keys[i] = fill == EQUAL ? keys[0] : fill == SORTED ? step : fill == REVERSED ? ~step : keys[i];
        expected[i] = i;
    }
    HANDLE_ERROR(cudaMemcpy(dev_in.keys, keys, n * sizeof(unsigned), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_in.values, expected, n * sizeof(unsigned), cudaMemcpyHostToDevice));
    if (n <= HOST_SORT)
        std::stable_sort(expected, expected + n,
                         [](unsigned a, unsigned b) { return (keys[a] ^ flip()) < (keys[b] ^ flip()); });
    expected_found = examined({dev_in.keys, NULL});
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_out.keys, 0xff, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMemset(dev_out.values, 0xff, n * sizeof(unsigned)));
}

// On the device: no key is less than the one before it, and the hashes are those of the input. With values:
// each key is that of its value in the input, and equal keys have increasing values. So no value occurs
// twice, all are there, and the sort is stable.
static bool check(const char *name, BenchError *) {
    Found found = examined({dev_out.keys, with_values ? dev_out.values : NULL});
    unsigned long long got[] = {found.misplaced, found.hash[0], found.hash[1], found.wrong_values},
                       right[] = {0, expected_found.hash[0], expected_found.hash[1], 0};
    bool ok =
        check_counts((std::string(name) + ": misplaced keys, hashes, wrong values").c_str(), got, right, 4);
    if (n > HOST_SORT)
        return ok;
    int *sorted = host_array<int>(n), *right_keys = host_array<int>(n);
    HANDLE_ERROR(cudaMemcpy(sorted, dev_out.keys, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++)
        right_keys[i] = keys[expected[i]];
    ok = check_ints(name, sorted, right_keys, n) && ok;
    if (with_values) {
        HANDLE_ERROR(cudaMemcpy(sorted, dev_out.values, n * sizeof(int), cudaMemcpyDeviceToHost));
        ok = check_ints((std::string(name) + ": values").c_str(), sorted, (int *)expected, n) && ok;
    }
    free(sorted);
    free(right_keys);
    return ok;
}
