// SPDX-License-Identifier: MIT
/*
 * memory_kinds: the kinds of memory that a kernel has, who sees them, and how long a read takes
 *
 * Teaches: The kinds of memory differ in which threads see a variable, how long it exists, and how long a
 *          read takes. A thread keeps its variables in registers; values for which there are too few
 *          registers, and arrays whose index is known only at run time, are in local memory, off the chip.
 *          Shared memory belongs to a block; all threads see global, constant and texture memory, which
 *          keep their values from launch to launch. Kernels cannot write to constant memory or through a
 *          texture.
 * Terms:   register, local memory, register spilling, shared memory, global memory, constant memory, texture
 *          memory, latency, L2 cache, __device__, __constant__
 * Book:    5.3.1 (course)
 * After:   chapter05/dot_gmem
 * Build:   nvcc -o memory_kinds chapter05/memory_kinds.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/memory_kinds
 * Differs: on the CPU back end all kinds are ordinary memory in the caches of the CPU, and the registers and
 *          the local memory of a kernel are not known. L1 cache and shared memory are one memory on the chip;
 *          --carveout shows how the part for shared memory, which a kernel may ask for, shrinks the cache.
 * Check:   --seed 1 | --carveout
 */
#include "../common/book.h"

#define WORDS 256  // size of the small arrays
#define READS 1000 // dependent reads that are timed
#define HOP   4099 // words from one read of the large array to the next
#define FAR   (2 * READS * HOP)
#define N     (64 * 1024) // numbers that the kernels read that use registers and local memory

const int THREADS = 64, BLOCKS = 2; // launch of see(), which is not timed
__constant__ int constant[WORDS];
__device__ int launches[BLOCKS * THREADS]; // global memory; its lifetime is the whole program

enum Kind { REGISTER, LOCAL, SHARED, CONSTANT, TEXTURE, GLOBAL_L1, GLOBAL_L2, GLOBAL_FAR, KINDS };
static const struct {
    const char *name, *declared, *seen_by, *lives, *where;
} kinds[KINDS] = {
    {"register", "int x;", "its thread", "the thread", "on the chip"},
    {"local", "int x[256];", "its thread", "the thread", "off the chip, cached"},
    {"shared", "__shared__ int x;", "its block", "the block", "on the chip"},
    {"constant", "__constant__ int x;", "all, read only", "the program", "off the chip, cached"},
    {"texture", "cudaTextureObject_t x;", "all, read only", "as allocated", "off the chip, cached"},
    {"global, in L1", "__device__ int x;", "all", "the program", "off the chip, cached"},
    {"global, in L2", "or cudaMalloc", "all", "as allocated", "off the chip, cached"},
    {"global, beyond", "or cudaMalloc", "all", "as allocated", "off the chip"},
};
struct Timed {
    long long cycles;
    int end; // the index that the last read has returned
};

struct Kernel {
    void (*function)(const int *in, int *out);
    int values; // of a thread
};

static cudaTextureObject_t make_texture(int *data);
static int *make_values(void);
static bool check_ends(const Timed *timed);
static bool check_seen(const int4 *dev_seen, int launch);
static bool check_spread(const Kernel &kernel, const int *in, const int *dev_out);

// Each word that is read is the index of the next one, so a read cannot start before the one before has
// ended.
__global__ void fill(int *words, int count, int distance, int step) {
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        words[i * distance] = (i + step) % count * distance;
}

// Measures the latency of READS dependent reads, twice: the first iteration fills the caches with a small
// array, the second one is kept. In a large array every read misses the caches, in both iterations.
template <class Read> __device__ Timed time_reads(Read read) {
    Timed timed = {0, 0};
    for (int i = 0; i < 2; i++) {
        long long start = clock64();
        for (int r = 0; r < READS; r++)
            timed.end = read(timed.end);
        timed.cycles = clock64() - start;
    }
    return timed;
}

__global__ void time_kinds(cudaTextureObject_t texture, const int *small, const int *large, Timed *timed) {
    __shared__ int shared[WORDS];
    int local[WORDS];
    for (int i = 0; i < WORDS; i++)
        local[i] = shared[i] = small[i];

    timed[REGISTER] = time_reads([](int at) { return (int)(at * 5u ^ 1); }); // no read: two operations
    timed[LOCAL] = time_reads([&](int at) { return local[at]; });
    timed[SHARED] = time_reads([&](int at) { return shared[at]; });
    timed[CONSTANT] = time_reads([](int at) { return constant[at]; });
    timed[TEXTURE] = time_reads([=](int at) { return tex1Dfetch<int>(texture, at); });
    timed[GLOBAL_L1] = time_reads([=](int at) { return small[at]; });
    timed[GLOBAL_L2] = time_reads([=](int at) { return __ldcg(&small[at]); }); // not from L1
    timed[GLOBAL_FAR] = time_reads([=](int at) { return __ldcg(&large[at]); });
}

// Shows scope and lifetime: a thread reads its own local array, a shared variable that a thread of its block
// wrote, a constant that the host wrote, and global memory that earlier launches wrote.
__global__ void see(int4 *seen, int at) {
    __shared__ int shared;
    int t = threadIdx.x + blockIdx.x * blockDim.x, local[8];
    for (int i = 0; i < 8; i++)
        local[i] = 8 * t + i;
    if (threadIdx.x == 0)
        shared = blockIdx.x;
    __syncthreads();
    launches[t]++;
    seen[t] = make_int4(local[at], shared, constant[0], launches[t]);
}

// Each thread loads VALUES numbers, finds the smallest and writes the sum of the differences from it. It
// needs all of the numbers at once. The sum starts with value[first]; value[VALUES - 1] is followed by
// value[0].
template <int VALUES> __device__ void sum_differences(const int *in, int *out, int first) {
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
            sum += value[(i + first) % VALUES] - least;
        out[t] = sum;
    }
}

// When the loops are unrolled, each index is a constant, so the array can be in registers.
template <int VALUES> __global__ void spread(const int *in, int *out) {
    sum_differences<VALUES>(in, out, 0);
}

// Registers have no index. Here the index is known only at run time, so the array is in local memory.
template <int VALUES> __global__ void spread_indexed(const int *in, int *out) {
    sum_differences<VALUES>(in, out, in[0]);
}

// __launch_bounds__ promises that no block has more than 1024 threads, so the compiler may use 1/1024 of the
// registers for a thread. For 64 values nvcc 13.0 then needs register spilling, up to compute capability 9.0.
template <int VALUES> __global__ void __launch_bounds__(1024) spread_1024(const int *in, int *out) {
    sum_differences<VALUES>(in, out, 0);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int l2, n, *small, *large;
    Timed timed[KINDS], *dev_timed;
    HANDLE_ERROR(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, options.device));
    n = FAR + 1 + min_of(2 * (l2 / sizeof(int)), 64 << 20); // the cache of a CPU can be larger
    require_memory(0, n * sizeof(int));
    HANDLE_ERROR(cudaMalloc(&small, WORDS * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&large, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_timed, sizeof(timed)));
    HANDLE_ERROR(cudaMemset(dev_timed, 0xff, sizeof(timed))); // shows a kind that is not measured
    fill<<<1, 256>>>(small, WORDS, 1, 33);
    HANDLE_LAUNCH();
    fill<<<1, 256>>>(large, 2 * READS + 1, HOP, 1);
    HANDLE_LAUNCH();
    // This memset evicts what fill() has written from the L2 cache.
    HANDLE_ERROR(cudaMemset(large + FAR + 1, 0, (n - FAR - 1) * sizeof(int)));
    HANDLE_ERROR(cudaMemcpyToSymbol(constant, small, sizeof(constant), 0, cudaMemcpyDeviceToDevice));
    cudaTextureObject_t texture = make_texture(small);

    time_kinds<<<1, 1>>>(texture, small, large, dev_timed);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(timed, dev_timed, sizeof(timed), cudaMemcpyDeviceToHost));
    printf(
        "kind            declared                seen by         lives         where                 read\n");
    for (int k = 0; k < KINDS; k++)
        printf("%-15s %-23s %-15s %-13s %-21s %6.1f cycles\n", kinds[k].name, kinds[k].declared,
               kinds[k].seen_by, kinds[k].lives, kinds[k].where, (double)timed[k].cycles / READS);
    bool ok = check_ends(timed);

    int4 *seen = (int4 *)large; // from here on the large array has other uses
    for (int launch = 1; launch <= 3; launch++) {
        int value = 100 * launch;
        HANDLE_ERROR(cudaMemcpyToSymbol(constant, &value, sizeof(int)));
        see<<<BLOCKS, THREADS>>>(seen, launch - 1);
        HANDLE_LAUNCH();
        ok = check_seen(seen, launch) && ok;
    }
    int *in = make_values(), *dev_in = large, *out = large + N;
    HANDLE_ERROR(cudaMemcpy(dev_in, in, N * sizeof(int), cudaMemcpyHostToDevice));
    const char *names[] = {"constant indices:", "indices known at run time:", "blocks of up to 1024:"};
    const Kernel kernels[] = {{spread<16>, 16}, {spread_indexed<16>, 16}, {spread_1024<128>, 128}};
    for (int k = 0; k < 3; k++) {
        cudaFuncAttributes a;
        HANDLE_ERROR(cudaFuncGetAttributes(&a, kernels[k].function));
        printf("%3d values a thread, %-26s ", kernels[k].values, names[k]);
        if (CPU_BACKEND)
            printf("registers and local memory not known\n");
        else
            printf("%3d registers, %4zu bytes of local memory\n", a.numRegs, a.localSizeBytes);
        HANDLE_ERROR(cudaMemset(out, 0xff, N * sizeof(int)));
        kernels[k].function<<<N / 16 / 256, 256>>>(dev_in, out);
        HANDLE_LAUNCH();
        ok = check_spread(kernels[k], in, out) && ok;
    }

    HANDLE_ERROR(cudaDestroyTextureObject(texture));
    HANDLE_ERROR(cudaFree(small));
    HANDLE_ERROR(cudaFree(large));
    HANDLE_ERROR(cudaFree(dev_timed));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// Reads `count` words of an array, each one in a cache line of its own, and some of them again.
__global__ void read_lines(const int *words, int count, Timed *timed) {
    int at = 0;
    for (int i = 0; i < 2; i++) { // the first iteration fills the cache
        long long start = clock64();
        for (int r = 0; r < count + 5; r++)
            at = words[at];
        *timed = {clock64() - start, at};
    }
}

// For --carveout: the latency in arrays of several sizes. An array that does not fit into the L1 cache is
// read from the L2 cache. Returns the exit status.
static int compare_carveouts(void) {
    const int line = 32; // words of a cache line
    const auto carveout = cudaFuncAttributePreferredSharedMemoryCarveout;
    DeviceArray<int> words(256 << 8);
    DeviceArray<Timed> dev_timed(1);
    bool ok = true;
    printf("Cycles of a read in an array of  8 KiB   16 KiB   32 KiB   64 KiB  128 KiB  256 KiB\n");
    for (int percent : {0, 25, 50, 75, 100}) {
        HANDLE_ERROR(cudaFuncSetAttribute(read_lines, carveout, percent));
        printf("shared memory has %3d %%:      ", percent);
        for (int kib = 8; kib <= 256; kib *= 2) {
            int count = (kib << 8) / line;
            fill<<<1, 256>>>(words, count, line, 1);
            HANDLE_LAUNCH();
            read_lines<<<1, 1>>>(words, count, dev_timed);
            HANDLE_LAUNCH();
            HostArray<Timed> timed(dev_timed, 1);
            printf("%9.1f%s", (double)timed[0].cycles / (count + 5), kib == 256 ? " cycles\n" : "");
            ok = check_value("where the reads end", timed[0].end, 10 * line, 0) && ok;
        }
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

void settings(int argc, char **argv) {
    bool carveout = false;
    configure(argc, argv, "Shows the kinds of memory, and times reads of each.", TIMES,
              {OPTION_FLAG("carveout", &carveout, "the L1 cache beside more or less shared memory")});
    if (carveout)
        exit(compare_carveouts());
}

static cudaTextureObject_t make_texture(int *data) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = data;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = WORDS * sizeof(int);
    cudaTextureDesc desc = {};
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    return texture;
}

static int made[N]; // the numbers, whatever is copied to main's array later

// N numbers from 0 to 1023, in host memory
static int *make_values(void) {
    int *in = big_random_ints(N);
    for (int i = 0; i < N; i++)
        made[i] = in[i] &= 1023;
    return in;
}

static bool check_ends(const Timed *timed) {
    int end[KINDS], expected[KINDS];
    unsigned at = 0;
    for (int r = 0; r < 2 * READS; r++) // in both iterations of time_reads
        at = at * 5 ^ 1;
    for (int k = 0; k < KINDS; k++) {
        end[k] = timed[k].cycles > 0 ? timed[k].end : -1; // the cycles must have been measured
        expected[k] = k == REGISTER ? (int)at : k == GLOBAL_FAR ? FAR : 2 * READS * 33 % WORDS;
    }
    return check_ints("where the reads end", end, expected, KINDS);
}

static bool check_seen(const int4 *dev_seen, int launch) {
    int4 seen[BLOCKS * THREADS], expected[BLOCKS * THREADS];
    HANDLE_ERROR(cudaMemcpy(seen, dev_seen, sizeof(seen), cudaMemcpyDeviceToHost));
    for (int t = 0; t < BLOCKS * THREADS; t++)
        expected[t] = make_int4(8 * t + launch - 1, t / THREADS, 100 * launch, launch);
    return check_ints("what the threads see", &seen[0].x, &expected[0].x, 4 * BLOCKS * THREADS);
}

// Global memory has also kept the number of launches of see().
static bool check_spread(const Kernel &kernel, const int *, const int *dev_out) {
    int threads = N / kernel.values, seen;
    HANDLE_ERROR(cudaMemcpyFromSymbol(&seen, launches, sizeof(int)));
    if (!check_value("launches", seen, 3, 0))
        return false;
    return check_ints("spread", HostArray<int>(dev_out, threads), threads, [=](int t) {
        int least = made[t], sum = 0;
        for (int i = 0; i < kernel.values; i++) {
            least = min_of(least, made[t + i * threads]);
            sum += made[t + i * threads];
        }
        return sum - least * kernel.values;
    });
}

// Task: fill(): The grid has one block. Its threads set words[i * distance] to (i + step) % count * distance
// for all i < count.
// see(): Each thread shows scope and lifetime of memory. Let t be the index of the thread in the grid. The
// thread initializes an array of 8 ints in local memory: element i is 8 * t + i. Thread 0 of each block
// stores blockIdx.x in an int in shared memory, and a barrier follows. Then the thread adds 1 to launches[t]
// and stores an int4 in seen[t]: element `at` of its local array, the int in shared memory, constant[0] and
// launches[t].
