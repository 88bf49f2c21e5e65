// SPDX-License-Identifier: MIT
// clang-format off
// Declarations: shared variables, kernels and device functions that need more than the right text to work.
// All is legal for nvcc.
#include "results.h"
#include <type_traits>

// ---- __shared__ ----

__global__ void shared_types() {
    __shared__ struct {
        int x, y[2];
    } unnamed, many[2];
    __shared__ struct Named {
        int z;
        __device__ int twice() const { return 2 * z; }
    } named;
    __shared__ union {
        int i;
        float f;
    } both;
    __shared__ void (*function)(int), (*functions[3])(float);
    __shared__ int Named::*member;
    __shared__ alignas(64) char aligned[3];
    __shared__ __align__(32) int other;
    unnamed.y[1] = 1, many[1].x = 2, named.z = 3, both.f = 1.0f, function = nullptr, functions[2] = nullptr, member = &Named::z;
    aligned[2] = 5, other = 6;
    struct { int w; } local = {7};
    out[0] = unnamed.y[1] + many[1].x + named.twice() + (both.i == 0x3f800000) + !function + !functions[2] + named.*member + aligned[2] +
             other + local.w + (size_t)aligned % 64 + (size_t)&other % 32;
}
TEST(types_of_shared_variables) {
    GIVES(1 + 2 + 6 + 1 + 1 + 1 + 3 + 5 + 6 + 7, shared_types<<<1, 1>>>());
}
struct Two { __host__ __device__ operator int() const { return 2; } } __device__ two;
constexpr struct { int a; } __constant__ seven __attribute__((unused)) = {7};
__global__ void after_a_class() {
    struct { int w; } __shared__ late, both[2];
    late.w = 4, both[1].w = 5;
    out[0] = late.w + both[1].w + two + seven.a;
}
TEST(variables_after_the_definition_of_a_class) {
    GIVES(4 + 5 + 2 + 7, after_a_class<<<1, 1>>>());
}
__global__ void shared_in_a_switch(int w) {
    switch (w) {
    case 1:
        __shared__ int x[4], y;
        x[0] = 1;
        out[0] = x[0];
        break;
    case 2:
        x[1] = 2;
        y = 3;
        out[0] = x[1] + y;
        break;
    default:
        __shared__ int z;
        z = 4;
        out[0] = z;
    }
    if (w < 0)
        switch (w) {
            __shared__ float first;
            volatile __shared__ int second;
        case -1:
            first = 4, second = 2;
            out[0] = (int)first + second;
            break;
        case -2:
            out[0] = 7;
        }
    else
        out[1] = 8;
}
TEST(shared_variables_after_labels) {
    const int expected[] = {7, 6, 4, 1, 5, 4};
    for (int w = -2; w <= 3; w++) {
        shared_in_a_switch<<<1, 1>>>(w);
        EXPECT(result() == expected[w + 2] && (w < 0 || result(1) == 8));
    }
}
__global__ void dynamic() {
    extern __shared__ __align__(16) unsigned char bytes[];
    extern __shared__ double doubles[];
    extern __attribute__((aligned(16))) __shared__ float2 pairs[];
    __shared__ extern volatile double *pointers[];
    extern __shared__ int rows[][4];
    float *f = (float *)&bytes, *g = reinterpret_cast<float *>(bytes), *h = (float *)&bytes[4];
    int(*all)[] = (int(*)[]) & rows;
    f[0] = 1.5f, g[1] = 2.5f, h[1] = 3.5f;
    out[0] = (int)(2 * (pairs[0].x + pairs[0].y + pairs[1].x)) + (doubles == (double *)rows[0]);
    pointers[5] = doubles;
    rows[1][3] = 9;
    out[1] = (*all)[7] + (&rows[1][0] - &rows[0][0]) + (pointers[5] == doubles);
}
__global__ void types_of_names() {
    __shared__ int x[6];
    [[gnu::aligned(256)]] __shared__ char aligned[4];
    extern __shared__ float typed[];
    decltype(x) copy;
    copy[5] = 1;
    x[5] = 2;
    auto initialised = [v = x[5]] { return v + x[5]; };
    static_assert(std::is_same<decltype(x), int[6]>::value && sizeof(decltype(copy)) == 24, "type of a shared variable");
    static_assert(std::is_same<decltype(typed[0]), float &>::value && std::is_same<decltype(typed), float[]>::value, "dynamic");
    out[0] = copy[5] + initialised() + std::extent<decltype(x)>::value + (size_t)aligned % 256;
}
TEST(types_of_shared_names) {
    GIVES(1 + 4 + 6, types_of_names<<<1, 1>>>());
}
TEST(dynamic_shared_memory_of_several_types) {
    dynamic<<<1, 1, 128>>>();
    EXPECT(result() == 16 && result(1) == 14);
}
extern __shared__ char file_buffer[];
extern "C" {
extern __shared__ float linked[];
}
__shared__ int file_array[4];
namespace attributed __attribute__((visibility("default"))) {
extern __shared__ float numbers[];
__device__ float get() {
    return numbers[1];
}
}
namespace space {
inline namespace version {
__shared__ extern int buffer[];
}
__shared__ int array[2];
namespace deep {
__device__ int *get() {
    return buffer + array[0];
}
} // namespace deep
} // namespace space
template <class T> __device__ T *deduced(T *p) {
    return p;
}
template <class T> struct SharedMemory {
    __device__ operator T *() { return reinterpret_cast<T *>(file_buffer); }
    __device__ static T *get() { return (T *)file_buffer; }
};
struct HasMember {
    int file_array;
    __device__ int get() const { return file_array; }
};
__global__ void file_scope() {
    float *f = SharedMemory<float>();
    f[0] = 1, f[1] = 2;
    file_array[1] = 3, space::array[0] = 1, ::space::array[1] = 5;
    auto *p = deduced(file_buffer);
    auto *q = deduced(::file_buffer);
    auto l = [](int i) { return reinterpret_cast<float *>(file_buffer)[i]; };
    HasMember m = {6};
    out[0] = (int)(SharedMemory<float>::get()[1] + ((float *)p)[0] + reinterpret_cast<float *>(q)[1] + l(0) +
                   ((float *)&file_buffer)[1]) +
             (int)linked[0] + (int)attributed::get() + (int)attributed::numbers[1] + file_array[1] + m.get() + (space::deep::get() == space::buffer + 1) + space::array[1];
}
TEST(shared_variables_at_namespace_scope) {
    GIVES(2 + 1 + 2 + 1 + 2 + 1 + 2 + 2 + 3 + 6 + 1 + 5, file_scope<<<1, 1, 64>>>());
}

// Dynamic shared memory that is no array without a size: all of them are at its start.
struct Record {
    int a[4];
    float f;
};
union Either {
    int i;
    float f;
};
extern __shared__ Record file_record;
extern __shared__ volatile int file_number;
extern __shared__ __align__(32) int sized[4], (*rows_of_two)[2];
namespace space {
extern __shared__ Either either;
}
template <class T> extern __shared__ T any_type[];
template <class T, int N = 2> extern __shared__ T any_number;
namespace space {
template <class... T> __shared__ std::common_type_t<T...> own[4];
template <class T> __device__ T *second() {
    return any_type<T> + 1 + (own<int, T> == nullptr);
}
}
struct Base {};
struct UsesSized : Base {
    __device__ int *get() { return sized; }
};
template <class T> __device__ T of_type(int i) {
    extern __shared__ T value;
    extern __shared__ Either both[2];
    (&value)[i] = (T)i;
    return any_type<T>[i] + (T)(both[0].i == file_record.a[0]);
}
__global__ void other_dynamic() {
    extern __shared__ Record record;
    extern __shared__ int number, four[4];
    record.f = 1.5f;
    for (int i = 0; i < 4; i++)
        record.a[i] = 10 + i;
    auto read = [] { return file_record.a[3] + (int)space::either.f; };
    space::either.i = 7, any_number<int> += 1, space::own<int, char>[1] = 5, space::own<float>[1] = 0.5f;
    out[0] = number + four[1] + file_record.a[2] + (int)(2 * file_record.f) + file_number + sized[3];
    out[1] = read() + ::space::either.i + any_type<int>[1] + *space::second<int>() + *UsesSized().get();
    out[2] = (int)sizeof(any_type<char>[0]) + (any_number<char, 3> == 8) + space::own<int, char>[1] +
             (int)(2 * space::own<float>[1]) + ((void *)&any_number<float> == &number);
    out[3] = (int)of_type<double>(3); // nvcc: one type of each name
}
TEST(dynamic_shared_memory_of_other_types) {
    other_dynamic<<<1, 1, 64>>>();
    EXPECT(result() == 8 + 11 + 12 + 3 + 8 + 13 && result(1) == 13 + 8 + 11 + 11 + 8);
    EXPECT(result(2) == 1 + 1 + 5 + 1 + 1 && result(3) == 3 + 1);
}

// ---- kernels and device functions ----

__global__ void declared(int);
__global__ void declared(int n = 30);
extern __global__ void declared(int);
void __global__ declared(int n) {
    out[0] = n;
}
__global__ void grid_constant(const __grid_constant__ int n) {
    out[0] = n;
}
__global__ void unused_parameters([[maybe_unused]] int a, int b [[maybe_unused]], int) {
    out[0] = 5;
}
__device__ int (also_in_parentheses)(int n) {
    return n;
}
__global__ void (in_parentheses)(int n) {
    out[0] = also_in_parentheses(n);
}
__global__ void function_parameter(int f(int), int (*g)(int), int (&h)(int), int a[], int b[][2]) {
    out[0] = !f + !g + !a + !b + (&h == nullptr);
}
__global__ void long_name_of_a_parameter(int pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp) {
    out[0] = pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp;
}
TEST(forms_of_kernels) {
    GIVES(30, declared<<<1, 1>>>());
    GIVES(7, grid_constant<<<1, 1>>>(7));
    GIVES(11, in_parentheses<<<1, 1>>>(11));
    GIVES(12, long_name_of_a_parameter<<<1, 1>>>(12));
    GIVES(5, unused_parameters<<<1, 1>>>(1, 2, 3));
}
class Outer {
    int secret;
    friend __global__ void friendly(int);
    template <class T> friend __global__ void friendly_template(T);
    struct Hidden {
        int a;
    };
    explicit __device__ Outer(int n) : secret{n} {}
    static __device__ Hidden hidden() { return {4}; }
};
__global__ void friendly(int n) {
    out[0] = Outer(n).secret + Outer::hidden().a;
}
template <class T> __global__ void friendly_template(T n) {
    out[0] = Outer(n).secret;
}
TEST(friends) {
    GIVES(3 + 4, friendly<<<1, 1>>>(3));
    GIVES(8, friendly_template<<<1, 1>>>(8));
}
__global__ void locals(int cu_p1, int x) {
    int cu_a = 1, cu_t_x = 2, cu_s_x = 3, cu_v_x = 4, cu_launch = 5, body = 6, arguments = 7, call = 8;
    out[0] = cu_a + cu_t_x + cu_s_x + cu_v_x + cu_launch + body + arguments + call + cu_p1 + x;
}
TEST(names_like_those_of_the_translator) {
    int cu_a = 1;
    GIVES(36 + 3, locals<<<1, 1>>>(cu_a, 2));
}

// ---- forms that the translator must find the parts of ----

template <class T, int N> struct Row {
    static constexpr int n = 2;
    template <class U> struct Of {
        typedef U Type;
    };
    T v[N];
};
struct Declared;
template <class T, int N> __global__ void template_defaults(const T *__restrict p, Row<T, 3> q = {1, 2}, unsigned n = N) {
    out[0] = !p + (int)q.v[1] + n;
}
__global__ void only_types(int, float[], int (*)(int), unsigned long, const Row<int, 3> = {}, struct Declared * = nullptr) {
    out[0] = 7;
}
template <class T> __global__ void specialised(T) {
    out[0] = 1;
}
template <> __global__ void specialised<int>(int x) {
    out[0] = x;
}
template __global__ void specialised<char>(char);
extern template __global__ void specialised<long>(long);
template <class T> __global__ void __launch_bounds__(Row<T, 2>::n * 32, 2) bounded(T const x) {
    out[0] = x;
}
__launch_bounds__(64 * (2 + 3)) __global__ void bounded_before() {
    out[0] = 8;
}
__global__ void __launch_bounds__(Row<int, 1>::n < 64 ? 64 : 9, 2) __attribute__((unused)) bounded_by_a_choice() {
    out[0] = 9;
}
TEST(parts_of_kernels) {
    GIVES(1 + 2 + 5, template_defaults<int, 5><<<1, 1>>>(nullptr));
    GIVES(7, only_types<<<1, 1>>>(1, nullptr, nullptr, 2));
    GIVES(6, specialised<<<1, 1>>>(6));
    GIVES(1, specialised<<<1, 1>>>('a'));
    GIVES(4, bounded<<<1, 64>>>(4));
    GIVES(8, bounded_before<<<1, 1>>>());
    GIVES(9, bounded_by_a_choice<<<1, 1>>>());
}
template <class T> __global__ void parts_of_shared() {
    __shared__ T x[3], *y, z;
    static __shared__ int in_front[4];
    __shared__ static int behind[4];
    unsigned __shared__ long long between;
    __shared__ enum class E : char { a, b } scoped;
    __shared__ Row<Row<int, 3>, (1 > 2) + 4> nested;
    __shared__ typename Row<T, 1>::template Of<T>::Type dependent[Row<T, 1>::n];
    __shared__ float (*to_rows)[4];
    __shared__ float const *const *constant;
    __shared__ decltype(sizeof(int)) of_a_type;
    __device__ __shared__ int both_words;
    __shared__ float a[1] __align__(16), spread;
    __shared__ __attribute__((aligned(32))) char b[3];
    __attribute__((aligned(32))) __shared__ char c[3];
    __shared__ alignas(8) alignas(64) char d;
    x[2] = 1, y = x, z = 2, in_front[3] = 3, behind[3] = 4, between = 5, scoped = E::b, nested.v[3].v[2] = 6;
    dependent[1] = 7, to_rows = nullptr, constant = nullptr, of_a_type = 8, both_words = 9;
    const size_t off = (size_t)a % 16 + (size_t)b % 32 + (size_t)c % 32 + (size_t)&d % 64;
    out[0] = y[2] + z + in_front[3] + behind[3] + between + (int)scoped + nested.v[3].v[2] + dependent[1] + !to_rows +
             !constant + of_a_type + both_words + off;
}
__global__ void shared_in_lambdas() {
    __shared__ int x, y;
    int a = 3;
    x = 1, y = 2;
    auto none = [] { return x + y; };
    auto copies = [=]() mutable { return x + a++; };
    auto one = [a] { return x + a; };
    auto type = [] { decltype(x) z = 4; return z; };
    auto generic = [](auto b) { return x + b; };
    auto nested = [=] { return [=] { return x; }() + a; };
    auto reference = [&] { return [] { return y; }() + a; };
    auto own = [x = 5] { return x; };
    auto parameter = [](int x) { return x; };
    out[0] = none() + copies() + one() + type() + generic(1) + nested() + reference() + own() + parameter(6);
}
TEST(parts_of_shared_variables) {
    GIVES(1 + 2 + 3 + 4 + 5 + 1 + 6 + 7 + 1 + 1 + 8 + 9, parts_of_shared<int><<<1, 1>>>());
    GIVES(3 + 4 + 4 + 4 + 2 + 4 + 5 + 5 + 6, shared_in_lambdas<<<1, 1>>>());
}
