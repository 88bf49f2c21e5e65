// SPDX-License-Identifier: MIT
// Reports an illegal address or a stack overflow in a kernel, with the kernel, block and launch,
// and ends the program. AddressSanitizer gives better reports, so builds with it install no
// handler.
#include "block.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <unistd.h>

namespace cuda_cpu {

#ifdef __SANITIZE_ADDRESS__

void watch_faults() {}

#else

namespace {

void on_fault(int signal, siginfo_t *info, void *) {
    const Worker *worker = self;
    if (!worker || !worker->kernel) { // host code: the instruction faults again, now by default
        ::signal(signal, SIG_DFL);
        return;
    }
    const Kernel &kernel = *worker->kernel;
    const bool overflow = overflows(worker->native, info->si_addr) ||
                          std::any_of(worker->fibers.begin(), worker->fibers.end(),
                                      [&](const Fiber *fiber) { return overflows(*fiber, info->si_addr); });
    char text[500];
    const int length = snprintf(
        text, sizeof text, "cuda on the CPU: %s %p\n    in kernel %s, block (%u,%u,%u), launched at %s:%d\n",
        overflow ? "stack overflow at" : "illegal address", info->si_addr, kernel.name, blockIdx.x,
        blockIdx.y, blockIdx.z, base_name(kernel.file), kernel.line);
    (void)!write(STDERR_FILENO, text, std::min((size_t)length, sizeof text - 1));
    _exit(EXIT_FAILURE);
}

// A separate stack for the handler, which could not run on a stack that has overflowed.
struct SignalStack {
    static constexpr size_t size = 64 << 10;
    void *memory = malloc(size);

    SignalStack() {
        stack_t stack = {};
        stack.ss_sp = memory;
        stack.ss_size = size;
        if (memory)
            sigaltstack(&stack, nullptr);
    }
    ~SignalStack() {
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
        free(memory);
    }
};

} // namespace

void watch_faults() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSEGV, &action, nullptr);
        sigaction(SIGBUS, &action, nullptr);
    });
    static thread_local SignalStack stack;
    (void)stack;
}

#endif

} // namespace cuda_cpu
