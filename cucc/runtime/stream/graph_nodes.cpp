// SPDX-License-Identifier: MIT
// What the nodes of graphs do: the operation that each kind is made from, in graphs and executable graphs
#include "graph.h"
#include "texture.h"

namespace cuda_cpu {

cudaGraphNodeType type_of(const Operation &o) {
    // By Operation::what. A library's work is a kernel node, as on a GPU, without parameters to read.
    static const cudaGraphNodeType types[] = {
        cudaGraphNodeTypeEmpty,       cudaGraphNodeTypeKernel,    cudaGraphNodeTypeMemcpy,
        cudaGraphNodeTypeMemset,      cudaGraphNodeTypeHost,      cudaGraphNodeTypeKernel,
        cudaGraphNodeTypeEventRecord, cudaGraphNodeTypeWaitEvent, cudaGraphNodeTypeMemAlloc,
        cudaGraphNodeTypeMemFree,     cudaGraphNodeTypeGraph,     cudaGraphNodeTypeConditional};
    static_assert(std::size(types) == std::variant_size_v<decltype(o.what)>);
    return types[o.what.index()];
}

const char *type_name(cudaGraphNodeType type) {
    static const char *const names[] = {"a kernel",    "a copy",       "a fill",        "a host function",
                                        "a graph",     "an empty",     "an event wait", "an event record",
                                        "a semaphore", "a semaphore",  "an allocation", "a free",
                                        "a batch",     "a conditional"};
    return names[type];
}

namespace {

// Returns the parameters of a node if its operation is a T; otherwise fails.
template <class T> T *part(const char *call, Operation &o) {
    T *const found = std::get_if<T>(&o.what);
    if (!found)
        fail(cudaErrorInvalidValue, "%s: the node is %s node", call, type_name(type_of(o)));
    return found;
}

// Common part of every cudaGraphAdd…Node call. `set` makes the operation from the call's other arguments.
template <class Set, class... A>
cudaError_t add_node(const char *call, cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                     size_t count, Set set, A... a) {
    LOCK();
    BEGIN_IN(node, graph);
    TRY(check_nodes(call, *graph, after, count));
    Operation operation = {call, {}, current_device()};
    TRY(set(call, operation, a...));
    return store(node,
                 new_node(*graph, std::move(operation), std::vector<cudaGraphNode_t>(after, after + count)));
}

// Sets the operation of a node, or of the step of an executable graph that was made from the node.
template <class Set, class... A>
cudaError_t set_node(const char *call, cudaGraphNode_t node, Set set, A... a) {
    LOCK();
    BEGIN_IN(node);
    return set(call, node->operation, a...);
}

template <class Set, class... A>
cudaError_t set_step(const char *call, cudaGraphExec_t executable, cudaGraphNode_t node, Set set, A... a) {
    BEGIN_IN();
    LOCK();
    GraphStep *const step = find_step(call, executable, node);
    return step ? set(call, step->operation, a...) : cudaErrorInvalidValue;
}

// Each makes an operation from a program's parameters. An operation that has a type must keep it.
template <class T> cudaError_t put(const char *call, Operation &o, T value) {
    if (o.what.index() != 0 && !std::holds_alternative<T>(o.what))
        return part<T>(call, o) ? cudaSuccess : cudaErrorInvalidValue;
    o.what = std::move(value);
    return cudaSuccess;
}

cudaError_t set_kernel(const char *call, Operation &o, const cudaKernelNodeParams *p) {
    FAIL_IF(!p || !p->func, cudaErrorInvalidValue, "the parameters or the kernel are NULL");
    FAIL_IF(p->extra, cudaErrorNotSupported, "arguments in `extra` are not supported, only kernelParams");
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
    const LaunchConfig config = {p->gridDim, p->blockDim, p->sharedMemBytes, nullptr,
                                 old && old->config.dependent};
    TRY(store_launch_of(*kernel, config, p->kernelParams, old && old->cooperative, launch));
    return put(call, o, std::move(launch));
}

cudaError_t set_copy(const char *call, Operation &o, const cudaMemcpy3DParms *p) {
    FAIL_IF(!p, cudaErrorInvalidValue, "the parameters are NULL");
    Transfer t;
    TRY(transfer_of(call, *p, t));
    if (t.width && t.rows && t.slices)
        TRY(check_transfer(call, t));
    return put(call, o, t);
}

cudaError_t set_fill(const char *call, Operation &o, const cudaMemsetParams *p) {
    FAIL_IF(!p, cudaErrorInvalidValue, "the parameters are NULL");
    FAIL_IF(p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4, cudaErrorInvalidValue,
            "elements of %u bytes, must be 1, 2 or 4", p->elementSize);
    const Fill f = {pitched(p->dst, p->pitch, p->height),
                    p->value,
                    p->elementSize,
                    p->width * p->elementSize,
                    p->height,
                    1};
    if (f.width && f.rows)
        TRY(check_fill(call, f));
    return put(call, o, f);
}

cudaError_t set_host(const char *call, Operation &o, const cudaHostNodeParams *p) {
    FAIL_IF(!p || !p->fn, cudaErrorInvalidValue, "the parameters or the function are NULL");
    return put(call, o, HostCall{p->fn, nullptr, nullptr, p->userData});
}

cudaError_t set_child(const char *call, Operation &o, cudaGraph_t child) {
    TRY(check_argument(call, "graph", child));
    std::shared_ptr<CUgraph_st> copy;
    TRY(clone(call, *child, copy));
    enter(copy); // so that the program may change it (cudaGraphChildGraphNodeGetGraph)
    return put(call, o, Subgraph{copy, nullptr});
}

cudaError_t set_conditional(const char *call, Operation &o, cudaConditionalNodeParams *p) {
    FAIL_IF(p->handle == 0 || p->handle > graphs().conditions.size(), cudaErrorInvalidValue,
            "%llu is not a handle for a conditional node", p->handle);
    Condition &condition = graphs().conditions[p->handle - 1];
    FAIL_IF(condition.used, cudaErrorInvalidValue, "another conditional node has this handle");
    FAIL_IF(p->type > cudaGraphCondTypeSwitch || p->size == 0 ||
                (p->type != cudaGraphCondTypeSwitch && p->size > (p->type == cudaGraphCondTypeIf ? 2 : 1)),
            cudaErrorInvalidValue, "%u bodies of a conditional node of type %d", p->size, p->type);
    condition.used = true;
    Conditional node = {p->type, &condition, {}, {}};
    for (unsigned i = 0; i < p->size; ++i) {
        node.bodies.push_back({std::make_shared<CUgraph_st>(), nullptr});
        node.handles.push_back(enter(node.bodies[i].graph));
    }
    o.what = std::move(node);
    p->phGraph_out = std::get<Conditional>(o.what).handles.data();
    return cudaSuccess;
}

cudaError_t set_any(const char *call, Operation &o, cudaGraphNodeParams *p) {
    FAIL_IF(!p, cudaErrorInvalidValue, "the parameters are NULL");
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
    case cudaGraphNodeTypeConditional:
        return set_conditional(call, o, &p->conditional);
    default:
        return fail(cudaErrorNotSupported, "%s: nodes of type %d are not supported", call, (int)p->type);
    }
}

} // namespace
} // namespace cuda_cpu

using namespace cuda_cpu;

// The calls that add a node, and that set its parameters in an executable graph
#define ADD_ARGUMENTS node, graph, after, count
#define NODE(Kind, Params, set)                                                                              \
    cudaError_t cudaGraphAdd##Kind##Node(CUDA_CPU_NEW_NODE, const Params *params) {                          \
        return add_node(__func__, ADD_ARGUMENTS, set, params);                                               \
    }                                                                                                        \
    cudaError_t cudaGraphExec##Kind##NodeSetParams(CUDA_CPU_EXEC_NODE, const Params *params) {               \
        return set_step(__func__, executable, node, set, params);                                            \
    }
NODE(Kernel, cudaKernelNodeParams, set_kernel)
NODE(Memcpy, cudaMemcpy3DParms, set_copy)
NODE(Memset, cudaMemsetParams, set_fill)
NODE(Host, cudaHostNodeParams, set_host)

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *params) {
    return set_node(__func__, node, set_kernel, params);
}

cudaError_t cudaGraphAddMemcpyNode1D(CUDA_CPU_NEW_NODE, void *to, const void *from, size_t bytes,
                                     cudaMemcpyKind kind) {
    const cudaMemcpy3DParms params = {nullptr,       {},  {const_cast<void *>(from), bytes, bytes, 1},
                                      nullptr,       {},  {to, bytes, bytes, 1},
                                      {bytes, 1, 1}, kind};
    return add_node(__func__, ADD_ARGUMENTS, set_copy, &params);
}

FORWARD(cudaGraphAddChildGraphNode, (CUDA_CPU_NEW_NODE, cudaGraph_t child),
        add_node(__func__, ADD_ARGUMENTS, set_child, child))

cudaError_t cudaGraphAddEmptyNode(CUDA_CPU_NEW_NODE) {
    return add_node(__func__, ADD_ARGUMENTS, [](auto...) { return cudaSuccess; });
}

cudaError_t cudaGraphAddMemAllocNode(CUDA_CPU_NEW_NODE, cudaMemAllocNodeParams *params) {
    NOT_NULL(params);
    return add_node(__func__, ADD_ARGUMENTS, [&](const char *call, Operation &o) {
        FAIL_IF(params->bytesize == 0 || params->poolProps.allocType != cudaMemAllocationTypePinned ||
                    params->poolProps.location.type != cudaMemLocationTypeDevice,
                cudaErrorInvalidValue, "needs a size, and pinned memory on a device");
        if (check_device(call, params->poolProps.location.id))
            return cudaErrorInvalidValue;
        o.device = params->poolProps.location.id;
        const OnDevice device(o.device);
        TRY(graph_memory(call, params->bytesize, &params->dptr, o.keeps));
        o.what = Allocate{params->dptr, params->bytesize};
        return cudaSuccess;
    });
}

cudaError_t cudaGraphAddMemFreeNode(CUDA_CPU_NEW_NODE, void *pointer) {
    return add_node(__func__, ADD_ARGUMENTS, [&](const char *call, Operation &o) {
        FAIL_IF(!graphs().memory.count(pointer), cudaErrorInvalidValue,
                "%p was not allocated by a node of a graph", pointer);
        o.what = Release{pointer, true};
        return cudaSuccess;
    });
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                             const cudaGraphEdgeData *, size_t count, cudaGraphNodeParams *params) {
    if (params && params->type == cudaGraphNodeTypeMemAlloc)
        return cudaGraphAddMemAllocNode(node, graph, after, count, &params->alloc);
    if (params && params->type == cudaGraphNodeTypeMemFree)
        return cudaGraphAddMemFreeNode(node, graph, after, count, params->free.dptr);
    return add_node(__func__, ADD_ARGUMENTS, set_any, params);
}

SIMPLE_CALL(cudaGraphNodeGetType, (cudaGraphNode_t node, cudaGraphNodeType *type), BEGIN_LOCKED(type, node),
            store(type, type_of(node->operation)))

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *params) {
    NOT_NULL(params);
    return set_node(__func__, node, [&](const char *call, Operation &o) {
        const StoredLaunch *const launch = part<StoredLaunch>(call, o);
        if (!launch)
            return cudaErrorInvalidValue;
        const Kernel &kernel = launch->kernel;
        node->arguments.assign(kernel.stored->arguments(kernel.call, nullptr), nullptr);
        kernel.stored->arguments(kernel.call, node->arguments.data());
        const auto address = graphs().addresses.find(kernel.function);
        *params = {address != graphs().addresses.end() ? address->second : (void *)kernel.function,
                   launch->config.grid,
                   launch->config.block,
                   (unsigned)launch->config.shared_bytes,
                   const_cast<void **>(node->arguments.data()),
                   nullptr};
        return cudaSuccess;
    });
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value) {
    NOT_NULL(value);
    return set_node(__func__, node, [&](const char *call, Operation &o) {
        StoredLaunch *const launch = part<StoredLaunch>(call, o);
        return launch ? set_attribute(call, {attribute, *value}, launch->config, launch->cooperative)
                      : cudaErrorInvalidValue;
    });
}
