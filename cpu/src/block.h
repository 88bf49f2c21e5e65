// SPDX-License-Identifier: MIT
/*
 * One worker and the block it runs: what launch.cpp, block.cpp and warp.cpp share.
 *
 * The threads of a block run as plain calls in one loop (run_threads in kernel.h) until one of
 * them has to wait. That thread keeps the stack it is on, and the loop goes on with the next thread
 * on a fresh one. A block whose threads never wait never switches stacks.
 */
#pragma once
#define CUDA_CPU_ENGINE
#include <cuda_runtime.h>
#include "fiber.h"

#include <vector>

namespace cuda_cpu {

constexpr unsigned max_threads = 1024;

enum class State : uint8_t { fresh, ready, at_barrier, at_warp_operation, yielded, ended };

// A thread of the block; filled in only when it, or a later one, has had to wait.
struct Thread {
    Fiber *fiber; // its own stack; null while it is, or was, run by the common loop
    State state;
    Site site; // where it waits, or met a barrier last
    WarpOp op;
    unsigned mask;
    int operand, width;
    uint64_t value, result;
};

struct Warp {
    unsigned waiting, ended; // lanes
};

// First in, first out, each thread at most once.
class Queue {
  public:
    void clear() { head = tail = 0; }
    bool empty() const { return head == tail; }
    void push(unsigned t) { threads[tail++ % max_threads] = (uint16_t)t; }
    unsigned pop() { return threads[head++ % max_threads]; }

  private:
    uint16_t threads[max_threads];
    unsigned head, tail;
};

struct Worker : Block {
    const Kernel *kernel = nullptr; // null outside a kernel

    Fiber native;               // the stack that the worker itself runs on
    std::vector<Fiber *> spare; // stacks between uses
    bool waited = false;        // a thread of this block has; what follows is in use
    Fiber *current;             // the stack that runs now
    unsigned accounted;         // positions before this one are known to have started
    unsigned ended;             // threads
    unsigned asking;            // threads that wait to know which lanes are active
    Queue ready, yielded;
    unsigned at_barrier;
    BlockVote barrier_vote;
    Site barrier_site;
    int barrier_ayes, barrier_result;
    Thread threads[max_threads];
    Warp warps[max_threads / warpSize];
    uint16_t shuffled[max_threads]; // Block::order under a schedule

    char *arena = nullptr;    // shared memory: dynamic first, then what is declared
    uint64_t arena_block = 0; // the block that the next four belong to
    size_t arena_used, declared_bytes, dynamic_bytes, shared_limit;
    char *dynamic_memory;
    std::vector<SharedEntry> table;

    Worker();
    ~Worker();
    Worker(const Worker &) = delete;

    void prepare_shared(size_t dynamic_bytes, size_t limit); // for a launch
    void run_block();
    unsigned enter(uint3 thread); // its linear index; from here on its record is valid
    void wait(unsigned t);        // until another makes it ready
    void make_ready(unsigned t);
    void make_lanes_ready(unsigned warp, unsigned lanes);
    void complete_warp_operation(unsigned warp);
    void answer_active_lanes();
    [[noreturn]] void run_fibers();

  private:
    void end_thread(unsigned t);
    void account(unsigned position);
    void loop_returned();
    Fiber &next();
    [[noreturn]] void stuck();
};

// Inline for the reason that switch_fiber is.
inline __attribute__((always_inline)) void Worker::wait(unsigned t) {
    Thread &me = threads[t];
    if (loop == current) { // the thread keeps this stack, the loop needs another
        me.fiber = current;
        current->thread = t;
        ++accounted;
        loop = nullptr;
    }
    Fiber &mine = *current;
    Fiber &fiber = next();
    if (&fiber != &mine) {
        current = &fiber;
        switch_fiber(mine, fiber);
    }
}

extern __thread Worker *self; // null on a thread that has never run a block

// Waits for all other blocks of a cooperative launch; called once a block (launch.cpp).
void meet_other_blocks();

// The worker of a kernel that calls `what`; ends the program when no kernel runs.
Worker &in_kernel(const char *what);

// Prints "cuda on the CPU: …" and where the current block is, and ends the program: kernels cannot
// go on after what this is used for, and on a GPU they would hang or give wrong results.
[[noreturn]] void kernel_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Turns an illegal address in a kernel into a message; called by each worker.
void watch_faults();

uint3 thread_index(unsigned linear);
bool same_site(Site a, Site b);
const char *base_name(const char *path);

} // namespace cuda_cpu
