// SPDX-License-Identifier: MIT
// Half and bfloat16: conversions and functions of one argument for all 65536 numbers, arithmetic for random
// ones.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <limits>
#include "exact.h"

// What the two formats call the same things
#define FORMAT(Name, H, H2, word, word2, exponent_bits, fraction_bits)                                       \
    struct Name {                                                                                            \
        typedef H Number;                                                                                    \
        typedef H2 Pair;                                                                                     \
        enum { exponent = exponent_bits, fraction = fraction_bits };                                         \
        __host__ __device__ static H of(unsigned short x) { return __ushort_as_##word(x); }                  \
        __host__ __device__ static unsigned short raw(H x) { return __##word##_as_ushort(x); }               \
        __host__ __device__ static float value(H x) { return __##word##2float(x); }                          \
        __host__ __device__ static H2 pair(H x, H y) { return __halves2##word2(x, y); }                      \
        __host__ __device__ static H from_double(double x) { return __double2##word(x); }                    \
        __host__ __device__ static void from_float(float x, H *r) {                                          \
            r[0] = __float2##word##_rn(x), r[1] = __float2##word##_rz(x);                                    \
            r[2] = __float2##word##_ru(x), r[3] = __float2##word##_rd(x);                                    \
        }                                                                                                    \
        __device__ static void from_integer(long long x, H *r) {                                             \
            r[0] = __ll2##word##_rn(x), r[1] = __ll2##word##_rz(x);                                          \
            r[2] = __ll2##word##_ru(x), r[3] = __ll2##word##_rd(x);                                          \
            r[4] = __int2##word##_rn((int)x), r[5] = __uint2##word##_rz((unsigned)x);                        \
            r[6] = __ull2##word##_ru((unsigned long long)x), r[7] = __short2##word##_rd((short)x);           \
        }                                                                                                    \
        __device__ static void to_integer(H x, long long *r) {                                               \
            r[0] = __##word##2int_rn(x), r[1] = __##word##2int_rz(x), r[2] = __##word##2int_ru(x);           \
            r[3] = __##word##2int_rd(x), r[4] = __##word##2uint_rn(x), r[5] = __##word##2short_rz(x);        \
            r[6] = __##word##2ushort_ru(x), r[7] = __##word##2ll_rd(x);                                      \
            r[8] = (long long)__##word##2ull_rn(x), r[9] = __##word##2char_rz(x),                            \
            r[10] = __##word##2uchar_rz(x);                                                                  \
        }                                                                                                    \
    };
FORMAT(Half, __half, __half2, half, half2, 5, 10)
FORMAT(Bfloat, __nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162, 8, 7)

template <class F> static bool is_nan(unsigned x) {
    return std::isnan(value_of<F>(x));
}

// ---- one argument, all numbers ----

struct Unary {
    float value;
    long long integers[11];
    unsigned short neg, abs, rint, floor, ceil, trunc, sqrt, rcp, rsqrt, exp, exp2, exp10, log, log2, log10,
        sin, cos, tanh;
    bool nan, truth;
    int inf;
};

template <class F> __global__ void unary(Unary *out) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const typename F::Number x = F::of((unsigned short)i);
    Unary &r = out[i];
    r.value = F::value(x);
    F::to_integer(x, r.integers);
    r.neg = F::raw(-x), r.abs = F::raw(__habs(x)), r.rint = F::raw(hrint(x)), r.floor = F::raw(hfloor(x));
    r.ceil = F::raw(hceil(x)), r.trunc = F::raw(htrunc(x)), r.sqrt = F::raw(hsqrt(x)),
    r.rcp = F::raw(hrcp(x));
    r.rsqrt = F::raw(hrsqrt(x)), r.exp = F::raw(hexp(x)), r.exp2 = F::raw(hexp2(x)),
    r.exp10 = F::raw(hexp10(x));
    r.log = F::raw(hlog(x)), r.log2 = F::raw(hlog2(x)), r.log10 = F::raw(hlog10(x)), r.sin = F::raw(hsin(x));
    r.cos = F::raw(hcos(x)), r.tanh = F::raw(htanh(x));
    r.nan = __hisnan(x), r.inf = __hisinf(x), r.truth = (bool)x;
}

static long long limited(double x, double low, double high, bool wide) {
    if (std::isnan(x))
        return wide ? std::numeric_limits<long long>::min() : 0;
    return x <= low      ? (long long)low
           : x >= high   ? (high > 1e19   ? -1
                            : high > 9e18 ? std::numeric_limits<long long>::max()
                                          : (long long)high)
           : x >= 0x1p63 ? (long long)(unsigned long long)x
                         : (long long)x;
}

// Whether `got` is x rounded to nearest, or at most `distance` numbers from it.
template <class F> static bool close_to(unsigned got, double x, int distance) {
    if (std::isnan(x))
        return is_nan<F>(got);
    const unsigned want = std::isinf(x) ? (unsigned)F::raw(F::from_double(x))
                                        : rounded<F>([=](double y) { return (x > y) - (x < y); }, nearest);
    if (value_of<F>(got) == 0 && value_of<F>(want) == 0)
        return true;
    return (got ^ want) < 0x8000 && abs((int)got - (int)want) <= distance;
}

TEST_OF(functions_of_all_numbers, Half, Bfloat) {
    const std::vector<Unary> all = WRITTEN(Unary, 65536, unary<T><<<256, 256>>>(out));
    for (unsigned i = 0; i < 65536; i++) {
        const Unary &r = all[i];
        const double x = value_of<T>(i);
        // clang-format off
        const long long integers[] = {
            limited(nearbyint(x), INT32_MIN, INT32_MAX, false), limited(trunc(x), INT32_MIN, INT32_MAX, false),
            limited(ceil(x), INT32_MIN, INT32_MAX, false), limited(floor(x), INT32_MIN, INT32_MAX, false),
            limited(nearbyint(x), 0, UINT32_MAX, false), limited(trunc(x), INT16_MIN, INT16_MAX, false),
            limited(ceil(x), 0, UINT16_MAX, false), limited(floor(x), -0x1p63, 0x1p63, true),
            limited(nearbyint(x), 0, 0x1p64, true), limited(trunc(x), INT8_MIN, INT8_MAX, false),
            limited(trunc(x), 0, UINT8_MAX, false)};
        // clang-format on
        const bool good =
            (std::isnan(x) ? std::isnan(r.value) : r.value == x && std::signbit(r.value) == (i >> 15)) &&
            memcmp(r.integers, integers, sizeof integers) == 0 && r.nan == std::isnan(x) &&
            r.truth == (x != 0) && r.inf == (std::isinf(x) ? (x > 0 ? 1 : -1) : 0) &&
            (std::isnan(x) || (r.neg == (i ^ 0x8000) && r.abs == (i & 0x7fff))) &&
            close_to<T>(r.rint, nearbyint(x), 0) && close_to<T>(r.floor, floor(x), 0) &&
            close_to<T>(r.ceil, ceil(x), 0) && close_to<T>(r.trunc, trunc(x), 0) &&
            close_to<T>(r.sqrt, sqrt(x), 0) && close_to<T>(r.rcp, 1 / x, 1) &&
            close_to<T>(r.rsqrt, 1 / sqrt(x), 1) && close_to<T>(r.exp, exp(x), 1) &&
            close_to<T>(r.exp2, exp2(x), 1) && close_to<T>(r.exp10, pow(10, x), 1) &&
            close_to<T>(r.log, log(x), 1) && close_to<T>(r.log2, log2(x), 1) &&
            close_to<T>(r.log10, log10(x), 1) && close_to<T>(r.tanh, tanh(x), 1) &&
            (fabs(x) > 100 || (close_to<T>(r.sin, sin(x), 2) && close_to<T>(r.cos, cos(x), 2)));
        if (!EXPECT(good))
            fprintf(stderr, "functions of %g, 0x%04x\n", x, i);
    }
}

// ---- conversions ----

template <class F>
__global__ void convert(const float *in, const long long *integers, unsigned short *out, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
        return;
    typename F::Number r[12];
    F::from_float(in[i], r);
    F::from_integer(integers[i], r + 4);
    for (int j = 0; j < 12; j++)
        out[12 * i + j] = F::raw(r[j]);
}

TEST_OF(conversions, Half, Bfloat) {
    constexpr int n = 4 * 65536;
    std::vector<float> in(n);
    std::vector<long long> integers(n);
    for (unsigned i = 0; i < n / 4; i++) { // every number, the middle after it, and that middle's neighbours
        const unsigned next = (i & 0x7fff) == 0x7fff ? i : i + 1;
        const float x = (float)value_of<T>(i), middle = (float)((value_of<T>(i) + value_of<T>(next)) / 2);
        in[4 * i] = x, in[4 * i + 1] = middle;
        in[4 * i + 2] = nextafterf(middle, INFINITY), in[4 * i + 3] = nextafterf(middle, -INFINITY);
    }
    for (int i = 0; i < n; i++) {
        if (i % 5 == 0) {
            const unsigned bits = engine()();
            memcpy(&in[i], &bits, 4);
        }
        integers[i] = (long long)((uint64_t)engine()() << 32 | engine()()) >> (engine()() % 64);
        if (i % 16 == 0) // large, and half of a step of bfloat16, or one more or less
            integers[i] = ((long long)(engine()() % 512) << 54) + pick(-1, 1);
    }
    const Device<float> device_in(in);
    const Device<long long> device_integers(integers);
    const auto all = WRITTEN(unsigned short, 12 * n,
                             convert<T><<<n / 256, 256>>>(device_in.data, device_integers.data, out, n));
    for (int i = 0; i < n; i++) {
        const unsigned short *r = &all[12 * i];
        const float x = in[i];
        bool good = true;
        for (int mode = 0; mode < 4; mode++) {
            if (std::isnan(x))
                good &= r[mode] == 0x7fff;
            else if (std::isinf(x))
                good &= value_of<T>(r[mode]) == x;
            else
                good &= r[mode] == (rounded<T>([=](double y) { return (x > y) - (x < y); }, mode) |
                                    (std::signbit(x) ? 0x8000u : 0u));
        }
        const long long k = integers[i];
        // clang-format off
        const Wide values[] = {
            (Wide)k, (Wide)k, (Wide)k, (Wide)k, (Wide)(int)k, (Wide)(unsigned)k, (Wide)(unsigned long long)k,
            (Wide)(short)k};
        // clang-format on
        const int modes[] = {nearest, zero, up, down, nearest, zero, up, down};
        if (i % 8 == 0)
            for (int j = 0; j < 8; j++)
                good &= r[4 + j] == rounded<T>([&](Wide y) { return sign(values[j] - y); }, modes[j]);
        if (!EXPECT(good))
            fprintf(stderr, "%a: %04x %04x %04x %04x; %lld: %04x %04x %04x %04x, %04x %04x %04x %04x\n", x,
                    r[0], r[1], r[2], r[3], k, r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11]);
    }
}

// ---- arithmetic ----

enum { n_results = 16 };

template <class F>
__global__ void arithmetic(const unsigned short *in, unsigned short *out, unsigned *relations, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
        return;
    typedef typename F::Number H;
    const H a = F::of(in[3 * i]), b = F::of(in[3 * i + 1]), c = F::of(in[3 * i + 2]);
    H fresh = a, product = a;
    fresh += b, product *= b;
    // clang-format off
    const H r[n_results] = {
        a + b, a - b, a * b, a / b, __hfma(a, b, c), __hmax(a, b), __hmin(a, b), __hmax_nan(a, b),
        __hmin_nan(a, b), __hadd_sat(a, b), __hfma_relu(a, b, c), __hfma_sat(a, b, c),
        __hadd2(F::pair(b, a), F::pair(a, b)).x, __hfma2(F::pair(b, a), F::pair(a, b), F::pair(b, c)).y,
        fresh, product};
    for (int j = 0; j < n_results; j++)
        out[n_results * i + j] = F::raw(r[j]);
    const typename F::Pair p = F::pair(a, b), q = F::pair(b, b);
    const bool all[] = {
        a == b, a != b, a < b, a <= b, a > b, a >= b, __hne(a, b), __hequ(a, b), __hltu(a, b), __hleu(a, b),
        __hgtu(a, b), __hgeu(a, b), __hbeq2(p, q), __hbltu2(p, q), (bool)(__heq2_mask(p, q) & 0xffff),
        F::value(__hlt2(p, q).x) == 1};
    // clang-format on
    unsigned bits = 0;
    for (int j = 0; j < 16; j++)
        bits |= (unsigned)all[j] << j;
    relations[i] = bits;
}

TEST_OF(arithmetic_is_correctly_rounded, Half, Bfloat) {
    constexpr int n = 20000;
    // clang-format off
    const unsigned short special[] = {
        0, 0x8000, 1, 0x8001, T::raw(T::from_double(1)), T::raw(T::from_double(INFINITY)),
        T::raw(T::from_double(-INFINITY)), 0x7fff};
    // clang-format on
    std::vector<unsigned short> in(3 * n);
    for (int i = 0; i < n; i++) {
        const unsigned base = engine()();
        for (int j = 0; j < 3;
             j++) { // random bits, or numbers of a similar size, so that ties and small differences occur
            const unsigned bits = engine()();
            in[3 * i + j] = (unsigned short)(i % 2 ? bits : (base ^ (bits & 0x83ff)) + (j == 2 ? 0x100 : 0));
            if (bits >> 28 == 0)
                in[3 * i + j] = special[bits >> 8 & 7];
        }
    }
    const Device<unsigned short> device_in(in), device_out(n_results * n);
    const Device<unsigned> device_relations(n);
    arithmetic<T><<<(n + 127) / 128, 128>>>(device_in.data, device_out.data, device_relations.data, n);
    const std::vector<unsigned short> out = device_out.host();
    const std::vector<unsigned> relations = device_relations.host();
    for (int i = 0; i < n; i++) {
        const double a = value_of<T>(in[3 * i]), b = value_of<T>(in[3 * i + 1]),
                     c = value_of<T>(in[3 * i + 2]);
        const unsigned short *r = &out[n_results * i];
        bool good = true;
        const auto check = [&](int j, double plain,
                               auto compare) { // plain: in double, for NaN and infinite operands
            if (std::isnan(plain))
                good &= is_nan<T>(r[j]);
            else if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c) || std::isinf(plain))
                good &= value_of<T>(r[j]) == (double)T::value(T::from_double(plain));
            else
                good &= value_of<T>(r[j]) == value_of<T>(rounded<T>(compare, nearest));
        };
        const auto sum = [=](Wide x) { return compare_sum(a, b, x); };
        const auto product = [=](Wide x) { return sign((Wide)a * b - x); };
        const auto fused = [=](Wide x) { return compare_sum((Wide)a * b, c, x); };
        check(0, a + b, sum), check(12, a + b, sum), check(14, a + b, sum);
        check(1, a - b, [=](Wide x) { return compare_sum(a, -b, x); });
        check(2, a * b, product), check(15, a * b, product);
        check(3, a / b, [=](Wide x) { return sign(a - x * b) * sign(b); });
        check(4, fma(a, b, c), fused), check(13, fma(a, b, c), fused);
        const auto same = [&](int j, double want) {
            good &= std::isnan(want)
                        ? r[j] == 0x7fff
                        : value_of<T>(r[j]) == want && std::signbit(value_of<T>(r[j])) == std::signbit(want);
        };
        const double larger = a == b ? (std::signbit(a) ? b : a) : fmax(a, b),
                     smaller = a == b ? (std::signbit(a) ? a : b) : fmin(a, b);
        const bool nan = std::isnan(a) || std::isnan(b);
        same(5, larger), same(6, smaller), same(7, nan ? NAN : larger), same(8, nan ? NAN : smaller);
        const auto limited_to_1 = [](double x) { return x > 0 ? fmin(x, 1) : 0; };
        good &= value_of<T>(r[9]) == limited_to_1(value_of<T>(r[0])) &&
                value_of<T>(r[11]) == limited_to_1(value_of<T>(r[4]));
        good &= is_nan<T>(r[4]) ? r[10] == 0x7fff : value_of<T>(r[10]) == fmax(value_of<T>(r[4]), 0);
        const bool all[] = {a == b,         a != b,        a<b, a <= b, a> b, a >= b,
                            a < b || a > b, a == b || nan, a < b || nan,      a <= b || nan,
                            a > b || nan,   a >= b || nan, a == b && b == b,  false,
                            a == b,         a < b};
        for (int j = 0; j < 16; j++)
            good &= j == 13 || (relations[i] >> j & 1) == all[j];
        if (!EXPECT(good))
            fprintf(stderr, "%g, %g, %g: sum %g, product %g, quotient %g, fused %g, max %g, relations %04x\n",
                    a, b, c, value_of<T>(r[0]), value_of<T>(r[2]), value_of<T>(r[3]), value_of<T>(r[4]),
                    value_of<T>(r[5]), relations[i]);
    }
}

// ---- warps, atomics, and what programs write ----

template <class F>
__global__ void together(const typename F::Number *in, typename F::Number *sum, typename F::Pair *pairs,
                         float *out) {
    typedef typename F::Number H;
    H x = __ldg(&in[threadIdx.x]);
    const typename F::Pair p = __shfl_xor_sync(~0u, F::pair(x, -x), 1);
    for (int i = 16; i > 0; i /= 2)
        x += __shfl_down_sync(~0u, x, i);
    const H total = __shfl_sync(~0u, x, 0);
    atomicAdd(sum, in[threadIdx.x]);
    atomicAdd(pairs, p);
    if (threadIdx.x == 0)
        out[0] = F::value(total), out[1] = __low2float(p), out[2] = __high2float(p);
}

TEST_OF(warps_and_atomics, Half, Bfloat) {
    typedef typename T::Number H;
    typedef typename T::Pair H2;
    const auto numbers = made(32, [](int i) { return H((float)(i % 4 + 1)); }); // exact sums, up to 80
    const Device<H> in(numbers), sum(std::vector<H>{H(0.0f)});
    const Device<H2> pairs(std::vector<H2>{H2(H(0.0f), H(1.0f))});
    EXPECT(WRITTEN(float, 3, together<T><<<1, 32>>>(in.data, sum.data, pairs.data, out)) ==
           (std::vector<float>{80, 2, -2}));
    EXPECT((float)sum.host()[0] == 80);
    EXPECT((float)pairs.host()[0].x == 80 && (float)pairs.host()[0].y == -79);
}

TEST(on_the_host_as_in_kernels) {
    const half a = 1.5f, b = __float2half(2.25f);
    half2 v = __floats2half2_rn(3, 4);
    v = __hmul2(v, __half2half2(a));
    half c = a;
    c += b, ++c;
    const float2 f = __half22float2(v);
    EXPECT((float)(a * b) == 3.375f && f.x == 4.5f && f.y == 6 && (float)c == 4.75f && (int)c == 4 && a < b &&
           a != b);
    EXPECT(__half_as_ushort(__float2half(65520.0f)) == 0x7c00 &&
           __half_as_ushort(__float2half_rz(70000.0f)) == 0x7bff);
    EXPECT((float)__high2half(__lows2half2(v, v)) == 4.5f && (float)__hsub2(v, v).y == 0);
    const __nv_bfloat16 x = __float2bfloat16(1.00390625f), y = 3;
    EXPECT((float)x == 1 && (float)(x + y) == 4 && __bfloat162int_rz(y) == 3 && (float)half(y) == 3 &&
           (float)__nv_bfloat16(a) == 1.5f);
    EXPECT(__bfloat16_as_ushort(CUDART_INF_BF16) == 0x7f80 && __hisinf(CUDART_INF_FP16) == 1 &&
           sizeof(half) == 2 && sizeof(half2) == 4 && alignof(half2) == 4);
}
