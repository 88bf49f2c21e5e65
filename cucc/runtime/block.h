// SPDX-License-Identifier: MIT
// A worker and the block that it runs: the declarations that workers.cpp, block.cpp and warp.cpp share. A
// worker is a host thread that runs blocks, one at a time.
//
// The threads start as plain function calls in one loop (Call::run in kernel.h), on one stack. A thread that
// has to wait keeps that stack as its own, and the loop continues on another one (docs/execution.md).
#pragma once
#define CUDA_CPU_ENGINE
#include <cuda_runtime.h>
#include "call.h"
#include "fiber.h"

namespace cuda_cpu {

struct Warp {
    unsigned waiting, ended; // lane masks: in a warp operation; ended
    unsigned asking;         // lanes of `waiting` that wait for all lanes that can reach the same line
    unsigned at_tile;        // lanes at the barrier of a tile of several warps
    unsigned elsewhere; // lanes that wait for the barrier of the block at another line than barrier_site …
    Site other_site;    // … and that line
};

// The arguments of a thread's last warp operation.
struct Lane {
    WarpOp op;
    uint8_t width;
    unsigned mask;
    int operand;
    Site site;         // where the warp operation is
    unsigned barriers; // number of barriers that the block had passed by then
};

struct Worker;

// Detects a worker that only polls (watchdog.cpp). Times are in seconds, and other workers read them.
class Watch {
  public:
    explicit Watch(const Worker &worker);
    ~Watch();
    // Called when all threads of a block that can run have yielded. Ends the program after too long.
    void only_polling();
    std::atomic<bool> at_grid_barrier{false};

  private:
    const Worker &worker;
    uint64_t block = 0, seen = 0;          // the block that was seen last, and its number of events
    unsigned rounds = 0;                   // calls since there was progress
    std::atomic<double> since{0}, last{0}; // start of the polling (0: there has been progress); last call
};

// While it exists, ends the program when the launch takes too long (watchdog.cpp).
struct TimeLimit {
    TimeLimit(const Kernel &kernel, const std::atomic<uint64_t> &distributed);
    ~TimeLimit();
};

struct Worker : Block {
    Watch watch{*this};
    const Kernel *kernel = nullptr; // null outside a kernel
    bool strict; // a barrier needs all threads of the block, not only those that have not returned

    void *leave[5];              // where run_blocks() continues after end_launch()
    Context home;                // where run_block() continues when every thread has ended
    Fiber native;                // the stack of the host thread
    char *frame;                 // that of run_block() in it
    std::vector<Fiber *> fibers; // all other stacks
    std::vector<Fiber *> spare;  // stacks that no thread uses
    bool waited = false;         // a thread of this block has waited; the members below are valid
    unsigned accounted;          // all threads at earlier positions have started
    unsigned ended;              // number of threads that have ended
    bool ended_late;             // one of them after a barrier of the block
    unsigned asking;             // number of threads that wait in WarpOp::active or WarpOp::step
    unsigned streak;             // number of warp operations completed since the last barrier
    unsigned released_end;       // end, in `ready`, of the threads that the last barrier released
    unsigned hidden; // number of threads in `ready` that `tail` does not count while the common loop runs
    unsigned yielded_first, yielded_end;
    bool start_another; // next() must start a thread that has not run yet
    BlockVote barrier_vote = BlockVote::none;
    int barrier_ayes = 0;
    unsigned barriers = 0;  // number of barriers that the block has passed
    bool elsewhere = false; // threads wait at other lines than barrier_site
    Site passed_barrier;    // where the last of them is
    Lane lanes[max_threads]{};
    uint64_t lane_values[max_threads];
    Warp warps[max_threads / warpSize];
    Site last_site[max_threads];   // last barrier or warp operation of threads that have ended: see site_of()
    uint16_t yielded[max_threads]; // ring buffer of the threads that have yielded; they run after all others
    uint16_t shuffled[max_threads]; // storage for Block::order when a schedule permutes it
    uint64_t errors_block = 0;      // block_number of the block that `errors` belongs to
    // The last error of each thread, by linear index; errors[max_threads]: that of an unknown thread
    cudaError_t errors[max_threads + 1];

    // Shared memory: first the dynamic part, then the declared variables. Sizes are in bytes.
    uint64_t arena_block = 0; // block_number of the block that the next members belong to
    size_t arena_used, declared_bytes, dynamic_bytes, shared_limit;
    char *dynamic_memory;
    std::vector<SharedEntry> table;

    Worker();
    ~Worker();
    Worker(const Worker &) = delete;

    void prepare_shared(size_t dynamic_bytes, size_t limit); // once for each launch
    void run_block();
    void abandon_block();                    // its threads do not run again
    unsigned enter(uint3 thread);            // the thread gets its own stack; returns its linear index
    Switch wait(unsigned t);                 // t must wait until it is in `ready` and is chosen
    unsigned lanes_of(unsigned warp) const { // mask of the lanes that exist; the last warp may be partial
        const unsigned here = count - warp * warpSize;
        return here >= 32 ? ~0u : (1u << here) - 1;
    }
    void arrive_elsewhere(unsigned t, Site site); // at a barrier of the block
    void resume_yielded();
    void make_lanes_ready(unsigned warp, unsigned lanes);
    void complete_warp_operation(unsigned warp, bool diagnose = false);
    void answer_warp(unsigned warp, bool all_here);
    void answer_asking();
    void answer_blocked();
    [[noreturn]] void run_fibers();

  private:
    void begin();
    void end_thread(unsigned t);
    void account(unsigned position);
    void loop_returned();
    void release_barrier();
    void check_elsewhere();
    Site site_of(unsigned t) const;
    Context &next();
    [[noreturn]] void stuck();
};

extern __thread Worker *self; // null on a thread that has never run a block

// The grid barrier of a cooperative launch, called by the last thread of a block to arrive (waiting.cpp)
void wait_at_grid_barrier();

// Called by a worker whose threads all poll. When all workers of the grid have called it, and another grid or
// the host thread waits, the grid is suspended (waiting.cpp). Returns when it is resumed.
void suspend_while_polling();

// The worker that runs the calling kernel. Outside kernels, ends the program with a message with `what`.
Worker &in_kernel(const char *what);

// Prints "cuda on the CPU: …", the kernel and the block, and ends the program. It is for errors
// after which the kernel cannot continue: on a GPU it would hang or give wrong results.
[[noreturn]] void kernel_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Ends the launch with a sticky error, as on a GPU: the calling worker leaves its block, and no further block
// starts. Ends the program in a cooperative launch and with sanitizers. For the worker's kernel only.
[[noreturn]] void end_launch(cudaError_t error);

// Installs a signal handler, with a stack for each worker, that reports an illegal address in a kernel.
void watch_faults();

void call_without_arguments(const void *kernel); // wasm.cpp

// The element i of a box of this size
inline uint3 index_in(uint64_t i, uint3 size) {
    return {(unsigned)(i % size.x), (unsigned)(i / size.x % size.y), (unsigned)(i / size.x / size.y)};
}
// For messages: "(3,0,0)", that of element i of a box of this size, and "sum.cu:12"
std::string coordinates(uint3 i);
std::string coordinates(uint64_t i, uint3 size);
bool same_site(Site a, Site b);

} // namespace cuda_cpu
