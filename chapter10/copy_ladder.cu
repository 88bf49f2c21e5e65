// SPDX-License-Identifier: MIT
/*
 * copy_ladder: memory that is not pinned, copied as fast as the host can move it
 *
 * Teaches: The device cannot copy from memory that the system may move, so what is there is copied
 *          twice: by the host to pinned memory, by the device from there. The two copies can go on
 *          at the same time, and several threads of the host do their part faster than one. Pinned
 *          chunks that are small stay in the host's caches.
 * Book:    10.2 (ladder)
 * Run:     ./bin/chapter10/copy_ladder
 * Differs: times are those of the host's clock, and starting the threads is part of them. What is
 *          copied to has been written before, so that the system need not find its pages first.
 * Bench:   64M 256M
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include "../common/bench.h"
#include "../common/book.h"
#include "../common/memory.h"

const size_t CHUNK = 2 << 20; // bytes
const int RING = 3;           // chunks of a thread
const int MOST_THREADS = 64;

// A thread's own pinned chunks. The stream is one for all: the device copies one after the other
// anyway.
struct Lane {
    int number;
    char *chunk[RING];
    cudaEvent_t copied[RING]; // by the device, to or from the chunk
};

static size_t bytes;
static char *source, *back; // not pinned
static char *pinned, *dev;
static int threads = BENCH_SIZE(4, 2);
static Lane lanes[MOST_THREADS];
static cudaStream_t stream;

static size_t size_of_chunk(size_t at) {
    return std::min(CHUNK, bytes - at);
}

// ---- up ----

// Every step-th chunk, from the lane's own number on. The host writes to the pinned chunks in turn,
// to each as soon as the device has read what was there. Without `device` only the host's part.
static void up(Lane &lane, int step, int ring, bool device) {
    int k = 0;
    for (size_t at = lane.number * CHUNK; at < bytes; at += step * CHUNK, k = (k + 1) % ring) {
        if (device)
            HANDLE_ERROR(cudaEventSynchronize(lane.copied[k]));
        memcpy(lane.chunk[k], source + at, size_of_chunk(at));
        if (device) {
            HANDLE_ERROR(cudaMemcpyAsync(dev + at, lane.chunk[k], size_of_chunk(at),
                                         cudaMemcpyHostToDevice, stream));
            HANDLE_ERROR(cudaEventRecord(lane.copied[k], stream));
        }
    }
}

// ---- down ----

// A store to memory that is not in the cache first reads what it is about to overwrite. A streaming
// store does not, as long as whole lines are written.
static void stream_out(char *to, const char *from, size_t size) {
    size_t done = 0;
#ifdef __SSE2__
    size_t lead = -(size_t)to % 64; // up to the first whole line
    if (size > lead) {
        memcpy(to, from, lead);
        for (done = lead; done + 64 <= size; done += 64)
            for (int k = 0; k < 4; k++)
                _mm_stream_si128((__m128i *)(to + done) + k,
                                 _mm_loadu_si128((const __m128i *)(from + done) + k));
        _mm_sfence(); // all is written before anything that follows
    }
#endif
    memcpy(to + done, from + done, size - done);
}

static void copy_out(char *to, const char *from, size_t size) {
    memcpy(to, from, size);
}

static void fetch(Lane &lane, size_t at, int k) {
    if (at >= bytes)
        return;
    HANDLE_ERROR(cudaMemcpyAsync(lane.chunk[k], dev + at, size_of_chunk(at), cudaMemcpyDeviceToHost,
                                 stream));
    HANDLE_ERROR(cudaEventRecord(lane.copied[k], stream));
}

// The device fills all pinned chunks of the lane; when the host has emptied one, it asks for more.
template <void (*out)(char *, const char *, size_t)>
static void down(Lane &lane, int step, int ring, bool device) {
    size_t at = lane.number * CHUNK;
    for (int k = 0; k < ring && device; k++)
        fetch(lane, at + k * step * CHUNK, k);
    for (int k = 0; at < bytes; at += step * CHUNK, k = (k + 1) % ring) {
        if (device)
            HANDLE_ERROR(cudaEventSynchronize(lane.copied[k]));
        out(back + at, lane.chunk[k], size_of_chunk(at));
        if (device)
            fetch(lane, at + ring * step * CHUNK, k);
    }
}

// ---- with several threads ----

template <void (*copy)(Lane &, int, int, bool), bool device>
static CUT_THREADPROC thread(void *lane) {
    HANDLE_ERROR(cudaSetDevice(options.device));
    copy(*(Lane *)lane, threads, RING, device);
    CUT_THREADEND;
}

template <void (*copy)(Lane &, int, int, bool), bool device> static void with_threads(void) {
    CUTThread started[MOST_THREADS];
    for (int i = 0; i < threads; i++)
        started[i] = start_thread(thread<copy, device>, &lanes[i]);
    wait_for_threads(started, threads);
}

// ---- rungs ----

static const Rung rungs_up[] = {
    {"book", "cudaMemcpy sees to it",
     [] { HANDLE_ERROR(cudaMemcpy(dev, source, bytes, cudaMemcpyHostToDevice)); }},
    {"a pinned chunk", "the host fills it, the device reads", [] { up(lanes[0], 1, 1, true); }},
    {"several chunks", "both at the same time", [] { up(lanes[0], 1, RING, true); }},
    {"threads", "each with its own chunks", with_threads<up, true>},
    {"pinned copy", "copied by the device alone",
     [] { HANDLE_ERROR(cudaMemcpyAsync(dev, pinned, bytes, cudaMemcpyHostToDevice)); }, LIMIT},
    {"host's part", "with as many threads", with_threads<up, false>, LIMIT},
};

static const Rung rungs_down[] = {
    {"book", "cudaMemcpy sees to it",
     [] { HANDLE_ERROR(cudaMemcpy(back, dev, bytes, cudaMemcpyDeviceToHost)); }},
    {"a pinned chunk", "the device fills it, the host reads",
     [] { down<copy_out>(lanes[0], 1, 1, true); }},
    {"several chunks", "both at the same time", [] { down<copy_out>(lanes[0], 1, RING, true); }},
    {"threads", "each with its own chunks", with_threads<down<copy_out>, true>},
    {"streaming stores", "what is overwritten is not read", with_threads<down<stream_out>, true>},
    {"pinned copy", "copied by the device alone",
     [] { HANDLE_ERROR(cudaMemcpyAsync(pinned, dev, bytes, cudaMemcpyDeviceToHost)); }, LIMIT},
    {"host's part", "with as many threads", with_threads<down<stream_out>, false>, LIMIT},
};

static void poison_up(void) {
    HANDLE_ERROR(cudaMemset(dev, 0xff, bytes));
}

static void poison_down(void) {
    memset(back, 0xff, bytes);
}

static bool check_down(const char *name, BenchError *) {
    inject_error(back, bytes);
    return check_ints(name, (int *)back, (int *)source, bytes / sizeof(int));
}

static bool check_up(const char *name, BenchError *error) {
    poison_down();
    HANDLE_ERROR(cudaMemcpy(back, dev, bytes, cudaMemcpyDeviceToHost));
    return check_down(name, error);
}

int main(int argc, char **argv) {
    size_t n = BENCH_SIZE(256 << 20, 4 << 20);
    const Option own[] = {
        OPTION_SIZE("size", &n, 1, 1LL << 40, "ints to copy"),
        OPTION_INT("threads", &threads, 1, MOST_THREADS, "of the host, for the last rungs"),
        OPTION_END};
    parse_options(argc, argv,
                  "Copies of memory that is not pinned, from cudaMemcpy to threads of our own.",
                  LADDER, own);
    select_device();
    bytes = n * sizeof(int);
    require_memory(3 * bytes + threads * RING * CHUNK, bytes);

    source = (char *)big_random_ints(n);
    back = (char *)malloc(bytes);
    HANDLE_NULL(back);
    HANDLE_ERROR(cudaHostAlloc((void **)&pinned, bytes, cudaHostAllocDefault));
    HANDLE_ERROR(cudaMalloc((void **)&dev, bytes));
    HANDLE_ERROR(cudaStreamCreate(&stream));
    for (int i = 0; i < threads; i++) {
        Lane &lane = lanes[i];
        lane.number = i;
        for (int k = 0; k < RING; k++) {
            HANDLE_ERROR(cudaHostAlloc((void **)&lane.chunk[k], CHUNK, cudaHostAllocDefault));
            HANDLE_ERROR(cudaEventCreateWithFlags(&lane.copied[k], cudaEventDisableTiming));
        }
    }

    char title[64];
    snprintf(title, sizeof title, "%zu ints, %d thread%s", n, threads, threads > 1 ? "s" : "");
    bool ok = bench_run({title, "up", n, (double)bytes, "GB/s", 0, rungs_up,
                         sizeof rungs_up / sizeof *rungs_up, poison_up, check_up, true});
    HANDLE_ERROR(cudaMemcpy(dev, source, bytes, cudaMemcpyHostToDevice));
    ok = bench_run({title, "down", n, (double)bytes, "GB/s", 0, rungs_down,
                    sizeof rungs_down / sizeof *rungs_down, poison_down, check_down, true}) &&
         ok;
    bench_finish();

    for (int i = 0; i < threads; i++) {
        for (int k = 0; k < RING; k++) {
            HANDLE_ERROR(cudaFreeHost(lanes[i].chunk[k]));
            HANDLE_ERROR(cudaEventDestroy(lanes[i].copied[k]));
        }
    }
    HANDLE_ERROR(cudaStreamDestroy(stream));
    HANDLE_ERROR(cudaFree(dev));
    HANDLE_ERROR(cudaFreeHost(pinned));
    free(source);
    free(back);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
