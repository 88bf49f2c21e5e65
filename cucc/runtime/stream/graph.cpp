// SPDX-License-Identifier: MIT
// Graphs: making, copying and listing them, their dependencies, and the user objects that they keep.
#include "graph.h"

namespace cuda_cpu {

ONLY(graphs, Graphs)

#define CHECK(Handle, table, what)                                                                           \
    cudaError_t check_argument(const char *call, const char *, Handle handle) {                              \
        return graphs().table.count(handle) ? cudaSuccess                                                    \
                                            : no_such(call, cudaErrorInvalidValue, what, handle);            \
    }
CHECK(cudaGraph_t, graphs, "a graph")
CHECK(cudaGraphExec_t, executables, "an executable graph")
CHECK(cudaGraphNode_t, nodes, "a node of a graph")
CHECK(cudaUserObject_t, objects, "a user object")
#undef CHECK

cudaGraphNode_t new_node(CUgraph_st &graph, Operation operation, std::vector<cudaGraphNode_t> before) {
    graph.nodes.push_back(std::make_unique<CUgraphNode_st>());
    CUgraphNode_st *const node = graph.nodes.back().get();
    *node = {&graph, std::move(operation), std::move(before), {}};
    graphs().nodes.insert(node);
    return node;
}

cudaError_t check_nodes(const char *call, const CUgraph_st &graph, const cudaGraphNode_t *nodes,
                        size_t count) {
    FAIL_IF(count && !nodes, cudaErrorInvalidValue, "the list of %zu dependencies is NULL", count);
    for (size_t i = 0; i < count; ++i) {
        TRY(check_argument(call, "node", nodes[i]));
        FAIL_IF(nodes[i]->graph != &graph, cudaErrorInvalidValue, "dependency %zu is a node of another graph",
                i);
        FAIL_IF(std::count(nodes, nodes + i, nodes[i]), cudaErrorInvalidValue, "dependency %zu occurs twice",
                i);
    }
    return cudaSuccess;
}

cudaError_t clone(const char *call, const CUgraph_st &graph, std::shared_ptr<CUgraph_st> &copy) {
    copy = std::make_shared<CUgraph_st>(graph.objects);
    std::map<cudaGraphNode_t, cudaGraphNode_t> copies;
    for (const auto &node : graph.nodes) {
        FAIL_IF(std::holds_alternative<Conditional>(node->operation.what), cudaErrorNotSupported,
                "a graph with conditional nodes cannot be copied");
        const cudaGraphNode_t made = new_node(*copy, node->operation, {});
        copies[node.get()] = made;
        if (Subgraph *const child = std::get_if<Subgraph>(&made->operation.what))
            TRY(clone(call, *child->graph, child->graph));
    }
    for (const auto &node : graph.nodes)
        for (const cudaGraphNode_t before : node->before)
            copies[node.get()]->before.push_back(copies[before]);
    return cudaSuccess;
}

cudaGraph_t enter(std::shared_ptr<CUgraph_st> graph) {
    const cudaGraph_t handle = graph.get();
    graphs().graphs[handle] = std::move(graph);
    return handle;
}

static void release_object(cudaUserObject_t object, unsigned count) {
    object->references -= std::min(count, object->references);
    if (object->references)
        return;
    graphs().objects.erase(object);
    run_callback([&] { object->destroy(object->data); });
    delete object;
}

// On entry `count` is the capacity of the array `nodes`, which may be null; on return the number of nodes.
static cudaError_t list_nodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count, bool roots) {
    std::vector<cudaGraphNode_t> list;
    for (const auto &node : graph->nodes)
        if (!roots || node->before.empty())
            list.push_back(node.get());
    for (size_t i = 0; nodes && i < *count; ++i)
        nodes[i] = i < list.size() ? list[i] : nullptr;
    *count = nodes ? std::min(*count, list.size()) : list.size();
    return cudaSuccess;
}

References::References(const References &other) : counts(other.counts) {
    LOCK();
    for (auto &[object, count] : counts)
        object->references += count = 1;
}

References::~References() {
    LOCK();
    for (const auto &[object, count] : counts)
        release_object(object, count);
}

} // namespace cuda_cpu

CUgraph_st::~CUgraph_st() {
    LOCK();
    for (const auto &node : nodes) {
        graphs().nodes.erase(node.get());
        for_graphs_in(node->operation, [](const Subgraph &s) { graphs().graphs.erase(s.graph.get()); });
    }
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags) {
    BEGIN(graph);
    FAIL_IF(flags, cudaErrorInvalidValue, "flags are 0x%x, must be 0", flags);
    LOCK();
    return store(graph, enter(std::make_shared<CUgraph_st>()));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    BEGIN_LOCKED(graph);
    graphs().graphs.extract(graph); // destroyed when it is no longer in the map, which it may change
    return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t *copy, cudaGraph_t graph) {
    BEGIN_LOCKED(copy, graph);
    std::shared_ptr<CUgraph_st> made;
    TRY(clone(call, *graph, made));
    return store(copy, enter(made));
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned value, unsigned flags) {
    BEGIN_LOCKED(handle, graph);
    FAIL_IF(flags & ~(unsigned)cudaGraphCondAssignDefault, cudaErrorInvalidValue,
            "flags are 0x%x, must be 0 or cudaGraphCondAssignDefault", flags);
    Condition &condition = graphs().conditions.emplace_back();
    condition.initial = value;
    condition.assign = flags != 0;
    return store(handle, graphs().conditions.size());
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy,
                                 unsigned references, unsigned flags) {
    BEGIN(object, destroy);
    FAIL_IF(references == 0 || flags != cudaUserObjectNoDestructorSync, cudaErrorInvalidValue,
            "needs a reference, and the flag cudaUserObjectNoDestructorSync");
    LOCK();
    *object = new CUuserObject_st{data, destroy, references};
    graphs().objects.insert(*object);
    return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
    BEGIN_LOCKED(object);
    FAIL_IF(count == 0, cudaErrorInvalidValue, "the number of references is 0, must be at least 1");
    object->references += count;
    return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
    BEGIN_LOCKED(object);
    FAIL_IF(count == 0 || count > object->references, cudaErrorInvalidValue,
            "cannot release %u references, must be from 1 to %u", count, object->references);
    release_object(object, count);
    return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count,
                                      unsigned flags) {
    BEGIN_LOCKED(graph, object);
    FAIL_IF(count == 0 || flags & ~(unsigned)cudaGraphUserObjectMove, cudaErrorInvalidValue,
            "the number of references is %u, must be at least 1; the flags are 0x%x, must be 0 "
            "or cudaGraphUserObjectMove",
            count, flags);
    graph->objects.counts[object] += count;
    if (!(flags & cudaGraphUserObjectMove)) // with the flag, the graph takes over the caller's references
        object->references += count;
    return cudaSuccess;
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
    BEGIN_LOCKED(graph, object);
    const auto held = graph->objects.counts.find(object);
    FAIL_IF(held == graph->objects.counts.end() || count == 0 || count > held->second, cudaErrorInvalidValue,
            "the graph does not have %u references to the object", count);
    if ((held->second -= count) == 0)
        graph->objects.counts.erase(held);
    release_object(object, count);
    return cudaSuccess;
}

SIMPLE_CALL(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
            BEGIN_LOCKED(count, graph), list_nodes(graph, nodes, count, false))
SIMPLE_CALL(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
            BEGIN_LOCKED(count, graph), list_nodes(graph, nodes, count, true))

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *, size_t count) {
    BEGIN_LOCKED(graph);
    for (size_t i = 0; i < count; ++i) {
        TRY(check_nodes(call, *graph, from + i, 1));
        TRY(check_nodes(call, *graph, to + i, 1));
    }
    for (size_t i = 0; i < count; ++i) {
        std::vector<cudaGraphNode_t> &before = to[i]->before;
        const bool there = std::count(before.begin(), before.end(), from[i]);
        FAIL_IF(from[i] == to[i] || there, cudaErrorInvalidValue, "dependency %zu %s", i,
                there ? "is there already" : "is of a node on itself");
        before.push_back(from[i]);
    }
    return cudaSuccess;
}
