// SPDX-License-Identifier: MIT
/*
 * atomics_race: lost updates with plain additions, none with atomicAdd()
 *
 * Teaches: x++ is a read-modify-write (read x, add 1, write x), so one update is lost if two threads read x
 *          before either of them writes. This is a data race, and a race condition too, since the result
 *          depends on the order of the accesses. atomicAdd() performs the three steps as one atomic
 *          operation, so no update is lost.
 * Terms:   lost update, read-modify-write, race condition, data race, atomic operation, atomicAdd,
 *          __syncwarp
 * Book:    9.3 (after the book)
 * Build:   nvcc -o atomics_race chapter09/atomics_race.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter09/atomics_race
 * Differs: the book shows two orders of the steps in tables. Here two threads run in each order; then all 32
 *          threads of a warp read x before any of them writes it, so at least 31 of 32 additions are lost. A
 *          run with a separate x for each thread checks that all additions are carried out.
 * Check:   --blocks 16 --iterations 3 (race)
 */
#include "../common/book.h"

#define THREADS 256

static int blocks = 1024, iterations = 10; // --blocks, --iterations
static bool check_each(const unsigned *x, size_t threads);

// Two threads add 1 to x. seen[i] is the value that thread i wrote. The barriers force one order of the
// steps, so that the result is the same in every run; without barriers each order can occur.
__global__ void both_read_first(int *x, int *seen) {
    int mine = *x;
    __syncthreads();
    mine++;
    *x = mine;
    seen[threadIdx.x] = mine;
}

__global__ void one_after_the_other(int *x, int *seen) {
    for (unsigned turn = 0; turn < blockDim.x; turn++) {
        if (turn == threadIdx.x) {
            int mine = *x;
            mine++;
            *x = mine;
            seen[threadIdx.x] = mine;
        }
        __syncthreads();
    }
}

__global__ void atomically(int *x, int *seen) {
    seen[threadIdx.x] = atomicAdd(x, 1) + 1;
}

// Adds 1 to x many times. x is volatile so that the compiler keeps each read and write. With the barrier
// between read and write the loss is certain: all lanes of a warp have read x before one of them writes it.
__device__ void add_plainly(volatile unsigned *x, int iterations) {
    for (int i = 0; i < iterations; i++) {
        unsigned mine = *x;
        __syncwarp();
        *x = mine + 1;
    }
}

__global__ void add_to_one(unsigned *x, int iterations) {
    add_plainly(x, iterations);
}

__global__ void add_to_each(unsigned *x, int iterations) {
    add_plainly(x + threadIdx.x + blockIdx.x * blockDim.x, iterations);
}

__global__ void add_atomically(unsigned *x, int iterations) {
    for (int i = 0; i < iterations; i++)
        atomicAdd(x, 1);
}

// Runs a kernel in two threads, and prints x and what they wrote.
static bool show_steps(const char *name, void (*kernel)(int *, int *), int expected) {
    const int start = 7;
    int *dev, got[3] = {start, 0, 0}; // x, and what the two threads wrote
    HANDLE_ERROR(cudaMalloc(&dev, sizeof(got)));
    HANDLE_ERROR(cudaMemcpy(dev, got, sizeof(got), cudaMemcpyHostToDevice));
    kernel<<<1, 2>>>(dev, dev + 1);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev));
    if (got[1] > got[2]) // sorted, because either thread may be the first to add
        swap(got[1], got[2]);
    printf("%-22s x = %d; one wrote %d, the other %d; x = %d\n", name, start, got[1], got[2], got[0]);
    const int values[3] = {expected, start + 1, expected};
    return check_ints(name, got, values, 3);
}

// Runs a kernel in many threads, and prints the sum over all x, which is x[0] where there is only one.
static void show_sum(const char *name, void (*kernel)(unsigned *, int), unsigned *x, size_t threads) {
    unsigned *dev_x, sum = 0;
    HANDLE_ERROR(cudaMalloc(&dev_x, threads * sizeof(unsigned)));
    HANDLE_ERROR(cudaMemset(dev_x, 0, threads * sizeof(unsigned)));
    kernel<<<blocks, THREADS>>>(dev_x, iterations);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(x, dev_x, threads * sizeof(unsigned), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev_x));
    for (size_t i = 0; i < threads; i++)
        sum += x[i];
    printf("%-22s x = %u, %u lost\n", name, sum, (unsigned)threads * iterations - sum);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    printf("Two threads add 1 to x.\n");
    bool ok = show_steps("both read first:", both_read_first, 8);
    ok = show_steps("one after the other:", one_after_the_other, 9) && ok;
    ok = show_steps("atomicAdd:", atomically, 9) && ok;

    size_t threads = (size_t)blocks * THREADS, expected = threads * iterations;
    printf("%zu threads add 1 to x %d times each: x should be %zu.\n", threads, iterations, expected);
    unsigned *x = (unsigned *)malloc(threads * sizeof(unsigned));
    HANDLE_NULL(x);
    show_sum("x = x + 1:", add_to_one, x, threads);
    show_sum("each its own x:", add_to_each, x, threads);
    ok = check_each(x, threads) && ok;
    show_sum("atomicAdd:", add_atomically, x, threads);
    ok = check_value("x", x[0], expected, 0) && ok;

    free(x);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Shows additions that are lost.", 0,
              {OPTION_INT("iterations", &iterations, 1, 10000, "additions of each thread"),
               OPTION_INT("blocks", &blocks, 1, 1024, "blocks of 256 threads")});
}

// Each thread had an x of its own, so nothing can be lost: every x is the number of iterations.
static bool check_each(const unsigned *x, size_t threads) {
    return check_ints("additions of thread", (const int *)x, threads, [](size_t) { return iterations; });
}

// Task: Two threads of one block add 1 to the int that x points to. Thread i stores in seen[i] the value that
// it has written to this int.
// both_read_first(): Both threads read the int before either of them writes it, so one addition is lost. A
// barrier between reading and writing forces this order.
// one_after_the_other(): The threads add in turn, without atomic operations: one turn per thread, and a
// barrier for all threads after each turn.
// atomically(): Each thread adds 1 with one atomic operation. From the return value it computes the value
// that it has written.
// add_atomically(): Each thread of the grid adds 1 to the unsigned that x points to, `iterations` times, with
// atomic operations.
