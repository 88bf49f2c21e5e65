// SPDX-License-Identifier: MIT
// Vector types and their functions, and shifts. Values of the functions for kernels: ../conformance.
#include <math_constants.h>
#include <climits>
#include <cmath>
#include <type_traits>
#include "device.h"

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

// Without inlining: where a compiler sees the comparison it may take a shift by all bits for impossible.
__device__ __noinline__ bool is(long long value, long long expected) {
    return value == expected;
}

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
    *good = is(x, 0) && is(y[0], 0) && p == y + 1 && is(y[1], -1) && i == 1 && is(f.a, 0) && is(f.b, -1) &&
            g.a == 16 && g.b == 1 && (c << 40).shifts == 43 && is(v, 0) && a[3] == 8 &&
            is((unsigned char)200 << (n - 8), (int)(200u << 24)) && is((short)-2 >> n, -1) &&
            is(1 << (1ll << n), 1) && is(true << (n - 31), 2) && is(shifted(1u, n), 0) &&
            is(shifted(1ull, 2 * n), 0) && is(shifted(1ll, 16ull), (1ll << 16) + (1ll << 32)) &&
            is([=] { return -1 >> n << n; }(), 0);
}

TEST(shifts_in_statements) {
    EXPECT(good(shift_and_assign, 1, 32));
}

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
__global__ void own_functions(int *good, float x) {
    *good = dot(make_float3(1, 2, 3), make_float3(x, 1, 1) + make_float3(1, 1, 1)) == 11 &&
            fminf(make_float3(2, x, -9), make_float3(1, 1, 1)).x == 1;
}

TEST(a_programs_own_functions) {
    EXPECT(good(own_functions, 1, 0.0f));
}

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
