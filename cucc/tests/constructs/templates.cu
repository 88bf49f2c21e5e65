// SPDX-License-Identifier: MIT
// clang-format off
// Templates, lambdas and the other features of C++17. All is legal for nvcc with --extended-lambda.
#include "results.h"
#include <tuple>
#include <type_traits>
#include <utility>

__global__ void set(int value) {
    out[0] = value;
}
template <class T> __global__ void generic(T value) {
    out[0] = (int)value;
}
template <class F> __global__ void call(F f) {
    out[0] = f(1);
}
template <class F, class... A> __global__ void apply(F f, A... a) {
    out[0] = f(a...);
}
struct Captured {
    int k;
};
TEST(device_lambdas) {
    const int n = 10;
    int m = 20;
    Captured s = {30};
    call<<<1, 1>>>([=] __device__(int i) { return i + n + m; });
    EXPECT(result() == 31);
    call<<<1, 1>>>([m, s] __device__(int i) -> int { return i + m + s.k; });
    EXPECT(result() == 51);
    call<<<1, 1>>>([=] __host__ __device__(int i) { return s.k < i ? 0 : s.k >> i; });
    EXPECT(result() == 15);
    call<<<1, 1>>>([k = m + 1] __device__(int i) mutable { return k += i; });
    EXPECT(result() == 22);
    apply<<<1, 1>>>([] __device__(int a, int b) { return a < b ? a : b; }, 8, 5);
    EXPECT(result() == 5);
    auto f = [] __device__ { return 6; };
    apply<<<1, 1>>>(f);
    EXPECT(result() == 6);
    apply<<<1, 1>>>([] __device__() { __shared__ int x; x = 7; return x; });
    EXPECT(result() == 7);
}
struct Functor {
    int k;
    __device__ int operator()(int i) const { return i * k; }
};
TEST(function_objects) {
    call<<<1, 1>>>(Functor{5});
    EXPECT(result() == 5);
    call<Functor><<<1, 1>>>({6});
    EXPECT(result() == 6);
}
template <class T, int N = sizeof(T), bool B = (N > 4), class = std::enable_if_t<(N < 16)>> __global__ void with_defaults(T v) {
    __shared__ T a[B ? N : N + 1];
    a[0] = v;
    out[0] = (int)a[0] + (int)(sizeof a / sizeof a[0]);
}
template <template <class, class> class P, class A, class B> __global__ void template_template(P<A, B> p) {
    out[0] = (int)p.first + (int)p.second;
}
template <class A, class B> struct Two {
    A first;
    B second;
};
template <class T, std::enable_if_t<std::is_integral<T>::value && (sizeof(T) > 1), int> = 0> __global__ void integral(T) {
    out[0] = 1;
}
template <class T, std::enable_if_t<!std::is_integral<T>::value, int> = 0> __global__ void integral(T) {
    out[0] = 2;
}
template <class T> __global__ auto sfinae(T t) -> std::enable_if_t<sizeof(t) == 8> {
    out[0] = 8;
}
template <class T> __global__ auto sfinae(T t) -> std::enable_if_t<sizeof(t) == 4> {
    out[0] = 4;
}
template <typename T, T... V> __global__ void sequence(std::integer_sequence<T, V...>) {
    const int a[] = {V...};
    out[0] = a[sizeof...(V) - 1] + (V + ...);
}
template <auto V> __global__ void automatic() {
    out[0] = (int)V;
}
template <const int &R> __global__ void reference_parameter() {
    out[0] = sizeof R;
}
static const int referred = 3;
TEST(template_parameters) {
    with_defaults<<<1, 1>>>(2);
    EXPECT(result() == 2 + 5);
    with_defaults<double><<<1, 1>>>(2);
    EXPECT(result() == 2 + 8);
    with_defaults<int, 3><<<1, 1>>>(2);
    EXPECT(result() == 2 + 4);
    template_template<<<1, 1>>>(Two<int, double>{1, 2});
    EXPECT(result() == 3);
    template_template<Two, int, char><<<1, 1>>>({3, 4});
    EXPECT(result() == 7);
    integral<<<1, 1>>>(1);
    EXPECT(result() == 1);
    integral<<<1, 1>>>(1.0);
    EXPECT(result() == 2);
    sfinae<<<1, 1>>>(1.0);
    EXPECT(result() == 8);
    sfinae<<<1, 1>>>(1.0f);
    EXPECT(result() == 4);
    sequence<<<1, 1>>>(std::make_integer_sequence<int, 5>());
    EXPECT(result() == 4 + 10);
    sequence<<<1, 1>>>(std::integer_sequence<int, 1, 2, (3 > 2)>{});
    EXPECT(result() == 1 + 4);
    automatic<'a'><<<1, 1>>>();
    EXPECT(result() == 'a');
    automatic<std::is_same_v<int, int>><<<1, 1>>>();
    EXPECT(result() == 1);
    automatic<std::tuple_size<std::tuple<int, std::pair<int, int>>>::value><<<1, 1>>>();
    EXPECT(result() == 2);
    automatic<(std::tuple_size<std::tuple<int>>::value < 2)><<<1, 1>>>();
    EXPECT(result() == 1);
    reference_parameter<referred><<<1, 1>>>();
    EXPECT(result() == 4);
}
template <class T> struct Primary {
    static __device__ int f() { return 1; }
};
template <class T> struct Primary<T *> {
    static __device__ int f() { return 2; }
};
template <> struct Primary<int (*)(int)> {
    static __device__ int f() { return 3; }
};
template <class T> __global__ void specialised() {
    out[0] = Primary<T>::f();
}
template <> __global__ void specialised<char>() {
    out[0] = 4;
}
template __global__ void specialised<short>();
extern template __global__ void specialised<long>();
template __global__ void specialised<long>();
TEST(specialisations) {
    specialised<int><<<1, 1>>>();
    EXPECT(result() == 1);
    specialised<int *><<<1, 1>>>();
    EXPECT(result() == 2);
    specialised<int (*)(int)><<<1, 1>>>();
    EXPECT(result() == 3);
    specialised<char><<<1, 1>>>();
    EXPECT(result() == 4);
}
template <class T> struct Base {
    T value;
    template <class U> __device__ U as() const { return (U)value; }
    static __host__ void launch(int n) { generic<T><<<1, 1>>>((T)n); }
    struct Nested {
        static constexpr int n = 5;
    };
};
template <class T> struct Derived : Base<T>, private Two<int, T> {
    using Base<T>::value;
    typedef typename Base<T>::Nested Nested;
    __host__ __device__ Derived(T v) : Base<T>{v}, Two<int, T>{1, v} {}
    __device__ int get() const { return this->template as<int>() + Nested::n + (int)this->second; }
    void run() { this->launch(6), Base<T>::launch(7); }
};
template <class T> __global__ void derived(Derived<T> d) {
    out[0] = d.get() + d.template as<int>();
}
TEST(dependent_names) {
    derived<<<1, 1>>>(Derived<float>(2.5f));
    EXPECT(result() == 2 + 5 + 2 + 2);
    Derived<double>(1).run();
    EXPECT(result() == 7);
}
__device__ constexpr int factorial(int n) {
    return n < 2 ? 1 : n * factorial(n - 1);
}
template <class T> __device__ int kind_of(T v) {
    if constexpr (std::is_pointer_v<T>)
        return *v;
    else if constexpr (sizeof(T) > 4)
        return 8;
    else
        return v;
}
template <class... T> __device__ int fold(T... v) {
    return (0 + ... + v) * (1 * ... * v) - (v, ...);
}
__global__ void features() {
    int array[] = {3, 4}, sum = 0;
    auto [a, b] = array;
    for (auto &v : array)
        sum += v++;
    if (int x = sum; x > 3)
        sum += x;
    switch (auto x = sum; x)
    case 14:
        sum++;
    constexpr int c = factorial(4);
    static_assert(c == 24 && sizeof(int[c < 25 ? 1 : 2]) == 4, "<<<");
    auto add = [](auto... v) { return (v + ...); };
    auto recursive = [](auto self, int n) -> int { return n < 1 ? 0 : n + self(self, n - 1); };
    decltype(auto) reference = (array[0]);
    reference = 10;
    enum class Local : char { one = 1 };
    using Pointer = int *;
    Pointer p{array};
    out[0] = a + b + sum + c + kind_of(p) + kind_of(1.0) + kind_of((short)2) + fold(1, 2, 3) + add(1, 2) + recursive(recursive, 3) +
             (int)Local::one + [&] { return p[1]; }() + int{} + (p ? 1 : 0) + [n = 5]() mutable { return ++n; }();
    goto end;
end:
    try_again:
    if (out[0]++ < 0)
        goto try_again;
}
TEST(features_of_cxx17_in_device_code) {
    features<<<1, 1>>>();
    EXPECT(result() == 3 + 4 + 15 + 24 + 10 + 8 + 2 + (36 - 3) + 3 + 6 + 1 + 5 + 0 + 1 + 6 + 1);
}
template <class T, class = void> struct Has : std::false_type {};
template <class T> struct Has<T, std::void_t<decltype(std::declval<T>().first)>> : std::true_type {};
template <class T> inline constexpr bool has = Has<T>::value;
template <class... T> struct Overloaded : T... {
    using T::operator()...;
};
template <class... T> Overloaded(T...) -> Overloaded<T...>;
TEST(host_code_of_cxx17) {
    auto o = Overloaded{[](int n) { set<<<1, 1>>>(n); }, [](double d) { generic<<<1, 1>>>(d + 1); }};
    o(3);
    EXPECT(result() == 3);
    o(3.5);
    EXPECT(result() == 4);
    if constexpr (has<Two<int, int>> && !has<int>)
        set<<<1, 1>>>(5);
    else
        set<<<1, 1>>>(6);
    EXPECT(result() == 5);
    auto [grid, value] = std::pair{1, 7};
    set<<<grid, 1>>>(value);
    EXPECT(result() == 7);
    std::apply([](auto... v) { (set<<<1, 1>>>(v), ...); }, std::tuple{1, 2, 8});
    EXPECT(result() == 8);
    auto nested = [](auto f) { return [=](auto v) { f(v); }; };
    nested([](int v) { set<<<1, 1>>>(v); })(9);
    EXPECT(result() == 9);
    static constexpr auto launch = +[](int v) { set<<<1, 1>>>(v); };
    launch(10);
    EXPECT(result() == 10);
}
union Either {
    int i;
    float f;
    struct {
        short low, high;
    };
    __device__ Either(int v) : i(v) {}
};
struct alignas(16) Aligned {
    float x;
    struct {
        int y;
    };
    union {
        int z;
        char bytes[4];
    };
    int bits : 4, : 4, more : 8;
};
__global__ void layouts(Aligned a) {
    __shared__ Aligned s[2];
    s[1] = a;
    Either e(0x10002);
    out[0] = e.low + e.high + s[1].y + s[1].bytes[0] + s[1].more + (int)sizeof s;
}
TEST(unions_and_unnamed_structures) {
    Aligned a = {};
    a.y = 3, a.z = 4, a.more = 5;
    layouts<<<1, 1>>>(a);
    EXPECT(result() == 2 + 1 + 3 + 4 + 5 + 32);
}
__global__ void device_asm(int n) {
    int r;
    asm volatile("add.s32 %0, %1, %2;" : "=r"(r) : "r"(n), "r"(1));
    if (n)
        asm("{ .reg .u32 t; mov.u32 t, %%laneid; add.u32 %0, %0, t; }" : "+r"(r));
    else
        asm volatile("" ::: "memory");
    out[0] = r;
}
TEST(inline_ptx) {
    device_asm<<<1, 1>>>(5);
    EXPECT(result() == 6);
}
