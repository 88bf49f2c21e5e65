// SPDX-License-Identifier: MIT
/*
 * basic_double_stream: two streams, depth-first issue
 *
 * Teaches: Work in different streams may overlap: a copy in one stream runs while a kernel, or a copy in
 *          the other direction, runs in the other. Depth-first issue puts all steps of a chunk into one
 *          stream, then those of the next chunk into the other. On a device with one copy engine, the
 *          second stream's copy to the device waits behind the first stream's copy back: no overlap.
 * Terms:   stream, overlap, depth-first issue, copy engine, asynchronous copy, page-locked memory,
 *          pipeline, concurrency
 * Book:    10.5
 * Run:     ./bin/chapter10/basic_double_stream --output timeline.svg
 * Differs: the input is masked, so that the sum of three numbers does not overflow. The result is
 *          verified, and the size need not be a multiple of the chunk. The timeline is drawn as text and,
 *          with --output, as SVG. To show the overlap, the parts are also timed in one stream. Most devices
 *          of the book's time had one copy engine with one queue. Today's have one for each direction, and
 *          hardware queues for many streams, so the order of the calls matters little: an H200 (CUDA
 *          13.0, 2026-11-20) took 5.25 ms in one stream, 3.41 ms depth first and 3.52 ms breadth first.
 *          On the CPU back end each call completes its work before it returns, so nothing overlaps.
 * Check:   --size 50036 --chunk 10007 | --size 3000 --chunk 1000
 */
#include "../common/book.h"
#include "streams.h" // size, chunk, fill_random(), verify(); Timeline, COPY_UP, KERNEL, COPY_DOWN

#define STREAMS 2

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
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    print_copy_engines(prop.asyncEngineCount);

    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));

    // Each stream has device memory for a chunk of its own.
    cudaStream_t stream[STREAMS];
    int *dev_a[STREAMS], *dev_b[STREAMS], *dev_c[STREAMS];
    for (int s = 0; s < STREAMS; s++) {
        HANDLE_ERROR(cudaStreamCreate(&stream[s]));
        HANDLE_ERROR(cudaMalloc(&dev_a[s], chunk * sizeof(int)));
        HANDLE_ERROR(cudaMalloc(&dev_b[s], chunk * sizeof(int)));
        HANDLE_ERROR(cudaMalloc(&dev_c[s], chunk * sizeof(int)));
    }

    // Page-locked memory: from pageable memory, cudaMemcpyAsync would not be asynchronous.
    int *host_a, *host_b, *host_c;
    HANDLE_ERROR(cudaHostAlloc(&host_a, size * sizeof(int), cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc(&host_b, size * sizeof(int), cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc(&host_c, size * sizeof(int), cudaHostAllocDefault));
    fill_random(host_a);
    fill_random(host_b);

    // Three runs: the first one, in one stream, is the warm-up; the second one, in one stream, measures each
    // part alone; the third one uses both streams.
    Timeline timeline(stream, STREAMS); // step() records an event before and after what follows it
    float elapsedTime;
    for (int streams : {1, 1, STREAMS}) {
        memset(host_c, 0xff, size * sizeof(int)); // so each run must write the whole result
        HANDLE_ERROR(cudaEventRecord(start, 0));

        // Depth first: all steps of a chunk, then the next chunk in the other stream.
        for (size_t i = 0; i < size; i += chunk) {
            int s = i / chunk % streams;
            size_t n = min_of(chunk, size - i);
            timeline.step(COPY_UP, stream[s]);
            HANDLE_ERROR(
                cudaMemcpyAsync(dev_a[s], host_a + i, n * sizeof(int), cudaMemcpyHostToDevice, stream[s]));
            HANDLE_ERROR(
                cudaMemcpyAsync(dev_b[s], host_b + i, n * sizeof(int), cudaMemcpyHostToDevice, stream[s]));
            timeline.step(KERNEL, stream[s]);
            kernel<<<(n + 255) / 256, 256, 0, stream[s]>>>(dev_a[s], dev_b[s], dev_c[s], n);
            HANDLE_LAUNCH();
            timeline.step(COPY_DOWN, stream[s]);
            HANDLE_ERROR(
                cudaMemcpyAsync(host_c + i, dev_c[s], n * sizeof(int), cudaMemcpyDeviceToHost, stream[s]));
        }
        timeline.end();

        for (int s = 0; s < STREAMS; s++)
            HANDLE_ERROR(cudaStreamSynchronize(stream[s]));
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
        timeline.read(start, elapsedTime);
    }
    printf("Time taken:  %3.1f ms\n", elapsedTime);
    report(timeline);
    bool ok = verify(host_a, host_b, host_c);

    HANDLE_ERROR(cudaFreeHost(host_a));
    HANDLE_ERROR(cudaFreeHost(host_b));
    HANDLE_ERROR(cudaFreeHost(host_c));
    for (int s = 0; s < STREAMS; s++) {
        HANDLE_ERROR(cudaFree(dev_a[s]));
        HANDLE_ERROR(cudaFree(dev_b[s]));
        HANDLE_ERROR(cudaFree(dev_c[s]));
        HANDLE_ERROR(cudaStreamDestroy(stream[s]));
    }
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    stream_settings(argc, argv, "Copies and computes in chunks, depth first in two streams.", STREAMS);
}

// Task: main(): Write the calls for two streams with depth-first issue. Fill in prop and create the events.
// For each stream s: create stream[s], and allocate device memory for one chunk each for dev_a[s], dev_b[s]
// and dev_c[s]. Allocate page-locked host memory for `size` ints each for host_a, host_b and host_c. The loop
// over i takes one chunk after the other; a chunk has n elements and begins at element i. Enqueue in
// stream[s]: after step(COPY_UP) the asynchronous copies of the chunk from host_a and host_b to the device,
// after step(KERNEL) a launch of kernel with 256 threads per block, and after step(COPY_DOWN) the
// asynchronous copy of the result to the chunk of host_c. Record start before the first chunk. After the last
// chunk wait for both streams, record stop, wait for it, and compute elapsedTime. At the end free all memory
// and destroy the streams and the events.
