// SPDX-License-Identifier: MIT
/*
 * time_zero2: a dot product of vectors that stay on the host
 *
 * Teaches: Mapped host memory has an address on the device too: a kernel reads it through the bus,
 *          and no copy is made. For what is read or written once that saves a pass through device
 *          memory; what is used again is better copied. Write-combined memory keeps the host's
 *          caches out of it.
 * Book:    11.2
 * Run:     ./bin/chapter11/time_zero2
 * Differs: the result is checked in double. The device flag for mapping is not set: where host and
 *          device share addresses, mapping is always on. The kernel is timed alone as well. On the
 *          CPU back end there is no bus, and both are the same memory.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/book.h"
#include "../common/memory.h"

#define imin(a, b) ((a) < (b) ? (a) : (b))

#define N    (33 * 1024 * 1024)
#define RUNS 11

const unsigned threadsPerBlock = 256;

__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
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

// 0² + 1² + … + x²
static double sum_squares(double x) {
    return x * (x + 1) * (2 * x + 1) / 6;
}

struct Times {
    float all, kernel; // ms
};

static void launch(const float *a, const float *b, float *partial_c, size_t n, unsigned blocks) {
    dot<<<blocks, threadsPerBlock>>>(a, b, partial_c, n);
    HANDLE_LAUNCH();
}

// The kernel alone, which by now is warm: the median of RUNS runs, or of those that half a second
// has room for.
static float time_kernel(const float *a, const float *b, float *partial_c, size_t n,
                         unsigned blocks, cudaEvent_t start, cudaEvent_t stop) {
    float ms[RUNS], total = 0;
    int runs = 0;
    while (runs < RUNS && total < 500) {
        HANDLE_ERROR(cudaEventRecord(start, 0));
        launch(a, b, partial_c, n, blocks);
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&ms[runs], start, stop));
        total += ms[runs++];
    }
    std::nth_element(ms, ms + runs / 2, ms + runs);
    return ms[runs / 2];
}

// Allocated with malloc(): up with both vectors, the kernel, down with what the blocks found.
static float malloc_test(size_t n, unsigned blocks, Times &times) {
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    size_t bytes = n * sizeof(float);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *dev_a, *dev_b;
    float *partial_c = (float *)malloc(blocks * sizeof(float)), *dev_partial_c, c = 0;
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(partial_c);
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_partial_c, blocks * sizeof(float)));
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = 2 * a[i];
    }

    HANDLE_ERROR(cudaEventRecord(start, 0));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));
    launch(dev_a, dev_b, dev_partial_c, n, blocks);
    HANDLE_ERROR(
        cudaMemcpy(partial_c, dev_partial_c, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&times.all, start, stop));
    for (unsigned i = 0; i < blocks; i++)
        c += partial_c[i];
    times.kernel = time_kernel(dev_a, dev_b, dev_partial_c, n, blocks, start, stop);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(a);
    free(b);
    free(partial_c);
    return c;
}

// Mapped: nothing goes up or down, the kernel reads and writes the memory of the host.
static float cuda_host_alloc_test(size_t n, unsigned blocks, Times &times) {
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    size_t bytes = n * sizeof(float);
    const unsigned flags = cudaHostAllocMapped | cudaHostAllocWriteCombined;
    float *a, *b, *partial_c, *dev_a, *dev_b, *dev_partial_c, c = 0;
    HANDLE_ERROR(cudaHostAlloc((void **)&a, bytes, flags));
    HANDLE_ERROR(cudaHostAlloc((void **)&b, bytes, flags));
    HANDLE_ERROR(cudaHostAlloc((void **)&partial_c, blocks * sizeof(float), cudaHostAllocMapped));
    HANDLE_ERROR(cudaHostGetDevicePointer((void **)&dev_a, a, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer((void **)&dev_b, b, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer((void **)&dev_partial_c, partial_c, 0));
    for (size_t i = 0; i < n; i++) { // writes only: reading from a would pass by the caches
        a[i] = i;
        b[i] = 2 * (float)i;
    }

    HANDLE_ERROR(cudaEventRecord(start, 0));
    launch(dev_a, dev_b, dev_partial_c, n, blocks);
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop)); // what the kernel wrote is on the host from now on
    HANDLE_ERROR(cudaEventElapsedTime(&times.all, start, stop));
    for (unsigned i = 0; i < blocks; i++)
        c += partial_c[i];
    times.kernel = time_kernel(dev_a, dev_b, dev_partial_c, n, blocks, start, stop);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFreeHost(b));
    HANDLE_ERROR(cudaFreeHost(partial_c));
    return c;
}

static bool show(const char *name, float (*test)(size_t, unsigned, Times &), size_t n) {
    unsigned blocks = imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    Times times;
    float c = test(n, blocks, times);
    inject_error(&c, sizeof(c));
    double bytes = 2.0 * n * sizeof(float); // both vectors are read
    printf("Value calculated:  %f\n", c);
    printf("Time using %s:  %3.1f ms, %.3f GB/s; kernel %.3f ms, %.3f GB/s\n", name, times.all,
           bytes / times.all / 1e6, times.kernel, bytes / times.kernel / 1e6);
    // Each rounding costs 2^-24 of the sum at most: of inputs, product, a thread's sum, the
    // halvings and the blocks.
    double roundings = 3 + ceil((double)n / (blocks * threadsPerBlock)) + 8 + blocks;
    return check_value(name, c, 2 * sum_squares(n - 1.0), roundings * 0x1p-24);
}

int main(int argc, char **argv) {
    size_t n = N;
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
                          OPTION_END};
    parse_options(argc, argv, "Dot product of vectors in memory of the host.", TIMES, own);
    select_device();
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    if (!prop.canMapHostMemory)
        quit(EXIT_WAIVED, "needs a device that can map host memory");
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));

    bool ok = show("cudaMalloc", malloc_test, n);
    ok = show("cudaHostAlloc", cuda_host_alloc_test, n) && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
