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
 * Run:     ./bin/appendix_a/dot --ordered
 * Differs: an atomic exchange unlocks; fences, init() and release(): see lock.h. A second kernel uses
 *          atomicAdd(). --ordered counts the different sums of 100 runs, also in order. --naive-lock shows
 *          that the lock with which the book begins does not work, and ends with status 1.
 * Check:   --size 100000 | --size 9000 --ordered
 */
#include <numeric>
#include "../common/book.h"
#include "../common/checks/dot.h"
#include "../common/timing.h"
#include "lock.h"

#define imin(a, b)     ((a) < (b) ? (a) : (b))
#define sum_squares(x) ((x) * ((x) + 1) * (2 * (x) + 1) / 6) // 0² + 1² + ... + x²

#define N (33 * 1024 * 1024)
const int threadsPerBlock = 256;

static size_t n = N;                                                              // --size
static int blocksPerGrid = imin(32, (N + threadsPerBlock - 1) / threadsPerBlock); // --blocks
static bool time_kernels(Lock lock, const float *dev_a, const float *dev_b, float *dev_c);
static bool check_each_element(Lock lock, float *a, float *dev_a, float *dev_b, float *dev_c);

__global__ void dot(Lock lock, const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    unsigned cacheIndex = threadIdx.x;

    float temp = 0;
    for (; tid < n; tid += (size_t)blockDim.x * gridDim.x)
        temp += a[tid] * b[tid];
    cache[cacheIndex] = temp;
    __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }

    // Only one thread of each block takes the lock: lanes of one warp that wait for each other can
    // deadlock.
    if (cacheIndex == 0) {
        lock.lock();
        *c += cache[0];
        lock.unlock();
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float *a = host_array<float>(n), *b = host_array<float>(n), c = 0;

    float *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_c, sizeof(float)));

    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_c, &c, sizeof(float), cudaMemcpyHostToDevice));

    Lock lock;
    lock.init();
    dot<<<blocksPerGrid, threadsPerBlock>>>(lock, dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    printf("Does GPU value %.6g = %.6g?\n", c, 2 * sum_squares(n - 1.0));
    bool ok = check_dot("dot product", c, n, tree_additions(n, blocksPerGrid, threadsPerBlock));
    ok = time_kernels(lock, dev_a, dev_b, dev_c) && ok; // with the lock, and with atomicAdd()
    ok = check_each_element(lock, a, dev_a, dev_b, dev_c) && ok;

    lock.release();
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// The variant without a lock: one atomic addition per block.
__global__ void dot_atomic(const float *a, const float *b, float *c, size_t n) {
    float sum = block_dot<threadsPerBlock>(a, b, n, blockIdx.x);
    if (threadIdx.x == 0)
        atomicAdd(c, sum);
}

static void launch(bool atomic, Lock lock, const float *a, const float *b, float *c, size_t n) {
    if (atomic) {
        dot_atomic<<<blocksPerGrid, threadsPerBlock>>>(a, b, c, n);
        HANDLE_LAUNCH();
    } else {
        dot<<<blocksPerGrid, threadsPerBlock>>>(lock, a, b, c, n);
        HANDLE_LAUNCH();
    }
}

// Prints the times of both kernels and checks the sums of the last runs.
static bool time_kernels(Lock lock, const float *dev_a, const float *dev_b, float *dev_c) {
    bool ok = true;
    for (bool atomic : {false, true}) {
        const char *name = atomic ? "With atomicAdd():" : "With a lock:";
        float c = NAN;
        float ms = median_ms([=] { launch(atomic, lock, dev_a, dev_b, dev_c, n); },
                             [=] { HANDLE_ERROR(cudaMemset(dev_c, 0, sizeof(float))); });
        HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
        if (atomic)
            printf("Does GPU value %.6g = %.6g?\n", c, expected_dot(n));
        printf("%-18s %.3f ms, %.3f GB/s\n", name, ms, 2.0 * n * sizeof(float) / ms / 1e6); // reads a and b
        ok = check_dot(name, c, n, tree_additions(n, blocksPerGrid, threadsPerBlock)) && ok;
    }
    return ok;
}

// A loss of the first elements changes the sum less than rounding does. On vectors of ones the sum is the
// number of elements, which is exact up to 2^24. Overwrites the vectors.
static bool check_each_element(Lock lock, float *a, float *dev_a, float *dev_b, float *dev_c) {
    size_t ones = min_of(n, 1 << 24);
    std::fill(a, a + ones, 1.0f);
    HANDLE_ERROR(cudaMemcpy(dev_a, a, ones * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, a, ones * sizeof(float), cudaMemcpyHostToDevice));
    bool ok = true;
    for (bool atomic : {false, true}) {
        HANDLE_ERROR(cudaMemset(dev_c, 0, sizeof(float)));
        launch(atomic, lock, dev_a, dev_b, dev_c, ones);
        ok = check_value("number of elements", HostArray<float>(dev_c, 1)[0], ones, 0) && ok;
    }
    return ok;
}

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
    float sum = block_dot<threadsPerBlock>(a, b, n, ticket);
    if (threadIdx.x == 0) {
        while (atomicAdd(&counters[1], 0) != ticket)
            ;
        __threadfence(); // memory fences, as in lock() and unlock()
        *c += sum;
        __threadfence();
        atomicAdd(&counters[1], 1);
    }
}

#define RUNS 100

// For --ordered: the sums of many runs, with the lock and in order. In order, each run must give the sum that
// the host gets when it adds the partial sums one after the other, as in chapter 5. Returns the exit status.
static int compare_orders(void) {
    HostArray<float> a(n), b(n);
    fill_dot(a, b, n);
    DeviceArray<float> dev_a(a, n), dev_b(b, n), dev_c(1), dev_partial_c(blocksPerGrid);
    DeviceArray<unsigned> dev_counters(2);
    Lock lock;
    lock.init();

    dot_of_blocks<threadsPerBlock><<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n, 1);
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
            } else
                launch(false, lock, dev_a, dev_b, dev_c, n);
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

// For --naive-lock: 32 threads try to take a lock by a test and an assignment. The barrier makes all of them
// test before one of them assigns: without it, this order is possible.
__global__ void try_lock(int *mutex, int *owners) {
    bool is_free = *mutex == 0;
    __syncwarp();
    if (is_free) {
        *mutex = 1;
        atomicAdd(owners, 1);
    }
}

static int show_naive_lock(void) {
    DeviceArray<int> dev_mutex(1, 0), dev_owners(1, 0);
    try_lock<<<1, 32>>>(dev_mutex, dev_owners);
    HANDLE_LAUNCH();
    int owners = HostArray<int>(dev_owners, 1)[0];
    printf("if (*mutex == 0) *mutex = 1: %d of 32 threads took the lock\n", owners);
    return check_value("owners of the lock", owners, 1, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With --ordered or --naive-lock the program ends here.
void settings(int argc, char **argv) {
    bool ordered = false, naive_lock = false;
    int blocks = 0;
    configure(
        argc, argv, "Dot product on the device, under a lock.", TIMES,
        {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"),
         OPTION_FLAG("ordered", &ordered, "count the different sums of many runs, also in a fixed order"),
         OPTION_FLAG("naive-lock", &naive_lock, "wrong: takes a lock without an atomic operation"),
         OPTION_INT("blocks", &blocks, 0, 65536, "blocks; 0 stands for one per 256 elements, at most 32")});
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
    blocksPerGrid = blocks ? blocks : imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    if (ordered)
        exit(compare_orders());
    if (naive_lock)
        exit(show_naive_lock());
}

// Task: dot(): The grid has any number of blocks of threadsPerBlock threads, a power of two. Each thread adds
// the products a[i] * b[i] of a grid-stride loop over i < n. A tree reduction in shared memory adds the
// partial sums of the threads of a block, with a barrier for all threads of the block between writing and
// reading. Thread 0 of each block adds the sum of its block to *c. The addition is a critical section between
// lock.lock() and lock.unlock(), without an atomic operation.
