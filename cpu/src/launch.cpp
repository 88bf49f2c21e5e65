// SPDX-License-Identifier: MIT
/*
 * Launches: checks the configuration, then distributes the blocks over a pool of workers.
 *
 * The calling thread is a worker too and starts at once, so a launch of a few blocks never waits for
 * another thread to wake up. A launch has completed when launch_grid returns. Both are different in programs
 * whose kernels can poll: see "Asynchronous launches" in operation.h.
 */
#include "block.h"
#include "operation.h"
#include "race.h"
#include "trace.h"

#include <algorithm>
#include <assert.h>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <sched.h>
#include <string>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace cuda_cpu {

bool start_thread(std::function<void()> run) {
    try {
        std::thread(std::move(run)).detach();
        return true;
    } catch (const std::system_error &error) {
        errno = error.code().value();
    } catch (const std::bad_alloc &) {
        errno = ENOMEM;
    }
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

namespace {

// Since compute capability 7.0, threads that have returned count as arrived at a barrier. This option selects
// the strict rule: every thread of the block must reach the barrier.
bool strict_barriers() {
    const char *value = getenv("CUDA_CPU_STRICT");
    if (value && strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        refuse_setting("CUDA_CPU_STRICT", value, "0 or 1");
    return value && *value == '1';
}

// The order in which blocks, and the threads of a block, run. If a result depends on the order, the program
// has a data race, or depends on the order of atomic operations.
struct Schedule {
    enum { forward, reverse, random } kind = forward;
    uint64_t seed = 0;

    Schedule() {
        const char *value = getenv("CUDA_CPU_SCHEDULE");
        if (!value || strcmp(value, "forward") == 0)
            return;
        char *end = nullptr;
        if (strcmp(value, "reverse") == 0)
            kind = reverse;
        else if (strncmp(value, "random:", 7) == 0 && (seed = strtoull(value + 7, &end, 10), *end == 0) &&
                 end != value + 7)
            kind = random;
        else
            refuse_setting("CUDA_CPU_SCHEDULE", value, "forward, reverse or random:SEED");
    }

    uint64_t block(uint64_t i, uint64_t n) const {
        if (kind == reverse)
            return n - 1 - i;
        if (kind == random) { // i -> (a i + seed) mod n, a permutation because a and n are coprime
            uint64_t a = (seed * 2 + 1) % n;
            while (std::gcd(a, n) != 1)
                ++a;
            return (uint64_t)(((unsigned __int128)a * i + seed) % n);
        }
        return i;
    }

    // Fills `order` with a permutation of the block's threads and returns it; returns null for ascending
    // order.
    const uint16_t *threads(uint16_t *order, unsigned count, uint64_t block) const {
        if (kind == forward)
            return nullptr;
        for (unsigned i = 0; i < count; ++i)
            order[i] = (uint16_t)(kind == reverse ? count - 1 - i : i);
        if (kind == random) {
            std::minstd_rand generator((unsigned)(seed * 2654435761u + block + 1));
            for (unsigned i = count; i > 1; --i)
                std::swap(order[i - 1], order[generator() % i]);
        }
        return order;
    }
};

// The grid barrier of a cooperative launch: how many blocks wait at it, how often all have passed it, and how
// many blocks have ended. The mutex protects these numbers.
struct GridBarrier {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t waiting = 0, generation = 0, ended = 0;
};

// Dynamic parallelism: a child grid, or a copy or fill, that a kernel of the parent grid has launched
struct Child {
    Operation operation;
    const Worker *by; // the worker that ran the block in which it was launched
    bool last;        // launched into cudaStreamTailLaunch: runs after all other children
};

// The nesting depth of a grid: 0 if the host has launched it. Otherwise the number of grids launched by
// device code that have not completed while it runs: itself, its parent grid, the parent's parent grid and so
// on. The parent of a grid in cudaStreamTailLaunch has completed, so it does not count.
thread_local unsigned launch_depth = 0; // the nesting depth of grids that this host thread launches
thread_local bool
    launches_inside; // this host thread runs child grids for cudaDeviceSynchronize() in a kernel

struct Grid {
    const LaunchConfig &config;
    const Kernel &kernel;
    const Schedule &schedule;
    size_t shared_limit;
    uint64_t blocks, chunk;
    std::unique_ptr<GridBarrier> barrier; // only in a cooperative launch
    bool strict;
    int device;
    Trace *trace; // null: the launch is not recorded
    const unsigned depth = launch_depth;
    std::mutex children_mutex{}; // protects `children`
    std::vector<Child> children{};
    std::atomic<uint64_t> next{0};
    std::atomic<cudaError_t> ended{cudaSuccess}; // set by an assertion or __trap(): no further block starts

    // For kernels that poll (suspend_while_polling): the number of workers that run blocks, and of those
    // whose threads all poll or wait at the grid barrier. Workers of a suspended grid run no blocks.
    std::atomic<uint64_t> workers{0}, waiting_workers{0};
    std::atomic<bool> suspended{false};
    // A grid that runs without the calling host thread, whose launch can become asynchronous.
    bool detached = false;
    std::atomic<bool> return_requested{false}; // the calling thread must return
    std::atomic<bool> asynchronous{false};     // all threads polled then, so the launch returns
    std::atomic<bool> done{false};             // all blocks have ended

    // The grid can be suspended when so many of its workers wait. The blocks of a cooperative launch that
    // have not started yet count, too.
    uint64_t workers_to_wait() {
        if (!barrier)
            return workers;
        std::lock_guard<std::mutex> lock(barrier->mutex);
        return blocks - barrier->ended;
    }

    void block_ended() const {
        std::lock_guard<std::mutex> lock(barrier->mutex);
        ++barrier->ended;
        barrier->changed.notify_all(); // wakes the waiting blocks, so that they report divergence
    }
};

__thread Grid *current_grid;

// Protects Grid::suspended. Workers of a suspended grid wait for `changed`.
struct Suspension {
    std::mutex mutex;
    std::condition_variable changed;
};

Suspension &suspension() {
    static Suspension &all = *new Suspension; // never destroyed: workers may wait while the process exits
    return all;
}

// Counts the calling worker as one of the grid's, and waits while the grid is suspended.
void enter_grid(Grid &grid) {
    ++grid.workers;
    if (!grid.suspended)
        return;
    std::unique_lock<std::mutex> lock(suspension().mutex);
    suspension().changed.wait(lock, [&] { return !grid.suspended; });
}

template <bool traced> __attribute__((noinline)) void run_chunks(Grid &grid, Worker &worker) {
    const dim3 size = grid.config.grid;
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
            blockIdx = {};
            if (first > 0)
                blockIdx = {(unsigned)(first % size.x), (unsigned)(first / size.x % size.y),
                            (unsigned)(first / size.x / size.y)};
            for (uint64_t i = first; i < last; ++i) {
                run(i);
                if (++blockIdx.x == size.x) { // incremented, because divisions are slow
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
                blockIdx = {(unsigned)(b % size.x), (unsigned)(b / size.x % size.y),
                            (unsigned)(b / size.x / size.y)};
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

// Runs chunks of blocks until none is left or end_launch() is called. In the latter case the block's threads
// are abandoned, and their stacks are not used again.
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
    worker.strict = grid.strict;
    worker.prepare_shared(grid.config.shared_bytes, grid.shared_limit);
    worker.kernel = &grid.kernel;
    if (kernels_may_poll())
        enter_grid(grid);
    current_block = &worker;
    current_grid = &grid;
    if (__builtin_setjmp(worker.leave) == 0) {
        if (grid.trace)
            run_chunks<true>(grid, worker);
        else
            run_chunks<false>(grid, worker);
    } else {
        worker.abandon_block();
        traced_block = nullptr;
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

// The workers other than the calling thread. They sleep until there is a grid. The pool is never destroyed,
// because its threads run until the process ends.
class Pool {
  public:
    // Runs the grid on the calling thread and on helpers, at most one for each block after the first, and
    // fewer if the system refuses threads. A cooperative launch needs exactly that many, because its blocks
    // wait for each other; without them it fails.
    cudaError_t run(Grid &grid) {
        const uint64_t helpers =
            grid.barrier ? grid.blocks - 1 : std::min<uint64_t>(size - 1, grid.blocks - 1);
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

    // Starts a grid that runs on helpers alone. At its end the last helper releases launch_lock() and sets
    // `done`. If the system refuses all threads, the calling thread runs the grid.
    cudaError_t start(Grid &grid) {
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

    // Waits until the grid is done, or until its launch becomes asynchronous, but no longer than `limit`.
    void wait(Grid &grid, std::chrono::milliseconds limit) {
        const bool asynchronous = grid.asynchronous;
        const auto over = [&] { return grid.done || grid.asynchronous != asynchronous; };
        if (!asynchronous && spin_until(over))
            return;
        std::unique_lock<std::mutex> lock(mutex);
        done.wait_for(lock, limit, over);
    }

    const unsigned size = worker_count();

  private:
    // Wakes this many helpers, or as many as the system permits, and returns their number. If they are fewer
    // than needed, none is woken.
    uint64_t wake_helpers(Grid &grid, uint64_t helpers, uint64_t needed) {
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

    static cudaError_t too_few_threads(const Grid &grid, uint64_t needed, uint64_t there) {
        return fail(cudaErrorLaunchOutOfResources,
                    "launch of %s at %s:%d: needs %llu host threads, the system permits %llu",
                    grid.kernel.name, base_name(grid.kernel.file), grid.kernel.line,
                    (unsigned long long)needed, (unsigned long long)there);
    }

    void work() {
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

    std::mutex mutex;
    std::condition_variable wake, done;
    Grid *current = nullptr;
    std::atomic<uint64_t> generation{0};
    std::atomic<uint64_t> active{0};
    uint64_t started = 0, wanted = 0;
};

cudaError_t check(const LaunchConfig &c, const Kernel &kernel, bool cooperative, size_t &shared_limit) {
    const cudaDeviceProp &device = properties(current_device());
    const unsigned grid[3] = {c.grid.x, c.grid.y, c.grid.z};
    const unsigned block[3] = {c.block.x, c.block.y, c.block.z};
    const auto refuse = [&](cudaError_t error, const char *what, uint64_t value, uint64_t limit) {
        const std::string line = kernel.line ? ":" + std::to_string(kernel.line) : ""; // 0: not known
        return fail(error, "launch of %s at %s%s: %s is %llu, must be from 1 to %llu", kernel.name,
                    base_name(kernel.file), line.c_str(), what, (unsigned long long)value,
                    (unsigned long long)limit);
    };
    static const char *const grid_names[] = {"gridDim.x", "gridDim.y", "gridDim.z"};
    static const char *const block_names[] = {"blockDim.x", "blockDim.y", "blockDim.z"};
    for (int i = 0; i < 3; ++i) {
        if (grid[i] == 0 || grid[i] > (unsigned)device.maxGridSize[i])
            return refuse(cudaErrorInvalidConfiguration, grid_names[i], grid[i], device.maxGridSize[i]);
        if (block[i] == 0 || block[i] > (unsigned)device.maxThreadsDim[i])
            return refuse(cudaErrorInvalidConfiguration, block_names[i], block[i], device.maxThreadsDim[i]);
    }
    const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (threads > (uint64_t)device.maxThreadsPerBlock)
        return refuse(cudaErrorInvalidConfiguration, "the number of threads of a block", threads,
                      device.maxThreadsPerBlock);
    const unsigned most_threads = kernel.function->most_threads;
    if (most_threads && threads > most_threads)
        return refuse(cudaErrorInvalidValue,
                      "the number of threads of a block, of a kernel with __launch_bounds__,", threads,
                      most_threads);
    // cudaFuncSetAttribute limits dynamic shared memory only. Static shared memory is added to it; how much
    // device functions have is known only when they run.
    const size_t raised_limit = kernel.function->dynamic_limit;
    const size_t dynamic_limit = std::max(raised_limit, device.sharedMemPerBlock);
    if (c.shared_bytes > dynamic_limit)
        return refuse(cudaErrorInvalidValue, "the dynamic shared memory in bytes", c.shared_bytes,
                      dynamic_limit);
    shared_limit = device.sharedMemPerBlock;
    if (raised_limit)
        shared_limit = std::min(device.sharedMemPerBlockOptin, raised_limit + shared_limit);
    if (cooperative) {
        const uint64_t resident =
            (uint64_t)resident_blocks(device, (unsigned)threads, c.shared_bytes) * device.multiProcessorCount;
        const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
        if (blocks > resident)
            return refuse(cudaErrorCooperativeLaunchTooLarge, "the number of blocks of a cooperative launch",
                          blocks, resident);
    }
    return cudaSuccess;
}

} // namespace

void wait_at_grid_barrier() {
    Grid *const grid = current_grid;
    if (!grid->barrier)
        kernel_error("this_grid().sync() at %s:%d needs a cooperative launch",
                     base_name(self->barrier_site.file), self->barrier_site.line);
    GridBarrier &barrier = *grid->barrier;
    std::unique_lock<std::mutex> lock(barrier.mutex);
    if (++barrier.waiting == grid->blocks) {
        if (race_grid_barrier)
            race_grid_barrier();
        grid->waiting_workers -= barrier.waiting - 1;
        barrier.waiting = 0;
        ++barrier.generation;
        barrier.changed.notify_all();
        return;
    }
    const uint64_t generation = barrier.generation;
    ++grid->waiting_workers;
    self->watch.at_grid_barrier = true;
    while (generation == barrier.generation) {
        if (barrier.waiting + barrier.ended == grid->blocks) {
            lock.unlock();
            kernel_error("divergent grid barrier: %llu of %llu blocks wait at %s:%d, the others "
                         "have returned",
                         (unsigned long long)barrier.waiting, (unsigned long long)grid->blocks,
                         base_name(self->barrier_site.file), self->barrier_site.line);
        }
        barrier.changed.wait(lock);
    }
    self->watch.at_grid_barrier = false;
}

void suspend_while_polling() {
    Grid &grid = *current_grid;
    TicketLock &running = launch_lock();
    if (!kernels_may_poll() || (!running.contended() && !grid.return_requested))
        return;
    std::condition_variable &changed = suspension().changed;
    std::unique_lock<std::mutex> lock(suspension().mutex);
    ++grid.waiting_workers;
    // Set before the comparison: workers that start later wait in enter_grid(), and workers_to_wait() counts
    // those that have started earlier.
    grid.suspended = true;
    if (grid.waiting_workers == grid.workers_to_wait()) {
        if (grid.return_requested) {
            grid.return_requested = false;
            grid.asynchronous = true;
        }
        lock.unlock();
        running
            .unlock(); // the grids that wait for the lock run before this one, in the order of their requests
        running.lock();
        symbols_for_device(grid.device);
        lock.lock();
        grid.suspended = false;
        changed.notify_all();
    } else { // other workers still make progress
        grid.suspended = false;
        changed.notify_all();
        // If these workers begin to poll within the next millisecond, the last of them suspends the grid.
        changed.wait_for(lock, std::chrono::milliseconds(1), [&] { return grid.suspended.load(); });
        changed.wait(lock, [&] { return !grid.suspended; });
    }
    --grid.waiting_workers;
}

__thread Launch *current_launch;

void launched_no_kernel(const char *name, Site site) {
    fprintf(stderr, "cuda on the CPU: %s:%d: %s<<<…>>> is not the launch of a kernel: %s is not __global__\n",
            base_name(site.file), site.line, name, name);
    exit(EXIT_FAILURE);
}

void called_without_launch(const char *kernel) {
    fprintf(stderr, "cuda on the CPU: the kernel %s is called as a function: it needs <<<grid, block>>>\n",
            kernel);
    exit(EXIT_FAILURE);
}

// Ends the launch with a sticky error, as on a GPU: the worker leaves its block, and no further block starts.
[[noreturn]] static void end_launch(cudaError_t error) {
#ifndef CUDA_CPU_WATCHED          // the sanitizers cannot follow this jump
    if (!current_grid->barrier) { // a cooperative launch has a grid barrier, which every block must reach
        cudaError_t none = cudaSuccess;
        current_grid->ended.compare_exchange_strong(none, error);
        current_grid->next = current_grid->blocks;
        __builtin_longjmp(self->leave, 1);
    }
#endif
    (void)error;
    quick_exit(EXIT_FAILURE);
}

void trap(const char *file, int line) {
    fflush(stdout);
    fprintf(stderr, "cuda on the CPU: __trap() at %s:%d\n", base_name(file), line);
    if (!self || !self->kernel)
        quick_exit(EXIT_FAILURE);
    end_launch(cudaErrorLaunchFailure);
}

void assertion_failed(uint3 thread, const char *expression, const char *file, unsigned line,
                      const char *function) {
    if (!self || !self->kernel)
        __assert_fail(expression, file, line, function);
    const char *end = strstr(function, "::<lambda("); // "::<lambda(" in the name marks the body of a kernel
    if (!end)
        end = strstr(function, "::(anonymous class)");
    fflush(stdout);
    fprintf(stderr, "%s:%u: %.*s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file, line,
            (int)(end ? end - function : strlen(function)), function, blockIdx.x, blockIdx.y, blockIdx.z,
            thread.x, thread.y, thread.z, expression);
    end_launch(cudaErrorAssert);
}

cudaError_t refuse_without_arguments(const char *kernel, Site site) {
    return fail(cudaErrorInvalidValue, "launch of %s at %s:%d: the list of arguments is NULL", kernel,
                base_name(site.file), site.line);
}

bool in_cooperative_launch() {
    return current_grid && current_grid->barrier;
}

// Pools that run no grid now. Each running or suspended grid has a pool of its own.
struct Pools {
    std::mutex mutex;
    std::vector<Pool *> free;
};

static Pools &pools() {
    static Pools &all = *new Pools;
    return all;
}

static Pool *take_pool() {
    std::lock_guard<std::mutex> lock(pools().mutex);
    if (pools().free.empty())
        return new Pool;
    Pool *const pool = pools().free.back();
    pools().free.pop_back();
    return pool;
}

static void give_back(Pool *pool) {
    std::lock_guard<std::mutex> lock(pools().mutex);
    pools().free.push_back(pool);
}

static Grid new_grid(const LaunchConfig &config, const Kernel &kernel, bool cooperative, size_t shared_limit,
                     unsigned workers) {
    static const Schedule schedule;
    static const bool strict = strict_barriers();
    guards(); // before DeviceAccess is created: the kernel itself may make the first cudaMalloc
    const uint64_t blocks = (uint64_t)config.grid.x * config.grid.y * config.grid.z;
    const uint64_t chunk =
        cooperative ? 1 : std::min<uint64_t>(1024, std::max<uint64_t>(1, blocks / (workers * 8)));
    auto barrier = cooperative ? std::make_unique<GridBarrier>() : nullptr;
    return {config,
            kernel,
            schedule,
            shared_limit,
            blocks,
            chunk,
            std::move(barrier),
            strict,
            current_device(),
            trace_launch(kernel, config)};
}

static void report_end(const Kernel &kernel, const Grid &grid) {
    finish_trace(grid.trace);
    const cudaError_t ended = grid.ended;
    if (ended != cudaSuccess)
        fail_for_good(ended, "kernel %s, launched at %s:%d, was ended by %s", kernel.name,
                      base_name(kernel.file), kernel.line,
                      ended == cudaErrorAssert ? "an assertion" : "__trap()");
}

// ---- dynamic parallelism ----

// A child that this host thread has to run, and the nesting depth of a grid that it launches
struct PendingChild {
    Operation operation;
    unsigned depth;
};
// A stack of the children that run_children() of this host thread still has to run: the last element runs
// first. Null while run_children() does not run.
static thread_local std::vector<PendingChild> *pending_children;

// Runs the children of a grid of this nesting depth, in the order of their launches, and after each child its
// own children. Thousands of nested grids would overflow the stack of a recursive function. So a nested call,
// for the children of a child grid, only pushes them on the stack of the outer call.
static void run_children(std::vector<Child> children, unsigned depth) {
    if (children.empty())
        return;
    std::vector<PendingChild> mine, &pending = pending_children ? *pending_children : mine;
    for (const bool last : {true, false})
        for (auto child = children.rbegin(); child != children.rend(); ++child)
            if (child->last == last)
                pending.push_back({std::move(child->operation), last ? std::max(depth, 1u) : depth + 1});
    if (pending_children)
        return;
    struct Loop {
        const unsigned outer_depth = launch_depth;
        ~Loop() {
            launch_depth = outer_depth;
            pending_children = nullptr;
        }
    } const loop;
    pending_children = &pending;
    while (!pending.empty()) {
        const PendingChild child = std::move(pending.back());
        pending.pop_back();
        launch_depth = child.depth;
        perform(child.operation); // prints a message if it fails
    }
}

// Takes the children out of the grid. There are none to run if an assertion or __trap() has ended the grid.
static std::vector<Child> children_of(Grid &grid) {
    return grid.ended == cudaSuccess ? std::move(grid.children) : std::vector<Child>();
}

cudaError_t store_child(Operation operation, bool last) {
    Grid &grid = *current_grid;
    operation.device = grid.device;
    std::lock_guard<std::mutex> lock(grid.children_mutex);
    grid.children.push_back({std::move(operation), self, last});
    return cudaSuccess;
}

static cudaError_t launch_in_kernel(const LaunchConfig &config, const Kernel &kernel, bool cooperative) {
    self->slice = atomics_in_a_row; // see Launch in kernel.h
    if (cooperative)
        kernel_error("%s is launched inside a kernel as a cooperative launch, which CUDA does not have",
                     kernel.name);
    size_t shared_limit = 0;
    if (check(config, kernel, false, shared_limit) != cudaSuccess)
        return set_last_error(cudaErrorInvalidConfiguration);
    const bool last = config.stream == cudaStreamTailLaunch;
    if (!last && config.stream != cudaStreamFireAndForget &&
        !stream_known(config.stream, "kernel launch", nullptr))
        return set_last_error(cudaErrorInvalidValue);
    const size_t most = limit_of(current_grid->device, cudaLimitDevRuntimePendingLaunchCount);
    if (current_grid->depth >= most)
        return fail(cudaErrorLaunchPendingCountExceeded,
                    "launch of %s at %s:%d: %zu nested grids have not completed, the largest number that "
                    "cudaLimitDevRuntimePendingLaunchCount permits",
                    kernel.name, base_name(kernel.file), kernel.line, most);
    LaunchConfig here = config;
    here.stream = nullptr; // the child grid runs as a part of the parent grid's launch, in its stream
    return store_child({"kernel launch", store_launch(here, kernel, false)}, last);
}

// The calling worker is blocked, so a new host thread runs the child grids. It runs them without further
// workers: the blocks of a child grid may call this function too, and with several workers for each grid the
// number of host threads would grow exponentially with the nesting depth.
cudaError_t finish_children() {
    Grid &grid = *current_grid;
    std::vector<Child> mine;
    {
        std::lock_guard<std::mutex> lock(grid.children_mutex);
        const auto others = std::stable_partition(grid.children.begin(), grid.children.end(),
                                                  [](const Child &child) { return child.by == self; });
        std::move(grid.children.begin(), others, std::back_inserter(mine));
        grid.children.erase(grid.children.begin(), others);
    }
    if (mine.empty())
        return cudaSuccess;
    if (race_launch)
        kernel_error(
            "cudaDeviceSynchronize() in a kernel is not supported in a program that is built for checking");
    try {
        std::thread([&] {
            launches_inside = true;
            run_children(std::move(mine), grid.depth);
        }).join();
    } catch (const std::exception &error) { // std::system_error or std::bad_alloc
        kernel_error("cudaDeviceSynchronize() in a kernel: the system permits no further host thread: %s",
                     error.what());
    }
    return cudaSuccess;
}

// Runs a grid whose launch configuration is valid, and afterwards its child grids.
static cudaError_t run_grid(const LaunchConfig &config, const Kernel &kernel, bool cooperative,
                            size_t shared_limit) {
    std::vector<Child> children;
    cudaError_t error = cudaSuccess;
    if (launches_inside) { // launch_lock() is held by the launch of the parent grid, which waits for this one
        Grid grid = new_grid(config, kernel, cooperative, shared_limit, 1);
        const DeviceAccess access;
        run_blocks(grid);
        report_end(kernel, grid);
        children = children_of(grid);
    } else {
        std::lock_guard<TicketLock> running(launch_lock());
        symbols_for_device(current_device());
        if (race_launch)
            race_launch(kernel, config);
        static Pool *const only = kernels_may_poll() ? nullptr : take_pool();
        Pool *const pool = only ? only : take_pool();
        Grid grid = new_grid(config, kernel, cooperative, shared_limit, pool->size);
        const TimeLimit limit(kernel, grid.next);
        const DeviceAccess access;
        error = pool->run(grid);
        if (!only)
            give_back(pool);
        report_end(kernel, grid);
        children = children_of(grid);
    }
    run_children(std::move(children), launch_depth);
    return error;
}

// ---- kernels that wait for the host or for other kernels ----

// Assembler code in atomic_without_effect() and the like (kernel.h) adds a byte to this section, so it exists
// only in programs whose kernels may poll.
extern "C" char __start_cuda_polls[] __attribute__((weak, visibility("hidden")));

bool kernels_may_poll() {
    return __start_cuda_polls && !race_launch; // the race detector knows one launch at a time
}

struct AsyncLaunch {
    const StoredLaunch launch;
    Pool *const pool;
    Grid grid;
    const TimeLimit limit;
    const DeviceAccess access{};

    AsyncLaunch(const StoredLaunch &stored, size_t shared_limit)
        : launch(stored), pool(take_pool()),
          grid(new_grid(launch.config, launch.kernel, launch.cooperative, shared_limit, pool->size)),
          limit(launch.kernel, grid.next) {
        grid.detached = true;
    }
    ~AsyncLaunch() { give_back(pool); }
};

// The number of asynchronous launches, and of host threads that wait for one
static std::atomic<int> async_launches{0}, waiting_hosts{0};

bool host_may_signal() {
    return async_launches > 0 && waiting_hosts == 0;
}

cudaError_t start_launch(const StoredLaunch &launch, AsyncLaunchPointer &async) {
    using namespace std::chrono;
    size_t shared_limit = 0;
    if (const cudaError_t error = check(launch.config, launch.kernel, launch.cooperative, shared_limit))
        return error;
    launch_lock().lock();
    symbols_for_device(current_device());
    async = std::make_shared<AsyncLaunch>(launch, shared_limit);
    Grid &grid = async->grid;
    if (const cudaError_t error = async->pool->start(grid)) {
        async = nullptr;
        launch_lock().unlock();
        return error;
    }
    for (const auto start = steady_clock::now(); !grid.done && !grid.asynchronous;) {
        async->pool->wait(grid, milliseconds(5));
        if (steady_clock::now() - start > milliseconds(20))
            grid.return_requested = true;
    }
    if (grid.done)
        complete_launch(async);
    else
        ++async_launches;
    return cudaSuccess;
}

bool kernel_ended(const AsyncLaunchPointer &async) {
    return async->grid.done;
}

HostWait::~HostWait() {
    if (waits)
        --waiting_hosts;
}

void HostWait::wait(const AsyncLaunchPointer &async) {
    if (!waits)
        ++waiting_hosts;
    waits = true;
    async->pool->wait(async->grid, std::chrono::milliseconds(1));
}

void complete_launch(AsyncLaunchPointer &async) {
    if (async->grid.asynchronous)
        --async_launches;
    report_end(async->launch.kernel, async->grid);
    std::vector<Child> children = children_of(async->grid);
    const unsigned depth = async->grid.depth;
    async = nullptr;
    run_children(std::move(children), depth);
}

cudaError_t run_launch(const LaunchConfig &config, const Kernel &kernel, bool cooperative) {
    size_t shared_limit = 0;
    if (const cudaError_t error = check(config, kernel, cooperative, shared_limit))
        return error;
    return run_grid(config, kernel, cooperative, shared_limit);
}

StoredLaunch store_launch(const LaunchConfig &config, const Kernel &kernel, bool cooperative) {
    StoredLaunch launch = {config, kernel, cooperative, nullptr};
    void *const copy = kernel.stored->copy(kernel.call);
    launch.call = {copy, [discard = kernel.stored->discard](void *call) { discard(call); }};
    launch.kernel.call = copy;
    return launch;
}

// If set, launch_grid stores the launch here and does not run it.
static thread_local StoredLaunch *stored_instead;

cudaError_t store_launch_of(Function &function, const LaunchConfig &config, void *const *arguments,
                            bool cooperative, StoredLaunch &stored) {
    stored_instead = &stored;
    const cudaError_t error = function.launch(config, arguments, cooperative, {"a node of a graph", 0});
    stored_instead = nullptr;
    return error;
}

cudaError_t launch_grid(const LaunchConfig &config, const Kernel &kernel, bool cooperative) {
    if (in_kernel_now())
        return launch_in_kernel(config, kernel, cooperative);
    size_t shared_limit = 0;
    if (const cudaError_t error = begin("kernel launch"))
        return error;
    if (!stream_usable(config.stream, "kernel launch"))
        return cudaPeekAtLastError();
    if (const cudaError_t error = check(config, kernel, cooperative, shared_limit))
        return error;
    if (stored_instead) {
        *stored_instead = store_launch(config, kernel, cooperative);
        return cudaSuccess;
    }
    if (!at_once() || kernels_may_poll())
        return submit(config.stream, {"kernel launch", store_launch(config, kernel, cooperative)});
    return run_grid(config, kernel, cooperative, shared_limit);
}

} // namespace cuda_cpu
