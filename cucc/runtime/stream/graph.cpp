// SPDX-License-Identifier: MIT
// Graphs: making, copying and listing them, their dependencies, and the user objects that they keep.
#include "graph.h"

#include <fstream>

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
    *node = {&graph, std::move(operation), std::move(before), nullptr, {}};
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
        made->original = node.get();
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

// Copies a list to an array of the program. On entry `count` is the capacity of the array, on return the
// number of elements. Without an array only the count is set. `edges` gets the data of as many edges.
template <class T>
static cudaError_t give(const std::vector<T> &list, T *to, size_t *count,
                        cudaGraphEdgeData *edges = nullptr) {
    if (to) {
        for (size_t i = 0; i < *count; ++i)
            to[i] = i < list.size() ? list[i] : T{};
        *count = std::min(*count, list.size());
        if (edges)
            std::fill(edges, edges + *count, cudaGraphEdgeData{});
    } else {
        *count = list.size();
    }
    return cudaSuccess;
}

static cudaError_t list_nodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count, bool roots) {
    std::vector<cudaGraphNode_t> list;
    for (const auto &node : graph->nodes)
        if (!roots || node->before.empty())
            list.push_back(node.get());
    return give(list, nodes, count);
}

static cudaError_t change_edges(const char *call, cudaGraph_t graph, const cudaGraphNode_t *from,
                                const cudaGraphNode_t *to, size_t count, bool add) {
    LOCK();
    BEGIN_IN(graph);
    for (size_t i = 0; i < count; ++i) {
        TRY(check_nodes(call, *graph, from + i, 1));
        TRY(check_nodes(call, *graph, to + i, 1));
    }
    for (size_t i = 0; i < count; ++i) {
        std::vector<cudaGraphNode_t> &before = to[i]->before;
        const auto edge = std::find(before.begin(), before.end(), from[i]);
        FAIL_IF(add && (from[i] == to[i] || edge != before.end()), cudaErrorInvalidValue, "dependency %zu %s",
                i, from[i] == to[i] ? "is of a node on itself" : "is there already");
        FAIL_IF(!add && edge == before.end(), cudaErrorInvalidValue, "there is no dependency %zu", i);
        if (add)
            before.push_back(from[i]);
        else
            before.erase(edge);
    }
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

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edges, size_t *count) {
    BEGIN_LOCKED(count, graph);
    std::vector<cudaGraphNode_t> sources, targets;
    for (const auto &node : graph->nodes)
        for (const cudaGraphNode_t before : node->before) {
            sources.push_back(before);
            targets.push_back(node.get());
        }
    size_t same = *count;
    give(sources, from, count, edges);
    return to ? give(targets, to, &same) : cudaSuccess;
}

FORWARD(cudaGraphAddDependencies,
        (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const cudaGraphEdgeData *,
         size_t count),
        change_edges(__func__, graph, from, to, count, true))

FORWARD(cudaGraphRemoveDependencies,
        (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, const cudaGraphEdgeData *,
         size_t count),
        change_edges(__func__, graph, from, to, count, false))

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    BEGIN_LOCKED(node);
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

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *found, cudaGraphNode_t original, cudaGraph_t copy) {
    BEGIN_LOCKED(found, copy);
    for (const auto &node : copy->nodes)
        if (node->original == original)
            return store(found, node.get());
    return fail(cudaErrorInvalidValue, "%s: the graph has no clone of the node", call);
}

SIMPLE_CALL(cudaGraphNodeGetDependencies,
            (cudaGraphNode_t node, cudaGraphNode_t *before, cudaGraphEdgeData *edges, size_t *count),
            BEGIN_LOCKED(count, node), give(node->before, before, count, edges))

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *after,
                                           cudaGraphEdgeData *edges, size_t *count) {
    BEGIN_LOCKED(count, node);
    std::vector<cudaGraphNode_t> list;
    for (const auto &other : node->graph->nodes)
        if (std::count(other->before.begin(), other->before.end(), node))
            list.push_back(other.get());
    return give(list, after, count, edges);
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned) {
    BEGIN_LOCKED(path, graph);
    std::ofstream file(path);
    FAIL_IF(!file, cudaErrorOperatingSystem, "cannot write %s: %s", path, strerror(errno));
    file << "digraph cuda_graph {\n";
    std::map<cudaGraphNode_t, size_t> number;
    for (const auto &node : graph->nodes) {
        const size_t n = number.size();
        number[node.get()] = n;
        const StoredLaunch *const launch = std::get_if<StoredLaunch>(&node->operation.what);
        const char *const kind = strchr(type_name(type_of(node->operation)), ' ');
        file << "    n" << n << " [label=\"" << n << ":" << kind << (launch ? " " : "")
             << (launch ? launch->kernel.name : "") << "\"];\n";
    }
    for (const auto &node : graph->nodes)
        for (const cudaGraphNode_t before : node->before)
            file << "    n" << number[before] << " -> n" << number[node.get()] << ";\n";
    file << "}\n";
    file.close();
    if (file)
        return cudaSuccess;
    unlink(path);
    return fail(cudaErrorOperatingSystem, "%s: cannot write %s", call, path);
}
