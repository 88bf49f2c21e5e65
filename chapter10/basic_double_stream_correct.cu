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
 * Run:     ./bin/chapter10/basic_double_stream_correct --output timeline.svg
 * Differs: the input is masked, so that the sum of three numbers does not overflow. The result is
 *          verified, and the size need not be a multiple of the chunk. The timeline is drawn as text and,
 *          with --output, as SVG. To show the overlap, the parts are also timed in one stream. Today's
 *          devices have a copy engine for each direction and hardware queues for many streams, so depth
 *          first is as fast: an H200 (CUDA 13.0, 2026-11-20) took 5.25 ms in one stream, 3.41 ms depth
 *          first and 3.52 ms breadth first. On the CPU back end each call completes its work before it
 *          returns, so nothing overlaps.
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

        // Breadth first: each step for the chunks of all streams, then the next step.
        for (size_t i = 0; i < size; i += streams * chunk) {
            int active = min_of(streams, (size - i + chunk - 1) / chunk); // streams that still get a chunk
            size_t at[STREAMS], n[STREAMS]; // the chunk of each stream: its place and its length
            for (int s = 0; s < active; s++) {
                at[s] = i + s * chunk;
                n[s] = min_of(chunk, size - at[s]);
            }
            for (int s = 0; s < active; s++) {
                timeline.step(COPY_UP, stream[s]);
                HANDLE_ERROR(cudaMemcpyAsync(dev_a[s], host_a + at[s], n[s] * sizeof(int),
                                             cudaMemcpyHostToDevice, stream[s]));
                HANDLE_ERROR(cudaMemcpyAsync(dev_b[s], host_b + at[s], n[s] * sizeof(int),
                                             cudaMemcpyHostToDevice, stream[s]));
            }
            for (int s = 0; s < active; s++) {
                timeline.step(KERNEL, stream[s]);
                kernel<<<(n[s] + 255) / 256, 256, 0, stream[s]>>>(dev_a[s], dev_b[s], dev_c[s], n[s]);
                HANDLE_LAUNCH();
            }
            for (int s = 0; s < active; s++) {
                timeline.step(COPY_DOWN, stream[s]);
                HANDLE_ERROR(cudaMemcpyAsync(host_c + at[s], dev_c[s], n[s] * sizeof(int),
                                             cudaMemcpyDeviceToHost, stream[s]));
            }
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
    stream_settings(argc, argv, "Copies and computes in chunks, breadth first in two streams.", STREAMS);
}

// Task: main(): Write the calls for two streams with breadth-first issue. Fill in prop and create the events.
// For each stream s: create stream[s], and allocate device memory for one chunk each for dev_a[s], dev_b[s]
// and dev_c[s]. Allocate page-locked host memory for `size` ints each for host_a, host_b and host_c. In each
// round every active stream s has a chunk of n[s] elements that begins at element at[s]. First enqueue in all
// active streams the asynchronous copies of the chunks from host_a and host_b to the device, then in all
// active streams a launch of kernel with 256 threads per block, then in all active streams the asynchronous
// copy of the result to the chunk of host_c. Record start before the first round. After the last round wait
// for both streams, record stop, wait for it, and compute elapsedTime. At the end free all memory and destroy
// the streams and the events.
