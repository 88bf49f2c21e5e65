// SPDX-License-Identifier: MIT
/*
 * Stacks that a thread of a block can leave and return to.
 *
 * Boost.Context's fcontext does the switch, a few nanoseconds of assembly; without Boost, the C
 * library's ucontext, which makes a system call each time. The sanitizers are told of every switch.
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
    unsigned thread = 0;   // of the block, that has this stack for its own
    char *stack = nullptr; // lowest address; null until known for a worker's own stack
    size_t size = 0;
#if HAVE_BOOST_CONTEXT
    void *context = nullptr;
#else
    ucontext_t context = {};
#endif
    void *fake_stack = nullptr; // AddressSanitizer's
    void *tsan = nullptr;       // ThreadSanitizer's
};

// A fiber that will run entry(), which must never return. Ends the program when memory is out.
Fiber *new_fiber(void (*entry)());
void delete_fiber(Fiber *fiber);

// Makes the calling stack one that can be switched away from and back to.
void adopt_stack(Fiber &fiber);

// The switch under way on this worker.
struct Switch {
    Fiber *from, *to;
};
extern __thread Switch under_way;

// The first thing to happen on the stack that was switched to.
inline void arrive([[maybe_unused]] Fiber &here) {
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(here.fake_stack, &bottom, &size);
    Fiber &from = *under_way.from;
    if (!from.stack) { // a worker's own stack: the sanitizer knows where it is
        from.stack = static_cast<char *>(const_cast<void *>(bottom));
        from.size = size;
    }
#endif
}

// Continues `to`; returns when another fiber switches to `from`. Inline, as every return on the
// other stack is one that the processor predicts wrongly.
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
    under_way.from->context = back.fctx; // another fiber, maybe, than the one left above
#else
    swapcontext(&from.context, &to.context);
#endif
    arrive(from);
}

// Whether the address lies in the guard page below this fiber's stack.
bool overflows(const Fiber &fiber, const void *address);

} // namespace cuda_cpu
