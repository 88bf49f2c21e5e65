// SPDX-License-Identifier: MIT
// CUDA_CPU_CHECK=1: host code that accesses device memory faults, unless a kernel, copy or fill runs.
//
// Device memory then comes from one range of addresses, to which page protection denies all access. A
// DeviceAccess object permits access to the allocations in it; when the last such object is destroyed,
// access is denied again. Freed memory stays inaccessible, also for kernels: its addresses are reused only
// when the end of the range is reached.
#include "launch.h"
#include "registry.h"

#include <sys/mman.h>

namespace cuda_cpu {

std::atomic<bool> guarding{false};

namespace {

constexpr size_t page = 64 << 10; // the largest page size of the machines that Linux runs on

struct Range {
    char *begin = nullptr, *end = nullptr;
    char *next = nullptr;          // where the search for free addresses starts
    std::map<char *, size_t> used; // address and size of each allocation, in whole pages
    std::mutex mutex{};            // protects `accesses` and the two members above
    unsigned accesses = 0;         // number of DeviceAccess objects that exist
};

ONLY(range, Range)

// True if the program runs with CUDA_CPU_CHECK=1 and the address range is reserved.
bool reserve() {
    const bool wanted = setting_of("CUDA_CPU_CHECK", {"0", "1"});
#ifdef CUDA_CPU_WATCHED // the sanitizers need access to all memory
    return false;
#endif
    if (!wanted)
        return false;
    Range &r = range();
    for (size_t bytes = (size_t)1 << 40; bytes >= huge_page; bytes /= 2) { // ulimit -v may limit it
        void *const memory =
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            continue;
        r.begin = (char *)memory;
        r.end = r.begin + bytes;
        r.next = r.begin + page; // a free first page: free() of a device pointer reads the bytes before it
        guarding = true;
        watch_faults();
        return true;
    }
    end_program("CUDA_CPU_CHECK=1: no address space for device memory: is there a limit (ulimit -v)?");
}

// Sets the page protection of all allocations, a call for each run of adjacent ones. Needs the mutex.
void protect(const Range &r, int protection) {
    for (auto i = r.used.begin(); i != r.used.end();) {
        char *const begin = i->first, *end = begin;
        for (; i != r.used.end() && i->first == end; ++i)
            end += i->second;
        if (mprotect(begin, (size_t)(end - begin), protection) != 0)
            end_program("CUDA_CPU_CHECK=1: cannot change the protection of device memory: %s",
                        strerror(errno));
    }
}

// Finds the first free address between `from` and `to`, or null. The caller holds the mutex.
char *find_place(const Range &r, char *from, char *to, size_t bytes, size_t alignment) {
    const auto align = [&](char *p) {
        return (char *)(((uintptr_t)p + alignment - 1) / alignment * alignment);
    };
    char *at = align(from);
    for (auto i = r.used.lower_bound(from); at <= to && (size_t)(to - at) >= bytes; ++i) {
        if (i == r.used.end() || i->first >= at + bytes)
            return at;
        at = align(i->first + i->second);
    }
    return nullptr;
}

} // namespace

bool guards() {
    static const bool wanted = reserve();
    return wanted;
}

void *get_guarded(size_t bytes) {
    Range &r = range();
    if (bytes > (size_t)(r.end - r.begin))
        return nullptr;
    const bool huge = bytes >= 2 * huge_page;
    bytes = (bytes + page - 1) / page * page;
    std::lock_guard lock(r.mutex);
    const size_t alignment = huge ? huge_page : page;
    char *memory = find_place(r, r.next, r.end, bytes, alignment);
    if (!memory)
        memory = find_place(r, r.begin + page, r.end, bytes, alignment);
    if (!memory || mprotect(memory, bytes, PROT_READ | PROT_WRITE) != 0)
        return nullptr;
    if (huge)
        madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, fresh_byte(), bytes);
    if (r.accesses == 0)
        mprotect(memory, bytes, PROT_NONE);
    r.used[memory] = bytes;
    r.next = memory + bytes;
    return memory;
}

bool in_guarded(const void *pointer) {
    return guarding.load(std::memory_order_relaxed) && pointer >= range().begin && pointer < range().end;
}

bool free_guarded(void *pointer) {
    if (!in_guarded(pointer))
        return false;
    Range &r = range();
    std::lock_guard lock(r.mutex);
    const auto found = r.used.find((char *)pointer);
    // A new mapping in its place returns the pages to the system and denies access.
    if (mmap(found->first, found->second, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1, 0) == MAP_FAILED)
        mprotect(found->first, found->second, PROT_NONE);
    r.used.erase(found);
    return true;
}

void open_guarded() {
    Range &r = range();
    std::lock_guard lock(r.mutex);
    if (r.accesses++ == 0)
        protect(r, PROT_READ | PROT_WRITE);
}

void close_guarded() {
    Range &r = range();
    std::lock_guard lock(r.mutex);
    if (--r.accesses == 0)
        protect(r, PROT_NONE);
}

} // namespace cuda_cpu
