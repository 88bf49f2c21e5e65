// SPDX-License-Identifier: MIT
// Vector addition of chapters 4 and 5: output and check of the sums. The inputs are a[i] = sign * k and
// b[i] = k * k with k = i % 46341: 46340 is the largest number whose square fits an int. `sign` is 1 or -1.
#pragma once

#include "../book.h"

// Prints one line per sum; with more than 20 sums, the first and the last five.
static inline void print_sums(const int *a, const int *b, const int *c, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (n > 20 && i == 5) {
            printf("... %zu more ...\n", n - 10);
            i = n - 5;
        }
        printf("%d + %d = %d\n", a[i], b[i], c[i]);
    }
}

// Compares the sums with the closed form k * (k + sign) = sign * k + k * k.
static inline bool check_sums(const char *name, const int *c, size_t n, int sign) {
    return check_ints(name, c, n, [=](size_t i) {
        int k = i % 46341;
        return k * (k + sign);
    });
}
