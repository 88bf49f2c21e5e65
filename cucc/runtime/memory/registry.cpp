// SPDX-License-Identifier: MIT
// Memory: a registry of all allocations, and the checks of addresses against it. Allocations have exactly
// the requested size, so that AddressSanitizer detects an access one byte past the end.
#include "race.h"
#include "registry.h"
#include "stream.h"
#include "texture.h"

#include <sched.h>
#include <sys/mman.h>

namespace cuda_cpu {

ONLY(registry, Registry)

const char *name_of(MemoryKind kind) {
    return kind == MemoryKind::device    ? "device memory"
           : kind == MemoryKind::managed ? "managed memory"
           : kind == MemoryKind::pinned  ? "pinned host memory"
                                         : "registered host memory";
}

std::string describe(const Allocation &a) {
    const bool device = a.kind == MemoryKind::device, registered = a.kind == MemoryKind::registered;
    return std::to_string(a.size) + " bytes of " +
           (device ? "device " + std::to_string(a.device) : std::string(name_of(a.kind))) +
           told_at(registered ? "registered" : "allocated", a.site);
}

namespace {

// The live allocation that contains the pointer, or null. The caller holds the registry's lock.
const Allocation *lookup(const Registry &r, const void *pointer) {
    auto next = r.live.upper_bound((const char *)pointer);
    if (next == r.live.begin())
        return nullptr;
    const Allocation &a = std::prev(next)->second;
    return (const char *)pointer < a.base + a.size ? &a : nullptr;
}

// Returns the end of an error message about a pointer that is not inside any allocation, for example
// ", 4 bytes past the end of …", ", and was freed already: …", or "". The caller holds the registry's lock.
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

constexpr size_t alignment = 512; // of cudaDeviceProp::textureAlignment

// Large allocations use huge pages, which need 512 times fewer page faults on the first write.
void *get_memory(size_t bytes, MemoryKind kind) {
    if (guards())
        return get_guarded(bytes, kind == MemoryKind::device);
    void *memory;
    if (race_track) // rounded up to whole pages of the race detector, with a byte after the end
        bytes = (bytes / race_page + 1) * race_page;
    if (posix_memalign(&memory,
                       bytes >= 2 * huge_page ? huge_page
                       : race_track           ? race_page
                                              : alignment,
                       bytes) != 0)
        return nullptr;
    if (bytes >= 2 * huge_page)
        madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE);
    memset(memory, fresh_byte(), bytes);
    return memory;
}

} // namespace

void free_memory(void *memory) {
    if (!free_guarded(memory))
        free(memory);
}

namespace {

void remember_freed(Registry &r, const Allocation &a) {
    if (race_forget)
        race_forget(a.base, a.size);
    r.freed.push_back(a);
    if (r.freed.size() > 1000)
        r.freed.pop_front();
}

bool overrun = false, names_leaks = false;

// A write past the end, which the race detector would report with its line
void tell_of_overrun(const Allocation &a) {
    const size_t byte = race_track ? 0 : written_past(a.base);
    if (!byte)
        return;
    overrun = true;
    print_line("%s wrote byte %zu of %s; cucc --check names the thread and the line",
               a.kind == MemoryKind::device ? "a kernel" : "a kernel or the host", byte, describe(a).c_str());
}

// What was never freed or destroyed
bool tell_of_leaks(const Registry &r) {
    bool any = false;
    for (const auto &[base, a] : r.live)
        if (a.kind != MemoryKind::registered && a.site.file) { // without a line it was not the program's call
            print_line("at exit not freed: %s", describe(a).c_str());
            any = true;
        }
    for (const auto &[number, what] : {std::pair(live_arrays(), "array"),
                                       {live_texture_objects(), "texture or surface object"},
                                       {live_streams(), "stream"},
                                       {live_events(), "event"}})
        if (number) {
            print_line("at exit not destroyed: %zu %s%s", number, what, number > 1 ? "s" : "");
            any = true;
        }
    return any;
}

// When a program returns from main or calls exit(): names memory that was written past its end, launches that
// failed, and with CUDA_CPU_CHECK=1 what was never freed or destroyed. Exit status 0 then becomes 1.
void tell_at_end(int status, void *) {
    Registry &r = registry();
    std::lock_guard lock(r.mutex);
    fflush(nullptr);
    for (const auto &[base, a] : r.live)
        tell_of_overrun(a);
    bool any = overrun;
    if (names_leaks)
        any |= tell_of_leaks(r);
    if (status == EXIT_SUCCESS)
        any |= tell_of_unasked();
    if (any && status == EXIT_SUCCESS)
        _exit(EXIT_FAILURE);
}
// Registered before main, so that it runs after all other handlers.
[[maybe_unused]] const int at_end = (names_leaks = guard_is_strict(), on_exit(tell_at_end, nullptr));

} // namespace

int fresh_byte() {
    static const int bytes[] = {0x7f, 0xff, 0},
                     byte = bytes[setting_of("CUDA_CPU_FILL", {"huge", "nan", "zero"})];
    return byte;
}

cudaError_t allocate(const char *call, void **pointer, size_t bytes, MemoryKind kind, unsigned flags) {
    if (!(flags & memory_of_stream))
        TRY(refuse_unsafe(call));
    flags &= ~memory_of_stream;
    const int device = current_device();
    const bool on_device = kind != MemoryKind::pinned;
    if (bytes == 0)
        return store(pointer, nullptr);
    Registry &r = registry();
    const size_t total = properties(device).totalGlobalMem;
    // Writing to more memory than is available would kill the process, so a large request is checked first.
    if (bytes > total || (bytes >= 16 << 20 && bytes > available_memory()))
        return set_last_error(cudaErrorMemoryAllocation);
    if (on_device) { // reserves the bytes, so that no other thread gets them
        std::lock_guard lock(r.mutex);
        if (bytes > total - std::min(total, r.used[device]))
            return set_last_error(cudaErrorMemoryAllocation);
        r.used[device] += bytes;
    }
    void *memory = get_memory(bytes, kind);
    {
        std::lock_guard lock(r.mutex);
        if (!memory) {
            r.used[device] -= on_device ? bytes : 0;
            return set_last_error(cudaErrorMemoryAllocation);
        }
        r.live[(char *)memory] = {(char *)memory, bytes, kind, device, flags, call_site};
        if (race_track_new)
            race_track_new(memory, bytes);
    }
    return store(pointer, memory);
}

cudaError_t take_out(const char *call, void *pointer, Allocation &taken, const char *wanted, MemoryKind kind,
                     MemoryKind or_kind) {
    Registry &r = registry();
    std::unique_lock lock(r.mutex);
    const Allocation *a = lookup(r, pointer);
    if (a && a->base == pointer && (a->kind == kind || a->kind == or_kind)) {
        taken = *a;
        if (a->kind == MemoryKind::device || a->kind == MemoryKind::managed)
            r.used[a->device] -= a->size;
        if (a->kind != MemoryKind::registered)
            remember_freed(r, *a);
        r.live.erase(taken.base);
        tell_of_overrun(taken);
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

std::optional<Allocation> find_allocation(const void *pointer) {
    std::shared_lock lock(registry().mutex);
    const Allocation *const a = lookup(registry(), pointer);
    return a ? std::optional(*a) : std::nullopt;
}

bool is_pageable(const void *pointer) {
    return !symbol_section(pointer) && !find_allocation(pointer);
}

size_t bytes_from(const void *pointer) {
    const auto a = find_allocation(pointer);
    return a ? (size_t)(a->base + a->size - (const char *)pointer) : 0;
}

std::string describe_address(const void *address) {
    Registry &r = registry();
    // The thread that faulted, in the runtime with an invalid pointer, may hold the lock: only try to lock.
    std::shared_lock lock(r.mutex, std::defer_lock);
    for (int tries = 0; !lock.try_lock(); ++tries) {
        if (tries == 1000)
            return "";
        sched_yield();
    }
    if (const Allocation *a = lookup(r, address))
        return ", which is " + describe(*a);
    const std::string text = explain_unknown(r, address), also = ", and ";
    if (!text.empty())
        return text.compare(0, also.size(), also) == 0 ? ", which " + text.substr(also.size()) : text;
    const auto next = r.live.upper_bound((const char *)address);
    if (next != r.live.end() && next->first - (const char *)address <= 64)
        return ", which is " + std::to_string(next->first - (const char *)address) + " bytes before " +
               describe(next->second);
    return "";
}

cudaError_t check_range(const char *call, const char *role, const void *pointer, size_t bytes,
                        Accessor accessor) {
    FAIL_IF(!pointer, cudaErrorInvalidValue, "the %s is NULL", role);
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
        else if (!symbols && accessor == Accessor::device)
            unknown = explain_unknown(r, pointer);
    }
    const char *const p = (const char *)pointer;
    const bool device_only = symbols ? symbols->per_device : known && a.kind == MemoryKind::device;
    FAIL_IF(accessor == Accessor::host && device_only, cudaErrorInvalidValue,
            "the %s %p is not host memory, it is %s", role, pointer,
            symbols ? "a __device__ or __constant__ variable" : describe(a).c_str());
    FAIL_IF(accessor == Accessor::device && !known && !symbols, cudaErrorInvalidValue,
            "the %s %p is not device memory%s", role, pointer,
            unknown.empty() ? ", it is host memory" : unknown.c_str());
    FAIL_IF(symbols && bytes > (size_t)(symbols->end - p), cudaErrorInvalidValue,
            "%zu bytes at %p extend past the last variable", bytes, pointer);
    FAIL_IF(known && bytes > (size_t)(a.base + a.size - p), cudaErrorInvalidValue,
            "the %s needs %zu bytes at byte %zu, but is %s", role, bytes, (size_t)(p - a.base),
            describe(a).c_str());
    return cudaSuccess;
}

cudaError_t free_device(const char *call, void *pointer, unsigned flags) {
    if (!pointer)
        return cudaSuccess;
    const auto known = find_allocation(pointer);
    FAIL_IF(known && known->kind == MemoryKind::device && known->flags != flags, cudaErrorInvalidValue,
            "%p belongs to a mapped OpenGL resource: %s", pointer, describe(*known).c_str());
    Allocation a;
    const cudaError_t error =
        take_out(call, pointer, a, "allocated by cudaMalloc", MemoryKind::device, MemoryKind::managed);
    if (!error) {
        leave_pool(a.base);
        free_memory(a.base);
    }
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
        tell_of_overrun(a);
        if (a.kind != MemoryKind::registered) {
            remember_freed(r, a);
            free_memory(a.base);
        }
    }
    r.used[device] = 0;
}

} // namespace cuda_cpu
