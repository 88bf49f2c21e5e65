// SPDX-License-Identifier: MIT
// What the times of chapter 13 are compared with: the limit of the device, measured in the same run, and the
// fastest program of this suite for the same work.
#pragma once

#include "../timing.h"

// The rate of a copy within device memory in GB/s, as many bytes read as written. It is measured once, with
// 128 MiB or a quarter of the free memory.
static inline double copy_rate(void) {
    static double rate = 0;
    size_t available, total;
    HANDLE_ERROR(cudaMemGetInfo(&available, &total));
    size_t bytes = min_of((size_t)128 << 20, available / 8) / 16 * 16;
    if (rate == 0) {
        DeviceArray<char> from(bytes, 0), to(bytes);
        float ms = median_ms([&] {
            HANDLE_ERROR(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice)); // a kernel
        });
        rate = 2.0 * bytes / ms / 1e6;
    }
    return rate;
}

// The time in microseconds of a copy of a plate within device memory, one of 90 in a row. A step of the heat
// simulation reads and writes as many bytes.
static inline double plate_copy_us(float *to, const float *from, size_t cells) {
    float ms = median_ms([=] {
        for (int i = 0; i < 90; i++)
            HANDLE_ERROR(cudaMemcpyAsync(to, from, cells * sizeof(float), cudaMemcpyDeviceToDevice));
    });
    return 1e3 * ms / 90;
}

// Prints a time, its rate, and the share of the rate of a copy. What the caches hold can be faster than that.
static inline void print_share(const char *name, double ms, double bytes) {
    double rate = bytes / ms / 1e6;
    printf("%-28s %.4f ms, %.1f GB/s, %.0f %% of a copy\n", name, ms, rate, 100 * rate / copy_rate());
}
