// SPDX-License-Identifier: MIT
/*
 * basic_double_stream: two streams, depth-first issue
 *
 * Teaches: Work in different streams may overlap: a copy in one stream runs while a kernel, or a copy in
 *          the other direction, runs in the other. Depth-first issue puts all steps of a chunk into one
 *          stream, then those of the next chunk into the other. On a device with one copy engine, the
 *          second stream's copy to the device waits behind the first stream's copy back: no overlap.
 * Terms:   stream, overlap, depth-first issue, copy engine, asynchronous copy, page-locked memory,
 *          pipeline, concurrency, task parallelism
 * Book:    10.5; C 2 (the stream of a launch)
 * Build:   nvcc -o basic_double_stream chapter10/basic_double_stream.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter10/basic_double_stream --output timeline.svg
 * Differs: the input is masked, so that no sum overflows; the result is verified. Later runs give a timeline.
 *          Today's devices have a copy engine for each direction, so the order of the calls matters little
 *          (docs/book-vs-today.md). --tasks runs two different kernels at once (task parallelism).
 * Check:   --size 50030 --chunk 10007 | --size 3001 --chunk 1000 | --tasks
 */
#include "../common/book.h"
#include "streams.h" // fill_random(), check()

#define N              (1024 * 1024)
#define FULL_DATA_SIZE (N * 20)

size_t size = FULL_DATA_SIZE; // --size, elements in all
size_t chunk = N;             // --chunk, elements that are copied and computed at a time
static bool tasks;            // --tasks
static int run_tasks(void);

// The average of two averages: of three elements of a and of three of b. As in the book, the second and
// the third are among the first 256 elements of the chunk.
__global__ void kernel(const int *a, const int *b, int *c, size_t n) {
    size_t idx = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (idx < n) {
        size_t first = n < 256 ? n : 256;
        size_t idx1 = (idx + 1) % first;
        size_t idx2 = (idx + 2) % first;
        float as = (a[idx] + a[idx1] + a[idx2]) / 3.0f;
        float bs = (b[idx] + b[idx1] + b[idx2]) / 3.0f;
        c[idx] = (as + bs) / 2;
    }
}

// Two tasks that have nothing in common: the first kernel counts the primes below `limit`, the second one
// computes pi, the integral of 4 / (1 + x * x) from 0 to 1.
__global__ void count_primes(int limit, int *primes) {
    for (int i = 2 + threadIdx.x + blockIdx.x * blockDim.x; i < limit; i += blockDim.x * gridDim.x) {
        int divisor = 2;
        while (divisor * divisor <= i && i % divisor != 0)
            divisor++;
        if (divisor * divisor > i)
            atomicAdd(primes, 1);
    }
}

__global__ void integrate(int points, double *pi) {
    double sum = 0;
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < points; i += blockDim.x * gridDim.x) {
        double x = (i + 0.5) / points;
        sum += 4 / (1 + x * x);
    }
    atomicAdd(pi, sum / points);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (tasks)
        return run_tasks();
    cudaDeviceProp prop;
    int whichDevice;
    HANDLE_ERROR(cudaGetDevice(&whichDevice));
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, whichDevice));
    printf("Copy engines: %d\n", prop.asyncEngineCount);
    if (prop.asyncEngineCount == 0) // the page asks for deviceOverlap, which CUDA 13 removed
        printf("The device does not overlap copies with kernels, so streams gain nothing.\n");

    cudaEvent_t start, stop;
    float elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    cudaStream_t stream0, stream1;
    HANDLE_ERROR(cudaStreamCreate(&stream0));
    HANDLE_ERROR(cudaStreamCreate(&stream1));

    // Each stream has device memory for a chunk of its own.
    int *host_a, *host_b, *host_c;
    int *dev_a0, *dev_b0, *dev_c0; // of stream0
    int *dev_a1, *dev_b1, *dev_c1; // of stream1
    HANDLE_ERROR(cudaMalloc(&dev_a0, chunk * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b0, chunk * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_c0, chunk * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_a1, chunk * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_b1, chunk * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_c1, chunk * sizeof(int)));

    // Page-locked memory: from pageable memory, cudaMemcpyAsync would not be asynchronous.
    HANDLE_ERROR(cudaHostAlloc(&host_a, size * sizeof(int), cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc(&host_b, size * sizeof(int), cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc(&host_c, size * sizeof(int), cudaHostAllocDefault));
    fill_random(host_a);
    fill_random(host_b);

    // The first launch loads the kernel, so it is not timed. It computes no element.
    kernel<<<1, 256, 0, stream0>>>(dev_a0, dev_b0, dev_c0, 0);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaEventRecord(start, 0));
    for (size_t i = 0; i < size; i += chunk * 2) {
        // Elements of the two chunks. At the end a chunk may be shorter, and the second one empty: its copies
        // then have 0 bytes, and its grid has one block, because a grid without blocks is an error.
        size_t count0 = min_of(chunk, size - i);
        size_t count1 = min_of(chunk, size - i - count0);

        // Depth first: all steps of a chunk, then those of the next chunk in the other stream.
        HANDLE_ERROR(
            cudaMemcpyAsync(dev_a0, host_a + i, count0 * sizeof(int), cudaMemcpyHostToDevice, stream0));
        HANDLE_ERROR(
            cudaMemcpyAsync(dev_b0, host_b + i, count0 * sizeof(int), cudaMemcpyHostToDevice, stream0));
        kernel<<<count0 / 256 + 1, 256, 0, stream0>>>(dev_a0, dev_b0, dev_c0, count0);
        HANDLE_LAUNCH();
        HANDLE_ERROR(
            cudaMemcpyAsync(host_c + i, dev_c0, count0 * sizeof(int), cudaMemcpyDeviceToHost, stream0));

        HANDLE_ERROR(cudaMemcpyAsync(dev_a1, host_a + i + chunk, count1 * sizeof(int), cudaMemcpyHostToDevice,
                                     stream1));
        HANDLE_ERROR(cudaMemcpyAsync(dev_b1, host_b + i + chunk, count1 * sizeof(int), cudaMemcpyHostToDevice,
                                     stream1));
        kernel<<<count1 / 256 + 1, 256, 0, stream1>>>(dev_a1, dev_b1, dev_c1, count1);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpyAsync(host_c + i + chunk, dev_c1, count1 * sizeof(int), cudaMemcpyDeviceToHost,
                                     stream1));
    }

    // Both streams have to finish.
    HANDLE_ERROR(cudaStreamSynchronize(stream0));
    HANDLE_ERROR(cudaStreamSynchronize(stream1));
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time taken:  %3.1f ms\n", elapsedTime);
    bool ok = check(kernel, 2, DEPTH_FIRST, host_a, host_b, host_c);

    HANDLE_ERROR(cudaFreeHost(host_a));
    HANDLE_ERROR(cudaFreeHost(host_b));
    HANDLE_ERROR(cudaFreeHost(host_c));
    HANDLE_ERROR(cudaFree(dev_a0));
    HANDLE_ERROR(cudaFree(dev_b0));
    HANDLE_ERROR(cudaFree(dev_c0));
    HANDLE_ERROR(cudaFree(dev_a1));
    HANDLE_ERROR(cudaFree(dev_b1));
    HANDLE_ERROR(cudaFree(dev_c1));
    HANDLE_ERROR(cudaStreamDestroy(stream0));
    HANDLE_ERROR(cudaStreamDestroy(stream1));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    stream_settings(
        argc, argv, "Copies and computes in chunks, depth first in two streams.", 2,
        OPTION_FLAG("tasks", &tasks, "time two other kernels instead, alone and at once, at fixed sizes"));
}

// Times each task alone and both at once, in two streams. A task has blocks for half of the multiprocessors,
// so that the other half is free for the other task. Returns the exit status.
static int run_tasks(void) {
    DeviceArray<int> dev_primes(1);
    DeviceArray<double> dev_pi(1);
    cudaStream_t stream0, stream1;
    HANDLE_ERROR(cudaStreamCreate(&stream0));
    HANDLE_ERROR(cudaStreamCreate(&stream1));
    int blocks = max_of(device_attribute(cudaDevAttrMultiProcessorCount) / 2, 1);
    auto first = [&] { count_primes<<<blocks, 256, 0, stream0>>>(1 << 17, dev_primes); };
    auto second = [&] { integrate<<<blocks, 256, 0, stream1>>>(1 << 24, dev_pi); };
    auto reset = [&] {
        HANDLE_ERROR(cudaMemset(dev_primes, 0, sizeof(int)));
        HANDLE_ERROR(cudaMemset(dev_pi, 0, sizeof(double)));
    };
    float ms0 = median_ms(first, reset), ms1 = median_ms(second, reset);
    float both = median_ms([&] { first(), second(); }, reset);
    HostArray<int> primes(dev_primes, 1);
    HostArray<double> pi(dev_pi, 1);
    printf("%d primes: %.3f ms\npi = %.12f: %.3f ms\n", primes[0], ms0, pi[0], ms1);
    printf("Both at once: %.3f ms, %.2f times as fast as one after the other\n", both, (ms0 + ms1) / both);
    HANDLE_ERROR(cudaStreamDestroy(stream0));
    HANDLE_ERROR(cudaStreamDestroy(stream1));
    // The number of primes below 2^17 is known. The rule of midpoints is exact to 10^-16 here.
    bool ok = check_value("primes", primes[0], 12251, 0) && check_value("pi", pi[0], M_PI, 1e-12);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Task: main(): Write the calls for two streams with depth-first issue. Fill in whichDevice and prop, and
// create the events and both streams. Allocate device memory for one chunk for each pointer dev_a0 to dev_c1,
// and page-locked host memory for `size` ints for each of host_a, host_b and host_c. The loop over i takes
// two chunks at a time: count0 elements from element i on, for stream0, and count1 elements from element i +
// chunk on, for stream1; count1 may be 0, and a grid needs a block. Enqueue for the first chunk, then for the
// second one: the asynchronous copies from host_a and host_b to the device, a launch of kernel with 256
// threads per block, and the asynchronous copy of the result to host_c. Record start before the first chunk.
// After the last one wait for both streams, record stop, wait for it, and compute elapsedTime. At the end
// free all memory and destroy the streams and the events.
