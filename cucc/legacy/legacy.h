// SPDX-License-Identifier: MIT
// What CUDA programs of 2010 use and CUDA 12 and 13 have removed (docs/legacy.md). It works with nvcc and on
// the CPU back end; the programs of this project never include it.
#pragma once

// Old programs do not include these headers, because headers of the old toolkit included them.
#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>
#include <cuda_runtime.h>

#ifndef __CU2CPP__
#include <dlfcn.h>
#include <cuda.h>
// `texture` below puts __constant__ before parameters too, where it has no meaning (1835), and host code
// writes the members of such variables (20091).
#pragma nv_diag_suppress 1835, 20044, 20091
#endif

// ---- calls that CUDA 4 renamed from cudaThread… to cudaDevice… ----

#define cudaThreadSynchronize    cudaDeviceSynchronize
#define cudaThreadExit           cudaDeviceReset
#define cudaThreadSetLimit       cudaDeviceSetLimit
#define cudaThreadGetLimit       cudaDeviceGetLimit
#define cudaThreadSetCacheConfig cudaDeviceSetCacheConfig
#define cudaThreadGetCacheConfig cudaDeviceGetCacheConfig

// ---- fields of cudaDeviceProp that CUDA 13 removed ----

namespace legacy {

struct DeviceProperties : cudaDeviceProp {
    int clockRate, memoryClockRate; // in kHz
    int deviceOverlap, kernelExecTimeoutEnabled, computeMode, maxTexture1DLinear;
    int singleToDoublePrecisionPerfRatio, cooperativeMultiDeviceLaunch;
    int maxTexture2DArray[3]; // maxTexture2DLayered since CUDA 4
};

} // namespace legacy

inline cudaError_t cudaGetDeviceProperties(legacy::DeviceProperties *properties, int device) {
    if (!properties)
        return cudaErrorInvalidValue;
    const struct {
        int *field;
        cudaDeviceAttr attribute;
    } removed[] = {
        {&properties->clockRate, cudaDevAttrClockRate},
        {&properties->memoryClockRate, cudaDevAttrMemoryClockRate},
        {&properties->deviceOverlap, cudaDevAttrGpuOverlap},
        {&properties->kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout},
        {&properties->computeMode, cudaDevAttrComputeMode},
        {&properties->maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth},
        {&properties->singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio},
    };
    cudaError_t error = cudaGetDeviceProperties(static_cast<cudaDeviceProp *>(properties), device);
    for (const auto &one : removed)
        if (error == cudaSuccess)
            error = cudaDeviceGetAttribute(one.field, one.attribute, device);
    properties->cooperativeMultiDeviceLaunch = 0;
    std::copy_n(properties->maxTexture2DLayered, 3, properties->maxTexture2DArray);
    return error;
}
#define cudaDeviceProp ::legacy::DeviceProperties

#ifdef __CUDACC__ // the rest is not for host sources

// ---- cudaGLSetGLDevice: since CUDA 5 it is not needed, and fails without a current OpenGL context ----

#ifndef __CU2CPP__
#define cudaGLSetGLDevice legacy_cudaGLSetGLDevice // also where cuda_gl_interop.h declares it
extern "C" inline cudaError_t legacy_cudaGLSetGLDevice(int device) {
    return cudaSetDevice(device);
}
#endif

// ---- until CUDA 12 these calls took the number of a device, now a location; the CPU back end has both ----

#ifndef __CU2CPP__
namespace legacy {

inline cudaMemLocation location(int device) {
    return {device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
            device == cudaCpuDeviceId ? 0 : device};
}

} // namespace legacy

inline cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice, int device) {
    return cudaMemAdvise(pointer, bytes, advice, legacy::location(device));
}
inline cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device,
                                        cudaStream_t stream = 0) {
    return cudaMemPrefetchAsync(pointer, bytes, legacy::location(device), 0, stream);
}
#endif

// ---- variables by name: until CUDA 4, a symbol could be a string, cudaMemcpyToSymbol("name", …) ----

namespace legacy {

#ifndef __CU2CPP__
static __global__ void anchor() {} // a kernel of the module whose variables are looked up

template <class F> inline F driver_function(const char *name) {
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) != cudaSuccess)
        function = nullptr;
    return (F)function;
}

// The address of a __device__ or __constant__ variable on the current device; null if there is none.
inline void *find_variable(const char *name, size_t *bytes) {
    const auto module_of = driver_function<CUresult (*)(CUmodule *, CUfunction)>("cuFuncGetModule");
    const auto global_of =
        driver_function<CUresult (*)(CUdeviceptr *, size_t *, CUmodule, const char *)>("cuModuleGetGlobal");
    cudaFunction_t function;
    CUmodule module;
    CUdeviceptr address;
    if (!module_of || !global_of || cudaGetFuncBySymbol(&function, (const void *)anchor) != cudaSuccess ||
        module_of(&module, (CUfunction)function) != CUDA_SUCCESS ||
        global_of(&address, bytes, module, name) != CUDA_SUCCESS)
        return nullptr;
    return (void *)address;
}
#else
inline void *find_variable(const char *name, size_t *bytes) {
    return cuda_cpu::find_variable(name, bytes);
}
#endif

} // namespace legacy

// The name of a static variable is not known at run time; then these calls fail as CUDA's did.
inline cudaError_t cudaMemcpyToSymbol(const char *name, const void *from, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    size_t size;
    if (char *const variable = (char *)legacy::find_variable(name, &size))
        return bytes > size || offset > size - bytes ? cudaErrorInvalidValue
                                                     : cudaMemcpy(variable + offset, from, bytes, kind);
    return cudaMemcpyToSymbol((const void *)name, from, bytes, offset, kind);
}
inline cudaError_t cudaMemcpyFromSymbol(void *to, const char *name, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    size_t size;
    if (const char *const variable = (const char *)legacy::find_variable(name, &size))
        return bytes > size || offset > size - bytes ? cudaErrorInvalidValue
                                                     : cudaMemcpy(to, variable + offset, bytes, kind);
    return cudaMemcpyFromSymbol(to, (const void *)name, bytes, offset, kind);
}
inline cudaError_t cudaGetSymbolAddress(void **address, const char *name) {
    size_t size;
    *address = legacy::find_variable(name, &size);
    return *address ? cudaSuccess : cudaGetSymbolAddress(address, (const void *)name);
}

// ---- warp operations of compute capability 1.2 to 6.x: the lanes that are active together ----

#define __any(predicate)    __any_sync(__activemask(), predicate)
#define __all(predicate)    __all_sync(__activemask(), predicate)
#define __ballot(predicate) __ballot_sync(__activemask(), predicate)
#define __shfl(...)         __shfl_sync(__activemask(), __VA_ARGS__)
#define __shfl_up(...)      __shfl_up_sync(__activemask(), __VA_ARGS__)
#define __shfl_down(...)    __shfl_down_sync(__activemask(), __VA_ARGS__)
#define __shfl_xor(...)     __shfl_xor_sync(__activemask(), __VA_ARGS__)

#include "textures.h"

#endif // __CUDACC__
