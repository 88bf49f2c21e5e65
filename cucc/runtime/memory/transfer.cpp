// SPDX-License-Identifier: MIT
// Copies and fills: the checks of both sides, and the work itself.
#include "race.h"
#include "stream.h"
#include "texture.h"

namespace cuda_cpu {
namespace {

// What one side of a copy in this direction must be.
Accessor accessor_of(cudaMemcpyKind kind, cudaMemcpyKind host_too) {
    return kind == cudaMemcpyDefault                          ? Accessor::either
           : kind == cudaMemcpyHostToHost || kind == host_too ? Accessor::host
                                                              : Accessor::device;
}

char *row_of(const CopySide &e, size_t row, size_t slice) {
    return e.array ? e.array->data + (e.z + slice) * e.array->slice_bytes() +
                         (e.y + row) * e.array->row_bytes + e.x
                   : e.pointer + ((e.z + slice) * e.rows + e.y + row) * e.pitch + e.x;
}

// Checks one side of a copy, or the memory of a fill; rows longer than the pitch are the error `bad_pitch`.
cudaError_t check_side(const char *call, const char *role, const char *place, const CopySide &e, size_t width,
                       size_t rows, size_t slices, Accessor accessor, cudaError_t bad_pitch) {
    if (!e.array) {
        FAIL_IF((rows > 1 || slices > 1) && width > e.pitch, bad_pitch,
                "rows of %zu bytes do not fit a pitch of %zu", width, e.pitch);
        FAIL_IF(slices > 1 && rows > e.rows, cudaErrorInvalidValue,
                "slices of %zu rows, the %s has %zu in each slice", rows, place, e.rows);
        size_t last, slice, bytes; // up to the end of the last row
        FAIL_IF(__builtin_mul_overflow(slices - 1, e.rows, &slice) ||
                    __builtin_add_overflow(slice, rows - 1, &last) ||
                    __builtin_mul_overflow(last, e.pitch, &last) ||
                    __builtin_add_overflow(last, width, &bytes),
                cudaErrorInvalidValue, "%zu rows with a pitch of %zu bytes exceed the address space", rows,
                e.pitch);
        return check_range(call, role, row_of(e, 0, 0), bytes, accessor);
    }
    TRY(check_array(call, e.array));
    const cudaArray &a = *e.array;
    const auto outside = [](size_t first, size_t count, size_t all) {
        return first > all || count > all - first;
    };
    if (outside(e.x, width, a.row_bytes) || outside(e.y, rows, a.rows()) ||
        outside(e.z, slices, a.slices())) {
        FAIL_IF(a.slices() == 1 && slices == 1 && e.z == 0, cudaErrorInvalidValue,
                "%zu bytes x %zu rows at (%zu, %zu), the %s is an array of %zu bytes x %zu rows", width, rows,
                e.x, e.y, place, a.row_bytes, a.rows());
        return fail(cudaErrorInvalidValue,
                    "%s: %zu bytes x %zu rows x %zu slices at (%zu, %zu, %zu), the %s is an array of %zu "
                    "bytes x %zu rows x %zu slices",
                    call, width, rows, slices, e.x, e.y, e.z, place, a.row_bytes, a.rows(), a.slices());
    }
    FAIL_IF(accessor == Accessor::host, cudaErrorInvalidMemcpyDirection,
            "the %s is an array, which is on the device", role);
    return cudaSuccess;
}

cudaError_t copy_2d(const char *call, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                    size_t width, size_t rows, cudaMemcpyKind kind, cudaStream_t stream, bool asynchronous) {
    BEGIN_IN();
    FAIL_IF(width && rows && (width > to_pitch || width > from_pitch), cudaErrorInvalidPitchValue,
            "rows of %zu bytes do not fit pitches of %zu (destination) and %zu (source)", width, to_pitch,
            from_pitch);
    return transfer(call,
                    {pitched(to, to_pitch, rows), pitched(from, from_pitch, rows), width, rows, 1, kind},
                    stream, asynchronous);
}

cudaError_t copy_peer(const char *call, void *to, int to_device, const void *from, int from_device,
                      size_t bytes, cudaStream_t stream, bool asynchronous) {
    BEGIN_IN(to_device, from_device, stream);
    if (bytes == 0)
        return cudaSuccess;
    TRY(check_range(call, "destination", to, bytes, Accessor::device));
    TRY(check_range(call, "source", from, bytes, Accessor::device));
    const auto wrong_device = [&](const char *role, const void *p, int device) {
        const auto a = find_allocation(p);
        if (!a || a->kind != MemoryKind::device || a->device == device)
            return false;
        fail(cudaErrorInvalidValue, "%s: the %s is memory of device %d, not of device %d", call, role,
             a->device, device);
        return true;
    };
    if (wrong_device("destination", to, to_device) || wrong_device("source", from, from_device))
        return cudaErrorInvalidValue;
    if (!asynchronous) // the copy runs after all earlier work of both devices
        TRY(finish_device(-1));
    return transfer(call, byte_copy(to, from, bytes, cudaMemcpyDefault), stream, true);
}

cudaError_t fill_bytes(const char *call, void *to, size_t pitch, int byte, size_t width, size_t rows,
                       cudaStream_t stream) {
    return fill(call, {pitched(to, pitch, rows), (unsigned)byte & 255, 1, width, rows, 1}, stream);
}

} // namespace

SymbolAccess::SymbolAccess(const void *a, const void *b) {
    const SymbolSection *s = symbol_section(a), *t = symbol_section(b);
    if ((s && s->per_device) || (t && t->per_device)) {
        lock = std::unique_lock(launch_lock());
        symbols_for_device(current_device());
    }
}

cudaError_t check_transfer(const char *call, const Transfer &t) {
    FAIL_IF((unsigned)t.kind > cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection, "there is no direction %d",
            (int)t.kind);
#define ROLES(kind)                                                                                          \
    { "destination of " #kind, "source of " #kind }
    static const char *const roles[][2] = {ROLES(cudaMemcpyHostToHost), ROLES(cudaMemcpyHostToDevice),
                                           ROLES(cudaMemcpyDeviceToHost), ROLES(cudaMemcpyDeviceToDevice),
                                           ROLES(cudaMemcpyDefault)};
    TRY(check_side(call, roles[t.kind][0], "destination", t.to, t.width, t.rows, t.slices,
                   accessor_of(t.kind, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue));
    return check_side(call, roles[t.kind][1], "source", t.from, t.width, t.rows, t.slices,
                      accessor_of(t.kind, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
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
            memmove(to, from, t.width);
        }
}

cudaError_t fill(const char *call, const Fill &f, cudaStream_t stream) {
    BEGIN_IN(stream);
    if (f.width == 0 || f.rows == 0 || f.slices == 0)
        return cudaSuccess;
    TRY(check_fill(call, f));
    if (!at_once() || in_kernel_now())
        return submit(stream, {call, f});
    fill_now(f);
    return cudaSuccess;
}

cudaError_t transfer(const char *call, const Transfer &t, cudaStream_t stream, bool asynchronous) {
    BEGIN_IN(stream);
    if (t.width == 0 || t.rows == 0 || t.slices == 0)
        return cudaSuccess;
    TRY(check_transfer(call, t));
    if (at_once() && !in_kernel_now()) {
        move(t);
        return cudaSuccess;
    }
    const bool to_host = !t.to.array && is_pageable(t.to.pointer);
    const bool from_host = !t.from.array && is_pageable(t.from.pointer);
    if (captures(stream))
        return submit(stream, {call, t}, !asynchronous);
    if (!asynchronous) { // a copy between device memory and device memory does not block the host
        const auto on_device = [](const CopySide &e) {
            const auto a = find_allocation(e.pointer);
            return e.array || (a && a->kind == MemoryKind::device);
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
    return check_side(call, "destination", "memory", f.to, f.width, f.rows, f.slices, Accessor::device,
                      cudaErrorInvalidValue);
}

void fill_now(const Fill &f) {
    SymbolAccess symbols(f.to.pointer);
    const DeviceAccess access;
    for (size_t slice = 0; slice < f.slices; ++slice)
        for (size_t row = 0; row < f.rows; ++row) {
            char *const to = row_of(f.to, row, slice);
            if (race_copy)
                race_copy(to, f.width, true);
            if (f.element == 1)
                memset(to, (int)f.value, f.width);
            else
                for (size_t i = 0; i < f.width; i += f.element) // little endian: the low bytes come first
                    memcpy(to + i, &f.value, f.element);
        }
}

} // namespace cuda_cpu

AND_ASYNC(cudaMemcpy, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind),
          transfer(__func__, byte_copy(to, from, bytes, kind), stream, asynchronous))
AND_ASYNC(cudaMemcpy2D,
          (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows,
           cudaMemcpyKind kind),
          copy_2d(__func__, to, to_pitch, from, from_pitch, width, rows, kind, stream, asynchronous))
AND_ASYNC(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t bytes),
          copy_peer(__func__, to, to_device, from, from_device, bytes, stream, asynchronous))
AND_ASYNC(cudaMemset, (void *to, int byte, size_t bytes),
          fill_bytes(__func__, to, bytes, byte, bytes, 1, stream))
AND_ASYNC(cudaMemset2D, (void *to, size_t pitch, int byte, size_t width, size_t rows),
          fill_bytes(__func__, to, pitch, byte, width, rows, stream))
AND_ASYNC(cudaMemset3D, (cudaPitchedPtr to, int byte, cudaExtent extent),
          fill(__func__,
               {pitched(to.ptr, to.pitch, to.ysize), (unsigned)byte & 255, 1, extent.width, extent.height,
                extent.depth},
               stream))
