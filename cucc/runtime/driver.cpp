// SPDX-License-Identifier: MIT
// The functions of the driver API, which call those of the runtime API. A context is a device: contexts of
// one device share its memory and streams. The current context of a host thread determines its device.
#include "stream.h"
#include <cuda.h>

#include <dlfcn.h>
#include <fstream>
#include <link.h>
#include <sys/mman.h>
#undef MAP_FAILED // here it is a part of CUDA_ERROR_MAP_FAILED

struct CUctx_st {
    int device;
    bool primary;
};

namespace cuda_cpu {
namespace {

struct Contexts {
    std::mutex mutex;
    CUcontext primary[max_devices] = {};
    int retained[max_devices] = {};
};

ONLY(contexts, Contexts)

std::atomic<bool> initialized{false};
// The last one is the current context.
std::vector<CUcontext> &stack() {
    static PerThread<std::vector<CUcontext>> &stacks = *new PerThread<std::vector<CUcontext>>;
    return stacks.mine();
}

// Converts an error of the runtime to one of the driver API, which lacks some below 100.
CUresult code(cudaError_t error) {
    const bool same =
        error >= 100 || error <= 3 || (error >= 4 && error <= 8) || error == 34 || error == 36 || error == 46;
    return same ? (CUresult)error : CUDA_ERROR_INVALID_VALUE;
}

CUresult refuse(CUresult error, const char *call, const char *why) {
    fail(cudaErrorUnknown, "%s: %s", call, why);
    (void)cudaGetLastError(); // a call of the driver API must not set the runtime's last error
    return error;
}

cudaError_t check_initialized(const char *call) {
    TRY(failure_of(call));
    return initialized || runtime_used
               ? cudaSuccess
               : fail(cudaErrorInitializationError, "%s: the program has not called cuInit", call);
}

CUcontext new_context(int device, bool primary) {
    return live<CUctx_st>().add(new CUctx_st{device, primary});
}

// The lock of the contexts must be held.
CUcontext primary_context(int device) {
    Contexts &c = contexts();
    if (!c.primary[device])
        c.primary[device] = new_context(device, true);
    return c.primary[device];
}

// The runtime makes the primary context of its device current where no other one is.
CUcontext current_context() {
    std::vector<CUcontext> &all = stack();
    // After cudaSetDevice the primary context of that device takes the place of the current one. A stack that
    // has become empty has memory: then no context is current.
    if (runtime_used && (all.empty() ? all.capacity() == 0 : all.back()->device != current_device())) {
        std::lock_guard lock(contexts().mutex);
        if (all.empty())
            all.emplace_back();
        all.back() = primary_context(current_device());
    }
    return all.empty() ? nullptr : all.back();
}

// While a call of the driver API runs: the calls of the runtime that it stands on are not the program's.
struct NotTheRuntime {
    const bool before = runtime_used;
    ~NotTheRuntime() {
        if (!before)
            runtime_used = false;
    }
};

CUresult begun(cudaError_t error) {
    if (error)
        set_last_error(cudaSuccess); // a call of the driver API must not set the runtime's last error
    return code(error);
}

// Checks that the context exists. Null stands for the context that the runtime uses.
CUresult use(const char *call, CUcontext context) {
    if (!context)
        return CUDA_SUCCESS;
    if (!live<CUctx_st>().has(context))
        return refuse(CUDA_ERROR_INVALID_CONTEXT, call, "the context does not exist, or was destroyed");
    return code(cudaSetDevice(context->device));
}

void *pointer_of(CUdeviceptr p) {
    return (void *)(uintptr_t)p;
}
void *pointer_of(const void *p) {
    return const_cast<void *>(p);
}

CUresult set(const char *call, CUdeviceptr to, unsigned value, unsigned element, size_t count,
             CUstream stream) {
    if (const CUresult error = begun(begin_with(check_initialized, call, "")))
        return error;
    const size_t bytes = count * element;
    return code(fill(call, {pitched(pointer_of(to), bytes, 1), value, element, bytes, 1, 1}, stream));
}

} // namespace
} // namespace cuda_cpu

// Begins a call, as BEGIN() does in the runtime: pointers must not be null, and devices must exist.
#define DRIVER(...)                                                                                          \
    const NotTheRuntime not_the_runtime;                                                                     \
    if (const CUresult error = begun(begin_with(check_initialized, __func__, #__VA_ARGS__, ##__VA_ARGS__)))  \
    return error
#define REFUSE_IF(condition, error, why)                                                                     \
    if (condition)                                                                                           \
    return refuse(CUDA_ERROR_##error, __func__, why)
#define NEEDS(pointer) REFUSE_IF(!(pointer), INVALID_VALUE, #pointer " is NULL")
// A call that makes these checks, and returns one expression
#define CALL(name, parameters, checks, ...)                                                                  \
    CUresult name parameters {                                                                               \
        DRIVER checks;                                                                                       \
        return code(__VA_ARGS__);                                                                            \
    }

CUresult cuInit(unsigned flags) {
    if (const cudaError_t error = failure_of(__func__))
        return code(error);
    REFUSE_IF(flags, INVALID_VALUE, "the flags must be 0");
    if (device_count() == 0)
        return CUDA_ERROR_NO_DEVICE;
    initialized = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    if (const cudaError_t error = failure_of(__func__))
        return code(error);
    NEEDS(version);
    return code(store(version, CUDA_VERSION));
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    NEEDS(name);
    switch (error) {
    case CUDA_SUCCESS:
        return code(store(name, "CUDA_SUCCESS"));
#define NONE(...)
#define DRIVER_ONLY(NAME, value)                                                                             \
    case CUDA_ERROR_##NAME:                                                                                  \
        return code(store(name, "CUDA_ERROR_" #NAME));
#define BOTH(name, NAME, value, text) DRIVER_ONLY(NAME, value)
        CUDA_CPU_ERRORS(BOTH, NONE, DRIVER_ONLY)
    }
#undef BOTH
#undef DRIVER_ONLY
    *name = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    const char *name;
    NEEDS(text);
    *text = nullptr;
    if (cuGetErrorName(error, &name))
        return CUDA_ERROR_INVALID_VALUE;
    return code(store(text, cudaGetErrorString((cudaError_t)error)));
}

// ---- devices ----

CALL(cuDeviceGet, (CUdevice * device, int number), (device, number), store(device, number))
CALL(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device), (uuid, device), store(uuid, properties(device).uuid))
CALL(cuDeviceTotalMem, (size_t * bytes, CUdevice device), (bytes, device),
     store(bytes, properties(device).totalGlobalMem))
CALL(cuDeviceGetCount, (int *count), (count), store(count, device_count()))

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    DRIVER(name, device);
    REFUSE_IF(length < 1, INVALID_VALUE, "there is no room for the name");
    snprintf(name, (size_t)length, "%s", properties(device).name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    DRIVER(value, device);
    switch (attribute) {
#define DRIVER_ONLY(NAME, number, answer)                                                                    \
    case CU_DEVICE_ATTRIBUTE_##NAME:                                                                         \
        return code(store(value, answer));
        CUDA_CPU_ATTRIBUTES(NONE, DRIVER_ONLY)
    default:
        return code(cudaDeviceGetAttribute(value, (cudaDeviceAttr)attribute, device)); // numbers are equal
    }
#undef DRIVER_ONLY
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    DRIVER(major, minor, device);
    store(major, properties(device).major);
    return code(store(minor, properties(device).minor));
}

// ---- contexts ----

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    DRIVER(context, device);
    std::lock_guard lock(contexts().mutex);
    ++contexts().retained[device];
    return code(store(context, primary_context(device)));
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    DRIVER(device);
    std::lock_guard lock(contexts().mutex);
    REFUSE_IF(contexts().retained[device] == 0, INVALID_CONTEXT, "the primary context is not retained");
    --contexts().retained[device];
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *params, unsigned, CUdevice device) {
    DRIVER(context, device);
    REFUSE_IF(params && (params->execAffinityParams || params->cigParams), NOT_SUPPORTED,
              "parameters of contexts are not supported: pass NULL as params");
    current_context(); // the one below
    *context = new_context(device, false);
    stack().push_back(*context);
    return use(__func__, *context);
}

CUresult cuCtxDestroy(CUcontext context) {
    DRIVER();
    REFUSE_IF(!live<CUctx_st>().has(context) || context->primary, INVALID_CONTEXT,
              "the context does not exist, or is a primary one");
    finish_device(context->device);
    if (!stack().empty() && stack().back() == context)
        stack().pop_back();
    live<CUctx_st>().take(context);
    delete context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
    DRIVER(context);
    current_context(); // the one below
    if (const CUresult error = use(__func__, context))
        return error;
    stack().push_back(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context) {
    DRIVER();
    REFUSE_IF(!current_context(), INVALID_CONTEXT, "no context is current");
    store(context, stack().back());
    stack().pop_back();
    return stack().empty() ? CUDA_SUCCESS : use(__func__, stack().back());
}

CUresult cuCtxSetCurrent(CUcontext context) {
    DRIVER();
    if (!stack().empty())
        stack().pop_back();
    return context ? cuCtxPushCurrent(context) : CUDA_SUCCESS;
}

CALL(cuCtxGetCurrent, (CUcontext * context), (context), store(context, current_context()))
CALL(cuCtxGetDevice, (CUdevice * device), (device), store(device, current_device()))
CALL(cuCtxGetApiVersion, (CUcontext, unsigned *version), (version), store(version, CUDA_VERSION))
CALL(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags), (peer),
     cudaDeviceEnablePeerAccess(peer->device, flags))
CALL(cuCtxDisablePeerAccess, (CUcontext peer), (peer), cudaDeviceDisablePeerAccess(peer->device))
CALL(cuMemcpyPeer,
     (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes),
     (to_context, from_context),
     cudaMemcpyPeer(pointer_of(to), to_context->device, pointer_of(from), from_context->device, bytes))

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer) {
    DRIVER();
    const auto a = find_allocation(pointer_of(pointer));
    REFUSE_IF(!a, INVALID_VALUE, "the pointer is not of device memory");
    store(base, (CUdeviceptr)(uintptr_t)a->base);
    return code(store(bytes, a->size));
}

CUresult cuMemAllocPitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t rows, unsigned element) {
    DRIVER();
    REFUSE_IF(element != 4 && element != 8 && element != 16, INVALID_VALUE,
              "elements must have 4, 8 or 16 bytes");
    return code(cuda_cpu::cudaMallocPitch((void **)pointer, pitch, width, rows));
}

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes) {
    DRIVER();
    REFUSE_IF(bytes == 0, INVALID_VALUE, "0 bytes requested");
    return code(cuda_cpu::cudaMalloc((void **)pointer, bytes));
}

CALL(cuStreamAddCallback, (CUstream stream, CUstreamCallback callback, void *data, unsigned flags), (),
     cudaStreamAddCallback(stream, (cudaStreamCallback_t)(void *)callback, data, flags))

// The calls that are the same in the runtime
#define SAME(name, parameters, call) CALL(name, parameters, (), call)
CUDA_CPU_DRIVER_CALLS(SAME)

#define SET(bits, T)                                                                                         \
    CUresult cuMemsetD##bits(CUdeviceptr to, T value, size_t count) {                                        \
        return set(__func__, to, value, bits / 8, count, nullptr);                                           \
    }                                                                                                        \
    CUresult cuMemsetD##bits##Async(CUdeviceptr to, T value, size_t count, CUstream stream) {                \
        return set(__func__, to, value, bits / 8, count, stream);                                            \
    }
SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned)

#ifndef __wasm__
// ---- modules ----

// Loads a module from its image in memory: a shared object that `cucc -fatbin` or `-cubin` has written. The
// module calls the runtime that the program has. `size`: bytes of the image, where they are known.
static CUresult load(const char *call, CUmodule *module, const void *image, size_t size = SIZE_MAX) {
    const auto *const header = (const ElfW(Ehdr) *)image;
    if (size < sizeof *header || memcmp(image, ELFMAG, SELFMAG) != 0 ||
        header->e_shentsize != sizeof(ElfW(Shdr)) || header->e_shstrndx >= header->e_shnum ||
        header->e_shoff >= size || size - header->e_shoff < header->e_shnum * sizeof(ElfW(Shdr)))
        return refuse(
            CUDA_ERROR_INVALID_IMAGE, call,
            "the image is no code for this machine: cucc -fatbin and -cubin compile a .cu to such code");
    const auto *const sections = (const ElfW(Shdr) *)((const char *)image + header->e_shoff);
    const size_t bytes = header->e_shoff + header->e_shnum * sizeof *sections;
    const int file = memfd_create("module", MFD_CLOEXEC);
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    std::ofstream(path, std::ios::binary).write((const char *)image, (std::streamsize)bytes);
    // The file stays open, so the next one has another name: each load makes its own variables.
    void *const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return refuse(CUDA_ERROR_INVALID_IMAGE, call, dlerror());
    const std::lock_guard<TicketLock> lock(launch_lock());
    const char *const names = (const char *)image + sections[header->e_shstrndx].sh_offset;
    for (const auto *s = sections; s < sections + header->e_shnum; ++s) {
        const std::string name = names + s->sh_name;
        char *const begin = (char *)((struct link_map *)library)->l_addr + s->sh_addr;
        if (name.compare(0, 5, "cuda_") == 0)
            symbol_sections().push_back({begin, begin + s->sh_size, false,
                                         name.compare(5, 8, "constant") == 0,
                                         name.find("_ro") == std::string::npos});
    }
    return code(store(module, (CUmodule)library));
}

#define LOAD(name, ...)                                                                                      \
    CUresult name(CUmodule *module, const void *image, ##__VA_ARGS__) {                                      \
        DRIVER(module, image);                                                                               \
        return load(__func__, module, image);                                                                \
    }
LOAD(cuModuleLoadData)
LOAD(cuModuleLoadDataEx, unsigned, CUjit_option *, void **)
LOAD(cuModuleLoadFatBinary)

CUresult cuModuleLoad(CUmodule *module, const char *name) {
    DRIVER(module, name);
    std::ifstream file(name, std::ios::binary);
    REFUSE_IF(!file, FILE_NOT_FOUND, name);
    std::string image{std::istreambuf_iterator<char>(file), {}};
    return load(__func__, module, image.c_str(), image.size());
}

// The code stays where it is, because launches may still refer to it.
CALL(cuModuleUnload, (CUmodule module), (module), cudaSuccess)

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    DRIVER(function, module, name);
    *function = (CUfunction)dlsym(module, name);
    return *function && find_function(__func__, (void *)*function)
               ? CUDA_SUCCESS
               : refuse(CUDA_ERROR_NOT_FOUND, __func__, "the module has no kernel of this name");
}

CUresult cuModuleGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name) {
    DRIVER(module, name);
    size_t size = 0;
    void *const address = find_variable(name, &size, module);
    store(pointer, (CUdeviceptr)(uintptr_t)address);
    store(bytes, size);
    return address ? CUDA_SUCCESS : refuse(CUDA_ERROR_NOT_FOUND, __func__, "the module has no such variable");
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **parameters, void **extra) {
    DRIVER(function);
    REFUSE_IF(extra, NOT_SUPPORTED, "`extra` is not supported: pass `kernelParams`");
    return code(cudaLaunchKernel((const void *)function, {grid_x, grid_y, grid_z},
                                 {block_x, block_y, block_z}, parameters, shared_bytes, stream));
}

SAME(cuOccupancyMaxPotentialBlockSize,
     (int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared, size_t bytes, int limit),
     cudaOccupancyMaxPotentialBlockSizeVariableSMem(
         grid, block, (const void *)function, [=](int threads) { return shared ? shared(threads) : bytes; },
         limit))
SAME(cuOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *blocks, CUfunction function, int threads, size_t bytes),
     cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)function, threads, bytes))
#endif
