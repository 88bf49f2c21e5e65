// SPDX-License-Identifier: MIT
// Graphs and stream capture.
#include "device.h"

__global__ void scale_add(int *x, int n, int factor, int summand) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        x[i] = x[i] * factor + summand;
}

constexpr int N = 1000;

struct Buffers { // n ints on the device, and pinned on the host
    int *device, *host;
    cudaStream_t a = new_stream(), b = new_stream();

    Buffers() {
        OK(cudaMalloc(&device, N * sizeof(int)));
        OK(cudaMallocHost(&host, N * sizeof(int)));
        reset();
    }
    bool holds(int factor, int summand) const {
        return std::vector<int>(host, host + N) == made(N, [=](int i) { return i * factor + summand; });
    }
    void reset() {
        for (int i = 0; i < N; i++)
            host[i] = i;
    }
};

// host -> device, times 3, plus 5, device -> host
static void pass(const Buffers &m) {
    OK(cudaMemcpyAsync(m.device, m.host, N * sizeof(int), cudaMemcpyHostToDevice, m.a));
    scale_add<<<8, 128, 0, m.a>>>(m.device, N, 3, 0);
    scale_add<<<8, 128, 0, m.a>>>(m.device, N, 1, 5);
    OK(cudaMemcpyAsync(m.host, m.device, N * sizeof(int), cudaMemcpyDeviceToHost, m.a));
}

static void run_again(cudaGraphExec_t executable, cudaStream_t stream) {
    OK(cudaGraphLaunch(executable, stream));
    OK(cudaStreamSynchronize(stream));
}
static cudaGraphExec_t instance(cudaGraph_t graph) {
    return STORED(cudaGraphExec_t, cudaGraphInstantiate(&it, graph, 0));
}
// Instantiates a graph, runs it and waits for it.
static cudaGraphExec_t run(cudaGraph_t graph, cudaStream_t stream) {
    const cudaGraphExec_t executable = instance(graph);
    run_again(executable, stream);
    return executable;
}

// The graph of what `work` does in m.a
template <class Work>
static cudaGraph_t captured(const Buffers &m, Work work,
                            cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    OK(cudaStreamBeginCapture(m.a, mode));
    work();
    return STORED(cudaGraph_t, cudaStreamEndCapture(m.a, &it));
}

static bool captures(cudaStream_t stream) {
    const auto status = STORED(cudaStreamCaptureStatus, cudaStreamIsCapturing(stream, &it));
    EXPECT(status == cudaStreamCaptureStatusActive || status == cudaStreamCaptureStatusNone);
    return status == cudaStreamCaptureStatusActive;
}

static cudaGraph_t new_graph() {
    return STORED(cudaGraph_t, cudaGraphCreate(&it, 0));
}

static size_t node_count(cudaGraph_t graph) {
    return STORED(size_t, cudaGraphGetNodes(graph, NULL, &it));
}

static cudaGraphNodeType type_of(cudaGraphNode_t node) {
    return STORED(cudaGraphNodeType, cudaGraphNodeGetType(node, &it));
}

TEST(a_captured_stream_does_nothing_until_the_graph_is_launched) {
    Buffers m;
    const cudaGraph_t graph = captured(m, [&] {
        cudaStreamCaptureStatus status;
        EXPECT(captures(m.a));
        EXPECT(cudaStreamIsCapturing(cudaStreamLegacy, &status) == cudaErrorStreamCaptureImplicit);
        pass(m);
    });
    OK(cudaDeviceSynchronize());
    EXPECT(!captures(m.a) && m.holds(1, 0) && node_count(graph) == 4);
    size_t count = 4;
    cudaGraphNode_t nodes[4];
    int factors = 0; // of the kernels
    OK(cudaGraphGetNodes(graph, nodes, &count));
    for (cudaGraphNode_t node : nodes) {
        if (type_of(node) != cudaGraphNodeTypeKernel)
            continue;
        const auto params = STORED(cudaKernelNodeParams, cudaGraphKernelNodeGetParams(node, &it));
        EXPECT(params.gridDim.x == 8 && params.blockDim.x == 128 && params.sharedMemBytes == 0);
        EXPECT(*(int **)params.kernelParams[0] == m.device && *(int *)params.kernelParams[1] == N);
        factors += *(int *)params.kernelParams[2];
    }
    EXPECT(factors == 3 + 1);
    const cudaGraphExec_t executable = run(graph, m.a);
    EXPECT(m.holds(3, 5));
    OK(cudaGraphDestroy(graph));
    for (int i = 0; i < 2; i++)
        run_again(executable, m.b);
    EXPECT(m.holds(27, 65)); // ((3 i + 5) * 3 + 5) * 3 + 5
}

TEST(events_fork_and_join_a_capture) {
    Buffers m;
    cudaGraphExec_t executable;
    const cudaEvent_t fork = new_event(cudaEventDisableTiming), join = new_event(cudaEventDisableTiming);
    const cudaGraph_t graph = captured(m, [&] {
        OK(cudaMemcpyAsync(m.device, m.host, N * sizeof(int), cudaMemcpyHostToDevice, m.a));
        OK(cudaEventRecord(fork, m.a));
        OK(cudaStreamWaitEvent(m.b, fork, 0));
        EXPECT(captures(m.b));
        scale_add<<<4, 128, 0, m.a>>>(m.device, N / 2, 2, 0);
        scale_add<<<4, 128, 0, m.b>>>(m.device + N / 2, N - N / 2, 2, 0);
        OK(cudaEventRecord(join, m.b));
        OK(cudaStreamWaitEvent(m.a, join, 0));
        OK(cudaMemcpyAsync(m.host, m.device, N * sizeof(int), cudaMemcpyDeviceToHost, m.a));
    });
    EXPECT(!captures(m.b));
    EXPECT(node_count(graph) == 4);
    EXPECT(STORED(size_t, cudaGraphGetRootNodes(graph, NULL, &it)) == 1);
    OK(cudaGraphInstantiate(&executable, graph, NULL, NULL, 0)); // as in CUDA 11
    run_again(executable, m.a);
    EXPECT(m.holds(2, 0));
}

// Ends the capture of a stream; expects this error, and the graph to be NULL.
static bool ends_with(cudaError_t error, cudaStream_t stream) {
    cudaGraph_t graph = (cudaGraph_t)1;
    const cudaError_t got = cudaStreamEndCapture(stream, &graph);
    if (got != error)
        fprintf(stderr, "%s, expected %s\n", cudaGetErrorName(got), cudaGetErrorName(error));
    (void)cudaGetLastError();
    return got == error && !graph;
}

TEST(what_a_capture_does_not_permit_makes_it_invalid) {
    Buffers m;
    void *p = NULL;
    const cudaEvent_t before = new_event(), inside = new_event();
    cudaGraph_t graph = new_graph();
    const cudaGraphExec_t executable = instance(graph);
    OK(cudaEventRecord(before, m.b));
    OK(cudaStreamSynchronize(m.b));
    OK(cudaGraphDestroy(graph));
    EXPECT(cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
    EXPECT(cudaStreamEndCapture(m.a, &graph) == cudaErrorIllegalState);

    // A call during a capture of m.a, its error, and that of the end of the capture, which gives no graph
    const auto during = [&](cudaStreamCaptureMode mode, cudaError_t error, cudaError_t end, auto call) {
        OK(cudaStreamBeginCapture(m.a, mode));
        const cudaError_t got = call();
        if (!EXPECT(got == error) || !EXPECT(ends_with(end, m.a)))
            fprintf(stderr, "  %s, expected %s\n", cudaGetErrorName(got), cudaGetErrorName(error));
    };
    const cudaStreamCaptureMode global = cudaStreamCaptureModeGlobal, relaxed = cudaStreamCaptureModeRelaxed;
    const cudaError_t unsupported = cudaErrorStreamCaptureUnsupported,
                      invalid = cudaErrorStreamCaptureInvalidated;
    during(global, unsupported, invalid, [&] { return cudaDeviceSynchronize(); });
    during(global, unsupported, invalid, [&] { return cudaGraphExecDestroy(executable); });
    during(cudaStreamCaptureModeThreadLocal, unsupported, invalid, [&] { return cudaMalloc(&p, 4); });
    during(relaxed, unsupported, invalid, [&] { return cudaGraphLaunch(executable, m.a); });
    during(relaxed, cudaErrorStreamCaptureIsolation, invalid,
           [&] { return cudaStreamWaitEvent(m.a, before, 0); });
    during(relaxed, cudaErrorStreamCaptureImplicit, invalid,
           [&] { return cudaMemcpy(m.host, m.device, 4, cudaMemcpyDeviceToHost); });
    during(relaxed, cudaErrorStreamCaptureImplicit, invalid, [&] { // in the default stream
        scale_add<<<1, 1>>>(m.device, 1, 1, 1);
        return cudaGetLastError();
    });
    during(relaxed, invalid, invalid, [&] {
        EXPECT(cudaStreamSynchronize(m.a) == unsupported);
        return cudaMemsetAsync(m.device, 0, 4, m.a);
    });
    during(relaxed, cudaErrorCapturedEvent, invalid, [&] {
        OK(cudaEventRecord(inside, m.a));
        return cudaEventSynchronize(inside);
    });
    OK(cudaEventRecord(inside, m.a)); // after the capture
    OK(cudaEventSynchronize(inside));
    during(relaxed, cudaErrorStreamCaptureMerge, invalid, [&] {
        OK(cudaStreamBeginCapture(m.b, relaxed));
        OK(cudaEventRecord(inside, m.a));
        const cudaError_t error = cudaStreamWaitEvent(m.b, inside, 0);
        EXPECT(ends_with(invalid, m.b));
        return error;
    });
    during(global, cudaSuccess, cudaErrorIllegalState, [&] { // after the end
        std::thread([&] { EXPECT(ends_with(cudaErrorStreamCaptureWrongThread, m.a)); }).join();
        return cudaSuccess;
    });
    const auto takes_part = [&](cudaStream_t stream) {
        OK(cudaEventRecord(inside, m.a));
        OK(cudaStreamWaitEvent(stream, inside, 0));
        OK(cudaMemsetAsync(m.device, 0, 4, stream));
        return cudaEventRecord(inside, stream);
    };
    during(relaxed, cudaSuccess, cudaErrorStreamCaptureUnjoined, [&] { return takes_part(m.b); });
    during(relaxed, cudaSuccess, invalid, [&] { // ended by the stream that joined
        const cudaError_t error = takes_part(m.b);
        EXPECT(ends_with(cudaErrorStreamCaptureUnmatched, m.b));
        return error;
    });

    // Another stream takes part and is destroyed before the end.
    cudaStream_t other = new_stream();
    during(relaxed, cudaSuccess, cudaErrorStreamCaptureUnjoined, [&] {
        OK(takes_part(other));
        return cudaStreamDestroy(other);
    });
    other = new_stream();
    const auto joined = [&] {
        OK(takes_part(other));
        OK(cudaStreamWaitEvent(m.a, inside, 0));
        OK(cudaStreamDestroy(other));
    };
    EXPECT(node_count(captured(m, joined, relaxed)) == 1);

    const auto allocates = [&] { OK(cudaMalloc(&p, 4)); };
    EXPECT(node_count(captured(m, allocates, relaxed)) == 0); // permitted
}

static void count_up(void *counter) {
    ++*(int *)counter;
}

TEST(a_graph_is_built_from_nodes) {
    Buffers m;
    const cudaGraph_t graph = new_graph();
    cudaGraphNode_t copy, out;
    int calls = 0;
    const cudaMemsetParams words = {m.device, 0, 0x01020304, 4, N, 1};
    const auto fill = STORED(cudaGraphNode_t, cudaGraphAddMemsetNode(&it, graph, NULL, 0, &words));
    cudaMemcpy3DParms half = {};
    half.srcPtr = make_cudaPitchedPtr(m.host, N / 2 * sizeof(int), N / 2 * sizeof(int), 1);
    half.dstPtr = make_cudaPitchedPtr(m.device, N / 2 * sizeof(int), N / 2 * sizeof(int), 1);
    half.extent = make_cudaExtent(N / 2 * sizeof(int), 1, 1);
    half.kind = cudaMemcpyHostToDevice;
    OK(cudaGraphAddMemcpyNode(&copy, graph, &fill, 1, &half));
    cudaHostNodeParams function = {count_up, &calls};
    const auto host = STORED(cudaGraphNode_t, cudaGraphAddHostNode(&it, graph, NULL, 0, &function));
    const auto empty = STORED(cudaGraphNode_t, cudaGraphAddEmptyNode(&it, graph, NULL, 0));
    const cudaGraphNode_t from[] = {copy, host}, to[] = {empty, empty};
    OK(cudaGraphAddDependencies(graph, from, to, NULL, 2));
    OK(cudaGraphAddMemcpyNode1D(&out, graph, &empty, 1, m.host, m.device, N * sizeof(int),
                                cudaMemcpyDeviceToHost));
    EXPECT(type_of(host) == cudaGraphNodeTypeHost);
    run(graph, m.a);
    EXPECT(calls == 1);
    for (int i = 0; i < N; i++)
        EXPECT(m.host[i] == (i < N / 2 ? i : 0x01020304));

    EXPECT(node_count(STORED(cudaGraph_t, cudaGraphClone(&it, graph))) == 5);
}

TEST(one_call_adds_nodes_of_each_kind) {
    Buffers m;
    const cudaGraph_t graph = new_graph();
    cudaGraphNode_t last = NULL;
    int calls = 0, factor = 2, summand = 5, n = N;
    cudaGraphNodeParams params = {};
    const auto add = [&](cudaGraphNodeType type, auto fill_in) {
        params = {};
        params.type = type;
        fill_in();
        const cudaGraphNode_t after = last;
        last = STORED(cudaGraphNode_t, cudaGraphAddNode(&it, graph, &after, NULL, after != NULL, &params));
        EXPECT(type_of(last) == type);
    };
    add(cudaGraphNodeTypeMemset, [&] { params.memset = {m.device, 0, 1, 4, N, 1}; });
    void *arguments[] = {&m.device, &n, &factor, &summand};
    add(cudaGraphNodeTypeKernel, [&] {
        params.kernel.func = (void *)scale_add;
        params.kernel.gridDim = 8;
        params.kernel.blockDim = 128;
        params.kernel.kernelParams = arguments;
    });
    const cudaGraph_t child = captured(m, [&] { scale_add<<<8, 128, 0, m.a>>>(m.device, N, 3, 0); });
    add(cudaGraphNodeTypeGraph, [&] { params.graph.graph = child; });
    add(cudaGraphNodeTypeEmpty, [] {});
    add(cudaGraphNodeTypeMemAlloc, [&] {
        params.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
        params.alloc.poolProps.location.type = cudaMemLocationTypeDevice;
        params.alloc.bytesize = N * sizeof(int);
    });
    void *const memory = params.alloc.dptr;
    add(cudaGraphNodeTypeMemcpy, [&] {
        cudaMemcpy3DParms &copy = params.memcpy.copyParams;
        copy.srcPtr = make_cudaPitchedPtr(m.device, N * sizeof(int), N * sizeof(int), 1);
        copy.dstPtr = make_cudaPitchedPtr(memory, N * sizeof(int), N * sizeof(int), 1);
        copy.extent = make_cudaExtent(N * sizeof(int), 1, 1);
        copy.kind = cudaMemcpyDeviceToDevice;
    });
    OK(cudaGraphAddMemcpyNode1D(&last, graph, &last, 1, m.host, memory, N * sizeof(int),
                                cudaMemcpyDeviceToHost));
    add(cudaGraphNodeTypeMemFree, [&] { params.free.dptr = memory; });
    add(cudaGraphNodeTypeHost, [&] {
        params.host.fn = count_up;
        params.host.userData = &calls;
    });
    run(graph, m.a);
    EXPECT(calls == 1 && m.holds(0, 21)); // (1 * 2 + 5) * 3
}

TEST(the_dependencies_of_a_capture_are_changed) {
    Buffers m;
    const auto kernel = [&] { scale_add<<<8, 128, 0, m.a>>>(m.device, N, 1, 0); };
    cudaStreamCaptureStatus status;
    const cudaGraphNode_t *last;
    const auto count = [&] {
        return STORED(size_t, cudaStreamGetCaptureInfo(m.a, &status, NULL, NULL, &last, NULL, &it));
    };
    const cudaGraph_t graph = captured(m, [&] {
        kernel();
        EXPECT(count() == 1);
        cudaGraphNode_t first = last[0];
        OK(cudaStreamUpdateCaptureDependencies(m.a, NULL, NULL, 0, cudaStreamSetCaptureDependencies));
        EXPECT(count() == 0);
        kernel();
        OK(cudaStreamUpdateCaptureDependencies(m.a, &first, NULL, 1, cudaStreamAddCaptureDependencies));
        EXPECT(count() == 2);
        kernel();
        EXPECT(count() == 1);
    });
    EXPECT(node_count(graph) == 3 && STORED(size_t, cudaGraphGetRootNodes(graph, NULL, &it)) == 2);
    EXPECT(::last(cudaStreamUpdateCaptureDependencies(m.a, NULL, NULL, 0, 0)) == cudaErrorIllegalState);
}

TEST(a_cycle_is_refused) {
    const cudaGraph_t graph = new_graph();
    cudaGraphExec_t executable;
    const auto a = STORED(cudaGraphNode_t, cudaGraphAddEmptyNode(&it, graph, NULL, 0));
    const auto b = STORED(cudaGraphNode_t, cudaGraphAddEmptyNode(&it, graph, &a, 1));
    const cudaError_t added = cudaGraphAddDependencies(graph, &b, &a, NULL, 1);
    EXPECT(added != cudaSuccess || cudaGraphInstantiate(&executable, graph, 0) == cudaErrorInvalidValue);
}

TEST(a_child_graph_runs_in_its_place) {
    Buffers m;
    const cudaGraph_t child = captured(m, [&] { pass(m); });
    const cudaGraph_t graph = new_graph();
    const auto first = STORED(cudaGraphNode_t, cudaGraphAddChildGraphNode(&it, graph, NULL, 0, child));
    STORED(cudaGraphNode_t, cudaGraphAddChildGraphNode(&it, graph, &first, 1, child));
    OK(cudaGraphDestroy(child));
    run(graph, m.a);
    EXPECT(m.holds(9, 20));
}

__global__ void set_value(cudaGraphConditionalHandle handle, unsigned value) {
    cudaGraphSetConditional(handle, value);
}
__global__ void add_to(int *x, int value) {
    x[0] += value;
}
// The body of a loop that ends when x[1], which counts down, is 0
__global__ void one_round(int *x, cudaGraphConditionalHandle handle) {
    x[0]++;
    cudaGraphSetConditional(handle, --x[1]);
}

template <class... A>
static cudaGraphNode_t kernel_node(cudaGraph_t graph, cudaGraphNode_t after, void (*kernel)(A...), A... a) {
    void *arguments[] = {&a...};
    const cudaKernelNodeParams params = {(void *)kernel, 1, 1, 0, arguments, NULL};
    return STORED(cudaGraphNode_t, cudaGraphAddKernelNode(&it, graph, &after, after != NULL, &params));
}

struct ConditionalNode {
    cudaGraphNode_t node = NULL;
    cudaGraphNodeParams params = {};
    cudaError_t error;

    ConditionalNode(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle handle,
                    cudaGraphConditionalNodeType type, unsigned bodies) {
        params.type = cudaGraphNodeTypeConditional;
        params.conditional.handle = handle;
        params.conditional.type = type;
        params.conditional.size = bodies;
        error = cudaGraphAddNode(&node, graph, &after, NULL, after != NULL, &params);
    }
    cudaGraph_t body(unsigned i) const { return params.conditional.phGraph_out[i]; }
};

// The sum of a graph in which a kernel sets the value of a conditional node and body i adds 10 to the power
// of i
static int chosen(cudaGraphConditionalNodeType type, unsigned bodies, unsigned value) {
    const cudaGraph_t graph = new_graph();
    cudaGraphConditionalHandle handle;
    OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    const ConditionalNode node(graph, kernel_node(graph, NULL, set_value, handle, value), handle, type,
                               bodies);
    OK(node.error);
    int *const x = managed<int>(), powers[] = {1, 10, 100};
    for (unsigned i = 0; i < bodies; i++)
        kernel_node(node.body(i), NULL, add_to, x, powers[i]);
    run(graph, NULL);
    OK(cudaGraphDestroy(graph));
    return *x;
}

TEST(conditional_nodes_choose_a_body) {
    EXPECT(chosen(cudaGraphCondTypeIf, 1, 0) == 0 && chosen(cudaGraphCondTypeIf, 1, 7) == 1);
    EXPECT(chosen(cudaGraphCondTypeIf, 2, 0) == 10 && chosen(cudaGraphCondTypeIf, 2, 7) == 1);
    EXPECT(chosen(cudaGraphCondTypeSwitch, 3, 0) == 1 && chosen(cudaGraphCondTypeSwitch, 3, 2) == 100);
    EXPECT(chosen(cudaGraphCondTypeSwitch, 3, 3) == 0);
}

// The inner value is 1 from the second round on. Each launch begins with the default values.
TEST(conditional_nodes_repeat_a_body) {
    int *const x = managed<int>(2);
    cudaGraph_t graph = new_graph(), copy;
    cudaGraphConditionalHandle outer, inner;
    OK(cudaGraphConditionalHandleCreate(&outer, graph, 1, cudaGraphCondAssignDefault));
    const ConditionalNode loop(graph, NULL, outer, cudaGraphCondTypeWhile, 1);
    OK(cudaGraphConditionalHandleCreate(&inner, loop.body(0), 0, cudaGraphCondAssignDefault));
    const ConditionalNode nested(loop.body(0), NULL, inner, cudaGraphCondTypeIf, 1);
    kernel_node(nested.body(0), NULL, add_to, x, 100);
    const cudaGraphNode_t set = kernel_node(loop.body(0), nested.node, set_value, inner, 1u);
    const cudaStream_t stream = new_stream();
    OK(cudaStreamBeginCaptureToGraph(stream, loop.body(0), &set, NULL, 1, cudaStreamCaptureModeGlobal));
    one_round<<<1, 1, 0, stream>>>(x, outer);
    OK(cudaStreamEndCapture(stream, NULL)); // NULL is permitted, because the program has the graph already
    const cudaGraphExec_t executable = instance(graph);
    cudaGraphExec_t second;
    for (int launch = 0; launch < 2; launch++) {
        x[0] = 0;
        x[1] = 5;
        run_again(executable, NULL);
        EXPECT(x[0] == 405 && x[1] == 0);
    }
    EXPECT(cudaGraphInstantiate(&second, graph, 0) == cudaErrorNotSupported);
    EXPECT(cudaGraphClone(&copy, graph) == cudaErrorNotSupported);
    OK(cudaGraphExecDestroy(executable));
    instance(graph);
}

TEST(wrong_conditional_nodes_are_refused) {
    const cudaGraph_t graph = new_graph();
    cudaGraphConditionalHandle handle;
    EXPECT(cudaGraphConditionalHandleCreate(&handle, graph, 1, 2) == cudaErrorInvalidValue);
    OK(cudaGraphConditionalHandleCreate(&handle, graph, 1, 0));
    const auto add = [&](cudaGraphConditionalHandle of, cudaGraphConditionalNodeType type, unsigned bodies) {
        return ConditionalNode(graph, NULL, of, type, bodies).error;
    };
    EXPECT(add(12345678, cudaGraphCondTypeIf, 1) == cudaErrorInvalidValue);
    EXPECT(add(handle, cudaGraphCondTypeIf, 0) == cudaErrorInvalidValue);
    EXPECT(add(handle, cudaGraphCondTypeIf, 3) == cudaErrorInvalidValue);
    EXPECT(add(handle, cudaGraphCondTypeWhile, 2) == cudaErrorInvalidValue);
    const ConditionalNode node(graph, NULL, handle, cudaGraphCondTypeIf, 1);
    EXPECT(add(handle, cudaGraphCondTypeIf, 1) == cudaErrorInvalidValue);
    const cudaHostNodeParams host = {count_up, NULL};
    cudaGraphExec_t executable;
    STORED(cudaGraphNode_t, cudaGraphAddHostNode(&it, node.body(0), NULL, 0, &host));
    EXPECT(cudaGraphInstantiate(&executable, graph, 0) == cudaErrorInvalidValue);
}

TEST(kernel_nodes_have_parameters_and_attributes) {
    Buffers m;
    const cudaGraph_t graph = new_graph();
    cudaGraphNode_t up, kernel, down;
    int n = N, factor = 6, summand = 2;
    void *arguments[] = {&m.device, &n, &factor, &summand};
    cudaKernelNodeParams params = {(void *)scale_add, 8, 128, 0, arguments, NULL};
    OK(cudaGraphAddMemcpyNode1D(&up, graph, NULL, 0, m.device, m.host, N * sizeof(int),
                                cudaMemcpyHostToDevice));
    OK(cudaGraphAddKernelNode(&kernel, graph, &up, 1, &params));
    OK(cudaGraphAddMemcpyNode1D(&down, graph, &kernel, 1, m.host, m.device, N * sizeof(int),
                                cudaMemcpyDeviceToHost));
    factor = summand = 99; // the values were copied
    const cudaGraphExec_t executable = run(graph, m.a);
    EXPECT(m.holds(6, 2));
    const auto same = STORED(cudaKernelNodeParams, cudaGraphKernelNodeGetParams(kernel, &it));
    EXPECT(same.func == (void *)scale_add && *(int *)same.kernelParams[2] == 6);

    m.reset();
    factor = 7, summand = 1;
    OK(cudaGraphExecKernelNodeSetParams(executable, kernel, &params));
    factor = 1000; // the values were copied
    run_again(executable, m.a);
    EXPECT(m.holds(7, 1));
    m.reset(); // the graph itself still multiplies by 6; now by 4
    factor = 4, summand = 5;
    OK(cudaGraphKernelNodeSetParams(kernel, &params));
    cudaGraphExecUpdateResultInfo info;
    OK(cudaGraphExecUpdate(executable, graph, &info));
    EXPECT(info.result == cudaGraphExecUpdateSuccess);
    run_again(executable, m.a);
    EXPECT(m.holds(4, 5));
    EXPECT(cudaGraphExecUpdate(executable, new_graph(), &info) == cudaErrorGraphExecUpdateFailure);
    EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged);

    cudaKernelNodeAttrValue value = {};
    value.cooperative = 1;
    OK(cudaGraphKernelNodeSetAttribute(kernel, cudaKernelNodeAttributeCooperative, &value));
    EXPECT(cudaGraphKernelNodeSetAttribute(up, cudaKernelNodeAttributeCooperative, &value) ==
           cudaErrorInvalidValue);
    params.blockDim = dim3(2000, 1, 1);
    EXPECT(cudaGraphAddKernelNode(&kernel, graph, &up, 1, &params) != cudaSuccess);
    params.blockDim = dim3(128, 1, 1);
    params.kernelParams = NULL;
    EXPECT(cudaGraphAddKernelNode(&kernel, graph, &up, 1, &params) == cudaErrorInvalidValue);
}

TEST(memory_is_allocated_and_freed_in_a_capture) {
    Buffers m;
    const cudaGraph_t graph = captured(m, [&] {
        int *inside = NULL;
        OK(cudaMallocAsync(&inside, N * sizeof(int), m.a));
        OK(cudaMemcpyAsync(inside, m.host, N * sizeof(int), cudaMemcpyHostToDevice, m.a));
        scale_add<<<8, 128, 0, m.a>>>(inside, N, 2, 1);
        OK(cudaMemcpyAsync(m.host, inside, N * sizeof(int), cudaMemcpyDeviceToHost, m.a));
        OK(cudaFreeAsync(inside, m.a));
    });
    const cudaGraphExec_t executable = run(graph, m.a);
    run_again(executable, m.a);
    EXPECT(m.holds(4, 3));
    OK(cudaGraphExecDestroy(executable)); // the last use of the memory
    OK(cudaGraphDestroy(graph));
}

TEST(user_objects_live_as_long_as_a_graph_refers_to_them) {
    int destroyed = 0;
    cudaUserObject_t object;
    const cudaGraph_t graph = new_graph();
    EXPECT(last(cudaUserObjectCreate(&object, &destroyed, count_up, 1, 0)) == cudaErrorInvalidValue);
    OK(cudaUserObjectCreate(&object, &destroyed, count_up, 1, cudaUserObjectNoDestructorSync));
    OK(cudaUserObjectRetain(object, 2));
    OK(cudaUserObjectRelease(object, 2));
    OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove)); // the only reference
    OK(cudaGraphRetainUserObject(graph, object, 2));
    OK(cudaGraphReleaseUserObject(graph, object, 2));
    const cudaGraph_t twin = STORED(cudaGraph_t, cudaGraphClone(&it, graph));
    const cudaGraphExec_t executable = instance(graph);
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphDestroy(twin));
    OK(cudaGraphLaunch(executable, 0));
    OK(cudaDeviceSynchronize());
    EXPECT(destroyed == 0);
    OK(cudaGraphExecDestroy(executable));
    for (int i = 0; i < 1000 && !destroyed; i++) // a GPU may call it a little later
        usleep(1000);
    EXPECT(destroyed == 1);
}

#ifdef __CU2CPP__ // using a destroyed handle is undefined in CUDA, and an error here
TEST(destroyed_graphs_are_known) {
    const cudaGraph_t graph = new_graph();
    const auto node = STORED(cudaGraphNode_t, cudaGraphAddEmptyNode(&it, graph, NULL, 0));
    const auto executable = STORED(cudaGraphExec_t, cudaGraphInstantiate(&it, graph));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphLaunch(executable, 0));
    OK(cudaGraphExecDestroy(executable));
    cudaGraphNodeType type;
    EXPECT(cudaGraphNodeGetType(node, &type) == cudaErrorInvalidValue);
    EXPECT(cudaGraphDestroy(graph) == cudaErrorInvalidValue);
    EXPECT(cudaGraphLaunch(executable, 0) == cudaErrorInvalidValue);
}
#endif
