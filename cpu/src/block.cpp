// SPDX-License-Identifier: MIT
// The threads of one block: scheduling, barriers, and the diagnosis of barriers that not all
// threads reach. See block.h.
#include "block.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sched.h>
#include <string>
#include <unistd.h>

__thread uint3 threadIdx; // of units that are linked with others (kernel.h)
__thread uint3 blockIdx, blockDim, gridDim;

namespace cuda_cpu {

__thread Worker *self;
__thread Spin spin;

namespace {

std::string coordinates(uint3 i) {
    return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

std::string place(Site site) {
    return std::string(base_name(site.file)) + ":" + std::to_string(site.line);
}

void fiber_entry() {
    self->run_fibers();
}

} // namespace

uint3 thread_index(unsigned t) {
    return {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
}

bool same_site(Site a, Site b) {
    return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Called before main by each .cu of the program.
static const char *one_unit, *several_units;

static void check_units() {
    if (!one_unit || !several_units)
        return;
    fprintf(stderr,
            "cuda on the CPU: %s is linked with %s, but was compiled as a program of one .cu: compile it with "
            "cucc -c, or both in one command of cucc\n",
            one_unit, several_units);
    exit(EXIT_FAILURE);
}

void cuda_cpu_one_unit(const char *file) {
    several_units = one_unit; // two of this kind are as wrong as a mixture
    one_unit = file;
    check_units();
}

void cuda_cpu_several_units(const char *file) {
    several_units = file;
    check_units();
}

Worker &in_kernel(const char *what) {
    if (!self || !self->kernel) {
        fprintf(stderr, "cuda on the CPU: %s was called outside a kernel\n", what);
        exit(EXIT_FAILURE);
    }
    return *self;
}

void kernel_error(const char *format, ...) {
    static std::mutex one_at_a_time; // never unlocked, so only the first error is printed
    one_at_a_time.lock();
    fflush(stdout);
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "cuda on the CPU: ");
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    const Kernel &kernel = *self->kernel;
    fprintf(stderr, "\n    in kernel %s, block %s, launched at %s\n", kernel.name,
            coordinates(blockIdx).c_str(), place({kernel.file, kernel.line}).c_str());
    _exit(EXIT_FAILURE);
}

Worker::Worker() : Block{} {
    self = this;
    adopt_stack(native);
}

Worker::~Worker() {
    for (Fiber *fiber : spare)
        delete_fiber(fiber);
    free(arena);
    self = nullptr;
    shared_table = nullptr;
}

// ---- the common loop and its stacks ----

void Worker::run_block() {
    loop = &native;
    kernel->run(kernel->call, *this, 0);
    if (!waited)
        return;
    loop_returned();
    while (ended < count) {
        Fiber &fiber = next();
        if (&fiber == &native)
            continue; // every thread has ended
        current = &fiber;
        switch_fiber(native, fiber);
    }
    waited = false;
}

// The entry function of every fiber: runs the rest of the common loop, then switches away. When the
// fiber is taken from the spare list again, it does the same for another part of a loop.
void Worker::run_fibers() {
    for (;;) {
        kernel->run(kernel->call, *this, accounted);
        loop_returned();
        Fiber &mine = *current;
        spare.push_back(&mine);
        Fiber &fiber = next();
        if (&fiber == &mine)
            continue;
        current = &fiber;
        switch_fiber(mine, fiber);
    }
}

// Called after kernel->run returned, for one of two reasons: the common loop has run to its end, or
// a thread that had kept this stack has ended. In the second case `loop` names another stack, or
// none.
void Worker::loop_returned() {
    if (loop == current) {
        account(count);
        loop = nullptr;
    } else {
        end_thread(current->thread);
    }
}

void Worker::end_thread(unsigned t) {
    threads[t].state = State::ended;
    ++ended;
    Warp &warp = warps[t / warpSize];
    warp.ended |= 1u << t % warpSize;
    if (warp.waiting)
        complete_warp_operation(t / warpSize);
}

// Marks as ended the threads before `position` that the common loop has run. Only a thread that has
// to wait leaves the loop, and Worker::wait itself moves `accounted` past it, so all others have
// ended.
void Worker::account(unsigned position) {
    for (; accounted < position; ++accounted)
        end_thread(order ? order[accounted] : accounted);
}

unsigned Worker::enter(uint3 index) {
    const unsigned t = index.x + blockDim.x * (index.y + blockDim.y * index.z);
    if (!waited) {
        waited = true;
        current = &native;
        accounted = ended = at_barrier = asking = 0;
        memset(warps, 0, sizeof warps);
        for (unsigned i = 0; i < count; ++i) {
            threads[i].fiber = nullptr;
            threads[i].state = State::fresh;
            threads[i].site = {nullptr, 0};
        }
        ready.clear();
        yielded.clear();
    }
    if (loop == current)
        account(order ? position : t);
    return t;
}

void Worker::make_ready(unsigned t) {
    threads[t].state = State::ready;
    ready.push(t);
}

// Chooses the stack to run next. Ready threads come first: a warp or block that has just completed
// its barrier continues while its stacks are in the cache. Threads that have not started come
// second. Threads that poll with atomics come last.
Fiber &Worker::next() {
    if (!ready.empty())
        return *threads[ready.pop()].fiber;
    if (!loop && accounted < count) {
        if (spare.empty())
            spare.push_back(new_fiber(fiber_entry));
        loop = spare.back();
        spare.pop_back();
        return *loop;
    }
    if (asking) {
        answer_active_lanes();
        return *threads[ready.pop()].fiber;
    }
    if (!yielded.empty()) {
        sched_yield(); // it may wait for a block on another worker
        const unsigned t = yielded.pop();
        threads[t].state = State::ready;
        return *threads[t].fiber;
    }
    if (ended == count)
        return native;
    stuck();
}

void let_others_run(uint3 thread) {
    Worker *worker = self;
    if (!worker || !worker->kernel) {
        sched_yield();
        return;
    }
    const unsigned t = worker->enter(thread);
    worker->threads[t].state = State::yielded;
    worker->yielded.push(t);
    worker->wait(t);
}

// ---- barriers ----

int meet_block(uint3 thread, BlockVote vote, bool predicate, Site site) {
    Worker &worker = in_kernel("__syncthreads()");
    const unsigned t = worker.enter(thread);
    Thread &me = worker.threads[t];
    if (worker.at_barrier == 0) {
        worker.barrier_vote = vote;
        worker.barrier_site = site;
        worker.barrier_ayes = 0;
    } else if (!same_site(site, worker.barrier_site)) {
        kernel_error("divergent barrier: %u of %u threads wait at %s while thread %s reaches %s",
                     worker.at_barrier, worker.count, place(worker.barrier_site).c_str(),
                     coordinates(thread).c_str(), place(site).c_str());
    }
    me.site = site;
    worker.barrier_ayes += predicate;
    if (++worker.at_barrier < worker.count) {
        me.state = State::at_barrier;
        worker.wait(t);
        return worker.barrier_result;
    }

    worker.at_barrier = 0;
    switch (vote) {
    case BlockVote::none:
        break;
    case BlockVote::count:
        worker.barrier_result = worker.barrier_ayes;
        break;
    case BlockVote::all:
        worker.barrier_result = worker.barrier_ayes == (int)worker.count;
        break;
    case BlockVote::any:
        worker.barrier_result = worker.barrier_ayes != 0;
        break;
    case BlockVote::grid:
        meet_other_blocks();
        break;
    }
    for (unsigned i = 0; i < worker.count; ++i) {
        const unsigned other = worker.order ? worker.order[i] : i;
        if (other != t)
            worker.make_ready(other);
    }
    return worker.barrier_result;
}

// ---- diagnosis ----

namespace {

// "thread (3,0,0)", "threads (0,0,0) to (127,0,0)", or the first four of a set with gaps.
std::string name_threads(const std::vector<unsigned> &list) {
    if (list.size() == 1)
        return "thread " + coordinates(thread_index(list[0]));
    if (list.back() - list.front() + 1 == list.size())
        return "threads " + coordinates(thread_index(list.front())) + " to " +
               coordinates(thread_index(list.back()));
    std::string text = "threads";
    for (size_t i = 0; i < list.size() && i < 4; ++i)
        text += " " + coordinates(thread_index(list[i]));
    return list.size() > 4 ? text + " …" : text;
}

} // namespace

// Reports a deadlock: no thread can run, and the threads that are left wait for others that have
// ended or wait elsewhere.
void Worker::stuck() {
    std::vector<unsigned> waiting, gone;
    bool barrier = false;
    for (unsigned t = 0; t < count; ++t)
        barrier |= threads[t].state == State::at_barrier;
    for (unsigned t = 0; t < count; ++t) {
        const State state = threads[t].state;
        if (state == (barrier ? State::at_barrier : State::at_warp_operation))
            waiting.push_back(t);
        else
            gone.push_back(t);
    }
    std::string text = std::to_string(waiting.size()) + " of " + std::to_string(count) + " threads wait at " +
                       place(threads[waiting[0]].site) + ": " + name_threads(waiting);
    // The other threads, grouped by their state and by the last barrier or warp operation they
    // reached.
    while (!gone.empty()) {
        const Thread &first = threads[gone[0]];
        std::vector<unsigned> alike, rest;
        for (unsigned t : gone)
            (threads[t].state == first.state && threads[t].site.line == first.site.line ? alike : rest)
                .push_back(t);
        text += "\n    ";
        if (first.state == State::at_warp_operation)
            text += "waiting in a warp operation at " + place(first.site) + ": " + name_threads(alike);
        else if (first.site.file)
            text += "returned after passing " + place(first.site) + ": " + name_threads(alike);
        else
            text += "returned without reaching a barrier: " + name_threads(alike);
        gone = rest;
    }
    kernel_error("%s: %s", barrier ? "divergent barrier" : "divergent warp operation", text.c_str());
}

} // namespace cuda_cpu
