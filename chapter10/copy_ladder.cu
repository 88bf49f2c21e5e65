// SPDX-License-Identifier: MIT
/*
 * copy_ladder: copies of pageable memory, from cudaMemcpy to host threads with staging buffers
 *
 * Teaches: Pageable memory is copied twice: the host copies between it and a staging buffer, and the device
 *          between the staging buffer and its memory, because DMA needs page-locked memory. The two copies
 *          can overlap, and several host threads do the host's part faster than one. The staging buffers
 *          are small, so that they stay in the host's caches.
 * Terms:   pageable memory, pinned memory, staging buffer, DMA, overlap, host thread, streaming store
 * Book:    10.2 (ladder)
 * Rungs:   0 book (cudaMemcpy from pageable memory); 1 one staging buffer (memcpy, then DMA, no overlap);
 *          2 three staging buffers (overlap of memcpy and DMA); 3 host threads (three staging buffers each);
 *          4 streaming stores (copies to the host: cache lines are not read first)
 * Build:   nvcc -o copy_ladder chapter10/copy_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter10/copy_ladder
 * Differs: times are measured with the host's clock and include starting the threads. The destination
 *          has been written before, so no time is spent on page faults.
 * Limit:   the host's memory: a byte is read, written to a staging buffer, and read again by the copy engine.
 * Bench:   4M 16M 64M 128M 256M
 * Check:   --size 2000003 --threads 2
 */
#include "../common/book.h"
#include "../common/bench.h"
#ifdef __SSE2__ // of the host's processor
#include <emmintrin.h>
#endif

const size_t CHUNK = 2 << 20; // bytes in a staging buffer
const int BUFFERS = 3;        // staging buffers per thread
const int MOST_THREADS = 64;

// A host thread's staging buffers, and for each buffer the event after its last DMA copy. All threads use one
// stream, because a copy engine makes one copy at a time.
struct Worker {
    int number;
    char *buffer[BUFFERS];
    cudaEvent_t copied[BUFFERS];
};

static size_t bytes;                       // to copy
static int threads = BENCH_SIZE(4, 2);     // --threads
static char *source, *back, *pinned, *dev; // source, back: pageable memory
static Worker workers[MOST_THREADS];
static cudaStream_t stream;
static bool to_host = false; // the table: copies to the device, or to the host

static size_t size_of_chunk(size_t at) {
    return min_of(CHUNK, bytes - at);
}

// ---- up: to the device ----

// Copies every step-th chunk, starting with the worker's own number. The host fills the staging buffers in
// turn; it waits until the device has read the previous content. Without `device` only the host copies.
static void up(Worker &worker, int step, int buffers, bool device) {
    int k = 0;
    for (size_t at = worker.number * CHUNK; at < bytes; at += step * CHUNK, k = (k + 1) % buffers) {
        if (device)
            HANDLE_ERROR(cudaEventSynchronize(worker.copied[k]));
        memcpy(worker.buffer[k], source + at, size_of_chunk(at));
        if (device) {
            HANDLE_ERROR(cudaMemcpyAsync(dev + at, worker.buffer[k], size_of_chunk(at),
                                         cudaMemcpyHostToDevice, stream));
            HANDLE_ERROR(cudaEventRecord(worker.copied[k], stream));
        }
    }
}

// ---- down: to the host ----

// memcpy with streaming stores. An ordinary store first reads the cache line that it writes to. A streaming
// store does not, when whole lines are written.
static void copy_streaming(char *to, const char *from, size_t size) {
    size_t done = 0;
#ifdef __SSE2__
    size_t head = -(size_t)to % 64; // up to the first whole line
    if (size > head) {
        memcpy(to, from, head);
        for (done = head; done + 64 <= size; done += 64)
            for (int k = 0; k < 4; k++)
                _mm_stream_si128((__m128i *)(to + done) + k,
                                 _mm_loadu_si128((const __m128i *)(from + done) + k));
        _mm_sfence(); // orders these stores before all that follow
    }
#endif
    memcpy(to + done, from + done, size - done);
}

static void copy_ordinary(char *to, const char *from, size_t size) {
    memcpy(to, from, size);
}

// Starts the DMA copy of the chunk at `at` to staging buffer k.
static void fetch(Worker &worker, size_t at, int k) {
    if (at >= bytes)
        return;
    HANDLE_ERROR(
        cudaMemcpyAsync(worker.buffer[k], dev + at, size_of_chunk(at), cudaMemcpyDeviceToHost, stream));
    HANDLE_ERROR(cudaEventRecord(worker.copied[k], stream));
}

// The device fills all staging buffers; as soon as the host has emptied one, it is filled again.
template <void (*out)(char *, const char *, size_t)>
static void down(Worker &worker, int step, int buffers, bool device) {
    size_t at = worker.number * CHUNK;
    for (int k = 0; k < buffers && device; k++)
        fetch(worker, at + k * step * CHUNK, k);
    for (int k = 0; at < bytes; at += step * CHUNK, k = (k + 1) % buffers) {
        if (device)
            HANDLE_ERROR(cudaEventSynchronize(worker.copied[k]));
        out(back + at, worker.buffer[k], size_of_chunk(at));
        if (device)
            fetch(worker, at + buffers * step * CHUNK, k);
    }
}

// ---- host threads ----

template <void (*copy)(Worker &, int, int, bool), bool device> static CUT_THREADPROC thread(void *worker) {
    HANDLE_ERROR(cudaSetDevice(options.device));
    copy(*(Worker *)worker, threads, BUFFERS, device);
    CUT_THREADEND;
}

template <void (*copy)(Worker &, int, int, bool), bool device> static void with_threads(void) {
    CUTThread started[MOST_THREADS];
    for (int i = 0; i < threads; i++)
        started[i] = start_thread(thread<copy, device>, &workers[i]);
    wait_for_threads(started, threads);
}

// ---- the rungs ----

static const Rung rungs_up[] = {
    {"book", "cudaMemcpy from pageable memory",
     [] { HANDLE_ERROR(cudaMemcpy(dev, source, bytes, cudaMemcpyHostToDevice)); }},
    {"one staging buffer", "memcpy, then DMA, no overlap", [] { up(workers[0], 1, 1, true); }},
    {"three staging buffers", "overlap of memcpy and DMA", [] { up(workers[0], 1, BUFFERS, true); }},
    {"host threads", "three staging buffers each", with_threads<up, true>},
    {"pinned copy", "DMA alone",
     [] { HANDLE_ERROR(cudaMemcpyAsync(dev, pinned, bytes, cudaMemcpyHostToDevice)); }, LIMIT},
    {"host copy", "memcpy alone, all host threads", with_threads<up, false>, LIMIT},
};

static const Rung rungs_down[] = {
    {"book", "cudaMemcpy to pageable memory",
     [] { HANDLE_ERROR(cudaMemcpy(back, dev, bytes, cudaMemcpyDeviceToHost)); }},
    {"one staging buffer", "DMA, then memcpy, no overlap",
     [] { down<copy_ordinary>(workers[0], 1, 1, true); }},
    {"three staging buffers", "overlap of DMA and memcpy",
     [] { down<copy_ordinary>(workers[0], 1, BUFFERS, true); }},
    {"host threads", "three staging buffers each", with_threads<down<copy_ordinary>, true>},
    {"streaming stores", "cache lines are not read first", with_threads<down<copy_streaming>, true>},
    {"pinned copy", "DMA alone",
     [] { HANDLE_ERROR(cudaMemcpyAsync(pinned, dev, bytes, cudaMemcpyDeviceToHost)); }, LIMIT},
    {"host copy", "streaming stores alone, all host threads", with_threads<down<copy_streaming>, false>,
     LIMIT},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    source = (char *)big_random_ints(bytes / sizeof(int));
    back = host_array<char>(bytes);
    bench_malloc_host(&pinned, bytes);
    bench_malloc(&dev, bytes);
    bench_stream(&stream);
    for (int i = 0; i < threads; i++) {
        workers[i].number = i;
        for (int k = 0; k < BUFFERS; k++) {
            bench_malloc_host(&workers[i].buffer[k], CHUNK);
            bench_event(&workers[i].copied[k]);
        }
    }

    bench.data = "up";
    bench_run(rungs_up);
    HANDLE_ERROR(cudaMemcpy(dev, source, bytes, cudaMemcpyHostToDevice));
    bench.data = "down";
    to_host = true;
    bench_run(rungs_down);
    return bench_finish({source, back});
}

// ---------------------------------------------------------------------------------------- check

// Chunk c belongs to host thread c % threads, which uses its staging buffers in turn.
static std::vector<BenchLeft> left_by(const std::string &name) {
    if (name == "pinned copy")
        return {{to_host ? pinned : dev, to_host ? dev : pinned, bytes}};
    std::vector<BenchLeft> left;
    for (size_t c = 0, at = 0; at < bytes; c++, at += CHUNK) {
        char *buffer = workers[c % threads].buffer[c / threads % BUFFERS];
        if (to_host)
            left.push_back({back + at, buffer, size_of_chunk(at)});
        else if (at + threads * BUFFERS * CHUNK >= bytes) // the last chunk in this buffer
            left.push_back({buffer, source + at, size_of_chunk(at)});
    }
    return left;
}

void settings(int argc, char **argv) {
    size_t n = BENCH_SIZE(256 << 20, 4 << 20);
    configure(argc, argv, "Copies of pageable memory, from cudaMemcpy to several host threads.", LADDER,
              {OPTION_SIZE("size", &n, 1, 1LL << 40, "ints to copy"),
               OPTION_INT("threads", &threads, 1, MOST_THREADS, "host threads of the last rungs")});
    bytes = n * sizeof(int);
    require_memory(3 * bytes + threads * BUFFERS * CHUNK, bytes);
    bench.title =
        std::to_string(n) + " ints, " + std::to_string(threads) + " thread" + (threads > 1 ? "s" : "");
    bench.size = n;
    bench.work = bytes;
    bench.host_clock = true;
    bench.left = left_by;
}

static void poison(void) {
    if (to_host)
        in_threads(bytes, [](size_t begin, size_t end) { memset(back + begin, 0xff, end - begin); });
    else
        HANDLE_ERROR(cudaMemset(dev, 0xff, bytes));
}

static bool check(const char *name, BenchError *) {
    if (!to_host) // what is on the device is copied back
        HANDLE_ERROR(cudaMemcpy(pinned, dev, bytes, cudaMemcpyDeviceToHost));
    return check_ints(name, (int *)(to_host ? back : pinned), (int *)source, bytes / sizeof(int));
}
