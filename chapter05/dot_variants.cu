// SPDX-License-Identifier: MIT
/*
 * dot_variants: dot products whose blocks add in other ways, and the steps of a tree reduction
 *
 * Teaches: A tree reduction adds the n values of a block in log2(n) steps. One thread alone needs
 *          a step for each value, while all others wait. A small launch prints which elements each thread
 *          multiplies, and the values after each step. --all-store shows why only one thread stores the sum,
 *          --threads 6 why the size of a block has to be a power of two.
 * Terms:   tree reduction, shared memory, partial sum, barrier, grid-stride loop
 * Book:    5.3.1 (course); R 7.3 (Fig. 7.9): --size 48 --blocks 2 --threads 8; R 7.3 (128 blocks, as in
 *          Fig. 7.8): --size 32K --blocks 128 --threads 256
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
static bool run(const char *how, const float *dev_a, const float *dev_b, bool one_thread, bool all_store);
static bool print_steps(const float *values, int steps);
static bool check(const float *partial_c);

// The kernel of dot. With `one_thread`, thread 0 adds all values of its block. With `all_store`, every thread
// stores the sum of the block at the same place: right, but a data race, and needless traffic. If `values` is
// not NULL, the value of each thread is stored there before the first step of the tree and after each step.
__global__ void dot(const float *a, const float *b, float *c, size_t n, bool one_thread, bool all_store,
                    float *values) {
    __shared__ float cache[MAX_THREADS];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x, stride = (size_t)blockDim.x * gridDim.x;
    float temp = 0;
    for (size_t i = tid; i < n; i += stride)
        temp += a[i] * b[i];
    cache[threadIdx.x] = temp;
    if (values)
        values[tid] = temp;
    __syncthreads();

    if (one_thread && threadIdx.x == 0)
        for (unsigned i = 1; i < blockDim.x; i++)
            cache[0] += cache[i];
    for (unsigned i = one_thread ? 0 : blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        if (values) {
            values += stride;
            values[tid] = cache[threadIdx.x];
        }
        __syncthreads();
    }
    __syncthreads();
    if (all_store || threadIdx.x == 0)
        c[blockIdx.x] = cache[0];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float *a = (float *)malloc(n * sizeof(float)), *b = (float *)malloc(n * sizeof(float));
    float *partial_c = (float *)malloc(blocks * sizeof(float));
    HANDLE_NULL(a && b && partial_c);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }
    // As in dot_gmem: the time of allocation, copies and kernel, between two events (chapter 6)
    cudaEvent_t start, stop;
    float *dev_a, *dev_b, *dev_c, elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start));
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_c, blocks * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
    dot<<<blocks, threads>>>(dev_a, dev_b, dev_c, n, false, false, NULL);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(partial_c, dev_c, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventRecord(stop));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("%zu bytes came back\n", blocks * sizeof(float));
    printf("Time to generate:  %.3f ms, with allocation and copies\n", elapsedTime);

    bool ok = check(partial_c);
    int steps = log2(threads), all = blocks * threads;
    if (n <= SHOWN && all <= SHOWN) {
        float values[9 * SHOWN], *dev_values; // at most 8 steps
        size_t bytes = (steps + 1) * all * sizeof(float);
        HANDLE_ERROR(cudaMalloc(&dev_values, bytes));
        dot<<<blocks, threads>>>(dev_a, dev_b, dev_c, n, false, false, dev_values);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(values, dev_values, bytes, cudaMemcpyDeviceToHost));
        ok = print_steps(values, steps) && ok;
        HANDLE_ERROR(cudaFree(dev_values));
    }
    printf("A block adds           steps   stores       kernel   dot product\n");
    ok = run("by halves", dev_a, dev_b, false, false) && ok;
    ok = run("with one thread", dev_a, dev_b, true, false) && ok;
    if (threads & (threads - 1))
        printf("%d is no power of two: a step with an odd number of values leaves out the last one\n",
               threads);
    if (all_store)
        ok = run("by halves, all store", dev_a, dev_b, false, true) && ok;

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(partial_c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/dot.h" // check_dot()
#include "../common/timing.h"     // median_ms()

void settings(int argc, char **argv) {
    parse_options(argc, argv, "Dot products whose blocks add in different ways.", TIMES,
                  {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"),
                   OPTION_INT("blocks", &blocks, 1, 1 << 20, "blocks of the grid"),
                   OPTION_INT("threads", &threads, 1, MAX_THREADS, "threads of a block"),
                   OPTION_FLAG("all-store", &all_store, "also lets every thread store the sum")});
    select_device();
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
}

// Prints the values, and compares them with the same sums of whole numbers, which are exact.
static bool print_steps(const float *values, int steps) {
    int all = blocks * threads;
    double expected[9 * SHOWN] = {};
    for (size_t i = 0; i < n; i++)
        expected[i % all] += 2.0 * i * i;
    for (int half = threads / 2, i = all; half > 0; half /= 2)
        for (int end = i + all; i < end; i++)
            expected[i] = expected[i - all] + (i % threads < half ? expected[i - all + half] : 0);
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
    return check_floats("value", values, expected, (steps + 1) * all, 0);
}

static float sum_of(const float *partial_c) {
    float c = 0;
    for (int i = 0; i < blocks; i++)
        c += partial_c[i];
    return c;
}

static bool check(const float *partial_c) {
    return check_dot("first launch", sum_of(partial_c), n, tree_additions(n, blocks, threads));
}

// Times the kernel and compares its result.
static bool run(const char *how, const float *dev_a, const float *dev_b, bool one_thread, bool all_store) {
    DeviceArray<float> dev_c(blocks, 0xff); // NaN
    float ms =
        median_ms([&] { dot<<<blocks, threads>>>(dev_a, dev_b, dev_c, n, one_thread, all_store, NULL); });
    float c = sum_of(HostArray<float>(dev_c, blocks));
    printf("%-20s %7d %8d %9.4f ms   %.6g\n", how, one_thread ? threads - 1 : (int)log2(threads),
           all_store ? threads : 1, ms, c);
    return check_dot(how, c, n, tree_additions(n, blocks, threads) + threads);
}

// Task: none: the exercise is chapter05/dot, whose kernel it varies
