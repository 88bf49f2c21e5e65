// SPDX-License-Identifier: MIT
// The vector types char1 … double4 with CUDA's sizes and alignments, make_<type>(), and dim3.
//
// The alignments are part of the interface. A GPU reads a float4 with one instruction, which needs a
// multiple of 16 bytes as its address, and a structure with vectors in it must have the same layout on both
// back ends.
#pragma once
// The toolkit's header guards, because some programs test them (also in api.h and cuda_runtime.h).
#define __VECTOR_TYPES_H__
#define __VECTOR_FUNCTIONS_H__

// Macros of these headers begin with CUDA_CPU_. Only those that another header defines are undefined.

// A function whose body is one expression
#define CUDA_CPU_RETURN(T, name, parameters, ...)                                                            \
    inline T name parameters {                                                                               \
        return __VA_ARGS__;                                                                                  \
    }

#define CUDA_CPU_LIST(...) __VA_ARGS__ // so that an argument of a macro may be a list in parentheses

#define CUDA_CPU_VECTOR(name, alignment, MEMBERS, parameters, ...)                                           \
    typedef struct alignment name {                                                                          \
        CUDA_CPU_LIST MEMBERS;                                                                               \
    } name;                                                                                                  \
    static inline name make_##name parameters {                                                              \
        name v = {__VA_ARGS__};                                                                              \
        return v;                                                                                            \
    }
#define CUDA_CPU_VECTOR4(name, T, bytes)                                                                     \
    CUDA_CPU_VECTOR(name, __attribute__((aligned(bytes))), (T x, y, z, w), (T x, T y, T z, T w), x, y, z, w)
#define CUDA_CPU_VECTORS(name, T, align2, align4)                                                            \
    CUDA_CPU_VECTOR(name##1, , (T x), (T x), x)                                                              \
    CUDA_CPU_VECTOR(name##2, __attribute__((aligned(align2))), (T x, y), (T x, T y), x, y)                   \
    CUDA_CPU_VECTOR(name##3, , (T x, y, z), (T x, T y, T z), x, y, z)                                        \
    CUDA_CPU_VECTOR4(name##4, T, align4)
// CUDA 13 also has four 8-byte values with explicit alignment: double4_16a, double4_32a.
#define CUDA_CPU_WIDE_VECTORS(name, T, align2)                                                               \
    CUDA_CPU_VECTORS(name, T, align2, 16)                                                                    \
    CUDA_CPU_VECTOR4(name##4_16a, T, 16)                                                                     \
    CUDA_CPU_VECTOR4(name##4_32a, T, 32)

CUDA_CPU_VECTORS(char, signed char, 2, 4)
CUDA_CPU_VECTORS(uchar, unsigned char, 2, 4)
CUDA_CPU_VECTORS(short, short, 4, 8)
CUDA_CPU_VECTORS(ushort, unsigned short, 4, 8)
CUDA_CPU_VECTORS(int, int, 8, 16)
CUDA_CPU_VECTORS(uint, unsigned int, 8, 16)
CUDA_CPU_WIDE_VECTORS(long, long, 2 * sizeof(long))
CUDA_CPU_WIDE_VECTORS(ulong, unsigned long, 2 * sizeof(long))
CUDA_CPU_WIDE_VECTORS(longlong, long long, 16)
CUDA_CPU_WIDE_VECTORS(ulonglong, unsigned long long, 16)
CUDA_CPU_VECTORS(float, float, 8, 16)
CUDA_CPU_WIDE_VECTORS(double, double, 16)

// The size of a grid or block. Omitted dimensions are 1.
struct dim3 {
    unsigned int x, y, z;
#ifdef __cplusplus
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const {
        return {x, y, z};
    }
#endif
};
typedef struct dim3 dim3;
