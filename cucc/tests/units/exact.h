// SPDX-License-Identifier: MIT
// Correct rounding, for unit tests. Results are compared with the exact value as far as that is possible
// without rounding: a number of up to 64 bits beside it, and the middle between two of them, are exact in 128
// bits.
#pragma once

#include <cmath>
#include <cstdint>
#include "device.h"

#ifdef __SIZEOF_FLOAT128__
typedef __float128 Wide;
#else // where long double has 128 bits
typedef long double Wide;
#endif

enum Mode { nearest, zero, up, down, modes };

static int sign(Wide x) {
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

// The sign of a + b - x. The sum in 128 bits is on the same side of x as the exact one, or it is x; then the
// part that rounding took away decides.
static int compare_sum(Wide a, Wide b, Wide x) {
    const Wide sum = a + b, part = sum - a;
    return sum != x ? sign(sum - x) : sign((a - (sum - part)) + (b - part));
}

// The value of the bits x by the definition of a format: F::exponent and F::fraction are numbers of bits.
template <class F> static double value_of(uint64_t x) {
    const int bias = (1 << (F::exponent - 1)) - 1, exponent = (int)(x >> F::fraction) & (2 * bias + 1);
    const uint64_t one = 1ull << F::fraction, fraction = x & (one - 1);
    double size = fraction ? NAN : INFINITY;
    if (exponent == 0)
        size = ldexp((double)fraction, 1 - bias - F::fraction);
    else if (exponent <= 2 * bias)
        size = ldexp((double)(fraction + one), exponent - bias - F::fraction);
    return x >> (F::exponent + F::fraction) & 1 ? -size : size;
}

// The bits of a rounded value, by searching: compare(x) is the sign of the exact value - x. Callers do not
// look at the sign of a zero.
template <class F, class Compare> static uint64_t rounded(Compare compare, int mode) {
    const uint64_t infinity = ((1ull << F::exponent) - 1) << F::fraction;
    const bool negative = compare(0) < 0;
    const uint64_t sign_bit = negative ? 1ull << (F::exponent + F::fraction) : 0;
    const auto at = [=](uint64_t size) { // infinity counts as the number after the largest
        const Wide x =
            size == infinity ? (Wide)ldexp(1, (1 << (F::exponent - 1)) - 1) * 2 : value_of<F>(size);
        return negative ? -x : x;
    };
    const int outward = negative ? -1 : 1;
    uint64_t low = 0, high = infinity; // the largest with |number| <= |exact value|
    while (high - low > 1) {
        const uint64_t middle = (low + high) / 2;
        (compare(at(middle)) * outward >= 0 ? low : high) = middle;
    }
    if (compare(at(high)) * outward >= 0 && mode == nearest) // beyond the largest number
        return infinity | sign_bit;
    if (compare(at(low)) != 0) {
        const int side = compare((at(low) + at(high)) / 2) * outward;
        if (mode == nearest ? side > 0 || (side == 0 && low % 2) : mode == (negative ? down : up))
            return high | sign_bit;
    }
    return low | sign_bit;
}
