// SPDX-License-Identifier: MIT
// Memory pools. A pool only counts the bytes that were allocated from it; all memory is from one heap.
#include "memory.h"

struct CUmemPoolHandle_st {
    int device;
    bool is_default;
    uint64_t used = 0, most_used = 0;
    uint64_t kept = 0, most_reserved = 0; // bytes of freed memory that the pool keeps
    uint64_t threshold = 0;               // bytes that the pool keeps at a synchronization
    int reuse[3] = {1, 1, 1};
    std::map<int, cudaMemAccessFlags> access{}; // the access that other devices have
};

namespace cuda_cpu {
namespace {

struct MemoryPools {
    std::mutex mutex;
    std::set<cudaMemPool_t> live;
    cudaMemPool_t defaults[max_devices] = {}, current[max_devices] = {};
    std::map<void *, std::pair<cudaMemPool_t, size_t>> allocations;
};

ONLY(pools, MemoryPools)

// The caller holds the mutex.
cudaMemPool_t default_pool(int device) {
    MemoryPools &p = pools();
    if (!p.defaults[device]) {
        p.defaults[device] = p.current[device] = new CUmemPoolHandle_st{device, true};
        p.live.insert(p.defaults[device]);
    }
    return p.defaults[device];
}

} // namespace

cudaError_t check_pool(const char *call, cudaMemPool_t pool, int *device) {
    std::lock_guard lock(pools().mutex);
    return pools().live.count(pool) ? store(device, pool->device)
                                    : no_such(call, cudaErrorInvalidValue, "a memory pool", pool);
}

void enter_in_pool(cudaMemPool_t pool, void *pointer, size_t bytes) {
    if (!pointer)
        return;
    MemoryPools &p = pools();
    std::lock_guard lock(p.mutex);
    if (!pool) {
        default_pool(current_device());
        pool = p.current[current_device()];
    }
    p.allocations[pointer] = {pool, bytes};
    pool->used += bytes;
    pool->kept -= std::min<uint64_t>(pool->kept, bytes);
    pool->most_used = std::max(pool->most_used, pool->used);
    pool->most_reserved = std::max(pool->most_reserved, pool->used + pool->kept);
}

void leave_pool(void *pointer) {
    MemoryPools &p = pools();
    std::lock_guard lock(p.mutex);
    const auto found = p.allocations.find(pointer);
    if (found == p.allocations.end())
        return;
    const auto [pool, bytes] = found->second;
    p.allocations.erase(found);
    if (!p.live.count(pool))
        return;
    pool->used -= bytes;
    const uint64_t room = pool->threshold - std::min(pool->threshold, pool->used);
    pool->kept = std::min(pool->kept + bytes, room);
}

} // namespace cuda_cpu

#define BEGIN_POOLS(...)                                                                                     \
    BEGIN(__VA_ARGS__);                                                                                      \
    std::lock_guard lock(pools().mutex)

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties) {
    BEGIN(pool, properties);
    FAIL_IF(properties->allocType != cudaMemAllocationTypePinned ||
                properties->location.type != cudaMemLocationTypeDevice,
            cudaErrorInvalidValue, "a pool is of pinned memory on a device");
    if (check_device(call, properties->location.id))
        return cudaErrorInvalidValue;
    FAIL_IF(properties->handleTypes != cudaMemHandleTypeNone, cudaErrorNotSupported,
            "memory shared between processes is not supported");
    std::lock_guard lock(pools().mutex);
    *pool = new CUmemPoolHandle_st{properties->location.id, false};
    pools().live.insert(*pool);
    return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    BEGIN_POOLS(pool);
    FAIL_IF(pool->is_default, cudaErrorInvalidValue, "the default pool cannot be destroyed");
    if (pools().current[pool->device] == pool)
        pools().current[pool->device] = pools().defaults[pool->device];
    pools().live.erase(pool);
    delete pool; // the pool's memory stays allocated until it is freed
    return cudaSuccess;
}

SIMPLE_CALL(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device), BEGIN_POOLS(pool, device),
            store(pool, default_pool(device)))

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    BEGIN_POOLS(pool, device);
    default_pool(device);
    return store(pool, pools().current[device]);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    BEGIN();
    int of;
    TRY(check_device(call, device));
    TRY(check_pool(call, pool, &of));
    FAIL_IF(of != device, cudaErrorInvalidValue, "the pool belongs to device %d", of);
    std::lock_guard lock(pools().mutex);
    default_pool(device);
    pools().current[device] = pool;
    return cudaSuccess;
}

SIMPLE_CALL(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), BEGIN_POOLS(pool),
            store(&pool->kept, std::min<uint64_t>(pool->kept, keep - std::min<uint64_t>(keep, pool->used))))

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
    BEGIN_POOLS(value, pool);
    switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
        pool->reuse[attribute - 1] = *(int *)value;
        return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
        pool->threshold = *(uint64_t *)value;
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
        FAIL_IF(*(uint64_t *)value, cudaErrorInvalidValue, "a high-water mark can only be set to 0");
        (attribute == cudaMemPoolAttrUsedMemHigh ? pool->most_used : pool->most_reserved) =
            attribute == cudaMemPoolAttrUsedMemHigh ? pool->used : pool->used + pool->kept;
        return cudaSuccess;
    default:
        return fail(cudaErrorInvalidValue, "%s: attribute %d cannot be set", call, (int)attribute);
    }
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
    BEGIN_POOLS(value, pool);
    const auto give = [value](uint64_t number) { return store((uint64_t *)value, number); };
    switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
        return store((int *)value, pool->reuse[attribute - 1]);
    case cudaMemPoolAttrReleaseThreshold:
        return give(pool->threshold);
    case cudaMemPoolAttrReservedMemCurrent:
        return give(pool->used + pool->kept);
    case cudaMemPoolAttrReservedMemHigh:
        return give(pool->most_reserved);
    case cudaMemPoolAttrUsedMemCurrent:
        return give(pool->used);
    case cudaMemPoolAttrUsedMemHigh:
        return give(pool->most_used);
    }
    return fail(cudaErrorInvalidValue, "%s: there is no attribute %d", call, (int)attribute);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *list, size_t count) {
    BEGIN_POOLS(list, pool);
    for (size_t i = 0; i < count; ++i) {
        const cudaMemLocation &at = list[i].location;
        FAIL_IF(at.type != cudaMemLocationTypeDevice || check_device(call, at.id), cudaErrorInvalidValue,
                "entry %zu names no device", i);
        FAIL_IF(at.id == pool->device && list[i].flags != cudaMemAccessFlagsProtReadWrite,
                cudaErrorInvalidValue, "a device keeps access to its own pool");
        pool->access[at.id] = list[i].flags;
    }
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags *flags, cudaMemPool_t pool, cudaMemLocation *location) {
    BEGIN(flags, location, pool);
    FAIL_IF(location->type != cudaMemLocationTypeDevice || check_device(call, location->id),
            cudaErrorInvalidValue, "the location is no device");
    std::lock_guard lock(pools().mutex);
    const auto found = pool->access.find(location->id);
    return store(flags, found != pool->access.end()    ? found->second
                        : location->id == pool->device ? cudaMemAccessFlagsProtReadWrite
                                                       : cudaMemAccessFlagsProtNone);
}
