// SPDX-License-Identifier: MIT
// Devices: number, choice, properties. Streams and events.
#include <chrono>
#include <cmath>
#include "device.h"

TEST(the_current_device_is_each_threads_own) {
    const int count = device_count();
    const auto current = [] { return STORED(int, cudaGetDevice(&it)); };
    EXPECT(current() == 0);
    OK(cudaSetDevice(count - 1));
    EXPECT(current() == count - 1);
    std::thread([=] { EXPECT(current() == 0); }).join();
    EXPECT(cudaSetDevice(-1) == cudaErrorInvalidDevice);
    EXPECT(current() == count - 1);
    OK(cudaSetDevice(0));
}

static int attribute(cudaDeviceAttr which) {
    return STORED(int, cudaDeviceGetAttribute(&it, which, 0));
}

TEST(properties_and_attributes_agree) {
    cudaDeviceProp p = STORED(cudaDeviceProp, cudaGetDeviceProperties(&it, 0));
    EXPECT(attribute(cudaDevAttrMaxThreadsPerBlock) == p.maxThreadsPerBlock);
    EXPECT(attribute(cudaDevAttrMaxBlockDimX) == p.maxThreadsDim[0]);
    EXPECT(attribute(cudaDevAttrMaxBlockDimZ) == p.maxThreadsDim[2]);
    EXPECT(attribute(cudaDevAttrMaxGridDimX) == p.maxGridSize[0]);
    EXPECT(attribute(cudaDevAttrMaxGridDimY) == p.maxGridSize[1]);
    EXPECT((size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlock) == p.sharedMemPerBlock);
    EXPECT((size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) == p.sharedMemPerBlockOptin);
    EXPECT((size_t)attribute(cudaDevAttrTotalConstantMemory) == p.totalConstMem);
    EXPECT(attribute(cudaDevAttrWarpSize) == p.warpSize);
    EXPECT((size_t)attribute(cudaDevAttrMaxPitch) == p.memPitch);
    EXPECT((size_t)attribute(cudaDevAttrTextureAlignment) == p.textureAlignment);
    EXPECT(attribute(cudaDevAttrMultiProcessorCount) == p.multiProcessorCount);
    EXPECT(attribute(cudaDevAttrIntegrated) == p.integrated);
    EXPECT(attribute(cudaDevAttrCanMapHostMemory) == p.canMapHostMemory);
    EXPECT(attribute(cudaDevAttrL2CacheSize) == p.l2CacheSize);
    EXPECT(attribute(cudaDevAttrGlobalMemoryBusWidth) == p.memoryBusWidth);
    EXPECT(attribute(cudaDevAttrComputeCapabilityMajor) == p.major);
    EXPECT(attribute(cudaDevAttrComputeCapabilityMinor) == p.minor);
    EXPECT(attribute(cudaDevAttrMaxThreadsPerMultiProcessor) == p.maxThreadsPerMultiProcessor);
    EXPECT(attribute(cudaDevAttrUnifiedAddressing) == p.unifiedAddressing);
    EXPECT(attribute(cudaDevAttrManagedMemory) == p.managedMemory);
    EXPECT(attribute(cudaDevAttrAsyncEngineCount) == p.asyncEngineCount);
    EXPECT((attribute(cudaDevAttrGpuOverlap) != 0) == (p.asyncEngineCount > 0));
    EXPECT(attribute(cudaDevAttrClockRate) > 0);
    int value;
    EXPECT(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)100000, 0) == cudaErrorInvalidValue);
    EXPECT(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1 << 20) == cudaErrorInvalidDevice);
    EXPECT(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0) == cudaErrorInvalidValue);
    EXPECT(cudaGetDeviceProperties(&p, -1) == cudaErrorInvalidDevice);
}

TEST(a_device_is_chosen_by_what_it_has) {
    cudaDeviceProp wanted = {};
    wanted.major = 1;
    wanted.minor = 3;
    const int device = STORED(int, cudaChooseDevice(&it, &wanted));
    EXPECT(device >= 0 && device < device_count());
    EXPECT(cudaChooseDevice(NULL, &wanted) == cudaErrorInvalidValue);
}

TEST(a_device_has_a_place_on_the_bus) {
    char id[32];
    int device = -1;
    for (int i = 0; i < device_count(); i++) {
        OK(cudaDeviceGetPCIBusId(id, sizeof id, i));
        EXPECT(strlen(id) == 12 && id[4] == ':' && id[7] == ':' && id[10] == '.');
        EXPECT(STORED(int, cudaDeviceGetByPCIBusId(&it, id)) == i);
    }
    EXPECT(cudaDeviceGetByPCIBusId(&device, "9999:99:1f.0") == cudaErrorInvalidDevice);
    EXPECT(cudaDeviceGetByPCIBusId(&device, "here") == cudaErrorInvalidValue);
    EXPECT(cudaDeviceGetPCIBusId(id, 5, 0) == cudaErrorInvalidValue);
}

TEST(versions) {
    EXPECT(STORED(int, cudaRuntimeGetVersion(&it)) == CUDART_VERSION);
    EXPECT(STORED(int, cudaDriverGetVersion(&it)) / 1000 >= CUDART_VERSION / 1000);
}

TEST(limits_and_cache_preferences_are_kept) {
    size_t value;
    const auto limit = [](cudaLimit which) { return STORED(size_t, cudaDeviceGetLimit(&it, which)); };
    OK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    EXPECT(limit(cudaLimitStackSize) >= 4096 && limit(cudaLimitMallocHeapSize) >= 1 << 20);
    EXPECT(cudaDeviceGetLimit(&value, (cudaLimit)99) == cudaErrorInvalidValue);
    OK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
    STORED(cudaFuncCache, cudaDeviceGetCacheConfig(&it));
    OK(cudaDeviceSetCacheConfig(cudaFuncCachePreferNone));
    OK(cudaSetDeviceFlags(cudaDeviceMapHost));
    EXPECT(cudaSetDeviceFlags(cudaDeviceScheduleSpin | cudaDeviceScheduleYield) == cudaErrorInvalidValue);
    EXPECT(cudaSetDeviceFlags(0x10000) == cudaErrorInvalidValue);
}

TEST(peers) {
    const auto can = [](int peer) { return STORED(int, cudaDeviceCanAccessPeer(&it, 0, peer)); };
    EXPECT(can(0) == 0);
    EXPECT(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorPeerAccessUnsupported);
    EXPECT(cudaDeviceEnablePeerAccess(device_count(), 0) == cudaErrorInvalidDevice);
    if (device_count() < 2 || !can(1))
        return;
    EXPECT(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
    EXPECT(cudaDeviceEnablePeerAccess(1, 1) == cudaErrorInvalidValue);
    OK(cudaDeviceEnablePeerAccess(1, 0));
    EXPECT(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    OK(cudaDeviceDisablePeerAccess(1));
    EXPECT(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
}

TEST(a_reset_frees_everything) {
    size_t before, after = 0, total;
    void *p;
    cudaStream_t stream;
    OK(cudaFree(NULL));
    // Other programs allocate memory too, so one successful round of 20 is enough.
    for (int i = 0; i < 20 && (i == 0 || after <= before - (200 << 20)); i++) {
        OK(cudaMemGetInfo(&before, &total));
        OK(cudaMalloc(&p, 256 << 20));
        OK(cudaStreamCreate(&stream));
        OK(cudaDeviceReset());
        OK(cudaMemGetInfo(&after, &total));
    }
    EXPECT(after > before - (200 << 20));
    EXPECT(cudaFree(p) == cudaErrorInvalidValue);
    OK(cudaMalloc(&p, 100));
}

// ---- streams and events ----

TEST(streams_are_made_and_destroyed) {
    auto a = STORED(cudaStream_t, cudaStreamCreate(&it));
    const auto b = STORED(cudaStream_t, cudaStreamCreateWithFlags(&it, cudaStreamNonBlocking));
    const auto c = STORED(cudaStream_t, cudaStreamCreateWithPriority(&it, cudaStreamDefault, 0));
    EXPECT(a != b && b != c && a && b && c);
    EXPECT(STORED(unsigned, cudaStreamGetFlags(a, &it)) == cudaStreamDefault);
    EXPECT(STORED(unsigned, cudaStreamGetFlags(b, &it)) == cudaStreamNonBlocking);
    EXPECT(STORED(int, cudaStreamGetDevice(c, &it)) == 0);
    EXPECT(STORED(unsigned long long, cudaStreamGetId(a, &it)) !=
           STORED(unsigned long long, cudaStreamGetId(b, &it)));
    for (cudaStream_t s : {a, b, c}) {
        OK(cudaStreamSynchronize(s));
        OK(cudaStreamQuery(s));
        OK(cudaStreamDestroy(s));
    }
    EXPECT(cudaStreamCreateWithFlags(&a, 0x100) == cudaErrorInvalidValue);
}

TEST(priorities_are_clamped) {
    int least = 99, greatest = 99;
    cudaStream_t s;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(least == 0 && greatest < 0);
    for (int wanted : {5, 0, -1, greatest, greatest - 10}) {
        OK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, wanted));
        EXPECT(STORED(int, cudaStreamGetPriority(s, &it)) == (wanted > 0          ? 0
                                                              : wanted < greatest ? greatest
                                                                                  : wanted));
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
    const auto elapsed = [](cudaEvent_t from, cudaEvent_t to) {
        return STORED(float, cudaEventElapsedTime(&it, from, to));
    };
    OK(cudaEventRecord(start));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    OK(cudaEventRecord(stop, 0));
    OK(cudaEventSynchronize(stop));
    OK(cudaEventQuery(stop));
    const float ms = elapsed(start, stop);
    EXPECT(ms >= 49 && ms < 5000);
    EXPECT(elapsed(start, start) == 0 && std::fabs(elapsed(stop, start) + ms) <= 0.01f);
    OK(cudaEventRecord(start)); // recorded again: the latest time counts
    OK(cudaEventSynchronize(start));
    EXPECT(elapsed(stop, start) >= 0 && elapsed(stop, start) < ms);
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
