// SPDX-License-Identifier: MIT
/*
 * launch_mistakes: launches that leave elements out, and launches that are refused
 *
 * Teaches: A kernel whose threads leave elements out ends without an error. If an index multiplies
 *          blockIdx.x by gridDim.x, where blockDim.x is right, nobody notices while both are equal. N / 128
 *          blocks of 128 threads are rounded down, so the last N % 128 elements have no thread. A launch
 *          without a block, as for N < 128, or beyond a limit of the device is an error, and no thread runs.
 * Terms:   launch, thread index, blockIdx, gridDim, blockDim, tail
 * Book:    5.2.1 (course); R 7.2 (a grid of size 0); C 2 (a wrong index)
 * After:   chapter05/add_launch_shapes
 * Build:   nvcc -o launch_mistakes chapter05/launch_mistakes.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/launch_mistakes
 * Differs: 65,536 blocks in x were one too many for the book's devices. Today a grid has up to 2^31 - 1
 *          blocks in x and 65,535 in y and z, and a block has up to 1024 threads.
 * Expect:  1
 */
#include "../common/book.h"

#define MOST (128 * 128) // elements

static void check(const int *missed);

// Wrong: blockIdx.x must be multiplied by blockDim.x.
__global__ void visit_wrong(int *visited, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * gridDim.x;
    while (i < n) {
        visited[i] = 1;
        i += (size_t)blockDim.x * gridDim.x;
    }
}

__global__ void visit(int *visited, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n)
        visited[i] = 1;
}

static int count_missed(const int *dev_visited, int n) {
    int missed = 0, *visited = (int *)malloc(n * sizeof(int));
    HANDLE_NULL(visited);
    HANDLE_ERROR(cudaMemcpy(visited, dev_visited, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        missed += visited[i] == 0;
    free(visited);
    return missed;
}

struct Launch {
    dim3 grid;
    int threads, n;
};
const Launch launches[8] = {
    {1000 / 128, 128, 1000},     // wrong: (n + 127) / 128 blocks are needed
    {128 / 128, 128, 128},       // right, since 128 divides n
    {127 / 128, 128, 127},       // no block
    {1 / 128, 128, 1},           // no block
    {65536, 128, MOST},          // more than n threads: right
    {1u << 31, 128, MOST},       // one block too many in x
    {dim3(1, 65536), 128, MOST}, // one block too many in y
    {128, 1025, MOST},           // one thread too many
};

int main(int argc, char **argv) {
    settings(argc, argv);
    const int shapes[3][2] = {{64, 128}, {128, 64}, {128, 128}};
    int missed[11], *dev_visited;
    HANDLE_ERROR(cudaMalloc(&dev_visited, MOST * sizeof(int)));

    for (int i = 0; i < 3; i++) {
        int blocks = shapes[i][0], threads = shapes[i][1], n = blocks * threads;
        HANDLE_ERROR(cudaMemset(dev_visited, 0, n * sizeof(int)));
        visit_wrong<<<blocks, threads>>>(dev_visited, n);
        HANDLE_LAUNCH();
        missed[i] = count_missed(dev_visited, n);
        printf("<<<%d, %d>>>: %d of %d elements are never visited\n", blocks, threads, missed[i], n);
    }
    for (int i = 0; i < 8; i++) {
        Launch l = launches[i];
        HANDLE_ERROR(cudaMemset(dev_visited, 0, l.n * sizeof(int)));
        visit<<<l.grid, l.threads>>>(dev_visited, l.n);
        cudaError_t error = cudaGetLastError(); // in place of HANDLE_LAUNCH(), which ends the program
        if (error != cudaErrorInvalidConfiguration && error != cudaErrorInvalidValue)
            HANDLE_ERROR(error);
        missed[3 + i] = count_missed(dev_visited, l.n);
        printf("<<<(%u, %u), %d>>> for N = %d: %s, %d elements are not visited\n", l.grid.x, l.grid.y,
               l.threads, l.n, cudaGetErrorName(error), missed[3 + i]);
    }

    HANDLE_ERROR(cudaFree(dev_visited));
    check(missed);
    return EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Counts the elements that wrong launches leave out.");
}

static void check(const int *missed) {
    const int expected[11] = {4032, 4096, 0, 1000 % 128, 0, 127, 1, 0, MOST, MOST, MOST};
    if (check_ints("missed", missed, expected, 11))
        printf("The counts are as expected.\n");
}

// Task: none: its launches are wrong on purpose; the exercise is chapter05/add_launch_shapes
