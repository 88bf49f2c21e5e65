// SPDX-License-Identifier: MIT
// The time of a kernel alone, after warm-up, and times by the host's clock. Chapter 6 shows the events that
// the first is measured with.
#pragma once

#include <algorithm>
#include <chrono>
#include "book.h"

const int TIMED_RUNS = 11;

// The median of what `run` returns, the milliseconds of a run. After one warm-up run come TIMED_RUNS timed
// runs, or as many as fit into 0.1 s, but at least one. If the first run takes over 0.1 s, its own time is
// returned, because the effect of a warm-up is small then.
template <class Run> double median_of_runs(Run run) {
    double ms[TIMED_RUNS], total = 0;
    int runs = 0;
    for (bool warm = false; !warm || (runs < TIMED_RUNS && total < 100); warm = true) {
        ms[runs] = run();
        if (warm || ms[runs] > 100)
            total += ms[runs++];
    }
    std::nth_element(ms, ms + runs / 2, ms + runs);
    return ms[runs / 2];
}

// The median time of a launch in milliseconds, between two events in the default stream. `launch` launches
// the kernel; this function calls HANDLE_LAUNCH().
//
//     float ms = median_ms([&] { kernel<<<blocks, threads>>>(dev_c, n); });
//
// `reset` runs before each launch and is not timed; for kernels that add to their output.
template <class Launch, class Reset> float median_ms(Launch launch, Reset reset) {
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    float median = median_of_runs([&] {
        float ms;
        reset();
        HANDLE_ERROR(cudaEventRecord(start));
        launch();
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaEventRecord(stop));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
        return ms;
    });
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return median;
}
template <class Launch> float median_ms(Launch launch) {
    return median_ms(launch, [] {});
}

// The milliseconds until work() has returned, by the host's clock
template <class Work> double host_ms(Work work) {
    auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// The median over several runs
template <class Work> double median_host_ms(Work work) {
    return median_of_runs([&] { return host_ms(work); });
}
