// SPDX-License-Identifier: MIT
/*
 * atomics_race: lost updates with plain additions, none with atomicAdd()
 *
 * Teaches: x++ is a read-modify-write (read x, add 1, write x), so one update is lost if two threads read x
 *          before either of them writes. This is a data race, and a race condition too, since the result
 *          depends on the order of the accesses. atomicAdd() performs the three steps as one atomic
 *          operation, so no update is lost. Ten more functions do the same with other operations, such as
 *          minimum, exchange and bitwise or.
 * Terms:   lost update, read-modify-write, race condition, data race, atomic operation, atomicAdd,
 *          atomicCAS, __syncwarp
 * Book:    9.3 (after the book)
 * Build:   nvcc -o atomics_race chapter09/atomics_race.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter09/atomics_race
 * Differs: the book shows two orders of the steps in tables. Here two threads run in all 20; then all 32
 *          threads of a warp read x before any of them writes it, so at least 31 of 32 additions are lost. A
 *          run with a separate x for each thread checks that all additions are carried out.
 * Check:   --blocks 16 --iterations 3 (race) | --blocks 16 --iterations 3 --no-races
 * Web:     --blocks 64
 */
#include "../common/book.h"

#define THREADS 256

static int blocks = 1024, iterations = 10; // --blocks, --iterations
static bool no_races;                      // --no-races
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

// Any order: bit `turn` of `order` is the number of the thread that makes its next step in this turn. A
// thread has three steps: it reads, adds and writes.
__global__ void in_order(int *x, unsigned order) {
    int mine = 0, step = 0;
    for (int turn = 0; turn < 6; turn++) {
        if ((order >> turn & 1) == threadIdx.x) {
            if (step == 0)
                mine = *x;
            else if (step == 1)
                mine++;
            else
                *x = mine;
            step++;
        }
        __syncthreads();
    }
}

// The atomic functions of CUDA for integers. 32 threads, i from 0 to 31, call each with an x of its own,
// which is 10 at first. Each function returns the x from before; of exchange and compare-and-swap the kernel
// counts the threads that got 10.
__global__ void each_function(unsigned *x) {
    unsigned i = threadIdx.x;
    atomicAdd(&x[0], i);
    atomicSub(&x[1], i);
    atomicMin(&x[2], i);
    atomicMax(&x[3], i);
    atomicInc(&x[4], 19);
    atomicDec(&x[5], 19);
    atomicAnd(&x[6], i | 8);
    atomicOr(&x[7], i);
    atomicXor(&x[8], 1u << i);
    int exchanged = __syncthreads_count(atomicExch(&x[9], 5) == 10);
    int swapped = __syncthreads_count(atomicCAS(&x[10], 10, 77) == 10);
    if (i == 0) {
        x[11] = exchanged;
        x[12] = swapped;
    }
}

// Name, value of x at the end, and what the function does
static const struct {
    const char *call;
    int x;
    const char *effect;
} functions[] = {
    {"atomicAdd(&x, i)", 506, "x + i; the sum of all i is 496"},
    {"atomicSub(&x, i)", -486, "x - i"},
    {"atomicMin(&x, i)", 0, "the smaller of x and i"},
    {"atomicMax(&x, i)", 31, "the larger of x and i"},
    {"atomicInc(&x, 19)", 2, "x + 1, but 0 after 19"},
    {"atomicDec(&x, 19)", 18, "x - 1, but 19 after 0"},
    {"atomicAnd(&x, i | 8)", 8, "x & (i | 8); only bit 3 is set in all i | 8"},
    {"atomicOr(&x, i)", 31, "x | i"},
    {"atomicXor(&x, 1 << i)", ~10, "x ^ (1 << i): thread i inverts bit i"},
    {"atomicExch(&x, 5)", 5, "5"},
    {"atomicCAS(&x, 10, 77)", 77, "77 if x is 10, else x"},
    {"atomicExch returned 10 to", 1, "thread: the first"},
    {"atomicCAS returned 10 to", 1, "thread: the first"},
};

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

// Runs the threads 0 (A) and 1 (B) in every order of their steps: those in which each has three of six turns.
static bool show_orders(void) {
    int *dev_x, got[20], expected[20], n = 0, right = 0;
    HANDLE_ERROR(cudaMalloc(&dev_x, sizeof(int)));
    for (int order = 63; order >= 0; order--) {
        if (__builtin_popcount(order) != 3)
            continue;
        const int start = 7;
        HANDLE_ERROR(cudaMemcpy(dev_x, &start, sizeof(int), cudaMemcpyHostToDevice));
        in_order<<<1, 2>>>(dev_x, order);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(&got[n], dev_x, sizeof(int), cudaMemcpyDeviceToHost));
        for (int turn = 0; turn < 6; turn++)
            putchar("AB"[order >> turn & 1]);
        printf(" x = %d%s", got[n], n % 5 == 4 ? "\n" : "   ");
        right += got[n] == 9;
        expected[n++] = order == 7 || order == 56 ? 9 : 8; // BBBAAA and AAABBB
    }
    HANDLE_ERROR(cudaFree(dev_x));
    printf("In %d of %d orders no addition is lost.\n", right, n);
    return check_ints("x of order", got, expected, n);
}

static bool show_functions(void) {
    const int count = sizeof(functions) / sizeof(functions[0]);
    int x[count], expected[count];
    unsigned *dev_x;
    for (int k = 0; k < count; k++) {
        x[k] = 10;
        expected[k] = functions[k].x;
    }
    HANDLE_ERROR(cudaMalloc(&dev_x, sizeof(x)));
    HANDLE_ERROR(cudaMemcpy(dev_x, x, sizeof(x), cudaMemcpyHostToDevice));
    each_function<<<1, 32>>>(dev_x);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(x, dev_x, sizeof(x), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev_x));
    for (int k = 0; k < count; k++)
        printf("%-25s %4d  %s\n", functions[k].call, x[k], functions[k].effect);
    return check_ints("x of function", x, expected, count);
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
    bool ok = no_races || show_steps("both read first:", both_read_first, 8);
    ok = show_steps("one after the other:", one_after_the_other, 9) && ok;
    ok = show_steps("atomicAdd:", atomically, 9) && ok;
    printf("Each order of the steps of two threads, A and B, from x = 7:\n");
    ok = show_orders() && ok;
    printf("32 threads, i = 0 to 31, call a function; x is 10 before, and then:\n");
    ok = show_functions() && ok;

    size_t threads = (size_t)blocks * THREADS, expected = threads * iterations;
    printf("%zu threads add 1 to x %d times each: x should be %zu.\n", threads, iterations, expected);
    unsigned *x = (unsigned *)malloc(threads * sizeof(unsigned));
    HANDLE_NULL(x);
    if (!no_races) {
        show_sum("x = x + 1:", add_to_one, x, threads);
        ok = check_value("31 of 32 are lost", x[0] >= 1 && x[0] <= expected / 32, 1, 0) && ok;
    }
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
               OPTION_INT("blocks", &blocks, 1, 1024, "blocks of 256 threads"),
               OPTION_FLAG("no-races", &no_races, "without the two kernels that have a data race")});
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
