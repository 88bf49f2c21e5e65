// SPDX-License-Identifier: MIT
// Fibers: stacks for the user-level threads of a block. Where the switch is not inlined (cuda_cpu/switch.h),
// it is Boost.Context's, the C library's ucontext, or Emscripten's fiber. The sanitizers are told of every
// switch, because they keep data about the current stack.
#pragma once
#include "cuda_cpu/switch.h"

#include <cstddef>

#ifndef CUDA_CPU_INLINE_SWITCH
#if HAVE_BOOST_CONTEXT
#include <boost/context/detail/fcontext.hpp>
#elif defined __wasm__
#include <emscripten/fiber.h>
#else
#include <ucontext.h>
#endif
#endif

namespace cuda_cpu {

struct Fiber {
    void (*entry)() = nullptr;
    Context idle{};        // where the fiber continues when no thread uses it
    char *stack = nullptr; // lowest address; null for a host thread's stack until AddressSanitizer reports it
    size_t size = 0;
#ifndef CUDA_CPU_INLINE_SWITCH
#if HAVE_BOOST_CONTEXT
    void *context = nullptr;
#elif defined __wasm__
    emscripten_fiber_t context = {};
#else
    ucontext_t context = {};
#endif
    void *fake_stack = nullptr; // AddressSanitizer's
    void *tsan = nullptr;       // ThreadSanitizer's
#endif
};

// Makes a fiber that runs entry(), which must never return. Ends the program if there is not enough memory.
Fiber *new_fiber(void (*entry)());
void delete_fiber(Fiber *fiber);

// Makes `fiber` represent the calling thread's own stack, so that switches can leave it and return to it.
void adopt_stack(Fiber &fiber);

// True if the address lies in the guard page below this fiber's stack.
bool overflows(const Fiber &fiber, const void *address);

} // namespace cuda_cpu
