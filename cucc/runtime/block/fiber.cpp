// SPDX-License-Identifier: MIT
// Fibers: see fiber.h.
#include "race.h"

#include <pthread.h>
#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#ifdef __SANITIZE_THREAD__
// OpenBLAS's threads are not compiled with ThreadSanitizer, which does not see how they synchronize.
extern "C" __attribute__((weak)) const char *__tsan_default_suppressions() {
    return "race:libopenblas\n";
}
#endif

namespace cuda_cpu {
namespace {

// The size of a stack. It has to hold printf and local arrays. The operating system allocates a page when it
// is first touched, so a large stack costs little.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t stack_size = 1 << 20;
#elif defined __wasm__ // all of it is allocated
constexpr size_t stack_size = 64 << 10;
#else
constexpr size_t stack_size = 256 << 10;
#endif

#ifdef __wasm__
constexpr size_t saved =
    8 << 10; // where Emscripten saves the locals of the functions on a stack that it leaves
#endif

const size_t page = (size_t)sysconf(_SC_PAGESIZE);

std::atomic<int> stacks; // how many there are

#ifndef CUDA_CPU_INLINE_SWITCH
__thread Fiber *current;   // the stack in use now
__thread Fiber *came_from; // the stack that was in use before the last switch

// Completes a switch on the new stack, as the first call there.
void arrive([[maybe_unused]] Fiber &here) {
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(here.fake_stack, &bottom, &size);
    if (!came_from->stack) { // a host thread's own stack, whose bounds AddressSanitizer has just reported
        came_from->stack = static_cast<char *>(const_cast<void *>(bottom));
        came_from->size = size;
    }
#endif
}

#if HAVE_BOOST_CONTEXT
void start(boost::context::detail::transfer_t from) {
    came_from->context = from.fctx;
#elif defined __wasm__
void start(void *){
#else
void start() {
#endif
    arrive(*current);
    current->entry();
    abort(); // not reached: entry never returns
}
#endif

} // namespace

Fiber *new_fiber(void (*entry)()) {
    char *memory = (char *)mmap(nullptr, stack_size + page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        end_program("no memory for the stack of a thread: %s", strerror(errno));
    // The guard page turns a stack overflow into a fault. It splits the mapping, and Linux allows a process
    // 65,530 mappings by default. The other stacks have no guard page, and adjacent ones share a mapping.
    if (stacks++ < 20000)
        (void)!mprotect(memory, page, PROT_NONE);

    // Stacks at the same offset within pages compete for the same cache sets, so offsets vary.
    static std::atomic<unsigned> colour;
    const size_t size = stack_size - colour++ % 64 * 64 * 5 % 16384;

    Fiber *fiber = new Fiber;
    fiber->entry = entry;
    fiber->stack = memory + page;
    fiber->size = size;
    if (race_stack)
        race_stack(fiber->stack, fiber->stack + size);
#ifdef CUDA_CPU_INLINE_SWITCH
    // Set up the stack as it is at the entry of a function: the return address is at the stack pointer (on
    // arm64 in a register). It is 0, which ends backtraces.
    void **top = (void **)(((uintptr_t)memory + page + size) & ~(uintptr_t)15);
#ifdef __x86_64__
    *--top = nullptr;
#endif
    fiber->idle = {top, nullptr, nullptr, (void *)entry, {}};
#else
    fiber->idle.stack = fiber;
#if HAVE_BOOST_CONTEXT
    fiber->context = boost::context::detail::make_fcontext(fiber->stack + size, size, start);
#elif defined __wasm__
    emscripten_fiber_init(&fiber->context, start, nullptr, fiber->stack + saved, size - saved, fiber->stack,
                          saved);
#else
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = size;
    makecontext(&fiber->context, start, 0);
#endif
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
    if (race_stack)
        race_stack(fiber->stack + fiber->size, fiber->stack + fiber->size);
    munmap(fiber->stack - page, stack_size + page);
    stacks--;
    delete fiber;
}

void adopt_stack(Fiber &fiber) {
#ifdef __wasm__
    static char saved_stack[saved];
    emscripten_fiber_init_from_current_context(&fiber.context, saved_stack, saved);
#elif !defined __SANITIZE_ADDRESS__ // returns the bounds of the stack
    pthread_attr_t attributes;
    void *stack;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &stack, &fiber.size);
        fiber.stack = static_cast<char *>(stack);
        pthread_attr_destroy(&attributes);
    }
#endif
#ifndef CUDA_CPU_INLINE_SWITCH
    current = &fiber;
#endif
#ifdef __SANITIZE_THREAD__
    fiber.tsan = __tsan_get_current_fiber();
#endif
}

#ifndef CUDA_CPU_INLINE_SWITCH

void switch_context(Context *from_context, const Context *to_context) {
    Fiber &from = *current, &to = *static_cast<Fiber *>(to_context->stack);
    from_context->stack = &from;
    current = &to;
    came_from = &from;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.size);
#endif
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(to.tsan, 0);
#endif
#if HAVE_BOOST_CONTEXT
    const auto back = boost::context::detail::jump_fcontext(to.context, nullptr);
    came_from->context = back.fctx; // the fiber that switched back here, which need not be `to`
#elif defined __wasm__
    emscripten_fiber_swap(&from.context, &to.context);
#else
    swapcontext(&from.context, &to.context);
#endif
    arrive(from);
}

#endif

bool overflows(const Fiber &fiber, const void *address) {
    const char *p = static_cast<const char *>(address);
    return fiber.stack && p < fiber.stack && p >= fiber.stack - page;
}

} // namespace cuda_cpu
