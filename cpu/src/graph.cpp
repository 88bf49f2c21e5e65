// SPDX-License-Identifier: MIT
/*
 * Graphs, and the capture of streams into graphs.
 *
 * A node holds an operation as data; a launch has its own copy of the arguments. An executable graph is
 * the list of these operations in an order that respects the dependencies. A launch of the graph runs
 * them one after the other.
 */
#include "operation.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>

struct CUgraphNode_st {
    CUgraph_st *graph;
    cuda_cpu::Operation operation;
    std::vector<cudaGraphNode_t> before; // its dependencies
    cudaGraphNode_t original;            // if the graph is a clone: the node in the original graph
    std::vector<const void *> arguments; // for cudaGraphKernelNodeGetParams
};

// An object of the program. It is destroyed with the last reference to it.
struct CUuserObject_st {
    void *data;
    cudaHostFn_t destroy;
    unsigned references;
};

namespace cuda_cpu {

// A graph's references to user objects. A copy of the graph has one reference to each.
struct References {
    std::map<cudaUserObject_t, unsigned> counts;

    References() = default;
    References(const References &other);
    ~References();
};

} // namespace cuda_cpu

struct CUgraph_st {
    std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
    cuda_cpu::References objects;

    explicit CUgraph_st(const cuda_cpu::References &objects = {}) : objects(objects) {}
    ~CUgraph_st();
};

namespace cuda_cpu {

struct Step {
    cudaGraphNode_t origin; // node of the instantiated graph; may be destroyed: do not dereference
    Operation operation;
    std::vector<size_t> before;
    bool enabled;
};

struct GraphRun {
    References objects;
    std::vector<Step> steps{}; // topological order: each step comes after those that it depends on
};

} // namespace cuda_cpu

struct CUgraphExec_st {
    std::shared_ptr<cuda_cpu::GraphRun> run;
    unsigned long long flags;
};

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

struct Graphs {
    std::recursive_mutex mutex;
    std::map<cudaGraph_t, std::shared_ptr<CUgraph_st>> graphs;
    std::map<cudaGraphExec_t, std::shared_ptr<CUgraphExec_st>> executables;
    std::set<cudaGraphNode_t> nodes;
    std::set<cudaUserObject_t> objects;
    std::map<uint64_t, CapturedStream> captured;  // key: the stream's number
    std::map<const Function *, void *> addresses; // of kernels that the program named by address
    std::map<void *, size_t> memory;              // memory that graphs own, with its size in bytes
    uint64_t captures = 0;
};

// It is never destroyed, because host threads may use it while the process exits.
Graphs &graphs() {
    static Graphs &all = *new Graphs;
    return all;
}

#define LOCK() std::lock_guard lock(graphs().mutex)

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

cudaGraphNodeType type_of(const Operation &o) {
    struct Visitor {
        cudaGraphNodeType operator()(const std::monostate &) { return cudaGraphNodeTypeEmpty; }
        cudaGraphNodeType operator()(const StoredLaunch &) { return cudaGraphNodeTypeKernel; }
        cudaGraphNodeType operator()(const Transfer &) { return cudaGraphNodeTypeMemcpy; }
        cudaGraphNodeType operator()(const Fill &) { return cudaGraphNodeTypeMemset; }
        cudaGraphNodeType operator()(const HostCall &) { return cudaGraphNodeTypeHost; }
        // The work of a library counts as a kernel node, as on a GPU. Programs do not read its parameters.
        cudaGraphNodeType operator()(const LibraryWork &) { return cudaGraphNodeTypeKernel; }
        cudaGraphNodeType operator()(const RecordEvent &) { return cudaGraphNodeTypeEventRecord; }
        cudaGraphNodeType operator()(const WaitEvent &) { return cudaGraphNodeTypeWaitEvent; }
        cudaGraphNodeType operator()(const Allocate &) { return cudaGraphNodeTypeMemAlloc; }
        cudaGraphNodeType operator()(const Release &) { return cudaGraphNodeTypeMemFree; }
        cudaGraphNodeType operator()(const Subgraph &) { return cudaGraphNodeTypeGraph; }
    };
    return std::visit(Visitor{}, o.what);
}

const char *type_name(cudaGraphNodeType type) {
    static const char *const names[] = {"a kernel",    "a copy",      "a fill",        "a host function",
                                        "a graph",     "an empty",    "an event wait", "an event record",
                                        "a semaphore", "a semaphore", "an allocation", "a free"};
    return names[type];
}

// ---- handles ----

std::shared_ptr<CUgraph_st> find_graph(const char *call, cudaGraph_t graph) {
    const auto found = graphs().graphs.find(graph);
    if (found != graphs().graphs.end())
        return found->second;
    fail(cudaErrorInvalidValue, "%s: %p is not a graph, or was destroyed", call, (void *)graph);
    return nullptr;
}

std::shared_ptr<CUgraphExec_st> find_executable(const char *call, cudaGraphExec_t executable) {
    const auto found = graphs().executables.find(executable);
    if (found != graphs().executables.end())
        return found->second;
    fail(cudaErrorInvalidValue, "%s: %p is not an executable graph, or was destroyed", call,
         (void *)executable);
    return nullptr;
}

bool node_known(const char *call, cudaGraphNode_t node) {
    if (graphs().nodes.count(node))
        return true;
    fail(cudaErrorInvalidValue, "%s: %p is not a node of a graph, or was destroyed", call, (void *)node);
    return false;
}

// Returns the parameters of a node if its operation is a T; otherwise fails.
template <class T> T *part(const char *call, Operation &o) {
    T *const found = std::get_if<T>(&o.what);
    if (!found)
        fail(cudaErrorInvalidValue, "%s: the node is %s node", call, type_name(type_of(o)));
    return found;
}

template <class T> T *part(const char *call, cudaGraphNode_t node) {
    return node_known(call, node) ? part<T>(call, node->operation) : nullptr;
}

bool object_known(const char *call, cudaUserObject_t object) {
    if (graphs().objects.count(object))
        return true;
    fail(cudaErrorInvalidValue, "%s: %p is not a user object, or was destroyed", call, (void *)object);
    return false;
}

void release_object(cudaUserObject_t object, unsigned count) {
    object->references -= std::min(count, object->references);
    if (object->references)
        return;
    graphs().objects.erase(object);
    run_callback([&] { object->destroy(object->data); });
    delete object;
}

// ---- nodes ----

cudaGraphNode_t new_node(CUgraph_st &graph, Operation operation, std::vector<cudaGraphNode_t> before) {
    graph.nodes.push_back(std::make_unique<CUgraphNode_st>());
    CUgraphNode_st *const node = graph.nodes.back().get();
    *node = {&graph, std::move(operation), std::move(before), nullptr, {}};
    graphs().nodes.insert(node);
    return node;
}

cudaError_t check_nodes(const char *call, const CUgraph_st &graph, const cudaGraphNode_t *nodes,
                        size_t count) {
    if (count && !nodes)
        return fail(cudaErrorInvalidValue, "%s: the list of %zu dependencies is NULL", call, count);
    for (size_t i = 0; i < count; ++i) {
        if (!node_known(call, nodes[i]))
            return cudaErrorInvalidValue;
        if (nodes[i]->graph != &graph)
            return fail(cudaErrorInvalidValue, "%s: dependency %zu is a node of another graph", call, i);
        if (std::count(nodes, nodes + i, nodes[i]))
            return fail(cudaErrorInvalidValue, "%s: dependency %zu occurs twice", call, i);
    }
    return cudaSuccess;
}

// Common part of every cudaGraphAdd…Node call. `set` makes the operation from the call's other arguments.
template <class Set, class... A>
cudaError_t add_node(const char *call, cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                     size_t count, Set set, A... a) {
    if (const cudaError_t error = begin(call))
        return error;
    if (!node)
        return fail(cudaErrorInvalidValue, "%s: node is NULL", call);
    LOCK();
    const auto into = find_graph(call, graph);
    if (!into)
        return cudaErrorInvalidValue;
    if (const cudaError_t error = check_nodes(call, *into, after, count))
        return error;
    Operation operation = {call, {}, current_device()};
    if (const cudaError_t error = set(call, operation, a...))
        return error;
    *node = new_node(*into, std::move(operation), std::vector<cudaGraphNode_t>(after, after + count));
    return cudaSuccess;
}

// Sets the operation of a node, or of the step of an executable graph that was made from the node.
template <class Set, class... A>
cudaError_t set_node(const char *call, cudaGraphNode_t node, Set set, A... a) {
    if (const cudaError_t error = begin(call))
        return error;
    LOCK();
    return node_known(call, node) ? set(call, node->operation, a...) : cudaErrorInvalidValue;
}

Step *find_step(const char *call, cudaGraphExec_t executable, cudaGraphNode_t node) {
    const auto found = find_executable(call, executable);
    if (!found)
        return nullptr;
    if (found->run.use_count() > 1) // a deferred launch keeps the old operations, so it needs a copy
        found->run = std::make_shared<GraphRun>(*found->run);
    for (Step &step : found->run->steps)
        if (step.origin == node)
            return &step;
    fail(cudaErrorInvalidValue, "%s: %p is not a node of the graph that was instantiated", call,
         (void *)node);
    return nullptr;
}

template <class Set, class... A>
cudaError_t set_step(const char *call, cudaGraphExec_t executable, cudaGraphNode_t node, Set set, A... a) {
    if (const cudaError_t error = begin(call))
        return error;
    LOCK();
    Step *const step = find_step(call, executable, node);
    return step ? set(call, step->operation, a...) : cudaErrorInvalidValue;
}

// Common part of every call that returns parameters of a node. `get` computes them from the operation.
template <class T, class Result, class Get>
cudaError_t get_node(const char *call, cudaGraphNode_t node, Result *result, Get get) {
    if (const cudaError_t error = begin(call))
        return error;
    if (!result)
        return fail(cudaErrorInvalidValue, "%s: the second argument is NULL", call);
    LOCK();
    const T *const found = part<T>(call, node);
    if (!found)
        return cudaErrorInvalidValue;
    *result = get(*found);
    return cudaSuccess;
}

// Each of these makes an operation from the parameters that a program passes. An operation that has a type
// already must keep it.
template <class T> cudaError_t put(const char *call, Operation &o, T value) {
    if (o.what.index() != 0 && !std::holds_alternative<T>(o.what))
        return part<T>(call, o) ? cudaSuccess : cudaErrorInvalidValue;
    o.what = std::move(value);
    return cudaSuccess;
}

cudaError_t set_kernel(const char *call, Operation &o, const cudaKernelNodeParams *p) {
    if (!p || !p->func)
        return fail(cudaErrorInvalidValue, "%s: the parameters or the kernel are NULL", call);
    if (p->extra)
        return fail(cudaErrorNotSupported, "%s: arguments in `extra` are not supported, only kernelParams",
                    call);
    const Function *function = all_functions; // `func` may be a value of cudaGraphKernelNodeGetParams
    while (function && function != p->func)
        function = function->next;
    Function *const kernel = function ? const_cast<Function *>(function) : find_function(call, p->func);
    if (!kernel)
        return cudaErrorInvalidDeviceFunction;
    if (!function)
        graphs().addresses[kernel] = p->func;
    const StoredLaunch *const old = std::get_if<StoredLaunch>(&o.what);
    StoredLaunch launch = {};
    const LaunchConfig config = {p->gridDim, p->blockDim, p->sharedMemBytes, nullptr};
    if (const cudaError_t error =
            store_launch_of(*kernel, config, p->kernelParams, old && old->cooperative, launch))
        return error;
    return put(call, o, std::move(launch));
}

cudaError_t set_copy(const char *call, Operation &o, const cudaMemcpy3DParms *p) {
    if (!p)
        return fail(cudaErrorInvalidValue, "%s: the parameters are NULL", call);
    Transfer t;
    if (const cudaError_t error = transfer_of(call, *p, t))
        return error;
    if (t.width && t.rows && t.slices)
        if (const cudaError_t error = check_transfer(call, t))
            return error;
    return put(call, o, t);
}

cudaMemcpy3DParms params_of(const Transfer &t) {
    const size_t element = t.to.array     ? texel_bytes(t.to.array->desc)
                           : t.from.array ? texel_bytes(t.from.array->desc)
                                          : 1;
    const auto at = [&](const End &e) { return cudaPos{e.array ? e.x / element : e.x, e.y, e.z}; };
    const auto memory = [&](const End &e) {
        return e.array ? cudaPitchedPtr{} : cudaPitchedPtr{e.pointer, e.pitch, t.width, e.rows};
    };
    return {const_cast<cudaArray *>(t.from.array), at(t.from), memory(t.from),
            const_cast<cudaArray *>(t.to.array),   at(t.to),   memory(t.to),
            {t.width / element, t.rows, t.slices}, t.kind};
}

cudaMemcpy3DParms params_1d(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return {nullptr,       {},  {const_cast<void *>(from), bytes, bytes, 1},
            nullptr,       {},  {to, bytes, bytes, 1},
            {bytes, 1, 1}, kind};
}

cudaError_t set_fill(const char *call, Operation &o, const cudaMemsetParams *p) {
    if (!p)
        return fail(cudaErrorInvalidValue, "%s: the parameters are NULL", call);
    if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
        return fail(cudaErrorInvalidValue, "%s: elements of %u bytes, must be 1, 2 or 4", call,
                    p->elementSize);
    const Fill f = {(char *)p->dst, p->pitch, p->height, p->value, p->elementSize, p->width * p->elementSize,
                    p->height,      1};
    if (f.width && f.rows)
        if (const cudaError_t error = check_fill(call, f))
            return error;
    return put(call, o, f);
}

cudaError_t set_host(const char *call, Operation &o, const cudaHostNodeParams *p) {
    if (!p || !p->fn)
        return fail(cudaErrorInvalidValue, "%s: the parameters or the function are NULL", call);
    return put(call, o, HostCall{p->fn, nullptr, nullptr, p->userData});
}

// Copies a graph. Each node of the copy refers to its original.
std::shared_ptr<CUgraph_st> clone(const CUgraph_st &graph) {
    auto copy = std::make_shared<CUgraph_st>(graph.objects);
    std::map<cudaGraphNode_t, cudaGraphNode_t> copies;
    for (const auto &node : graph.nodes) {
        const cudaGraphNode_t made = new_node(*copy, node->operation, {});
        made->original = node.get();
        copies[node.get()] = made;
        if (Subgraph *const child = std::get_if<Subgraph>(&made->operation.what))
            child->graph = clone(*child->graph);
    }
    for (const auto &node : graph.nodes)
        for (const cudaGraphNode_t before : node->before)
            copies[node.get()]->before.push_back(copies[before]);
    return copy;
}

cudaGraph_t enter(std::shared_ptr<CUgraph_st> graph) {
    const cudaGraph_t handle = graph.get();
    graphs().graphs[handle] = std::move(graph);
    return handle;
}

cudaError_t set_child(const char *call, Operation &o, cudaGraph_t child) {
    const auto found = find_graph(call, child);
    if (!found)
        return cudaErrorInvalidValue;
    auto copy = clone(*found);
    enter(copy); // so that the program may change it (cudaGraphChildGraphNodeGetGraph)
    return put(call, o, Subgraph{copy, nullptr});
}

cudaError_t event_known(const char *call, cudaEvent_t event) {
    unsigned flags;
    return event_flags(event, flags)
               ? cudaSuccess
               : fail(cudaErrorInvalidValue, "%s: %p is not an event, or was destroyed", call, (void *)event);
}

template <class T> cudaError_t set_event(const char *call, Operation &o, cudaEvent_t event) {
    const cudaError_t error = event_known(call, event);
    return error ? error : put(call, o, T{event});
}

// Allocates memory that is freed with the last copy of the returned shared pointer.
cudaError_t graph_memory(const char *call, size_t bytes, void **pointer, std::shared_ptr<const void> &keeps) {
    if (const cudaError_t error =
            allocate(call, pointer, bytes, MemoryKind::device, memory_of_stream, nullptr, 0))
        return error;
    graphs().memory[*pointer] = bytes;
    keeps = {*pointer, [](const void *p) {
                 LOCK();
                 void *const memory = const_cast<void *>(p);
                 if (graphs().memory.erase(memory))
                     free_device("cudaGraphExecDestroy", memory);
             }};
    return cudaSuccess;
}

// Copies a list to an array of the program. On entry `count` is the capacity of the array, on return the
// number of elements. Without an array only the count is set.
template <class T> cudaError_t give(const std::vector<T> &list, T *to, size_t *count) {
    if (to) {
        for (size_t i = 0; i < *count; ++i)
            to[i] = i < list.size() ? list[i] : T{};
        *count = std::min(*count, list.size());
    } else {
        *count = list.size();
    }
    return cudaSuccess;
}

// ---- executable graphs ----

// Topological sort: returns the steps of a graph in an order that respects the dependencies; null if they
// form a cycle.
std::shared_ptr<GraphRun> order(const CUgraph_st &graph) {
    auto run = std::make_shared<GraphRun>(GraphRun{graph.objects});
    std::map<cudaGraphNode_t, size_t> placed;
    const size_t total = graph.nodes.size();
    std::map<cudaGraphNode_t, size_t> open;
    std::map<cudaGraphNode_t, std::vector<size_t>> after;
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready; // in order of creation
    for (size_t i = 0; i < total; ++i) {
        const auto &node = graph.nodes[i];
        open[node.get()] = node->before.size();
        for (const cudaGraphNode_t before : node->before)
            after[before].push_back(i);
        if (node->before.empty())
            ready.push(i);
    }
    while (!ready.empty()) {
        const auto &node = graph.nodes[ready.top()];
        ready.pop();
        Step step = {node.get(), node->operation, {}, true};
        for (const cudaGraphNode_t before : node->before)
            step.before.push_back(placed[before]);
        if (Subgraph *const child = std::get_if<Subgraph>(&step.operation.what)) {
            child->run = order(*child->graph);
            if (!child->run)
                return nullptr;
        }
        placed[node.get()] = run->steps.size();
        run->steps.push_back(std::move(step));
        for (const size_t i : after[node.get()])
            if (--open[graph.nodes[i].get()] == 0)
                ready.push(i);
    }
    return run->steps.size() == total ? run : nullptr;
}

cudaError_t instantiate(const char *call, cudaGraphExec_t *executable, cudaGraph_t graph,
                        unsigned long long flags) {
    if (const cudaError_t error = begin(call))
        return error;
    if (!executable)
        return fail(cudaErrorInvalidValue, "%s: executable is NULL", call);
    LOCK();
    const auto found = find_graph(call, graph);
    if (!found)
        return cudaErrorInvalidValue;
    if (flags & ~15ull)
        return fail(cudaErrorInvalidValue, "%s: 0x%llx is not a valid combination of flags", call, flags);
    if (flags & cudaGraphInstantiateFlagDeviceLaunch)
        return fail(cudaErrorNotSupported, "%s: kernels cannot launch graphs here", call);
    const auto made = std::make_shared<CUgraphExec_st>();
    made->run = order(*found);
    made->flags = flags;
    if (!made->run)
        return fail(cudaErrorInvalidValue, "%s: the dependencies of the graph form a cycle", call);
    *executable = made.get();
    graphs().executables[*executable] = made;
    return cudaSuccess;
}

// ---- capture ----

CapturedStream *captured(cudaStream_t stream) {
    const auto found = graphs().captured.find(identity(stream).number);
    return found == graphs().captured.end() ? nullptr : &found->second;
}

cudaError_t spoilt(const char *call) {
    return fail(cudaErrorStreamCaptureInvalidated,
                "%s: an earlier call made the capture of the stream invalid", call);
}

void end(const CapturePointer &capture) {
    for (auto i = graphs().captured.begin(); i != graphs().captured.end();)
        i = i->second.capture == capture ? graphs().captured.erase(i) : std::next(i);
    capture->status = cudaStreamCaptureStatusNone;
    --storing;
}

cudaError_t begin_capture(const char *call, cudaStream_t stream, std::shared_ptr<CUgraph_st> into,
                          std::vector<cudaGraphNode_t> last, cudaStreamCaptureMode mode) {
    if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
        return fail(cudaErrorInvalidValue, "%s: there is no mode %d", call, (int)mode);
    const StreamIdentity id = identity(stream);
    if (id.legacy)
        return fail(cudaErrorStreamCaptureUnsupported, "%s: the default stream cannot be captured", call);
    if (captured(stream))
        return fail(cudaErrorIllegalState, "%s: the stream is being captured already", call);
    const auto capture = std::make_shared<Capture>();
    capture->into_existing = into != nullptr;
    capture->graph = into ? into : std::make_shared<CUgraph_st>();
    capture->mode = mode;
    capture->thread = std::this_thread::get_id();
    capture->id = ++graphs().captures;
    capture->origin = id.number;
    capture->status = cudaStreamCaptureStatusActive;
    graphs().captured[id.number] = {id, capture, std::move(last)};
    ++storing;
    return cudaSuccess;
}

// True if all nodes in `others` are in `last` or before it, that is, if every captured stream has joined the
// first one.
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
    return !graphs().captured.empty() && captured(stream);
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

cudaError_t wait_in_capture(const char *call, cudaStream_t stream, const CapturePoint &point) {
    LOCK();
    CapturedStream *const c = captured(stream);
    const bool live = point.capture && point.capture->status != cudaStreamCaptureStatusNone;
    if (!c && !live)
        return cudaSuccess;
    if (c && !live) {
        spoil(c->capture);
        return fail(cudaErrorStreamCaptureIsolation,
                    "%s: a graph captures the stream, but the event was not recorded in this capture", call);
    }
    if (c && c->capture != point.capture) {
        spoil(c->capture);
        spoil(point.capture);
        return fail(cudaErrorStreamCaptureMerge, "%s: the stream and the event belong to different captures",
                    call);
    }
    if (point.capture->status != cudaStreamCaptureStatusActive)
        return spoilt(call);
    if (!c) {
        const StreamIdentity id = identity(stream);
        if (id.legacy) {
            spoil(point.capture);
            return fail(cudaErrorStreamCaptureImplicit, "%s: the default stream cannot join a capture", call);
        }
        graphs().captured[id.number] = {id, point.capture, point.nodes};
        return cudaSuccess;
    }
    for (const cudaGraphNode_t node : point.nodes)
        if (!std::count(c->last.begin(), c->last.end(), node))
            c->last.push_back(node);
    return cudaSuccess;
}

cudaError_t refuse_in_capture(const char *call, cudaStream_t stream) {
    LOCK();
    spoil(captured(stream)->capture);
    return fail(cudaErrorStreamCaptureUnsupported, "%s: not permitted while a graph captures the stream",
                call);
}

cudaError_t refuse_legacy(const char *call) {
    LOCK();
    for (auto &[number, c] : graphs().captured)
        if (c.stream.blocking && c.stream.device == current_device()) {
            spoil(c.capture);
            return fail(cudaErrorStreamCaptureImplicit,
                        "%s: the default stream would have to wait for a stream that a graph captures", call);
        }
    return cudaSuccess;
}

cudaError_t refuse_unsafe(const char *call) {
    if (at_once() || thread_mode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    LOCK();
    for (auto &[number, c] : graphs().captured) {
        const Capture &capture = *c.capture;
        const bool own = capture.thread == std::this_thread::get_id();
        if (own ? capture.mode != cudaStreamCaptureModeRelaxed
                : capture.mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal) {
            spoil(c.capture);
            return fail(cudaErrorStreamCaptureUnsupported,
                        "%s: not permitted while a graph captures a stream, unless the capture is relaxed",
                        call);
        }
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
        graphs().captured.erase(c->stream.number);
    }
}

cudaError_t release(const char *call, void *pointer, cudaStream_t stream) {
    bool of_graph;
    {
        LOCK();
        of_graph = graphs().memory.count(pointer);
    }
    return submit(stream, {call, Release{pointer, of_graph}});
}

bool graph_owns(void *pointer) {
    LOCK();
    return graphs().memory.count(pointer);
}

cudaError_t allocate_captured(const char *call, void **pointer, size_t bytes, cudaStream_t stream) {
    Operation operation = {call, {}};
    if (const cudaError_t error = graph_memory(call, bytes, pointer, operation.keeps))
        return error;
    operation.what = Allocate{*pointer, bytes};
    return add_captured(stream, std::move(operation));
}

cudaError_t run_graph(const GraphRun &run) {
    cudaError_t first = cudaSuccess;
    const auto step = [&](const Step &s) {
        const cudaError_t error = s.enabled ? perform(s.operation) : cudaSuccess;
        first = first ? first : error;
    };
    if (!order_backwards()) {
        for (const Step &s : run.steps)
            step(s);
        return first;
    }
    // Of the steps that are ready, takes the last one, so that a missing dependency changes the result.
    std::vector<size_t> open(run.steps.size());
    std::vector<std::vector<size_t>> after(run.steps.size());
    std::priority_queue<size_t> ready;
    for (size_t i = 0; i < run.steps.size(); ++i) {
        open[i] = run.steps[i].before.size();
        for (const size_t before : run.steps[i].before)
            after[before].push_back(i);
        if (open[i] == 0)
            ready.push(i);
    }
    while (!ready.empty()) {
        const size_t i = ready.top();
        ready.pop();
        step(run.steps[i]);
        for (const size_t next : after[i])
            if (--open[next] == 0)
                ready.push(next);
    }
    return first;
}

} // namespace cuda_cpu

cuda_cpu::References::References(const References &other) : counts(other.counts) {
    std::lock_guard lock(graphs().mutex);
    for (auto &[object, count] : counts)
        object->references += count = 1;
}

cuda_cpu::References::~References() {
    std::lock_guard lock(graphs().mutex);
    for (const auto &[object, count] : counts)
        release_object(object, count);
}

CUgraph_st::~CUgraph_st() {
    std::lock_guard lock(cuda_cpu::graphs().mutex);
    for (const auto &node : nodes) {
        cuda_cpu::graphs().nodes.erase(node.get());
        if (const auto *const child = std::get_if<cuda_cpu::Subgraph>(&node->operation.what))
            cuda_cpu::graphs().graphs.erase(child->graph.get());
    }
}

using namespace cuda_cpu;

extern "C" {

// ---- capture ----

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    BEGIN();
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    LOCK();
    return begin_capture(__func__, stream, nullptr, {}, mode);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *,
                                          size_t count, cudaStreamCaptureMode mode) {
    BEGIN();
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    LOCK();
    const auto into = find_graph(__func__, graph);
    if (!into)
        return cudaErrorInvalidValue;
    if (const cudaError_t error = check_nodes(__func__, *into, dependencies, count))
        return error;
    return begin_capture(__func__, stream, into,
                         std::vector<cudaGraphNode_t>(dependencies, dependencies + count), mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    BEGIN();
    NOT_NULL(graph);
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    LOCK();
    CapturedStream *const c = captured(stream);
    *graph = nullptr;
    if (!c)
        return fail(cudaErrorIllegalState, "%s: no capture of the stream was begun", __func__);
    const CapturePointer capture = c->capture;
    if (capture->origin != c->stream.number) {
        spoil(capture);
        return fail(cudaErrorStreamCaptureUnmatched, "%s: the capture was begun with another stream",
                    __func__);
    }
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
        end(capture); // as on an H200: its graph is lost, and the stream is no longer captured
        return fail(cudaErrorStreamCaptureWrongThread,
                    "%s: another host thread began the capture, which is not relaxed", __func__);
    }
    std::vector<cudaGraphNode_t> others = capture->of_gone; // the last nodes of the other streams
    for (const auto &[number, other] : graphs().captured)
        if (other.capture == capture)
            others.insert(others.end(), other.last.begin(), other.last.end());
    const bool all_joined = joined(c->last, others);
    const bool valid = capture->status == cudaStreamCaptureStatusActive;
    end(capture);
    if (!valid)
        return spoilt(__func__);
    if (!all_joined)
        return fail(cudaErrorStreamCaptureUnjoined,
                    "%s: a stream that joined the capture has work for which the first stream does not wait",
                    __func__);
    *graph = capture->into_existing ? capture->graph.get() : enter(capture->graph);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
    return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                                     size_t *count) {
    BEGIN();
    NOT_NULL(status);
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    LOCK();
    const CapturedStream *const c = captured(stream);
    *status = c ? c->capture->status : cudaStreamCaptureStatusNone;
    if (*status != cudaStreamCaptureStatusActive)
        return cudaSuccess;
    if (id)
        *id = c->capture->id;
    if (graph) { // the pointers stay valid until the capture ends
        *graph = c->capture->graph.get();
        graphs().graphs.emplace(*graph, c->capture->graph);
    }
    if (dependencies)
        *dependencies = c->last.data();
    if (edges)
        *edges = nullptr;
    if (count)
        *count = c->last.size();
    return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *, size_t count, unsigned flags) {
    BEGIN();
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    LOCK();
    CapturedStream *const c = captured(stream);
    if (!c)
        return fail(cudaErrorIllegalState, "%s: no graph captures the stream", __func__);
    if (const cudaError_t error = check_nodes(__func__, *c->capture->graph, dependencies, count))
        return error;
    if (flags & cudaStreamSetCaptureDependencies)
        c->last.clear();
    for (size_t i = 0; i < count; ++i)
        if (!std::count(c->last.begin(), c->last.end(), dependencies[i]))
            c->last.push_back(dependencies[i]);
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
    MAY_FAIL();
    NOT_NULL(mode);
    if ((unsigned)*mode > cudaStreamCaptureModeRelaxed)
        return fail(cudaErrorInvalidValue, "%s: there is no mode %d", __func__, (int)*mode);
    std::swap(*mode, thread_mode);
    return cudaSuccess;
}

// ---- graphs ----

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
    BEGIN();
    NOT_NULL(graph);
    if (flags)
        return fail(cudaErrorInvalidValue, "%s: flags are 0x%x, must be 0", __func__, flags);
    LOCK();
    *graph = enter(std::make_shared<CUgraph_st>());
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    BEGIN();
    LOCK();
    const auto found = find_graph(__func__, graph);
    if (!found)
        return cudaErrorInvalidValue;
    graphs().graphs.erase(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t *copy, cudaGraph_t graph) {
    BEGIN();
    NOT_NULL(copy);
    LOCK();
    const auto found = find_graph(__func__, graph);
    if (!found)
        return cudaErrorInvalidValue;
    *copy = enter(clone(*found));
    return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy,
                                 unsigned references, unsigned flags) {
    BEGIN();
    NOT_NULL(object);
    NOT_NULL(destroy);
    if (references == 0 || flags != cudaUserObjectNoDestructorSync)
        return fail(cudaErrorInvalidValue,
                    "%s: needs a reference, and the flag cudaUserObjectNoDestructorSync", __func__);
    LOCK();
    *object = new CUuserObject_st{data, destroy, references};
    graphs().objects.insert(*object);
    return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
    BEGIN();
    LOCK();
    if (!object_known(__func__, object))
        return cudaErrorInvalidValue;
    if (count == 0)
        return fail(cudaErrorInvalidValue, "%s: the number of references is 0, must be at least 1", __func__);
    object->references += count;
    return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
    BEGIN();
    LOCK();
    if (!object_known(__func__, object))
        return cudaErrorInvalidValue;
    if (count == 0 || count > object->references)
        return fail(cudaErrorInvalidValue, "%s: cannot release %u references, must be from 1 to %u", __func__,
                    count, object->references);
    release_object(object, count);
    return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
    BEGIN();
    LOCK();
    const auto found = find_graph(__func__, graph);
    if (!found || !object_known(__func__, object))
        return cudaErrorInvalidValue;
    if (count == 0 || flags & ~(unsigned)cudaGraphUserObjectMove)
        return fail(cudaErrorInvalidValue,
                    "%s: the number of references is %u, must be at least 1; the flags are 0x%x, must be 0 "
                    "or cudaGraphUserObjectMove",
                    __func__, count, flags);
    found->objects.counts[object] += count;
    if (!(flags & cudaGraphUserObjectMove)) // with the flag, the graph takes over the caller's references
        object->references += count;
    return cudaSuccess;
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
    BEGIN();
    LOCK();
    const auto found = find_graph(__func__, graph);
    if (!found || !object_known(__func__, object))
        return cudaErrorInvalidValue;
    const auto held = found->objects.counts.find(object);
    if (held == found->objects.counts.end() || count == 0 || count > held->second)
        return fail(cudaErrorInvalidValue, "%s: the graph does not have %u references to the object",
                    __func__, count);
    if ((held->second -= count) == 0)
        found->objects.counts.erase(held);
    release_object(object, count);
    return cudaSuccess;
}

static cudaError_t list_nodes(const char *call, cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count,
                              bool roots) {
    if (!count)
        return fail(cudaErrorInvalidValue, "%s: count is NULL", call);
    LOCK();
    const auto found = find_graph(call, graph);
    if (!found)
        return cudaErrorInvalidValue;
    std::vector<cudaGraphNode_t> list;
    for (const auto &node : found->nodes)
        if (!roots || node->before.empty())
            list.push_back(node.get());
    return give(list, nodes, count);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    BEGIN();
    return list_nodes(__func__, graph, nodes, count, false);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    BEGIN();
    return list_nodes(__func__, graph, nodes, count, true);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edges, size_t *count) {
    BEGIN();
    NOT_NULL(count);
    LOCK();
    const auto found = find_graph(__func__, graph);
    if (!found)
        return cudaErrorInvalidValue;
    std::vector<cudaGraphNode_t> sources, targets;
    for (const auto &node : found->nodes)
        for (const cudaGraphNode_t before : node->before) {
            sources.push_back(before);
            targets.push_back(node.get());
        }
    size_t same = *count;
    give(sources, from, count);
    if (edges && from)
        std::fill(edges, edges + *count, cudaGraphEdgeData{});
    return to ? give(targets, to, &same) : cudaSuccess;
}

static cudaError_t check_edges(const char *call, const CUgraph_st &graph, const cudaGraphNode_t *from,
                               const cudaGraphNode_t *to, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (const cudaError_t error = check_nodes(call, graph, from + i, 1))
            return error;
        if (const cudaError_t error = check_nodes(call, graph, to + i, 1))
            return error;
    }
    return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *, size_t count) {
    BEGIN();
    LOCK();
    const auto found = find_graph(__func__, graph);
    if (!found)
        return cudaErrorInvalidValue;
    if (const cudaError_t error = check_edges(__func__, *found, from, to, count))
        return error;
    for (size_t i = 0; i < count; ++i) {
        std::vector<cudaGraphNode_t> &before = to[i]->before;
        if (from[i] == to[i] || std::count(before.begin(), before.end(), from[i]))
            return fail(cudaErrorInvalidValue, "%s: dependency %zu %s", __func__, i,
                        from[i] == to[i] ? "is of a node on itself" : "is there already");
        before.push_back(from[i]);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *, size_t count) {
    BEGIN();
    LOCK();
    const auto found = find_graph(__func__, graph);
    if (!found)
        return cudaErrorInvalidValue;
    if (const cudaError_t error = check_edges(__func__, *found, from, to, count))
        return error;
    for (size_t i = 0; i < count; ++i) {
        std::vector<cudaGraphNode_t> &before = to[i]->before;
        const auto edge = std::find(before.begin(), before.end(), from[i]);
        if (edge == before.end())
            return fail(cudaErrorInvalidValue, "%s: there is no dependency %zu", __func__, i);
        before.erase(edge);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned) {
    BEGIN();
    NOT_NULL(path);
    LOCK();
    const auto found = find_graph(__func__, graph);
    if (!found)
        return cudaErrorInvalidValue;
    FILE *const file = fopen(path, "w");
    if (!file)
        return fail(cudaErrorOperatingSystem, "%s: cannot write %s: %s", __func__, path, strerror(errno));
    fprintf(file, "digraph cuda_graph {\n");
    std::map<cudaGraphNode_t, size_t> number;
    for (const auto &node : found->nodes) {
        const size_t n = number.size();
        number[node.get()] = n;
        const StoredLaunch *const launch = std::get_if<StoredLaunch>(&node->operation.what);
        fprintf(file, "    n%zu [label=\"%zu: %s%s%s\"];\n", n, n,
                type_name(type_of(node->operation)) +
                    (strncmp(type_name(type_of(node->operation)), "an ", 3) ? 2 : 3),
                launch ? " " : "", launch ? launch->kernel.name : "");
    }
    for (const auto &node : found->nodes)
        for (const cudaGraphNode_t before : node->before)
            fprintf(file, "    n%zu -> n%zu;\n", number[before], number[node.get()]);
    fprintf(file, "}\n");
    const bool failed = ferror(file);
    if (fclose(file) != 0 || failed) {
        unlink(path);
        return fail(cudaErrorOperatingSystem, "%s: cannot write %s", __func__, path);
    }
    return cudaSuccess;
}

// ---- nodes ----

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                   size_t count, const cudaKernelNodeParams *params) {
    return add_node(__func__, node, graph, after, count, set_kernel, params);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                   size_t count, const cudaMemcpy3DParms *params) {
    return add_node(__func__, node, graph, after, count, set_copy, params);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, void *to, const void *from, size_t bytes,
                                     cudaMemcpyKind kind) {
    const cudaMemcpy3DParms params = params_1d(to, from, bytes, kind);
    return add_node(__func__, node, graph, after, count, set_copy, &params);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *after, size_t count, const void *symbol,
                                           const void *from, size_t bytes, size_t offset,
                                           cudaMemcpyKind kind) {
    return cudaGraphAddMemcpyNode1D(node, graph, after, count, (char *)const_cast<void *>(symbol) + offset,
                                    from, bytes, kind);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                             const cudaGraphNode_t *after, size_t count, void *to,
                                             const void *symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind) {
    return cudaGraphAddMemcpyNode1D(node, graph, after, count, to, (const char *)symbol + offset, bytes,
                                    kind);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                   size_t count, const cudaMemsetParams *params) {
    return add_node(__func__, node, graph, after, count, set_fill, params);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                 size_t count, const cudaHostNodeParams *params) {
    return add_node(__func__, node, graph, after, count, set_host, params);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                       size_t count, cudaGraph_t child) {
    return add_node(__func__, node, graph, after, count, set_child, child);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                  size_t count) {
    return add_node(__func__, node, graph, after, count, [](auto...) { return cudaSuccess; });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *after, size_t count, cudaEvent_t event) {
    return add_node(__func__, node, graph, after, count, set_event<RecordEvent>, event);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                      size_t count, cudaEvent_t event) {
    return add_node(__func__, node, graph, after, count, set_event<WaitEvent>, event);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, cudaMemAllocNodeParams *params) {
    NOT_NULL(params);
    return add_node(__func__, node, graph, after, count, [&](const char *call, Operation &o) {
        if (params->bytesize == 0 || params->poolProps.allocType != cudaMemAllocationTypePinned ||
            params->poolProps.location.type != cudaMemLocationTypeDevice)
            return fail(cudaErrorInvalidValue, "%s: needs a size, and pinned memory on a device", call);
        if (!device_exists(call, params->poolProps.location.id))
            return cudaErrorInvalidValue;
        o.device = params->poolProps.location.id;
        const OnDevice device(o.device);
        if (const cudaError_t error = graph_memory(call, params->bytesize, &params->dptr, o.keeps))
            return error;
        o.what = Allocate{params->dptr, params->bytesize};
        return cudaSuccess;
    });
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                    size_t count, void *pointer) {
    return add_node(__func__, node, graph, after, count, [&](const char *call, Operation &o) {
        if (!graphs().memory.count(pointer))
            return fail(cudaErrorInvalidValue, "%s: %p was not allocated by a node of a graph", call,
                        pointer);
        o.what = Release{pointer, true};
        return cudaSuccess;
    });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    BEGIN();
    LOCK();
    if (!node_known(__func__, node))
        return cudaErrorInvalidValue;
    CUgraph_st &graph = *node->graph;
    for (const auto &other : graph.nodes) {
        const auto edge = std::find(other->before.begin(), other->before.end(), node);
        if (edge != other->before.end())
            other->before.erase(edge);
    }
    graphs().nodes.erase(node);
    graph.nodes.erase(std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                   [&](const auto &other) { return other.get() == node; }));
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type) {
    BEGIN();
    NOT_NULL(type);
    LOCK();
    if (!node_known(__func__, node))
        return cudaErrorInvalidValue;
    *type = type_of(node->operation);
    return cudaSuccess;
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *found, cudaGraphNode_t original, cudaGraph_t copy) {
    BEGIN();
    NOT_NULL(found);
    LOCK();
    const auto graph = find_graph(__func__, copy);
    if (!graph)
        return cudaErrorInvalidValue;
    for (const auto &node : graph->nodes)
        if (node->original == original) {
            *found = node.get();
            return cudaSuccess;
        }
    return fail(cudaErrorInvalidValue, "%s: the graph has no clone of the node", __func__);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *before,
                                         cudaGraphEdgeData *edges, size_t *count) {
    BEGIN();
    NOT_NULL(count);
    LOCK();
    if (!node_known(__func__, node))
        return cudaErrorInvalidValue;
    if (edges)
        std::fill(edges, edges + *count, cudaGraphEdgeData{});
    return give(node->before, before, count);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *after,
                                           cudaGraphEdgeData *edges, size_t *count) {
    BEGIN();
    NOT_NULL(count);
    LOCK();
    if (!node_known(__func__, node))
        return cudaErrorInvalidValue;
    std::vector<cudaGraphNode_t> list;
    for (const auto &other : node->graph->nodes)
        if (std::count(other->before.begin(), other->before.end(), node))
            list.push_back(other.get());
    if (edges)
        std::fill(edges, edges + *count, cudaGraphEdgeData{});
    return give(list, after, count);
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *params) {
    return get_node<StoredLaunch>(__func__, node, params, [node](const StoredLaunch &launch) {
        const Kernel &kernel = launch.kernel;
        node->arguments.assign(kernel.stored->arguments(kernel.call, nullptr), nullptr);
        kernel.stored->arguments(kernel.call, node->arguments.data());
        const auto address = graphs().addresses.find(kernel.function);
        return cudaKernelNodeParams{address != graphs().addresses.end() ? address->second
                                                                        : (void *)kernel.function,
                                    launch.config.grid,
                                    launch.config.block,
                                    (unsigned)launch.config.shared_bytes,
                                    const_cast<void **>(node->arguments.data()),
                                    nullptr};
    });
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue *value) {
    return get_node<StoredLaunch>(__func__, node, value, [attribute](const StoredLaunch &launch) {
        cudaLaunchAttributeValue v = {};
        if (attribute == cudaLaunchAttributeCooperative)
            v.cooperative = launch.cooperative;
        return v;
    });
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value) {
    NOT_NULL(value);
    return set_node(__func__, node, [&](const char *call, Operation &o) {
        StoredLaunch *const launch = part<StoredLaunch>(call, o);
        return launch ? set_attribute(call, {attribute, *value}, launch->cooperative) : cudaErrorInvalidValue;
    });
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
    cudaLaunchAttributeValue value;
    const cudaError_t error = cudaGraphKernelNodeGetAttribute(from, cudaLaunchAttributeCooperative, &value);
    return error ? error : cudaGraphKernelNodeSetAttribute(to, cudaLaunchAttributeCooperative, &value);
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *params) {
    return set_node(__func__, node, set_kernel, params);
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *params) {
    return get_node<Transfer>(__func__, node, params, params_of);
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *params) {
    return set_node(__func__, node, set_copy, params);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from, size_t bytes,
                                           cudaMemcpyKind kind) {
    const cudaMemcpy3DParms params = params_1d(to, from, bytes, kind);
    return set_node(__func__, node, set_copy, &params);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *from,
                                                 size_t bytes, size_t offset, cudaMemcpyKind kind) {
    return cudaGraphMemcpyNodeSetParams1D(node, (char *)const_cast<void *>(symbol) + offset, from, bytes,
                                          kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to, const void *symbol,
                                                   size_t bytes, size_t offset, cudaMemcpyKind kind) {
    return cudaGraphMemcpyNodeSetParams1D(node, to, (const char *)symbol + offset, bytes, kind);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *params) {
    return get_node<Fill>(__func__, node, params, [](const Fill &f) {
        return cudaMemsetParams{f.to, f.pitch, f.value, f.element, f.width / f.element, f.rows};
    });
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams *params) {
    return set_node(__func__, node, set_fill, params);
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams *params) {
    return get_node<HostCall>(__func__, node, params, [](const HostCall &h) {
        return cudaHostNodeParams{h.function, h.data};
    });
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams *params) {
    return set_node(__func__, node, set_host, params);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
    return get_node<Subgraph>(__func__, node, graph, [](const Subgraph &s) { return s.graph.get(); });
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
    return get_node<RecordEvent>(__func__, node, event, [](const RecordEvent &r) { return r.event; });
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    return set_node(__func__, node, set_event<RecordEvent>, event);
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
    return get_node<WaitEvent>(__func__, node, event, [](const WaitEvent &w) { return w.event; });
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
    return set_node(__func__, node, set_event<WaitEvent>, event);
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams *params) {
    return get_node<Allocate>(__func__, node, params, [node](const Allocate &a) {
        cudaMemAllocNodeParams p = {};
        p.poolProps.allocType = cudaMemAllocationTypePinned;
        p.poolProps.location = {cudaMemLocationTypeDevice, node->operation.device};
        p.bytesize = a.bytes;
        p.dptr = a.pointer;
        return p;
    });
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *pointer) {
    return get_node<Release>(__func__, node, (void **)pointer, [](const Release &r) { return r.pointer; });
}

// Makes an operation from the parameters of any kind of node.
static cudaError_t set_any(const char *call, Operation &o, const cudaGraphNodeParams *p) {
    if (!p)
        return fail(cudaErrorInvalidValue, "%s: the parameters are NULL", call);
    switch (p->type) {
    case cudaGraphNodeTypeKernel:
        return set_kernel(call, o, &p->kernel);
    case cudaGraphNodeTypeMemcpy:
        return set_copy(call, o, &p->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        return set_fill(call, o, &p->memset);
    case cudaGraphNodeTypeHost:
        return set_host(call, o, &p->host);
    case cudaGraphNodeTypeGraph:
        return set_child(call, o, p->graph.graph);
    case cudaGraphNodeTypeEmpty:
        return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
        return set_event<WaitEvent>(call, o, p->eventWait.event);
    case cudaGraphNodeTypeEventRecord:
        return set_event<RecordEvent>(call, o, p->eventRecord.event);
    default:
        return fail(cudaErrorNotSupported, "%s: nodes of type %d are not supported", call, (int)p->type);
    }
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                             const cudaGraphEdgeData *, size_t count, cudaGraphNodeParams *params) {
    if (params && params->type == cudaGraphNodeTypeMemAlloc)
        return cudaGraphAddMemAllocNode(node, graph, after, count, &params->alloc);
    if (params && params->type == cudaGraphNodeTypeMemFree)
        return cudaGraphAddMemFreeNode(node, graph, after, count, params->free.dptr);
    return add_node(__func__, node, graph, after, count, set_any, params);
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams *params) {
    return set_node(__func__, node, set_any, params);
}

// ---- executable graphs ----

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags) {
    return instantiate(__func__, executable, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                          unsigned long long flags) {
    return instantiate(__func__, executable, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *params) {
    NOT_NULL(params);
    const cudaError_t error = instantiate(__func__, executable, graph, params->flags);
    params->errNode_out = nullptr;
    params->result_out = error ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
    return error;
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long *flags) {
    BEGIN();
    NOT_NULL(flags);
    LOCK();
    const auto found = find_executable(__func__, executable);
    if (found)
        *flags = found->flags;
    return found ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
    BEGIN();
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    LOCK();
    return find_executable(__func__, executable) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    BEGIN();
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    std::shared_ptr<const GraphRun> run;
    {
        LOCK();
        const auto found = find_executable(__func__, executable);
        if (!found)
            return cudaErrorInvalidValue;
        run = found->run;
    }
    if (at_once())
        return run_graph(*run);
    if (captures(stream)) // not permitted on a GPU either; programs use a child graph node
        return refuse_in_capture(__func__, stream);
    return submit(stream, {__func__, Subgraph{nullptr, run}});
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    BEGIN();
    if (const cudaError_t error = refuse_unsafe(__func__))
        return error;
    LOCK();
    const auto found = find_executable(__func__, executable);
    graphs().executables.erase(executable);
    return found ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info) {
    BEGIN();
    NOT_NULL(info);
    LOCK();
    *info = {cudaGraphExecUpdateError, nullptr, nullptr};
    const auto target = find_executable(__func__, executable);
    const auto source = target ? find_graph(__func__, graph) : nullptr;
    if (!source)
        return cudaErrorInvalidValue;
    const auto run = order(*source);
    const auto refuse = [&](cudaGraphExecUpdateResult result, cudaGraphNode_t node, const char *why) {
        *info = {result, node, nullptr};
        return fail(cudaErrorGraphExecUpdateFailure, "%s: %s", "cudaGraphExecUpdate", why);
    };
    if (!run || run->steps.size() != target->run->steps.size())
        return refuse(cudaGraphExecUpdateErrorTopologyChanged, nullptr,
                      "the graph has another number of nodes than the one that was instantiated");
    for (size_t i = 0; i < run->steps.size(); ++i) {
        Step &fresh = run->steps[i];
        const Step &old = target->run->steps[i];
        if (fresh.before != old.before)
            return refuse(cudaGraphExecUpdateErrorTopologyChanged, fresh.origin,
                          "a node has other dependencies than in the graph that was instantiated");
        if (type_of(fresh.operation) != type_of(old.operation))
            return refuse(cudaGraphExecUpdateErrorNodeTypeChanged, fresh.origin,
                          "a node has another type than in the graph that was instantiated");
        fresh.origin = old.origin;
        fresh.enabled = old.enabled;
    }
    target->run = run;
    *info = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
    return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *params) {
    return set_step(__func__, executable, node, set_kernel, params);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms *params) {
    return set_step(__func__, executable, node, set_copy, params);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void *to,
                                               const void *from, size_t bytes, cudaMemcpyKind kind) {
    const cudaMemcpy3DParms params = params_1d(to, from, bytes, kind);
    return set_step(__func__, executable, node, set_copy, &params);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                     const void *symbol, const void *from, size_t bytes,
                                                     size_t offset, cudaMemcpyKind kind) {
    return cudaGraphExecMemcpyNodeSetParams1D(executable, node, (char *)const_cast<void *>(symbol) + offset,
                                              from, bytes, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                       void *to, const void *symbol, size_t bytes,
                                                       size_t offset, cudaMemcpyKind kind) {
    return cudaGraphExecMemcpyNodeSetParams1D(executable, node, to, (const char *)symbol + offset, bytes,
                                              kind);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams *params) {
    return set_step(__func__, executable, node, set_fill, params);
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaHostNodeParams *params) {
    return set_step(__func__, executable, node, set_host, params);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
    return set_step(__func__, executable, node, [&](const char *call, Operation &o) {
        const auto found = find_graph(call, child);
        Subgraph *const old = found ? part<Subgraph>(call, o) : nullptr;
        if (!old)
            return cudaErrorInvalidValue;
        const auto run = order(*found);
        if (!run || run->steps.size() != old->run->steps.size())
            return fail(cudaErrorInvalidValue,
                        "%s: the dependencies of the graph form a cycle, or it has another number of nodes "
                        "than the graph that it replaces (%zu)",
                        call, old->run->steps.size());
        old->run = run;
        return cudaSuccess;
    });
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
    return set_step(__func__, executable, node, set_event<RecordEvent>, event);
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               cudaEvent_t event) {
    return set_step(__func__, executable, node, set_event<WaitEvent>, event);
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                       cudaGraphNodeParams *params) {
    return set_step(__func__, executable, node, set_any, params);
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned enabled) {
    BEGIN();
    LOCK();
    Step *const step = find_step(__func__, executable, node);
    if (!step)
        return cudaErrorInvalidValue;
    const cudaGraphNodeType type = type_of(step->operation);
    if (type != cudaGraphNodeTypeKernel && type != cudaGraphNodeTypeMemcpy && type != cudaGraphNodeTypeMemset)
        return fail(cudaErrorInvalidValue, "%s: only kernels, copies and fills can be disabled", __func__);
    step->enabled = enabled != 0;
    return cudaSuccess;
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned *enabled) {
    BEGIN();
    NOT_NULL(enabled);
    LOCK();
    const Step *const step = find_step(__func__, executable, node);
    if (!step)
        return cudaErrorInvalidValue;
    *enabled = step->enabled;
    return cudaSuccess;
}

// ---- memory of graphs ----

cudaError_t cudaDeviceGraphMemTrim(int device) {
    BEGIN();
    return device_exists(__func__, device) ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void *value) {
    BEGIN();
    NOT_NULL(value);
    if (!device_exists(__func__, device))
        return cudaErrorInvalidDevice;
    if ((unsigned)attribute > cudaGraphMemAttrReservedMemHigh)
        return fail(cudaErrorInvalidValue, "%s: there is no attribute %d", __func__, (int)attribute);
    LOCK();
    uint64_t bytes = 0;
    for (const auto &[pointer, size] : graphs().memory) {
        Allocation a;
        bytes += find_allocation(pointer, a) && a.device == device ? size : 0;
    }
    *(uint64_t *)value = bytes;
    return cudaSuccess;
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void *value) {
    BEGIN();
    NOT_NULL(value);
    if (!device_exists(__func__, device))
        return cudaErrorInvalidDevice;
    if (attribute != cudaGraphMemAttrUsedMemHigh && attribute != cudaGraphMemAttrReservedMemHigh)
        return fail(cudaErrorInvalidValue, "%s: only the high-water marks can be reset", __func__);
    return cudaSuccess;
}

} // extern "C"
