// SPDX-License-Identifier: MIT
// The option --cpu: the comparison of the course, five runs with the device beside five runs without it.
#pragma once

#include "../book.h"
#include "../timing.h"

#define WITH_CPU "five runs on the device beside five on the host, which can be slow"

// Prints the times of the runs and their means. `device` computes the result once on the device, with
// allocation and copies, and `host` does so without the device, as `how` says. `check` compares the result of
// the last run and then overwrites it; it is not timed. Returns the exit status.
template <class Device, class Host, class Check>
int compare_runs(const char *how, Device device, Host host, Check check) {
    const int RUNS = 5;
    double mean[2] = {0, 0};
    bool ok = true;
    printf("device: with allocation and copies; host: %s\n", how);
    printf("run        device           host   host / device\n");
    for (int run = 1; run <= RUNS; run++) {
        double ms[2];
        for (int side = 0; side < 2; side++) {
            ms[side] = side == 0 ? host_ms(device) : host_ms(host);
            mean[side] += ms[side] / RUNS;
            ok = check() && ok;
        }
        printf("%-4d %9.3f ms   %9.3f ms   %13.2f\n", run, ms[0], ms[1], ms[1] / ms[0]);
    }
    printf("mean %9.3f ms   %9.3f ms   %13.2f\n", mean[0], mean[1], mean[1] / mean[0]);
    if (ok)
        printf("The results of all %d runs are right.\n", 2 * RUNS);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
