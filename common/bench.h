// SPDX-License-Identifier: MIT
// The harness of the ladders: the same work done by several kernels and by libraries, each checked,
// timed in turn, and checked again; a table of the times, or JSON with --json.
#ifndef COMMON_BENCH_H
#define COMMON_BENCH_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#include "book.h"

// What a size should be by default: `gpu` fills an H200, `cpu` is done soon on the CPU back end.
#define BENCH_SIZE(gpu, cpu) ((size_t)(CPU_BACKEND ? (cpu) : (gpu)))

enum BenchKind {
    RUNG,
    PEER, // a library that does the same
    LIMIT // all that the work has to do in any case, or a part of it; of several the slowest
          // counts; not checked
};

struct Rung {
    const char *name, *idea; // what it is, and in a few words what changed
    void (*run)(void);       // starts all of the work; what it needs is allocated before
    BenchKind kind = RUNG;
    int sm = 0;      // least compute capability times ten; 0: portable, runs on the CPU back end as well
    double work = 0; // 0: that of the Bench
    const char *(*needs)(void) = NULL; // says what the work at hand lacks for it: "needs …", or NULL
};

// How far results are off, beside a reference in double. NAN: not told.
struct BenchError {
    double max, rms;
};

struct Bench {
    const char *title;    // what the work is, for the table: "268435456 ints"
    const char *data;     // which of several data sets: "uniform"; NULL where there is one
    size_t size;          // the --size that this is
    double work;          // bytes that have to move, or operations that have to be done, in one run
    const char *unit;     // of work a second: "GB/s", "GFLOP/s"
    size_t footprint;     // bytes of device memory in use; 0: the L2 cache has no part in it
    const Rung *rungs;    // the book's kernel first
    int count;            // of rungs
    void (*poison)(void); // spoils the output, so that what a run leaves out shows
    bool (*check)(const char *name, BenchError *error); // the output; may set the error
    // Time with the clock of the host, from the call until the device is idle, and not by events.
    bool host_clock = false;
};

const int BENCH_RUNS = 11;

// What was measured of a rung. Times in milliseconds.
struct BenchRow {
    const Rung *rung;
    int number;          // -1: a peer or a limit
    std::string skipped; // why it was not run
    bool ok;
    std::vector<float> ms, cold; // cold: with nothing in the L2 cache, where the data would fit
    int runs;
    BenchError error;
    double median() const { return ms.empty() ? NAN : ms[ms.size() / 2]; }
};

// ---- limits of the device ----

// Reads and writes as fast as the device copies.
struct BenchLimit {
    void *from, *to;
    size_t bytes;
};
static BenchLimit bench_limit;

static inline void bench_copy(void) {
    HANDLE_ERROR(
        cudaMemcpyAsync(bench_limit.to, bench_limit.from, bench_limit.bytes, cudaMemcpyDeviceToDevice));
}

// Reads what fills the L2 cache several times. Not a memset: what that leaves in the cache has to
// be written to memory first, in the time of the run that follows.
template <int blocks> __global__ void bench_flush(const int4 *data, size_t n, int *out) {
    int x = 0;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += blocks * blockDim.x)
        x ^= data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;
    if (x == 1) // never: all words are the same, and there is an even number of them
        *out = x;
}

// ---- measuring ----

struct BenchDevice {
    cudaDeviceProp prop;
    int rungs; // most of all tables
    cudaEvent_t start, stop;
    char *flush; // four times the L2 cache
    size_t flush_bytes;
};

static inline BenchDevice *bench_device(void) {
    static BenchDevice *device = NULL;
    if (!device) {
        device = new BenchDevice();
        int id;
        HANDLE_ERROR(cudaGetDevice(&id));
        HANDLE_ERROR(cudaGetDeviceProperties(&device->prop, id));
        HANDLE_ERROR(cudaEventCreate(&device->start));
        HANDLE_ERROR(cudaEventCreate(&device->stop));
        device->flush_bytes = 4 * (size_t)std::max(device->prop.l2CacheSize, 1 << 20);
        device->flush_bytes = std::min(device->flush_bytes, BENCH_SIZE(1 << 30, 1 << 24));
        HANDLE_ERROR(cudaMalloc((void **)&device->flush, device->flush_bytes));
        HANDLE_ERROR(cudaMemset(device->flush, 0x5a, device->flush_bytes));
    }
    return device;
}

// Whether a run may find in the L2 cache what the one before left there.
static inline bool bench_in_l2(const Bench &bench) {
    return BENCH_SIZE(1, 0) && bench.footprint && bench.footprint < bench_device()->flush_bytes;
}

// What is copied where no row is a limit, and the memory for that, in bytes: for require_memory.
static inline size_t bench_limit_bytes(size_t footprint) {
    return std::min(std::max(footprint / 2, bench_device()->flush_bytes), (size_t)1 << 30);
}

static inline size_t bench_memory(size_t footprint) {
    return 2 * bench_limit_bytes(footprint);
}

// One run, in milliseconds. Before it the flush throws everything out of the L2 cache, and keeps
// the device busy until the host has enqueued what follows; `warm`: a run that is not timed
// follows.
static inline float bench_once(const Bench &bench, const Rung &rung, bool warm) {
    BenchDevice *d = bench_device();
    float ms;
    if (bench.host_clock) {
        HANDLE_ERROR(cudaDeviceSynchronize());
        auto start = std::chrono::steady_clock::now();
        rung.run();
        HANDLE_ERROR(cudaDeviceSynchronize());
        std::chrono::duration<float, std::milli> time = std::chrono::steady_clock::now() - start;
        return time.count();
    }
    if (BENCH_SIZE(1, 0) && bench.footprint) {
        bench_flush<1024><<<1024, 256>>>((int4 *)d->flush, d->flush_bytes / sizeof(int4), (int *)d->flush);
        HANDLE_LAUNCH();
    }
    if (warm)
        rung.run();
    HANDLE_ERROR(cudaEventRecord(d->start));
    rung.run();
    HANDLE_ERROR(cudaEventRecord(d->stop));
    HANDLE_ERROR(cudaEventSynchronize(d->stop));
    HANDLE_ERROR(cudaEventElapsedTime(&ms, d->start, d->stop));
    return ms;
}

// Poisons the output, runs and checks. Returns the time, of a run that is a warm-up as well.
static inline float bench_checked(const Bench &bench, BenchRow *row) {
    if (row->rung->kind != LIMIT && bench.poison)
        bench.poison();
    float ms = bench_once(bench, *row->rung, false);
    HANDLE_ERROR(cudaDeviceSynchronize());
    if (row->rung->kind != LIMIT)
        row->ok = bench.check(row->rung->name, &row->error) && row->ok;
    return ms;
}

// For Rung.needs
static inline const char *bench_needs_graphs(void) {
    return BENCH_SIZE(1, 0) ? NULL : "needs CUDA graphs, which the CPU back end lacks";
}

static inline std::string bench_lacking(const Rung &rung) {
    if (rung.needs && rung.needs())
        return rung.needs();
#ifndef __NVCC__
    if (rung.sm)
        return "needs sm_" + std::to_string(rung.sm);
#endif
    const cudaDeviceProp &prop = bench_device()->prop;
    if (10 * prop.major + prop.minor < rung.sm)
        return "needs sm_" + std::to_string(rung.sm);
    return "";
}

// ---- results ----

static inline std::string bench_format(const char *format, double value) {
    char text[64];
    snprintf(text, sizeof text, format, value);
    return text;
}

static inline std::string bench_number(double value) {
    return isfinite(value) ? bench_format("%.6g", value) : "null";
}

static inline std::string bench_string(const char *text) {
    std::string quoted = "\"";
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            quoted += '\\';
        quoted += *c;
    }
    return quoted + '"';
}

struct BenchSummary {
    double limit;      // rate of the slowest one; NAN on the CPU back end, where a copy from cache to
                       // cache or of few threads is no limit
    double book, peer; // times of the book's kernel and the best peer
    bool in_l2;
};

static inline BenchSummary bench_summary(const Bench &bench, const std::vector<BenchRow> &rows) {
    BenchSummary s = {NAN, NAN, NAN, false};
    for (const BenchRow &row : rows) {
        double work = row.rung->work ? row.rung->work : bench.work;
        if (row.rung->kind == LIMIT && !CPU_BACKEND)
            s.limit = fmin(s.limit, work / row.median() / 1e6);
        if (row.rung->kind == PEER)
            s.peer = fmin(s.peer, row.median());
        if (row.number == 0)
            s.book = row.median();
    }
    s.in_l2 = bench_in_l2(bench);
    return s;
}

// Pads to the width that is seen: bytes that go on with a UTF-8 character take none.
static inline std::string bench_pad(std::string text, size_t width) {
    size_t seen = 0;
    for (unsigned char c : text)
        seen += (c & 0xc0) != 0x80;
    return seen < width ? text + std::string(width - seen, ' ') : text;
}

static inline void bench_print(const Bench &bench, const std::vector<BenchRow> &rows) {
    static bool first = true;
    if (first)
        print_device(options.device);
    first = false;
    BenchSummary s = bench_summary(bench, rows);
    size_t name = 6, idea = 12;
    for (const BenchRow &row : rows) {
        name = std::max(name, strlen(row.rung->name));
        idea = std::max(idea, strlen(row.rung->idea));
    }
    printf("%s%s%s%s\n", bench.title, bench.data ? ", " : "", bench.data ? bench.data : "",
           s.in_l2 ? "; in L2, and cold beside it" : "");
    printf(" #  %s %s %11s %9s %9s %s%9s %8s %7s %7s  %s\n", bench_pad("kernel", name).c_str(),
           bench_pad("what changed", idea).c_str(), "median ms", "min", "max", s.in_l2 ? "     cold " : "",
           bench.unit, "of limit", "x book", "x peer", "verified");
    for (const BenchRow &row : rows) {
        std::string number = row.number < 0 ? "-" : std::to_string(row.number);
        printf("%2s  %s %s ", number.c_str(), bench_pad(row.rung->name, name).c_str(),
               bench_pad(row.rung->idea, idea).c_str());
        if (!row.skipped.empty()) {
            printf("%s\n", row.skipped.c_str());
            continue;
        }
        if (row.ms.empty()) {
            printf("%*s wrong, not timed\n", 10, "");
            continue;
        }
        double ms = row.median(), work = row.rung->work ? row.rung->work : bench.work;
        double rate = work / ms / 1e6;
        printf("%11.5f %9.5f %9.5f ", ms, row.ms.front(), row.ms.back());
        if (s.in_l2)
            printf("%9.5f ", row.cold.empty() ? NAN : row.cold[row.cold.size() / 2]);
        printf("%9.1f ", rate);
        auto ratio = [](double value, const char *format) {
            return isfinite(value) ? bench_format(format, value) : std::string("-");
        };
        bool same = row.rung->kind != LIMIT;
        printf("%8s %7s %7s  %s", ratio(100 * rate / s.limit, "%.1f%%").c_str(),
               ratio(same ? s.book / ms : NAN, "%.2f").c_str(),
               ratio(same ? s.peer / ms : NAN, "%.3f").c_str(),
               !same    ? "-"
               : row.ok ? "yes"
                        : "NO");
        if (isfinite(row.error.max))
            printf(", off by %.2g", row.error.max);
        if (isfinite(row.error.rms))
            printf(", rms %.2g", row.error.rms);
        printf("\n");
    }
    printf("\n");
    fflush(stdout);
}

static inline std::string &bench_json(void) {
    static std::string json;
    return json;
}

static inline void bench_record(const Bench &bench, const std::vector<BenchRow> &rows) {
    static const char *const kinds[] = {"rung", "peer", "limit"};
    BenchSummary s = bench_summary(bench, rows);
    for (const BenchRow &row : rows) {
        double ms = row.median(), work = row.rung->work ? row.rung->work : bench.work;
        double rate = work / ms / 1e6;
        bool same = row.rung->kind != LIMIT;
        std::string &json = bench_json();
        json += json.empty() ? "\n" : ",\n";
        json += "    {\"size\": " + std::to_string(bench.size);
        json += ", \"title\": " + bench_string(bench.title);
        json += ", \"data\": " + (bench.data ? bench_string(bench.data) : "null");
        json += ", \"kind\": " + bench_string(kinds[row.rung->kind]);
        json += ", \"number\": " + (row.number < 0 ? "null" : std::to_string(row.number));
        json += ", \"name\": " + bench_string(row.rung->name);
        json += ", \"idea\": " + bench_string(row.rung->idea);
        json += ", \"skipped\": " + (row.skipped.empty() ? "null" : bench_string(row.skipped.c_str()));
        json += ", \"runs\": " + std::to_string(row.ms.size());
        json += ", \"median_ms\": " + bench_number(ms);
        json += ", \"min_ms\": " + bench_number(row.ms.empty() ? NAN : row.ms.front());
        json += ", \"max_ms\": " + bench_number(row.ms.empty() ? NAN : row.ms.back());
        json += ", \"cold_ms\": " + bench_number(row.cold.empty() ? NAN : row.cold[row.cold.size() / 2]);
        json += ", \"in_l2\": " + std::string(s.in_l2 ? "true" : "false");
        json += ", \"rate\": " + bench_number(rate);
        json += ", \"unit\": " + bench_string(bench.unit);
        json += ", \"of_limit\": " + bench_number(rate / s.limit);
        json += ", \"times_book\": " + bench_number(same ? s.book / ms : NAN);
        json += ", \"times_peer\": " + bench_number(same ? s.peer / ms : NAN);
        json += ", \"verified\": " + std::string(!same || !row.skipped.empty() ? "null"
                                                 : row.ok                      ? "true"
                                                                               : "false");
        json += ", \"max_error\": " + bench_number(row.error.max);
        json += ", \"rms_error\": " + bench_number(row.error.rms) + "}";
    }
}

// Checks every rung, times them in turn, and checks each again after its last timed run; then
// prints the table. With --kernel N only rung N and the limit. Where no row is a LIMIT, one is
// added: a copy from device to device, read and written. Returns whether all
// results were right.
static inline bool bench_run(const Bench &bench) {
    BenchDevice *d = bench_device();
    Rung limit = {"copy, device to device", "read and written", bench_copy, LIMIT, 0, 0};
    std::vector<BenchRow> rows;
    bool has_limit = false;
    int number = 0;
    for (int i = 0; i < bench.count; i++) {
        BenchRow row = {&bench.rungs[i], bench.rungs[i].kind == RUNG ? number++ : -1, "", true, {}, {}, 0,
                        {NAN, NAN}};
        has_limit |= row.rung->kind == LIMIT;
        if (options.kernel >= 0 && row.rung->kind != LIMIT && row.number != options.kernel)
            continue;
        row.skipped = bench_lacking(*row.rung);
        rows.push_back(row);
    }
    d->rungs = std::max(d->rungs, number);
    if (options.kernel >= number) // another table may have it
        return true;

    if (!has_limit) {
        bench_limit.bytes = bench_limit_bytes(bench.footprint);
        HANDLE_ERROR(cudaMalloc(&bench_limit.from, bench_limit.bytes));
        HANDLE_ERROR(cudaMalloc(&bench_limit.to, bench_limit.bytes));
        HANDLE_ERROR(cudaMemset(bench_limit.from, 0x5a, bench_limit.bytes));
        limit.work = 2.0 * bench_limit.bytes;
        rows.push_back({&limit, -1, "", true, {}, {}, 0, {NAN, NAN}});
    }

    bool in_l2 = bench_in_l2(bench), ok = true;
    int most = 0;
    for (BenchRow &row : rows) {
        if (!row.skipped.empty())
            continue;
        bench_checked(bench, &row);
        float ms = bench_once(bench, *row.rung, in_l2);
        // A tenth of a second a row, but not fewer than BENCH_RUNS unless they are long.
        row.runs = ms > 1000  ? 1
                   : ms > 100 ? 3
                              : std::max(BENCH_RUNS, std::min(101, (int)(BENCH_SIZE(100, 20) / ms)));
        if (!row.ok) { // wrong is wrong, however fast
            row.runs = 0;
            ok = false;
        }
        most = std::max(most, row.runs);
    }
    // In turn, so that a clock that drifts does so for all.
    for (int i = 0; i < most; i++)
        for (BenchRow &row : rows) {
            if (i >= row.runs)
                continue;
            bool last = i == row.runs - 1 && row.rung->kind != LIMIT;
            if (in_l2)
                row.ms.push_back(bench_once(bench, *row.rung, true));
            if (last && bench.poison)
                bench.poison();
            (in_l2 ? row.cold : row.ms).push_back(bench_once(bench, *row.rung, false));
            HANDLE_ERROR(cudaDeviceSynchronize());
            if (last) {
                row.ok = bench.check(row.rung->name, &row.error) && row.ok;
                ok = ok && row.ok;
            }
        }
    for (BenchRow &row : rows) {
        std::sort(row.ms.begin(), row.ms.end());
        std::sort(row.cold.begin(), row.cold.end());
    }
    if (options.json)
        bench_record(bench, rows);
    else
        bench_print(bench, rows);
    HANDLE_ERROR(cudaFree(bench_limit.from));
    HANDLE_ERROR(cudaFree(bench_limit.to));
    bench_limit = BenchLimit();
    return ok;
}

// After the last bench_run: prints the JSON, frees what the harness allocated.
static inline void bench_finish(void) {
    BenchDevice *d = bench_device();
    if (d->rungs && options.kernel >= d->rungs)
        quit(EXIT_USAGE, "--kernel %d: must be from 0 to %d", options.kernel, d->rungs - 1);
    if (options.json) {
        int driver, runtime;
        HANDLE_ERROR(cudaDriverGetVersion(&driver));
        HANDLE_ERROR(cudaRuntimeGetVersion(&runtime));
        printf("{\"program\": %s, \"device\": %s, \"backend\": \"%s\", \"compute_capability\": "
               "\"%d.%d\", \"multiprocessors\": %d, \"l2_bytes\": %d, \"memory_bytes\": %zu, "
               "\"cuda_driver\": %d, \"cuda_runtime\": %d, \"seed\": %llu, \"rows\": [%s]}\n",
               bench_string(options.program).c_str(), bench_string(d->prop.name).c_str(),
               BENCH_SIZE(1, 0) ? "gpu" : "cpu", d->prop.major, d->prop.minor, d->prop.multiProcessorCount,
               d->prop.l2CacheSize, d->prop.totalGlobalMem, driver, runtime, (unsigned long long)options.seed,
               bench_json().c_str());
    }
    HANDLE_ERROR(cudaEventDestroy(d->start));
    HANDLE_ERROR(cudaEventDestroy(d->stop));
    HANDLE_ERROR(cudaFree(d->flush));
    delete d;
}

#endif
