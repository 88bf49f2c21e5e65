// SPDX-License-Identifier: MIT
/*
 * memory_bugs: mistakes with memory, one at a time, for the tools that find them
 *
 * Teaches: A kernel that uses a wrong address may end with an error that names no line, give a wrong result,
 *          or give the right one. Tools name the line: compute-sanitizer on a GPU (memcheck, racecheck,
 *          initcheck, synccheck), and on the CPU back end the compiler's sanitizers, make check and
 *          CUDA_CPU_CHECK=1. --bug makes one mistake; without it the program is clean. Four bugs are made by
 *          one thread of the grid, which a good tool names too.
 * Terms:   memcheck, racecheck, initcheck, synccheck, sanitizer, debugger, alignment, race condition, memory
 *          leak
 * Book:    12.2.6 (course); T memory checker: --bug out-of-bounds
 * Build:   nvcc -o memory_bugs chapter12/memory_bugs.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/memory_bugs --seed 1
 * Differs: docs/tools.md shows what each tool says of each bug. With --bug the exit status is 1, also when
 *          the result is right. The single threads: thread 5 of block 3 (misaligned read), 3 of 5 (read out
 *          of bounds), 1 of 8 (misaligned write), 63 of 22 (write to address 0).
 * Check:   --seed 1 | --bug race (race) | --bug uninitialized (race)
 */
#include "../common/book.h"

#define BLOCKS  23
#define THREADS 64
#define N       (BLOCKS * THREADS)

enum { NONE, SHIFTED_READ, OUT_OF_BOUNDS, SHIFTED_WRITE, NULL_WRITE, RACE, MASK, UNINITIALIZED, LEAK, HANG };
static const char bugs[] = "none|misaligned-read|out-of-bounds|misaligned-write|null-write|race|mask|"
                           "uninitialized|leak|hang";
static int bug = NONE;                        // --bug
static int seconds = 10;                      // --seconds
typedef float Expect(const float *in, int i); // what element i of an output must be
static Expect reversed, pair_of, next_of, swapped, same;
static bool check(const char *name, const void *dev_got, size_t n, const float *in, Expect *expect);
static int hang(void);

struct Pointers { // of a thread
    const float *from;
    float *to;
    float2 *to_pair;
};

// Each thread reads 4 bytes through its own pointer.
__global__ void gather(const Pointers *pointers, float *out) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    out[i] = *pointers[i].from;
}

// Each thread writes 4 bytes through its own pointer.
__global__ void scatter(const float *in, const Pointers *pointers) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    *pointers[i].to = in[i];
}

// Each thread writes 8 bytes through its own pointer.
__global__ void scatter_pairs(const float *in, const Pointers *pointers) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    *pointers[i].to_pair = make_float2(in[i], -in[i]);
}

// Each thread takes its neighbour's element, within the block. Without the barrier the neighbour may not have
// written it yet.
__global__ void take_neighbour(const float *in, float *out, bool wait) {
    __shared__ float cache[THREADS];
    int t = threadIdx.x, i = t + blockIdx.x * blockDim.x;
    cache[t] = in[i];
    if (wait)
        __syncthreads();
    out[i] = cache[(t + 1) % THREADS];
}

// The first 16 lanes of each warp swap elements in pairs. All lanes that get here must be in the mask.
__global__ void swap_pairs(const float *in, float *out, unsigned mask) {
    __shared__ float cache[THREADS];
    int t = threadIdx.x, i = t + blockIdx.x * blockDim.x;
    cache[t] = out[i] = in[i];
    if (t % 32 < 16) {
        __syncwarp(mask);
        out[i] = cache[t ^ 1];
    }
}

// Adds each element of `in` to the element of `sum`, which must have been initialized.
__global__ void add_to(const float *in, float *sum) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    sum[i] += in[i];
}

// Spins until the flag is not 0. No kernel sets it.
__global__ void wait_for_flag(const volatile int *flag) {
    while (*flag == 0)
        ;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (bug == HANG)
        return hang();
    float in[N], *dev_in, *dev_out, *dev_sum;
    float2 *dev_pairs;
    Pointers pointers[N], *dev_pointers;
    HANDLE_ERROR(cudaMalloc(&dev_in, N * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_out, N * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_pairs, N * sizeof(float2)));
    HANDLE_ERROR(cudaMalloc(&dev_sum, N * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_pointers, N * sizeof(Pointers)));

    random_floats(in, N, 1);
    for (int i = 0; i < N; i++) {
        pointers[i].from = dev_in + N - 1 - i;
        pointers[i].to = dev_out + N - 1 - i;
        pointers[i].to_pair = dev_pairs + i;
    }
    if (bug == SHIFTED_READ)
        pointers[5 + 3 * THREADS].from = (const float *)((const char *)dev_in + 2);
    if (bug == OUT_OF_BOUNDS)
        pointers[3 + 5 * THREADS].from = dev_in + N;
    if (bug == SHIFTED_WRITE)
        pointers[1 + 8 * THREADS].to_pair = (float2 *)((float *)dev_pairs + 1);
    if (bug == NULL_WRITE)
        pointers[63 + 22 * THREADS].to = NULL;
    HANDLE_ERROR(cudaMemcpy(dev_in, in, N * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_pointers, pointers, N * sizeof(Pointers), cudaMemcpyHostToDevice));
    if (bug != UNINITIALIZED)
        HANDLE_ERROR(cudaMemset(dev_sum, 0, N * sizeof(float)));

    gather<<<BLOCKS, THREADS>>>(dev_pointers, dev_out);
    HANDLE_LAUNCH();
    bool ok = check("gather", dev_out, N, in, reversed);
    HANDLE_ERROR(cudaMemset(dev_out, 0xff, N * sizeof(float))); // so that the check notices a missing store
    scatter<<<BLOCKS, THREADS>>>(dev_in, dev_pointers);
    HANDLE_LAUNCH();
    ok = check("scatter", dev_out, N, in, reversed) && ok;
    scatter_pairs<<<BLOCKS, THREADS>>>(dev_in, dev_pointers);
    HANDLE_LAUNCH();
    ok = check("pairs", dev_pairs, 2 * N, in, pair_of) && ok;
    take_neighbour<<<BLOCKS, THREADS>>>(dev_in, dev_out, bug != RACE);
    HANDLE_LAUNCH();
    ok = check("neighbours", dev_out, N, in, next_of) && ok;
    swap_pairs<<<BLOCKS, THREADS>>>(dev_in, dev_out, bug == MASK ? 0x00ff : 0xffff);
    HANDLE_LAUNCH();
    ok = check("swapped", dev_out, N, in, swapped) && ok;
    add_to<<<BLOCKS, THREADS>>>(dev_in, dev_sum);
    HANDLE_LAUNCH();
    ok = check("sum", dev_sum, N, in, same) && ok;

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    HANDLE_ERROR(cudaFree(dev_pairs));
    HANDLE_ERROR(cudaFree(dev_pointers));
    if (bug != LEAK)
        HANDLE_ERROR(cudaFree(dev_sum));
    if (ok)
        printf("All results are right%s.\n", bug == NONE ? "" : ", in spite of the bug");
    return ok && bug == NONE ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// A host thread: sets the flag, which is in mapped (zero-copy) memory, after --seconds.
static CUT_THREADPROC set_flag(void *flag) {
    struct timespec limit = {seconds, 0};
    nanosleep(&limit, NULL);
    *(volatile int *)flag = 1;
    CUT_THREADEND;
}

// For a debugger. A kernel that hangs on a GPU without a time limit keeps its program from ending.
static int hang(void) {
    int *flag, *dev_flag;
    HANDLE_ERROR(cudaHostAlloc(&flag, sizeof(int), cudaHostAllocMapped));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_flag, flag, 0));
    *flag = 0;
    CUTThread thread = start_thread(set_flag, flag);
    wait_for_flag<<<BLOCKS, THREADS>>>(dev_flag);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDeviceSynchronize());
    end_thread(thread);
    HANDLE_ERROR(cudaFreeHost(flag));
    quit(EXIT_FAILURE, "the kernel waited until the host set the flag, after %d s", seconds);
}

void settings(int argc, char **argv) {
    configure(argc, argv, "Makes a mistake with memory, for tools that find such mistakes.", 0,
              {OPTION_WORD("bug", &bug, bugs, "the mistake to make"),
               OPTION_INT("seconds", &seconds, 1, 3600, "how long --bug hang waits")});
}

static float reversed(const float *in, int i) {
    return in[N - 1 - i];
}
static float pair_of(const float *in, int i) {
    return i % 2 ? -in[i / 2] : in[i / 2];
}
static float next_of(const float *in, int i) {
    return in[i % THREADS == THREADS - 1 ? i - (THREADS - 1) : i + 1];
}
static float swapped(const float *in, int i) {
    return in[i % 32 < 16 ? i ^ 1 : i];
}
static float same(const float *in, int i) {
    return in[i];
}

// Elements are only moved, or added to 0, so they must be equal.
static bool check(const char *name, const void *dev_got, size_t n, const float *in, Expect *expect) {
    HostArray<float> got((const float *)dev_got, n);
    return check_floats(name, got, n, 0, [=](size_t i) { return expect(in, i); });
}

// Task: none: the lesson is the errors in its kernels and what the tools report about them
