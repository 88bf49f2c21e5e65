// SPDX-License-Identifier: MIT
// The time of a kernel alone, after warm-up. Chapter 6 shows the events that it is measured with.
#pragma once

#include <algorithm>
#include "book.h"

const int TIMED_RUNS = 11;

// The median time of a launch in milliseconds, between two events in the default stream. After one
// warm-up run come TIMED_RUNS timed runs, or as many as fit into 0.1 s, but at least one. If the first run
// takes over 0.1 s, its own time is returned, because the effect of a warm-up is small then. `launch`
// launches the kernel; this function calls HANDLE_LAUNCH().
//
//     float ms = median_ms([&] { kernel<<<blocks, threads>>>(dev_c, n); });
//
// `reset` runs before each launch and is not timed; for kernels that add to their output.
template <class Launch, class Reset> float median_ms(Launch launch, Reset reset) {
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    float ms[TIMED_RUNS], total = 0;
    int runs = 0;
    for (bool warm = false; !warm || (runs < TIMED_RUNS && total < 100);) {
        reset();
        HANDLE_ERROR(cudaEventRecord(start));
        launch();
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaEventRecord(stop));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&ms[runs], start, stop));
        if (warm || ms[runs] > 100)
            total += ms[runs++];
        warm = true;
    }
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    std::nth_element(ms, ms + runs / 2, ms + runs);
    return ms[runs / 2];
}
template <class Launch> float median_ms(Launch launch) {
    return median_ms(launch, [] {});
}
