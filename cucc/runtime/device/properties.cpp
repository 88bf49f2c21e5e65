// SPDX-License-Identifier: MIT
// This machine, described as a CUDA device: its properties and attributes, and the memory that is available.
#include "launch.h"
#include "memory.h"
#include "cuda_cpu/math.h"

#include <chrono>
#include <fstream>
#include <sys/resource.h>
#include <sys/utsname.h>

namespace cuda_cpu {
namespace {

constexpr int MAX_TEXTURE_1D_LINEAR = 1 << 28;

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
            return line.substr(line.find(": ") + 2);
    utsname system;
    return uname(&system) == 0 ? std::string(system.machine) + " processor" : "CPU";
}

// Reads the number after `word` in a file, times `unit`; `missing` if there is no such file or number.
size_t number_in(const char *path, const char *word, size_t unit, size_t missing) {
    std::ifstream file(path);
    std::string found;
    if (*word)
        while (file >> found && found != word)
            ;
    size_t number;
    return file >> number ? number * unit : missing;
}

// The memory limit of the process's control group (container), in bytes; SIZE_MAX without a limit.
struct MemoryLimit {
    size_t limit, used;
};

MemoryLimit container_limit() {
    size_t limit = number_in("/sys/fs/cgroup/memory.max", "", 1, SIZE_MAX);
    if (limit != SIZE_MAX)
        return {limit, number_in("/sys/fs/cgroup/memory.current", "", 1, 0) -
                           number_in("/sys/fs/cgroup/memory.stat", "inactive_file", 1, 0)};
    limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", "", 1, SIZE_MAX);
    return {limit, number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes", "", 1, 0) -
                       number_in("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file", 1, 0)};
}

int last_level_cache() {
#ifdef _SC_LEVEL3_CACHE_SIZE
    for (int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
        if (const long size = sysconf(level); size > 0)
            return (int)std::min(size, (long)INT_MAX);
#endif
    return 0;
}

// The rate of clock64() in ticks per millisecond, measured on first use, because it takes 10 ms.
int clock_khz() {
    static const int khz = [] {
        const auto start = std::chrono::steady_clock::now();
        const long long start_ticks = clock64();
        std::chrono::duration<double, std::milli> time;
        do
            time = std::chrono::steady_clock::now() - start;
        while (time.count() < 10);
        return (int)((double)(clock64() - start_ticks) / time.count());
    }();
    return khz;
}

// CUDA_CPU_PROPERTIES (README.md). Equal numbers become smaller until all differ, and launch limits follow.
void make_distinct(cudaDeviceProp &p, int device) {
    const size_t setting = setting_of("CUDA_CPU_PROPERTIES", {"usual", "distinct", "unequal"});
    if (setting == 2) {
        p.minor += device;
        p.totalGlobalMem = (device + 1ull) << 32;
    }
    if (setting != 1)
        return;
    std::set<long long> seen;
    const auto one = [&seen](auto &number) {
        while (!seen.insert((long long)number).second)
            number--;
    };
    const auto all = [&one](auto &...numbers) { (one(numbers), ...); };
    all(p.warpSize, p.maxThreadsPerBlock, p.maxThreadsPerMultiProcessor, p.maxThreadsDim[0],
        p.maxThreadsDim[1], p.maxThreadsDim[2], p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2],
        p.regsPerBlock, p.regsPerMultiprocessor, p.sharedMemPerBlock, p.sharedMemPerMultiprocessor,
        p.totalConstMem, p.memPitch, p.textureAlignment, p.maxTexture1D, p.maxTexture2D[0], p.maxTexture2D[1],
        p.maxTexture3D[0], p.maxTexture3D[1], p.maxTexture3D[2], p.maxTexture2DLayered[0],
        p.maxTexture2DLayered[1], p.maxTexture2DLayered[2], p.multiProcessorCount, p.asyncEngineCount);
}

} // namespace

// Compute capability 8.0 is the newest whose features are all supported here; 9.0 adds clusters. The limits
// of the programming model are those of 8.0; the others describe this machine.
cudaDeviceProp describe_device(int device) {
    cudaDeviceProp p = {};
    snprintf(p.name, sizeof p.name, "%s", processor_name().c_str());
    memcpy(p.uuid.bytes, "CUDA on the CPU", 15);
    p.uuid.bytes[15] = (char)device;
    p.major = 8;
    p.minor = 0;
    p.multiProcessorCount = worker_count();
    p.totalGlobalMem =
        std::min((size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE), container_limit().limit);
    p.l2CacheSize = last_level_cache();
    p.pciBusID = device + 1;

    p.warpSize = 32;
    p.maxThreadsPerBlock = 1024;
    p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = INT_MAX;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.maxThreadsPerMultiProcessor = 2048;
    p.maxBlocksPerMultiProcessor = 32;
    p.regsPerBlock = p.regsPerMultiprocessor = 65536;
    p.sharedMemPerBlock = 48 << 10;
    p.sharedMemPerBlockOptin = 163 << 10;
    p.reservedSharedMemPerBlock = 1 << 10;
    p.sharedMemPerMultiprocessor = 164 << 10;
    p.totalConstMem = 64 << 10;
    p.memPitch = INT_MAX;

    p.textureAlignment = p.surfaceAlignment = 512;
    p.texturePitchAlignment = 32;
    const auto set = [](int *limits, std::initializer_list<int> values) {
        std::copy(values.begin(), values.end(), limits);
    };
    p.maxTexture1D = p.maxSurface1D = 131072;
    p.maxTexture1DMipmap = 32768;
    set(p.maxTexture2D, {131072, 65536});
    set(p.maxTexture2DMipmap, {32768, 32768});
    set(p.maxTexture2DLinear, {131072, 65000, 2097120});
    set(p.maxTexture2DGather, {32768, 32768});
    set(p.maxTexture3D, {16384, 16384, 16384});
    set(p.maxTexture3DAlt, {8192, 8192, 32768});
    p.maxTextureCubemap = p.maxSurfaceCubemap = 32768;
    set(p.maxTexture1DLayered, {32768, 2048});
    set(p.maxTexture2DLayered, {32768, 32768, 2048});
    set(p.maxTextureCubemapLayered, {32768, 2046});
    set(p.maxSurface2D, {131072, 65536});
    set(p.maxSurface3D, {16384, 16384, 16384});
    set(p.maxSurface1DLayered, {32768, 2048});
    set(p.maxSurface2DLayered, {32768, 32768, 2048});
    set(p.maxSurfaceCubemapLayered, {32768, 2046});

    p.integrated = 1; // the device uses the host's memory
    p.canMapHostMemory = p.unifiedAddressing = p.managedMemory = 1;
    p.canUseHostPointerForRegisteredMem = p.hostRegisterSupported = 1;
    p.cooperativeLaunch = 1;
    p.hostRegisterReadOnlySupported = p.hostNativeAtomicSupported = 1;
    p.concurrentManagedAccess = p.directManagedMemAccessFromHost = 1;
    p.memoryPoolsSupported = p.unifiedFunctionPointers = 1;
    // These properties mean that work may overlap, not that it does. So they are set, although calls run
    // one after the other here, except for asynchronous launches (launch.h).
    p.concurrentKernels = p.streamPrioritiesSupported = 1;
    p.asyncEngineCount = 2;
    p.deviceNumaId = p.hostNumaId = -1;
    make_distinct(p, device);
    return p;
}

size_t available_memory() {
    size_t free = number_in("/proc/meminfo", "MemAvailable:", 1024, SIZE_MAX);
    const auto limit = [&free](size_t most, size_t used) {
        free = std::min(free, most - std::min(most, used));
    };
    const MemoryLimit container = container_limit();
    limit(container.limit, container.used);
    rlimit addresses; // ulimit -v
    if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
        limit(addresses.rlim_cur, number_in("/proc/self/statm", "", (size_t)sysconf(_SC_PAGESIZE), 0));
    return free;
}

} // namespace cuda_cpu

// Chooses the first device that has most of the requested properties. A field that is 0 requests nothing.
cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *wanted) {
    BEGIN_QUERY(device, wanted);
    int best = -1;
    for (int i = 0; i < device_count(); ++i) {
        const cudaDeviceProp &p = properties(i);
        int score = 0;
        const auto compare = [&](auto has, auto asked) { score += asked && has >= asked; };
        score += wanted->name[0] && strncmp(wanted->name, p.name, sizeof p.name) == 0;
        compare(p.major * 10 + p.minor, wanted->major * 10 + wanted->minor);
        using P = cudaDeviceProp;
        for (const auto size : {&P::totalGlobalMem, &P::sharedMemPerBlock, &P::totalConstMem, &P::memPitch,
                                &P::sharedMemPerBlockOptin})
            compare(p.*size, wanted->*size);
        for (const auto number :
             {&P::regsPerBlock, &P::maxThreadsPerBlock, &P::multiProcessorCount, &P::integrated,
              &P::canMapHostMemory, &P::concurrentKernels, &P::asyncEngineCount, &P::ECCEnabled,
              &P::cooperativeLaunch, &P::managedMemory})
            compare(p.*number, wanted->*number);
        if (score > best) {
            best = score;
            *device = i;
        }
    }
    return cudaSuccess;
}

SIMPLE_CALL(cudaGetDeviceProperties, (cudaDeviceProp * properties, int device),
            BEGIN_QUERY(properties, device), store(properties, cuda_cpu::properties(device)))

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    BEGIN_QUERY(value, device);
    const cudaDeviceProp &p = properties(device);
    switch (attribute) {
#define NONE(...)
#define ATTRIBUTE(name, NAME, number, answer)                                                                \
    case cudaDevAttr##name:                                                                                  \
        return store(value, (int)(answer));
        CUDA_CPU_ATTRIBUTES(ATTRIBUTE, NONE)
#undef NONE
    }
    return fail(cudaErrorInvalidValue, "%s: there is no attribute %d", call, (int)attribute);
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const cudaChannelFormatDesc *format,
                                                 int device) {
    BEGIN(width, format);
    int limit;
    TRY(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxTexture1DLinearWidth, device));
    return store(width, (size_t)limit);
}
