// SPDX-License-Identifier: MIT
// The registry of all memory of devices, by address. registry.cpp keeps it; memory.cpp changes it, too.
#pragma once
#include "memory.h"

#include <list>
#include <shared_mutex>

namespace cuda_cpu {

struct Registry {
    std::shared_mutex mutex;
    std::map<const char *, Allocation> live; // by base
    std::list<Allocation> freed;             // the last 1000 freed allocations, for messages
    size_t used[max_devices] = {};           // for each device, bytes of device and managed memory
};

Registry &registry();

constexpr size_t huge_page = 2 << 20;

void free_memory(void *memory);

// Removes the allocation at this address. Fails if there is none of one of these two kinds.
cudaError_t take_out(const char *call, void *pointer, Allocation &taken, const char *wanted, MemoryKind kind,
                     MemoryKind or_kind);

} // namespace cuda_cpu
