// SPDX-License-Identifier: MIT
/*
 * What the files of the runtime's host side give each other and the engine: errors, devices,
 * memory, streams, symbols.
 */
#pragma once

#include "cuda_cpu/types.h"
#include "cuda_cpu/api.h"

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace cuda_cpu {

// ---- errors (error.cpp) ----

// Remembers the error for this host thread, prints "cuda on the CPU: …" on stderr and returns it.
// The text begins with the name of the call: "cudaFree: why".
cudaError_t fail(cudaError_t error, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Whether the last one said that memory is out, and where.
extern thread_local bool told_of_memory;

// As fail(), for what a GPU does not recover from: every later call on this device gives the error.
cudaError_t fail_for_good(cudaError_t error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// A device that is reset after that is lost to this process.
void lose_failed_device();

// What keeps a call from being carried out at all: no device, a stream's callback that calls the
// runtime, and for a call that does more than ask, an earlier error that is for good.
cudaError_t begin_query(const char *call);
cudaError_t begin(const char *call);

#define BEGIN()                                                                                    \
    if (const cudaError_t error = ::cuda_cpu::begin(__func__))                                     \
    return error
#define BEGIN_QUERY()                                                                              \
    if (const cudaError_t error = ::cuda_cpu::begin_query(__func__))                               \
    return error
#define NOT_NULL(pointer)                                                                          \
    if (!(pointer))                                                                                \
    return ::cuda_cpu::fail(cudaErrorInvalidValue, "%s: %s is NULL", __func__, #pointer)

// Runs a callback of the program, in which the runtime must not be called.
extern thread_local bool in_callback;
template <class F> inline void run_callback(F callback) {
    in_callback = true;
    callback();
    in_callback = false;
}

const char *base_name(const char *path); // block.cpp

// ---- devices (device.cpp) ----

constexpr int max_devices = 64;

int device_count();   // visible ones
int current_device(); // of this host thread
const cudaDeviceProp &properties(int device);
bool device_exists(const char *call, int device); // if not: fails with cudaErrorInvalidDevice
cudaError_t no_device(const char *call);          // fails with why there is none
size_t available_memory();                        // bytes that this process can still get, in all

// ---- memory (memory.cpp) ----

enum class MemoryKind { device, managed, pinned, registered };
constexpr unsigned memory_of_graphics = 1; // of the device, while OpenGL's buffer is mapped

struct Allocation {
    char *base;
    size_t size;
    MemoryKind kind;
    int device;       // that was current
    unsigned flags;   // cudaHostAlloc… or cudaHostRegister…, or memory_of_graphics
    const char *file; // the line of the program that made it; null from C
    int line;
};

bool find_allocation(const void *pointer, Allocation &found);

enum class Side { device, host, either };

// Whether [pointer, pointer + bytes) can be the `role` ("source") of `call`; if not, fails.
cudaError_t check_range(const char *call, const char *role, const void *pointer, size_t bytes,
                        Side side);
// Copies what has been checked.
void copy_memory(void *to, const void *from, size_t bytes);
// Memory for `call`: its content is NaN, and it counts as used. `file` and `line` are the caller's.
cudaError_t allocate(const char *call, void **pointer, size_t bytes, MemoryKind kind,
                     unsigned flags, const char *file, int line);
// Gives back memory of the device, or managed memory. Not that of graphics, which a program cannot
// free, unless `flags` says so.
cudaError_t free_device(const char *call, void *pointer, unsigned flags = 0);
void free_memory_of(int device);

// ---- arrays, textures and surfaces (texture.cpp) ----

void free_arrays_of(int device); // but for their memory

// ---- graphics (gl.cpp) ----

// Forgets the resources of a device that is reset. Null until there are some: a program without
// OpenGL is linked without gl.cpp.
extern void (*forget_graphics_of)(int device);

// ---- streams (stream.cpp) ----

// Whether work can go into the stream; if not, fails. A launch also needs a stream of the current
// device, a copy does not.
bool stream_known(cudaStream_t stream, const char *call, int *device = nullptr);
bool stream_usable(cudaStream_t stream, const char *call);
void destroy_streams_of(int device);

// ---- functions (function.cpp) ----

// Blocks of so many threads and bytes of shared memory that a multiprocessor holds at a time.
int resident_blocks(const cudaDeviceProp &device, unsigned threads, size_t shared_bytes);
// The most dynamic shared memory that cudaFuncSetAttribute has allowed any kernel.
size_t allowed_dynamic_shared();
// What the function of this linker name declares as __shared__ (shared.cpp).
size_t declared_shared_bytes(const char *function);

// ---- symbols (symbol.cpp) ----

// One launch or access to a symbol at a time, since the variables of all devices take turns in the
// same memory.
std::mutex &launch_lock();
// Puts the __device__ and __constant__ variables of a device in place. Under launch_lock.
void symbols_for_device(int device);
void reset_symbols_of(int device);
void check_constant_limit();

struct SymbolSection {
    const char *begin, *end;
    bool per_device, constant, writable;
};
// The section that an address lies in, null for none.
const SymbolSection *symbol_section(const void *address);

// The symbols of the current device are in place while this lives, when an address needs that.
struct SymbolAccess {
    std::unique_lock<std::mutex> lock;

    explicit SymbolAccess(const void *a, const void *b = nullptr);
};

} // namespace cuda_cpu
