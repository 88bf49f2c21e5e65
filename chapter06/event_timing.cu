// SPDX-License-Identifier: MIT
/*
 * event_timing: three clocks for one kernel
 *
 * Teaches: A launch only puts a kernel in line, so a host clock that does not wait for the device
 *          measures the call and not the kernel; one that waits measures both. Events are stamped
 *          by the device and leave the host out, but the first launch, which loads the kernel's
 *          code onto the device, is slow by every clock: warm up before measuring.
 * Book:    6.3
 * Run:     ./bin/chapter06/event_timing --rounds 1000
 */
#include <algorithm>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../common/book.h"
#include "../common/memory.h"

#define N      (1024 * 1024)
#define ROUNDS 100
#define RUNS   11

// One step of a linear congruential generator: x -> A * x + C modulo 2^32
// (D. Knuth, "The Art of Computer Programming", vol. 2, 3.3.4)
#define A 1664525u
#define C 1013904223u

enum { RETURNED, DONE, EVENTS, CLOCKS };

__global__ void kernel(unsigned *x, size_t n, int rounds) {
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (tid >= n)
        return;
    unsigned value = x[tid];
    for (int i = 0; i < rounds; i++)
        value = A * value + C;
    x[tid] = value;
}

// A number of steps at once is x -> a * x + c again, and two such maps make one of twice as many
// steps: the reference needs 32 doublings where the device takes all the steps.
static void leap(uint64_t steps, unsigned *a, unsigned *c) {
    unsigned power_a = A, power_c = C;
    *a = 1;
    *c = 0;
    for (; steps > 0; steps /= 2) {
        if (steps % 2 == 1) {
            *a *= power_a;
            *c = power_a * *c + power_c;
        }
        power_c = power_a * power_c + power_c;
        power_a *= power_a;
    }
}

// Milliseconds on the host's clock, which nobody sets back
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void time_launch(unsigned *dev_x, size_t n, int rounds, double times[CLOCKS]) {
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaDeviceSynchronize()); // what came before must not be in the measure

    // The CPU back end runs a kernel before the launch returns, so there the three times are one.
    double begin = now();
    HANDLE_ERROR(cudaEventRecord(start, 0));
    kernel<<<(n + 255) / 256, 256>>>(dev_x, n, rounds);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    times[RETURNED] = now() - begin;
    HANDLE_ERROR(cudaEventSynchronize(stop));
    times[DONE] = now() - begin;

    float elapsed;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsed, start, stop));
    times[EVENTS] = elapsed;
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
}

static double median(const double times[RUNS][CLOCKS], int clock) {
    double sorted[RUNS];
    for (int i = 0; i < RUNS; i++)
        sorted[i] = times[i][clock];
    std::sort(sorted, sorted + RUNS);
    return sorted[RUNS / 2];
}

static void print_times(const char *name, double returned, double done, double events) {
    printf("%-22s %10.3f ms %10.3f ms %10.3f ms\n", name, returned, done, events);
}

int main(int argc, char **argv) {
    size_t n = N;
    int rounds = ROUNDS;
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements of the array"),
        OPTION_INT("rounds", &rounds, 1, INT_MAX, "steps that each element takes in a launch"),
        OPTION_END};
    parse_options(argc, argv, "Times a kernel with the host's clock and with events.", TIMES, own);
    select_device();
    size_t bytes = n * sizeof(unsigned);
    require_memory(3 * bytes, bytes);

    unsigned *x = (unsigned *)big_random_ints(n);
    unsigned *result = (unsigned *)malloc(bytes);
    HANDLE_NULL(result);
    unsigned *dev_x;
    HANDLE_ERROR(cudaMalloc((void **)&dev_x, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_x, x, bytes, cudaMemcpyHostToDevice));

    double first[CLOCKS], later[RUNS][CLOCKS];
    time_launch(dev_x, n, rounds, first);
    for (int i = 0; i < RUNS; i++)
        time_launch(dev_x, n, rounds, later[i]);

    double events = median(later, EVENTS);
    printf("%22s %13s %13s %13s\n", "", "host: call", "host: waited", "events");
    print_times("first launch", first[RETURNED], first[DONE], first[EVENTS]);
    print_times("median of later ones", median(later, RETURNED), median(later, DONE), events);
    // A step is a multiplication and an addition.
    printf("Kernel: %.3f ms, %.1f Gop/s\n", events, 2.0 * n * rounds / events / 1e6);

    HANDLE_ERROR(cudaMemcpy(result, dev_x, bytes, cudaMemcpyDeviceToHost));
    inject_error(result, bytes);
    printf("x[0] has gone from %u to %u in %d launches\n", x[0], result[0], 1 + RUNS);
    unsigned a, c;
    leap((uint64_t)rounds * (1 + RUNS), &a, &c);
    for (size_t i = 0; i < n; i++)
        x[i] = a * x[i] + c;
    bool ok = check_ints("x", (int *)result, (int *)x, n);
    if (ok)
        printf("All %zu elements are right.\n", n);

    HANDLE_ERROR(cudaFree(dev_x));
    free(x);
    free(result);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
