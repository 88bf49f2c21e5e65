// SPDX-License-Identifier: MIT
// The operations of streams as data, so that they can run later than the call: in a graph, or in a stream
// whose work is deferred (CUDA_CPU_STREAMS). Otherwise each call does its work at once.
#pragma once
#include "array.h"
#include "block.h"

#include <memory>
#include <variant>

namespace cuda_cpu {

// A launch with its own copy of the arguments.
struct StoredLaunch {
    LaunchConfig config;
    Kernel kernel; // its `call` points to the copy
    bool cooperative;
    std::shared_ptr<const void> call; // owns the copy
};

struct End { // one side of a copy: an array, or else memory with a pitch
    const cudaArray *array;
    char *pointer;
    size_t pitch, rows; // memory only: bytes per row, and rows per slice
    size_t x, y, z;     // corner of the copied box; x in bytes
};

struct Transfer {
    End to, from;
    size_t width, rows, slices; // size of the copied box; width in bytes
    cudaMemcpyKind kind;
};

inline End memory(const void *pointer, size_t pitch, size_t rows) {
    return {nullptr, (char *)const_cast<void *>(pointer), pitch, rows, 0, 0, 0};
}
inline Transfer bytes(void *to, const void *from, size_t count, cudaMemcpyKind kind) {
    return {memory(to, count, 1), memory(from, count, 1), count, 1, 1, kind};
}

// Defines a call, and the same call with Async in its name and a stream as its last parameter. The expression
// may use `stream` and `asynchronous`.
#define AND_ASYNC(name, parameters, ...)                                                                     \
    cudaError_t name parameters {                                                                            \
        [[maybe_unused]] const bool asynchronous = false;                                                    \
        const cudaStream_t stream = nullptr;                                                                 \
        return __VA_ARGS__;                                                                                  \
    }                                                                                                        \
    cudaError_t name##Async(EACH parameters, cudaStream_t stream) {                                          \
        [[maybe_unused]] const bool asynchronous = true;                                                     \
        return __VA_ARGS__;                                                                                  \
    }
#define EACH(...) __VA_ARGS__

struct Fill {
    End to;
    unsigned value, element;    // the value; the size of an element: 1, 2 or 4 bytes
    size_t width, rows, slices; // width in bytes
};

struct HostCall { // exactly one of the two functions is set
    cudaHostFn_t function;
    cudaStreamCallback_t callback;
    cudaStream_t stream;
    void *data;
};

struct LibraryWork { // a call of a function of cuBLAS, cuFFT, ...
    std::function<void()> work;
};

struct RecordEvent {
    cudaEvent_t event;
};

struct WaitEvent { // only in graphs; in a stream, a wait becomes a dependency
    cudaEvent_t event;
};

struct Allocate { // only in graphs: memory that the graph owns
    void *pointer;
    size_t bytes;
};

struct Release {
    void *pointer;
    bool of_graph; // the memory was allocated by a graph and is freed with the graph
};

struct GraphRun;
struct Subgraph { // `graph` is set for a child graph node, `run` in executable graphs and in streams
    std::shared_ptr<CUgraph_st> graph;
    std::shared_ptr<const GraphRun> run;
};

struct Condition; // the value of a conditional handle, in graph.h
struct Conditional {
    cudaGraphConditionalNodeType type;
    Condition *condition;
    std::vector<Subgraph> bodies;
    std::vector<cudaGraph_t> handles; // the body graphs, as the array phGraph_out of the program
};

struct Operation {
    const char *call; // name of the runtime's function, for messages
    std::variant<std::monostate, StoredLaunch, Transfer, Fill, HostCall, LibraryWork, RecordEvent, WaitEvent,
                 Allocate, Release, Subgraph, Conditional>
        what;
    int device = 0;
    std::shared_ptr<const void> keeps{}; // keeps alive what the operation uses until it has run
};

struct AsyncLaunch;
using AsyncLaunchPointer = std::shared_ptr<AsyncLaunch>;

// Runs the operation now, on its device. If `async` is not null, a launch may become asynchronous (below).
cudaError_t perform(const Operation &operation, AsyncLaunchPointer *async = nullptr);

// ---- launch.cpp ----

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

// Dynamic parallelism (docs/execution.md). Stores a child grid that a kernel launches, or a copy or fill, in
// the grid of the kernel. Those with `last` run after all others.
cudaError_t store_child(Operation operation, bool last = false);
// cudaDeviceSynchronize() in device code, which CUDA had before version 12: runs the stored children of the
// calling block, and waits for them.
cudaError_t finish_children();

// ---- waiting.cpp ----

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

// ---- transfer.cpp ----

cudaError_t check_transfer(const char *call, const Transfer &t);
void move(const Transfer &t);
cudaError_t check_fill(const char *call, const Fill &f);
void fill_now(const Fill &f);
cudaError_t fill(const char *call, const Fill &f, cudaStream_t stream); // checks and submits it
// Checks a copy and submits it to the stream. An asynchronous copy may be incomplete on return.
cudaError_t transfer(const char *call, const Transfer &t, cudaStream_t stream, bool asynchronous);
// True for memory that is not in the registry. The program may overwrite or free it as soon as a call
// returns.
bool is_pageable(const void *pointer);

// ---- array.cpp ----

// Converts the parameters of a 3-D copy; fails if they contradict each other.
cudaError_t transfer_of(const char *call, const cudaMemcpy3DParms &p, Transfer &t);

// ---- operation.cpp ----

// The number of reasons to store operations: CUDA_CPU_STREAMS counts one, and so does each capture. If 0,
// operations run at once.
extern std::atomic<int> storing;
inline bool at_once() {
    return __builtin_expect(storing.load(std::memory_order_relaxed) == 0, 1);
}
// Adds the operation to the graph that captures the stream, or to the stream's queue; runs it at once when no
// work is deferred. With `wait`, the operation has completed on return.
cudaError_t submit(cudaStream_t stream, Operation operation, bool wait = false);
bool captures(cudaStream_t stream); // true if a graph captures the stream

// Work in the queue of a stream.
struct Work;
using WorkPointer = std::shared_ptr<Work>;
// The work that the caller must wait for to wait for the stream; null if there is none.
WorkPointer last_work(cudaStream_t stream);
cudaError_t finish(const WorkPointer &work);
// Returns true if the work has completed, for cudaStreamQuery and cudaEventQuery. If the work is deferred,
// the first call returns false, and the second call runs the work and returns true: a loop that polls ends.
bool completed(const WorkPointer &work);
bool is_done(const WorkPointer &work);
void order_after(cudaStream_t stream, const WorkPointer &work);
void forget_queue(cudaStream_t stream);

// ---- capture.cpp ----

struct Capture;
using CapturePointer = std::shared_ptr<Capture>;
struct CapturePoint { // the nodes that an event stands for that was recorded in a captured stream
    CapturePointer capture;
    std::vector<cudaGraphNode_t> nodes;
};

cudaError_t add_captured(cudaStream_t stream, Operation operation);
// For cudaEventRecord in a captured stream: the current position of the capture.
CapturePoint capture_point(cudaStream_t stream);
// cudaStreamWaitEvent, when the event was recorded in a capture or the stream is captured.
cudaError_t wait_in_capture(const char *call, cudaStream_t stream, const CapturePoint &point);
// Refuse a call and invalidate the capture. refuse_in_capture(): a wait for a captured stream.
// refuse_legacy(): an operation of the legacy stream, or a call that waits for the whole device, while a
// blocking stream of the device is captured.
cudaError_t refuse_in_capture(const char *call, cudaStream_t stream);
cudaError_t refuse_legacy(const char *call);
void forget_capture(cudaStream_t stream);
void spoil(const CapturePointer &capture);

// ---- graph_memory.cpp ----

// Frees memory of cudaMallocAsync, as an operation of the stream.
cudaError_t release(const char *call, void *pointer, cudaStream_t stream);
// Allocates memory for cudaMallocAsync in a captured stream. The graph owns it.
cudaError_t allocate_captured(const char *call, void **pointer, size_t bytes, cudaStream_t stream);
bool graph_owns(void *pointer);

// ---- graph_exec.cpp ----

cudaError_t run_graph(const GraphRun &run);
cudaError_t run_conditional(const Conditional &node);
// The steps of a graph run in the order in which the nodes were made. With CUDA_CPU_STREAMS=late, of the
// steps that are ready the last one runs first, so that a missing dependency changes the result.
bool order_backwards();

// ---- stream.cpp ----

// Identifies a stream by a number. The default stream of each device (its number is the device's) and that of
// each host thread have numbers too. `blocking`: the stream waits for the default stream.
struct StreamIdentity {
    uint64_t number;
    int device;
    bool blocking, legacy;
};
StreamIdentity identity(cudaStream_t stream);
void record_event(cudaEvent_t event);
bool event_exists(cudaEvent_t event);

} // namespace cuda_cpu
