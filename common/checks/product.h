// SPDX-License-Identifier: MIT
// Input and check of a matrix product c = a * b, of m x k and k x n elements stored by rows, for chapters 5
// and 12.
#pragma once

#include <string>
#include "../book.h"

// Whole numbers from -most to most except 0, with most so small that no sum of k products exceeds 2^24. A
// float represents every whole number up to 2^24 exactly, so no operation rounds, and all correct kernels
// compute the same bits.
static inline void fill_matrix(float *matrix, size_t elements, size_t k) {
    int most = sqrt(0x1p24 / k);
    for (size_t i = 0; i < elements; i++) {
        int number = (int)(random_bits() % (2 * most)) - most;
        matrix[i] = number + (number >= 0);
    }
}

// Checks all of c with about as many multiplications as the matrices have elements (R. Freivalds, 1977): if
// c = a * b, then c * x = a * (b * x) for every vector x. In whole numbers modulo 2^64 and with 64 random
// bits in each element of x, a row of c with an error passes with a probability of less than 2^-38. If all
// elements of a or b are 0, so is every product, whatever the kernel does: then the input was never filled.
static inline bool check_product(const float *a, const float *b, const float *c, size_t m, size_t n,
                                 size_t k) {
    HostArray<uint64_t> x(n), bx(k);
    HostArray<unsigned long long> got(m), expected(m);
    random_bytes(x, n * sizeof(uint64_t));
    for (size_t i = 0; i < k; i++) {
        bx[i] = 0;
        for (size_t col = 0; col < n; col++)
            bx[i] += (int64_t)b[i * n + col] * x[col];
    }
    for (size_t row = 0; row < m; row++) {
        bool whole = true; // no element is NaN, too large or a fraction
        got[row] = expected[row] = 0;
        for (size_t col = 0; col < n; col++) {
            float element = c[row * n + col];
            whole = whole && fabsf(element) <= 0x1p24f && element == truncf(element);
            got[row] += (int64_t)(whole ? element : 0) * x[col];
        }
        for (size_t i = 0; i < k; i++)
            expected[row] += (int64_t)a[row * k + i] * bx[i];
        if (!whole)
            got[row] = expected[row] + 1;
    }
    auto filled = [](float element) { return element != 0; };
    bool ok = check_value("a and b are filled",
                          std::any_of(a, a + m * k, filled) && std::any_of(b, b + k * n, filled), 1, 0);
    ok = check_counts("c * x", got, expected, m) && ok;
    size_t row = std::mismatch(+got, got + m, +expected).first - got;
    if (row < m) // shows its wrong elements
        check_floats(("c[" + std::to_string(row) + "]").c_str(), &c[row * n], n, 0, [&](size_t col) {
            double sum = 0;
            const float *of_b = &b[col];
            for (const float *of_a = &a[row * k]; of_a < &a[(row + 1) * k]; of_a++, of_b += n)
                sum += (double)*of_a * *of_b;
            return sum;
        });
    return ok;
}
