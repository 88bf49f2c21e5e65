// SPDX-License-Identifier: MIT
// Check of the dot product of a[i] = i and b[i] = 2 i, which chapters 5 and 11 and appendix A compute.
#pragma once

#include "../book.h"

// The vectors
static inline void fill_dot(float *a, float *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        b[i] = 2 * (a[i] = i);
}

// 2 (0² + 1² + … + x²) = x (x + 1) (2x + 1) / 3, with x = n - 1
static inline double expected_dot(size_t n) {
    double x = n - 1.0;
    return x * (x + 1) * (2 * x + 1) / 3;
}

// Compares a dot product in float with the closed form. `additions` is the largest number of
// additions between a product and the result. No product is negative, so each rounding changes the
// sum by at most 2^-24 of it. Besides the additions three values are rounded: a[i] and b[i] (from
// 2^24 on) and the product.
static inline bool check_dot(const char *name, float c, size_t n, double additions) {
    return check_value(name, c, expected_dot(n), (3 + additions) * 0x1p-24);
}

// Stores ones in both vectors of the device, n elements each, and returns their dot product. The first
// products of fill_dot() are smaller than the tolerance, so a sum without them would pass; of ones each
// product adds 1. The elements from 2^24 on are 0, so that the sum is exact in float.
static inline double fill_ones(float *dev_a, float *dev_b, size_t n) {
    HostArray<float> ones(n);
    for (size_t i = 0; i < n; i++)
        ones[i] = i < 1 << 24;
    for (float *to : {dev_a, dev_b})
        HANDLE_ERROR(cudaMemcpy(to, ones, n * sizeof(float), cudaMemcpyHostToDevice));
    return min_of(n, 1 << 24);
}

// The additions for check_dot in the kernel of section 5.3.1: those of a thread, of the tree reduction
// in its block (log2 of the threads), and of the host, which adds the partial sums of the blocks.
static inline double tree_additions(size_t n, int blocks, int threads) {
    return ceil(n / ((double)blocks * threads)) + log2(threads) + blocks;
}
