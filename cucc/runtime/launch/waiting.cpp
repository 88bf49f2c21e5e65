// SPDX-License-Identifier: MIT
// Kernels that wait: at the grid barrier, and by polling for the host or for another kernel (launch.h).
#include "grid.h"

namespace cuda_cpu {

// Protects Grid::suspended. Workers of a suspended grid wait for `changed`.
struct Suspension {
    std::mutex mutex;
    std::condition_variable changed;
};

ONLY(suspension, Suspension)

void enter_grid(Grid &grid) {
    ++grid.workers;
    if (!grid.suspended)
        return;
    std::unique_lock<std::mutex> lock(suspension().mutex);
    suspension().changed.wait(lock, [&] { return !grid.suspended; });
}

void wait_at_grid_barrier() {
    Grid *const grid = current_grid;
    if (!grid->barrier)
        kernel_error("this_grid().sync() at %s needs a cooperative launch",
                     place(self->barrier_site).c_str());
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
            kernel_error("divergent grid barrier: %llu of %llu blocks wait at %s, the others "
                         "have returned",
                         (unsigned long long)barrier.waiting, (unsigned long long)grid->blocks,
                         place(self->barrier_site).c_str());
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
    // Set before the comparison: workers that start later wait in enter_grid(), and earlier ones are counted.
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

// Assembler code in kernel.h adds a byte to this section, in programs whose kernels may poll.
extern "C" char __start_cuda_polls[] __attribute__((weak, visibility("hidden")));

bool kernels_may_poll() {
    return __start_cuda_polls && !race_launch; // the race detector knows one launch at a time
}

struct AsyncLaunch {
    const StoredLaunch launch;
    WorkerPool *const pool;
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
    TRY(check_launch(launch.config, launch.kernel, launch.cooperative, shared_limit));
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

} // namespace cuda_cpu
