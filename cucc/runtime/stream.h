// SPDX-License-Identifier: MIT
// What the unit "stream" gives to the others: streams, and their operations as data that can run after the
// call: in a graph, or in a stream of deferred work (CUDA_CPU_STREAMS). Otherwise calls work at once.
#pragma once
#include "launch.h"
#include "memory.h"

#include <variant>

namespace cuda_cpu {

// Defines a call, also with Async in its name and a stream. The expression has `stream` and `asynchronous`.
#define AND_ASYNC(name, parameters, ...)                                                                     \
    cudaError_t name parameters {                                                                            \
        [[maybe_unused]] const bool asynchronous = false;                                                    \
        const cudaStream_t stream = nullptr;                                                                 \
        return __VA_ARGS__;                                                                                  \
    }                                                                                                        \
    cudaError_t name##Async(CUDA_CPU_LIST parameters, cudaStream_t stream) {                                 \
        [[maybe_unused]] const bool asynchronous = true;                                                     \
        return __VA_ARGS__;                                                                                  \
    }

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

struct Allocate { // the memory is there; it is filled anew
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

// Runs the operation now, on its device. If `async` is not null, a launch may become asynchronous (below).
cudaError_t perform(const Operation &operation, AsyncLaunchPointer *async = nullptr);

// Why operations are stored: CUDA_CPU_STREAMS counts one, and so does each capture. If 0, they run at once.
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

size_t live_streams(), live_events(); // how many were made and not destroyed
// Fails if there is no such stream, or if it is of another device than the current one, for launches.
cudaError_t check_stream_here(const char *call, cudaStream_t stream);
void destroy_streams_of(int device);
// Runs the deferred work of a device's streams (-1: of all devices); see operation.cpp.
cudaError_t finish_device(int device);
// Refuses a call that CUDA does not permit in a capture, and invalidates the capture (capture.cpp).
cudaError_t refuse_unsafe(const char *call);

} // namespace cuda_cpu
