// SPDX-License-Identifier: MIT
/*
 * basic_double_stream_correct: chunks in two streams, breadth first
 *
 * Teaches: Calls in different streams meet in the queues of the engines, in the order of the calls.
 *          This program gives each step to both streams before the next step of either: breadth
 *          first. So no copy waits for a kernel whose results it does not need.
 * Book:    10.7
 * Run:     ./bin/chapter10/basic_double_stream_correct --output timeline.svg
 * Differs: the input is masked, so that three of them do not overflow. The result is verified, any
 *          size goes, also one that is no multiple of the chunk. The timeline, from events around
 *          each copy and kernel, is drawn as text and, with --output, as SVG. How much overlaps is
 *          measured: the parts, each alone in one stream, against the whole. With an engine for
 *          each direction and hardware queues for many streams, as devices have them today, depth
 *          first does as well: an H200 (CUDA 13.0, 2026-11-20) took 5.25 ms in one stream, 3.41 ms
 *          depth first and 3.52 ms breadth first. Compare the two timelines. The CPU back end runs
 *          every call to its end, so there the parts are the whole.
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

#define STREAMS 2

struct Stream {
    cudaStream_t stream;
    int *dev_a, *dev_b, *dev_c; // a chunk each
};

struct Data {
    size_t size, chunk;
    int *host_a, *host_b, *host_c; // pinned: other memory cannot be copied while the host goes on
    Stream streams[STREAMS];
};

// Breadth first: each step for a chunk of every stream, before the next step for any of them.
static void run(const Data &d, int streams, Timeline &timeline) {
    timeline.clear();
    for (size_t i = 0; i < d.size; i += streams * d.chunk) {
        size_t at[STREAMS], n[STREAMS]; // of the chunk of each stream; the last ones can be empty
        for (int s = 0; s < streams; s++) {
            at[s] = i + s * d.chunk < d.size ? i + s * d.chunk : d.size;
            n[s] = d.size - at[s] < d.chunk ? d.size - at[s] : d.chunk;
        }
        for (int s = 0; s < streams && n[s] > 0; s++) {
            const Stream &my = d.streams[s];
            timeline.begin(COPY_UP, s, my.stream);
            HANDLE_ERROR(cudaMemcpyAsync(my.dev_a, d.host_a + at[s], n[s] * sizeof(int),
                                         cudaMemcpyHostToDevice, my.stream));
            HANDLE_ERROR(cudaMemcpyAsync(my.dev_b, d.host_b + at[s], n[s] * sizeof(int),
                                         cudaMemcpyHostToDevice, my.stream));
            timeline.end(my.stream);
        }
        for (int s = 0; s < streams && n[s] > 0; s++) {
            const Stream &my = d.streams[s];
            timeline.begin(KERNEL, s, my.stream);
            kernel<<<(n[s] + 255) / 256, 256, 0, my.stream>>>(my.dev_a, my.dev_b, my.dev_c, n[s]);
            HANDLE_LAUNCH();
            timeline.end(my.stream);
        }
        for (int s = 0; s < streams && n[s] > 0; s++) {
            const Stream &my = d.streams[s];
            timeline.begin(COPY_DOWN, s, my.stream);
            HANDLE_ERROR(cudaMemcpyAsync(d.host_c + at[s], my.dev_c, n[s] * sizeof(int),
                                         cudaMemcpyDeviceToHost, my.stream));
            timeline.end(my.stream);
        }
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
    parse_options(argc, argv, "Copies and computes in chunks, breadth first in two streams.", TIMES,
                  own);
    check_svg(output);
    select_device();
    size_t bytes = d.size * sizeof(int), part = (d.size < d.chunk ? d.size : d.chunk) * sizeof(int);
    require_memory(4 * bytes, 2 * 3 * part);
    HANDLE_ERROR(cudaHostAlloc((void **)&d.host_a, bytes, cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc((void **)&d.host_b, bytes, cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc((void **)&d.host_c, bytes, cudaHostAllocDefault));
    random_bytes(d.host_a, bytes);
    random_bytes(d.host_b, bytes);
    for (size_t i = 0; i < d.size; i++) {
        d.host_a[i] &= MASK;
        d.host_b[i] &= MASK;
    }
    for (Stream &s : d.streams) {
        HANDLE_ERROR(cudaStreamCreate(&s.stream));
        HANDLE_ERROR(cudaMalloc((void **)&s.dev_a, part));
        HANDLE_ERROR(cudaMalloc((void **)&s.dev_b, part));
        HANDLE_ERROR(cudaMalloc((void **)&s.dev_c, part));
    }
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    printf("Copy engines: %d\n", prop.asyncEngineCount);

    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    Timeline timeline;
    float elapsed, alone = 0;
    // Once to warm up, then in one stream, where each part has the device to itself, then in both.
    float up = 0, kernels = 0, down = 0;
    for (int streams : {1, 1, STREAMS}) {
        memset(d.host_c, 0xff, bytes);
        HANDLE_ERROR(cudaEventRecord(start, 0));
        run(d, streams, timeline);
        for (const Stream &s : d.streams)
            HANDLE_ERROR(cudaStreamSynchronize(s.stream));
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&elapsed, start, stop));
        timeline.read(start);
        if (streams == 1) {
            up = timeline.sum(COPY_UP);
            kernels = timeline.sum(KERNEL);
            down = timeline.sum(COPY_DOWN);
            alone = elapsed;
        }
    }
    printf("Time taken:  %3.1f ms\n", elapsed);
    printf("In one stream %.3f ms: copies up %.3f ms, kernels %.3f ms, copies down %.3f ms\n",
           alone, up, kernels, down);
    printf("The parts together are %.2f times the whole of %.3f ms\n",
           (up + kernels + down) / elapsed, elapsed);
    inject_error(d.host_c, bytes);
    bool ok = verify(d.host_a, d.host_b, d.host_c, d.size, d.chunk);
    timeline.print(STREAMS, elapsed);
    if (output)
        timeline.write_svg(output, "basic_double_stream_correct", STREAMS, elapsed);

    timeline.release();
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    for (Stream &s : d.streams) {
        HANDLE_ERROR(cudaFree(s.dev_a));
        HANDLE_ERROR(cudaFree(s.dev_b));
        HANDLE_ERROR(cudaFree(s.dev_c));
        HANDLE_ERROR(cudaStreamDestroy(s.stream));
    }
    HANDLE_ERROR(cudaFreeHost(d.host_a));
    HANDLE_ERROR(cudaFreeHost(d.host_b));
    HANDLE_ERROR(cudaFreeHost(d.host_c));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
