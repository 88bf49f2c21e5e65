// SPDX-License-Identifier: MIT
// Kernels: what is known of them from their addresses, attributes, and occupancy (blocks per multiprocessor)
#include "launch.h"

#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

namespace cuda_cpu {

#ifdef __wasm__
static bool may_be_kernel(const void *) {
    return true;
}
#else
static bool begins_function(const void *address) {
    const auto in_code = [](struct dl_phdr_info *object, size_t, void *data) {
        for (int i = 0; i < object->dlpi_phnum; ++i) {
            const auto &segment = object->dlpi_phdr[i];
            const uintptr_t begin = object->dlpi_addr + segment.p_vaddr, at = (uintptr_t)data;
            if (segment.p_type == PT_LOAD && segment.p_flags & PF_X && at >= begin &&
                at < begin + segment.p_memsz)
                return 1;
        }
        return 0;
    };
    void *const code = const_cast<void *>(address);
    return dl_iterate_phdr(in_code, code) && _Unwind_FindEnclosingFunction((char *)code + 1) == code;
}

// False if the address has a symbol that cannot be a kernel's. A static function has no symbol.
static bool may_be_kernel(const void *address) {
    Dl_info info;
    if (!begins_function(address))
        return false;
    if (!dladdr(address, &info) || info.dli_saddr != address || !info.dli_sname)
        return true;
    const std::string name = info.dli_sname;
    const bool mangled = name.compare(0, 2, "_Z") == 0;
    const std::string inner = "Z" + (mangled ? name.substr(2) : std::to_string(name.size()) + name) + "E";
    for (const Function *f = all_functions; f; f = f->next)
        if (strncmp(f->inner->name(), inner.c_str(), inner.size()) == 0) // that may be shorter
            return true;
    return false;
}
#endif

const Function *all_functions;
bool add_function(Function &function) {
    function.next = all_functions;
    all_functions = &function;
    return true;
}

Launch *begin_kernel(Function &function, const char *name, unsigned most_threads) {
    Launch *const launch = current_launch;
    if (!launch || launch->taken) {
        called_without_launch(name);
        return nullptr;
    }
    launch->taken = true;
    current_launch = launch->outer;
    function.name = name;
    function.most_threads = most_threads;
    if (!launch->wanted)
        return launch;
    *launch->wanted = &function;
    return nullptr;
}

// A kernel begins with launch_body(), which stores the kernel's Function before it uses any argument. So this
// calls the function without arguments to identify the kernel.
Function *find_function(const char *call, const void *kernel) {
    Function *function = nullptr;
    if (kernel && may_be_kernel(kernel)) {
        const Launch launch(call, {}, Site{}, false, &function);
#ifdef __wasm__
        call_without_arguments(kernel);
#else
        ((void (*)())kernel)();
#endif
    }
    if (!function)
        fail(cudaErrorInvalidDeviceFunction, "%s: %p is not the address of a kernel", call, kernel);
    return function;
}

cudaError_t set_attribute(const char *place, const cudaLaunchAttribute &a, LaunchConfig &config,
                          bool &cooperative) {
    const auto &cluster = a.val.clusterDim;
    if (a.id == cudaLaunchAttributeCooperative)
        cooperative = a.val.cooperative;
    if (a.id == cudaLaunchAttributeProgrammaticStreamSerialization)
        config.dependent = a.val.programmaticStreamSerializationAllowed;
    if (a.id == cudaLaunchAttributeClusterDimension && (cluster.x > 1 || cluster.y > 1 || cluster.z > 1))
        return fail(cudaErrorNotSupported,
                    "%s: clusters of %u x %u x %u blocks are not supported, they need compute capability 9.0",
                    place, cluster.x, cluster.y, cluster.z);
    return cudaSuccess;
}

cudaError_t launch_by_config(const LaunchConfigAt &at, const void *kernel, void **arguments) {
    BEGIN_AS("cudaLaunchKernelEx");
    FAIL_IF(!at.config, cudaErrorInvalidValue, "config is NULL");
    const cudaLaunchConfig_t &c = *at.config;
    LaunchConfig config = {c.gridDim, c.blockDim, c.dynamicSmemBytes, c.stream, false};
    bool cooperative = false;
    const std::string where = call + (at.site.line ? " at " + place(at.site) : "");
    for (unsigned i = 0; i < c.numAttrs; ++i)
        TRY(set_attribute(where.c_str(), c.attrs[i], config, cooperative));
    return launch_by_address(call, kernel, config, arguments, cooperative, at.site);
}

int resident_blocks(const cudaDeviceProp &device, unsigned threads, size_t shared_bytes) {
    const unsigned warps = (threads + device.warpSize - 1) / device.warpSize;
    const unsigned most_warps = device.maxThreadsPerMultiProcessor / device.warpSize;
    const size_t shared = shared_bytes + device.reservedSharedMemPerBlock;
    return std::min({device.maxBlocksPerMultiProcessor, (int)(most_warps / warps),
                     (int)(device.sharedMemPerMultiprocessor / shared)});
}

} // namespace cuda_cpu

#define FIND_FUNCTION(function, kernel)                                                                      \
    Function *const function = find_function(__func__, kernel);                                              \
    if (!function)                                                                                           \
    return cudaErrorInvalidDeviceFunction

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel) {
    BEGIN(attributes);
    FIND_FUNCTION(function, kernel);
    const cudaDeviceProp &device = properties(current_device());
    *attributes = {};
    attributes->sharedSizeBytes = *function->shared_bytes;
    attributes->maxThreadsPerBlock = device.maxThreadsPerBlock;
    if (function->most_threads)
        attributes->maxThreadsPerBlock = std::min((int)function->most_threads, device.maxThreadsPerBlock);
    attributes->numRegs = 0; // unknown on the CPU
    attributes->ptxVersion = attributes->binaryVersion = device.major * 10 + device.minor;
    attributes->maxDynamicSharedSizeBytes =
        (int)(function->dynamic_limit ? function->dynamic_limit
                                      : device.sharedMemPerBlock - attributes->sharedSizeBytes);
    attributes->preferredShmemCarveout = -1;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value) {
    BEGIN();
    FIND_FUNCTION(function, kernel);
    const cudaDeviceProp &device = properties(current_device());
    switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize: {
        const size_t most = device.sharedMemPerBlockOptin - *function->shared_bytes;
        FAIL_IF(value < 0 || (size_t)value > most, cudaErrorInvalidValue,
                "%d bytes of dynamic shared memory, the limit is %zu", value, most);
        function->dynamic_limit = (size_t)value;
        return cudaSuccess;
    }
    case cudaFuncAttributePreferredSharedMemoryCarveout:
        FAIL_IF(value < -1 || value > 100, cudaErrorInvalidValue, "a carveout of %d %%, must be -1 to 100",
                value);
        return cudaSuccess;
    default:
        return fail(cudaErrorNotSupported, "%s: attribute %d is for clusters, which are not supported", call,
                    attribute);
    }
}

SIMPLE_CALL(cudaFuncSetCacheConfig, (const void *kernel, cudaFuncCache), BEGIN(),
            find_function(call, kernel) ? cudaSuccess : cudaErrorInvalidDeviceFunction)
SIMPLE_CALL(cudaFuncSetSharedMemConfig, (const void *kernel, cudaSharedMemConfig), BEGIN(),
            find_function(call, kernel) ? cudaSuccess : cudaErrorInvalidDeviceFunction)

cudaError_t cudaFuncGetName(const char **name, const void *kernel) {
    BEGIN(name);
    FIND_FUNCTION(function, kernel);
    return store(name, function->name);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **arguments) {
    return launch_by_config({config, __func__, 0}, kernel, arguments);
}

FORWARD(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int *blocks, const void *kernel, int threads, size_t dynamic_bytes, unsigned),
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, dynamic_bytes))

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads,
                                                          size_t dynamic_bytes) {
    BEGIN(blocks);
    FIND_FUNCTION(function, kernel);
    const cudaDeviceProp &device = properties(current_device());
    FAIL_IF(threads < 1, cudaErrorInvalidValue, "blocks of %d threads are impossible", threads);
    const size_t shared = *function->shared_bytes + dynamic_bytes;
    return store(blocks, threads > device.maxThreadsPerBlock || shared > device.sharedMemPerBlockOptin
                             ? 0
                             : resident_blocks(device, (unsigned)threads, shared));
}
