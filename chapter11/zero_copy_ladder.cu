// SPDX-License-Identifier: MIT
/*
 * zero_copy_ladder: dot product of vectors in host memory, with zero-copy and with copies in chunks
 *
 * Teaches: A load of mapped host memory has a high latency, so PCIe is busy only when many bytes are in
 *          flight: from many threads, or with 16 bytes per thread. Even then the bandwidth is a little
 *          below that of the copy engine. So for long vectors copies in chunks that overlap with
 *          kernels are faster, if the device has memory for the data.
 * Terms:   zero-copy, mapped memory, in flight, latency, PCIe, copy engine, overlap, last-block reduction
 * Book:    11.2 (ladder)
 * Rungs:   0 book, copied (cudaMemcpy from pageable memory); 1 book, zero-copy (kernel reads mapped memory);
 *          2 single launch (float4, 16 blocks, last-block reduction); 3 copied in chunks (no zero-copy,
 *          overlap of copies and kernels)
 * Build:   nvcc -o zero_copy_ladder chapter11/zero_copy_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter11/zero_copy_ladder
 * Differs: random data. From rung 2 on the device adds the partial sums, which the book leaves to the
 *          host. Times are measured with the host's clock. Allocating pinned memory is not part of them.
 * Limit:   the bus; the last rung leaves only the time of the last chunk's kernel.
 * Bench:   64K 1M 8M 33M 128M
 * Check:   --size 20003
 */
#include "../common/book.h"
#include "../common/bench.h"

const unsigned THREADS = 256;
const unsigned BOOK_BLOCKS = 32;
const unsigned BLOCKS = 132;       // of kernels on device memory
const unsigned FEW_BLOCKS = 16;    // of kernels with 16-byte loads of host memory
const double SHARE = 0.75;         // size of a chunk as a fraction of the elements that have not been copied
const size_t SMALLEST = 256 << 10; // floats of a vector in a chunk, at least
const unsigned MOST_BLOCKS = 64 * BLOCKS; // of all kernels of a run

static size_t n = BENCH_SIZE(33 << 20, 1 << 20); // --size
static float *pageable_a, *pageable_b;
static float *a, *b, *result;             // mapped memory: its address on the host
static float *map_a, *map_b, *map_result; // and on the device
static float *dev_a, *dev_b, *partial;
static double longest; // chain of additions of the last run
static cudaStream_t streams[2];
static cudaEvent_t arrived;
static void make_vectors(void);

// ---- reductions ----

// Several kernels of a run may add up parts of the vectors. `first` is the number of blocks of the kernels
// before this one, `all` that of all kernels.
struct Place {
    unsigned first, all;
};

__device__ unsigned finished; // blocks of this run; atomicInc resets it to 0 after the last block

// Block reduction with warp shuffles. Thread 0 has the sum.
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

// Last-block reduction: each block writes its partial sum and then counts itself. The block that finds all
// others counted, of all kernels of the run, adds the partial sums. __threadfence() orders the partial
// sum before the count, and the count before the reads; __ldcg reads from the L2 cache, past an L1 cache
// that may hold old values.
__device__ static void finish(float sum, float *partial, Place place, float *result) {
    __shared__ bool last;
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partial[place.first + blockIdx.x] = sum;
        __threadfence();
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

// Rungs 0 and 1: the book's kernel.
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

// Vectorized loads: 512 contiguous bytes per warp
__global__ void dot_finished(const float *a, const float *b, size_t n, float *partial, Place place,
                             float *result) {
    const float4 *a4 = (const float4 *)a, *b4 = (const float4 *)b;
    const size_t count = n / 4;
    size_t start = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    float sum = 0;
    for (size_t i = start; i < count; i += (size_t)blockDim.x * gridDim.x) {
        float4 x = a4[i], y = b4[i];
        sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
    }
    if (start < n - count * 4)
        sum += a[count * 4 + start] * b[count * 4 + start];
    finish(sum, partial, place, result);
}

// ---- the rungs ----

static unsigned book_blocks(void) {
    return min_of(BOOK_BLOCKS, (n + THREADS - 1) / THREADS);
}

// The host adds the partial sums.
static void add_up(const float *found) {
    longest = ceil((double)n / (book_blocks() * THREADS)) + 8 + book_blocks();
    *result = 0;
    for (unsigned i = 0; i < book_blocks(); i++)
        *result += found[i];
}

// Rung 0: both vectors are copied to the device, the partial sums back.
static void copied(void) {
    float found[BOOK_BLOCKS];
    HANDLE_ERROR(cudaMemcpy(dev_a, pageable_a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, pageable_b, n * sizeof(float), cudaMemcpyHostToDevice));
    dot<<<book_blocks(), THREADS>>>(dev_a, dev_b, partial, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(found, partial, book_blocks() * sizeof(float), cudaMemcpyDeviceToHost));
    add_up(found);
}

// Rung 1: the kernel reads the vectors in mapped host memory and writes the partial sums there.
static void mapped(void) {
    dot<<<book_blocks(), THREADS>>>(map_a, map_b, map_result + 1, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDeviceSynchronize());
    add_up(result + 1);
}

// Additions that a product goes through: in its thread (`count` elements in so many blocks), within a float4,
// in two block reductions and among `all` partial sums.
static double chain(size_t count, unsigned blocks, unsigned all) {
    return ceil((double)count / (blocks * THREADS)) + 3 + 20 + all / THREADS + 1;
}

// Rung 2: with 16 bytes per load, few blocks keep many bytes in flight. The last block adds the sums.
static void single_launch(void) {
    longest = chain(n, FEW_BLOCKS, FEW_BLOCKS);
    dot_finished<<<FEW_BLOCKS, THREADS>>>(map_a, map_b, n, partial, Place{0, FEW_BLOCKS}, map_result);
    HANDLE_LAUNCH();
}

// Chunks shrink, so that little is left to compute after the last copy.
static size_t chunk_of(size_t rest) {
    return min_of(max_of((size_t)(SHARE * rest) / 1024 * 1024, SMALLEST), rest);
}

// Rung 3: the kernel of a chunk overlaps with the copy of the next one.
static void copied_in_chunks(void) {
    Place place = {0, 0};
    for (size_t i = 0; i < n; i += chunk_of(n - i))
        place.all += BLOCKS;
    longest = chain(n, BLOCKS, place.all); // of all chunks at most this
    for (size_t i = 0, count; i < n; i += count, place.first += BLOCKS) {
        count = chunk_of(n - i);
        size_t bytes = count * sizeof(float);
        HANDLE_ERROR(cudaMemcpyAsync(dev_a + i, a + i, bytes, cudaMemcpyHostToDevice, streams[0]));
        HANDLE_ERROR(cudaMemcpyAsync(dev_b + i, b + i, bytes, cudaMemcpyHostToDevice, streams[0]));
        HANDLE_ERROR(cudaEventRecord(arrived, streams[0]));
        HANDLE_ERROR(cudaStreamWaitEvent(streams[1], arrived, 0));
        dot_finished<<<BLOCKS, THREADS, 0, streams[1]>>>(dev_a + i, dev_b + i, count, partial, place,
                                                         map_result);
        HANDLE_LAUNCH();
    }
}

static void copy_only(void) {
    HANDLE_ERROR(cudaMemcpyAsync(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpyAsync(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
}

static const Rung rungs[] = {
    {"book, copied", "cudaMemcpy from pageable memory", copied},
    {"book, zero-copy", "kernel reads mapped memory", mapped},
    {"single launch", "float4, 16 blocks, last-block reduction", single_launch},
    {"copied in chunks", "no zero-copy, overlap of copies and kernels", copied_in_chunks},
    {"pinned copy", "both vectors, no kernel", copy_only, LIMIT},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = n * sizeof(float);
    bench_malloc_host(&a, bytes, cudaHostAllocMapped);
    bench_malloc_host(&b, bytes, cudaHostAllocMapped);
    bench_malloc_host(&result, (1 + BOOK_BLOCKS) * sizeof(float), cudaHostAllocMapped);
    HANDLE_ERROR(cudaHostGetDevicePointer(&map_a, a, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&map_b, b, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&map_result, result, 0));
    bench_malloc(&dev_a, bytes);
    bench_malloc(&dev_b, bytes);
    bench_malloc(&partial, MOST_BLOCKS * sizeof(float));
    make_vectors();
    for (cudaStream_t &stream : streams)
        bench_stream(&stream);
    bench_event(&arrived);

    bench_run(rungs);

    return bench_finish({pageable_a, pageable_b});
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Dot product of vectors in host memory, with zero-copy and with copies in chunks.",
              LADDER, {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector")});
    require_memory(4 * n * sizeof(float), 2 * n * sizeof(float));
    bench.title = std::to_string(n) + " floats of two vectors";
    bench.size = n;
    bench.work = 2.0 * n * sizeof(float); // both vectors cross the bus
    bench.host_clock = true;
    bench.left = [](const std::string &) { // by the pinned copy
        const size_t bytes = n * sizeof(float);
        return std::vector<BenchLeft>{{dev_a, a, bytes}, {dev_b, b, bytes}};
    };
}

static double expected; // in double

static void make_vectors(void) {
    pageable_a = host_array<float>(n);
    pageable_b = host_array<float>(n);
    random_floats(pageable_a, n, 1);
    random_floats(pageable_b, n, 1);
    for (size_t i = 0; i < n; i++)
        expected += (double)pageable_a[i] * pageable_b[i];
    memcpy(a, pageable_a, n * sizeof(float));
    memcpy(b, pageable_b, n * sizeof(float));
}

// Device memory too, so that a rung cannot use what an earlier one has copied there.
static void poison(void) {
    for (unsigned i = 0; i <= BOOK_BLOCKS; i++)
        result[i] = NAN;
    HANDLE_ERROR(cudaMemset(partial, 0xff, MOST_BLOCKS * sizeof(float))); // NaN
    HANDLE_ERROR(cudaMemset(dev_a, 0xff, n * sizeof(float)));
    HANDLE_ERROR(cudaMemset(dev_b, 0xff, n * sizeof(float)));
}

// No product is negative, so each rounding costs at most 2^-24 of the sum. The first one is the product's.
static bool check(const char *name, BenchError *error) {
    error->max = fabs(*result - expected) / expected;
    return check_value(name, *result, expected, likely_roundings(longest + 1) * 0x1p-24);
}
