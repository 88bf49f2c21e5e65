// SPDX-License-Identifier: MIT
/*
 * event_timing: timing a kernel with a host clock and with events
 *
 * Teaches: A launch is asynchronous: it returns before the kernel has run, so the host's clock measures only
 *          the call if the host does not wait for the device. If it waits, the time includes the overhead of
 *          the launch. Events are recorded by the device and measure the kernel, and work of the host between
 *          them; only when both are recorded can the time be read. The first launch also loads the kernel's
 *          code and takes longer by every clock, so it serves as warm-up.
 * Terms:   event, elapsed time, asynchronous launch, synchronization, launch overhead, warm-up,
 *          median, default stream
 * Book:    6.3 (after the book); C 2 (events)
 * Build:   nvcc -o event_timing chapter06/event_timing.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter06/event_timing --rounds 1000
 * Check:   --size 20000 --rounds 37
 */
#include <time.h>
#include "../common/book.h"

#define N      (1024 * 1024)
#define ROUNDS 100
#define RUNS   11
#define MORE   3  // launches after these
#define HOST   10 // milliseconds of work of the host

// One step of a linear congruential generator: x -> A * x + C modulo 2^32
// ("Numerical Recipes in C", 2nd edition, section 7.1)
#define A 1664525u
#define C 1013904223u

// The three times of a launch. By the host's clock, from the call until it has RETURNED, and until the kernel
// is DONE; by the device's clock, between the two EVENTS.
enum { RETURNED, DONE, EVENTS, CLOCKS };

static size_t n = N;        // --size
static int rounds = ROUNDS; // --rounds
static double median(const double times[RUNS][CLOCKS], int clock);
static bool check(unsigned *x, const unsigned *result);
static bool check_times(const double times[CLOCKS]);

__global__ void kernel(unsigned *x, size_t n, int rounds) {
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (tid >= n)
        return;
    unsigned value = x[tid];
    for (int i = 0; i < rounds; i++)
        value = A * value + C;
    x[tid] = value;
}

// Milliseconds on the host's monotonic clock, which a change of the system's time does not affect.
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

// On the CPU back end a kernel runs before its launch returns, so there the three times are alike.
static void time_launch(unsigned *dev_x, double times[CLOCKS]) {
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaDeviceSynchronize()); // earlier work must not be measured

    double begin = now();
    HANDLE_ERROR(cudaEventRecord(start, 0)); // stream 0: the default stream, which the launch uses too
    kernel<<<(n + 255) / 256, 256>>>(dev_x, n, rounds);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    times[RETURNED] = now() - begin;          // the kernel may still be running
    HANDLE_ERROR(cudaEventSynchronize(stop)); // waits until the device has recorded it
    times[DONE] = now() - begin;

    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    times[EVENTS] = elapsedTime;
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
}

// Two mistakes: the host works between the events, and reads the time without cudaEventSynchronize().
static void show_mistakes(unsigned *dev_x) {
    cudaEvent_t start, stop;
    float elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));
    for (double begin = now(); now() - begin < HOST;)
        ; // in place of work: the device has nothing to do
    for (int i = 0; i < MORE; i++)
        kernel<<<(n + 255) / 256, 256>>>(dev_x, n, rounds);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    // The CPU back end runs a kernel in its launch, unless CUDA_CPU_STREAMS=late is set: cudaSuccess.
    cudaError_t early = cudaEventElapsedTime(&elapsedTime, start, stop);
    if (early != cudaErrorNotReady)
        HANDLE_ERROR(early);
    cudaGetLastError(); // cudaErrorNotReady is no failure: the next HANDLE_LAUNCH() must not report it
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Read without cudaEventSynchronize(): %s\n", cudaGetErrorName(early));
    printf("%d launches after %d ms of work of the host: %.3f ms between the events\n", MORE, HOST,
           elapsedTime);
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
}

static void print_times(const char *name, double returned, double done, double events) {
    printf("%-22s %10.3f ms %10.3f ms %10.3f ms\n", name, returned, done, events);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned *x = (unsigned *)malloc(n * sizeof(unsigned)), *dev_x;
    unsigned *result = (unsigned *)malloc(n * sizeof(unsigned));
    HANDLE_NULL(x && result);
    random_bytes(x, n * sizeof(unsigned));
    HANDLE_ERROR(cudaMalloc(&dev_x, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMemcpy(dev_x, x, n * sizeof(unsigned), cudaMemcpyHostToDevice));

    double first[CLOCKS] = {}, later[RUNS][CLOCKS] = {};
    time_launch(dev_x, first);
    for (int i = 0; i < RUNS; i++)
        time_launch(dev_x, later[i]);

    double events = median(later, EVENTS);
    printf("%22s %13s %13s %13s\n", "", "host: call", "host: waited", "events");
    print_times("first launch", first[RETURNED], first[DONE], first[EVENTS]);
    print_times("median of later ones", median(later, RETURNED), median(later, DONE), events);
    // Each step has two operations, a multiplication and an addition.
    printf("Kernel: %.3f ms, %.1f Gop/s\n", events, 2.0 * n * rounds / events / 1e6);

    show_mistakes(dev_x);
    HANDLE_ERROR(cudaMemcpy(result, dev_x, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    printf("x[0] has gone from %u to %u in %d launches\n", x[0], result[0], 1 + RUNS + MORE);
    bool ok = check(x, result) && check_times(first) && check_times(later[RUNS - 1]);
    HANDLE_ERROR(cudaFree(dev_x));
    free(x);
    free(result);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Times a kernel with the host's clock and with events.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements of the array"),
               OPTION_INT("rounds", &rounds, 1, INT_MAX, "steps of each element in a launch")});
    require_memory(3 * n * sizeof(unsigned), n * sizeof(unsigned));
}

static double median(const double times[RUNS][CLOCKS], int clock) {
    double sorted[RUNS];
    for (int i = 0; i < RUNS; i++)
        sorted[i] = times[i][clock];
    std::sort(sorted, sorted + RUNS);
    return sorted[RUNS / 2];
}

static const double started = now(); // the program

// Whether all times were measured. Waiting takes a while even if the kernel is done. The time by events has
// no lower limit but 0, because other programs may delay the host and so make its times longer. The upper
// limit is twice the host's time, because the clocks of host and device are not exactly equal.
static bool check_times(const double times[CLOCKS]) {
    bool by_host = times[RETURNED] > 0 && times[RETURNED] < times[DONE] && times[DONE] < now() - started;
    bool by_device = times[EVENTS] > 0 && times[EVENTS] < 2 * times[DONE];
    return check_value("times were measured", by_host && by_device, 1, 0);
}

// Compares the elements with those of x after the steps of all launches, which together are one step
// x -> a * x + c. Overwrites x.
static bool check(unsigned *x, const unsigned *result) {
    unsigned a = 1, c = 0;
    for (long long step = 0; step < (long long)rounds * (1 + RUNS + MORE); step++) {
        a = 1664525 * a;
        c = 1664525 * c + 1013904223;
    }
    for (size_t i = 0; i < n; i++)
        x[i] = a * x[i] + c;
    bool ok = check_ints("x", (const int *)result, (const int *)x, n);
    if (ok)
        printf("All %zu elements are right.\n", n);
    return ok;
}

// Task: kernel(): One thread per element of x: the thread replaces its element by the result of `rounds`
// iterations of value = A * value + C, in unsigned arithmetic, where value starts as the element. Threads
// with a global index >= n do nothing.
// time_launch(): Create two events, and destroy them at the end. Wait until all earlier work on the device
// has finished. Then take the start time from now(), record the first event in stream 0, launch kernel for n
// elements with blocks of 256 threads, check the launch, and record the second event in stream 0. Store the
// milliseconds since the start time in times[RETURNED], and, after waiting for the second event, in
// times[DONE]. Store the elapsed time between the two events in times[EVENTS].
// show_mistakes(): Two mistakes, which are printed. Between two events, the host waits HOST milliseconds by
// now(), and launches kernel MORE times. Keep the status that cudaEventElapsedTime() returns before any wait:
// cudaErrorNotReady is expected, and cudaGetLastError() clears it. Then wait for the second event, read the
// time again without an error, and print cudaGetErrorName() of the first status, and the time.
