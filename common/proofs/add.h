// SPDX-License-Identifier: MIT
// The vectors that chapters 4 and 5 add, how their sums are printed, and the check of them.
#ifndef COMMON_PROOFS_ADD_H
#define COMMON_PROOFS_ADD_H

#include "../book.h"

// a[i] = sign * k and b[i] = k * k, where k is i; after 46340, the last k whose square fits an int, k
// starts again at 0. `sign` is 1 or -1.
static inline void fill_vectors(int *a, int *b, size_t n, int sign) {
    for (size_t i = 0; i < n; i++) {
        int k = i % 46341;
        a[i] = sign * k;
        b[i] = k * k;
    }
}

// Prints a line for each sum; of more than 20 the first and the last five.
static inline void print_sums(const int *a, const int *b, const int *c, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (n > 20 && i == 5) {
            printf("... %zu more ...\n", n - 10);
            i = n - 5;
        }
        printf("%d + %d = %d\n", a[i], b[i], c[i]);
    }
}

// Compares the sums with k * (k + sign), which is sign * k + k * k.
static inline bool check_sums(const char *name, const int *c, size_t n, int sign) {
    int *expected = host_array<int>(n);
    for (size_t i = 0; i < n; i++) {
        int k = i % 46341;
        expected[i] = k * (k + sign);
    }
    bool ok = check_ints(name, c, expected, n);
    free(expected);
    return ok;
}

#endif
