// SPDX-License-Identifier: MIT
// Graphs: what graph.cpp (graphs), graph_nodes.cpp (what a node does), graph_exec.cpp (executable graphs),
// graph_memory.cpp and capture.cpp share.
//
// A node holds an operation as data; a launch has its own copy of the arguments. An executable graph is the
// list of these operations in an order that respects the dependencies. A launch of the graph runs them one
// after the other.
#pragma once
#include "stream.h"

#include <deque>

namespace cuda_cpu {

// A graph's references to user objects. A copy of the graph has one reference to each.
struct References {
    std::map<cudaUserObject_t, unsigned> counts;

    References() = default;
    References(const References &other);
    ~References();
};

struct GraphStep {          // of an executable graph
    cudaGraphNode_t origin; // node of the instantiated graph; may be destroyed: do not dereference
    Operation operation;
    std::vector<size_t> before;
};

struct GraphRun {
    References objects;
    std::vector<GraphStep> steps{}; // topological order: each step comes after those that it depends on
};

} // namespace cuda_cpu

struct CUgraphNode_st {
    CUgraph_st *graph;
    Operation operation;
    std::vector<cudaGraphNode_t> before; // its dependencies
    std::vector<const void *> arguments; // for cudaGraphKernelNodeGetParams
};

struct CUgraph_st {
    std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
    References objects;

    explicit CUgraph_st(const References &objects = {}) : objects(objects) {}
    ~CUgraph_st();
};

struct CUgraphExec_st {
    std::shared_ptr<GraphRun> run;
};

// An object of the program. It is destroyed with the last reference to it.
struct CUuserObject_st {
    void *data;
    cudaHostFn_t destroy;
    unsigned references;
};

namespace cuda_cpu {

// What a conditional handle stands for: a value that kernels set and that one conditional node reads
struct Condition {
    unsigned initial = 0;
    bool assign = false; // each launch begins with the initial value
    bool used = false;   // a conditional node has the handle
    std::weak_ptr<CUgraphExec_st> executable{};
    std::atomic<unsigned> value{0};
};

struct Graphs {
    std::recursive_mutex mutex;
    std::map<cudaGraph_t, std::shared_ptr<CUgraph_st>> graphs;
    std::map<cudaGraphExec_t, std::shared_ptr<CUgraphExec_st>> executables;
    std::set<cudaGraphNode_t> nodes;
    std::set<cudaUserObject_t> objects;
    std::map<const Function *, void *> addresses; // of kernels that the program named by address
    std::map<void *, size_t> memory;              // memory that graphs own, with its size in bytes
    std::deque<Condition> conditions;             // handle h is conditions[h - 1]
};

Graphs &graphs();

// Also protects what capture.cpp keeps.
#define LOCK() std::lock_guard lock(graphs().mutex)

// Begins a call with the lock.
#define BEGIN_LOCKED(...)                                                                                    \
    LOCK();                                                                                                  \
    BEGIN(__VA_ARGS__)

// ---- graph.cpp; all of these need the lock ----

cudaGraph_t enter(std::shared_ptr<CUgraph_st> graph); // makes the graph known by its handle
// Copies a graph. Graphs with conditional nodes have no copies.
cudaError_t clone(const char *call, const CUgraph_st &graph, std::shared_ptr<CUgraph_st> &copy);
// Calls f(subgraph) for the child graph of a node, or for each body graph of a conditional node.
template <class F> void for_graphs_in(Operation &o, F f) {
    if (Subgraph *const child = std::get_if<Subgraph>(&o.what))
        f(*child);
    if (Conditional *const node = std::get_if<Conditional>(&o.what))
        for (Subgraph &body : node->bodies)
            f(body);
}
cudaGraphNode_t new_node(CUgraph_st &graph, Operation operation, std::vector<cudaGraphNode_t> before);
// Checks a list of dependencies: different nodes of this graph.
cudaError_t check_nodes(const char *call, const CUgraph_st &graph, const cudaGraphNode_t *nodes,
                        size_t count);

// ---- graph_nodes.cpp ----

cudaGraphNodeType type_of(const Operation &operation);
const char *type_name(cudaGraphNodeType type); // with an article: "a kernel", "an empty"

// ---- graph_exec.cpp ----

// Topological sort: returns the steps of a graph in the order of their dependencies; null for a cycle.
std::shared_ptr<GraphRun> order(const CUgraph_st &graph);
// The step of an executable graph that was made from this node. Fails and returns null if there is none.
GraphStep *find_step(const char *call, cudaGraphExec_t executable, cudaGraphNode_t node);

// ---- graph_memory.cpp ----

// Allocates memory that is freed with the last copy of the returned shared pointer.
cudaError_t graph_memory(const char *call, size_t bytes, void **pointer, std::shared_ptr<const void> &keeps);

} // namespace cuda_cpu
