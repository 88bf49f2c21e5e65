// SPDX-License-Identifier: MIT
/*
 * add_launch_shapes: vector addition with different numbers of blocks and threads
 *
 * Teaches: The same additions can be one thread's loop, one block or one thread per element, blocks of
 *          128 threads, or a grid-stride loop. The sums are the same, but only many threads in many
 *          blocks use the whole device: a block runs on one multiprocessor, and it has at most 1024
 *          threads.
 * Terms:   launch, grid, block, thread, grid-stride loop, multiprocessor, effective bandwidth, tail
 * Book:    5.2.1 (course); C 2 (VA-GPU-N1, and other launches)
 * Build:   nvcc -o add_launch_shapes chapter05/add_launch_shapes.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/add_launch_shapes --size 64K
 * Check:   --size 1000
 */
#include "../common/book.h"

#define N   1024
#define FEW 1600 // elements of the last launch

static size_t n = N; // --size
static bool check(const char *name, const int *c, size_t n);

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
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    while (i < n) {
        c[i] = a[i] + b[i];
        i += (size_t)blockDim.x * gridDim.x;
    }
}

struct Launch {
    const char *name;
    void (*kernel)(const int *a, const int *b, int *c, size_t n);
    size_t blocks, threads, n;
};

static float kernel_ms(Launch l, const int *dev_a, const int *dev_b, int *dev_c);
static float whole_ms(Launch l, const int *a, const int *b, int *c);

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t most = n > FEW ? n : FEW;
    int *a = (int *)malloc(most * sizeof(int)), *b = (int *)malloc(most * sizeof(int));
    int *c = (int *)malloc(most * sizeof(int));
    HANDLE_NULL(a && b && c);
    for (size_t i = 0; i < most; i++) {
        int k = i % 46341; // the square of 46340 is the largest that fits an int
        a[i] = k;
        b[i] = k * k;
    }
    int *dev_a, *dev_b, *dev_c, most_threads;
    HANDLE_ERROR(cudaMalloc(&dev_a, most * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b, most * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_c, most * sizeof(int)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, most * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, most * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerBlock, options.device));

    const Launch launches[] = {
        {"one thread", add_alone, 1, 1, n},
        {"a block per element", add_blocks, n, 1, n},
        {"a thread per element", add_threads, 1, n, n},
        {"blocks and threads", add_both, (n + 127) / 128, 128, n},
        {"grid-stride loop", add_stride, 128, 1, n},
        {"grid-stride loop", add_stride, 128, 128, n},
        {"grid-stride loop", add_stride, 10, 16, FEW}, // 10 elements for each of 160 threads
    };
    int right = 0; // checks that have passed
    for (int i = 0; i < 7; i++) {
        Launch l = launches[i];
        if (l.threads > (size_t)most_threads) {
            printf("%-20s a block has at most %d threads\n", l.name, most_threads);
            continue;
        }
        HANDLE_ERROR(cudaMemset(dev_c, 0xff, l.n * sizeof(int))); // -1, which is not among the sums
        l.kernel<<<l.blocks, l.threads>>>(dev_a, dev_b, dev_c, l.n);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(c, dev_c, l.n * sizeof(int), cudaMemcpyDeviceToHost));
        right += check(l.name, c, l.n);

        char shape[64];
        snprintf(shape, sizeof(shape), "<<<%zu, %zu>>>", l.blocks, l.threads);
        // Effective bandwidth: two vectors are read and one is written.
        double bytes = 3.0 * l.n * sizeof(int);
        float ms = kernel_ms(l, dev_a, dev_b, dev_c), whole = whole_ms(l, a, b, c);
        printf("%-20s %-20s %8zu elements %10.4f ms %9.3f GB/s %10.4f ms with allocation and copies\n",
               l.name, shape, l.n, ms, bytes / ms / 1e6, whole);
    }

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return check_value("right rows", right, n <= (size_t)most_threads ? 7 : 6, 0) ? EXIT_SUCCESS
                                                                                  : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/add.h" // check_sums()
#include "../common/timing.h"     // median_ms(), host_ms()

void settings(int argc, char **argv) {
    // A grid has at most INT_MAX blocks in x.
    configure(argc, argv, "Adds two vectors with launches of different shapes.", TIMES,
              {OPTION_SIZE("size", &n, 1, INT_MAX, "elements in a vector")});
    size_t bytes = max_of(n, FEW) * sizeof(int);
    require_memory(4 * bytes, 6 * bytes);
}

static float kernel_ms(Launch l, const int *dev_a, const int *dev_b, int *dev_c) {
    return median_ms([=] { l.kernel<<<l.blocks, l.threads>>>(dev_a, dev_b, dev_c, l.n); });
}

// The time as the course measures it, from before the allocations until the sums are on the host.
static float whole_ms(Launch l, const int *a, const int *b, int *c) {
    return host_ms([=] {
        DeviceArray<int> dev_a(a, l.n), dev_b(b, l.n), dev_c(l.n);
        l.kernel<<<l.blocks, l.threads>>>(dev_a, dev_b, dev_c, l.n);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(c, dev_c, l.n * sizeof(int), cudaMemcpyDeviceToHost));
    });
}

static bool check(const char *name, const int *c, size_t n) {
    return check_sums(name, c, n, 1);
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
