// SPDX-License-Identifier: MIT
/*
 * The operations of streams as data, so that they can run later than the call: in a graph, or in a
 * stream whose work is put off (CUDA_CPU_STREAMS). Otherwise each call does its work at once.
 */
#pragma once
#include "array.h"
#include "block.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace cuda_cpu {

// A launch with its own copy of the arguments
struct StoredLaunch {
    LaunchConfig config;
    Kernel kernel; // its call is the copy
    bool cooperative;
    std::shared_ptr<const void> call; // owns the copy
};

struct End { // one side of a copy: an array, or else memory with a pitch
    const cudaArray *array;
    char *pointer;
    size_t pitch, rows; // bytes from row to row, and rows from slice to slice, of memory
    size_t x, y, z;     // the corner of the copied box; x in bytes
};

struct Transfer {
    End to, from;
    size_t width, rows, slices; // the size of the copied box; the width in bytes
    cudaMemcpyKind kind;
};

struct Fill {
    char *to;
    size_t pitch, slice_rows;   // bytes from row to row, and rows from slice to slice
    unsigned value, element;    // elements of 1, 2 or 4 bytes
    size_t width, rows, slices; // the width in bytes
};

struct HostCall { // one of the two
    cudaHostFn_t function;
    cudaStreamCallback_t callback;
    cudaStream_t stream;
    void *data;
};

struct LibraryWork { // of a function of cuBLAS, cuFFT, ...
    std::function<void()> work;
};

struct RecordEvent {
    cudaEvent_t event;
};

struct WaitEvent { // in a graph; a stream's wait is a dependency
    cudaEvent_t event;
};

struct Allocate { // in a graph: memory that the graph owns
    void *pointer;
    size_t bytes;
};

struct Release {
    void *pointer;
    bool of_graph; // allocated by a graph, so it is not freed until the graph is
};

struct GraphRun;
struct Subgraph { // in a graph a child, in an executable graph and in a stream the steps
    std::shared_ptr<CUgraph_st> graph;
    std::shared_ptr<const GraphRun> run;
};

struct Operation {
    const char *call; // the function of the runtime, for messages
    std::variant<std::monostate, StoredLaunch, Transfer, Fill, HostCall, LibraryWork, RecordEvent, WaitEvent,
                 Allocate, Release, Subgraph>
        what;
    int device = 0;
    std::shared_ptr<const void> keeps{}; // what it needs until it has run
};

// Runs the operation now, on its device.
cudaError_t perform(const Operation &operation);

// ---- launch.cpp ----

cudaError_t run_launch(const LaunchConfig &config, const Kernel &kernel, bool cooperative);
StoredLaunch store_launch(const LaunchConfig &config, const Kernel &kernel, bool cooperative);
// The launch of a kernel with copies of the arguments at these addresses
cudaError_t store_launch_of(Function &function, const LaunchConfig &config, void *const *arguments,
                            bool cooperative, StoredLaunch &stored);

// ---- memory.cpp ----

cudaError_t check_transfer(const char *call, const Transfer &t);
void move(const Transfer &t);
cudaError_t check_fill(const char *call, const Fill &f);
void fill_now(const Fill &f);
cudaError_t fill_elements(const char *call, const Fill &f, cudaStream_t stream); // checks and does it
// Checks a copy and does it, in the order of the stream. An asynchronous one need not have completed
// when this returns.
cudaError_t transfer(const char *call, const Transfer &t, cudaStream_t stream, bool asynchronous);
// Memory that is not in the registry: the program may overwrite or free it as soon as a call returns.
bool is_pageable(const void *pointer);

// ---- array.cpp ----

// Converts the parameters of a copy of a box; fails when they contradict each other.
cudaError_t transfer_of(const char *call, const cudaMemcpy3DParms &p, Transfer &t);

// ---- operation.cpp ----

// How many reasons there are to store operations: the environment, and each capture.
extern std::atomic<int> storing;
inline bool at_once() {
    return __builtin_expect(storing.load(std::memory_order_relaxed) == 0, 1);
}
// Takes an operation that is not done at once: into the graph that captures the stream, or into the
// stream's queue; or does it, when no work is put off. With `wait`, it has completed on return.
cudaError_t submit(cudaStream_t stream, Operation operation, bool wait = false);
bool captures(cudaStream_t stream); // whether a graph captures the stream

// Work in the queue of a stream
struct Work;
using WorkPointer = std::shared_ptr<Work>;
// A stream's queue when this waits for it; null when there is nothing to wait for.
WorkPointer last_work(cudaStream_t stream);
cudaError_t finish(const WorkPointer &work);
// Whether it has completed. The first time that it has not, it is left undone; the second time it is
// done, so that a program that polls makes progress.
bool completed(const WorkPointer &work);
bool is_done(const WorkPointer &work);
// Lets the stream's later work wait for this work.
void order_after(cudaStream_t stream, const WorkPointer &work);
void forget_queue(cudaStream_t stream);

// ---- graph.cpp ----

struct Capture;
using CapturePointer = std::shared_ptr<Capture>;
struct CapturePoint { // what an event that is recorded in a captured stream stands for
    CapturePointer capture;
    std::vector<cudaGraphNode_t> nodes;
};

cudaError_t add_captured(cudaStream_t stream, Operation operation);
// For a stream that is captured: where the capture is. For cudaEventRecord.
CapturePoint capture_point(cudaStream_t stream);
// cudaStreamWaitEvent of an event in a capture, or by a captured stream.
cudaError_t wait_in_capture(const char *call, cudaStream_t stream, const CapturePoint &point);
// Refuse a call, and spoil the capture: a wait for the stream, an operation of the legacy stream that
// would have to wait for a captured stream, and a call that may wait for the whole device.
cudaError_t refuse_in_capture(const char *call, cudaStream_t stream);
cudaError_t refuse_legacy(const char *call);
void forget_capture(cudaStream_t stream);
void spoil(const CapturePointer &capture);
// Work to be done by an operation of the stream: frees memory that cudaMallocAsync allocated.
cudaError_t release(const char *call, void *pointer, cudaStream_t stream);
// Memory of cudaMallocAsync in a captured stream, which the graph owns
cudaError_t allocate_captured(const char *call, void **pointer, size_t bytes, cudaStream_t stream);
bool graph_owns(void *pointer);
cudaError_t run_graph(const GraphRun &run);
bool order_backwards(); // whether steps of a graph run in the reverse of the usual order

// ---- stream.cpp ----

// A number for each stream, also for the default stream of each device (the device's number) and of
// each host thread. `blocking`: whether it waits for the default stream.
struct StreamIdentity {
    uint64_t number;
    int device;
    bool blocking, legacy;
};
StreamIdentity identity(cudaStream_t stream);
void record_event(cudaEvent_t event);
bool event_flags(cudaEvent_t event, unsigned &flags); // false for an unknown event

} // namespace cuda_cpu
