// SPDX-License-Identifier: MIT
// clang-format off
// Constraints of C++20. All is legal for nvcc -std=c++20 --extended-lambda.
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
