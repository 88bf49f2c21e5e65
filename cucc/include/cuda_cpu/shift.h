// SPDX-License-Identifier: MIT
/*
 * Shifts in device code. In PTX a shift by all bits of a number or more gives 0, or -1 for a negative number
 * to the right; this machine's processor takes the count modulo 32 or 64. cu2cpp puts an object between the
 * operands. The operators stay, and so do precedence, overloads and constant expressions:
 *
 *     a << b    ->  a << ShiftLeft() << b
 *     a >> b    ->  a << ShiftRight() >> b
 *     x <<= b   ->  x = x << AssignLeft() = b    where x may be a bit-field, which cannot be referred to
 *     *p <<= b  ->  *p << ChangeLeft() = b
 *
 * Operands that are not integers, such as streams, are passed through.
 */
#pragma once
#ifdef __cplusplus

#include <type_traits>

namespace cuda_cpu {

template <class A, class Plain = std::remove_cv_t<std::remove_reference_t<A>>>
constexpr bool is_shifted = std::is_integral_v<Plain> ||
                            (std::is_enum_v<Plain> && std::is_convertible_v<Plain, int>);
template <class A, class Result> using IfShifted = std::enable_if_t<is_shifted<A>, Result>;
template <class A, class Result> using IfNot = std::enable_if_t<!is_shifted<A>, Result>;
template <class A> using Promoted = decltype(+std::declval<A>());

#define CUDA_CPU_INLINE __attribute__((always_inline)) constexpr

// Counts have 32 bits, as in PTX.
template <class A, class B> CUDA_CPU_INLINE A shift_left(A a, B count) {
    return (unsigned)count < 8 * sizeof(A) ? a << count : 0;
}
template <class A, class B> CUDA_CPU_INLINE A shift_right(A a, B count) {
    return (unsigned)count < 8 * sizeof(A) ? a >> count : a < 0 ? (A)-1 : 0;
}

#define CUDA_CPU_SHIFT(Left, shift, op)                                                                      \
    struct Shift##Left {};                                                                                   \
    struct Assign##Left {};                                                                                  \
    struct Change##Left {};                                                                                  \
    template <class A> struct Left {                                                                         \
        A value;                                                                                             \
        template <class B> CUDA_CPU_INLINE IfShifted<B, A> operator=(B b) { return shift(value, b); }        \
        template <class B> CUDA_CPU_INLINE IfNot<B, A> operator=(B &&b) { return value op b; }               \
    };                                                                                                       \
    template <class A> struct Changed##Left {                                                                \
        A &&to;                                                                                              \
        template <class B> CUDA_CPU_INLINE auto operator=(B b) -> IfShifted<B, A &&> {                       \
            if constexpr (is_shifted<A>)                                                                     \
                to = shift(+to, b);                                                                          \
            else                                                                                             \
                to op## = b;                                                                                 \
            return static_cast<A &&>(to);                                                                    \
        }                                                                                                    \
        template <class B> CUDA_CPU_INLINE auto operator=(B &&b) -> IfNot<B, A &&> {                         \
            to op## = static_cast<B &&>(b);                                                                  \
            return static_cast<A &&>(to);                                                                    \
        }                                                                                                    \
    };                                                                                                       \
    template <class A> CUDA_CPU_INLINE IfShifted<A, Left<Promoted<A>>> operator<<(A a, Shift##Left &&) {     \
        return {a};                                                                                          \
    }                                                                                                        \
    template <class A> CUDA_CPU_INLINE IfNot<A, A &&> operator<<(A &&a, Shift##Left &&) {                    \
        return static_cast<A &&>(a);                                                                         \
    }                                                                                                        \
    template <class A, class B> CUDA_CPU_INLINE IfShifted<B, A> operator op(Left<A> a, B b) {                \
        return shift(a.value, b);                                                                            \
    }                                                                                                        \
    template <class A, class B>                                                                              \
    CUDA_CPU_INLINE IfNot<B, decltype(std::declval<A>() op std::declval<B>())> operator op(Left<A> a,        \
                                                                                           B &&b) {          \
        return a.value op static_cast<B &&>(b);                                                              \
    }                                                                                                        \
    template <class A> CUDA_CPU_INLINE IfShifted<A, Left<Promoted<A>>> operator<<(A a, Assign##Left &&) {    \
        return {a};                                                                                          \
    }                                                                                                        \
    template <class A> CUDA_CPU_INLINE IfNot<A, Changed##Left<A>> operator<<(A &&a, Assign##Left &&) {       \
        return {static_cast<A &&>(a)};                                                                       \
    }                                                                                                        \
    template <class A> CUDA_CPU_INLINE Changed##Left<A> operator<<(A &&a, Change##Left &&) {                 \
        return {static_cast<A &&>(a)};                                                                       \
    }
CUDA_CPU_SHIFT(Left, shift_left, <<)
CUDA_CPU_SHIFT(Right, shift_right, >>)
#undef CUDA_CPU_SHIFT
#undef CUDA_CPU_INLINE

} // namespace cuda_cpu

#endif
