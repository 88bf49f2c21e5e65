// SPDX-License-Identifier: MIT
/*
 * copy_timed: the bandwidth of copies from pageable and from page-locked memory
 *
 * Teaches: The copy engine reads and writes page-locked (pinned) host memory by DMA, because the
 *          operating system does not move its pages. Pageable memory is first copied to a page-locked
 *          staging buffer of the driver, which takes longer. Page-locked memory is not swapped out, so
 *          no other program can use it, and a program should not lock more than it needs. Write-combined
 *          memory is for data that only the device reads, because reads by the host can be very slow.
 * Terms:   page-locked memory, pageable memory, DMA, staging buffer, copy engine, bandwidth, cudaHostAlloc,
 *          write-combined memory
 * Book:    10.2
 * Run:     ./bin/chapter10/copy_timed
 * Differs: also write-combined memory, both directions at once in two streams, and how fast the host
 *          writes and reads each kind of memory. What was copied is verified. 100 copies are timed; when
 *          they would take more than half a second, as many as fit into a quarter of a second. The CPU
 *          back end has one kind of memory, so all rates are about the same there. On the host of an H200
 *          that was tried, a virtual machine, the host reads write-combined memory as fast as other memory.
 * Check:   --size 20000 --iterations 5
 */
#include <chrono>
#include "../common/book.h"

#define SIZE   (10 * 1024 * 1024)
#define COPIES 100
#define MB     (1024.0 * 1024.0)

static size_t size = SIZE;  // --size, ints to copy
static int copies = COPIES; // --iterations
static int copies_for(float ms);
static bool check_device(const char *name, int *dev, const int *source);
static bool check_copy(const char *name, const int *host, const int *source);
static bool check_host_access(const char *name, int *host, const int *source);

// Times copies with events and prints the elapsed time and the bandwidth in MB/s. The loop runs three times:
// one copy as a warm-up; one copy, from whose time copies_for() chooses the number of copies; and that many
// copies, whose time is printed.
template <class Copy> static void cuda_copy_test(const char *name, Copy copy) {
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    float elapsedTime = 0;
    int n = 1;
    for (int run = 0; run < 3; run++) {
        n = run < 2 ? 1 : copies_for(elapsedTime);
        HANDLE_ERROR(cudaEventRecord(start, 0));
        for (int i = 0; i < n; i++)
            copy();
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    }
    printf("  %-28s %9.3f ms, %d copies\n", name, elapsedTime, n);
    printf("  %28s %9.1f MB/s\n", "", size * sizeof(int) / MB * n / (elapsedTime / 1000));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
}

// Copies from and to one kind of host memory. The memory is overwritten in between, so that each
// direction must copy everything.
static bool test(const char *name, int *host, int *dev, const int *source) {
    size_t bytes = size * sizeof(int);
    printf("%s\n", name);
    memcpy(host, source, bytes);
    HANDLE_ERROR(cudaMemset(dev, 0xff, bytes));
    cuda_copy_test("up, to the device:",
                   [&] { HANDLE_ERROR(cudaMemcpy(dev, host, bytes, cudaMemcpyHostToDevice)); });
    memset(host, 0xff, bytes);
    cuda_copy_test("down, to the host:",
                   [&] { HANDLE_ERROR(cudaMemcpy(host, dev, bytes, cudaMemcpyDeviceToHost)); });
    bool ok = check_copy(name, host, source);
    return check_host_access(name, host, source) && ok;
}

// Copies in both directions at the same time, which needs page-locked memory, two streams and two copy
// engines. Each pair starts together, because the host waits for both streams.
static bool test_both(int *host_up, int *host_down, int *dev_up, int *dev_down, const int *source) {
    size_t bytes = size * sizeof(int);
    printf("Pinned memory, both directions at once\n");
    cudaStream_t up, down;
    HANDLE_ERROR(cudaStreamCreate(&up));
    HANDLE_ERROR(cudaStreamCreate(&down));
    memcpy(host_up, source, bytes);
    HANDLE_ERROR(cudaMemcpy(dev_down, source, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemset(dev_up, 0xff, bytes));
    memset(host_down, 0xff, bytes);
    cuda_copy_test("each, at the same time:", [&] {
        HANDLE_ERROR(cudaMemcpyAsync(dev_up, host_up, bytes, cudaMemcpyHostToDevice, up));
        HANDLE_ERROR(cudaMemcpyAsync(host_down, dev_down, bytes, cudaMemcpyDeviceToHost, down));
        HANDLE_ERROR(cudaStreamSynchronize(up));
        HANDLE_ERROR(cudaStreamSynchronize(down));
    });
    HANDLE_ERROR(cudaStreamDestroy(up));
    HANDLE_ERROR(cudaStreamDestroy(down));
    bool ok = check_device("up", dev_up, source);
    return check_copy("down", host_down, source) && ok;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = size * sizeof(int);
    int *source = big_random_ints(size);
    int *dev_a, *dev_b;
    HANDLE_ERROR(cudaMalloc(&dev_a, bytes));
    printf("%.3f MB\n", bytes / MB);

    int *pageable = host_array<int>(size); // malloc
    bool ok = test("Pageable memory", pageable, dev_a, source);
    free(pageable);

    int *pinned, *other;
    HANDLE_ERROR(cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault));
    ok &= test("Pinned memory", pinned, dev_a, source);
    HANDLE_ERROR(cudaHostAlloc(&other, bytes, cudaHostAllocDefault));
    HANDLE_ERROR(cudaMalloc(&dev_b, bytes));
    ok &= test_both(pinned, other, dev_a, dev_b, source);
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFreeHost(other));
    HANDLE_ERROR(cudaFreeHost(pinned));

    // Write-combined memory: writes of the host bypass its caches, and reads of the host can be very slow.
    int *combined;
    HANDLE_ERROR(cudaHostAlloc(&combined, bytes, cudaHostAllocWriteCombined));
    ok &= test("Write-combined memory", combined, dev_a, source);
    HANDLE_ERROR(cudaFreeHost(combined));

    HANDLE_ERROR(cudaFree(dev_a));
    free(source);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    configure(argc, argv, "Times copies to the device and back.", TIMES,
              {OPTION_SIZE("size", &size, 1, 1LL << 40, "ints to copy"),
               OPTION_INT("iterations", &copies, 1, 1000000, "copies that are timed, if time allows")});
    require_memory(3 * size * sizeof(int), 2 * size * sizeof(int));
}

// The number of copies to time when one takes `ms`: all of them if they take at most half a second, otherwise
// as many as fit into a quarter of a second.
static int copies_for(float ms) {
    return copies * ms <= 500 ? copies : max_of(1, (int)(250 / ms));
}

// Prints how fast the host reads and writes this memory, after a first run that warms up and reads what the
// device has copied. The sum of both runs must be twice that of the source.
static bool check_host_access(const char *name, int *host, const int *source) {
    typedef std::chrono::steady_clock Clock;
    double seconds[2];
    unsigned long long sum = 0, expected = 0;
    for (size_t i = 0; i < size; i++)
        expected += 2ULL * source[i];
    for (int run = 0; run < 2; run++) {
        Clock::time_point start = Clock::now();
        for (size_t i = 0; i < size; i++)
            sum += host[i];
        Clock::time_point middle = Clock::now();
        memcpy(host, source, size * sizeof(int));
        seconds[0] = std::chrono::duration<double>(middle - start).count();
        seconds[1] = std::chrono::duration<double>(Clock::now() - middle).count();
    }
    for (int write = 0; write < 2; write++)
        printf("  %-28s %9.1f MB/s\n", write ? "host writes:" : "host reads:",
               size * sizeof(int) / MB / max_of(seconds[write], 1e-9));
    return check_counts(name, &sum, &expected, 1);
}

// Compares device memory with the source, and then overwrites it: memory that is allocated later can have
// the same addresses, and must not hold right data before anything is copied to it.
static bool check_device(const char *name, int *dev, const int *source) {
    bool ok = check_ints(name, HostArray<int>(dev, size), source, size);
    HANDLE_ERROR(cudaMemset(dev, 0xff, size * sizeof(int)));
    return ok;
}

// Compares host memory with the source. The device reads the host memory, because the host reads
// write-combined memory slowly.
static bool check_copy(const char *name, const int *host, const int *source) {
    return check_device(name, DeviceArray<int>(host, size), source);
}

// Task: test(): Print the name. Copy `size` ints from source to host with memcpy, set all bytes of dev to
// 0xff, and time copies of the whole host array to dev with cuda_copy_test("up, to the device:", function),
// where the function makes one copy. Then set all bytes of host to 0xff and time copies from dev to host with
// cuda_copy_test("down, to the host:", function). Call both check_copy(name, host, source) and
// check_host_access(name, host, source), and return whether both are true.
// test_both(): Create two streams. Copy the ints of source to host_up and dev_down, and set all bytes of
// dev_up and host_down to 0xff. With cuda_copy_test("each, at the same time:", function) time a function that
// makes an asynchronous copy from host_up to dev_up in one stream and one from dev_down to host_down in the
// other, and waits for both streams. Destroy the streams. Call both check_device("up", dev_up, source) and
// check_copy("down", host_down, source), and return whether both are true.
