// SPDX-License-Identifier: MIT
// The stack switch: a thread of a block that has to wait passes control to another thread of the block.
//
// On x86-64 and arm64 it is inline assembly, which declares that it changes every register, so the compiler
// saves the values that are still needed, and no others. There is no call and no return, so the processor
// predicts the jump: usually the threads of a block wait at one line, and the jump leads back to the same
// place.
//
// Other machines, and the sanitizers, which must be told of every switch, call a function of the library
// (runtime/fiber.h). WebAssembly (em++) is one of them. What the sanitizers cannot follow it cannot do: jump
// out of a kernel, and protect memory.
#pragma once

#if defined __has_feature // clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CUDA_CPU_WATCHED
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || defined __wasm__
#define CUDA_CPU_WATCHED
#endif
#ifdef CUDA_CPU_CHECK // instrumented for race_hooks.cpp, without ThreadSanitizer
#undef CUDA_CPU_WATCHED
#endif
#if (defined __x86_64__ || defined __aarch64__) && defined __LP64__ && !defined CUDA_CPU_WATCHED
#define CUDA_CPU_INLINE_SWITCH
#endif

namespace cuda_cpu {

// The state of a waiting thread. Without the inline switch, `stack` is its Fiber, and the rest is unused.
struct Context {
    void *stack, *frame, *base, *address;
    unsigned index[3]; // for block_barrier()
};

// A stack switch to be made; none if `from` equals `to`.
struct Switch {
    Context *from, *to;
};

// Saves the calling thread in *from and continues *to. Returns when another thread continues *from.
#ifdef CUDA_CPU_INLINE_SWITCH
inline __attribute__((always_inline)) void switch_context(Context *from, const Context *to) {
    // The clobber list cannot name the frame pointer, nor rbx (x19) if it is reserved: saved by hand
#ifdef __x86_64__
#ifdef __AVX512F__
#define CUDA_CPU_MORE_REGISTERS                                                                              \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",     \
        "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define CUDA_CPU_MORE_REGISTERS
#endif
    asm __volatile__("leaq 1f(%%rip), %%rax\n\t"
                     "movq %%rsp, (%0)\n\t"
                     "movq %%rbp, 8(%0)\n\t"
                     "movq %%rbx, 16(%0)\n\t"
                     "movq %%rax, 24(%0)\n\t"
                     "movq (%1), %%rsp\n\t"
                     "movq 8(%1), %%rbp\n\t"
                     "movq 16(%1), %%rbx\n\t"
                     "jmpq *24(%1)\n"
                     "1:"
                     : "+D"(from), "+S"(to)
                     :
                     : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
                       "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)",
                       "st(5)", "st(6)", "st(7)", "cc", "memory" CUDA_CPU_MORE_REGISTERS);
#undef CUDA_CPU_MORE_REGISTERS
#else
    register Context *first asm("x0") = from;
    register const Context *second asm("x1") = to;
    asm __volatile__("adr x2, 1f\n\t"
                     "mov x3, sp\n\t"
                     "stp x3, x29, [%0]\n\t"
                     "stp x19, x2, [%0, 16]\n\t"
                     "ldp x3, x29, [%1]\n\t"
                     "ldp x19, x2, [%1, 16]\n\t"
                     "mov sp, x3\n\t"
                     "br x2\n"
                     "1: hint 36" // bti j: required where the processor checks branch targets
                     : "+r"(first), "+r"(second)
                     :
                     : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
                       "x15", "x16", "x17", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
                       "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
                       "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
                       "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
#endif
}
#else
void switch_context(Context *from, const Context *to); // fiber.cpp
#endif

} // namespace cuda_cpu
