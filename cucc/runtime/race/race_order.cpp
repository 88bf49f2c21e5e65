// SPDX-License-Identifier: MIT
// What orders accesses for the race detector: streams, waits of the host, barriers, fences with atomics
#include "race_detector.h"
#include "trace.h"

#ifndef __wasm__
#include <execinfo.h>
#endif
#include <unordered_map>

namespace cuda_cpu::race {

Current current;
std::atomic<uint32_t> now{1};
std::atomic<bool> host_matters{false};
std::atomic<uint32_t> host_settled{~0u};

uint32_t tick() {
    return now.fetch_add(1) + 1;
}

ONLY(tasks, Tasks)

const Task *task_at(const Tasks &t, uint32_t time) {
    auto i = std::upper_bound(t.run.begin(), t.run.end(), std::make_pair(time, ~(uint64_t)0));
    if (i == t.run.begin())
        return nullptr;
    const auto found = t.all.find(std::prev(i)->second);
    return found == t.all.end() ? nullptr : &found->second;
}

namespace {

void join(Clock &to, const Clock &from) {
    for (const auto &[stream, number] : from)
        to[stream] = std::max(to[stream], number);
}

bool comes_before(const Task *task, const Clock &clock) {
    if (!task)
        return true; // so old that its record has been deleted
    const auto i = clock.find(task->stream);
    return i != clock.end() && i->second >= task->number;
}

// The time before which accesses are ordered before the work of `clock`; at most `otherwise`.
uint32_t settled_for(const Tasks &t, const Clock &clock, uint32_t otherwise) {
    for (const auto &[begun, number] : t.run) {
        const auto i = t.all.find(number);
        if (i != t.all.end() && !comes_before(&i->second, clock))
            return std::min(begun, otherwise);
    }
    return otherwise;
}

void update_host(Tasks &t) {
    const uint32_t settled = settled_for(t, t.host, ~0u);
    host_settled = settled;
    host_matters = t.pending > 0 || settled != ~0u;
    if (!host_matters && t.run.size() > 64) { // all work is done, and the host has waited for it
        t.run.clear();
        t.all.clear();
    }
}

} // namespace

bool before_this_task(const Access &a, bool early) {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    const Task *const other = task_at(t, a.time);
    if (!current.task || other == current.task)
        return true;
    return comes_before(other, early ? current.task->early : current.task->clock);
}

bool before_host(const Access &a) {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    return comes_before(task_at(t, a.time), t.host);
}

// ---- fences with atomics ----

// What a launch's threads have published: accesses before a fence and then an atomic (a release)
static struct Published {
    std::mutex mutex;
    std::atomic<bool> any{false};
    // Address of an atomic variable -> time of the last release through it.
    std::unordered_map<uintptr_t, uint32_t> variables;
    // Thread -> time before which its accesses are published.
    std::unordered_map<uint64_t, uint32_t> by_thread;
    // Block -> epoch and time before which its accesses are published.
    std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> by_block;

    // Called at a launch. If others run at the same time, in other streams, these are kept.
    void forget(bool alone) {
        if (!any)
            return;
        if (alone) {
            any = false;
            variables.clear();
        }
        by_thread.clear();
        by_block.clear();
    }
} published;

static void acquire(uintptr_t variable, Threads &b, unsigned t) {
    if (!published.any)
        return;
    std::lock_guard lock(published.mutex);
    const auto found = published.variables.find(variable);
    if (found == published.variables.end())
        return;
    b.talks = true;
    b.acquire[t] = std::max(b.acquire[t], found->second);
}

void release(uintptr_t variable) {
    Threads &b = threads();
    const unsigned t = thread_rank();
    const uint32_t fenced = std::max(b.fence[t], b.fenced);
    if (!fenced)
        return;
    std::lock_guard lock(published.mutex);
    published.any = true;
    published.by_block[b.block] = {b.epoch, fenced};
    const uint64_t first = b.block * current.threads;
    published.by_thread[first + t] = fenced;
    if (b.warp_epoch[t / 32] == b.epoch) // includes what it knows of other lanes through __syncwarp()
        for (unsigned lane = 0; lane < 32; ++lane)
            if (b.known[t / 32][t % 32][lane])
                published.by_thread[first + t / 32 * 32 + lane] = fenced;
    published.variables[variable] = tick();
}

void acquire(uintptr_t variable) {
    acquire(variable, threads(), thread_rank());
}

void fence() {
    if (!self || !self->kernel)
        return;
    Threads &b = threads();
    const unsigned t = thread_rank();
    b.talks = true;
    b.fence[t] = tick();
    if (b.polled[t]) // a volatile read followed by a fence acts as an acquire
        acquire(b.polled[t], b, t);
}

bool is_published(const Access &a) {
    std::lock_guard lock(published.mutex);
    const auto one = published.by_thread.find(a.block * current.threads + a.thread);
    if (one != published.by_thread.end() && a.time < one->second)
        return true;
    const auto all = published.by_block.find(a.block);
    return all != published.by_block.end() && a.epoch < all->second.first && a.time < all->second.second;
}

} // namespace cuda_cpu::race

namespace cuda_cpu {

using namespace race;

void race_launch(const Kernel &kernel, const LaunchConfig &config) {
    for (const SymbolSection &s : symbol_sections())
        if (s.writable)
            race_track(s.begin, (size_t)(s.end - s.begin));
    published.forget(!current.task || current.settled >= current.enqueued);
    current.begun = tick();
    current.threads = (uint64_t)config.block.x * config.block.y * config.block.z;
    if (!current.task)
        current.task_begun = current.settled = current.begun;
    else {
        Task &task = const_cast<Task &>(*current.task);
        task.kernel = kernel.name;
        task.site = kernel.site;
        task.grid = {config.grid.x, config.grid.y, config.grid.z};
        task.block = {config.block.x, config.block.y, config.block.z};
    }
}

void race_grid_barrier() {
    current.begun = tick();
}

void race_barrier(const Worker &) {
    Threads &b = threads();
    ++b.epoch;
    if (!b.talks)
        return;
    for (unsigned t = 0; t < b.count; ++t) {
        if (b.polled[t])
            acquire(b.polled[t], b, t);
        b.fenced = std::max(b.fenced, b.fence[t]);
        b.acquired = std::max(b.acquired, b.acquire[t]);
        b.polled[t] = 0;
        b.waited |= b.waited_lanes[t / 32] != 0;
    }
    b.talks = false;
}

void race_warp_barrier(unsigned w, unsigned lanes) {
    Threads &b = threads();
    if (b.warp_epoch[w] != b.epoch) {
        b.warp_epoch[w] = b.epoch;
        memset(b.known[w], 0, sizeof b.known[w]);
        std::fill(b.clock + w * 32, b.clock + w * 32 + 32, (uint16_t)1);
    }
    uint16_t all[32] = {};
    uint32_t acquired = 0, fenced = 0;
    for (unsigned l = 0; l < 32; ++l) {
        if (!(lanes >> l & 1))
            continue;
        const unsigned t = w * 32 + l;
        b.known[w][l][l] = b.clock[t];
        for (unsigned i = 0; i < 32; ++i)
            all[i] = std::max(all[i], b.known[w][l][i]);
        acquired = std::max(acquired, b.acquire[t]);
        fenced = std::max(fenced, b.fence[t]);
        if (b.clock[t] < 65535)
            ++b.clock[t];
    }
    if (b.waited_lanes[w] & lanes)
        b.waited_lanes[w] |= lanes;
    for (unsigned l = 0; l < 32; ++l)
        if (lanes >> l & 1) {
            memcpy(b.known[w][l], all, sizeof all);
            b.acquire[w * 32 + l] = acquired;
            b.fence[w * 32 + l] = fenced;
        }
}

void race_trigger() {
    const Threads &b = threads();
    current.triggered = true;
    if (std::max(b.fence[thread_rank()], b.fenced))
        current.fenced = true;
}

void race_wait_for_kernel() {
    Threads &b = threads();
    b.talks = true;
    b.waited_lanes[thread_rank() / 32] |= 1u << thread_rank() % 32;
}

void race_name_shared(const char *name, const void *memory, size_t bytes) {
    threads().names.push_back({name, (const char *)memory, bytes});
    if (traced_block)
        traced_block->arrays.push_back(threads().names.back());
}

void race_enqueue(uint64_t number, uint64_t stream, const std::vector<uint64_t> &after, const char *call,
                  const LaunchConfig *launch) {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    Clock clock = t.host, early = t.host;
    uint64_t previous = 0;
    for (uint64_t one : after) {
        const auto i = t.all.find(one);
        if (i == t.all.end())
            continue;
        join(clock, i->second.clock);
        if (launch && launch->dependent && i->second.is_launch && i->second.stream == stream)
            previous = one;
        else
            join(early, i->second.clock);
    }
    clock[stream] = number;
    Task &task = t.all[number];
    task = {number,  stream, clock, call, {},    tick(),   0,
            nullptr, {},     {},    {},   early, previous, launch != nullptr,
            false};
#ifdef __wasm__
    task.frames = {(void *)race_line};
#else
    void *frames[16];
    task.frames.assign(frames, frames + backtrace(frames, 16));
#endif
    ++t.pending;
    update_host(t);
    if (t.all.size() > 4096 && t.all.begin()->second.begun)
        t.all.erase(t.all.begin());
}

void race_begin(uint64_t number) {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    const auto found = t.all.find(number);
    current.task = found == t.all.end() ? nullptr : &found->second;
    if (!current.task)
        return;
    Task &task = found->second;
    if (t.run.size() > 2048)
        t.run.erase(t.run.begin(), t.run.begin() + 1024);
    // What the previous kernel has let begin early is ordered after what that kernel itself was.
    const auto previous = t.all.find(task.previous);
    current.overlaps = previous != t.all.end() && previous->second.triggered;
    if (previous != t.all.end())
        join(task.early, current.overlaps ? previous->second.early : previous->second.clock);
    current.early_settled = settled_for(t, task.early, task.enqueued);
    current.settled = settled_for(t, task.clock, task.enqueued);
    current.triggered = current.fenced = false;
    current.enqueued = task.enqueued;
    current.begun = current.task_begun = task.begun = tick();
    t.run.emplace_back(task.begun, number);
}

void race_end() {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    if (current.task)
        const_cast<Task *>(current.task)->triggered = current.triggered && !current.fenced;
    current.task = nullptr;
    --t.pending;
    update_host(t);
}

void race_waited(uint64_t number) {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    const auto i = t.all.find(number);
    if (i != t.all.end())
        join(t.host, i->second.clock);
    update_host(t);
}

} // namespace cuda_cpu
