// SPDX-License-Identifier: MIT
// The kernels of sort_ladder.cu for digits of four and of eight bits.
#ifndef CHAPTER12_SORT_TILES_H
#define CHAPTER12_SORT_TILES_H

#include "../common/book.h"
#include "../common/ptx.h" // load_relaxed(), store_relaxed()

const unsigned BLOCK = 256;                       // threads per block with four bits
const unsigned ITEMS_4 = 16;                      // keys per thread with four bits
const unsigned PASSES = 4;                        // of eight bits each
const unsigned DIGITS = 256;                      // values of a digit; a block has one thread for each
const unsigned ITEMS = 32, TILE = DIGITS * ITEMS; // keys per thread and per block
const unsigned HALVES = DIGITS / 16;              // half-warps of DIGITS threads
const unsigned LOOKING = DIGITS / 4;              // additional threads per block for the look-back
const unsigned WINDOW = 4;                        // loads that each of them has in flight
const unsigned COUNTERS = 1024;                   // threads per block of the histogram kernel count_all()
const unsigned ALL_LANES = 0xffffffff;

struct Records {
    unsigned *keys, *values; // values: NULL in a sort of keys alone
};

// The digit of a pass: a group of bits of the key. `flip` inverts the sign bit of signed keys, so that
// negative keys sort before positive ones.
struct Digit {
    unsigned shift, flip;
};

template <unsigned digits> __device__ static unsigned digit_of(unsigned key, Digit digit) {
    return (key ^ digit.flip) >> digit.shift & (digits - 1);
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

// ---- digits of four bits

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

// Rung 1: each thread has ITEMS_4 consecutive keys and its own counter for each digit. An exclusive prefix
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

// ---- digits of eight bits: a block sorts a tile of keys by a digit in shared memory. Then it writes the
// sorted tile to global memory. Keys with the same digit go to consecutive addresses, so the stores are
// coalesced.

// What a block keeps in shared memory
struct Tile {
    alignas(16) unsigned words[HALVES][DIGITS]; // per half-warp and digit: counter << 16 | mask of lanes
    unsigned counts[DIGITS];
    unsigned offsets[DIGITS];          // output index minus index in the sorted tile, per digit
    unsigned number;                   // of this tile
    unsigned common;                   // count << 8 | most frequent digit; 0 if no digit is frequent
    unsigned keys[TILE], values[TILE]; // sorted; `values` is allocated only if needed
};

// Decoupled look-back (Merrill and Garland, 2016): for each tile a row of DIGITS words in global memory, each
// with a count of 30 bits and a flag of 2 bits that says which keys it counts.
const unsigned AGGREGATE = 1u << 30; // the keys of this tile
const unsigned PREFIX = 2u << 30; // inclusive prefix: also those of all tiles before and with smaller digits
const unsigned FLAGS = 3u << 30;  // mask; 0: the count is not written yet

// Counts the digits of each half-warp. Then thread d replaces the counts of digit d by an exclusive prefix
// sum: for each half-warp, the index in the sorted tile of its first key with that digit.
__device__ static void count_tile(Tile &tile, const unsigned *key, unsigned *row, Digit digit) {
    unsigned d = threadIdx.x, before[HALVES], count = 0;
    for (unsigned i = 0; i < ITEMS && d < DIGITS; i++)
        atomicAdd(&tile.words[d / 16][digit_of<DIGITS>(key[i], digit)], 1);
    __syncthreads();
    for (unsigned h = 0; h < HALVES && d < DIGITS; h++) {
        before[h] = count;
        count += tile.words[h][d];
    }
    if (row && d < DIGITS)
        store_relaxed(&row[d], AGGREGATE | count);
    unsigned index = exclusive_sum(count);
    for (unsigned h = 0; h < HALVES && d < DIGITS; h++)
        tile.words[h][d] = (index + before[h]) << 16;
    if (d < DIGITS) {
        tile.counts[d] = count;
        tile.offsets[d] = -index;
    }
    if (count > TILE / 8)
        atomicMax(&tile.common, count << 8 | d);
}

// How a lane finds the other lanes of its half-warp with the same digit:
enum Method {
    MATCH,  // by __match_any_sync(), whose time grows with the number of different digits
    ATOMIC, // by atomicOr(): each lane sets its bit in the word of its digit
    COMMON  // the same, but lanes with the most frequent digit use a warp vote to avoid contention
};

// Stores the keys and values in sorted order in shared memory. A half-warp stores 16 keys at a time. The
// index of a key is the counter of its digit plus the number of lower lanes with the same digit. The highest
// of these lanes adds their number to the counter and clears the mask.
template <Method method, bool with_values>
__device__ static void sort_tile(Tile &tile, const unsigned *key, const unsigned *value, Digit digit) {
    unsigned bit = 1u << threadIdx.x % 16, upper = threadIdx.x & 16, common = tile.common % DIGITS;
    for (unsigned i = 0; i < ITEMS; i++) {
        unsigned d = digit_of<DIGITS>(key[i], digit), *word = &tile.words[threadIdx.x / 16][d], lanes = 0;
        bool found = method == MATCH || (method == COMMON && d == common);
        if (method == MATCH)
            lanes = __match_any_sync(ALL_LANES, d);
        if (method == COMMON)
            lanes = __ballot_sync(ALL_LANES, found);
        if (!found)
            atomicOr(word, bit);
        __syncwarp();
        unsigned w = *word | (found ? lanes >> upper & 0xffff : 0);
        unsigned index = (w >> 16) + __popc(w & (bit - 1));
        __syncwarp();
        if ((w & 0xffff) < 2 * bit) // there is no higher lane
            *word = (index + 1) << 16;
        __syncwarp();
        tile.keys[index] = key[i];
        if (with_values)
            tile.values[index] = value[i];
    }
}

// Decoupled look-back: computes the exclusive prefix sum of the tile's counts. It adds the rows of the
// preceding tiles, the nearest first. A row with the flag AGGREGATE has the counts of its tile. The first row
// with the flag PREFIX has an inclusive prefix sum, of its tile and all tiles before it, and is the last that
// is added. The row before the first tile has this flag and counts the keys with smaller digits.
// Tiles are numbered in the order in which their blocks start, so this waits only for blocks that run
// already, and there is no deadlock. A word has both flag and count, so no memory fence is needed. Each
// thread adds the counts of four digits.
__device__ static void look_back(Tile &tile, unsigned *row) {
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

// One block per tile. Without a ticket, `counts` has the output index of the first key of each digit and
// tile. With a ticket, it has the rows for the look-back, WINDOW of them before the first tile.
template <Method method, bool with_values>
__global__ void __launch_bounds__(DIGITS + LOOKING, with_values ? 2 : 3)
    scatter_8_bits(Records from, Records to, unsigned *counts, unsigned *ticket, Digit digit, unsigned n) {
    extern __shared__ uint4 memory[];
    Tile &tile = *(Tile *)memory;
    const unsigned thread = threadIdx.x;
    const bool sorts = thread < DIGITS; // the others look back
    for (unsigned h = 0; h < HALVES && sorts; h++)
        tile.words[h][thread] = 0;
    if (thread == 0) {
        tile.number = ticket ? atomicAdd(ticket, 1) : blockIdx.x;
        tile.common = 0;
    }
    __syncthreads();

    // Each half-warp has a part of the tile. The last tile is padded with keys that sort after all others.
    const unsigned size = min(TILE, n - tile.number * TILE), first = thread / 16 * 16 * ITEMS + thread % 16;
    unsigned key[ITEMS], value[ITEMS], *row = ticket ? counts + (tile.number + WINDOW) * DIGITS : NULL;
    for (unsigned i = 0; i < ITEMS && sorts; i++) {
        bool inside = size == TILE || first + 16 * i < size;
        key[i] = inside ? from.keys[tile.number * TILE + first + 16 * i] : ~digit.flip;
        if (with_values)
            value[i] = inside ? from.values[tile.number * TILE + first + 16 * i] : 0;
    }
    count_tile(tile, key, row, digit);
    if (!ticket)
        tile.offsets[thread] += counts[thread * gridDim.x + tile.number];
    __syncthreads();
    if (!sorts)
        look_back(tile, row);
    else if (method == ATOMIC && tile.common)
        sort_tile<COMMON, with_values>(tile, key, value, digit);
    else
        sort_tile<method, with_values>(tile, key, value, digit);
    __syncthreads();
#pragma unroll // so that loads of several keys are in flight
    for (unsigned k = 0; k < ITEMS; k++) {
        unsigned i = k * DIGITS + thread;
        if (sorts && (size == TILE || i < size)) {
            unsigned sorted = tile.keys[i], to_index = tile.offsets[digit_of<DIGITS>(sorted, digit)] + i;
            to.keys[to_index] = sorted;
            if (with_values)
                to.values[to_index] = tile.values[i];
        }
    }
}

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

#endif
