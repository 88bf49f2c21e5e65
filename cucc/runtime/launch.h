// SPDX-License-Identifier: MIT
// What the unit "launch" gives to the others: launches, kernels and host threads
#pragma once
#include "block.h"
#include "device.h"

namespace cuda_cpu {

// ---- host threads (workers.cpp) ----

// The number of workers, host threads that run blocks: the multiprocessors of a device (workers.cpp)
unsigned worker_count();

// Starts a host thread that is never joined (workers.cpp). False, with errno, if the system refuses.
bool start_thread(std::function<void()> run);

// ---- kernels (function.cpp) ----

// Occupancy: how many blocks with so many threads and bytes of shared memory fit on a multiprocessor
int resident_blocks(const cudaDeviceProp &device, unsigned threads, size_t shared_bytes);

// Reads an attribute of a launch: sets `cooperative`, refuses clusters. `place` is for messages.
cudaError_t set_attribute(const char *place, const cudaLaunchAttribute &attribute, LaunchConfig &config,
                          bool &cooperative);

// ---- launches (launch.cpp) ----

// A launch with its own copy of the arguments.
struct StoredLaunch {
    LaunchConfig config;
    Kernel kernel; // its `call` points to the copy
    bool cooperative;
    std::shared_ptr<const void> call; // owns the copy
};

cudaError_t run_launch(const LaunchConfig &config, const Kernel &kernel, bool cooperative);
StoredLaunch store_launch(const LaunchConfig &config, const Kernel &kernel, bool cooperative);
// True if the caller is device code: a function that a kernel calls.
inline bool in_kernel_now() {
    return self && self->kernel;
}
// Makes the launch of a kernel with copies of the arguments at these addresses.
cudaError_t store_launch_of(Function &function, const LaunchConfig &config, void *const *arguments,
                            bool cooperative, StoredLaunch &stored);

// ---- child_grids.cpp ----

struct Operation;
// Dynamic parallelism (docs/execution.md). Stores a child grid that a kernel launches, or a copy or fill, in
// the grid of the kernel. Those with `last` run after all others.
cudaError_t store_child(Operation operation, bool last = false);
// cudaDeviceSynchronize() in device code, before CUDA 12: runs and awaits the block's stored children.
cudaError_t finish_children();

// ---- waiting.cpp ----

struct AsyncLaunch;
using AsyncLaunchPointer = std::shared_ptr<AsyncLaunch>;

// Asynchronous launches (docs/execution.md): if the program's kernels can poll, they run on other host
// threads than the calling one. A launch that has run for 20 ms becomes asynchronous as soon as all threads
// of its kernel poll. Only one grid runs at a time, the one that holds launch_lock(). A grid whose threads
// all poll releases the lock when another grid waits for it, and is resumed when it has the lock again.
bool kernels_may_poll(); // true if the program's kernels contain anything that can poll
// Runs a launch until its kernel has ended, or until it becomes asynchronous; then sets `async`.
cudaError_t start_launch(const StoredLaunch &launch, AsyncLaunchPointer &async);
bool kernel_ended(const AsyncLaunchPointer &async);
void complete_launch(AsyncLaunchPointer &async); // reports how the kernel has ended, and frees `async`
// A host thread that waits for kernels of asynchronous launches.
class HostWait {
  public:
    HostWait() = default;
    HostWait(const HostWait &) = delete;
    ~HostWait();
    void wait(const AsyncLaunchPointer &async); // for at most a millisecond

  private:
    bool waits = false;
};
// True if there is an asynchronous launch and no host thread waits for a kernel: the host may still write
// what a kernel polls, so the watchdog does not end the program.
bool host_may_signal();

} // namespace cuda_cpu
