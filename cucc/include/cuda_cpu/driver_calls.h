// SPDX-License-Identifier: MIT
// The calls of the driver API that are calls of the runtime API by another name: name, parameters, and what
// they call. cuda.h declares them and runtime/driver.cpp defines them; pointer_of() is defined there.
#pragma once

#define CUDA_CPU_DRIVER_COPY(SAME, name, To, From, kind)                                                     \
    SAME(name, (To to, From from, size_t bytes), cudaMemcpy(pointer_of(to), pointer_of(from), bytes, kind))  \
    SAME(name##Async, (To to, From from, size_t bytes, CUstream stream),                                     \
         cudaMemcpyAsync(pointer_of(to), pointer_of(from), bytes, kind, stream))

#define CUDA_CPU_DRIVER_CALLS(SAME)                                                                          \
    SAME(cuDeviceGetPCIBusId, (char *id, int length, CUdevice device),                                       \
         cudaDeviceGetPCIBusId(id, length, device))                                                          \
    SAME(cuDeviceGetByPCIBusId, (CUdevice * device, const char *id), cudaDeviceGetByPCIBusId(device, id))    \
    SAME(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer),                                  \
         cudaDeviceCanAccessPeer(can, device, peer))                                                         \
    SAME(cuCtxSynchronize, (void), cudaDeviceSynchronize())                                                  \
    SAME(cuCtxSetLimit, (CUlimit limit, size_t value), cudaDeviceSetLimit((cudaLimit)limit, value))          \
    SAME(cuCtxGetLimit, (size_t * value, CUlimit limit), cudaDeviceGetLimit(value, (cudaLimit)limit))        \
    SAME(cuCtxGetStreamPriorityRange, (int *least, int *greatest),                                           \
         cudaDeviceGetStreamPriorityRange(least, greatest))                                                  \
    SAME(cuMemGetInfo, (size_t * free_bytes, size_t * total_bytes), cudaMemGetInfo(free_bytes, total_bytes)) \
    SAME(cuMemAllocManaged, (CUdeviceptr * pointer, size_t bytes, unsigned int flags),                       \
         ::cuda_cpu::cudaMallocManaged((void **)pointer, bytes, flags))                                      \
    SAME(cuMemAllocAsync, (CUdeviceptr * pointer, size_t bytes, CUstream stream),                            \
         ::cuda_cpu::cudaMallocAsync((void **)pointer, bytes, stream))                                       \
    SAME(cuMemFree, (CUdeviceptr pointer), cudaFree(pointer_of(pointer)))                                    \
    SAME(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), cudaFreeAsync(pointer_of(pointer), stream)) \
    SAME(cuMemAllocHost, (void **pointer, size_t bytes),                                                     \
         ::cuda_cpu::malloc_host("cuMemAllocHost", pointer, bytes, 0))                                       \
    SAME(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned int flags),                                 \
         ::cuda_cpu::malloc_host("cuMemHostAlloc", pointer, bytes, flags))                                   \
    SAME(cuMemFreeHost, (void *pointer), cudaFreeHost(pointer))                                              \
    SAME(cuMemHostRegister, (void *pointer, size_t bytes, unsigned int flags),                               \
         ::cuda_cpu::cudaHostRegister(pointer, bytes, flags))                                                \
    SAME(cuMemHostUnregister, (void *pointer), cudaHostUnregister(pointer))                                  \
    SAME(cuMemHostGetDevicePointer, (CUdeviceptr * pointer, void *host, unsigned int flags),                 \
         cudaHostGetDevicePointer((void **)pointer, host, flags))                                            \
    SAME(cuMemHostGetFlags, (unsigned int *flags, void *host), cudaHostGetFlags(flags, host))                \
    CUDA_CPU_DRIVER_COPY(SAME, cuMemcpy, CUdeviceptr, CUdeviceptr, cudaMemcpyDefault)                        \
    CUDA_CPU_DRIVER_COPY(SAME, cuMemcpyHtoD, CUdeviceptr, const void *, cudaMemcpyHostToDevice)              \
    CUDA_CPU_DRIVER_COPY(SAME, cuMemcpyDtoH, void *, CUdeviceptr, cudaMemcpyDeviceToHost)                    \
    CUDA_CPU_DRIVER_COPY(SAME, cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, cudaMemcpyDeviceToDevice)             \
    SAME(cuStreamCreate, (CUstream * stream, unsigned int flags), cudaStreamCreateWithFlags(stream, flags))  \
    SAME(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),                  \
         cudaStreamCreateWithPriority(stream, flags, priority))                                              \
    SAME(cuStreamDestroy, (CUstream stream), cudaStreamDestroy(stream))                                      \
    SAME(cuStreamSynchronize, (CUstream stream), cudaStreamSynchronize(stream))                              \
    SAME(cuStreamQuery, (CUstream stream), cudaStreamQuery(stream))                                          \
    SAME(cuStreamGetFlags, (CUstream stream, unsigned int *flags), cudaStreamGetFlags(stream, flags))        \
    SAME(cuStreamGetPriority, (CUstream stream, int *priority), cudaStreamGetPriority(stream, priority))     \
    SAME(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),                            \
         cudaStreamWaitEvent(stream, event, flags))                                                          \
    SAME(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),                                 \
         cudaLaunchHostFunc(stream, function, data))                                                         \
    SAME(cuEventCreate, (CUevent * event, unsigned int flags), cudaEventCreateWithFlags(event, flags))       \
    SAME(cuEventDestroy, (CUevent event), cudaEventDestroy(event))                                           \
    SAME(cuEventRecord, (CUevent event, CUstream stream), cudaEventRecord(event, stream))                    \
    SAME(cuEventQuery, (CUevent event), cudaEventQuery(event))                                               \
    SAME(cuEventSynchronize, (CUevent event), cudaEventSynchronize(event))                                   \
    SAME(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end),                              \
         cudaEventElapsedTime(milliseconds, start, end))
