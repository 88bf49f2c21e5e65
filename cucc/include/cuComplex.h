// SPDX-License-Identifier: MIT
/* Complex numbers of float and double, for C and C++ */
#pragma once
#include "cuda_runtime.h"

#include <math.h>

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;

static inline float cuCrealf(cuFloatComplex z) {
    return z.x;
}
static inline float cuCimagf(cuFloatComplex z) {
    return z.y;
}
static inline cuFloatComplex make_cuFloatComplex(float real, float imaginary) {
    return make_float2(real, imaginary);
}
static inline cuFloatComplex cuConjf(cuFloatComplex z) {
    return make_float2(z.x, -z.y);
}
static inline cuFloatComplex cuCaddf(cuFloatComplex a, cuFloatComplex b) {
    return make_float2(a.x + b.x, a.y + b.y);
}
static inline cuFloatComplex cuCsubf(cuFloatComplex a, cuFloatComplex b) {
    return make_float2(a.x - b.x, a.y - b.y);
}
static inline cuFloatComplex cuCmulf(cuFloatComplex a, cuFloatComplex b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
static inline cuFloatComplex cuCdivf(cuFloatComplex a,
                                     cuFloatComplex b) { /* scaled, so that nothing overflows on the way */
    const float scale = 1 / (fabsf(b.x) + fabsf(b.y));
    const float ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;
    const float size = 1 / (bx * bx + by * by);
    return make_float2((ax * bx + ay * by) * size, (ay * bx - ax * by) * size);
}
static inline float cuCabsf(cuFloatComplex z) {
    return hypotf(z.x, z.y);
}
static inline cuFloatComplex cuCfmaf(cuFloatComplex a, cuFloatComplex b, cuFloatComplex c) { /* a b + c */
    return make_float2(a.x * b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x);
}

static inline double cuCreal(cuDoubleComplex z) {
    return z.x;
}
static inline double cuCimag(cuDoubleComplex z) {
    return z.y;
}
static inline cuDoubleComplex make_cuDoubleComplex(double real, double imaginary) {
    return make_double2(real, imaginary);
}
static inline cuDoubleComplex cuConj(cuDoubleComplex z) {
    return make_double2(z.x, -z.y);
}
static inline cuDoubleComplex cuCadd(cuDoubleComplex a, cuDoubleComplex b) {
    return make_double2(a.x + b.x, a.y + b.y);
}
static inline cuDoubleComplex cuCsub(cuDoubleComplex a, cuDoubleComplex b) {
    return make_double2(a.x - b.x, a.y - b.y);
}
static inline cuDoubleComplex cuCmul(cuDoubleComplex a, cuDoubleComplex b) {
    return make_double2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
static inline cuDoubleComplex cuCdiv(cuDoubleComplex a,
                                     cuDoubleComplex b) { /* scaled, so that nothing overflows on the way */
    const double scale = 1 / (fabs(b.x) + fabs(b.y));
    const double ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;
    const double size = 1 / (bx * bx + by * by);
    return make_double2((ax * bx + ay * by) * size, (ay * bx - ax * by) * size);
}
static inline double cuCabs(cuDoubleComplex z) {
    return hypot(z.x, z.y);
}
static inline cuDoubleComplex cuCfma(cuDoubleComplex a, cuDoubleComplex b, cuDoubleComplex c) { /* a b + c */
    return make_double2(a.x * b.x + c.x - a.y * b.y, a.x * b.y + c.y + a.y * b.x);
}

typedef cuFloatComplex cuComplex;
static inline cuComplex make_cuComplex(float real, float imaginary) {
    return make_float2(real, imaginary);
}
static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) {
    return make_double2(z.x, z.y);
}
static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
    return make_float2((float)z.x, (float)z.y);
}
