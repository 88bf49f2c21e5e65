// SPDX-License-Identifier: MIT
// Accesses one element past the end. With AddressSanitizer each ends in a report at a line of this
// file (release/test_builds.py checks it). The correct twins run in every build.
#include <cuda_runtime.h>
#include "../unit.h"

__global__ void global_memory(int *p, int i) {
    p[i] = 1; // line: global
}

__global__ void static_shared(int i) {
    __shared__ float first[10];
    __shared__ float second[10];
    second[0] = 1;
    first[i] = second[0]; // line: static
}

__global__ void dynamic_shared(int i) {
    extern __shared__ float cells[];
    cells[i] = 1; // line: dynamic
}

__device__ int table[5];
__global__ void device_variable(int i) {
    table[i] = 1; // line: variable
}

__global__ void after_a_barrier(int *p, int i) {
    __syncthreads();
    p[i] = 1; // line: barrier
}

static void run(const char *what, int past) {
    int *const p = STORED(int *, cudaMalloc(&it, 7 * sizeof *it));
    if (strcmp(what, "global") == 0)
        global_memory<<<1, 1>>>(p, 6 + past);
    else if (strcmp(what, "static") == 0)
        static_shared<<<1, 1>>>(9 + past);
    else if (strcmp(what, "dynamic") == 0)
        dynamic_shared<<<1, 1, 12>>>(2 + past);
    else if (strcmp(what, "variable") == 0)
        device_variable<<<1, 1>>>(4 + past);
    else
        after_a_barrier<<<1, 64>>>(p, 6 + past);
    OK(cudaDeviceSynchronize());
    OK(cudaFree(p));
}

TEST(within_bounds) {
    for (const char *what : {"global", "static", "dynamic", "variable", "barrier"})
        run(what, 0);
}

// PAST=static bounds past
TEST(past) {
    if (const char *const what = getenv("PAST")) // not set in an ordinary run
        run(what, 1);
}
