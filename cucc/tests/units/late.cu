// SPDX-License-Identifier: MIT
// cucc only: CUDA_CPU_STREAMS=late. The work of streams waits until the program waits for it. So a wait that
// is missing shows, each time, and a program that waits where it must gets the same results as always.
#include "device.h"

// Before the runtime reads it
__attribute__((constructor(101))) static void put_off() {
    setenv("CUDA_CPU_STREAMS", "late", 1);
}

__global__ void set(int *x, int value) {
    *x = value;
}

__global__ void add(int *x, const int *y) {
    *x += *y;
}

struct Scene {
    int *device, *other, *pinned, *managed = ::managed<int>();
    cudaStream_t a = new_stream(), b = new_stream();
    cudaStream_t alone = new_stream(cudaStreamNonBlocking); // does not wait for the default stream
    cudaEvent_t event = new_event();

    Scene() {
        OK(cudaMalloc(&device, sizeof(int)));
        OK(cudaMalloc(&other, sizeof(int)));
        OK(cudaMallocHost(&pinned, sizeof(int)));
        OK(cudaMemset(device, 0, sizeof(int)));
        OK(cudaMemset(other, 0, sizeof(int)));
        OK(cudaDeviceSynchronize());
        *pinned = 0;
    }
    // What b adds to the 10 of a, if `other` is 1
    int sum(bool wait) {
        const int one = 1;
        OK(cudaMemcpy(other, &one, sizeof(int), cudaMemcpyHostToDevice));
        set<<<1, 1, 0, a>>>(device, 10);
        if (wait) {
            OK(cudaEventRecord(event, a));
            OK(cudaStreamWaitEvent(b, event, 0));
        }
        add<<<1, 1, 0, b>>>(device, other);
        OK(cudaMemcpyAsync(pinned, device, sizeof(int), cudaMemcpyDeviceToHost, b));
        OK(cudaStreamSynchronize(b));
        const int seen = *pinned;
        OK(cudaDeviceSynchronize());
        return seen;
    }
};

TEST(the_end_of_the_program_is_no_wait) { // first, because it forks
    const unit_result result =
        in_child([] { set<<<1, 1>>>(STORED(int *, cudaMalloc(&it, sizeof(int))), 1); });
    ends_with(result, {"without waiting", "set, launched at"}, 0);
}

TEST(a_host_read_before_the_wait_shows) {
    Scene s;
    set<<<1, 1, 0, s.a>>>(s.device, 7);
    OK(cudaMemcpyAsync(s.pinned, s.device, sizeof(int), cudaMemcpyDeviceToHost, s.a));
    EXPECT(*s.pinned == 0);
    OK(cudaStreamSynchronize(s.b)); // the wrong stream
    EXPECT(*s.pinned == 0);
    OK(cudaStreamSynchronize(s.a));
    EXPECT(*s.pinned == 7);
    set<<<1, 1>>>(s.managed, 8);
    EXPECT(*s.managed == 0);
    OK(cudaDeviceSynchronize());
    EXPECT(*s.managed == 8);
}

TEST(a_blocking_copy_waits_for_what_cuda_makes_it_wait_for) {
    Scene s;
    set<<<1, 1, 0, s.a>>>(s.device, 7);
    set<<<1, 1, 0, s.alone>>>(s.other, 8);
    OK(cudaStreamDestroy(s.a));                                // its work still comes before the copy
    EXPECT(value_at(s.device) == 7 && value_at(s.other) == 0); // not for the non-blocking stream
    OK(cudaStreamSynchronize(s.alone));
    EXPECT(value_at(s.other) == 8);
}

TEST(data_used_across_streams_without_an_event_shows) {
    Scene s;
    EXPECT(s.sum(false) == 1);
    EXPECT(s.sum(true) == 11);
    set<<<1, 1, 0, s.a>>>(s.device, 1); // streams run in the reverse of their order, so that
    set<<<1, 1, 0, s.b>>>(s.device, 2); // one that should run first shows
    EXPECT(value_at(s.device) == 1);
}

TEST(copies_from_pageable_memory_take_the_source_at_the_call) {
    Scene s;
    int pageable = 5;
    OK(cudaMemcpyAsync(s.device, &pageable, sizeof(int), cudaMemcpyHostToDevice, s.a));
    pageable = 6;
    OK(cudaStreamSynchronize(s.a));
    OK(cudaMemcpyAsync(&pageable, s.device, sizeof(int), cudaMemcpyDeviceToHost, s.a));
    EXPECT(pageable == 5); // to pageable memory, the call waits
    *s.pinned = 5;
    OK(cudaMemcpyAsync(s.device, s.pinned, sizeof(int), cudaMemcpyHostToDevice, s.a));
    *s.pinned = 6; // too early: pinned memory is read when the copy runs
    OK(cudaMemcpyAsync(&pageable, s.device, sizeof(int), cudaMemcpyDeviceToHost, s.a));
    EXPECT(pageable == 6);
}

TEST(a_query_is_not_ready_once) {
    Scene s;
    const cudaEvent_t end = new_event();
    float ms;
    OK(cudaEventRecord(s.event, s.a));
    set<<<1, 1, 0, s.a>>>(s.managed, 3);
    OK(cudaEventRecord(end, s.a));
    EXPECT(cudaEventElapsedTime(&ms, s.event, end) == cudaErrorNotReady);
    EXPECT(cudaEventQuery(end) == cudaErrorNotReady && *s.managed == 0);
    while (cudaEventQuery(end) == cudaErrorNotReady)
        ;
    EXPECT(*s.managed == 3);
    EXPECT(STORED(float, cudaEventElapsedTime(&it, s.event, end)) >= 0);
    set<<<1, 1, 0, s.a>>>(s.managed, 4);
    EXPECT(cudaStreamQuery(s.a) == cudaErrorNotReady && *s.managed == 3);
    while (cudaStreamQuery(s.a) == cudaErrorNotReady)
        ;
    EXPECT(*s.managed == 4);
    set<<<1, 1, 0, s.a>>>(s.managed, 5);
    OK(cudaEventRecord(end, s.a));
    OK(cudaEventSynchronize(end));
    EXPECT(*s.managed == 5);
    (void)cudaGetLastError();
}

TEST(an_event_stands_between_the_work_before_and_after_it) {
    Scene s;
    OK(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeGlobal));
    OK(cudaEventRecord(s.event, s.a)); // no longer what the event stands for when it is recorded again
    OK(cudaGraphDestroy(STORED(cudaGraph_t, cudaStreamEndCapture(s.a, &it))));
    for (int value : {10, 20}) {
        if (value == 20)
            OK(cudaEventRecord(s.event, s.a));
        set<<<1, 1, 0, s.a>>>(s.managed, value);
        set<<<1, 1, 0, s.a>>>(s.device, value);
    }
    OK(cudaStreamWaitEvent(s.b, s.event, 0));
    OK(cudaMemcpyAsync(s.pinned, s.device, sizeof(int), cudaMemcpyDeviceToHost, s.b));
    OK(cudaEventSynchronize(s.event));
    EXPECT(*s.managed == 10);
    OK(cudaStreamSynchronize(s.b));
    EXPECT(*s.pinned == 10);
    OK(cudaDeviceSynchronize());
    EXPECT(*s.managed == 20);
}

static void note(void *where) {
    *(int *)where += 1;
}

TEST(host_functions_and_frees_are_put_off) {
    Scene s;
    int calls = 0, *p, got = 0;
    OK(cudaLaunchHostFunc(s.a, note, &calls));
    EXPECT(calls == 0);
    OK(cudaStreamSynchronize(s.a));
    EXPECT(calls == 1);
    OK(cudaMallocAsync(&p, sizeof(int), s.a));
    set<<<1, 1, 0, s.a>>>(p, 9);
    OK(cudaMemcpyAsync(s.pinned, p, sizeof(int), cudaMemcpyDeviceToHost, s.a));
    OK(cudaFreeAsync(p, s.a));
    OK(cudaStreamDestroy(s.a)); // its work is done all the same
    OK(cudaDeviceSynchronize());
    EXPECT(*s.pinned == 9);
    EXPECT(last(cudaMemcpy(&got, p, sizeof(int), cudaMemcpyDeviceToHost)) == cudaErrorInvalidValue);

    OK(cudaMalloc(&p, sizeof(int)));
    set<<<1, 1, 0, s.b>>>(p, 4);
    OK(cudaMemcpyAsync(s.pinned, p, sizeof(int), cudaMemcpyDeviceToHost, s.b));
    OK(cudaFree(p)); // waits for the work that uses it
    EXPECT(*s.pinned == 4);
}

__constant__ int constant;

__global__ void read_constant(int *x) {
    *x = constant;
}

TEST(copies_to_symbols_are_in_order) {
    Scene s;
    for (int i = 1; i <= 3; i++) {
        OK(cudaMemcpyToSymbolAsync(constant, &i, sizeof i, 0, cudaMemcpyHostToDevice, s.a));
        read_constant<<<1, 1, 0, s.a>>>(s.managed);
        OK(cudaMemcpyToSymbol(constant, &(const int &)0, sizeof(int)));
    }
    OK(cudaDeviceSynchronize());
    EXPECT(*s.managed == 3);
}

TEST(many_operations_and_devices) {
    Scene s;
    int one = 1;
    OK(cudaMemcpy(s.other, &one, sizeof(int), cudaMemcpyHostToDevice));
    for (int i = 0; i < 20000; i++)
        add<<<1, 1, 0, i % 2 ? s.a : 0>>>(s.device, s.other); // the default stream orders them
    EXPECT(value_at(s.device) == 20000);
    OK(cudaSetDevice(1));
    int *const far = STORED(int *, cudaMalloc(&it, sizeof(int)));
    set<<<1, 1>>>(far, 5);
    OK(cudaMemcpyPeer(s.device, 0, far, 1, sizeof(int)));
    OK(cudaFree(far));
    OK(cudaSetDevice(0));
    EXPECT(value_at(s.device) == 5);
}

TEST(a_graph_runs_in_its_stream_and_a_missing_dependency_shows) {
    Scene s;
    const auto graph = STORED(cudaGraph_t, cudaGraphCreate(&it, 0));
    cudaGraphNode_t first, second;
    const cudaHostNodeParams one = {[](void *x) { *(int *)x = 1; }, s.managed};
    const cudaHostNodeParams two = {[](void *x) { *(int *)x = 2; }, s.managed};
    OK(cudaGraphAddHostNode(&first, graph, NULL, 0, &one));
    OK(cudaGraphAddHostNode(&second, graph, NULL, 0, &two)); // should come after the first
    for (int last : {1, 2}) {
        *s.managed = 0;
        const auto executable = STORED(cudaGraphExec_t, cudaGraphInstantiate(&it, graph, 0));
        OK(cudaGraphLaunch(executable, s.a));
        EXPECT(*s.managed == 0);
        OK(cudaGraphExecDestroy(executable));
        OK(cudaStreamSynchronize(s.a));
        EXPECT(*s.managed == last);
        if (last == 1)
            OK(cudaGraphAddDependencies(graph, &first, &second, NULL, 1));
    }
}
