// SPDX-License-Identifier: MIT
// Below the ruler of both histograms on the device: the time of the kernel alone, --blocks, --fill, and
// --sweep, which compares many numbers of blocks. Both programs share it, so that their times can be
// compared.
#pragma once

#include <chrono>
#include <numeric>
#include <set>
#include "../common/timing.h"
#include "hist.h"

// No 32-bit bin of a block overflows if each block counts at most 2 GiB.
static inline unsigned least_blocks(void) {
    return (size >> 31) + 1;
}

typedef void HistogramKernel(const unsigned char *buffer, size_t size, unsigned long long *histo);

// Prints the time of the kernel alone. Compares the bins of the last timed run with those of main's run.
static inline bool time_kernel(HistogramKernel *kernel, unsigned blocks, const unsigned char *dev_buffer,
                               unsigned long long *dev_histo, const unsigned long long *histo) {
    const size_t bytes = BINS * sizeof(unsigned long long);
    float ms = median_ms([&] { kernel<<<blocks, BINS>>>(dev_buffer, size, dev_histo); },
                         [&] { HANDLE_ERROR(cudaMemset(dev_histo, 0, bytes)); });
    printf("Kernel:            %.3f ms, %.3f GB/s\n", ms, size / ms / 1e6);
    HostArray<unsigned long long> again(dev_histo, BINS);
    return check_counts("bin of the last run", again, histo, BINS);
}

// For --blocks and --fill: counts as main does. Returns the exit status.
static inline int count_bytes(HistogramKernel *kernel, unsigned blocks) {
    unsigned char *buffer = make_data();
    auto start = std::chrono::steady_clock::now();
    DeviceArray<unsigned char> dev_buffer(buffer, size);
    DeviceArray<unsigned long long> dev_histo(BINS, 0);
    kernel<<<blocks, BINS>>>(dev_buffer, size, dev_histo);
    HANDLE_LAUNCH();
    HostArray<unsigned long long> histo(dev_histo, BINS);
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    printf("Time to generate:  %3.1f ms\n", elapsed.count());
    bool ok = time_kernel(kernel, blocks, dev_buffer, dev_histo, histo);
    unsigned long long sum = std::accumulate(+histo, histo + BINS, 0ULL);
    printf("Histogram Sum:  %llu\n", sum);
    ok = check_histogram(histo, buffer, sum) && ok;
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// For --sweep: times the kernel with one block, with numbers in proportion to the multiprocessors, and with
// one byte for each thread. Checks each histogram. Returns the exit status.
static inline int sweep_blocks(HistogramKernel *kernel) {
    const size_t multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
    const size_t most = (size + BINS - 1) / BINS;
    std::set<size_t> numbers;
    for (float times : {0.0f, 0.5f, 1.0f, 2.0f, 4.0f, 8.0f, 32.0f, INFINITY})
        numbers.insert(std::clamp<double>(multiprocessors * times, least_blocks(), min_of(most, INT_MAX)));

    unsigned char *buffer = make_data();
    DeviceArray<unsigned char> dev_buffer(buffer, size);
    DeviceArray<unsigned long long> dev_histo(BINS);
    printf("%zu multiprocessors\n", multiprocessors);
    bool ok = true;
    size_t best = 0;
    float best_ms = INFINITY;
    for (size_t blocks : numbers) {
        float ms =
            median_ms([&] { kernel<<<(unsigned)blocks, BINS>>>(dev_buffer, size, dev_histo); },
                      [&] { HANDLE_ERROR(cudaMemset(dev_histo, 0, BINS * sizeof(unsigned long long))); });
        printf("%9zu blocks, %10.1f bytes a thread: %9.3f ms, %8.3f GB/s\n", blocks,
               (double)size / (blocks * BINS), ms, size / ms / 1e6);
        ok = check_histogram(HostArray<unsigned long long>(dev_histo, BINS), buffer) && ok;
        if (ms < best_ms) {
            best = blocks;
            best_ms = ms;
        }
    }
    printf("Fastest: %zu blocks, %.3g times the multiprocessors\n", best, (double)best / multiprocessors);
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With --sweep, --blocks or --fill the program ends here. If the bins of a block have 32 bits, it also ends
// here with data for which twice as many blocks as multiprocessors are too few.
static inline void hist_gpu_settings(int argc, char **argv, const char *doc, HistogramKernel *kernel,
                                     bool bins_of_32_bits) {
    bool sweep = false;
    int blocks = 0;
    hist_settings(argc, argv, doc, TIMES,
                  OPTION_INT("blocks", &blocks, 1, INT_MAX, "blocks; twice the multiprocessors if not given"),
                  OPTION_FLAG("sweep", &sweep, "compare many numbers of blocks"));
    if (sweep)
        exit(sweep_blocks(kernel));
    unsigned usual = device_attribute(cudaDevAttrMultiProcessorCount) * 2;
    unsigned least = bins_of_32_bits ? least_blocks() : 1;
    if (blocks || fill != RANDOM || usual < least)
        exit(count_bytes(kernel, max_of(blocks ? blocks : usual, least)));
}
