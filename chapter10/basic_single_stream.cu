// SPDX-License-Identifier: MIT
/*
 * basic_single_stream: chunks copied and computed in one stream
 *
 * Teaches: A stream is a queue of work for the device: copies and kernels in it run in the order of
 *          the calls, while the host goes on. With the data in chunks, all that is in one stream
 *          still runs one after the other, so the parts together take as long as the whole.
 * Book:    10.4
 * Run:     ./bin/chapter10/basic_single_stream --output timeline.svg
 * Differs: the input is masked, so that three of them do not overflow. The result is verified, any
 *          size goes, also one that is no multiple of the chunk. The timeline, from events around
 *          each copy and kernel, is drawn as text and, with --output, as SVG.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../common/book.h"
#include "../common/memory.h"
#include "timeline.h"

#define N              (1024 * 1024)
#define FULL_DATA_SIZE (N * 20)
#define MASK           0x1fffffff // three times as much still fits an int

// The average of two averages: those of three neighbours in a and in b. As in the book only the
// first is where the thread is, the other two are among the first 256 elements of the chunk.
__global__ void kernel(const int *a, const int *b, int *c, size_t n) {
    size_t idx = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    size_t first = n < 256 ? n : 256;
    if (idx < n) {
        size_t idx1 = (idx + 1) % first, idx2 = (idx + 2) % first;
        float as = (a[idx] + a[idx1] + a[idx2]) / 3.0f;
        float bs = (b[idx] + b[idx1] + b[idx2]) / 3.0f;
        c[idx] = (as + bs) / 2;
    }
}

// Nothing here can be fused or reordered, so float rounds on the host as it does on the device.
static bool verify(const int *a, const int *b, const int *c, size_t size, size_t chunk) {
    int *expected = (int *)malloc(size * sizeof(int));
    HANDLE_NULL(expected);
    for (size_t start = 0; start < size; start += chunk) {
        size_t n = size - start < chunk ? size - start : chunk, first = n < 256 ? n : 256;
        for (size_t i = 0; i < n; i++) {
            size_t places[] = {start + i, start + (i + 1) % first, start + (i + 2) % first};
            int suma = 0, sumb = 0;
            for (size_t place : places) {
                suma += a[place];
                sumb += b[place];
            }
            expected[start + i] = (int)((suma / 3.0f + sumb / 3.0f) / 2);
        }
    }
    bool ok = check_ints("c", c, expected, size);
    free(expected);
    return ok;
}

struct Data {
    size_t size, chunk;
    int *host_a, *host_b, *host_c; // pinned: other memory cannot be copied while the host goes on
    int *dev_a, *dev_b, *dev_c;    // a chunk each
};

// All chunks, one after the other, in one stream: nothing can overlap.
static void run(const Data &d, cudaStream_t stream, Timeline &timeline) {
    timeline.clear();
    for (size_t i = 0; i < d.size; i += d.chunk) {
        size_t n = d.size - i < d.chunk ? d.size - i : d.chunk;
        timeline.begin(COPY_UP, 0, stream);
        HANDLE_ERROR(cudaMemcpyAsync(d.dev_a, d.host_a + i, n * sizeof(int), cudaMemcpyHostToDevice,
                                     stream));
        HANDLE_ERROR(cudaMemcpyAsync(d.dev_b, d.host_b + i, n * sizeof(int), cudaMemcpyHostToDevice,
                                     stream));
        timeline.end(stream);
        timeline.begin(KERNEL, 0, stream);
        kernel<<<(n + 255) / 256, 256, 0, stream>>>(d.dev_a, d.dev_b, d.dev_c, n);
        HANDLE_LAUNCH();
        timeline.end(stream);
        timeline.begin(COPY_DOWN, 0, stream);
        HANDLE_ERROR(cudaMemcpyAsync(d.host_c + i, d.dev_c, n * sizeof(int), cudaMemcpyDeviceToHost,
                                     stream));
        timeline.end(stream);
    }
}

int main(int argc, char **argv) {
    Data d = {};
    d.size = FULL_DATA_SIZE;
    d.chunk = N;
    const char *output = NULL;
    const Option own[] = {OPTION_SIZE("size", &d.size, 1, 1LL << 40, "elements in all"),
                          OPTION_SIZE("chunk", &d.chunk, 1, 1 << 30, "elements at a time"),
                          OPTION_FILE("output", &output, "write the timeline to FILE, an .svg"),
                          OPTION_END};
    parse_options(argc, argv, "Copies and computes in chunks, in one stream.", TIMES, own);
    check_svg(output);
    select_device();
    size_t bytes = d.size * sizeof(int), part = (d.size < d.chunk ? d.size : d.chunk) * sizeof(int);
    require_memory(4 * bytes, 3 * part);
    HANDLE_ERROR(cudaHostAlloc((void **)&d.host_a, bytes, cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc((void **)&d.host_b, bytes, cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc((void **)&d.host_c, bytes, cudaHostAllocDefault));
    random_bytes(d.host_a, bytes);
    random_bytes(d.host_b, bytes);
    for (size_t i = 0; i < d.size; i++) {
        d.host_a[i] &= MASK;
        d.host_b[i] &= MASK;
    }
    cudaStream_t stream;
    HANDLE_ERROR(cudaStreamCreate(&stream));
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_a, part));
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_b, part));
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_c, part));
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    printf("Copy engines: %d\n", prop.asyncEngineCount);

    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    Timeline timeline;
    float elapsed;
    // Once to warm up, and once to measure.
    for (int i = 0; i < 2; i++) {
        memset(d.host_c, 0xff, bytes);
        HANDLE_ERROR(cudaEventRecord(start, 0));
        run(d, stream, timeline);
        HANDLE_ERROR(cudaStreamSynchronize(stream));
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&elapsed, start, stop));
    }
    timeline.read(start);
    float up = timeline.sum(COPY_UP), kernels = timeline.sum(KERNEL);
    float down = timeline.sum(COPY_DOWN);
    printf("Time taken:  %3.1f ms\n", elapsed);
    printf("Copies up %.3f ms, kernels %.3f ms, copies down %.3f ms\n", up, kernels, down);
    printf("The parts together are %.2f times the whole of %.3f ms\n",
           (up + kernels + down) / elapsed, elapsed);
    inject_error(d.host_c, bytes);
    bool ok = verify(d.host_a, d.host_b, d.host_c, d.size, d.chunk);
    timeline.print(1, elapsed);
    if (output)
        timeline.write_svg(output, "basic_single_stream", 1, elapsed);

    timeline.release();
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(d.dev_a));
    HANDLE_ERROR(cudaFree(d.dev_b));
    HANDLE_ERROR(cudaFree(d.dev_c));
    HANDLE_ERROR(cudaStreamDestroy(stream));
    HANDLE_ERROR(cudaFreeHost(d.host_a));
    HANDLE_ERROR(cudaFreeHost(d.host_b));
    HANDLE_ERROR(cudaFreeHost(d.host_c));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
