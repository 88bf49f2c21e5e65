// SPDX-License-Identifier: MIT
/* Complex numbers of float and double, for C and C++ */
#pragma once
#include "cuda_runtime.h"

#include <math.h>

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define CUDA_CPU_STATIC(T, name, parameters, ...)                                                            \
    static inline T name parameters {                                                                        \
        return __VA_ARGS__;                                                                                  \
    }
/* The functions of one precision; f is the suffix of the C library's functions too. cuCfma is a b + c. cuCdiv
 * is scaled, so that nothing overflows on the way. */
#define CUDA_CPU_COMPLEX(Complex, T, make, f)                                                                \
    CUDA_CPU_STATIC(T, cuCreal##f, (Complex z), z.x)                                                         \
    CUDA_CPU_STATIC(T, cuCimag##f, (Complex z), z.y)                                                         \
    CUDA_CPU_STATIC(Complex, make_##Complex, (T real, T imaginary), make(real, imaginary))                   \
    CUDA_CPU_STATIC(Complex, cuConj##f, (Complex z), make(z.x, -z.y))                                        \
    CUDA_CPU_STATIC(Complex, cuCadd##f, (Complex a, Complex b), make(a.x + b.x, a.y + b.y))                  \
    CUDA_CPU_STATIC(Complex, cuCsub##f, (Complex a, Complex b), make(a.x - b.x, a.y - b.y))                  \
    CUDA_CPU_STATIC(Complex, cuCmul##f, (Complex a, Complex b),                                              \
                    make(a.x *b.x - a.y * b.y, a.x * b.y + a.y * b.x))                                       \
    static inline Complex cuCdiv##f(Complex a, Complex b) {                                                  \
        const T scale = 1 / (fabs##f(b.x) + fabs##f(b.y));                                                   \
        const T ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;                      \
        const T size = 1 / (bx * bx + by * by);                                                              \
        return make((ax * bx + ay * by) * size, (ay * bx - ax * by) * size);                                 \
    }                                                                                                        \
    CUDA_CPU_STATIC(T, cuCabs##f, (Complex z), hypot##f(z.x, z.y))                                           \
    CUDA_CPU_STATIC(Complex, cuCfma##f, (Complex a, Complex b, Complex c),                                   \
                    make(a.x *b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x))
CUDA_CPU_COMPLEX(cuFloatComplex, float, make_float2, f)
CUDA_CPU_COMPLEX(cuDoubleComplex, double, make_double2, )

CUDA_CPU_STATIC(cuComplex, make_cuComplex, (float real, float imaginary), make_float2(real, imaginary))
CUDA_CPU_STATIC(cuDoubleComplex, cuComplexFloatToDouble, (cuFloatComplex z), make_double2(z.x, z.y))
CUDA_CPU_STATIC(cuFloatComplex, cuComplexDoubleToFloat, (cuDoubleComplex z),
                make_float2((float)z.x, (float)z.y))
