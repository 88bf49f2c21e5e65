// SPDX-License-Identifier: MIT
// Calls that the runtime has only to refuse them: sharing between processes, and memory of other graphics
// libraries.
#include "internal.h"

#define REFUSED(call, reason, ...)                                                                           \
    extern "C" cudaError_t call(__VA_ARGS__) {                                                               \
        return cuda_cpu::fail(cudaErrorNotSupported, "%s: " reason, __func__);                               \
    }
#define PROCESSES(call, ...) REFUSED(call, "sharing between processes is not supported", __VA_ARGS__)
#define EXTERNAL(call, ...)                                                                                  \
    REFUSED(call, "memory and semaphores of Vulkan and Direct3D are not supported", __VA_ARGS__)

PROCESSES(cudaMemPoolExportToShareableHandle, void *, cudaMemPool_t, cudaMemAllocationHandleType, unsigned)
PROCESSES(cudaMemPoolImportFromShareableHandle, cudaMemPool_t *, void *, cudaMemAllocationHandleType,
          unsigned)
PROCESSES(cudaMemPoolExportPointer, cudaMemPoolPtrExportData *, void *)
PROCESSES(cudaMemPoolImportPointer, void **, cudaMemPool_t, cudaMemPoolPtrExportData *)
PROCESSES(cudaIpcGetMemHandle, cudaIpcMemHandle_t *, void *)
PROCESSES(cudaIpcOpenMemHandle, void **, cudaIpcMemHandle_t, unsigned)
PROCESSES(cudaIpcCloseMemHandle, void *)
PROCESSES(cudaIpcGetEventHandle, cudaIpcEventHandle_t *, cudaEvent_t)
PROCESSES(cudaIpcOpenEventHandle, cudaEvent_t *, cudaIpcEventHandle_t)

EXTERNAL(cudaImportExternalMemory, cudaExternalMemory_t *, const cudaExternalMemoryHandleDesc *)
EXTERNAL(cudaDestroyExternalMemory, cudaExternalMemory_t)
EXTERNAL(cudaExternalMemoryGetMappedBuffer, void **, cudaExternalMemory_t,
         const cudaExternalMemoryBufferDesc *)
EXTERNAL(cudaExternalMemoryGetMappedMipmappedArray, cudaMipmappedArray_t *, cudaExternalMemory_t,
         const cudaExternalMemoryMipmappedArrayDesc *)
EXTERNAL(cudaImportExternalSemaphore, cudaExternalSemaphore_t *, const cudaExternalSemaphoreHandleDesc *)
EXTERNAL(cudaDestroyExternalSemaphore, cudaExternalSemaphore_t)
EXTERNAL(cudaSignalExternalSemaphoresAsync, const cudaExternalSemaphore_t *,
         const cudaExternalSemaphoreSignalParams *, unsigned, cudaStream_t)
EXTERNAL(cudaWaitExternalSemaphoresAsync, const cudaExternalSemaphore_t *,
         const cudaExternalSemaphoreWaitParams *, unsigned, cudaStream_t)
