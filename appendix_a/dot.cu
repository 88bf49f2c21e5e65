// SPDX-License-Identifier: MIT
/*
 * dot: dot product on the device, with a mutex around the sum
 *
 * Teaches: A mutex lets one thread at a time execute a critical section. Here that is the addition of
 *          a block's partial sum to a total in global memory, so the dot product of chapter 5 needs
 *          no additions on the host. A plain addition can be lock-free: atomicAdd() needs no mutex, so
 *          no block waits for another one that was interrupted while it held the lock. Either way the
 *          blocks add in any order, so the rounding, and with it the sum, may differ from run to run.
 *          Blocks that take turns always give the same sum.
 * Terms:   mutex, critical section, atomic operation, compare-and-swap, memory fence, partial sum,
 *          atomicCAS, acquire, release, memory ordering, lock-free
 * Book:    A.1.2
 * Run:     ./bin/appendix_a/dot --ordered
 * Differs: the lock is released by an atomic exchange, and memory fences surround the critical section.
 *          The lock is created and freed by function calls, because the destructor in the book runs
 *          for each copy that a kernel gets. A second kernel uses atomicAdd() instead. The result is
 *          compared with the closed form. --ordered counts the different sums of 100 runs, with the
 *          lock and with blocks that add in a fixed order, which the book leaves to the reader.
 * Check:   --size 100000 | --size 9000 --ordered
 */
#include <numeric>
#include "../common/book.h"
#include "../common/proofs/dot.h"
#include "../common/timing.h"
#include "lock.h"

#define N (33 * 1024 * 1024)
const int threadsPerBlock = 256;

static size_t n = N;   // --size
static int blocks = 0; // --blocks
static bool check(const char *name, float c, float ms, int blocksPerGrid);

// The partial sum of part `block` of the vectors, for thread 0 of the block that computes it.
__device__ float block_sum(const float *a, const float *b, size_t n, unsigned block) {
    __shared__ float cache[threadsPerBlock];

    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)block * blockDim.x; tid < n; tid += stride)
        temp += a[tid] * b[tid];
    cache[threadIdx.x] = temp;
    __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    return cache[0];
}

__global__ void dot(Lock lock, const float *a, const float *b, float *c, size_t n) {
    float sum = block_sum(a, b, n, blockIdx.x);
    // Only one thread of each block takes the lock: lanes of one warp that wait for each other can
    // deadlock.
    if (threadIdx.x == 0) {
        lock.lock();
        *c += sum;
        lock.unlock();
    }
}

__global__ void dot_atomic(const float *a, const float *b, float *c, size_t n) {
    float sum = block_sum(a, b, n, blockIdx.x);
    if (threadIdx.x == 0)
        atomicAdd(c, sum);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int blocksPerGrid = blocks ? blocks : min_of(32, (n + threadsPerBlock - 1) / threadsPerBlock);

    float *a = host_array<float>(n), *b = host_array<float>(n), c;
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }

    float *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_c, sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
    auto reset = [&] { HANDLE_ERROR(cudaMemset(dev_c, 0, sizeof(float))); };

    Lock lock;
    lock.init();
    auto locked = [&] { dot<<<blocksPerGrid, threadsPerBlock>>>(lock, dev_a, dev_b, dev_c, n); };
    float ms = median_ms(locked, reset);
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = check("With a lock:", c, ms, blocksPerGrid);
    lock.release();

    auto atomic = [&] { dot_atomic<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_c, n); };
    ms = median_ms(atomic, reset);
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    ok = check("With atomicAdd():", c, ms, blocksPerGrid) && ok;

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

// For --ordered: blocks that add in a fixed order. counters[0]: the number of blocks that have started,
// counters[1]: of those that have added. Each block draws a ticket, computes the part with that number and
// adds when the tickets before it have added. So a block waits only for blocks that have started before it.
// If blockIdx.x were the ticket, the waiting blocks could fill the device while the block that they wait for
// has not started.
__global__ void dot_ordered(unsigned *counters, const float *a, const float *b, float *c, size_t n) {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0)
        ticket = atomicAdd(&counters[0], 1);
    __syncthreads();
    float sum = block_sum(a, b, n, ticket);
    if (threadIdx.x == 0) {
        while (atomicAdd(&counters[1], 0) != ticket)
            ;
        __threadfence(); // memory fences, as in lock() and unlock()
        *c += sum;
        __threadfence();
        atomicAdd(&counters[1], 1);
    }
}

__global__ void partial_sums(const float *a, const float *b, float *partial_c, size_t n) {
    float sum = block_sum(a, b, n, blockIdx.x);
    if (threadIdx.x == 0)
        partial_c[blockIdx.x] = sum;
}

#define RUNS 100

// For --ordered: the sums of many runs, with the lock and in order. In order, each run must give the sum that
// the host gets when it adds the partial sums one after the other, as in chapter 5. Returns the exit status.
static int compare_orders(void) {
    int blocksPerGrid = blocks ? blocks : min_of(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    HostArray<float> a(n), b(n);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }
    DeviceArray<float> dev_a(a, n), dev_b(b, n), dev_c(1), dev_partial_c(blocksPerGrid);
    DeviceArray<unsigned> dev_counters(2);
    Lock lock;
    lock.init();

    partial_sums<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();
    HostArray<float> partial_c(dev_partial_c, blocksPerGrid);
    float of_host = std::accumulate(+partial_c, partial_c + blocksPerGrid, 0.0f);
    printf("Added by the host: %.9g\n", of_host);

    bool ok = true;
    for (int ordered = 0; ordered < 2; ordered++) {
        float sums[RUNS];
        for (float &sum : sums) {
            HANDLE_ERROR(cudaMemset(dev_c, 0, sizeof(float)));
            HANDLE_ERROR(cudaMemset(dev_counters, 0, 2 * sizeof(unsigned)));
            if (ordered) {
                dot_ordered<<<blocksPerGrid, threadsPerBlock>>>(dev_counters, dev_a, dev_b, dev_c, n);
                HANDLE_LAUNCH();
            } else {
                dot<<<blocksPerGrid, threadsPerBlock>>>(lock, dev_a, dev_b, dev_c, n);
                HANDLE_LAUNCH();
            }
            HANDLE_ERROR(cudaMemcpy(&sum, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
        }
        int bits[RUNS], expected; // compared as ints: every bit must be equal
        memcpy(bits, sums, sizeof(bits));
        memcpy(&expected, &of_host, sizeof(expected));
        if (ordered)
            ok = check_ints("sum in order", bits, RUNS, [=](int) { return expected; }) && ok;
        for (float sum : sums)
            ok = ok && check_dot("sum", sum, n, tree_additions(n, blocksPerGrid, threadsPerBlock));
        std::sort(bits, bits + RUNS);
        int different = std::unique(bits, bits + RUNS) - bits;
        printf("%-13s %d different sum%s in %d runs\n", ordered ? "In order:" : "With a lock:", different,
               different == 1 ? "" : "s", RUNS);
    }

    lock.release();
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With --ordered the program ends here.
void settings(int argc, char **argv) {
    bool ordered = false;
    configure(
        argc, argv, "Dot product on the device, under a lock.", TIMES,
        {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
         OPTION_FLAG("ordered", &ordered, "count the different sums of many runs, also in a fixed order"),
         OPTION_INT("blocks", &blocks, 0, 65536, "blocks; 0 stands for one per 256 elements, at most 32")});
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
    if (ordered)
        exit(compare_orders());
}

// Each product goes through the additions of its thread, those of the tree, and those of all blocks.
static bool check(const char *name, float c, float ms, int blocksPerGrid) {
    double per_thread = ceil((double)n / ((double)blocksPerGrid * threadsPerBlock));
    double bytes = 2.0 * n * sizeof(float); // both vectors are read
    printf("Does GPU value %.6g = %.6g?\n", c, expected_dot(n));
    printf("%-18s %.3f ms, %.3f GB/s\n", name, ms, bytes / ms / 1e6);
    return check_dot(name, c, n, per_thread + log2(threadsPerBlock) + blocksPerGrid);
}

// Task: block_sum(): Return the sum of the products a[i] * b[i] of part `block` of a grid-stride loop, which
// are the products of the block with that index. Only thread 0 needs the right result. Each thread adds its
// products; a tree reduction in shared memory adds the partial sums of the block's threadsPerBlock threads,
// with a barrier for all threads of the block between writing and reading.
// dot(): Thread 0 of each block adds the sum of its block to *c. The addition is a critical section between
// lock.lock() and lock.unlock(), without an atomic operation.
// dot_atomic(): The same with an atomic addition instead of the lock.
