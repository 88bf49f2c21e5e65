// SPDX-License-Identifier: MIT
// What cu2cpp writes in place of inline PTX: functions for the instructions and special registers it knows.
#pragma once
#include "../cuda_pipeline_primitives.h"
#include "letters_off.h"

namespace cuda_cpu {

// Waits until all lanes of the warp have called this function. Then one lane calls work(lanes), and the
// others return. lanes[i] is a pointer to the argument `mine` of lane i.
template <class Lane, class F> __forceinline__ void once_for_warp(const Lane &mine, F work, Site site) {
    if (!warp_operation(WarpOp::matrix, ~0u, (uint64_t)&mine, 0, 32, site))
        return; // another lane has done it
    uint64_t *const values = current_block->values + current_block->running / 32 * 32;
    const Lane *lanes[32];
    for (int i = 0; i < 32; ++i) {
        lanes[i] = (const Lane *)values[i];
        values[i] = 0;
    }
    current_block->for_warp = true;
    __asm__ volatile("" ::: "memory"); // the compiler moves no load or store across this
    work(lanes);
    __asm__ volatile("" ::: "memory");
    current_block->for_warp = false;
}

namespace ptx {

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
// Loads a value in a loop that may poll: a thread that reads the same value again and again yields.
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
// Integer arithmetic wraps around. The carry flag is kept between asm statements, and read when `in` is set.
inline __thread unsigned carry;
#define CUDA_CPU_SUM(add, sign)                                                                              \
    template <class T> inline T add(T a, T b) {                                                              \
        if constexpr (std::is_integral_v<T>)                                                                 \
            return (T)((unsigned long long)a sign(unsigned long long) b);                                    \
        else                                                                                                 \
            return a sign b;                                                                                 \
    }                                                                                                        \
    template <class T> inline T add##_carry(bool in, T a, T b) {                                             \
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
// The position of the highest bit that differs from the sign, or all ones if none does. With `shift`, the
// number of positions from the highest bit of the word to it.
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

// ---- conversions ----

template <int bits> struct Short { // half (10) and bfloat16 (7)
    uint16_t x;
};
template <class T> inline T value_of(T x) {
    return x;
}
template <int bits> inline float value_of(Short<bits> x) {
    return widen<bits>(x.x);
}

template <class T> inline T to_integral(T x, Rounding mode) {
    return mode == Rounding::nearest ? std::rint(x)
           : mode == Rounding::zero  ? std::trunc(x)
           : mode == Rounding::down  ? std::floor(x)
                                     : std::ceil(x);
}
template <class To, class From> inline void round_to(To &to, From from, Rounding mode) {
    const long double exact = from; // of 64 bits of an integer too
    to = (To)exact;
    const long double side = mode == Rounding::zero ? 0 : mode == Rounding::down ? -INFINITY : INFINITY;
    if (mode != Rounding::nearest && (side > exact ? to < exact : side < exact && to > exact))
        to = std::nextafter(to, (To)side);
}
template <int bits, class From> inline void round_to(Short<bits> &to, From from, Rounding mode) {
    if constexpr (std::is_integral_v<From>)
        to.x = narrow<bits>(odd_double(from), mode);
    else
        to.x = narrow<bits>(from, mode);
}
// cvt: `integral` is .rni, .rzi, .rmi and .rpi
template <class To, class From> inline To convert(From from, Rounding mode, bool sat, bool integral) {
    auto x = value_of(from);
    if constexpr (!std::is_integral_v<To>) {
        if (!std::is_integral_v<decltype(x)> && integral)
            x = to_integral(x, mode);
        if (sat)
            x = x > 1 ? 1 : x > 0 ? x : 0;
        To to;
        round_to(to, x, mode);
        return to;
    } else if constexpr (std::is_integral_v<decltype(x)>) {
        const __int128 low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
        return (To)(!sat ? (__int128)x : x < low ? low : x > high ? high : (__int128)x);
    } else {
        return saturate<To>(to_integral(x, mode));
    }
}
template <int bits> inline unsigned pack(float high, float low) {
    return (unsigned)narrow<bits>(high, Rounding::nearest) << 16 | narrow<bits>(low, Rounding::nearest);
}

// ---- shared memory: addresses begin at 0, as those of 32 bits that programs make of them ----

inline unsigned long long to_shared(unsigned long long address) {
    return address - (uintptr_t)current_block->arena;
}
inline unsigned long long from_shared(unsigned long long address) {
    return address + (uintptr_t)current_block->arena;
}
// cp.async: `bytes` of `size` bytes are copied, and zeros follow.
inline void copy(unsigned long long to, unsigned long long from, unsigned size, unsigned bytes) {
    __pipeline_memcpy_async((void *)to, (const void *)from, size, bytes < size ? size - bytes : 0);
}

// ---- barriers and warps ----

// A barrier of a number of threads, which bar.arrive does not wait for
struct Named {
    uint64_t block;
    unsigned arrived, phase;
};
inline __thread Named named[16];
inline Named &bar_arrive(unsigned n, unsigned threads) {
    Named &it = named[n % 16];
    if (it.block != block_number)
        it = {block_number, 0, 0};
    if (__atomic_add_fetch(&it.arrived, 1, __ATOMIC_SEQ_CST) == threads) { // which the race detector follows
        it.arrived = 0;
        __atomic_add_fetch(&it.phase, 1, __ATOMIC_SEQ_CST);
    }
    return it;
}
inline void bar_sync(unsigned n, unsigned threads, CUDA_CPU_SITE) {
    if (threads == ~0u)
        return __syncthreads(cu_file, cu_line);
    const unsigned phase = named[n % 16].block == block_number ? named[n % 16].phase : 0;
    unsigned *const now = &bar_arrive(n, threads).phase;
    while (__atomic_load_n(now, __ATOMIC_SEQ_CST) == phase)
        atomic_without_effect(now, phase, CUDA_CPU_HERE);
}

// shfl.sync: `limits` has the mask of the segment in bits 8 to 12, and the lane at its end in bits 0 to 4.
template <char way>
inline unsigned shuffle(unsigned x, unsigned by, unsigned limits, unsigned mask, bool *in_range,
                        CUDA_CPU_SITE) {
    const unsigned segment = limits >> 8 & 31, first = lane() & segment,
                   last = first | (limits & 31 & ~segment);
    by &= 31;
    unsigned from = way == 'u'   ? lane() - by
                    : way == 'd' ? lane() + by
                    : way == 'b' ? lane() ^ by
                                 : first | (by & ~segment);
    const bool inside = way == 'u' ? (int)from >= (int)last : from <= last;
    if (in_range)
        *in_range = inside;
    return __shfl_sync(mask, x, inside ? (int)from : (int)lane(), 32, cu_file, cu_line);
}

// The part of a matrix that is in the registers of one lane
struct Registers {
    unsigned x[4];
    template <class T> T &part(int i) { return ((T *)x)[i]; }
};

// ldmatrix: 8 lanes have the addresses of the rows of a matrix of 8 x 8 numbers of 16 bits.
__forceinline__ Registers load_matrix(int count, bool transposed, unsigned long long row, CUDA_CPU_SITE) {
    struct Lane {
        Registers *to;
        const uint16_t *row;
    };
    Registers mine{};
    once_for_warp(
        Lane{&mine, (const uint16_t *)row},
        [=](const Lane *const *lanes) __attribute__((always_inline)) {
            for (int i = 0; i < 64 * count; ++i) { // each lane gets two of a row, or transposed of a column
                const int at = i % 8, other = i / 8 % 8;
                lanes[other * 4 + at / 2]->to->part<uint16_t>(i / 64 * 2 + at % 2) =
                    lanes[i / 64 * 8 + (transposed ? at : other)]->row[transposed ? other : at];
            }
        },
        CUDA_CPU_HERE);
    return mine;
}

// mma: a product of 16 x k and k x 8 elements of type E, added to sums of type S
struct Product {
    Registers a, b, c;
};
inline float factor(float x) { // TensorFloat-32
    return bits_as<float>(bits_as<uint32_t>(x) & 0xffffe000);
}
template <class E> inline auto factor(E x) {
    return value_of(x);
}
template <class E, class S, int k>
CUDA_CPU_UNRECORDED inline __attribute__((noinline)) void multiply(Product *const *const *lanes,
                                                                   bool limited) {
    constexpr int n = 4 / sizeof(E); // elements in a register; four lanes in a row have adjacent ones
    decltype(factor(E())) a[16][k], b[8][k];
    for (int l = 0; l < k; ++l)
        for (int i = 0; i < 16; ++i) {
            Product &its = **lanes[i % 8 * 4 + l / n % 4];
            a[i][l] = factor(its.a.part<E>((l / (4 * n) * 2 + i / 8) * n + l % n));
            b[i % 8][l] = factor(its.b.part<E>(l / (4 * n) * n + l % n));
        }
    for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 8; ++j) {
            S &c = (*lanes[i % 8 * 4 + j / 2])->c.template part<S>(i / 8 * 2 + j % 2);
            std::conditional_t<std::is_integral_v<S>, long long, float> sum = value_of(c);
            for (int l = 0; l < k; ++l)
                sum += a[i][l] * b[j][l];
            if constexpr (std::is_integral_v<S>)
                c = (S)(limited ? saturate<int>((double)sum) : sum);
            else
                round_to(c, sum, Rounding::nearest);
        }
}
template <class E, class S, int k>
__forceinline__ Registers mma(Registers a, Registers b, Registers c, bool limited, CUDA_CPU_SITE) {
    Product mine{a, b, c}, *const pointer = &mine;
    once_for_warp(
        pointer, [=](Product *const *const *lanes) { multiply<E, S, k>(lanes, limited); }, CUDA_CPU_HERE);
    return mine.c;
}
} // namespace ptx
} // namespace cuda_cpu

#include "letters_on.h"
