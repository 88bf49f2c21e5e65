// SPDX-License-Identifier: MIT
// How many blocks the two histograms on the device use: --blocks, and --sweep, which compares many numbers.
// Both programs share it, so that their sweeps can be compared.
#ifndef CHAPTER09_HIST_GPU_H
#define CHAPTER09_HIST_GPU_H

#include <vector>
#include "../common/timing.h"
#include "hist.h"

static int blocks_given = 0; // --blocks; 0: not given

// No 32-bit bin of a block overflows if each block counts at most 2 GiB.
static inline unsigned least_blocks(void) {
    return (size >> 31) + 1;
}

// ---------------------------------------------------------------------------------------- proof

typedef void HistogramKernel(const unsigned char *buffer, size_t size, unsigned long long *histo);

// Compares the bins of the last timed run with those of the first one, which have been checked.
static inline bool check_last_run(const unsigned long long *again, const unsigned long long *histo) {
    return check_counts("bin of the last run", again, histo, BINS);
}

// For --sweep: times the kernel with one block, with numbers in proportion to the multiprocessors, and with
// one byte for each thread. Checks each histogram. Returns the exit status.
static inline int sweep_blocks(HistogramKernel *kernel) {
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    const size_t multiprocessors = prop.multiProcessorCount, most = (size + BINS - 1) / BINS;
    std::vector<size_t> numbers = {1, multiprocessors / 2, most};
    for (int times : {1, 2, 4, 8, 32})
        numbers.push_back(multiprocessors * times);
    for (size_t &blocks : numbers)
        blocks = min_of(max_of(blocks, least_blocks()), min_of(most, INT_MAX));
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());

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

// With --sweep the program ends here.
static inline void hist_gpu_settings(int argc, char **argv, const char *doc, HistogramKernel *kernel) {
    bool sweep = false;
    hist_settings(
        argc, argv, doc, TIMES,
        OPTION_INT("blocks", &blocks_given, 1, INT_MAX, "blocks; twice the multiprocessors if not given"),
        OPTION_FLAG("sweep", &sweep, "compare many numbers of blocks"));
    if (sweep)
        exit(sweep_blocks(kernel));
}

#endif
