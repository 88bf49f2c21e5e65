// SPDX-License-Identifier: MIT
/*
 * Records one launch, and draws it (CUDA_CPU_TRACE, docs/tools.md).
 *
 * launch.cpp reports when a worker begins and ends a block. For one block of the launch, block.cpp also
 * reports when its threads reach and pass barriers, and race.cpp, in programs built for checking, every
 * memory access and every basic block (a piece of code without a branch) that they execute. trace.cpp joins
 * the threads to warps, and trace_draw.cpp writes the file.
 */
#pragma once
#include "block.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace cuda_cpu {

enum class EventKind : uint8_t { code, read, write, atomic, barrier };

struct TraceEvent { // of a thread
    uint64_t address;
    uint32_t place; // address of the instruction, relative to the program's start; of a barrier, the line
    uint16_t bytes;
    EventKind kind;
    uint8_t depth; // how many functions are active
};

constexpr unsigned recorded_phases = 64; // the times of this many barriers are recorded

// The record of a block whose threads are recorded. A phase is the time from one barrier to the next.
struct BlockTrace {
    struct Thread {
        std::vector<TraceEvent> events;
        uint8_t depth = 0;
    };
    struct Run { // in which a thread runs; seconds since the launch. It waits from `end` to the end of the
                 // phase
        double begin = -1, end = -1;
    };
    struct Phase {
        double begin, end;
        std::string
            barrier; // the line of the barrier at its end, as in "dot.cu:37"; empty: the end of the block
        std::vector<Run> runs;
    };
    const std::chrono::steady_clock::time_point start;
    const char *arena = nullptr;
    struct Array { // in shared memory
        const char *name;
        uint64_t begin;
        size_t bytes;
    };
    std::vector<Array> arrays;
    double last = 0; // the time of the last event
    unsigned barriers = 0;
    size_t most_events; // of a thread
    bool truncated = false;
    std::vector<Phase> phases;
    std::vector<Thread> threads;

    BlockTrace(std::chrono::steady_clock::time_point start, unsigned count);
    double now() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    void add(unsigned thread, const TraceEvent &event);
    void thread_stops(unsigned thread); // it waits at a barrier, or has ended
};

// The record of the block that this worker runs; null if the threads of that block are not recorded.
extern __thread BlockTrace *traced_block;

// Reports of block.cpp. The site of a barrier is given an own copy of the file's name: so the comparison in
// block_barrier() (kernel.h) fails, and every thread calls meet_block().
void trace_arrival(unsigned thread, Site &barrier_site);
void trace_release(Site site);
// Reports of race.cpp
void trace_event(EventKind kind, const void *address, size_t bytes, uint32_t place);
void trace_call(int change); // the calling thread enters (1) or leaves (-1) a function

// ---- a launch ----

struct TraceSpan { // blocks that a worker has run one after the other
    uint64_t first, last, count;
    double begin, end;
};

struct TraceSetting {
    std::string text, file, kernel, line;
    bool json = false;
    uint64_t launch = 1, block = 0, warp = 0;
};

enum class TraceMemory : uint8_t { shared, global, constant, none };

// An instruction that accesses memory, with the sums over all its executions by warps of the recorded block
struct TraceAccess {
    std::string line;   // as in "dot.cu:41"
    std::string object; // "cache" in shared memory, "allocated at dot.cu:60" in global memory
    uint32_t place;
    TraceMemory memory;
    EventKind kind;
    unsigned bytes;                           // of a lane
    uint64_t count = 0, lanes = 0, turns = 0; // turns: of the banks, or sectors, or different constants
    unsigned most = 0;                        // turns of the access below, which has the most
    unsigned warp = 0;
    uint32_t mask = 0;
    uint64_t address[32]; // of shared memory, the offset in the array
};

struct TraceStep { // a source line that some lanes of a warp execute
    unsigned line; // index of Trace::lines
    uint32_t mask;
    unsigned phase;
    uint32_t place;
    bool memory;
};

struct TraceWarp {
    std::vector<TraceStep> steps;
    unsigned barriers = 0; // that it has reached
};

struct Trace {
    const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    std::string kernel, launched_at, file;
    dim3 grid, block;
    uint64_t blocks, group; // a span is of this many blocks at most
    std::mutex mutex;
    std::deque<std::vector<TraceSpan>> workers;
    BlockTrace *recorded = nullptr;

    std::vector<std::string> lines;
    std::vector<TraceWarp> warps;
    std::vector<TraceAccess> accesses;
    bool steps_known = false; // the program is built for checking

    std::vector<TraceSpan> &new_worker();
    void begin_block(std::vector<TraceSpan> &spans, uint64_t number);
    void end_block(std::vector<TraceSpan> &spans);
};

// Called at the begin of a launch; null if it is not to be recorded. finish_trace() writes the file.
Trace *trace_launch(const Kernel &kernel, const LaunchConfig &config);
void finish_trace(Trace *trace);

// trace_draw.cpp
std::string trace_json(const Trace &trace, const TraceSetting &setting);
std::string trace_svg(const Trace &trace, const TraceSetting &setting);
std::string block_name(const Trace &trace, uint64_t number);
const char *name_of(TraceMemory memory);
const char *name_of(EventKind kind);
std::string how_to_instrument(const Trace &trace);

} // namespace cuda_cpu

// Sets what is to be recorded, as CUDA_CPU_TRACE does; common/lib/options.c calls it for --trace. Returns
// NULL, or what is wrong.
extern "C" const char *cuda_cpu_trace(const char *setting);
