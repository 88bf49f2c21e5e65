// SPDX-License-Identifier: MIT
/*
 * What a device function returns for many inputs, as one line of text for each
 * function. generate.py writes the sources that include this file; nvcc and
 * cucc compile them. A line has the name, 16 hashes, one for each sixteenth of
 * the inputs (the first ones are special values), and for a function that may
 * have an error the largest one in ulp, what CUDA documents, and the number of
 * results that are outside of that.
 *
 * program             prints a line for each function
 * program NAME…       prints inputs and results of these functions
 */
#pragma once

#include "exact.h"
#include <cmath>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <vector>

typedef signed char schar;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;
typedef long long llong;
typedef unsigned long long ullong;
typedef __nv_bfloat16 bfloat16;
typedef __nv_bfloat162 bfloat162;
enum { ARGUMENTS = 4, SPECIAL = 40, GROUPS = 16, THREADS = 64, COMPONENTS = 8 };

// ---- formats, and rounding to them ----

template <class T> struct Format {
    enum { exponent = 0, fraction = 0, components = 1 };
    typedef T Component;
};
#define FORMAT(T, C, n, e, f)                                                                                \
    template <> struct Format<T> {                                                                           \
        enum { exponent = e, fraction = f, components = n };                                                 \
        typedef C Component;                                                                                 \
    };
FORMAT(float, float, 1, 8, 23)
FORMAT(float2, float, 2, 8, 23)
FORMAT(float4, float, 4, 8, 23)
FORMAT(double, double, 1, 11, 52)
FORMAT(__half, __half, 1, 5, 10)
FORMAT(__half2, __half, 2, 5, 10)
FORMAT(__nv_bfloat16, __nv_bfloat16, 1, 8, 7)
FORMAT(__nv_bfloat162, __nv_bfloat16, 2, 8, 7)

// The value that an atomic returns and the value that it stores, in global and in shared memory
template <class T> struct Changed { T old[2], number[2]; };
template <class T> struct Format<Changed<T>> : Format<T> {
    enum { components = 4 * Format<T>::components };
};

template <class T> static uint64_t bits_of(const T &value) {
    uint64_t bits = 0;
    memcpy(&bits, (const void *)&value, sizeof value);
    return bits;
}

// ---- inputs ----

struct Inputs {
    const float *f[ARGUMENTS];
    const double *d[ARGUMENTS];
    const uint32_t *u[ARGUMENTS];
    const unsigned long long *m[ARGUMENTS];
    const uint16_t *h[ARGUMENTS], *b[ARGUMENTS]; // of half and bfloat16
    cudaTextureObject_t texture;
};
// A signalling NaN, which the C library does not take for a NaN in every
// function
static bool is_signalling(int i) {
    return i < SPECIAL * SPECIAL && (i % (SPECIAL / 2) == 7 || i / SPECIAL % (SPECIAL / 2) == 7);
}

static uint64_t state = 57; // the seed
static uint64_t random_bits() {
    uint64_t x = state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// Of the arguments of a function the first inputs have all pairs of these.
static std::vector<uint64_t> special_numbers(int exponent_bits, int fraction_bits) {
    const uint64_t infinity = ((1ull << exponent_bits) - 1) << fraction_bits, one = 1ull << fraction_bits;
    std::vector<uint64_t> all = {0,           1, one - 1, one, infinity - 1, infinity, infinity + one / 2,
                                 infinity + 1};
    for (double x : {0.5, 1.0, 1.5, 2.5, 3.0, 8.0, 127.5, 255.5, 32768.0, 65535.5, 0x1p31, 0x1p63})
        all.push_back(rounded(x, exponent_bits, fraction_bits));
    for (int i = 0; i < SPECIAL / 2; i++)
        all.push_back(all[i] | 1ull << (exponent_bits + fraction_bits));
    return all;
}

// Random bits, numbers near 1, multiples of one half, and numbers next to the
// first argument
static uint64_t a_number(int exponent_bits, int fraction_bits, uint64_t first) {
    const uint64_t bits = random_bits(), mask = (1ull << fraction_bits) - 1;
    const int bias = (1 << (exponent_bits - 1)) - 1, low = (int)(bits >> 58) - 36;
    const uint64_t sign = (bits >> 57 & 1) << (exponent_bits + fraction_bits);
    switch (bits >> 54 & 3) {
    case 0:
        return bits << 11 >> (63 - exponent_bits - fraction_bits);
    case 1:
        return first != ~0ull ? first + (bits & 7) - 3
                              : sign | rounded((bits >> 20 & 511) / 2.0, exponent_bits, fraction_bits);
    default:
        return sign | (uint64_t)std::max(bias + std::max(low, -24) / 2, 1) << fraction_bits | (bits & mask);
    }
}

static std::vector<uint64_t> special_words(int size) {
    const uint64_t top = 1ull << (size - 1);
    std::vector<uint64_t> all = {
        0,        1,         2,          7,          31,         32,         33,      63,    64,
        127,      128,       255,        256,        32767,      32768,      65535,   65536, 0x7fffff,
        0x800000, 0x1000001, 0x80007fff, 0x7fff8000, 0x80ff7f00, 0x00800001, top - 1, top,   top + 1};
    while (all.size() < SPECIAL)
        all.push_back(0 - all[all.size() - 26]);
    return all;
}

static uint64_t a_word(int size, uint64_t first) {
    const uint64_t bits = random_bits();
    switch (bits >> 60 & 3) {
    case 0: // few bits
        return (random_bits() | 1ull << 63) >> (64 - 1 - bits % size);
    case 1: // in part equal to the first argument
        return first == ~0ull ? bits : first ^ (0xff80ff01ull << (bits % 5 * 8) & random_bits());
    default:
        return bits;
    }
}

template <class T, class Special, class Other>
static void fill(const T *(&list)[ARGUMENTS], bool all_of_16_bits, Special special, Other other) {
    T *values[ARGUMENTS];
    for (int j = 0; j < ARGUMENTS; j++) {
        cudaMallocManaged(&values[j], (INPUTS) * sizeof(T));
        list[j] = values[j];
    }
    for (int i = 0; i < INPUTS; i++) {
        const int which[] = {i % SPECIAL, i / SPECIAL % SPECIAL, (i + i / SPECIAL * 3) % SPECIAL,
                             (i * 7 + 1) % SPECIAL};
        uint64_t first = ~0ull;
        for (int j = 0; j < ARGUMENTS; j++) {
            uint64_t bits = i < SPECIAL * SPECIAL ? special[which[j]] : other(first);
            if (all_of_16_bits && j == 0)
                bits = i;
            first = j == 0 ? bits : first;
            memcpy((void *)&values[j][i], &bits, sizeof(T));
        }
    }
}

static Inputs make_inputs() {
    Inputs in = {};
    const auto numbers = [](auto &list, int exponent_bits, int fraction_bits) {
        fill(list, exponent_bits + fraction_bits == 15 && INPUTS == 65536,
             special_numbers(exponent_bits, fraction_bits),
             [=](uint64_t first) { return a_number(exponent_bits, fraction_bits, first); });
    };
    const auto words = [](auto &list, int size) {
        fill(list, false, special_words(size), [=](uint64_t first) { return a_word(size, first); });
    };
    numbers(in.f, 8, 23), numbers(in.d, 11, 52), numbers(in.h, 5, 10), numbers(in.b, 8, 7);
    words(in.u, 32), words(in.m, 64);
    return in;
}

// ---- functions ----

// Functions of an array
#define NORM(T, f)                                                                                           \
    __device__ inline T f##_of(T a, T b, T c) {                                                              \
        const T all[] = {a, b, c};                                                                           \
        return f(3, all);                                                                                    \
    }
NORM(float, normf)
NORM(float, rnormf)
NORM(double, norm)
NORM(double, rnorm)

static Real real(__half2 x) {
    return __low2float(x);
}
static Real real(__nv_bfloat162 x) {
    return __low2float(x);
}
template <class T> static Real real(T x) {
    if constexpr (sizeof(T) == 2 && Format<T>::exponent != 0)
        return (float)x;
    else
        return (Real)x;
}

struct Function {
    const char *name;
    Function(const char *name) : name(name) { all().push_back(this); }
    static std::vector<Function *> &all() {
        static std::vector<Function *> functions;
        return functions;
    }
    virtual void report(Inputs in, bool values) const = 0;
};

struct Documented { // the error of a function
    const char *text;
    Real (*reference)(Real x, Real y, Real z, Real t);
    Real (*limit)(Real x, Real y, Real z, Real t, Real exact, Real ulp); // in ulp
};

// The components of a result; all NaNs are one.
template <class R> static void components(const R &result, uint64_t *bits) {
    typedef Format<R> Is;
    typedef typename Is::Component C;
    if constexpr (Is::exponent == 0) {
        memset(bits, 0, COMPONENTS * sizeof *bits);
        memcpy(bits, (const void *)&result, sizeof(R));
        return;
    }
    for (int c = 0; c < Is::components; c++) {
        C value;
        memcpy((void *)&value, (const char *)&result + c * sizeof(C), sizeof value);
        const uint64_t infinity = ((1ull << Is::exponent) - 1) << Is::fraction,
                       sign = 1ull << (Is::exponent + Is::fraction);
        bits[c] = bits_of(value);
        if ((bits[c] & (sign - 1)) > infinity)
            bits[c] = infinity + 1;
    }
}

template <class R> struct Recorded : Function {
    typedef void (*Kernel)(Inputs, R *);
    typedef void (*Arguments)(const Inputs &in, int i, Real *list);
    Kernel kernel;
    Arguments arguments;
    Documented documented;
    cudaTextureObject_t (*texture)();
    Recorded(const char *name, Kernel kernel, Arguments arguments, Documented documented = {},
             cudaTextureObject_t (*texture)() = nullptr)
        : Function(name), kernel(kernel), arguments(arguments), documented(documented), texture(texture) {}

    // The distance between a result and the exact value, rounded, in ulp. A NaN
    // or the sign of a zero in the wrong place is infinitely far away.
    static Real error(uint64_t got, Real exact, Real &ulp) {
        const int fraction = Format<R>::fraction, exponent = Format<R>::exponent;
        const int least = 2 - (1 << (exponent - 1));
        const uint64_t wanted = rounded(exact, exponent, fraction), sign = 1ull << (exponent + fraction);
        const uint64_t nan = (((1ull << exponent) - 1) << fraction) + 1, a = got & (sign - 1),
                       b = wanted & (sign - 1);
        ulp = ldexpl(
            1, std::min(exact == 0 || exact != exact ? least : std::max(ilogbl(exact), least), -least + 1) -
                   fraction);
        if (got == wanted)
            return 0;
        if (a == nan || b == nan || (a | b) == 0)
            return INFINITY;
        const auto value = [=](uint64_t bits) { // infinity is the number after the largest
            const int e = (int)(bits >> fraction);
            return ldexpl((bits & ((1ull << fraction) - 1)) + (e ? 1ull << fraction : 0),
                          std::max(e, 1) - 1 + least - fraction);
        };
        return ((got ^ wanted) & sign ? value(a) + value(b) : fabsl(value(a) - value(b))) / ulp;
    }

    void report(Inputs in, bool values) const override {
        in.texture = texture ? texture() : 0;
        static R *results;
        if (!results)
            cudaMallocManaged(&results, INPUTS * sizeof(R));
        memset((void *)results, 0, INPUTS * sizeof(R));
        kernel<<<INPUTS / THREADS, THREADS>>>(in, results);
        if (const cudaError_t status = cudaDeviceSynchronize()) {
            fprintf(stderr, "%s: %s\n", name, cudaGetErrorString(status));
            exit(EXIT_FAILURE);
        }
        uint64_t hash[GROUPS];
        Real largest = 0;
        int outside = 0;
        for (int i = 0; i < INPUTS; i++) {
            uint64_t bits[COMPONENTS] = {}, &sum = hash[i / (INPUTS / GROUPS)];
            if (i % (INPUTS / GROUPS) == 0)
                sum = 0xcbf29ce484222325;
            components(results[i], bits);
            for (int k = 0; k < 8 * std::max(4, +Format<R>::components); k++) // FNV-1a
                sum = (sum ^ (bits[k / 8] >> k % 8 * 8 & 255)) * 0x100000001b3;
            Real a[ARGUMENTS] = {}, ulp = 0, exact = 0, off = 0;
            arguments(in, i, a);
            if constexpr (Format<R>::exponent != 0)
                if (documented.text && !is_signalling(i)) {
                    exact = documented.reference(a[0], a[1], a[2], a[3]);
                    off = error(bits[0], exact, ulp);
                    const Real limit = documented.limit(a[0], a[1], a[2], a[3], exact, ulp);
                    largest = std::isinf(limit) ? largest : std::max(largest, off);
                    if (off != 0 && !(off <= limit) && outside++ == 0 && !values)
                        fprintf(stderr,
                                "%s, input %d: (%.9Lg, %.9Lg, %.9Lg) gives 0x%llx, %.3Lg "
                                "ulp from %.17Lg\n",
                                name, i, a[0], a[1], a[2], (unsigned long long)bits[0], off, exact);
                }
            if (values)
                printf("%s %d: %.21Lg %.21Lg %.21Lg gives 0x%llx 0x%llx; exact %.21Lg, "
                       "error %Lg\n",
                       name, i, a[0], a[1], a[2], (unsigned long long)bits[0], (unsigned long long)bits[1],
                       exact, off);
        }
        if (values)
            return;
        printf("%s ", name);
        for (uint64_t sum : hash)
            printf("%04x", (unsigned)((sum ^ sum >> 16 ^ sum >> 32 ^ sum >> 48) & 0xffff));
        if (documented.text)
            printf(" %.4Lg %s %d", largest, documented.text, outside);
        printf("\n");
    }
};

namespace cg = cooperative_groups;
#define TILE(n)   cg::tiled_partition<n>(cg::this_thread_block())
#define PART(n)   cg::tiled_partition<n>(TILE(32))
#define COALESCED cg::coalesced_threads()

// A number of these bits
template <class T> __device__ inline T fp8(unsigned bits) {
    T x;
    memcpy((void *)&x, &bits, sizeof x);
    return x;
}

// R is the type of the result, `list` the statements that store the arguments
// as Real.
#define KERNEL(id, R, ...)                                                                                   \
    __global__ void kernel_##id(Inputs in, R *out) {                                                         \
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32,                   \
                       block = blockIdx.x;                                                                   \
        (void)lane, (void)block;                                                                             \
        __VA_ARGS__                                                                                          \
    }
#define RECORD(id, name, R, list, ...)                                                                       \
    static const Recorded<R> function_##id(                                                                  \
        name, kernel_##id,                                                                                   \
        [](const Inputs &in, int i, Real *a) {                                                               \
            (void)in, (void)i, (void)a;                                                                      \
            LIST list                                                                                        \
        },                                                                                                   \
        ##__VA_ARGS__);
#define LIST(...) __VA_ARGS__
#define FUNCTION(id, name, R, expression, list, ...)                                                         \
    KERNEL(id, R, float p, q; double r, s; int n; bool b, c;                                                 \
           (void)p, (void)q, (void)r, (void)s, (void)n, (void)b, (void)c; out[i] = expression;)              \
    RECORD(id, name, R, list, ##__VA_ARGS__)

#define ATOMIC(id, name, T, first, call, list)                                                               \
    KERNEL(id, Changed<T>, __shared__ T cells[THREADS]; T *p = &out[i].number[0]; *p = (T)first;             \
           out[i].old[0] = call; p = &cells[threadIdx.x]; *p = out[i].old[0]; out[i].old[1] = call;          \
           out[i].number[1] = *p;)                                                                           \
    RECORD(id, name, Changed<T>, list)
#define SUM(id, name, T, call, list)                                                                         \
    KERNEL(id, T, T *p = &out[block], *every = &out[256 + i % 8]; (void)p, (void)every; call;)               \
    RECORD(id, name, T, list)
#define DOCUMENTED(text, exact_value, most)                                                                  \
    {                                                                                                        \
        text,                                                                                                \
            [](Real x, Real y, Real z, Real t) -> Real {                                                     \
                return (void)x, (void)y, (void)z, (void)t, exact_value;                                      \
            },                                                                                               \
            [](Real x, Real y, Real z, Real t, Real exact, Real ulp) -> Real {                               \
                return (void)x, (void)y, (void)z, (void)t, (void)exact, (void)ulp, most;                     \
            }                                                                                                \
    }

int main(int argc, char **argv) {
    const Inputs in = make_inputs();
    for (const Function *f : Function::all()) {
        bool named = false;
        for (int k = 1; k < argc; k++)
            named |= strcmp(argv[k], f->name) == 0;
        if (argc == 1 || named)
            f->report(in, named);
    }
    return EXIT_SUCCESS;
}
