// SPDX-License-Identifier: MIT
// Vector types, and the functions that a kernel can call without an #include.
#include <math_constants.h>
#include <climits>
#include <cmath>
#include <type_traits>
#include "device.h"

template <class T> struct Pair { T got, expected; };

// A case that a kernel computes: pairs {expression, expected value} of one type, which must be
// equal bit by bit (or both NaN). `zero` and `none` are 0, but the compiler does not know that, so
// it cannot compute the expressions itself.
#define ON_DEVICE(name, T, ...)                                                                              \
    __global__ void name##_kernel(Pair<T> *out, int *count) {                                                \
        const int zero = (int)blockIdx.x;                                                                    \
        const float none = (float)blockIdx.x;                                                                \
        (void)zero, (void)none;                                                                              \
        const Pair<T> all[] = {__VA_ARGS__};                                                                 \
        *count = sizeof all / sizeof *all;                                                                   \
        for (int i = 0; i < *count; i++)                                                                     \
            out[i] = all[i];                                                                                 \
    }                                                                                                        \
    TEST(name) {                                                                                             \
        compare(name##_kernel, #name);                                                                       \
    }

static bool equal(double a, double b) {
    return a == b ? std::signbit(a) == std::signbit(b) : a != a && b != b;
}
static bool equal(float a, float b) {
    return equal((double)a, (double)b);
}
template <class T> static bool equal(T a, T b) {
    return a == b;
}

template <class T> static void compare(void (*kernel)(Pair<T> *, int *), const char *name) {
    const Device<int> number(1);
    const auto host = WRITTEN(Pair<T>, 64, kernel<<<1, 1>>>(out, number.data));
    const int count = number.host()[0];
    EXPECT(count > 0 && count <= 64);
    for (int i = 0; i < count; i++)
        if (!EXPECT(equal(host[i].got, host[i].expected)))
            fprintf(stderr, "%s, pair %d: got %.17g, expected %.17g\n", name, i, (double)host[i].got,
                    (double)host[i].expected);
}

__host__ __device__ static bool near(double a, double b) {
    return fabs(a - b) <= 8 * 2.3e-16 * fabs(b);
}
__host__ __device__ static bool near(float a, float b) {
    return fabsf(a - b) <= 4 * 1.2e-7f * fabsf(b);
}

// `zero` hides the counts from the compiler. A count of 64 bits is cut to 32.
ON_DEVICE(shifts_by_all_bits_or_more, long long, {1 << (32 + zero), 0}, {-7 >> (32 + zero), -1},
          {7 >> (33 + zero), 0}, {0x80000000u >> (31 + zero), 1}, {~0u >> (32u + zero), 0},
          {1ll << (32 + zero), 1ll << 32}, {1ll << (64 + zero), 0}, {-1ll >> (100 + zero), -1},
          {(long long)(~0ull >> (64ull + zero)), 0}, {(unsigned char)200 << (24 + zero), (int)(200u << 24)},
          {(short)-2 >> (40 + zero), -1}, {1 << (-1 + zero), 0}, {5 << ((1ll << 32) + 1 + zero), 10},
          {true << (1 + zero), 2})

enum Flag { flag = 4 };
struct Fields {
    unsigned a : 5;
    int b : 7;
    __device__ void shift(int n) { a <<= n, b >>= n; }
};
struct Counted { // a class with operators of its own
    int shifts;
    __host__ __device__ Counted operator<<(int n) const { return {shifts + n}; }
    __host__ __device__ Counted &operator<<=(int n) { return shifts += n, *this; }
};
template <class T, class N> __device__ T shifted(T value, N n) {
    value <<= n;
    return value + (value << n);
}
template <class T> struct Wrapped { T value; };

__global__ void shift_and_assign(int *good, int n) {
    int x = 3, y[2] = {5, -6}, *p = y, i = 0;
    Fields f = {3, -3}, g = {1, 2};
    Counted c = {1};
    volatile int v = 4;
    x <<= n;
    *p++ <<= n;
    y[++i] >>= n;
    f.shift(n), g.a <<= 4, g.b >>= 1;
    c <<= 2;
    v >>= n;
    const Wrapped<Wrapped<int>> w = {{flag << 1}};
    enum { four = 1 << 2 };
    int a[2 << 1] = {};
    switch (four) {
    case 1 << 2:
        a[3] = w.value.value;
    }
    *good = x == 0 && y[0] == 0 && p == y + 1 && y[1] == -1 && i == 1 && f.a == 0 && f.b == -1 && g.a == 16 &&
            g.b == 1 && (c << 40).shifts == 43 && v == 0 && a[3] == 8 &&
            shifted(1u, n) + shifted(1ull, 64) == 0 && shifted(1ll, 16ull) == (1ll << 16) + (1ll << 32) &&
            [=] { return -1 >> n << n; }() == 0;
}

TEST(shifts_in_statements) {
    EXPECT(good(shift_and_assign, 1, 32));
}

ON_DEVICE(bits_are_counted, int, {__popc(0xf0f0u + zero), 8}, {__popc(zero), 0}, {__popcll(~0ull - zero), 64},
          {__clz(zero), 32}, {__clz(1 + zero), 31}, {__clz(-1 - zero), 0}, {__clzll(zero), 64},
          {__clzll(1ll + zero), 63}, {__ffs(zero), 0}, {__ffs(8 + zero), 4}, {__ffs(INT_MIN + zero), 32},
          {__ffsll(zero), 0}, {__ffsll(1ll << (40 + zero)), 41})

ON_DEVICE(bits_are_moved, unsigned, {__brev(1u + zero), 0x80000000u},
          {__brev(0x12345678u + zero), 0x1e6a2c48u}, {(unsigned)(__brevll(1ull + zero) >> 32), 0x80000000u},
          {(unsigned)__brevll(1ull << (63 + zero)), 1u},
          {__byte_perm(0x33221100u + zero, 0x77665544u, 0x7531), 0x77553311u},
          {__byte_perm(0x33221100u + zero, 0x77665544u, 0x3210), 0x33221100u},
          {__byte_perm(0x80ff0180u + zero, 0u, 0xb9a8), 0x8001ff80u},
          {__funnelshift_l(0x80000001u + zero, 0x40000000u, 4), 0x00000008u},
          {__funnelshift_l(0x80000001u + zero, 0x40000000u, 36), 0x00000008u},
          {__funnelshift_lc(0x80000001u + zero, 0x40000000u, 36), 0x80000001u},
          {__funnelshift_r(0x80000001u + zero, 0x4000000au, 4), 0xa8000000u},
          {__funnelshift_r(0x80000001u + zero, 0x4000000au, 32), 0x80000001u},
          {__funnelshift_rc(0x80000001u + zero, 0x4000000au, 32), 0x4000000au})

ON_DEVICE(integers_are_multiplied, long long, {__mul24(0x01000003 + zero, -2), -6},
          {__mul24(5 + zero, 7), 35}, {__mul24(0x7fffff + zero, 0x7fffff), (int)(0x7fffffll * 0x7fffff)},
          {(long long)__umul24(0xff000003u + zero, 2u), 6}, {__mulhi(-1 - zero, 1), -1},
          {__mulhi(0x40000000 + zero, 8), 2}, {(long long)__umulhi(0x80000000u + zero, 6u), 3},
          {__mul64hi(-1ll - zero, 1), -1}, {__mul64hi(1ll << (62 + zero), 8), 2},
          {(long long)__umul64hi(1ull << (63 + zero), 6), 3}, {(long long)__sad(-5 + zero, 5, 1u), 11},
          {(long long)__usad(3u + zero, 10u, 1u), 8}, {__hadd(INT_MAX - zero, INT_MAX - 1), INT_MAX - 1},
          {__rhadd(3 + zero, 4), 4}, {__hadd(-3 + zero, -4), -4},
          {(long long)__uhadd(~0u - zero, ~0u), 4294967295ll}, {(long long)__urhadd(1u + zero, 2u), 2})

ON_DEVICE(floats_become_integers, long long, {__float2int_rn(2.5f + none), 2},
          {__float2int_rn(3.5f + none), 4}, {__float2int_rn(-2.5f + none), -2},
          {__float2int_rz(-2.9f + none), -2}, {__float2int_ru(2.1f + none), 3},
          {__float2int_ru(-2.9f + none), -2}, {__float2int_rd(-2.1f + none), -3},
          {__float2int_rd(2.9f + none), 2}, {__float2int_rz(1e20f + none), INT_MAX},
          {__float2int_rz(-1e20f + none), INT_MIN}, {__float2int_rn(CUDART_INF_F + none), INT_MAX},
          {__float2int_rn(CUDART_NAN_F + none), 0}, {(long long)__float2uint_rz(-1.5f + none), 0},
          {(long long)__float2uint_rz(4e9f + none), 4000000000ll},
          {(long long)__float2uint_rn(1e10f + none), 4294967295ll}, {__float2ll_rz(-1e30f + none), LLONG_MIN},
          {__float2ll_rn(CUDART_NAN_F + none), LLONG_MIN}, {(long long)__float2ull_rz(1e30f + none), -1},
          {(long long)__float2ull_rz(9e18f + none), 9000000202358128640ll}, {__double2int_rn(0.5 + none), 0},
          {__double2int_rn(1.5 + none), 2}, {__double2int_rz(3e9 + none), INT_MAX},
          {__double2int_rz(CUDART_NAN + none), INT_MIN}, {__double2int_rd(-0.1 + none), -1},
          {(long long)__double2uint_ru(0.1 + none), 1}, {__double2ll_rn(-4.5 + none), -4},
          {(long long)__double2ull_rz(1.5 + none), 1}, {__double2ll_ru(1e17 + none), 100000000000000000ll})

// Roundings of arithmetic and of conversions to floating-point numbers are in rounding.cu.
ON_DEVICE(exact_operations, double, {__int2double_rn(-7 + zero), -7}, {__uint2double_rn(7u + zero), 7},
          {__frsqrt_rn(4 + none), 0.5}, {1.0f / 3.0f + none, 0.3333333432674408})

ON_DEVICE(numbers_keep_their_bits, long long, {__float_as_int(-1.0f + none), (int)0xbf800000},
          {(long long)__float_as_uint(1.0f + none), 0x3f800000},
          {__int_as_float(0x40490fdb + zero) == CUDART_PI_F, 1},
          {__uint_as_float(0x7f800000u + zero) > 3e38f, 1},
          {__double_as_longlong(-2.0 + none), (long long)0xc000000000000000ull},
          {__longlong_as_double(0x3ff0000000000000ll + zero) == 1.0, 1},
          {__double2hiint(1.5 + none), 0x3ff80000}, {__double2loint(CUDART_PI + none), 0x54442d18},
          {__hiloint2double(0x400921fb + zero, 0x54442d18) == CUDART_PI, 1})

ON_DEVICE(special_functions, double, {rsqrt(4.0 + none), 0.5}, {rsqrtf(16 + none), 0.25},
          {rsqrt(none), CUDART_INF}, {rsqrtf(-1 + none), CUDART_NAN}, {rcbrt(8.0 + none), 0.5},
          {sinpi(0.5 + none), 1.0}, {sinpi(1.0 + none), 0.0}, {sinpi(-1.5 + none), 1.0},
          {sinpi(-2.5f + none), -1.0}, {cospi(0.5 + none), 0.0}, {cospi(1.0 + none), -1.0},
          {cospif(2 + none), 1.0}, {cospi(1e15 + none), 1.0}, {sinpi(CUDART_INF + none), CUDART_NAN},
          {normcdf(none), 0.5}, {normcdff(CUDART_INF_F + none), 1.0}, {norm3df(2 + none, 3.0f, 6.0f), 7.0},
          {norm3d(2.0 + none, 3.0, 6.0), 7.0}, {rhypot(3.0 + none, 4.0), 0.2}, {__saturatef(-1 + none), 0.0},
          {__saturatef(2 + none), 1.0}, {__saturatef(0.25f + none), 0.25},
          {__saturatef(CUDART_NAN_F + none), 0.0}, {__fdividef(6 + none, 3.0f), 2.0},
          {fdividef(7 + none, 2.0f), 3.5}, {exp10(2.0 + none), 100.0}, {norm4d(1.0 + none, 3, 3, 9), 10},
          {norm4df(1 + none, 3, 3, 9), 10}, {rnorm4d(2.0 + none, 4, 4, 8), 0.1},
          {norm3d(CUDART_NAN, CUDART_INF + none, 0), CUDART_INF}, {erfcx(none), 1}, {erfinv(none), 0},
          {erfinv(1 + none), CUDART_INF}, {erfinv(-2.0 + none), CUDART_NAN}, {erfcinv(1.0 + none), 0},
          {erfcinv(none), CUDART_INF}, {normcdfinv(0.5 + none), 0}, {normcdfinv(none), -CUDART_INF},
          {cyl_bessel_i0(none), 1}, {cyl_bessel_i1(none), 0}, {cyl_bessel_i0(CUDART_INF + none), CUDART_INF},
          {cyl_bessel_i1f(-CUDART_INF_F - none), -CUDART_INF})

// Relative to values computed with 30 digits; the bound is CUDA's, 8 units in the last place.
ON_DEVICE(special_functions_are_accurate, bool, {near(erfinv(0.5 + none), 0.47693627620446987338), true},
          {near(erfinv(1e-10 + none), 8.8622692545275801366e-11), true},
          {near(erfcinv(1e-300 + none), 26.209469960516124), true},
          {near(erfcinv(1.5 + none), -0.47693627620446987338), true},
          {near(normcdfinv(0.975 + none), 1.9599639845400542355), true},
          {near(normcdf(-10.0 + none), 7.6198530241605260660e-24), true},
          {near(erfcx(10.0 + none), 0.056140992743822585), true},
          {near(erfcx(-2.0 + none), 108.94090438997797), true},
          {near(cyl_bessel_i0(1.0 + none), 1.2660658777520083356), true},
          {near(cyl_bessel_i1(1.0 + none), 0.56515910399248502721), true},
          {near(cyl_bessel_i0(100.0 + none), 1.0737517071310738235e42), true},
          {near(rhypot(5.0 + none, 12.0), 1 / 13.0), true},
          {near(norm3d(3e200 + none, 4e200, 0), 5e200), true},
          {near(norm3d(3e-200 + none, 4e-200, 0), 5e-200), true},
          {near(rnorm3df(2.0f + none, 3, 6), 1 / 7.0f), true})

// Within the error bounds that CUDA documents; here they are the standard functions.
__device__ static bool close(float a, float b, float scale = 1) {
    return fabsf(a - b) <= 4e-6f * scale;
}
__device__ static bool sine_and_cosine(float x, float s, float c) {
    return fabsf(s - sinf(x)) + fabsf(c - cosf(x)) <= 4e-6f;
}
__global__ void fast_functions(int *good) {
    const float x = 0.05f * (threadIdx.x + 1), e = expf(x), e10 = exp10f(x), p = powf(x, 1.7f);
    float s[3], c[3];
    __sincosf(x, &s[0], &c[0]), sincosf(x, &s[1], &c[1]), sincospif(x, &s[2], &c[2]);
    good[threadIdx.x] = sine_and_cosine(x, __sinf(x), __cosf(x)) && sine_and_cosine(x, s[0], c[0]) &&
                        sine_and_cosine(x, s[1], c[1]) && sine_and_cosine(CUDART_PI_F * x, s[2], c[2]) &&
                        close(__tanf(x / 3), tanf(x / 3)) && close(__expf(x), e, e) &&
                        close(__exp10f(x), e10, e10) && close(powf(10, x), e10, e10) &&
                        close(__logf(x), logf(x)) && close(__log2f(x), log2f(x)) &&
                        close(__log10f(x), log10f(x)) && close(__powf(x, 1.7f), p, p) &&
                        close(rnorm3df(x, 2 * x, 2 * x) * x * 3, 1);
}

TEST(fast_functions_are_close) {
    EXPECT(good(fast_functions, 59));
}

ON_DEVICE(the_smaller_and_the_larger, double, {(double)min(3 + zero, -4), -4}, {(double)max(3 + zero, -4), 3},
          {(double)min(3u + zero, -4), 3}, {(double)max(-4, 3u + zero), 4294967292.0},
          {(double)min(3ll + zero, 2ll), 2}, {(double)max(3ull + zero, 2ull), 3},
          {(double)min(5l + zero, 4l), 4}, {(double)max(5ul + zero, 9ul), 9}, {min(1.5f + none, 2.5f), 1.5},
          {max(1.5 + none, 2.5f), 2.5}, {min(1.5f + none, -2.5), -2.5}, {max(CUDART_NAN_F + none, 1.0f), 1.0},
          {max(1.0f, CUDART_NAN_F + none), 1.0}, {min(CUDART_NAN + none, 1.0), 1.0},
          {min(CUDART_NAN + none, CUDART_NAN), CUDART_NAN}, {(double)max((short)3, (short)zero), 3},
          {(double)min('a', 'b'), 97})

ON_DEVICE(numbers_win_and_zeros_are_ordered, double, {fmin(-0.0, 0.0 + none), -0.0},
          {fmin(0.0 + none, -0.0), -0.0}, {fmax(-0.0, 0.0 + none), 0.0}, {fmax(0.0 + none, -0.0), 0.0},
          {fminf(0.0f + none, -0.0f), -0.0}, {fmin(0.0f + none, -0.0f), -0.0},
          {std::fmax(-0.0f, 0.0f + none), 0.0}, {fmaxf(-0.0f, 0.0f + none), 0.0},
          {min(0.0f + none, -0.0f), -0.0}, {max(-0.0, 0.0 + none), 0.0},
          {fminf(__int_as_float(0x7f800001 + zero), 2.0f), 2},
          {fmaxf(2.0f, __int_as_float(0x7f800001 + zero)), 2},
          {fmin(__longlong_as_double(0x7ff0000000000001 + zero), 2.0), 2},
          {__fdividef(1e38f + none, 0x1.8p126f), 0}, {__fdividef(1e38f + none, 0x1p126f), 1e38f / 0x1p126f},
          {__fdividef(CUDART_INF_F, 0x1p127f + none), CUDART_NAN}, {__fdividef(1.0f, CUDART_INF_F + none), 0},
          {rhypotf(0x1p127f + none, 0.0f), 0x1p-127}, {rhypotf(0x1p-127f + none, 0.0f), 0x1p127},
          {rhypot(0x1p1023 + none, 0.0), 0x1p-1023}, {rhypot(0.0, 0x1p-1023 + none), 0x1p1023},
          {rhypot(0.0 + none, 0.0), CUDART_INF}, {rhypot(CUDART_INF + none, 1.0), 0})

TEST(mixed_arguments_have_cudas_types) {
    static_assert(std::is_same_v<decltype(min(1, 2)), int>);
    static_assert(std::is_same_v<decltype(min(1u, 2)), unsigned>);
    static_assert(std::is_same_v<decltype(max(1, 2u)), unsigned>);
    static_assert(std::is_same_v<decltype(max(1l, 2ul)), unsigned long>);
    static_assert(std::is_same_v<decltype(min(1ll, 2ull)), unsigned long long>);
    static_assert(std::is_same_v<decltype(min(1.0f, 2.0f)), float>);
    static_assert(std::is_same_v<decltype(min(1.0f, 2.0)), double>);
    static_assert(std::is_same_v<decltype(rsqrt(1.0f)), float>);
    static_assert(std::is_same_v<decltype(sinpi(1.0f)), float>);
    EXPECT(max(-1, 1) == 1 && min(2.0, 3.0) == 2.0); // also on the host
}

__global__ void loads_kernel(const float4 *in, float4 *out, int *numbers) {
    out[0] = __ldg(in);
    out[1] = __ldcg(in + 1);
    out[2] = __ldcs(in + 2);
    __stcs(out + 3, in[3]);
    __stcg(numbers, 5);
    __stwt(numbers + 1, __ldca(numbers) + __ldcv(numbers));
    __stwb(numbers + 2, 7);
    numbers[3] = __ldlu(numbers + 2);
}

TEST(loads_and_stores_with_hints) {
    const auto in = made(4, [](int i) { return make_float4((float)i, 1, 2, (float)-i); });
    const Device<float4> from(in), to(4);
    const auto numbers = WRITTEN(int, 4, loads_kernel<<<1, 1>>>(from.data, to.data, out));
    EXPECT(memcmp(in.data(), to.host().data(), 4 * sizeof(float4)) == 0);
    EXPECT(numbers == (std::vector<int>{5, 10, 7, 7}));
}

// Programs define these themselves, and a kernel calls them beside CUDA's functions.
inline __host__ __device__ float3 operator+(float3 a, float3 b) {
    return make_float3(a.x + b.x, a.y + b.y, a.z + b.z);
}
inline __host__ __device__ float dot(float3 a, float3 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
inline __host__ __device__ float3 fminf(float3 a, float3 b) {
    return make_float3(fminf(a.x, b.x), fminf(a.y, b.y), fminf(a.z, b.z));
}
ON_DEVICE(a_programs_own_functions, float,
          {dot(make_float3(1, 2, 3), make_float3(none, 1, 1) + make_float3(1, 1, 1)), 11},
          {fminf(make_float3(2, none, -9), make_float3(1, 1, 1)).x, 1})

// Sizes and alignments are CUDA's: nvcc compiles the same table.
template <class T, size_t size, size_t align> static void layout() {
    static_assert(sizeof(T) == size && alignof(T) == align, "the layout that CUDA gives it");
}

TEST(vector_types_lie_as_in_cuda) {
    layout<char1, 1, 1>(), layout<char2, 2, 2>(), layout<char3, 3, 1>(), layout<uchar4, 4, 4>();
    layout<short1, 2, 2>(), layout<ushort2, 4, 4>(), layout<short3, 6, 2>(), layout<short4, 8, 8>();
    layout<int1, 4, 4>(), layout<uint2, 8, 8>(), layout<int3, 12, 4>(), layout<int4, 16, 16>();
    layout<long1, 8, 8>(), layout<ulong2, 16, 16>(), layout<long3, 24, 8>();
    layout<longlong1, 8, 8>(), layout<longlong2, 16, 16>(), layout<ulonglong3, 24, 8>();
    layout<float1, 4, 4>(), layout<float2, 8, 8>(), layout<float3, 12, 4>(), layout<float4, 16, 16>();
    layout<double1, 8, 8>(), layout<double2, 16, 16>(), layout<double3, 24, 8>();
    layout<dim3, 12, 4>();
}

TEST(vectors_and_dimensions_are_made) {
    const uchar4 c = make_uchar4(1, 2, 3, 255);
    const int3 v = make_int3(-1, 0, 1);
    const float2 f = {1.5f, 2.5f};
    EXPECT(c.x == 1 && c.w == 255 && v.x == -1 && v.z == 1 && f.y == 2.5f);
    EXPECT(make_double2(1, 2).y == 2 && make_ulonglong2(1, ~0ull).y == ~0ull && make_char1(-1).x == -1);
    const dim3 none, one(7), all(1, 2, 3), from_uint3 = make_uint3(4, 5, 6);
    const uint3 u = all;
    EXPECT(none.x == 1 && none.y == 1 && none.z == 1 && one.x == 7 && one.y == 1);
    EXPECT(u.x == 1 && u.y == 2 && u.z == 3 && from_uint3.z == 6);
}
