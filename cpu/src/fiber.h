// SPDX-License-Identifier: MIT
/*
 * Fibers: stacks with a saved context, for the user-level threads of a block.
 *
 * The stack switch is Boost.Context's fcontext, a few nanoseconds of assembly. Without Boost it is
 * the C library's ucontext, which is slower because every switch makes a system call to save the
 * signal mask. Every switch is announced to AddressSanitizer and ThreadSanitizer, because they keep
 * data about the current stack.
 */
#pragma once
#include <cstddef>

#if HAVE_BOOST_CONTEXT
#include <boost/context/detail/fcontext.hpp>
#else
#include <ucontext.h>
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace cuda_cpu {

struct Fiber {
    void (*entry)() = nullptr;
    unsigned thread = 0;   // the thread of the block that keeps this stack
    char *stack = nullptr; // lowest address; null for a host thread's stack until AddressSanitizer reports it
    size_t size = 0;
#if HAVE_BOOST_CONTEXT
    void *context = nullptr;
#else
    ucontext_t context = {};
#endif
    void *fake_stack = nullptr; // AddressSanitizer's
    void *tsan = nullptr;       // ThreadSanitizer's
};

// Makes a fiber that runs entry(), which must never return. Ends the program when there is no
// memory.
Fiber *new_fiber(void (*entry)());
void delete_fiber(Fiber *fiber);

// Prepares `fiber` to stand for the calling thread's own stack, so that switches can leave it and
// return.
void adopt_stack(Fiber &fiber);

// The switch that is in progress on this worker.
struct Switch {
    Fiber *from, *to;
};
extern __thread Switch under_way;

// Completes a switch; the first call on the new stack.
inline void arrive([[maybe_unused]] Fiber &here) {
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(here.fake_stack, &bottom, &size);
    Fiber &from = *under_way.from;
    if (!from.stack) { // the host thread's own stack, whose bounds the sanitizer knows
        from.stack = static_cast<char *>(const_cast<void *>(bottom));
        from.size = size;
    }
#endif
}

// Continues `to`, and returns when another fiber switches back to `from`. Always inlined: the
// processor predicts a return from its stack of call addresses, which does not match the calls on
// the other stack, so every return after a switch is mispredicted. Inlining leaves fewer of them.
inline __attribute__((always_inline)) void switch_fiber(Fiber &from, Fiber &to) {
    under_way = {&from, &to};
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.size);
#endif
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(to.tsan, 0);
#endif
#if HAVE_BOOST_CONTEXT
    const auto back = boost::context::detail::jump_fcontext(to.context, nullptr);
    under_way.from->context = back.fctx; // the fiber that switched back, which need not be `to`
#else
    swapcontext(&from.context, &to.context);
#endif
    arrive(from);
}

// Whether the address lies in the guard page below this fiber's stack.
bool overflows(const Fiber &fiber, const void *address);

} // namespace cuda_cpu
