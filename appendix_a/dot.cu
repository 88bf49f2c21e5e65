// SPDX-License-Identifier: MIT
/*
 * dot: dot product on the device, with a mutex around the sum
 *
 * Teaches: A mutex lets one thread at a time execute a critical section. Here that is the addition of a
 *          block's partial sum to a total in global memory, so the dot product of chapter 5 needs no
 *          additions on the host. atomicAdd() needs no mutex: this addition is lock-free. The blocks add in
 *          any order, so the rounding, and with it the sum, may differ from run to run.
 * Terms:   mutex, critical section, atomic operation, compare-and-swap, memory fence, partial sum,
 *          atomicCAS, acquire, release, memory ordering, lock-free
 * Book:    A.1.2
 * Build:   nvcc -o dot appendix_a/dot.cu common/lib/[a-z]*.c
 * Run:     ./bin/appendix_a/dot --size 1M
 * Differs: unlock() stores 0, not 1; fences, and release() in place of a destructor: see lock.h. A second
 *          kernel adds with atomicAdd(), as one would today. locks has the lock with which the book begins.
 * Check:   --size 100000
 * Web:     --size 4M
 */
#include "../common/book.h"
#include "lock.h"

#define imin(a, b)     ((a) < (b) ? (a) : (b))
#define sum_squares(x) ((x) * ((x) + 1) * (2 * (x) + 1) / 6) // 0² + 1² + ... + x²

#define N (33 * 1024 * 1024)
const int threadsPerBlock = 256;

static size_t n = N; // --size
static bool check(float c, int blocks);
static bool time_kernels(Lock lock, float *a, float *dev_a, float *dev_b, float *dev_c, int blocks);

__global__ void dot(Lock lock, const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    unsigned cacheIndex = threadIdx.x;

    float temp = 0;
    while (tid < n) {
        temp += a[tid] * b[tid];
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }

    // One thread of each block takes the lock, because lanes of one warp that wait for each other can
    // deadlock.
    if (cacheIndex == 0) {
        lock.lock();
        *c += cache[0];
        lock.unlock();
    }
}

// The same up to the sum of the block, which one atomic operation adds: there is no lock to wait for.
__global__ void dot_atomic(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    unsigned cacheIndex = threadIdx.x;

    float temp = 0;
    while (tid < n) {
        temp += a[tid] * b[tid];
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }

    if (cacheIndex == 0)
        atomicAdd(c, cache[0]);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int blocksPerGrid = imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    float *a = (float *)malloc(n * sizeof(float)), *b = (float *)malloc(n * sizeof(float)), c = 0;
    HANDLE_NULL(a && b);

    float *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, sizeof(float)));

    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_c, &c, sizeof(float), cudaMemcpyHostToDevice));

    Lock lock;
    dot<<<blocksPerGrid, threadsPerBlock>>>(lock, dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    printf("Does GPU value %.6g = %.6g?\n", c, 2 * sum_squares(n - 1.0));
    bool ok = check(c, blocksPerGrid);

    c = 0;
    HANDLE_ERROR(cudaMemcpy(dev_c, &c, sizeof(float), cudaMemcpyHostToDevice));
    dot_atomic<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    printf("Does GPU value %.6g = %.6g?\n", c, 2 * sum_squares(n - 1.0));
    ok = check(c, blocksPerGrid) && ok;

    ok = time_kernels(lock, a, dev_a, dev_b, dev_c, blocksPerGrid) && ok;

    lock.release();
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/dot.h" // check_dot(), tree_additions()
#include "../common/timing.h"     // median_ms()

void settings(int argc, char **argv) {
    configure(argc, argv, "Dot product on the device, under a lock.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector")});
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
}

static bool check(float c, int blocks) {
    return check_dot("dot product", c, n, tree_additions(n, blocks, threadsPerBlock));
}

// Prints a time. The sum of the last run must be exact.
static bool check_rate(const char *name, float ms, const float *dev_c) {
    printf("%-18s %.3f ms, %.3f GB/s\n", name, ms, 2.0 * n * sizeof(float) / ms / 1e6); // reads a and b
    return check_value("number of elements", HostArray<float>(dev_c, 1)[0], min_of(n, 1 << 24), 0);
}

// Times both kernels on vectors of ones. There each element counts in the sum, while main() loses the first
// products in the rounding of the others. Only 2^24 elements are ones, because further sums are not exact.
static bool time_kernels(Lock lock, float *a, float *dev_a, float *dev_b, float *dev_c, int blocks) {
    for (size_t i = 0; i < n; i++)
        a[i] = i < 1 << 24;
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, a, n * sizeof(float), cudaMemcpyHostToDevice));
    auto clear = [=] { HANDLE_ERROR(cudaMemset(dev_c, 0, sizeof(float))); };
    float ms = median_ms([=] { dot<<<blocks, threadsPerBlock>>>(lock, dev_a, dev_b, dev_c, n); }, clear);
    bool ok = check_rate("With a lock:", ms, dev_c);
    ms = median_ms([=] { dot_atomic<<<blocks, threadsPerBlock>>>(dev_a, dev_b, dev_c, n); }, clear);
    return check_rate("With atomicAdd():", ms, dev_c) && ok;
}

// Task: dot(): The grid has any number of blocks of threadsPerBlock threads, a power of two. Each thread adds
// the products a[i] * b[i] of a grid-stride loop over i < n. A tree reduction in shared memory adds the
// partial sums of the threads of a block, with a barrier for all threads of the block between writing and
// reading. Thread 0 of each block adds the sum of its block to *c. The addition is a critical section between
// lock.lock() and lock.unlock(), without an atomic operation.
// dot_atomic(): The same up to the sum of the block, which one atomic operation adds to *c, without a lock.
