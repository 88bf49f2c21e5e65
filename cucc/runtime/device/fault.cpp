// SPDX-License-Identifier: MIT
// Reports an illegal address, a stack overflow or a division by zero in a kernel, with the kernel, block and
// launch, and with CUDA_CPU_CHECK=1 an access of the host to device memory. An illegal address ends the
// launch with cudaErrorIllegalAddress; the others, and what a tool was asked to find, end the program.
#include "memory.h"
#include "race.h"

#include <csignal>
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <string_view>
#include <sys/wait.h>
#include <ucontext.h>

namespace cuda_cpu {
namespace {

[[noreturn]] void end_with(const char *text) {
    (void)!write(STDERR_FILENO, text, strlen(text));
    quick_exit(EXIT_FAILURE);
}

// The kind of access that faulted, its instruction, and the stack pointer.
struct Fault {
    const char *verb;
    void *pc;
    const char *sp;
};

Fault fault_of(const void *context) {
    const mcontext_t &machine = ((const ucontext_t *)context)->uc_mcontext;
#if defined __x86_64__
    return {machine.gregs[REG_ERR] & 2 ? "writes" : "reads", (void *)machine.gregs[REG_RIP],
            (const char *)machine.gregs[REG_RSP]};
#elif defined __aarch64__
    // The fault's syndrome register, in a record of the context, says whether it was a write.
    const char *at = (const char *)machine.__reserved;
    const _aarch64_ctx *record = (const _aarch64_ctx *)at;
    for (; record->magic && record->magic != ESR_MAGIC; record = (const _aarch64_ctx *)at)
        at += record->size;
    const char *verb = "reads or writes";
    if (record->magic)
        verb = ((const esr_context *)at)->esr & 1 << 6 ? "writes" : "reads";
    return {verb, (void *)machine.pc, (const char *)machine.sp};
#else
    (void)machine;
    return {"reads or writes", nullptr, nullptr};
#endif
}

// Writes the program's source line of an instruction, as " at sum.cu:12", if addr2line finds it. A signal
// handler may not call popen(), because the thread may hold the lock of malloc().
bool line_of_fault(const char *file, size_t offset, char *text, size_t size) {
    int ends[2];
    char address[32], said[4000];
    if (pipe(ends) != 0)
        return false;
    snprintf(address, sizeof address, "%#zx", offset);
    const pid_t child = vfork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execlp("addr2line", "addr2line", "-i", "-e", file, address, (char *)nullptr);
        _exit(127);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)got;
    close(ends[0]);
    if (child > 0)
        waitpid(child, nullptr, 0);
    said[length] = '\0';
    for (char *line = said, *end; *line; line = end + (*end != '\0')) { // the innermost inlined call is first
        end = line + strcspn(line, "\n");
        const std::string_view place(line, std::min(strcspn(line, " "), (size_t)(end - line)));
        const size_t name = place.rfind('/') + 1;
        if (place[0] == '?' || place.compare(0, 5, "/usr/") == 0 ||
            place.find("/cuda_cpu/") != std::string_view::npos)
            continue;
        snprintf(text, size, " at %.*s", (int)(place.size() - name), place.data() + name);
        return true;
    }
    return false;
}

// Finds the first function on the stack that belongs to the program itself (the fault may be in memcpy, for
// example) and writes its line, or else " (in main, sum+0x1234)". addr2line converts the offset to file and
// line.
void place_of_fault(void *fault, char *text, size_t size) {
    void *frames[64];
    const int count = backtrace(frames, 64);
    void **const first = std::find(frames, frames + count, fault); // skips the frames of the signal handler
    *text = '\0';
    for (void **frame = first; frame < frames + count; ++frame) {
        const char *const pc = (const char *)*frame - (frame > first); // a return address is after the call
        Dl_info where;
        if (!dladdr(pc, &where) || !where.dli_fname)
            continue;
        const char *const file = base_name(where.dli_fname);
        if (strncmp(file, "libc.", 5) == 0 || strncmp(file, "libm.", 5) == 0 ||
            strncmp(file, "libstdc++.", 10) == 0 || strncmp(file, "ld-", 3) == 0 ||
            (where.dli_sname && strncmp(where.dli_sname, "_ZN8cuda_cpu", 12) == 0))
            continue;
        const size_t offset = (size_t)(pc - (const char *)where.dli_fbase);
        if (line_of_fault(where.dli_fname, offset, text, size))
            return;
        if (*text)
            continue;
        int status = 0;
        char *const name =
            where.dli_sname ? abi::__cxa_demangle(where.dli_sname, nullptr, nullptr, &status) : nullptr;
        snprintf(text, size, " (in %s, %s+%#zx)",
                 name              ? name
                 : where.dli_sname ? where.dli_sname
                                   : "a function",
                 file, offset);
    }
}

// True if the worker can leave the kernel from this instruction: it belongs to the program, or to a function
// of a library that the program calls directly, such as memcpy. Deeper in a library, as when printf reads a
// string or malloc its lists, a lock may be held, which nothing would release.
bool can_leave(void *pc) {
    Dl_info program, where;
    void *frames[64];
    if (!dladdr((void *)watch_faults, &program) || !dladdr(pc, &where))
        return false;
    if (where.dli_fbase == program.dli_fbase)
        return true;
    const int count = backtrace(frames, 64);
    void **const caller = std::find(frames, frames + count, pc) + 1;
    return caller < frames + count && dladdr((char *)*caller - 1, &where) &&
           where.dli_fbase == program.dli_fbase;
}

void report_host(const void *address, const void *context) {
    const Fault fault = fault_of(context);
    char place[300], text[1000];
    place_of_fault(fault.pc, place, sizeof place);
    snprintf(text, sizeof text, "cuda on the CPU: the host %s %p%s%s; host code must use cudaMemcpy\n",
             fault.verb, address, place, describe_address(address).c_str());
    end_with(text);
}

void on_fault(int signal, siginfo_t *info, void *context) {
    const Worker *worker = self;
    if (!worker || !worker->kernel) {
        if (in_guarded(info->si_addr))
            report_host(info->si_addr, context);
        // Other host code faulted: restore the default action; the instruction then faults again.
        ::signal(signal, SIG_DFL);
        return;
    }
    const Kernel &kernel = *worker->kernel;
    // On the stack of a host thread: a stack grows until a page that cannot be used, where this fault is.
    const Fault fault = fault_of(context);
    const char *const address = (const char *)info->si_addr, *const sp = fault.sp;
    const bool overflow = (address > sp - 4096 && address < sp + 4096) ||
                          overflows(worker->native, info->si_addr) ||
                          std::any_of(worker->fibers.begin(), worker->fibers.end(),
                                      [&](const Fiber *fiber) { return overflows(*fiber, info->si_addr); });
    char text[1000], others[400] = "", line[300];
    if (race_launch && !overflow) { // a program built for checking: it has one thread after the other, and -g
        place_of_fault(fault.pc, line, sizeof line);
        snprintf(others, sizeof others, ": thread (%u,%u,%u)%s", threadIdx.x, threadIdx.y, threadIdx.z, line);
    } else if (worker->in_loops && worker->joined > 1)
        snprintf(others, sizeof others, " or one of the next %u", worker->joined - 1);
    snprintf(text, sizeof text,
             "cuda on the CPU: %s %p%s\n    in kernel %s, block (%u,%u,%u)%s, launched at %s%s\n",
             signal == SIGFPE ? "integer division by zero at"
             : overflow       ? "stack overflow at"
                              : "illegal address",
             info->si_addr, in_range(info->si_addr) ? describe_address(info->si_addr).c_str() : "",
             kernel.name, blockIdx.x, blockIdx.y, blockIdx.z, others, place(kernel.site).c_str(),
             overflow || race_launch ? "" : "; cucc --check names thread and line");
    if (signal == SIGFPE || overflow || race_launch || (guard_is_strict() && in_guarded(info->si_addr)) ||
        !can_leave(fault.pc))
        end_with(text);
    (void)!write(STDERR_FILENO, text, strlen(text));
    sigset_t this_one; // blocked until the handler returns, and it does not return
    sigemptyset(&this_one);
    sigaddset(&this_one, signal);
    pthread_sigmask(SIG_UNBLOCK, &this_one, nullptr);
    end_launch(cudaErrorIllegalAddress);
}

// A separate stack for the signal handler, because a stack that has overflowed cannot be used.
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
        void *frame;
        (void)backtrace(&frame, 1); // the first call may allocate memory, which the handler must not
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSEGV, &action, nullptr);
        sigaction(SIGBUS, &action, nullptr);
        sigaction(SIGFPE, &action, nullptr);
    });
    static PerThread<SignalStack> &stacks = *new PerThread<SignalStack>;
    stacks.mine();
}

} // namespace cuda_cpu
