// SPDX-License-Identifier: MIT
/*
 * dot: dot product with a reduction in shared memory
 *
 * Teaches: The threads of a block share memory, and __syncthreads() is the barrier that makes it safe to
 *          read what another thread wrote. Each block reduces its products to one partial sum. The host adds
 *          the partial sums: the blocks of a launch have no barrier in common (in dot_ladder the last block
 *          adds them), and 32 numbers would keep a device nearly idle (docs/book-vs-today.md has the times).
 * Terms:   shared memory, barrier, tree reduction, partial sum, grid-stride loop, closed form
 * Book:    5.3.1; R 7.3 (dot product, Fig. 7.8); C 3 (Dot-SM); C 3 (Dot-SM) with
 *          other numbers of blocks: --sweep
 * Build:   nvcc -o dot chapter05/dot.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/dot --size 1M --sweep
 * Differs: the program compares the result with the closed form, within the error that rounding can cause.
 * Check:   --size 300
 */
#include "../common/book.h"

#define imin(a, b)     ((a) < (b) ? (a) : (b))
#define sum_squares(x) ((x) * ((x) + 1) * (2 * (x) + 1) / 6) // 0² + 1² + ... + x²

#define N (33 * 1024)
const int threadsPerBlock = 256;

static size_t n = N; // --size
static bool sweep;   // --sweep
static int time_launches(void);
static bool check(float c, int blocks);

__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    unsigned cacheIndex = threadIdx.x;

    // Grid-stride loop: any grid covers any n.
    float temp = 0;
    while (tid < n) {
        temp += a[tid] * b[tid];
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();

    // Tree reduction. blockDim.x must be a power of two. Every thread reaches the barrier, including
    // those that no longer add: a barrier in divergent code is undefined.
    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }
    // Only one thread stores the sum: a store by all would write the same number 256 times.
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (sweep)
        return time_launches();
    int blocksPerGrid = imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);

    float *a = (float *)malloc(n * sizeof(float)), *b = (float *)malloc(n * sizeof(float));
    float *partial_c = (float *)malloc(blocksPerGrid * sizeof(float));
    HANDLE_NULL(a && b && partial_c);

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
    bool ok = check(c, blocksPerGrid);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a);
    free(b);
    free(partial_c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/dot.h" // fill_dot(), check_dot()
#include "../common/timing.h"     // median_ms(), host_ms()

void settings(int argc, char **argv) {
    parse_options(argc, argv, "Dot product of two vectors on the device.", 0,
                  {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"),
                   OPTION_FLAG("sweep", &sweep, "times 1, 2, 4, 8, ... blocks")});
    options.uses |= sweep ? TIMES : 0;
    select_device();
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
}

// The first products are smaller than the tolerance, and a[0] * b[0] is 0, so a sum without them would pass.
// In a second dot product, of ones, by one block, each product adds 1.
static bool check(float c, int blocks) {
    size_t count = min_of(n, threadsPerBlock);
    DeviceArray<float> ones(HostArray<float>(count, 1), count), dev_c(1, 0xff); // NaN
    dot<<<1, threadsPerBlock>>>(ones, ones, dev_c, count);
    HANDLE_LAUNCH();
    HostArray<float> sum(dev_c, 1);
    bool ok = check_value("dot product of ones", sum[0], count, 0);
    return check_dot("dot product", c, n, tree_additions(n, blocks, threadsPerBlock)) && ok;
}

// Times the kernel and the additions of the host. Returns the exit status.
static int time_launches(void) {
    HostArray<float> a(n), b(n);
    fill_dot(a, b, n);
    DeviceArray<float> dev_a(a, n), dev_b(b, n);
    bool ok = true;
    int most = (n + threadsPerBlock - 1) / threadsPerBlock;
    printf("  blocks      kernel                  host adds   dot product, %.6g expected\n", expected_dot(n));
    for (int count = 1; count < 2 * most; count *= 2) {
        int blocks = min_of(count, most);
        DeviceArray<float> dev_c(blocks, 0xff); // NaN
        float c = 0, ms = median_ms([&] { dot<<<blocks, threadsPerBlock>>>(dev_a, dev_b, dev_c, n); });
        HostArray<float> partial_c(dev_c, blocks);
        double host = host_ms([&] {
            for (int i = 0; i < blocks; i++)
                c += partial_c[i];
        });
        printf("%8d %8.4f ms %9.3f GB/s %12.4f ms   %.6g\n", blocks, ms, 2.0 * n * sizeof(float) / ms / 1e6,
               host, c);
        ok = check(c, blocks) && ok;
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Task: dot(): The grid has any number of blocks of threadsPerBlock threads, a power of two. Each thread adds
// the products a[i] * b[i] of a grid-stride loop over i < n and stores this partial sum in shared memory.
// Then the block adds these partial sums with a tree reduction in shared memory: in each step the threads
// t < half are active, and thread t adds element t + half to element t. In the first step, half is
// threadsPerBlock / 2; it is halved in each further step, until one sum is left. A barrier that all threads
// of the block reach separates each write to shared memory from the reads by other threads. Thread 0 stores
// the sum of the block in c[blockIdx.x].
