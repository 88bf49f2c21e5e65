// SPDX-License-Identifier: MIT
// The capture of streams into graphs. The nodes that the next operation of a captured stream depends on are
// kept for each stream; an event that is recorded in a captured stream stands for such nodes.
#include "graph.h"

#include <thread>

namespace cuda_cpu {

struct Capture {
    std::shared_ptr<CUgraph_st> graph;
    bool into_existing; // set by cudaStreamBeginCaptureToGraph: the program owns the graph
    cudaStreamCaptureMode mode;
    std::thread::id thread;
    uint64_t id, origin;
    cudaStreamCaptureStatus status;       // None after the end of the capture
    std::vector<cudaGraphNode_t> of_gone; // last nodes of captured streams that have been destroyed
};

namespace {

struct CapturedStream {
    StreamIdentity stream;
    CapturePointer capture;
    std::vector<cudaGraphNode_t> last; // the nodes that the stream's next operation depends on
};

// Protected by LOCK(), as are all captures. The key is the stream's number.
ONLY(captured_streams, std::map<uint64_t, CapturedStream>)

uint64_t captures_begun = 0;

CapturedStream *captured(cudaStream_t stream) {
    const auto found = captured_streams().find(identity(stream).number);
    return found == captured_streams().end() ? nullptr : &found->second;
}

cudaError_t spoilt(const char *call) {
    return fail(cudaErrorStreamCaptureInvalidated,
                "%s: an earlier call made the capture of the stream invalid", call);
}

void end(const CapturePointer &capture) {
    for (auto i = captured_streams().begin(); i != captured_streams().end();)
        i = i->second.capture == capture ? captured_streams().erase(i) : std::next(i);
    capture->status = cudaStreamCaptureStatusNone;
    --storing;
}

cudaError_t begin_capture(const char *call, cudaStream_t stream, std::shared_ptr<CUgraph_st> into,
                          std::vector<cudaGraphNode_t> last, cudaStreamCaptureMode mode) {
    IN_ENUMERATION(mode, cudaStreamCaptureModeGlobal, cudaStreamCaptureModeRelaxed, "mode");
    const StreamIdentity id = identity(stream);
    FAIL_IF(id.legacy, cudaErrorStreamCaptureUnsupported, "the default stream cannot be captured");
    FAIL_IF(captured(stream), cudaErrorIllegalState, "the stream is being captured already");
    const auto capture = std::make_shared<Capture>();
    capture->into_existing = into != nullptr;
    capture->graph = into ? into : std::make_shared<CUgraph_st>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->id = ++captures_begun;
    capture->origin = id.number;
    capture->status = cudaStreamCaptureStatusActive;
    captured_streams()[id.number] = {id, capture, std::move(last)};
    ++storing;
    return cudaSuccess;
}

// True if all nodes in `others` are in `last` or before it: every captured stream has joined the first one.
bool joined(const std::vector<cudaGraphNode_t> &last, const std::vector<cudaGraphNode_t> &others) {
    std::set<cudaGraphNode_t> seen;
    std::vector<cudaGraphNode_t> stack = last;
    while (!stack.empty()) {
        const cudaGraphNode_t node = stack.back();
        stack.pop_back();
        if (seen.insert(node).second)
            stack.insert(stack.end(), node->before.begin(), node->before.end());
    }
    return std::all_of(others.begin(), others.end(), [&](cudaGraphNode_t node) { return seen.count(node); });
}

} // namespace

bool captures(cudaStream_t stream) {
    LOCK();
    return !captured_streams().empty() && captured(stream);
}

cudaError_t add_captured(cudaStream_t stream, Operation operation) {
    LOCK();
    CapturedStream &c = *captured(stream);
    if (c.capture->status != cudaStreamCaptureStatusActive)
        return spoilt(operation.call);
    operation.device = c.stream.device;
    c.last = {new_node(*c.capture->graph, std::move(operation), c.last)};
    return cudaSuccess;
}

CapturePoint capture_point(cudaStream_t stream) {
    LOCK();
    const CapturedStream &c = *captured(stream);
    return {c.capture, c.last};
}

void spoil(const CapturePointer &capture) {
    LOCK();
    if (capture->status == cudaStreamCaptureStatusActive)
        capture->status = cudaStreamCaptureStatusInvalidated;
}

static cudaError_t refuse(const CapturePointer &capture, cudaError_t error, const char *call,
                          const char *why) {
    spoil(capture);
    return fail(error, "%s: %s", call, why);
}

cudaError_t wait_in_capture(const char *call, cudaStream_t stream, const CapturePoint &point) {
    LOCK();
    CapturedStream *const c = captured(stream);
    const bool live = point.capture && point.capture->status != cudaStreamCaptureStatusNone;
    if (!c && !live)
        return cudaSuccess;
    if (c && !live)
        return refuse(c->capture, cudaErrorStreamCaptureIsolation, call,
                      "a graph captures the stream, but the event was not recorded in this capture");
    if (c && c->capture != point.capture) {
        spoil(c->capture);
        return refuse(point.capture, cudaErrorStreamCaptureMerge, call,
                      "the stream and the event belong to different captures");
    }
    if (point.capture->status != cudaStreamCaptureStatusActive)
        return spoilt(call);
    if (!c) {
        const StreamIdentity id = identity(stream);
        if (id.legacy)
            return refuse(point.capture, cudaErrorStreamCaptureImplicit, call,
                          "the default stream cannot join a capture");
        captured_streams()[id.number] = {id, point.capture, point.nodes};
        return cudaSuccess;
    }
    for (const cudaGraphNode_t node : point.nodes)
        if (!std::count(c->last.begin(), c->last.end(), node))
            c->last.push_back(node);
    return cudaSuccess;
}

cudaError_t refuse_in_capture(const char *call, cudaStream_t stream) {
    LOCK();
    return refuse(captured(stream)->capture, cudaErrorStreamCaptureUnsupported, call,
                  "not permitted while a graph captures the stream");
}

cudaError_t refuse_legacy(const char *call) {
    LOCK();
    for (auto &[number, c] : captured_streams())
        if (c.stream.blocking && c.stream.device == current_device())
            return refuse(c.capture, cudaErrorStreamCaptureImplicit, call,
                          "the default stream would have to wait for a stream that a graph captures");
    return cudaSuccess;
}

cudaError_t refuse_unsafe(const char *call) {
    if (at_once())
        return cudaSuccess;
    LOCK();
    for (auto &[number, c] : captured_streams()) {
        const Capture &capture = *c.capture;
        const bool own = capture.thread == std::this_thread::get_id();
        if (own ? capture.mode != cudaStreamCaptureModeRelaxed : capture.mode == cudaStreamCaptureModeGlobal)
            return refuse(c.capture, cudaErrorStreamCaptureUnsupported, call,
                          "not permitted while a graph captures a stream, unless the capture is relaxed");
    }
    return cudaSuccess;
}

void forget_capture(cudaStream_t stream) {
    if (at_once())
        return;
    LOCK();
    if (CapturedStream *const c = captured(stream)) {
        if (c->capture->origin == c->stream.number) {
            spoil(c->capture);
            end(CapturePointer(c->capture));
            return;
        }
        // The first stream may already wait for this work, or for an event that was recorded in it.
        auto &gone = c->capture->of_gone;
        gone.insert(gone.end(), c->last.begin(), c->last.end());
        captured_streams().erase(c->stream.number);
    }
}

} // namespace cuda_cpu

SIMPLE_CALL(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode), BEGIN_LOCKED(stream),
            begin_capture(call, stream, nullptr, {}, mode))

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *,
                                          size_t count, cudaStreamCaptureMode mode) {
    BEGIN_LOCKED(stream, graph);
    TRY(check_nodes(call, *graph, dependencies, count));
    return begin_capture(call, stream, graphs().graphs[graph],
                         std::vector<cudaGraphNode_t>(dependencies, dependencies + count), mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    BEGIN_LOCKED(stream);
    CapturedStream *const c = captured(stream);
    cudaGraph_t existing; // the program may leave out its own graph
    if (!graph && c && c->capture->into_existing)
        graph = &existing;
    NOT_NULL(graph);
    *graph = nullptr;
    FAIL_IF(!c, cudaErrorIllegalState, "no capture of the stream was begun");
    const CapturePointer capture = c->capture;
    if (capture->origin != c->stream.number)
        return refuse(capture, cudaErrorStreamCaptureUnmatched, call,
                      "the capture was begun with another stream");
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
        end(capture); // as on an H200: its graph is lost, and the stream is no longer captured
        return fail(cudaErrorStreamCaptureWrongThread,
                    "%s: another host thread began the capture, which is not relaxed", call);
    }
    std::vector<cudaGraphNode_t> others = capture->of_gone; // the last nodes of the other streams
    for (const auto &[number, other] : captured_streams())
        if (other.capture == capture)
            others.insert(others.end(), other.last.begin(), other.last.end());
    const bool all_joined = joined(c->last, others);
    const bool valid = capture->status == cudaStreamCaptureStatusActive;
    end(capture);
    if (!valid)
        return spoilt(call);
    FAIL_IF(!all_joined, cudaErrorStreamCaptureUnjoined,
            "a stream that joined the capture has work for which the first stream does not wait");
    return store(graph, capture->into_existing ? capture->graph.get() : enter(capture->graph));
}

FORWARD(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus *status),
        cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr))

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                                     size_t *count) {
    BEGIN_LOCKED(status, stream);
    for (const auto &[number, other] : captured_streams())
        if (identity(stream).legacy && other.stream.blocking && other.stream.device == current_device())
            return set_last_error(cudaErrorStreamCaptureImplicit); // which leaves the capture valid
    const CapturedStream *const c = captured(stream);
    *status = c ? c->capture->status : cudaStreamCaptureStatusNone;
    if (*status != cudaStreamCaptureStatusActive)
        return cudaSuccess;
    store(id, c->capture->id);
    if (graph) { // the pointers stay valid until the capture ends
        *graph = c->capture->graph.get();
        graphs().graphs.emplace(*graph, c->capture->graph);
    }
    store(dependencies, c->last.data());
    store(edges, nullptr);
    return store(count, c->last.size());
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *, size_t count, unsigned flags) {
    BEGIN_LOCKED(stream);
    CapturedStream *const c = captured(stream);
    FAIL_IF(!c, cudaErrorIllegalState, "no graph captures the stream");
    TRY(check_nodes(call, *c->capture->graph, dependencies, count));
    if (flags & cudaStreamSetCaptureDependencies)
        c->last.clear();
    for (size_t i = 0; i < count; ++i)
        if (!std::count(c->last.begin(), c->last.end(), dependencies[i]))
            c->last.push_back(dependencies[i]);
    return cudaSuccess;
}
