// SPDX-License-Identifier: MIT
/*
 * occupancy: how many blocks of a kernel a multiprocessor holds, and what limits them
 *
 * Teaches: A multiprocessor hides the latency of memory by running other warps, so it should hold many.
 *          Occupancy is the number of resident warps divided by the most that it can hold. Registers,
 *          shared memory, and the largest numbers of threads and of blocks limit how many blocks are
 *          resident; the block scheduler starts the next block when one has ended. A thread whose values do
 *          not fit into its registers (register spilling), or are in an array whose index is known only at
 *          run time, has them in local memory, off the chip.
 * Terms:   occupancy, register, register spilling, local memory, shared memory, multiprocessor,
 *          block scheduler, warp, block
 * Book:    5.3.1 (course); N memory (registers and blocks)
 * After:   chapter05/matmul_shared
 * Build:   nvcc -o occupancy chapter05/occupancy.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/occupancy --shared 8192
 * Differs: the occupancy calls are compared with limits computed here, which also give the last table, for
 *          numbers of registers that no kernel of this program needs. The CPU back end has no registers.
 * Check:   --shared 16384
 */
#include "../common/book.h"

#define N (64 * 1024) // numbers that the kernels read

static size_t shared = 16 << 10; // --shared

struct Kernel {
    const char *name;
    void (*function)(const int *in, int *out);
    int values;    // that each thread loads
    size_t shared; // bytes per block that the launch requests
    int registers; // of a thread
};

static void print_limit(Kernel kernel, int size);
static void print_registers(void);
static bool check_blocks(Kernel kernel, int size, int blocks);
static bool check_sums(Kernel kernel, const int *dev_out);

// Each thread loads `values` numbers, finds the smallest and writes the sum of the differences from it. It
// needs all of the numbers at once. In each kernel `values` is a constant, so the loops are unrolled. If
// `first` is a constant too, each index is one, and the array can be in registers.
__device__ __forceinline__ void sum_differences(const int *in, int *out, int values, int first) {
    int threads = N / values;
    for (int t = threadIdx.x + blockIdx.x * blockDim.x; t < threads; t += blockDim.x * gridDim.x) {
        int value[128], least = INT_MAX, sum = 0;
#pragma unroll
        for (int i = 0; i < values; i++) {
            value[i] = in[t + i * threads];
            least = min(least, value[i]);
        }
#pragma unroll
        for (int i = 0; i < values; i++)
            sum += value[(i + first) % values] - least;
        out[t] = sum;
    }
}

__global__ void few_values(const int *in, int *out) {
    sum_differences(in, out, 4, 0);
}

__global__ void many_values(const int *in, int *out) {
    sum_differences(in, out, 64, 0);
}

// Registers have no index. Here the index is known only at run time, so the array is in local memory.
__global__ void indexed_values(const int *in, int *out) {
    sum_differences(in, out, 64, in[1]);
}

// __launch_bounds__ promises that no block has more than 1024 threads, so the compiler may use 1/1024 of the
// registers for a thread: 64 today, fewer than values. The others are in local memory.
__global__ void __launch_bounds__(1024) spilled_values(const int *in, int *out) {
    sum_differences(in, out, 128, 0);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    cudaDeviceProp device;
    HANDLE_ERROR(cudaGetDeviceProperties(&device, options.device));
    printf(
        "A multiprocessor has room for %d blocks, %d threads, %d registers and %zu bytes of shared memory.\n",
        device.maxBlocksPerMultiProcessor, device.maxThreadsPerMultiProcessor, device.regsPerMultiprocessor,
        device.sharedMemPerMultiprocessor);

    int *in = (int *)malloc(N * sizeof(int)), *dev_in, *dev_out;
    HANDLE_NULL(in);
    for (unsigned i = 0; i < N; i++)
        in[i] = i * 2654435761u >> 22; // numbers from 0 to 1023
    HANDLE_ERROR(cudaMalloc(&dev_in, N * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_out, N * sizeof(int)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, N * sizeof(int), cudaMemcpyHostToDevice));

    bool ok = true;
    const Kernel kernels[] = {{"few_values", few_values, 4, 0, 0},
                              {"many_values", many_values, 64, 0, 0},
                              {"indexed_values", indexed_values, 64, 0, 0},
                              {"spilled_values", spilled_values, 128, 0, 0},
                              {"few_values", few_values, 4, shared, 0}};
    const int sizes[] = {32, 64, 128, 256, 512, 768, 1024};
    for (int k = 0; k < 5; k++) {
        Kernel kernel = kernels[k];
        cudaFuncAttributes attributes;
        HANDLE_ERROR(cudaFuncGetAttributes(&attributes, kernel.function));
        kernel.registers = attributes.numRegs; // 0 on the CPU back end
        printf("\n%s: ", kernel.name);
        if (kernel.registers > 0)
            printf("%d registers, %zu bytes of local memory a thread; ", kernel.registers,
                   attributes.localSizeBytes);
        else
            printf("registers and local memory of a thread are not known; ");
        printf("%zu bytes of shared memory\n", kernel.shared);
        printf("block size   blocks   warps   occupancy   limit\n");

        int blocks, grid, size;
        HANDLE_ERROR(cudaMemset(dev_out, 0xff, N * sizeof(int)));
        for (int i = 0; i < 7; i++) {
            size = sizes[i];
            HANDLE_ERROR(
                cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, size, kernel.shared));
            double occupancy = (double)blocks * size / device.maxThreadsPerMultiProcessor;
            printf("%10d %8d %7d %9.0f %%   ", size, blocks, blocks * size / 32, 100 * occupancy);
            print_limit(kernel, size);
            ok = check_blocks(kernel, size, blocks) && ok;
            if (blocks == 0)
                continue; // a multiprocessor has too few registers for such a block
            HANDLE_ERROR(cudaMemset(dev_out, 0xff, N * sizeof(int)));
            kernel.function<<<blocks * device.multiProcessorCount, size, kernel.shared>>>(dev_in, dev_out);
            HANDLE_LAUNCH();
            ok = check_sums(kernel, dev_out) && ok;
        }
        HANDLE_ERROR(cudaOccupancyMaxPotentialBlockSize(&grid, &size, kernel.function, kernel.shared));
        printf("best: %d blocks of %d threads fill the device\n", grid, size);
        ok = check_sums(kernel, dev_out) && ok; // of the last launch, so there was one
    }
    print_registers();

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Shows how many blocks a multiprocessor holds, and why.", 0,
              {OPTION_SIZE("shared", &shared, 0, 48 << 10,
                           "bytes of shared memory in a block of the last kernel")});
}

static const char *const resources[] = {"blocks", "threads", "registers", "shared memory"};

// How many blocks a resource of a multiprocessor has room for: blocks of `size` threads with so many
// registers each, and so many bytes of shared memory in a block. Registers are allocated per warp in units of
// 256, from the quarter of the register file that the warp belongs to; shared memory is allocated in units of
// at most 256 bytes. With `units` the numbers are rounded to these units, so the result may be too low;
// without, it may be too high.
static int room(int resource, int registers, size_t bytes, int size, bool units) {
    cudaDeviceProp device;
    HANDLE_ERROR(cudaGetDeviceProperties(&device, options.device));
    int warps = size / 32, per_warp = registers * 32;
    bytes += device.reservedSharedMemPerBlock;
    if (resource == 0)
        return device.maxBlocksPerMultiProcessor;
    if (resource == 1)
        return device.maxThreadsPerMultiProcessor / size;
    if (resource == 2 && per_warp > 0)
        return units ? device.regsPerMultiprocessor / 4 / ((per_warp + 255) / 256 * 256) * 4 / warps
                     : device.regsPerMultiprocessor / per_warp / warps;
    if (resource == 3 && bytes > 0)
        return device.sharedMemPerMultiprocessor / (units ? (bytes + 255) / 256 * 256 : bytes);
    return INT_MAX;
}

static int least_room(int registers, size_t bytes, int size, bool units) {
    int least = INT_MAX;
    for (int i = 0; i < 4; i++)
        least = min_of(least, room(i, registers, bytes, size, units));
    return least;
}

// Prints the resources that allow the fewest blocks.
static void print_limit(Kernel k, int size) {
    int least = least_room(k.registers, k.shared, size, true);
    const char *comma = "";
    for (int i = 0; i < 4; i++)
        if (room(i, k.registers, k.shared, size, true) == least) {
            printf("%s%s", comma, resources[i]);
            comma = ", ";
        }
    printf("\n");
}

// Prints how many blocks the register file of a multiprocessor has room for, for several block sizes and
// numbers of registers per thread
static void print_registers(void) {
    const int most = device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    printf("\nregisters a thread   blocks of 128   blocks of 256   blocks of 512   blocks of 1024\n");
    for (int registers : {32, 64, 128, 255}) { // 255 is the most that a thread can have
        printf("%18d", registers);
        for (int size = 128; size <= 1024; size *= 2) {
            int blocks = least_room(registers, 0, size, true);
            printf("%9d (%3.0f %%)", blocks, 100.0 * blocks * size / most);
        }
        printf("\n");
    }
}

static bool check_blocks(Kernel k, int size, int blocks) {
    int low = least_room(k.registers, k.shared, size, true);
    int high = least_room(k.registers, k.shared, size, false);
    char name[64];
    snprintf(name, sizeof(name), "blocks of %d threads (%d to %d are possible)", size, low, high);
    return check_value(name, blocks, std::clamp(blocks, low, high), 0);
}

static bool check_sums(Kernel kernel, const int *dev_out) {
    unsigned threads = N / kernel.values;
    return check_ints("sums", HostArray<int>(dev_out, threads), threads, [=](unsigned t) {
        int least = INT_MAX, sum = 0;
        for (unsigned i = t; i < N; i += threads) {
            least = min_of(least, i * 2654435761u >> 22);
            sum += i * 2654435761u >> 22;
        }
        return sum - least * kernel.values;
    });
}

// Task: none: it asks the runtime for limits and prints them; its kernels only take registers
