// SPDX-License-Identifier: MIT
/* Complex numbers of float and double, for C and C++ */
#pragma once
#include "cuda_runtime.h"

#include <math.h>

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

/* The functions of one precision; f is the suffix of the C library's functions too. cuCfma is a b + c. cuCdiv
 * is scaled, so that nothing overflows on the way. */
#define CUDA_CPU_COMPLEX(Complex, T, make, f)                                                                \
    static inline T cuCreal##f(Complex z) {                                                                  \
        return z.x;                                                                                          \
    }                                                                                                        \
    static inline T cuCimag##f(Complex z) {                                                                  \
        return z.y;                                                                                          \
    }                                                                                                        \
    static inline Complex make_##Complex(T real, T imaginary) {                                              \
        return make(real, imaginary);                                                                        \
    }                                                                                                        \
    static inline Complex cuConj##f(Complex z) {                                                             \
        return make(z.x, -z.y);                                                                              \
    }                                                                                                        \
    static inline Complex cuCadd##f(Complex a, Complex b) {                                                  \
        return make(a.x + b.x, a.y + b.y);                                                                   \
    }                                                                                                        \
    static inline Complex cuCsub##f(Complex a, Complex b) {                                                  \
        return make(a.x - b.x, a.y - b.y);                                                                   \
    }                                                                                                        \
    static inline Complex cuCmul##f(Complex a, Complex b) {                                                  \
        return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                                           \
    }                                                                                                        \
    static inline Complex cuCdiv##f(Complex a, Complex b) {                                                  \
        const T scale = 1 / (fabs##f(b.x) + fabs##f(b.y));                                                   \
        const T ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;                      \
        const T size = 1 / (bx * bx + by * by);                                                              \
        return make((ax * bx + ay * by) * size, (ay * bx - ax * by) * size);                                 \
    }                                                                                                        \
    static inline T cuCabs##f(Complex z) {                                                                   \
        return hypot##f(z.x, z.y);                                                                           \
    }                                                                                                        \
    static inline Complex cuCfma##f(Complex a, Complex b, Complex c) {                                       \
        return make(a.x * b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x);                               \
    }
CUDA_CPU_COMPLEX(cuFloatComplex, float, make_float2, f)
CUDA_CPU_COMPLEX(cuDoubleComplex, double, make_double2, )
#undef CUDA_CPU_COMPLEX

static inline cuComplex make_cuComplex(float real, float imaginary) {
    return make_float2(real, imaginary);
}
static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) {
    return make_double2(z.x, z.y);
}
static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
    return make_float2((float)z.x, (float)z.y);
}
