// SPDX-License-Identifier: MIT
// Executable graphs: a graph's operations in the order of their dependencies; launches and updates
#include "graph.h"

#include <queue>

namespace cuda_cpu {

// Checks the conditional nodes of a graph or body, and records that they belong to this executable graph.
static cudaError_t check_conditional(const char *call, const CUgraph_st &graph,
                                     const std::shared_ptr<CUgraphExec_st> &executable, bool body) {
    for (const auto &node : graph.nodes) {
        const cudaGraphNodeType type = type_of(node->operation);
        FAIL_IF(body && type != cudaGraphNodeTypeKernel && type != cudaGraphNodeTypeMemcpy &&
                    type != cudaGraphNodeTypeMemset && type != cudaGraphNodeTypeGraph &&
                    type != cudaGraphNodeTypeEmpty && type != cudaGraphNodeTypeConditional,
                cudaErrorInvalidValue, "%s node in the body of a conditional node", type_name(type));
        const Conditional *const conditional = std::get_if<Conditional>(&node->operation.what);
        if (!conditional)
            continue;
        FAIL_IF(!conditional->condition->executable.expired(), cudaErrorNotSupported,
                "a graph with conditional nodes can have only one executable graph");
        conditional->condition->executable = executable;
        for (const Subgraph &inside : conditional->bodies)
            TRY(check_conditional(call, *inside.graph, executable, true));
    }
    return cudaSuccess;
}

static cudaError_t instantiate(const char *call, cudaGraphExec_t *executable, cudaGraph_t graph,
                               unsigned long long flags) {
    LOCK();
    BEGIN_IN(executable, graph);
    FAIL_IF(flags & ~15ull, cudaErrorInvalidValue, "0x%llx is not a valid combination of flags", flags);
    FAIL_IF(flags & cudaGraphInstantiateFlagDeviceLaunch, cudaErrorNotSupported,
            "kernels cannot launch graphs here");
    const auto made = std::make_shared<CUgraphExec_st>();
    TRY(check_conditional(call, *graph, made, false));
    made->run = order(*graph);
    FAIL_IF(!made->run, cudaErrorInvalidValue, "the dependencies of the graph form a cycle");
    *executable = made.get();
    graphs().executables[*executable] = made;
    return cudaSuccess;
}

std::shared_ptr<GraphRun> order(const CUgraph_st &graph) {
    auto run = std::make_shared<GraphRun>(GraphRun{graph.objects});
    std::map<cudaGraphNode_t, size_t> placed;
    const size_t total = graph.nodes.size();
    std::map<cudaGraphNode_t, size_t> open;
    std::map<cudaGraphNode_t, std::vector<size_t>> after;
    const auto later = [](size_t a, size_t b) { return order_backwards() ? a < b : a > b; };
    std::priority_queue<size_t, std::vector<size_t>, decltype(later)> ready(later);
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
        GraphStep step = {node.get(), node->operation, {}};
        for (const cudaGraphNode_t before : node->before)
            step.before.push_back(placed[before]);
        bool cycle = false;
        for_graphs_in(step.operation, [&](Subgraph &inside) {
            inside.run = order(*inside.graph);
            cycle |= !inside.run;
        });
        if (cycle)
            return nullptr;
        placed[node.get()] = run->steps.size();
        run->steps.push_back(std::move(step));
        for (const size_t i : after[node.get()])
            if (--open[graph.nodes[i].get()] == 0)
                ready.push(i);
    }
    return run->steps.size() == total ? run : nullptr;
}

GraphStep *find_step(const char *call, cudaGraphExec_t executable, cudaGraphNode_t node) {
    if (check_argument(call, "executable", executable))
        return nullptr;
    if (executable->run.use_count() > 1) // a launch that has not run yet uses these operations: change a copy
        executable->run = std::make_shared<GraphRun>(*executable->run);
    for (GraphStep &step : executable->run->steps)
        if (step.origin == node)
            return &step;
    fail(cudaErrorInvalidValue, "%s: %p is not a node of the graph that was instantiated", call,
         (void *)node);
    return nullptr;
}

// Before a launch: gives the conditional nodes of a graph, and of their bodies, their initial values.
static void assign_initial(const GraphRun &run) {
    for (const GraphStep &s : run.steps)
        if (const Conditional *const node = std::get_if<Conditional>(&s.operation.what)) {
            if (node->condition->assign)
                node->condition->value = node->condition->initial;
            for (const Subgraph &body : node->bodies)
                assign_initial(*body.run);
        }
}

static cudaError_t run_steps(const GraphRun &run) {
    cudaError_t first = cudaSuccess;
    for (const GraphStep &s : run.steps) {
        const cudaError_t error = perform(s.operation);
        first = first ? first : error;
    }
    return first;
}

cudaError_t run_graph(const GraphRun &run) {
    assign_initial(run);
    return run_steps(run);
}

cudaError_t run_conditional(const Conditional &node) {
    const std::atomic<unsigned> &value = node.condition->value;
    cudaError_t error = cudaSuccess;
    if (node.type == cudaGraphCondTypeWhile)
        while (value && !error)
            error = run_steps(*node.bodies[0].run);
    else if (const unsigned body = node.type == cudaGraphCondTypeIf ? !value : value.load();
             body < node.bodies.size())
        error = run_steps(*node.bodies[body].run);
    return error;
}

} // namespace cuda_cpu

FORWARD(cudaGraphInstantiate, (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags),
        instantiate(__func__, executable, graph, flags))
FORWARD(cudaGraphInstantiateWithFlags,
        (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags),
        instantiate(__func__, executable, graph, flags))

SIMPLE_CALL(cudaGraphUpload, (cudaGraphExec_t executable, cudaStream_t stream),
            BEGIN_LOCKED(stream, executable), cudaSuccess)

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    BEGIN(stream);
    std::shared_ptr<const GraphRun> run;
    {
        LOCK();
        TRY(check_argument(call, "executable", executable));
        run = executable->run;
    }
    if (at_once())
        return run_graph(*run);
    if (captures(stream)) // not permitted on a GPU either; programs use a child graph node
        return refuse_in_capture(call, stream);
    return submit(stream, {call, Subgraph{nullptr, run}});
}

void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
    LOCK();
    if (handle == 0 || handle > graphs().conditions.size())
        kernel_error("cudaGraphSetConditional: %llu is not a handle for a conditional node", handle);
    graphs().conditions[handle - 1].value = value;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    BEGIN();
    TRY(refuse_unsafe(call));
    LOCK();
    TRY(check_argument(call, "executable", executable));
    graphs().executables.extract(executable);
    return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info) {
    BEGIN_LOCKED(info);
    *info = {cudaGraphExecUpdateError, nullptr, nullptr};
    TRY(check_argument(call, "executable", executable));
    TRY(check_argument(call, "graph", graph));
    const auto run = order(*graph);
    const auto refuse = [&](cudaGraphExecUpdateResult result, cudaGraphNode_t node, const char *why) {
        *info = {result, node, nullptr};
        return fail(cudaErrorGraphExecUpdateFailure, "%s: %s", call, why);
    };
    if (!run || run->steps.size() != executable->run->steps.size())
        return refuse(cudaGraphExecUpdateErrorTopologyChanged, nullptr,
                      "the graph has another number of nodes than the one that was instantiated");
    for (size_t i = 0; i < run->steps.size(); ++i) {
        GraphStep &fresh = run->steps[i];
        const GraphStep &old = executable->run->steps[i];
        if (fresh.before != old.before)
            return refuse(cudaGraphExecUpdateErrorTopologyChanged, fresh.origin,
                          "a node has other dependencies than in the graph that was instantiated");
        if (type_of(fresh.operation) != type_of(old.operation))
            return refuse(cudaGraphExecUpdateErrorNodeTypeChanged, fresh.origin,
                          "a node has another type than in the graph that was instantiated");
        fresh.origin = old.origin;
    }
    executable->run = run;
    *info = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
    return cudaSuccess;
}
