// SPDX-License-Identifier: MIT
/*
 * matmul_cpu: the product of two matrices in three loops on the host
 *
 * Teaches: Each element of a product is the sum over a row of a and a column of b. Matrices lie in
 *          memory row by row, so the order of the three loops decides whether b is read along its
 *          rows or, with --columns, down its columns, where every step is a cache line of its own.
 * Book:    5.3.1 (course, product of matrices 1)
 * Run:     ./bin/chapter05/matmul_cpu --columns
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../common/book.h"
#include "../common/memory.h"

#define WIDTH 1024

// Along the rows: all terms with a[row][k] at once, added to a row of c.
static void multiply_rows(const float *a, const float *b, float *c, size_t n) {
    for (size_t row = 0; row < n; row++) {
        for (size_t col = 0; col < n; col++)
            c[row * n + col] = 0;
        for (size_t k = 0; k < n; k++)
            for (size_t col = 0; col < n; col++)
                c[row * n + col] += a[row * n + k] * b[k * n + col];
    }
}

// As the formula has it, and as each thread of matmul_gmem does: one element after the other.
static void multiply_columns(const float *a, const float *b, float *c, size_t n) {
    for (size_t row = 0; row < n; row++)
        for (size_t col = 0; col < n; col++) {
            float sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += a[row * n + k] * b[k * n + col];
            c[row * n + col] = sum;
        }
}

// Whole numbers from -most to most, with most so small that no sum of n products passes 2^24. A
// float holds all of these: nothing is ever rounded, and a result is right to the last bit or
// wrong.
static void fill(float *matrix, size_t n) {
    int most = sqrt(0x1p24 / n);
    for (size_t i = 0; i < n * n; i++)
        matrix[i] = (int)(random_bits() % (2 * most + 1)) - most;
}

// Shows what is wrong in a row of c, computed anew in double.
static void show_row(const float *a, const float *b, const float *c, size_t row, size_t n) {
    double *expected = (double *)calloc(n, sizeof(double));
    HANDLE_NULL(expected);
    for (size_t k = 0; k < n; k++)
        for (size_t col = 0; col < n; col++)
            expected[col] += (double)a[row * n + k] * b[k * n + col];
    char name[32];
    snprintf(name, sizeof name, "c[%zu]", row);
    check_floats(name, &c[row * n], expected, n, 0);
    free(expected);
}

// Checks all of c without computing it again (R. Freivalds, 1977): when c is a * b, then c * x is
// a * (b * x) for every vector x. In whole numbers modulo 2^64 and with 64 random bits in each
// element of x, a row with anything wrong in it passes with a chance of less than 2^-38.
static bool check(const float *a, const float *b, const float *c, size_t n) {
    uint64_t *x = (uint64_t *)big_random_block(n * sizeof(uint64_t));
    uint64_t *bx = (uint64_t *)calloc(n, sizeof(uint64_t));
    HANDLE_NULL(bx);
    for (size_t k = 0; k < n; k++)
        for (size_t col = 0; col < n; col++)
            bx[k] += (int64_t)b[k * n + col] * x[col];
    bool ok = true;
    for (size_t row = 0; row < n && ok; row++) {
        uint64_t expected = 0, got = 0;
        for (size_t k = 0; k < n && ok; k++) {
            float element = c[row * n + k];
            ok = fabsf(element) <= 0x1p24f && element == truncf(element); // false for NaN
            got += (int64_t)(ok ? element : 0) * x[k];
            expected += (int64_t)a[row * n + k] * bx[k];
        }
        ok = ok && got == expected;
        if (!ok)
            show_row(a, b, c, row, n);
    }
    free(x);
    free(bx);
    return ok;
}

int main(int argc, char **argv) {
    size_t n = WIDTH;
    bool columns = false;
    const Option own[] = {OPTION_SIZE("size", &n, 1, 65535, "width of the matrices"),
                          OPTION_FLAG("columns", &columns, "read b down its columns"), OPTION_END};
    parse_options(argc, argv, "Multiplies two matrices on the host.", HOST_ONLY | TIMES, own);
    select_device();

    size_t bytes = n * n * sizeof(float);
    require_memory(3 * bytes, 0);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(c);
    fill(a, n);
    fill(b, n);

    struct timespec start, stop;
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (columns)
        multiply_columns(a, b, c, n);
    else
        multiply_rows(a, b, c, n);
    clock_gettime(CLOCK_MONOTONIC, &stop);
    double ms = (stop.tv_sec - start.tv_sec) * 1e3 + (stop.tv_nsec - start.tv_nsec) / 1e6;

    // A product and an addition for each of n * n elements and each of n terms
    double flop = 2.0 * n * n * n;
    printf("Time to multiply:  %.3f ms, %.2f GFLOP/s\n", ms, flop / ms / 1e6);
    inject_error(c, bytes);
    bool ok = check(a, b, c, n);
    if (ok)
        printf("The product of the %zu x %zu matrices is right.\n", n, n);

    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
