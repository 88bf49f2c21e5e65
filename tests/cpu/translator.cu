// SPDX-License-Identifier: MIT
// Runs what cu2cpp writes on the real engine: forms of launches and shared memory whose result a
// comparison of texts cannot prove. All other tests of the translator are in
// tests/test_translator.py.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstring>
#include "../unit.h"

__global__ void add(int a, int b, int *c) {
    atomicAdd(c, a + b);
}
template <class T> __global__ void fill(T *p, T value) {
    p[threadIdx.x] = value;
}
template <class T, int N> struct Tag { static constexpr int n = N; };
template <class T, int N> __global__ void product(int *p) {
    p[threadIdx.x] = T::n * N;
}
template <class F> __global__ void each(F f, int *p) {
    p[threadIdx.x] = f(threadIdx.x);
}

template <int N, class T> void launch_in_template(T *p) {
    if (N > 3)
        fill<T><<<1, N>>>(p, T(9));
    else
        fill<<<1, 1>>>(p, T(1));
    [&] { product<Tag<Tag<T, 3>, 4>, N - 1><<<1, N / 2>>>(p); }();
}

// Results in managed memory.
struct Results {
    int *p;
    Results() {
        EXPECT(cudaMallocManaged(&p, 64 * sizeof(int)) == cudaSuccess);
        memset(p, 0, 256);
    }
    ~Results() { EXPECT(cudaGetLastError() == cudaSuccess && cudaFree(p) == cudaSuccess); }
    int operator[](int i) const { return p[i]; }
};

TEST(launches_of_templates) {
    Results r;
    launch_in_template<6>(r.p);
    cudaDeviceSynchronize();
    EXPECT(r[0] == 20 && r[2] == 20 && r[3] == 9 && r[5] == 9 && r[6] == 0);
    product<Tag<Tag<int, 2>, 3>, 7><<<1, 1 << 2>>>(r.p);
    const int offset = 10;
    each<<<1, 2>>>([=] __device__(int i) { return i + offset; }, r.p);
    cudaDeviceSynchronize();
    EXPECT(r[0] == 10 && r[1] == 11 && r[2] == 21 && r[3] == 21);
}

TEST(kernel_expressions_are_evaluated_once) {
    Results r;
    int calls = 0;
    void (*table[])(int, int, int *) = {add, add};
    auto next = [&] { return table[calls++]; };
    next()<<<4, 8>>>(1, 0, r.p);
    table[calls++]<<<1, 1>>>(1, 0, r.p);
    (*table)<<<dim3(2), dim3(2, 2)>>>(1, 0, r.p);
    cudaDeviceSynchronize();
    EXPECT(calls == 2 && r[0] == 32 + 1 + 8);
}

TEST(arguments_are_evaluated_once) {
    Results r;
    int i = 0;
    i ? add<<<1, 1>>>(0, 0, r.p) : add<<<2, 16>>>(++i, 0, r.p), fill<<<1, 1>>>(r.p + 1, i);
    cudaDeviceSynchronize();
    EXPECT(i == 1 && r[0] == 32 && r[1] == 1);
}

template <class T, int N> __global__ void shapes(T *out) {
    __shared__ T a[N], *b, c;
    __shared__ T grid[2][N + 1];
    volatile __shared__ T d[2];
    static __shared__ struct Pair {
        T x;
        float y;
    } e, f[2];
    __shared__ __align__(256) char g[5];
    alignas(64) __shared__ T h[2];
    static_assert(sizeof a == N * sizeof(T) && sizeof grid == 2 * (N + 1) * sizeof(T), "arrays stay arrays");
    const unsigned i = threadIdx.x;
    a[i] = T(i);
    grid[1][i] = T(1);
    if (i == 0) {
        b = a;
        c = T(2);
        d[1] = T(3);
        e.x = f[1].x = T(4);
        g[4] = (uintptr_t)g % 256 == 0;
        h[1] = (uintptr_t)h % 64 == 0;
    }
    __syncthreads();
    out[i] = b[N - 1 - i] + c + d[1] + e.x + f[1].x + g[4] + h[1] + grid[1][N - 1 - i];
}

TEST(shared_memory_of_every_shape) {
    Results r;
    shapes<int, 8><<<1, 8>>>(r.p);
    float *floats = (float *)(r.p + 16);
    shapes<float, 4><<<1, 4>>>(floats);
    cudaDeviceSynchronize();
    EXPECT(r[0] == 7 + 16 && r[7] == 0 + 16);
    EXPECT(floats[0] == 3 + 16 && floats[3] == 0 + 16);
}

__device__ int count_calls() {
    __shared__ int calls;
    if (threadIdx.x == 0)
        calls = 0;
    __syncthreads();
    return atomicAdd(&calls, 1) + 1;
}
__global__ void nested(int *out) {
    __shared__ int same;
    same = 1;
    {
        __shared__ int same;
        same = 2;
    }
    atomicMax(out, count_calls());
    atomicMax(out + 1, same);
}

TEST(shared_memory_of_device_functions_and_blocks) {
    Results r;
    nested<<<3, 5>>>(r.p);
    cudaDeviceSynchronize();
    EXPECT(r[0] == 5 && r[1] == 1);
}

__global__ void dynamic_ints(int *out) {
    extern __shared__ int x[];
    x[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (blockIdx.x == 1)
        out[threadIdx.x] = x[blockDim.x - 1 - threadIdx.x];
}
__global__ void dynamic_rows(int *out) {
    extern __shared__ __align__(16) volatile float x[];
    extern __shared__ char rows[][8];
    x[2] = 1.5f;
    float value;
    memcpy(&value, rows[1], sizeof value);
    out[0] = value == 1.5f && (void *)rows == (void *)x && (uintptr_t)rows % 16 == 0;
}
extern __shared__ int outside[];
__global__ void dynamic_outside(int *out) {
    outside[threadIdx.x] = 2 * threadIdx.x;
    __syncthreads();
    const int *p = outside, *q = &outside[3];
    out[threadIdx.x] = p[1] + *q + *(outside + 2);
}

TEST(dynamic_shared_memory) {
    Results r;
    dynamic_ints<<<2, 8, 8 * sizeof(int)>>>(r.p);
    dynamic_rows<<<1, 1, 64>>>(r.p + 8);
    dynamic_outside<<<1, 4, 4 * sizeof(int)>>>(r.p + 16);
    cudaDeviceSynchronize();
    EXPECT(r[0] == 7 && r[7] == 0 && r[8] == 1 && r[16] == 2 + 6 + 4 && r[19] == 12);
}

__shared__ int filed[32];
namespace other {
static __shared__ __align__(256) struct Both {
    float value;
    int number;
} filed;
__device__ void set(float value) {
    filed.value = value;
}
} // namespace other
__device__ __noinline__ int add_filed() {
    return filed[0] + filed[threadIdx.x];
}
namespace other {
__global__ void file_scope(int *out) {
    if (threadIdx.x == 0)
        set(2.5f);
    __syncthreads();
    if (threadIdx.x == 1)
        out[0] = filed.value == 2.5f && (size_t)&filed % 256 == 0 && sizeof filed == 8;
}
} // namespace other
__global__ void file_scope(int *out) {
    filed[threadIdx.x] = threadIdx.x + blockIdx.x + 1;
    __syncthreads();
    atomicMax(out + 1, add_filed());
    int local = filed[0];
    {
        int filed = local;
        atomicMax(out + 2, filed > 0);
    }
}
extern __shared__ float outside_cast[];
template <class T> __device__ T deduced(T *p) {
    return p[1];
}
__global__ void cast_outside(int *out) {
    float4 *vector = reinterpret_cast<float4 *>(outside_cast);
    auto pointer = outside_cast;
    vector[0] = make_float4(1, 2, 3, 4);
    out[0] = (int)(pointer[2] + deduced(outside_cast) + *(outside_cast + 3));
}

TEST(shared_memory_at_file_scope) {
    Results r;
    other::file_scope<<<1, 2>>>(r.p);
    file_scope<<<2, 32>>>(r.p);
    cast_outside<<<1, 1, 64>>>(r.p + 3);
    cudaDeviceSynchronize();
    EXPECT(r[0] == 1 && r[1] == 2 + 33 && r[2] == 1 && r[3] == 9);
}

struct Sphere {
    float x;
    static __device__ int count;
    __host__ __device__ Sphere(float at = 0) : x(at) {}
    __device__ float hit(float from) const { return from - x; }
};
__device__ int Sphere::count = 3;
__constant__ float table[3];
__device__ int twice(int v) {
    return 2 * v;
}
__device__ int (*function)(int) = twice;
__global__ void read_variables(int *out) {
    out[0] = Sphere::count;
    out[1] = (int)table[2];
    out[2] = function(21);
    out[3] = (int)Sphere(2).hit(9);
}

TEST(variables_of_every_sort_are_symbols) {
    Results r;
    const float values[] = {1, 2, 3};
    int count = 8;
    EXPECT(cudaMemcpyToSymbol(table, values, sizeof values) == cudaSuccess);
    EXPECT(cudaMemcpyToSymbol(Sphere::count, &count, sizeof count) == cudaSuccess);
    read_variables<<<1, 1>>>(r.p);
    cudaDeviceSynchronize();
    EXPECT(r[0] == 8 && r[1] == 3 && r[2] == 42 && r[3] == 7);
}
