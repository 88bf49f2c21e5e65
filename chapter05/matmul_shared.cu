// SPDX-License-Identifier: MIT
/*
 * matmul_shared: the product of two matrices by tiles in shared memory
 *
 * Teaches: The threads of a block need the same rows of a and columns of b. They fetch them
 *          together, a tile of 32 x 32 at a time, and each number that was read once from global
 *          memory is used 32 times. Two barriers a tile keep fetching and using apart.
 * Book:    5.3.1 (course, product of matrices 3)
 * Run:     ./bin/chapter05/matmul_shared --size 2000
 * Differs: any width, not only multiples of 32: tiles are filled up with zeros
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/book.h"
#include "../common/memory.h"

#define WIDTH 1024
#define TILE  32 // threads a side of a block
#define RUNS  11

__global__ void matmul(const float *a, const float *b, float *c, size_t n) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    size_t col = x + blockIdx.x * TILE;
    size_t row = y + blockIdx.y * TILE;

    float sum = 0;
    for (size_t first = 0; first < n; first += TILE) {
        // Zeros where a tile reaches beyond the edge: they add nothing.
        tile_a[y][x] = row < n && first + x < n ? a[row * n + first + x] : 0;
        tile_b[y][x] = first + y < n && col < n ? b[(first + y) * n + col] : 0;
        __syncthreads(); // before anyone reads what another has fetched

        for (unsigned k = 0; k < TILE; k++)
            sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads(); // before anyone overwrites what another still reads
    }
    if (row < n && col < n)
        c[row * n + col] = sum;
}

static void launch(const float *dev_a, const float *dev_b, float *dev_c, size_t n) {
    dim3 blocks((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), threads(TILE, TILE);
    matmul<<<blocks, threads>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
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

// The kernel alone, warm, in milliseconds: the median of RUNS runs, or of those that half a second
// has room for.
static float time_kernel(cudaEvent_t start, cudaEvent_t stop, const float *dev_a,
                         const float *dev_b, float *dev_c, size_t n) {
    float ms[RUNS], total = 0;
    int runs = 0;
    while (runs < RUNS && total < 500) {
        HANDLE_ERROR(cudaEventRecord(start));
        launch(dev_a, dev_b, dev_c, n);
        HANDLE_ERROR(cudaEventRecord(stop));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&ms[runs], start, stop));
        total += ms[runs++];
    }
    std::nth_element(ms, ms + runs / 2, ms + runs);
    return ms[runs / 2];
}

int main(int argc, char **argv) {
    size_t n = WIDTH;
    const Option own[] = {OPTION_SIZE("size", &n, 1, 65535, "width of the matrices"), OPTION_END};
    parse_options(argc, argv, "Multiplies two matrices by tiles in shared memory.", TIMES, own);
    select_device();

    size_t bytes = n * n * sizeof(float);
    require_memory(3 * bytes, 3 * bytes);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(c);
    fill(a, n);
    fill(b, n);
    float *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, bytes));

    cudaEvent_t start, before, after, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&before));
    HANDLE_ERROR(cudaEventCreate(&after));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaEventRecord(before));
    launch(dev_a, dev_b, dev_c, n);
    HANDLE_ERROR(cudaEventRecord(after));
    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventRecord(stop));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    inject_error(c, bytes);
    bool ok = check(a, b, c, n);

    float ms;
    HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
    printf("Time to multiply:  %.1f ms, with copies\n", ms);
    HANDLE_ERROR(cudaEventElapsedTime(&ms, before, after));
    if (ms < 1000) {                                  // longer ones need no warming up
        HANDLE_ERROR(cudaMemset(dev_c, 0xff, bytes)); // NaN
        ms = time_kernel(start, stop, dev_a, dev_b, dev_c, n);
        HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));
        ok = ok && check(a, b, c, n);
    }
    // A product and an addition for each of n * n elements and each of n terms
    double flop = 2.0 * n * n * n;
    printf("Kernel:            %.3f ms, %.1f GFLOP/s\n", ms, flop / ms / 1e6);
    printf("Reads of each element from global memory: %zu\n", (n + TILE - 1) / TILE);
    if (ok)
        printf("The product of the %zu x %zu matrices is right.\n", n, n);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(before));
    HANDLE_ERROR(cudaEventDestroy(after));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
