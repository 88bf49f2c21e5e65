// SPDX-License-Identifier: MIT
/*
 * occupancy: how many blocks of a kernel a multiprocessor holds, and what limits them
 *
 * Teaches: A multiprocessor hides the latency of memory by running other warps, so it should hold many.
 *          Occupancy is the number of resident warps divided by the most that it can hold. Registers,
 *          shared memory, and the largest numbers of threads and of blocks on a multiprocessor limit how
 *          many blocks are resident. Register spilling saves registers: the compiler keeps some values in
 *          local memory, whose accesses take longer.
 * Terms:   occupancy, latency hiding, register, register spilling, local memory, shared memory,
 *          multiprocessor, warp, block, warp scheduler, scoreboard, special function unit,
 *          instruction-level parallelism
 * Book:    5.3.1 (course)
 * After:   chapter05/matmul_shared
 * Build:   nvcc -o occupancy chapter05/occupancy.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/occupancy --shared 8192
 * Differs: the occupancy calls are compared with limits computed here, which also give the last table, for
 *          numbers of registers that no kernel of this program needs. The CPU back end has no registers.
 *          --schedulers measures what occupancy is for. A CPU runs the threads one after the other there.
 * Check:   --shared 16384 | --schedulers
 */
#include "../common/book.h"

#define N (64 * 1024) // numbers that the kernels read

static size_t shared = 16 << 10; // --shared

// Each thread loads VALUES numbers, finds the smallest and writes the sum of the differences from it. It
// needs all of the numbers at once.
template <int VALUES> __device__ void sum_differences(const int *in, int *out) {
    int threads = N / VALUES;
    for (int t = threadIdx.x + blockIdx.x * blockDim.x; t < threads; t += blockDim.x * gridDim.x) {
        int value[VALUES], least = INT_MAX, sum = 0;
#pragma unroll
        for (int i = 0; i < VALUES; i++) {
            value[i] = in[t + i * threads];
            least = min(least, value[i]);
        }
#pragma unroll
        for (int i = 0; i < VALUES; i++)
            sum += value[i] - least;
        out[t] = sum;
    }
}

// The loops are unrolled, so each index is a constant, and the array can be in registers.
template <int VALUES> __global__ void spread(const int *in, int *out) {
    sum_differences<VALUES>(in, out);
}

// __launch_bounds__ promises that no block has more than 1024 threads, so the compiler may use 1/1024 of the
// registers for a thread. For 64 values nvcc 13.0 then needs register spilling, up to compute capability 9.0.
template <int VALUES> __global__ void __launch_bounds__(1024) spread_1024(const int *in, int *out) {
    sum_differences<VALUES>(in, out);
}

struct Kernel {
    void (*function)(const int *in, int *out);
    int values;
    size_t shared; // bytes per block that the launch requests
};

static int *make_values(void);
static void print_limit(const Kernel &kernel, int size);
static void print_registers(void);
static bool check_blocks(const Kernel &kernel, int size, int blocks);
static bool check_spread(const Kernel &kernel, const int *in, const int *dev_out);

int main(int argc, char **argv) {
    settings(argc, argv);
    cudaDeviceProp device;
    HANDLE_ERROR(cudaGetDeviceProperties(&device, options.device));
    printf(
        "A multiprocessor has room for %d blocks, %d threads, %d registers and %zu bytes of shared memory.\n",
        device.maxBlocksPerMultiProcessor, device.maxThreadsPerMultiProcessor, device.regsPerMultiprocessor,
        device.sharedMemPerMultiprocessor);

    int *in = make_values(), *dev_in, *dev_out;
    HANDLE_ERROR(cudaMalloc(&dev_in, N * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_out, N * sizeof(int)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, N * sizeof(int), cudaMemcpyHostToDevice));

    bool ok = true;
    const Kernel kernels[] = {
        {spread<4>, 4, 0}, {spread<64>, 64, 0}, {spread_1024<64>, 64, 0}, {spread<4>, 4, shared}};
    for (const Kernel &kernel : kernels) {
        cudaFuncAttributes attributes;
        HANDLE_ERROR(cudaFuncGetAttributes(&attributes, kernel.function));
        printf("\n%d values, %d registers, %zu bytes of local memory a thread; %zu bytes of shared memory\n",
               kernel.values, attributes.numRegs, attributes.localSizeBytes,
               attributes.sharedSizeBytes + kernel.shared);
        printf("block size   blocks   warps   occupancy   limit\n");

        int blocks, best = 0;
        for (int size : {32, 64, 128, 256, 512, 768, 1024}) {
            HANDLE_ERROR(
                cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, size, kernel.shared));
            double occupancy = (double)blocks * size / device.maxThreadsPerMultiProcessor;
            printf("%10d %8d %7d %9.0f %%   ", size, blocks, blocks * size / 32, 100 * occupancy);
            print_limit(kernel, size);
            best = max_of(best, blocks * size);
            ok = check_blocks(kernel, size, blocks) && ok;
            if (blocks == 0)
                continue; // a multiprocessor has too few registers for such a block

            HANDLE_ERROR(cudaMemset(dev_out, 0xff, N * sizeof(int)));
            kernel.function<<<blocks * device.multiProcessorCount, size, kernel.shared>>>(dev_in, dev_out);
            HANDLE_LAUNCH();
            ok = check_spread(kernel, in, dev_out) && ok;
        }
        ok = check_spread(kernel, in, dev_out) && ok; // the output of the last launch

        int grid, size;
        HANDLE_ERROR(cudaOccupancyMaxPotentialBlockSize(&grid, &size, kernel.function, kernel.shared));
        printf("best: %d blocks of %d threads fill the device\n", grid, size);
        HANDLE_ERROR(
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, size, kernel.shared));
        ok = check_value("grid of the best size", grid, blocks * device.multiProcessorCount, 0) && ok;
        ok = check_value("threads of the best size", blocks * size, max_of(blocks * size, best), 0) && ok;
    }
    print_registers();

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

const int STEPS = 200; // so few that a sine more or less exceeds the rounding errors

// A warp scheduler issues, in each cycle, an instruction of a warp whose next one is ready. The scoreboard
// records the registers that wait for a result and holds back instructions that read them: here each FMA
// waits for the one before in its chain, but not for other chains and warps. With factor = 1 the values are
// exact.
template <int CHAINS> __device__ void multiply_add(float *value, float factor) {
#pragma unroll 16
    for (int s = 0; s < STEPS; s++)
        for (int c = 0; c < CHAINS; c++)
            value[c] = fmaf(value[c], factor, 1);
}
// Special function units compute __sinf() by one instruction, less accurately. sinf() takes many
// instructions.
template <bool fast> __device__ void sine(float *value, float) {
    for (int s = 0; s < STEPS; s++)
        *value = fast ? __sinf(*value) : sinf(*value);
}

// The cycles of a block whose threads do `work` on CHAINS values each, which begin as multiples of `first`.
// They are loaded and stored between the barriers, across which the compiler moves no access to memory;
// values in registers alone could be computed before or after the time is measured.
template <int CHAINS, void (*work)(float *, float)>
__global__ void count_cycles(float first, float factor, float *x, long long *cycles) {
    float value[CHAINS], *own = x + threadIdx.x * CHAINS;
    for (int c = 0; c < CHAINS; c++)
        own[c] = first * (threadIdx.x * CHAINS + c);
    __syncthreads();
    long long start = clock64();
    for (int c = 0; c < CHAINS; c++)
        value[c] = own[c];
    work(value, factor);
    for (int c = 0; c < CHAINS; c++)
        own[c] = value[c];
    __syncthreads();
    if (threadIdx.x == 0)
        *cycles = clock64() - start;
}

// Prints the cycles for each warp and step. sines: 0, or the largest error of a sine in 2^-24
template <int CHAINS, void (*work)(float *, float)> static bool print_cycles(int threads, int sines) {
    const float first = sines ? 0x1p-8f : 1;
    const size_t count = threads * CHAINS;
    DeviceArray<float> x(count);
    DeviceArray<long long> cycles(1);
    count_cycles<CHAINS, work><<<1, threads>>>(first, 1, x, cycles);
    HANDLE_LAUNCH();
    printf("%10.2f", HostArray<long long>(cycles, 1)[0] / (threads / 32.0 * CHAINS * STEPS));
    auto expect = [=](size_t i) {
        double value = first * i;
        for (int s = 0; s < STEPS; s++)
            value = sines ? sin(value) : value + 1;
        return value;
    };
    return check_floats("value", HostArray<float>(x, count), count, sines * STEPS * 0x1p-24, expect);
}

// For --schedulers. Returns the exit status.
static int compare_schedulers(void) {
    bool ok = true;
    printf("Cycles for each FMA instruction of a warp, in one block, with 1, 2 and 4 chains\n");
    for (int warps = 1; warps <= 32; warps *= 2) {
        printf("%2d warps", warps);
        ok = print_cycles<1, multiply_add<1>>(32 * warps, 0) && ok;
        ok = print_cycles<2, multiply_add<2>>(32 * warps, 0) && ok;
        ok = print_cycles<4, multiply_add<4>>(32 * warps, 0) && ok;
        printf(" cycles\n");
    }
    printf("32 warps, each sine: sinf");
    ok = print_cycles<1, sine<false>>(1024, 2) && ok;
    printf(", __sinf");
    ok = print_cycles<1, sine<true>>(1024, 8) && ok;
    printf(" cycles\n");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

void settings(int argc, char **argv) {
    bool schedulers = false;
    parse_options(
        argc, argv, "Shows how many blocks a multiprocessor holds, and why.", 0,
        {OPTION_SIZE("shared", &shared, 0, 48 << 10, "bytes of shared memory in a block of the fourth table"),
         OPTION_FLAG("schedulers", &schedulers, "cycles of instructions by warps and by chains")});
    options.uses |= schedulers ? TIMES : 0;
    select_device();
    if (schedulers)
        exit(compare_schedulers());
}

static int made[N]; // the numbers, whatever is copied to main's array later

// N numbers from 0 to 1023, in host memory
static int *make_values(void) {
    int *in = big_random_ints(N);
    for (int i = 0; i < N; i++)
        made[i] = in[i] &= 1023;
    return in;
}

// The number of blocks of this size that each resource of a multiprocessor allows. Registers are allocated
// per warp in units of 256, from the quarter of the register file that the warp belongs to; shared memory is
// allocated in units of at most 256 bytes. With `units` the numbers are rounded to these units, so the limits
// may be too low; without, they may be too high.
struct Limits {
    int blocks, threads, registers = INT_MAX, shared = INT_MAX;

    static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

    // For blocks of `size` threads with so many registers each, and so many bytes of shared memory in a
    // block.
    Limits(int registers_per_thread, size_t bytes, int size, bool units) {
        cudaDeviceProp device;
        HANDLE_ERROR(cudaGetDeviceProperties(&device, options.device));
        int warps = size / 32, per_warp = registers_per_thread * 32;
        bytes += device.reservedSharedMemPerBlock;
        blocks = device.maxBlocksPerMultiProcessor;
        threads = device.maxThreadsPerMultiProcessor / size;
        if (per_warp > 0 && units)
            registers = device.regsPerMultiprocessor / 4 / round_up(per_warp, 256) * 4 / warps;
        else if (per_warp > 0)
            registers = device.regsPerMultiprocessor / per_warp / warps;
        if (bytes > 0)
            shared = device.sharedMemPerMultiprocessor / round_up(bytes, units ? 256 : 1);
    }
    int least() const { return std::min({blocks, threads, registers, shared}); }
};

static Limits limits_of(const Kernel &kernel, int size, bool units) {
    cudaFuncAttributes attributes;
    HANDLE_ERROR(cudaFuncGetAttributes(&attributes, kernel.function));
    return Limits(attributes.numRegs, attributes.sharedSizeBytes + kernel.shared, size, units);
}

// Prints the resources that allow the fewest blocks.
static void print_limit(const Kernel &kernel, int size) {
    Limits limits = limits_of(kernel, size, true);
    const char *comma = "";
    for (auto [allowed, name] : {std::pair(limits.blocks, "blocks"),
                                 {limits.threads, "threads"},
                                 {limits.registers, "registers"},
                                 {limits.shared, "shared memory"}})
        if (allowed == limits.least()) {
            printf("%s%s", comma, name);
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
        for (int size : {128, 256, 512, 1024}) {
            int blocks = Limits(registers, 0, size, true).least();
            printf("%9d (%3.0f %%)", blocks, 100.0 * blocks * size / most);
        }
        printf("\n");
    }
}

static bool check_blocks(const Kernel &kernel, int size, int blocks) {
    int low = limits_of(kernel, size, true).least(), high = limits_of(kernel, size, false).least();
    char name[64];
    snprintf(name, sizeof(name), "blocks of %d threads (%d to %d are possible)", size, low, high);
    return check_value(name, blocks, std::clamp(blocks, low, high), 0);
}

static bool check_spread(const Kernel &kernel, const int *, const int *dev_out) {
    int threads = N / kernel.values;
    return check_ints("spread", HostArray<int>(dev_out, threads), threads, [=](int t) {
        int least = made[t], sum = 0;
        for (int i = 0; i < kernel.values; i++) {
            least = min_of(least, made[t + i * threads]);
            sum += made[t + i * threads];
        }
        return sum - least * kernel.values;
    });
}

// Task: none: it asks the runtime for limits and prints them; its kernels only take registers
