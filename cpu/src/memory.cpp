// SPDX-License-Identifier: MIT
/*
 * Memory: a registry of all allocations, and the copies and fills that are checked against it.
 *
 * Allocations come from the C library and have exactly the requested size, so that AddressSanitizer
 * detects an access one byte past the end.
 */
#include "internal.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <shared_mutex>
#include <string>
#include <sys/mman.h>

namespace cuda_cpu {

namespace {

struct Registry {
    std::shared_mutex mutex;
    std::map<const char *, Allocation> live; // by base
    std::deque<Allocation> freed;            // the last 1000, for messages
    size_t used[max_devices] = {};           // bytes of device and managed memory
};

// Never destroyed: host threads may use it while the process exits.
Registry &registry() {
    static Registry &all = *new Registry;
    return all;
}

std::string place(const Allocation &a, const char *verb) {
    return a.file ? std::string(", ") + verb + " at " + base_name(a.file) + ":" + std::to_string(a.line)
                  : std::string();
}

// "40 bytes of device 0, allocated at add.cu:12"
std::string describe(const Allocation &a) {
    const std::string bytes = std::to_string(a.size) + " bytes of ";
    switch (a.kind) {
    case MemoryKind::device:
        return bytes + "device " + std::to_string(a.device) + place(a, "allocated");
    case MemoryKind::managed:
        return bytes + "managed memory" + place(a, "allocated");
    case MemoryKind::pinned:
        return bytes + "pinned host memory" + place(a, "allocated");
    case MemoryKind::registered:
        return bytes + "registered host memory" + place(a, "registered");
    }
    return bytes;
}

// The live allocation that contains the pointer, or null. The caller holds the registry's lock.
const Allocation *lookup(const Registry &r, const void *pointer) {
    auto next = r.live.upper_bound((const char *)pointer);
    if (next == r.live.begin())
        return nullptr;
    const Allocation &a = std::prev(next)->second;
    return (const char *)pointer < a.base + a.size ? &a : nullptr;
}

// Explains a pointer that is in no live allocation: ", 4 bytes past the end of …". The caller holds
// the registry's lock.
std::string explain_unknown(const Registry &r, const void *pointer) {
    const char *p = (const char *)pointer;
    for (auto a = r.freed.rbegin(); a != r.freed.rend(); ++a) {
        if (p == a->base)
            return ", and was freed already: " + describe(*a);
        if (p > a->base && p < a->base + a->size)
            return ", and is inside freed memory: " + describe(*a);
    }
    auto next = r.live.upper_bound(p);
    if (next != r.live.begin()) {
        const Allocation &a = std::prev(next)->second;
        const size_t past = (size_t)(p - a.base) - a.size;
        if (past < 4096)
            return ", " + std::to_string(past) + " bytes past the end of " + describe(a);
    }
    return "";
}

// Fresh memory holds NaN, so that a read before the first write shows in the result.
void fill_fresh(void *memory, size_t bytes) {
    memset(memory, 0xff, bytes);
}

constexpr size_t alignment = 512; // of cudaDeviceProp::textureAlignment
constexpr size_t huge_page = 2 << 20;

// Large allocations use huge pages, which need 512 times fewer page faults on the first write.
void *get_memory(size_t bytes) {
    void *memory;
    if (posix_memalign(&memory, bytes >= 2 * huge_page ? huge_page : alignment, bytes) != 0)
        return nullptr;
    if (bytes >= 2 * huge_page)
        madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE);
    fill_fresh(memory, bytes);
    return memory;
}

} // namespace

SymbolAccess::SymbolAccess(const void *a, const void *b) {
    const SymbolSection *s = symbol_section(a), *t = symbol_section(b);
    if ((s && s->per_device) || (t && t->per_device)) {
        lock = std::unique_lock(launch_lock());
        symbols_for_device(current_device());
    }
}

// Prints the line of the program and the sizes in one message, because HANDLE_ERROR prints nothing
// more for this error.
__attribute__((format(printf, 4, 5))) static cudaError_t out_of_memory(const char *call, const char *file,
                                                                       int line, const char *format, ...) {
    char figures[256];
    va_list values;
    va_start(values, format);
    vsnprintf(figures, sizeof figures, format, values);
    va_end(values);
    const std::string where = file ? std::string(" at ") + base_name(file) + ":" + std::to_string(line) : "";
    fail(cudaErrorMemoryAllocation, "%s%s: out of memory: %s", call, where.c_str(), figures);
    told_of_memory = file != nullptr;
    return cudaErrorMemoryAllocation;
}

cudaError_t allocate(const char *call, void **pointer, size_t bytes, MemoryKind kind, unsigned flags,
                     const char *file, int line) {
    const int device = current_device();
    const bool on_device = kind != MemoryKind::pinned;
    if (bytes == 0) {
        *pointer = nullptr;
        return cudaSuccess;
    }
    Registry &r = registry();
    const size_t total = properties(device).totalGlobalMem;
    size_t left;
    {
        std::lock_guard lock(r.mutex);
        left = on_device ? total - std::min(total, r.used[device]) : total;
        if (bytes <= left && on_device)
            r.used[device] += bytes; // reserved, so that no other thread gets these bytes
    }
    const auto give_back = [&] {
        std::lock_guard lock(r.mutex);
        if (on_device)
            r.used[device] -= bytes;
    };
    if (bytes > left)
        return out_of_memory(call, file, line, "%zu bytes requested, %zu of %zu are free", bytes, left,
                             total);
    // Writing more memory than is available would kill the process, so a large request is checked
    // first.
    if (bytes >= 16 << 20)
        if (const size_t available = available_memory(); bytes > available) {
            give_back();
            return out_of_memory(call, file, line, "%zu bytes requested, this machine has %zu free", bytes,
                                 available);
        }
    void *memory = get_memory(bytes);
    if (!memory) {
        give_back();
        return out_of_memory(call, file, line, "%zu bytes requested, the system refused them (%zu are free)",
                             bytes, left);
    }
    std::lock_guard lock(r.mutex);
    r.live[(char *)memory] = {(char *)memory, bytes, kind, device, flags, file, line};
    *pointer = memory;
    return cudaSuccess;
}

namespace {

void remember_freed(Registry &r, const Allocation &a) {
    r.freed.push_back(a);
    if (r.freed.size() > 1000)
        r.freed.pop_front();
}

// Removes an allocation of a suitable kind from the registry; fails when there is none at this
// address.
template <class Fits>
cudaError_t take_out(const char *call, void *pointer, Allocation &taken, const char *wanted, Fits fits) {
    Registry &r = registry();
    std::unique_lock lock(r.mutex);
    const Allocation *a = lookup(r, pointer);
    if (a && a->base == pointer && fits(a->kind)) {
        taken = *a;
        if (a->kind == MemoryKind::device || a->kind == MemoryKind::managed)
            r.used[a->device] -= a->size;
        if (a->kind != MemoryKind::registered)
            remember_freed(r, *a);
        r.live.erase(taken.base);
        return cudaSuccess;
    }
    std::string why;
    if (!a)
        why = "was not " + std::string(wanted) + explain_unknown(r, pointer);
    else if (a->base != pointer)
        why = "is " + std::to_string((char *)pointer - a->base) + " bytes into " + describe(*a);
    else
        why = "was not " + std::string(wanted) + ", it is " + describe(*a);
    lock.unlock();
    return fail(cudaErrorInvalidValue, "%s: %p %s", call, pointer, why.c_str());
}

const char *const sources[] = {"source of cudaMemcpyHostToHost", "source of cudaMemcpyHostToDevice",
                               "source of cudaMemcpyDeviceToHost", "source of cudaMemcpyDeviceToDevice",
                               "source of cudaMemcpyDefault"};
const char *const targets[] = {"destination of cudaMemcpyHostToHost", "destination of cudaMemcpyHostToDevice",
                               "destination of cudaMemcpyDeviceToHost",
                               "destination of cudaMemcpyDeviceToDevice", "destination of cudaMemcpyDefault"};

Side side_of_source(cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault                                        ? Side::either
           : kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? Side::host
                                                                            : Side::device;
}

Side side_of_target(cudaMemcpyKind kind) {
    return kind == cudaMemcpyDefault                                        ? Side::either
           : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? Side::host
                                                                            : Side::device;
}

// Bytes from the start of the first row to the end of the last; false when that overflows.
bool extent_2d(size_t pitch, size_t width, size_t rows, size_t &bytes) {
    return !__builtin_mul_overflow(pitch, rows - 1, &bytes) && !__builtin_add_overflow(bytes, width, &bytes);
}

cudaError_t copy(const char *call, void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream) {
    if (const cudaError_t error = begin(call))
        return error;
    if (bytes == 0)
        return cudaSuccess;
    if ((unsigned)kind > cudaMemcpyDefault)
        return fail(cudaErrorInvalidMemcpyDirection, "%s: there is no direction %d", call, (int)kind);
    if (!stream_known(stream, call))
        return cudaErrorInvalidResourceHandle;
    if (const cudaError_t error = check_range(call, targets[kind], to, bytes, side_of_target(kind)))
        return error;
    if (const cudaError_t error = check_range(call, sources[kind], from, bytes, side_of_source(kind)))
        return error;
    SymbolAccess symbols(to, from);
    copy_memory(to, from, bytes);
    return cudaSuccess;
}

cudaError_t copy_2d(const char *call, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                    size_t width, size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
    if (const cudaError_t error = begin(call))
        return error;
    if (width == 0 || rows == 0)
        return cudaSuccess;
    if ((unsigned)kind > cudaMemcpyDefault)
        return fail(cudaErrorInvalidMemcpyDirection, "%s: there is no direction %d", call, (int)kind);
    if (!stream_known(stream, call))
        return cudaErrorInvalidResourceHandle;
    if (width > to_pitch || width > from_pitch)
        return fail(cudaErrorInvalidPitchValue,
                    "%s: rows of %zu bytes do not fit pitches of %zu (destination) and %zu (source)", call,
                    width, to_pitch, from_pitch);
    size_t to_bytes, from_bytes;
    if (!extent_2d(to_pitch, width, rows, to_bytes) || !extent_2d(from_pitch, width, rows, from_bytes))
        return fail(cudaErrorInvalidValue, "%s: %zu rows are more than memory has", call, rows);
    if (const cudaError_t error = check_range(call, targets[kind], to, to_bytes, side_of_target(kind)))
        return error;
    if (const cudaError_t error = check_range(call, sources[kind], from, from_bytes, side_of_source(kind)))
        return error;
    SymbolAccess symbols(to, from);
    for (size_t row = 0; row < rows; ++row)
        copy_memory((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return cudaSuccess;
}

cudaError_t copy_peer(const char *call, void *to, int to_device, const void *from, int from_device,
                      size_t bytes, cudaStream_t stream) {
    if (const cudaError_t error = begin(call))
        return error;
    if (!device_exists(call, to_device) || !device_exists(call, from_device))
        return cudaErrorInvalidDevice;
    if (!stream_known(stream, call))
        return cudaErrorInvalidResourceHandle;
    if (bytes == 0)
        return cudaSuccess;
    if (const cudaError_t error = check_range(call, "destination", to, bytes, Side::device))
        return error;
    if (const cudaError_t error = check_range(call, "source", from, bytes, Side::device))
        return error;
    const auto wrong_device = [&](const char *role, const void *p, int device) {
        Allocation a;
        if (!find_allocation(p, a) || a.kind != MemoryKind::device || a.device == device)
            return false;
        fail(cudaErrorInvalidValue, "%s: the %s is memory of device %d, not of device %d", call, role,
             a.device, device);
        return true;
    };
    if (wrong_device("destination", to, to_device) || wrong_device("source", from, from_device))
        return cudaErrorInvalidValue;
    copy_memory(to, from, bytes);
    return cudaSuccess;
}

cudaError_t fill(const char *call, void *to, size_t pitch, int byte, size_t width, size_t rows,
                 cudaStream_t stream) {
    if (const cudaError_t error = begin(call))
        return error;
    if (!stream_known(stream, call))
        return cudaErrorInvalidResourceHandle;
    if (width == 0 || rows == 0)
        return cudaSuccess;
    size_t bytes;
    if (rows > 1 && width > pitch)
        return fail(cudaErrorInvalidValue, "%s: rows of %zu bytes do not fit a pitch of %zu", call, width,
                    pitch);
    if (!extent_2d(pitch, width, rows, bytes))
        return fail(cudaErrorInvalidValue, "%s: %zu rows are more than memory has", call, rows);
    if (const cudaError_t error = check_range(call, "destination", to, bytes, Side::device))
        return error;
    SymbolAccess symbols(to);
    for (size_t row = 0; row < rows; ++row)
        memset((char *)to + row * pitch, byte, width);
    return cudaSuccess;
}

} // namespace

bool find_allocation(const void *pointer, Allocation &found) {
    Registry &r = registry();
    std::shared_lock lock(r.mutex);
    const Allocation *a = lookup(r, pointer);
    if (a)
        found = *a;
    return a;
}

cudaError_t check_range(const char *call, const char *role, const void *pointer, size_t bytes, Side side) {
    if (!pointer)
        return fail(cudaErrorInvalidValue, "%s: the %s is NULL", call, role);
    const SymbolSection *symbols = symbol_section(pointer);
    Allocation a = {};
    std::string unknown;
    bool known;
    {
        Registry &r = registry();
        std::shared_lock lock(r.mutex);
        const Allocation *found = symbols ? nullptr : lookup(r, pointer);
        known = found;
        if (found)
            a = *found;
        else if (!symbols && side == Side::device)
            unknown = explain_unknown(r, pointer);
    }
    const char *const p = (const char *)pointer;
    const bool device_only = symbols ? symbols->per_device : known && a.kind == MemoryKind::device;
    if (side == Side::host && device_only)
        return fail(cudaErrorInvalidValue, "%s: the %s %p is not host memory, it is %s", call, role, pointer,
                    symbols ? "a __device__ or __constant__ variable" : describe(a).c_str());
    if (side == Side::device && !known && !symbols)
        return fail(cudaErrorInvalidValue, "%s: the %s %p is not device memory%s", call, role, pointer,
                    unknown.empty() ? ", it is host memory" : unknown.c_str());
    if (symbols && bytes > (size_t)(symbols->end - p))
        return fail(cudaErrorInvalidValue, "%s: %zu bytes at %p extend past the last variable", call, bytes,
                    pointer);
    if (known && bytes > (size_t)(a.base + a.size - p))
        return fail(cudaErrorInvalidValue, "%s: the %s needs %zu bytes at byte %zu, but is %s", call, role,
                    bytes, (size_t)(p - a.base), describe(a).c_str());
    return cudaSuccess;
}

void copy_memory(void *to, const void *from, size_t bytes) {
    memmove(to, from, bytes);
}

cudaError_t free_device(const char *call, void *pointer, unsigned flags) {
    if (!pointer)
        return cudaSuccess;
    Allocation a;
    if (find_allocation(pointer, a) && a.kind == MemoryKind::device && a.flags != flags)
        return fail(cudaErrorInvalidValue, "%s: %p belongs to a mapped OpenGL resource: %s", call, pointer,
                    describe(a).c_str());
    const cudaError_t error = take_out(call, pointer, a, "allocated by cudaMalloc", [](MemoryKind kind) {
        return kind == MemoryKind::device || kind == MemoryKind::managed;
    });
    if (!error)
        free(a.base);
    return error;
}

void (*forget_graphics_of)(int device);

void free_memory_of(int device) {
    if (forget_graphics_of)
        forget_graphics_of(device);
    free_arrays_of(device);
    Registry &r = registry();
    std::lock_guard lock(r.mutex);
    for (auto i = r.live.begin(); i != r.live.end();) {
        const Allocation a = i->second;
        if (a.device != device) {
            ++i;
            continue;
        }
        i = r.live.erase(i);
        if (a.kind != MemoryKind::registered) {
            remember_freed(r, a);
            free(a.base);
        }
    }
    r.used[device] = 0;
}

cudaError_t malloc_device(void **pointer, size_t bytes, const char *file, int line) {
    if (const cudaError_t error = begin("cudaMalloc"))
        return error;
    if (!pointer)
        return fail(cudaErrorInvalidValue, "cudaMalloc: pointer is NULL");
    return allocate("cudaMalloc", pointer, bytes, MemoryKind::device, 0, file, line);
}

cudaError_t malloc_async(void **pointer, size_t bytes, cudaStream_t stream, const char *file, int line) {
    if (const cudaError_t error = begin("cudaMallocAsync"))
        return error;
    if (!pointer)
        return fail(cudaErrorInvalidValue, "cudaMallocAsync: pointer is NULL");
    if (!stream_known(stream, "cudaMallocAsync"))
        return cudaErrorInvalidResourceHandle;
    return allocate("cudaMallocAsync", pointer, bytes, MemoryKind::device, 0, file, line);
}

cudaError_t malloc_pitch(void **pointer, size_t *pitch, size_t width, size_t rows, const char *file,
                         int line) {
    if (const cudaError_t error = begin("cudaMallocPitch"))
        return error;
    if (!pointer || !pitch)
        return fail(cudaErrorInvalidValue, "cudaMallocPitch: pointer or pitch is NULL");
    const size_t align = properties(current_device()).textureAlignment;
    const size_t padded = (width + align - 1) / align * align;
    size_t bytes;
    if (padded < width || __builtin_mul_overflow(padded, rows, &bytes))
        return out_of_memory("cudaMallocPitch", file, line,
                             "%zu rows of %zu bytes requested, device %d has %zu bytes", rows, width,
                             current_device(), properties(current_device()).totalGlobalMem);
    *pitch = bytes ? padded : 0;
    return allocate("cudaMallocPitch", pointer, bytes, MemoryKind::device, 0, file, line);
}

cudaError_t malloc_managed(void **pointer, size_t bytes, unsigned flags, const char *file, int line) {
    if (const cudaError_t error = begin("cudaMallocManaged"))
        return error;
    if (!pointer)
        return fail(cudaErrorInvalidValue, "cudaMallocManaged: pointer is NULL");
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
        return fail(cudaErrorInvalidValue,
                    "cudaMallocManaged: flags are 0x%x, must be cudaMemAttachGlobal or cudaMemAttachHost",
                    flags);
    return allocate("cudaMallocManaged", pointer, bytes, MemoryKind::managed, flags, file, line);
}

cudaError_t malloc_host(const char *call, void **pointer, size_t bytes, unsigned flags, const char *file,
                        int line) {
    if (const cudaError_t error = begin(call))
        return error;
    if (!pointer)
        return fail(cudaErrorInvalidValue, "%s: pointer is NULL", call);
    if (flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
        return fail(cudaErrorInvalidValue, "%s: 0x%x is not a valid combination of flags", call, flags);
    return allocate(call, pointer, bytes, MemoryKind::pinned, flags, file, line);
}

cudaError_t register_host(void *pointer, size_t bytes, unsigned flags, const char *file, int line) {
    if (const cudaError_t error = begin("cudaHostRegister"))
        return error;
    if (!pointer || bytes == 0)
        return fail(cudaErrorInvalidValue, "cudaHostRegister: cannot register %zu bytes at %p", bytes,
                    pointer);
    if (flags & ~(cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory |
                  cudaHostRegisterReadOnly))
        return fail(cudaErrorInvalidValue, "cudaHostRegister: 0x%x is not a valid combination of flags",
                    flags);
    if (flags & cudaHostRegisterIoMemory)
        return fail(cudaErrorInvalidValue, "cudaHostRegister: I/O memory is not supported");
    Registry &r = registry();
    std::unique_lock lock(r.mutex);
    const auto next = r.live.lower_bound((char *)pointer + bytes);
    if (next != r.live.begin()) {
        const Allocation a = std::prev(next)->second;
        if (a.base + a.size > pointer) {
            lock.unlock();
            return fail(a.kind == MemoryKind::registered ? cudaErrorHostMemoryAlreadyRegistered
                                                         : cudaErrorInvalidValue,
                        "cudaHostRegister: %zu bytes at %p overlap %s", bytes, pointer, describe(a).c_str());
        }
    }
    r.live[(char *)pointer] = {
        (char *)pointer, bytes, MemoryKind::registered, current_device(), flags, file, line};
    return cudaSuccess;
}

} // namespace cuda_cpu

using namespace cuda_cpu;

extern "C" {

// For C. In C++ the overloads in api.h also pass the caller's file and line.
cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    return malloc_device(pointer, bytes, nullptr, 0);
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream) {
    return malloc_async(pointer, bytes, stream, nullptr, 0);
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t rows) {
    return malloc_pitch(pointer, pitch, width, rows, nullptr, 0);
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned flags) {
    return malloc_managed(pointer, bytes, flags, nullptr, 0);
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    return malloc_host("cudaMallocHost", pointer, bytes, cudaHostAllocDefault, nullptr, 0);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    return malloc_host("cudaHostAlloc", pointer, bytes, flags, nullptr, 0);
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags) {
    return register_host(pointer, bytes, flags, nullptr, 0);
}

cudaError_t cudaFree(void *pointer) {
    BEGIN();
    return free_device(__func__, pointer);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    BEGIN();
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    return free_device(__func__, pointer);
}

cudaError_t cudaFreeHost(void *pointer) {
    BEGIN();
    if (!pointer)
        return cudaSuccess;
    Allocation a;
    const cudaError_t error = take_out(__func__, pointer, a, "allocated by cudaMallocHost or cudaHostAlloc",
                                       [](MemoryKind kind) { return kind == MemoryKind::pinned; });
    if (!error)
        free(a.base);
    return error;
}

cudaError_t cudaHostUnregister(void *pointer) {
    BEGIN();
    NOT_NULL(pointer);
    Allocation a;
    if (!find_allocation(pointer, a))
        return fail(cudaErrorHostMemoryNotRegistered, "cudaHostUnregister: %p is not registered", pointer);
    return take_out(__func__, pointer, a, "registered",
                    [](MemoryKind kind) { return kind == MemoryKind::registered; });
}

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *host, unsigned flags) {
    BEGIN();
    NOT_NULL(device_pointer);
    if (flags)
        return fail(cudaErrorInvalidValue, "cudaHostGetDevicePointer: flags are 0x%x, must be 0", flags);
    Allocation a;
    if (!find_allocation(host, a) || a.kind == MemoryKind::device || a.kind == MemoryKind::managed)
        return fail(cudaErrorInvalidValue,
                    "cudaHostGetDevicePointer: %p is not from cudaHostAlloc or cudaHostRegister", host);
    if (!(a.flags & (a.kind == MemoryKind::pinned ? cudaHostAllocMapped : cudaHostRegisterMapped)))
        return fail(cudaErrorInvalidValue, "cudaHostGetDevicePointer: %p is not mapped: it is %s without %s",
                    host, describe(a).c_str(),
                    a.kind == MemoryKind::pinned ? "cudaHostAllocMapped" : "cudaHostRegisterMapped");
    *device_pointer = host; // unified addressing: one address for host and device
    return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *host) {
    BEGIN();
    NOT_NULL(flags);
    Allocation a;
    if (!find_allocation(host, a) || (a.kind != MemoryKind::pinned && a.kind != MemoryKind::registered))
        return fail(cudaErrorInvalidValue, "cudaHostGetFlags: %p is not pinned host memory", host);
    *flags = a.flags;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    BEGIN();
    NOT_NULL(free_bytes);
    NOT_NULL(total_bytes);
    *total_bytes = properties(current_device()).totalGlobalMem;
    Registry &r = registry();
    const size_t available = available_memory();
    std::shared_lock lock(r.mutex);
    *free_bytes = std::min(*total_bytes - std::min(*total_bytes, r.used[current_device()]), available);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
    BEGIN();
    NOT_NULL(attributes);
    *attributes = {};
    void *const p = const_cast<void *>(pointer);
    Allocation a;
    if (const SymbolSection *symbols = symbol_section(pointer)) {
        const bool managed = !symbols->per_device && symbols->writable;
        attributes->type = managed ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
        attributes->device = current_device();
        attributes->devicePointer = p;
        attributes->hostPointer = managed ? p : nullptr;
        return cudaSuccess;
    }
    if (!find_allocation(pointer, a)) {
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = cudaInvalidDeviceId;
        attributes->hostPointer = p;
        return cudaSuccess;
    }
    const bool mapped =
        a.flags & (a.kind == MemoryKind::pinned ? cudaHostAllocMapped : cudaHostRegisterMapped);
    attributes->device = a.device;
    switch (a.kind) {
    case MemoryKind::device:
        attributes->type = cudaMemoryTypeDevice;
        attributes->devicePointer = p;
        break;
    case MemoryKind::managed:
        attributes->type = cudaMemoryTypeManaged;
        attributes->devicePointer = attributes->hostPointer = p;
        break;
    case MemoryKind::pinned:
    case MemoryKind::registered:
        attributes->type = cudaMemoryTypeHost;
        attributes->devicePointer = mapped ? p : nullptr;
        attributes->hostPointer = p;
        break;
    }
    return cudaSuccess;
}

// All copies and fills have completed when the call returns, including the asynchronous ones.

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return copy(__func__, to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return copy(__func__, to, from, bytes, kind, stream);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                         size_t rows, cudaMemcpyKind kind) {
    return copy_2d(__func__, to, to_pitch, from, from_pitch, width, rows, kind, nullptr);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_2d(__func__, to, to_pitch, from, from_pitch, width, rows, kind, stream);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    return copy_peer(__func__, to, to_device, from, from_device, bytes, nullptr);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream) {
    return copy_peer(__func__, to, to_device, from, from_device, bytes, stream);
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes) {
    return fill(__func__, to, bytes, byte, bytes, 1, nullptr);
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
    return fill(__func__, to, bytes, byte, bytes, 1, stream);
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int byte, size_t width, size_t rows) {
    return fill(__func__, to, pitch, byte, width, rows, nullptr);
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int byte, size_t width, size_t rows,
                              cudaStream_t stream) {
    return fill(__func__, to, pitch, byte, width, rows, stream);
}

// Hints about the location of managed memory are checked and have no effect, because host and
// devices share one memory.
static cudaError_t check_managed(const char *call, const void *pointer, size_t bytes,
                                 cudaMemLocation location) {
    Allocation a;
    if (!find_allocation(pointer, a) || a.kind != MemoryKind::managed)
        return fail(cudaErrorInvalidValue, "%s: %p is not managed memory", call, pointer);
    if (const cudaError_t error = check_range(call, "range", pointer, bytes, Side::either))
        return error;
    if (location.type == cudaMemLocationTypeDevice && !device_exists(call, location.id))
        return cudaErrorInvalidDevice;
    return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
    BEGIN();
    if (advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy)
        return fail(cudaErrorInvalidValue, "cudaMemAdvise: there is no advice %d", (int)advice);
    return check_managed(__func__, pointer, bytes, location);
}

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream) {
    BEGIN();
    if (flags)
        return fail(cudaErrorInvalidValue, "cudaMemPrefetchAsync: flags are 0x%x, must be 0", flags);
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    return check_managed(__func__, pointer, bytes, location);
}

} // extern "C"
