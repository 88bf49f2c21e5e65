// SPDX-License-Identifier: MIT
/*
 * basic_double_stream_correct: two streams, breadth-first issue
 *
 * Teaches: Copies of all streams share the queues of the copy engines, in the order of the calls.
 *          Breadth-first issue puts each step into both streams before the next step: first the copies
 *          to the device, then the kernels, then the copies back. So within such a round no copy to the
 *          device waits behind a copy back that itself waits for a kernel, and copies and kernels overlap
 *          even with one copy engine.
 * Terms:   breadth-first issue, stream, overlap, copy engine, asynchronous copy, page-locked memory, pipeline
 * Book:    10.7
 * Build:   nvcc -o basic_double_stream_correct chapter10/basic_double_stream_correct.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter10/basic_double_stream_correct --output timeline.svg
 * Differs: the input is masked, so that no sum overflows; the result is verified. Later runs give a timeline.
 *          Today's devices have a copy engine for each direction, so the order of the calls matters little
 *          (docs/book-vs-today.md). --streams compares N streams with one, for kernels of several lengths.
 * Check:   --size 50030 --chunk 10007 | --size 3001 --chunk 1000 | --size 9000 --chunk 1000 --streams 3
 */
#include "../common/book.h"
#include "streams.h" // fill_random(), check()

#define N              (1024 * 1024)
#define FULL_DATA_SIZE (N * 20)

size_t size = FULL_DATA_SIZE; // --size, elements in all
size_t chunk = N;             // --chunk, elements that are copied and computed at a time
static int streams;           // --streams

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

int main(int argc, char **argv) {
    settings(argc, argv);
    if (streams)
        return compare_streams(kernel, streams);
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

        // Breadth first: each step for both streams, then the next step.
        HANDLE_ERROR(
            cudaMemcpyAsync(dev_a0, host_a + i, count0 * sizeof(int), cudaMemcpyHostToDevice, stream0));
        HANDLE_ERROR(cudaMemcpyAsync(dev_a1, host_a + i + chunk, count1 * sizeof(int), cudaMemcpyHostToDevice,
                                     stream1));
        HANDLE_ERROR(
            cudaMemcpyAsync(dev_b0, host_b + i, count0 * sizeof(int), cudaMemcpyHostToDevice, stream0));
        HANDLE_ERROR(cudaMemcpyAsync(dev_b1, host_b + i + chunk, count1 * sizeof(int), cudaMemcpyHostToDevice,
                                     stream1));

        kernel<<<count0 / 256 + 1, 256, 0, stream0>>>(dev_a0, dev_b0, dev_c0, count0);
        HANDLE_LAUNCH();
        kernel<<<count1 / 256 + 1, 256, 0, stream1>>>(dev_a1, dev_b1, dev_c1, count1);
        HANDLE_LAUNCH();

        HANDLE_ERROR(
            cudaMemcpyAsync(host_c + i, dev_c0, count0 * sizeof(int), cudaMemcpyDeviceToHost, stream0));
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
    bool ok = check(kernel, 2, BREADTH_FIRST, host_a, host_b, host_c);

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
        argc, argv, "Copies and computes in chunks, breadth first in two streams.", 2,
        OPTION_INT("streams", &streams, 1, 32, "compare N streams with one, for kernels of several lengths"));
    require_memory(0, streams * 3 * chunk * sizeof(int));
}

// Task: main(): Write the calls for two streams with breadth-first issue. Fill in whichDevice and prop, and
// create the events and both streams. Allocate device memory for one chunk for each pointer dev_a0 to dev_c1,
// and page-locked host memory for `size` ints for each of host_a, host_b and host_c. The loop over i takes
// two chunks at a time: count0 elements from element i on, for stream0, and count1 elements from element i +
// chunk on, for stream1; count1 may be 0, and a grid needs a block. First enqueue for both chunks the
// asynchronous copies from host_a and host_b to the device, then for both a launch of kernel with 256 threads
// per block, then for both the asynchronous copy of the result to host_c. Record start before the first
// chunk. After the last one wait for both streams, record stop, wait for it, and compute elapsedTime. At the
// end free all memory and destroy the streams and the events.
