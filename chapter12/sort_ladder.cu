// SPDX-License-Identifier: MIT
/*
 * sort_ladder: radix sort, from one bit per pass to passes with decoupled look-back
 *
 * Teaches: Each pass of a radix sort reads and writes all keys, so fewer passes with larger digits are
 *          faster. A pass needs the rank of each key: the number of keys before it with the same digit.
 *          The lanes of a warp find it together, first by a match, then faster by setting bits in shared
 *          memory. In the last rung a pass is one kernel, whose blocks pass on their counts while they run.
 * Terms:   radix sort, stable sort, decoupled look-back, warp vote, histogram, scan, scatter, pass, tile,
 *          half-warp, contention, atomic operation, relaxed, CUB
 * Book:    12.4.1 (ladder)
 * Rungs:   0 course, one bit (32 passes: flags, scan, scatter); 1 four bits (8 passes; counters per thread);
 *          2 eight bits (4 passes; lanes match digits, coalesced writes); 3 lanes as bits (matched by atomic
 *          operations in shared memory); 4 single pass (decoupled look-back: keys are read once per pass)
 * Build:   nvcc -o sort_ladder chapter12/sort_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/sort_ladder --size 256M
 * Differs: the course sorts ints, as --signed does. In the tables "with values" the index of each key is
 *          sorted along with it. The last rung has 30 bits for a count, so there may be at most 2^30 - 1
 *          keys. The copies move the bytes that four passes and one count must move.
 * Limit:   the instructions that rank the keys of a tile; on an H200 copies of the same bytes take 45 to 60 %
 *          of the time (uniform keys, 16M and more). With values, the number of registers: only a long
 *          tile has enough keys of each digit to write whole sectors.
 * Bench:   64K 1M 16M 64M 256M
 * Check:   --size 3000 | --size 700 --signed --fill skewed | --size 300 --fill reversed
 */
#include <stddef.h>
#include <vector>
#include "../common/book.h"
#include "../common/bench.h"
#include "../common/ptx.h" // load_relaxed(), store_relaxed()
#include "scan.h"          // scan()
#ifdef HAVE_CUB
#include <cub/device/device_radix_sort.cuh>
#endif

const size_t MOST = (1 << 30) - 1;   // keys: the last rung has 30 bits for a count
const unsigned BLOCK = 256;          // threads per block with four bits
const unsigned ITEMS_4 = 16;         // keys per thread with four bits
const unsigned PASSES = 4;           // of eight bits each
const unsigned DIGITS = 256;         // values of a digit; a block has one thread for each
const unsigned ITEMS = 40;           // keys per thread with eight bits
const unsigned FEW = 12;             // likewise in the last rung, if there are few keys
const unsigned HALVES = DIGITS / 16; // half-warps of DIGITS threads
const unsigned ALL_LANES = 0xffffffff;

struct Records {
    unsigned *keys, *values; // values: NULL in a sort of keys alone
};

static size_t n = BENCH_SIZE(256 << 20, 1 << 15); // --size
static bool with_values, is_signed;               // --signed
static Records dev_in, dev_other, dev_out;
static unsigned *dev_scratch; // flags, or counts of each tile
static unsigned *dev_sums;    // for scan()
static int multiprocessors;
static void fill_keys(int fill);

// The digit of a pass: a group of bits of the key. `flip` inverts the sign bit of signed keys, so that
// negative keys sort before positive ones.
struct Digit {
    unsigned shift, flip;
};

template <unsigned digits> __device__ static unsigned digit_of(unsigned key, Digit digit) {
    return (key ^ digit.flip) >> digit.shift & (digits - 1);
}

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

// ---- Rung 0: one bit per pass, as in radix_sort.cu. An exclusive scan of flags gives the index of each key.

__global__ void mark_zeros(const unsigned *keys, unsigned *zeros, Digit digit, unsigned n) {
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n)
        zeros[i] = !((keys[i] ^ digit.flip) >> digit.shift & 1);
}

// zeros[i] is the number of keys before key i whose bit is 0, *all_zeros the number of all such keys.
__global__ void split(Records from, Records to, const unsigned *zeros, const unsigned *all_zeros, Digit digit,
                      unsigned n) {
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n)
        return;
    bool one = (from.keys[i] ^ digit.flip) >> digit.shift & 1;
    unsigned index = one ? *all_zeros + i - zeros[i] : zeros[i];
    to.keys[index] = from.keys[i];
    if (from.values)
        to.values[index] = from.values[i];
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

// ---- Rung 1: digits of four bits, three kernels per pass: histogram, scan and scatter.

// Histogram: one block per tile counts its digits. `counts` is in digit-major order: the counts of all tiles
// for digit 0, then those for digit 1, and so on. An exclusive prefix sum of `counts` then gives, for each
// digit and tile, the index in the output of the first key of that tile with that digit.
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

// Block-wide exclusive prefix sum: the sum of x over the threads with a smaller index. All threads call it.
__device__ static unsigned exclusive_sum(unsigned x) {
    __shared__ unsigned sums[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = x;
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        unsigned left = __shfl_up_sync(ALL_LANES, sum, distance);
        sum += lane >= distance ? left : 0;
    }
    if (lane == 31)
        sums[warp] = sum;
    __syncthreads();
    for (unsigned w = 0; w < warp; w++)
        sum += sums[w];
    return sum - x;
}

// Each thread has ITEMS_4 consecutive keys and its own counter for each digit. An exclusive prefix
// sum of the block's counters, in digit-major order, gives the rank in the tile of each thread's first key
// with each digit.
__global__ void scatter_4_bits(Records from, Records to, const unsigned *starts, Digit digit, unsigned n) {
    __shared__ unsigned ranks[16][BLOCK];
    __shared__ unsigned offsets[16]; // output index minus rank in the tile, per digit
    unsigned first = (threadIdx.x + blockIdx.x * BLOCK) * ITEMS_4, sum = 0;
    for (unsigned d = 0; d < 16; d++)
        ranks[d][threadIdx.x] = 0;
    for (unsigned i = first; i < first + ITEMS_4 && i < n; i++)
        ranks[digit_of<16>(from.keys[i], digit)][threadIdx.x]++;
    __syncthreads();
    unsigned *mine = &ranks[0][0] + threadIdx.x * 16;
    for (unsigned k = 0; k < 16; k++)
        sum += mine[k];
    sum = exclusive_sum(sum);
    for (unsigned k = 0; k < 16; k++) {
        unsigned count = mine[k];
        mine[k] = sum;
        sum += count;
    }
    __syncthreads();
    if (threadIdx.x < 16)
        offsets[threadIdx.x] = starts[threadIdx.x * gridDim.x + blockIdx.x] - ranks[threadIdx.x][0];
    __syncthreads();
    for (unsigned i = first; i < first + ITEMS_4 && i < n; i++) {
        unsigned d = digit_of<16>(from.keys[i], digit);
        unsigned index = offsets[d] + ranks[d][threadIdx.x]++;
        to.keys[index] = from.keys[i];
        if (from.values)
            to.values[index] = from.values[i];
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

// ---- Rungs 2 to 4: digits of eight bits. A block sorts a tile of keys by a digit in shared memory. Then it
// writes the sorted tile to global memory. Keys with the same digit go to consecutive addresses, so the
// stores are coalesced. The kernels consist of the following steps. In rung 4 a block has more than DIGITS
// threads.

// What a block keeps in shared memory
template <unsigned items> struct Tile {
    alignas(16) unsigned words[HALVES][DIGITS]; // per half-warp and digit: counter << 16 | mask of lanes
    unsigned counts[DIGITS];
    unsigned offsets[DIGITS]; // output index minus index in the sorted tile, per digit
    unsigned common;          // count << 8 | most frequent digit; 0 if no digit is frequent
    unsigned keys[DIGITS * items], values[DIGITS * items]; // sorted; `values` is allocated only if needed
};

// Loads tile `number`. Each half-warp has a part of it. The last tile is padded with keys that sort after all
// others.
template <bool with_values, unsigned items>
__device__ static void load_tile(Records from, unsigned number, unsigned *key, unsigned *value, Digit digit,
                                 unsigned n) {
    const unsigned begin = number * DIGITS * items, size = min(DIGITS * items, n - begin);
    const unsigned first = threadIdx.x / 16 * 16 * items + threadIdx.x % 16;
    for (unsigned i = 0; i < items; i++) {
        bool inside = size == DIGITS * items || first + 16 * i < size;
        key[i] = inside ? from.keys[begin + first + 16 * i] : ~digit.flip;
        if (with_values)
            value[i] = inside ? from.values[begin + first + 16 * i] : 0;
    }
}

template <unsigned items> __device__ static void clear_tile(Tile<items> &tile) {
    for (unsigned h = 0; h < HALVES; h++)
        tile.words[h][threadIdx.x] = 0;
    if (threadIdx.x == 0)
        tile.common = 0;
}

// Counts the digits of each half-warp. Returns to thread d the count of digit d in the tile; before[h]
// becomes its count in the half-warps before h.
template <unsigned items>
__device__ static unsigned count_tile(Tile<items> &tile, const unsigned *key, unsigned *before, Digit digit) {
    unsigned d = threadIdx.x, count = 0;
    for (unsigned i = 0; i < items && d < DIGITS; i++)
        atomicAdd(&tile.words[d / 16][digit_of<DIGITS>(key[i], digit)], 1);
    __syncthreads();
    for (unsigned h = 0; h < HALVES && d < DIGITS; h++) {
        before[h] = count;
        count += tile.words[h][d];
    }
    return count;
}

// Thread d replaces the counts of digit d by an exclusive prefix sum: for each half-warp, the index in the
// sorted tile of its first key with that digit.
template <unsigned items>
__device__ static void place_digits(Tile<items> &tile, const unsigned *before, unsigned count) {
    unsigned d = threadIdx.x, index = exclusive_sum(count);
    for (unsigned h = 0; h < HALVES && d < DIGITS; h++)
        tile.words[h][d] = (index + before[h]) << 16;
    if (d < DIGITS) {
        tile.counts[d] = count;
        tile.offsets[d] = -index;
    }
    if (count > DIGITS * items / 8)
        atomicMax(&tile.common, count << 8 | d);
}

// Stores a key and its value in the sorted tile; a half-warp stores 16 keys at a time. `w` has the counter of
// the key's digit and the mask of the lanes of the half-warp with the same digit. The index of the key is the
// counter plus the number of lower lanes in the mask; it is returned. The highest of these lanes adds their
// number to the counter and clears the mask.
template <bool with_values, unsigned items>
__device__ static unsigned place_key(Tile<items> &tile, unsigned *word, unsigned w, unsigned key,
                                     const unsigned &value) {
    unsigned bit = 1u << threadIdx.x % 16, index = (w >> 16) + __popc(w & (bit - 1));
    __syncwarp();
    if ((w & 0xffff) < 2 * bit) // there is no higher lane
        *word = (index + 1) << 16;
    __syncwarp();
    tile.keys[index] = key;
    if (with_values)
        tile.values[index] = value;
    return index;
}

// Writes the sorted tile `number` to global memory.
template <bool with_values, unsigned items>
__device__ static void store_tile(const Tile<items> &tile, Records to, unsigned number, Digit digit,
                                  unsigned n) {
    const unsigned size = min(DIGITS * items, n - number * DIGITS * items);
#pragma unroll // so that loads of several keys are in flight
    for (unsigned k = 0; k < items; k++) {
        unsigned i = k * DIGITS + threadIdx.x;
        if (size == DIGITS * items || i < size) {
            unsigned sorted = tile.keys[i], index = tile.offsets[digit_of<DIGITS>(sorted, digit)] + i;
            to.keys[index] = sorted;
            if (with_values)
                to.values[index] = tile.values[i];
        }
    }
}

// Rung 2: the lanes with the same digit find each other by __match_any_sync(), whose time grows with the
// number of different digits.
template <bool with_values, unsigned items>
__device__ static void sort_by_match(Tile<items> &tile, unsigned *key, const unsigned *value, Digit digit) {
    for (unsigned i = 0; i < items; i++) {
        unsigned d = digit_of<DIGITS>(key[i], digit), *word = &tile.words[threadIdx.x / 16][d];
        unsigned same = __match_any_sync(ALL_LANES, d) >> (threadIdx.x & 16) & 0xffff;
        place_key<with_values>(tile, word, *word | same, key[i], value[i]);
    }
}

// Rung 3: instead of the match, each lane sets its bit in the word of its digit by atomicOr(). If a digit is
// frequent, the lanes with it use a warp vote to avoid contention. key[] becomes the index of each key in the
// sorted tile.
template <bool with_values, bool vote, unsigned items>
__device__ static void sort_by_bits(Tile<items> &tile, unsigned *key, const unsigned *value, Digit digit) {
    unsigned bit = 1u << threadIdx.x % 16, common = tile.common % DIGITS;
    for (unsigned i = 0; i < items; i++) {
        unsigned *words = tile.words[threadIdx.x / 16], d = digit_of<DIGITS>(key[i], digit);
        unsigned *word = &words[d], votes = 0;
        if (vote)
            votes = __ballot_sync(ALL_LANES, d == common) >> (threadIdx.x & 16) & 0xffff;
        if (!vote || d != common)
            atomicOr(word, bit);
        __syncwarp();
        key[i] = place_key<with_values>(tile, word, *word | (d == common ? votes : 0), key[i], value[i]);
    }
}

// One block per tile. starts[d * tiles + tile] is the output index of the first key of the tile with digit d.
template <bool with_values, bool match>
__global__ void __launch_bounds__(DIGITS, with_values ? 2 : 3)
    scatter_8_bits(Records from, Records to, const unsigned *starts, Digit digit, unsigned n) {
    extern __shared__ uint4 memory[];
    Tile<ITEMS> &tile = *(Tile<ITEMS> *)memory;
    unsigned key[ITEMS], value[ITEMS], before[HALVES];
    clear_tile(tile);
    __syncthreads();
    load_tile<with_values, ITEMS>(from, blockIdx.x, key, value, digit, n);
    unsigned count = count_tile(tile, key, before, digit);
    place_digits(tile, before, count);
    tile.offsets[threadIdx.x] += starts[threadIdx.x * gridDim.x + blockIdx.x];
    __syncthreads();
    if (match)
        sort_by_match<with_values>(tile, key, value, digit);
    else if (tile.common)
        sort_by_bits<with_values, true>(tile, key, value, digit);
    else
        sort_by_bits<with_values, false>(tile, key, value, digit);
    __syncthreads();
    store_tile<with_values>(tile, to, blockIdx.x, digit, n);
}

static unsigned tiles(unsigned items = ITEMS) {
    return (n - 1) / (DIGITS * items) + 1;
}

static size_t tile_bytes(void) {
    return with_values ? sizeof(Tile<ITEMS>) : offsetof(Tile<ITEMS>, values);
}

static const char *needs_shared(size_t tile) {
    size_t most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return tile <= most ? NULL : "needs more shared memory";
}

template <bool match> static void run_8_bits(void) {
    auto scatter =
        bench_shared(with_values ? scatter_8_bits<true, match> : scatter_8_bits<false, match>, tile_bytes());
    for (unsigned pass = 0; pass < PASSES; pass++) {
        Digit digit = {8 * pass, flip()};
        count_digits<DIGITS><<<tiles(), BLOCK>>>(source(pass).keys, dev_scratch, DIGITS * ITEMS, digit, n);
        HANDLE_LAUNCH();
        scan(dev_scratch, dev_scratch, dev_sums, (size_t)DIGITS * tiles());
        scatter<<<tiles(), DIGITS, tile_bytes()>>>(source(pass), target(pass), dev_scratch, digit, n);
        HANDLE_LAUNCH();
    }
}

// ---- Rung 4: a pass is a single kernel. Its blocks get the prefix sums of their counts by decoupled
// look-back.

const unsigned LOOKING = DIGITS / 4; // additional threads per block for the look-back
const unsigned WINDOW = 4;           // loads that each of them has in flight
const unsigned COUNTERS = 1024;      // threads per block of the histogram kernel count_all()

// Decoupled look-back (Merrill and Garland, 2016): for each tile a row of DIGITS words in global memory, each
// with a count of 30 bits and a flag of 2 bits that says which keys it counts.
const unsigned AGGREGATE = 1u << 30; // the keys of this tile
const unsigned PREFIX = 2u << 30; // inclusive prefix: also those of all tiles before and with smaller digits
const unsigned FLAGS = 3u << 30;  // mask; 0: the count is not written yet

// Counters of the last rung, in global memory. `counts` and `finished` are 0 at the beginning and at the end
// of a sort. count_all() sets `tickets` to 0.
struct Totals {
    unsigned counts[PASSES * DIGITS]; // of all keys
    unsigned tickets[PASSES];         // blocks that have started
    unsigned finished;                // blocks of count_all() that have finished
};

// Counts the digits of all passes at once. Each counter has 8 copies in different banks of shared memory, to
// reduce contention. The block that finishes last writes the row before the first tile, for each pass.
__global__ void __launch_bounds__(COUNTERS) count_all(const unsigned *keys, Totals *totals, unsigned *rows,
                                                      size_t words_per_pass, unsigned flip, unsigned n) {
    __shared__ unsigned bins[PASSES * DIGITS][8];
    __shared__ bool last;
    const unsigned first = threadIdx.x + blockIdx.x * COUNTERS, stride = COUNTERS * gridDim.x;
    for (unsigned i = threadIdx.x; i < PASSES * DIGITS * 8; i += COUNTERS)
        bins[i / 8][i % 8] = 0;
    for (size_t i = first; i < PASSES * words_per_pass; i += stride)
        rows[i] = 0;
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
        if (sum > 0)
            atomicAdd(&totals->counts[i], sum);
    }
    __threadfence(); // the additions become visible before the block counts as finished
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(&totals->finished, 1) == gridDim.x - 1;
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    for (unsigned pass = 0; pass < PASSES; pass++) {
        unsigned d = threadIdx.x, *total = &totals->counts[pass * DIGITS + d % DIGITS];
        unsigned index = exclusive_sum(d < DIGITS ? *total : 0);
        if (d < DIGITS) {
            rows[pass * words_per_pass + (WINDOW - 1) * DIGITS + d] = PREFIX | index;
            *total = 0;
        }
        __syncthreads(); // before the next sum
    }
    if (threadIdx.x == 0)
        totals->finished = 0;
}

// Decoupled look-back: computes the exclusive prefix sum of the tile's counts. It adds the rows of the
// preceding tiles, the nearest first. A row with the flag AGGREGATE has the counts of its tile. The first row
// with the flag PREFIX has an inclusive prefix sum, of its tile and all tiles before it, and is the last that
// is added. The row before the first tile has this flag and counts the keys with smaller digits.
// Tiles are numbered in the order in which their blocks start, so this waits only for blocks that run
// already, and there is no deadlock. A word has both flag and count, so no memory fence is needed. Each
// thread adds the counts of four digits.
template <unsigned items> __device__ static void look_back(Tile<items> &tile, unsigned *row) {
    unsigned first = (threadIdx.x - DIGITS) * 4, sum[4] = {}, flags = AGGREGATE;
    for (unsigned *next = row - DIGITS; flags == AGGREGATE;) {
        uint4 rows[WINDOW];
        for (unsigned w = 0; w < WINDOW; w++)
            rows[w] = load_relaxed((const uint4 *)(next - w * DIGITS + first));
        for (unsigned w = 0; w < WINDOW; w++)
            if (flags == AGGREGATE) {
                const unsigned counts[4] = {rows[w].x, rows[w].y, rows[w].z, rows[w].w};
                flags = FLAGS & counts[0] & counts[1] & counts[2] & counts[3];
                for (unsigned k = 0; k < 4 && flags; k++)
                    sum[k] += counts[k]; // the flags are removed below
                next -= flags ? DIGITS : 0;
            }
        if (!flags) { // a count is not there yet, or the flags differ: load the row again
            let_other_blocks_run();
            flags = AGGREGATE;
        }
    }
    for (unsigned k = 0; k < 4; k++) {
        tile.offsets[first + k] += sum[k] & ~FLAGS;
        sum[k] = PREFIX | ((sum[k] & ~FLAGS) + tile.counts[first + k]);
    }
    store_relaxed((uint4 *)&row[first], make_uint4(sum[0], sum[1], sum[2], sum[3]));
}

// Moves the values of a tile whose keys are stored already. `index` has the indices in the sorted tile of
// this thread's keys, two in a word. The values take the place of the keys in shared
// memory, and they wait in no registers meanwhile, so a tile can be larger; only the digits of the keys are
// still needed.
template <unsigned items>
__device__ static void move_values(Tile<items> &tile, Records from, Records to, unsigned number,
                                   const unsigned *index, Digit digit, unsigned n) {
    const unsigned begin = number * DIGITS * items, size = min(DIGITS * items, n - begin);
    const unsigned first = threadIdx.x / 16 * 16 * items + threadIdx.x % 16;
    const bool sorts = threadIdx.x < DIGITS;
    unsigned digits[items / 4] = {}; // of the sorted keys that this thread stores, four in a word
#pragma unroll
    for (unsigned k = 0; k < items && sorts; k++)
        digits[k / 4] |= digit_of<DIGITS>(tile.keys[k * DIGITS + threadIdx.x], digit) << k % 4 * 8;
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < items && sorts; i++)
        if (size == DIGITS * items || first + 16 * i < size)
            tile.keys[index[i / 2] >> i % 2 * 16 & 0xffff] = from.values[begin + first + 16 * i];
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < items && sorts; k++) {
        unsigned i = k * DIGITS + threadIdx.x, d = digits[k / 4] >> k % 4 * 8 & (DIGITS - 1);
        if (size == DIGITS * items || i < size)
            to.values[tile.offsets[d] + i] = tile.keys[i];
    }
}

// One block per tile. The tiles are numbered by a ticket, in the order in which their blocks start. `rows`
// has the rows for the look-back, WINDOW of them before the first tile.
template <bool with_values, unsigned items>
__global__ void __launch_bounds__(DIGITS + LOOKING, 2)
    scatter_looking_back(Records from, Records to, unsigned *rows, unsigned *ticket, Digit digit,
                         unsigned n) {
    extern __shared__ uint4 memory[];
    __shared__ unsigned number;
    Tile<items> &tile = *(Tile<items> *)memory;
    unsigned key[items], value[items], before[HALVES];
    const bool sorts = threadIdx.x < DIGITS; // the other threads look back
    if (sorts)
        clear_tile(tile);
    if (threadIdx.x == 0)
        number = atomicAdd(ticket, 1);
    __syncthreads();
    if (sorts)
        load_tile<false, items>(from, number, key, value, digit, n);
    unsigned *row = rows + (number + WINDOW) * DIGITS, count = count_tile(tile, key, before, digit);
    if (sorts)
        store_relaxed(&row[threadIdx.x], AGGREGATE | count);
    place_digits(tile, before, count);
    __syncthreads();
    if (!sorts)
        look_back(tile, row);
    else if (tile.common)
        sort_by_bits<false, true>(tile, key, value, digit);
    else
        sort_by_bits<false, false>(tile, key, value, digit);
    // key[] has the indices of the keys in the sorted tile now. They are packed, two in a word.
    for (unsigned i = 0; i < items / 2 && sorts; i++)
        key[i] = key[2 * i] | key[2 * i + 1] << 16;
    __syncthreads();
    if (sorts)
        store_tile<false>(tile, to, number, digit, n);
    if (with_values)
        move_values(tile, from, to, number, key, digit, n);
}

static Totals *dev_totals;

// A row for each tile
static size_t words_per_pass(unsigned items) {
    return (size_t)(tiles(items) + WINDOW) * DIGITS;
}

template <unsigned items> static void run_look_back_with(void) {
    auto scatter = with_values ? scatter_looking_back<true, items> : scatter_looking_back<false, items>;
    const size_t bytes = offsetof(Tile<items>, values), words = words_per_pass(items); // also with values
    bench_shared(scatter, bytes);
    unsigned blocks = min_of(2 * multiprocessors, (n - 1) / (4 * COUNTERS) + 1);
    count_all<<<blocks, COUNTERS>>>(dev_in.keys, dev_totals, dev_scratch, words, flip(), n);
    HANDLE_LAUNCH();
    for (unsigned pass = 0; pass < PASSES; pass++) {
        scatter<<<tiles(items), DIGITS + LOOKING, bytes>>>(source(pass), target(pass),
                                                           dev_scratch + pass * words,
                                                           &dev_totals->tickets[pass], {8 * pass, flip()}, n);
        HANDLE_LAUNCH();
    }
}

// If each multiprocessor gets at most one small tile, these are faster, since more multiprocessors have one.
static void run_look_back(void) {
    if (tiles(FEW) <= (unsigned)multiprocessors)
        run_look_back_with<FEW>();
    else
        run_look_back_with<ITEMS>();
}

static size_t scratch_words(void) {
    return max_of(n, PASSES * words_per_pass(FEW));
}

#ifdef HAVE_CUB
template <class T> static void cub_sort(void) {
    const T *in = (const T *)dev_in.keys;
    T *out = (T *)dev_out.keys;
    if (with_values)
        bench_cub([=](void *memory, size_t &bytes) {
            return cub::DeviceRadixSort::SortPairs(memory, bytes, in, out, dev_in.values, dev_out.values,
                                                   (int)n);
        });
    else
        bench_cub([=](void *memory, size_t &bytes) {
            return cub::DeviceRadixSort::SortKeys(memory, bytes, in, out, (int)n);
        });
}
#endif

// The memory traffic of a sort with four passes: it reads and writes all records four times, and reads the
// keys once more to count the digits. One read moves as many bytes as a copy of half the keys.
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
    {"course, one bit", "32 passes: flags, scan, scatter", run_bits},
    {"four bits", "8 passes; counters per thread", run_4_bits},
    {"eight bits", "4 passes; lanes match digits, coalesced writes", run_8_bits<true>,
     [] { return needs_shared(tile_bytes()); }},
    {"lanes as bits", "matched by atomic operations in shared memory", run_8_bits<false>,
     [] { return needs_shared(tile_bytes()); }},
    {"single pass", "decoupled look-back: keys are read once per pass", run_look_back,
     [] { return needs_shared(offsetof(Tile<ITEMS>, values)); }},
#ifdef HAVE_CUB
    {"CUB", "DeviceRadixSort", [] { is_signed ? cub_sort<int>() : cub_sort<unsigned>(); }, LIBRARY},
#endif
    {"copies", "the bytes that four passes and a count move", run_copies, LIMIT},
};

enum { UNIFORM, SKEWED, EQUAL, SORTED, REVERSED };
static const char *const fills[] = {"uniform", "skewed", "equal", "sorted", "reversed"};
static int only = BENCH_SIZE(0, 1); // --fill: 0: several data sets, else fills[only - 1]

int main(int argc, char **argv) {
    settings(argc, argv);
    for (Records *r : {&dev_in, &dev_other, &dev_out}) {
        bench_malloc(&r->keys, n * sizeof(unsigned));
        bench_malloc(&r->values, n * sizeof(unsigned));
    }
    bench_malloc(&dev_scratch, scratch_words() * sizeof(unsigned));
    bench_malloc(&dev_sums, scan_sums(scratch_words()) * sizeof(unsigned));
    bench_malloc(&dev_totals, sizeof(Totals));
    HANDLE_ERROR(cudaMemset(dev_totals, 0, sizeof(Totals)));

    for (int fill = UNIFORM; fill <= REVERSED; fill++) {
        if (only ? only - 1 != fill : fill > EQUAL)
            continue;
        fill_keys(fill);
        for (bool values : {false, true}) {
            if (values && !only && fill != UNIFORM)
                continue;
            with_values = values;
            bench.data = std::string(fills[fill]) + (values ? ", with values" : "");
            bench.footprint = (values ? 6 : 3) * n * sizeof(unsigned);
            bench_run(rungs);
        }
    }
    return bench_finish();
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    if (CPU_BACKEND) // a last tile that is not full
        n -= 5;
    configure(
        argc, argv, "Radix sort, from one bit per pass to decoupled look-back.", LADDER,
        {OPTION_SIZE("size", &n, 1, MOST, "keys to sort"),
         OPTION_WORD("fill", &only, "all|uniform|skewed|equal|sorted|reversed", "distribution of the keys"),
         OPTION_FLAG("signed", &is_signed, "sort ints instead of unsigned ints")});
    multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
    size_t bytes = n * sizeof(unsigned), cub = 2 * bytes + (64 << 20);
    require_memory(2 * bytes,
                   6 * bytes + (scratch_words() + scan_sums(scratch_words())) * sizeof(unsigned) + cub);
    bench.title = std::to_string(n) + (is_signed ? " ints" : " unsigned ints");
    bench.size = bench.work = n;
    bench.unit = "Gkeys/s";
    bench.left = [](const std::string &) { // by the copies
        std::vector<BenchLeft> left;
        for (Records to : {dev_other, dev_out}) {
            left.push_back({to.keys, dev_in.keys, n * sizeof(unsigned)});
            if (with_values)
                left.push_back({to.values, dev_in.values, n * sizeof(unsigned)});
        }
        return left;
    };
}

// What examine() finds. The hash is a sum over the keys that does not depend on their order.
enum { MISPLACED, HASH, WRONG_VALUES, COUNTS };
static unsigned long long hash_of_input;
__device__ static unsigned long long found[COUNTS];

// Mixes the bits of a key: the last step of MurmurHash3, an invertible function.
__device__ static unsigned mix(unsigned x) {
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    return x ^ x >> 16;
}

// Compares each key with the one before it.
__global__ void examine(Records sorted, const unsigned *in, bool ints, unsigned n) {
    unsigned long long hash = 0, misplaced = 0, wrong_values = 0;
    for (unsigned i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) {
        unsigned key = sorted.keys[i], left = i ? sorted.keys[i - 1] : key;
        misplaced += ints ? (int)key < (int)left : key < left;
        hash += (unsigned long long)mix(~key) * mix(key + 1);
        if (sorted.values) {
            unsigned value = sorted.values[i];
            bool ordered = i == 0 || left != key || sorted.values[i - 1] < value;
            wrong_values += !(value < n && in[value] == key && ordered);
        }
    }
    atomicAdd(&found[MISPLACED], misplaced);
    atomicAdd(&found[HASH], hash);
    atomicAdd(&found[WRONG_VALUES], wrong_values);
}

static void examine_on_device(Records sorted, unsigned long long *counts) {
    memset(counts, 0, sizeof found);
    HANDLE_ERROR(cudaMemcpyToSymbol(found, counts, sizeof found));
    unsigned blocks = min_of(16 * multiprocessors, (n + BLOCK - 1) / BLOCK);
    examine<<<blocks, BLOCK>>>(sorted, dev_in.keys, is_signed, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpyFromSymbol(counts, found, sizeof found));
}

// SKEWED: the bits of three random numbers and-ed, each bit is 1 once in eight times (Thearling and Smith,
// 1992). SORTED, REVERSED: keys of the whole range in equal steps. The value of each key is its index.
static void fill_keys(int fill) {
    std::vector<unsigned> keys(n), values(n);
    random_bytes(keys.data(), n * sizeof(unsigned));
    for (int more = 0; more < 2 && fill == SKEWED; more++) {
        random_bytes(values.data(), n * sizeof(unsigned));
        in_threads(n, [&](size_t begin, size_t end) {
            for (size_t i = begin; i < end; i++)
                keys[i] &= values[i];
        });
    }
    in_threads(n, [&, fill, one = keys[0]](size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++) {
            unsigned step = ((uint64_t)i << 32) / n ^ (is_signed ? 1u << 31 : 0);
            keys[i] = fill == EQUAL ? one : fill == SORTED ? step : fill == REVERSED ? ~step : keys[i];
            values[i] = i;
        }
    });
    HANDLE_ERROR(cudaMemcpy(dev_in.keys, keys.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_in.values, values.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
    unsigned long long counts[COUNTS];
    examine_on_device({dev_in.keys, NULL}, counts);
    hash_of_input = counts[HASH];
}

// The other array too, so that each pass must write all that the next one reads.
static void poison(void) {
    for (const Records &r : {dev_other, dev_out}) {
        HANDLE_ERROR(cudaMemset(r.keys, 0xff, n * sizeof(unsigned)));
        HANDLE_ERROR(cudaMemset(r.values, 0xff, n * sizeof(unsigned)));
    }
}

// On the device: no key is less than the one before it, and the hash of the output equals that of the input,
// so the output is a permutation of it. With values: in[value] is the key, and equal keys have
// increasing values. So every value occurs exactly once, and the sort is stable.
static bool check(const char *name, BenchError *) {
    unsigned long long got[COUNTS], right[COUNTS] = {0, hash_of_input, 0};
    examine_on_device({dev_out.keys, with_values ? dev_out.values : NULL}, got);
    std::string what = std::string(name) + ": misplaced keys, hash, wrong values";
    return check_counts(what.c_str(), got, right, COUNTS);
}
