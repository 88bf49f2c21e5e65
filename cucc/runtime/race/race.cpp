// SPDX-License-Identifier: MIT
// Checks accesses for data races (cucc --check), by the rules in docs/execution.md. For each word of device,
// shared, managed and pinned memory it keeps the last write and two reads: the thread, the line, and the
// time. ordered() says whether a recorded access comes before a new one: `epoch` counts the barriers of the
// block, `known` are vector clocks of lanes, which __syncwarp() joins, and race_order.cpp knows what fences
// with atomics and what streams order. Except for locks, the result does not depend on the order in which
// the threads happen to run.
#include "race_detector.h"
#include "trace.h"

#include <sys/mman.h>

namespace cuda_cpu::race {

namespace {

constexpr unsigned page_bits = 16, address_bits = sizeof(void *) == 4 ? 32 : 48;
static_assert(race_page == 1 << page_bits);

struct ShadowCell { // of a page, a word, or a byte
    Access last[3]; // the last write and two reads
};

struct ShadowPage {
    std::atomic_flag lock = ATOMIC_FLAG_INIT;
    unsigned shift = page_bits; // a cell covers 1 << shift bytes
    uint32_t used = race_page;  // bytes that belong to an allocation; accesses after them are out of bounds
    ShadowCell whole{}, *cells = &whole;

    size_t count(unsigned shift_of_cell) const { return (used + (1u << shift_of_cell) - 1) >> shift_of_cell; }
};

ShadowPage of_stacks; // in the table where stacks are
struct Stacks {       // that threads of blocks keep while they wait
    std::mutex mutex;
    std::map<uintptr_t, uintptr_t> all; // end -> begin
};

void *reserve(size_t bytes) {
    void *memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        end_program("no address space to check for races: is there a limit (ulimit -v)?");
    return memory;
}

// Returns the table of pages: entry `address >> page_bits` points to the page's shadow memory, or is null if
// no access was recorded. The table is reserved address space, allocated where it is written.
ShadowPage **pages() {
    static ShadowPage **const table =
        static_cast<ShadowPage **>(reserve(sizeof(ShadowPage *) << (address_bits - page_bits)));
    return table;
}

void lock(ShadowPage &page) {
    while (page.lock.test_and_set(std::memory_order_acquire))
        ;
}

void unlock(ShadowPage &page) {
    page.lock.clear(std::memory_order_release);
}

void free_cells(ShadowPage &page) {
    if (page.cells != &page.whole)
        munmap(page.cells, page.count(page.shift) * sizeof(ShadowCell));
}

// Replaces the cells by smaller ones with the same accesses.
void split(ShadowPage &page, unsigned shift) {
    const size_t count = page.count(shift), parts = (size_t)1 << (page.shift - shift);
    ShadowCell *const cells = static_cast<ShadowCell *>(reserve(count * sizeof(ShadowCell)));
    for (size_t i = 0; i < page.count(page.shift); ++i)
        for (unsigned n = 0; n < 3; ++n)
            if (const Access &a = page.cells[i].last[n]; a.time)
                for (size_t part = 0; part < parts && parts * i + part < count; ++part)
                    if (page.shift == page_bits || a.bytes >> part & 1) {
                        cells[parts * i + part].last[n] = a;
                        cells[parts * i + part].last[n].bytes = 15;
                    }
    free_cells(page);
    page.cells = cells;
    page.shift = shift;
}

ShadowPage *tracked(uintptr_t address) {
    ShadowPage *const page = pages()[address >> page_bits];
    return page == &of_stacks ? nullptr : page;
}

// The end and begin of the stack that contains the address
std::pair<uintptr_t, uintptr_t> stack_at(uintptr_t address) {
    Stacks &stacks = only<Stacks>();
    std::lock_guard lock(stacks.mutex);
    const auto next = stacks.all.upper_bound(address);
    return next == stacks.all.end() || next->second > address ? std::pair<const uintptr_t, uintptr_t>(0, 0)
                                                              : *next;
}

// Names a local variable of another thread, or an index that is written. Else null.
const char *forbidden(uintptr_t address, bool write) {
    static __thread uintptr_t begin, end; // the stack that the calling thread uses
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (pages()[address >> page_bits] == &of_stacks && !self->for_warp) {
        if (here - begin >= end - begin)
            std::tie(end, begin) = stack_at(here);
        if (address - begin >= end - begin && stack_at(address).first)
            return "a local variable of another thread";
    }
    for (const uint3 *index : {&threadIdx, &blockIdx, &blockDim, &gridDim})
        if (write && address - (uintptr_t)index < sizeof *index)
            return "threadIdx, blockIdx, blockDim or gridDim";
    return nullptr;
}

// True if the earlier access `a` is ordered before `b`, which happens now.
bool ordered(const Access &a, const Access &b, const Threads *block) {
    if (b.block == the_host)
        return a.block == the_host || a.time < host_settled || before_host(a);
    const bool early = current.overlaps && !(block && block->has_waited(b.thread));
    if (a.time < (early ? current.early_settled : current.settled))
        return true;
    if (a.block == the_host)
        return a.time < current.enqueued;
    if (a.time < current.task_begun)
        return before_this_task(a, early) ||
               (block && a.time < std::max(block->acquire[b.thread], block->acquired));
    if (b.block == a_copy || a.block == a_copy || a.time < current.begun)
        return true;
    const uint32_t acquired = std::max(block->acquire[b.thread], block->acquired);
    if (a.block == b.block) {
        if (a.thread == b.thread || a.epoch != b.epoch)
            return true;
        if (a.thread / 32 == b.thread / 32 && block->lane_known(b.thread, a.thread, a.clock))
            return true;
    }
    return a.time < acquired && is_published(a);
}

// Checks and records an access within one page by a thread of a block, by the host, or by a copy.
// `reads` is also set for an atomic that reads and writes.
void check(ShadowPage &page, uintptr_t address, size_t bytes, Access me, const Threads *block, bool shared,
           bool reads) {
    Access other{};
    uintptr_t where = address;       // address of the other access
    bool written = !reads || !block; // whether anything has written what a thread reads
    bool changes = false;            // whether this thread has read what it writes
    const uintptr_t begin = address & (race_page - 1), end = begin + bytes;
    if (end > page.used)
        return;
    lock(page);
    // Cells of words take 15 times the memory of their page, so fills and copies of all of it make none.
    if (page.shift == page_bits && bytes < page.used)
        split(page, 2);
    // Threads that write neighbouring bytes of a word do not race, but a word's cell has only one last write.
    // So at the first write of less than a word, the page gets a cell for every byte.
    if (page.shift == 2 && me.write && ((begin | bytes) & 3))
        split(page, 0);
    for (uintptr_t i = begin >> page.shift; i <= (end - 1) >> page.shift; ++i) {
        Access &last_write = page.cells[i].last[0], *const reads = page.cells[i].last + 1;
        me.bytes = 15;
        if (page.shift == 2) {
            if (4 * i < begin)
                me.bytes &= 15u << (begin - 4 * i);
            if (4 * i + 4 > end)
                me.bytes &= 15u >> (4 * i + 4 - end);
        }
        // Made by an earlier block, for which this shared memory held other variables
        const auto stale = [&](const Access &a) {
            return shared && (a.block != me.block || a.time < current.begun);
        };
        const auto conflict = [&](const Access &a) {
            if (!a.time || !(a.bytes & me.bytes) || (a.atomic && me.atomic) || stale(a))
                return false;
            return !ordered(a, me, block);
        };
        const auto note = [&](const Access &a) {
            if (other.time || !conflict(a))
                return;
            other = a;
            where = std::max(address, (address & ~(race_page - 1)) + (i << page.shift));
        };
        note(last_write);
        const bool allocates = last_write.block == a_copy && last_write.thread == an_allocation;
        written |= last_write.time != 0 && !stale(last_write) && !allocates;
        if (me.write) {
            for (const Access *a = reads; a < reads + 2; ++a)
                changes |= a->time && a->block == me.block && a->thread == me.thread && a->epoch == me.epoch;
            note(reads[0]);
            note(reads[1]);
            last_write = me;
            if (!other.time)
                reads[0].time = reads[1].time = 0;
            continue;
        }
        // Keeps two reads, preferably of different warps. The new one replaces a read ordered before it.
        const auto done = [&](const Access &a) {
            return !a.time || (shared && a.block != me.block) ||
                   (a.atomic >= me.atomic && ordered(a, me, block));
        };
        if (done(reads[0]))
            reads[0] = me;
        else if (done(reads[1]))
            reads[1] = me;
        else {
            const auto apart = [&](const Access &a) {
                return a.block != reads[0].block ? 2 : a.thread / 32 != reads[0].thread / 32;
            };
            if (apart(me) >= apart(reads[1]))
                reads[1] = me;
        }
    }
    const unsigned shift = page.shift;
    unlock(page);
    if (!written)
        report_uninitialized(me, address, bytes);
    if (!other.time)
        return;
    // A copy covers many words; the message names the word that both accessed.
    if (me.block == a_copy || other.block == a_copy)
        bytes = shift ? (size_t)__builtin_popcount(other.bytes) : 1;
    report(other, me, where, bytes, changes);
}

} // namespace

void access(uintptr_t address, size_t bytes, bool write, bool atomic, bool reads, const void *instruction) {
    const bool in_kernel = self && self->kernel;
    if (traced_block && in_kernel)
        trace_event(atomic  ? EventKind::atomic
                    : write ? EventKind::write
                            : EventKind::read,
                    (const void *)address, bytes, place_of(instruction));
    const bool copies =
        !in_kernel && in_library && current.task; // code of a library's header, run by a stream
    if (!in_kernel && !copies && (!host_matters.load(std::memory_order_relaxed) || in_callback))
        return;
    if ((uint64_t)address >> address_bits)
        return;
    Access me{};
    const Threads *block = nullptr;
    while (bytes) {
        const size_t here = std::min(bytes, race_page - (address & (race_page - 1)));
        ShadowPage *const page = tracked(address);
        const char *const what = !page && in_kernel ? forbidden(address, write) : nullptr;
        if (page || what) {
            if (!me.time) {
                me.place = place_of(instruction);
                me.time = now.load(std::memory_order_relaxed);
                me.atomic = atomic;
                me.write = write;
                if (in_kernel) {
                    block = &threads();
                    me.block = block->block;
                    me.epoch = block->epoch;
                    me.thread = (uint16_t)(thread_rank() & 1023);
                    me.clock = (uint16_t)block->lane_clock(me.thread);
                } else if (copies) {
                    me.block = a_copy;
                    me.place = 0; // a line of the library's header; the call is named instead
                } else
                    me.block = the_host;
            }
            if (what)
                return report_forbidden(me, what, here);
            const bool shared = in_kernel && is_shared_memory(address);
            const bool beyond = shared ? !block->has_shared(address, here)
                                       : in_kernel && (address & (race_page - 1)) + here > page->used;
            if (!beyond || !report_out_of_bounds(me, address, here))
                check(*page, address, here, me, block, shared, reads);
        }
        address += here;
        bytes -= here;
    }
}

} // namespace cuda_cpu::race

namespace cuda_cpu {

using namespace race;

// Marks new memory, and at least a byte after it, as uninitialized, also where an allocation was freed.
void race_track_new(const void *memory, size_t bytes) {
    race_track(memory, bytes + 1);
    race_forget(memory, bytes + 1); // there are no cells while `used` changes
    const uintptr_t end = (uintptr_t)memory + bytes;
    for (uintptr_t i = (uintptr_t)memory >> page_bits; i <= end >> page_bits; ++i)
        pages()[i]->used = (uint32_t)std::min(race_page, end - (i << page_bits));
}

void race_forget(const void *memory, size_t bytes) {
    const uintptr_t end = (uintptr_t)memory + bytes;
    for (uintptr_t i = (uintptr_t)memory >> page_bits; i <= (end - 1) >> page_bits; ++i) {
        ShadowPage &page = *pages()[i];
        lock(page);
        free_cells(page);
        page.whole = {};
        page.cells = &page.whole;
        page.shift = page_bits;
        page.used = race_page;
        unlock(page);
    }
}

void race_track(const void *memory, size_t bytes) {
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    ShadowPage **const table = pages();
    if (bytes)
        for (uintptr_t i = (uintptr_t)memory >> page_bits; i <= ((uintptr_t)memory + bytes - 1) >> page_bits;
             ++i)
            if (!table[i] || table[i] == &of_stacks)
                table[i] = new ShadowPage;
}

void race_stack(const char *begin, const char *end) {
    std::lock_guard lock(only<Stacks>().mutex);
    if (begin == end)
        only<Stacks>().all.erase((uintptr_t)end);
    else
        only<Stacks>().all[(uintptr_t)end] = (uintptr_t)begin;
    for (uintptr_t i = (uintptr_t)begin >> page_bits; i <= (uintptr_t)end >> page_bits; ++i)
        if (!pages()[i])
            pages()[i] = &of_stacks;
}

static void stream_access(const void *memory, size_t bytes, bool write, uint16_t kind) {
    if (!current.task)
        return;
    Access me{};
    me.time = now;
    me.block = a_copy;
    me.thread = kind;
    me.write = write;
    uintptr_t address = (uintptr_t)memory;
    while (bytes) {
        const size_t here = std::min(bytes, race_page - (address & (race_page - 1)));
        if (ShadowPage *const page = tracked(address))
            check(*page, address, here, me, nullptr, false, false);
        address += here;
        bytes -= here;
    }
}

void race_copy(const void *memory, size_t bytes, bool write) {
    stream_access(memory, bytes, write, 0);
}

void race_allocate(const void *memory, size_t bytes) {
    stream_access(memory, bytes, true, an_allocation);
}

} // namespace cuda_cpu
