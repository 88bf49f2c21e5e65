// SPDX-License-Identifier: MIT
// Host code that reads or writes device memory causes a segmentation fault, which ends the program with a
// message.
//
// All memory that CUDA allocates comes from one range of addresses: device memory from its first half,
// managed and pinned memory from its second half. mprotect() makes the first half inaccessible. While a
// kernel, a copy or a fill runs, a DeviceAccess object (memory.h) exists, and the first half is accessible;
// when the last such object is destroyed, it becomes inaccessible again. This takes microseconds, so it is
// left out when all changes together have taken more than 1 % of the running time: after thousands of short
// launches device memory is accessible at some times. Behind each allocation is a red zone: bytes with a
// known value, which show whether something was written past the end.
//
// With CUDA_CPU_CHECK=1 no change is left out, and freed memory stays inaccessible, also to kernels. Its
// addresses are used again only when the end of the range is reached.
#include "launch.h"
#include "race.h"
#include "registry.h"
#include "cuda_cpu/math.h"

#include <sys/mman.h>
#include <sys/resource.h>

extern "C" int MPI_Init(int *, char ***) __attribute__((weak));

namespace cuda_cpu {

std::atomic<bool> guarding{false};

namespace {

constexpr size_t page = 64 << 10;                              // the largest page size that Linux has
constexpr size_t unit = 512;                                   // cudaDeviceProp::textureAlignment
constexpr size_t red_zone = 64, most_red = 4096;               // at least, and at most
constexpr size_t keep_below = 32 << 20, most_kept = 256 << 20; // freed memory that stays with the process
constexpr int64_t free_of_charge = 5000000;                    // nanoseconds for the protection

struct Block {
    size_t bytes, asked;
};

struct Half {
    char *begin = nullptr, *end = nullptr;
    char *next = nullptr;                        // where the search for free addresses starts
    char *usable = nullptr;                      // not strict: up to here memory has been made accessible
    std::map<char *, Block> used;                // by address
    std::map<size_t, std::vector<char *>> spare; // not strict: blocks of `used` that were freed, by size
    size_t kept = 0;                             // bytes of spare blocks whose memory the process has kept
};

struct Range {
    Half device, host;
    bool strict = false;               // CUDA_CPU_CHECK=1
    std::mutex mutex{};                // protects the halves, and changes of the protection
    std::atomic<unsigned> accesses{0}; // number of DeviceAccess objects that exist
    std::atomic<bool> closed{false};   // access to device memory is denied
    std::atomic<int64_t> next{0};      // before this time, by clock64(), it is not denied again
    int64_t spent = 0;                 // nanoseconds for the protection
    int64_t begun = 0, begun_ticks = 0;
};

ONLY(range, Range)

int64_t time_of(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

char *page_of(char *address) {
    return (char *)((uintptr_t)address / page * page);
}

char *round_up(char *address, size_t to) {
    return (char *)(((uintptr_t)address + to - 1) / to * to);
}

// Reserves the range. False if memory has to come from malloc().
bool reserve() {
    Range &r = range();
    r.strict = setting_of("CUDA_CPU_CHECK", {"0", "1"});
#if defined CUDA_CPU_WATCHED || defined __wasm__
    return false; // sanitizers need access to all memory, and watch its end; WebAssembly cannot protect it
#else
    rlimit limit;
    if (!r.strict && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return false;
    for (size_t bytes = (size_t)1 << 40; bytes >= huge_page; bytes /= 2) { // ulimit -v may limit it
        void *const memory =
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            continue;
        char *const begin = (char *)memory, *const middle = begin + bytes / 2;
        // a free first page: free() of a device pointer reads the bytes before it
        r.device = {begin, middle, round_up(begin, page) + page, round_up(begin, page) + page, {}, {}, 0};
        r.host = {middle, begin + bytes, round_up(middle, page), round_up(middle, page), {}, {}, 0};
        r.begun = time_of(CLOCK_MONOTONIC);
        r.begun_ticks = clock64();
        // No protection with MPI, which may read device memory from the host, and with Thrust, whose
        // algorithms run as host code.
        guarding = r.strict || !(getenv("CUDA_CPU_CHECK") || MPI_Init || host_uses_device_memory);
        watch_faults();
        return true;
    }
    if (r.strict)
        end_program("CUDA_CPU_CHECK=1: no address space for device memory: is there a limit (ulimit -v)?");
    return false;
#endif
}

// Sets the page protection of all device memory, a call for each run of adjacent blocks. Needs the mutex.
void protect(Range &r, int protection) {
    const int64_t start = time_of(CLOCK_THREAD_CPUTIME_ID);
    const auto &used = r.device.used;
    for (auto i = used.begin(); i != used.end();) {
        char *const begin = i->first, *end = begin;
        for (; i != used.end() && i->first == end; ++i)
            end += i->second.bytes;
        char *const first = page_of(begin);
        if (mprotect(first, (size_t)(round_up(end, page) - first), protection) != 0)
            end_program("cannot change the protection of device memory (CUDA_CPU_CHECK=0 leaves it): %s",
                        strerror(errno));
    }
    r.closed = protection == PROT_NONE;
    r.spent += time_of(CLOCK_THREAD_CPUTIME_ID) - start;
    const int64_t now = time_of(CLOCK_MONOTONIC), ticks = clock64();
    const double later = 100.0 * (double)(r.spent - free_of_charge) - (double)(now - r.begun); // nanoseconds
    if (later > 0 && !r.strict)
        r.next = ticks + (int64_t)(later * (double)(ticks - r.begun_ticks) / (double)(now - r.begun + 1));
}

// Finds the first free address between `from` and `to`, or null. The caller holds the mutex.
char *find_place(const Half &h, char *from, size_t bytes, size_t alignment) {
    char *at = round_up(from, alignment);
    for (auto i = h.used.lower_bound(from); at <= h.end && (size_t)(h.end - at) >= bytes; ++i) {
        if (i == h.used.end() || i->first >= at + bytes)
            return at;
        at = round_up(i->first + i->second.bytes, alignment);
    }
    return nullptr;
}

// Takes a spare block of this size, or null.
char *take_spare(Half &h, size_t bytes) {
    const auto found = h.spare.find(bytes);
    if (found == h.spare.end())
        return nullptr;
    char *const memory = found->second.back();
    found->second.pop_back();
    if (found->second.empty())
        h.spare.erase(found);
    if (bytes < keep_below)
        h.kept -= std::min(h.kept, bytes);
    return memory;
}

// Takes a block from addresses that are free, and makes it accessible. Null if there are none.
char *take_new(Range &r, Half &h, size_t bytes, bool huge) {
    const bool strict = r.strict && &h == &r.device;
    const size_t alignment = huge ? huge_page : strict || race_track ? page : unit;
    char *memory = find_place(h, h.next, bytes, alignment);
    if (!memory) {
        for (const auto &[size, blocks] : h.spare)
            for (char *const spare : blocks)
                h.used.erase(spare);
        h.spare.clear();
        h.kept = 0;
        h.usable = h.begin; // memory below `next` may have become inaccessible
        memory = find_place(h, h.begin + page, bytes, alignment);
    }
    if (!memory)
        return nullptr;
    if (strict || memory + bytes > h.usable) {
        char *const begin = page_of(memory), *end = memory + bytes;
        if (!strict && !huge) // also for the next ones
            end = std::min(round_up(end, page) + 16 * page, h.end);
        if (mprotect(begin, (size_t)(round_up(end, page) - begin), PROT_READ | PROT_WRITE) != 0)
            return nullptr;
        h.usable = std::max(h.usable, end);
    }
    if (huge)
        madvise(memory, bytes, MADV_HUGEPAGE);
    h.next = memory + bytes;
    return memory;
}

const Half *half_of(const void *pointer) {
    for (const Half *h : {&range().device, &range().host})
        if (pointer >= h->begin && pointer < h->end)
            return h;
    return nullptr;
}

} // namespace

bool guards() {
    static const bool reserved = reserve();
    return reserved;
}

void *get_guarded(size_t asked, bool device) {
    Range &r = range();
    Half &h = device ? r.device : r.host;
    const DeviceAccess access;
    const bool huge = asked >= 2 * huge_page;
    const size_t to = huge || race_track || (device && r.strict) ? page : unit;
    if (asked > (size_t)(h.end - h.begin))
        return nullptr;
    const size_t bytes = (asked + red_zone + to - 1) / to * to;
    std::lock_guard lock(r.mutex);
    char *memory = take_spare(h, bytes);
    if (!memory)
        memory = take_new(r, h, bytes, huge);
    if (!memory)
        return nullptr;
    memset(memory, fresh_byte(), asked);
    memset(memory + asked, red_byte, std::min(bytes - asked, most_red));
    h.used[memory] = {bytes, asked};
    return memory;
}

bool in_guarded(const void *pointer) {
    return guarding.load(std::memory_order_relaxed) && half_of(pointer) == &range().device;
}

bool in_range(const void *pointer) {
    return half_of(pointer);
}

bool guard_is_strict() {
    const char *const setting = getenv("CUDA_CPU_CHECK");
    return setting && strcmp(setting, "1") == 0;
}

bool is_host_memory([[maybe_unused]] const void *pointer) {
#ifdef __wasm__
    return false;
#else
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char resident; // mincore() fails where nothing is mapped
    return guards() && !half_of(pointer) && !symbol_section(pointer) && !find_allocation(pointer) &&
           mincore((char *)((uintptr_t)pointer / size * size), 1, &resident) == 0;
#endif
}

size_t written_past(const void *pointer) {
    if (!half_of(pointer))
        return 0;
    Range &r = range();
    const DeviceAccess access;
    std::lock_guard lock(r.mutex);
    const auto &used = half_of(pointer)->used;
    const auto found = used.find((char *)pointer);
    if (found == used.end())
        return 0;
    const auto [bytes, asked] = found->second;
    const char *const begin = found->first + asked, *const end = begin + std::min(bytes - asked, most_red);
    const char *const written = std::find_if(begin, end, [](char c) { return c != red_byte; });
    return written < end ? (size_t)(written - found->first) : 0;
}

bool free_guarded(void *pointer) {
    Range &r = range();
    const Half *const half = half_of(pointer);
    if (!half)
        return false;
    Half &h = half == &r.device ? r.device : r.host;
    std::lock_guard lock(r.mutex);
    const auto found = h.used.find((char *)pointer);
    const size_t bytes = found->second.bytes;
    if (!r.strict || &h == &r.host) {
        h.spare[bytes].push_back(found->first);
        if (bytes < keep_below && h.kept + bytes <= most_kept)
            h.kept += bytes;
        else
            madvise(pointer, bytes / page * page, MADV_DONTNEED);
        return true;
    }
    // A new mapping in its place returns the pages to the system and denies access.
    if (mmap(pointer, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        mprotect(pointer, bytes, PROT_NONE);
    h.used.erase(found);
    return true;
}

void open_guarded() {
    Range &r = range();
    ++r.accesses;
    if (!r.closed)
        return;
    std::lock_guard lock(r.mutex);
    if (r.closed)
        protect(r, PROT_READ | PROT_WRITE);
}

void close_guarded() {
    Range &r = range();
    if (--r.accesses > 0 || clock64() < r.next)
        return;
    std::lock_guard lock(r.mutex);
    if (r.closed)
        return;
    r.closed = true; // a thread that opens from here on waits for the mutex
    if (r.accesses == 0)
        protect(r, PROT_NONE);
    else
        r.closed = false;
}

} // namespace cuda_cpu
