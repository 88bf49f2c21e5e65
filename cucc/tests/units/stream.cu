// SPDX-License-Identifier: MIT
// Streams and events.
#include <chrono>
#include <cmath>
#include "device.h"

TEST(streams_are_made_and_destroyed) {
    cudaStream_t a, b, c;
    unsigned flags = 99;
    int device = -1;
    OK(cudaStreamCreate(&a));
    OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithPriority(&c, cudaStreamDefault, 0));
    EXPECT(a != b && b != c && a && b && c);
    OK(cudaStreamGetFlags(a, &flags));
    EXPECT(flags == cudaStreamDefault);
    OK(cudaStreamGetFlags(b, &flags));
    EXPECT(flags == cudaStreamNonBlocking);
    OK(cudaStreamGetDevice(c, &device));
    EXPECT(device == 0);
    unsigned long long id_a, id_b;
    OK(cudaStreamGetId(a, &id_a));
    OK(cudaStreamGetId(b, &id_b));
    EXPECT(id_a != id_b);
    for (cudaStream_t s : {a, b, c}) {
        OK(cudaStreamSynchronize(s));
        OK(cudaStreamQuery(s));
        OK(cudaStreamDestroy(s));
    }
    EXPECT(cudaStreamCreateWithFlags(&a, 0x100) == cudaErrorInvalidValue);
}

TEST(priorities_are_clamped) {
    int least = 99, greatest = 99, priority = 99;
    cudaStream_t s;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(least == 0 && greatest < 0);
    for (int wanted : {5, 0, -1, greatest, greatest - 10}) {
        OK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, wanted));
        OK(cudaStreamGetPriority(s, &priority));
        EXPECT(priority == (wanted > 0 ? 0 : wanted < greatest ? greatest : wanted));
        OK(cudaStreamDestroy(s));
    }
}

TEST(the_default_streams_are_there) {
    const cudaEvent_t e = new_event();
    for (cudaStream_t s : {(cudaStream_t)0, cudaStreamLegacy, cudaStreamPerThread}) {
        OK(cudaStreamSynchronize(s));
        OK(cudaStreamQuery(s));
        OK(cudaEventRecord(e, s));
        OK(cudaStreamWaitEvent(s, e, 0));
    }
    EXPECT(cudaStreamDestroy(0) == cudaErrorInvalidResourceHandle);
}

TEST(events_measure_time) {
    const cudaEvent_t start = new_event(), stop = new_event();
    float ms = -1, none = -1;
    OK(cudaEventRecord(start));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    OK(cudaEventRecord(stop, 0));
    OK(cudaEventSynchronize(stop));
    OK(cudaEventQuery(stop));
    OK(cudaEventElapsedTime(&ms, start, stop));
    EXPECT(ms >= 49 && ms < 5000);
    OK(cudaEventElapsedTime(&none, start, start));
    EXPECT(none == 0);
    OK(cudaEventElapsedTime(&none, stop, start));
    EXPECT(std::fabs(none + ms) <= 0.01f);
    OK(cudaEventRecord(start)); // recorded again: the latest time counts
    OK(cudaEventSynchronize(start));
    OK(cudaEventElapsedTime(&none, stop, start));
    EXPECT(none >= 0 && none < ms);
}

TEST(elapsed_time_needs_two_recorded_timing_events) {
    cudaEvent_t fresh, bad;
    const cudaEvent_t recorded = new_event(cudaEventBlockingSync),
                      untimed = new_event(cudaEventDisableTiming);
    float ms;
    OK(cudaEventCreate(&fresh));
    OK(cudaEventRecord(recorded));
    OK(cudaEventRecord(untimed));
    OK(cudaDeviceSynchronize());
    OK(cudaEventQuery(fresh)); // an event that was never recorded has happened
    OK(cudaEventSynchronize(fresh));
    OK(cudaStreamWaitEvent(0, fresh));
    EXPECT(cudaEventElapsedTime(&ms, recorded, fresh) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventElapsedTime(&ms, fresh, recorded) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventElapsedTime(&ms, recorded, untimed) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventElapsedTime(NULL, recorded, recorded) == cudaErrorInvalidValue);
    EXPECT(cudaEventCreateWithFlags(&bad, 0x100) == cudaErrorInvalidValue);
    EXPECT(cudaEventCreateWithFlags(&bad, cudaEventInterprocess) == cudaErrorInvalidValue);
}

static void note(void *order) {
    std::vector<int> *v = (std::vector<int> *)order;
    v->push_back((int)v->size());
}

static void note_stream(cudaStream_t, cudaError_t status, void *order) {
    if (status == cudaSuccess)
        note(order);
}

TEST(callbacks_run_in_order) {
    std::vector<int> order;
    const cudaStream_t s = new_stream();
    OK(cudaLaunchHostFunc(s, note, &order));
    OK(cudaStreamAddCallback(s, note_stream, &order, 0));
    OK(cudaLaunchHostFunc(s, note, &order));
    OK(cudaStreamSynchronize(s));
    EXPECT((order == std::vector<int>{0, 1, 2}));
    EXPECT(cudaStreamAddCallback(s, note_stream, &order, 1) == cudaErrorInvalidValue);
    EXPECT(cudaLaunchHostFunc(s, NULL, &order) == cudaErrorInvalidValue);
}

TEST(a_callback_must_not_call_the_runtime) {
    cudaError_t result = cudaSuccess;
    const cudaHostFn_t call = [](void *result) {
        void *p = NULL;
        *(cudaError_t *)result = cudaMalloc(&p, 4);
    };
    OK(cudaLaunchHostFunc(0, call, &result));
    OK(cudaDeviceSynchronize());
    EXPECT(result == cudaErrorNotPermitted);
    (void)cudaGetLastError();
    OK(cudaFree(NULL));
}

#ifdef __CU2CPP__ // using a destroyed handle is undefined in CUDA, and an error here
TEST(destroyed_handles_are_known) {
    const cudaStream_t s = new_stream();
    const cudaEvent_t e = new_event();
    OK(cudaStreamDestroy(s));
    OK(cudaEventDestroy(e));
    const cudaStream_t t = new_stream();
    const cudaEvent_t f = new_event();
    EXPECT(s != t && e != f);
    EXPECT(cudaStreamSynchronize(s) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaStreamDestroy(s) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaMemsetAsync(NULL, 0, 0, s) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventRecord(e, t) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventRecord(f, s) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventDestroy(e) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaStreamWaitEvent(t, e) == cudaErrorInvalidResourceHandle);
}
#endif

TEST(events_and_streams_belong_to_devices) {
    if (device_count() < 2)
        return;
    float ms;
    const cudaStream_t s0 = new_stream();
    const cudaEvent_t e0 = new_event(), e2 = new_event();
    OK(cudaEventRecord(e0, s0));
    OK(cudaSetDevice(1));
    const cudaStream_t s1 = new_stream();
    const cudaEvent_t e1 = new_event();
    OK(cudaEventRecord(e1, s1));
    OK(cudaStreamWaitEvent(s1, e0)); // waiting across devices is allowed
    OK(cudaStreamSynchronize(s1));
    EXPECT(cudaEventRecord(e0, s1) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventRecord(e0) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventElapsedTime(&ms, e0, e1) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventRecord(e2, s1) == cudaErrorInvalidResourceHandle); // the event stays unrecorded
    EXPECT(cudaEventElapsedTime(&ms, e0, e2) == cudaErrorInvalidResourceHandle);
}
