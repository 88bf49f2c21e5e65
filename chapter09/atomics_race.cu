// SPDX-License-Identifier: MIT
/*
 * atomics_race: additions that are lost, and atomicAdd(), which loses none
 *
 * Teaches: x++ is three steps: read x, add 1, write x. When another thread reads between the read
 *          and the write of the first, both write the same number and one addition is lost.
 *          atomicAdd() makes one step of the three, which nothing can come between.
 * Book:    9.3
 * Run:     ./bin/chapter09/atomics_race
 * Differs: the book has the order of the steps as a table. Here two threads run through both
 *          orders, and then many threads add at once. The 32 threads of a warp read x together and
 *          then write it together, so at least 31 of 32 additions are lost. That none is left out
 *          is checked: the same kernel adds with an x for each thread, and nothing is lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#include "../common/book.h"

#define THREADS    256
#define BLOCKS     1024
#define ITERATIONS 10

// Two threads add 1 to x. Step by step, with what each had in its hands: seen[thread]. The barriers
// make the order certain; they need not be there for it to happen.
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

// Many threads add 1 to x many times: to the same one, or each to its own when they are `apart`.
// volatile, or the compiler would add once for all. The threads of a warp meet between read and
// write. A GPU runs them in step anyway, so they lose additions without this too; the CPU back end
// runs a thread to its end before the next one starts, unless threads have to wait for each other.
__global__ void add_plainly(volatile unsigned *x, int iterations, bool apart) {
    if (apart)
        x += threadIdx.x + blockIdx.x * blockDim.x;
    for (int i = 0; i < iterations; i++) {
        unsigned mine = *x;
        __syncwarp();
        *x = mine + 1;
    }
}

__global__ void add_atomically(unsigned *x, int iterations) {
    for (int i = 0; i < iterations; i++)
        atomicAdd(x, 1);
}

static bool show_steps(const char *name, void (*kernel)(int *, int *), int expected) {
    const int start = 7;
    int *dev, got[3] = {start, 0, 0}; // x, then what either thread wrote
    HANDLE_ERROR(cudaMalloc((void **)&dev, sizeof(got)));
    HANDLE_ERROR(cudaMemcpy(dev, got, sizeof(got), cudaMemcpyHostToDevice));
    kernel<<<1, 2>>>(dev, dev + 1);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev));
    if (got[1] > got[2]) // which of the two came first is chance
        swap(got[1], got[2]);
    printf("%-22s x = %d; one wrote %d, the other %d; x = %d\n", name, start, got[1], got[2],
           got[0]);
    const int written[3] = {expected, start + 1, expected};
    return check_ints(name, got, written, 3);
}

enum { TOGETHER, APART, ATOMICALLY };

int main(int argc, char **argv) {
    int iterations = ITERATIONS, blocks = BLOCKS;
    const Option own[] = {
        OPTION_INT("iterations", &iterations, 1, 10000, "additions of each thread"),
        OPTION_INT("blocks", &blocks, 1, 1024, "blocks of 256 threads"), OPTION_END};
    parse_options(argc, argv, "Shows additions that are lost.", TIMES, own);
    select_device();

    printf("Two threads add 1 to x.\n");
    bool ok = show_steps("both read first:", both_read_first, 8);
    ok = show_steps("one after the other:", one_after_the_other, 9) && ok;
    ok = show_steps("atomicAdd:", atomically, 9) && ok;

    const int threads = blocks * THREADS;
    unsigned expected = (unsigned)threads * iterations;
    unsigned *dev_x, *x = (unsigned *)malloc(threads * sizeof(unsigned));
    HANDLE_NULL(x);
    const std::vector<int> each(threads, iterations);
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaMalloc((void **)&dev_x, threads * sizeof(unsigned)));
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    printf("%d threads add 1 to x %d times each: x should be %u.\n", threads, iterations, expected);
    for (int way = TOGETHER; way <= ATOMICALLY; way++) {
        HANDLE_ERROR(cudaMemset(dev_x, 0, threads * sizeof(unsigned)));
        HANDLE_ERROR(cudaEventRecord(start, 0));
        if (way == ATOMICALLY) {
            add_atomically<<<blocks, THREADS>>>(dev_x, iterations);
            HANDLE_LAUNCH();
        } else {
            add_plainly<<<blocks, THREADS>>>(dev_x, iterations, way == APART);
            HANDLE_LAUNCH();
        }
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaMemcpy(x, dev_x, threads * sizeof(unsigned), cudaMemcpyDeviceToHost));
        float ms;
        HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
        if (way == ATOMICALLY)
            inject_error(x, sizeof(*x));
        unsigned sum = 0;
        for (int i = 0; i < threads; i++)
            sum += x[i];
        static const char *const names[] = {"x = x + 1:", "each its own x:", "atomicAdd:"};
        printf("%-22s x = %u, %u lost, %.3f ms\n", names[way], sum, expected - sum, ms);
        if (way == APART)
            ok = check_ints("additions of thread", (const int *)x, each.data(), threads) && ok;
        if (way == ATOMICALLY)
            ok = check_value("x", sum, expected, 0) && ok;
    }

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_x));
    free(x);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
