// SPDX-License-Identifier: MIT
/*
 * add_ladder: vector addition, from the book's launch to the limit of the memory
 *
 * Teaches: Vector addition is memory-bound, so its limit is the rate of reads from memory. Bandwidth needs
 *          many bytes in flight: first more threads, then wider loads. With full occupancy, more loads per
 *          thread are no faster. A cache hint for the sums, which are not read again soon, together with
 *          larger blocks gains little.
 * Terms:   memory-bound, effective bandwidth, vectorized load, occupancy, in flight,
 *          instruction-level parallelism, streaming store, limit, ladder, rung, L2 cache
 * Book:    5.2.1 (ladder)
 * Rungs:   0 book (grid-stride loop, 128 blocks of 128 threads); 1 full occupancy (one element per thread);
 *          2 vectorized loads (int4, four elements per thread); 3 more loads in flight (eight elements per
 *          thread); 4 streaming stores (cache hint __stcs, 1024 threads per block)
 * Build:   nvcc -o add_ladder chapter05/add_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/add_ladder
 * Limit:   reads from device memory; the last rung reaches 97 % of it. A small vector takes the time of a
 *          launch.
 * Bench:   4K 64K 1M 16M 256M
 * Check:   --size 20003
 */
#include "../common/book.h"
#include "../common/bench.h"

const unsigned THREADS = 256;

static size_t n = BENCH_SIZE(256 << 20, (1 << 20) - 1); // --size
static int *dev_a, *dev_b, *dev_c;
static int *c, *expected; // host
static void make_vectors(void);

// Rungs 0 and 1. The book launches 128 blocks of 128 threads. They have too few loads in flight, because each
// thread waits for its two loads before it issues the next ones. With one element per thread a
// multiprocessor has as many threads as it can hold, and each of them has two loads in flight.
__global__ void add(const int *a, const int *b, int *c, size_t n) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        c[i] = a[i] + b[i];
}

__device__ static int4 sum(int4 x, int4 y) {
    return make_int4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

// The tail after the last int4: up to three elements, for the first threads of the grid.
__device__ static void add_tail(const int *a, const int *b, int *c, size_t n) {
    size_t i = n / 4 * 4 + threadIdx.x;
    if (blockIdx.x == 0 && i < n)
        c[i] = a[i] + b[i];
}

// Rung 2: a load instruction brings 16 bytes per thread, 512 per warp.
__global__ void add_vectors(const int *a, const int *b, int *c, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * THREADS;
    if (i < n / 4)
        ((int4 *)c)[i] = sum(((const int4 *)a)[i], ((const int4 *)b)[i]);
    add_tail(a, b, c, n);
}

// Rung 3, instruction-level parallelism: a thread issues four independent loads before the first addition. At
// this occupancy there is no gain: memory bandwidth is saturated.
__global__ void add_many(const int *a, const int *b, int *c, size_t n) {
    const int4 *a4 = (const int4 *)a, *b4 = (const int4 *)b;
    size_t i = threadIdx.x + (size_t)blockIdx.x * 2 * THREADS, next = i + THREADS;
    if (next < n / 4) {
        int4 x = a4[i], y = b4[i], x_next = a4[next], y_next = b4[next];
        ((int4 *)c)[i] = sum(x, y);
        ((int4 *)c)[next] = sum(x_next, y_next);
    } else if (i < n / 4) {
        ((int4 *)c)[i] = sum(a4[i], b4[i]);
    }
    add_tail(a, b, c, n);
}

// Rung 4: __stcs marks the sums as data that is not read again soon, so the cache evicts them first. A block
// has 1024 threads in place of 256. The same hint for the loads, __ldcs, was slower on an H200.
__global__ void add_streaming(const int *a, const int *b, int *c, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n / 4)
        __stcs(&((int4 *)c)[i], sum(((const int4 *)a)[i], ((const int4 *)b)[i]));
    add_tail(a, b, c, n);
}

// The number of blocks when each block adds that many elements.
static unsigned blocks(size_t elements_per_block) {
    return (n - 1) / elements_per_block + 1;
}

static void run(void (*kernel)(const int *, const int *, int *, size_t), unsigned blocks, unsigned threads) {
    kernel<<<blocks, threads>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
}

static const Rung rungs[] = {
    {"book", "grid-stride loop, 128 blocks of 128 threads", [] { run(add, 128, 128); }},
    {"full occupancy", "one element per thread", [] { run(add, blocks(THREADS), THREADS); }},
    {"vectorized loads", "int4, four elements per thread",
     [] { run(add_vectors, blocks(4 * THREADS), THREADS); }},
    {"more loads in flight", "eight elements per thread",
     [] { run(add_many, blocks(8 * THREADS), THREADS); }},
    {"streaming stores", "cache hint __stcs, 1024 threads per block",
     [] { run(add_streaming, blocks(4 * 1024), 1024); }},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = n * sizeof(int);
    bench_malloc(&dev_a, bytes);
    bench_malloc(&dev_b, bytes);
    bench_malloc(&dev_c, bytes);
    make_vectors();

    bench_run(rungs);

    return bench_finish({expected});
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Vector addition, from the book's kernel to the fastest.", LADDER,
              {OPTION_SIZE("size", &n, 1, 1LL << 36, "elements in a vector")});
    size_t bytes = n * sizeof(int);
    require_memory(4 * bytes, 3 * bytes + bench_memory(3 * bytes));
    bench.title = std::to_string(n) + " ints";
    bench.size = n;
    bench.work = 3.0 * bytes; // two vectors are read, one is written
    bench.reads = true;
    bench.footprint = 3 * bytes;
}

// Random vectors on the device, and their sums on the host. The random numbers are halved, so that no sum
// overflows.
static void make_vectors(void) {
    int *a = big_random_ints(n), *b = big_random_ints(n);
    bench_malloc_host(&c, n * sizeof(int));
    expected = host_array<int>(n);
    in_threads(n, [=](size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++) {
            a[i] /= 2;
            b[i] /= 2;
            expected[i] = a[i] + b[i];
        }
    });
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(int), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(int), cudaMemcpyHostToDevice));
    free(a);
    free(b);
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, n * sizeof(int)));
}

static bool check(const char *name, BenchError *) {
    HANDLE_ERROR(cudaMemcpy(c, dev_c, n * sizeof(int), cudaMemcpyDeviceToHost));
    return check_ints(name, c, expected, n);
}
