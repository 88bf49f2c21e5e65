// SPDX-License-Identifier: MIT
/*
 * copy_timed: the bandwidth of copies from pageable and from page-locked memory
 *
 * Teaches: The copy engine reads and writes page-locked (pinned) host memory by DMA, because the operating
 *          system does not move its pages. Pageable memory is first copied to a page-locked staging buffer
 *          of the driver, which takes longer. Page-locked memory costs, too: no other program can use it, so
 *          lock no more than is copied. Write-combined memory is for data that only the device reads, because
 *          reads by the host can be very slow.
 * Terms:   page-locked memory, pageable memory, DMA, staging buffer, copy engine, bandwidth, cudaHostAlloc,
 *          write-combined memory
 * Book:    10.2
 * Build:   nvcc -o copy_timed chapter10/copy_timed.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter10/copy_timed
 * Differs: also write-combined memory, both directions at once, and how fast the host writes and reads each
 *          kind of memory; what was copied is verified. --pin pins memory, at most a quarter of what is
 *          available, and prints what is left. On the CPU back end 10 copies are timed, not 100.
 * Check:   --size 20000 --iterations 5 | --pin 65536
 */
#include "../common/book.h"

#define SIZE (10 * 1024 * 1024)

static size_t n = SIZE;                     // --size, ints to copy
static int copies = CPU_BACKEND ? 10 : 100; // --iterations
static size_t pin;                          // --pin, bytes
static bool ok = true;                      // false when check_copy() has found a wrong copy
static void fill(int *a, int *dev_a, bool up);
static void check_copy(const char *name, int *a, int *dev_a, bool up);
static void check_kind(const void *a, bool pinned);
static void print_host_rates(void);
static void test_both_directions(void);
static void test_write_combined(void);

// Pageable memory: copies to the device if `up`, to the host otherwise. Returns milliseconds.
static float cuda_malloc_test(size_t size, bool up) {
    cudaEvent_t start, stop;
    int *a, *dev_a;
    float elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    a = (int *)malloc(size * sizeof(int));
    HANDLE_NULL(a);
    HANDLE_ERROR(cudaMalloc(&dev_a, size * sizeof(int)));
    fill(a, dev_a, up); // random numbers where the copies read

    HANDLE_ERROR(cudaEventRecord(start, 0));
    for (int i = 0; i < copies; i++) {
        if (up)
            HANDLE_ERROR(cudaMemcpy(dev_a, a, size * sizeof(int), cudaMemcpyHostToDevice));
        else
            HANDLE_ERROR(cudaMemcpy(a, dev_a, size * sizeof(int), cudaMemcpyDeviceToHost));
    }
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    check_copy("pageable", a, dev_a, up);

    free(a);
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return elapsedTime;
}

// The same with page-locked memory.
static float cuda_host_alloc_test(size_t size, bool up) {
    cudaEvent_t start, stop;
    int *a, *dev_a;
    float elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaHostAlloc(&a, size * sizeof(int), cudaHostAllocDefault));
    HANDLE_ERROR(cudaMalloc(&dev_a, size * sizeof(int)));
    fill(a, dev_a, up);

    HANDLE_ERROR(cudaEventRecord(start, 0));
    for (int i = 0; i < copies; i++) {
        if (up)
            HANDLE_ERROR(cudaMemcpy(dev_a, a, size * sizeof(int), cudaMemcpyHostToDevice));
        else
            HANDLE_ERROR(cudaMemcpy(a, dev_a, size * sizeof(int), cudaMemcpyDeviceToHost));
    }
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    check_copy("pinned", a, dev_a, up);

    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return elapsedTime;
}

// The bandwidth is what all copies have copied, in units of 2^20 bytes, by the time that they took.
static void print_rate(const char *way, float elapsedTime) {
    float MB = (float)copies * n * sizeof(int) / 1024 / 1024;
    printf("  %-28s %9.3f ms, %d copies\n", way, elapsedTime, copies);
    printf("  %28s %9.1f MB/s\n", "", MB / (elapsedTime / 1000));
}

// Prints the memory that is available to all programs of the machine, in units of 2^20 bytes.
static void print_available(const char *after, size_t bytes) {
    char line[128];
    double MB = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    HANDLE_NULL(file);
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %lf", &MB) == 1)
            break;
    fclose(file);
    printf("%-14s %8.0f MB: %10.0f MB are available\n", after, bytes / 1024.0 / 1024.0, MB / 1024);
}

// Pageable memory is used when it is written, and the system can move it to a disk when other programs need
// memory. Page-locked memory is used from the allocation on, and stays. Returns the exit status.
static int pin_memory(void) {
    print_available("at first", 0);
    char *pageable = (char *)malloc(pin), *pinned[4];
    HANDLE_NULL(pageable);
    print_available("malloc", pin);
    memset(pageable, 1, pin);
    print_available("written", pin);
    check_kind(pageable, false);
    free(pageable);
    for (int i = 0; i < 4; i++) {
        HANDLE_ERROR(cudaHostAlloc(&pinned[i], pin / 4, cudaHostAllocDefault));
        print_available("cudaHostAlloc", pin / 4 * (i + 1));
        check_kind(pinned[i], true);
    }
    for (int i = 0; i < 4; i++)
        HANDLE_ERROR(cudaFreeHost(pinned[i]));
    print_available("cudaFreeHost", 0);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (pin)
        return pin_memory();
    float elapsedTime;
    printf("%.3f MB\n", n * sizeof(int) / 1024.0 / 1024.0);

    printf("Pageable memory\n");
    elapsedTime = cuda_malloc_test(n, true);
    print_rate("up, to the device:", elapsedTime);
    elapsedTime = cuda_malloc_test(n, false);
    print_rate("down, to the host:", elapsedTime);
    print_host_rates();

    printf("Pinned memory\n");
    elapsedTime = cuda_host_alloc_test(n, true);
    print_rate("up, to the device:", elapsedTime);
    elapsedTime = cuda_host_alloc_test(n, false);
    print_rate("down, to the host:", elapsedTime);
    print_host_rates();

    test_both_directions();
    test_write_combined();
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include <numeric>            // accumulate()
#include "../common/timing.h" // host_ms()

static int *source;              // random ints, which all tests copy
static double read_ms, write_ms; // of the host, in the memory that was tested last
static int checked;              // how many tests of that memory have called check_copy(): 2 in all

void settings(int argc, char **argv) {
    parse_options(argc, argv, "Times copies to the device and back.", TIMES,
                  {OPTION_SIZE("size", &n, 1, 1LL << 40, "ints to copy"),
                   OPTION_INT("iterations", &copies, 1, 1000000, "copies that are timed"),
                   OPTION_SIZE("pin", &pin, 4096, 1LL << 40, "bytes to pin, and what the host has left")});
    if (pin) // nothing is timed
        options.uses &= ~TIMES;
    select_device();
    require_memory(4 * n * sizeof(int), 3 * n * sizeof(int));
    require_memory(4 * pin, 0); // so that the host keeps three quarters of what it has
    source = big_random_ints(n);
}

// Stores random numbers in the array that the copies read, and other values in the one that they write.
static void fill(int *a, int *dev_a, bool up) {
    if (up)
        memcpy(a, source, n * sizeof(int));
    else
        memset(a, 0xff, n * sizeof(int));
    HANDLE_ERROR(cudaMemset(dev_a, 0xff, n * sizeof(int)));
    if (!up)
        HANDLE_ERROR(cudaMemcpy(dev_a, source, n * sizeof(int), cudaMemcpyHostToDevice));
}

static void check_kind(const void *a, bool pinned) {
    cudaPointerAttributes memory;
    HANDLE_ERROR(cudaPointerGetAttributes(&memory, a));
    checked++;
    ok = check_value("page-locked memory", memory.type == cudaMemoryTypeHost, pinned, 0) && ok;
}

// Compares device memory with the source, and then overwrites it: memory that is allocated later can have
// the same addresses, and must not hold right data before anything is copied to it.
static void check_device(const char *name, int *dev_a) {
    ok = check_ints(name, HostArray<int>(dev_a, n), source, n) && ok;
    HANDLE_ERROR(cudaMemset(dev_a, 0xff, n * sizeof(int)));
}

// Compares the copy with the source. Of a copy to the host the device reads it, because the host reads
// write-combined memory slowly. Then measures how fast the host does, after a first run that warms up.
static void check_copy(const char *name, int *a, int *dev_a, bool up) {
    check_kind(a, strcmp(name, "pageable") != 0);
    if (up)
        return check_device(name, dev_a);
    HANDLE_ERROR(cudaMemset(dev_a, 0xff, n * sizeof(int)));
    check_device(name, DeviceArray<int>(a, n));
    unsigned long long sum = 0, twice = 2 * std::accumulate(source, source + n, 0ULL);
    for (int run = 0; run < 2; run++) {
        read_ms = host_ms([&] { sum = std::accumulate(a, a + n, sum); });
        write_ms = host_ms([&] { memcpy(a, source, n * sizeof(int)); });
    }
    ok = check_counts(name, &sum, &twice, 1) && ok;
}

static void print_host_rates(void) {
    ok = check_value("tests that called check_copy()", checked, 2, 0) && ok;
    checked = 0;
    double MB = n * sizeof(int) / 1024.0 / 1024.0;
    printf("  %-28s %9.1f MB/s\n", "host reads:", MB / max_of(read_ms, 1e-6) * 1e3);
    printf("  %-28s %9.1f MB/s\n", "host writes:", MB / max_of(write_ms, 1e-6) * 1e3);
}

// Copies in both directions at the same time, which needs page-locked memory, two streams and two copy
// engines. Each pair starts together, because the host waits for both streams.
static void test_both_directions(void) {
    size_t bytes = n * sizeof(int);
    printf("Pinned memory, both directions at once\n");
    PinnedArray<int> host_up(n), host_down(n);
    DeviceArray<int> dev_up(n), dev_down(n);
    cudaStream_t up, down;
    HANDLE_ERROR(cudaStreamCreate(&up));
    HANDLE_ERROR(cudaStreamCreate(&down));
    fill(host_up, dev_up, true);
    fill(host_down, dev_down, false);
    double ms = host_ms([&] {
        for (int i = 0; i < copies; i++) {
            HANDLE_ERROR(cudaMemcpyAsync(dev_up, host_up, bytes, cudaMemcpyHostToDevice, up));
            HANDLE_ERROR(cudaMemcpyAsync(host_down, dev_down, bytes, cudaMemcpyDeviceToHost, down));
            HANDLE_ERROR(cudaStreamSynchronize(up));
            HANDLE_ERROR(cudaStreamSynchronize(down));
        }
    });
    print_rate("each, at the same time:", ms);
    check_device("up", dev_up);
    check_device("down", DeviceArray<int>(host_down, n));
    HANDLE_ERROR(cudaStreamDestroy(up));
    HANDLE_ERROR(cudaStreamDestroy(down));
}

// Write-combined memory: writes of the host bypass its caches, and reads of the host can be very slow.
static void test_write_combined(void) {
    PinnedArray<int> a(n, cudaHostAllocWriteCombined);
    DeviceArray<int> dev_a(n);
    printf("Write-combined memory\n");
    for (int up = 1; up >= 0; up--) {
        fill(a, dev_a, up);
        double ms = host_ms([&] {
            for (int i = 0; i < copies; i++)
                HANDLE_ERROR(cudaMemcpy(up ? dev_a : a, up ? a : dev_a, n * sizeof(int), cudaMemcpyDefault));
        });
        check_copy("write-combined", a, dev_a, up);
        print_rate(up ? "up, to the device:" : "down, to the host:", ms);
    }
    print_host_rates();
}

// Task: cuda_malloc_test(): Time copies of `size` ints between pageable host memory and the device. Create
// the events start and stop. Allocate the host array a with malloc() and the device array dev_a, and call
// fill(a, dev_a, up). Record start, make `copies` copies of the whole array with cudaMemcpy(), from a to
// dev_a if up is true and from dev_a to a otherwise, record stop, wait for it, and compute elapsedTime. Call
// check_copy("pageable", a, dev_a, up). Free the memory, destroy the events, and return elapsedTime.
// cuda_host_alloc_test(): The same with page-locked host memory, from cudaHostAlloc(), and the name "pinned".
