// SPDX-License-Identifier: MIT
/*
 * stream_ladder: copies and kernels in chunks, from no overlap to a bus that is always busy
 *
 * Teaches: When copies to the device need most of the time, everything else must overlap with them. Here two
 *          vectors are copied to the device, a kernel runs, and one vector is copied back. The copy
 *          engine for copies to the device must never wait, and little other work may be left after its
 *          last copy.
 * Terms:   overlap, copy engine, stream, pinned memory, asynchronous copy, pipeline, depth-first issue,
 *          breadth-first issue, event, graph
 * Book:    10.7 (ladder)
 * Rungs:   0 pageable memory (chunks of 1 Mi elements, no overlap); 1 book, one stream (asynchronous copies
 *          of pinned memory); 2 depth-first issue (two streams); 3 breadth-first issue (two streams);
 *          4 pipeline (a stream each for up, kernel, down); 5 pitched copies (a and b in one
 *          cudaMemcpy2DAsync); 6 shrinking chunks (each 0.44 of the rest); 7 CUDA graph (one launch of all
 *          calls)
 * Build:   nvcc -o stream_ladder chapter10/stream_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter10/stream_ladder
 * Differs: neighbours are taken modulo 256 within each 256 elements, not within each chunk, so that the
 *          result does not depend on the chunk size. The device has memory for the whole vectors, in
 *          which each chunk has its place. Times are measured with the host's clock.
 * Limit:   the copies of two vectors up. The first chunk is copied before a kernel can start, and the last
 *          result after all of them.
 * Bench:   128K 1M 5M 20M 80M
 * Check:   --size 30001 --chunk 4096 | --size 10240 --chunk 2048
 */
#include "../common/book.h"
#include "../common/bench.h"

const double SHARE = 0.44; // rung 6: size of a chunk as a fraction of the elements that have not been copied
const unsigned THREADS = 256;

static size_t n = BENCH_SIZE(20 << 20, 1 << 20);              // --size
static size_t chunk = 1 << 20;                                // --chunk, elements; the default is the book's
static size_t pitch;                                          // bytes from a to b, and from dev_a to dev_b
static int *pageable_a, *pageable_b, *pageable_c, *a, *b, *c; // on the host; a, b and c are pinned
static int *dev_a, *dev_b, *dev_c;
static int *result, *expected; // result: of the last run, pageable_c or c
static cudaStream_t streams[3];
static cudaEvent_t arrived, computed, finished;
static void fill_vectors(void);
static void make_reference(void);

// The mean of the means of three neighbours in a and in b, as in the book. `left` elements are left from
// where the pointers point to.
__device__ static int average(const int *a, const int *b, unsigned i, size_t left) {
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

// ---- the three stages of a chunk, `count` elements from i on ----

static void copy_up(size_t i, size_t count, cudaStream_t stream) {
    HANDLE_ERROR(cudaMemcpyAsync(dev_a + i, a + i, count * sizeof(int), cudaMemcpyHostToDevice, stream));
    HANDLE_ERROR(cudaMemcpyAsync(dev_b + i, b + i, count * sizeof(int), cudaMemcpyHostToDevice, stream));
}

static void compute(size_t i, size_t count, cudaStream_t stream) {
    kernel<<<(count + THREADS - 1) / THREADS, THREADS, 0, stream>>>(dev_a + i, dev_b + i, dev_c + i, count);
    HANDLE_LAUNCH();
}

static void copy_down(size_t i, size_t count, cudaStream_t stream) {
    HANDLE_ERROR(cudaMemcpyAsync(c + i, dev_c + i, count * sizeof(int), cudaMemcpyDeviceToHost, stream));
}

// ---- the rungs ----

// Rung 0: pageable memory. The driver copies it through a staging buffer, and the host waits.
static void pageable(void) {
    result = pageable_c;
    for (size_t i = 0; i < n; i += chunk) {
        size_t count = min_of(chunk, n - i), bytes = count * sizeof(int);
        HANDLE_ERROR(cudaMemcpy(dev_a + i, pageable_a + i, bytes, cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemcpy(dev_b + i, pageable_b + i, bytes, cudaMemcpyHostToDevice));
        compute(i, count, 0);
        HANDLE_ERROR(cudaMemcpy(pageable_c + i, dev_c + i, bytes, cudaMemcpyDeviceToHost));
    }
}

// Rungs 1 and 2, depth-first issue: all stages of a chunk in one stream, the next chunk in the next stream.
template <int used> static void depth_first(void) {
    result = c;
    for (size_t i = 0, turn = 0; i < n; i += chunk, turn++) {
        size_t count = min_of(chunk, n - i);
        copy_up(i, count, streams[turn % used]);
        compute(i, count, streams[turn % used]);
        copy_down(i, count, streams[turn % used]);
    }
}

// Rung 3, breadth-first issue: one stage in both streams, then the next stage.
static void breadth_first(void) {
    result = c;
    for (size_t i = 0; i < n; i += 2 * chunk) {
        size_t j = min_of(i + chunk, n), end = min_of(j + chunk, n);
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

// Rung 4: a stream for each stage, so that a copy to the device waits only for the previous copy to the
// device. Events make the next stage of a chunk wait for the stage before. Each event is used for all
// chunks, because cudaStreamWaitEvent waits for what the event has recorded when it is called.
static void stages(size_t i, size_t count, void (*up)(size_t, size_t, cudaStream_t)) {
    up(i, count, streams[0]);
    HANDLE_ERROR(cudaEventRecord(arrived, streams[0]));
    HANDLE_ERROR(cudaStreamWaitEvent(streams[1], arrived, 0));
    compute(i, count, streams[1]);
    HANDLE_ERROR(cudaEventRecord(computed, streams[1]));
    HANDLE_ERROR(cudaStreamWaitEvent(streams[2], computed, 0));
    copy_down(i, count, streams[2]);
}

template <void (*up)(size_t, size_t, cudaStream_t)> static void equal_chunks(void) {
    result = c;
    for (size_t i = 0; i < n; i += chunk)
        stages(i, min_of(chunk, n - i), up);
}

// Rung 5: the copy engine pauses between two copies. a and b form the two rows of a pitched array, so a
// chunk of both is one 2-D copy.
static void copy_both_up(size_t i, size_t count, cudaStream_t stream) {
    HANDLE_ERROR(cudaMemcpy2DAsync(dev_a + i, pitch, a + i, pitch, count * sizeof(int), 2,
                                   cudaMemcpyHostToDevice, stream));
}

// Rung 6: after the last copy to the device, its chunk must still be computed and copied back, so the last
// chunk should be small. If all chunks were small, the overhead of many copies would be too large, so chunks
// become smaller from one to the next. When a chunk is half as large as the previous one, its two copies to
// the device take as long as the one copy back of the previous chunk. Then copies back do not fall behind,
// and a chunk is half of the rest. A share a little below one half leaves a reserve.
static size_t chunk_of(size_t rest) {
    size_t share = (size_t)(SHARE * rest) / THREADS * THREADS;
    return min_of(max_of(share, chunk / 8), rest);
}

static void shrinking_chunks(void) {
    result = c;
    for (size_t i = 0, count; i < n; i += count) {
        count = chunk_of(n - i);
        stages(i, count, copy_both_up);
    }
}

// Rung 7: all calls are recorded once as a graph, which is started with one call.
static cudaGraphExec_t graph;

static void record_graph(void) {
    cudaGraph_t recorded;
    HANDLE_ERROR(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
    shrinking_chunks();
    // All streams must join the one in which the capture began.
    HANDLE_ERROR(cudaEventRecord(finished, streams[2]));
    HANDLE_ERROR(cudaStreamWaitEvent(streams[0], finished, 0));
    HANDLE_ERROR(cudaStreamEndCapture(streams[0], &recorded));
    HANDLE_ERROR(cudaGraphInstantiate(&graph, recorded, 0));
    HANDLE_ERROR(cudaGraphDestroy(recorded));
}

static void run_graph(void) {
    result = c;
    HANDLE_ERROR(cudaGraphLaunch(graph, streams[0]));
}

static const Rung rungs[] = {
    {"pageable memory", "chunks of 1 Mi elements, no overlap", pageable},
    {"book, one stream", "asynchronous copies of pinned memory", depth_first<1>},
    {"depth-first issue", "two streams", depth_first<2>},
    {"breadth-first issue", "two streams", breadth_first},
    {"pipeline", "a stream each for up, kernel, down", equal_chunks<copy_up>},
    {"pitched copies", "a and b in one cudaMemcpy2DAsync", equal_chunks<copy_both_up>},
    {"shrinking chunks", "each 0.44 of the rest", shrinking_chunks},
    {"CUDA graph", "one launch of all calls", run_graph},
    {"copies up", "alone", [] { copy_up(0, n, streams[0]); }, LIMIT},
    {"copies down", "alone", [] { copy_down(0, n, streams[2]); }, LIMIT},
    {"kernels", "alone", [] { compute(0, n, streams[1]); }, LIMIT},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = n * sizeof(int);
    pitch = (bytes + 255) / 256 * 256;
    bench_malloc_host(&a, 2 * pitch);
    bench_malloc_host(&c, bytes);
    bench_malloc(&dev_a, 2 * pitch);
    bench_malloc(&dev_c, bytes);
    b = a + pitch / sizeof(int);
    dev_b = dev_a + pitch / sizeof(int);
    fill_vectors();
    make_reference();
    for (cudaStream_t &stream : streams)
        bench_stream(&stream);
    for (cudaEvent_t *event : {&arrived, &computed, &finished})
        bench_event(event);
    record_graph();

    bench_run(rungs);

    HANDLE_ERROR(cudaGraphExecDestroy(graph));
    return bench_finish({pageable_a, pageable_b, pageable_c, expected});
}

// ---------------------------------------------------------------------------------------- check

// The kernels find the vectors on the device that the copies up have left there.
static std::vector<BenchLeft> left_by(const std::string &name) {
    size_t bytes = n * sizeof(int);
    if (name == "copies up")
        return {{dev_a, a, bytes}, {dev_b, b, bytes}};
    if (name == "copies down")
        return {{c, dev_c, bytes}};
    return {{dev_c, expected, bytes}};
}

void settings(int argc, char **argv) {
    if (CPU_BACKEND) { // several chunks, of which the last one is short
        n -= 5;
        chunk = 1 << 18;
    }
    parse_options(argc, argv, "Copies and kernels in chunks, from no overlap to full overlap.", LADDER,
                  {OPTION_SIZE("size", &n, 1, 1 << 28, "elements in a vector"),
                   OPTION_SIZE("chunk", &chunk, 2048, 1 << 28, "elements at a time")});
    if (chunk % 2048) // chunk / 8 is a multiple of the 256 elements in which the kernel finds its neighbours
        quit(EXIT_USAGE, "--chunk %zu: must be a multiple of 2048", chunk);
    select_device();
    require_memory(7 * n * sizeof(int), 3 * n * sizeof(int));
    bench.title = std::to_string(n) + " ints of two vectors up, of one down";
    bench.size = n;
    bench.work = 3.0 * n * sizeof(int); // three vectors are copied
    bench.host_clock = true;
    bench.left = left_by;
}

// Random numbers of 29 bits, so that the sum of three fits an int.
static void fill_vectors(void) {
    pageable_a = big_random_ints(n);
    pageable_b = big_random_ints(n);
    pageable_c = host_array<int>(n);
    for (size_t i = 0; i < n; i++) {
        a[i] = pageable_a[i] &= 0x1fffffff;
        b[i] = pageable_b[i] &= 0x1fffffff;
    }
}

// Float rounds on the host as on the device, because the expression has no multiplication that could be
// fused with an addition, and the compiler does not reorder it.
static void make_reference(void) {
    expected = host_array<int>(n);
    for (size_t i = 0; i < n; i++) {
        size_t group = i / 256 * 256, count = min_of(n - group, 256);
        size_t next = group + (i - group + 1) % count, after = group + (i - group + 2) % count;
        float mean_a = (pageable_a[i] + pageable_a[next] + pageable_a[after]) / 3.0f;
        float mean_b = (pageable_b[i] + pageable_b[next] + pageable_b[after]) / 3.0f;
        expected[i] = (mean_a + mean_b) / 2;
    }
}

// Device memory too, so that a rung cannot use what an earlier one has copied or computed there.
static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_a, 0xff, 2 * pitch));
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, n * sizeof(int)));
    memset(c, 0xff, n * sizeof(int));
    memset(pageable_c, 0xff, n * sizeof(int));
}

static bool check(const char *name, BenchError *) {
    return check_ints(name, result, expected, n);
}
