// SPDX-License-Identifier: MIT
/*
 * A worker and the block that it runs: the declarations that launch.cpp, block.cpp and warp.cpp
 * share. A worker is a host thread that runs blocks, one at a time.
 *
 * The threads of a block are user-level threads, scheduled cooperatively by the worker. They start
 * as plain function calls in one loop (Call::run in kernel.h), on one stack. When a thread has to
 * wait, at a barrier for example, it keeps that stack as its own, and the loop continues with the
 * next thread on another stack. A block whose threads never wait therefore needs no stack switch.
 */
#pragma once
#define CUDA_CPU_ENGINE
#include <cuda_runtime.h>
#include "fiber.h"

#include <vector>

namespace cuda_cpu {

constexpr unsigned max_threads = 1024;

enum class State : uint8_t { fresh, ready, at_barrier, at_warp_operation, yielded, ended };

// The record of one thread of the block. The records are valid only while Worker::waited is true.
struct Thread {
    Fiber *fiber; // its own stack; null while the common loop runs it, and if it ends there
    State state;
    Site site; // the barrier or warp operation that it reached last; file is null before the first
    WarpOp op;
    unsigned mask;
    int operand, width;
    uint64_t value, result;
};

struct Warp {
    unsigned waiting, ended; // lane masks
};

// A ring buffer of threads, first in, first out. A thread is in it at most once, so it cannot
// overflow.
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

    Fiber native;               // the stack of the host thread
    std::vector<Fiber *> spare; // stacks for reuse
    bool waited = false;        // a thread of this block has waited; the members below are valid
    Fiber *current;             // the stack in use now
    unsigned accounted;         // the thread at every position before this one has started
    unsigned ended;             // number of threads that have ended
    unsigned asking;            // number of threads that wait in __activemask
    Queue ready, yielded;
    unsigned at_barrier;
    BlockVote barrier_vote;
    Site barrier_site;
    int barrier_ayes, barrier_result;
    Thread threads[max_threads];
    Warp warps[max_threads / warpSize];
    uint16_t shuffled[max_threads]; // storage for Block::order when a schedule permutes it

    char *arena = nullptr;    // shared memory: the dynamic part first, then the declared variables
    uint64_t arena_block = 0; // the block that the next members belong to (its block_number)
    size_t arena_used, declared_bytes, dynamic_bytes, shared_limit;
    char *dynamic_memory;
    std::vector<SharedEntry> table;

    Worker();
    ~Worker();
    Worker(const Worker &) = delete;

    void prepare_shared(size_t dynamic_bytes, size_t limit); // for a launch
    void run_block();
    unsigned enter(uint3 thread); // returns its linear index; its record is valid from here on
    void wait(unsigned t);        // until make_ready(t), or until the queue of yielded threads reaches it
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

// Inlined for the same reason as switch_fiber.
inline __attribute__((always_inline)) void Worker::wait(unsigned t) {
    Thread &me = threads[t];
    if (loop == current) { // the thread keeps this stack, so the loop needs another one
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

// The grid barrier: waits for all other blocks of a cooperative launch. Called by one thread of
// each block, the last to arrive (launch.cpp).
void meet_other_blocks();

// The worker that runs the calling kernel. Ends the program with a message that names `what` when
// the caller is not in a kernel.
Worker &in_kernel(const char *what);

// Prints "cuda on the CPU: …", the kernel and the block, and ends the program. It is for errors
// after which the kernel cannot continue: on a GPU it would hang or give wrong results.
[[noreturn]] void kernel_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Installs a signal handler that reports an illegal address in a kernel. Each worker calls it,
// because each needs a signal stack.
void watch_faults();

uint3 thread_index(unsigned linear);
bool same_site(Site a, Site b);
const char *base_name(const char *path);

} // namespace cuda_cpu
