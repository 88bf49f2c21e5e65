// SPDX-License-Identifier: MIT
// clang-format off
// Templates, lambdas and the other features of C++17. All is legal for nvcc with --extended-lambda.
#include "results.h"
#include <type_traits>

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
    GIVES(31, call<<<1, 1>>>([=] __device__(int i) { return i + n + m; }));
    GIVES(51, call<<<1, 1>>>([m, s] __device__(int i) -> int { return i + m + s.k; }));
    GIVES(15, call<<<1, 1>>>([=] __host__ __device__(int i) { return s.k < i ? 0 : s.k >> i; }));
    GIVES(22, call<<<1, 1>>>([k = m + 1] __device__(int i) mutable { return k += i; }));
    GIVES(5, apply<<<1, 1>>>([] __device__(int a, int b) { return a < b ? a : b; }, 8, 5));
    auto f = [] __device__ { return 6; };
    GIVES(6, apply<<<1, 1>>>(f));
    GIVES(7, apply<<<1, 1>>>([] __device__() { __shared__ int x; x = 7; return x; }));
}
template <class T, int N = sizeof(T), bool B = (N > 4), class = std::enable_if_t<(N < 16)>> __global__ void with_defaults(T v) {
    __shared__ T a[B ? N : N + 1];
    a[0] = v;
    out[0] = (int)a[0] + (int)(sizeof a / sizeof a[0]);
}
template <class T> __global__ auto sfinae(T t) -> std::enable_if_t<sizeof(t) == 8> {
    out[0] = 8;
}
TEST(template_parameters) {
    GIVES(2 + 5, with_defaults<<<1, 1>>>(2));
    GIVES(2 + 4, with_defaults<int, 3><<<1, 1>>>(2));
    GIVES(8, sfinae<<<1, 1>>>(1.0));
}
template <class T> __device__ T made(int) { return 0; }
template <> __device__ int made(int x) { return x + 1; }
template <> __device__ short2 made(int x) { return {(short)x, 0}; }
__global__ void specialized() {
    out[0] = made<int>(1) + made<short2>(10).x + made<char>(5);
}
TEST(specializations) {
    GIVES(12, specialized<<<1, 1>>>());
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
    GIVES(3 + 4 + 15 + 24 + 10 + 8 + 2 + (36 - 3) + 3 + 6 + 1 + 5 + 0 + 1 + 6 + 1, features<<<1, 1>>>());
}
