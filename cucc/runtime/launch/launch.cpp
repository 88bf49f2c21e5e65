// SPDX-License-Identifier: MIT
// Launches: checks the configuration, and runs the grid. A launch has completed when launch_grid returns,
// except in programs whose kernels can poll: see "Asynchronous launches" in launch.h.
#include "grid.h"

#include <assert.h>

namespace cuda_cpu {

cudaError_t check_launch(const LaunchConfig &c, const Kernel &kernel, bool cooperative,
                         size_t &shared_limit) {
    const cudaDeviceProp &device = properties(current_device());
    const unsigned grid[3] = {c.grid.x, c.grid.y, c.grid.z};
    const unsigned block[3] = {c.block.x, c.block.y, c.block.z};
    const auto refuse = [&](cudaError_t error, const char *what, uint64_t value, uint64_t limit) {
        return fail(error, "launch of %s at %s: %s is %llu, must be from 1 to %llu", kernel.name,
                    place(kernel.site).c_str(), what, (unsigned long long)value, (unsigned long long)limit);
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
    // Dynamic shared memory only (cudaFuncSetAttribute); static is added, for device functions later.
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

__thread Launch *current_launch;

void launched_no_kernel(const char *name, Site site) {
    end_program("%s: %s<<<…>>> is not the launch of a kernel: %s is not __global__", place(site).c_str(),
                name, name);
}

void called_without_launch(const char *kernel) {
    fail(cudaErrorMissingConfiguration, "the kernel %s is called as a function: it needs <<<grid, block>>>",
         kernel);
    launch_failed();
}

void end_launch(cudaError_t error) {
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
    print_line("__trap() at %s:%d", base_name(file), line);
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
    return fail(cudaErrorInvalidValue, "launch of %s at %s: the list of arguments is NULL", kernel,
                place(site).c_str());
}

bool in_cooperative_launch() {
    return current_grid && current_grid->barrier;
}

// CUDA_CPU_CONST=1: memory that a kernel has only pointers to const to must be the same after it.
static std::vector<Input> inputs_of(const Kernel &kernel) {
    static const bool wanted = setting_of("CUDA_CPU_CONST", {"0", "1"});
    std::vector<Input> inputs;
    if (!wanted)
        return inputs;
    const StoredCall &call = *kernel.stored;
    const DeviceAccess access;
    std::vector<const uintptr_t *> values(call.arguments(kernel.call, nullptr));
    call.arguments(kernel.call, (const void **)values.data());
    for (size_t i = 0; i < values.size(); ++i) {
        const auto a = call.types[i].points_to_const ? find_allocation((void *)*values[i]) : std::nullopt;
        bool input = a.has_value();
        const auto leads_there = [&](uintptr_t word) { return word - (uintptr_t)a->base < a->size; };
        for (size_t k = 0; input && k < values.size(); ++k) // a class may have pointers too
            input = call.types[k].points_to_const ||
                    std::none_of(values[k], values[k] + call.types[k].size / sizeof(uintptr_t), leads_there);
        if (input)
            inputs.push_back({i + 1, *a, {a->base, a->size}});
    }
    return inputs;
}

static void check(const std::vector<Input> &inputs, const Kernel &kernel) {
    for (const auto &[parameter, memory, before] : inputs) {
        const size_t same = std::mismatch(before.begin(), before.end(), memory.base).first - before.begin();
        if (same < memory.size)
            end_program(
                "kernel %s, launched at %s, has written to memory that parameter %zu points to as const: "
                "byte %zu of %s",
                kernel.name, place(kernel.site).c_str(), parameter, same, describe(memory).c_str());
    }
}

Grid new_grid(const LaunchConfig &config, const Kernel &kernel, bool cooperative, size_t shared_limit,
              unsigned workers) {
    static const Schedule first;
    static std::atomic<uint64_t> launches{0};
    Schedule schedule = first;
    schedule.seed += launches++;
    // Since compute capability 7.0, threads that have returned count as arrived at a barrier. With this
    // option every thread of the block must reach the barrier.
    static const bool strict = setting_of("CUDA_CPU_STRICT", {"0", "1"});
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
            inputs_of(kernel),
            current_device(),
            trace_launch(kernel, config)};
}

void report_end(const Kernel &kernel, const Grid &grid) {
    check(grid.inputs, kernel);
    finish_trace(grid.trace);
    const cudaError_t ended = grid.ended;
    if (ended == cudaSuccess)
        return;
    set_sticky_error(ended);
    fail(ended, "kernel %s, launched at %s, was ended by %s", kernel.name, place(kernel.site).c_str(),
         ended == cudaErrorAssert           ? "an assertion"
         : ended == cudaErrorIllegalAddress ? "an illegal address"
                                            : "__trap()");
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
        static WorkerPool *const only = kernels_may_poll() ? nullptr : take_pool();
        WorkerPool *const pool = only ? only : take_pool();
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

cudaError_t run_launch(const LaunchConfig &config, const Kernel &kernel, bool cooperative) {
    size_t shared_limit = 0;
    TRY(check_launch(config, kernel, cooperative, shared_limit));
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
    const cudaError_t error =
        function.launch(function, config, arguments, cooperative, {"a node of a graph", 0});
    stored_instead = nullptr;
    return error;
}

// Names arguments that point to host memory, once for each launch in the source.
static void tell_of_host_pointers(const Kernel &kernel) {
    constexpr size_t most = 64;
    const void *values[most];
    const StoredCall &call = *kernel.stored;
    if (!call.pointers || !guards())
        return;
    const size_t count = call.arguments(kernel.call, nullptr);
    if (count > most)
        return;
    call.arguments(kernel.call, values);
    for (size_t i = 0; i < count; ++i) {
        void *const p = call.types[i].points_to_data ? *(void *const *)values[i] : nullptr;
        if (!p || in_range(p) || !is_host_memory(p))
            continue;
        static std::mutex mutex;
        static std::set<std::pair<std::string, size_t>> told;
        std::lock_guard lock(mutex);
        if (told.insert({place(kernel.site) + kernel.name, i}).second)
            print_line("launch of %s at %s: parameter %zu points to host memory, which only some GPUs can "
                       "access: use cudaMalloc and cudaMemcpy, or cudaMallocManaged",
                       kernel.name, place(kernel.site).c_str(), i + 1);
        if (race_wrong)
            race_wrong();
    }
}

cudaError_t launch_grid(const LaunchConfig &config, const Kernel &kernel, bool cooperative) {
    if (in_kernel_now())
        return launch_in_kernel(config, kernel, cooperative);
    size_t shared_limit = 0;
    TRY(begin("kernel launch"));
    TRY(check_stream_here("kernel launch", config.stream));
    TRY(check_launch(config, kernel, cooperative, shared_limit));
    tell_of_host_pointers(kernel);
    if (stored_instead) {
        *stored_instead = store_launch(config, kernel, cooperative);
        return cudaSuccess;
    }
    if (!at_once() || kernels_may_poll())
        return submit(config.stream, {"kernel launch", store_launch(config, kernel, cooperative)});
    return run_grid(config, kernel, cooperative, shared_limit);
}

} // namespace cuda_cpu
