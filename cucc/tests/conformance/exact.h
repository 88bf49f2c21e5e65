// SPDX-License-Identifier: MIT
// References of the conformance test that the C library lacks, in long double. They are plain, and others
// than those of cucc.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

typedef long double Real; // 64 bits of precision on x86-64

// The bits of x, rounded to nearest, in a format
static uint64_t rounded(Real x, int exponent_bits, int fraction_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const uint64_t infinity = ((1ull << exponent_bits) - 1) << fraction_bits;
    const uint64_t sign = std::signbit(x) ? 1ull << (exponent_bits + fraction_bits) : 0;
    const Real size = fabsl(x);
    if (x != x)
        return infinity + 1;
    if (size == 0 || std::isinf(x))
        return sign | (size == 0 ? 0 : infinity);
    const int exponent = std::max(ilogbl(size), 1 - bias);
    if (exponent > bias)
        return sign | infinity;
    // The first bit of a normal number increments the exponent.
    const uint64_t digits = (uint64_t)nearbyintl(ldexpl(size, fraction_bits - exponent));
    return sign | (((uint64_t)(exponent + bias - 1) << fraction_bits) + digits);
}

static Real absolute(Real error, Real ulp) { // in ulp
    return error / ulp + 0.5L;
}

// sin(pi x), and cos(pi x)
static Real sine_of_pi(Real x) {
    Real r = remainderl(x, 2);
    if (fabsl(r) > 0.5L)
        r = copysignl(1, r) - r;
    return r == 0 ? copysignl(0, x) : sinl(3.14159265358979323846264L * r);
}
static Real cosine_of_pi(Real x) {
    return sine_of_pi(0.5L - fabsl(remainderl(x, 2))) + 0;
}

// The length of a vector; infinite, even if another number is NaN
static Real length(Real x, Real y, Real z, Real t = 0) {
    return std::isinf(x) || std::isinf(y) || std::isinf(z) || std::isinf(t)
               ? INFINITY
               : sqrtl(x * x + y * y + z * z + t * t);
}

static Real erfcxl(Real x) {
    if (x < 50) { // e^(x^2) in two factors, because an error of the square grows
        const Real high = (float)x;
        return x < -30 ? INFINITY : expl(high * high) * expl((x - high) * (x + high)) * erfcl(x);
    }
    Real term = 1, sum = 1;
    for (int k = 1; k < 10; k++)
        sum += term *= -(2 * k - 1) / (2 * x * x);
    return sum / (x * 1.77245385090551602730L);
}

// The inverse of a function that rises, or falls, from 0 on
static Real inverse(Real (*f)(Real), Real y) {
    Real low = 0, high = 128;
    const bool rises = f(1) > f(0);
    for (int i = 0; i < 160; i++) {
        const Real middle = (low + high) / 2;
        ((f(middle) < y) == rises ? low : high) = middle;
    }
    return low;
}
static Real erfinvl(Real x) {
    if (!(fabsl(x) < 1))
        return fabsl(x) == 1 ? x * INFINITY : NAN;
    if (fabsl(x) < 1e-12L)
        return x * 0.886226925452758013649L;
    return copysignl(fabsl(x) < 0.5L ? inverse(erfl, fabsl(x)) : inverse(erfcl, 1 - fabsl(x)), x);
}
static Real erfcinvl(Real x) {
    if (!(x > 0 && x < 2))
        return x == 0 ? INFINITY : x == 2 ? -INFINITY : NAN;
    return x < 0.5L ? inverse(erfcl, x) : x > 1.5L ? -inverse(erfcl, 2 - x) : erfinvl(1 - x);
}

// The series, whose terms are positive
static Real bessel_i(int order, Real x) {
    Real term = order ? x / 2 : 1, sum = term;
    if (!(fabsl(x) < 800))
        return x != x ? x : order ? copysignl(INFINITY, x) : (Real)INFINITY;
    for (int k = 1; fabsl(term) > 1e-22L * fabsl(sum); k++)
        sum += term *= x * x / 4 / k / (k + order);
    return sum;
}
