// SPDX-License-Identifier: MIT
/*
 * dot_ladder: the dot product, from the book's kernel to the speed of memory
 *
 * Teaches: A dot product reads two vectors once, so all that counts is how fast they come. The
 *          book's 32 blocks leave most of the device idle. More blocks, wider loads, more loads on
 *          their way at once and a sum that needs neither a second kernel nor the host bring it to
 *          the rate of the memory, ahead of cuBLAS.
 * Book:    5.3.1 (ladder)
 * Run:     ./bin/chapter05/dot_ladder --size 256M
 * Differs: rounding is checked against a limit that follows from the longest chain of additions.
 *          --fill takes data that are hard for a sum. Time for the host's part belongs to a kernel
 *          that needs it; the last one's sum stays on the device, as that of cuBLAS does.
 * Bench:   1M 33M 256M 1G
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/bench.h"
#include "../common/book.h"
#include "../common/memory.h"
#ifdef HAVE_CUBLAS
#include <cublas_v2.h>
static cublasHandle_t cublas;
#endif

#define imin(a, b) ((a) < (b) ? (a) : (b))

const unsigned threadsPerBlock = 256;
const unsigned WAVE = 8;    // blocks of the book's size that we give each multiprocessor
const unsigned BLOCK = 512; // threads of the last rungs, in two blocks for each

static size_t n;
static float *a, *b;                 // host
static float *dev_a, *dev_b;         // device
static float *partial_c;             // host: what each block has added up
static float *dev_partial_c;         // device
static unsigned long long *dev_sums; // the same, each with the number of its launch
static float *dev_c, host_c;         // the result, of kernels that finish and of those that do not
static bool on_host;                 // the last one is in host_c
static unsigned multiprocessors;     // of the device
static double longest;               // additions in a row that the result went through, last run

// What is left for the host: the sum over the blocks, after it has come back.
static void add_blocks(unsigned blocks) {
    HANDLE_ERROR(
        cudaMemcpy(partial_c, dev_partial_c, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    host_c = 0;
    for (unsigned i = 0; i < blocks; i++)
        host_c += partial_c[i];
    on_host = true;
}

// The book's: a tree in shared memory, with a barrier at each level.
__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        temp += a[i] * b[i];
    cache[threadIdx.x] = temp;
    __syncthreads();
    for (unsigned i = blockDim.x / 2; i != 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        c[blockIdx.x] = cache[0];
}

// The sum over a block, for thread 0: the lanes of a warp exchange registers, without a barrier,
// and only what is left of each warp goes through shared memory.
__device__ static float warp_sum(float x) {
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_down_sync(0xffffffff, x, lanes);
    return x;
}

__device__ static float block_sum(float x) {
    __shared__ float cache[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = warp_sum(x);
    __syncthreads(); // a sum before this one has been read
    if (lane == 0)
        cache[warp] = x;
    __syncthreads();
    if (warp == 0)
        x = warp_sum(lane < blockDim.x / 32 ? cache[lane] : 0);
    return x;
}

__global__ void dot_shuffle(const float *a, const float *b, float *c, size_t n) {
    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        temp += a[i] * b[i];
    temp = block_sum(temp);
    if (threadIdx.x == 0)
        c[blockIdx.x] = temp;
}

__device__ static float dot4(float4 x, float4 y) {
    return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}

// Up to three elements after the last four, for the first threads of the grid
__device__ static float rest(const float *a, const float *b, size_t n) {
    size_t i = n / 4 * 4 + threadIdx.x;
    return blockIdx.x == 0 && i < n ? a[i] * b[i] : 0;
}

// Loads of 16 bytes, four of each vector on their way before the first product. They take so many
// registers that two blocks fill a multiprocessor.
__device__ static float stride_dot(const float *a, const float *b, size_t n) {
    const float4 *a4 = (const float4 *)a, *b4 = (const float4 *)b;
    size_t fours = n / 4, stride = (size_t)4 * blockDim.x * gridDim.x;
    float temp[4] = {0, 0, 0, 0};
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * 4 * blockDim.x; i < fours; i += stride) {
        float4 x[4], y[4];
        for (int k = 0; k < 4; k++) {
            bool inside = i + k * blockDim.x < fours;
            x[k] = inside ? a4[i + k * blockDim.x] : make_float4(0, 0, 0, 0);
            y[k] = inside ? b4[i + k * blockDim.x] : make_float4(0, 0, 0, 0);
        }
        for (int k = 0; k < 4; k++)
            temp[k] += dot4(x[k], y[k]);
    }
    return temp[0] + temp[1] + temp[2] + temp[3] + rest(a, b, n);
}

__global__ void __launch_bounds__(BLOCK, 2)
    dot_vectors(const float *a, const float *b, float *c, size_t n) {
    float temp = block_sum(stride_dot(a, b, n));
    if (threadIdx.x == 0)
        c[blockIdx.x] = temp;
}

// A word that one block writes while another one reads it: what C++ calls an atomic, relaxed
__device__ static void leave(unsigned long long *at, unsigned long long word) {
#ifdef __NVCC__
    *(volatile unsigned long long *)at = word;
#else
    __atomic_store_n(at, word, __ATOMIC_RELAXED);
#endif
}

__device__ static unsigned long long look(const unsigned long long *at) {
#ifdef __NVCC__
    return *(const volatile unsigned long long *)at;
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
}

// One launch: the block that is the last to start adds up what all leave. It may wait for them, as
// they are all under way. A sum and the number of the launch share a word of 8 bytes, so that who
// sees the number has the sum: no fence, no counter to go to after it, one way through memory less.
__device__ static unsigned started;

__global__ void __launch_bounds__(BLOCK, 2)
    dot_finish(const float *a, const float *b, unsigned long long *sums, float *c, size_t n,
               unsigned launch) {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0)
        ticket = atomicInc(&started, gridDim.x - 1); // the last one turns it back to 0
    float temp = block_sum(stride_dot(a, b, n));
    if (threadIdx.x == 0)
        leave(&sums[blockIdx.x], (unsigned long long)launch << 32 | __float_as_uint(temp));
    if (ticket != gridDim.x - 1)
        return;
    temp = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
        unsigned long long sum = look(&sums[i]);
        while (sum >> 32 != launch) {
            __nanosleep(20);
            sum = look(&sums[i]);
        }
        temp += __uint_as_float((unsigned)sum);
    }
    temp = block_sum(temp);
    if (threadIdx.x == 0)
        *c = temp;
}

static unsigned book_blocks(void) {
    return imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);
}

// As many as the device holds at once, and no more than there is work for
static unsigned enough_blocks(unsigned each, size_t elements) {
    return std::max<size_t>(1, std::min<size_t>(each * multiprocessors, n / elements));
}

static unsigned small_blocks(void) {
    return enough_blocks(WAVE, 4 * threadsPerBlock);
}

// Two fill a multiprocessor. For long vectors more, in turn: blocks start in order, so that those
// which run read side by side, while blocks that stay drift apart, and memory likes that less.
static unsigned large_blocks(void) {
    size_t turns = n / ((size_t)2 * multiprocessors << 17) + 1; // 512 KiB of a vector for a block
    return enough_blocks(2 * turns, 16 * BLOCK);
}

// Room for the sums of whatever blocks there are
static size_t partial_bytes(void) {
    return (32 + WAVE * multiprocessors + large_blocks()) * sizeof(float);
}

// A kernel that leaves a sum a block
static void run_with_host(void (*kernel)(const float *, const float *, float *, size_t),
                          unsigned blocks, unsigned threads) {
    kernel<<<blocks, threads>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();
    add_blocks(blocks);
    longest = (double)n / (blocks * threads) + threads + blocks;
}

static void run_finish(void) {
    static unsigned launch = 0;
    dot_finish<<<large_blocks(), BLOCK>>>(dev_a, dev_b, dev_sums, dev_c, n, ++launch);
    HANDLE_LAUNCH();
    on_host = false;
    longest = (double)n / (4 * large_blocks() * BLOCK) + 64 + (double)large_blocks() / BLOCK;
}

#ifdef HAVE_CUBLAS
static void run_cublas(void) {
    if (cublasSdot_64(cublas, n, dev_a, 1, dev_b, 1, dev_c) != CUBLAS_STATUS_SUCCESS)
        quit(EXIT_FAILURE, "cublasSdot failed");
    on_host = false;
    longest = 1e4; // not known
}
#endif

static const Rung rungs[] = {
    {"book", "32 blocks, tree in shared memory",
     [] { run_with_host(dot, book_blocks(), threadsPerBlock); }},
    {"enough blocks", "8 a multiprocessor",
     [] { run_with_host(dot, small_blocks(), threadsPerBlock); }},
    {"warp shuffles", "registers, two barriers",
     [] { run_with_host(dot_shuffle, small_blocks(), threadsPerBlock); }},
    {"16-byte loads", "eight in flight", [] { run_with_host(dot_vectors, large_blocks(), BLOCK); }},
    {"one launch", "the last block waits", run_finish},
#ifdef HAVE_CUBLAS
    {"cublasSdot", "result stays on the device", run_cublas, PEER},
#endif
};

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_c, 0x7f, sizeof(float))); // no NaN, for that may be right
    HANDLE_ERROR(cudaMemset(dev_partial_c, 0x7f, partial_bytes()));
    HANDLE_ERROR(cudaMemset(dev_sums, 0, 2 * partial_bytes())); // no launch has the number 0
    host_c = FLT_MAX;
}

enum { RANDOM, EQUAL, SORTED, SIGNED, DENORMAL, NANS };
static int fill = RANDOM;

// The reference, in double, and the sum of the magnitudes, which rounding errors are relative to
static double expected, magnitude;

static void add_up(void) {
    expected = magnitude = 0;
    for (size_t i = 0; i < n; i++) {
        expected += (double)a[i] * b[i];
        magnitude += fabs((double)a[i] * b[i]);
    }
}

// Each product and addition rounds by 2^-24 at most, products near zero by half of the smallest
// float. Those of random data go up as well as down.
static bool check(const char *name, BenchError *error) {
    float c;
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    if (on_host)
        c = host_c;
    inject_error(&c, sizeof(float));
    if (isnan(expected)) {
        if (!isnan(c))
            fprintf(stderr, "%s: got %g, expected NaN\n", name, c);
        return isnan(c);
    }
    double roundings = longest + 2;
    if (fill == RANDOM || fill == SIGNED)
        roundings = likely_roundings(roundings);
    double limit = roundings * 0x1p-24 * magnitude + n * FLT_TRUE_MIN, off = fabs(c - expected);
    error->max = magnitude > 0 ? off / magnitude : off;
    if (!(off <= limit))
        fprintf(stderr, "%s: got %.9g, expected %.9g, off by more than %.2g\n", name, c, expected,
                limit);
    return off <= limit;
}

static void fill_vectors(void) {
    random_floats(a, n, 1);
    random_floats(b, n, 1);
    if (fill == EQUAL) {
        std::fill(a, a + n, 0.7f);
        std::fill(b, b + n, 0.3f);
    }
    if (fill == SORTED)
        for (size_t i = 0; i < n; i++)
            a[i] = (float)i / n;
    if (fill == SIGNED)
        for (size_t i = 0; i < n; i++)
            a[i] -= 0.5f;
    if (fill == DENORMAL)
        for (size_t i = 0; i < n; i++)
            a[i] *= FLT_MIN;
    if (fill == NANS)
        a[n / 2] = NAN;
}

int main(int argc, char **argv) {
    n = BENCH_SIZE(256 << 20, 1 << 20);
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, (size_t)1 << 36, "elements in a vector"),
        OPTION_WORD("fill", &fill, "random|equal|sorted|signed|denormal|nan", "what they are"),
        OPTION_END};
    parse_options(argc, argv, "Dot products, from the book's kernel to the fastest.", LADDER, own);
    select_device();
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    multiprocessors = prop.multiProcessorCount;

    size_t bytes = n * sizeof(float), partials = partial_bytes();
    require_memory(2 * bytes, 2 * bytes + 3 * partials + bench_memory(2 * bytes));
    a = (float *)malloc(bytes);
    b = (float *)malloc(bytes);
    partial_c = (float *)malloc(partials);
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(partial_c);
    fill_vectors();
    add_up();
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_partial_c, partials));
    HANDLE_ERROR(cudaMalloc((void **)&dev_sums, 2 * partials));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));
#ifdef HAVE_CUBLAS
    if (cublasCreate(&cublas) != CUBLAS_STATUS_SUCCESS)
        quit(EXIT_FAILURE, "cuBLAS does not start");
    cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_DEVICE); // the result stays there
#endif

    char title[64];
    snprintf(title, sizeof title, "%zu floats", n);
    bool ok = bench_run({title, NULL, n, 2.0 * bytes, "GB/s", 2 * bytes, rungs,
                         sizeof rungs / sizeof *rungs, poison, check});
    bench_finish();

#ifdef HAVE_CUBLAS
    cublasDestroy(cublas);
#endif
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    HANDLE_ERROR(cudaFree(dev_sums));
    free(a);
    free(b);
    free(partial_c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
