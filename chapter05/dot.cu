// SPDX-License-Identifier: MIT
/*
 * dot: dot product with a reduction in shared memory
 *
 * Teaches: The threads of a block share memory, and __syncthreads() is the barrier that makes it safe to
 *          read what another thread wrote. Each block reduces its products to one partial sum; the host
 *          adds the partial sums. Blocks have no barrier in common, so none knows when all others are
 *          done; the host does, when the copy returns. And 32 numbers keep a device nearly idle
 *          (docs/book-vs-today.md has the times).
 * Terms:   shared memory, barrier, tree reduction, partial sum, grid-stride loop, closed form
 * Book:    5.3.1
 * Build:   nvcc -o dot chapter05/dot.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/dot --size 1M --sweep
 * Differs: the program compares the result with the closed form, within the error that rounding can cause.
 * Check:   --size 1001
 */
#include "../common/book.h"
#include "../common/checks/dot.h" // expected_dot(), check_dot()
#include "../common/checks/runs.h"
#include "../common/timing.h" // median_ms()
#include <chrono>
#include <numeric>

#define imin(a, b)     ((a) < (b) ? (a) : (b))
#define sum_squares(x) ((x) * ((x) + 1) * (2 * (x) + 1) / 6) // 0² + 1² + ... + x²

#define N (33 * 1024)
const int threadsPerBlock = 256;

static size_t n = N; // --size
static int blocksPerGrid = imin(32, (N + threadsPerBlock - 1) / threadsPerBlock);
static bool check(float c, float *a, float *dev_a, float *dev_b, float *dev_partial_c);

__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];

    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    unsigned cacheIndex = threadIdx.x;

    // Grid-stride loop: any grid covers any n.
    float temp = 0;
    for (; tid < n; tid += (size_t)blockDim.x * gridDim.x)
        temp += a[tid] * b[tid];
    cache[cacheIndex] = temp;
    __syncthreads();

    // Tree reduction. blockDim.x must be a power of two. Every thread reaches the barrier, including
    // those that no longer add: a barrier in divergent code is undefined.
    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float *a = host_array<float>(n), *b = host_array<float>(n);
    float *partial_c = host_array<float>(blocksPerGrid);

    float *dev_a, *dev_b, *dev_partial_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));

    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));

    dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    float c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    printf("Does GPU value %.6g = %.6g?\n", c, 2 * sum_squares(n - 1.0));
    bool ok = check(c, a, dev_a, dev_b, dev_partial_c);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a);
    free(b);
    free(partial_c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

static bool check(float c, float *a, float *dev_a, float *dev_b, float *dev_partial_c) {
    bool ok = check_dot("dot product", c, n, tree_additions(n, blocksPerGrid, threadsPerBlock));

    // A loss of the first elements changes the sum less than rounding does. So the kernel runs once more, on
    // vectors of ones: the partial sum of each block is the number of its elements. Up to 2^24 it is exact.
    std::fill(a, a + n, 1.0f);
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemset(dev_partial_c, 0xff, blocksPerGrid * sizeof(float))); // NaN
    dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
    HANDLE_LAUNCH();
    HostArray<float> counts(dev_partial_c, blocksPerGrid);
    size_t stride = (size_t)blocksPerGrid * threadsPerBlock, last = n % stride; // elements of the last round
    double tol = n / blocksPerGrid >> 24 ? tree_additions(n, blocksPerGrid, threadsPerBlock) * 0x1p-24 : 0;
    return check_floats("elements of a block", counts, blocksPerGrid, tol,
                        [=](size_t block) {
                            size_t before = block * threadsPerBlock; // elements of the earlier blocks
                            return n / stride * threadsPerBlock +
                                   (last > before ? min_of(last - before, threadsPerBlock) : 0);
                        }) &&
           ok;
}

const int MAX_THREADS = 1024, MAX_TRACED = 256;

static int blocks = 0, threads = 0, one_thread = 0, all_write = 0; // --blocks, --threads, --sum, --writers

// The kernel of the lesson with variants. The number of threads is any power of two. With `one_thread`, one
// thread adds all values of the block in a loop. With `all_write`, every thread stores the sum of the block.
// If `trace` is not NULL, the partial sum of each thread is stored there, and then the values after each step
// of the tree.
__global__ void vary(const float *a, const float *b, float *c, size_t n, bool one_thread, bool all_write,
                     float *trace) {
    __shared__ float cache[MAX_THREADS];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x, stride = (size_t)blockDim.x * gridDim.x;
    float temp = 0;
    for (size_t i = tid; i < n; i += stride)
        temp += a[i] * b[i];
    cache[threadIdx.x] = temp;
    if (trace)
        trace[tid] = temp;
    __syncthreads();

    if (one_thread && threadIdx.x == 0)
        for (unsigned i = 1; i < blockDim.x; i++)
            cache[0] += cache[i];
    for (unsigned i = one_thread ? 0 : blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        if (trace)
            (trace += stride)[tid] = cache[threadIdx.x];
        __syncthreads();
    }
    __syncthreads();
    if (all_write || threadIdx.x == 0)
        c[blockIdx.x] = cache[0];
}

// Times the kernel and the additions of the host.
static bool measure(const float *dev_a, const float *dev_b, int blocks) {
    DeviceArray<float> dev_c(blocks, 0xff); // NaN
    float ms =
        median_ms([&] { vary<<<blocks, threads>>>(dev_a, dev_b, dev_c, n, one_thread, all_write, nullptr); });
    HostArray<float> partial_c(dev_c, blocks);
    float c;
    double host = host_ms([&] { c = std::accumulate(+partial_c, partial_c + blocks, 0.0f); });
    printf("%8d %8.4f ms %9.3f GB/s %12.4f ms   %.6g\n", blocks, ms, 2.0 * n * sizeof(float) / ms / 1e6, host,
           c);
    return check_dot("dot product", c, n, tree_additions(n, blocks, threads) + one_thread * threads);
}

// Prints what each thread and each step of a small dot product computes.
static void show_steps(const float *dev_a, const float *dev_b) {
    int all = blocks * threads, steps = one_thread ? 0 : (int)log2(threads);
    DeviceArray<float> dev_c(blocks), dev_trace((steps + 1) * all);
    vary<<<blocks, threads>>>(dev_a, dev_b, dev_c, n, one_thread, all_write, dev_trace);
    HANDLE_LAUNCH();
    HostArray<float> trace(dev_trace, (steps + 1) * all);
    for (int t = 0; t < all; t++) {
        printf("thread %d: elements", t);
        for (size_t i = t; i < n; i += all)
            printf(" %zu", i);
        printf(", sum %g\n", trace[t]);
    }
    for (int step = 1; step <= steps; step++)
        for (int block = 0; block < blocks; block++) {
            printf("step %d, block %d:", step, block);
            for (int t = 0; t < threads >> step; t++)
                printf(" %g", trace[step * all + block * threads + t]);
            printf("\n");
        }
}

// Returns the exit status.
static int run_variants(bool sweep, bool trace) {
    HostArray<float> a(n), b(n), c(blocks);
    fill_dot(a, b, n);
    auto start = std::chrono::steady_clock::now();
    DeviceArray<float> dev_a(a, n), dev_b(b, n), dev_c(blocks);
    vary<<<blocks, threads>>>(dev_a, dev_b, dev_c, n, one_thread, all_write, nullptr);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(c, dev_c, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    printf("%zu bytes came back\n", blocks * sizeof(float));
    printf("Time to generate:  %.3f ms, with allocation and copies\n", elapsed.count());
    if (trace)
        show_steps(dev_a, dev_b);
    printf("A block of %d threads adds in %d steps and stores its sum %d times.\n", threads,
           one_thread ? threads - 1 : (int)log2(threads), all_write ? threads : 1);
    printf("  blocks      kernel                  host adds   dot product, %.6g expected\n", expected_dot(n));
    bool ok = true;
    int most = min_of((n + threads - 1) / threads, 1 << 24);
    for (int count = sweep ? 1 : blocks; count != 0;
         count = sweep && count < most ? min_of(2l * count, most) : 0)
        ok = measure(dev_a, dev_b, count) && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int compare_with_cpu(void) {
    HostArray<float> a(n), b(n);
    fill_dot(a, b, n);
    double sum;
    auto device = [&] {
        DeviceArray<float> dev_a(a, n), dev_b(b, n), dev_partial_c(blocksPerGrid);
        dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
        HANDLE_LAUNCH();
        HostArray<float> partial_c(dev_partial_c, blocksPerGrid);
        sum = std::accumulate(+partial_c, partial_c + blocksPerGrid, 0.0);
    };
    auto host = [&] { sum = std::inner_product(+a, a + n, +b, 0.0); };
    return compare_runs("a loop on one core, which adds in double", device, host, [&] {
        float c = sum;
        sum = NAN;
        return check_dot("dot product", c, n, tree_additions(n, blocksPerGrid, threadsPerBlock));
    });
}

// With an option for a variant the program ends in this function, and main, which has the book's version,
// does not run.
void settings(int argc, char **argv) {
    bool sweep = false, additions = false, with_cpu = false;
    parse_options(argc, argv, "Dot product of two vectors on the device.", 0,
                  {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"),
                   OPTION_INT("blocks", &blocks, 1, 1 << 24, "blocks, instead of at most 32"),
                   OPTION_INT("threads", &threads, 1, MAX_THREADS,
                              "threads of a block, instead of 256: a power of two"),
                   OPTION_WORD("sum", &one_thread, "tree|one-thread", "how a block adds"),
                   OPTION_WORD("writers", &all_write, "one|all", "which threads store the sum of a block"),
                   OPTION_FLAG("sweep", &sweep, "times 1, 2, 4, 8, ... blocks"),
                   OPTION_FLAG("additions", &additions, "prints what each thread of a small launch adds"),
                   OPTION_FLAG("cpu", &with_cpu, WITH_CPU)});
    bool variant = blocks > 0 || threads > 0 || one_thread || all_write || sweep || additions;
    blocksPerGrid = imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    threads = threads > 0 ? threads : threadsPerBlock;
    blocks = blocks > 0 ? blocks : min_of(32, (n + threads - 1) / threads);
    if (threads & (threads - 1))
        quit(EXIT_USAGE, "--threads %d: must be a power of two, because a block adds in halves", threads);
    if (additions && (n > MAX_TRACED || blocks * (long)threads > MAX_TRACED))
        quit(EXIT_USAGE, "--additions is for up to %d elements and threads", MAX_TRACED);
    if (with_cpu && variant)
        quit(EXIT_USAGE, "--cpu is for the book's launch: with --size only");
    options.uses |= variant || with_cpu ? TIMES : 0;
    select_device();
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
    if (variant)
        exit(run_variants(sweep, additions));
    if (with_cpu)
        exit(compare_with_cpu());
}

// Task: dot(): The grid has any number of blocks of threadsPerBlock threads, a power of two. Each thread adds
// the products a[i] * b[i] of a grid-stride loop over i < n and stores this partial sum in shared memory.
// Then the block adds these partial sums with a tree reduction in shared memory: in each step the threads
// t < half are active, and thread t adds element t + half to element t. In the first step, half is
// threadsPerBlock / 2; it is halved in each further step, until one sum is left. A barrier that all threads
// of the block reach separates each write to shared memory from the reads by other threads. Thread 0 stores
// the sum of the block in c[blockIdx.x].
