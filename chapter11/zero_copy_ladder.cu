// SPDX-License-Identifier: MIT
/*
 * zero_copy_ladder: a dot product of vectors that stay on the host, against a copy of them
 *
 * Teaches: A kernel that reads the host's memory waits long for each answer, so the bus is full
 *          only while very much has been asked for: by many threads, or by 16 bytes a thread. Even
 *          then it is not quite so full as with the copy engine. So a copy in chunks is faster
 *          still, where the device has room for it.
 * Book:    11.2 (ladder)
 * Run:     ./bin/chapter11/zero_copy_ladder
 * Differs: random data, and one sum: the last block to finish adds up what all have found, where
 *          the book leaves that to the host. Times are those of the host's clock. Pinning the
 *          vectors is not in them.
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

const unsigned THREADS = 256;
const unsigned BOOK_BLOCKS = 32;
const unsigned BLOCKS = 132; // of kernels on the device's memory, and where 4 bytes are asked for
const unsigned FEW_BLOCKS = 16;           // that ask for 16 bytes a thread
const double IN_PLACE = 0.1;              // share that the kernel reads while the rest is copied
const double SHARE = 0.75;                // of what is left, in a chunk
const size_t SMALLEST = 256 << 10;        // floats of a vector in a chunk
const unsigned MOST_BLOCKS = 64 * BLOCKS; // of all kernels of a run

static size_t n;
static float *pageable_a, *pageable_b;
static float *a, *b, *result;             // mapped: the device can read and write them
static float *map_a, *map_b, *map_result; // where the device finds them
static float *dev_a, *dev_b, *partial;
static double expected, longest; // longest: additions in a row that the result went through
static cudaStream_t streams[3];
static cudaEvent_t arrived;

// ---- sums ----

__device__ unsigned finished; // blocks that have found their part; after each run 0 again

// Where a kernel that is one of several finds its place.
struct Place {
    unsigned first, all; // blocks: of kernels before this one, of all kernels
};

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

// Each block leaves its sum in `partial`. The last one, of all kernels of the run, adds up.
__device__ static void finish(float sum, float *partial, Place place, float *result) {
    __shared__ bool last;
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partial[place.first + blockIdx.x] = sum;
        __threadfence(); // the sum is there before it is counted
        last = atomicInc(&finished, place.all - 1) == place.all - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    sum = 0;
    for (unsigned i = threadIdx.x; i < place.all; i += blockDim.x)
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

// T is float, or float4, of which each load of a warp is 512 bytes without a gap.
template <class T>
__global__ void dot_finished(const float *a, const float *b, size_t n, float *partial, Place place,
                             float *result) {
    const T *ta = (const T *)a, *tb = (const T *)b;
    const size_t width = sizeof(T) / sizeof(float), count = n / width;
    size_t start = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    float sum = 0;
    for (size_t i = start; i < count; i += (size_t)blockDim.x * gridDim.x)
        sum += product(ta[i], tb[i]);
    if (start < n - count * width)
        sum += a[count * width + start] * b[count * width + start];
    finish(sum, partial, place, result);
}

// ---- rungs ----

static unsigned book_blocks(void) {
    return std::min<size_t>(BOOK_BLOCKS, (n + THREADS - 1) / THREADS);
}

static void add_up(const float *found) {
    longest = ceil((double)n / (book_blocks() * THREADS)) + 8 + book_blocks();
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

// In a thread that has its share of `count` elements, the last four at once, in two sums over a
// block, and where blocks are added up
static double chain(size_t count, unsigned blocks, unsigned all) {
    return ceil((double)count / (blocks * THREADS)) + 3 + 20 + all / THREADS + 1;
}

static void one_launch(void) {
    longest = chain(n, BLOCKS, BLOCKS);
    dot_finished<float>
        <<<BLOCKS, THREADS>>>(map_a, map_b, n, partial, Place{0, BLOCKS}, map_result);
    HANDLE_LAUNCH();
}

static void vectors(void) {
    longest = chain(n, FEW_BLOCKS, FEW_BLOCKS);
    dot_finished<float4>
        <<<FEW_BLOCKS, THREADS>>>(map_a, map_b, n, partial, Place{0, FEW_BLOCKS}, map_result);
    HANDLE_LAUNCH();
}

static size_t chunk_of(size_t left) {
    return std::min(std::max((size_t)(SHARE * left) / 1024 * 1024, SMALLEST), left);
}

// A kernel reads the first part in place, while the copy engine brings the rest in chunks that
// become ever smaller. A chunk is added up while the next one is under way.
static void divided(double in_place) {
    size_t i = (size_t)(in_place * n) / 1024 * 1024;
    Place place = {0, i > 0 ? FEW_BLOCKS : 0};
    for (size_t k = i; k < n; k += chunk_of(n - k))
        place.all += BLOCKS;
    longest = fmax(chain(i, FEW_BLOCKS, place.all), chain(n - i, BLOCKS, place.all)); // at most
    if (i > 0) {
        dot_finished<float4>
            <<<FEW_BLOCKS, THREADS, 0, streams[0]>>>(map_a, map_b, i, partial, place, map_result);
        HANDLE_LAUNCH();
        place.first = FEW_BLOCKS;
    }
    for (size_t count; i < n; i += count, place.first += BLOCKS) {
        size_t bytes = (count = chunk_of(n - i)) * sizeof(float);
        HANDLE_ERROR(cudaMemcpyAsync(dev_a + i, a + i, bytes, cudaMemcpyHostToDevice, streams[1]));
        HANDLE_ERROR(cudaMemcpyAsync(dev_b + i, b + i, bytes, cudaMemcpyHostToDevice, streams[1]));
        HANDLE_ERROR(cudaEventRecord(arrived, streams[1]));
        HANDLE_ERROR(cudaStreamWaitEvent(streams[2], arrived, 0));
        dot_finished<float4><<<BLOCKS, THREADS, 0, streams[2]>>>(dev_a + i, dev_b + i, count,
                                                                 partial, place, map_result);
        HANDLE_LAUNCH();
    }
}

static void copy_only(void) {
    HANDLE_ERROR(cudaMemcpyAsync(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpyAsync(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
}

static const Rung rungs[] = {
    {"book, copied", "from pageable memory, then the kernel", copied},
    {"mapped", "the kernel reads the host's memory", mapped},
    {"one launch", "more blocks, the last one adds up", one_launch},
    {"16-byte loads", "as much on its way with few blocks", vectors},
    {"both engines", "a tenth in place, the rest copied", [] { divided(IN_PLACE); }},
    {"copied in chunks", "for comparison: nothing in place", [] { divided(0); }},
    {"pinned copy", "of both vectors, nothing else", copy_only, LIMIT},
};

static void poison(void) {
    for (unsigned i = 0; i <= BOOK_BLOCKS; i++)
        result[i] = NAN;
    HANDLE_ERROR(cudaMemset(partial, 0xff, MOST_BLOCKS * sizeof(float))); // NaN
}

// No term is negative, so each rounding costs 2^-24 of the sum at most. The first is the product's.
static bool check(const char *name, BenchError *error) {
    float sum = *result;
    inject_error(&sum, sizeof sum);
    error->max = fabs(sum - expected) / expected;
    return check_value(name, sum, expected, likely_roundings(longest + 1) * 0x1p-24);
}

int main(int argc, char **argv) {
    n = BENCH_SIZE(33 << 20, 1 << 20);
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
                          OPTION_END};
    parse_options(
        argc, argv,
        "Dot product of vectors in memory of the host, from mapped memory to copies in chunks.",
        LADDER, own);
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
    HANDLE_ERROR(cudaHostAlloc((void **)&a, bytes, cudaHostAllocMapped));
    HANDLE_ERROR(cudaHostAlloc((void **)&b, bytes, cudaHostAllocMapped));
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
    for (cudaStream_t &stream : streams)
        HANDLE_ERROR(cudaStreamCreate(&stream));
    HANDLE_ERROR(cudaEventCreateWithFlags(&arrived, cudaEventDisableTiming));

    char title[64];
    snprintf(title, sizeof title, "%zu floats of two vectors", n);
    bool ok = bench_run({title, NULL, n, 2.0 * bytes, "GB/s", 0, rungs,
                         sizeof rungs / sizeof *rungs, poison, check, true});
    bench_finish();

    HANDLE_ERROR(cudaEventDestroy(arrived));
    for (cudaStream_t stream : streams)
        HANDLE_ERROR(cudaStreamDestroy(stream));
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
