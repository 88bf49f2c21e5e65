// SPDX-License-Identifier: MIT
// Special functions that the C library lacks: norms of several numbers, the inverses of erf, erfc and the
// normal distribution, erfcx, and modified Bessel functions. They are computed in long double and rounded.
// Where that has 64 bits of precision (x86-64), the results are within one unit in the last place, measured
// with random arguments against 113 bits; CUDA documents bounds of 1 to 8. The float versions round these.
#pragma once

namespace cuda_cpu {

// The square root of a sum of squares. The sum in long double neither overflows nor underflows for doubles.
// An infinity gives infinity, even if another number is NaN, as on a GPU.
template <class T> inline long double norm(int n, const T *x) {
    long double sum = 0;
    bool infinite = false;
    for (int i = 0; i < n; ++i) {
        infinite |= std::isinf(x[i]);
        sum += (long double)x[i] * x[i];
    }
    return infinite ? (long double)INFINITY : sqrtl(sum);
}

// Modified Bessel functions of the first kind, orders 0 and 1. Up to 30 the power series is used, whose terms
// are all positive; above, the asymptotic series (Abramowitz and Stegun, 9.6.10 and 9.7.1). e^x is split into
// two factors, because it overflows before the function does.
inline double bessel_i(int order, double value) {
    const long double x = fabs(value);
    long double sum, term;
    if (x <= 30) {
        sum = term = order ? x / 2 : 1;
        for (int k = 1; term > 1e-20L * sum; ++k)
            sum += term *= x * x / 4 / k / (k + order);
    } else if (x < 800) {
        sum = term = 1;
        for (int k = 1; !(fabsl(term) <= 1e-20L * sum) && k < 60; ++k)
            sum += term *= ((2.0L * k - 1) * (2 * k - 1) - 4 * order) / (8 * k * x);
        sum *= expl(x / 2) / sqrtl(6.283185307179586476925L * x) * expl(x / 2);
    } else {
        sum = x != x ? x : (long double)INFINITY;
    }
    return (double)(order && std::signbit(value) ? -sum : sum);
}

// Returns the scaled complementary error function erfcx(x) = exp(x^2) erfc(x). For large x erfc(x) underflows
// and exp(x^2) overflows, so from 8 on Laplace's continued fraction of erfcx is evaluated.
inline double scaled_erfc(double value) {
    const long double x = value;
    if (value < 8)
        return value < -26.7 ? (double)INFINITY : (double)(erfcl(x) * expl(x * x));
    if (value > 1e154)
        return (double)(0.564189583547756286948L / x);
    long double fraction = x;
    for (int k = 60; k > 0; --k)
        fraction = x + k / 2.0L / fraction;
    return (double)(0.564189583547756286948L / fraction);
}

// The inverse functions start near the root and improve it by Halley's method. The error is divided by the
// derivative, 2/sqrt(pi) e^(-x^2), so that small arguments keep their digits.
inline long double inverse_erf(long double y) { // -0.5 <= y <= 0.5
    long double x = y * 0.8862269254527580137L;
    for (int i = 0; i < 5; ++i) {
        const long double step = (erfl(x) - y) * 0.8862269254527580137L * expl(x * x);
        x -= step / (1 + x * step);
    }
    return x;
}

inline long double inverse_erfc(long double y) { // 0 < y < 2
    if (y > 1.5L)
        return -inverse_erfc(2 - y);
    if (y > 0.5L)
        return inverse_erf(1 - y);
    const long double t = sqrtl(-logl(y));
    long double x = t - logl(t * 1.7724538509055160273L) / (2 * t);
    for (int i = 0; i < 5; ++i) {
        const long double step = (erfcl(x) - y) * 0.8862269254527580137L * expl(x * x);
        x += step / (1 + x * step);
    }
    return x;
}

} // namespace cuda_cpu

// The length of a vector, and with the prefix r its inverse
#define CUDA_CPU_NORM(T, r, suffix, expression)                                                              \
    inline T r##norm##suffix(int n, const T *x) {                                                            \
        const long double length = cuda_cpu::norm(n, x);                                                     \
        return (T)(expression);                                                                              \
    }                                                                                                        \
    inline T r##norm3d##suffix(T a, T b, T c) {                                                              \
        const T x[] = {a, b, c};                                                                             \
        return r##norm##suffix(3, x);                                                                        \
    }                                                                                                        \
    inline T r##norm4d##suffix(T a, T b, T c, T d) {                                                         \
        const T x[] = {a, b, c, d};                                                                          \
        return r##norm##suffix(4, x);                                                                        \
    }
CUDA_CPU_NORM(double, , , length)
CUDA_CPU_NORM(double, r, , 1 / length)
CUDA_CPU_NORM(float, , f, length)
CUDA_CPU_NORM(float, r, f, 1 / length)

CUDA_CPU_RETURN(double, cyl_bessel_i0, (double x), cuda_cpu::bessel_i(0, x))
CUDA_CPU_RETURN(double, cyl_bessel_i1, (double x), cuda_cpu::bessel_i(1, x))
CUDA_CPU_RETURN(double, erfcx, (double x), cuda_cpu::scaled_erfc(x))
inline double erfcinv(double y) {
    if (!(y > 0 && y < 2))
        return y == 0 ? (double)INFINITY : y == 2 ? -(double)INFINITY : (double)NAN;
    return (double)cuda_cpu::inverse_erfc(y);
}
inline double erfinv(double y) {
    if (!(y > -1 && y < 1))
        return y == 1 || y == -1 ? y * (double)INFINITY : (double)NAN;
    if (fabs(y) <= 0.5)
        return y == 0 ? y : (double)cuda_cpu::inverse_erf(y); // keeps -0
    return (double)-cuda_cpu::inverse_erfc(1 + (long double)y);
}
inline double normcdfinv(double y) {
    if (!(y > 0 && y < 1))
        return y == 0 ? -(double)INFINITY : y == 1 ? (double)INFINITY : (double)NAN;
    return (double)(0 - 1.4142135623730950488L * cuda_cpu::inverse_erfc(2 * (long double)y)); // never -0
}
CUDA_CPU_RETURN(double, normcdf, (double x), (double)(0.5L * erfcl(x * -0.70710678118654752440L)))

CUDA_CPU_FLOAT_OF(cyl_bessel_i0)
CUDA_CPU_FLOAT_OF(cyl_bessel_i1)
CUDA_CPU_FLOAT_OF(erfcx)
CUDA_CPU_FLOAT_OF(erfcinv)
CUDA_CPU_FLOAT_OF(erfinv)
CUDA_CPU_FLOAT_OF(normcdfinv)
CUDA_CPU_FLOAT_OF(normcdf)
CUDA_CPU_RETURN(float, exp10, (float x), exp10f(x))
CUDA_CPU_RETURN(float, j0, (float x), j0f(x))
CUDA_CPU_RETURN(float, j1, (float x), j1f(x))
CUDA_CPU_RETURN(float, y0, (float x), y0f(x))
CUDA_CPU_RETURN(float, y1, (float x), y1f(x))
CUDA_CPU_RETURN(float, jn, (int n, float x), jnf(n, x))
CUDA_CPU_RETURN(float, yn, (int n, float x), ynf(n, x))
