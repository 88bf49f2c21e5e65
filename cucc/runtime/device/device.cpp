// SPDX-License-Identifier: MIT
// Devices, all of them this machine's processor: number, settings, peers, the current one of a host thread
#include "stream.h"

#include <cctype>

namespace cuda_cpu {
namespace {

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
        for (int i = 0; i < count; ++i)
            all.push_back(describe_device(i));
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
            const auto matches = [&](const cudaDeviceProp &d) {
                return uuid_text(d.uuid).rfind(entry, 0) == 0;
            };
            const auto found = std::find_if(all.begin(), all.end(), matches);
            return std::count_if(found, all.end(), matches) == 1 ? (size_t)(found - all.begin()) : all.size();
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

struct DeviceSettings {
    std::atomic<bool> peers[max_devices];
    std::atomic<size_t> limits[7];
    std::atomic<unsigned> flags;
    std::atomic<int> cache;

    DeviceSettings() { reset(); }
    void reset() {
        for (auto &peer : peers)
            peer = false;
        static const size_t defaults[7] = {1 << 10, 8650752, 8 << 20, 2, 2048, 64, 0};
        std::copy(defaults, defaults + 7, limits);
        flags = 0;
        cache = cudaFuncCachePreferNone;
    }
};

DeviceSettings &settings_of(int device) {
    static DeviceSettings *const all = new DeviceSettings[max_devices];
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
    return settings_of(device).limits[limit];
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

cudaError_t check_device(const char *call, int device) {
    FAIL_IF(device < 0 || device >= device_count(), cudaErrorInvalidDevice,
            "there is no device %d, only 0 to %d", device, device_count() - 1);
    return cudaSuccess;
}

} // namespace cuda_cpu

// Prints no message when there is no device, because programs call this to find that out.
cudaError_t cudaGetDeviceCount(int *count) {
    MAY_FAIL(count);
    *count = device_count();
    if (*count == 0 && devices().none != cudaErrorNoDevice)
        return no_device(call);
    return *count ? cudaSuccess : cudaErrorNoDevice;
}

SIMPLE_CALL(cudaGetDevice, (int *device), BEGIN_QUERY(device), store(device, current))
SIMPLE_CALL(cudaSetDevice, (int device), BEGIN_QUERY(device), store(&current, device))

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device) {
    BEGIN_QUERY(id, device);
    FAIL_IF(length < 13, cudaErrorInvalidValue, "an ID needs 13 bytes, the buffer has %d", length);
    const cudaDeviceProp &p = properties(device);
    snprintf(id, (size_t)length, "%04x:%02x:%02x.0", p.pciDomainID, p.pciBusID, p.pciDeviceID);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id) {
    BEGIN_QUERY(device, id);
    unsigned domain = 0, bus, slot;
    FAIL_IF(sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
                (domain = 0, sscanf(id, "%x:%x", &bus, &slot) != 2),
            cudaErrorInvalidValue, "%s is not a PCI bus ID", id);
    for (int i = 0; i < device_count(); ++i)
        if (domain == 0 && slot == 0 && bus == (unsigned)properties(i).pciBusID)
            return store(device, i);
    return fail(cudaErrorInvalidDevice, "%s: there is no device %s", call, id);
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
    BEGIN();
    const unsigned schedule = flags & cudaDeviceScheduleMask;
    FAIL_IF(flags & ~(unsigned)cudaDeviceMask || (schedule & (schedule - 1)), cudaErrorInvalidValue,
            "0x%x is not a valid combination of flags", flags);
    settings_of(current).flags = flags;
    return cudaSuccess;
}

// Page-locked memory can always be mapped, so the flag cudaDeviceMapHost is always set.
SIMPLE_CALL(cudaGetDeviceFlags, (unsigned *flags), BEGIN(flags),
            store(flags, settings_of(current).flags | cudaDeviceMapHost))

// Runs the deferred work of the device's streams, and waits for asynchronous launches (operation.cpp). By
// default there is neither, and the call returns at once.
cudaError_t cudaDeviceSynchronize() {
    if (in_kernel_now())
        return finish_children();
    BEGIN();
    TRY(refuse_unsafe(call));
    return finish_device(current);
}

cudaError_t cudaDeviceReset() {
    BEGIN_QUERY();
    finish_device(-1);
    free_memory_of(current);
    destroy_streams_of(current);
    reset_symbols_of(current);
    settings_of(current).reset();
    lose_failed_device();
    return cudaSuccess;
}

// Limits and cache preferences are only stored, except cudaLimitDevRuntimePendingLaunchCount.
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    BEGIN();
    IN_ENUMERATION(limit, cudaLimitStackSize, cudaLimitPersistingL2CacheSize, "limit");
    if (limit == cudaLimitDevRuntimePendingLaunchCount)
        value = std::max<size_t>(value, 32); // as on an H200 with CUDA 13.0
    settings_of(current).limits[limit] = value;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
    BEGIN(value);
    IN_ENUMERATION(limit, cudaLimitStackSize, cudaLimitPersistingL2CacheSize, "limit");
    return store(value, settings_of(current).limits[limit].load());
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
    BEGIN();
    IN_ENUMERATION(config, cudaFuncCachePreferNone, cudaFuncCachePreferEqual, "preference");
    settings_of(current).cache = config;
    return cudaSuccess;
}

SIMPLE_CALL(cudaDeviceGetCacheConfig, (cudaFuncCache * config), BEGIN(config),
            store(config, (cudaFuncCache)settings_of(current).cache.load()))
SIMPLE_CALL(cudaDeviceGetSharedMemConfig, (cudaSharedMemConfig * config), BEGIN(config),
            store(config, cudaSharedMemBankSizeFourByte))

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
    BEGIN();
    IN_ENUMERATION(config, cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeEightByte, "bank size");
    return cudaSuccess;
}

cudaError_t cudaSetValidDevices(int *list, int count) {
    BEGIN_QUERY(list);
    for (int i = 0; i < count; ++i)
        TRY(check_device(call, list[i]));
    return cudaSuccess;
}

SIMPLE_CALL(cudaInitDevice, (int device, unsigned, unsigned), BEGIN_QUERY(), check_device(call, device))
SIMPLE_CALL(cudaCtxResetPersistingL2Cache, (), BEGIN(), cudaSuccess)

SIMPLE_CALL(cudaDriverGetVersion, (int *version), MAY_FAIL(version), store(version, CUDART_VERSION))
SIMPLE_CALL(cudaRuntimeGetVersion, (int *version), MAY_FAIL(version), store(version, CUDART_VERSION))
SIMPLE_CALL(cudaDeviceCanAccessPeer, (int *can, int device, int peer), BEGIN_QUERY(can, device, peer),
            store(can, device != peer))

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    BEGIN();
    FAIL_IF(flags, cudaErrorInvalidValue, "flags are 0x%x, must be 0", flags);
    TRY(check_device(call, peer));
    FAIL_IF(peer == current, cudaErrorPeerAccessUnsupported, "device %d is not a peer of itself", peer);
    FAIL_IF(settings_of(current).peers[peer].exchange(true), cudaErrorPeerAccessAlreadyEnabled,
            "device %d already has access to device %d", current, peer);
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    BEGIN(peer);
    FAIL_IF(!settings_of(current).peers[peer].exchange(false), cudaErrorPeerAccessNotEnabled,
            "device %d has no access to device %d", current, peer);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attribute, int device, int peer) {
    BEGIN_QUERY(value, device, peer);
    FAIL_IF(device == peer, cudaErrorInvalidDevice, "device %d is not a peer of itself", peer);
    IN_ENUMERATION(attribute, cudaDevP2PAttrPerformanceRank, cudaDevP2PAttrOnlyPartialNativeAtomicSupported,
                   "attribute");
    *value = attribute == cudaDevP2PAttrAccessSupported || attribute == cudaDevP2PAttrNativeAtomicSupported;
    return cudaSuccess;
}
