// SPDX-License-Identifier: MIT
// What tests/attacks/mutate.py writes into a program in place of an operator, a constant or a call. All
// mutants of a program are compiled at once; the environment variable MUTANT has the number of the one that
// takes effect.
#ifndef TESTS_ATTACKS_MUTANTS_H
#define TESTS_ATTACKS_MUTANTS_H

#include <stdlib.h>
#include <cuda_runtime.h>

static const int mutant_chosen = getenv("MUTANT") ? atoi(getenv("MUTANT")) : 0;

template <int id> static inline bool mutant() {
    return mutant_chosen == id;
}

// l + r, and another operator in the mutant
#define MUTANT_BINARY(name, op, other)                                                                       \
    template <int id, class L, class R> static inline auto name(L l, R r)->decltype(l op r) {                \
        return mutant<id>() ? (decltype(l op r))(l other r) : l op r;                                        \
    }
MUTANT_BINARY(mutant_add, +, -)
MUTANT_BINARY(mutant_sub, -, +)
MUTANT_BINARY(mutant_mul, *, +)
MUTANT_BINARY(mutant_div, /, *)
MUTANT_BINARY(mutant_mod, %, /)
MUTANT_BINARY(mutant_left, <<, >>)
MUTANT_BINARY(mutant_right, >>, <<)
MUTANT_BINARY(mutant_bit_and, &, |)
MUTANT_BINARY(mutant_bit_or, |, &)
MUTANT_BINARY(mutant_xor, ^, |)
MUTANT_BINARY(mutant_less, <, <=)
MUTANT_BINARY(mutant_less_equal, <=, <)
MUTANT_BINARY(mutant_greater, >, >=)
MUTANT_BINARY(mutant_greater_equal, >=, >)
MUTANT_BINARY(mutant_equal, ==, !=)
MUTANT_BINARY(mutant_not_equal, !=, ==)

// l += r, and another operator in the mutant
#define MUTANT_ASSIGN(name, op, other)                                                                       \
    template <int id, class L, class R> static inline auto name(L &&l, R r)->decltype(l op r) {              \
        return mutant<id>() ? l other r : l op r;                                                            \
    }
MUTANT_ASSIGN(mutant_add_to, +=, -=)
MUTANT_ASSIGN(mutant_subtract_from, -=, +=)
MUTANT_ASSIGN(mutant_multiply_by, *=, /=)
MUTANT_ASSIGN(mutant_divide_by, /=, *=)
MUTANT_ASSIGN(mutant_xor_to, ^=, |=)
MUTANT_ASSIGN(mutant_or_to, |=, &=)
MUTANT_ASSIGN(mutant_and_to, &=, |=)
MUTANT_ASSIGN(mutant_shift_right_by, >>=, <<=)
MUTANT_ASSIGN(mutant_shift_left_by, <<=, >>=)

// A constant or an index, greater by one in the mutant
template <int id, class T> static inline auto mutant_constant(T value) -> decltype(value + 1) {
    return mutant<id>() ? value + 1 : value;
}

// Either of two values of one type
template <int id, class T> static inline T mutant_either(T value, T other) {
    return mutant<id>() ? other : value;
}

// A condition that the mutant always takes, or never
template <int always, int never, class T> static inline bool mutant_if(const T &condition) {
    return mutant<always>() || (!mutant<never>() && (bool)condition);
}

// The number of the statement that runs at place i of a row of statements: mutant `ids[k]` swaps statements k
// and k + 1, unless it is -1.
template <int... ids> static inline int mutant_order(int i) {
    const int list[] = {ids...};
    for (int k = 0; k < (int)sizeof...(ids); k++)
        if (list[k] >= 0 && list[k] == mutant_chosen)
            return i == k ? k + 1 : i == k + 1 ? k : i;
    return i;
}

// Atomic operations, which are a plain load and a plain store in the mutant
#define MUTANT_ATOMIC(name, value)                                                                           \
    template <int id, class T, class V> static inline auto mutant_##name(T *p, V v)->decltype(name(p, v)) {  \
        if (!mutant<id>())                                                                                   \
            return name(p, v);                                                                               \
        T old = *p;                                                                                          \
        *p = value;                                                                                          \
        return old;                                                                                          \
    }
MUTANT_ATOMIC(atomicAdd, old + v)
MUTANT_ATOMIC(atomicSub, old - v)
MUTANT_ATOMIC(atomicExch, v)
MUTANT_ATOMIC(atomicMin, old < v ? old : v)
MUTANT_ATOMIC(atomicMax, old > v ? old : v)
MUTANT_ATOMIC(atomicOr, old | v)
MUTANT_ATOMIC(atomicAnd, old &v)
MUTANT_ATOMIC(atomicXor, old ^ v)
MUTANT_ATOMIC(atomicInc, old >= v ? 0 : old + 1)

template <int id, class T, class C, class V>
static inline auto mutant_atomicCAS(T *p, C c, V v) -> decltype(atomicCAS(p, c, v)) {
    if (!mutant<id>())
        return atomicCAS(p, c, v);
    T old = *p;
    if (old == c)
        *p = v;
    return old;
}

#endif
