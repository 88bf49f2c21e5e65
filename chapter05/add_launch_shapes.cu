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
 * Run:     ./bin/chapter05/add_launch_shapes --size 64K
 */
#include "../common/book.h"
#include "../common/proofs/add.h"
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

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t most = max_of(n, FEW);
    int *a = host_array<int>(most), *b = host_array<int>(most), *c = host_array<int>(most);
    int *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, most * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b, most * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_c, most * sizeof(int)));
    fill_vectors(a, b, most, 1); // a[i] = i, b[i] = i * i
    HANDLE_ERROR(cudaMemcpy(dev_a, a, most * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, most * sizeof(int), cudaMemcpyHostToDevice));

    const Launch launches[] = {
        {"one thread", add_alone, 1, 1, n},
        {"a block per element", add_blocks, n, 1, n},
        {"a thread per element", add_threads, 1, n, n},
        {"blocks and threads", add_both, (n + 127) / 128, 128, n},
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
        printf("%-20s %-20s %8zu elements %10.4f ms %9.3f GB/s\n", l.name, shape, l.n, ms, bytes / ms / 1e6);
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

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    // A grid has at most INT_MAX blocks in x.
    const Option own[] = {OPTION_SIZE("size", &n, 1, INT_MAX, "elements in a vector"), OPTION_END};
    parse_options(argc, argv, "Adds two vectors with launches of different shapes.", TIMES, own);
    select_device();
    size_t bytes = max_of(n, FEW) * sizeof(int);
    require_memory(4 * bytes, 3 * bytes);
}
