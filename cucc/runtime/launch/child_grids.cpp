// SPDX-License-Identifier: MIT
// Dynamic parallelism: grids that kernels launch, and the copies and fills of kernels.
#include "grid.h"

#include <thread>

namespace cuda_cpu {

thread_local unsigned launch_depth = 0;
thread_local bool launches_inside;

// A child that this host thread has to run, and the nesting depth of a grid that it launches
struct PendingChild {
    Operation operation;
    unsigned depth;
};
// The stack of children that this host thread still has to run; null while run_children() does not run.
static thread_local std::vector<PendingChild> *pending_children;

// Thousands of nested grids would overflow the stack of a recursive function. So a nested call, for the
// children of a child grid, only pushes them on the stack of the outer call.
void run_children(std::vector<Child> children, unsigned depth) {
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

std::vector<Child> children_of(Grid &grid) {
    return grid.ended == cudaSuccess ? std::move(grid.children) : std::vector<Child>();
}

cudaError_t store_child(Operation operation, bool last) {
    Grid &grid = *current_grid;
    operation.device = grid.device;
    std::lock_guard<std::mutex> lock(grid.children_mutex);
    grid.children.push_back({std::move(operation), self, last});
    return cudaSuccess;
}

cudaError_t launch_in_kernel(const LaunchConfig &config, const Kernel &kernel, bool cooperative) {
    self->slice = atomics_in_a_row; // see Launch in kernel.h
    if (cooperative)
        kernel_error("%s is launched inside a kernel as a cooperative launch, which CUDA does not have",
                     kernel.name);
    size_t shared_limit = 0;
    if (check_launch(config, kernel, false, shared_limit) != cudaSuccess)
        return set_last_error(cudaErrorInvalidConfiguration);
    const bool last = config.stream == cudaStreamTailLaunch;
    if (!last && config.stream != cudaStreamFireAndForget && check_stream("kernel launch", config.stream))
        return set_last_error(cudaErrorInvalidValue);
    const size_t most = limit_of(current_grid->device, cudaLimitDevRuntimePendingLaunchCount);
    if (current_grid->depth >= most)
        return fail(cudaErrorLaunchPendingCountExceeded,
                    "launch of %s at %s: %zu nested grids have not completed, the largest number that "
                    "cudaLimitDevRuntimePendingLaunchCount permits",
                    kernel.name, place(kernel.site).c_str(), most);
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

} // namespace cuda_cpu
