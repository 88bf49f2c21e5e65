// SPDX-License-Identifier: MIT
/*
 * matmul_cpu: matrix product in three loops on the host
 *
 * Teaches: Each element of a matrix product is the dot product of a row of a and a column of b. Matrices are
 *          stored row by row, so the order of the loops decides how the inner loop reads b: with a stride of
 *          one element or, with --columns, with a stride of a row. With the longer stride every step reads a
 *          new cache line.
 * Terms:   matrix product, stride, cache line, host
 * Book:    5.3.1 (course); C 4.2.1 (on the CPU)
 * After:   chapter05/bank_conflicts
 * Build:   nvcc -o matmul_cpu chapter05/matmul_cpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/matmul_cpu --columns
 * Check:   --size 50 | --size 33 --columns
 */
#include <time.h>
#include "../common/book.h"
#include "../common/checks/product.h" // fill_matrix(), check_product()

#define WIDTH 1024

static size_t n = WIDTH; // --size, the rows and columns of a matrix
static bool columns;     // --columns

// The inner loop runs down a column of b, as in the formula: c[row][col] is the sum of a[row][k] * b[k][col].
static void multiply_columns(const float *a, const float *b, float *c) {
    for (size_t row = 0; row < n; row++)
        for (size_t col = 0; col < n; col++) {
            float sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += a[row * n + k] * b[k * n + col];
            c[row * n + col] = sum;
        }
}

// The inner loop runs along a row of b and of c: it adds the terms with a[row][k] to a row of c.
static void multiply_rows(const float *a, const float *b, float *c) {
    for (size_t row = 0; row < n; row++) {
        for (size_t col = 0; col < n; col++)
            c[row * n + col] = 0;
        for (size_t k = 0; k < n; k++)
            for (size_t col = 0; col < n; col++)
                c[row * n + col] += a[row * n + k] * b[k * n + col];
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = n * n * sizeof(float);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
    HANDLE_NULL(a && b && c);
    fill_matrix(a, n * n, n); // random whole numbers, so small that no sum of n products is rounded
    fill_matrix(b, n * n, n);

    struct timespec start, stop;
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (columns)
        multiply_columns(a, b, c);
    else
        multiply_rows(a, b, c);
    clock_gettime(CLOCK_MONOTONIC, &stop);
    double ms = (stop.tv_sec - start.tv_sec) * 1e3 + (stop.tv_nsec - start.tv_nsec) / 1e6;
    // A product and an addition for each of n terms, in each of n * n elements
    printf("Time to multiply:  %.3f ms, %.2f GFLOP/s\n", ms, 2.0 * n * n * n / ms / 1e6);
    bool ok = check_product(a, b, c, n, n, n);
    if (ok)
        printf("The product of the %zu x %zu matrices is right.\n", n, n);

    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include <malloc.h>

void settings(int argc, char **argv) {
    configure(argc, argv, "Multiplies two matrices on the host.", HOST_ONLY | TIMES,
              {OPTION_SIZE("size", &n, 1, 65535, "width of the matrices"),
               OPTION_FLAG("columns", &columns, "read b down its columns")});
    require_memory(3 * n * n * sizeof(float), 0);
#ifdef M_PERTURB // malloc() fills memory with other bytes than 0, so c is right only if it is cleared
    mallopt(M_PERTURB, 1);
#endif
}

// Task: multiply_columns(): Compute the product below with the loop over k as the innermost one: it runs
// along a row of a and down a column of b.
// multiply_rows(): Compute the matrix product c = a * b. The matrices are n x n and row-major: element
// (row, col) is at index row * n + col. Choose the order of the three loops so that the innermost loop runs
// along a row of b and a row of c: initialize a row of c to zero, then, for each k, add the products of
// element (row, k) of a and the elements of row k of b to it.
