// SPDX-License-Identifier: MIT
// Conversions from floating point to integers in device code: each form that C++ has for them saturates. The
// expected values follow from the rule of PTX (cvt.rzi), so they are those of a GPU.
#include "../unit.h"
#include <cmath>
#include <limits>
#include <random>

// The value as PTX converts it: to 32 or 64 bits, and from there to fewer by cutting bits off
template <class Wide, class Float> static Wide converted(Float x) {
    typedef std::numeric_limits<Wide> limits;
    if (x != x)
        return sizeof(Wide) == 4 && sizeof(Float) == 4 ? 0 : (Wide)(1ull << (8 * sizeof(Wide) - 1));
    const long double value = truncl((long double)x);
    return value <= (long double)limits::min()   ? limits::min()
           : value >= (long double)limits::max() ? limits::max()
                                                 : (Wide)value;
}
template <class Int, class Float> static unsigned long long expected(Float x) {
    if (sizeof(Int) == 8)
        return (unsigned long long)(std::is_signed<Int>::value ? (Int)converted<long long>(x)
                                                               : (Int)converted<unsigned long long>(x));
    return (unsigned long long)(std::is_signed<Int>::value ? (Int)converted<int>(x)
                                                           : (Int)converted<unsigned>(x));
}

template <class T> struct Holder {
    T value, array[3];
    T field : 8 * sizeof(T);
};

// The forms in which the type is a word of the language
#define FORMS(Int, name)                                                                                     \
    __device__ static Int returned_##name(float x) {                                                         \
        return x * 1;                                                                                        \
    }                                                                                                        \
    __device__ static Int returned_##name(double x) {                                                        \
        return x;                                                                                            \
    }                                                                                                        \
    template <class Float> __global__ void forms_##name(Float x, unsigned long long *out) {                  \
        typedef Int Name;                                                                                    \
        Holder<Int> h, *p = &h;                                                                              \
        Int a = x, b(x), c, *q = &c, d = 0, e = x + 0;                                                       \
        const Int f = x;                                                                                     \
        Int all[2][3];                                                                                       \
        *out++ = (unsigned long long)(Int)x;                                                                 \
        *out++ = (unsigned long long)(Name)x;                                                                \
        *out++ = (unsigned long long)static_cast<Int>(x);                                                    \
        *out++ = (unsigned long long)static_cast<Name>(x);                                                   \
        *out++ = (unsigned long long)(Name)(x);                                                              \
        *out++ = (unsigned long long)Name(x);                                                                \
        *out++ = (unsigned long long)(Int)(+x);                                                              \
        *out++ = (unsigned long long)(Int) - -x;                                                             \
        *out++ = (unsigned long long)(Name) - -x;                                                            \
        *out++ = (unsigned long long)a;                                                                      \
        *out++ = (unsigned long long)b;                                                                      \
        *out++ = (unsigned long long)e;                                                                      \
        *out++ = (unsigned long long)f;                                                                      \
        c = x;                                                                                               \
        *out++ = (unsigned long long)c;                                                                      \
        *q = x;                                                                                              \
        *out++ = (unsigned long long)c;                                                                      \
        q[0] = x;                                                                                            \
        *out++ = (unsigned long long)c;                                                                      \
        h.value = x, p->array[1] = x, p->field = x;                                                          \
        *out++ = (unsigned long long)h.value;                                                                \
        *out++ = (unsigned long long)h.array[1];                                                             \
        *out++ = (unsigned long long)h.field;                                                                \
        all[1][2] = c = d = x;                                                                               \
        *out++ = (unsigned long long)all[1][2];                                                              \
        *out++ = (unsigned long long)d;                                                                      \
        *out++ = (unsigned long long)returned_##name(x);                                                     \
        for (Int k = x; out; out = nullptr)                                                                  \
            *out = (unsigned long long)k;                                                                    \
    }
#define INTEGERS(DO)                                                                                         \
    DO(signed char, schar)                                                                                   \
    DO(unsigned char, uchar)                                                                                 \
    DO(short, short)                                                                                         \
    DO(unsigned short, ushort)                                                                               \
    DO(int, int)                                                                                             \
    DO(unsigned int, uint)                                                                                   \
    DO(long, long)                                                                                           \
    DO(unsigned long, ulong)                                                                                 \
    DO(long long, llong)                                                                                     \
    DO(unsigned long long, ullong)                                                                           \
    DO(char, char)                                                                                           \
    DO(size_t, size)
INTEGERS(FORMS)
enum { forms = 23 };

template <class T, class Float> __global__ void other_forms(Float x, unsigned long long *out) {
    const auto convert = [=](Float y) { return (T)y; };
    struct Local {
        Float y;
        __device__ T operator()() const { return static_cast<T>(y); }
    } local{x};
    T t = x;
    *out++ = (unsigned long long)t;
    *out++ = (unsigned long long)(T)x;
    *out++ = (unsigned long long)(T)(x);
    *out++ = (unsigned long long)T(x);
    *out++ = (unsigned long long)convert(x);
    *out++ = (unsigned long long)local();
    *out++ = (unsigned long long)(x != 7 ? (T)x : 0);
}
enum { others = 7 };

static unsigned long long *out;

template <class Int, class Float>
static void converts(void (*kernel)(Float, unsigned long long *), int n, const char *name, Float x) {
    kernel<<<1, 1>>>(x, out);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++)
        if (!EXPECT(out[i] == expected<Int>(x)))
            fprintf(stderr, "  form %d of %s: %a is %llx, not %llx\n", i, name, x, out[i], expected<Int>(x));
}

template <class Float> static void converts_to_all(Float x) {
#define TO(Int, name)                                                                                        \
    converts<Int, Float>(forms_##name<Float>, forms, #Int, x);                                               \
    converts<Int, Float>(other_forms<Int, Float>, others, #Int, x);
    INTEGERS(TO)
}

TEST_OF(every_form_saturates, float, double) {
    std::mt19937 random(20261129);
    OK(cudaMallocManaged(&out, forms * sizeof *out));
    std::vector<T> values = {0,        -0.,    T(0.9),  T(-0.9),     T(-3.5),
                             T(300.7), T(NAN), T(-NAN), T(INFINITY), T(-INFINITY)};
    for (int bits : {7, 8, 15, 16, 31, 32, 63, 64}) // the limits of the types, and numbers beside them
        for (T x : {std::ldexp(T(1), bits), -std::ldexp(T(1), bits)})
            values.insert(values.end(), {x, std::nextafter(x, T(0)), x * T(1.5), x - 1, x + 1});
    for (int i = 0; i < 40; i++)
        values.push_back(std::ldexp(T(random()) - T(2147483648.), (int)(random() % 80) - 40));
    for (T x : values)
        converts_to_all(x);
    OK(cudaFree(out));
}

__global__ void more(float x, double d, long long *out) {
    const uchar4 c = make_uchar4(x, 2 * x, 255.f * x, d);
    const short2 s = make_short2(x, d);
    *out++ = c.x, *out++ = c.y, *out++ = c.z, *out++ = c.w, *out++ = s.x, *out++ = s.y;
    *out++ = (unsigned char)(int)x; // by way of int
    *out++ = lrintf(x), *out++ = llrintf(x), *out++ = std::lrint(d), *out++ = ::llrint(d);
    *out++ = lroundf(x), *out++ = std::llround(x), *out++ = lround(d), *out++ = llround(d);
}

TEST(vectors_and_rounding) {
    long long *out;
    OK(cudaMallocManaged(&out, 15 * sizeof *out));
    const long long most = std::numeric_limits<long long>::max(), least = -most - 1;
    const struct {
        float x;
        double d;
        long long values[15];
    } rows[] = {
        {-3.5f, -1e30, {0, 0, 0, 0, -3, 0, 253, -4, -4, least, least, -4, -4, least, least}},
        {2.5f, 1e30, {2, 5, 125, 255, 2, -1, 2, 2, 2, most, most, 3, 3, most, most}},
        {-1e30f, 65537.5, {0, 0, 0, 1, 0, 1, 0, least, least, 65538, 65538, least, least, 65538, 65538}},
        {NAN, NAN, {0, 0, 0, 0, 0, 0, 0, least, least, least, least, least, least, least, least}}};
    for (const auto &row : rows) {
        more<<<1, 1>>>(row.x, row.d, out);
        OK(cudaDeviceSynchronize());
        for (int i = 0; i < 15; i++)
            if (!EXPECT(out[i] == row.values[i]))
                fprintf(stderr, "  value %d of %g, %g is %lld, not %lld\n", i, row.x, row.d, out[i],
                        row.values[i]);
    }
    OK(cudaFree(out));
}

// What looks like a conversion, or has other types, stays what it is.
struct Number {
    float x;
    __device__ operator int() const { return 7; }
};
struct Counter {
    int count;
    __device__ Counter &operator=(const Counter &other) {
        count = other.count + 1;
        return *this;
    }
};
enum Color { red, green = red + 3, blue };
template <int n> struct Constant {
    enum { value = n };
};
__device__ int twice(int x) {
    return 2 * x;
}
template <class T> __global__ void others_stay(T count, int *out) {
    typedef int (*Function)(int);
    enum { first = 4, second = first + 1 };
    const int size = 3 + (int)2.5f, T_ = 5;
    int array[size] = {1, 2, 3, 4, 5}, *p = array, *none;
    Function function = twice;
    Counter a = {1}, b = {2};
    unsigned char bytes[4] = {};
    Color color;
    auto add = [k = count + 1](int x) { return x + k; };
    Number number = {3.f};
    none = 0, p = p + 1;
    a = b;
    color = blue;
    bytes[1] = *p;
    *out++ = (count)-1;
    *out++ = (T_)*2;
    *out++ = sizeof(int) * 2;
    *out++ = (int)number;
    *out++ = (*function)(5);
    *out++ = (twice)(4);
    *out++ = a.count;
    *out++ = Constant<(int)3.7f>::value;
    *out++ = (int)(none == nullptr) + (int)(size_t)none;
    *out++ = (int)color + second + bytes[1];
    *out++ = add(1);
    *out++ = (char)65 == 'A';
    *out++ = (bool)0.5f;
    *out++ = *(int *)&array[3];
    if (count)
        (twice)(1);
}

TEST(what_is_no_conversion) {
    int *out;
    OK(cudaMallocManaged(&out, 64));
    others_stay<<<1, 1>>>(2, out);
    OK(cudaDeviceSynchronize());
    const int values[] = {1, 10, 8, 7, 10, 8, 3, 3, 1, 4 + 5 + 2, 4, 1, 1, 4};
    for (int i = 0; i < 14; i++)
        if (!EXPECT(out[i] == values[i]))
            fprintf(stderr, "  value %d is %d, not %d\n", i, out[i], values[i]);
    OK(cudaFree(out));
}
