// SPDX-License-Identifier: MIT
/*
 * Finds data races (make check, cucc --check): two threads access the same memory, at least one of
 * them writes, and nothing in CUDA's rules orders the two accesses.
 *
 * Programs are compiled with -fsanitize=thread, but not linked with ThreadSanitizer: the functions that
 * the compiler calls at every access (__tsan_read4 …) are at the end of this file. ThreadSanitizer itself
 * knows host threads, not the threads of a block, which run one after the other on one host thread.
 *
 * For each word of device, shared, managed and pinned memory the detector keeps the last write and two
 * reads: the thread, the line, and the time. A new access by another thread is a race unless one of these
 * rules orders it after the recorded one:
 * - between the two, the block has passed a barrier (`epoch` counts them), or the grid a grid barrier;
 * - both threads are lanes of a warp, and __syncwarp() orders them (`known`, the lanes' vector clocks);
 * - the first thread called __threadfence() and then an atomic, and the second one used the same
 *   variable in an atomic afterwards: a lock, a flag, or a counter of blocks that are done;
 * - they belong to different launches or copies that streams, events or waits of the host order.
 * Except for locks, the result does not depend on the order in which the threads happen to run.
 *
 * It also reports reads of uninitialized memory, and out-of-bounds accesses: outside of the variables in
 * shared memory, and up to 64 KiB after the end of an allocation.
 */
#include "race.h"
#include "trace.h"
#ifndef __SANITIZE_THREAD__ // with ThreadSanitizer, functions of the same names exist already
#include "internal.h"
#include "operation.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>

extern "C" char __executable_start[]; // defined by the linker

namespace cuda_cpu {

namespace {

// ---- records of accesses ----

struct Access {
    uint32_t place; // address of the instruction, relative to the program's start; 0: a copy
    uint32_t time;  // value of `now`; 0: no access
    uint32_t block, epoch;
    uint16_t clock; // vector clock component of the lane
    uint16_t thread : 10, bytes : 4, atomic : 1, write : 1;

    bool operator==(const Access &a) const { return memcmp(this, &a, sizeof a) == 0; }
};

constexpr uint32_t the_host = ~0u, a_copy = ~0u - 1; // in Access::block; a library's work counts as a copy

struct Cell { // last accesses of a word, or of a byte
    Access write, reads[2];
};

struct Page {
    std::atomic_flag lock = ATOMIC_FLAG_INIT;
    unsigned shift = 2;        // a cell covers 1 << shift bytes
    uint32_t used = race_page; // bytes that belong to an allocation; accesses after them are out of bounds
    Cell *cells = nullptr;
};

constexpr unsigned page_bits = 16, address_bits = 48;
static_assert(race_page == 1 << page_bits);

void *reserve(size_t bytes) {
    void *memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        end_program("no address space to check for races: is there a limit (ulimit -v)?");
    return memory;
}

// Returns the table of pages: entry `address >> page_bits` points to the shadow memory of that page, or is
// null if no access to it was recorded. The table is reserved address space; the operating system allocates
// the parts of it that are written.
Page **pages() {
    static Page **const table = static_cast<Page **>(reserve(sizeof(Page *) << (address_bits - page_bits)));
    return table;
}

// A logical clock. It advances at events that order accesses: launches, fences, enqueued work.
std::atomic<uint32_t> now{1};
uint32_t tick() {
    return now.fetch_add(1) + 1;
}

// ---- work in streams ----

using Clock = std::map<uint64_t, uint64_t>; // vector clock: stream -> number of its last completed work

void join(Clock &to, const Clock &from) {
    for (const auto &[stream, number] : from)
        to[stream] = std::max(to[stream], number);
}

struct Task { // a launch, a copy, or a graph
    uint64_t number, stream;
    Clock clock; // the work that it is ordered after
    const char *call;
    std::vector<void *> frames; // the call stack of the program's call
    uint32_t enqueued, begun;
    const char *kernel, *file;
    int line;
    uint3 grid, block;
};

struct Tasks {
    std::mutex mutex;
    std::map<uint64_t, Task> all; // by number
    std::map<uint64_t, std::pair<StreamIdentity, Clock>> streams;
    std::vector<std::pair<uint32_t, uint64_t>> run; // start time and number of each task that has run
    Clock host;                                     // the work that the host has waited for
    unsigned pending = 0;
};

Tasks &tasks() {
    static Tasks &t = *new Tasks;
    return t;
}

// The work that runs now. Workers read it.
struct Current {
    uint64_t number = 0;
    const Task *task = nullptr;
    uint32_t task_begun = 0, enqueued = 0; // times
    uint32_t settled = 0;                  // accesses before this time are ordered before this work
    std::atomic<uint32_t> begun{0};        // time of the launch's start or of its last grid barrier
    uint64_t threads = 1;                  // threads per block
} current;

std::atomic<bool> host_matters{false};   // true if there is work that the host has not waited for
std::atomic<uint32_t> host_settled{~0u}; // accesses before this time happened before what the host does now

const Task *task_at(const Tasks &t, uint32_t time) {
    auto i = std::upper_bound(t.run.begin(), t.run.end(), std::make_pair(time, ~(uint64_t)0));
    if (i == t.run.begin())
        return nullptr;
    const auto found = t.all.find(std::prev(i)->second);
    return found == t.all.end() ? nullptr : &found->second;
}

bool comes_before(const Task *task, const Clock &clock) {
    if (!task)
        return true; // so old that its record has been deleted
    const auto i = clock.find(task->stream);
    return i != clock.end() && i->second >= task->number;
}

// The time before which all accesses are ordered before the work that `clock` belongs to; at most
// `otherwise`.
uint32_t settled_for(const Tasks &t, const Clock &clock, uint32_t otherwise) {
    for (const auto &[begun, number] : t.run) {
        const auto i = t.all.find(number);
        if (i != t.all.end() && !comes_before(&i->second, clock))
            return std::min(begun, otherwise);
    }
    return otherwise;
}

void update_host(Tasks &t) {
    const uint32_t settled = settled_for(t, t.host, ~0u);
    host_settled = settled;
    host_matters = t.pending > 0 || settled != ~0u;
    if (!host_matters && t.run.size() > 64) { // all work is done, and the host has waited for it
        t.run.clear();
        t.all.clear();
    }
}

// ---- the block of a worker ----

struct Name {
    const char *name, *begin;
    size_t bytes;
};

struct Threads {
    uint64_t number = ~0ull; // block_number
    uint32_t block, count, epoch;
    uint32_t fenced, acquired; // times at the last barrier, over all threads
    bool talks;                // a thread has used a fence or acquired something since the last barrier
    uint32_t fence[max_threads], acquire[max_threads];
    uintptr_t polled[max_threads];         // address of each thread's last volatile read
    uint32_t warp_epoch[max_threads / 32]; // the members below are valid if this equals `epoch`
    uint16_t clock[max_threads];
    uint16_t known[max_threads / 32][32][32];
    std::vector<Name> names;

    void begin() {
        number = block_number;
        block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        count = blockDim.x * blockDim.y * blockDim.z;
        epoch = 1;
        fenced = acquired = 0;
        talks = false;
        memset(fence, 0, count * sizeof *fence);
        memset(acquire, 0, count * sizeof *acquire);
        memset(polled, 0, count * sizeof *polled);
        memset(warp_epoch, 0, sizeof warp_epoch);
        names.clear();
    }
    // Whether all these bytes belong to one variable in shared memory.
    bool has_shared(uintptr_t address, size_t bytes) const {
        for (const Name &n : names)
            if (address - (uintptr_t)n.begin < n.bytes)
                return address - (uintptr_t)n.begin + bytes <= n.bytes;
        return false;
    }
    unsigned lane_clock(unsigned t) const { return warp_epoch[t / 32] == epoch ? clock[t] : 1; }
    bool lane_known(unsigned t, unsigned other, unsigned time) const {
        return warp_epoch[t / 32] == epoch && known[t / 32][t % 32][other % 32] >= time;
    }
};

Threads &threads() {
    static __thread Threads *mine;
    if (__builtin_expect(!mine, 0))
        mine = new Threads; // not deleted: the worker threads run until the process exits
    if (mine->number != block_number)
        mine->begin();
    return *mine;
}

unsigned this_thread() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

// ---- fences with atomics ----

// What the threads of a launch have published: accesses before a fence that was followed by an atomic (a
// release).
struct Published {
    std::mutex mutex;
    std::atomic<bool> any{false};
    // Address of an atomic variable -> time of the last release through it.
    std::unordered_map<uintptr_t, uint32_t> variables;
    // Thread -> time before which its accesses are published.
    std::unordered_map<uint64_t, uint32_t> by_thread;
    // Block -> epoch and time before which its accesses are published.
    std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> by_block;

    // Called at a launch. If it is not alone, kernels in other, unordered streams run at the same time and
    // may use the same variables, so these are kept.
    void forget(bool alone) {
        if (!any)
            return;
        if (alone) {
            any = false;
            variables.clear();
        }
        by_thread.clear();
        by_block.clear();
    }
} published;

void release(uintptr_t variable) {
    Threads &b = threads();
    const unsigned t = this_thread();
    const uint32_t fenced = std::max(b.fence[t], b.fenced);
    if (!fenced)
        return;
    std::lock_guard lock(published.mutex);
    published.any = true;
    published.by_block[b.block] = {b.epoch, fenced};
    const uint64_t first = b.block * current.threads;
    published.by_thread[first + t] = fenced;
    if (b.warp_epoch[t / 32] == b.epoch) // includes what it knows of other lanes through __syncwarp()
        for (unsigned lane = 0; lane < 32; ++lane)
            if (b.known[t / 32][t % 32][lane])
                published.by_thread[first + t / 32 * 32 + lane] = fenced;
    published.variables[variable] = tick();
}

void acquire(uintptr_t variable, Threads &b, unsigned t) {
    if (!published.any)
        return;
    std::lock_guard lock(published.mutex);
    const auto found = published.variables.find(variable);
    if (found == published.variables.end())
        return;
    b.talks = true;
    b.acquire[t] = std::max(b.acquire[t], found->second);
}

void acquire(uintptr_t variable) {
    acquire(variable, threads(), this_thread());
}

void fence() {
    if (!self || !self->kernel)
        return;
    Threads &b = threads();
    const unsigned t = this_thread();
    b.talks = true;
    b.fence[t] = tick();
    if (b.polled[t]) // a volatile read followed by a fence acts as an acquire
        acquire(b.polled[t], b, t);
}

bool is_published(const Access &a) {
    std::lock_guard lock(published.mutex);
    const auto one = published.by_thread.find(a.block * current.threads + a.thread);
    if (one != published.by_thread.end() && a.time < one->second)
        return true;
    const auto all = published.by_block.find(a.block);
    return all != published.by_block.end() && a.epoch < all->second.first && a.time < all->second.second;
}

// ---- the check ----

bool is_shared_memory(uintptr_t address) {
    const char *const arena = current_block->arena;
    return arena && address - (uintptr_t)arena < arena_size;
}

bool before_this_task(const Access &a) {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    const Task *const other = task_at(t, a.time);
    if (!current.task || other == current.task)
        return true;
    return comes_before(other, current.task->clock);
}

bool before_host(const Access &a) {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    return comes_before(task_at(t, a.time), t.host);
}

// True if the earlier access `a` is ordered before `b`, which happens now.
bool ordered(const Access &a, const Access &b, const Threads *block) {
    if (b.block == the_host)
        return a.block == the_host || a.time < host_settled || before_host(a);
    if (a.time < current.settled)
        return true;
    if (a.block == the_host)
        return a.time < current.enqueued;
    if (a.time < current.task_begun)
        return before_this_task(a) || (block && a.time < std::max(block->acquire[b.thread], block->acquired));
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

void report(const Access &a, const Access &b, uintptr_t address, size_t bytes);
bool report_out_of_bounds(const Access &me, uintptr_t address, size_t bytes);
void report_uninitialized(const Access &me, uintptr_t address, size_t bytes);

// Checks and records an access within one page by a thread of a block, by the host, or by a copy.
// `reads` is also set for an atomic that reads and writes.
void check(Page &page, uintptr_t address, size_t bytes, Access me, const Threads *block, bool shared,
           bool reads) {
    Access other{};
    uintptr_t where = address;                 // address of the other access
    bool written = !reads || shared || !block; // whether anything has written what a thread reads
    while (page.lock.test_and_set(std::memory_order_acquire))
        ;
    const size_t cells = race_page >> page.shift;
    if (!page.cells)
        page.cells = static_cast<Cell *>(reserve(cells * sizeof(Cell)));
    const uintptr_t begin = address & (race_page - 1), end = begin + bytes;
    // Threads that write neighbouring bytes of a word do not race, but a word's cell has only one last write.
    // So at the first write of less than a word, the page gets a cell for every byte.
    if (page.shift == 2 && me.write && ((begin | bytes) & 3)) {
        Cell *const fine = static_cast<Cell *>(reserve(race_page * sizeof(Cell)));
        for (size_t i = 0; i < cells; ++i) {
            Cell &from = page.cells[i];
            for (Access *a : {&from.write, &from.reads[0], &from.reads[1]})
                for (unsigned byte = 0; a->time && byte < 4; ++byte)
                    if (a->bytes >> byte & 1) {
                        Access &to = a == &from.write      ? fine[4 * i + byte].write
                                     : a == &from.reads[0] ? fine[4 * i + byte].reads[0]
                                                           : fine[4 * i + byte].reads[1];
                        to = *a;
                        to.bytes = 15;
                    }
        }
        munmap(page.cells, cells * sizeof(Cell));
        page.cells = fine;
        page.shift = 0;
    }
    for (uintptr_t i = begin >> page.shift; i <= (end - 1) >> page.shift; ++i) {
        Cell &cell = page.cells[i];
        me.bytes = 15;
        if (page.shift == 2) {
            if (4 * i < begin)
                me.bytes &= 15u << (begin - 4 * i);
            if (4 * i + 4 > end)
                me.bytes &= 15u >> (4 * i + 4 - end);
        }
        const auto conflict = [&](const Access &a) {
            if (!a.time || !(a.bytes & me.bytes) || (a.atomic && me.atomic))
                return false;
            if (shared && (a.block != me.block || a.time < current.begun))
                return false; // made by an earlier block, for which this shared memory held other variables
            return !ordered(a, me, block);
        };
        const auto note = [&](const Access &a) {
            if (other.time || !conflict(a))
                return;
            other = a;
            where = std::max(address, (address & ~(race_page - 1)) + (i << page.shift));
        };
        note(cell.write);
        written |= cell.write.time != 0;
        if (me.write) {
            for (const Access &read : cell.reads)
                note(read);
            cell.write = me;
            if (!other.time)
                cell.reads[0].time = cell.reads[1].time = 0;
            continue;
        }
        // Keeps two reads, preferably of different warps. A read that is ordered before the new one is
        // replaced.
        const auto done = [&](const Access &a) {
            return !a.time || (shared && a.block != me.block) ||
                   (a.atomic >= me.atomic && ordered(a, me, block));
        };
        if (done(cell.reads[0]))
            cell.reads[0] = me;
        else if (done(cell.reads[1]))
            cell.reads[1] = me;
        else {
            const auto apart = [&](const Access &a) {
                return a.block != cell.reads[0].block ? 2 : a.thread / 32 != cell.reads[0].thread / 32;
            };
            if (apart(me) >= apart(cell.reads[1]))
                cell.reads[1] = me;
        }
    }
    const unsigned shift = page.shift;
    page.lock.clear(std::memory_order_release);
    if (!written)
        report_uninitialized(me, address, bytes);
    if (!other.time)
        return;
    // A copy covers many words; the message names the word that both accessed.
    if (me.block == a_copy || other.block == a_copy)
        bytes = shift ? (size_t)__builtin_popcount(other.bytes) : 1;
    report(other, me, where, bytes);
}

void access(uintptr_t address, size_t bytes, bool write, bool atomic, bool reads, const void *instruction) {
    const bool in_kernel = self && self->kernel;
    if (traced_block && in_kernel)
        trace_event(atomic  ? EventKind::atomic
                    : write ? EventKind::write
                            : EventKind::read,
                    (const void *)address, bytes,
                    (uint32_t)((uintptr_t)instruction - (uintptr_t)__executable_start));
    const bool copies =
        !in_kernel && in_library && current.task; // code of a library's header, run by a stream
    if (!in_kernel && !copies && (!host_matters.load(std::memory_order_relaxed) || in_callback))
        return;
    if (address >> address_bits)
        return;
    Access me{};
    const Threads *block = nullptr;
    while (bytes) {
        const size_t here = std::min(bytes, race_page - (address & (race_page - 1)));
        if (Page *const page = pages()[address >> page_bits]) {
            if (!me.time) {
                me.place = (uint32_t)((uintptr_t)instruction - (uintptr_t)__executable_start);
                me.time = now.load(std::memory_order_relaxed);
                me.atomic = atomic;
                me.write = write;
                if (in_kernel) {
                    block = &threads();
                    me.block = block->block;
                    me.epoch = block->epoch;
                    me.thread = (uint16_t)(this_thread() & 1023);
                    me.clock = (uint16_t)block->lane_clock(me.thread);
                } else if (copies) {
                    me.block = a_copy;
                    me.place = 0; // a line of the library's header; the call is named instead
                } else
                    me.block = the_host;
            }
            const bool shared = in_kernel && is_shared_memory(address);
            // `used` may be that of an allocation that was freed, so report_out_of_bounds() looks again.
            const bool beyond = shared ? !block->has_shared(address, here)
                                       : in_kernel && (address & (race_page - 1)) + here > page->used;
            if (!beyond || !report_out_of_bounds(me, address, here))
                check(*page, address, here, me, block, shared, reads);
        }
        address += here;
        bytes -= here;
    }
}

// ---- reports ----

std::string coordinates(uint64_t i, uint3 size) {
    return "(" + std::to_string(i % size.x) + "," + std::to_string(i / size.x % size.y) + "," +
           std::to_string(i / size.x / size.y) + ")";
}

// Finds the program's source line for a call stack. Functions of the back end's headers, such as atomicAdd,
// are skipped: the line that calls them counts.
std::string line_of(const std::vector<uintptr_t> &addresses) {
    for (uintptr_t address : addresses)
        if (const std::string line = race_source_lines({address})[0].text; !line.empty())
            return line;
    return "an unknown line (is addr2line installed, and the program compiled with -g?)";
}

// Describes the accessed memory: "shared memory cache" or "device memory", and in `allocated` " (allocated at
// sum.cu:12)". Empty if the memory is not tracked.
std::string name_memory(uintptr_t address, const Access &a, std::string &allocated) {
    const char *const p = (const char *)address;
    if (a.block < a_copy && is_shared_memory(address)) {
        for (const Name &n : threads().names)
            if (p >= n.begin && p < n.begin + n.bytes)
                return std::string(strcmp(n.name, "the launch") == 0 ? "dynamic shared memory"
                                                                     : "shared memory ") +
                       (strcmp(n.name, "the launch") == 0 ? "" : n.name);
        return "shared memory";
    }
    if (const SymbolSection *s = symbol_section(p))
        return s->constant     ? "a __constant__ variable"
               : s->per_device ? "a __device__ variable"
                               : "a __managed__ variable";
    Allocation m;
    if (!find_allocation(p, m))
        return "";
    const char *const kind = m.kind == MemoryKind::device    ? "device memory"
                             : m.kind == MemoryKind::managed ? "managed memory"
                             : m.kind == MemoryKind::pinned  ? "pinned host memory"
                                                             : "registered host memory";
    if (m.file)
        allocated = std::string(" (allocated at ") + base_name(m.file) + ":" + std::to_string(m.line) + ")";
    return kind;
}

struct Reports {
    std::mutex mutex;
    std::set<std::pair<uint32_t, uint32_t>> seen; // pairs of instructions that have been reported
    std::set<std::pair<std::string, std::string>> lines;
    unsigned shown = 0, more = 0;
};

Reports &reports() {
    static Reports &r = *new Reports;
    return r;
}

// At the end of the program, changes the exit status to 1. It is registered before main, so it runs last.
[[maybe_unused]] const int at_end = on_exit(
    [](int, void *) {
        if (reports().shown == 0)
            return;
        fflush(nullptr);
        if (reports().more)
            fprintf(stderr, "cuda on the CPU: races at %u more pairs of lines are not shown\n",
                    reports().more);
        _exit(EXIT_FAILURE);
    },
    nullptr);

std::string task_name(const Task *task) {
    if (!task)
        return "earlier work";
    if (task->kernel)
        return std::string("kernel ") + task->kernel + ", launched at " + base_name(task->file) + ":" +
               std::to_string(task->line) + ",";
    std::vector<uintptr_t> frames;
    for (void *frame : task->frames)
        frames.push_back((uintptr_t)frame - (uintptr_t)__executable_start);
    return std::string(task->call) + ", called at " + line_of(frames) + ",";
}

void report(const Access &a, const Access &b, uintptr_t address, size_t bytes) {
    std::string allocated;
    const std::string memory = name_memory(address, b, allocated);
    if (memory.empty())
        return; // memory of the program or the runtime in the same page as tracked memory
    Reports &r = reports();
    std::lock_guard lock(r.mutex);
    if (!r.seen.insert(std::minmax(a.place, b.place)).second)
        return;
    const std::string line_a = a.place ? line_of({a.place}) : "", line_b = b.place ? line_of({b.place}) : "";
    if (!r.lines.insert(std::minmax(line_a, line_b)).second)
        return;
    if (r.shown == 10) {
        ++r.more;
        return;
    }
    ++r.shown;
    const bool host = a.block == the_host || b.block == the_host;
    const Task *first = nullptr, *second = current.task;
    if (b.block == the_host || a.time < current.task_begun) {
        Tasks &t = tasks();
        std::lock_guard also(t.mutex);
        first = a.block == the_host ? nullptr : task_at(t, a.time);
    } else
        first = second;
    const bool same = !host && first == second && a.block != a_copy && b.block != a_copy;
    const auto verb = [](const Access &x) {
        return std::string(x.atomic ? "atomically " : "") +
               (x.write ? x.atomic ? "changes" : "writes" : "reads");
    };
    const auto size = std::to_string(bytes) + (bytes == 1 ? " byte of " : " bytes of ") + memory;
    const auto at = [&](const Access &x) {
        return x.place ? " at " + (&x == &a ? line_a : line_b) : std::string();
    };
    const auto who = [&](const Access &x, const Task *task, bool with_block) -> std::string {
        if (x.block == the_host)
            return "the host";
        if (x.block == a_copy)
            return task_name(task);
        const uint3 block = same   ? uint3{blockDim.x, blockDim.y, blockDim.z}
                            : task ? task->block
                                   : uint3{1, 1, 1};
        const uint3 grid = same ? uint3{gridDim.x, gridDim.y, gridDim.z} : task ? task->grid : uint3{1, 1, 1};
        return (same ? std::string() : task_name(task) + " ") + "thread " + coordinates(x.thread, block) +
               (with_block ? " of block " + coordinates(x.block, grid) : "");
    };
    fflush(stdout);
    std::string text = "cuda on the CPU: race ";
    if (same) {
        const bool one_block = a.block == b.block, warp = one_block && a.thread / 32 == b.thread / 32;
        text += "in kernel " + std::string(self->kernel->name);
        if (one_block)
            text += ", block " + coordinates(a.block, {gridDim.x, gridDim.y, gridDim.z});
        text += ": " + who(a, first, !one_block) + " " + verb(a) + " " + size + at(a) + allocated +
                ",\n    " + who(b, second, !one_block) + " " + verb(b) + (bytes == 1 ? " it" : " them") +
                at(b) +
                (a.atomic != b.atomic ? ", which is not ordered with an atomic access"
                 : !one_block         ? ", and nothing orders these blocks"
                 : warp               ? ", with no __syncwarp() or __syncthreads() between"
                                      : ", with no __syncthreads() between") +
                "\n";
    } else if (host) {
        const bool host_first = a.block == the_host;
        const Access &h = host_first ? a : b, &d = host_first ? b : a;
        const Task *const task = host_first ? second : first;
        text += "between the host and a stream: the host " + verb(h) + " " + size + at(h) + allocated +
                ",\n    which " + who(d, task, true) + " " + verb(d) + at(d) +
                ", and the host has not waited for that\n";
    } else
        text += "between streams: " + who(a, first, true) + " " + verb(a) + " " + size + at(a) + allocated +
                ",\n    " + who(b, second, true) + " " + verb(b) + (bytes == 1 ? " it" : " them") + at(b) +
                ", and nothing orders the two\n";
    fputs(text.c_str(), stderr);
}

std::string in_kernel_by(const Access &me) {
    return std::string("in kernel ") + self->kernel->name + ", block " +
           coordinates(me.block, {gridDim.x, gridDim.y, gridDim.z}) + ": thread " +
           coordinates(me.thread, {blockDim.x, blockDim.y, blockDim.z});
}

// Reports an access outside of the variables in shared memory, or after the end of an allocation. Reports
// nothing and returns false if another allocation contains the address now, or none is before it.
bool report_out_of_bounds(const Access &me, uintptr_t address, size_t bytes) {
    std::string name, allocated;
    intptr_t offset;
    size_t size;
    if (is_shared_memory(address)) {
        const Name none{"the launch", (const char *)address, 0}, *nearest = &none;
        uintptr_t least = ~(uintptr_t)0;
        for (const Name &n : threads().names) {
            const uintptr_t from = address - (uintptr_t)n.begin; // wraps around for a lower address
            const uintptr_t distance = from < n.bytes ? 0 : std::min(from - n.bytes, -from);
            if (distance < least || (distance == least && n.bytes)) {
                least = distance;
                nearest = &n;
            }
        }
        const bool dynamic = strcmp(nearest->name, "the launch") == 0;
        name = dynamic ? "dynamic shared memory" : std::string("shared memory ") + nearest->name;
        offset = (intptr_t)(address - (uintptr_t)nearest->begin);
        size = nearest->bytes;
    } else {
        Allocation m;
        if (find_allocation((const void *)address, m) && (const char *)address + bytes <= m.base + m.size)
            return false;
        if (!find_allocation((const void *)(address & ~(race_page - 1)), m) &&
            !find_allocation((const void *)((address & ~(race_page - 1)) - 1), m))
            return false;
        if (m.kind == MemoryKind::registered)
            return false;
        name = name_memory((uintptr_t)m.base, me, allocated);
        offset = (const char *)address - m.base;
        size = m.size;
    }
    Reports &r = reports();
    std::lock_guard lock(r.mutex);
    if (!r.seen.insert({me.place, 0}).second)
        return true;
    const std::string line = line_of({me.place});
    if (!r.lines.insert({"out of bounds", line}).second)
        return true;
    ++r.shown;
    fflush(stdout);
    fprintf(stderr,
            "cuda on the CPU: out of bounds %s %s %zu %s at %s,\n"
            "    at offset %td of %s%s, which has %zu bytes\n",
            in_kernel_by(me).c_str(),
            me.atomic  ? "atomically changes"
            : me.write ? "writes"
                       : "reads",
            bytes, bytes == 1 ? "byte" : "bytes", line.c_str(), offset, name.c_str(), allocated.c_str(),
            size);
    return true;
}

// A read of fresh device memory. Some writes are not seen, such as those by textures, OpenGL and libraries,
// so what is read must also be what fresh memory holds. Without a task, copies and fills are not seen either.
void report_uninitialized(const Access &me, uintptr_t address, size_t bytes) {
    const unsigned char *const at = (const unsigned char *)address;
    Allocation memory;
    if (fresh_byte() != 0xff || !current.task ||
        !std::all_of(at, at + bytes, [](unsigned char b) { return b == 0xff; }) ||
        !find_allocation(at, memory) || memory.kind != MemoryKind::device)
        return;
    Reports &r = reports();
    std::lock_guard lock(r.mutex);
    if (!r.seen.insert({me.place, me.place}).second)
        return;
    const std::string line = line_of({me.place});
    if (!r.lines.insert({"", line}).second)
        return;
    ++r.shown;
    std::string allocated;
    const std::string name = name_memory(address, me, allocated);
    fflush(stdout);
    fprintf(stderr,
            "cuda on the CPU: uninitialized memory %s reads %zu %s of %s at %s%s,\n"
            "    which nothing has written\n",
            in_kernel_by(me).c_str(), bytes, bytes == 1 ? "byte" : "bytes", name.c_str(), line.c_str(),
            allocated.c_str());
}

} // namespace

// ---- called by the engine and the streams ----

std::vector<SourceLine> race_source_lines(const std::vector<uintptr_t> &addresses) {
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[std::max<ssize_t>(length, 0)] = 0;
    // addr2line takes addresses relative to the load address for a position-independent executable, and
    // absolute ones for others. A return address is that of the next instruction, so 1 is subtracted.
    static const bool moved = [] {
        const auto type = *(const uint16_t *)(__executable_start + 16); // e_type
        return type == 3;                                               // ET_DYN
    }();
    std::vector<SourceLine> found(addresses.size());
    constexpr size_t at_once = 4000; // addresses in a command, whose length is limited
    for (size_t first = 0; first < addresses.size(); first += at_once) {
        std::string command = std::string("addr2line -a -i -e '") + program + "'";
        for (size_t i = first; i < std::min(addresses.size(), first + at_once); ++i) {
            char text[32];
            snprintf(text, sizeof text, " 0x%zx",
                     (size_t)(addresses[i] - 1 + (moved ? 0 : (uintptr_t)__executable_start)));
            command += text;
        }
        FILE *const pipe = popen((command + " 2>/dev/null").c_str(), "r");
        if (!pipe)
            break;
        char line[4096];
        // addr2line -a -i prints for each address a line 0x…, then the source line of the instruction, and
        // those of the calls that are inlined there, from the inner to the outer one.
        for (size_t next = first; fgets(line, sizeof line, pipe);) {
            line[strcspn(line, " \n")] = 0;
            if (strncmp(line, "0x", 2) == 0) {
                ++next;
                continue;
            }
            const bool ours = strstr(line, "/cuda_cpu/") || strstr(line, "cooperative_groups") ||
                              strstr(line, "/include/cuda/") || strstr(line, "/cpu/src/") ||
                              strstr(line, "/cpu/include/") || strstr(line, "/build/cucc/") ||
                              strstr(line, "/.cache/cucc/") || strstr(line, "/lib/cucc/") ||
                              strncmp(line, "/usr/", 5) == 0 || *line == '?' || strncmp(line, "cpu/", 4) == 0;
            if (next == first || next > found.size() || !found[next - 1].text.empty())
                continue;
            if (ours || strstr(line, ":?") || strstr(line, ":0"))
                found[next - 1].inlined = true;
            else
                found[next - 1].text = base_name(line);
        }
        pclose(pipe);
    }
    return found;
}

// Marks new memory as uninitialized, also where an earlier allocation was freed. At least one byte after its
// end is tracked too.
void race_track_new(const void *memory, size_t bytes) {
    race_track(memory, bytes + 1);
    const uintptr_t end = (uintptr_t)memory + bytes;
    for (uintptr_t i = (uintptr_t)memory >> page_bits; i <= end >> page_bits; ++i) {
        Page &page = *pages()[i];
        page.used = (uint32_t)std::min(race_page, end - (i << page_bits));
        if (page.cells)
            madvise(page.cells, (race_page >> page.shift) * sizeof(Cell), MADV_DONTNEED);
    }
}

void race_track(const void *memory, size_t bytes) {
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    Page **const table = pages();
    if (bytes)
        for (uintptr_t i = (uintptr_t)memory >> page_bits; i <= ((uintptr_t)memory + bytes - 1) >> page_bits;
             ++i)
            if (!table[i])
                table[i] = new Page;
}

void race_launch(const Kernel &kernel, const LaunchConfig &config) {
    for (const SymbolSection &s : symbol_sections())
        if (s.writable)
            race_track(s.begin, (size_t)(s.end - s.begin));
    published.forget(!current.task || current.settled >= current.enqueued);
    current.begun = tick();
    current.threads = (uint64_t)config.block.x * config.block.y * config.block.z;
    if (!current.task)
        current.task_begun = current.settled = current.begun;
    else {
        Task &task = const_cast<Task &>(*current.task);
        task.kernel = kernel.name;
        task.file = kernel.file;
        task.line = kernel.line;
        task.grid = {config.grid.x, config.grid.y, config.grid.z};
        task.block = {config.block.x, config.block.y, config.block.z};
    }
}

void race_grid_barrier() {
    current.begun = tick();
}

void race_barrier(const Worker &) {
    Threads &b = threads();
    ++b.epoch;
    if (!b.talks)
        return;
    for (unsigned t = 0; t < b.count; ++t) {
        if (b.polled[t])
            acquire(b.polled[t], b, t);
        b.fenced = std::max(b.fenced, b.fence[t]);
        b.acquired = std::max(b.acquired, b.acquire[t]);
        b.polled[t] = 0;
    }
    b.talks = false;
}

void race_warp_barrier(unsigned w, unsigned lanes) {
    Threads &b = threads();
    if (b.warp_epoch[w] != b.epoch) {
        b.warp_epoch[w] = b.epoch;
        memset(b.known[w], 0, sizeof b.known[w]);
        std::fill(b.clock + w * 32, b.clock + w * 32 + 32, (uint16_t)1);
    }
    uint16_t all[32] = {};
    uint32_t acquired = 0, fenced = 0;
    for (unsigned l = 0; l < 32; ++l) {
        if (!(lanes >> l & 1))
            continue;
        const unsigned t = w * 32 + l;
        b.known[w][l][l] = b.clock[t];
        for (unsigned i = 0; i < 32; ++i)
            all[i] = std::max(all[i], b.known[w][l][i]);
        acquired = std::max(acquired, b.acquire[t]);
        fenced = std::max(fenced, b.fence[t]);
        if (b.clock[t] < 65535)
            ++b.clock[t];
    }
    for (unsigned l = 0; l < 32; ++l)
        if (lanes >> l & 1) {
            memcpy(b.known[w][l], all, sizeof all);
            b.acquire[w * 32 + l] = acquired;
            b.fence[w * 32 + l] = fenced;
        }
}

void race_name_shared(const char *name, const void *memory, size_t bytes) {
    threads().names.push_back({name, (const char *)memory, bytes});
    if (traced_block)
        traced_block->arrays.push_back({name, (uint64_t)memory, bytes});
}

void race_enqueue(uint64_t number, const StreamIdentity &stream, const std::vector<uint64_t> &after,
                  const char *call) {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    Clock clock = t.host;
    for (const auto &[other, known] : t.streams) {
        const StreamIdentity &s = known.first;
        if (other == stream.number || (s.device == stream.device && (stream.legacy || s.legacy) &&
                                       (stream.legacy || stream.blocking) && (s.legacy || s.blocking)))
            join(clock, known.second);
    }
    for (uint64_t one : after) {
        const auto i = t.all.find(one);
        if (i != t.all.end())
            join(clock, i->second.clock);
    }
    clock[stream.number] = number;
    t.streams.insert_or_assign(stream.number, std::make_pair(stream, clock));
    Task &task = t.all[number];
    task = {number, stream.number, clock, call, {}, tick(), 0, nullptr, nullptr, 0, {}, {}};
    void *frames[16];
    task.frames.assign(frames, frames + backtrace(frames, 16));
    ++t.pending;
    update_host(t);
    if (t.all.size() > 4096 && t.all.begin()->second.begun)
        t.all.erase(t.all.begin());
}

void race_begin(uint64_t number) {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    const auto found = t.all.find(number);
    current.task = found == t.all.end() ? nullptr : &found->second;
    if (!current.task)
        return;
    Task &task = found->second;
    if (t.run.size() > 2048)
        t.run.erase(t.run.begin(), t.run.begin() + 1024);
    current.settled = settled_for(t, task.clock, task.enqueued);
    current.enqueued = task.enqueued;
    current.begun = current.task_begun = task.begun = tick();
    t.run.emplace_back(task.begun, number);
}

void race_end() {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    current.task = nullptr;
    --t.pending;
    update_host(t);
}

void race_waited(uint64_t number) {
    Tasks &t = tasks();
    std::lock_guard lock(t.mutex);
    const auto i = t.all.find(number);
    if (i != t.all.end())
        join(t.host, i->second.clock);
    update_host(t);
}

void race_copy(const void *memory, size_t bytes, bool write) {
    if (!current.task)
        return;
    Access me{};
    me.time = now;
    me.block = a_copy;
    me.write = write;
    uintptr_t address = (uintptr_t)memory;
    while (bytes) {
        const size_t here = std::min(bytes, race_page - (address & (race_page - 1)));
        if (Page *const page = pages()[address >> page_bits])
            check(*page, address, here, me, nullptr, false, false);
        address += here;
        bytes -= here;
    }
}

} // namespace cuda_cpu

// ---- called by instrumented code ----

using namespace cuda_cpu;

#define CALLER __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void *) {
    if (traced_block)
        trace_call(1);
}
void __tsan_func_exit() {
    if (traced_block)
        trace_call(-1);
}
// Called in every basic block (-fsanitize-coverage=trace-pc)
void __sanitizer_cov_trace_pc() {
    if (traced_block)
        trace_event(EventKind::code, nullptr, 0,
                    (uint32_t)((uintptr_t)CALLER - (uintptr_t)__executable_start));
}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

// True if a volatile access counts as atomic. In global memory it does, because before CUDA 9 programs wrote
// flags between blocks in this way. In shared memory it does not, because volatile does not order the lanes
// of a warp.
static bool like_atomic(const void *p) {
    return !(self && self->kernel && is_shared_memory((uintptr_t)p));
}

static void volatile_access(void *p, size_t bytes, bool write, const void *caller) {
    const bool atomic = like_atomic(p);
    access((uintptr_t)p, bytes, write, atomic, !write, caller);
    if (!atomic || !self || !self->kernel)
        return;
    if (write) {
        release((uintptr_t)p);
        return;
    }
    acquire((uintptr_t)p);
    threads().polled[this_thread()] = (uintptr_t)p; // the caller reads after this call; see fence()
    threads().talks = true;
}

#define ACCESSES(n)                                                                                          \
    void __tsan_read##n(void *p) {                                                                           \
        access((uintptr_t)p, n, false, false, true, CALLER);                                                 \
    }                                                                                                        \
    void __tsan_write##n(void *p) {                                                                          \
        access((uintptr_t)p, n, true, false, false, CALLER);                                                 \
    }                                                                                                        \
    void __tsan_unaligned_read##n(void *p) {                                                                 \
        access((uintptr_t)p, n, false, false, true, CALLER);                                                 \
    }                                                                                                        \
    void __tsan_unaligned_write##n(void *p) {                                                                \
        access((uintptr_t)p, n, true, false, false, CALLER);                                                 \
    }                                                                                                        \
    void __tsan_volatile_read##n(void *p) {                                                                  \
        volatile_access(p, n, false, CALLER);                                                                \
    }                                                                                                        \
    void __tsan_volatile_write##n(void *p) {                                                                 \
        volatile_access(p, n, true, CALLER);                                                                 \
    }                                                                                                        \
    void __tsan_unaligned_volatile_read##n(void *p) {                                                        \
        volatile_access(p, n, false, CALLER);                                                                \
    }                                                                                                        \
    void __tsan_unaligned_volatile_write##n(void *p) {                                                       \
        volatile_access(p, n, true, CALLER);                                                                 \
    }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
#undef ACCESSES

void __tsan_read_range(void *p, unsigned long n) {
    access((uintptr_t)p, n, false, false, true, CALLER);
}
void __tsan_write_range(void *p, unsigned long n) {
    access((uintptr_t)p, n, true, false, false, CALLER);
}
// clang++ calls these instead of the functions of the C library.
void *__tsan_memcpy(void *to, const void *from, size_t n) {
    access((uintptr_t)from, n, false, false, true, CALLER);
    access((uintptr_t)to, n, true, false, false, CALLER);
    return memcpy(to, from, n);
}
void *__tsan_memmove(void *to, const void *from, size_t n) {
    access((uintptr_t)from, n, false, false, true, CALLER);
    access((uintptr_t)to, n, true, false, false, CALLER);
    return memmove(to, from, n);
}
void *__tsan_memset(void *to, int value, size_t n) {
    access((uintptr_t)to, n, true, false, false, CALLER);
    return memset(to, value, n);
}

void __tsan_atomic_thread_fence(int) {
    __sync_synchronize();
    fence();
}
void __tsan_atomic_signal_fence(int) {
    fence();
}

} // extern "C"

// An atomic that is stronger than relaxed, as those of cuda::atomic are by default, is its own fence. CUDA's
// atomicAdd and the like are relaxed (kernel.h). The atomic itself comes between release and acquire: it must
// not see a value whose release acquire() has missed.
template <class T>
static void before_atomic(volatile T *p, bool reads, bool write, int order, const void *caller) {
    access((uintptr_t)p, sizeof *p, write, true, reads, caller);
    if (!write || !self || !self->kernel)
        return;
    if (order >= __ATOMIC_RELEASE)
        fence();
    release((uintptr_t)p);
}
template <class T> static T after_atomic(volatile T *p, T value) {
    if (self && self->kernel)
        acquire((uintptr_t)p);
    return value;
}

#define ATOMICS(bits, T)                                                                                     \
    T __tsan_atomic##bits##_load(const volatile T *p, int order) {                                           \
        before_atomic(p, true, false, order, CALLER);                                                        \
        return after_atomic<const T>(p, __atomic_load_n(p, __ATOMIC_SEQ_CST));                               \
    }                                                                                                        \
    void __tsan_atomic##bits##_store(volatile T *p, T value, int order) {                                    \
        before_atomic(p, false, true, order, CALLER);                                                        \
        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                        \
    }                                                                                                        \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile T *p, T *old, T value, int order, int) {      \
        before_atomic(p, true, true, order, CALLER);                                                         \
        const bool done =                                                                                    \
            __atomic_compare_exchange_n(p, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);           \
        after_atomic<T>(p, value);                                                                           \
        return done;                                                                                         \
    }                                                                                                        \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile T *p, T *old, T value, int order, int also) {   \
        return __tsan_atomic##bits##_compare_exchange_strong(p, old, value, order, also);                    \
    }                                                                                                        \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T *p, T old, T value, int order, int) {            \
        before_atomic(p, true, true, order, CALLER);                                                         \
        __atomic_compare_exchange_n(p, &old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
        return after_atomic<T>(p, old);                                                                      \
    }                                                                                                        \
    T __tsan_atomic##bits##_exchange(volatile T *p, T value, int order) {                                    \
        before_atomic(p, false, true, order, CALLER);                                                        \
        return after_atomic<T>(p, __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST));                          \
    }                                                                                                        \
    FETCH(bits, T, add)                                                                                      \
    FETCH(bits, T, sub) FETCH(bits, T, and) FETCH(bits, T, or) FETCH(bits, T, xor) FETCH(bits, T, nand)
#define FETCH(bits, T, name)                                                                                 \
    T __tsan_atomic##bits##_fetch_##name(volatile T *p, T value, int order) {                                \
        before_atomic(p, true, true, order, CALLER);                                                         \
        return after_atomic<T>(p, __atomic_fetch_##name(p, value, __ATOMIC_SEQ_CST));                        \
    }
extern "C" {
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
}

#endif
