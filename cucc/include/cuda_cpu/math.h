// SPDX-License-Identifier: MIT
// The functions that a kernel can call without an #include: the C library's mathematics, and what CUDA adds:
// fast arithmetic, rounding modes, conversions, bit operations, loads with cache hints, clocks.
// docs/execution.md says how exact they are.
#pragma once

#ifdef __cplusplus
namespace cuda_cpu {
// As on a GPU, -0 is smaller than +0, and of a number and a NaN, also a signalling one, the result is the
// number. Without branches, so that loops with these become vector code.
#define CUDA_CPU_EXTREME(name, is_first, T, Bits, both)                                                      \
    constexpr __attribute__((always_inline)) inline T name(T a, T b) {                                       \
        const T same = __builtin_bit_cast(T, __builtin_bit_cast(Bits, a) both __builtin_bit_cast(Bits, b));  \
        const T number = a != a ? b : a;                                                                     \
        return a == b ? same : is_first(b, a) ? b : number;                                                  \
    }
CUDA_CPU_EXTREME(smaller, __builtin_isless, float, unsigned, |)
CUDA_CPU_EXTREME(smaller, __builtin_isless, double, unsigned long long, |)
CUDA_CPU_EXTREME(larger, __builtin_isgreater, float, unsigned, &)
CUDA_CPU_EXTREME(larger, __builtin_isgreater, double, unsigned long long, &)
#undef CUDA_CPU_EXTREME
} // namespace cuda_cpu

// The overloads of float in <cmath> call these.
#define __builtin_fminf ::cuda_cpu::smaller
#define __builtin_fmaxf ::cuda_cpu::larger
#include <cmath>
#undef __builtin_fminf
#undef __builtin_fmaxf
extern "C" double cuda_cpu_library_cbrt(double x) __asm__("cbrt");
namespace cuda_cpu {
inline long double cube_root(double x) { // a step of Newton's method; a fifth of the time of cbrtl()
    const long double y = cuda_cpu_library_cbrt(x), square = y * y;
    return square > 0 && square < HUGE_VAL ? y - (square * y - x) / (3 * square) : y;
}
} // namespace cuda_cpu
#ifdef __GLIBC__ // in place of the C library's functions, where they are called by name
#define CUDA_CPU_IN_PLACE(T, name, extreme)                                                                  \
    extern inline __attribute__((gnu_inline, always_inline)) T name(T x, T y) __THROW {                      \
        return cuda_cpu::extreme(x, y);                                                                      \
    }
extern "C" {
CUDA_CPU_IN_PLACE(float, fminf, smaller)
CUDA_CPU_IN_PLACE(float, fmaxf, larger)
CUDA_CPU_IN_PLACE(double, fmin, smaller)
CUDA_CPU_IN_PLACE(double, fmax, larger)
// CUDA's errors, 1 ulp and 7, are smaller than those of the C library of 2022.
#define CUDA_CPU_MORE_EXACT(name)                                                                            \
    extern inline __attribute__((gnu_inline, always_inline)) double name(double x) __THROW {                 \
        return (double)name##l(x);                                                                           \
    }
CUDA_CPU_MORE_EXACT(tanh)
CUDA_CPU_MORE_EXACT(exp10)
CUDA_CPU_MORE_EXACT(j0)
CUDA_CPU_MORE_EXACT(j1)
CUDA_CPU_MORE_EXACT(y0)
CUDA_CPU_MORE_EXACT(y1)
extern inline __attribute__((gnu_inline, always_inline)) double cbrt(double x) __THROW {
    return (double)cuda_cpu::cube_root(x);
}
}
#endif
#endif

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __cplusplus
#include <cfenv>
#include <cmath>
#include <type_traits>
#include "numbers.h"

namespace cuda_cpu {

// Makes the compiler compute `value` before this point and assume nothing about it afterwards, so that
// arithmetic with it does not move across.
template <class T> inline __attribute__((always_inline)) void pin(T &value) {
    asm __volatile__("" : "+m"(value));
}

// Evaluates f(x...) in a rounding mode. It is not inlined, so that no other arithmetic moves between the two
// changes of the mode. The pins keep this arithmetic from moving out.
template <int mode, class F, class... T> __attribute__((noinline)) auto directed(F f, T... x) {
#ifdef __SSE2_MATH__
    // Setting only the control register of SSE is several times as fast as fesetround(), which also sets that
    // of the x87. But a C library may compute fma(), the only function of three numbers, with both units.
    if constexpr (sizeof...(T) < 3) {
        const unsigned before = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr((before & ~(3u << 13)) | (unsigned)mode << 3);
        (pin(x), ...);
        auto result = f(x...);
        pin(result);
        __builtin_ia32_ldmxcsr(before);
        return result;
    }
#endif
    const int before = fegetround();
    fesetround(mode);
    (pin(x), ...);
    auto result = f(x...);
    pin(result);
    fesetround(before);
    return result;
}

template <int mode, class F, class... T> inline auto rounded(F f, T... x) {
    if constexpr (mode == FE_TONEAREST)
        return f(x...);
    else
        return directed<mode>(f, x...);
}

[[noreturn]] void trap(const char *file, int line);
} // namespace cuda_cpu

// ---- functions that the C library lacks ----

CUDA_CPU_RETURN(float, rsqrtf, (float x), 1.0f / sqrtf(x))
CUDA_CPU_RETURN(double, rsqrt, (double x), 1.0 / sqrt(x))
CUDA_CPU_RETURN(float, rcbrtf, (float x), (float)(1.0 / cbrt((double)x)))
CUDA_CPU_RETURN(double, rcbrt, (double x), (double)(1 / cuda_cpu::cube_root(x)))

// sin(pi x) and cos(pi x), exact where x is a multiple of one half.
inline void sincospi(double x, double *sine, double *cosine) {
    const double r = remainder(x, 2.0); // exact; the result is from -1 to 1
    const double quarter = rint(2.0 * r), rest = (r - quarter / 2.0) * 3.14159265358979323846;
    const double s = sin(rest), c = cos(rest);
    const int q = isfinite(x) ? (int)quarter & 3 : 0;
    *sine = q == 0 ? s : q == 1 ? c : q == 2 ? -s : -c;
    *cosine = q == 0 ? c : q == 1 ? -s : q == 2 ? -c : s;
    if (*sine == 0)
        *sine = copysign(0.0, x);
    *cosine += 0.0; // never -0
}
inline double sinpi(double x) {
    double s, c;
    sincospi(x, &s, &c);
    return s;
}
inline double cospi(double x) {
    double s, c;
    sincospi(x, &s, &c);
    return c;
}
inline void sincospif(float x, float *sine, float *cosine) {
    double s, c;
    sincospi((double)x, &s, &c);
    *sine = (float)s;
    *cosine = (float)c;
}
// The functions of float, and the overloads without the suffix f, as CUDA has them
#define CUDA_CPU_FLOAT_OF(name)                                                                              \
    CUDA_CPU_RETURN(float, name##f, (float x), (float)name((double)x))                                       \
    CUDA_CPU_RETURN(float, name, (float x), name##f(x))
CUDA_CPU_FLOAT_OF(sinpi)
CUDA_CPU_FLOAT_OF(cospi)
CUDA_CPU_RETURN(float, rsqrt, (float x), rsqrtf(x))
CUDA_CPU_RETURN(float, rcbrt, (float x), rcbrtf(x))
CUDA_CPU_RETURN(void, sincospi, (float x, float *sine, float *cosine), sincospif(x, sine, cosine))
inline void sincos(float x, float *sine, float *cosine) {
    *sine = sinf(x);
    *cosine = cosf(x);
}

// Scaled, because where the length is too large for a double or subnormal, its reciprocal need not be.
inline double rhypot(double x, double y) {
    const double larger = fmax(fabs(x), fabs(y)), scale = larger > 1.0 ? 0x1p-100 : 0x1p100;
    return scale / hypot(x * scale, y * scale);
}
CUDA_CPU_RETURN(float, rhypotf, (float x, float y), (float)(1.0 / hypot((double)x, (double)y)))
CUDA_CPU_RETURN(float, fdividef, (float x, float y), x / y)
CUDA_CPU_RETURN(double, fdivide, (double x, double y), x / y)

// ---- fast versions ----

CUDA_CPU_RETURN(float, __sinf, (float x), sinf(x))
CUDA_CPU_RETURN(float, __cosf, (float x), cosf(x))
CUDA_CPU_RETURN(float, __tanf, (float x), tanf(x))
CUDA_CPU_RETURN(float, __tanhf, (float x), tanhf(x))
CUDA_CPU_RETURN(float, __expf, (float x), expf(x))
CUDA_CPU_RETURN(float, __logf, (float x), logf(x))
CUDA_CPU_RETURN(float, __log2f, (float x), log2f(x))
CUDA_CPU_RETURN(float, __log10f, (float x), log10f(x))
CUDA_CPU_RETURN(float, __powf, (float x, float y), powf(x, y))
CUDA_CPU_RETURN(void, __sincosf, (float x, float *sine, float *cosine), sincos(x, sine, cosine))
CUDA_CPU_RETURN(float, __exp10f, (float x), (float)pow(10.0, (double)x))
// It multiplies by the reciprocal of y, which is 0 where it would be subnormal.
CUDA_CPU_RETURN(float, __fdividef, (float x, float y), fabsf(y) > 0x1p126f ? x * copysignf(0.0f, y) : x / y)
CUDA_CPU_RETURN(float, __saturatef, (float x), x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f) // NaN: 0

// ---- arithmetic in a rounding mode: nearest even, towards zero, up, down ----

// f is the letter for the type.
#define CUDA_CPU_ROUNDED_OPERATION(name, T, operation, mode)                                                 \
    CUDA_CPU_RETURN(T, name, (T x, T y),                                                                     \
                    cuda_cpu::rounded<mode>([](T a, T b) { return a operation b; }, x, y))
#define CUDA_CPU_ROUNDED_FLOAT(f, T, fma, suffix, mode)                                                      \
    CUDA_CPU_ROUNDED_OPERATION(__##f##add_##suffix, T, +, mode)                                              \
    CUDA_CPU_ROUNDED_OPERATION(__##f##sub_##suffix, T, -, mode)                                              \
    CUDA_CPU_ROUNDED_OPERATION(__##f##mul_##suffix, T, *, mode)                                              \
    CUDA_CPU_ROUNDED_OPERATION(__##f##div_##suffix, T, /, mode)                                              \
    CUDA_CPU_RETURN(T, __##f##rcp_##suffix, (T x), __##f##div_##suffix(T(1), x))                             \
    CUDA_CPU_RETURN(T, __##f##sqrt_##suffix, (T x),                                                          \
                    cuda_cpu::rounded<mode>([](T a) { return std::sqrt(a); }, x))                            \
    CUDA_CPU_RETURN(T, __##fma##_##suffix, (T x, T y, T z),                                                  \
                    cuda_cpu::rounded<mode>([](T a, T b, T c) { return fma(a, b, c); }, x, y, z))
#define CUDA_CPU_ROUNDED(suffix, mode)                                                                       \
    CUDA_CPU_ROUNDED_FLOAT(f, float, fmaf, suffix, mode)                                                     \
    CUDA_CPU_ROUNDED_FLOAT(d, double, fma, suffix, mode)                                                     \
    CUDA_CPU_RETURN(float, __fmaf_ieee_##suffix, (float x, float y, float z), __fmaf_##suffix(x, y, z))      \
    CUDA_CPU_CONVERT(int, float, int, suffix, mode)                                                          \
    CUDA_CPU_CONVERT(uint, float, unsigned int, suffix, mode)                                                \
    CUDA_CPU_CONVERT(ll, float, long long, suffix, mode)                                                     \
    CUDA_CPU_CONVERT(ull, float, unsigned long long, suffix, mode)                                           \
    CUDA_CPU_CONVERT(ll, double, long long, suffix, mode)                                                    \
    CUDA_CPU_CONVERT(ull, double, unsigned long long, suffix, mode)                                          \
    CUDA_CPU_CONVERT(double, float, double, suffix, mode)
#define CUDA_CPU_CONVERT(from, to, T, suffix, mode)                                                          \
    inline to __##from##2##to##_##suffix(T x) {                                                              \
        const to result = cuda_cpu::rounded<mode>([](T a) { return (to)a; }, x);                             \
        return std::is_unsigned<T>::value ? std::fabs(result) : result; /* clang++ rounds 0ull to -0 */      \
    }
CUDA_CPU_ROUNDED(rn, FE_TONEAREST)
CUDA_CPU_ROUNDED(rz, FE_TOWARDZERO)
CUDA_CPU_ROUNDED(ru, FE_UPWARD)
CUDA_CPU_ROUNDED(rd, FE_DOWNWARD)
#undef CUDA_CPU_CONVERT
CUDA_CPU_RETURN(float, __frsqrt_rn, (float x), (float)(1.0 / sqrt((double)x)))
CUDA_CPU_RETURN(double, __int2double_rn, (int x), x)
CUDA_CPU_RETURN(double, __uint2double_rn, (unsigned int x), x)

// ---- floating point to integers ----

#define CUDA_CPU_TO_INTEGER(from, Float, to, Int)                                                            \
    CUDA_CPU_RETURN(Int, __##from##2##to##_rn, (Float x), cuda_cpu::saturate<Int>(std::nearbyint(x)))        \
    CUDA_CPU_RETURN(Int, __##from##2##to##_rz, (Float x), cuda_cpu::saturate<Int>(std::trunc(x)))            \
    CUDA_CPU_RETURN(Int, __##from##2##to##_ru, (Float x), cuda_cpu::saturate<Int>(std::ceil(x)))             \
    CUDA_CPU_RETURN(Int, __##from##2##to##_rd, (Float x), cuda_cpu::saturate<Int>(std::floor(x)))
CUDA_CPU_TO_INTEGER(float, float, int, int)
CUDA_CPU_TO_INTEGER(float, float, uint, unsigned int)
CUDA_CPU_TO_INTEGER(float, float, ll, long long)
CUDA_CPU_TO_INTEGER(float, float, ull, unsigned long long)
CUDA_CPU_TO_INTEGER(double, double, int, int)
CUDA_CPU_TO_INTEGER(double, double, uint, unsigned int)
CUDA_CPU_TO_INTEGER(double, double, ll, long long)
CUDA_CPU_TO_INTEGER(double, double, ull, unsigned long long)

// ---- reinterpreting bits ----

CUDA_CPU_RETURN(int, __float_as_int, (float x), cuda_cpu::bits_as<int>(x))
CUDA_CPU_RETURN(unsigned int, __float_as_uint, (float x), cuda_cpu::bits_as<unsigned int>(x))
CUDA_CPU_RETURN(float, __int_as_float, (int x), cuda_cpu::bits_as<float>(x))
CUDA_CPU_RETURN(float, __uint_as_float, (unsigned int x), cuda_cpu::bits_as<float>(x))
CUDA_CPU_RETURN(long long, __double_as_longlong, (double x), cuda_cpu::bits_as<long long>(x))
CUDA_CPU_RETURN(double, __longlong_as_double, (long long x), cuda_cpu::bits_as<double>(x))
CUDA_CPU_RETURN(int, __double2hiint, (double x), (int)(__double_as_longlong(x) >> 32))
CUDA_CPU_RETURN(int, __double2loint, (double x), (int)__double_as_longlong(x))
CUDA_CPU_RETURN(double, __hiloint2double, (int high, int low),
                cuda_cpu::bits_as<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low))

// ---- integers ----

inline int __mul24(int x, int y) { // product of the low 24 bits
    return (int)((unsigned)((int)((unsigned)x << 8) >> 8) * (unsigned)((int)((unsigned)y << 8) >> 8));
}
CUDA_CPU_RETURN(unsigned int, __umul24, (unsigned int x, unsigned int y), (x & 0xffffff) * (y & 0xffffff))
CUDA_CPU_RETURN(int, __mulhi, (int x, int y), (int)(1ll * x * y >> 32))
CUDA_CPU_RETURN(unsigned int, __umulhi, (unsigned int x, unsigned int y), (unsigned int)(1ull * x * y >> 32))
CUDA_CPU_RETURN(long long, __mul64hi, (long long x, long long y), (long long)(y *(__int128)x >> 64))
CUDA_CPU_RETURN(unsigned long long, __umul64hi, (unsigned long long x, unsigned long long y),
                (unsigned long long)(y *(unsigned __int128)x >> 64))
CUDA_CPU_RETURN(int, __popc, (unsigned int x), __builtin_popcount(x))
CUDA_CPU_RETURN(int, __popcll, (unsigned long long x), __builtin_popcountll(x))
CUDA_CPU_RETURN(int, __clz, (int x), x ? __builtin_clz((unsigned)x) : 32)
CUDA_CPU_RETURN(int, __clzll, (long long x), x ? __builtin_clzll((unsigned long long)x) : 64)
CUDA_CPU_RETURN(int, __ffs, (int x), __builtin_ffs(x))
CUDA_CPU_RETURN(int, __ffsll, (long long x), __builtin_ffsll(x))
inline unsigned int __brev(unsigned int x) {
    x = __builtin_bswap32(x);
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    return (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
}
CUDA_CPU_RETURN(unsigned long long, __brevll, (unsigned long long x),
                (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32)))
// Byte i of the result is the byte of y:x that the low three bits of nibble i of the selector choose.
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
    const unsigned long long bytes = (unsigned long long)y << 32 | x;
    unsigned int result = 0;
    for (int i = 0; i < 4; ++i)
        result |= ((unsigned int)(bytes >> 8 * (selector >> 4 * i & 7)) & 0xff) << 8 * i;
    return result;
}
// Shifts high:low. The plain forms take the shift modulo 32; the _c forms clamp it to 32.
CUDA_CPU_RETURN(unsigned int, __funnelshift_l, (unsigned int low, unsigned int high, unsigned int shift),
                (unsigned int)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32))
CUDA_CPU_RETURN(unsigned int, __funnelshift_lc, (unsigned int low, unsigned int high, unsigned int shift),
                shift >= 32 ? low : __funnelshift_l(low, high, shift))
CUDA_CPU_RETURN(unsigned int, __funnelshift_r, (unsigned int low, unsigned int high, unsigned int shift),
                (unsigned int)(((unsigned long long)high << 32 | low) >> (shift & 31)))
CUDA_CPU_RETURN(unsigned int, __funnelshift_rc, (unsigned int low, unsigned int high, unsigned int shift),
                shift >= 32 ? high : __funnelshift_r(low, high, shift))
CUDA_CPU_RETURN(int, __hadd, (int x, int y), (int)(((long long)x + y) >> 1))
CUDA_CPU_RETURN(int, __rhadd, (int x, int y), (int)(((long long)x + y + 1) >> 1))
CUDA_CPU_RETURN(unsigned int, __uhadd, (unsigned int x, unsigned int y),
                (unsigned int)(((unsigned long long)x + y) >> 1))
CUDA_CPU_RETURN(unsigned int, __urhadd, (unsigned int x, unsigned int y),
                (unsigned int)(((unsigned long long)x + y + 1) >> 1))
CUDA_CPU_RETURN(unsigned int, __sad, (int x, int y, unsigned int z),
                z + (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x))
CUDA_CPU_RETURN(unsigned int, __usad, (unsigned int x, unsigned int y, unsigned int z),
                z + (x > y ? x - y : y - x))

// ---- min and max, for the mixed types that CUDA accepts ----

#define CUDA_CPU_MIN_MAX(R, A, B)                                                                            \
    CUDA_CPU_RETURN(R, min, (A a, B b), (R)a < (R)b ? (R)a : (R)b)                                           \
    CUDA_CPU_RETURN(R, max, (A a, B b), (R)a > (R)b ? (R)a : (R)b)
#define CUDA_CPU_MIN_MAX_INTEGERS(T)                                                                         \
    CUDA_CPU_MIN_MAX(T, T, T)                                                                                \
    CUDA_CPU_MIN_MAX(unsigned T, unsigned T, unsigned T)                                                     \
    CUDA_CPU_MIN_MAX(unsigned T, T, unsigned T)                                                              \
    CUDA_CPU_MIN_MAX(unsigned T, unsigned T, T)
#define CUDA_CPU_MIN_MAX_FLOATS(R, A, B) /* a number wins over NaN */                                        \
    CUDA_CPU_RETURN(R, min, (A a, B b), cuda_cpu::smaller((R)a, (R)b))                                       \
    CUDA_CPU_RETURN(R, max, (A a, B b), cuda_cpu::larger((R)a, (R)b))
CUDA_CPU_MIN_MAX_INTEGERS(int)
CUDA_CPU_MIN_MAX_INTEGERS(long)
CUDA_CPU_MIN_MAX_INTEGERS(long long)
CUDA_CPU_MIN_MAX_FLOATS(float, float, float)
CUDA_CPU_MIN_MAX_FLOATS(double, double, double)
CUDA_CPU_MIN_MAX_FLOATS(double, float, double)
CUDA_CPU_MIN_MAX_FLOATS(double, double, float)
CUDA_CPU_RETURN(unsigned int, umin, (unsigned int x, unsigned int y), min(x, y))
CUDA_CPU_RETURN(unsigned int, umax, (unsigned int x, unsigned int y), max(x, y))
CUDA_CPU_RETURN(long long, llmin, (long long x, long long y), min(x, y))
CUDA_CPU_RETURN(long long, llmax, (long long x, long long y), max(x, y))
CUDA_CPU_RETURN(unsigned long long, ullmin, (unsigned long long x, unsigned long long y), min(x, y))
CUDA_CPU_RETURN(unsigned long long, ullmax, (unsigned long long x, unsigned long long y), max(x, y))

// ---- loads and stores with cache hints, which have no effect here ----

#define CUDA_CPU_LOAD(name)                                                                                  \
    template <class T> inline T name(const T *p) {                                                           \
        return *p;                                                                                           \
    }
#define CUDA_CPU_STORE(name)                                                                                 \
    template <class T> inline void name(T *p, std::common_type_t<T> value) {                                 \
        *p = value;                                                                                          \
    }
CUDA_CPU_LOAD(__ldg)
CUDA_CPU_LOAD(__ldca)
CUDA_CPU_LOAD(__ldcg)
CUDA_CPU_LOAD(__ldcs)
CUDA_CPU_LOAD(__ldlu)
CUDA_CPU_LOAD(__ldcv)
CUDA_CPU_STORE(__stwb)
CUDA_CPU_STORE(__stcg)
CUDA_CPU_STORE(__stcs)
CUDA_CPU_STORE(__stwt)

// ---- hints to the compiler ----

inline __attribute__((always_inline)) void __assume(bool holds) {
    if (!holds)
        __builtin_unreachable();
}
#ifndef __clang__ // clang has it built in
inline __attribute__((always_inline)) void __builtin_assume(bool holds) {
    __assume(holds);
}
#endif
inline void __prof_trigger(int) {}

// ---- clocks and __trap ----

// A clock with the rate of cudaDevAttrClockRate. It is the processor's time stamp counter where one exists.
// cu2cpp replaces clock() in device code by this.
inline long long clock64() {
#if defined(__x86_64__) || defined(__i386__)
    return (long long)__builtin_ia32_rdtsc();
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
#endif
}
[[noreturn]] inline void __trap(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    cuda_cpu::trap(file, line);
}

#include "special.h"
#include "simd.h"
#endif // __cplusplus
