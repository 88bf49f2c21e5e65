// SPDX-License-Identifier: MIT
/*
 * latency_hiding: cycles of an instruction, with more warps and with more independent instructions
 *
 * Teaches: A warp scheduler issues, in each cycle, an instruction of a warp whose next one is ready: its
 *          operands have been computed or loaded. For arithmetic the compiler writes into the instructions
 *          how long to wait; for loads the scoreboard records the registers that wait for a result. So one
 *          warp whose instructions need each other waits; more warps hide the latency, and so do independent
 *          instructions of one warp, up to the rate of the units, which is lower for doubles.
 * Terms:   latency hiding, warp scheduler, scoreboard, function unit, instruction-level parallelism, warp
 * Book:    5.3.1 (course); R 7.1 (schedulers, function units); C 1.4 (special function units)
 * After:   chapter05/occupancy
 * Build:   nvcc -o latency_hiding chapter05/latency_hiding.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/latency_hiding
 * Differs: a CPU runs the threads of a block one after the other, so its cycles show no latency hiding.
 */
#include "../common/book.h"

// The warp schedulers and the function units are drawn in docs/drawings.md#inside-a-multiprocessor
#define STEPS      200
#define RATE_STEPS 2000

static bool check(const float *x, int count, long long cycles);
static bool show_rates(void);

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
    HANDLE_ERROR(cudaMemset(dev_cycles, 0, sizeof(cycles)));
    kernel<<<1, threads>>>(1, dev_x, dev_cycles);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(x, dev_x, count * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(&cycles, dev_cycles, sizeof(cycles), cudaMemcpyDeviceToHost));
    printf("%10.2f", cycles / (threads / 32.0 * chains * STEPS));
    HANDLE_ERROR(cudaFree(dev_x));
    HANDLE_ERROR(cudaFree(dev_cycles));
    return check(x, count, cycles);
}

// Four chains of FMAs of floats, and of doubles, in 2048 threads a multiprocessor, as many as an H200
// can hold: their rates
__global__ void add_floats(float factor, float *x) {
    float a = 0, b = 1, c = 2, d = 3;
#pragma unroll 16
    for (int s = 0; s < RATE_STEPS; s++) {
        a = fmaf(a, factor, 1);
        b = fmaf(b, factor, 1);
        c = fmaf(c, factor, 1);
        d = fmaf(d, factor, 1);
    }
    x[threadIdx.x + blockIdx.x * blockDim.x] = a + b + c + d;
}
__global__ void add_doubles(double factor, double *x) {
    double a = 0, b = 1, c = 2, d = 3;
#pragma unroll 16
    for (int s = 0; s < RATE_STEPS; s++) {
        a = fma(a, factor, 1.0);
        b = fma(b, factor, 1.0);
        c = fma(c, factor, 1.0);
        d = fma(d, factor, 1.0);
    }
    x[threadIdx.x + blockIdx.x * blockDim.x] = a + b + c + d;
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
    ok = show_rates() && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/timing.h" // median_ms()

void settings(int argc, char **argv) {
    configure(argc, argv, "Times instructions with more and more warps and chains.", TIMES);
}

static bool check(const float *x, int count, long long cycles) {
    return check_floats("value", x, count, 0, [](int i) { return i + STEPS; }) &&
           check_value("cycles were measured", cycles > 0, 1, 0);
}

// Prints the rates of FMAs, which are two operations each.
static bool show_rates(void) {
    int multiprocessors, threads = 256;
    HANDLE_ERROR(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, options.device));
    int blocks = 8 * multiprocessors, count = blocks * threads; // 2048 threads a multiprocessor
    DeviceArray<float> floats(count);
    DeviceArray<double> doubles(count);
    float single = median_ms([&] { add_floats<<<blocks, threads>>>(1, floats); });
    float twice = median_ms([&] { add_doubles<<<blocks, threads>>>(1, doubles); });
    double operations = 2.0 * 4 * RATE_STEPS * count;
    printf("FMA of floats %.1f GFLOP/s, of doubles %.1f GFLOP/s: %.2f times the rate\n",
           operations / single / 1e6, operations / twice / 1e6, single / twice);
    HostArray<float> got(floats, count);
    HostArray<double> got_doubles(doubles, count);
    bool ok = true;
    for (int i = 0; i < count && ok; i++)
        ok = check_value("double", got_doubles[i], 4 * RATE_STEPS + 6, 0);
    return check_floats("float", got, count, 0, [](int) { return 4 * RATE_STEPS + 6; }) && ok;
}

// Task: none: its kernels only take time
