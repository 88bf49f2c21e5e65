// SPDX-License-Identifier: MIT
/*
 * locks: what a lock needs, and the order that it does not give
 *
 * Teaches: A test and an assignment are not a lock: between them other threads find the mutex free as well.
 *          The compare-and-swap of a lock is one atomic operation. Threads take a lock in any order, so a sum
 *          of floats may differ from run to run. With tickets the blocks add in a fixed order.
 * Terms:   mutex, critical section, atomic operation, partial sum, memory fence
 * Book:    A.1.2 (after the book)
 * Build:   nvcc -o locks appendix_a/locks.cu common/lib/[a-z]*.c
 * Run:     ./bin/appendix_a/locks --size 9000
 * Differs: the book says both in its text. With --naive the status is 1, because the lock is wrong.
 * Check:   --size 9000
 */
#include "../common/book.h"
#include "lock.h"

#define N      100000
#define BLOCKS 32 // of one thread each
#define RUNS   100

static size_t n = N; // --size
static bool naive;   // --naive
static int take_naive_lock(void);
static void print_different(const char *name, const float *sums);
static bool check(const float *a, float of_host, const float *under_lock, const float *in_order);

// Wrong: 32 threads try to take a lock by a test and an assignment. The barrier makes all of them test before
// one of them assigns; without it, this order is possible.
__global__ void try_lock(int *mutex, int *owners) {
    bool is_free = *mutex == 0;
    __syncwarp();
    if (is_free) {
        *mutex = 1;
        atomicAdd(owners, 1);
    }
}

// The partial sum of a block: every 32nd element
__host__ __device__ float partial_sum(const float *a, size_t n, unsigned block) {
    float sum = 0;
    for (size_t i = block; i < n; i += BLOCKS)
        sum += a[i];
    return sum;
}

// Each block adds its partial sum, in the order in which the blocks take the lock.
__global__ void add_under_lock(Lock lock, const float *a, float *c, size_t n) {
    float sum = partial_sum(a, n, blockIdx.x);
    lock.lock();
    *c += sum;
    lock.unlock();
}

// Each block draws a ticket, computes the partial sum with that number, and adds it when all tickets before
// it have added. So it waits only for blocks that have started before it. If blockIdx.x were the ticket,
// waiting blocks could fill the device while the block that they wait for has not started.
__global__ void add_in_order(unsigned *started, unsigned *added, const float *a, float *c, size_t n) {
    unsigned ticket = atomicAdd(started, 1);
    float sum = partial_sum(a, n, ticket);
    while (atomicAdd(added, 0) != ticket)
        ;
    __threadfence(); // memory fences, as in lock() and unlock()
    *c += sum;
    __threadfence();
    atomicAdd(added, 1);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (naive)
        return take_naive_lock();
    float *a = (float *)malloc(n * sizeof(float)), c = 0, under_lock[RUNS], in_order[RUNS];
    HANDLE_NULL(a);
    random_floats(a, n, 1.0f);
    for (int block = 0; block < BLOCKS; block++)
        c += partial_sum(a, n, block);
    printf("Added by the host: %.9g\n", c);

    Lock lock;
    float *dev_a, *dev_c;
    unsigned *dev_started, *dev_added;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_started, sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_added, sizeof(unsigned)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    for (int i = 0; i < RUNS; i++) {
        HANDLE_ERROR(cudaMemset(dev_c, 0, sizeof(float)));
        add_under_lock<<<BLOCKS, 1>>>(lock, dev_a, dev_c, n);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(&under_lock[i], dev_c, sizeof(float), cudaMemcpyDeviceToHost));

        HANDLE_ERROR(cudaMemset(dev_c, 0, sizeof(float)));
        HANDLE_ERROR(cudaMemset(dev_started, 0, sizeof(unsigned)));
        HANDLE_ERROR(cudaMemset(dev_added, 0, sizeof(unsigned)));
        add_in_order<<<BLOCKS, 1>>>(dev_started, dev_added, dev_a, dev_c, n);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(&in_order[i], dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    }
    print_different("With a lock:", under_lock);
    print_different("In order:", in_order);
    bool ok = check(a, c, under_lock, in_order);

    lock.release();
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_c));
    HANDLE_ERROR(cudaFree(dev_started));
    HANDLE_ERROR(cudaFree(dev_added));
    free(a);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Adds partial sums under a lock, and in a fixed order.", 0,
              {OPTION_SIZE("size", &n, 1, 1 << 28, "floats to add"),
               OPTION_FLAG("naive", &naive, "wrong: takes a lock without an atomic operation")});
    require_memory(n * sizeof(float), n * sizeof(float));
}

static int take_naive_lock(void) {
    DeviceArray<int> dev_mutex(1, 0), dev_owners(1, 0);
    try_lock<<<1, 32>>>(dev_mutex, dev_owners);
    HANDLE_LAUNCH();
    int owners = HostArray<int>(dev_owners, 1)[0];
    printf("if (*mutex == 0) *mutex = 1: %d of 32 threads took the lock\n", owners);
    return check_value("owners of the lock", owners, 1, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void print_different(const char *name, const float *sums) {
    int different = 0;
    for (int i = 0; i < RUNS; i++)
        different += std::find(sums, sums + i, sums[i]) == sums + i; // no earlier run has this sum
    printf("%-13s %d different sum%s in %d runs\n", name, different, different == 1 ? "" : "s", RUNS);
}

// In order each sum is that of the host, to the last bit. Under the lock, rounding may change each addition.
static bool check(const float *a, float of_host, const float *under_lock, const float *in_order) {
    double exact = 0, limit = (ceil((double)n / BLOCKS) + BLOCKS) * 0x1p-24;
    for (size_t i = 0; i < n; i++)
        exact += a[i];
    bool ok = check_floats("sum in order", in_order, RUNS, 0, [=](size_t) { return of_host; });
    return check_floats("sum under a lock", under_lock, RUNS, limit, [=](size_t) { return exact; }) && ok;
}

// Task: add_in_order(): BLOCKS blocks of one thread each add partial_sum(a, n, 0), partial_sum(a, n, 1) and
// so on to *c, in this order. *started counts the blocks that have begun, *added those that have added; both
// begin with 0. No block may wait for one that has not begun.
