// SPDX-License-Identifier: MIT
/*
 * The driver API on top of the runtime, apart from modules.
 *
 * A context is a device: contexts of one device share its memory and streams. The context that is
 * current chooses the device of this host thread.
 */
#include "operation.h"
#include <cuda.h>

#include <cstring>
#include <set>

struct CUctx_st {
    int device;
    bool primary;
    unsigned flags;
};

namespace cuda_cpu {

namespace {

struct Contexts {
    std::mutex mutex;
    std::set<CUcontext> live;
    CUcontext primary[max_devices] = {};
    int retained[max_devices] = {};
    unsigned primary_flags[max_devices] = {};
};

// Never destroyed, because host threads may use it while the process exits.
Contexts &contexts() {
    static Contexts &all = *new Contexts;
    return all;
}

std::atomic<bool> initialized{false};
// The last one is the current context.
std::vector<CUcontext> &stack() {
    static PerThread<std::vector<CUcontext>> &stacks = *new PerThread<std::vector<CUcontext>>;
    return stacks.mine();
}

// Converts an error of the runtime to one of the driver API. The driver has fewer errors below 100; the
// others have the same numbers.
CUresult code(cudaError_t error) {
    const bool same =
        error >= 100 || error <= 3 || (error >= 4 && error <= 8) || error == 34 || error == 36 || error == 46;
    return same ? (CUresult)error : CUDA_ERROR_INVALID_VALUE;
}

CUresult refuse(CUresult error, const char *call, const char *why) {
    fail(cudaErrorUnknown, "%s: %s", call, why);
    (void)cudaGetLastError(); // a call of the driver API must not set the runtime's last error
    return error;
}

CUresult begin_driver(const char *call) {
    if (const cudaError_t error = failure_of(call))
        return code(error);
    return initialized ? CUDA_SUCCESS
                       : refuse(CUDA_ERROR_NOT_INITIALIZED, call, "the program has not called cuInit");
}

CUresult device_of(const char *call, CUdevice device) {
    if (const CUresult error = begin_driver(call))
        return error;
    return device_exists(call, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

// Checks that the context exists. Null stands for the context that the runtime uses.
CUresult use(const char *call, CUcontext context) {
    if (!context)
        return CUDA_SUCCESS;
    {
        std::lock_guard lock(contexts().mutex);
        if (!contexts().live.count(context))
            return refuse(CUDA_ERROR_INVALID_CONTEXT, call, "the context does not exist, or was destroyed");
    }
    return code(cudaSetDevice(context->device));
}

void *pointer_of(CUdeviceptr p) {
    return (void *)(uintptr_t)p;
}

CUresult not_supported(const char *call, const char *what) {
    fail(cudaErrorNotSupported, "%s: %s", call, what);
    (void)cudaGetLastError();
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult set(const char *call, CUdeviceptr to, unsigned value, unsigned element, size_t count,
             CUstream stream) {
    if (const CUresult error = begin_driver(call))
        return error;
    const size_t bytes = count * element;
    return code(fill_elements(call, {(char *)pointer_of(to), bytes, 1, value, element, bytes, 1, 1}, stream));
}

} // namespace

} // namespace cuda_cpu

using namespace cuda_cpu;

#define DRIVER()                                                                                             \
    if (const CUresult error = begin_driver(__func__))                                                       \
    return error
#define NEEDS(pointer)                                                                                       \
    if (!(pointer))                                                                                          \
    return refuse(CUDA_ERROR_INVALID_VALUE, __func__, #pointer " is NULL")
#define DEVICE(device)                                                                                       \
    if (const CUresult error = device_of(__func__, device))                                                  \
    return error

extern "C" {

CUresult cuInit(unsigned flags) {
    if (const cudaError_t error = failure_of(__func__))
        return code(error);
    if (flags)
        return refuse(CUDA_ERROR_INVALID_VALUE, __func__, "the flags must be 0");
    if (device_count() == 0)
        return CUDA_ERROR_NO_DEVICE;
    initialized = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    if (const cudaError_t error = failure_of(__func__))
        return code(error);
    NEEDS(version);
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    NEEDS(name);
    switch (error) {
        // clang-format off
    case CUDA_SUCCESS: *name = "CUDA_SUCCESS"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; return CUDA_SUCCESS;
    case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_INITIALIZED: *name = "CUDA_ERROR_NOT_INITIALIZED"; return CUDA_SUCCESS;
    case CUDA_ERROR_DEINITIALIZED: *name = "CUDA_ERROR_DEINITIALIZED"; return CUDA_SUCCESS;
    case CUDA_ERROR_PROFILER_DISABLED: *name = "CUDA_ERROR_PROFILER_DISABLED"; return CUDA_SUCCESS;
    case CUDA_ERROR_PROFILER_NOT_INITIALIZED: *name = "CUDA_ERROR_PROFILER_NOT_INITIALIZED"; return CUDA_SUCCESS;
    case CUDA_ERROR_PROFILER_ALREADY_STARTED: *name = "CUDA_ERROR_PROFILER_ALREADY_STARTED"; return CUDA_SUCCESS;
    case CUDA_ERROR_PROFILER_ALREADY_STOPPED: *name = "CUDA_ERROR_PROFILER_ALREADY_STOPPED"; return CUDA_SUCCESS;
    case CUDA_ERROR_STUB_LIBRARY: *name = "CUDA_ERROR_STUB_LIBRARY"; return CUDA_SUCCESS;
    case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER: *name = "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"; return CUDA_SUCCESS;
    case CUDA_ERROR_DEVICE_UNAVAILABLE: *name = "CUDA_ERROR_DEVICE_UNAVAILABLE"; return CUDA_SUCCESS;
    case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_DEVICE: *name = "CUDA_ERROR_INVALID_DEVICE"; return CUDA_SUCCESS;
    case CUDA_ERROR_DEVICE_NOT_LICENSED: *name = "CUDA_ERROR_DEVICE_NOT_LICENSED"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; return CUDA_SUCCESS;
    case CUDA_ERROR_CONTEXT_ALREADY_CURRENT: *name = "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"; return CUDA_SUCCESS;
    case CUDA_ERROR_MAP_FAILED: *name = "CUDA_ERROR_MAP_FAILED"; return CUDA_SUCCESS;
    case CUDA_ERROR_UNMAP_FAILED: *name = "CUDA_ERROR_UNMAP_FAILED"; return CUDA_SUCCESS;
    case CUDA_ERROR_ARRAY_IS_MAPPED: *name = "CUDA_ERROR_ARRAY_IS_MAPPED"; return CUDA_SUCCESS;
    case CUDA_ERROR_ALREADY_MAPPED: *name = "CUDA_ERROR_ALREADY_MAPPED"; return CUDA_SUCCESS;
    case CUDA_ERROR_NO_BINARY_FOR_GPU: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; return CUDA_SUCCESS;
    case CUDA_ERROR_ALREADY_ACQUIRED: *name = "CUDA_ERROR_ALREADY_ACQUIRED"; return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_MAPPED: *name = "CUDA_ERROR_NOT_MAPPED"; return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_MAPPED_AS_ARRAY: *name = "CUDA_ERROR_NOT_MAPPED_AS_ARRAY"; return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_MAPPED_AS_POINTER: *name = "CUDA_ERROR_NOT_MAPPED_AS_POINTER"; return CUDA_SUCCESS;
    case CUDA_ERROR_ECC_UNCORRECTABLE: *name = "CUDA_ERROR_ECC_UNCORRECTABLE"; return CUDA_SUCCESS;
    case CUDA_ERROR_UNSUPPORTED_LIMIT: *name = "CUDA_ERROR_UNSUPPORTED_LIMIT"; return CUDA_SUCCESS;
    case CUDA_ERROR_CONTEXT_ALREADY_IN_USE: *name = "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"; return CUDA_SUCCESS;
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: *name = "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_PTX: *name = "CUDA_ERROR_INVALID_PTX"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_GRAPHICS_CONTEXT: *name = "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"; return CUDA_SUCCESS;
    case CUDA_ERROR_NVLINK_UNCORRECTABLE: *name = "CUDA_ERROR_NVLINK_UNCORRECTABLE"; return CUDA_SUCCESS;
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND: *name = "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"; return CUDA_SUCCESS;
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION: *name = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return CUDA_SUCCESS;
    case CUDA_ERROR_JIT_COMPILATION_DISABLED: *name = "CUDA_ERROR_JIT_COMPILATION_DISABLED"; return CUDA_SUCCESS;
    case CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY: *name = "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"; return CUDA_SUCCESS;
    case CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC: *name = "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"; return CUDA_SUCCESS;
    case CUDA_ERROR_CONTAINED: *name = "CUDA_ERROR_CONTAINED"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_SOURCE: *name = "CUDA_ERROR_INVALID_SOURCE"; return CUDA_SUCCESS;
    case CUDA_ERROR_FILE_NOT_FOUND: *name = "CUDA_ERROR_FILE_NOT_FOUND"; return CUDA_SUCCESS;
    case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: *name = "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"; return CUDA_SUCCESS;
    case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED: *name = "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"; return CUDA_SUCCESS;
    case CUDA_ERROR_OPERATING_SYSTEM: *name = "CUDA_ERROR_OPERATING_SYSTEM"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; return CUDA_SUCCESS;
    case CUDA_ERROR_ILLEGAL_STATE: *name = "CUDA_ERROR_ILLEGAL_STATE"; return CUDA_SUCCESS;
    case CUDA_ERROR_LOSSY_QUERY: *name = "CUDA_ERROR_LOSSY_QUERY"; return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_READY: *name = "CUDA_ERROR_NOT_READY"; return CUDA_SUCCESS;
    case CUDA_ERROR_ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return CUDA_SUCCESS;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; return CUDA_SUCCESS;
    case CUDA_ERROR_LAUNCH_TIMEOUT: *name = "CUDA_ERROR_LAUNCH_TIMEOUT"; return CUDA_SUCCESS;
    case CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING: *name = "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"; return CUDA_SUCCESS;
    case CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED: *name = "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"; return CUDA_SUCCESS;
    case CUDA_ERROR_PEER_ACCESS_NOT_ENABLED: *name = "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"; return CUDA_SUCCESS;
    case CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE: *name = "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"; return CUDA_SUCCESS;
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: *name = "CUDA_ERROR_CONTEXT_IS_DESTROYED"; return CUDA_SUCCESS;
    case CUDA_ERROR_ASSERT: *name = "CUDA_ERROR_ASSERT"; return CUDA_SUCCESS;
    case CUDA_ERROR_TOO_MANY_PEERS: *name = "CUDA_ERROR_TOO_MANY_PEERS"; return CUDA_SUCCESS;
    case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: *name = "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"; return CUDA_SUCCESS;
    case CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED: *name = "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"; return CUDA_SUCCESS;
    case CUDA_ERROR_HARDWARE_STACK_ERROR: *name = "CUDA_ERROR_HARDWARE_STACK_ERROR"; return CUDA_SUCCESS;
    case CUDA_ERROR_ILLEGAL_INSTRUCTION: *name = "CUDA_ERROR_ILLEGAL_INSTRUCTION"; return CUDA_SUCCESS;
    case CUDA_ERROR_MISALIGNED_ADDRESS: *name = "CUDA_ERROR_MISALIGNED_ADDRESS"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_ADDRESS_SPACE: *name = "CUDA_ERROR_INVALID_ADDRESS_SPACE"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_PC: *name = "CUDA_ERROR_INVALID_PC"; return CUDA_SUCCESS;
    case CUDA_ERROR_LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; return CUDA_SUCCESS;
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: *name = "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"; return CUDA_SUCCESS;
    case CUDA_ERROR_TENSOR_MEMORY_LEAK: *name = "CUDA_ERROR_TENSOR_MEMORY_LEAK"; return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_PERMITTED: *name = "CUDA_ERROR_NOT_PERMITTED"; return CUDA_SUCCESS;
    case CUDA_ERROR_NOT_SUPPORTED: *name = "CUDA_ERROR_NOT_SUPPORTED"; return CUDA_SUCCESS;
    case CUDA_ERROR_SYSTEM_NOT_READY: *name = "CUDA_ERROR_SYSTEM_NOT_READY"; return CUDA_SUCCESS;
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return CUDA_SUCCESS;
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: *name = "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"; return CUDA_SUCCESS;
    case CUDA_ERROR_MPS_CONNECTION_FAILED: *name = "CUDA_ERROR_MPS_CONNECTION_FAILED"; return CUDA_SUCCESS;
    case CUDA_ERROR_MPS_RPC_FAILURE: *name = "CUDA_ERROR_MPS_RPC_FAILURE"; return CUDA_SUCCESS;
    case CUDA_ERROR_MPS_SERVER_NOT_READY: *name = "CUDA_ERROR_MPS_SERVER_NOT_READY"; return CUDA_SUCCESS;
    case CUDA_ERROR_MPS_MAX_CLIENTS_REACHED: *name = "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"; return CUDA_SUCCESS;
    case CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED: *name = "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"; return CUDA_SUCCESS;
    case CUDA_ERROR_MPS_CLIENT_TERMINATED: *name = "CUDA_ERROR_MPS_CLIENT_TERMINATED"; return CUDA_SUCCESS;
    case CUDA_ERROR_CDP_NOT_SUPPORTED: *name = "CUDA_ERROR_CDP_NOT_SUPPORTED"; return CUDA_SUCCESS;
    case CUDA_ERROR_CDP_VERSION_MISMATCH: *name = "CUDA_ERROR_CDP_VERSION_MISMATCH"; return CUDA_SUCCESS;
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; return CUDA_SUCCESS;
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"; return CUDA_SUCCESS;
    case CUDA_ERROR_STREAM_CAPTURE_MERGE: *name = "CUDA_ERROR_STREAM_CAPTURE_MERGE"; return CUDA_SUCCESS;
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: *name = "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"; return CUDA_SUCCESS;
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED: *name = "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"; return CUDA_SUCCESS;
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION: *name = "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"; return CUDA_SUCCESS;
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: *name = "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"; return CUDA_SUCCESS;
    case CUDA_ERROR_CAPTURED_EVENT: *name = "CUDA_ERROR_CAPTURED_EVENT"; return CUDA_SUCCESS;
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: *name = "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"; return CUDA_SUCCESS;
    case CUDA_ERROR_TIMEOUT: *name = "CUDA_ERROR_TIMEOUT"; return CUDA_SUCCESS;
    case CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: *name = "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"; return CUDA_SUCCESS;
    case CUDA_ERROR_EXTERNAL_DEVICE: *name = "CUDA_ERROR_EXTERNAL_DEVICE"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_CLUSTER_SIZE: *name = "CUDA_ERROR_INVALID_CLUSTER_SIZE"; return CUDA_SUCCESS;
    case CUDA_ERROR_FUNCTION_NOT_LOADED: *name = "CUDA_ERROR_FUNCTION_NOT_LOADED"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_RESOURCE_TYPE: *name = "CUDA_ERROR_INVALID_RESOURCE_TYPE"; return CUDA_SUCCESS;
    case CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION: *name = "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"; return CUDA_SUCCESS;
    case CUDA_ERROR_KEY_ROTATION: *name = "CUDA_ERROR_KEY_ROTATION"; return CUDA_SUCCESS;
    case CUDA_ERROR_UNKNOWN: *name = "CUDA_ERROR_UNKNOWN"; return CUDA_SUCCESS;
        // clang-format on
    }
    *name = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    const char *name;
    NEEDS(text);
    *text = nullptr;
    if (cuGetErrorName(error, &name))
        return CUDA_ERROR_INVALID_VALUE;
    *text = cudaGetErrorString((cudaError_t)error);
    return CUDA_SUCCESS;
}

// ---- devices ----

CUresult cuDeviceGet(CUdevice *device, int number) {
    NEEDS(device);
    DEVICE(number);
    *device = number;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    DRIVER();
    NEEDS(count);
    *count = device_count();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    NEEDS(name);
    DEVICE(device);
    if (length < 1)
        return refuse(CUDA_ERROR_INVALID_VALUE, __func__, "there is no room for the name");
    snprintf(name, (size_t)length, "%s", properties(device).name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    NEEDS(uuid);
    DEVICE(device);
    *uuid = properties(device).uuid;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    NEEDS(bytes);
    DEVICE(device);
    *bytes = properties(device).totalGlobalMem;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    NEEDS(value);
    DEVICE(device);
    // Attributes that only the driver API has. Apart from the first, they are of features that do not exist
    // here.
    static const int others[] = {CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER,
                                 92,
                                 93,
                                 94,
                                 96,
                                 102,
                                 103,
                                 104,
                                 105,
                                 107,
                                 110,
                                 122,
                                 123,
                                 124,
                                 127,
                                 128,
                                 129,
                                 132,
                                 136,
                                 137,
                                 141,
                                 145,
                                 146};
    for (const int other : others)
        if (attribute == other) {
            *value = attribute == CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER;
            return CUDA_SUCCESS;
        }
    return code(cudaDeviceGetAttribute(value, (cudaDeviceAttr)attribute, device)); // numbers are equal
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    NEEDS(major);
    NEEDS(minor);
    DEVICE(device);
    *major = properties(device).major;
    *minor = properties(device).minor;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
    DRIVER();
    return code(cudaDeviceGetPCIBusId(id, length, device));
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id) {
    DRIVER();
    return code(cudaDeviceGetByPCIBusId(device, id));
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    DRIVER();
    return code(cudaDeviceCanAccessPeer(can, device, peer));
}

// ---- contexts ----

static CUcontext new_context(int device, bool primary, unsigned flags) {
    const CUcontext made = new CUctx_st{device, primary, flags};
    contexts().live.insert(made);
    return made;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    NEEDS(context);
    DEVICE(device);
    Contexts &c = contexts();
    std::lock_guard lock(c.mutex);
    if (!c.primary[device])
        c.primary[device] = new_context(device, true, c.primary_flags[device]);
    ++c.retained[device];
    *context = c.primary[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    DEVICE(device);
    std::lock_guard lock(contexts().mutex);
    if (contexts().retained[device] == 0)
        return refuse(CUDA_ERROR_INVALID_CONTEXT, __func__, "the primary context is not retained");
    --contexts().retained[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    DEVICE(device);
    const OnDevice on(device);
    return code(cudaDeviceReset());
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
    DEVICE(device);
    std::lock_guard lock(contexts().mutex);
    contexts().primary_flags[device] = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    NEEDS(flags);
    NEEDS(active);
    DEVICE(device);
    std::lock_guard lock(contexts().mutex);
    *flags = contexts().primary_flags[device];
    *active = contexts().retained[device] > 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *params, unsigned flags, CUdevice device) {
    NEEDS(context);
    DEVICE(device);
    if (params && (params->execAffinityParams || params->cigParams))
        return not_supported(__func__, "parameters of contexts are not supported: pass NULL as params");
    {
        std::lock_guard lock(contexts().mutex);
        *context = new_context(device, false, flags);
    }
    stack().push_back(*context);
    return use(__func__, *context);
}

CUresult cuCtxDestroy(CUcontext context) {
    DRIVER();
    {
        std::lock_guard lock(contexts().mutex);
        if (!contexts().live.count(context) || context->primary)
            return refuse(CUDA_ERROR_INVALID_CONTEXT, __func__,
                          "the context does not exist, or is a primary one");
    }
    finish_device(context->device);
    if (!stack().empty() && stack().back() == context)
        stack().pop_back();
    std::lock_guard lock(contexts().mutex);
    contexts().live.erase(context);
    delete context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
    DRIVER();
    NEEDS(context);
    if (const CUresult error = use(__func__, context))
        return error;
    stack().push_back(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context) {
    DRIVER();
    if (stack().empty())
        return refuse(CUDA_ERROR_INVALID_CONTEXT, __func__, "no context is current");
    if (context)
        *context = stack().back();
    stack().pop_back();
    return stack().empty() ? CUDA_SUCCESS : use(__func__, stack().back());
}

CUresult cuCtxSetCurrent(CUcontext context) {
    DRIVER();
    if (!stack().empty())
        stack().pop_back();
    return context ? cuCtxPushCurrent(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    DRIVER();
    NEEDS(context);
    *context = stack().empty() ? nullptr : stack().back();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    DRIVER();
    NEEDS(device);
    *device = current_device();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags) {
    DRIVER();
    NEEDS(flags);
    *flags = stack().empty() ? 0 : stack().back()->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext, unsigned *version) {
    DRIVER();
    NEEDS(version);
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    DRIVER();
    NEEDS(peer);
    return code(cudaDeviceEnablePeerAccess(peer->device, flags));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
    DRIVER();
    NEEDS(peer);
    return code(cudaDeviceDisablePeerAccess(peer->device));
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      size_t bytes) {
    DRIVER();
    NEEDS(to_context);
    NEEDS(from_context);
    return code(
        cudaMemcpyPeer(pointer_of(to), to_context->device, pointer_of(from), from_context->device, bytes));
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer) {
    DRIVER();
    Allocation a;
    if (!find_allocation(pointer_of(pointer), a))
        return refuse(CUDA_ERROR_INVALID_VALUE, __func__, "the pointer is not of device memory");
    if (base)
        *base = (CUdeviceptr)(uintptr_t)a.base;
    if (bytes)
        *bytes = a.size;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t rows, unsigned element) {
    DRIVER();
    if (element != 4 && element != 8 && element != 16)
        return refuse(CUDA_ERROR_INVALID_VALUE, __func__, "elements must have 4, 8 or 16 bytes");
    return code(malloc_pitch((void **)pointer, pitch, width, rows, nullptr, 0));
}

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
    DRIVER();
    if (bytes == 0)
        return refuse(CUDA_ERROR_INVALID_VALUE, __func__, "0 bytes requested");
    return code(malloc_device((void **)pointer, bytes, nullptr, 0));
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
    DRIVER();
    NEEDS(value);
    cudaPointerAttributes found;
    Allocation a = {};
    if (const cudaError_t error = cudaPointerGetAttributes(&found, pointer_of(pointer)))
        return code(error);
    if (found.type == cudaMemoryTypeUnregistered)
        return refuse(CUDA_ERROR_INVALID_VALUE, __func__, "the pointer is not known to CUDA");
    find_allocation(pointer_of(pointer), a);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = stack().empty() ? nullptr : stack().back();
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = found.type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)value = (CUdeviceptr)(uintptr_t)found.devicePointer;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)value = found.hostPointer;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = found.type == cudaMemoryTypeManaged;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = found.device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)value = (CUdeviceptr)(uintptr_t)a.base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = a.size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)value = found.devicePointer != nullptr;
        return CUDA_SUCCESS;
    }
    return refuse(CUDA_ERROR_NOT_SUPPORTED, __func__, "the attribute is not supported");
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned flags) {
    DRIVER();
    return code(cudaStreamAddCallback(stream, (cudaStreamCallback_t)(void *)callback, data, flags));
}

// ---- calls that are the same in the runtime ----

#define SAME(name, parameters, call)                                                                         \
    CUresult name parameters {                                                                               \
        DRIVER();                                                                                            \
        return code(call);                                                                                   \
    }
#define P(p) pointer_of(p)
SAME(cuCtxSynchronize, (), cudaDeviceSynchronize())
SAME(cuCtxSetLimit, (CUlimit limit, size_t value), cudaDeviceSetLimit((cudaLimit)limit, value))
SAME(cuCtxGetLimit, (size_t * value, CUlimit limit), cudaDeviceGetLimit(value, (cudaLimit)limit))
SAME(cuCtxGetStreamPriorityRange, (int *least, int *greatest),
     cudaDeviceGetStreamPriorityRange(least, greatest))
SAME(cuMemGetInfo, (size_t * free_bytes, size_t *total_bytes), cudaMemGetInfo(free_bytes, total_bytes))
SAME(cuMemAllocManaged, (CUdeviceptr * pointer, size_t bytes, unsigned flags),
     malloc_managed((void **)pointer, bytes, flags, nullptr, 0))
SAME(cuMemAllocAsync, (CUdeviceptr * pointer, size_t bytes, CUstream stream),
     malloc_async((void **)pointer, bytes, stream, nullptr, 0))
SAME(cuMemFree, (CUdeviceptr pointer), cudaFree(P(pointer)))
SAME(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), cudaFreeAsync(P(pointer), stream))
SAME(cuMemAllocHost, (void **pointer, size_t bytes),
     malloc_host("cuMemAllocHost", pointer, bytes, 0, nullptr, 0))
SAME(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags),
     malloc_host("cuMemHostAlloc", pointer, bytes, flags, nullptr, 0))
SAME(cuMemFreeHost, (void *pointer), cudaFreeHost(pointer))
SAME(cuMemHostRegister, (void *pointer, size_t bytes, unsigned flags),
     register_host(pointer, bytes, flags, nullptr, 0))
SAME(cuMemHostUnregister, (void *pointer), cudaHostUnregister(pointer))
SAME(cuMemHostGetDevicePointer, (CUdeviceptr * pointer, void *host, unsigned flags),
     cudaHostGetDevicePointer((void **)pointer, host, flags))
SAME(cuMemHostGetFlags, (unsigned *flags, void *host), cudaHostGetFlags(flags, host))
SAME(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
     cudaMemcpy(P(to), P(from), bytes, cudaMemcpyDefault))
SAME(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
     cudaMemcpyAsync(P(to), P(from), bytes, cudaMemcpyDefault, stream))
SAME(cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t bytes),
     cudaMemcpy(P(to), from, bytes, cudaMemcpyHostToDevice))
SAME(cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
     cudaMemcpyAsync(P(to), from, bytes, cudaMemcpyHostToDevice, stream))
SAME(cuMemcpyDtoH, (void *to, CUdeviceptr from, size_t bytes),
     cudaMemcpy(to, P(from), bytes, cudaMemcpyDeviceToHost))
SAME(cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
     cudaMemcpyAsync(to, P(from), bytes, cudaMemcpyDeviceToHost, stream))
SAME(cuMemcpyDtoD, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
     cudaMemcpy(P(to), P(from), bytes, cudaMemcpyDeviceToDevice))
SAME(cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
     cudaMemcpyAsync(P(to), P(from), bytes, cudaMemcpyDeviceToDevice, stream))
SAME(cuStreamCreate, (CUstream * stream, unsigned flags), cudaStreamCreateWithFlags(stream, flags))
SAME(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),
     cudaStreamCreateWithPriority(stream, flags, priority))
SAME(cuStreamDestroy, (CUstream stream), cudaStreamDestroy(stream))
SAME(cuStreamSynchronize, (CUstream stream), cudaStreamSynchronize(stream))
SAME(cuStreamQuery, (CUstream stream), cudaStreamQuery(stream))
SAME(cuStreamGetFlags, (CUstream stream, unsigned *flags), cudaStreamGetFlags(stream, flags))
SAME(cuStreamGetPriority, (CUstream stream, int *priority), cudaStreamGetPriority(stream, priority))
SAME(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
     cudaStreamWaitEvent(stream, event, flags))
SAME(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),
     cudaLaunchHostFunc(stream, function, data))
SAME(cuEventCreate, (CUevent * event, unsigned flags), cudaEventCreateWithFlags(event, flags))
SAME(cuEventDestroy, (CUevent event), cudaEventDestroy(event))
SAME(cuEventRecord, (CUevent event, CUstream stream), cudaEventRecord(event, stream))
SAME(cuEventQuery, (CUevent event), cudaEventQuery(event))
SAME(cuEventSynchronize, (CUevent event), cudaEventSynchronize(event))
SAME(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end),
     cudaEventElapsedTime(milliseconds, start, end))
#undef SAME
#undef P

#define SET(bits, T)                                                                                         \
    CUresult cuMemsetD##bits(CUdeviceptr to, T value, size_t count) {                                        \
        return set(__func__, to, value, bits / 8, count, nullptr);                                           \
    }                                                                                                        \
    CUresult cuMemsetD##bits##Async(CUdeviceptr to, T value, size_t count, CUstream stream) {                \
        return set(__func__, to, value, bits / 8, count, stream);                                            \
    }
SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned)
#undef SET

// ---- not supported ----

#define REFUSED(name, ...)                                                                                   \
    CUresult name(__VA_ARGS__) {                                                                             \
        return not_supported(__func__, "modules are not supported: kernels are compiled into the program "   \
                                       "here, launch them with <<<grid, block>>>");                          \
    }
REFUSED(cuModuleLoad, CUmodule *, const char *)
REFUSED(cuModuleLoadData, CUmodule *, const void *)
REFUSED(cuModuleLoadDataEx, CUmodule *, const void *, unsigned, CUjit_option *, void **)
REFUSED(cuModuleLoadFatBinary, CUmodule *, const void *)
REFUSED(cuModuleUnload, CUmodule)
REFUSED(cuModuleGetFunction, CUfunction *, CUmodule, const char *)
REFUSED(cuModuleGetGlobal, CUdeviceptr *, size_t *, CUmodule, const char *)
REFUSED(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
        CUstream, void **, void **)
REFUSED(cuLaunchCooperativeKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
        unsigned, CUstream, void **)
REFUSED(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *, CUfunction, int, size_t)

} // extern "C"
