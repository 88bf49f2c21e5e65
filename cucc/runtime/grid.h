// SPDX-License-Identifier: MIT
// A grid that runs: what launch.cpp, workers.cpp, child_grids.cpp and waiting.cpp share.
#pragma once
#include "stream.h"
#include "trace.h"

#include <numeric>
#include <random>

namespace cuda_cpu {

// The order in which blocks, and the threads of a block, run. If a result depends on the order, the program
// has a data race, or depends on the order of atomic operations. With random, each launch has another order.
struct Schedule {
    enum Kind { forward, reverse, random } kind;
    uint64_t seed = 0;

    Schedule() { kind = (Kind)setting_of("CUDA_CPU_SCHEDULE", {"forward", "reverse", "random:SEED"}, &seed); }

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

    // Fills `order` with a permutation of the threads and returns it; null for ascending order.
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
extern thread_local unsigned launch_depth; // the nesting depth of grids that this host thread launches
// This host thread runs child grids for cudaDeviceSynchronize() in a kernel.
extern thread_local bool launches_inside;

// Memory that a kernel has only pointers to const to, as it was before
struct Input {
    size_t parameter; // from 1
    Allocation memory;
    std::string before;
};

struct Grid {
    const LaunchConfig &config;
    const Kernel &kernel;
    const Schedule schedule;
    size_t shared_limit;
    uint64_t blocks, chunk;
    std::unique_ptr<GridBarrier> barrier; // only in a cooperative launch
    bool strict;
    std::vector<Input> inputs; // only with CUDA_CPU_CONST=1
    int device;
    Trace *trace; // null: the launch is not recorded
    const unsigned depth = launch_depth;
    std::mutex children_mutex{}; // protects `children`
    std::vector<Child> children{};
    std::atomic<uint64_t> next{0};
    std::atomic<cudaError_t> ended{cudaSuccess}; // set by end_launch(): no further block starts

    // For kernels that poll (suspend_while_polling): the number of workers that run blocks, and of those
    // whose threads all poll or wait at the grid barrier. Workers of a suspended grid run no blocks.
    std::atomic<uint64_t> workers{0}, waiting_workers{0};
    std::atomic<bool> suspended{false};
    // A grid that runs without the calling host thread, whose launch can become asynchronous.
    bool detached = false;
    std::atomic<bool> return_requested{false}; // the calling thread must return
    std::atomic<bool> asynchronous{false};     // all threads polled then, so the launch returns
    std::atomic<bool> done{false};             // all blocks have ended

    // The grid can be suspended when so many workers wait, counting blocks that have not started.
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

extern __thread Grid *current_grid; // the grid of the block that this host thread runs

// ---- launch.cpp ----

// Checks the configuration of a launch, and sets the limit of shared memory of a block.
cudaError_t check_launch(const LaunchConfig &config, const Kernel &kernel, bool cooperative,
                         size_t &shared_limit);
Grid new_grid(const LaunchConfig &config, const Kernel &kernel, bool cooperative, size_t shared_limit,
              unsigned workers);
void report_end(const Kernel &kernel, const Grid &grid); // reports how the kernel has ended

// ---- workers.cpp ----

// Runs chunks of blocks until none is left, or until end_launch(): then threads and stacks are abandoned.
void run_blocks(Grid &grid);

// A pool of workers other than the calling thread, which sleep until there is a grid. Each running or
// suspended grid has its own. It is never destroyed: its threads run until the process ends.
class WorkerPool {
  public:
    // Runs the grid on the calling thread and on helpers, at most one for each block after the first. A
    // cooperative launch needs so many, because its blocks wait for each other, and fails without them.
    cudaError_t run(Grid &grid);

    // Starts a grid that runs on helpers alone. At its end the last helper releases launch_lock() and sets
    // `done`. If the system refuses all threads, the calling thread runs the grid.
    cudaError_t start(Grid &grid);

    // Waits until the grid is done, or until its launch becomes asynchronous, but no longer than `limit`.
    void wait(Grid &grid, std::chrono::milliseconds limit);

    const unsigned size = worker_count();

  private:
    // Wakes so many helpers, or as many as the system permits; none if these are too few.
    uint64_t wake_helpers(Grid &grid, uint64_t helpers, uint64_t needed);

    void work();

    std::mutex mutex;
    std::condition_variable wake, done;
    Grid *current = nullptr;
    std::atomic<uint64_t> generation{0};
    std::atomic<uint64_t> active{0};
    uint64_t started = 0, wanted = 0;
};

WorkerPool *take_pool(); // one that runs no grid now
void give_back(WorkerPool *pool);

// ---- child_grids.cpp ----

cudaError_t launch_in_kernel(const LaunchConfig &config, const Kernel &kernel, bool cooperative);
// Takes the children out of the grid. There are none to run if an assertion or __trap() has ended the grid.
std::vector<Child> children_of(Grid &grid);
// Runs the children of a grid of this depth, in the order of their launches, each with its own children.
void run_children(std::vector<Child> children, unsigned depth);

// ---- waiting.cpp ----

// Counts the calling worker as one of the grid's, and waits while the grid is suspended.
void enter_grid(Grid &grid);

} // namespace cuda_cpu
