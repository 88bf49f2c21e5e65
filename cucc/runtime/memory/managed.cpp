// SPDX-License-Identifier: MIT
// Managed memory: hints about its location are only checked, because host and devices share one memory.
#include "stream.h"

namespace cuda_cpu {
namespace {

cudaError_t check_managed(const char *call, const void *pointer, size_t bytes, cudaMemLocation location) {
    const auto a = find_allocation(pointer);
    FAIL_IF(!a || a->kind != MemoryKind::managed, cudaErrorInvalidValue, "%p is not managed memory", pointer);
    TRY(check_range(call, "range", pointer, bytes, Accessor::either));
    return location.type == cudaMemLocationTypeDevice ? check_device(call, location.id) : cudaSuccess;
}

} // namespace

} // namespace cuda_cpu

cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
    BEGIN();
    IN_ENUMERATION(advice, cudaMemAdviseSetReadMostly, cudaMemAdviseUnsetAccessedBy, "advice");
    if (advice == cudaMemAdviseSetReadMostly || advice == cudaMemAdviseUnsetReadMostly ||
        advice == cudaMemAdviseUnsetPreferredLocation)
        location = {cudaMemLocationTypeHost, 0}; // ignored
    return check_managed(call, pointer, bytes, location);
}

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream) {
    BEGIN();
    FAIL_IF(flags, cudaErrorInvalidValue, "flags are 0x%x, must be 0", flags);
    TRY(check_stream(call, stream));
    return check_managed(call, pointer, bytes, location);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t, unsigned flags) {
    BEGIN();
    FAIL_IF(flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle,
            cudaErrorInvalidValue, "0x%x is not a valid flag", flags);
    TRY(check_stream(call, stream));
    return check_managed(call, pointer, 0, {cudaMemLocationTypeHost, 0});
}
