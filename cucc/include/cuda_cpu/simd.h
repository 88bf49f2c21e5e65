// SPDX-License-Identifier: MIT
// Integers of 8 and 16 bits packed into a word: sums, comparisons, minima and so on of each field (__vadd4
// …), dot products (__dp4a …), and the minima and maxima of DPX (__viaddmax_s32 …). Their meaning is that of
// the CUDA Math API manual.
#pragma once

namespace cuda_cpu {

// Applies f to the fields of type T of each word; the results, cut to the size of a field, make a word.
template <class T, class F, class... Words> inline unsigned int each(F f, Words... words) {
    constexpr int bits = 8 * sizeof(T);
    unsigned int result = 0;
    for (int i = 0; i < 32; i += bits)
        result |= (unsigned int)(std::make_unsigned_t<T>)f((T)((unsigned int)words >> i)...) << i;
    return result;
}

template <class T> inline int clamp_to(int x) {
    constexpr int low = std::is_signed_v<T> ? -(1 << (8 * sizeof(T) - 1)) : 0;
    constexpr int high = low + (1 << 8 * sizeof(T)) - 1;
    return x < low ? low : x > high ? high : x;
}

template <class T> inline T wrapped_sum(T a, T b) {
    return (T)((unsigned int)a + (unsigned int)b);
}

template <class T> inline int absolute_difference(int a, int b) {
    return a > b ? a - b : b - a;
}

template <class T> inline unsigned int sum_of_absolute_differences(unsigned int a, unsigned int b) {
    unsigned int sum = 0;
    for (unsigned i = 0; i < 32; i += 8 * sizeof(T))
        sum += (unsigned int)absolute_difference<T>((T)(a >> i), (T)(b >> i));
    return sum;
}

} // namespace cuda_cpu

#define CUDA_CPU_EACH1(name, T, expression)                                                                  \
    inline unsigned int name(unsigned int a) {                                                               \
        return cuda_cpu::each<T>([](int x) { return expression; }, a);                                       \
    }
#define CUDA_CPU_EACH2(name, T, expression)                                                                  \
    inline unsigned int name(unsigned int a, unsigned int b) {                                               \
        return cuda_cpu::each<T>([](int x, int y) { return expression; }, a, b);                             \
    }
#define CUDA_CPU_COMPARE(name, n, T, operation)                                                              \
    CUDA_CPU_EACH2(__vset##name##n, T, x operation y)                                                        \
    CUDA_CPU_EACH2(__vcmp##name##n, T, x operation y ? -1 : 0)
#define CUDA_CPU_PACKED(n, S, U) /* n fields, signed and unsigned */                                         \
    CUDA_CPU_EACH1(__vabs##n, S, x < 0 ? -x : x)                                                             \
    CUDA_CPU_EACH1(__vabsss##n, S, cuda_cpu::clamp_to<S>(x < 0 ? -x : x))                                    \
    CUDA_CPU_EACH1(__vneg##n, S, -x)                                                                         \
    CUDA_CPU_EACH1(__vnegss##n, S, cuda_cpu::clamp_to<S>(-x))                                                \
    CUDA_CPU_EACH2(__vadd##n, S, x + y)                                                                      \
    CUDA_CPU_EACH2(__vaddss##n, S, cuda_cpu::clamp_to<S>(x + y))                                             \
    CUDA_CPU_EACH2(__vaddus##n, U, cuda_cpu::clamp_to<U>(x + y))                                             \
    CUDA_CPU_EACH2(__vsub##n, S, x - y)                                                                      \
    CUDA_CPU_EACH2(__vsubss##n, S, cuda_cpu::clamp_to<S>(x - y))                                             \
    CUDA_CPU_EACH2(__vsubus##n, U, cuda_cpu::clamp_to<U>(x - y))                                             \
    CUDA_CPU_EACH2(__vabsdiffs##n, S, cuda_cpu::absolute_difference<S>(x, y))                                \
    CUDA_CPU_EACH2(__vabsdiffu##n, U, cuda_cpu::absolute_difference<U>(x, y))                                \
    CUDA_CPU_EACH2(__vavgs##n, S, (x + y + (x + y >= 0)) >> 1) /* ties round away from zero */               \
    CUDA_CPU_EACH2(__vavgu##n, U, (x + y + 1) >> 1)                                                          \
    CUDA_CPU_EACH2(__vhaddu##n, U, (x + y) >> 1)                                                             \
    CUDA_CPU_EACH2(__vmaxs##n, S, x > y ? x : y)                                                             \
    CUDA_CPU_EACH2(__vmaxu##n, U, x > y ? x : y)                                                             \
    CUDA_CPU_EACH2(__vmins##n, S, x < y ? x : y)                                                             \
    CUDA_CPU_EACH2(__vminu##n, U, x < y ? x : y)                                                             \
    CUDA_CPU_COMPARE(eq, n, U, ==)                                                                           \
    CUDA_CPU_COMPARE(ne, n, U, !=)                                                                           \
    CUDA_CPU_COMPARE(ges, n, S, >=)                                                                          \
    CUDA_CPU_COMPARE(geu, n, U, >=)                                                                          \
    CUDA_CPU_COMPARE(gts, n, S, >)                                                                           \
    CUDA_CPU_COMPARE(gtu, n, U, >)                                                                           \
    CUDA_CPU_COMPARE(les, n, S, <=)                                                                          \
    CUDA_CPU_COMPARE(leu, n, U, <=)                                                                          \
    CUDA_CPU_COMPARE(lts, n, S, <)                                                                           \
    CUDA_CPU_COMPARE(ltu, n, U, <)                                                                           \
    CUDA_CPU_RETURN(unsigned int, __vsads##n, (unsigned int a, unsigned int b),                              \
                    cuda_cpu::sum_of_absolute_differences<S>(a, b))                                          \
    CUDA_CPU_RETURN(unsigned int, __vsadu##n, (unsigned int a, unsigned int b),                              \
                    cuda_cpu::sum_of_absolute_differences<U>(a, b))
CUDA_CPU_PACKED(2, short, unsigned short)
CUDA_CPU_PACKED(4, signed char, unsigned char)
#undef CUDA_CPU_COMPARE

// ---- dot products of bytes, and of 16-bit numbers with bytes; the sum wraps ----

#define CUDA_CPU_DOT(R, S, B, S2, B4)                                                                        \
    inline R __dp4a(R a, R b, R sum) {                                                                       \
        unsigned int s = (unsigned int)sum;                                                                  \
        for (int i = 0; i < 32; i += 8)                                                                      \
            s += (unsigned int)((B)((unsigned int)a >> i) * (B)((unsigned int)b >> i));                      \
        return (R)s;                                                                                         \
    }                                                                                                        \
    inline R __dp2a_lo(R a, R b, R sum) { /* with the low two bytes of b */                                  \
        return (R)((unsigned int)sum + (unsigned int)((S)a * (B)b) +                                         \
                   (unsigned int)((S)((unsigned int)a >> 16) * (B)((unsigned int)b >> 8)));                  \
    }                                                                                                        \
    CUDA_CPU_RETURN(R, __dp2a_hi, (R a, R b, R sum), __dp2a_lo(a, (R)((unsigned int)b >> 16), sum))          \
    CUDA_CPU_RETURN(R, __dp4a, (B4 a, B4 b, R sum),                                                          \
                    __dp4a(cuda_cpu::bits_as<R>(a), cuda_cpu::bits_as<R>(b), sum))                           \
    CUDA_CPU_RETURN(R, __dp2a_lo, (S2 a, B4 b, R sum),                                                       \
                    __dp2a_lo(cuda_cpu::bits_as<R>(a), cuda_cpu::bits_as<R>(b), sum))                        \
    CUDA_CPU_RETURN(R, __dp2a_hi, (S2 a, B4 b, R sum),                                                       \
                    __dp2a_hi(cuda_cpu::bits_as<R>(a), cuda_cpu::bits_as<R>(b), sum))
CUDA_CPU_DOT(int, short, signed char, short2, char4)
CUDA_CPU_DOT(unsigned int, unsigned short, unsigned char, ushort2, uchar4)
#undef CUDA_CPU_DOT

// ---- DPX: minima and maxima of three numbers and of sums, which wrap; _relu: at least 0 ----

// R is the word, W the type of its fields.
#define CUDA_CPU_DPX3(name, R, W, expression)                                                                \
    inline R name(R a, R b, R c) {                                                                           \
        using namespace cuda_cpu;                                                                            \
        return (R)each<W>([](W x, W y, W z) { return expression; }, a, b, c);                                \
    }
#define CUDA_CPU_DPX(s, R, W)                                                                                \
    CUDA_CPU_DPX3(__vimax3_##s, R, W, max(max(x, y), z))                                                     \
    CUDA_CPU_DPX3(__vimin3_##s, R, W, min(min(x, y), z))                                                     \
    CUDA_CPU_DPX3(__viaddmax_##s, R, W, max(wrapped_sum(x, y), z))                                           \
    CUDA_CPU_DPX3(__viaddmin_##s, R, W, min(wrapped_sum(x, y), z))
#define CUDA_CPU_DPX_RELU(s, R, W)                                                                           \
    CUDA_CPU_DPX(s, R, W)                                                                                    \
    CUDA_CPU_DPX3(__vimax3_##s##_relu, R, W, max(max(max(x, y), z), W(0)))                                   \
    CUDA_CPU_DPX3(__vimin3_##s##_relu, R, W, max(min(min(x, y), z), W(0)))                                   \
    CUDA_CPU_DPX3(__viaddmax_##s##_relu, R, W, max(max(wrapped_sum(x, y), z), W(0)))                         \
    CUDA_CPU_DPX3(__viaddmin_##s##_relu, R, W, max(min(wrapped_sum(x, y), z), W(0)))                         \
    CUDA_CPU_RETURN(R, __vimax_##s##_relu, (R a, R b), __vimax3_##s##_relu(a, b, b))                         \
    CUDA_CPU_RETURN(R, __vimin_##s##_relu, (R a, R b), __vimin3_##s##_relu(a, b, b))
CUDA_CPU_DPX_RELU(s32, int, int)
CUDA_CPU_DPX_RELU(s16x2, unsigned int, short)
CUDA_CPU_DPX(u32, unsigned int, unsigned int)
CUDA_CPU_DPX(u16x2, unsigned int, unsigned short)

// These also return whether the first number was chosen. Of equal numbers it is chosen.
#define CUDA_CPU_DPX_CHOICE(name, operation, R, W)                                                           \
    CUDA_CPU_RETURN(R, name##32, (R a, R b, bool *first), (*first = a operation b) ? a : b)                  \
    inline unsigned int name##16x2(unsigned int a, unsigned int b, bool *high, bool *low) {                  \
        *high = (W)(a >> 16) operation(W)(b >> 16);                                                          \
        *low = (W)a operation(W) b;                                                                          \
        return (*high ? a : b) >> 16 << 16 | ((*low ? a : b) & 0xffff);                                      \
    }
CUDA_CPU_DPX_CHOICE(__vibmax_s, >=, int, short)
CUDA_CPU_DPX_CHOICE(__vibmin_s, <=, int, short)
CUDA_CPU_DPX_CHOICE(__vibmax_u, >=, unsigned int, unsigned short)
CUDA_CPU_DPX_CHOICE(__vibmin_u, <=, unsigned int, unsigned short)

// The position of the n-th set bit of the mask, counted upwards from bit `base`, or downwards for negative n.
// If n is 0, tests bit `base` itself. Returns all ones if there is no such bit.
inline unsigned int __fns(unsigned int mask, unsigned int base, int n) {
    const int step = n < 0 ? -1 : 1;
    int left = n == 0 ? 1 : n * step;
    for (unsigned int i = base; i < 32; i += (unsigned int)step) {
        if (mask >> i & 1 && --left == 0)
            return i;
        if (n == 0)
            break;
    }
    return ~0u;
}
