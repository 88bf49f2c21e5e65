// SPDX-License-Identifier: MIT
// The check of the dot product of a[i] = i and b[i] = 2 i, which chapters 5 and 11 and appendix A
// compute.
#ifndef COMMON_PROOFS_DOT_H
#define COMMON_PROOFS_DOT_H

#include "../book.h"

// 2 (0² + 1² + … + x²) = x (x + 1) (2x + 1) / 3, with x = n - 1
static inline double expected_dot(size_t n) {
    double x = n - 1.0;
    return x * (x + 1) * (2 * x + 1) / 3;
}

// Compares a dot product in float with the closed form. `additions` is the number of additions that a
// product goes through on its way to the result. No product is negative, so a rounding costs at most
// 2^-24 of the sum; to the additions come three: of a[i] and b[i] (from 2^24 on) and of the product.
static inline bool check_dot(const char *name, float c, size_t n, double additions) {
    return check_value(name, c, expected_dot(n), (3 + additions) * 0x1p-24);
}

// For check_dot: the additions that a product goes through in the kernel of 5.3.1, in its thread, in the
// tree of its block (log2 of the threads) and on the host, which adds the partial sums of the blocks.
static inline double tree_additions(size_t n, int blocks, int threads) {
    return ceil(n / ((double)blocks * threads)) + log2(threads) + blocks;
}

#endif
