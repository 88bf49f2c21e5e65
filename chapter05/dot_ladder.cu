// SPDX-License-Identifier: MIT
/*
 * dot_ladder: dot product, from the book's kernel to memory bandwidth
 *
 * Teaches: A dot product reads two vectors once and is memory-bound. The book's 32 blocks leave most
 *          multiprocessors idle. The later kernels reach the bandwidth of memory with more blocks, with
 *          many vectorized loads in flight, and with a reduction that needs neither a second kernel nor
 *          the host. The last one is faster than cuBLAS.
 * Terms:   memory-bound, tree reduction, warp shuffle, vectorized load, in flight, partial sum,
 *          last-block reduction, relaxed, library, cuBLAS, PTX
 * Book:    5.3.1 (ladder)
 * After:   chapter05/reduction
 * Rungs:   0 book (tree reduction in shared memory, 32 blocks); 1 full occupancy (8 blocks per
 *          multiprocessor); 2 warp shuffles (reduction in registers, two barriers); 3 vectorized loads
 *          (float4, eight in flight per thread); 4 single launch (last-block reduction of the partial sums)
 * Build:   nvcc -o dot_ladder chapter05/dot_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/dot_ladder --size 256M
 * Differs: the rounding error is compared with a bound that follows from the longest chain of additions.
 *          The time of a rung whose partial sums the host adds includes that step; the last rung leaves its
 *          result on the device, as cuBLAS does.
 * Limit:   reads from device memory; the last rung reaches it. A small vector takes the time of a launch
 *          and of one atomic operation for each block.
 * Bench:   4K 64K 1M 33M 256M 1G
 * Check:   --size 20003
 */
#include "../common/book.h"
#include "../common/bench.h"
#include "../common/ptx.h" // load_relaxed(), store_relaxed()
#include <float.h>
#include <mutex>
#ifdef HAVE_CUBLAS
#include <cublas_v2.h>
#endif

const unsigned threadsPerBlock = 256;
const unsigned RESIDENT = 8; // blocks of threadsPerBlock threads that a multiprocessor of an H200 holds
const unsigned BLOCK = 512;  // threads per block of the last rungs, two blocks per multiprocessor

static size_t n = BENCH_SIZE(256 << 20, 1 << 20); // --size
static float *dev_a, *dev_b;
static float *partial_c, *dev_partial_c; // one partial sum per block
static unsigned long long *dev_sums;     // the same, each beside the number of its launch
static float *dev_c, host_c;             // the result: of rungs that end on the device, and on the host
static bool on_host;                     // which of the two the last run wrote
static unsigned multiprocessors;         // of the device
static double longest;                   // chain of additions of the last run
static void make_vectors(void);

// Rungs 0 and 1, the book's kernel: a tree reduction in shared memory with a barrier at each level.
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

// Rung 2: the lanes of a warp exchange registers by warp shuffles, which need no barrier. Only one partial
// sum per warp goes through shared memory. Thread 0 has the result.
__device__ static float warp_sum(float x) {
    for (int lanes = 16; lanes > 0; lanes /= 2)
        x += __shfl_down_sync(0xffffffff, x, lanes);
    return x;
}

__device__ static float block_sum(float x) {
    __shared__ float cache[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = warp_sum(x);
    __syncthreads(); // the previous call has read cache
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

// Rung 3: loads of 16 bytes. A thread issues four loads of each vector before the first product, so eight are
// in flight. Their results need so many registers that only two blocks fit on a multiprocessor.
__device__ static float dot4(float4 x, float4 y) {
    return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}

// The tail after the last float4: up to three elements, for the first threads of the grid.
__device__ static float dot_tail(const float *a, const float *b, size_t n) {
    size_t i = n / 4 * 4 + threadIdx.x;
    return blockIdx.x == 0 && i < n ? a[i] * b[i] : 0;
}

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
    return temp[0] + temp[1] + temp[2] + temp[3] + dot_tail(a, b, n);
}

__global__ void __launch_bounds__(BLOCK, 2) dot_vectors(const float *a, const float *b, float *c, size_t n) {
    float temp = block_sum(stride_dot(a, b, n));
    if (threadIdx.x == 0)
        c[blockIdx.x] = temp;
}

// Rung 4: the block that starts last also sums all partial sums, in the same launch. It waits for the
// other blocks in a loop. That cannot deadlock: all of them have started before it, so they end without
// its help. A partial sum and the number of the launch are written as one word of 8 bytes in a single
// access: a block that reads the current number has read the sum too. No memory fence is needed, and no
// counter that a block increments after its sum, which would cost a second trip to the L2 cache.
__device__ static unsigned started; // blocks of this launch

__global__ void __launch_bounds__(BLOCK, 2)
    dot_finish(const float *a, const float *b, unsigned long long *sums, float *c, size_t n,
               unsigned launch) {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0)
        ticket = atomicInc(&started, gridDim.x - 1); // the last block resets it to 0
    float temp = block_sum(stride_dot(a, b, n));
    if (threadIdx.x == 0)
        store_relaxed(&sums[blockIdx.x], (unsigned long long)launch << 32 | __float_as_uint(temp));
    if (ticket != gridDim.x - 1)
        return;
    temp = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
        unsigned long long sum = load_relaxed(&sums[i]);
        while (sum >> 32 != launch) {
            __nanosleep(20);
            sum = load_relaxed(&sums[i]);
        }
        temp += __uint_as_float((unsigned)sum);
    }
    temp = block_sum(temp);
    if (threadIdx.x == 0)
        *c = temp;
}

static unsigned book_blocks(void) {
    return min_of(32, (n + threadsPerBlock - 1) / threadsPerBlock);
}

// The number of blocks of threadsPerBlock threads: as many as an H200 holds at once, but for short vectors
// only one block per 4 * threadsPerBlock elements.
static unsigned small_blocks(void) {
    return max_of(1, min_of(RESIDENT * multiprocessors, n / (4 * threadsPerBlock)));
}

// The number of blocks of BLOCK threads: two per multiprocessor, several times that for long vectors, so that
// a block reads about 512 KiB of each vector. Blocks start in order, so the running ones read neighbouring
// addresses. With only two blocks per multiprocessor, which run from start to end, some get ahead of others,
// and DRAM page locality is lost.
static unsigned large_blocks(void) {
    size_t turns = n / ((size_t)2 * multiprocessors << 17) + 1;
    return max_of(1, min_of(2 * turns * multiprocessors, n / (16 * BLOCK)));
}

// Space for the partial sums of any of these grids
static size_t partial_bytes(void) {
    return (32 + RESIDENT * multiprocessors + large_blocks()) * sizeof(float);
}

// A kernel that writes one partial sum per block. The host adds them.
static void run_with_host(void (*kernel)(const float *, const float *, float *, size_t), unsigned blocks,
                          unsigned threads) {
    kernel<<<blocks, threads>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    host_c = 0;
    for (unsigned i = 0; i < blocks; i++)
        host_c += partial_c[i];
    on_host = true;
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
static cublasHandle_t cublas;

static void run_cublas(void) {
    if (cublasSdot_64(cublas, n, dev_a, 1, dev_b, 1, dev_c) != CUBLAS_STATUS_SUCCESS)
        quit(EXIT_FAILURE, "cublasSdot failed");
    on_host = false;
    longest = 1e4; // not documented
}
#endif

static const Rung rungs[] = {
    {"book", "tree reduction in shared memory, 32 blocks",
     [] { run_with_host(dot, book_blocks(), threadsPerBlock); }},
    {"full occupancy", "8 blocks per multiprocessor",
     [] { run_with_host(dot, small_blocks(), threadsPerBlock); }},
    {"warp shuffles", "reduction in registers, two barriers",
     [] { run_with_host(dot_shuffle, small_blocks(), threadsPerBlock); }},
    {"vectorized loads", "float4, eight in flight per thread",
     [] { run_with_host(dot_vectors, large_blocks(), BLOCK); }},
    {"single launch", "last-block reduction of the partial sums", run_finish},
#ifdef HAVE_CUBLAS
    {"cublasSdot", "cuBLAS, result stays on the device", run_cublas, LIBRARY},
#endif
};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = n * sizeof(float), partials = partial_bytes();
    partial_c = host_array<float>(partials / sizeof(float));
    bench_malloc(&dev_a, bytes);
    bench_malloc(&dev_b, bytes);
    bench_malloc(&dev_c, sizeof(float));
    bench_malloc(&dev_partial_c, partials);
    bench_malloc(&dev_sums, 2 * partials);
    make_vectors();
#ifdef HAVE_CUBLAS
    if (cublasCreate(&cublas) != CUBLAS_STATUS_SUCCESS)
        quit(EXIT_FAILURE, "cuBLAS does not start");
    cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_DEVICE); // the result stays there
#endif

    bench_run(rungs);

#ifdef HAVE_CUBLAS
    cublasDestroy(cublas);
#endif
    return bench_finish({partial_c});
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Dot product, from the book's kernel to the fastest.", LADDER,
              {OPTION_SIZE("size", &n, 1, 1LL << 36, "elements in a vector")});
    multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
    size_t bytes = n * sizeof(float), partials = partial_bytes();
    require_memory(2 * bytes + partials, 2 * bytes + 3 * partials + bench_memory(2 * bytes));
    bench.title = std::to_string(n) + " floats";
    bench.size = n;
    bench.work = 2.0 * bytes; // two vectors are read
    bench.reads = true;
    bench.footprint = 2 * bytes;
}

static double expected; // the reference in double

// Random numbers from 0 to 1
static void make_vectors(void) {
    HostArray<float> a(n), b(n);
    random_floats(a, n, 1);
    random_floats(b, n, 1);
    std::mutex adding;
    in_threads(n, [&](size_t begin, size_t end) {
        double sum = 0;
        for (size_t i = begin; i < end; i++)
            sum += (double)a[i] * b[i];
        std::lock_guard<std::mutex> lock(adding);
        expected += sum;
    });
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, sizeof(float))); // NaN
    HANDLE_ERROR(cudaMemset(dev_partial_c, 0xff, partial_bytes()));
    HANDLE_ERROR(cudaMemset(dev_sums, 0, 2 * partial_bytes())); // no launch has the number 0
    host_c = NAN;
}

// Each product and each addition rounds by at most 2^-24 of its result, products near zero by at most half
// of the smallest float. Roundings of random data partly cancel.
static bool check(const char *name, BenchError *error) {
    float c = host_c;
    if (!on_host)
        HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    double bound = likely_roundings(longest + 2) * 0x1p-24 * expected + n * FLT_TRUE_MIN;
    error->max = fabs(c - expected) / expected;
    return check_value(name, c, expected, bound / fmax(1, expected));
}
