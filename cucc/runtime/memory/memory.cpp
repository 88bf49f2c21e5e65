// SPDX-License-Identifier: MIT
// The calls that allocate and free memory, and those that ask about an address.
#include "race.h"
#include "registry.h"
#include "stream.h"

namespace cuda_cpu {

__thread Site call_site;

SIMPLE_CALL(cudaMalloc, (void **pointer, size_t bytes), BEGIN(pointer),
            allocate(call, pointer, bytes, MemoryKind::device, 0))

// Common part of cudaMallocAsync and the like. A null `pool` stands for the device's current pool. The memory
// is there at once; where work in streams runs late, it is filled when the allocation comes in the stream.
static cudaError_t malloc_from(cudaMemPool_t pool, void **pointer, size_t bytes, cudaStream_t stream) {
    TRY(allocate("cudaMallocAsync", pointer, bytes, MemoryKind::device, memory_of_stream));
    enter_in_pool(pool, *pointer, bytes);
    if (!at_once() && *pointer)
        return submit(stream, {"cudaMallocAsync", Allocate{*pointer, bytes}});
    return cudaSuccess;
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream) {
    BEGIN(pointer, stream);
    if (!at_once() && captures(stream))
        return allocate_captured(call, pointer, bytes, stream);
    return malloc_from(nullptr, pointer, bytes, stream);
}

// Allocates rows that are padded to the alignment of textures.
static cudaError_t malloc_rows(const char *call, void **pointer, size_t *pitch, size_t width, size_t rows,
                               size_t slices) {
    const size_t align = properties(current_device()).textureAlignment;
    const size_t padded = (width + align - 1) / align * align;
    size_t all, bytes;
    if (padded < width || __builtin_mul_overflow(rows, slices, &all) ||
        __builtin_mul_overflow(padded, all, &bytes))
        return set_last_error(cudaErrorMemoryAllocation);
    *pitch = bytes ? padded : 0;
    return allocate(call, pointer, bytes, MemoryKind::device, 0);
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t rows) {
    BEGIN();
    FAIL_IF(!pointer || !pitch, cudaErrorInvalidValue, "pointer or pitch is NULL");
    return malloc_rows(call, pointer, pitch, width, rows, 1);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr *pointer, cudaExtent extent) {
    BEGIN(pointer);
    cudaPitchedPtr made = {nullptr, 0, extent.width, extent.height};
    TRY(malloc_rows(call, &made.ptr, &made.pitch, extent.width, extent.height, extent.depth));
    return store(pointer, made);
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    BEGIN(pointer);
    FAIL_IF(flags != cudaMemAttachGlobal && flags != cudaMemAttachHost, cudaErrorInvalidValue,
            "flags are 0x%x, must be cudaMemAttachGlobal or cudaMemAttachHost", flags);
    return allocate(call, pointer, bytes, MemoryKind::managed, flags);
}

cudaError_t malloc_host(const char *call, void **pointer, size_t bytes, unsigned flags) {
    BEGIN_IN(pointer);
    FAIL_IF(flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined),
            cudaErrorInvalidValue, "0x%x is not a valid combination of flags", flags);
    return allocate(call, pointer, bytes, MemoryKind::pinned, flags);
}

FORWARD(cudaMallocHost, (void **pointer, size_t bytes),
        malloc_host(__func__, pointer, bytes, cudaHostAllocDefault))
FORWARD(cudaHostAlloc, (void **pointer, size_t bytes, unsigned flags),
        malloc_host(__func__, pointer, bytes, flags))

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
    BEGIN();
    FAIL_IF(!pointer || bytes == 0, cudaErrorInvalidValue, "cannot register %zu bytes at %p", bytes, pointer);
    FAIL_IF(flags & ~(cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory |
                      cudaHostRegisterReadOnly),
            cudaErrorInvalidValue, "0x%x is not a valid combination of flags", flags);
    FAIL_IF(flags & cudaHostRegisterIoMemory, cudaErrorInvalidValue, "I/O memory is not supported");
    Registry &r = registry();
    std::unique_lock lock(r.mutex);
    const auto next = r.live.lower_bound((char *)pointer + bytes);
    if (next != r.live.begin()) {
        const Allocation a = std::prev(next)->second;
        if (a.base + a.size > pointer) {
            lock.unlock();
            return fail(a.kind == MemoryKind::registered ? cudaErrorHostMemoryAlreadyRegistered
                                                         : cudaErrorInvalidValue,
                        "%s: %zu bytes at %p overlap %s", call, bytes, pointer, describe(a).c_str());
        }
    }
    if (race_track)
        race_track(pointer, bytes);
    r.live[(char *)pointer] = {(char *)pointer,  bytes, MemoryKind::registered,
                               current_device(), flags, call_site};
    return cudaSuccess;
}

} // namespace cuda_cpu

// Called before memory is freed: waits for the work that may use it.
static cudaError_t wait_for_devices(const char *call) {
    if (at_once())
        return cudaSuccess;
    TRY(refuse_unsafe(call));
    return finish_device(-1);
}

cudaError_t cudaFree(void *pointer) {
    BEGIN();
    if (!pointer)
        return cudaSuccess;
    TRY(wait_for_devices(call));
    return graph_owns(pointer) ? cudaSuccess : free_device(call, pointer);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    BEGIN(stream);
    if (!at_once())
        return release(call, pointer, stream);
    return graph_owns(pointer) ? cudaSuccess : free_device(call, pointer);
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    BEGIN(pointer);
    int device;
    TRY(check_pool(call, pool, &device));
    TRY(check_stream(call, stream));
    if (!at_once() && captures(stream))
        return allocate_captured(call, pointer, bytes, stream);
    const OnDevice on(device);
    return malloc_from(pool, pointer, bytes, stream);
}

cudaError_t cudaFreeHost(void *pointer) {
    BEGIN();
    if (!pointer)
        return cudaSuccess;
    TRY(wait_for_devices(call));
    Allocation a;
    const cudaError_t error = take_out(call, pointer, a, "allocated by cudaMallocHost or cudaHostAlloc",
                                       MemoryKind::pinned, MemoryKind::pinned);
    if (!error)
        free_memory(a.base);
    return error;
}

cudaError_t cudaHostUnregister(void *pointer) {
    BEGIN(pointer);
    Allocation a;
    TRY(wait_for_devices(call));
    FAIL_IF(!find_allocation(pointer), cudaErrorHostMemoryNotRegistered, "%p is not registered", pointer);
    return take_out(call, pointer, a, "registered", MemoryKind::registered, MemoryKind::registered);
}

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host, unsigned flags) {
    BEGIN(device_pointer);
    FAIL_IF(flags, cudaErrorInvalidValue, "flags are 0x%x, must be 0", flags);
    const auto a = find_allocation(host);
    FAIL_IF(!a || a->kind == MemoryKind::device || a->kind == MemoryKind::managed, cudaErrorInvalidValue,
            "%p is not from cudaHostAlloc or cudaHostRegister", host);
    *device_pointer = host; // with unified addressing all pinned memory is mapped, whatever its flags are
    return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
    BEGIN(flags);
    const auto a = find_allocation(host);
    FAIL_IF(!a || (a->kind != MemoryKind::pinned && a->kind != MemoryKind::registered), cudaErrorInvalidValue,
            "%p is not pinned host memory", host);
    return store(flags, a->flags);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    BEGIN(free_bytes, total_bytes);
    *total_bytes = properties(current_device()).totalGlobalMem;
    Registry &r = registry();
    const size_t available = available_memory();
    std::shared_lock lock(r.mutex);
    return store(free_bytes,
                 std::min(*total_bytes - std::min(*total_bytes, r.used[current_device()]), available));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
    BEGIN(attributes);
    void *const p = const_cast<void *>(pointer);
    const auto set = [&](cudaMemoryType type, int device, bool on_device, bool on_host) {
        *attributes = {};
        attributes->type = type;
        attributes->device = device;
        attributes->devicePointer = on_device ? p : nullptr;
        attributes->hostPointer = on_host ? p : nullptr;
        return cudaSuccess;
    };
    if (const SymbolSection *symbols = symbol_section(pointer)) {
        const bool managed = !symbols->per_device && symbols->writable;
        return set(managed ? cudaMemoryTypeManaged : cudaMemoryTypeDevice, current_device(), true, managed);
    }
    const auto a = find_allocation(pointer);
    if (!a)
        return set(cudaMemoryTypeUnregistered, cudaInvalidDeviceId, false, true);
    if (a->kind == MemoryKind::device || a->kind == MemoryKind::managed)
        return set(a->kind == MemoryKind::device ? cudaMemoryTypeDevice : cudaMemoryTypeManaged, a->device,
                   true, a->kind == MemoryKind::managed);
    const bool pinned = a->kind == MemoryKind::pinned;
    return set(cudaMemoryTypeHost, a->device,
               a->flags & (pinned ? cudaHostAllocMapped : cudaHostRegisterMapped), true);
}
