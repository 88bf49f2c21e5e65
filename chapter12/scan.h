// SPDX-License-Identifier: MIT
// The exclusive scan (prefix sum) of scan.cu, for radix_sort.cu and sort_ladder.cu: out[i] = in[0] + … +
// in[i - 1], modulo 2^32, of any number of elements. Here each thread has 15 elements instead of one.
#pragma once

#include "../common/book.h"

const unsigned SCAN_THREADS = 256;
// Elements per thread. The number is odd, so that the lanes of a warp, each of which reads elements of its
// own in shared memory, use 32 different banks.
const unsigned SCAN_ITEMS = 15;
const unsigned SCAN_TILE = SCAN_THREADS * SCAN_ITEMS;

// Scans one tile, and stores its sum in sums[blockIdx.x]. `out` may be `in`.
__global__ void scan_tiles(const unsigned *in, unsigned *out, unsigned *sums, size_t n) {
    __shared__ unsigned tile[SCAN_TILE], cache[SCAN_THREADS];
    size_t first = (size_t)blockIdx.x * SCAN_TILE;
    // Neighbouring threads load neighbouring elements: coalesced accesses.
    for (unsigned i = threadIdx.x; i < SCAN_TILE; i += SCAN_THREADS)
        tile[i] = first + i < n ? in[first + i] : 0;
    __syncthreads();

    // Each thread adds SCAN_ITEMS elements that lie side by side.
    unsigned *mine = tile + threadIdx.x * SCAN_ITEMS, sum = 0;
    for (unsigned k = 0; k < SCAN_ITEMS; k++)
        sum += mine[k];

    // The threads scan their sums. After the step with distance d, cache[i] is the sum of the last 2d sums up
    // to thread i. All threads read before any thread writes.
    cache[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned distance = 1; distance < SCAN_THREADS; distance *= 2) {
        unsigned left = threadIdx.x >= distance ? cache[threadIdx.x - distance] : 0;
        __syncthreads();
        cache[threadIdx.x] += left;
        __syncthreads();
    }

    unsigned before = cache[threadIdx.x] - sum; // the sum of all elements to the left of this thread's
    for (unsigned k = 0; k < SCAN_ITEMS; k++) {
        unsigned x = mine[k];
        mine[k] = before;
        before += x;
    }
    if (threadIdx.x == SCAN_THREADS - 1)
        sums[blockIdx.x] = before;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < SCAN_TILE && first + i < n; i += SCAN_THREADS)
        out[first + i] = tile[i];
}

// Adds to each element of a tile the sum of all tiles before it.
__global__ void add_sums(unsigned *out, const unsigned *sums, size_t n) {
    size_t first = (size_t)blockIdx.x * SCAN_TILE;
    for (unsigned i = threadIdx.x; i < SCAN_TILE && first + i < n; i += SCAN_THREADS)
        out[first + i] += sums[blockIdx.x];
}

static inline size_t scan_blocks(size_t n) {
    return (n + SCAN_TILE - 1) / SCAN_TILE;
}

// Sums of tiles on all levels: of the n elements, of their sums, …, up to a level with one tile. The last of
// these sums is that of all n elements.
static inline size_t scan_sums(size_t n) {
    return scan_blocks(n) + (n > SCAN_TILE ? scan_sums(scan_blocks(n)) : 0);
}

// dev_sums: scan_sums(n) elements
static inline void scan(const unsigned *dev_in, unsigned *dev_out, unsigned *dev_sums, size_t n) {
    size_t blocks = scan_blocks(n);
    scan_tiles<<<blocks, SCAN_THREADS>>>(dev_in, dev_out, dev_sums, n);
    HANDLE_LAUNCH();
    if (blocks > 1) {
        scan(dev_sums, dev_sums, dev_sums + blocks, blocks);
        add_sums<<<blocks, SCAN_THREADS>>>(dev_out, dev_sums, n);
        HANDLE_LAUNCH();
    }
}
