// SPDX-License-Identifier: MIT
/*
 * add_launch_shapes: vector addition with different numbers of blocks and threads
 *
 * Teaches: The same additions can be one thread's loop, one block or one thread per element, blocks of
 *          128 threads, or a grid-stride loop. The sums are the same, but only many threads in many
 *          blocks use the whole device: a block runs on one multiprocessor, and it has at most 1024
 *          threads.
 * Terms:   launch, grid, block, thread, grid-stride loop, multiprocessor, effective bandwidth, tail
 * Book:    5.2.1 (course)
 * Build:   nvcc -o add_launch_shapes chapter05/add_launch_shapes.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/add_launch_shapes --size 64K
 * Differs: a kernel of the course multiplies blockIdx.x by gridDim.x, where blockDim.x is right; in its
 *          launch both are 128. --wrong-index counts the elements that this leaves out elsewhere, --rounded-
 *          down those of N / 128 blocks: status 1. --thread-cost times threads of host and device.
 * Check:   --size 1000 | --thread-cost
 */
#include <chrono>
#include "../common/book.h"
#include "../common/checks/add.h"
#include "../common/timing.h" // median_ms(); chapter 6 shows the events that it uses

#define N   1024
#define FEW 1600 // elements of the last launch

static size_t n = N; // --size

__global__ void add_alone(const int *a, const int *b, int *c, size_t n) {
    for (size_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

__global__ void add_blocks(const int *a, const int *b, int *c, size_t n) {
    size_t i = blockIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

__global__ void add_threads(const int *a, const int *b, int *c, size_t n) {
    size_t i = threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

__global__ void add_both(const int *a, const int *b, int *c, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n) // in the tail, the last block may have threads beyond the end
        c[i] = a[i] + b[i];
}

// A grid-stride loop is right with any number of blocks and threads.
__global__ void add_stride(const int *a, const int *b, int *c, size_t n) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        c[i] = a[i] + b[i];
}

struct Launch {
    const char *name;
    void (*kernel)(const int *a, const int *b, int *c, size_t n);
    size_t blocks, threads, n;
};

static float whole_ms(const Launch &launch, const int *a, const int *b, int *c);

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t most = max_of(n, FEW);
    int *a = host_array<int>(most), *b = host_array<int>(most), *c = host_array<int>(most);
    int *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, most * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b, most * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_c, most * sizeof(int)));
    fill_vectors(a, b, most, 1); // a[i] = k, b[i] = k * k with k = i % 46341
    HANDLE_ERROR(cudaMemcpy(dev_a, a, most * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, most * sizeof(int), cudaMemcpyHostToDevice));

    const Launch launches[] = {
        {"one thread", add_alone, 1, 1, n},
        {"a block per element", add_blocks, n, 1, n},
        {"a thread per element", add_threads, 1, n, n},
        {"blocks and threads", add_both, (n + 127) / 128, 128, n},
        {"grid-stride loop", add_stride, 128, 1, n},
        {"grid-stride loop", add_stride, 128, 128, n},
        {"grid-stride loop", add_stride, 10, 16, FEW}, // 10 elements for each of 160 threads
    };
    int most_threads;
    HANDLE_ERROR(cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerBlock, options.device));
    bool ok = true;
    for (const Launch &l : launches) {
        if (l.threads > (size_t)most_threads) {
            printf("%-20s a block has at most %d threads\n", l.name, most_threads);
            continue;
        }
        HANDLE_ERROR(cudaMemset(dev_c, 0xff, l.n * sizeof(int))); // -1, which is not among the sums
        float ms = median_ms([&] { l.kernel<<<l.blocks, l.threads>>>(dev_a, dev_b, dev_c, l.n); });
        HANDLE_ERROR(cudaMemcpy(c, dev_c, l.n * sizeof(int), cudaMemcpyDeviceToHost));

        char shape[64];
        snprintf(shape, sizeof(shape), "<<<%zu, %zu>>>", l.blocks, l.threads);
        // Effective bandwidth: two vectors are read and one is written.
        double bytes = 3.0 * l.n * sizeof(int);
        ok = check_sums(l.name, c, l.n, 1) && ok;
        printf("%-20s %-20s %8zu elements %10.4f ms %9.3f GB/s %10.4f ms with allocation and copies\n",
               l.name, shape, l.n, ms, bytes / ms / 1e6, whole_ms(l, a, b, c));
        ok = check_sums(l.name, c, l.n, 1) && ok;
    }

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// The time as the course measures it, from before the allocations until the sums are on the host.
static float whole_ms(const Launch &l, const int *a, const int *b, int *c) {
    auto start = std::chrono::steady_clock::now();
    DeviceArray<int> dev_a(a, l.n), dev_b(b, l.n), dev_c(l.n);
    l.kernel<<<l.blocks, l.threads>>>(dev_a, dev_b, dev_c, l.n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(c, dev_c, l.n * sizeof(int), cudaMemcpyDeviceToHost));
    return std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Wrong on purpose: the index must have blockDim.x in place of the first gridDim.x.
__global__ void visit_wrong(int *visited, size_t n) {
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * gridDim.x; i < n; i += (size_t)blockDim.x * gridDim.x)
        visited[i] = 1;
}

// Counts the elements that no thread adds. Always returns EXIT_FAILURE, because the kernel is wrong.
static int show_wrong_index(void) {
    for (auto [blocks, threads] : {std::pair(64, 128), {128, 64}, {128, 128}}) {
        size_t count = (size_t)blocks * threads, missed;
        DeviceArray<int> dev_visited(count, 0);
        visit_wrong<<<blocks, threads>>>(dev_visited, count);
        HANDLE_LAUNCH();
        HostArray<int> visited(dev_visited, count);
        missed = std::count(+visited, visited + count, 0);
        printf("<<<%d, %d>>>: %zu of %zu elements are never added\n", blocks, threads, missed, count);
    }
    return EXIT_FAILURE;
}

__global__ void store(int *stored, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n)
        stored[i] = 1;
}

// Wrong on purpose: N / 128 blocks, rounded down, leave out the last N % 128 elements. If N is less than 128,
// there are no blocks: the launch is an error, and no element is added.
static int show_rounded_down(void) {
    for (size_t n : {1000, 128, 127, 1}) {
        int blocks = n / 128;
        DeviceArray<int> dev_stored(n, 0);
        int *pointer = dev_stored;
        void *arguments[] = {&pointer, &n};
        // nvcc translates <<<blocks, 128>>> to this call, which returns the error.
        cudaError_t error = cudaLaunchKernel((const void *)store, blocks, 128, arguments, 0, NULL);
        (void)!cudaGetLastError(); // the next launch must not report it
        HostArray<int> stored(dev_stored, n);
        size_t missed = std::count(+stored, stored + n, 0);
        printf("<<<%d, 128>>> for N = %zu: %s, %zu elements are not added\n", blocks, n,
               cudaGetErrorName(error), missed);
    }
    return EXIT_FAILURE;
}

static void *store_one(void *stored) {
    *(int *)stored = 1;
    return NULL;
}

// For --thread-cost: the time to create, run and end a thread that stores one number. The operating system
// creates a host thread and gives it a stack; the hardware of a device starts blocks of threads.
static int compare_threads(void) {
    const size_t few = 1000, many = 1 << 22;
    HostArray<int> stored(few, 0);
    double host = host_ms([&] {
        for (size_t i = 0; i < few; i++)
            end_thread(start_thread(store_one, &stored[i]));
    });
    bool ok = check_ints("stored", stored, few, [](int) { return 1; });
    printf("a host thread, of %zu: %.1f ns\n", few, host * 1e6 / few);

    DeviceArray<int> dev_stored(many, 0);
    float ms = median_ms([&] { store<<<many / 256, 256>>>(dev_stored, many); });
    printf("a device thread, of %zu: %.4f ns\n", many, ms * 1e6 / many);
    ok = ok && check_ints("stored", HostArray<int>(dev_stored, many), many, [](int) { return 1; });
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

void settings(int argc, char **argv) {
    bool wrong_index = false, rounded_down = false, thread_cost = false;
    // A grid has at most INT_MAX blocks in x.
    configure(argc, argv, "Adds two vectors with launches of different shapes.", TIMES,
              {OPTION_SIZE("size", &n, 1, INT_MAX, "elements in a vector"),
               OPTION_FLAG("wrong-index", &wrong_index, "counts what a wrong index leaves out"),
               OPTION_FLAG("rounded-down", &rounded_down, "wrong: N / 128 blocks, which can be none"),
               OPTION_FLAG("thread-cost", &thread_cost, "the cost of a host thread and of a device thread")});
    size_t bytes = max_of(n, FEW) * sizeof(int);
    require_memory(4 * bytes, 6 * bytes);
    if (wrong_index)
        exit(show_wrong_index());
    if (rounded_down)
        exit(show_rounded_down());
    if (thread_cost)
        exit(compare_threads());
}

// Task: Each kernel stores a[i] + b[i] in c[i] for all i < n. Each kernel has another execution
// configuration.
// add_alone(): The grid has one block of one thread. The thread computes all elements in a loop.
// add_blocks(): The grid has n blocks of one thread. Each thread computes one element.
// add_threads(): The grid has one block of n threads. Each thread computes one element.
// add_both(): The grid has several blocks of several threads. Each thread computes at most one element.
// Threads with a global index >= n do nothing.
// add_stride(): The grid has several blocks of several threads, possibly fewer threads than elements. Write a
// grid-stride loop: each thread starts at its global index, and the stride is the number of threads in the
// grid.
