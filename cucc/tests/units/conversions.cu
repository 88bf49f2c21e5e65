// SPDX-License-Identifier: MIT
// Conversions from floating point to integers in device code: each form that C++ has for them saturates. The
// expected values follow from the rule of PTX (cvt.rzi), so they are those of a GPU.
#include "device.h"
#include <cmath>
#include <cuda_fp16.h>
#include <limits>

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
// Values of the others: ../conformance
#define INTEGERS(DO)                                                                                         \
    DO(signed char, schar)                                                                                   \
    DO(unsigned short, ushort)                                                                               \
    DO(int, int)                                                                                             \
    DO(unsigned long long, ullong)                                                                           \
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

template <class Int, class Float>
static void converts(void (*kernel)(Float, unsigned long long *), int n, const char *name, Float x) {
    const auto got = WRITTEN(unsigned long long, n, kernel<<<1, 1>>>(x, out));
    for (int i = 0; i < n; i++)
        if (!EXPECT(got[i] == expected<Int>(x)))
            fprintf(stderr, "  form %d of %s: %a is %llx, not %llx\n", i, name, x, got[i], expected<Int>(x));
}

template <class Float> static void converts_to_all(Float x) {
#define TO(Int, name)                                                                                        \
    converts<Int, Float>(forms_##name<Float>, forms, #Int, x);                                               \
    converts<Int, Float>(other_forms<Int, Float>, others, #Int, x);
    INTEGERS(TO)
}

TEST_OF(every_form_saturates, float, double) {
    std::mt19937 random(20261129);
    std::vector<T> values = {0,        -0.,    T(0.9),  T(-0.9),     T(-3.5),
                             T(300.7), T(NAN), T(-NAN), T(INFINITY), T(-INFINITY)};
    for (int bits : {7, 8, 15, 16, 31, 32, 63, 64}) // the limits of the types, and numbers beside them
        for (T x : {std::ldexp(T(1), bits), -std::ldexp(T(1), bits)})
            values.insert(values.end(), {x, std::nextafter(x, T(0)), x * T(1.5), x - 1, x + 1});
    for (int i = 0; i < 40; i++)
        values.push_back(std::ldexp(T(random()) - T(2147483648.), (int)(random() % 80) - 40));
    for (T x : values)
        converts_to_all(x);
}

__device__ float beyond = 1e30f; // a name that the kernel does not declare

__global__ void more(float x, double d, long long *out) {
    const int most = beyond;
    int least;
    least = -beyond;
    const uchar4 c = make_uchar4(x, 2 * x, 255.f * x, d);
    const short2 s = make_short2(x, d);
    *out++ = c.x, *out++ = c.y, *out++ = c.z, *out++ = c.w, *out++ = s.x, *out++ = s.y;
    *out++ = (unsigned char)(int)x; // by way of int
    *out++ = lrintf(x), *out++ = llrintf(x), *out++ = std::lrint(d), *out++ = ::llrint(d);
    *out++ = lroundf(x), *out++ = std::llround(x), *out++ = lround(d), *out++ = llround(d);
    *out++ = (long long)most + least;
}

TEST(vectors_and_rounding) {
    const long long most = std::numeric_limits<long long>::max(), least = -most - 1;
    const struct {
        float x;
        double d;
        std::vector<long long> values;
    } rows[] = {
        {-3.5f, -1e30, {0, 0, 0, 0, -3, 0, 253, -4, -4, least, least, -4, -4, least, least, -1}},
        {2.5f, 1e30, {2, 5, 125, 255, 2, -1, 2, 2, 2, most, most, 3, 3, most, most, -1}},
        {-1e30f, 65537.5, {0, 0, 0, 1, 0, 1, 0, least, least, 65538, 65538, least, least, 65538, 65538, -1}},
        {NAN, NAN, {0, 0, 0, 0, 0, 0, 0, least, least, least, least, least, least, least, least, -1}}};
    for (const auto &row : rows)
        EXPECT(equal(WRITTEN(long long, 16, more<<<1, 1>>>(row.x, row.d, out)), row.values));
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
struct array_of_two {
    int left, right;
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
    int sum = 1;
    auto [left, right] = array_of_two{3, 4};
    sum += 2.9f;
    *out++ = sum + left + right + ((count) != 0);
    if (count)
        (twice)(1);
}

TEST(what_is_no_conversion) {
    EXPECT(equal(WRITTEN(int, 15, others_stay<<<1, 1>>>(2, out)),
                 {1, 10, 8, 7, 10, 8, 3, 3, 1, 4 + 5 + 2, 4, 1, 1, 4, 3 + 3 + 4 + 1}));
}

// Assignments and initial values of every other type are taken as they are.
struct Base {
    int a;
    __device__ int get() const { return a; }
};
struct Derived : Base {
    int b;
};
union Either {
    int i;
    float f;
};
struct Pair {
    int x, y;
    __device__ Pair(int x = 0, int y = 0) : x(x), y(y) {}
};
struct Tenths { // assigned through a constant object, as a proxy is
    int *to;
    __device__ const Tenths &operator=(float x) const {
        *to = (int)(x * 10);
        return *this;
    }
};
enum class Level : unsigned char { low, high = 7 };

template <class T>
__global__ void any_type(const double *__restrict__ in, T *__restrict__ out, volatile int *seen, int n) {
    __shared__ float shared[4];
    const double *__restrict__ next = in, *__restrict__ const second = in + 1;
    in = in + 2, in = &in[-1], in = next, next = second;
    T *__restrict__ *where = &out;
    *where = out + n, out = &(out[-n]);
    float *__restrict__ s = shared;
    s = &shared[1], s = shared + 2, *s = 2.5f;
    volatile float real = 3.5f;
    volatile int whole = n;
    whole = real, *seen = whole, seen[0] = *seen + 1;
    int (*function)(int) = twice, (&same)(int) = twice;
    function = &twice, function = same;
    int Pair::*member = &Pair::x, (Base::*method)() const = &Base::get;
    member = &Pair::y, method = &Base::get;
    void *pointer = out;
    pointer = nullptr, pointer = (void *)seen;
    Derived derived;
    Base *base = &derived, &reference = derived;
    base = &reference, derived.a = 30;
    Either either, copy;
    either.f = 2, copy = either, copy = {4};
    Pair pair = 3, other = {4, 5}, &alias = pair;
    pair = 7, pair = {1, 2}, alias = pair = other;
    const Tenths tenths = {(int *)seen + 1};
    tenths = 2.55f;
    int rows[2][3] = {{1}}, (*row)[3] = rows, *cell = rows[1];
    row = rows + 1, cell = *row, row[0][1] = 8.5f;
    auto next_one = [=](int x) { return x + n; };
    auto lambda = next_one;
    __half half = 2.f;
    half = 3.f, half = __float2half(2.f);
    Level level = Level::low;
    level = Level::high;
    const char *text = "x";
    text = n ? "ab" : "b";
    bool positive = out;
    positive = n;
    dim3 shape = 3;
    shape = dim3(1, 2), shape.z = 9.f;
    T value = out[0];
    *out++ = next == second && *next == 1, *out++ = *s, *out++ = function(n), *out++ = pair.*member;
    *out++ = (base->*method)(), *out++ = copy.i, *out++ = cell[1], *out++ = lambda(1), *out++ = half;
    *out++ = (int)level, *out++ = *text, *out++ = positive, *out++ = shape.y + shape.z, *out++ = value;
    *out++ = pointer == seen;
}

TEST_OF(any_type_is_assigned, int, float) {
    const Device<double> in(std::vector<double>{0, 1});
    const Device<int> seen(2);
    std::vector<T> first(15);
    first[0] = 6;
    EXPECT(equal(WRITTEN(T, first, any_type<T><<<1, 1>>>(in.data, out, seen.data, 3)),
                 {1, T(2.5), 6, 5, 30, 4, 8, 4, 2, 7, 'a', 1, 11, 6, 1}));
    EXPECT(equal(seen.host(), {4, 25}));
}
