// SPDX-License-Identifier: MIT
/*
 * latency_hiding: cycles of an instruction, with more warps and with more independent instructions
 *
 * Teaches: A warp scheduler issues, in each cycle, an instruction of a warp whose next one is ready. The
 *          scoreboard records the registers that wait for a result and holds back instructions that read
 *          them. So one warp whose instructions need each other waits; more warps hide the latency, and so
 *          do independent instructions of one warp.
 * Terms:   latency hiding, warp scheduler, scoreboard, function unit, instruction-level parallelism, warp
 * Book:    5.3.1 (course)
 * After:   chapter05/occupancy
 * Build:   nvcc -o latency_hiding chapter05/latency_hiding.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/latency_hiding
 * Differs: a CPU runs the threads of a block one after the other, so its cycles show no latency hiding.
 */
#include "../common/book.h"

// The warp schedulers and the function units are drawn in docs/drawings.md#inside-a-multiprocessor
#define STEPS 200

static bool check(const float *x, int count);

// Each thread computes that many chains: each FMA waits for the one before in its chain, but not for other
// chains and warps. The values are loaded and stored between the barriers, because the compiler moves no
// access to memory across them, and so no computation out of the time that is measured. In each kernel
// `chains` is a constant, so the values are in registers. With factor = 1 they are exact.
__device__ __forceinline__ void multiply_add(int chains, float factor, float *x, long long *cycles) {
    float value[4], *own = x + threadIdx.x * chains;
    for (int c = 0; c < chains; c++)
        own[c] = threadIdx.x * chains + c;
    __syncthreads();
    long long start = clock64();
    for (int c = 0; c < chains; c++)
        value[c] = own[c];
#pragma unroll 16
    for (int s = 0; s < STEPS; s++)
        for (int c = 0; c < chains; c++)
            value[c] = fmaf(value[c], factor, 1);
    for (int c = 0; c < chains; c++)
        own[c] = value[c];
    __syncthreads();
    if (threadIdx.x == 0)
        *cycles = clock64() - start;
}

__global__ void one_chain(float factor, float *x, long long *cycles) {
    multiply_add(1, factor, x, cycles);
}
__global__ void two_chains(float factor, float *x, long long *cycles) {
    multiply_add(2, factor, x, cycles);
}
__global__ void four_chains(float factor, float *x, long long *cycles) {
    multiply_add(4, factor, x, cycles);
}

// Runs a kernel in one block. Prints the cycles for each warp, chain and step.
static bool run(void (*kernel)(float, float *, long long *), int threads, int chains) {
    float x[4 * 1024], *dev_x;
    long long cycles = 0, *dev_cycles;
    int count = threads * chains;
    HANDLE_ERROR(cudaMalloc(&dev_x, count * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_cycles, sizeof(cycles)));
    kernel<<<1, threads>>>(1, dev_x, dev_cycles);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(x, dev_x, count * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(&cycles, dev_cycles, sizeof(cycles), cudaMemcpyDeviceToHost));
    printf("%10.2f", cycles / (threads / 32.0 * chains * STEPS));
    HANDLE_ERROR(cudaFree(dev_x));
    HANDLE_ERROR(cudaFree(dev_cycles));
    return check(x, count);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    bool ok = true;
    printf("Cycles for each FMA instruction of a warp, in one block, with 1, 2 and 4 chains\n");
    for (int warps = 1; warps <= 32; warps *= 2) {
        printf("%2d warps", warps);
        ok = run(one_chain, 32 * warps, 1) && ok;
        ok = run(two_chains, 32 * warps, 2) && ok;
        ok = run(four_chains, 32 * warps, 4) && ok;
        printf(" cycles\n");
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Times instructions with more and more warps and chains.", TIMES);
}

static bool check(const float *x, int count) {
    return check_floats("value", x, count, 0, [](int i) { return i + STEPS; });
}

// Task: none: its kernels only take time
