// SPDX-License-Identifier: MIT
// What matmul_gmem and matmul_shared share below their "check" line: input and check, the time of the kernel,
// and the option --cpu. The matrices have n x n elements.
#pragma once

#include "../common/checks/product.h"
#include "../common/checks/runs.h"

// Launches the kernel, with checks.
static void launch(const float *dev_a, const float *dev_b, float *dev_c);

static inline void fill_matrix(float *matrix) {
    fill_matrix(matrix, n * n, n);
}

static inline bool check_product(const float *a, const float *b, const float *c) {
    bool ok = check_product(a, b, c, n, n, n);
    if (ok)
        printf("The product of the %zu x %zu matrices is right.\n", n, n);
    return ok;
}

// Times the kernel, and prints its rate, with a product and an addition for each of n terms of n * n
// elements, and what the bandwidth of device memory would allow if both floats of each step came from there.
// The measured rate is higher, since caches and shared memory serve most of the reads.
static inline void time_kernel(const float *dev_a, const float *dev_b, float *dev_c) {
    double ms = median_ms([&] { launch(dev_a, dev_b, dev_c); });
    double rate = 2.0 * n * n * n / ms / 1e6;
    int clock = device_attribute(cudaDevAttrMemoryClockRate); // in kHz; two transfers a cycle
    int bits = device_attribute(cudaDevAttrGlobalMemoryBusWidth);
    double bound = 2.0 * clock * 1e3 * bits / 8 / sizeof(float) / 1e9; // 2 operations for 2 floats
    printf("Kernel:            %.3f ms, %.1f GFLOP/s\n", ms, rate);
    if (bound > 0)
        printf("If every operand came from memory: %.1f GFLOP/s; measured: %.2f times that\n", bound,
               rate / bound);
    else
        printf("If every operand came from memory: unknown, as the bandwidth is not known\n");
}

// The product on the host. The inner loop runs down a column of b, as in each thread of a kernel.
static inline void multiply_on_host(const float *a, const float *b, float *c) {
    for (size_t i = 0; i < n * n; i++) {
        const float *of_a = &a[i - i % n], *of_b = &b[i % n];
        float sum = 0;
        for (; of_b < b + n * n; of_b += n)
            sum += *of_a++ * *of_b;
        c[i] = sum;
    }
}

static inline int compare_with_cpu(void) {
    HostArray<float> a(n * n), b(n * n), c(n * n);
    fill_matrix(a);
    fill_matrix(b);
    auto device = [&] {
        DeviceArray<float> dev_a(a, n * n), dev_b(b, n * n), dev_c(n * n);
        launch(dev_a, dev_b, dev_c);
        HANDLE_ERROR(cudaMemcpy(c, dev_c, n * n * sizeof(float), cudaMemcpyDeviceToHost));
    };
    return compare_runs(
        "three loops on one core", device, [&] { multiply_on_host(a, b, c); },
        [&] {
            bool ok = check_product(a, b, c, n, n, n);
            memset(c, 0xff, n * n * sizeof(float)); // NaN, so a later check cannot find this product
            return ok;
        });
}
