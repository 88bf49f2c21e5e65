// SPDX-License-Identifier: MIT
// clang-format off
// Templates and lambdas. All is legal for nvcc with --extended-lambda.
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
template <int N> __global__ void address_in_ptx(const int *__restrict__ p) {
    unsigned long long at;
    asm("mov.u64 %0, %1;" : "=l"(at) : "l"(&p[threadIdx.x + N]));
    out[0] = at - (unsigned long long)p;
}
TEST(operands_of_ptx) {
    GIVES(8, address_in_ptx<2><<<1, 1>>>(out));
}
