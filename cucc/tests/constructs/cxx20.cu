// SPDX-License-Identifier: MIT
// clang-format off
// Features of C++20. All is legal for nvcc -std=c++20 --extended-lambda.
#include "results.h"
#include <compare>
#include <concepts>
#include <type_traits>

template <class T>
concept Number = std::is_arithmetic_v<T> && (sizeof(T) > 0);
template <Number T> __global__ void constrained(T v) {
    out[0] = (int)v;
}
template <class T>
    requires Number<T> && (sizeof(T) < 8)
__global__ void required(T v) {
    out[0] = (int)v + 1;
}
template <class T>
    requires requires(T t) { t.x; }
__global__ void required(T v) {
    out[0] = v.x;
}
struct Point {
    int x, y;
    __host__ __device__ auto operator<=>(const Point &) const = default;
    __host__ __device__ bool operator==(const Point &) const = default;
};
template <Point P> __global__ void class_parameter() {
    out[0] = P.x + P.y;
}
TEST(constraints) {
    GIVES(1, constrained<<<1, 1>>>(1.5));
    GIVES(2, required<<<1, 1>>>(1));
    GIVES(3, required<<<1, 1>>>(Point{3, 4}));
    GIVES(11, class_parameter<Point{5, 6}><<<1, 1>>>());
}
consteval int squared(int n) {
    return n * n;
}
__device__ constexpr int at_compile_time(int n) {
    return n;
}
__global__ void features(int n) {
    constexpr int a = at_compile_time(3);
    Point p{.x = 1, .y = 2}, q{.x = 1, .y = 3};
    int sum = 0;
    for (int k = 2; auto v : {1, 2, 3})
        sum += k * v;
    auto l = []<class T>(T v) { return sizeof(T) + v; };
    auto m = [=]<int N>() requires(N > 1) { return N; };
    if (n > 0) [[likely]]
        sum++;
    else [[unlikely]]
        sum--;
    switch (n) {
    [[likely]] case 1:
        sum += 10;
        break;
    default:
        __shared__ int x;
        x = 5;
        sum += x;
    }
    using enum cudaMemcpyKind;
    out[0] = a + squared(4) + (p != q) + (p == q) + sum + (int)l(1) + m.template operator()<7>() + (cudaMemcpyHostToDevice == 1);
}
TEST(features_of_cxx20) {
    GIVES(3 + 16 + 1 + 0 + (12 + 1 + 10) + 5 + 7 + 1, features<<<1, 1>>>(1));
    GIVES(3 + 16 + 1 + 0 + (12 - 1 + 5) + 5 + 7 + 1, features<<<1, 1>>>(0));
}
