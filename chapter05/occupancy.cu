// SPDX-License-Identifier: MIT
/*
 * occupancy: how many blocks of a kernel a multiprocessor holds, and what limits them
 *
 * Teaches: A multiprocessor hides the time that memory takes by switching among its warps, so it
 *          wants many. How many it holds depends on the block size and on what a block needs:
 *          warps, registers and shared memory are handed out to whole blocks until one runs out.
 * Book:    5.3.1 (course)
 * Run:     ./bin/chapter05/occupancy --shared 8192
 * Differs: what the occupancy calls say is checked by counting. The CPU back end has no registers,
 *          so they are no limit there.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/book.h"

#define N (64 * 1024) // numbers that the kernels read

// Every thread keeps VALUES numbers in registers and writes how far they lie above the least of
// them, all together. It uses no shared memory; the launch asks for some to show what that costs.
template <int VALUES> __global__ void spread(const int *in, int *out) {
    int threads = N / VALUES;
    for (int t = threadIdx.x + blockIdx.x * blockDim.x; t < threads; t += blockDim.x * gridDim.x) {
        int value[VALUES], least = INT_MAX, sum = 0;
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            value[i] = in[t + i * threads];
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            least = min(least, value[i]);
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            sum += value[i] - least;
        out[t] = sum;
    }
}

struct Kernel {
    void (*function)(const int *in, int *out);
    int values;
    size_t shared; // bytes that the launch asks for, in a block
};

// How many blocks each resource has room for, counted by hand: what the occupancy calls say must
// agree. Registers and shared memory are handed out in portions, and each quarter of a
// multiprocessor has registers of its own. `portions` counts them as large as they are anywhere;
// without, every last byte is used. The truth of a device lies between.
struct Room {
    int blocks, threads, registers, shared;

    Room(const cudaDeviceProp &device, const cudaFuncAttributes &kernel, size_t dynamic, int warps,
         bool portions)
        : blocks(device.maxBlocksPerMultiProcessor),
          threads(device.maxThreadsPerMultiProcessor / 32 / warps), registers(INT_MAX),
          shared(INT_MAX) {
        int of_warp = kernel.numRegs * 32;
        if (of_warp > 0 && portions)
            registers = device.regsPerMultiprocessor / 4 / round_up(of_warp, 256) * 4 / warps;
        else if (of_warp > 0)
            registers = device.regsPerMultiprocessor / of_warp / warps;
        size_t bytes = kernel.sharedSizeBytes + dynamic + device.reservedSharedMemPerBlock;
        if (bytes > 0)
            shared = device.sharedMemPerMultiprocessor / round_up(bytes, portions ? 256 : 1);
    }
    int least() const { return std::min({blocks, threads, registers, shared}); }
    void print() const { // what has room for the least blocks
        const char *comma = "";
        const struct {
            int room;
            const char *name;
        } all[] = {{blocks, "blocks"},
                   {threads, "threads"},
                   {registers, "registers"},
                   {shared, "shared memory"}};
        for (const auto &one : all)
            if (one.room == least()) {
                printf("%s%s", comma, one.name);
                comma = ", ";
            }
        printf("\n");
    }
    static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
};

// The result of a launch with blocks of this size, against the host's.
static bool check(const Kernel &kernel, int block_size, int grid, const int *in, const int *dev_in,
                  int *dev_out) {
    int threads = N / kernel.values;
    HANDLE_ERROR(cudaMemset(dev_out, 0xff, N * sizeof(int)));
    kernel.function<<<grid, block_size, kernel.shared>>>(dev_in, dev_out);
    HANDLE_LAUNCH();
    int *out = (int *)malloc(threads * sizeof(int));
    int *expected = (int *)calloc(threads, sizeof(int));
    HANDLE_NULL(out);
    HANDLE_NULL(expected);
    HANDLE_ERROR(cudaMemcpy(out, dev_out, threads * sizeof(int), cudaMemcpyDeviceToHost));
    inject_error(out, threads * sizeof(int));
    for (int t = 0; t < threads; t++) {
        int least = in[t];
        for (int i = 0; i < kernel.values; i++) {
            least = std::min(least, in[t + i * threads]);
            expected[t] += in[t + i * threads];
        }
        expected[t] -= least * kernel.values;
    }
    bool ok = check_ints("spread", out, expected, threads);
    free(out);
    free(expected);
    return ok;
}

static bool show(const Kernel &kernel, const cudaDeviceProp &device, const int *in,
                 const int *dev_in, int *dev_out) {
    cudaFuncAttributes attributes;
    HANDLE_ERROR(cudaFuncGetAttributes(&attributes, kernel.function));
    printf("\n%d values a thread: %d registers, %zu bytes of shared memory in a block\n",
           kernel.values, attributes.numRegs, attributes.sharedSizeBytes + kernel.shared);
    printf("block size   blocks   warps   occupancy   limit\n");

    bool ok = true;
    int most_warps = device.maxThreadsPerMultiProcessor / 32, best = 0;
    for (int size : {32, 64, 128, 256, 512, 768, 1024}) {
        int warps = size / 32, blocks;
        HANDLE_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, size,
                                                                   kernel.shared));
        Room low(device, attributes, kernel.shared, warps, true);
        Room high(device, attributes, kernel.shared, warps, false);
        printf("%10d %8d %7d %9.0f %%   ", size, blocks, blocks * warps,
               100.0 * blocks * warps / most_warps);
        low.print();
        best = std::max(best, blocks * warps);
        if (blocks < low.least() || blocks > high.least()) {
            fprintf(stderr, "blocks of %d threads: got %d, expected %d to %d\n", size, blocks,
                    low.least(), high.least());
            ok = false;
        }
        if (blocks > 0)
            ok =
                check(kernel, size, blocks * device.multiProcessorCount, in, dev_in, dev_out) && ok;
    }

    int grid, size, blocks;
    HANDLE_ERROR(cudaOccupancyMaxPotentialBlockSize(&grid, &size, kernel.function, kernel.shared));
    HANDLE_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, size,
                                                               kernel.shared));
    printf("best: %d blocks of %d threads fill the device\n", grid, size);
    if (grid != blocks * device.multiProcessorCount || blocks * ((size + 31) / 32) < best) {
        fprintf(stderr, "best: %d blocks of %d threads leave room\n", grid, size);
        ok = false;
    }
    return ok;
}

int main(int argc, char **argv) {
    size_t shared = 16 << 10;
    const Option own[] = {OPTION_SIZE("shared", &shared, 0, 48 << 10,
                                      "bytes of shared memory in a block of the last table"),
                          OPTION_END};
    parse_options(argc, argv, "Shows how many blocks a multiprocessor holds, and why.", 0, own);
    select_device();
    cudaDeviceProp device;
    HANDLE_ERROR(cudaGetDeviceProperties(&device, options.device));
    printf("A multiprocessor has room for %d blocks, %d threads, %d registers and %zu bytes of "
           "shared memory.\n",
           device.maxBlocksPerMultiProcessor, device.maxThreadsPerMultiProcessor,
           device.regsPerMultiprocessor, device.sharedMemPerMultiprocessor);

    int *in = big_random_ints(N);
    for (int i = 0; i < N; i++)
        in[i] &= 1023;
    int *dev_in, *dev_out;
    HANDLE_ERROR(cudaMalloc((void **)&dev_in, N * sizeof(int)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_out, N * sizeof(int)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, N * sizeof(int), cudaMemcpyHostToDevice));

    bool ok = true;
    for (const Kernel &kernel :
         {Kernel{spread<4>, 4, 0}, Kernel{spread<64>, 64, 0}, Kernel{spread<4>, 4, shared}})
        ok = show(kernel, device, in, dev_in, dev_out) && ok;

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
