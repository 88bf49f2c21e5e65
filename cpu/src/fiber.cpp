// SPDX-License-Identifier: MIT
// Fibers: see fiber.h.
#include "fiber.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace cuda_cpu {

__thread Switch under_way;

namespace {

// The operating system allocates a page when it is first touched, so a large stack costs little.
// It has to hold printf and local arrays.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t stack_size = 1 << 20;
#else
constexpr size_t stack_size = 256 << 10;
#endif

const size_t page = (size_t)sysconf(_SC_PAGESIZE);

#if HAVE_BOOST_CONTEXT
void start(boost::context::detail::transfer_t from) {
    under_way.from->context = from.fctx;
#else
void start() {
#endif
    arrive(*under_way.to);
    under_way.to->entry();
    abort(); // entry never returns
}

} // namespace

Fiber *new_fiber(void (*entry)()) {
    char *memory = (char *)mmap(nullptr, stack_size + page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "cuda on the CPU: no memory for the stack of a thread: %s\n", strerror(errno));
        _exit(EXIT_FAILURE);
    }
    // The guard page turns an overflow into a fault. It splits the mapping, and Linux allows a
    // process 65,530 mappings by default; beyond that the call fails and the stack has no guard.
    (void)!mprotect(memory, page, PROT_NONE);

    // Stacks at the same offset within their pages would compete for the same cache sets, so the
    // offsets are varied (cache colouring).
    static std::atomic<unsigned> colour;
    const size_t size = stack_size - colour++ % 64 * 64 * 5 % 16384;

    Fiber *fiber = new Fiber;
    fiber->entry = entry;
    fiber->stack = memory + page;
    fiber->size = size;
#if HAVE_BOOST_CONTEXT
    fiber->context = boost::context::detail::make_fcontext(fiber->stack + size, size, start);
#else
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = size;
    makecontext(&fiber->context, start, 0);
#endif
#ifdef __SANITIZE_THREAD__
    fiber->tsan = __tsan_create_fiber(0);
#endif
    return fiber;
}

void delete_fiber(Fiber *fiber) {
#ifdef __SANITIZE_THREAD__
    __tsan_destroy_fiber(fiber->tsan);
#endif
#ifdef __SANITIZE_ADDRESS__
    // Frames of functions that never return leave their red zones poisoned. The address range may
    // be mapped again for something else, so all of it is unpoisoned.
    __asan_unpoison_memory_region(fiber->stack, stack_size);
#endif
    munmap(fiber->stack - page, stack_size + page);
    delete fiber;
}

void adopt_stack([[maybe_unused]] Fiber &fiber) {
#ifdef __SANITIZE_THREAD__
    fiber.tsan = __tsan_get_current_fiber();
#endif
}

bool overflows(const Fiber &fiber, const void *address) {
    const char *p = static_cast<const char *>(address);
    return fiber.stack && p < fiber.stack && p >= fiber.stack - page;
}

} // namespace cuda_cpu
