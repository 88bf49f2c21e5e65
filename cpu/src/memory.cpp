// SPDX-License-Identifier: MIT
/*
 * Memory: a registry of all allocations, and the copies and fills that are checked against it.
 *
 * Allocations come from the C library and have exactly the requested size, so that AddressSanitizer
 * detects an access one byte past the end.
 */
#include "array.h"
#include "operation.h"
#include "race.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <sched.h>
#include <set>
#include <shared_mutex>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace cuda_cpu {

namespace {

struct Registry {
    std::shared_mutex mutex;
    std::map<const char *, Allocation> live; // by base
    std::deque<Allocation> freed;            // the last 1000 freed allocations, for messages
    size_t used[max_devices] = {};           // for each device, bytes of device and managed memory
};

// It is never destroyed, because host threads may use it while the process exits.
Registry &registry() {
    static Registry &all = *new Registry;
    return all;
}

std::string place(const Allocation &a, const char *verb) {
    return a.file ? std::string(", ") + verb + " at " + base_name(a.file) + ":" + std::to_string(a.line)
                  : std::string();
}

// Describes an allocation for messages: "40 bytes of device 0, allocated at add.cu:12".
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
constexpr size_t huge_page = 2 << 20;

// Large allocations use huge pages, which need 512 times fewer page faults on the first write.
void *get_memory(size_t bytes, MemoryKind kind) {
    if (kind == MemoryKind::device && guards())
        return get_guarded(bytes);
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

void free_memory(void *memory) {
    if (!free_guarded(memory))
        free(memory);
}

int byte_for_fresh_memory() {
    const char *value = getenv("CUDA_CPU_FILL");
    if (value && strcmp(value, "nan") != 0 && strcmp(value, "zero") != 0)
        refuse_setting("CUDA_CPU_FILL", value, "nan or zero");
    return value && *value == 'z' ? 0 : 0xff;
}

} // namespace

int fresh_byte() {
    static const int byte = byte_for_fresh_memory();
    return byte;
}

SymbolAccess::SymbolAccess(const void *a, const void *b) {
    const SymbolSection *s = symbol_section(a), *t = symbol_section(b);
    if ((s && s->per_device) || (t && t->per_device)) {
        lock = std::unique_lock(launch_lock());
        symbols_for_device(current_device());
    }
}

// Prints the program's line and the sizes in one message, because HANDLE_ERROR prints nothing more for this
// error.
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

// With CUDA_CPU_CHECK=1, names the memory that was never freed when a program returns from main or calls
// exit(). Exit status 0 then becomes 1.
static void tell_of_leaks(int status, void *) {
    Registry &r = registry();
    std::lock_guard lock(r.mutex);
    fflush(nullptr);
    bool any = false;
    for (const auto &[base, a] : r.live)
        if (a.kind != MemoryKind::registered && a.file) { // without a line it was not the program's call
            fprintf(stderr, "cuda on the CPU: at exit not freed: %s\n", describe(a).c_str());
            any = true;
        }
    if (any && status == EXIT_SUCCESS)
        _exit(EXIT_FAILURE);
}

// Registered before main, so that it runs after all other handlers.
static const int at_end = (getenv("CUDA_CPU_CHECK") && strcmp(getenv("CUDA_CPU_CHECK"), "1") == 0)
                              ? on_exit(tell_of_leaks, nullptr)
                              : 0;

cudaError_t allocate(const char *call, void **pointer, size_t bytes, MemoryKind kind, unsigned flags,
                     const char *file, int line) {
    if (!(flags & memory_of_stream))
        if (const cudaError_t error = refuse_unsafe(call))
            return error;
    flags &= ~memory_of_stream;
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
    // Writing to more memory than is available would kill the process, so a large request is checked first.
    if (bytes >= 16 << 20)
        if (const size_t available = available_memory(); bytes > available) {
            give_back();
            return out_of_memory(call, file, line, "%zu bytes requested, this machine has %zu free", bytes,
                                 available);
        }
    void *memory = get_memory(bytes, kind);
    if (!memory) {
        give_back();
        return out_of_memory(call, file, line, "%zu bytes requested, the system refused them (%zu are free)",
                             bytes, left);
    }
    {
        std::lock_guard lock(r.mutex);
        r.live[(char *)memory] = {(char *)memory, bytes, kind, device, flags, file, line};
        if (race_track_new)
            race_track_new(memory, bytes);
    }
    *pointer = memory;
    return cudaSuccess;
}

namespace {

void remember_freed(Registry &r, const Allocation &a) {
    r.freed.push_back(a);
    if (r.freed.size() > 1000)
        r.freed.pop_front();
}

// Removes the allocation at this address from the registry. Fails if there is none, or if fits() refuses it.
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

// The memory that one side of a copy covers: its start, and its size in bytes up to the end of the last row.
struct Span {
    char *start;
    size_t bytes;
};

// Computes the span; returns false if its size overflows.
bool span_of(const End &e, size_t width, size_t rows, size_t slices, Span &span) {
    size_t last, slice;
    if (__builtin_mul_overflow(slices - 1, e.rows, &slice) ||
        __builtin_add_overflow(slice, rows - 1, &last) || __builtin_mul_overflow(last, e.pitch, &last) ||
        __builtin_add_overflow(last, width, &span.bytes))
        return false;
    span.start = e.pointer + (e.z * e.rows + e.y) * e.pitch + e.x;
    return true;
}

cudaError_t check_end(const char *call, const char *role, const char *place, const End &e, const Transfer &t,
                      Side side) {
    if (!e.array) {
        if ((t.rows > 1 || t.slices > 1) && t.width > e.pitch)
            return fail(cudaErrorInvalidPitchValue, "%s: rows of %zu bytes do not fit a pitch of %zu", call,
                        t.width, e.pitch);
        if (t.slices > 1 && t.rows > e.rows)
            return fail(cudaErrorInvalidValue, "%s: slices of %zu rows, the %s has %zu in each slice", call,
                        t.rows, place, e.rows);
        Span span;
        if (!span_of(e, t.width, t.rows, t.slices, span))
            return fail(cudaErrorInvalidValue,
                        "%s: %zu rows with a pitch of %zu bytes exceed the address space", call, t.rows,
                        e.pitch);
        return check_range(call, role, span.start, span.bytes, side);
    }
    if (!array_known(call, e.array))
        return cudaErrorInvalidResourceHandle;
    const cudaArray &a = *e.array;
    const auto outside = [](size_t first, size_t count, size_t all) {
        return first > all || count > all - first;
    };
    if (outside(e.x, t.width, a.row_bytes) || outside(e.y, t.rows, a.rows()) ||
        outside(e.z, t.slices, a.slices())) {
        if (a.slices() == 1 && t.slices == 1 && e.z == 0)
            return fail(cudaErrorInvalidValue,
                        "%s: %zu bytes x %zu rows at (%zu, %zu), the %s is an array of %zu bytes x %zu rows",
                        call, t.width, t.rows, e.x, e.y, place, a.row_bytes, a.rows());
        return fail(cudaErrorInvalidValue,
                    "%s: %zu bytes x %zu rows x %zu slices at (%zu, %zu, %zu), the %s is an array of %zu "
                    "bytes x %zu rows x %zu slices",
                    call, t.width, t.rows, t.slices, e.x, e.y, e.z, place, a.row_bytes, a.rows(), a.slices());
    }
    if (side == Side::host)
        return fail(cudaErrorInvalidMemcpyDirection, "%s: the %s is an array, which is on the device", call,
                    role);
    return cudaSuccess;
}

// The address of a row of a slice.
char *row_of(const End &e, size_t row, size_t slice) {
    return e.array ? e.array->data + (e.z + slice) * e.array->slice_bytes() +
                         (e.y + row) * e.array->row_bytes + e.x
                   : e.pointer + ((e.z + slice) * e.rows + e.y + row) * e.pitch + e.x;
}

// A copy of consecutive bytes.
Transfer plain(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return {{nullptr, (char *)to, bytes, 1, 0, 0, 0},
            {nullptr, (char *)const_cast<void *>(from), bytes, 1, 0, 0, 0},
            bytes,
            1,
            1,
            kind};
}

cudaError_t copy(const char *call, void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream, bool asynchronous) {
    return transfer(call, plain(to, from, bytes, kind), stream, asynchronous);
}

cudaError_t copy_2d(const char *call, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                    size_t width, size_t rows, cudaMemcpyKind kind, cudaStream_t stream, bool asynchronous) {
    if (const cudaError_t error = begin(call))
        return error;
    if (width && rows && (width > to_pitch || width > from_pitch))
        return fail(cudaErrorInvalidPitchValue,
                    "%s: rows of %zu bytes do not fit pitches of %zu (destination) and %zu (source)", call,
                    width, to_pitch, from_pitch);
    const Transfer t = {{nullptr, (char *)to, to_pitch, rows, 0, 0, 0},
                        {nullptr, (char *)const_cast<void *>(from), from_pitch, rows, 0, 0, 0},
                        width,
                        rows,
                        1,
                        kind};
    return transfer(call, t, stream, asynchronous);
}

cudaError_t copy_peer(const char *call, void *to, int to_device, const void *from, int from_device,
                      size_t bytes, cudaStream_t stream, bool asynchronous) {
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
    if (!asynchronous) // the copy runs after all earlier work of both devices
        if (const cudaError_t error = finish_device(-1))
            return error;
    return transfer(call, plain(to, from, bytes, cudaMemcpyDefault), stream, true);
}

cudaError_t fill(const char *call, const Fill &f, cudaStream_t stream) {
    if (const cudaError_t error = begin(call))
        return error;
    if (!stream_known(stream, call))
        return cudaErrorInvalidResourceHandle;
    if (f.width == 0 || f.rows == 0 || f.slices == 0)
        return cudaSuccess;
    if (const cudaError_t error = check_fill(call, f))
        return error;
    if (!at_once() || in_kernel_now())
        return submit(stream, {call, f});
    fill_now(f);
    return cudaSuccess;
}

// Fills rows of `width` bytes.
cudaError_t fill_bytes(const char *call, void *to, size_t pitch, int byte, size_t width, size_t rows,
                       cudaStream_t stream) {
    return fill(call, {(char *)to, pitch, rows, (unsigned)byte & 255, 1, width, rows, 1}, stream);
}

} // namespace

cudaError_t check_transfer(const char *call, const Transfer &t) {
    if ((unsigned)t.kind > cudaMemcpyDefault)
        return fail(cudaErrorInvalidMemcpyDirection, "%s: there is no direction %d", call, (int)t.kind);
    if (const cudaError_t error =
            check_end(call, targets[t.kind], "destination", t.to, t, side_of_target(t.kind)))
        return error;
    return check_end(call, sources[t.kind], "source", t.from, t, side_of_source(t.kind));
}

void move(const Transfer &t) {
    SymbolAccess symbols(t.to.pointer, t.from.pointer);
    const DeviceAccess access;
    for (size_t slice = 0; slice < t.slices; ++slice)
        for (size_t row = 0; row < t.rows; ++row) {
            char *const to = row_of(t.to, row, slice), *const from = row_of(t.from, row, slice);
            if (race_copy) {
                race_copy(from, t.width, false);
                race_copy(to, t.width, true);
            }
            copy_memory(to, from, t.width);
        }
}

cudaError_t fill_elements(const char *call, const Fill &f, cudaStream_t stream) {
    return fill(call, f, stream);
}

bool is_pageable(const void *pointer) {
    Allocation a;
    return !symbol_section(pointer) && !find_allocation(pointer, a);
}

cudaError_t transfer(const char *call, const Transfer &t, cudaStream_t stream, bool asynchronous) {
    if (const cudaError_t error = begin(call))
        return error;
    if (!stream_known(stream, call))
        return cudaErrorInvalidResourceHandle;
    if (t.width == 0 || t.rows == 0 || t.slices == 0)
        return cudaSuccess;
    if (const cudaError_t error = check_transfer(call, t))
        return error;
    if (at_once() && !in_kernel_now()) {
        move(t);
        return cudaSuccess;
    }
    const bool to_host = !t.to.array && is_pageable(t.to.pointer);
    const bool from_host = !t.from.array && is_pageable(t.from.pointer);
    if (captures(stream))
        return submit(stream, {call, t}, !asynchronous);
    if (!asynchronous) { // a copy between device memory and device memory does not block the host
        const auto on_device = [](const End &e) {
            Allocation a;
            return e.array || (find_allocation(e.pointer, a) && a.kind == MemoryKind::device);
        };
        return submit(stream, {call, t}, !on_device(t.to) || !on_device(t.from));
    }
    if (to_host || !from_host)
        return submit(stream, {call, t}, to_host);
    // The source is pageable: the call reads it now, into a staging buffer.
    Transfer staged = t;
    const std::shared_ptr<char[]> buffer(new char[t.width * t.rows * t.slices]);
    staged.to = staged.from = {nullptr, buffer.get(), t.width, t.rows, 0, 0, 0};
    staged.from = t.from;
    move(staged);
    staged.from = staged.to;
    staged.to = t.to;
    return submit(stream, {call, staged, 0, buffer});
}

cudaError_t check_fill(const char *call, const Fill &f) {
    if (f.rows > 1 && f.width > f.pitch)
        return fail(cudaErrorInvalidValue, "%s: rows of %zu bytes do not fit a pitch of %zu", call, f.width,
                    f.pitch);
    if (f.slices > 1 && f.rows > f.slice_rows)
        return fail(cudaErrorInvalidValue, "%s: slices of %zu rows, the memory has %zu in each slice", call,
                    f.rows, f.slice_rows);
    Span span;
    if (!span_of({nullptr, f.to, f.pitch, f.slice_rows, 0, 0, 0}, f.width, f.rows, f.slices, span))
        return fail(cudaErrorInvalidValue, "%s: %zu rows with a pitch of %zu bytes exceed the address space",
                    call, f.rows, f.pitch);
    return check_range(call, "destination", f.to, span.bytes, Side::device);
}

void fill_now(const Fill &f) {
    SymbolAccess symbols(f.to);
    const DeviceAccess access;
    for (size_t slice = 0; slice < f.slices; ++slice)
        for (size_t row = 0; row < f.rows; ++row) {
            char *const to = f.to + (slice * f.slice_rows + row) * f.pitch;
            if (race_copy)
                race_copy(to, f.width, true);
            if (f.element == 1)
                memset(to, (int)f.value, f.width);
            else
                for (size_t i = 0; i < f.width; i += f.element) // little endian: the low bytes come first
                    memcpy(to + i, &f.value, f.element);
        }
}

bool find_allocation(const void *pointer, Allocation &found) {
    Registry &r = registry();
    std::shared_lock lock(r.mutex);
    const Allocation *a = lookup(r, pointer);
    if (a)
        found = *a;
    return a;
}

std::string describe_address(const void *address) {
    Registry &r = registry();
    // The thread that faulted may hold the lock itself, if the runtime was given an invalid pointer. So this
    // only tries to lock.
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

size_t bytes_from(const void *pointer) {
    Allocation a;
    return find_allocation(pointer, a) ? (size_t)(a.base + a.size - (const char *)pointer) : 0;
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

// Hints about the location of managed memory are checked and kept for queries. They have no effect,
// because host and devices share one memory.
namespace {

struct Advice {
    bool read_mostly = false;
    cudaMemLocation preferred = {cudaMemLocationTypeInvalid, cudaInvalidDeviceId};
    cudaMemLocation prefetched = {cudaMemLocationTypeInvalid, cudaInvalidDeviceId};
    std::set<int> accessed_by; // devices; cudaCpuDeviceId stands for the host
};

// By the base of the allocation. Never destroyed: host threads may use it while the process exits.
std::map<const void *, Advice> &advices() {
    static auto &all = *new std::map<const void *, Advice>;
    return all;
}

std::mutex advice_lock;

int number_of(const cudaMemLocation &l) {
    return l.type == cudaMemLocationTypeInvalid  ? cudaInvalidDeviceId
           : l.type == cudaMemLocationTypeDevice ? l.id
                                                 : cudaCpuDeviceId;
}

} // namespace

static void forget_advice(const Allocation &a) {
    if (a.kind != MemoryKind::managed)
        return;
    std::lock_guard lock(advice_lock);
    advices().erase(a.base);
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
    if (!error) {
        leave_pool(a.base);
        forget_advice(a);
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
        if (a.kind != MemoryKind::registered) {
            remember_freed(r, a);
            free_memory(a.base);
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

// Common part of cudaMallocAsync and the like. A null `pool` stands for the device's current pool.
static cudaError_t malloc_from(cudaMemPool_t pool, void **pointer, size_t bytes, const char *file, int line) {
    if (const cudaError_t error =
            allocate("cudaMallocAsync", pointer, bytes, MemoryKind::device, memory_of_stream, file, line))
        return error;
    enter_in_pool(pool, *pointer, bytes);
    return cudaSuccess;
}

cudaError_t malloc_async(void **pointer, size_t bytes, cudaStream_t stream, const char *file, int line) {
    if (const cudaError_t error = begin("cudaMallocAsync"))
        return error;
    if (!pointer)
        return fail(cudaErrorInvalidValue, "cudaMallocAsync: pointer is NULL");
    if (!stream_known(stream, "cudaMallocAsync"))
        return cudaErrorInvalidResourceHandle;
    if (!at_once() && captures(stream))
        return allocate_captured("cudaMallocAsync", pointer, bytes, stream);
    return malloc_from(nullptr, pointer, bytes, file, line);
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

cudaError_t malloc_3d(cudaPitchedPtr *pointer, cudaExtent extent, const char *file, int line) {
    if (const cudaError_t error = begin("cudaMalloc3D"))
        return error;
    if (!pointer)
        return fail(cudaErrorInvalidValue, "cudaMalloc3D: pointer is NULL");
    const size_t align = properties(current_device()).textureAlignment;
    const size_t padded = (extent.width + align - 1) / align * align;
    size_t rows, bytes;
    if (padded < extent.width || __builtin_mul_overflow(extent.height, extent.depth, &rows) ||
        __builtin_mul_overflow(padded, rows, &bytes))
        return out_of_memory("cudaMalloc3D", file, line, "%zu x %zu x %zu bytes requested", extent.width,
                             extent.height, extent.depth);
    void *memory;
    if (const cudaError_t error = allocate("cudaMalloc3D", &memory, bytes, MemoryKind::device, 0, file, line))
        return error;
    *pointer = {memory, bytes ? padded : 0, extent.width, extent.height};
    return cudaSuccess;
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
    if (race_track)
        race_track(pointer, bytes);
    r.live[(char *)pointer] = {
        (char *)pointer, bytes, MemoryKind::registered, current_device(), flags, file, line};
    return cudaSuccess;
}

} // namespace cuda_cpu

using namespace cuda_cpu;

extern "C" {

// Called before memory is freed: waits for the work that may use it.
static cudaError_t wait_for_devices(const char *call) {
    if (at_once())
        return cudaSuccess;
    if (const cudaError_t error = refuse_unsafe(call))
        return error;
    return finish_device(-1);
}

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

cudaError_t cudaMalloc3D(cudaPitchedPtr *pointer, cudaExtent extent) {
    return malloc_3d(pointer, extent, nullptr, 0);
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
    if (!pointer)
        return cudaSuccess;
    if (const cudaError_t error = wait_for_devices(__func__))
        return error;
    return graph_owns(pointer) ? cudaSuccess : free_device(__func__, pointer);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    BEGIN();
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    if (!at_once())
        return release(__func__, pointer, stream);
    return graph_owns(pointer) ? cudaSuccess : free_device(__func__, pointer);
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    BEGIN();
    NOT_NULL(pointer);
    int device;
    if (!pool_known(__func__, pool, &device))
        return cudaErrorInvalidValue;
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    if (!at_once() && captures(stream))
        return allocate_captured(__func__, pointer, bytes, stream);
    const OnDevice on(device);
    return malloc_from(pool, pointer, bytes, nullptr, 0);
}

cudaError_t cudaFreeHost(void *pointer) {
    BEGIN();
    if (!pointer)
        return cudaSuccess;
    if (const cudaError_t error = wait_for_devices(__func__))
        return error;
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
    if (const cudaError_t error = wait_for_devices(__func__))
        return error;
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
    *device_pointer = host; // with unified addressing all pinned memory is mapped, whatever its flags are
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

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    return copy(__func__, to, from, bytes, kind, nullptr, false);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return copy(__func__, to, from, bytes, kind, stream, true);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                         size_t rows, cudaMemcpyKind kind) {
    return copy_2d(__func__, to, to_pitch, from, from_pitch, width, rows, kind, nullptr, false);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t rows, cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_2d(__func__, to, to_pitch, from, from_pitch, width, rows, kind, stream, true);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes) {
    return copy_peer(__func__, to, to_device, from, from_device, bytes, nullptr, false);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream) {
    return copy_peer(__func__, to, to_device, from, from_device, bytes, stream, true);
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes) {
    return fill_bytes(__func__, to, bytes, byte, bytes, 1, nullptr);
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
    return fill_bytes(__func__, to, bytes, byte, bytes, 1, stream);
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int byte, size_t width, size_t rows) {
    return fill_bytes(__func__, to, pitch, byte, width, rows, nullptr);
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int byte, size_t width, size_t rows,
                              cudaStream_t stream) {
    return fill_bytes(__func__, to, pitch, byte, width, rows, stream);
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int byte, cudaExtent extent) {
    return cudaMemset3DAsync(to, byte, extent, nullptr);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int byte, cudaExtent extent, cudaStream_t stream) {
    return fill(__func__,
                {(char *)to.ptr, to.pitch, to.ysize, (unsigned)byte & 255, 1, extent.width, extent.height,
                 extent.depth},
                stream);
}

static cudaError_t check_managed(const char *call, const void *pointer, size_t bytes,
                                 cudaMemLocation location, Allocation &a) {
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
    Allocation a;
    if (advice == cudaMemAdviseSetReadMostly || advice == cudaMemAdviseUnsetReadMostly ||
        advice == cudaMemAdviseUnsetPreferredLocation)
        location = {cudaMemLocationTypeHost, 0}; // ignored
    if (const cudaError_t error = check_managed(__func__, pointer, bytes, location, a))
        return error;
    std::lock_guard lock(advice_lock);
    Advice &kept = advices()[a.base];
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
    if (flags)
        return fail(cudaErrorInvalidValue, "cudaMemPrefetchAsync: flags are 0x%x, must be 0", flags);
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    Allocation a;
    if (const cudaError_t error = check_managed(__func__, pointer, bytes, location, a))
        return error;
    std::lock_guard lock(advice_lock);
    advices()[a.base].prefetched = location;
    return cudaSuccess;
}

cudaError_t cudaMemRangeGetAttribute(void *value, size_t value_bytes, cudaMemRangeAttribute attribute,
                                     const void *pointer, size_t bytes) {
    BEGIN();
    NOT_NULL(value);
    Allocation a;
    if (const cudaError_t error = check_managed(__func__, pointer, bytes, {cudaMemLocationTypeHost, 0}, a))
        return error;
    std::lock_guard lock(advice_lock);
    const auto found = advices().find(a.base);
    const Advice kept = found == advices().end() ? Advice() : found->second;
    int *const numbers = (int *)value;
    const size_t count = value_bytes / sizeof(int);
    if (count == 0 || value_bytes % sizeof(int) ||
        (attribute != cudaMemRangeAttributeAccessedBy && count != 1))
        return fail(cudaErrorInvalidValue, "%s: the value has %zu bytes, must have %s", __func__, value_bytes,
                    attribute == cudaMemRangeAttributeAccessedBy ? "4 for each device" : "4");
    switch (attribute) {
    case cudaMemRangeAttributeReadMostly:
        *numbers = kept.read_mostly;
        return cudaSuccess;
    case cudaMemRangeAttributePreferredLocation:
        *numbers = number_of(kept.preferred);
        return cudaSuccess;
    case cudaMemRangeAttributeAccessedBy:
        std::fill(numbers, numbers + count, (int)cudaInvalidDeviceId);
        std::copy_n(kept.accessed_by.begin(), std::min(count, kept.accessed_by.size()), numbers);
        return cudaSuccess;
    case cudaMemRangeAttributeLastPrefetchLocation:
        *numbers = number_of(kept.prefetched);
        return cudaSuccess;
    case cudaMemRangeAttributePreferredLocationType:
        *numbers = kept.preferred.type;
        return cudaSuccess;
    case cudaMemRangeAttributePreferredLocationId:
        *numbers = kept.preferred.id;
        return cudaSuccess;
    case cudaMemRangeAttributeLastPrefetchLocationType:
        *numbers = kept.prefetched.type;
        return cudaSuccess;
    case cudaMemRangeAttributeLastPrefetchLocationId:
        *numbers = kept.prefetched.id;
        return cudaSuccess;
    }
    return fail(cudaErrorInvalidValue, "%s: there is no attribute %d", __func__, (int)attribute);
}

cudaError_t cudaMemRangeGetAttributes(void **values, size_t *value_bytes, cudaMemRangeAttribute *attributes,
                                      size_t count, const void *pointer, size_t bytes) {
    NOT_NULL(values);
    NOT_NULL(value_bytes);
    NOT_NULL(attributes);
    for (size_t i = 0; i < count; ++i)
        if (const cudaError_t error =
                cudaMemRangeGetAttribute(values[i], value_bytes[i], attributes[i], pointer, bytes))
            return error;
    return cudaSuccess;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t, unsigned flags) {
    BEGIN();
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle)
        return fail(cudaErrorInvalidValue, "%s: 0x%x is not a valid flag", __func__, flags);
    if (!stream_known(stream, __func__))
        return cudaErrorInvalidResourceHandle;
    Allocation a;
    return check_managed(__func__, pointer, 0, {cudaMemLocationTypeHost, 0}, a);
}

} // extern "C"
