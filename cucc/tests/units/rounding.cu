// SPDX-License-Identifier: MIT
// Arithmetic and conversions of float and double in the four rounding modes.
#include "exact.h"

template <class T> struct Format; // numbers of bits
template <> struct Format<float> {
    enum { exponent = 8, fraction = 23 };
};
template <> struct Format<double> {
    enum { exponent = 11, fraction = 52 };
};

// Whether r are the four roundings of a finite exact value; compare(x) is the sign of exact value - x.
template <class T, class Compare> static bool rounds_well(const T *r, Compare compare) {
    for (int mode = 0; mode < modes; mode++)
        if (r[mode] != (T)value_of<Format<T>>(rounded<Format<T>>(compare, mode)))
            return false;
    return true;
}

// name, type, the four results, the sign of exact value - x, the result that the host rounds to nearest
#define OPERATION(name, T, f, exact, plain_result)                                                           \
    struct name {                                                                                            \
        typedef T Number;                                                                                    \
        static const char *text() { return #f; }                                                             \
        __device__ static void compute(T a, T b, T c, T *r) { (void)a, (void)b, (void)c, f; }                \
        static int compare(Wide a, Wide b, Wide c, Wide x) { return (void)a, (void)b, (void)c, exact; }      \
        static T plain(T a, T b, T c) { return (void)a, (void)b, (void)c, plain_result; }                    \
    };
#define ALL(f, ...)                                                                                          \
    r[nearest] = f##_rn(__VA_ARGS__), r[zero] = f##_rz(__VA_ARGS__), r[up] = f##_ru(__VA_ARGS__),            \
    r[down] = f##_rd(__VA_ARGS__)

#define OPERATIONS(S, T, f, fused)                                                                           \
    OPERATION(Add##S, T, ALL(__##f##add, a, b), compare_sum(a, b, x), a + b)                                 \
    OPERATION(Sub##S, T, ALL(__##f##sub, a, b), compare_sum(a, -b, x), a - b)                                \
    OPERATION(Mul##S, T, ALL(__##f##mul, a, b), sign(a *b - x), a *b)                                        \
    OPERATION(Div##S, T, ALL(__##f##div, a, b), sign(a - x * b) * sign(b), a / b)                            \
    OPERATION(Rcp##S, T, ALL(__##f##rcp, a), sign(1 - x * a) * sign(a), 1 / a)                               \
    OPERATION(Sqrt##S, T, ALL(__##f##sqrt, a), sign(a - x * x), std::sqrt(a))                                \
    OPERATION(Fma##S, T, ALL(fused, a, b, c), compare_sum(a *b, c, x), std::fma(a, b, c))
OPERATIONS(F, float, f, __fmaf)
OPERATIONS(D, double, d, __fma)

template <class Op> __global__ void compute(const typename Op::Number *in, typename Op::Number *out, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        Op::compute(in[3 * i], in[3 * i + 1], in[3 * i + 2], out + modes * i);
}

// Any bits, or numbers of similar sizes, or with few bits, so that ties and exact results occur.
template <class T> static T any_number(int kind) {
    const uint64_t bits = ((uint64_t)engine()() << 32 | engine()());
    T x;
    if (kind % 3 == 0) {
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    x = kind % 3 == 1 ? (T)(int64_t)bits : (T)(int)(bits % 2048 - 1024);
    return ldexp(x, (int)(bits >> 11 & 15) - (kind % 2 ? 8 : sizeof(T) == 4 ? 150 : 1075));
}

template <class Op> static void check() {
    typedef typename Op::Number T;
    constexpr int n = 6000;
    const T special[] = {0, (T)-0.0, 1, -1, (T)INFINITY, (T)-INFINITY, (T)NAN, (T)1e-45, (T)3.4e38};
    std::vector<T> in(3 * n);
    for (int i = 0; i < 3 * n; i++)
        in[i] = i % 11 == 0 ? special[((uint64_t)engine()() << 32 | engine()()) % 9]
                            : any_number<T>(i / 3 % 6 + (i / 40));
    const Device<T> device(in);
    const auto all = WRITTEN(T, modes * n, compute<Op><<<(n + 127) / 128, 128>>>(device.data, out, n));
    for (int i = 0; i < n; i++) {
        const T a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2], *r = &all[modes * i],
                plain = Op::plain(a, b, c);
        bool good;
        const bool overflows = std::isinf(plain) && !std::isinf(r[zero]); // of finite numbers
        if (!std::isfinite(plain) && !overflows)
            good = std::isnan(plain)
                       ? std::isnan(r[nearest]) && std::isnan(r[zero]) && std::isnan(r[up]) &&
                             std::isnan(r[down])
                       : r[nearest] == plain && r[zero] == plain && r[up] == plain && r[down] == plain;
        else if (!std::isfinite(a) || !std::isfinite(b) ||
                 !std::isfinite(c)) // an exact result, such as 1 / infinity
            good = r[nearest] == plain || !std::isfinite(c) || !std::isfinite(b);
        else
            good = r[nearest] == plain && rounds_well(r, [=](Wide x) { return Op::compare(a, b, c, x); });
        if (!EXPECT(good))
            fprintf(stderr, "%s of %a, %a, %a: nearest %a, towards zero %a, up %a, down %a\n", Op::text(),
                    (double)a, (double)b, (double)c, (double)r[nearest], (double)r[zero], (double)r[up],
                    (double)r[down]);
    }
}

TEST(floats_round_as_asked) {
    check<AddF>(), check<SubF>(), check<MulF>(), check<DivF>(), check<RcpF>(), check<SqrtF>(), check<FmaF>();
}

TEST(doubles_round_as_asked) {
    check<AddD>(), check<SubD>(), check<MulD>(), check<DivD>(), check<RcpD>(), check<SqrtD>(), check<FmaD>();
}

struct Converted {
    float of_int[modes], of_unsigned[modes], of_long[modes], of_unsigned_long[modes], of_double[modes];
    double double_of_long[modes], double_of_unsigned_long[modes];
};

__global__ void convert(const uint64_t *in, Converted *out, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n)
        return;
    const uint64_t x = in[i];
#define CONVERT(member, f, value)                                                                            \
    out[i].member[nearest] = f##_rn(value), out[i].member[zero] = f##_rz(value),                             \
    out[i].member[up] = f##_ru(value), out[i].member[down] = f##_rd(value)
    CONVERT(of_int, __int2float, (int)x);
    CONVERT(of_unsigned, __uint2float, (unsigned)x);
    CONVERT(of_long, __ll2float, (long long)x);
    CONVERT(of_unsigned_long, __ull2float, (unsigned long long)x);
    CONVERT(of_double, __double2float, __longlong_as_double((long long)x));
    CONVERT(double_of_long, __ll2double, (long long)x);
    CONVERT(double_of_unsigned_long, __ull2double, (unsigned long long)x);
}

TEST(conversions_round_as_asked) {
    constexpr int n = 8000;
    std::vector<uint64_t> in(n);
    for (int i = 0; i < n; i++) {
        in[i] = ((uint64_t)engine()() << 32 | engine()());
        if (i % 4 == 0) // few bits
            in[i] = (in[i] >> 40 | 1) << (in[i] % 41);
        else if (i % 4 == 1) { // a double that has the size of a float, also of a small one
            const double x = ldexp((double)(int64_t)in[i], (int)(in[i] % 260) - 210);
            memcpy(&in[i], &x, sizeof x);
        }
    }
    const Device<uint64_t> device(in);
    const auto all = WRITTEN(Converted, n, convert<<<(n + 127) / 128, 128>>>(device.data, out, n));
    for (int i = 0; i < n; i++) {
        double x;
        memcpy(&x, &in[i], sizeof x);
        const auto check = [&](const auto *r, Wide exact) {
            if (!EXPECT(rounds_well(r, [=](Wide y) { return sign(exact - y); })))
                fprintf(stderr, "0x%llx: %a %a %a %a\n", (unsigned long long)in[i], (double)r[0],
                        (double)r[1], (double)r[2], (double)r[3]);
        };
        check(all[i].of_int, (int)in[i]), check(all[i].of_unsigned, (unsigned)in[i]);
        check(all[i].of_long, (int64_t)in[i]), check(all[i].of_unsigned_long, in[i]);
        check(all[i].double_of_long, (int64_t)in[i]), check(all[i].double_of_unsigned_long, in[i]);
        if (std::isfinite(x))
            check(all[i].of_double, x);
    }
}
