// SPDX-License-Identifier: MIT
// For dot_mpi: vectors whose elements are functions of the seed and the index, so that each rank can generate
// its part alone, and their exact dot product.
#ifndef CHAPTER11_EXACT_DOT_H
#define CHAPTER11_EXACT_DOT_H

#include "../common/book.h"

// The elements of each block of 2^24 indices have every pair of 12-bit numbers once, in an order that
// depends on the seed and on the block. So the sum over a block has a closed form. An offset makes the sums
// of neighbouring blocks differ, so a block that is added twice in place of another one is noticed.
const uint64_t BLOCK = 1 << 24;

__host__ __device__ static unsigned offset_of(uint64_t block) {
    return 64 * (block % 61);
}

// The elements with index i of both vectors
__host__ __device__ static void element(size_t i, uint64_t seed, float *a, float *b) {
    uint64_t block = i / BLOCK;
    uint64_t key = (seed + block + 1) * 0x9e3779b97f4a7c15;
    key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9;
    uint32_t x = i % BLOCK;
    for (int round = 0; round < 3; round++) { // each step maps the numbers below 2^24 one to one
        x = (x * ((uint32_t)(key >> 8 * round) | 1) + (uint32_t)(key >> 32)) % BLOCK;
        x ^= x >> 13;
    }
    *a = ((x >> 12) + offset_of(block)) / 4096.0f;
    *b = (x & 4095) / 4096.0f;
}

// ---------------------------------------------------------------------------------------- proof

// The exact dot product of the first `count` elements. Whole blocks: the sum of all products of two 12-bit
// numbers, and of the products with the offset. The products are whole multiples of 2^-24.
static inline double exact_dot(size_t count, uint64_t seed) {
    const uint64_t numbers = 4096 * 4095 / 2; // 0 + 1 + … + 4095
    uint64_t sum = 0;
    for (uint64_t block = 0; block < count / BLOCK; block++)
        sum += numbers * numbers + offset_of(block) * 4096 * numbers;
    for (size_t i = count / BLOCK * BLOCK; i < count; i++) {
        float a, b;
        element(i, seed, &a, &b);
        sum += (uint64_t)(a * 4096) * (uint64_t)(b * 4096);
    }
    return sum * 0x1p-24;
}

#endif
