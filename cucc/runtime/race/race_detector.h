// SPDX-License-Identifier: MIT
// The race detector's records: of accesses, of the threads of a block, and of the work in streams. race.cpp
// checks accesses, race_order.cpp keeps what orders them, race_report.cpp prints, and race_hooks.cpp has the
// functions that instrumented code calls.
#pragma once
#include "race.h"
#include "stream.h"

#ifdef __wasm__ // has no addresses of instructions: the program sets the number of its line (web/playground)
#define __executable_start ((char *)nullptr)
extern "C" const void *race_line;
#else
extern "C" char __executable_start[]; // defined by the linker
#endif

namespace cuda_cpu::race {

struct Access {
    uint32_t place; // address of the instruction, relative to the program's start; 0: a copy
    uint32_t time;  // value of `now`; 0: no access
    uint32_t block, epoch;
    uint16_t clock; // vector clock component of the lane
    uint16_t thread : 10, bytes : 4, atomic : 1, write : 1;
};

constexpr uint32_t the_host = ~0u, a_copy = ~0u - 1; // in Access::block; a library's work counts as a copy
constexpr uint16_t an_allocation = 1;                // in Access::thread of a copy

// The address of an instruction of the program as Access::place.
inline uint32_t place_of(const void *instruction) {
    return (uint32_t)((uintptr_t)instruction - (uintptr_t)__executable_start);
}

// ---- work in streams (race_order.cpp) ----

using Clock = std::map<uint64_t, uint64_t>; // vector clock: stream -> number of its last completed work

struct Task { // a launch, a copy, or a graph
    uint64_t number, stream;
    Clock clock; // the work that it is ordered after
    const char *call;
    std::vector<void *> frames; // the call stack of the program's call
    uint32_t enqueued, begun;
    const char *kernel;
    Site site; // of the launch
    uint3 grid, block;
    // The work that it is ordered after before its threads have called cudaGridDependencySynchronize(). If
    // the launch is dependent, `previous` is the launch before it, else 0.
    Clock early;
    uint64_t previous;
    bool is_launch,
        triggered; // triggered: the kernel has let the next one begin, and made nothing visible to it
};

struct Tasks {
    std::mutex mutex;
    std::map<uint64_t, Task> all;                   // by number
    std::vector<std::pair<uint32_t, uint64_t>> run; // start time and number of each task that has run
    Clock host;                                     // the work that the host has waited for
    unsigned pending = 0;
};
Tasks &tasks();
// The task that ran at this time; null if its record has been deleted. The caller holds the mutex.
const Task *task_at(const Tasks &tasks, uint32_t time);
// True if the access is ordered before the task that runs now, or before what the host does now.
// `early`: the thread may not have waited for the kernel before.
bool before_this_task(const Access &access, bool early);
bool before_host(const Access &access);

// The work that runs now. Workers read it.
struct Current {
    const Task *task = nullptr;
    uint32_t task_begun = 0, enqueued = 0; // times
    uint32_t settled = 0;                  // accesses before this time are ordered before this work
    // A dependent launch, whose kernel may begin before the previous one has ended; and `settled` until then
    bool overlaps = false;
    uint32_t early_settled = 0;
    std::atomic<bool> triggered{false}, fenced{false}; // fenced: by __threadfence(), then triggered
    std::atomic<uint32_t> begun{0}; // time of the launch's start or of its last grid barrier
    uint64_t threads = 1;           // threads per block
};
extern Current current;

// A logical clock. It advances at events that order accesses: launches, fences, enqueued work.
extern std::atomic<uint32_t> now;
uint32_t tick();

extern std::atomic<bool> host_matters;     // true if there is work that the host has not waited for
extern std::atomic<uint32_t> host_settled; // accesses before this time happened before what the host does now

// ---- the block of a worker ----

struct Threads {
    uint64_t number = ~0ull; // block_number
    uint32_t block, count, epoch;
    uint32_t fenced, acquired; // times at the last barrier, over all threads
    bool talks;  // a thread has used a fence, acquired something or waited since the last barrier
    bool waited; // for the kernel before: some thread, before the last barrier
    uint32_t waited_lanes[max_threads / 32]; // the same, by warps
    uint32_t fence[max_threads], acquire[max_threads];
    uintptr_t polled[max_threads];         // address of each thread's last volatile read
    uint32_t warp_epoch[max_threads / 32]; // the members below are valid if this equals `epoch`
    uint16_t clock[max_threads];
    uint16_t known[max_threads / 32][32][32];
    std::vector<SharedName> names;

    void begin() {
        number = block_number;
        block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        count = blockDim.x * blockDim.y * blockDim.z;
        epoch = 1;
        fenced = acquired = 0;
        talks = waited = false;
        memset(waited_lanes, 0, sizeof waited_lanes);
        memset(fence, 0, count * sizeof *fence);
        memset(acquire, 0, count * sizeof *acquire);
        memset(polled, 0, count * sizeof *polled);
        memset(warp_epoch, 0, sizeof warp_epoch);
        names.clear();
    }
    // Whether all these bytes belong to one variable in shared memory.
    bool has_shared(uintptr_t address, size_t bytes) const {
        for (const SharedName &n : names)
            if (address - (uintptr_t)n.begin < n.bytes)
                return address - (uintptr_t)n.begin + bytes <= n.bytes;
        return false;
    }
    bool has_waited(unsigned t) const { return waited || waited_lanes[t / 32] >> t % 32 & 1; }
    unsigned lane_clock(unsigned t) const { return warp_epoch[t / 32] == epoch ? clock[t] : 1; }
    bool lane_known(unsigned t, unsigned other, unsigned time) const {
        return warp_epoch[t / 32] == epoch && known[t / 32][t % 32][other % 32] >= time;
    }
};

inline Threads &threads() {
    static __thread Threads *mine;
    if (__builtin_expect(!mine, 0))
        mine = new Threads; // not deleted: the worker threads run until the process exits
    if (mine->number != block_number)
        mine->begin();
    return *mine;
}

// ---- fences with atomics (race_order.cpp) ----

void release(uintptr_t variable);
void acquire(uintptr_t variable);
void fence();
bool is_published(const Access &access);

// ---- the check (race.cpp) ----

inline bool is_shared_memory(uintptr_t address) {
    const char *const arena = current_block->arena;
    return arena && address - (uintptr_t)arena < arena_size;
}

// Checks and records an access by the program. `reads` is also set for an atomic that reads and writes.
void access(uintptr_t address, size_t bytes, bool write, bool atomic, bool reads, const void *instruction);

// ---- reports (race_report.cpp) ----

// `changes`: the thread has read what it writes, as in x += 1.
void report(const Access &earlier, const Access &later, uintptr_t address, size_t bytes, bool changes);
// Reports an access outside of the variables in shared memory, or after the end of an allocation. Reports
// nothing and returns false if no allocation is before the address.
bool report_out_of_bounds(const Access &me, uintptr_t address, size_t bytes);
// `what` is a local variable of another thread, or an index such as threadIdx.
void report_forbidden(const Access &me, const char *what, size_t bytes);
// A read of fresh device or shared memory. Some writes are not seen, such as those by textures, OpenGL and
// libraries, so what is read must also be what fresh memory holds. Without a task, copies and fills are not
// seen either.
void report_uninitialized(const Access &me, uintptr_t address, size_t bytes);

} // namespace cuda_cpu::race
