// SPDX-License-Identifier: MIT
/*
 * memory_kinds: the kinds of memory that a kernel has, who sees them, and how long a read takes
 *
 * Teaches: The kinds of memory differ in which threads see a variable, how long it exists, and how long a
 *          read takes. A thread has registers and local memory for itself. Shared memory belongs to a block;
 *          all threads see global, constant and texture memory, which keep their values from launch to
 *          launch. Kernels cannot write to constant memory or through a texture.
 * Terms:   register, local memory, shared memory, global memory, constant memory, texture memory, latency,
 *          L2 cache, __device__, __constant__
 * Book:    5.3.1 (course); R 7.3 (kinds of memory); C 4.4 (kinds of memory); N memory (kinds); T
 *          reduction (memory)
 * After:   chapter05/dot_gmem
 * Build:   nvcc -o memory_kinds chapter05/memory_kinds.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/memory_kinds
 * Differs: on the CPU back end all kinds are ordinary memory in the caches of the CPU. On a GPU, L1 cache and
 *          shared memory are one memory on the chip.
 */
#include "../common/book.h"

#define WORDS 256  // size of the small arrays
#define READS 1000 // dependent reads that are timed
#define HOP   4099 // words from one read of the large array to the next
#define FAR   (2 * READS * HOP)

const int THREADS = 64, BLOCKS = 2; // launch of see(), which is not timed
__constant__ int constant[WORDS];
__device__ int launches[BLOCKS * THREADS]; // global memory; its lifetime is the whole program

enum { REGISTER, LOCAL, SHARED, CONSTANT, TEXTURE, GLOBAL_L1, GLOBAL_L2, GLOBAL_FAR, KINDS };
static const struct {
    const char *name, *declared, *seen_by, *lives, *where;
} kinds[KINDS] = {
    {"register", "int x;", "its thread", "thread", "on the chip"},
    {"local", "int x[256];", "its thread", "thread", "off the chip, cached"},
    {"shared", "__shared__ int x;", "its block", "block", "on the chip"},
    {"constant", "__constant__ int x;", "all, read only", "program", "off the chip, cached"},
    {"texture", "cudaTextureObject_t x;", "all, read only", "until cudaFree", "off the chip, cached"},
    {"global, in L1", "cudaMalloc, __device__", "all", "cudaFree, program", "off the chip, cached"},
    {"global, in L2", "cudaMalloc, __device__", "all", "cudaFree, program", "off the chip, cached"},
    {"global, beyond", "cudaMalloc, __device__", "all", "cudaFree, program", "off the chip"},
};
struct Timed {
    long long cycles;
    int end; // the index that the last read has returned
};

static int n; // words of the large array
static cudaTextureObject_t make_texture(int *data);
static bool check_ends(const Timed *timed);
static bool check_seen(const int4 *dev_seen, int launch);

// Each word that is read is the index of the next one, so a read cannot start before the one before has
// ended.
__global__ void fill(int *words, int count, int distance, int step) {
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        words[i * distance] = (i + step) % count * distance;
}

// Measures the latency of dependent reads, twice: the first iteration fills the caches with a small array,
// the second one is kept. In a large array every read misses the caches, in both iterations. `next` is the
// index that a read of element `at` returns.
#define TIME_READS(timed, next)                                                                              \
    for (int i = 0, at = 0; i < 2; i++) {                                                                    \
        long long start = clock64();                                                                         \
        for (int r = 0; r < READS; r++)                                                                      \
            at = next;                                                                                       \
        (timed).cycles = clock64() - start;                                                                  \
        (timed).end = at;                                                                                    \
    }

__global__ void time_kinds(cudaTextureObject_t texture, const int *small, const int *large, Timed *timed) {
    __shared__ int shared[WORDS];
    int local[WORDS];
    for (int i = 0; i < WORDS; i++) { // other distances than in the other kinds of memory
        local[i] = (i + 35) % WORDS;
        shared[i] = (i + 37) % WORDS;
    }

    TIME_READS(timed[REGISTER], (int)(at * 5u ^ 1)); // no read: two operations
    TIME_READS(timed[LOCAL], local[at]);
    TIME_READS(timed[SHARED], shared[at]);
    TIME_READS(timed[CONSTANT], constant[at]);
    TIME_READS(timed[TEXTURE], tex1Dfetch<int>(texture, at));
    TIME_READS(timed[GLOBAL_L1], small[at]);
    TIME_READS(timed[GLOBAL_L2], __ldcg(&small[at])); // not from L1
    TIME_READS(timed[GLOBAL_FAR], __ldcg(&large[at]));
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

int main(int argc, char **argv) {
    settings(argc, argv);
    int *small, *large;
    int4 *seen;
    Timed timed[KINDS], *dev_timed;
    HANDLE_ERROR(cudaMalloc(&small, WORDS * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&large, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&seen, BLOCKS * THREADS * sizeof(int4)));
    HANDLE_ERROR(cudaMalloc(&dev_timed, sizeof(timed)));
    HANDLE_ERROR(cudaMemset(dev_timed, 0xff, sizeof(timed))); // shows a kind that is not measured
    fill<<<1, 256>>>(small, WORDS, 1, 39);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpyToSymbol(constant, small, sizeof(constant), 0, cudaMemcpyDeviceToDevice));
    fill<<<1, 256>>>(small, WORDS, 1, 33);
    HANDLE_LAUNCH();
    fill<<<1, 256>>>(large, 2 * READS + 1, HOP, 1);
    HANDLE_LAUNCH();
    // This memset evicts what fill() has written from the L2 cache.
    HANDLE_ERROR(cudaMemset(large + FAR + 1, 0, (n - FAR - 1) * sizeof(int)));
    cudaTextureObject_t texture = make_texture(small);

    time_kinds<<<1, 1>>>(texture, small, large, dev_timed);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(timed, dev_timed, sizeof(timed), cudaMemcpyDeviceToHost));
    printf("kind            declared                seen by         lives              where"
           "                 read\n");
    for (int k = 0; k < KINDS; k++)
        printf("%-15s %-23s %-15s %-18s %-21s %6.1f cycles\n", kinds[k].name, kinds[k].declared,
               kinds[k].seen_by, kinds[k].lives, kinds[k].where, (double)timed[k].cycles / READS);
    bool ok = check_ends(timed);

    for (int launch = 1; launch <= 3; launch++) {
        int value = 100 * launch;
        HANDLE_ERROR(cudaMemcpyToSymbol(constant, &value, sizeof(int)));
        see<<<BLOCKS, THREADS>>>(seen, launch - 1);
        HANDLE_LAUNCH();
        ok = check_seen(seen, launch) && ok;
    }
    int count; // launches[0], which each launch has increased by 1
    HANDLE_ERROR(cudaMemcpyFromSymbol(&count, launches, sizeof(count)));
    ok = check_value("launches", count, 3, 0) && ok;

    HANDLE_ERROR(cudaDestroyTextureObject(texture));
    HANDLE_ERROR(cudaFree(small));
    HANDLE_ERROR(cudaFree(large));
    HANDLE_ERROR(cudaFree(seen));
    HANDLE_ERROR(cudaFree(dev_timed));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Shows the kinds of memory, and times reads of each.", TIMES);
    // The cache of a CPU can be larger.
    n = FAR + 1 + min_of(2 * (device_attribute(cudaDevAttrL2CacheSize) / sizeof(int)), 64 << 20);
    require_memory(0, n * sizeof(int));
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

static bool check_ends(const Timed *timed) {
    int end[KINDS], expected[KINDS];
    unsigned at = 0;
    for (int r = 0; r < 2 * READS; r++) // in both iterations of TIME_READS
        at = at * 5 ^ 1;
    for (int k = 0; k < KINDS; k++) {
        end[k] = timed[k].cycles > 0 ? timed[k].end : -1; // the cycles must have been measured
        int step = k == LOCAL ? 35 : k == SHARED ? 37 : k == CONSTANT ? 39 : 33;
        expected[k] = k == REGISTER ? (int)at : k == GLOBAL_FAR ? FAR : 2 * READS * step % WORDS;
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

// Task: fill(): The grid has one block. Its threads set words[i * distance] to (i + step) % count * distance
// for all i < count.
// see(): Each thread shows scope and lifetime of memory. Let t be the index of the thread in the grid. The
// thread initializes an array of 8 ints in local memory: element i is 8 * t + i. Thread 0 of each block
// stores blockIdx.x in an int in shared memory, and a barrier follows. Then the thread adds 1 to launches[t]
// and stores an int4 in seen[t]: element `at` of its local array, the int in shared memory, constant[0] and
// launches[t].
