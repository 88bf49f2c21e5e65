// SPDX-License-Identifier: MIT
/*
 * dot_variants: dot products whose blocks add in other ways, and the steps of a tree reduction
 *
 * Teaches: A tree reduction adds the values of a block in log2 of their number steps. One thread alone needs
 *          a step for each value, while all others wait. A small launch prints which elements each thread
 *          multiplies, and the values after each step. --all-store shows why only one thread stores the sum.
 * Terms:   tree reduction, shared memory, partial sum, barrier, grid-stride loop
 * Book:    5.3.1 (course)
 * Build:   nvcc -o dot_variants chapter05/dot_variants.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/dot_variants --size 1M --blocks 1024 --threads 256
 * Check:   --size 48 --blocks 2 --threads 8 | --size 48 --all-store (race)
 */
#include "../common/book.h"

#define N           48
#define MAX_THREADS 1024 // of a block
#define SHOWN       256  // up to so many elements and threads, the steps are printed

static size_t n = N;                // --size
static int blocks = 2, threads = 8; // --blocks, --threads
static bool all_store;              // --all-store
static bool print_steps(const float *values, int steps);
static bool run(const char *how, void (*kernel)(const float *, const float *, float *, size_t),
                const float *dev_a, const float *dev_b, int steps, int stores);

// The products of a thread, added in a grid-stride loop
__device__ float add_products(const float *a, const float *b, size_t n) {
    float temp = 0;
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    while (tid < n) {
        temp += a[tid] * b[tid];
        tid += (size_t)blockDim.x * gridDim.x;
    }
    return temp;
}

// Tree reduction, as in dot: the sum of the block is in cache[0].
__device__ void add_halves(float *cache) {
    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
}

__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[MAX_THREADS];
    cache[threadIdx.x] = add_products(a, b, n);
    __syncthreads();
    add_halves(cache);
    if (threadIdx.x == 0)
        c[blockIdx.x] = cache[0];
}

// Thread 0 adds all values of its block.
__global__ void dot_one_thread(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[MAX_THREADS];
    cache[threadIdx.x] = add_products(a, b, n);
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0;
        for (unsigned i = 0; i < blockDim.x; i++)
            sum += cache[i];
        c[blockIdx.x] = sum;
    }
}

// Every thread stores the same sum at the same place: right, but a data race and needless traffic.
__global__ void dot_all_store(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[MAX_THREADS];
    cache[threadIdx.x] = add_products(a, b, n);
    __syncthreads();
    add_halves(cache);
    c[blockIdx.x] = cache[0];
}

// As dot. The value of each thread before the first step, and after each step, is stored in `values`.
__global__ void dot_steps(const float *a, const float *b, float *values, size_t n) {
    __shared__ float cache[MAX_THREADS];
    unsigned tid = threadIdx.x + blockIdx.x * blockDim.x;
    cache[threadIdx.x] = values[tid] = add_products(a, b, n);
    __syncthreads();
    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        values += blockDim.x * gridDim.x;
        values[tid] = cache[threadIdx.x];
        __syncthreads();
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int steps = log2(threads), all = blocks * threads;
    float *a = (float *)malloc(n * sizeof(float)), *b = (float *)malloc(n * sizeof(float));
    HANDLE_NULL(a && b);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }
    float *dev_a, *dev_b;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));

    bool ok = true;
    if (n <= SHOWN && all <= SHOWN) {
        float values[9 * SHOWN], *dev_values; // at most 8 steps
        HANDLE_ERROR(cudaMalloc(&dev_values, sizeof(values)));
        dot_steps<<<blocks, threads>>>(dev_a, dev_b, dev_values, n);
        HANDLE_LAUNCH();
        HANDLE_ERROR(
            cudaMemcpy(values, dev_values, (steps + 1) * all * sizeof(float), cudaMemcpyDeviceToHost));
        ok = print_steps(values, steps);
        HANDLE_ERROR(cudaFree(dev_values));
    }
    printf("A block adds           steps   stores       kernel   dot product\n");
    ok = run("by halves", dot, dev_a, dev_b, steps, 1) && ok;
    ok = run("with one thread", dot_one_thread, dev_a, dev_b, threads - 1, 1) && ok;
    if (all_store)
        ok = run("by halves, all store", dot_all_store, dev_a, dev_b, steps, threads) && ok;

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/dot.h" // check_dot()
#include "../common/timing.h"     // median_ms()

void settings(int argc, char **argv) {
    parse_options(
        argc, argv, "Dot products whose blocks add in different ways.", TIMES,
        {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"),
         OPTION_INT("blocks", &blocks, 1, 1 << 20, "blocks of the grid"),
         OPTION_INT("threads", &threads, 1, MAX_THREADS, "threads of a block: a power of two"),
         OPTION_FLAG("all-store", &all_store, "also a kernel in which every thread stores the sum")});
    if (threads & (threads - 1))
        quit(EXIT_USAGE, "--threads %d: must be a power of two, because a block adds in halves", threads);
    select_device();
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
}

// Row 0 of `values` has the sums of the threads, row s the values after step s.
static bool print_steps(const float *values, int steps) {
    int all = blocks * threads;
    float c = 0;
    for (int t = 0; t < all; t++) {
        printf("thread %d: elements", t);
        for (size_t i = t; i < n; i += all)
            printf(" %zu", i);
        printf(", sum %g\n", values[t]);
    }
    for (int step = 1; step <= steps; step++)
        for (int block = 0; block < blocks; block++) {
            printf("step %d, block %d:", step, block);
            for (int t = 0; t < threads >> step; t++)
                printf(" %g", values[step * all + block * threads + t]);
            printf("\n");
        }
    for (int block = 0; block < blocks; block++)
        c += values[steps * all + block * threads];
    return check_dot("last step", c, n, tree_additions(n, blocks, threads));
}

// Times a kernel and compares its result.
static bool run(const char *how, void (*kernel)(const float *, const float *, float *, size_t),
                const float *dev_a, const float *dev_b, int steps, int stores) {
    DeviceArray<float> dev_c(blocks, 0xff); // NaN
    float c = 0, ms = median_ms([&] { kernel<<<blocks, threads>>>(dev_a, dev_b, dev_c, n); });
    HostArray<float> partial_c(dev_c, blocks);
    for (int i = 0; i < blocks; i++)
        c += partial_c[i];
    printf("%-20s %7d %8d %9.4f ms   %.6g\n", how, steps, stores, ms, c);
    return check_dot(how, c, n, tree_additions(n, blocks, threads) + threads);
}

// Task: Each thread stores the sum of its products, from add_products(), in shared memory; a barrier follows.
// dot(): add_halves() adds. Thread 0 stores the sum of the block in c[blockIdx.x].
// dot_one_thread(): Thread 0 adds all values of its block in a loop and stores the sum in c[blockIdx.x].
