// SPDX-License-Identifier: MIT
// The size of this chapter's matrix products, and below the line their matrices and the check of the
// product.
#pragma once

#include "../common/book.h"
#include "../common/checks/product.h"
#include "../common/checks/runs.h"

#define WIDTH 1000

static size_t n = WIDTH; // --size: rows and columns of the matrices

// The inner loop runs down a column of b, as in the formula and as in each thread of matmul_gmem.
static inline void multiply_columns(const float *a, const float *b, float *c) {
    for (size_t row = 0; row < n; row++)
        for (size_t col = 0; col < n; col++) {
            float sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += a[row * n + k] * b[k * n + col];
            c[row * n + col] = sum;
        }
}

// A product and an addition for each of n terms, in each of n * n elements.
static inline double matmul_operations(void) {
    return 2.0 * n * n * n;
}

// ---------------------------------------------------------------------------------------- check

// Prints what the bandwidth of device memory would allow if both floats of each step came from there. The
// measured rate is higher, since caches and shared memory serve most of the reads.
static inline void print_bound(double ms) {
    int clock = device_attribute(cudaDevAttrMemoryClockRate); // in kHz; two transfers a cycle
    int bits = device_attribute(cudaDevAttrGlobalMemoryBusWidth);
    double bound = 2.0 * clock * 1e3 * bits / 8 / sizeof(float) / 1e9; // 2 operations for 2 floats
    if (clock > 0 && bits > 0)
        printf("If every operand came from memory: %.1f GFLOP/s; measured: %.2f times that\n", bound,
               matmul_operations() / ms / 1e6 / bound);
    else
        printf("If every operand came from memory: unknown, as the bandwidth is not known\n");
}

static inline void fill_matrix(float *matrix) {
    fill_matrix(matrix, n * n, n);
}
// Overwrites c after the comparison, so that a later one cannot find this product again.
static inline bool check_product(const float *a, const float *b, float *c) {
    bool ok = check_product(a, b, c, n, n, n);
    memset(c, 0xff, n * n * sizeof(float)); // NaN
    return ok;
}

// --cpu. `launch` launches the kernel for three device arrays.
template <class Launch> int compare_with_cpu(Launch launch) {
    HostArray<float> a(n * n), b(n * n), c(n * n);
    fill_matrix(a);
    fill_matrix(b);
    auto device = [&] {
        DeviceArray<float> dev_a(a, n * n), dev_b(b, n * n), dev_c(n * n);
        launch(dev_a, dev_b, dev_c);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(c, dev_c, n * n * sizeof(float), cudaMemcpyDeviceToHost));
    };
    return compare_runs(
        "three loops on one core", device, [&] { multiply_columns(a, b, c); },
        [&] { return check_product(a, b, c); });
}
