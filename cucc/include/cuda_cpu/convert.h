// SPDX-License-Identifier: MIT
/*
 * Conversions from floating point to integers in device code. In PTX a number that is out of the integer's
 * range becomes the nearest integer of that range; what C++ makes of it depends on the processor. cu2cpp
 * inserts a conversion of ours before the one of the program:
 *
 *     (int)x              ->  (int)(::cuda_cpu::Saturated<int>)x
 *     static_cast<int>(x) ->  static_cast<int>(::cuda_cpu::Into<int>{} = x)
 *     int i = x;          ->  int i = ::cuda_cpu::Into<int>{} = x;
 *
 * A cast and an assignment take the operand that the program's own would take, so the end of the operand need
 * not be found. Operands that are not floating point are passed through.
 */
#pragma once
#ifdef __cplusplus

#include "numbers.h"

namespace cuda_cpu {

#define CUDA_CPU_INLINE __attribute__((always_inline)) constexpr

template <class T>
constexpr bool is_saturated =
    std::is_integral_v<T> && !std::is_same_v<std::remove_cv_t<T>, bool> && sizeof(T) <= 8;

// PTX converts to 32 or 64 bits; what has fewer bits is cut off from 32.
template <class Int>
using Converted = std::conditional_t<sizeof(Int) == 8,
                                     std::conditional_t<std::is_signed_v<Int>, long long, unsigned long long>,
                                     std::conditional_t<std::is_signed_v<Int>, int, unsigned>>;

template <class Int, class From> CUDA_CPU_INLINE Int saturated(From x) {
    if constexpr (std::is_floating_point_v<From>)
        return (Int)saturate<Converted<Int>>(x);
    else
        return (Int)x;
}

template <class Int> struct SaturatedTo {
    Int value;
    template <class From, std::enable_if_t<!std::is_class_v<std::remove_reference_t<From>>, int> = 0>
    CUDA_CPU_INLINE SaturatedTo(From x) : value(saturated<Int>(x)) {}
    template <class From, std::enable_if_t<std::is_class_v<std::remove_reference_t<From>>, int> = 0>
    CUDA_CPU_INLINE SaturatedTo(From &&x) : value((Int) static_cast<From &&>(x)) {}
    CUDA_CPU_INLINE operator Int() const { return value; }
};
template <class T> struct Same { using type = T; };
template <class T>
using Saturated =
    typename std::conditional_t<is_saturated<T>, Same<SaturatedTo<std::remove_cv_t<T>>>, Same<T>>::type;

// Into<T>{} = x is x, or, if x is converted to an integer, its value in T.
template <class T> struct Into {
    using To = std::remove_cv_t<std::remove_reference_t<T>>;
    // Not std::is_scalar, for which a __restrict__ pointer is none.
    template <class From>
    static constexpr bool is_class =
        std::is_class_v<std::decay_t<From>> || std::is_union<std::decay_t<From>>::value;
    template <class From> static constexpr bool changes = is_saturated<To> &&std::is_floating_point_v<From>;
    template <class From, std::enable_if_t<changes<From>, int> = 0>
    CUDA_CPU_INLINE To operator=(From x) const {
        return saturated<To>(x);
    }
    template <class From, std::enable_if_t<!is_class<From> && !changes<From>, int> = 0>
    CUDA_CPU_INLINE From operator=(From x) const {
        return x;
    }
    template <class From, std::enable_if_t<is_class<From>, int> = 0>
    CUDA_CPU_INLINE From &&operator=(From &&x) const {
        return static_cast<From &&>(x);
    }
};

// The C library's functions of these names, with saturation
#define CUDA_CPU_ROUND(Int, name, round)                                                                     \
    inline Int name(float x) {                                                                               \
        return saturated<Int>(std::round(x));                                                                \
    }                                                                                                        \
    inline Int name(double x) {                                                                              \
        return saturated<Int>(std::round(x));                                                                \
    }                                                                                                        \
    inline Int name##f(float x) {                                                                            \
        return saturated<Int>(std::round(x));                                                                \
    }
CUDA_CPU_ROUND(long, lrint, nearbyint)
CUDA_CPU_ROUND(long long, llrint, nearbyint)
CUDA_CPU_ROUND(long, lround, round)
CUDA_CPU_ROUND(long long, llround, round)
#undef CUDA_CPU_INLINE

} // namespace cuda_cpu

#endif
