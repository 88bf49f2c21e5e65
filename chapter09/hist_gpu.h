// SPDX-License-Identifier: MIT
// Below the ruler of both histograms on the device: the options, the time of the kernel alone, the check, and
// --sweep, which compares many numbers of blocks. Both programs share it, so that their times can be
// compared.
#pragma once

#include <set>
#include "../common/timing.h"
#include "hist.h"

extern int blocks; // --blocks
extern bool sweep; // --sweep; every program defines both

typedef void HistogramKernel(const unsigned char *buffer, size_t size, unsigned long long *histo);

// No 32-bit bin of a block overflows if each block counts at most 2 GiB.
static inline int least_blocks(void) {
    return (size >> 31) + 1;
}

static inline void hist_gpu_settings(int argc, char **argv, const char *doc) {
    hist_settings(argc, argv, doc, TIMES,
                  OPTION_INT("blocks", &blocks, 1, INT_MAX, "blocks; twice the multiprocessors if not given"),
                  OPTION_FLAG("sweep", &sweep, "compare many numbers of blocks"));
}

static inline float time_kernel(HistogramKernel *kernel, int number, const unsigned char *dev_buffer,
                                unsigned long long *dev_histo) {
    return median_ms([&] { kernel<<<number, BINS>>>(dev_buffer, size, dev_histo); },
                     [&] { HANDLE_ERROR(cudaMemset(dev_histo, 0, BINS * sizeof(unsigned long long))); });
}

// Prints the time of the kernel alone. Compares the bins with the reference, and those of the last timed run
// with them.
static inline bool check(HistogramKernel *kernel, const unsigned char *dev_buffer,
                         unsigned long long *dev_histo, const unsigned char *buffer,
                         const unsigned long long *histo, unsigned long long histoCount) {
    float ms = time_kernel(kernel, blocks, dev_buffer, dev_histo);
    printf("Kernel:            %.3f ms, %.3f GB/s\n", ms, size / ms / 1e6);
    HostArray<unsigned long long> again(dev_histo, BINS);
    return check_histogram(histo, buffer, histoCount) &&
           check_counts("bin of the last run", again, histo, BINS);
}

// For --sweep: times the kernel with one block, with numbers in proportion to the multiprocessors, and with
// one byte for each thread. Checks each histogram. Returns the exit status.
static inline int sweep_blocks(HistogramKernel *kernel) {
    const size_t multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
    const size_t most = (size + BINS - 1) / BINS;
    std::set<int> numbers;
    for (float times : {0.0f, 0.5f, 1.0f, 2.0f, 4.0f, 8.0f, 32.0f, INFINITY})
        numbers.insert(std::clamp<double>(multiprocessors * times, least_blocks(), min_of(most, INT_MAX)));

    unsigned char *buffer = (unsigned char *)big_random_block(size);
    fill_bytes(buffer);
    DeviceArray<unsigned char> dev_buffer(buffer, size);
    DeviceArray<unsigned long long> dev_histo(BINS);
    printf("%zu multiprocessors\n", multiprocessors);
    bool ok = true;
    int best = 0;
    float best_ms = INFINITY;
    for (int number : numbers) {
        float ms = time_kernel(kernel, number, dev_buffer, dev_histo);
        printf("%9d blocks, %10.1f bytes a thread: %9.3f ms, %8.3f GB/s\n", number,
               (double)size / ((double)number * BINS), ms, size / ms / 1e6);
        ok = check_histogram(HostArray<unsigned long long>(dev_histo, BINS), buffer, size) && ok;
        if (ms < best_ms) {
            best = number;
            best_ms = ms;
        }
    }
    printf("Fastest: %d blocks, %.3g times the multiprocessors\n", best, (double)best / multiprocessors);
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
