// SPDX-License-Identifier: MIT
/*
 * The types and functions of one 16-bit floating-point format. cuda_fp16.h and cuda_bf16.h include this file,
 * after they have defined:
 *
 *     CUDA_CPU_H     __half      __nv_bfloat16       the type
 *     CUDA_CPU_H2    __half2     __nv_bfloat162      two of them
 *     CUDA_CPU_F     half        bfloat16            the word for it in names of functions
 *     CUDA_CPU_F2    half2       bfloat162
 *     CUDA_CPU_BITS  10          7                   explicit bits of the significand
 *     CUDA_CPU_OTHER_H                               the other type
 *
 * Operations are computed in double and rounded once more. That gives the correctly rounded result, because
 * double has more than twice the precision (for __hfma see multiply_add). Functions such as hexp round the C
 * library's result, so they can differ in the last bit from a GPU, which approximates them.
 */
#define CUDA_CPU_PASTE_(a, b)         a##b
#define CUDA_CPU_PASTE(a, b)          CUDA_CPU_PASTE_(a, b)
#define CUDA_CPU_NAME(before, after)  CUDA_CPU_PASTE(CUDA_CPU_PASTE(before, CUDA_CPU_F), after)
#define CUDA_CPU_NAME2(before, after) CUDA_CPU_PASTE(CUDA_CPU_PASTE(before, CUDA_CPU_F2), after)
#define CUDA_CPU_RAW                  CUDA_CPU_PASTE(CUDA_CPU_H, _raw)
#define CUDA_CPU_RAW2                 CUDA_CPU_PASTE(CUDA_CPU_H2, _raw)

struct __attribute__((aligned(2))) CUDA_CPU_RAW {
    unsigned short x;
};
struct __attribute__((aligned(4))) CUDA_CPU_RAW2 {
    unsigned short x, y;
};

struct __attribute__((aligned(2))) CUDA_CPU_H {
    CUDA_CPU_H() = default;
    constexpr CUDA_CPU_H(const CUDA_CPU_RAW &raw) : bits(raw.x) {}
    CUDA_CPU_H(float x) : CUDA_CPU_H((double)x) {}
    CUDA_CPU_H(double x) : CUDA_CPU_H(x, cuda_cpu::Rounding::nearest) {}
    CUDA_CPU_H(double x, cuda_cpu::Rounding mode) : bits(cuda_cpu::narrow<CUDA_CPU_BITS>(x, mode)) {}
    explicit CUDA_CPU_H(const CUDA_CPU_OTHER_H &x); // defined in cuda_bf16.h, which has both types
    operator CUDA_CPU_RAW() const { return {bits}; }
    operator float() const { return cuda_cpu::widen<CUDA_CPU_BITS>(bits); }
    constexpr operator bool() const { return (bits & 0x7fff) != 0; }
#define CUDA_CPU_TO(T)                                                                                       \
    operator T() const {                                                                                     \
        return cuda_cpu::saturate<T>(std::trunc((float)*this));                                              \
    }
#define CUDA_CPU_FROM_AND_TO(T)                                                                              \
    CUDA_CPU_H(T x) : CUDA_CPU_H(cuda_cpu::odd_double(x)) {}                                                 \
    CUDA_CPU_TO(T)
    CUDA_CPU_TO(char)
    CUDA_CPU_TO(signed char)
    CUDA_CPU_TO(unsigned char)
    CUDA_CPU_FROM_AND_TO(short)
    CUDA_CPU_FROM_AND_TO(unsigned short)
    CUDA_CPU_FROM_AND_TO(int)
    CUDA_CPU_FROM_AND_TO(unsigned int)
    CUDA_CPU_FROM_AND_TO(long)
    CUDA_CPU_FROM_AND_TO(unsigned long)
    CUDA_CPU_FROM_AND_TO(long long)
    CUDA_CPU_FROM_AND_TO(unsigned long long)

  protected:
    unsigned short bits;
};

struct __attribute__((aligned(4))) CUDA_CPU_H2 {
    CUDA_CPU_H x, y;
    CUDA_CPU_H2() = default;
    constexpr CUDA_CPU_H2(const CUDA_CPU_H &a, const CUDA_CPU_H &b) : x(a), y(b) {}
    CUDA_CPU_H2(const CUDA_CPU_RAW2 &raw) : x(CUDA_CPU_RAW{raw.x}), y(CUDA_CPU_RAW{raw.y}) {}
    operator CUDA_CPU_RAW2() const { return {CUDA_CPU_RAW(x).x, CUDA_CPU_RAW(y).x}; }
};

// ---- conversions ----

CUDA_CPU_RETURN(unsigned short, CUDA_CPU_NAME(__, _as_ushort), (CUDA_CPU_H a), CUDA_CPU_RAW(a).x)
CUDA_CPU_RETURN(short, CUDA_CPU_NAME(__, _as_short), (CUDA_CPU_H a), (short)CUDA_CPU_RAW(a).x)
CUDA_CPU_RETURN(CUDA_CPU_H, CUDA_CPU_NAME(__ushort_as_, ), (unsigned short a), CUDA_CPU_RAW{a})
CUDA_CPU_RETURN(CUDA_CPU_H, CUDA_CPU_NAME(__short_as_, ), (short a), CUDA_CPU_RAW{(unsigned short)a})
CUDA_CPU_RETURN(float, CUDA_CPU_NAME(__, 2float), (CUDA_CPU_H a), (float)a)
CUDA_CPU_RETURN(CUDA_CPU_H, CUDA_CPU_NAME(__float2, ), (float a), a)
CUDA_CPU_RETURN(CUDA_CPU_H, CUDA_CPU_NAME(__double2, ), (double a), a)
#define CUDA_CPU_CONVERT(T, word, value)                                                                     \
    CUDA_CPU_RETURN(CUDA_CPU_H, CUDA_CPU_NAME(__##word##2, _rn), (T a),                                      \
                    {value, cuda_cpu::Rounding::nearest})                                                    \
    CUDA_CPU_RETURN(CUDA_CPU_H, CUDA_CPU_NAME(__##word##2, _rz), (T a), {value, cuda_cpu::Rounding::zero})   \
    CUDA_CPU_RETURN(CUDA_CPU_H, CUDA_CPU_NAME(__##word##2, _ru), (T a), {value, cuda_cpu::Rounding::up})     \
    CUDA_CPU_RETURN(CUDA_CPU_H, CUDA_CPU_NAME(__##word##2, _rd), (T a), {value, cuda_cpu::Rounding::down})
#define CUDA_CPU_CONVERT_INTEGER(T, word)                                                                    \
    CUDA_CPU_CONVERT(T, word, cuda_cpu::odd_double(a))                                                       \
    CUDA_CPU_RETURN(T, CUDA_CPU_NAME(__, 2##word##_rn), (CUDA_CPU_H a),                                      \
                    cuda_cpu::saturate<T>(std::nearbyint((float)a)))                                         \
    CUDA_CPU_RETURN(T, CUDA_CPU_NAME(__, 2##word##_rz), (CUDA_CPU_H a), (T)a)                                \
    CUDA_CPU_RETURN(T, CUDA_CPU_NAME(__, 2##word##_ru), (CUDA_CPU_H a),                                      \
                    cuda_cpu::saturate<T>(std::ceil((float)a)))                                              \
    CUDA_CPU_RETURN(T, CUDA_CPU_NAME(__, 2##word##_rd), (CUDA_CPU_H a),                                      \
                    cuda_cpu::saturate<T>(std::floor((float)a)))
CUDA_CPU_CONVERT(float, float, (double)a)
CUDA_CPU_CONVERT_INTEGER(short, short)
CUDA_CPU_CONVERT_INTEGER(unsigned short, ushort)
CUDA_CPU_CONVERT_INTEGER(int, int)
CUDA_CPU_CONVERT_INTEGER(unsigned int, uint)
CUDA_CPU_CONVERT_INTEGER(long long, ll)
CUDA_CPU_CONVERT_INTEGER(unsigned long long, ull)
#undef CUDA_CPU_CONVERT
CUDA_CPU_RETURN(signed char, CUDA_CPU_NAME(__, 2char_rz), (CUDA_CPU_H a), (signed char)a)
CUDA_CPU_RETURN(unsigned char, CUDA_CPU_NAME(__, 2uchar_rz), (CUDA_CPU_H a), (unsigned char)a)

// ---- pairs ----

CUDA_CPU_RETURN(CUDA_CPU_H2, CUDA_CPU_NAME2(make_, ), (CUDA_CPU_H x, CUDA_CPU_H y), {x, y})
CUDA_CPU_RETURN(CUDA_CPU_H2, CUDA_CPU_NAME2(__halves2, ), (CUDA_CPU_H x, CUDA_CPU_H y), {x, y})
CUDA_CPU_RETURN(CUDA_CPU_H2, CUDA_CPU_PASTE(CUDA_CPU_NAME(__, 2), CUDA_CPU_F2), (CUDA_CPU_H a), {a, a})
CUDA_CPU_RETURN(CUDA_CPU_H2, CUDA_CPU_NAME2(__float2, _rn), (float a), {a, a})
CUDA_CPU_RETURN(CUDA_CPU_H2, CUDA_CPU_NAME2(__floats2, _rn), (float x, float y), {x, y})
CUDA_CPU_RETURN(CUDA_CPU_H2, CUDA_CPU_NAME2(__float22, _rn), (float2 a), {a.x, a.y})
CUDA_CPU_RETURN(CUDA_CPU_H2, CUDA_CPU_NAME2(__low2, ), (CUDA_CPU_H2 a), {a.x, a.x})
CUDA_CPU_RETURN(CUDA_CPU_H2, CUDA_CPU_NAME2(__high2, ), (CUDA_CPU_H2 a), {a.y, a.y})
CUDA_CPU_RETURN(CUDA_CPU_H2, CUDA_CPU_NAME2(__lows2, ), (CUDA_CPU_H2 a, CUDA_CPU_H2 b), {a.x, b.x})
CUDA_CPU_RETURN(CUDA_CPU_H2, CUDA_CPU_NAME2(__highs2, ), (CUDA_CPU_H2 a, CUDA_CPU_H2 b), {a.y, b.y})
CUDA_CPU_RETURN(CUDA_CPU_H2, __lowhigh2highlow, (CUDA_CPU_H2 a), {a.y, a.x})
CUDA_CPU_RETURN(float2, CUDA_CPU_NAME2(__, 2float2), (CUDA_CPU_H2 a), {(float)a.x, (float)a.y})
CUDA_CPU_RETURN(float, __low2float, (CUDA_CPU_H2 a), (float)a.x)
CUDA_CPU_RETURN(float, __high2float, (CUDA_CPU_H2 a), (float)a.y)
CUDA_CPU_RETURN(CUDA_CPU_H, CUDA_CPU_NAME(__low2, ), (CUDA_CPU_H2 a), a.x)
CUDA_CPU_RETURN(CUDA_CPU_H, CUDA_CPU_NAME(__high2, ), (CUDA_CPU_H2 a), a.y)

// ---- comparisons ----

CUDA_CPU_RETURN(bool, __hisnan, (CUDA_CPU_H a), std::isnan((float)a))
CUDA_CPU_RETURN(int, __hisinf, (CUDA_CPU_H a), std::isinf((float)a) ? ((float)a > 0 ? 1 : -1) : 0)
CUDA_CPU_RETURN(CUDA_CPU_H2, __hisnan2, (CUDA_CPU_H2 a),
                {__hisnan(a.x) ? 1.0f : 0.0f, __hisnan(a.y) ? 1.0f : 0.0f})

// `u` is true where a number is NaN; without NaN, both forms agree.
#define CUDA_CPU_COMPARE(name, expression)                                                                   \
    inline bool __h##name(CUDA_CPU_H p, CUDA_CPU_H q) {                                                      \
        const float a = p, b = q;                                                                            \
        return expression;                                                                                   \
    }                                                                                                        \
    CUDA_CPU_RETURN(CUDA_CPU_H2, __h##name##2, (CUDA_CPU_H2 a, CUDA_CPU_H2 b),                               \
                    {__h##name(a.x, b.x) ? 1.0f : 0.0f, __h##name(a.y, b.y) ? 1.0f : 0.0f})                  \
    CUDA_CPU_RETURN(bool, __hb##name##2, (CUDA_CPU_H2 a, CUDA_CPU_H2 b),                                     \
                    __h##name(a.x, b.x) && __h##name(a.y, b.y))                                              \
    CUDA_CPU_RETURN(unsigned int, __h##name##2_mask, (CUDA_CPU_H2 a, CUDA_CPU_H2 b),                         \
                    (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u))
CUDA_CPU_COMPARE(eq, a == b)
CUDA_CPU_COMPARE(ne, a<b || a> b)
CUDA_CPU_COMPARE(lt, a < b)
CUDA_CPU_COMPARE(le, a <= b)
CUDA_CPU_COMPARE(gt, a > b)
CUDA_CPU_COMPARE(ge, a >= b)
CUDA_CPU_COMPARE(equ, !(a < b || a > b))
CUDA_CPU_COMPARE(neu, a != b)
CUDA_CPU_COMPARE(ltu, !(a >= b))
CUDA_CPU_COMPARE(leu, !(a > b))
CUDA_CPU_COMPARE(gtu, !(a <= b))
CUDA_CPU_COMPARE(geu, !(a < b))
#undef CUDA_CPU_COMPARE

// ---- arithmetic ----

CUDA_CPU_RETURN(CUDA_CPU_H, __hneg, (CUDA_CPU_H a),
                CUDA_CPU_RAW{(unsigned short)(CUDA_CPU_RAW(a).x ^ 0x8000)})
CUDA_CPU_RETURN(CUDA_CPU_H, __habs, (CUDA_CPU_H a),
                CUDA_CPU_RAW{(unsigned short)(CUDA_CPU_RAW(a).x & 0x7fff)})
namespace cuda_cpu {
inline CUDA_CPU_H limit_to_1(CUDA_CPU_H a) { // NaN: 0
    return (float)a > 0 ? (float)a < 1 ? a : CUDA_CPU_H(1.0f) : CUDA_CPU_H(0.0f);
}
} // namespace cuda_cpu

#define CUDA_CPU_BOTH1(name, name2)                                                                          \
    CUDA_CPU_RETURN(CUDA_CPU_H2, name2, (CUDA_CPU_H2 a), {name(a.x), name(a.y)})
#define CUDA_CPU_BOTH2(name, name2)                                                                          \
    CUDA_CPU_RETURN(CUDA_CPU_H2, name2, (CUDA_CPU_H2 a, CUDA_CPU_H2 b), {name(a.x, b.x), name(a.y, b.y)})
#define CUDA_CPU_BOTH3(name, name2)                                                                          \
    CUDA_CPU_RETURN(CUDA_CPU_H2, name2, (CUDA_CPU_H2 a, CUDA_CPU_H2 b, CUDA_CPU_H2 c),                       \
                    {name(a.x, b.x, c.x), name(a.y, b.y, c.y)})
// The _rn forms must not be contracted to fused operations; here no form is.
#define CUDA_CPU_ARITHMETIC(name, operation)                                                                 \
    CUDA_CPU_RETURN(CUDA_CPU_H, __h##name, (CUDA_CPU_H a, CUDA_CPU_H b),                                     \
                    (double)(float)a operation(double)(float) b)                                             \
    CUDA_CPU_RETURN(CUDA_CPU_H, __h##name##_rn, (CUDA_CPU_H a, CUDA_CPU_H b), __h##name(a, b))               \
    CUDA_CPU_RETURN(CUDA_CPU_H, __h##name##_sat, (CUDA_CPU_H a, CUDA_CPU_H b),                               \
                    cuda_cpu::limit_to_1(__h##name(a, b)))                                                   \
    CUDA_CPU_BOTH2(__h##name, __h##name##2)                                                                  \
    CUDA_CPU_BOTH2(__h##name, __h##name##2_rn)                                                               \
    CUDA_CPU_BOTH2(__h##name##_sat, __h##name##2_sat)
CUDA_CPU_ARITHMETIC(add, +)
CUDA_CPU_ARITHMETIC(sub, -)
CUDA_CPU_ARITHMETIC(mul, *)
CUDA_CPU_RETURN(CUDA_CPU_H, __hdiv, (CUDA_CPU_H a, CUDA_CPU_H b), (double)(float)a / (double)(float)b)
CUDA_CPU_RETURN(CUDA_CPU_H, __hfma, (CUDA_CPU_H a, CUDA_CPU_H b, CUDA_CPU_H c),
                cuda_cpu::multiply_add((float)a, (float)b, (float)c))
CUDA_CPU_RETURN(CUDA_CPU_H, __hfma_sat, (CUDA_CPU_H a, CUDA_CPU_H b, CUDA_CPU_H c),
                cuda_cpu::limit_to_1(__hfma(a, b, c)))

// If one argument is NaN, the result is the other one; the _nan forms then give NaN. -0 is smaller than +0.
#define CUDA_CPU_EXTREME(name, better, not_)                                                                 \
    inline CUDA_CPU_H __h##name##_nan(CUDA_CPU_H a, CUDA_CPU_H b) {                                          \
        if (__hisnan(a) || __hisnan(b))                                                                      \
            return CUDA_CPU_RAW{0x7fff};                                                                     \
        return __h##better(a, b) || (__heq(a, b) && not_ std::signbit((float)a)) ? a : b;                    \
    }                                                                                                        \
    CUDA_CPU_RETURN(CUDA_CPU_H, __h##name, (CUDA_CPU_H a, CUDA_CPU_H b),                                     \
                    __hisnan(a) == __hisnan(b) ? __h##name##_nan(a, b)                                       \
                    : __hisnan(a)              ? b                                                           \
                                               : a)
CUDA_CPU_EXTREME(max, gt, !)
CUDA_CPU_EXTREME(min, lt, )
#undef CUDA_CPU_EXTREME
CUDA_CPU_RETURN(CUDA_CPU_H, __hfma_relu, (CUDA_CPU_H a, CUDA_CPU_H b, CUDA_CPU_H c),
                __hmax_nan(__hfma(a, b, c), 0.0f))
CUDA_CPU_BOTH1(__hneg, __hneg2)
CUDA_CPU_BOTH1(__habs, __habs2)
CUDA_CPU_BOTH2(__hdiv, __h2div)
CUDA_CPU_BOTH2(__hmax, __hmax2)
CUDA_CPU_BOTH2(__hmin, __hmin2)
CUDA_CPU_BOTH2(__hmax_nan, __hmax2_nan)
CUDA_CPU_BOTH2(__hmin_nan, __hmin2_nan)
CUDA_CPU_BOTH3(__hfma, __hfma2)
CUDA_CPU_BOTH3(__hfma_sat, __hfma2_sat)
CUDA_CPU_BOTH3(__hfma_relu, __hfma2_relu)
inline CUDA_CPU_H2 __hcmadd(CUDA_CPU_H2 a, CUDA_CPU_H2 b, CUDA_CPU_H2 c) { // complex a b + c
    return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}

#define CUDA_CPU_OPERATOR(T, sign, function)                                                                 \
    CUDA_CPU_RETURN(T, operator sign, (const T &a, const T &b), function(a, b))                              \
    CUDA_CPU_RETURN(T &, operator sign##=, (T & a, const T &b), a = function(a, b))
#define CUDA_CPU_OPERATORS(T, add, sub, mul, div, neg)                                                       \
    CUDA_CPU_OPERATOR(T, +, add)                                                                             \
    CUDA_CPU_OPERATOR(T, -, sub)                                                                             \
    CUDA_CPU_OPERATOR(T, *, mul)                                                                             \
    CUDA_CPU_OPERATOR(T, /, div)                                                                             \
    CUDA_CPU_RETURN(T, operator+, (const T &a), a)                                                           \
    CUDA_CPU_RETURN(T, operator-, (const T &a), neg(a))
#define CUDA_CPU_RELATION(T, sign, function)                                                                 \
    CUDA_CPU_RETURN(bool, operator sign, (const T &a, const T &b), function(a, b))
#define CUDA_CPU_RELATIONS(T, eq, neu, lt, le, gt, ge)                                                       \
    CUDA_CPU_RELATION(T, ==, eq)                                                                             \
    CUDA_CPU_RELATION(T, !=, neu)                                                                            \
    CUDA_CPU_RELATION(T, <, lt)                                                                              \
    CUDA_CPU_RELATION(T, <=, le)                                                                             \
    CUDA_CPU_RELATION(T, >, gt)                                                                              \
    CUDA_CPU_RELATION(T, >=, ge)
CUDA_CPU_OPERATORS(CUDA_CPU_H, __hadd, __hsub, __hmul, __hdiv, __hneg)
CUDA_CPU_RELATIONS(CUDA_CPU_H, __heq, __hneu, __hlt, __hle, __hgt, __hge)
CUDA_CPU_OPERATORS(CUDA_CPU_H2, __hadd2, __hsub2, __hmul2, __h2div, __hneg2)
CUDA_CPU_RELATIONS(CUDA_CPU_H2, __hbeq2, __hbneu2, __hblt2, __hble2, __hbgt2, __hbge2)
CUDA_CPU_RETURN(CUDA_CPU_H &, operator++, (CUDA_CPU_H & a), a += CUDA_CPU_H(1.0f))
CUDA_CPU_RETURN(CUDA_CPU_H &, operator--, (CUDA_CPU_H & a), a -= CUDA_CPU_H(1.0f))
CUDA_CPU_RETURN(CUDA_CPU_H, operator++, (CUDA_CPU_H & a, int), std::exchange(a, __hadd(a, CUDA_CPU_H(1.0f))))
CUDA_CPU_RETURN(CUDA_CPU_H, operator--, (CUDA_CPU_H & a, int), std::exchange(a, __hsub(a, CUDA_CPU_H(1.0f))))

#ifdef __CUDACC__ // functions for kernels only

#define CUDA_CPU_FUNCTION(name, expression)                                                                  \
    inline CUDA_CPU_H h##name(CUDA_CPU_H a) {                                                                \
        const double x = (float)a;                                                                           \
        return expression;                                                                                   \
    }                                                                                                        \
    CUDA_CPU_BOTH1(h##name, h2##name)
CUDA_CPU_FUNCTION(sqrt, std::sqrt(x))
CUDA_CPU_FUNCTION(rsqrt, 1 / std::sqrt(x))
CUDA_CPU_FUNCTION(rcp, 1 / x)
CUDA_CPU_FUNCTION(exp, std::exp(x))
CUDA_CPU_FUNCTION(exp2, std::exp2(x))
CUDA_CPU_FUNCTION(exp10, std::pow(10.0, x))
CUDA_CPU_FUNCTION(log, std::log(x))
CUDA_CPU_FUNCTION(log2, std::log2(x))
CUDA_CPU_FUNCTION(log10, std::log10(x))
CUDA_CPU_FUNCTION(sin, std::sin(x))
CUDA_CPU_FUNCTION(cos, std::cos(x))
CUDA_CPU_FUNCTION(tanh, std::tanh(x))
CUDA_CPU_FUNCTION(tanh_approx, std::tanh(x))
CUDA_CPU_FUNCTION(floor, std::floor(x))
CUDA_CPU_FUNCTION(ceil, std::ceil(x))
CUDA_CPU_FUNCTION(trunc, std::trunc(x))
CUDA_CPU_FUNCTION(rint, std::nearbyint(x))
#undef CUDA_CPU_FUNCTION

inline CUDA_CPU_H atomicAdd(CUDA_CPU_H *p, CUDA_CPU_H value, const char * = nullptr, int = 0) {
    return cuda_cpu::change_by_swaps<__ATOMIC_SEQ_CST>(p, [=](CUDA_CPU_H old) { return old + value; });
}
inline CUDA_CPU_H2 atomicAdd(CUDA_CPU_H2 *p, CUDA_CPU_H2 value, const char * = nullptr, int = 0) {
    return cuda_cpu::change_by_swaps<__ATOMIC_SEQ_CST>(p, [=](CUDA_CPU_H2 old) { return old + value; });
}
template <> constexpr bool cuda_cpu::shuffled<CUDA_CPU_H> = true;
template <> constexpr bool cuda_cpu::shuffled<CUDA_CPU_H2> = true;

#endif // __CUDACC__

#undef CUDA_CPU_NAME
#undef CUDA_CPU_H
#undef CUDA_CPU_H2
#undef CUDA_CPU_F
#undef CUDA_CPU_F2
#undef CUDA_CPU_BITS
#undef CUDA_CPU_OTHER_H
