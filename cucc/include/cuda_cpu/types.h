// SPDX-License-Identifier: MIT
/*
 * The vector types char1 … double4 with CUDA's sizes and alignments, make_<type>(), and dim3.
 *
 * The alignments are part of the interface. A GPU reads a float4 with one instruction, which needs
 * a multiple of 16 bytes as its address, and a structure with vectors in it must have the same
 * layout on both back ends.
 */
#pragma once
// The toolkit's header guards, because some programs test them (also in api.h and cuda_runtime.h).
#define __VECTOR_TYPES_H__
#define __VECTOR_FUNCTIONS_H__

#define CUDA_CPU_VECTOR1(name, T)                                                                            \
    typedef struct name##1 {                                                                                 \
        T x;                                                                                                 \
    }                                                                                                        \
    name##1;                                                                                                 \
    static inline name##1 make_##name##1(T x) {                                                              \
        name##1 v = {x};                                                                                     \
        return v;                                                                                            \
    }
#define CUDA_CPU_VECTOR2(name, T, align)                                                                     \
    typedef struct __attribute__((aligned(align))) name##2 {                                                 \
        T x, y;                                                                                              \
    }                                                                                                        \
    name##2;                                                                                                 \
    static inline name##2 make_##name##2(T x, T y) {                                                         \
        name##2 v = {x, y};                                                                                  \
        return v;                                                                                            \
    }
#define CUDA_CPU_VECTOR3(name, T)                                                                            \
    typedef struct name##3 {                                                                                 \
        T x, y, z;                                                                                           \
    }                                                                                                        \
    name##3;                                                                                                 \
    static inline name##3 make_##name##3(T x, T y, T z) {                                                    \
        name##3 v = {x, y, z};                                                                               \
        return v;                                                                                            \
    }
// CUDA 13 also has the vectors of four 8-byte values with explicit alignment: double4_16a,
// double4_32a.
#define CUDA_CPU_VECTOR4(name, suffix, T, align)                                                             \
    typedef struct __attribute__((aligned(align))) name##4##suffix {                                         \
        T x, y, z, w;                                                                                        \
    }                                                                                                        \
    name##4##suffix;                                                                                         \
    static inline name##4##suffix make_##name##4##suffix(T x, T y, T z, T w) {                               \
        name##4##suffix v = {x, y, z, w};                                                                    \
        return v;                                                                                            \
    }
#define CUDA_CPU_VECTORS(name, T, align2, align4)                                                            \
    CUDA_CPU_VECTOR1(name, T)                                                                                \
    CUDA_CPU_VECTOR2(name, T, align2)                                                                        \
    CUDA_CPU_VECTOR3(name, T)                                                                                \
    CUDA_CPU_VECTOR4(name, , T, align4)
#define CUDA_CPU_WIDE_VECTORS(name, T, align2)                                                               \
    CUDA_CPU_VECTORS(name, T, align2, 16)                                                                    \
    CUDA_CPU_VECTOR4(name, _16a, T, 16)                                                                      \
    CUDA_CPU_VECTOR4(name, _32a, T, 32)

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

#undef CUDA_CPU_VECTOR1
#undef CUDA_CPU_VECTOR2
#undef CUDA_CPU_VECTOR3
#undef CUDA_CPU_VECTOR4
#undef CUDA_CPU_VECTORS
#undef CUDA_CPU_WIDE_VECTORS

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
