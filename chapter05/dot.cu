// SPDX-License-Identifier: MIT
/*
 * dot: dot product with a reduction in shared memory
 *
 * Teaches: The threads of a block share memory, and __syncthreads() is the barrier that makes it
 *          safe to read what another thread wrote. Each block reduces its products to one partial
 *          sum; the host adds the partial sums.
 * Terms:   shared memory, barrier, tree reduction, partial sum, grid-stride loop, closed form
 * Book:    5.3.1
 * Run:     ./bin/chapter05/dot --size 1M --sweep
 * Differs: the result is compared with the closed form, within the error that rounding can cause. Options
 *          vary the launch and the way of adding; the kernel of these variants is in dot_variants.h.
 */
#include "../common/book.h"
#include "../common/proofs/dot.h" // expected_dot(), check_dot()
#include "dot_variants.h"         // what the options vary

#define N (33 * 1024)
const int threadsPerBlock = 256;

static size_t n = N; // --size

__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];

    // Grid-stride loop: any grid covers any n.
    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n; tid += stride)
        temp += a[tid] * b[tid];
    cache[threadIdx.x] = temp;
    __syncthreads();

    // Tree reduction. blockDim.x must be a power of two. Every thread reaches the barrier, including
    // those that no longer add: a barrier in divergent code is undefined.
    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        c[blockIdx.x] = cache[0];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int blocksPerGrid = min_of(32, (n + threadsPerBlock - 1) / threadsPerBlock);

    float *a = host_array<float>(n), *b = host_array<float>(n);
    float *partial_c = host_array<float>(blocksPerGrid);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }

    float *dev_a, *dev_b, *dev_partial_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));

    dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    float c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    printf("Does GPU value %.6g = %.6g?\n", c, expected_dot(n));
    bool ok = check_dot("dot product", c, n, tree_additions(n, blocksPerGrid, threadsPerBlock));

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a);
    free(b);
    free(partial_c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

// With an option for a variant the program ends in this function, and main, which has the book's version,
// does not run.
void settings(int argc, char **argv) {
    bool sweep = false, additions = false;
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
        OPTION_INT("blocks", &blocks, 1, 1 << 24, "blocks, instead of at most 32"),
        OPTION_INT("threads", &threads, 1, MAX_THREADS, "threads of a block, instead of 256: a power of two"),
        OPTION_WORD("sum", &one_thread, "tree|one-thread", "how a block adds"),
        OPTION_WORD("writers", &all_write, "one|all", "which threads store the sum of a block"),
        OPTION_FLAG("sweep", &sweep, "times 1, 2, 4, 8, ... blocks"),
        OPTION_FLAG("additions", &additions, "prints what each thread of a small launch adds"),
        OPTION_END};
    parse_options(argc, argv, "Dot product of two vectors on the device.", 0, own);
    bool variant = blocks > 0 || threads > 0 || one_thread || all_write || sweep || additions;
    threads = threads > 0 ? threads : threadsPerBlock;
    blocks = blocks > 0 ? blocks : min_of(32, (n + threads - 1) / threads);
    if (threads & (threads - 1))
        quit(EXIT_USAGE, "--threads %d: must be a power of two, because a block adds in halves", threads);
    if (additions && (n > MAX_TRACED || blocks * (long)threads > MAX_TRACED))
        quit(EXIT_USAGE, "--additions is for up to %d elements and threads", MAX_TRACED);
    options.uses |= variant ? TIMES : 0;
    select_device();
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
    if (variant)
        exit(run_variants(n, sweep, additions));
}

// Task: dot(): The grid has any number of blocks of threadsPerBlock threads, a power of two. Each thread adds
// the products a[i] * b[i] of a grid-stride loop over i < n and stores this partial sum in shared memory.
// Then the block adds these partial sums with a tree reduction in shared memory: in each step the threads
// t < half are active, and thread t adds element t + half to element t. In the first step, half is
// threadsPerBlock / 2; it is halved in each further step, until one sum is left. A barrier that all threads
// of the block reach separates each write to shared memory from the reads by other threads. Thread 0 stores
// the sum of the block in c[blockIdx.x].
