// SPDX-License-Identifier: MIT
// Shared memory: an arena for each worker, which every block that it runs reuses. The launch's dynamic part
// comes first. A declared variable is allocated when the first thread of the block reaches its declaration.
#include "memory.h"
#include "race.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

namespace cuda_cpu {

__thread SharedEntry *shared_table;
__thread uint64_t block_number;

namespace {

constexpr size_t red_zone = 32;

char *hand_out(Worker &worker, size_t size, size_t align, const char *name) {
    const size_t begin = (worker.arena_used + align - 1) / align * align;
    if (begin + size + red_zone > arena_size)
        kernel_error("no shared memory left for %s (%zu bytes)", name, size);
    worker.arena_used = begin + size + red_zone;
    char *memory = worker.arena + begin;
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    memset(memory, fresh_byte(), size);
    if (race_name_shared)
        race_name_shared(name, memory, size);
    return memory;
}

// Entry 0 of the table is for declarations whose SharedSlot::index has not been initialized yet. That occurs
// when the constructor of a static object launches a kernel before main.
unsigned slots = 1;

} // namespace

unsigned new_shared_slot(size_t size, size_t *declared) {
    *declared += size;
    return slots++;
}

void Worker::prepare_shared(size_t bytes, size_t limit) {
    dynamic_bytes = bytes;
    shared_limit = limit;
    if (table.size() < slots)
        table.resize(slots);
    shared_table = table.data();
}

// Resets the arena for the current block. Called when a thread of the block first uses shared memory.
static void prepare_arena(Worker &worker) {
    if (worker.arena_block == block_number)
        return;
    worker.arena_block = block_number;
    worker.arena_used = 0;
    worker.declared_bytes = 0;
    const bool first = !worker.arena;
    if (first)
        worker.arena = static_cast<char *>(aligned_alloc(race_track ? race_page : 4096, arena_size));
    if (!worker.arena)
        kernel_error("no host memory for the shared memory of a block");
    if (first && race_track)
        race_track(worker.arena, arena_size);
    ASAN_POISON_MEMORY_REGION(worker.arena, arena_size);
    worker.dynamic_memory = hand_out(worker, worker.dynamic_bytes, 128, "the launch");
}

void *dynamic_shared_memory(const char *name) {
    Worker &worker = in_kernel(name);
    prepare_arena(worker);
    return worker.dynamic_memory;
}

void *allocate_shared(unsigned slot, size_t size, size_t align, const char *name) {
    Worker &worker = in_kernel(name);
    prepare_arena(worker);
    worker.declared_bytes += size;
    if (worker.dynamic_bytes + worker.declared_bytes > worker.shared_limit)
        kernel_error("__shared__ %s raises the block's shared memory to %zu bytes, the limit is %zu", name,
                     worker.dynamic_bytes + worker.declared_bytes, worker.shared_limit);
    void *memory = hand_out(worker, size, std::max(align, (size_t)16), name);
    shared_table[slot] = {block_number, memory};
    return memory;
}

Space space_of(const void *address) {
    const char *const arena = in_kernel("__isShared").arena;
    if (arena && (uintptr_t)address - (uintptr_t)arena < arena_size)
        return Space::shared;
    if (const SymbolSection *section = symbol_section(address))
        return section->constant ? Space::constant : Space::global;
    return find_allocation(address) ? Space::global : Space::local;
}

} // namespace cuda_cpu
