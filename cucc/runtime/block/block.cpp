// SPDX-License-Identifier: MIT
// The threads of one block: scheduling, barriers, and the diagnosis of barriers that some do not reach
#include "grid.h"

#include <array>
#include <cstdarg>
#include <numeric>
#include <sched.h>

__thread uint3 threadIdx; // of units that are linked with others (kernel.h)
__thread uint3 blockIdx, blockDim, gridDim;

namespace cuda_cpu {

__thread Worker *self;
__thread Spin spin;
__thread const __volatile__ void *last_lock;
Block no_block{};
__thread Block *current_block = &no_block;

// The value of Worker::running while the common loop runs.
constexpr unsigned in_loop = ~0u;

static const uint16_t *ascending() {
    static const std::array<uint16_t, max_threads> numbers = [] {
        std::array<uint16_t, max_threads> all;
        std::iota(all.begin(), all.end(), (uint16_t)0);
        return all;
    }();
    return numbers.data();
}

std::string coordinates(uint3 i) {
    return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

std::string coordinates(uint64_t i, uint3 size) {
    return coordinates(index_in(i, size));
}

bool same_site(Site a, Site b) {
    return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

// Sources of the units of either kind. Each unit sets one of these before main.
static const char *one_unit, *several_units;

static void check_units() {
    if (one_unit && several_units)
        end_program(
            "%s is linked with %s, but was compiled as a program of one .cu: compile it with cucc -c, "
            "or both in one command of cucc",
            one_unit, several_units);
}

void cuda_cpu_one_unit(const char *file) {
    several_units = one_unit; // two units of this kind are an error too
    one_unit = file;
    check_units();
}

void cuda_cpu_several_units(const char *file) {
    several_units = file;
    check_units();
}

Worker &in_kernel(const char *what) {
    if (!self || !self->kernel)
        end_program("%s was called outside a kernel", what);
    return *self;
}

void kernel_error(const char *format, ...) {
    only_error();
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "cuda on the CPU: ");
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    const Kernel &kernel = *self->kernel;
    fprintf(stderr, "\n    in kernel %s, block %s, launched at %s\n", kernel.name,
            coordinates(blockIdx).c_str(), place(kernel.site).c_str());
    quick_exit(EXIT_FAILURE);
}

Worker::Worker() : Block{} {
    self = this;
    running = in_loop;
    slice = atomics_in_a_row;
    caller = max_threads;
    values = lane_values;
    kept = (char *)malloc(kept_size);
    kept_end = kept ? kept + kept_size : nullptr;
    adopt_stack(native);
}

Worker::~Worker() {
    for (Fiber *fiber : fibers)
        delete_fiber(fiber);
    free(arena);
    free(kept_end ? kept_end - kept_size : nullptr);
    self = nullptr;
    shared_table = nullptr;
}

// ---- the common loop and its stacks ----

void Worker::run_block() {
    spin.thread = Spin::nobody, spin.of_all = 0;
    loop = &native;
    frame = (char *)__builtin_frame_address(0);
    kernel->run(kernel->call, *this, 0);
    if (!waited)
        return;
    loop_returned();
    Context &to = next();
    if (&to != &home)
        switch_context(&home, &to);
    if (race_stack)
        race_stack(frame, frame);
    waited = false;
    running = in_loop;
}

void Worker::abandon_block() {
    for (Fiber *fiber : fibers)
        delete_fiber(fiber);
    fibers.clear();
    spare.clear();
    if (race_stack && waited)
        race_stack(frame, frame);
    waited = in_loops = for_warp = elsewhere = false;
    running = in_loop;
    caller = max_threads;
    kept = kept_end - kept_size;
    head = tail = at_barrier = 0; // or the next block would continue these threads (block_barrier)
    barrier_ayes = 0;
    barrier_vote = BlockVote::none;
}

void *Block::keep_more(size_t bytes) {
    void *const memory = aligned_alloc(64, bytes);
    if (!memory)
        throw std::bad_alloc();
    return memory;
}

void Block::release_more(void *memory) {
    free(memory);
}

cudaError_t *error_of_thread() {
    if (!self || !self->kernel)
        return nullptr;
    Worker &worker = *self;
    if (worker.errors_block != block_number) {
        worker.errors_block = block_number;
        std::fill_n(worker.errors, max_threads + 1, cudaSuccess);
    }
    const unsigned t = worker.running == in_loop ? worker.caller : worker.running;
    cudaError_t &error = worker.errors[t], &unknown = worker.errors[max_threads];
    if (error == cudaSuccess)
        std::swap(error, unknown);
    return &error;
}

// The entry function of every fiber: runs the rest of the common loop, then switches away. When the
// fiber is taken from the spare list again, it does the same for another part of a loop.
void Worker::run_fibers() {
    Fiber &mine = *loop;
    for (;;) {
        kernel->run(kernel->call, *this, accounted);
        loop_returned();
        spare.push_back(&mine);
        Context &to = next();
        if (&to != &mine.idle)
            switch_context(&mine.idle, &to);
    }
}

// Called after kernel->run has returned: the common loop, or a thread that kept this stack, has ended.
void Worker::loop_returned() {
    if (running == in_loop) {
        tail += hidden;
        account(count);
        loop = nullptr;
    } else {
        end_thread(running);
    }
}

void Worker::end_thread(unsigned t) {
    last_site[t] = site_of(t);
    ended_late |= passed_barrier.file != nullptr;
    if (traced_block)
        traced_block->thread_stops(t);
    ++ended;
    Warp &warp = warps[t / warpSize];
    warp.ended |= 1u << t % warpSize;
    if (warp.waiting)
        complete_warp_operation(t / warpSize);
}

// Counts the threads before `position` that the common loop has run as ended. A thread leaves the loop only
// to wait; then enter() has moved `accounted` past it. So all the others have ended.
void Worker::account(unsigned position) {
    for (; accounted < position; ++accounted)
        end_thread(order ? order[accounted] : accounted);
}

void Worker::begin() {
    waited = true;
    if (race_stack)
        race_stack(frame - (1 << 20), frame);
    accounted = ended = asking = streak = 0;
    ended_late = false;
    head = tail = released_end = hidden = at_barrier = yielded_first = yielded_end = 0;
    start_another = elsewhere = false;
    memset(warps, 0, sizeof warps);
    ++barriers;
    passed_barrier = {nullptr, 0};
}

// Called when a thread of the common loop has to wait: the thread keeps the loop's stack, and the loop will
// continue on another one. Returns the thread's linear index.
unsigned Worker::enter(uint3 index) {
    if (in_loops) // the translator has not found it
        kernel_error("thread %s waits for others in a kernel that was split at its barriers; with "
                     "CUDA_CPU_BARRIERS=fibers it can",
                     coordinates(index).c_str());
    if (!waited)
        begin();
    if (running == in_loop) {
        tail += hidden;
        const unsigned t = index.x + blockDim.x * (index.y + blockDim.y * index.z);
        account(order ? position : t);
        ++accounted;
        loop = nullptr;
        running = t;
    }
    return running;
}

Switch Worker::wait(unsigned t) {
    return {&contexts[t], &next()};
}

// Chooses the thread that runs next: first a ready one, so that a warp or block that has just passed its
// barrier continues while its stacks are in the cache, then one that has not started, then one that yielded.
//
// A warp that polls with warp operations is always ready. So from time to time (start_another) a new thread
// starts, or, when all have started, those that have yielded continue: this warp may wait for one of them.
Context &Worker::next() {
    for (;;) {
        if (start_another && accounted == count) {
            start_another = false;
            resume_yielded();
            if (asking)
                answer_blocked();
        }
        if (head != tail && !(start_another && accounted < count))
            return *pop();
        if (accounted < count) {
            start_another = false;
            if (spare.empty()) {
                fibers.push_back(new_fiber([] { self->run_fibers(); }));
                spare.push_back(fibers.back());
            }
            loop = spare.back();
            spare.pop_back();
            running = in_loop;
            hidden = tail - head;
            tail = head;
            return loop->idle;
        }
        // The race detector accepts threads that have returned before the first barrier.
        if (at_barrier && at_barrier + ended == count &&
            (ended == 0 || !(strict || (race_barrier && ended_late)))) {
            release_barrier();
        } else if (asking) {
            answer_asking();
        } else if (yielded_first != yielded_end) {
            sched_yield(); // they may wait for a block that another worker runs
            if (const cudaError_t error = current_grid->ended) // and that has not ended
                end_launch(error);
            watch.only_polling();
            resume_yielded();
        } else if (ended == count) {
            return home;
        } else {
            stuck();
        }
    }
}

void Worker::resume_yielded() {
    while (yielded_first != yielded_end)
        ready[tail++ % max_threads] = yielded[yielded_first++ % max_threads];
}

Switch let_others_run(uint3 thread) {
    Worker *worker = self;
    if (!worker || !worker->kernel || worker->in_loops) {
        sched_yield();
        return {nullptr, nullptr};
    }
    const unsigned t = worker->enter(thread);
    worker->yielded[worker->yielded_end++ % max_threads] = (uint16_t)t;
    return worker->wait(t);
}

Switch take_turns(uint3 thread) {
    Worker *worker = self;
    if (!worker || !worker->kernel || worker->in_loops)
        return {nullptr, nullptr};
    worker->slice = atomics_in_a_row;
    const unsigned t = worker->enter(thread);
    worker->resume_yielded();
    worker->ready[worker->tail++ % max_threads] = (uint16_t)t;
    worker->start_another = true;
    return worker->wait(t);
}

// ---- barriers ----

Switch meet_block(uint3 thread, BlockVote vote, bool predicate, Site site) {
    Worker &worker = in_kernel("__syncthreads()");
    const unsigned t = worker.enter(thread);
    if (worker.at_barrier == 0) {
        worker.barrier_site = site;
        worker.barrier_vote = vote;
    } else if (!same_site(site, worker.barrier_site)) {
        if (worker.strict || race_barrier || vote != worker.barrier_vote)
            kernel_error("divergent barrier: %u of %u threads wait at %s while thread %s reaches %s",
                         worker.at_barrier, worker.count, place(worker.barrier_site).c_str(),
                         coordinates(thread).c_str(), place(site).c_str());
        worker.arrive_elsewhere(t, site);
    }
    worker.barrier_ayes += predicate;
    if (traced_block)
        trace_arrival(t, site, worker.barrier_site);
    worker.arrived[worker.at_barrier++] = (uint16_t)t;
    return worker.wait(t);
}

// The barrier of a block counts threads, whatever line they wait at: since compute capability 7.0 a block may
// have a barrier in each of two branches. The lanes of a warp must take the same one.
static void check_lane(const Warp &warp, unsigned t, Site site) {
    if (!same_site(site, warp.other_site))
        kernel_error("divergent barrier: lanes of one warp wait at %s and, thread %s, at %s",
                     place(warp.other_site).c_str(), coordinates(t, blockDim).c_str(), place(site).c_str());
}

void Worker::arrive_elsewhere(unsigned t, Site site) {
    Warp &warp = warps[t / warpSize];
    if (warp.elsewhere)
        check_lane(warp, t, site);
    warp.elsewhere |= 1u << t % warpSize;
    warp.other_site = site;
    elsewhere = true;
}

void Worker::check_elsewhere() {
    for (unsigned i = 0; i < at_barrier; ++i)
        if (const Warp &warp = warps[arrived[i] / warpSize];
            warp.elsewhere && !(warp.elsewhere >> arrived[i] % warpSize & 1))
            check_lane(warp, arrived[i], barrier_site);
    for (Warp &warp : warps)
        warp.elsewhere = 0;
    elsewhere = false;
}

// All threads that have not returned are at the barrier: makes them ready, in the order of the schedule.
void Worker::release_barrier() {
    const BlockVote vote = barrier_vote;
    const int ayes = barrier_ayes, voters = (int)at_barrier;
    barrier_vote = BlockVote::none;
    barrier_ayes = 0;
    if (elsewhere)
        check_elsewhere();
    if (vote == BlockVote::grid)
        wait_at_grid_barrier();
    if (race_barrier)
        race_barrier(*this);
    if (traced_block)
        trace_release(barrier_site);
    barrier_result = vote == BlockVote::count ? ayes : vote == BlockVote::all ? ayes == voters : ayes != 0;

    const uint16_t *const sequence = order ? order : ascending();
    head = 0;
    tail = released_end = at_barrier;
    if (memcmp(arrived, sequence, at_barrier * sizeof *arrived) == 0) {
        memcpy(ready, arrived, at_barrier * sizeof *arrived);
    } else {
        bool here[max_threads] = {};
        for (unsigned i = 0; i < at_barrier; ++i)
            here[arrived[i]] = true;
        for (unsigned i = 0, n = 0; n < at_barrier; ++i)
            if (here[sequence[i]])
                ready[n++] = sequence[i];
    }
    at_barrier = 0;
    passed_barrier = barrier_site;
    ++barriers;
    streak = 0;
}

// The barrier of a tile (of cooperative groups): called by each thread that arrives. The last one appends all
// threads of the tile to the queue of ready threads, in the order that CUDA_CPU_SCHEDULE selects.
Switch meet_tile(uint3 thread, unsigned size, Site site) {
    Worker &worker = in_kernel("the barrier of a tile");
    const unsigned t = worker.enter(thread), first = t / size * size,
                   end = std::min(first + size, worker.count);
    worker.lanes[t].site = site;
    worker.lanes[t].barriers = worker.barriers;
    worker.warps[t / warpSize].at_tile |= 1u << t % warpSize;
    unsigned here = 0;
    for (unsigned w = first / warpSize; w * warpSize < end; ++w)
        here += (unsigned)__builtin_popcount(worker.warps[w].at_tile);
    if (here == end - first) {
        if (race_barrier)
            race_barrier(worker); // the detector treats it as a barrier of the whole block
        for (unsigned w = first / warpSize; w * warpSize < end; ++w)
            worker.warps[w].at_tile = 0;
        for (unsigned i = 0; i < worker.count; ++i) {
            const unsigned next = worker.order ? worker.order[i] : i;
            if (next >= first && next < end)
                worker.ready[worker.tail++ % max_threads] = (uint16_t)next;
        }
    }
    return worker.wait(t);
}

// ---- diagnosis ----

// Names threads: "thread (3,0,0)", "threads (0,0,0) to (127,0,0)", or the first four of a set with gaps.
static std::string name_threads(const std::vector<unsigned> &list) {
    if (list.size() == 1)
        return "thread " + coordinates(list[0], blockDim);
    if (list.back() - list.front() + 1 == list.size())
        return "threads " + coordinates(list.front(), blockDim) + " to " + coordinates(list.back(), blockDim);
    std::string text = "threads";
    for (size_t i = 0; i < list.size() && i < 4; ++i)
        text += " " + coordinates(list[i], blockDim);
    return list.size() > 4 ? text + " …" : text;
}

// The barrier or warp operation that the thread reached last.
Site Worker::site_of(unsigned t) const {
    return lanes[t].barriers == barriers ? lanes[t].site : passed_barrier;
}

// Reports a deadlock and ends the program: the remaining threads wait for others that have ended or wait.
void Worker::stuck() {
    for (unsigned w = 0; w * warpSize < count; ++w)
        complete_warp_operation(w, true);
    enum State { at_the_barrier, in_warp_operation, at_the_tile, returned };
    static const char *const kinds[] = {"barrier", "warp operation", "barrier of a tile"};
    static const char *const states[] = {"", "waiting in a warp operation at ",
                                         "waiting at the barrier of a tile at ", "returned after passing "};
    std::vector<State> state(count, returned);
    for (unsigned i = 0; i < at_barrier; ++i)
        state[arrived[i]] = at_the_barrier;
    for (unsigned t = 0; t < count; ++t)
        if (warps[t / warpSize].waiting >> t % warpSize & 1)
            state[t] = in_warp_operation;
        else if (warps[t / warpSize].at_tile >> t % warpSize & 1)
            state[t] = at_the_tile;
    const State what = *std::min_element(state.begin(), state.end());
    const auto site = [&](unsigned t) {
        return state[t] == at_the_barrier ? barrier_site : state[t] == returned ? last_site[t] : site_of(t);
    };
    std::vector<unsigned> waiting, others;
    for (unsigned t = 0; t < count; ++t)
        (state[t] == what ? waiting : others).push_back(t);
    std::string text = std::to_string(waiting.size()) + " of " + std::to_string(count) + " threads wait at " +
                       place(site(waiting[0])) + ": " + name_threads(waiting);
    // Groups the other threads by their state and by the last barrier or warp operation that they reached.
    while (!others.empty()) {
        const unsigned first = others[0];
        std::vector<unsigned> alike, rest;
        for (unsigned t : others)
            (state[t] == state[first] && site(t).line == site(first).line ? alike : rest).push_back(t);
        text += "\n    " +
                (site(first).file ? states[state[first]] + place(site(first))
                                  : "returned without reaching a barrier") +
                ": " + name_threads(alike);
        others = rest;
    }
    kernel_error("divergent %s: %s", kinds[what], text.c_str());
}

} // namespace cuda_cpu
