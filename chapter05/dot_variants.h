// SPDX-License-Identifier: MIT
// Variants of the dot product for the options of dot: other launches, one thread that adds, all threads that
// store, and a trace of the steps.
#ifndef CHAPTER05_DOT_VARIANTS_H
#define CHAPTER05_DOT_VARIANTS_H

#include <chrono>
#include "../common/book.h"
#include "../common/proofs/dot.h" // expected_dot(), check_dot()
#include "../common/timing.h"     // median_ms()

// ---------------------------------------------------------------------------------------- proof

const int MAX_THREADS = 1024, MAX_TRACED = 256;

static int blocks = 0, threads = 0, one_thread = 0, all_write = 0; // --blocks, --threads, --sum, --writers

// The kernel of dot.cu with variants. The number of threads is any power of two. With `one_thread`, one
// thread adds all values of the block in a loop. With `all_write`, every thread stores the sum of the block.
// If `trace` is not NULL, the partial sum of each thread is stored there, and then the values after each step
// of the tree.
static __global__ void vary(const float *a, const float *b, float *c, size_t n, bool one_thread,
                            bool all_write, float *trace) {
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
static bool measure(const float *dev_a, const float *dev_b, size_t n, int blocks) {
    float *partial_c = host_array<float>(blocks), *dev_c, c = 0;
    HANDLE_ERROR(cudaMalloc(&dev_c, blocks * sizeof(float)));
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, blocks * sizeof(float))); // NaN
    float ms =
        median_ms([&] { vary<<<blocks, threads>>>(dev_a, dev_b, dev_c, n, one_thread, all_write, nullptr); });
    HANDLE_ERROR(cudaMemcpy(partial_c, dev_c, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < blocks; i++)
        c += partial_c[i];
    std::chrono::duration<double, std::milli> host = std::chrono::steady_clock::now() - start;
    printf("%8d %8.4f ms %9.3f GB/s %12.4f ms   %.6g\n", blocks, ms, 2.0 * n * sizeof(float) / ms / 1e6,
           host.count(), c);
    bool ok = check_dot("dot product", c, n, tree_additions(n, blocks, threads) + one_thread * threads);
    HANDLE_ERROR(cudaFree(dev_c));
    free(partial_c);
    return ok;
}

// Prints what each thread and each step of a small dot product computes.
static void show_steps(const float *dev_a, const float *dev_b, size_t n) {
    int all = blocks * threads, steps = one_thread ? 0 : (int)log2(threads);
    float *trace = host_array<float>((steps + 1) * all), *dev_trace, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_c, blocks * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_trace, (steps + 1) * all * sizeof(float)));
    vary<<<blocks, threads>>>(dev_a, dev_b, dev_c, n, one_thread, all_write, dev_trace);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(trace, dev_trace, (steps + 1) * all * sizeof(float), cudaMemcpyDeviceToHost));
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
    HANDLE_ERROR(cudaFree(dev_trace));
    HANDLE_ERROR(cudaFree(dev_c));
    free(trace);
}

// Returns the exit status.
static int run_variants(size_t n, bool sweep, bool trace) {
    float *a = host_array<float>(n), *b = host_array<float>(n), *dev_a, *dev_b;
    for (size_t i = 0; i < n; i++)
        b[i] = 2 * (a[i] = i);
    float *c = host_array<float>(blocks), *dev_c;
    auto start = std::chrono::steady_clock::now();
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_c, blocks * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));
    vary<<<blocks, threads>>>(dev_a, dev_b, dev_c, n, one_thread, all_write, nullptr);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(c, dev_c, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    printf("%zu bytes came back\n", blocks * sizeof(float));
    printf("Time to generate:  %.3f ms, with allocation and copies\n", elapsed.count());
    if (trace)
        show_steps(dev_a, dev_b, n);
    printf("A block of %d threads adds in %d steps and stores its sum %d times.\n", threads,
           one_thread ? threads - 1 : (int)log2(threads), all_write ? threads : 1);
    printf("  blocks      kernel                  host adds   dot product, %.6g expected\n", expected_dot(n));
    bool ok = true;
    int most = min_of((n + threads - 1) / threads, 1 << 24);
    for (int count = sweep ? 1 : blocks; count != 0;
         count = sweep && count < most ? min_of(2l * count, most) : 0)
        ok = measure(dev_a, dev_b, n, count) && ok;
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
