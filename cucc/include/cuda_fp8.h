// SPDX-License-Identifier: MIT
// Floating-point numbers of 8 bits. E4M3 has 4 bits of exponent, 3 of significand and no infinity; E5M2 has
// 5 and 2. Vectors keep their first number in the lowest byte.
#pragma once
#define __CUDA_FP8_H__
#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
typedef enum { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;

// Rounds to nearest, ties to even. Beyond the range the result is the largest number with __NV_SATFINITE,
// else NaN (E4M3) or infinity (E5M2).
inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturation,
                                                 __nv_fp8_interpretation_t kind) {
    const bool wide = kind == __NV_E5M2;
    const int fraction = wide ? 2 : 3, bias = wide ? 15 : 7, largest = wide ? 0x7b : 0x7e;
    if (x != x)
        return (__nv_fp8_storage_t)((std::signbit(x) ? 0x80 : 0) | (wide ? 0x7e : 0x7f));
    const double size = std::fabs(x);
    int code = largest + 1;
    if (size < 0x1p16) {
        const int exponent = size < std::ldexp(1.0, 1 - bias) ? 1 - bias : std::ilogb(size);
        // The implicit bit of a normal number, and a carry, increment the exponent.
        code =
            ((exponent + bias - 1) << fraction) + (int)std::nearbyint(std::ldexp(size, fraction - exponent));
    }
    if (code > largest)
        code = saturation == __NV_SATFINITE ? largest : largest + 1;
    return (__nv_fp8_storage_t)(code | (std::signbit(x) ? 0x80 : 0));
}

namespace cuda_cpu {
// Exact
inline float fp8_value(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
    if (kind == __NV_E5M2) // the upper half of a half
        return widen<10>((uint16_t)(x << 8));
    const int exponent = x >> 3 & 15, fraction = x & 7;
    const float size = (x & 0x7f) == 0x7f ? NAN
                       : exponent         ? std::ldexp(8.0f + fraction, exponent - 10)
                                          : std::ldexp((float)fraction, -9);
    return x & 0x80 ? -size : size;
}
} // namespace cuda_cpu

CUDA_CPU_RETURN(__nv_fp8_storage_t, __nv_cvt_float_to_fp8,
                (float x, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind),
                x != x ? 0x7f : __nv_cvt_double_to_fp8(x, saturation, kind))
CUDA_CPU_RETURN(__nv_fp8_storage_t, __nv_cvt_halfraw_to_fp8,
                (__half_raw x, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind),
                __nv_cvt_float_to_fp8((float)__half(x), saturation, kind))
CUDA_CPU_RETURN(__nv_fp8_storage_t, __nv_cvt_bfloat16raw_to_fp8,
                (__nv_bfloat16_raw x, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind),
                __nv_cvt_float_to_fp8((float)__nv_bfloat16(x), saturation, kind))
#define CUDA_CPU_FP8X2(name, pair, convert)                                                                  \
    CUDA_CPU_RETURN(                                                                                         \
        __nv_fp8x2_storage_t, name, (pair p, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind),  \
        (__nv_fp8x2_storage_t)(convert(p.x, saturation, kind) | convert(p.y, saturation, kind) << 8))
CUDA_CPU_FP8X2(__nv_cvt_double2_to_fp8x2, double2, __nv_cvt_double_to_fp8)
CUDA_CPU_FP8X2(__nv_cvt_float2_to_fp8x2, float2, __nv_cvt_float_to_fp8)
CUDA_CPU_RETURN(__nv_fp8x2_storage_t, __nv_cvt_halfraw2_to_fp8x2,
                (__half2_raw p, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind),
                __nv_cvt_float2_to_fp8x2(__half22float2(p), saturation, kind))
CUDA_CPU_RETURN(__nv_fp8x2_storage_t, __nv_cvt_bfloat16raw2_to_fp8x2,
                (__nv_bfloat162_raw p, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind),
                __nv_cvt_float2_to_fp8x2(__bfloat1622float2(p), saturation, kind))
CUDA_CPU_RETURN(__half_raw, __nv_cvt_fp8_to_halfraw, (__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind),
                __half(cuda_cpu::fp8_value(x, kind)))
CUDA_CPU_RETURN(__half2_raw, __nv_cvt_fp8x2_to_halfraw2,
                (__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind),
                {__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, kind).x,
                 __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), kind).x})

// The constructors saturate.
#define CUDA_CPU_FP8(kind, Name, interpretation)                                                             \
    struct Name {                                                                                            \
        __nv_fp8_storage_t __x;                                                                              \
        Name() = default;                                                                                    \
        template <class From, class = std::enable_if_t<std::is_arithmetic_v<From>>>                          \
        explicit Name(From x) : __x(__nv_cvt_double_to_fp8((double)x, __NV_SATFINITE, interpretation)) {}    \
        explicit Name(float x) : __x(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, interpretation)) {}            \
        explicit Name(__half x) : Name((float)x) {}                                                          \
        explicit Name(__nv_bfloat16 x) : Name((float)x) {}                                                   \
        explicit operator float() const { return cuda_cpu::fp8_value(__x, interpretation); }                 \
        explicit operator double() const { return (float)*this; }                                            \
        explicit operator __half() const { return __half((float)*this); }                                    \
        explicit operator __nv_bfloat16() const { return __nv_bfloat16((float)*this); }                      \
        explicit operator bool() const { return (__x & 0x7f) != 0; }                                         \
        template <class To, class = std::enable_if_t<std::is_integral_v<To>>> explicit operator To() const { \
            return cuda_cpu::saturate<To>(std::trunc((float)*this));                                         \
        }                                                                                                    \
    };                                                                                                       \
    struct __attribute__((aligned(2))) __nv_fp8x2_##kind {                                                   \
        __nv_fp8x2_storage_t __x;                                                                            \
        __nv_fp8x2_##kind() = default;                                                                       \
        explicit __nv_fp8x2_##kind(float2 p)                                                                 \
            : __x(__nv_cvt_float2_to_fp8x2(p, __NV_SATFINITE, interpretation)) {}                            \
        explicit __nv_fp8x2_##kind(double2 p)                                                                \
            : __x(__nv_cvt_double2_to_fp8x2(p, __NV_SATFINITE, interpretation)) {}                           \
        explicit __nv_fp8x2_##kind(__half2 p) : __nv_fp8x2_##kind(__half22float2(p)) {}                      \
        explicit __nv_fp8x2_##kind(__nv_bfloat162 p) : __nv_fp8x2_##kind(__bfloat1622float2(p)) {}           \
        explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, interpretation); }        \
        explicit operator float2() const { return __half22float2((__half2) * this); }                        \
    };                                                                                                       \
    struct __attribute__((aligned(4))) __nv_fp8x4_##kind {                                                   \
        __nv_fp8x4_storage_t __x;                                                                            \
        __nv_fp8x4_##kind() = default;                                                                       \
        template <class Pair>                                                                                \
        explicit __nv_fp8x4_##kind(Pair low, Pair high)                                                      \
            : __x(__nv_fp8x2_##kind(low).__x | (unsigned)__nv_fp8x2_##kind(high).__x << 16) {}               \
        explicit __nv_fp8x4_##kind(float4 p) : __nv_fp8x4_##kind(float2{p.x, p.y}, float2{p.z, p.w}) {}      \
        explicit operator float4() const {                                                                   \
            const auto v = [this](int i) {                                                                   \
                return cuda_cpu::fp8_value((__nv_fp8_storage_t)(__x >> 8 * i), interpretation);              \
            };                                                                                               \
            return {v(0), v(1), v(2), v(3)};                                                                 \
        }                                                                                                    \
    };
CUDA_CPU_FP8(e4m3, __nv_fp8_e4m3, __NV_E4M3)
CUDA_CPU_FP8(e5m2, __nv_fp8_e5m2, __NV_E5M2)
