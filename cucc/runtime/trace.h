// SPDX-License-Identifier: MIT
// Records one launch (CUDA_CPU_TRACE). workers.cpp reports its blocks. For one block, block.cpp reports when
// its threads reach and pass barriers, and in programs built for checking race.cpp and race_hooks.cpp report
// every memory access and every basic block (a piece of code without a branch). trace_steps.cpp combines the
// threads of a warp into steps, and trace.cpp writes the file.
#pragma once
#include "race.h"

#include <chrono>
#include <deque>

namespace cuda_cpu {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

enum class EventKind : uint8_t { code, read, write, atomic, barrier };

struct TraceEvent { // a memory access, a basic block or a barrier that a thread executed
    uint64_t address;
    uint32_t place; // address of the instruction, relative to the program's start; of a barrier, the line
    uint16_t bytes;
    EventKind kind;
    uint8_t depth; // depth of nested function calls
};

constexpr unsigned recorded_phases = 64; // largest number of phases whose times are recorded

// The record of a block whose threads are recorded. A phase is the time from one barrier to the next.
struct BlockTrace {
    struct Thread {
        std::vector<TraceEvent> events;
        uint8_t depth = 0;
    };
    struct Run { // of a thread in a phase, in seconds since the launch; then it waits for the barrier
        double begin = -1, end = -1;
    };
    struct Phase {
        double begin, end;
        std::string barrier; // the barrier at its end, such as "dot.cu:37"; empty if the block ends there
        std::vector<Run> runs;
    };
    const std::chrono::steady_clock::time_point start;
    const char *arena = nullptr;
    std::vector<SharedName> arrays;
    double last = 0; // the time of the last event
    unsigned barriers = 0;
    size_t most_events; // limit for each thread
    bool truncated = false;
    std::vector<Phase> phases;
    std::vector<Thread> threads;

    BlockTrace(std::chrono::steady_clock::time_point start, unsigned count);
    double now() const { return seconds_since(start); }
    void add(unsigned thread, const TraceEvent &event);
    void thread_stops(unsigned thread); // it waits at a barrier, or has ended
};

// The record of the block that this worker runs; null if the threads of that block are not recorded.
extern __thread BlockTrace *traced_block;

// Called by block.cpp. trace_arrival() replaces the file's name in the barrier's site by a copy, so that
// block_barrier() (kernel.h) does not take its fast path, and every thread calls meet_block().
void trace_arrival(unsigned thread, Site site, Site &barrier_site);
void trace_release(Site site);
// Called by race.cpp and race_hooks.cpp
void trace_event(EventKind kind, const void *address, size_t bytes, uint32_t place);
void trace_call(int change); // the calling thread enters (1) or leaves (-1) a function

// ---- a launch ----

struct TraceSpan { // blocks that a worker ran one after the other, recorded as one event
    uint64_t first, last, count;
    double begin, end;
};

struct TraceSetting {
    std::string text, file, kernel;
    uint64_t launch = 1, block = 0;
};

enum class TraceMemory : uint8_t { shared, global, constant, none };

// An instruction that accesses memory, with the sums over all its executions by warps of the recorded block
struct TraceAccess {
    std::string line;   // as in "dot.cu:41"
    std::string object; // "cache" in shared memory, "allocated at dot.cu:60" in global memory
    uint32_t place;
    TraceMemory memory;
    EventKind kind;
    unsigned bytes;                           // per lane
    uint64_t count = 0, lanes = 0, turns = 0; // turns of the banks, or sectors, or words of constant memory
    unsigned most = 0;                        // turns of the access with the most, which is described below
    unsigned warp = 0;
    uint32_t mask = 0;
    uint64_t address[32]; // of each lane; in shared memory, the offset in the array
};

struct TraceStep { // a source line that lanes of a warp execute together
    uint32_t mask;
    unsigned phase;
    uint32_t place; // the last one of the line
    bool memory;
};

struct TraceWarp {
    std::vector<TraceStep> steps;
    unsigned barriers = 0; // that the warp has reached
};

struct Trace {
    const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    std::string kernel, launched_at;
    dim3 grid, block;
    uint64_t blocks, group; // group: largest number of blocks in one span
    std::mutex mutex;
    std::deque<std::vector<TraceSpan>> workers;
    BlockTrace *recorded = nullptr;

    std::map<uint32_t, std::string> lines; // of the program's own code, by place
    std::vector<TraceWarp> warps;
    std::vector<TraceAccess> accesses;

    std::vector<TraceSpan> &new_worker();
    void begin_block(std::vector<TraceSpan> &spans, uint64_t number);
    void end_block(std::vector<TraceSpan> &spans);
    void find_steps(); // in a program built for checking: lines, warps and accesses
};

// Called when a launch begins; returns null if it is not recorded. finish_trace() writes the file.
Trace *trace_launch(const Kernel &kernel, const LaunchConfig &config);
void finish_trace(Trace *trace);

} // namespace cuda_cpu
