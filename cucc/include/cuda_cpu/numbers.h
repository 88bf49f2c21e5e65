// SPDX-License-Identifier: MIT
// Conversions of numbers that several headers share, also those that host sources include (cuda_fp16.h). The
// header declares names of cuda_cpu only.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include "cxx14.h"

namespace cuda_cpu {

// The bits of a value as another type.
template <class To, class From> inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy((void *)&to, &from, sizeof to);
    return to;
}

// Converts a floating-point number to an integer, towards 0. Numbers out of range saturate. As on a GPU, NaN
// becomes 0 if both types have 32 bits, otherwise the integer with only the highest bit set. The conversion
// of C++ is not used out of range, where its result is undefined.
template <class Int, class Float> constexpr __attribute__((always_inline)) inline Int saturate(Float x) {
    constexpr Int top = (Int)(1ull << (sizeof(Int) * 8 - 1)), least = std::is_signed_v<Int> ? top : Int(0);
    constexpr Int nan = sizeof(Int) == 8 || sizeof(Float) == 8 ? top : Int(0), most = (Int)~least;
    constexpr Float end = (Float)(most / 2 + 1) * 2; // the first number above the range
    return x < end ? x >= (Float)least ? (Int)x : least : x == x ? most : nan;
}

enum class Rounding { nearest, zero, up, down };

// Rounds a number to a 16-bit floating-point format with `bits` explicit bits of the significand: 10 for
// half, 7 for bfloat16. NaN becomes 0x7fff, as on a GPU.
template <int bits> inline uint16_t narrow(double x, Rounding mode) {
    constexpr int bias = (1 << (14 - bits)) - 1;
    constexpr uint32_t infinity = ((1u << (15 - bits)) - 1) << bits;
    const uint64_t all = bits_as<uint64_t>(x), size = all << 1 >> 1;
    const bool negative = all >> 63;
    const uint16_t sign = (uint16_t)(negative << 15);
    if (size >= 0x7ff0000000000000) // infinity or NaN
        return size > 0x7ff0000000000000 ? 0x7fff : (uint16_t)(sign | infinity);
    const int exponent = (int)(size >> 52) - 1023;
    const bool small = exponent < 1 - bias; // the result is subnormal or the smallest normal number
    const uint64_t significand = (size & 0xfffffffffffff) | (size >> 52 ? 1ull << 52 : 0);
    const int shift = 52 - bits + (small ? (1 - bias) - exponent : 0);
    const int cut = shift > 62 ? 62 : shift;
    uint64_t kept = significand >> cut;
    const uint64_t rest = significand - (kept << cut), middle = 1ull << (cut - 1);
    const bool outward = mode == Rounding::up ? !negative : negative;
    if (mode == Rounding::nearest)
        kept += rest > middle || (rest == middle && (kept & 1));
    else if (mode != Rounding::zero)
        kept += outward && rest != 0;
    uint32_t result = infinity;
    if (small)
        result = (uint32_t)kept;
    else if (exponent <= bias)
        result = (uint32_t)((exponent + bias - 1) << bits) + (uint32_t)kept;
    if (result >= infinity)
        result = mode == Rounding::nearest || (mode != Rounding::zero && outward) ? infinity : infinity - 1;
    return (uint16_t)(sign | result);
}

// Converts a 16-bit number of this format to float; exact.
template <int bits> inline float widen(uint16_t x) {
    if (bits == 7)
        return bits_as<float>((uint32_t)x << 16);
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16, size = x & 0x7fff;
    if (size >= 0x7c00) // infinity or NaN
        return bits_as<float>(sign | 0x7f800000 | size << 13);
    const float unsigned_value = bits_as<float>(size << 13) * 0x1p112f; // moves the bias from 15 to 127
    return bits_as<float>(sign | bits_as<uint32_t>(unsigned_value));
}

// a b + c for numbers whose product is exact in double. The sum is rounded to odd. So rounding it again, to
// half or bfloat16, gives the same result as rounding the exact sum.
inline double multiply_add(double a, double b, double c) {
    const double product = a * b, sum = product + c, part = sum - product;
    const double lost = (product - (sum - part)) + (c - part);
    if (lost == 0 || lost != lost || std::isinf(sum) || (bits_as<uint64_t>(sum) & 1))
        return sum;
    return bits_as<double>(bits_as<uint64_t>(sum) + ((lost > 0) == (sum > 0) ? 1 : -1));
}

// Converts an integer to double, rounded to odd, so that a second rounding to half or bfloat16 is correct.
template <class Int> inline double odd_double(Int x) {
    const bool negative = x < 0;
    uint64_t size = negative ? 0 - (uint64_t)x : (uint64_t)x;
    if (size >> 53)
        size = (size & ~(uint64_t)0xfff) | (size & 0xfff ? 0x800 : 0);
    return negative ? -(double)size : (double)size;
}

} // namespace cuda_cpu
