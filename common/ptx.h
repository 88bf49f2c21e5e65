// SPDX-License-Identifier: MIT
// Memory operations for which PTX has instructions and CUDA C has no functions. Kernels whose blocks exchange
// data while they run use them. On the CPU back end they are atomic operations of C++.
//
// A relaxed access reads or writes a whole word that other threads access at the same time. It goes to the L2
// cache, which all multiprocessors share, and not to a register or an L1 cache. It does not order other
// accesses.
#pragma once

#include <cuda_runtime.h>

#ifndef __CU2CPP__

// 4 or 8 bytes in one access. Volatile accesses of a device are relaxed ones.
template <class T> __device__ static inline void store_relaxed(T *to, T word) {
    *(volatile T *)to = word;
}

template <class T> __device__ static inline T load_relaxed(const T *from) {
    return *(const volatile T *)from;
}

// 16 bytes in one instruction, each of the four words a relaxed access.
__device__ static inline void store_relaxed(uint4 *to, uint4 v) {
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
}

__device__ static inline uint4 load_relaxed(const uint4 *from) {
    uint4 v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

// 16 bytes in one instruction: x and y are one relaxed access, z and w another one. The instruction is
// predicated: in a thread that is not active it does nothing, and v stays as it is. With a branch instead,
// each load would wait for the previous one.
__device__ static inline void store_relaxed_if(float4 *to, float4 v, bool active) {
    asm volatile("{\n\t.reg .pred p;\n\t.reg .b64 a, b;\n\tsetp.ne.s32 p, %5, 0;\n\t"
                 "mov.b64 a, {%1, %2};\n\tmov.b64 b, {%3, %4};\n\t"
                 "@p st.relaxed.gpu.global.v2.b64 [%0], {a, b};\n\t}" ::"l"(to),
                 "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"((int)active)
                 : "memory");
}

__device__ static inline void load_relaxed_if(float4 &v, const float4 *from, bool active) {
    asm volatile("{\n\t.reg .pred p;\n\t.reg .b64 a, b;\n\tsetp.ne.s32 p, %5, 0;\n\t"
                 "mov.b64 a, {%0, %1};\n\tmov.b64 b, {%2, %3};\n\t"
                 "@p ld.relaxed.gpu.global.v2.b64 {a, b}, [%4];\n\t"
                 "mov.b64 {%0, %1}, a;\n\tmov.b64 {%2, %3}, b;\n\t}"
                 : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
                 : "l"(from), "r"((int)active)
                 : "memory");
}

// Keeps a computed value in registers: the compiler cannot compute it again where it is used.
__device__ static inline void keep_in_registers(float4 &v) {
    asm volatile("" : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w));
}

// For the body of a loop that polls global memory until another block has written it. On the CPU back end the
// host thread then runs other blocks. On a GPU the function is empty, and the loop ends only if the other
// block is resident: because it started earlier, or because all blocks are (cooperative launch).
__device__ static inline void let_other_blocks_run(void) {}

#else

template <class T> __device__ static inline void store_relaxed(T *to, T word) {
    __atomic_store_n(to, word, __ATOMIC_RELAXED);
}

template <class T> __device__ static inline T load_relaxed(const T *from) {
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

__device__ static inline void store_relaxed(uint4 *to, uint4 v) {
    for (int k = 0; k < 4; k++)
        store_relaxed(&to->x + k, (&v.x)[k]);
}

__device__ static inline uint4 load_relaxed(const uint4 *from) {
    uint4 v;
    for (int k = 0; k < 4; k++)
        (&v.x)[k] = load_relaxed(&from->x + k);
    return v;
}

__device__ static inline void store_relaxed_if(float4 *to, float4 v, bool active) {
    unsigned long long words[2];
    memcpy(words, &v, sizeof v);
    for (int k = 0; k < 2 && active; k++)
        store_relaxed((unsigned long long *)to + k, words[k]);
}

__device__ static inline void load_relaxed_if(float4 &v, const float4 *from, bool active) {
    unsigned long long words[2];
    for (int k = 0; k < 2 && active; k++)
        words[k] = load_relaxed((const unsigned long long *)from + k);
    if (active)
        memcpy(&v, words, sizeof v);
}

__device__ static inline void keep_in_registers(float4 &) {}

__device__ static inline void let_other_blocks_run(void) {
    __nanosleep(20);
}

#endif
