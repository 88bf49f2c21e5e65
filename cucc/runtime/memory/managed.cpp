// SPDX-License-Identifier: MIT
// Managed memory: hints about its location. They are checked and kept for queries, and have no effect,
// because host and devices share one memory.
#include "stream.h"

namespace cuda_cpu {
namespace {

struct Advice {
    bool read_mostly = false;
    cudaMemLocation preferred = {cudaMemLocationTypeInvalid, cudaInvalidDeviceId};
    cudaMemLocation prefetched = {cudaMemLocationTypeInvalid, cudaInvalidDeviceId};
    std::set<int> accessed_by; // devices; cudaCpuDeviceId stands for the host
};

std::mutex advice_lock;

ONLY(advices, std::map<const void *, Advice>) // by the base of the allocation

int number_of(const cudaMemLocation &l) {
    return l.type == cudaMemLocationTypeInvalid  ? cudaInvalidDeviceId
           : l.type == cudaMemLocationTypeDevice ? l.id
                                                 : cudaCpuDeviceId;
}

cudaError_t check_managed(const char *call, const void *pointer, size_t bytes, cudaMemLocation location,
                          const void *&base) {
    const auto a = find_allocation(pointer);
    FAIL_IF(!a || a->kind != MemoryKind::managed, cudaErrorInvalidValue, "%p is not managed memory", pointer);
    base = a->base;
    TRY(check_range(call, "range", pointer, bytes, Accessor::either));
    return location.type == cudaMemLocationTypeDevice ? check_device(call, location.id) : cudaSuccess;
}

} // namespace

void forget_advice(const Allocation &a) {
    if (a.kind != MemoryKind::managed)
        return;
    std::lock_guard lock(advice_lock);
    advices().erase(a.base);
}

} // namespace cuda_cpu

cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
    BEGIN();
    IN_ENUMERATION(advice, cudaMemAdviseSetReadMostly, cudaMemAdviseUnsetAccessedBy, "advice");
    const void *base;
    if (advice == cudaMemAdviseSetReadMostly || advice == cudaMemAdviseUnsetReadMostly ||
        advice == cudaMemAdviseUnsetPreferredLocation)
        location = {cudaMemLocationTypeHost, 0}; // ignored
    TRY(check_managed(call, pointer, bytes, location, base));
    std::lock_guard lock(advice_lock);
    Advice &kept = advices()[base];
    switch (advice) {
    case cudaMemAdviseSetReadMostly:
    case cudaMemAdviseUnsetReadMostly:
        kept.read_mostly = advice == cudaMemAdviseSetReadMostly;
        break;
    case cudaMemAdviseSetPreferredLocation:
        kept.preferred = location;
        break;
    case cudaMemAdviseUnsetPreferredLocation:
        kept.preferred = Advice().preferred;
        break;
    case cudaMemAdviseSetAccessedBy:
        kept.accessed_by.insert(number_of(location));
        break;
    case cudaMemAdviseUnsetAccessedBy:
        kept.accessed_by.erase(number_of(location));
        break;
    }
    return cudaSuccess;
}

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream) {
    BEGIN();
    FAIL_IF(flags, cudaErrorInvalidValue, "flags are 0x%x, must be 0", flags);
    TRY(check_stream(call, stream));
    const void *base;
    TRY(check_managed(call, pointer, bytes, location, base));
    std::lock_guard lock(advice_lock);
    advices()[base].prefetched = location;
    return cudaSuccess;
}

cudaError_t cudaMemRangeGetAttribute(void *value, size_t value_bytes, cudaMemRangeAttribute attribute,
                                     const void *pointer, size_t bytes) {
    BEGIN(value);
    const void *base;
    TRY(check_managed(call, pointer, bytes, {cudaMemLocationTypeHost, 0}, base));
    std::lock_guard lock(advice_lock);
    const auto found = advices().find(base);
    const Advice kept = found == advices().end() ? Advice() : found->second;
    int *const numbers = (int *)value;
    const size_t count = value_bytes / sizeof(int);
    FAIL_IF(count == 0 || value_bytes % sizeof(int) ||
                (attribute != cudaMemRangeAttributeAccessedBy && count != 1),
            cudaErrorInvalidValue, "the value has %zu bytes, must have %s", value_bytes,
            attribute == cudaMemRangeAttributeAccessedBy ? "4 for each device" : "4");
    const auto give = [numbers](int number) { return store(numbers, number); };
    switch (attribute) {
    case cudaMemRangeAttributeReadMostly:
        return give(kept.read_mostly);
    case cudaMemRangeAttributePreferredLocation:
        return give(number_of(kept.preferred));
    case cudaMemRangeAttributeAccessedBy:
        std::fill(numbers, numbers + count, (int)cudaInvalidDeviceId);
        std::copy_n(kept.accessed_by.begin(), std::min(count, kept.accessed_by.size()), numbers);
        return cudaSuccess;
    case cudaMemRangeAttributeLastPrefetchLocation:
        return give(number_of(kept.prefetched));
    case cudaMemRangeAttributePreferredLocationType:
        return give(kept.preferred.type);
    case cudaMemRangeAttributePreferredLocationId:
        return give(kept.preferred.id);
    case cudaMemRangeAttributeLastPrefetchLocationType:
        return give(kept.prefetched.type);
    case cudaMemRangeAttributeLastPrefetchLocationId:
        return give(kept.prefetched.id);
    }
    return fail(cudaErrorInvalidValue, "%s: there is no attribute %d", call, (int)attribute);
}

cudaError_t cudaMemRangeGetAttributes(void **values, size_t *value_bytes, cudaMemRangeAttribute *attributes,
                                      size_t count, const void *pointer, size_t bytes) {
    NOT_NULL(values);
    NOT_NULL(value_bytes);
    NOT_NULL(attributes);
    for (size_t i = 0; i < count; ++i)
        TRY(cudaMemRangeGetAttribute(values[i], value_bytes[i], attributes[i], pointer, bytes));
    return cudaSuccess;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t, unsigned flags) {
    BEGIN();
    FAIL_IF(flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle,
            cudaErrorInvalidValue, "0x%x is not a valid flag", flags);
    TRY(check_stream(call, stream));
    const void *base;
    return check_managed(call, pointer, 0, {cudaMemLocationTypeHost, 0}, base);
}
