// SPDX-License-Identifier: MIT
/*
 * stream_ladder: chunks through the device, from one after the other to a bus that never waits
 *
 * Teaches: Two vectors go up, one comes down, and each chunk is computed in between. The two copies
 *          up alone need most of the time, so the goal is that everything else happens meanwhile:
 *          the engine that copies up is never without work, and little is left to do when it is
 *          done.
 * Book:    10.7 (ladder)
 * Run:     ./bin/chapter10/stream_ladder
 * Differs: the neighbours are taken modulo 256 in each 256 elements, not in each chunk, so that
 *          chunks of every size have the same result. The device has room for the whole vectors,
 *          and a chunk its place there. Times are those of the host's clock.
 * Bench:   20M
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include "../common/bench.h"
#include "../common/book.h"
#include "../common/memory.h"

const size_t CHUNK = 1 << 20;      // elements, the book's
const size_t SMALLEST = 128 << 10; // of the chunks that become smaller
const double SHARE = 0.44;         // of what is left, in such a chunk
const unsigned THREADS = 256;
const int MASK = 0x1fffffff; // three times as much still fits an int

static size_t n, pitch; // pitch: bytes from a to b, also on the device
static int *pageable_a, *pageable_b, *pageable_c, *a, *b, *c; // the latter are pinned
static int *dev_a, *dev_b, *dev_c;
static int *expected, *result; // result: pageable_c or c
static cudaStream_t streams[3];
static cudaEvent_t arrived, computed, finished;

// The average of two averages: those of three neighbours in a and in b, of the `left` elements from
// where the pointers show.
__host__ __device__ static int average(const int *a, const int *b, unsigned i, size_t left) {
    unsigned places = left < 256 ? left : 256, i1 = (i + 1) % places, i2 = (i + 2) % places;
    float as = (a[i] + a[i1] + a[i2]) / 3.0f;
    float bs = (b[i] + b[i1] + b[i2]) / 3.0f;
    return (as + bs) / 2;
}

__global__ void kernel(const int *a, const int *b, int *c, size_t n) {
    size_t first = (size_t)blockIdx.x * THREADS;
    if (first + threadIdx.x < n)
        c[first + threadIdx.x] = average(a + first, b + first, threadIdx.x, n - first);
}

// ---- the three stages of the chunk of `count` elements from `i` on ----

static void copy_up(size_t i, size_t count, cudaStream_t stream) {
    HANDLE_ERROR(
        cudaMemcpyAsync(dev_a + i, a + i, count * sizeof(int), cudaMemcpyHostToDevice, stream));
    HANDLE_ERROR(
        cudaMemcpyAsync(dev_b + i, b + i, count * sizeof(int), cudaMemcpyHostToDevice, stream));
}

static void compute(size_t i, size_t count, cudaStream_t stream) {
    kernel<<<(count + THREADS - 1) / THREADS, THREADS, 0, stream>>>(dev_a + i, dev_b + i, dev_c + i,
                                                                    count);
    HANDLE_LAUNCH();
}

static void copy_down(size_t i, size_t count, cudaStream_t stream) {
    HANDLE_ERROR(
        cudaMemcpyAsync(c + i, dev_c + i, count * sizeof(int), cudaMemcpyDeviceToHost, stream));
}

// ---- rungs ----

// From memory that is not pinned: the driver copies it to pinned memory first, and the host waits.
static void pageable(void) {
    result = pageable_c;
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t count = std::min(CHUNK, n - i), bytes = count * sizeof(int);
        HANDLE_ERROR(cudaMemcpy(dev_a + i, pageable_a + i, bytes, cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemcpy(dev_b + i, pageable_b + i, bytes, cudaMemcpyHostToDevice));
        compute(i, count, 0);
        HANDLE_ERROR(cudaMemcpy(pageable_c + i, dev_c + i, bytes, cudaMemcpyDeviceToHost));
    }
}

// Depth first: all stages of a chunk in one stream, the next chunk in the next stream.
template <int used> static void depth_first(void) {
    result = c;
    for (size_t i = 0, turn = 0; i < n; i += CHUNK, turn++) {
        size_t count = std::min(CHUNK, n - i);
        copy_up(i, count, streams[turn % used]);
        compute(i, count, streams[turn % used]);
        copy_down(i, count, streams[turn % used]);
    }
}

// Breadth first: each stage for a chunk in both streams, then the next stage.
static void breadth_first(void) {
    result = c;
    for (size_t i = 0; i < n; i += 2 * CHUNK) {
        size_t j = std::min(i + CHUNK, n), end = std::min(j + CHUNK, n);
        copy_up(i, j - i, streams[0]);
        if (j < end)
            copy_up(j, end - j, streams[1]);
        compute(i, j - i, streams[0]);
        if (j < end)
            compute(j, end - j, streams[1]);
        copy_down(i, j - i, streams[0]);
        if (j < end)
            copy_down(j, end - j, streams[1]);
    }
}

// A stream for each stage, so that no copy up waits for anything but the one before it. Events hold
// a chunk's next stage back until the one before is done. One event of a kind will do: a stream
// waits for what the event has recorded by the time of the call.
static void stages(size_t i, size_t count, void (*up)(size_t, size_t, cudaStream_t)) {
    up(i, count, streams[0]);
    HANDLE_ERROR(cudaEventRecord(arrived, streams[0]));
    HANDLE_ERROR(cudaStreamWaitEvent(streams[1], arrived, 0));
    compute(i, count, streams[1]);
    HANDLE_ERROR(cudaEventRecord(computed, streams[1]));
    HANDLE_ERROR(cudaStreamWaitEvent(streams[2], computed, 0));
    copy_down(i, count, streams[2]);
}

static void three_stages(void) {
    result = c;
    for (size_t i = 0; i < n; i += CHUNK)
        stages(i, std::min(CHUNK, n - i), copy_up);
}

// The engine pauses from one copy to the next. a and b are so far apart as the rows of a picture
// with two rows: then a chunk of both is one copy.
static void copy_both_up(size_t i, size_t count, cudaStream_t stream) {
    HANDLE_ERROR(cudaMemcpy2DAsync(dev_a + i, pitch, a + i, pitch, count * sizeof(int), 2,
                                   cudaMemcpyHostToDevice, stream));
}

static void fewer_copies(void) {
    result = c;
    for (size_t i = 0; i < n; i += CHUNK)
        stages(i, std::min(CHUNK, n - i), copy_both_up);
}

// When the last chunk is up it still has to be computed and copied down, so it should be small; but
// small ones from the start would be many. A chunk that is half as large as the one before is up
// when that one is down: what goes up is twice as much. Then each is half of what is left, and a
// little less makes sure that the copies down do not fall behind.
static size_t part_of(size_t left) {
    size_t part = (size_t)(SHARE * left) / THREADS * THREADS;
    return std::min(std::max(part, SMALLEST), left);
}

static void ever_smaller(void) {
    result = c;
    for (size_t i = 0, count; i < n; i += count)
        stages(i, count = part_of(n - i), copy_both_up);
}

// All calls of a frame are recorded once, and from then on started with one.
#ifdef __NVCC__
static cudaGraphExec_t frame;

static void record_frame(void) {
    cudaGraph_t graph;
    HANDLE_ERROR(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
    ever_smaller();
    // Everything must come together again in the stream where the recording began.
    HANDLE_ERROR(cudaEventRecord(finished, streams[2]));
    HANDLE_ERROR(cudaStreamWaitEvent(streams[0], finished, 0));
    HANDLE_ERROR(cudaStreamEndCapture(streams[0], &graph));
    HANDLE_ERROR(cudaGraphInstantiate(&frame, graph, 0));
    HANDLE_ERROR(cudaGraphDestroy(graph));
}

static void graph(void) {
    result = c;
    HANDLE_ERROR(cudaGraphLaunch(frame, streams[0]));
}
#else
static void (*const graph)(void) = NULL;
#endif

static const Rung rungs[] = {
    {"book, pageable", "1 Mi at a time, all in turn", pageable},
    {"pinned", "copied by the device alone", depth_first<1>},
    {"two streams", "depth first", depth_first<2>},
    {"breadth first", "the other order of the calls", breadth_first},
    {"three stages", "a stream each: up, kernel, down", three_stages},
    {"fewer copies", "a and b in one call", fewer_copies},
    {"ever smaller", "each chunk 0.44 of what is left", ever_smaller},
    {"graph", "the same, started by one call", graph, RUNG, 0, 0, bench_needs_graphs},
    {"copies up", "if there were no other work", [] { copy_up(0, n, streams[0]); }, LIMIT},
    {"copies down", "the same", [] { copy_down(0, n, streams[2]); }, LIMIT},
    {"kernels", "the same", [] { compute(0, n, streams[1]); }, LIMIT},
};

static void poison(void) {
    memset(c, 0xff, n * sizeof(int));
    memset(pageable_c, 0xff, n * sizeof(int));
}

static bool check(const char *name, BenchError *) {
    inject_error(result, n * sizeof(int));
    return check_ints(name, result, expected, n);
}

int main(int argc, char **argv) {
    n = BENCH_SIZE(20 << 20, 1 << 20);
    const Option own[] = {OPTION_SIZE("size", &n, 1, 1 << 28, "elements in a vector"), OPTION_END};
    parse_options(argc, argv,
                  "Copies and computes in chunks, from one after the other to all at once.", LADDER,
                  own);
    select_device();
    size_t bytes = n * sizeof(int);
    require_memory(7 * bytes, 3 * bytes);

    pageable_a = big_random_ints(n);
    pageable_b = big_random_ints(n);
    pageable_c = (int *)malloc(bytes);
    expected = (int *)malloc(bytes);
    HANDLE_NULL(pageable_c);
    HANDLE_NULL(expected);
    pitch = (bytes + 255) / 256 * 256;
    HANDLE_ERROR(cudaHostAlloc((void **)&a, 2 * pitch, cudaHostAllocDefault));
    HANDLE_ERROR(cudaHostAlloc((void **)&c, bytes, cudaHostAllocDefault));
    b = a + pitch / sizeof(int);
    for (size_t i = 0; i < n; i++) {
        a[i] = pageable_a[i] &= MASK;
        b[i] = pageable_b[i] &= MASK;
    }
    // Nothing here can be fused or reordered, so float rounds on the host as it does on the device.
    for (size_t i = 0; i < n; i++)
        expected[i] = average(a + i / 256 * 256, b + i / 256 * 256, i % 256, n - i / 256 * 256);
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, 2 * pitch));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, bytes));
    dev_b = dev_a + pitch / sizeof(int);
    for (cudaStream_t &stream : streams)
        HANDLE_ERROR(cudaStreamCreate(&stream));
    for (cudaEvent_t *event : {&arrived, &computed, &finished})
        HANDLE_ERROR(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
#ifdef __NVCC__
    record_frame();
#endif

    char title[64];
    snprintf(title, sizeof title, "%zu ints of two vectors up, of one down", n);
    bool ok = bench_run({title, NULL, n, 3.0 * bytes, "GB/s", 0, rungs,
                         sizeof rungs / sizeof *rungs, poison, check, true});
    bench_finish();

#ifdef __NVCC__
    HANDLE_ERROR(cudaGraphExecDestroy(frame));
#endif
    for (cudaEvent_t event : {arrived, computed, finished})
        HANDLE_ERROR(cudaEventDestroy(event));
    for (cudaStream_t stream : streams)
        HANDLE_ERROR(cudaStreamDestroy(stream));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_c));
    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFreeHost(c));
    free(pageable_a);
    free(pageable_b);
    free(pageable_c);
    free(expected);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
