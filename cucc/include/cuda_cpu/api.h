// SPDX-License-Identifier: MIT
// The host side of the CUDA runtime: the functions of CUDA 13; their values and structures are in values.h.
// What CUDA 13 removed (clockRate in cudaDeviceProp, cudaThreadSynchronize …) is missing here too, so that a
// program that compiles here also compiles with nvcc. The exceptions are calls whose parameters CUDA 13
// changed, such as cudaMemAdvise: in C++ they also have the signatures of CUDA 11 and 12. The header works
// in C; C++ also gets the typed overloads.
#pragma once
#define __DRIVER_TYPES_H__
#define __TEXTURE_TYPES_H__
#define __SURFACE_TYPES_H__
#define __CUDA_RUNTIME_API_H__

#include "letters_off.h"
#include <stddef.h>
#include "values.h"

// ---- functions ----

#ifdef __cplusplus
#define CUDA_CPU_OR(value) = value // a default argument; empty in C
extern "C" {
#else
#define CUDA_CPU_OR(value)
#endif
#define CUDA_CPU_STREAM cudaStream_t stream CUDA_CPU_OR(0) // the last parameter of many functions

// Errors
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

// Devices
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *wanted);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device);
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id);
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cudaGetDeviceFlags(unsigned int *flags);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value);
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config);
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config);
// A setting of old devices, which has no effect
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config);
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config);

cudaError_t cudaSetValidDevices(int *devices, int count);
cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags);
cudaError_t cudaCtxResetPersistingL2Cache(void);
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const cudaChannelFormatDesc *format,
                                                 int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int device, int peer);
// The address of a function of cuda.h by its name. The version is not looked at: there is one of each.
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned int version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result CUDA_CPU_OR(NULL));

// Memory
cudaError_t cudaFree(void *pointer);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host, unsigned int flags);
cudaError_t cudaHostGetFlags(unsigned int *flags, void *host);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, CUDA_CPU_STREAM);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width_bytes,
                         size_t rows, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width_bytes, size_t rows, cudaMemcpyKind kind, CUDA_CPU_STREAM);
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                CUDA_CPU_STREAM);
cudaError_t cudaMemset(void *to, int byte, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, CUDA_CPU_STREAM);
cudaError_t cudaMemset2D(void *to, size_t pitch, int byte, size_t width_bytes, size_t rows);
cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int byte, size_t width_bytes, size_t rows,
                              CUDA_CPU_STREAM);
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location);
cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, struct cudaMemLocation location,
                                 unsigned int flags, CUDA_CPU_STREAM);

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *params);
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *params, CUDA_CPU_STREAM);
cudaError_t cudaMemset3D(cudaPitchedPtr to, int byte, cudaExtent extent);
cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int byte, cudaExtent extent, CUDA_CPU_STREAM);

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t bytes CUDA_CPU_OR(0),
                                     unsigned int flags CUDA_CPU_OR(cudaMemAttachSingle));

// Memory pools. They only count the allocated bytes; all memory comes from the same heap.
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count);
cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location);
cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);

// Calls that are only refused, by runtime/device/unsupported.cpp: clusters, sharing memory between processes,
// and external memory and semaphores (of Vulkan, Direct3D)
#define CUDA_CPU_REFUSED(CLUSTERS, PROCESSES, EXTERNAL)                                                      \
    CLUSTERS(cudaOccupancyMaxActiveClusters, int *clusters, const void *kernel,                              \
             const cudaLaunchConfig_t *config)                                                               \
    CLUSTERS(cudaOccupancyMaxPotentialClusterSize, int *blocks, const void *kernel,                          \
             const cudaLaunchConfig_t *config)                                                               \
    PROCESSES(cudaMemPoolExportToShareableHandle, void *handle, cudaMemPool_t pool,                          \
              enum cudaMemAllocationHandleType type, unsigned int flags)                                     \
    PROCESSES(cudaMemPoolImportFromShareableHandle, cudaMemPool_t *pool, void *handle,                       \
              enum cudaMemAllocationHandleType type, unsigned int flags)                                     \
    PROCESSES(cudaMemPoolExportPointer, struct cudaMemPoolPtrExportData *data, void *pointer)                \
    PROCESSES(cudaMemPoolImportPointer, void **pointer, cudaMemPool_t pool,                                  \
              struct cudaMemPoolPtrExportData *data)                                                         \
    PROCESSES(cudaIpcGetMemHandle, cudaIpcMemHandle_t *handle, void *pointer)                                \
    PROCESSES(cudaIpcOpenMemHandle, void **pointer, cudaIpcMemHandle_t handle, unsigned int flags)           \
    PROCESSES(cudaIpcCloseMemHandle, void *pointer)                                                          \
    PROCESSES(cudaIpcGetEventHandle, cudaIpcEventHandle_t *handle, cudaEvent_t event)                        \
    PROCESSES(cudaIpcOpenEventHandle, cudaEvent_t *event, cudaIpcEventHandle_t handle)                       \
    EXTERNAL(cudaImportExternalMemory, cudaExternalMemory_t *memory,                                         \
             const cudaExternalMemoryHandleDesc *desc)                                                       \
    EXTERNAL(cudaDestroyExternalMemory, cudaExternalMemory_t memory)                                         \
    EXTERNAL(cudaExternalMemoryGetMappedBuffer, void **pointer, cudaExternalMemory_t memory,                 \
             const cudaExternalMemoryBufferDesc *desc)                                                       \
    EXTERNAL(cudaExternalMemoryGetMappedMipmappedArray, cudaMipmappedArray_t *array,                         \
             cudaExternalMemory_t memory, const cudaExternalMemoryMipmappedArrayDesc *desc)                  \
    EXTERNAL(cudaImportExternalSemaphore, cudaExternalSemaphore_t *semaphore,                                \
             const cudaExternalSemaphoreHandleDesc *desc)                                                    \
    EXTERNAL(cudaDestroyExternalSemaphore, cudaExternalSemaphore_t semaphore)                                \
    EXTERNAL(cudaSignalExternalSemaphoresAsync, const cudaExternalSemaphore_t *semaphores,                   \
             const cudaExternalSemaphoreSignalParams *params, unsigned int count, CUDA_CPU_STREAM)           \
    EXTERNAL(cudaWaitExternalSemaphoresAsync, const cudaExternalSemaphore_t *semaphores,                     \
             const cudaExternalSemaphoreWaitParams *params, unsigned int count, CUDA_CPU_STREAM)
#define CUDA_CPU_DECLARE(name, ...) cudaError_t name(__VA_ARGS__);
CUDA_CPU_REFUSED(CUDA_CPU_DECLARE, CUDA_CPU_DECLARE, CUDA_CPU_DECLARE)

// Arrays. Offsets in x and widths of copies are in bytes, heights in rows. An array of height 0 is
// 1-D and has one row; a depth counts slices, layers, or the faces of cubes.
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind);
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *desc, cudaArray_const_t array);
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *desc, cudaExtent *extent, unsigned int *flags,
                             cudaArray_t array);
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array);
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *array, cudaMipmappedArray_t of, unsigned int level);
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                size_t width_bytes, size_t rows, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                     size_t width_bytes, size_t rows, cudaMemcpyKind kind, CUDA_CPU_STREAM);
cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                  size_t width_bytes, size_t rows, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                       size_t width_bytes, size_t rows, cudaMemcpyKind kind, CUDA_CPU_STREAM);
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                     size_t from_x, size_t from_y, size_t width_bytes, size_t rows,
                                     cudaMemcpyKind kind CUDA_CPU_OR(cudaMemcpyDeviceToDevice));
// Deprecated copies of consecutive bytes, which continue across the ends of rows.
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                                   cudaMemcpyKind kind, CUDA_CPU_STREAM);
cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                     cudaMemcpyKind kind, CUDA_CPU_STREAM);
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                              cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind kind);

// Textures and surfaces. The functions for kernels are in texture.h.
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *desc, const struct cudaResourceViewDesc *view);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture);
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc *resource, cudaTextureObject_t texture);
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc *desc, cudaTextureObject_t texture);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *surface, const cudaResourceDesc *resource);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface);
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *resource, cudaSurfaceObject_t surface);

// Buffers and textures of a graphics library. cuda_gl_interop.h registers those of OpenGL.
cudaError_t cudaGraphicsUnregisterResource(cudaGraphicsResource_t resource);
cudaError_t cudaGraphicsResourceSetMapFlags(cudaGraphicsResource_t resource, unsigned int flags);
cudaError_t cudaGraphicsUnmapResources(int count, cudaGraphicsResource_t *resources, CUDA_CPU_STREAM);
cudaError_t cudaGraphicsResourceGetMappedPointer(void **pointer, size_t *bytes,
                                                 cudaGraphicsResource_t resource);
cudaError_t cudaGraphicsSubResourceGetMappedArray(cudaArray_t *array, cudaGraphicsResource_t resource,
                                                  unsigned int index, unsigned int level);

// __device__ and __constant__ variables, of unknown types: only the end of the linker section is checked
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes,
                               size_t offset CUDA_CPU_OR(0),
                               cudaMemcpyKind kind CUDA_CPU_OR(cudaMemcpyHostToDevice));
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset CUDA_CPU_OR(0),
                                 cudaMemcpyKind kind CUDA_CPU_OR(cudaMemcpyDeviceToHost));
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, CUDA_CPU_STREAM);
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, CUDA_CPU_STREAM);
cudaError_t cudaGetSymbolAddress(void **device_pointer, const void *symbol);

// Streams and events.
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id);
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue *value);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags CUDA_CPU_OR(0));
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                  unsigned int flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventRecord(cudaEvent_t event, CUDA_CPU_STREAM);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, CUDA_CPU_STREAM, unsigned int flags CUDA_CPU_OR(0));
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaEventDestroy(cudaEvent_t event);

// Kernels
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel);
cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncSetCacheConfig(const void *kernel, enum cudaFuncCache config);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads,
                                                          size_t dynamic_bytes);

cudaError_t cudaFuncGetName(const char **name, const void *kernel);
cudaError_t cudaFuncSetSharedMemConfig(const void *kernel, enum cudaSharedMemConfig config);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *kernel,
                                                                   int threads, size_t dynamic_bytes,
                                                                   unsigned int flags);

#ifdef __cplusplus // the overloads below also note the caller's line
} // extern "C"
namespace cuda_cpu {
extern "C" {
#endif
cudaError_t cudaMalloc(void **pointer, size_t bytes);
cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width_bytes, size_t rows);
cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags);
cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width,
                            size_t height, unsigned int flags);
cudaError_t cudaMalloc3D(cudaPitchedPtr *pointer, cudaExtent extent);
cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, cudaExtent extent,
                              unsigned int flags);
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array, const cudaChannelFormatDesc *desc,
                                     cudaExtent extent, unsigned int levels, unsigned int flags);
cudaError_t cudaMallocHost(void **pointer, size_t bytes);
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags);
cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags);
cudaError_t cudaGraphicsMapResources(int count, cudaGraphicsResource_t *resources, cudaStream_t stream);
#ifdef __cplusplus
} // extern "C"

struct Site { // a line of the program's source
    const char *file;
    int line;
};
// The line of the host thread's call, for messages about what it makes. The file is null in a call from C.
extern __thread Site call_site;
struct CallFrom {
    CallFrom(const char *file, int line) { call_site = {file, line}; }
    ~CallFrom() { call_site = {nullptr, 0}; }
};
cudaError_t malloc_host(const char *call, void **pointer, size_t bytes, unsigned flags);

// A copy between a variable and other memory, to the variable or from it. `size` is that of the whole
// variable in bytes, 0 if unknown (`extern __constant__ int x[];`).
cudaError_t copy_symbol(const char *call, bool to_symbol, const void *symbol, size_t size, const void *other,
                        size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream,
                        bool asynchronous);
cudaError_t symbol_size(size_t *bytes, const void *symbol, size_t size);
// Finds a __device__ or __constant__ variable, which is not static, by its name; null if there is none.
void *find_variable(const char *name, size_t *bytes, void *library = nullptr);
// Gives each device its own value of a host variable. Called before main.
void per_device_variable(void *variable, size_t bytes);
// The number of bytes from a pointer to the end of its allocation; 0 if it is in no allocation.
size_t bytes_from(const void *pointer);

template <class T> struct SizeOf { static constexpr size_t value = sizeof(T); };
template <class T> struct SizeOf<T[]> { static constexpr size_t value = 0; };
template <class T> inline const void *address_of(T &symbol) {
    return (const void *)__builtin_addressof(symbol);
}
} // namespace cuda_cpu

// Two default arguments with the file and the line of the call: they are evaluated where a function is
// called, so messages can name the program's line.
#define CUDA_CPU_SITE const char *cu_file = __builtin_FILE(), int cu_line = __builtin_LINE()
#define CUDA_CPU_HERE                                                                                        \
    ::cuda_cpu::Site {                                                                                       \
        cu_file, cu_line                                                                                     \
    }
// A function that notes its caller's line and calls that of C
#define CUDA_CPU_NOTED(name, PARAMETERS, ...)                                                                \
    inline cudaError_t name(CUDA_CPU_LIST PARAMETERS, CUDA_CPU_SITE) {                                       \
        const cuda_cpu::CallFrom here(cu_file, cu_line);                                                     \
        return cuda_cpu::__VA_ARGS__;                                                                        \
    }
// Functions that store an address in a pointer to any type
#define CUDA_CPU_ALLOCATE(name, PARAMETERS, ...)                                                             \
    CUDA_CPU_NOTED(name, (void **pointer, CUDA_CPU_LIST PARAMETERS), __VA_ARGS__)                            \
    template <class T> inline cudaError_t name(T **typed, CUDA_CPU_LIST PARAMETERS, CUDA_CPU_SITE) {         \
        const cuda_cpu::CallFrom here(cu_file, cu_line);                                                     \
        void **const pointer = (void **)typed;                                                               \
        return cuda_cpu::__VA_ARGS__;                                                                        \
    }
CUDA_CPU_ALLOCATE(cudaMalloc, (size_t bytes), cudaMalloc(pointer, bytes))
CUDA_CPU_ALLOCATE(cudaMallocAsync, (size_t bytes, cudaStream_t stream),
                  cudaMallocAsync(pointer, bytes, stream))
CUDA_CPU_ALLOCATE(cudaMallocPitch, (size_t * pitch, size_t width_bytes, size_t rows),
                  cudaMallocPitch(pointer, pitch, width_bytes, rows))
CUDA_CPU_ALLOCATE(cudaMallocManaged, (size_t bytes, unsigned int flags = cudaMemAttachGlobal),
                  cudaMallocManaged(pointer, bytes, flags))
CUDA_CPU_ALLOCATE(cudaMallocHost, (size_t bytes, unsigned int flags = cudaHostAllocDefault),
                  malloc_host("cudaMallocHost", pointer, bytes, flags))
CUDA_CPU_ALLOCATE(cudaHostAlloc, (size_t bytes, unsigned int flags), cudaHostAlloc(pointer, bytes, flags))
CUDA_CPU_NOTED(cudaHostRegister, (void *pointer, size_t bytes, unsigned int flags),
               cudaHostRegister(pointer, bytes, flags))
CUDA_CPU_NOTED(cudaMalloc3D, (cudaPitchedPtr * pointer, cudaExtent extent), cudaMalloc3D(pointer, extent))
CUDA_CPU_NOTED(cudaMallocArray,
               (cudaArray_t * array, const cudaChannelFormatDesc *desc, size_t width, size_t height = 0,
                unsigned int flags = cudaArrayDefault),
               cudaMallocArray(array, desc, width, height, flags))
CUDA_CPU_NOTED(cudaMalloc3DArray,
               (cudaArray_t * array, const cudaChannelFormatDesc *desc, cudaExtent extent,
                unsigned int flags = cudaArrayDefault),
               cudaMalloc3DArray(array, desc, extent, flags))
CUDA_CPU_NOTED(cudaMallocMipmappedArray,
               (cudaMipmappedArray_t * array, const cudaChannelFormatDesc *desc, cudaExtent extent,
                unsigned int levels, unsigned int flags = cudaArrayDefault),
               cudaMallocMipmappedArray(array, desc, extent, levels, flags))
CUDA_CPU_NOTED(cudaGraphicsMapResources,
               (int count, cudaGraphicsResource_t *resources, cudaStream_t stream = 0),
               cudaGraphicsMapResources(count, resources, stream))
inline cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return cudaMallocFromPoolAsync(pointer, bytes, pool, stream);
}
#define CUDA_CPU_OVERLOAD(name, PARAMETERS, ...)                                                             \
    inline cudaError_t name PARAMETERS {                                                                     \
        return name(__VA_ARGS__);                                                                            \
    }
// Overloads that take a pointer, a variable or a kernel of any type in place of its address
#define CUDA_CPU_ANY template <class T> CUDA_CPU_OVERLOAD
CUDA_CPU_ANY(cudaMallocAsync, (T * *pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
             (void **)pointer, bytes, pool, stream)
CUDA_CPU_ANY(cudaMallocFromPoolAsync, (T * *pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
             (void **)pointer, bytes, pool, stream)
CUDA_CPU_ANY(cudaStreamAttachMemAsync,
             (cudaStream_t stream, T *pointer, size_t bytes = 0, unsigned int flags = cudaMemAttachSingle),
             stream, (void *)pointer, bytes, flags)
CUDA_CPU_ANY(cudaHostGetDevicePointer, (T * *pointer, void *host, unsigned flags), (void **)pointer, host,
             flags)
CUDA_CPU_ANY(cudaGetSymbolAddress, (void **address, const T &symbol), address, cuda_cpu::address_of(symbol))
CUDA_CPU_ANY(cudaFuncGetAttributes, (cudaFuncAttributes * a, T *kernel), a, (const void *)kernel)
CUDA_CPU_ANY(cudaFuncSetAttribute, (T * kernel, cudaFuncAttribute attribute, int value), (const void *)kernel,
             attribute, value)
CUDA_CPU_ANY(cudaFuncSetCacheConfig, (T * kernel, cudaFuncCache config), (const void *)kernel, config)
CUDA_CPU_ANY(cudaFuncSetSharedMemConfig, (T * kernel, cudaSharedMemConfig config), (const void *)kernel,
             config)
// The signatures of CUDA 12, which take the number of a device, or cudaCpuDeviceId.
inline cudaMemLocation cuda_cpu_location(int device) {
    if (device == cudaCpuDeviceId)
        return {cudaMemLocationTypeHost, 0};
    return {cudaMemLocationTypeDevice, device};
}
CUDA_CPU_OVERLOAD(cudaMemAdvise, (const void *pointer, size_t bytes, cudaMemoryAdvise advice, int device),
                  pointer, bytes, advice, cuda_cpu_location(device))
CUDA_CPU_OVERLOAD(cudaMemPrefetchAsync,
                  (const void *pointer, size_t bytes, int device, cudaStream_t stream = 0), pointer, bytes,
                  cuda_cpu_location(device), 0, stream)

// The address and the size of `symbol`
#define CUDA_CPU_SYMBOL cuda_cpu::address_of(symbol), cuda_cpu::SizeOf<T>::value
template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    return cuda_cpu::copy_symbol(__func__, true, CUDA_CPU_SYMBOL, from, bytes, offset, kind, 0, false);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void *to, const T &symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    return cuda_cpu::copy_symbol(__func__, false, CUDA_CPU_SYMBOL, to, bytes, offset, kind, 0, false);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *from, size_t bytes, size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t stream = 0) {
    return cuda_cpu::copy_symbol(__func__, true, CUDA_CPU_SYMBOL, from, bytes, offset, kind, stream, true);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void *to, const T &symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind, cudaStream_t stream = 0) {
    return cuda_cpu::copy_symbol(__func__, false, CUDA_CPU_SYMBOL, to, bytes, offset, kind, stream, true);
}
template <class T> inline cudaError_t cudaGetSymbolSize(size_t *bytes, const T &symbol) {
    return cuda_cpu::symbol_size(bytes, CUDA_CPU_SYMBOL);
}
CUDA_CPU_RETURN(cudaError_t, cudaEventCreate, (cudaEvent_t * event, unsigned int flags),
                cudaEventCreateWithFlags(event, flags))
#endif

static inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
    cudaExtent extent = {width, height, depth};
    return extent;
}
static inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) {
    cudaPos position = {x, y, z};
    return position;
}
static inline cudaPitchedPtr make_cudaPitchedPtr(void *pointer, size_t pitch, size_t width, size_t rows) {
    cudaPitchedPtr pitched = {pointer, pitch, width, rows};
    return pitched;
}

#include "graph.h"
#include "letters_on.h"
