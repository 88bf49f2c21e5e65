// SPDX-License-Identifier: MIT
// What cu2cpp writes in place of inline PTX in device code: functions for the instructions and special
// registers that it knows.
#pragma once

namespace cuda_cpu::ptx {

// Stores the bits of a value in an output operand of any type.
template <class T, class V> inline void set(T &to, V value) {
    if constexpr (sizeof(T) == sizeof(V))
        std::memcpy((void *)&to, &value, sizeof to);
    else
        to = (T)value;
}

// The value of an input operand; an array becomes a pointer. By value, because in a template g++ gives &p[i]
// the type of p with __restrict__, which a reference must have too.
template <class T> inline T input(T value) {
    return value;
}
template <class T> inline std::remove_const_t<T> input(const InStep<T> &value) {
    return value;
}
// The bits of a value, as a number of type T.
template <class T, class V> inline T bits(V value) {
    T result{};
    set(result, value);
    return result;
}

template <class T> inline T load(unsigned long long address, size_t i = 0) {
    return ((const __volatile__ T *)address)[i];
}
// Loads a value in a loop that may poll. A thread that reads the same value again and again yields to other
// threads.
template <class T> inline T poll(unsigned long long address, size_t i = 0) {
    const T value = load<T>(address, i);
    count_read((T *)address + i, value);
    return value;
}
template <class T> inline void store(unsigned long long address, T value, size_t i = 0) {
    ((__volatile__ T *)address)[i] = value;
}

CUDA_CPU_RETURN(unsigned, lanemask_lt, (), (1u << lane()) - 1)
CUDA_CPU_RETURN(unsigned, lanemask_eq, (), 1u << lane())
CUDA_CPU_RETURN(unsigned, warps, (), (blockDim.x * blockDim.y * blockDim.z + 31) / 32)
inline unsigned long long globaltimer() {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
}

template <class T> struct Wide;
template <> struct Wide<unsigned short> { using type = unsigned; };
template <> struct Wide<short> { using type = int; };
template <> struct Wide<unsigned> { using type = unsigned long long; };
template <> struct Wide<int> { using type = long long; };
template <> struct Wide<unsigned long long> { using type = unsigned __int128; };
template <> struct Wide<long long> { using type = __int128; };

template <class T> inline typename Wide<T>::type mul_wide(T a, T b) {
    return (typename Wide<T>::type)a * b;
}
template <class T> inline T mul_hi(T a, T b) {
    return (T)(mul_wide(a, b) >> (8 * sizeof(T)));
}
template <class T> inline T mul_lo(T a, T b) {
    return (T)mul_wide(a, b);
}
// Integer arithmetic wraps around. The carry bit is read when `in` is set.
#define CUDA_CPU_SUM(add, sign)                                                                              \
    template <class T> inline T add(T a, T b) {                                                              \
        if constexpr (std::is_integral_v<T>)                                                                 \
            return (T)((unsigned long long)a sign(unsigned long long) b);                                    \
        else                                                                                                 \
            return a sign b;                                                                                 \
    }                                                                                                        \
    template <class T> inline T add##_carry(unsigned &carry, bool in, T a, T b) {                            \
        const auto sum = (typename Wide<T>::type)a sign b sign(in ? carry : 0);                              \
        carry = (unsigned)(sum >> (8 * sizeof(T))) & 1;                                                      \
        return (T)sum;                                                                                       \
    }
CUDA_CPU_SUM(add, +)
CUDA_CPU_SUM(sub, -)
template <class T> inline T shift_left(T a, unsigned n) {
    return n < 8 * sizeof(T) ? (T)((unsigned long long)a << n) : T(0);
}
template <class T> inline T shift_right(T a, unsigned n) {
    const unsigned most = 8 * sizeof(T) - 1;
    return n <= most ? (T)(a >> n) : std::is_signed_v<T> ? (T)(a >> most) : T(0);
}
template <class T> inline T minimum(T a, T b) {
    return b < a || a != a ? b : a;
}
template <class T> inline T maximum(T a, T b) {
    return a < b || a != a ? b : a;
}

// A bit field of `length` bits from bit `position`, both modulo 256. A signed one is extended by its highest
// bit.
template <class T> inline T bfe(T a, unsigned position, unsigned length) {
    const int bits = 8 * sizeof(T);
    const int first = position & 255, count = length & 255,
              last = first + count < bits ? first + count - 1 : bits - 1;
    const bool sign = std::is_signed_v<T> && count > 0 && (a >> last & 1);
    T field = 0;
    for (int i = 0; i < bits; ++i) {
        const bool bit = i < count && first + i < bits ? a >> (first + i) & 1 : sign;
        field = (T)((unsigned long long)field | (unsigned long long)bit << i);
    }
    return field;
}
// The position of the highest bit that differs from the sign; with `shift` how far it is from the top. Else
// all ones
template <class T> inline unsigned bfind(T a, bool shift = false) {
    const unsigned long long bits = (std::make_unsigned_t<T>)(a < 0 ? ~a : a);
    const unsigned top = 8 * sizeof(T) - 1, highest = bits ? 63 - (unsigned)__builtin_clzll(bits) : ~0u;
    return bits && shift ? top - highest : highest;
}
template <class T> inline T bfi(T a, T b, unsigned position, unsigned length) {
    const unsigned bits = 8 * sizeof(T), first = position & 255, count = length & 255;
    for (unsigned i = 0; i < count && first + i < bits; ++i)
        b = (T)((b & ~((T)1 << (first + i))) | (a >> i & 1) << (first + i));
    return b;
}
inline unsigned lop3(unsigned a, unsigned b, unsigned c, unsigned table) {
    unsigned result = 0;
    for (unsigned i = 0; i < 8; ++i)
        if (table >> i & 1)
            result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}
inline unsigned prmt(unsigned a, unsigned b, unsigned selector) {
    unsigned result = __byte_perm(a, b, selector);
    for (unsigned i = 0; i < 32; i += 8)
        if (selector >> i / 2 & 8) // the sign bit of the byte, eight times
            result = (result & ~(255u << i)) | (result >> i & 128 ? 255u << i : 0);
    return result;
}
} // namespace cuda_cpu::ptx
