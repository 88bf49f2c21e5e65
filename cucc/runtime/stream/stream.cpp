// SPDX-License-Identifier: MIT
// Streams and events. Every call runs to completion before it returns, in the order of the calls, unless a
// graph captures the stream or work is deferred (operation.cpp). CUDA permits this order. So a stream is
// only a handle, a wait returns at once, and an event is the time at which it was recorded.
#include "stream.h"

#include <chrono>
#include <shared_mutex>

namespace cuda_cpu {
namespace {

struct Stream {
    int device;
    unsigned flags;
    int priority;
};

struct Event {
    int device;
    unsigned flags;
    bool recorded;
    std::chrono::steady_clock::time_point time;
    WorkPointer work;   // only for deferred work: the work that records the event
    CapturePoint point; // only in a captured stream: where the event was recorded
};

// Handles are never reused, so that the handle of a destroyed object is recognised.
template <class Handle, class T> struct Table {
    std::shared_mutex mutex;
    std::map<Handle, T> live;
    uintptr_t next = 0x1000;

    Handle add(const T &object) {
        std::lock_guard lock(mutex);
        const Handle handle = (Handle)(next += 16);
        live[handle] = object;
        return handle;
    }
    // Calls use(object) while it holds the lock. Returns false for an unknown handle.
    template <class Use> bool with(Handle handle, Use use) {
        std::lock_guard lock(mutex);
        const auto found = live.find(handle);
        if (found == live.end())
            return false;
        use(found->second);
        return true;
    }
    bool remove(Handle handle) {
        std::lock_guard lock(mutex);
        return live.erase(handle) == 1;
    }
    void remove_of(int device) {
        std::lock_guard lock(mutex);
        for (auto i = live.begin(); i != live.end();)
            i = i->second.device == device ? live.erase(i) : std::next(i);
    }
};

ONLY(streams, Table<cudaStream_t, Stream>)

ONLY(events, Table<cudaEvent_t, Event>)

constexpr int greatest_priority = -5; // the least priority is 0

bool is_default(cudaStream_t stream) {
    return !stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

bool find_stream(cudaStream_t stream, Stream &found) {
    if (is_default(stream)) {
        found = {current_device(), cudaStreamDefault, 0};
        return true;
    }
    return streams().with(stream, [&](Stream &s) { found = s; });
}

// Copy the stream or event, so that no lock is held while it is used; fail if there is none.
cudaError_t find(const char *call, cudaStream_t stream, Stream &found) {
    return find_stream(stream, found) ? cudaSuccess
                                      : no_such(call, cudaErrorInvalidResourceHandle, "a stream", stream);
}

cudaError_t find(const char *call, cudaEvent_t event, Event &found) {
    return events().with(event, [&](Event &e) { found = e; })
               ? cudaSuccess
               : no_such(call, cudaErrorInvalidResourceHandle, "an event", event);
}

} // namespace

size_t live_streams() {
    return streams().live.size();
}

size_t live_events() {
    return events().live.size();
}

cudaError_t check_stream(const char *call, cudaStream_t stream, int *device) {
    Stream s;
    TRY(find(call, stream, s));
    return store(device, s.device);
}

cudaError_t check_stream_here(const char *call, cudaStream_t stream) {
    int device;
    TRY(check_stream(call, stream, &device));
    FAIL_IF(device != current_device(), cudaErrorInvalidResourceHandle,
            "the stream belongs to device %d, the current device is %d", device, current_device());
    return cudaSuccess;
}

StreamIdentity identity(cudaStream_t stream) {
    static std::atomic<uint64_t> threads{0};
    if (stream == cudaStreamPerThread) {
        static thread_local const uint64_t thread = ++threads;
        return {thread * max_devices + (uint64_t)current_device() + (1ull << 62), current_device(), true,
                false};
    }
    Stream s;
    if (is_default(stream) || !find_stream(stream, s))
        return {(uint64_t)current_device(), current_device(), true, true};
    return {(uint64_t)(uintptr_t)stream, s.device, !(s.flags & cudaStreamNonBlocking), false};
}

void record_event(cudaEvent_t event) {
    events().with(event, [](Event &e) {
        e.recorded = true;
        e.time = std::chrono::steady_clock::now();
        e.point = {};
    });
}

bool event_exists(cudaEvent_t event) {
    return events().with(event, [](Event &) {});
}

void destroy_streams_of(int device) {
    streams().remove_of(device);
    events().remove_of(device);
}

} // namespace cuda_cpu

// ---- streams ----

FORWARD(cudaStreamCreate, (cudaStream_t * stream), cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0))
FORWARD(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags),
        cudaStreamCreateWithPriority(stream, flags, 0))

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    BEGIN_AS("cudaStreamCreate", stream);
    FAIL_IF(flags & ~(unsigned)cudaStreamNonBlocking, cudaErrorInvalidValue, "0x%x is not a valid flag",
            flags);
    *stream = streams().add({current_device(), flags, std::clamp(priority, greatest_priority, 0)});
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    BEGIN();
    store(least, 0);
    return store(greatest, greatest_priority);
}

#define GET(name, T, member)                                                                                 \
    cudaError_t cudaStreamGet##name(cudaStream_t stream, T *member) {                                        \
        BEGIN(member);                                                                                       \
        Stream s;                                                                                            \
        TRY(find(call, stream, s));                                                                          \
        return store(member, s.member);                                                                      \
    }
GET(Priority, int, priority)
GET(Flags, unsigned, flags)
GET(Device, int, device)
#undef GET

SIMPLE_CALL(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), BEGIN(id, stream),
            store(id, stream ? (uintptr_t)stream : (uintptr_t)cudaStreamLegacy))

// Attributes are hints for caches and scheduling.
SIMPLE_CALL(cudaStreamSetAttribute,
            (cudaStream_t stream, cudaLaunchAttributeID, const cudaLaunchAttributeValue *value), BEGIN(value),
            check_stream(call, stream))

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    BEGIN();
    FAIL_IF(is_default(stream), cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
    TRY(check_stream(call, stream));
    forget_capture(stream);
    forget_queue(stream);
    streams().remove(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    BEGIN(stream);
    if (at_once())
        return cudaSuccess;
    return captures(stream) ? refuse_in_capture(call, stream) : finish(last_work(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    BEGIN(stream);
    if (at_once())
        return cudaSuccess;
    if (captures(stream))
        return refuse_in_capture(call, stream);
    return completed(last_work(stream)) ? cudaSuccess : set_last_error(cudaErrorNotReady);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    BEGIN(stream);
    FAIL_IF(flags & ~(unsigned)cudaEventWaitExternal, cudaErrorInvalidValue, "0x%x is not a valid flag",
            flags);
    Event e;
    TRY(find(call, event, e));
    if (at_once())
        return cudaSuccess;
    if (captures(stream) && (flags & cudaEventWaitExternal))
        return add_captured(stream, {call, WaitEvent{event}});
    if (captures(stream) || e.point.capture)
        return wait_in_capture(call, stream, e.point);
    order_after(stream, e.work);
    return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                  unsigned flags) {
    BEGIN(callback);
    FAIL_IF(flags, cudaErrorInvalidValue, "flags are 0x%x, must be 0", flags);
    TRY(check_stream(call, stream));
    if (!at_once())
        return captures(stream) ? refuse_in_capture(call, stream)
                                : submit(stream, {call, HostCall{nullptr, callback, stream, data}});
    run_callback([=] { callback(stream, cudaSuccess, data); });
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    BEGIN(function, stream);
    if (!at_once())
        return submit(stream, {call, HostCall{function, nullptr, stream, data}});
    run_callback([=] { function(data); });
    return cudaSuccess;
}

// ---- events ----

FORWARD(cudaEventCreate, (cudaEvent_t * event), cudaEventCreateWithFlags(event, cudaEventDefault))

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    BEGIN_AS("cudaEventCreate", event);
    FAIL_IF(flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess),
            cudaErrorInvalidValue, "0x%x is not a valid combination of flags", flags);
    FAIL_IF(flags & cudaEventInterprocess && !(flags & cudaEventDisableTiming), cudaErrorInvalidValue,
            "cudaEventInterprocess needs cudaEventDisableTiming");
    FAIL_IF(flags & cudaEventInterprocess, cudaErrorNotSupported,
            "events shared between processes are not supported");
    return store(event, events().add({current_device(), flags, false, {}, nullptr, {}}));
}

FORWARD(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream),
        cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault))

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    BEGIN_AS("cudaEventRecord");
    FAIL_IF(flags & ~(unsigned)cudaEventRecordExternal, cudaErrorInvalidValue, "0x%x is not a valid flag",
            flags);
    int device;
    TRY(check_stream(call, stream, &device));
    Event e;
    TRY(find(call, event, e));
    FAIL_IF(e.device != device, cudaErrorInvalidResourceHandle,
            "the event belongs to device %d, the stream to device %d", e.device, device);
    if (at_once()) {
        record_event(event);
        return cudaSuccess;
    }
    if (captures(stream)) {
        if (flags & cudaEventRecordExternal)
            return add_captured(stream, {call, RecordEvent{event}});
        const CapturePoint point = capture_point(stream);
        events().with(event, [&](Event &known) { known.point = point; });
        return cudaSuccess;
    }
    TRY(submit(stream, {call, RecordEvent{event}}));
    const WorkPointer work = last_work(stream);
    events().with(event, [&](Event &known) {
        known.work = work;
        known.point = {};
    });
    return cudaSuccess;
}

static cudaError_t find_uncaptured(const char *call, cudaEvent_t event, Event &e) {
    TRY(find(call, event, e));
    if (!e.point.capture)
        return cudaSuccess;
    spoil(e.point.capture);
    return fail(cudaErrorCapturedEvent, "%s: the event was recorded in a stream that a graph captures", call);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    BEGIN();
    Event e;
    TRY(find_uncaptured(call, event, e));
    return at_once() || completed(e.work) ? cudaSuccess : set_last_error(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    BEGIN();
    Event e;
    TRY(find_uncaptured(call, event, e));
    return at_once() ? cudaSuccess : finish(e.work);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    BEGIN(milliseconds);
    Event a, b;
    TRY(find(call, start, a));
    TRY(find(call, end, b));
    const char *why = nullptr;
    if ((a.flags | b.flags) & cudaEventDisableTiming)
        why = "an event was created with cudaEventDisableTiming";
    else if (a.point.capture || b.point.capture)
        why = "an event was recorded in a stream that a graph captures";
    else if (!is_done(a.work) || !is_done(b.work))
        return set_last_error(cudaErrorNotReady);
    else if (!a.recorded || !b.recorded)
        why = a.recorded ? "the end was never recorded" : "the start was never recorded";
    else if (a.device != b.device)
        why = "the events belong to different devices";
    FAIL_IF(why, cudaErrorInvalidResourceHandle, "%s", why);
    return store(milliseconds, (float)std::chrono::duration<double, std::milli>(b.time - a.time).count());
}

SIMPLE_CALL(cudaEventDestroy, (cudaEvent_t event), BEGIN(),
            events().remove(event) ? cudaSuccess
                                   : no_such(call, cudaErrorInvalidResourceHandle, "an event", event))
