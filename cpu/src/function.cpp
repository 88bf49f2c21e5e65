// SPDX-License-Identifier: MIT
// Attributes of kernels, and occupancy: how many blocks of a kernel a multiprocessor can hold.
#include "cuda_cpu/types.h"
#include "cuda_cpu/api.h"
#include "internal.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <map>
#include <string>

namespace cuda_cpu {

namespace {

// A <<<…>>> launch does not know the address of its kernel, so the largest limit that was set for
// any kernel applies to all.
std::atomic<size_t> shared_limit{0};

// The linker symbol of a kernel. Null for a static kernel, which has none in the dynamic symbol
// table.
const char *linker_name(const void *kernel) {
    Dl_info info;
    return dladdr(kernel, &info) && info.dli_saddr == kernel ? info.dli_sname : nullptr;
}

// The shared memory that the kernel itself declares, without that of the functions it calls.
size_t static_shared(const void *kernel) {
    const char *name = linker_name(kernel);
    return name ? declared_shared_bytes(name) : 0;
}

} // namespace

const char *function_name(const void *kernel) {
    static std::mutex mutex;
    static auto &names = *new std::map<const void *, std::string>; // never destroyed: callers keep pointers
    std::lock_guard<std::mutex> lock(mutex);
    std::string &name = names[kernel];
    if (name.empty()) {
        const char *mangled = linker_name(kernel);
        char *plain = mangled ? abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr) : nullptr;
        name = plain ? std::string(plain, strcspn(plain, "(")) : "kernel";
        free(plain);
    }
    return name.c_str();
}

size_t allowed_dynamic_shared() {
    return shared_limit;
}

int resident_blocks(const cudaDeviceProp &device, unsigned threads, size_t shared_bytes) {
    const unsigned warps = (threads + device.warpSize - 1) / device.warpSize;
    const unsigned most_warps = device.maxThreadsPerMultiProcessor / device.warpSize;
    const size_t shared = shared_bytes + device.reservedSharedMemPerBlock;
    return std::min({device.maxBlocksPerMultiProcessor, (int)(most_warps / warps),
                     (int)(device.sharedMemPerMultiprocessor / shared)});
}

} // namespace cuda_cpu

using namespace cuda_cpu;

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel) {
    BEGIN();
    NOT_NULL(attributes);
    if (!kernel)
        return fail(cudaErrorInvalidDeviceFunction, "cudaFuncGetAttributes: the kernel is NULL");
    const cudaDeviceProp &device = properties(current_device());
    *attributes = {};
    attributes->sharedSizeBytes = static_shared(kernel);
    attributes->maxThreadsPerBlock = device.maxThreadsPerBlock;
    attributes->numRegs = 0; // registers are not counted here
    attributes->ptxVersion = attributes->binaryVersion = device.major * 10 + device.minor;
    attributes->maxDynamicSharedSizeBytes =
        (int)(std::max(device.sharedMemPerBlock, allowed_dynamic_shared()) - attributes->sharedSizeBytes);
    attributes->preferredShmemCarveout = -1;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value) {
    BEGIN();
    if (!kernel)
        return fail(cudaErrorInvalidDeviceFunction, "cudaFuncSetAttribute: the kernel is NULL");
    const cudaDeviceProp &device = properties(current_device());
    switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize: {
        const size_t most = device.sharedMemPerBlockOptin - static_shared(kernel);
        if (value < 0 || (size_t)value > most)
            return fail(cudaErrorInvalidValue,
                        "cudaFuncSetAttribute: %d bytes of dynamic shared memory, the limit is %zu", value,
                        most);
        // The value limits only dynamic shared memory, so static shared memory is added to it.
        const size_t limit = (size_t)value + static_shared(kernel);
        size_t old = shared_limit;
        while (limit > old && !shared_limit.compare_exchange_weak(old, limit))
            ;
        return cudaSuccess;
    }
    case cudaFuncAttributePreferredSharedMemoryCarveout:
        if (value < -1 || value > 100)
            return fail(cudaErrorInvalidValue, "cudaFuncSetAttribute: a carveout of %d %%, must be -1 to 100",
                        value);
        return cudaSuccess;
    default:
        return fail(cudaErrorNotSupported,
                    "cudaFuncSetAttribute: attribute %d is for clusters, which are not supported", attribute);
    }
}

cudaError_t cudaFuncSetCacheConfig(const void *kernel, cudaFuncCache) {
    BEGIN();
    if (!kernel)
        return fail(cudaErrorInvalidDeviceFunction, "cudaFuncSetCacheConfig: the kernel is NULL");
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads,
                                                          size_t dynamic_bytes) {
    BEGIN();
    NOT_NULL(blocks);
    if (!kernel)
        return fail(cudaErrorInvalidDeviceFunction,
                    "cudaOccupancyMaxActiveBlocksPerMultiprocessor: the kernel is NULL");
    const cudaDeviceProp &device = properties(current_device());
    if (threads < 1)
        return fail(cudaErrorInvalidValue,
                    "cudaOccupancyMaxActiveBlocksPerMultiprocessor: blocks of %d threads are impossible",
                    threads);
    const size_t shared = static_shared(kernel) + dynamic_bytes;
    *blocks = threads > device.maxThreadsPerBlock || shared > device.sharedMemPerBlockOptin
                  ? 0
                  : resident_blocks(device, (unsigned)threads, shared);
    return cudaSuccess;
}
