// SPDX-License-Identifier: MIT
// What the unit "memory" gives to the others: allocations, copies and fills, pools, and symbols
#pragma once
#include "device.h"

#include <condition_variable>
#include <optional>

namespace cuda_cpu {

// ---- allocations (registry.cpp) ----

enum class MemoryKind { device, managed, pinned, registered };
constexpr unsigned memory_of_stream = 1u << 31; // flag for allocate(): permitted while a stream is captured
constexpr unsigned memory_of_graphics = 1; // flag of device memory that stands for a mapped OpenGL buffer

struct Allocation {
    char *base;
    size_t size;
    MemoryKind kind;
    int device;     // the device that was current at the allocation
    unsigned flags; // cudaHostAlloc…, cudaHostRegister… or memory_of_graphics
    Site site;      // where the program allocated it
};

std::optional<Allocation> find_allocation(const void *pointer);
// For messages: "managed memory", and "40 bytes of device 0, allocated at add.cu:12"
const char *name_of(MemoryKind kind);
std::string describe(const Allocation &a);

enum class Accessor { device, host, either }; // who will access the memory

// Checks that [pointer, pointer + bytes) is valid as the `role`, such as "source", of `call`; fails if not.
cudaError_t check_range(const char *call, const char *role, const void *pointer, size_t bytes,
                        Accessor accessor);
// The value that every byte of newly allocated device memory gets, as CUDA_CPU_FILL says (docs/execution.md)
int fresh_byte();
// Allocates memory with fresh_byte() for the current device. `file` and `line`: of the program's call.
cudaError_t allocate(const char *call, void **pointer, size_t bytes, MemoryKind kind, unsigned flags);
// Frees device memory or managed memory. The memory of a mapped OpenGL buffer is freed only when
// `flags` is memory_of_graphics, so that a program cannot free it.
cudaError_t free_device(const char *call, void *pointer, unsigned flags = 0);
void free_memory_of(int device);

// Describes a faulting address: ", which is 400 bytes of device 0, allocated at sum.cu:12", or nothing.
std::string describe_address(const void *address);

// Drops the graphics resources of a device that is reset. It is a pointer, null until the first resource is
// registered, so that a program without OpenGL is linked without gl.cpp.
extern void (*forget_graphics_of)(int device);

// ---- copies and fills (transfer.cpp) ----

struct CopySide { // one side of a copy: an array, or else memory with a pitch
    const cudaArray *array;
    char *pointer;
    size_t pitch, rows; // memory only: bytes per row, and rows per slice
    size_t x, y, z;     // corner of the copied box; x in bytes
};

struct Transfer {
    CopySide to, from;
    size_t width, rows, slices; // size of the copied box; width in bytes
    cudaMemcpyKind kind;
};

inline CopySide pitched(const void *pointer, size_t pitch, size_t rows) {
    return {nullptr, (char *)const_cast<void *>(pointer), pitch, rows, 0, 0, 0};
}
inline Transfer byte_copy(void *to, const void *from, size_t count, cudaMemcpyKind kind) {
    return {pitched(to, count, 1), pitched(from, count, 1), count, 1, 1, kind};
}

struct Fill {
    CopySide to;
    unsigned value, element;    // the value; the size of an element: 1, 2 or 4 bytes
    size_t width, rows, slices; // width in bytes
};

cudaError_t check_transfer(const char *call, const Transfer &t);
void move(const Transfer &t);
cudaError_t check_fill(const char *call, const Fill &f);
void fill_now(const Fill &f);
cudaError_t fill(const char *call, const Fill &f, cudaStream_t stream); // checks and submits it
// Checks a copy and submits it to the stream. An asynchronous copy may be incomplete on return.
cudaError_t transfer(const char *call, const Transfer &t, cudaStream_t stream, bool asynchronous);
// True for memory that is not in the registry, which the program may change when a call returns.
bool is_pageable(const void *pointer);

// ---- device memory that the host cannot access (guard.cpp) ----

bool guards();                                // true if memory comes from the range of guard.cpp
void *get_guarded(size_t bytes, bool device); // filled with fresh_byte(); null when memory is exhausted
bool free_guarded(void *pointer);             // false if the memory is not of this kind
bool in_guarded(const void *pointer);         // in device memory, or freed device memory, that is protected
bool in_range(const void *pointer);           // in device, managed or pinned memory, allocated or freed
bool is_host_memory(const void *pointer);     // in memory of the process that CUDA has not allocated
bool guard_is_strict();                       // CUDA_CPU_CHECK=1
constexpr char red_byte = 0x7f;               // the value of the bytes behind each allocation
// The first byte behind this allocation that was written, counted from its beginning; 0: none
size_t written_past(const void *pointer);
extern std::atomic<bool> guarding; // true as soon as there may be memory that the host may not access
// Defined in programs with Thrust (include/thrust/detail/config/device_system.h)
void host_uses_device_memory() __attribute__((weak));
void open_guarded();
void close_guarded();

struct DeviceAccess {
    const bool opened = guarding.load(std::memory_order_relaxed);

    DeviceAccess() {
        if (opened)
            open_guarded();
    }
    ~DeviceAccess() {
        if (opened)
            close_guarded();
    }
    DeviceAccess(const DeviceAccess &) = delete;
};

// ---- memory pools (memory_pool.cpp) ----

void enter_in_pool(cudaMemPool_t pool, void *pointer, size_t bytes); // pool null: the device's current pool
void leave_pool(void *pointer);

// ---- symbols (symbol.cpp) ----

// A ticket lock: granted in the order of the requests. Any host thread may unlock it.
class TicketLock {
  public:
    void lock();
    void unlock();
    bool contended() const { return next != serving + 1; } // called by the holder: do others wait?

  private:
    std::atomic<uint64_t> next{0}, serving{0};
    std::mutex mutex;
    std::condition_variable changed;
};

// Serialises launches and accesses to symbols: the variables of all devices share their addresses.
TicketLock &launch_lock();
// Loads a device's __device__ and __constant__ variables into the sections. Needs launch_lock.
void symbols_for_device(int device);
void reset_symbols_of(int device);
void check_constant_limit();

struct SymbolSection {
    char *begin, *end;
    bool per_device, constant, writable;
};
// The section that contains the address, or null.
const SymbolSection *symbol_section(const void *address);
std::vector<SymbolSection> &symbol_sections();

// If an address is a symbol, loads the current device's symbols, and holds launch_lock as long as it exists.
struct SymbolAccess {
    std::unique_lock<TicketLock> lock;

    explicit SymbolAccess(const void *a, const void *b = nullptr);
};

} // namespace cuda_cpu
