// SPDX-License-Identifier: MIT
/*
 * minimum: the smallest element of an array, by a tree reduction
 *
 * Teaches: The tree that adds numbers also finds their minimum: a reduction works for every operator whose
 *          result does not depend on the order. Only the operator changes, and its neutral element, which
 *          stands for elements beyond the end: 0 for sums, INT_MAX for minima. A second launch reduces the
 *          results of the blocks.
 * Terms:   reduction, tree reduction, shared memory, barrier, grid-stride loop, pass
 * Book:    5.3.1 (lab)
 * After:   chapter05/matmul_shared
 * Build:   nvcc -o minimum chapter05/minimum.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/minimum --size 16M
 * Check:   --size 100 | --size 66003
 */
#include "../common/book.h"

#define N          (1024 * 1024)
#define imin(a, b) ((a) < (b) ? (a) : (b))
const int threadsPerBlock = 256, blocksPerGrid = 64;

static size_t n = N; // --size
static bool check(int *dev_in, int *dev_partial, int *dev_min, int *in, int min);

__global__ void minimum(const int *in, int *out, size_t n) {
    __shared__ int cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;

    int least = INT_MAX; // in a sum: 0
    while (tid < n) {
        least = imin(least, in[tid]); // in a sum: +
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[threadIdx.x] = least;
    __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] = imin(cache[threadIdx.x], cache[threadIdx.x + i]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = cache[0];
}

// The first launch leaves a minimum of each block, the second one, of a single block, that of all.
static int find_minimum(const int *dev_in, int *dev_partial, int *dev_min) {
    int min;
    minimum<<<blocksPerGrid, threadsPerBlock>>>(dev_in, dev_partial, n);
    HANDLE_LAUNCH();
    minimum<<<1, threadsPerBlock>>>(dev_partial, dev_min, blocksPerGrid);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(&min, dev_min, sizeof(int), cudaMemcpyDeviceToHost));
    return min;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *in = big_random_ints(n), *dev_in, *dev_partial, *dev_min;
    for (size_t i = 0; i < n; i++)
        in[i] &= INT_MAX; // not negative
    HANDLE_ERROR(cudaMalloc(&dev_in, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_partial, blocksPerGrid * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_min, sizeof(int)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, n * sizeof(int), cudaMemcpyHostToDevice));

    int min = find_minimum(dev_in, dev_partial, dev_min);
    printf("Minimum of %zu ints: %d\n", n, min);
    bool ok = check(dev_in, dev_partial, dev_min, in, min);

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_partial));
    HANDLE_ERROR(cudaFree(dev_min));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Finds the smallest of many ints.", 0,
              {OPTION_SIZE("size", &n, 1, 1LL << 33, "ints")});
    require_memory(n * sizeof(int), n * sizeof(int));
}

// A kernel that skips elements may still find the minimum. So new minima, negative ones, are put in
// the last place, in the first block, and anywhere.
static bool check(int *dev_in, int *dev_partial, int *dev_min, int *in, int min) {
    const int TURNS = 20;
    int got[TURNS + 1] = {min}, expected[TURNS + 1] = {*std::min_element(in, in + n)};
    for (int turn = 1; turn <= TURNS; turn++) {
        int next = INT_MIN + TURNS - turn;
        size_t place = turn == 1 ? n - 1 : random_bits() % (turn % 2 ? n : min_of(n, threadsPerBlock));
        HANDLE_ERROR(cudaMemcpy(dev_in + place, &next, sizeof(int), cudaMemcpyHostToDevice));
        got[turn] = find_minimum(dev_in, dev_partial, dev_min);
        expected[turn] = std::min(next, expected[turn - 1]);
    }
    return check_ints("minimum", got, expected, TURNS + 1);
}

// Task: minimum(): A grid-stride loop finds the smallest of the elements of a thread, INT_MAX if it has none,
// and stores it in shared memory. A tree reduction with barriers, in a block whose size is a power of two,
// finds the smallest of the block, which thread 0 stores in out[blockIdx.x].
