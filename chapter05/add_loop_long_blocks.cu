// SPDX-License-Identifier: MIT
/*
 * add_loop_long_blocks: vector addition with a grid-stride loop
 *
 * Teaches: threadIdx.x + blockIdx.x * blockDim.x is the unique index of a thread in the grid, and
 *          blockDim.x * gridDim.x is the number of threads. Each thread starts at its index and steps
 *          by that number, so 128 blocks of 128 threads add vectors of any length.
 * Terms:   grid-stride loop, thread index, threadIdx, blockIdx, blockDim, gridDim, vector addition
 * Book:    5.2.1; C 2 (128 blocks of 128 threads)
 * Build:   nvcc -o add_loop_long_blocks chapter05/add_loop_long_blocks.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/add_loop_long_blocks --size 1M --blocks 1024 --threads 256
 * Differs: the length is an option and may exceed 2^31, so the index is a size_t. The numbers of blocks and
 *          threads, which are arbitrary in the book, are options too, and the kernel is timed.
 * Check:   --size 1001 --blocks 3 --threads 50
 */
#include "../common/book.h"

#define N (33 * 1024)

static size_t n = N;                    // --size
static int blocks = 128, threads = 128; // --blocks, --threads
static void print_time(const int *dev_a, const int *dev_b, int *dev_c);
static bool check(const int *c);

__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x, stride = (size_t)blockDim.x * gridDim.x;
    while (tid < n) {
        c[tid] = a[tid] + b[tid];
        tid += stride;
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *a = (int *)malloc(n * sizeof(int)), *b = (int *)malloc(n * sizeof(int));
    int *c = (int *)malloc(n * sizeof(int));
    HANDLE_NULL(a && b && c);
    int *dev_a, *dev_b, *dev_c;

    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_c, n * sizeof(int)));

    for (size_t i = 0; i < n; i++) {
        int k = i % 46341; // the square of 46340 is the largest that fits an int
        a[i] = k;
        b[i] = k * k;
    }
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(int), cudaMemcpyHostToDevice));

    add<<<blocks, threads>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, n * sizeof(int), cudaMemcpyDeviceToHost));
    bool ok = check(c);
    if (ok)
        printf("All %zu sums are right.\n", n);
    print_time(dev_a, dev_b, dev_c);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/add.h" // check_sums()
#include "../common/timing.h"     // median_ms()

void settings(int argc, char **argv) {
    configure(argc, argv, "Adds two long vectors on the device with a grid-stride loop.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"),
               OPTION_INT("blocks", &blocks, 1, INT_MAX, "blocks of the grid"),
               OPTION_INT("threads", &threads, 1, 1024, "threads of a block")});
    require_memory(4 * n * sizeof(int), 3 * n * sizeof(int));
}

static bool check(const int *c) {
    return check_sums("c", c, n, 1);
}

// Two vectors are read and one is written.
static void print_time(const int *dev_a, const int *dev_b, int *dev_c) {
    float ms = median_ms([&] { add<<<blocks, threads>>>(dev_a, dev_b, dev_c, n); });
    printf("%d blocks of %d threads: %.4f ms, %.3f GB/s\n", blocks, threads, ms,
           3.0 * n * sizeof(int) / ms / 1e6);
}

// Task: add(): Write a grid-stride loop that adds vectors of any length n with any number of blocks and any
// number of threads per block. Each thread starts at its global index, which is its index in the block plus
// the number of threads in all blocks before its own. The stride is the number of threads in the grid. For
// each index i below n, the thread stores a[i] + b[i] in c[i].
