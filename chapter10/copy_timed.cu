// SPDX-License-Identifier: MIT
/*
 * copy_timed: the bandwidth of copies from pageable and from page-locked memory
 *
 * Teaches: The copy engine reads and writes page-locked (pinned) host memory by DMA, because the operating
 *          system does not move its pages. Pageable memory is first copied to a page-locked staging buffer
 *          of the driver, which takes longer. Page-locked memory costs, too: allocating it takes longer
 *          than malloc, and no other program can use it, so lock no more than is copied. Write-combined
 *          memory is for data that only the device reads, because reads by the host can be very slow.
 * Terms:   page-locked memory, pageable memory, DMA, staging buffer, copy engine, bandwidth, cudaHostAlloc,
 *          write-combined memory
 * Book:    10.2
 * Build:   nvcc -o copy_timed chapter10/copy_timed.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter10/copy_timed
 * Differs: also write-combined memory, both directions at once in two streams, and how fast the host
 *          writes and reads each kind of memory. What was copied is verified. Each test warms up first, and
 *          makes fewer than 100 copies if they would take more than 0.1 s.
 * Check:   --size 20000 --iterations 5
 */
#include <numeric>
#include <vector>
#include "../common/book.h"
#include "../common/timing.h"

#define SIZE (10 * 1024 * 1024)
#define MB   (1024.0 * 1024.0)

static size_t n = SIZE;  // --size, ints to copy
static int copies = 100; // --iterations; prepare() reduces it when copies take long
static bool ok = true;   // false when check_copy() has found a wrong copy
static void prepare(int *a, int *dev_a, bool up);
static void check_copy(const char *name, int *a, int *dev_a, bool up);
static void print_rate(float elapsedTime, bool up);
static void test_both_directions(void);
static void test_write_combined(void);

// Pageable memory: copies to the device if `up`, to the host otherwise. Returns milliseconds.
static float cuda_malloc_test(size_t size, bool up) {
    cudaEvent_t start, stop;
    int *a, *dev_a;
    float elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    a = host_array<int>(size); // malloc
    HANDLE_ERROR(cudaMalloc(&dev_a, size * sizeof(int)));
    prepare(a, dev_a, up);

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
    prepare(a, dev_a, up);

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

int main(int argc, char **argv) {
    settings(argc, argv);
    float elapsedTime;
    printf("%.3f MB\n", n * sizeof(int) / MB);

    printf("Pageable memory\n");
    elapsedTime = cuda_malloc_test(n, true);
    print_rate(elapsedTime, true);
    elapsedTime = cuda_malloc_test(n, false);
    print_rate(elapsedTime, false);

    printf("Pinned memory\n");
    elapsedTime = cuda_host_alloc_test(n, true);
    print_rate(elapsedTime, true);
    elapsedTime = cuda_host_alloc_test(n, false);
    print_rate(elapsedTime, false);

    test_both_directions();
    test_write_combined();
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

static int wanted_copies;
static int checked = 0;          // 1 + up of check_copy() since the last print_rate(), or 0
static std::vector<int> source;  // random ints, which all tests copy
static double read_ms, write_ms; // of the host, in the memory that was tested last

void settings(int argc, char **argv) {
    configure(argc, argv, "Times copies to the device and back.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1LL << 40, "ints to copy"),
               OPTION_INT("iterations", &copies, 1, 1000000, "copies that are timed, if time allows")});
    require_memory(4 * n * sizeof(int), 3 * n * sizeof(int));
    wanted_copies = copies;
    source.resize(n);
    random_bytes(source.data(), n * sizeof(int));
}

// Sets the number of copies to time: --iterations, or as many as take 0.1 s if that is fewer.
template <class Copy> static void choose_copies(Copy copy) {
    float ms = median_ms(copy);
    copies = wanted_copies * ms <= 100 ? wanted_copies : max_of(1, (int)(100 / ms));
}

// Milliseconds of so many copies
template <class Copy> static float time_copies(Copy copy) {
    choose_copies(copy);
    return median_ms([&] {
        for (int i = 0; i < copies; i++)
            copy();
    });
}

static void copy_once(int *a, int *dev_a, bool up) {
    HANDLE_ERROR(cudaMemcpy(up ? dev_a : a, up ? a : dev_a, n * sizeof(int),
                            up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost));
}

// Stores the source in both arrays, chooses the number of copies, and then overwrites the array to copy to,
// so that the copies that are timed must copy everything.
static void prepare(int *a, int *dev_a, bool up) {
    memcpy(a, source.data(), n * sizeof(int));
    HANDLE_ERROR(cudaMemcpy(dev_a, source.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    choose_copies([=] { copy_once(a, dev_a, up); });
    if (up)
        HANDLE_ERROR(cudaMemset(dev_a, 0xff, n * sizeof(int)));
    else
        memset(a, 0xff, n * sizeof(int));
}

// Measures how fast the host reads and writes this memory, after a first run that warms up and reads what the
// device has copied. The sum of both runs must be twice that of the source.
static void time_host(const char *name, int *a) {
    unsigned long long sum = 0, expected = 0;
    for (size_t i = 0; i < n; i++)
        expected += 2ULL * source[i];
    for (int run = 0; run < 2; run++) {
        read_ms = host_ms([&] { sum = std::accumulate(a, a + n, sum); });
        write_ms = host_ms([&] { memcpy(a, source.data(), n * sizeof(int)); });
    }
    ok &= check_counts(name, &sum, &expected, 1);
}

// Compares device memory with the source, and then overwrites it: memory that is allocated later can have
// the same addresses, and must not hold right data before anything is copied to it.
static void check_device(const char *name, int *dev_a) {
    ok &= check_ints(name, HostArray<int>(dev_a, n), source.data(), n);
    HANDLE_ERROR(cudaMemset(dev_a, 0xff, n * sizeof(int)));
}

// Compares the copy with the source, and overwrites dev_a in either case. The device reads the host memory,
// because the host reads write-combined memory slowly.
static void check_copy(const char *name, int *a, int *dev_a, bool up) {
    cudaPointerAttributes memory;
    HANDLE_ERROR(cudaPointerGetAttributes(&memory, a));
    bool pinned = memory.type == cudaMemoryTypeHost, expected = strcmp(name, "pageable") != 0;
    ok = check_value("page-locked memory", pinned, expected, 0) && ok;
    checked = 1 + up;
    if (up)
        return check_device(name, dev_a);
    HANDLE_ERROR(cudaMemset(dev_a, 0xff, n * sizeof(int)));
    check_device(name, DeviceArray<int>(a, n));
    time_host(name, a);
}

static void print_copies(const char *what, float ms) {
    printf("  %-28s %9.3f ms, %d copies\n", what, ms, copies);
    printf("  %28s %9.1f MB/s\n", "", n * sizeof(int) / MB * copies / (ms / 1000));
}

// With the copies to the host also prints what time_host() has measured.
static void print_rate(float elapsedTime, bool up) {
    if (checked != 1 + up)
        quit(EXIT_FAILURE, "these copies were not checked");
    checked = 0;
    print_copies(up ? "up, to the device:" : "down, to the host:", elapsedTime);
    if (!up) {
        printf("  %-28s %9.1f MB/s\n", "host reads:", n * sizeof(int) / MB / max_of(read_ms, 1e-6) * 1e3);
        printf("  %-28s %9.1f MB/s\n", "host writes:", n * sizeof(int) / MB / max_of(write_ms, 1e-6) * 1e3);
    }
}

// The pages of pageable memory are found one by one when they are first written.
static void time_allocation(void) {
    int *pageable, *pinned;
    double pageable_ms = host_ms([&] {
        pageable = host_array<int>(n);
        memcpy(pageable, source.data(), n * sizeof(int));
    });
    double pinned_ms = host_ms([&] {
        HANDLE_ERROR(cudaHostAlloc(&pinned, n * sizeof(int), cudaHostAllocDefault));
        memcpy(pinned, source.data(), n * sizeof(int));
    });
    printf("Allocated and written: pageable %.3f ms, pinned %.3f ms\n", pageable_ms, pinned_ms);
    ok &= check_ints("pageable and pinned", pageable, pinned, n);
    free(pageable);
    HANDLE_ERROR(cudaFreeHost(pinned));
}

// Copies in both directions at the same time, which needs page-locked memory, two streams and two copy
// engines. Each pair starts together, because the host waits for both streams.
static void test_both_directions(void) {
    size_t bytes = n * sizeof(int);
    time_allocation();
    printf("Pinned memory, both directions at once\n");
    PinnedArray<int> host_up(n), host_down(n);
    DeviceArray<int> dev_up(n), dev_down(n);
    cudaStream_t up, down;
    HANDLE_ERROR(cudaStreamCreate(&up));
    HANDLE_ERROR(cudaStreamCreate(&down));
    memcpy(host_up, source.data(), bytes);
    HANDLE_ERROR(cudaMemcpy(dev_down, source.data(), bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemset(dev_up, 0xff, bytes));
    memset(host_down, 0xff, bytes);
    auto copy = [&] {
        HANDLE_ERROR(cudaMemcpyAsync(dev_up, host_up, bytes, cudaMemcpyHostToDevice, up));
        HANDLE_ERROR(cudaMemcpyAsync(host_down, dev_down, bytes, cudaMemcpyDeviceToHost, down));
        HANDLE_ERROR(cudaStreamSynchronize(up));
        HANDLE_ERROR(cudaStreamSynchronize(down));
    };
    print_copies("each, at the same time:", time_copies(copy));
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
    for (bool up : {true, false}) {
        prepare(a, dev_a, up);
        float ms = time_copies([&] { copy_once(a, dev_a, up); });
        check_copy("write-combined", a, dev_a, up);
        print_rate(ms, up);
    }
}

// Task: cuda_malloc_test(): Time copies of `size` ints between pageable host memory and the device. Create
// the events start and stop. Allocate the host array a with host_array() and the device array dev_a, and call
// prepare(a, dev_a, up). Record start, make `copies` copies of the whole array with cudaMemcpy(), from a to
// dev_a if up is true and from dev_a to a otherwise, record stop, wait for it, and compute elapsedTime. Call
// check_copy("pageable", a, dev_a, up). Free the memory, destroy the events, and return elapsedTime.
// cuda_host_alloc_test(): The same with page-locked host memory, from cudaHostAlloc(), and the name "pinned".
