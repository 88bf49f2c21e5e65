// SPDX-License-Identifier: MIT
/*
 * zero_copy_ladder: a dot product of vectors that stay on the host, as fast as a copy of them
 *
 * Teaches: A kernel that reads the host's memory waits a microsecond or more for each answer, so
 *          the bus is full only while very much has been asked for. What it asks for comes in
 *          packets, each with a header, so large pieces are better than small ones.
 * Book:    11.2 (ladder)
 * Run:     ./bin/chapter11/zero_copy_ladder
 * Differs: random data, and one sum: the last block to finish adds up what all have found, where
 *          the book leaves that to the host. Times are those of the host's clock.
 * Bench:   33M
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include "../common/bench.h"
#include "../common/book.h"
#include "../common/memory.h"

const unsigned BOOK_BLOCKS = 32;
const unsigned BLOCKS = 264; // multiprocessors of an H200, twice
const unsigned THREADS = 256;
const int LOADS = 4;        // of each vector, by a thread, at the same time
const unsigned TILE = 1024; // floats of a bulk copy
const int STAGES = 8;       // tiles of a block, at the same time
const unsigned BULK_BLOCKS = 132, BULK_BYTES = STAGES * 2 * TILE * sizeof(float);
const unsigned MOST_BLOCKS = BLOCKS > BULK_BLOCKS ? BLOCKS : BULK_BLOCKS;
const unsigned HOST_FLAGS = cudaHostAllocMapped; // also tried: cudaHostAllocWriteCombined

static size_t n;
static float *pageable_a, *pageable_b;
static float *a, *b, *result;             // mapped: the device can read and write them
static float *map_a, *map_b, *map_result; // where the device finds them
static float *dev_a, *dev_b, *partial;
static double expected;

// ---- sums ----

__device__ unsigned finished; // blocks that have found their part; after each launch 0 again

// Of all threads of the block, for thread 0.
__device__ static float block_sum(float sum) {
    __shared__ float of_warp[32];
    for (int i = 16; i != 0; i /= 2)
        sum += __shfl_down_sync(~0u, sum, i);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0;
    for (int i = 16; i != 0 && threadIdx.x < 32; i /= 2)
        sum += __shfl_down_sync(~0u, sum, i);
    return sum;
}

// Each block leaves its sum in `partial`. The last one, which sees that all others have, adds up.
__device__ static void finish(float sum, float *partial, float *result) {
    __shared__ bool last;
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence(); // the sum is there before it is counted
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x)
        sum += __ldcg(&partial[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *result = sum;
}

// ---- kernels ----

// The book's
__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[THREADS];
    unsigned cacheIndex = threadIdx.x;
    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n; tid += stride)
        temp += a[tid] * b[tid];
    cache[cacheIndex] = temp;
    __syncthreads();
    for (unsigned i = blockDim.x / 2; i != 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

__device__ static float product(float x, float y) {
    return x * y;
}

__device__ static float product(float4 x, float4 y) {
    return x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
}

// What is left of n after the first `done` elements, few: by block 0.
__device__ static float rest(const float *a, const float *b, size_t done, size_t n) {
    float sum = 0;
    for (size_t i = done + threadIdx.x; blockIdx.x == 0 && i < n; i += blockDim.x)
        sum += a[i] * b[i];
    return sum;
}

// T is float or float4: then a load of a warp is 512 bytes without a gap, four whole lines of the
// cache. The loads of a block follow each other, and the blocks walk side by side.
template <class T, int loads>
__global__ void dot_finished(const float *a, const float *b, float *partial, float *result,
                             size_t n) {
    const T *ta = (const T *)a, *tb = (const T *)b;
    size_t width = sizeof(T) / sizeof(float), count = n / width;
    float sum = rest(a, b, count * width, n);
    size_t first = threadIdx.x + (size_t)blockIdx.x * loads * THREADS;
    for (size_t i = first; i < count; i += (size_t)loads * THREADS * gridDim.x) {
        T x[loads], y[loads];
        for (int k = 0; k < loads; k++)
            if (i + k * THREADS < count) {
                x[k] = ta[i + k * THREADS];
                y[k] = tb[i + k * THREADS];
            }
        for (int k = 0; k < loads; k++)
            if (i + k * THREADS < count)
                sum += product(x[k], y[k]);
    }
    finish(sum, partial, result);
}

#if __CUDA_ARCH__ >= 900
__device__ static unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// One thread asks for a tile of each vector, to be laid down in shared memory. `full` counts the
// bytes that have come.
__device__ static void ask(const float *a, const float *b, float (*tiles)[TILE],
                           unsigned long long *full) {
    unsigned barrier = shared_address(full), bytes = TILE * sizeof(float);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(2 * bytes)
                 : "memory");
    for (int v = 0; v < 2; v++)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], %2, [%3];" ::"r"(shared_address(tiles[v])),
                     "l"(v == 0 ? a : b), "r"(bytes), "r"(barrier)
                     : "memory");
}

__device__ static void wait_for(unsigned long long *full, unsigned phase) {
    unsigned done;
    do
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(shared_address(full)), "r"(phase)
                     : "memory");
    while (!done);
}
#endif

// The copies are made by the multiprocessor's own engine, so that no thread has to hold what is on
// its way in registers.
#ifdef __NVCC__
__global__ void dot_bulk(const float *a, const float *b, float *partial, float *result, size_t n) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) float tiles[][2][TILE];
    __shared__ unsigned long long full[STAGES];
    size_t count = n / TILE;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++)
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&full[s])));
        asm volatile("fence.mbarrier_init.release.cluster;");
        for (int s = 0; s < STAGES; s++) {
            size_t t = blockIdx.x + (size_t)s * gridDim.x;
            if (t < count)
                ask(a + t * TILE, b + t * TILE, tiles[s], &full[s]);
        }
    }
    __syncthreads();
    float sum = rest(a, b, count * TILE, n);
    unsigned s = 0, phase = 0;
    for (size_t t = blockIdx.x; t < count; t += gridDim.x) {
        wait_for(&full[s], phase);
        for (unsigned i = threadIdx.x; i < TILE / 4; i += blockDim.x)
            sum += product(((float4 *)tiles[s][0])[i], ((float4 *)tiles[s][1])[i]);
        __syncthreads(); // all have read it: there is room again
        size_t next = t + (size_t)STAGES * gridDim.x;
        if (threadIdx.x == 0 && next < count)
            ask(a + next * TILE, b + next * TILE, tiles[s], &full[s]);
        if (++s == STAGES) {
            s = 0;
            phase ^= 1;
        }
    }
    finish(sum, partial, result);
#endif
}

static void bulk(void) {
    dot_bulk<<<BULK_BLOCKS, THREADS, BULK_BYTES>>>(map_a, map_b, partial, map_result, n);
    HANDLE_LAUNCH();
}
#else
static void (*const bulk)(void) = NULL;
#endif

// ---- rungs ----

static unsigned book_blocks(void) {
    return std::min<size_t>(BOOK_BLOCKS, (n + THREADS - 1) / THREADS);
}

static void add_up(const float *found) {
    *result = 0;
    for (unsigned i = 0; i < book_blocks(); i++)
        *result += found[i];
}

// Up with both vectors, the kernel, down with what the blocks found.
static void copied(void) {
    float found[BOOK_BLOCKS];
    HANDLE_ERROR(cudaMemcpy(dev_a, pageable_a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, pageable_b, n * sizeof(float), cudaMemcpyHostToDevice));
    dot<<<book_blocks(), THREADS>>>(dev_a, dev_b, partial, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(found, partial, book_blocks() * sizeof(float), cudaMemcpyDeviceToHost));
    add_up(found);
}

static void mapped(void) {
    dot<<<book_blocks(), THREADS>>>(map_a, map_b, map_result + 1, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDeviceSynchronize());
    add_up(result + 1);
}

template <class T, int loads> static void one_launch(void) {
    dot_finished<T, loads><<<BLOCKS, THREADS>>>(map_a, map_b, partial, map_result, n);
    HANDLE_LAUNCH();
}

static void copy_only(void) {
    HANDLE_ERROR(cudaMemcpyAsync(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpyAsync(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
}

static const Rung rungs[] = {
    {"book, copied", "from pageable memory, then the kernel", copied},
    {"mapped", "the kernel reads the host's memory", mapped},
    {"one launch", "more blocks, the last one adds up", one_launch<float, 1>},
    {"16-byte loads", "512 bytes a warp without a gap", one_launch<float4, 1>},
    {"loads in flight", "several of each vector, then sums", one_launch<float4, LOADS>},
    {"bulk copies", "to shared memory, 4 KiB a request", bulk, RUNG, 90},
    {"pinned copy", "of both vectors, nothing else", copy_only, LIMIT},
};

static void poison(void) {
    for (unsigned i = 0; i <= BOOK_BLOCKS; i++)
        result[i] = NAN;
}

// No term is negative, so each rounding costs 2^-24 of the sum at most. The book's kernel has the
// most: the product, what a thread adds, eight halvings and the blocks.
static bool check(const char *name, BenchError *error) {
    float sum = *result;
    inject_error(&sum, sizeof sum);
    double roundings = 1 + ceil((double)n / (BOOK_BLOCKS * THREADS)) + 8 + BOOK_BLOCKS;
    error->max = fabs(sum - expected) / expected;
    return check_value(name, sum, expected, roundings * 0x1p-24);
}

int main(int argc, char **argv) {
    n = BENCH_SIZE(33 << 20, 1 << 20);
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
                          OPTION_END};
    parse_options(argc, argv, "Dot product of vectors in memory of the host, ever faster.", LADDER,
                  own);
    select_device();
    size_t bytes = n * sizeof(float);
    require_memory(4 * bytes, 2 * bytes);

    pageable_a = (float *)malloc(bytes);
    pageable_b = (float *)malloc(bytes);
    HANDLE_NULL(pageable_a);
    HANDLE_NULL(pageable_b);
    random_floats(pageable_a, n, 1);
    random_floats(pageable_b, n, 1);
    for (size_t i = 0; i < n; i++)
        expected += (double)pageable_a[i] * pageable_b[i];
    HANDLE_ERROR(cudaHostAlloc((void **)&a, bytes, HOST_FLAGS));
    HANDLE_ERROR(cudaHostAlloc((void **)&b, bytes, HOST_FLAGS));
    HANDLE_ERROR(
        cudaHostAlloc((void **)&result, (1 + BOOK_BLOCKS) * sizeof(float), cudaHostAllocMapped));
    memcpy(a, pageable_a, bytes);
    memcpy(b, pageable_b, bytes);
    HANDLE_ERROR(cudaHostGetDevicePointer((void **)&map_a, a, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer((void **)&map_b, b, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer((void **)&map_result, result, 0));
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&partial, MOST_BLOCKS * sizeof(float)));
#ifdef __NVCC__
    HANDLE_ERROR(
        cudaFuncSetAttribute(dot_bulk, cudaFuncAttributeMaxDynamicSharedMemorySize, BULK_BYTES));
#endif

    char title[64];
    snprintf(title, sizeof title, "%zu floats of two vectors", n);
    bool ok = bench_run({title, NULL, n, 2.0 * bytes, "GB/s", 0, rungs,
                         sizeof rungs / sizeof *rungs, poison, check, true});
    bench_finish();

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(partial));
    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFreeHost(b));
    HANDLE_ERROR(cudaFreeHost(result));
    free(pageable_a);
    free(pageable_b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
