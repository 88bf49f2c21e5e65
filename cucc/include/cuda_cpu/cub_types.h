// SPDX-License-Identifier: MIT
// CUB: types, operators and iterators. Included by cub/cub.cuh.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <type_traits>
#include "cuda_fp16.h"
#include "cuda_bf16.h"
#include "letters_off.h"

#define CUB_VERSION   300000 // the version in CUDA 13.0
#define CUB_MIN(a, b) ((a) < (b) ? (a) : (b))
#define CUB_MAX(a, b) ((a) > (b) ? (a) : (b))
#define CUB_RUNTIME_FUNCTION
#define CUB_QUOTIENT_FLOOR(x, y)   ((x) / (y))
#define CUB_QUOTIENT_CEILING(x, y) (((x) + (y)-1) / (y))
#define CUB_ROUND_UP_NEAREST(x, y) (CUB_QUOTIENT_CEILING(x, y) * (y))
#define CubDebug(e)                ::cub::Debug((cudaError_t)(e), __FILE__, __LINE__)
#define CubDebugExit(e)                                                                                      \
    if (::cub::Debug((cudaError_t)(e), __FILE__, __LINE__))                                                  \
    ::std::exit(1)

namespace cub {

inline cudaError_t Debug(cudaError_t error, const char *file, int line) {
    if (error)
        ::std::fprintf(stderr, "CUDA error %d [%s, %d]: %s\n", (int)error, file, line,
                       cudaGetErrorString(error));
    return error;
}

struct NullType {
    template <class T> NullType &operator=(const T &) { return *this; }
    bool operator==(const NullType &) const { return true; }
    bool operator!=(const NullType &) const { return false; }
};

template <class Key_, class Value_> struct KeyValuePair {
    typedef Key_ Key;
    typedef Value_ Value;
    Key key;
    Value value;
    bool operator==(const KeyValuePair &b) const { return key == b.key && value == b.value; }
    bool operator!=(const KeyValuePair &b) const { return !(*this == b); }
};

// Two arrays, one of which holds the current data.
template <class T> struct DoubleBuffer {
    T *d_buffers[2];
    int selector = 0;
    DoubleBuffer() : d_buffers{nullptr, nullptr} {}
    DoubleBuffer(T *current, T *alternate) : d_buffers{current, alternate} {}
    T *Current() const { return d_buffers[selector]; }
    T *Alternate() const { return d_buffers[selector ^ 1]; }
};

// ---- operators ----

#define CUDA_CPU_CUB_OPERATION(Name, Result, expression)                                                     \
    struct Name {                                                                                            \
        template <class T, class U> Result operator()(const T &a, const U &b) const { return expression; }   \
    };
CUDA_CPU_CUB_OPERATION(Sum, auto, a + b)
CUDA_CPU_CUB_OPERATION(Difference, auto, a - b)
CUDA_CPU_CUB_OPERATION(Division, auto, a / b)
#define CUDA_CPU_CUB_COMMON std::common_type_t<T, U>
CUDA_CPU_CUB_OPERATION(Max, CUDA_CPU_CUB_COMMON, a < b ? b : a)
CUDA_CPU_CUB_OPERATION(Min, CUDA_CPU_CUB_COMMON, b < a ? b : a)
CUDA_CPU_CUB_OPERATION(Equality, bool, a == b)
CUDA_CPU_CUB_OPERATION(Inequality, bool, a != b)
// If values are equal, the smaller key is chosen.
#define CUDA_CPU_CUB_ARG(Name, chosen, other)                                                                \
    struct Name {                                                                                            \
        template <class Pair> Pair operator()(const Pair &a, const Pair &b) const {                          \
            return chosen.value < other.value || (a.value == b.value && b.key < a.key) ? b : a;              \
        }                                                                                                    \
    };
CUDA_CPU_CUB_ARG(ArgMax, a, b)
CUDA_CPU_CUB_ARG(ArgMin, b, a)

// ---- the order of keys by their bits ----

// TwiddleIn converts the bits of a key to an unsigned number, so that the numbers have the order of the keys.
template <class T> struct Traits {
    typedef std::conditional_t<
        sizeof(T) == 1, unsigned char,
        std::conditional_t<sizeof(T) == 2, unsigned short,
                           std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>>>
        UnsignedBits;
    static constexpr bool FLOATING =
        std::is_floating_point_v<T> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
    static constexpr bool PRIMITIVE = std::is_arithmetic_v<T> || FLOATING;
    static_assert(PRIMITIVE || !sizeof(T),
                  "CUB on the CPU back end sorts by the bits of arithmetic types only");
    static constexpr UnsignedBits HIGH_BIT = UnsignedBits(1) << (8 * sizeof(T) - 1);
    static UnsignedBits TwiddleIn(UnsignedBits key) {
        if (FLOATING)
            return key & HIGH_BIT ? ~key : key ^ HIGH_BIT;
        return std::is_signed_v<T> ? key ^ HIGH_BIT : key;
    }
    static UnsignedBits TwiddleOut(UnsignedBits key) {
        if (FLOATING)
            return key & HIGH_BIT ? key ^ HIGH_BIT : ~key;
        return std::is_signed_v<T> ? key ^ HIGH_BIT : key;
    }
    static T Max() { return FLOATING ? limit(1) : std::numeric_limits<T>::max(); }
    static T Lowest() { return FLOATING ? limit(-1) : std::numeric_limits<T>::lowest(); }

  private:
    static T limit(int sign) {
        if constexpr (std::is_floating_point_v<T>)
            return sign * std::numeric_limits<T>::max();
        else
            return T(sign * (std::is_same_v<T, __half> ? 65504.0f : 3.38953139e38f));
    }
};
template <class T> struct NumericTraits : Traits<T> {};

// Bits begin to end - 1 of the converted key. Both zeros give the same number, as in CUB.
template <class T> typename Traits<T>::UnsignedBits cu_digits(const T &key, int begin, int end) {
    typedef Traits<T> As;
    typename As::UnsignedBits bits;
    static_assert(sizeof bits == sizeof key);
    __builtin_memcpy(&bits, &key, sizeof bits);
    if (As::FLOATING && bits == As::HIGH_BIT)
        bits = 0;
    bits = As::TwiddleIn(bits);
    constexpr int all = 8 * sizeof bits;
    bits >>= begin;
    return end - begin < all ? bits & ((typename As::UnsignedBits(1) << (end - begin)) - 1) : bits;
}
// Compares keys by their bits begin to end - 1.
template <class K> struct cu_by_bits {
    int begin, end;
    bool up;
    bool operator()(const K &a, const K &b) const {
        return up ? cu_digits(a, begin, end) < cu_digits(b, begin, end)
                  : cu_digits(b, begin, end) < cu_digits(a, begin, end);
    }
};

// ---- loads, stores and iterators ----

enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };

template <CacheLoadModifier = LOAD_DEFAULT, class It> auto ThreadLoad(It it) {
    typename std::iterator_traits<It>::value_type value = *it;
    return value;
}
template <CacheStoreModifier = STORE_DEFAULT, class It, class T> void ThreadStore(It it, T value) {
    *it = value;
}
template <class T, int N, class Op> T ThreadReduce(T (&items)[N], Op op) {
    T all = items[0];
    for (int i = 1; i < N; ++i)
        all = op(all, items[i]);
    return all;
}
template <class T, int N, class Op> T ThreadReduce(T (&items)[N], Op op, T all) {
    for (int i = 0; i < N; ++i)
        all = op(all, items[i]);
    return all;
}

// Base class of random-access iterators. Self has the position `at` and the function value(i).
template <class Self, class T, class Offset> struct cu_iterator {
    typedef T value_type;
    typedef Offset difference_type;
    typedef T *pointer;
    typedef T reference;
    typedef std::random_access_iterator_tag iterator_category;
    Offset at;

    explicit cu_iterator(Offset a = 0) : at(a) {}
    const Self &self() const { return static_cast<const Self &>(*this); }
    Self moved(Offset n) const {
        Self other = self();
        other.at += n;
        return other;
    }
    T operator*() const { return self().value(at); }
    template <class N> T operator[](N n) const { return self().value(at + (Offset)n); }
    template <class N> Self operator+(N n) const { return moved((Offset)n); }
    template <class N> Self operator-(N n) const { return moved(-(Offset)n); }
    Offset operator-(const Self &b) const { return at - b.at; }
    template <class N> Self &operator+=(N n) { return at += (Offset)n, static_cast<Self &>(*this); }
    template <class N> Self &operator-=(N n) { return at -= (Offset)n, static_cast<Self &>(*this); }
    Self &operator++() { return ++at, static_cast<Self &>(*this); }
    Self operator++(int) { return ++at, moved(-1); }
    Self &operator--() { return --at, static_cast<Self &>(*this); }
    bool operator==(const Self &b) const { return at == b.at; }
    bool operator!=(const Self &b) const { return at != b.at; }
    bool operator<(const Self &b) const { return at < b.at; }
};

template <class T, class Offset = std::ptrdiff_t>
struct CountingInputIterator : cu_iterator<CountingInputIterator<T, Offset>, T, Offset> {
    T first;
    explicit CountingInputIterator(const T &f) : first(f) {}
    T value(Offset i) const { return T(first + i); }
};
template <class T, class Offset = std::ptrdiff_t>
struct ConstantInputIterator : cu_iterator<ConstantInputIterator<T, Offset>, T, Offset> {
    T same;
    explicit ConstantInputIterator(const T &s, Offset = 0) : same(s) {}
    T value(Offset) const { return same; }
};
template <class T, class Op, class It, class Offset = std::ptrdiff_t>
struct TransformInputIterator : cu_iterator<TransformInputIterator<T, Op, It, Offset>, T, Offset> {
    It it;
    mutable Op op;
    TransformInputIterator(It i, Op o) : it(i), op(o) {}
    T value(Offset i) const { return op(it[i]); }
};
template <class Offset = std::ptrdiff_t> struct DiscardOutputIterator {
    struct Nothing {
        template <class T> const Nothing &operator=(const T &) const { return *this; }
    };
    typedef void value_type;
    typedef Offset difference_type;
    typedef void pointer;
    typedef Nothing reference;
    typedef std::random_access_iterator_tag iterator_category;
    explicit DiscardOutputIterator(Offset = 0) {}
    Nothing operator*() const { return {}; }
    template <class N> Nothing operator[](N) const { return {}; }
    template <class N> DiscardOutputIterator operator+(N) const { return *this; }
    DiscardOutputIterator &operator++() { return *this; }
    DiscardOutputIterator operator++(int) { return *this; }
};

// Allocates with cudaMalloc and caches nothing.
struct CachingDeviceAllocator {
    static constexpr int INVALID_DEVICE_ORDINAL = -1;
    template <class... A> CachingDeviceAllocator(A...) {}
    template <class T> cudaError_t DeviceAllocate(T **p, size_t bytes, cudaStream_t = nullptr) {
        return cudaMalloc((void **)p, bytes);
    }
    template <class T> cudaError_t DeviceAllocate(int device, T **p, size_t bytes, cudaStream_t = nullptr) {
        int before;
        cudaGetDevice(&before);
        cudaError_t error = cudaSetDevice(device);
        if (!error)
            error = cudaMalloc((void **)p, bytes);
        cudaSetDevice(before);
        return error;
    }
    cudaError_t DeviceFree(void *p) { return cudaFree(p); }
    cudaError_t DeviceFree(int, void *p) { return cudaFree(p); }
    cudaError_t FreeAllCached() { return cudaSuccess; }
};

} // namespace cub

#include "letters_on.h"
