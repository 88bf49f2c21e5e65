// SPDX-License-Identifier: MIT
/*
 * Devices: their number, their properties, and the current device of each host thread.
 *
 * All devices are this machine's processor. CUDA_CPU_DEVICES sets their number, 2 by default.
 * CUDA_VISIBLE_DEVICES selects among them by CUDA's rules.
 */
#include "internal.h"
#include "operation.h"
#include "cuda_cpu/math.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <set>
#include <string>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace cuda_cpu {

namespace {

// ---- the machine ----

constexpr int MAX_TEXTURE_1D_LINEAR = 1 << 28;

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
            return line.substr(line.find(": ") + 2);
    utsname system;
    return uname(&system) == 0 ? std::string(system.machine) + " processor" : "CPU";
}

// Reads the number that follows `word` in a file, and multiplies it by `unit`. Returns `missing` if there is
// no such file or number.
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
    const size_t none = SIZE_MAX;
    size_t limit = number_in("/sys/fs/cgroup/memory.max", "", 1, none);
    if (limit != none)
        return {limit, number_in("/sys/fs/cgroup/memory.current", "", 1, 0) -
                           number_in("/sys/fs/cgroup/memory.stat", "inactive_file", 1, 0)};
    limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", "", 1, none);
    return {limit, number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes", "", 1, 0) -
                       number_in("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file", 1, 0)};
}

size_t machine_memory() {
    const size_t all = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    return std::min(all, container_limit().limit);
}

int last_level_cache() {
    for (int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
        if (const long size = sysconf(level); size > 0)
            return (int)std::min(size, (long)INT_MAX);
    return 0;
}

// The rate of clock64() in ticks per millisecond, measured over 10 ms.
int ticks_per_millisecond() {
    const auto now = [] {
        timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000000000ll + t.tv_nsec;
    };
    const long long start = now(), start_ticks = clock64();
    long long end;
    do
        end = now();
    while (end - start < 10000000);
    return (int)((clock64() - start_ticks) * 1000000 / (end - start));
}

struct {
    // Measured on first use, because it takes 10 ms.
    struct {
        operator int() const {
            static const int khz = ticks_per_millisecond();
            return khz;
        }
    } clock_khz;
} const machine;

// ---- the devices ----

// Compute capability 8.0 is the newest whose features are all supported here; 9.0 adds clusters.
// The limits that belong to the programming model are those of 8.0; the others describe this
// machine.
cudaDeviceProp describe(int device) {
    cudaDeviceProp p = {};
    snprintf(p.name, sizeof p.name, "%s", processor_name().c_str());
    memcpy(p.uuid.bytes, "CUDA on the CPU", 15);
    p.uuid.bytes[15] = (char)device;
    p.major = 8;
    p.minor = 0;
    p.multiProcessorCount = worker_count();
    p.totalGlobalMem = machine_memory();
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
    // one after the other here, except for asynchronous launches (operation.h).
    p.concurrentKernels = p.streamPrioritiesSupported = 1;
    p.asyncEngineCount = 2;
    p.deviceNumaId = p.hostNumaId = -1;
    return p;
}

// CUDA_CPU_PROPERTIES=distinct: numbers that are equal on this device, such as the largest height and depth
// of a texture, are made smaller by 1 until all differ. So a test sees whether a program prints the property
// that it names. The limits of launches change with them.
void make_distinct(cudaDeviceProp &p) {
    const char *value = getenv("CUDA_CPU_PROPERTIES");
    if (!value || strcmp(value, "usual") == 0)
        return;
    if (strcmp(value, "distinct") != 0)
        refuse_setting("CUDA_CPU_PROPERTIES", value, "usual or distinct");
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

// A UUID as text in the form that CUDA_VISIBLE_DEVICES uses: "GPU-43554441-…".
std::string uuid_text(const cudaUUID_t &uuid) {
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", (unsigned char)uuid.bytes[i]);
        text += digits;
        if (i == 3 || i == 5 || i == 7 || i == 9)
            text += '-';
    }
    return text;
}

struct Devices {
    std::vector<cudaDeviceProp> visible;
    std::string why_none;
    cudaError_t none = cudaErrorNoDevice; // returned by every call when no device is visible

    Devices() {
        check_constant_limit();
        int count = 2;
        if (const char *value = getenv("CUDA_CPU_DEVICES")) {
            char *end;
            const long n = strtol(value, &end, 10);
            if (!isdigit((unsigned char)*value) || *end || n > max_devices)
                refuse_setting("CUDA_CPU_DEVICES", value,
                               ("a number from 0 to " + std::to_string(max_devices)).c_str());
            count = (int)n;
            if (count == 0)
                why_none = "CUDA_CPU_DEVICES is 0";
        }
        std::vector<cudaDeviceProp> all;
        for (int i = 0; i < count; ++i) {
            all.push_back(describe(i));
            make_distinct(all.back());
        }
        const char *list = getenv("CUDA_VISIBLE_DEVICES");
        if (!list)
            visible = all;
        else
            choose(all, list);
    }

    // Selects devices by a list of indices and UUIDs, with the rules of CUDA: the list ends at the first
    // entry that names no device, and if a device appears twice, no device is visible.
    void choose(const std::vector<cudaDeviceProp> &all, const std::string &list) {
        std::vector<size_t> chosen;
        for (size_t begin = 0; begin <= list.size();) {
            const size_t end = std::min(list.find(',', begin), list.size());
            const size_t device = find(all, list.substr(begin, end - begin));
            if (device == all.size())
                break;
            if (std::count(chosen.begin(), chosen.end(), device)) {
                why_none = "CUDA_VISIBLE_DEVICES=" + list + " names a device twice";
                none = cudaErrorInvalidDevice;
                return;
            }
            chosen.push_back(device);
            begin = end + 1;
        }
        for (size_t device : chosen)
            visible.push_back(all[device]);
        if (visible.empty() && why_none.empty())
            why_none = "CUDA_VISIBLE_DEVICES=" + list + " selects no device";
    }

    static size_t find(const std::vector<cudaDeviceProp> &all, const std::string &entry) {
        if (entry.rfind("GPU-", 0) == 0) { // any prefix of a UUID that identifies one device
            size_t found = all.size();
            for (size_t i = 0; i < all.size(); ++i)
                if (uuid_text(all[i].uuid).rfind(entry, 0) == 0) {
                    if (found != all.size())
                        return all.size();
                    found = i;
                }
            return found;
        }
        char *end;
        const long index = strtol(entry.c_str(), &end, 10); // text after the number is ignored
        return end != entry.c_str() && index >= 0 && (size_t)index < all.size() ? (size_t)index : all.size();
    }
};

// Built at the first call. Never destroyed: host threads may use it while the process exits.
const Devices &devices() {
    static const Devices &all = *new Devices;
    return all;
}

thread_local int current = 0;

struct State { // settings of one device
    std::atomic<bool> peers[max_devices];
    std::atomic<size_t> limits[7];
    std::atomic<unsigned> flags;
    std::atomic<int> cache;

    void reset() {
        for (auto &peer : peers)
            peer = false;
        static const size_t defaults[7] = {1 << 10, 8650752, 8 << 20, 2, 2048, 64, 0};
        std::copy(defaults, defaults + 7, limits);
        flags = 0;
        cache = cudaFuncCachePreferNone;
    }
};

State &state_of(int device) {
    static State *const all = [] {
        State *states = new State[max_devices];
        for (int i = 0; i < max_devices; ++i)
            states[i].reset();
        return states;
    }();
    return all[device];
}

} // namespace

int device_count() {
    return (int)devices().visible.size();
}

int current_device() {
    return current;
}

size_t limit_of(int device, cudaLimit limit) {
    return state_of(device).limits[limit];
}

OnDevice::OnDevice(int device) : before(current) {
    current = device;
}

OnDevice::~OnDevice() {
    current = before;
}

const cudaDeviceProp &properties(int device) {
    return devices().visible[device];
}

cudaError_t no_device(const char *call) {
    return fail(devices().none, "%s: no device: %s", call, devices().why_none.c_str());
}

bool device_exists(const char *call, int device) {
    if (device >= 0 && device < device_count())
        return true;
    fail(cudaErrorInvalidDevice, "%s: there is no device %d, only 0 to %d", call, device, device_count() - 1);
    return false;
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

using namespace cuda_cpu;

extern "C" {

// Prints no message when there is no device, because programs call this to find that out.
cudaError_t cudaGetDeviceCount(int *count) {
    MAY_FAIL();
    NOT_NULL(count);
    *count = device_count();
    if (*count == 0 && devices().none != cudaErrorNoDevice)
        return no_device(__func__);
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDevice(int *device) {
    BEGIN_QUERY();
    NOT_NULL(device);
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    BEGIN_QUERY();
    if (!device_exists(__func__, device))
        return cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
}

// Chooses the device that has most of the requested properties; of equal ones, the first. A field that is 0
// requests nothing.
cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *wanted) {
    BEGIN_QUERY();
    NOT_NULL(device);
    NOT_NULL(wanted);
    int best = -1;
    for (int i = 0; i < device_count(); ++i) {
        const cudaDeviceProp &p = properties(i);
        int score = 0;
        const auto compare = [&](auto has, auto asked) { score += asked && has >= asked; };
        score += wanted->name[0] && strncmp(wanted->name, p.name, sizeof p.name) == 0;
        compare(p.major * 10 + p.minor, wanted->major * 10 + wanted->minor);
        compare(p.totalGlobalMem, wanted->totalGlobalMem);
        compare(p.sharedMemPerBlock, wanted->sharedMemPerBlock);
        compare(p.regsPerBlock, wanted->regsPerBlock);
        compare(p.maxThreadsPerBlock, wanted->maxThreadsPerBlock);
        compare(p.totalConstMem, wanted->totalConstMem);
        compare(p.memPitch, wanted->memPitch);
        compare(p.multiProcessorCount, wanted->multiProcessorCount);
        compare(p.integrated, wanted->integrated);
        compare(p.canMapHostMemory, wanted->canMapHostMemory);
        compare(p.concurrentKernels, wanted->concurrentKernels);
        compare(p.asyncEngineCount, wanted->asyncEngineCount);
        compare(p.ECCEnabled, wanted->ECCEnabled);
        compare(p.cooperativeLaunch, wanted->cooperativeLaunch);
        compare(p.managedMemory, wanted->managedMemory);
        compare(p.sharedMemPerBlockOptin, wanted->sharedMemPerBlockOptin);
        if (score > best) {
            best = score;
            *device = i;
        }
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    BEGIN_QUERY();
    NOT_NULL(properties);
    if (!device_exists(__func__, device))
        return cudaErrorInvalidDevice;
    *properties = cuda_cpu::properties(device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    BEGIN_QUERY();
    NOT_NULL(value);
    if (!device_exists(__func__, device))
        return cudaErrorInvalidDevice;
    const cudaDeviceProp &p = properties(device);
    switch (attribute) {
#define ATTRIBUTE(name, number, answer)                                                                      \
    case name:                                                                                               \
        *value = (int)(answer);                                                                              \
        return cudaSuccess;
        CUDA_CPU_ATTRIBUTES(ATTRIBUTE)
#undef ATTRIBUTE
    }
    return fail(cudaErrorInvalidValue, "cudaDeviceGetAttribute: there is no attribute %d", (int)attribute);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) {
    BEGIN_QUERY();
    NOT_NULL(id);
    if (!device_exists(__func__, device))
        return cudaErrorInvalidDevice;
    if (length < 13)
        return fail(cudaErrorInvalidValue, "cudaDeviceGetPCIBusId: an ID needs 13 bytes, the buffer has %d",
                    length);
    const cudaDeviceProp &p = properties(device);
    snprintf(id, (size_t)length, "%04x:%02x:%02x.0", p.pciDomainID, p.pciBusID, p.pciDeviceID);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) {
    BEGIN_QUERY();
    NOT_NULL(device);
    NOT_NULL(id);
    unsigned domain = 0, bus, slot;
    if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
        (domain = 0, sscanf(id, "%x:%x", &bus, &slot) != 2))
        return fail(cudaErrorInvalidValue, "cudaDeviceGetByPCIBusId: %s is not a PCI bus ID", id);
    for (int i = 0; i < device_count(); ++i)
        if (domain == 0 && slot == 0 && bus == (unsigned)properties(i).pciBusID) {
            *device = i;
            return cudaSuccess;
        }
    return fail(cudaErrorInvalidDevice, "cudaDeviceGetByPCIBusId: there is no device %s", id);
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
    BEGIN();
    const unsigned schedule = flags & cudaDeviceScheduleMask;
    if (flags & ~(unsigned)cudaDeviceMask || (schedule & (schedule - 1)))
        return fail(cudaErrorInvalidValue, "cudaSetDeviceFlags: 0x%x is not a valid combination of flags",
                    flags);
    state_of(current).flags = flags;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned *flags) {
    BEGIN();
    NOT_NULL(flags);
    *flags = state_of(current).flags | cudaDeviceMapHost; // cudaDeviceMapHost is always in effect
    return cudaSuccess;
}

// Runs the deferred work of the device's streams, and waits for asynchronous launches (operation.cpp). By
// default there is neither, and the call returns at once.
cudaError_t cudaDeviceSynchronize() {
    if (in_kernel_now())
        return finish_children();
    BEGIN();
    if (const cudaError_t error = refuse_unsafe(__func__))
        return error;
    return finish_device(current);
}

cudaError_t cudaDeviceReset() {
    BEGIN_QUERY();
    finish_device(-1);
    free_memory_of(current);
    destroy_streams_of(current);
    reset_symbols_of(current);
    state_of(current).reset();
    lose_failed_device();
    return cudaSuccess;
}

// Limits and cache preferences are stored for queries. Only cudaLimitDevRuntimePendingLaunchCount has an
// effect.
static cudaError_t check_limit(const char *call, cudaLimit limit) {
    if ((unsigned)limit > cudaLimitPersistingL2CacheSize)
        return fail(cudaErrorInvalidValue, "%s: there is no limit %d", call, (int)limit);
    return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    BEGIN();
    if (const cudaError_t error = check_limit(__func__, limit))
        return error;
    if (limit == cudaLimitDevRuntimePendingLaunchCount)
        value = std::max<size_t>(value, 32); // as on an H200 with CUDA 13.0
    state_of(current).limits[limit] = value;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
    BEGIN();
    NOT_NULL(value);
    if (const cudaError_t error = check_limit(__func__, limit))
        return error;
    *value = state_of(current).limits[limit];
    return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
    BEGIN();
    if ((unsigned)config > cudaFuncCachePreferEqual)
        return fail(cudaErrorInvalidValue, "cudaDeviceSetCacheConfig: there is no preference %d",
                    (int)config);
    state_of(current).cache = config;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config) {
    BEGIN();
    NOT_NULL(config);
    *config = (cudaFuncCache)state_of(current).cache.load();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config) {
    BEGIN();
    NOT_NULL(config);
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
    BEGIN();
    if ((unsigned)config > cudaSharedMemBankSizeEightByte)
        return fail(cudaErrorInvalidValue, "%s: there is no bank size %d", __func__, (int)config);
    return cudaSuccess;
}

cudaError_t cudaSetValidDevices(int *list, int count) {
    BEGIN_QUERY();
    NOT_NULL(list);
    for (int i = 0; i < count; ++i)
        if (!device_exists(__func__, list[i]))
            return cudaErrorInvalidDevice;
    return cudaSuccess;
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
    BEGIN_QUERY();
    return device_exists(__func__, device) ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaCtxResetPersistingL2Cache() {
    BEGIN();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const cudaChannelFormatDesc *format,
                                                 int device) {
    BEGIN();
    NOT_NULL(width);
    NOT_NULL(format);
    int limit;
    if (const cudaError_t error = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxTexture1DLinearWidth, device))
        return error;
    *width = (size_t)limit;
    return cudaSuccess;
}

static cudaError_t no_entry_point(const char *call, const char *symbol, void **function,
                                  cudaDriverEntryPointQueryResult *result) {
    if (function)
        *function = nullptr;
    if (result)
        *result = cudaDriverEntryPointSymbolNotFound;
    return fail(cudaErrorNotSupported, "%s: there is no driver here in which to look up %s", call,
                symbol ? symbol : "a function");
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long,
                                    cudaDriverEntryPointQueryResult *result) {
    return no_entry_point(__func__, symbol, function, result);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned,
                                             unsigned long long, cudaDriverEntryPointQueryResult *result) {
    return no_entry_point(__func__, symbol, function, result);
}

cudaError_t cudaDriverGetVersion(int *version) {
    MAY_FAIL();
    NOT_NULL(version);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    MAY_FAIL();
    NOT_NULL(version);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    BEGIN_QUERY();
    NOT_NULL(can);
    if (!device_exists(__func__, device) || !device_exists(__func__, peer))
        return cudaErrorInvalidDevice;
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    BEGIN();
    if (flags)
        return fail(cudaErrorInvalidValue, "cudaDeviceEnablePeerAccess: flags are 0x%x, must be 0", flags);
    if (!device_exists(__func__, peer))
        return cudaErrorInvalidDevice;
    if (peer == current)
        return fail(cudaErrorPeerAccessUnsupported,
                    "cudaDeviceEnablePeerAccess: device %d is not a peer of itself", peer);
    if (state_of(current).peers[peer].exchange(true))
        return fail(cudaErrorPeerAccessAlreadyEnabled,
                    "cudaDeviceEnablePeerAccess: device %d already has access to device %d", current, peer);
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    BEGIN();
    if (!device_exists(__func__, peer))
        return cudaErrorInvalidDevice;
    if (!state_of(current).peers[peer].exchange(false))
        return fail(cudaErrorPeerAccessNotEnabled,
                    "cudaDeviceDisablePeerAccess: device %d has no access to device %d", current, peer);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attribute, int device, int peer) {
    BEGIN_QUERY();
    NOT_NULL(value);
    if (!device_exists(__func__, device) || !device_exists(__func__, peer))
        return cudaErrorInvalidDevice;
    if (device == peer)
        return fail(cudaErrorInvalidDevice, "cudaDeviceGetP2PAttribute: device %d is not a peer of itself",
                    peer);
    switch (attribute) {
    case cudaDevP2PAttrPerformanceRank:
        *value = 0;
        return cudaSuccess;
    case cudaDevP2PAttrAccessSupported:
    case cudaDevP2PAttrNativeAtomicSupported:
        *value = 1;
        return cudaSuccess;
    case cudaDevP2PAttrCudaArrayAccessSupported:
    case cudaDevP2PAttrOnlyPartialNativeAtomicSupported:
        *value = 0;
        return cudaSuccess;
    }
    return fail(cudaErrorInvalidValue, "cudaDeviceGetP2PAttribute: there is no attribute %d", (int)attribute);
}

} // extern "C"
