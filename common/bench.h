// SPDX-License-Identifier: MIT
// The harness of the ladders. A ladder is a program that includes this header: it computes the same
// result with several kernels, its rungs, and with libraries. bench_run() verifies and times each of
// them and prints a table, or JSON with --json.
// docs/performance.md says how the time of a row is measured.
#pragma once

#include <unistd.h> // isatty()
#include <functional>
#include <string>
#include <vector>
#include "book.h"
#include "nvtx.h"
#include "thread.h" // in_threads()
#include "timing.h" // host_ms()

// A default size: `gpu` fills an H200, `cpu` finishes quickly on the CPU back end.
#define BENCH_SIZE(gpu, cpu) ((size_t)(CPU_BACKEND ? (cpu) : (gpu)))

enum BenchKind {
    RUNG,
    LIBRARY,    // a library that computes the same
    INACCURATE, // a library whose result is less accurate: verified and timed, but no row is compared with it
    LIMIT, // a part of the work that no solution can leave out, timed alone. The slowest one is the limit of
           // the table: "of limit" is a row's rate as a share of its rate
    ALONE  // another part of the work, alone: no row is compared with it
};

// One row of the table.
struct Rung {
    const char *name, *idea; // in the terms of docs/terms.md; `idea` is what this rung adds
    void (*run)(void);       // enqueues all of the work; its memory is allocated before
    BenchKind kind;
    int sm;                     // lowest compute capability, times ten; 0: any device, and the CPU back end
    double work;                // of this row; 0: that of the table
    const char *(*needs)(void); // returns why the row cannot be run, "needs …", or NULL if it can
    Rung(const char *name, const char *idea, void (*run)(void), BenchKind kind = RUNG, int sm = 0,
         double work = 0, const char *(*needs)(void) = NULL)
        : name(name), idea(idea), run(run), kind(kind), sm(sm), work(work), needs(needs) {}
    Rung(const char *name, const char *idea, void (*run)(void), const char *(*needs)(void))
        : Rung(name, idea, run, RUNG, 0, 0, needs) {}
};

// The errors of a result, relative to a reference in double. NAN: not reported.
struct BenchError {
    double max, rms;
};

// A ladder defines these. poison() overwrites the output; check() verifies it, and may set the errors.
static void poison(void);
static bool check(const char *name, BenchError *error);

// What a row of the kind LIMIT or ALONE leaves in memory of the host or of a device: the bytes of `from`, or
// bytes with this value if `from` is NULL. The number of bytes is a multiple of four.
struct BenchLeft {
    void *to;
    const void *from;
    size_t bytes;
    int value = 0;
};

// The properties that all rows of a table share; settings() sets them, except those of one of several tables.
static struct Bench {
    std::string title;            // the work: "268435456 ints"
    std::string data;             // the data set, when there are several: "uniform"
    size_t size = 0;              // the value of --size
    double work = 0;              // bytes that must be moved, or operations that must be done, in one run
    const char *unit = "GB/s";    // of 10^9 units of work per second
    bool reads = false;           // most bytes are read: where no row is the limit, it is a read, not a copy
    bool steps = false;           // columns "x prev" and "x first" in place of "x book"
    size_t footprint = 0;         // bytes of device memory in use; 0: the L2 cache is not flushed
    void (*devices)(void) = NULL; // prints the devices, if not only options.device is used
    bool host_clock = false;      // time from the call until the device is idle, by the host's clock
    // What the row of this name leaves, to be verified. NULL: no row of the kinds LIMIT and ALONE has a
    // result
    std::vector<BenchLeft> (*left)(const std::string &name) = NULL;
} bench;

// Whether a row is a part of the work alone: bench.left() says what it leaves
static inline bool bench_alone(const Rung &rung) {
    return rung.kind == LIMIT || rung.kind == ALONE;
}

// The measurements of one row, in milliseconds.
struct BenchRow {
    const Rung *rung;
    int number;          // of the rung; -1: another row
    std::string skipped; // why it was not run; empty: it was run
    bool ok = true;
    std::vector<float> ms = {}, cold = {}; // sorted; cold: with nothing in the L2 cache
    int runs = 0;                          // how many are timed
    BenchError error = {NAN, NAN};
};

#include "lib/bench_report.h" // the table and the JSON

// ---- memory, streams and events of a ladder, which bench_finish() frees ----

// Functions that free them, one for each
static std::vector<std::function<cudaError_t()>> bench_to_free;

template <class T> static inline void bench_malloc(T **memory, size_t bytes) {
    HANDLE_ERROR(cudaMalloc(memory, bytes));
    bench_to_free.push_back([m = *memory] { return cudaFree(m); });
}

// Page-locked host memory for results, which is copied faster than pageable memory
template <class T>
static inline void bench_malloc_host(T **memory, size_t bytes, unsigned flags = cudaHostAllocDefault) {
    HANDLE_ERROR(cudaHostAlloc(memory, bytes, flags));
    bench_to_free.push_back([m = *memory] { return cudaFreeHost(m); });
}

static inline void bench_stream(cudaStream_t *stream) {
    HANDLE_ERROR(cudaStreamCreate(stream));
    bench_to_free.push_back([s = *stream] { return cudaStreamDestroy(s); });
}

// An event for the order of work, without a time stamp
static inline void bench_event(cudaEvent_t *event) {
    HANDLE_ERROR(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    bench_to_free.push_back([e = *event] { return cudaEventDestroy(e); });
}

// Lets the blocks of a kernel have more than 48 KiB of dynamic shared memory. Returns the kernel.
template <class Kernel> static inline Kernel *bench_shared(Kernel *kernel, size_t bytes) {
    HANDLE_ERROR(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    return kernel;
}

// call(memory, bytes) calls a function of CUB. The first time, which is not timed, its memory is allocated:
// without memory it only says how much it needs.
template <class Call> static inline void bench_cub(Call call) {
    static char *memory = NULL;
    static size_t bytes = 0;
    if (!memory) {
        HANDLE_ERROR(call(NULL, bytes));
        bench_malloc(&memory, bytes);
    }
    HANDLE_ERROR(call(memory, bytes));
}

// ---- the device ----

// The data that all tables of a program share.
struct BenchDevice {
    cudaDeviceProp prop;
    int rungs;      // of the longest table
    bool ok = true; // whether all results were right
    cudaEvent_t start, stop;
    char *flush; // four times the size of the L2 cache
    size_t flush_bytes;
};

static inline BenchDevice *bench_device(void) {
    static BenchDevice *device = NULL;
    if (!device) {
        device = new BenchDevice();
        HANDLE_ERROR(cudaGetDeviceProperties(&device->prop, options.device));
        HANDLE_ERROR(cudaEventCreate(&device->start));
        HANDLE_ERROR(cudaEventCreate(&device->stop));
        device->flush_bytes = 4 * (size_t)max_of(device->prop.l2CacheSize, 1 << 20);
        device->flush_bytes = min_of(device->flush_bytes, BENCH_SIZE(1 << 30, 1 << 24));
        bench_malloc(&device->flush, device->flush_bytes);
        HANDLE_ERROR(cudaMemset(device->flush, 0x5a, device->flush_bytes));
    }
    return device;
}

// ---- limits ----

// Reads n words of 16 bytes. The memory is at most BENCH_READ bytes; if n is more, it is read again from its
// beginning. The result is stored in *out in a case that hardly occurs; without any use of it, nvcc would
// remove the loads.
const size_t BENCH_READ = (size_t)1 << 30;
template <int threads> __global__ void bench_read_kernel(const int4 *data, size_t n, int *out) {
    int x = 0;
#pragma unroll 4
    for (size_t i = threadIdx.x + blockIdx.x * (size_t)threads; i < n; i += (size_t)threads * gridDim.x) {
        int4 word = data[i % (BENCH_READ / sizeof(int4))];
        x ^= word.x ^ word.y ^ word.z ^ word.w;
    }
    if (x == 1)
        *out = x;
}

static inline void bench_read(const void *data, size_t bytes, int *out, cudaStream_t stream = 0) {
    bench_read_kernel<256><<<1024, 256, 0, stream>>>((const int4 *)data, bytes / sizeof(int4), out);
    HANDLE_LAUNCH();
}

// Computes BENCH_FMAS multiplications with addition, without memory. Each thread has independent chains.
const size_t BENCH_FMA_THREADS = BENCH_SIZE(1 << 24, 1 << 11);
const unsigned BENCH_FMA_TURNS = 128, BENCH_FMA_CHAINS = 16;
const double BENCH_FMAS = (double)BENCH_FMA_THREADS * BENCH_FMA_TURNS * BENCH_FMA_CHAINS;

template <unsigned chains>
__global__ void __launch_bounds__(256) bench_fma_kernel(float *out, float x, float y) {
    float sum[chains];
    for (unsigned i = 0; i < chains; i++)
        sum[i] = threadIdx.x + i;
#pragma unroll 16
    for (unsigned turn = 0; turn < BENCH_FMA_TURNS; turn++)
        for (unsigned i = 0; i < chains; i++)
            sum[i] = sum[i] * x + y;
    for (unsigned i = 1; i < chains; i++)
        sum[0] += sum[i];
    if (sum[0] == 0) // never, but nvcc does not know it and keeps the loop
        *out = 0;
}

static inline void bench_fma(float *out, cudaStream_t stream = 0) {
    bench_fma_kernel<BENCH_FMA_CHAINS><<<BENCH_FMA_THREADS / 256, 256, 0, stream>>>(out, 0.999f, 1);
    HANDLE_LAUNCH();
}

template <int> __global__ void bench_empty_kernel(void) {}

static inline void bench_empty(void) {
    bench_empty_kernel<0><<<1, 32>>>();
    HANDLE_LAUNCH();
}

// The limit of a table that has no row for it: as many bytes of device memory are read, or copied, as the
// work has. For require_memory(): bench_memory().
static struct BenchLimit {
    char *memory;
    size_t bytes;
} bench_limit;

static inline size_t bench_memory(size_t bytes) {
    return min_of(bytes, BENCH_READ) + bench_device()->flush_bytes;
}

static inline void bench_run_limit(void) {
    const BenchLimit &l = bench_limit;
    if (bench.reads)
        bench_read(l.memory, bench.work, (int *)bench_device()->flush);
    else
        HANDLE_ERROR(
            cudaMemcpyAsync(l.memory + l.bytes / 2, l.memory, l.bytes / 2, cudaMemcpyDeviceToDevice));
}

// ---- one run ----

// Whether a run may find data of the previous run in the L2 cache.
static inline bool bench_in_l2(void) {
    return !CPU_BACKEND && bench.footprint && bench.footprint < bench_device()->flush_bytes;
}

// The time of one run. The L2 cache is flushed by reading four times its size; a memset would leave modified
// cache lines, whose write-back would fall into the time of the run. The flush also keeps the device busy
// until the host has enqueued the run, so launch overhead is hidden. With `warm`, a run that is not timed
// comes in between. In a profiler it is a range with the name of the rung.
static inline float bench_once(const Rung &rung, bool warm) {
    BenchDevice *d = bench_device();
    nvtxRangePushA(rung.name);
    if (bench.host_clock) {
        HANDLE_ERROR(cudaDeviceSynchronize());
        float ms = host_ms([&] {
            rung.run();
            HANDLE_ERROR(cudaDeviceSynchronize());
        });
        nvtxRangePop();
        return ms;
    }
    if (!CPU_BACKEND && bench.footprint)
        bench_read(d->flush, d->flush_bytes, (int *)d->flush);
    if (warm)
        rung.run();
    float ms;
    HANDLE_ERROR(cudaEventRecord(d->start));
    rung.run();
    HANDLE_ERROR(cudaEventRecord(d->stop));
    HANDLE_ERROR(cudaEventSynchronize(d->stop));
    HANDLE_ERROR(cudaEventElapsedTime(&ms, d->start, d->stop));
    nvtxRangePop();
    return ms;
}

// On a terminal, says on stderr what is being measured, in a line that the next one replaces; "": removes it.
static inline void bench_progress(const char *name) {
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s%s", name, *name ? " …" : "");
}

// Before the run of such a row: overwrites its result with other bytes. After it (`ran`): verifies the
// result. Of each part only the first and the last 16 MiB, which takes little time.
static inline bool bench_check_left(const Rung &rung, bool ran) {
    const BenchLimit &l = bench_limit;
    std::vector<BenchLeft> left;
    if (rung.run == bench_run_limit && !bench.reads)
        left = {{l.memory + l.bytes / 2, l.memory, l.bytes / 2}};
    else if (bench.left && rung.run != bench_run_limit && rung.run != bench_empty)
        left = bench.left(rung.name);
    const size_t most = 1 << 24;
    HostArray<int> expected(most / sizeof(int)), got(most / sizeof(int));
    bool ok = true;
    for (const BenchLeft &part : left) {
        const size_t bytes = min_of(most, part.bytes), n = bytes / sizeof(int);
        for (size_t at : {(size_t)0, part.bytes - bytes}) {
            char *to = (char *)part.to + at;
            memset(expected, part.value, bytes);
            if (part.from)
                HANDLE_ERROR(cudaMemcpy(expected, (const char *)part.from + at, bytes, cudaMemcpyDefault));
            for (size_t i = 0; i < n && !ran; i++)
                expected[i] = ~expected[i];
            HANDLE_ERROR(ran ? cudaMemcpy(got, to, bytes, cudaMemcpyDefault)
                             : cudaMemcpy(to, expected, bytes, cudaMemcpyDefault));
            ok = (!ran || n == 0 || check_ints(rung.name, got, expected, n)) && ok;
        }
    }
    return ok;
}

// The time of one run with the L2 cache flushed, whose result is verified.
static inline float bench_verified(BenchRow *row) {
    bench_progress(row->rung->name);
    bool alone = bench_alone(*row->rung);
    alone ? (void)bench_check_left(*row->rung, false) : poison();
    float ms = bench_once(*row->rung, false);
    HANDLE_ERROR(cudaDeviceSynchronize());
    row->ok = (alone ? bench_check_left(*row->rung, true) : check(row->rung->name, &row->error)) && row->ok;
    return ms;
}

// ---- a table ----

// The reason why a row cannot be run, such as "needs graphs"; empty if it can.
static inline std::string bench_lacking(const Rung &rung) {
    const cudaDeviceProp &prop = bench_device()->prop;
    if (rung.needs && rung.needs())
        return rung.needs();
    if (rung.sm && (CPU_BACKEND || 10 * prop.major + prop.minor < rung.sm))
        return "needs sm_" + std::to_string(rung.sm);
    return "";
}

// The number of runs to time when one takes `ms`: --runs, or as many as fit into 100 ms (on the CPU back end
// 20 ms), within limits. One that takes more than 100 ms is timed once.
static inline int bench_runs(float ms) {
    int least = BENCH_SIZE(max_of(3, min_of(11, (int)(300 / ms))), 3);
    return options.runs ? options.runs
           : ms > 100   ? 1
                        : max_of(least, min_of(101, (int)(BENCH_SIZE(100, 20) / ms)));
}

static inline void bench_time(std::vector<BenchRow> &rows) {
    bool in_l2 = bench_in_l2();
    int most = 0;
    for (BenchRow &row : rows) {
        if (!row.skipped.empty())
            continue;
        float ms = bench_verified(&row);
        if (ms < 100)
            ms = bench_once(*row.rung, in_l2);
        row.runs = row.ok ? bench_runs(ms) : 0; // a wrong result has no time
        if (row.runs == 1 && ms > 500) {        // too long for a second run
            row.ms = row.cold = {ms};
            row.runs = 0;
        }
        most = max_of(most, row.runs);
    }
    for (int i = 0; i < most; i++)
        for (BenchRow &row : rows) {
            if (i >= row.runs)
                continue;
            if (in_l2)
                row.ms.push_back(bench_once(*row.rung, true));
            bool last = i == row.runs - 1;
            float ms = last ? bench_verified(&row) : bench_once(*row.rung, false);
            HANDLE_ERROR(cudaDeviceSynchronize());
            (in_l2 ? row.cold : row.ms).push_back(ms);
        }
    for (BenchRow &row : rows) {
        std::sort(row.ms.begin(), row.ms.end());
        std::sort(row.cold.begin(), row.cold.end());
    }
}

// Verifies and times the rungs and prints the table. Its column "x book" compares with the first rung: the
// book's kernel, or the plainest one if the book has none. With --kernel N only rung N and the limits are
// run. A table without a limit gets one, a copy within device memory or a read of it; each has the launch of
// an empty kernel, which is also a limit. Returns whether all results were right.
template <size_t count> static inline bool bench_run(const Rung (&rungs)[count]) {
    BenchDevice *d = bench_device();
    Rung limit = {"device-to-device copy", "reads and writes counted", bench_run_limit, LIMIT};
    if (bench.reads)
        limit.name = "read", limit.idea = "as many bytes, alone";
    Rung empty = {"empty kernel", "launch overhead", bench_empty, LIMIT};
    std::vector<BenchRow> rows;
    bool has_limit = false;
    int number = 0;
    for (const Rung &rung : rungs) {
        BenchRow row = {&rung, rung.kind == RUNG ? number++ : -1, bench_lacking(rung)};
        has_limit |= rung.kind == LIMIT;
        if (options.kernel < 0 || bench_alone(rung) || row.number == options.kernel)
            rows.push_back(row);
    }
    d->rungs = max_of(d->rungs, number);
    if (options.kernel >= number) // another table of the program may have that rung
        return true;

    if (!has_limit) {
        bench_limit.bytes = (min_of((size_t)bench.work, BENCH_READ) / 32 + 1) * 32;
        HANDLE_ERROR(cudaMalloc(&bench_limit.memory, bench_limit.bytes));
        HANDLE_ERROR(cudaMemset(bench_limit.memory, 0x5a, bench_limit.bytes));
        limit.work = bench.reads ? bench.work : bench_limit.bytes;
        rows.push_back({&limit, -1, ""});
    }
    rows.push_back({&empty, -1, ""});
    bench_time(rows);
    bench_progress("");
    (options.json ? bench_add_json : bench_print_table)(rows, bench_in_l2()); // JSON is printed at the end
    HANDLE_ERROR(cudaFree(bench_limit.memory));
    bench_limit = BenchLimit();
    bool ok = std::all_of(rows.begin(), rows.end(), [](const BenchRow &row) { return row.ok; });
    d->ok = d->ok && ok;
    return ok;
}

// After the last bench_run: checks --kernel, prints the JSON and frees what bench_malloc() and the like have
// made, and `arrays`, which are host memory. Returns the exit status: failure if a result of a table was
// wrong, or not `ok`.
static inline int bench_finish(std::initializer_list<void *> arrays = {}, bool ok = true) {
    BenchDevice *d = bench_device();
    if (!d->rungs)
        quit(EXIT_FAILURE, "no table was run");
    if (options.kernel >= d->rungs)
        quit(EXIT_USAGE, "--kernel %d: must be from 0 to %d", options.kernel, d->rungs - 1);
    if (options.json)
        bench_print_json(d->prop);
    HANDLE_ERROR(cudaEventDestroy(d->start));
    HANDLE_ERROR(cudaEventDestroy(d->stop));
    for (auto &free_one : bench_to_free)
        HANDLE_ERROR(free_one());
    for (void *array : arrays)
        free(array);
    ok = ok && d->ok;
    delete d;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
