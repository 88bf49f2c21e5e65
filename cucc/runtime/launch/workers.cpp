// SPDX-License-Identifier: MIT
// Workers: host threads that run the blocks of a grid. The calling thread is a worker too and starts at
// once, so a launch of a few blocks never waits for another thread to wake up.
#include "grid.h"

#include <sched.h>
#include <system_error>
#include <thread>

#ifdef __wasm__ // it cannot jump: end_launch() ends the program
#define __builtin_setjmp(buffer) 0
#endif

namespace cuda_cpu {

bool start_thread([[maybe_unused]] std::function<void()> run) {
#ifdef __wasm__
    errno = EAGAIN; // a page that is a file may not share memory among threads
#else
    try {
        std::thread(std::move(run)).detach();
        return true;
    } catch (const std::system_error &error) {
        errno = error.code().value();
    } catch (const std::bad_alloc &) {
        errno = ENOMEM;
    }
#endif
    return false;
}

unsigned worker_count() {
    if (const char *value = getenv("CUDA_CPU_WORKERS")) {
        char *end;
        const long n = strtol(value, &end, 10);
        if (end == value || *end || n < 1 || n > 1024)
            refuse_setting("CUDA_CPU_WORKERS", value, "a number from 1 to 1024");
        return (unsigned)n;
    }
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    return std::max(1u, std::thread::hardware_concurrency());
}

__thread Grid *current_grid;

template <bool traced> __attribute__((noinline)) static void run_chunks(Grid &grid, Worker &worker) {
    const dim3 size = grid.config.grid, block = grid.config.block;
    const unsigned columns = worker.whole ? grid.kernel.function->joined_columns : 0;
    const uint64_t most = block.x <= columns ? max_threads / block.x : 1;
    std::vector<TraceSpan> *const spans = traced ? &grid.trace->new_worker() : nullptr;
    const auto run = [&](uint64_t number) {
        ++block_number;
        if (traced)
            grid.trace->begin_block(*spans, number);
        worker.run_block();
        if (traced)
            grid.trace->end_block(*spans);
    };
    for (;;) {
        const uint64_t first = grid.next.fetch_add(grid.chunk, std::memory_order_relaxed);
        const uint64_t last = std::min(first + grid.chunk, grid.blocks);
        if (first >= last)
            break;
        if (grid.schedule.kind == Schedule::forward) {
            blockIdx = first > 0 ? index_in(first, gridDim) : uint3{};
            for (uint64_t i = first; i < last; i += worker.joined) {
                worker.joined = (unsigned)std::min<uint64_t>({most, last - i, size.x - blockIdx.x});
                run(i);
                blockIdx.x += worker.joined;
                if (blockIdx.x == size.x) { // incremented, because divisions are slow
                    blockIdx.x = 0;
                    if (++blockIdx.y == size.y) {
                        blockIdx.y = 0;
                        ++blockIdx.z;
                    }
                }
            }
        } else {
            for (uint64_t i = first; i < last; ++i) {
                const uint64_t b = grid.schedule.block(i, grid.blocks);
                blockIdx = index_in(b, gridDim);
                worker.order = grid.schedule.threads(worker.shuffled, worker.count, b);
                run(b);
            }
        }
        if (grid.barrier) // a chunk is one block
            grid.block_ended();
        if (last == grid.blocks)
            break;
    }
}

// Busy-waits for at most 2 ms, before the calling thread blocks on a condition variable. Waking a blocked
// thread is slow, and another launch often follows soon. sched_yield() leaves the core to any other
// thread that can run. Returns whether the event has occurred.
template <class Event> static bool spin_until(Event event) {
    using namespace std::chrono;
    const auto end = steady_clock::now() + milliseconds(2);
    while (!event()) {
        if (steady_clock::now() >= end)
            return false;
        sched_yield();
    }
    return true;
}

static cudaError_t too_few_threads(const Grid &grid, uint64_t needed, uint64_t there) {
    return fail(cudaErrorLaunchOutOfResources,
                "launch of %s at %s: needs %llu host threads, the system permits %llu", grid.kernel.name,
                place(grid.kernel.site).c_str(), (unsigned long long)needed, (unsigned long long)there);
}

void run_blocks(Grid &grid) {
    if (!self) { // the first launch of this host thread
        watch_faults();
        static PerThread<Worker> &workers = *new PerThread<Worker>; // never destroyed, like the pool
        workers.mine();                                             // sets `self`
    }
    Worker &worker = *self;
    const dim3 size = grid.config.grid, block = grid.config.block;
    gridDim = {size.x, size.y, size.z};
    blockDim = {block.x, block.y, block.z};
    worker.count = block.x * block.y * block.z;
    worker.order = nullptr;
    worker.joined = 1;
    worker.strict = grid.strict;
    static const bool loops = setting_of("CUDA_CPU_BARRIERS", {"loops", "fibers"}) == 0;
    worker.whole =
        loops && !grid.strict && !grid.trace && !grid.barrier && grid.schedule.kind == Schedule::forward;
    worker.prepare_shared(grid.config.shared_bytes, grid.shared_limit);
    worker.kernel = &grid.kernel;
    if (kernels_may_poll())
        enter_grid(grid);
    current_block = &worker;
    current_grid = &grid;
    Launch *const launching = current_launch;
    if (__builtin_setjmp(worker.leave) == 0) {
        if (grid.trace)
            run_chunks<true>(grid, worker);
        else
            run_chunks<false>(grid, worker);
    } else {
        worker.abandon_block();
        traced_block = nullptr;
        current_launch = launching;
    }
#ifdef __SANITIZE_THREAD__ // it can follow 8128 stacks, and a cooperative launch needs one for each thread
    if (grid.barrier)
        worker.abandon_block();
#endif
    worker.kernel = nullptr;
    gridDim = {}; // on_device() is false from here on
    current_block = &no_block;
    current_grid = nullptr;
    if (kernels_may_poll())
        --grid.workers;
}

cudaError_t WorkerPool::run(Grid &grid) {
    const uint64_t helpers = grid.barrier ? grid.blocks - 1 : std::min<uint64_t>(size - 1, grid.blocks - 1);
    const uint64_t there = helpers ? wake_helpers(grid, helpers, grid.barrier ? helpers : 0) : 0;
    if (grid.barrier && there < helpers)
        return too_few_threads(grid, helpers, there);
    run_blocks(grid);
    if (there == 0)
        return cudaSuccess;
    {
        std::lock_guard<std::mutex> lock(mutex);
        wanted = 0; // a helper that wakes up after this finds no work
    }
    if (spin_until([this] { return active == 0; }))
        return cudaSuccess;
    std::unique_lock<std::mutex> lock(mutex);
    done.wait(lock, [this] { return active == 0; });
    return cudaSuccess;
}

cudaError_t WorkerPool::start(Grid &grid) {
    const uint64_t helpers = grid.barrier ? grid.blocks : std::min<uint64_t>(size, grid.blocks),
                   needed = grid.barrier ? helpers : 1, there = wake_helpers(grid, helpers, needed);
    if (needed > 1 && there < needed)
        return too_few_threads(grid, needed, there);
    if (there == 0) {
        grid.detached = false;
        run_blocks(grid);
        launch_lock().unlock();
        grid.done = true;
    }
    return cudaSuccess;
}

void WorkerPool::wait(Grid &grid, std::chrono::milliseconds limit) {
    const bool asynchronous = grid.asynchronous;
    const auto over = [&] { return grid.done || grid.asynchronous != asynchronous; };
    if (!asynchronous && spin_until(over))
        return;
    std::unique_lock<std::mutex> lock(mutex);
    done.wait_for(lock, limit, over);
}

uint64_t WorkerPool::wake_helpers(Grid &grid, uint64_t helpers, uint64_t needed) {
    {
        std::lock_guard<std::mutex> lock(mutex);
        while (started < helpers && start_thread([this] { work(); }))
            ++started;
        helpers = std::min(helpers, started);
        if (helpers == 0 || helpers < needed)
            return helpers;
        current = &grid;
        wanted = helpers;
        ++generation;
    }
    for (uint64_t i = 0; i < helpers; ++i)
        wake.notify_one();
    return helpers;
}

void WorkerPool::work() {
    uint64_t seen = 0;
    for (;;) {
        spin_until([&] { return generation != seen; });
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return wanted > 0 && generation != seen; });
        --wanted;
        seen = generation;
        Grid &grid = *current;
        ++active;
        lock.unlock();
        {
            const OnDevice device(grid.device);
            run_blocks(grid);
        }
        const bool detached =
            grid.detached; // read now: if it is false, the grid may not exist when active is 0
        lock.lock();
        if (--active > 0)
            continue;
        if (detached && grid.next >= grid.blocks) {
            wanted = 0; // a helper that wakes up after this finds no work
            launch_lock().unlock();
            grid.done = true; // from here on the grid may be destroyed
        }
        done.notify_one();
    }
}

struct FreePools {
    std::mutex mutex;
    std::vector<WorkerPool *> pools;
};

ONLY(free_pools, FreePools)

WorkerPool *take_pool() {
    std::lock_guard<std::mutex> lock(free_pools().mutex);
    if (free_pools().pools.empty())
        return new WorkerPool;
    WorkerPool *const pool = free_pools().pools.back();
    free_pools().pools.pop_back();
    return pool;
}

void give_back(WorkerPool *pool) {
    std::lock_guard<std::mutex> lock(free_pools().mutex);
    free_pools().pools.push_back(pool);
}

} // namespace cuda_cpu
