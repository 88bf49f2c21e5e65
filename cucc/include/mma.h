// SPDX-License-Identifier: MIT
// Warp matrix functions (nvcuda::wmma): the threads of a warp multiply and add small matrices together
// (docs/execution.md). Element e of a matrix, in row-major order, is x[e % num_elements] in lane e /
// num_elements. The first lane that continues does the work of all lanes: it reads and writes their
// fragments, which are local variables in the same host thread.
#pragma once
#include "cuda_cpu/letters_off.h"
#include "cuda_fp16.h"
#include "cuda_bf16.h"
#ifdef __CUDACC__ // matrices are for kernels; a host source may include the header
#include <algorithm>
#include <climits>

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

namespace precision {
struct tf32; // TensorFloat-32: multiplication uses only the upper 19 bits of the float
}

} // namespace nvcuda::wmma

namespace cuda_cpu::matrix {

using namespace nvcuda::wmma;

// Properties of an element type.
template <class S, int depth, class Sum> struct ElementOf {
    using Storage = S;              // the type in which a fragment stores elements
    using Total = Sum;              // the type of products and sums
    static constexpr int k = depth; // the k of the shapes m x n x k with such operands; 0: no operand type
};
template <class T> struct Element : ElementOf<T, 0, T> {};
template <> struct Element<__half> : ElementOf<__half, 16, float> {};
template <> struct Element<__nv_bfloat16> : ElementOf<__nv_bfloat16, 16, float> {};
template <> struct Element<signed char> : ElementOf<signed char, 16, int> {};
template <> struct Element<unsigned char> : ElementOf<unsigned char, 16, int> {};
template <> struct Element<precision::tf32> : ElementOf<float, 8, float> {};
template <> struct Element<double> : ElementOf<double, 4, double> {};

template <class T, class... Others> constexpr bool one_of = (std::is_same_v<T, Others> || ...);

constexpr bool is_shape(int m, int n, int k) {
    return k == 16  ? m * n == 256 && (m == 8 || m == 16 || m == 32)
           : k == 8 ? m == 16 && n == 16
                    : k == 4 && m == 8 && n == 8;
}

// True if CUDA defines a fragment with these template arguments.
template <class Use, int k, class T, class Layout> constexpr bool is_fragment() {
    if (std::is_same_v<Use, accumulator>)
        return std::is_void_v<Layout> && (k == 4   ? one_of<T, double>
                                          : k == 8 ? one_of<T, float>
                                                   : one_of<T, __half, float, int>);
    return one_of<Use, matrix_a, matrix_b> && one_of<Layout, row_major, col_major> && Element<T>::k == k;
}

// True if mma_sync accepts operands with elements of type T and an accumulator with elements of type C.
template <class T, class C>
constexpr bool can_add = std::is_same_v<typename Element<T>::Total, C> ||
                         (std::is_same_v<T, __half> && std::is_same_v<C, __half>);

} // namespace cuda_cpu::matrix

namespace nvcuda::wmma {

template <class Use, int m, int n, int k, class T, class Layout = void> struct fragment {
    static_assert(cuda_cpu::matrix::is_shape(m, n, k) && cuda_cpu::matrix::is_fragment<Use, k, T, Layout>(),
                  "nvcuda::wmma has no fragment of this use, shape, element type and layout");
    using element_type = T;
    using storage_element_type = typename cuda_cpu::matrix::Element<T>::Storage;
    static constexpr int num_elements = (std::is_same_v<Use, matrix_a>   ? m * k
                                         : std::is_same_v<Use, matrix_b> ? k * n
                                                                         : m * n) /
                                        32;
    static constexpr int num_storage_elements = num_elements;
    storage_element_type x[num_elements];
};

} // namespace nvcuda::wmma

namespace cuda_cpu::matrix {

// Loads the fragments of all lanes from memory, or with `to_memory` stores them. `ldm` is the leading
// dimension: the distance, in elements of the array, between two rows (`rows`: row-major) or two columns.
// Everything is inlined into the caller, because the race detector reports the source line of the caller.
template <bool to_memory, class P, class Use, int m, int n, int k, class T, class Layout>
__forceinline__ void copy_elements(fragment<Use, m, n, k, T, Layout> &f, P *memory, size_t ldm, bool rows,
                                   Site site) {
    using Fragment = fragment<Use, m, n, k, T, Layout>;
    struct Lane {
        Fragment *f;
        P *memory;
    };
    constexpr int count = Fragment::num_elements, width = std::is_same_v<Use, matrix_a> ? k : n;
    once_for_warp(
        Lane{&f, memory},
        [=](const Lane *const *lanes) __attribute__((always_inline)) {
            for (int lane = 0; lane < 32; ++lane) {
                auto &x = lanes[lane]->f->x;
                P *const at = lanes[lane]->memory;
                const size_t i = lane * count / width, j = lane * count % width;
                for (int e = 0; e < count; ++e) {
                    P &element = rows ? at[i * ldm + j + e] : at[(j + e) * ldm + i];
                    if constexpr (to_memory)
                        element = x[e];
                    else
                        x[e] = element;
                }
            }
        },
        site);
}

// The value of an element of an operand, as the type in which products are computed
template <class T> inline typename Element<T>::Total number(typename Element<T>::Storage x) {
    if constexpr (std::is_same_v<T, precision::tf32>)
        return bits_as<float>(bits_as<uint32_t>(x) & 0xffffe000);
    else
        return (typename Element<T>::Total)x;
}

template <class A, class B, class C, class D> struct Product { // the fragments of one lane
    const A *a;
    const B *b;
    const C *c;
    D *d;
};
template <class A, class B, class C, class D>
inline Product<A, B, C, D> product(const A &a, const B &b, const C &c, D &d) {
    return {&a, &b, &c, &d};
}

// d = a b + c. The products of an element are added in ascending order of the index along k.
template <int m, int n, int k, class T, class LA, class LB, class C, class D>
CUDA_CPU_UNRECORDED inline __attribute__((noinline)) void
multiply(const Product<fragment<matrix_a, m, n, k, T, LA>, fragment<matrix_b, m, n, k, T, LB>,
                       fragment<accumulator, m, n, k, C>, fragment<accumulator, m, n, k, D>> *const *lanes,
         bool saturate) {
    using Total = typename Element<T>::Total;
    constexpr int of_a = m * k / 32, of_b = k * n / 32, of_d = m * n / 32;
    constexpr bool whole = std::is_same_v<Total, int>;
    Total a[m * k], b[k * n], d[m * n];
    for (int lane = 0; lane < 32; ++lane) {
        const auto &its = *lanes[lane];
        for (int e = 0; e < of_a; ++e)
            a[lane * of_a + e] = number<T>(its.a->x[e]);
        for (int e = 0; e < of_b; ++e)
            b[lane * of_b + e] = number<T>(its.b->x[e]);
        for (int e = 0; e < of_d; ++e)
            d[lane * of_d + e] = whole ? Total(0) : (Total)its.c->x[e];
    }
    for (int i = 0; i < m; ++i)
        for (int l = 0; l < k; ++l)
            for (int j = 0; j < n; ++j)
                d[i * n + j] += a[i * k + l] * b[l * n + j];
    for (int lane = 0; lane < 32; ++lane)
        for (int e = 0; e < of_d; ++e) {
            const Total sum = d[lane * of_d + e];
            if constexpr (whole) {
                const long long total = (long long)lanes[lane]->c->x[e] + sum;
                lanes[lane]->d->x[e] =
                    (int)(saturate ? std::min(std::max(total, (long long)INT_MIN), (long long)INT_MAX)
                                   : total);
            } else
                lanes[lane]->d->x[e] = sum;
        }
}

template <int m, int n, int k, class T, class LA, class LB, class C, class D>
__forceinline__ void multiply(fragment<accumulator, m, n, k, D> &d,
                              const fragment<matrix_a, m, n, k, T, LA> &a,
                              const fragment<matrix_b, m, n, k, T, LB> &b,
                              const fragment<accumulator, m, n, k, C> &c, bool saturate, Site site) {
    static_assert(can_add<T, C> && can_add<T, D>,
                  "nvcuda::wmma::mma_sync does not add products of this type to accumulators of this type");
    once_for_warp(
        product(a, b, c, d), [=](const auto *const *lanes) { multiply(lanes, saturate); }, site);
}

} // namespace cuda_cpu::matrix

namespace nvcuda::wmma {

// Rounds to the precision of TensorFloat-32, 10 stored bits of the significand; halfway cases away from zero.
inline float __float_to_tf32(float x) {
    return std::isnan(x) ? x
                         : cuda_cpu::bits_as<float>((cuda_cpu::bits_as<uint32_t>(x) + 0x1000) & 0xffffe000);
}

template <class Use, int m, int n, int k, class T, class Layout>
inline void fill_fragment(fragment<Use, m, n, k, T, Layout> &f,
                          const typename fragment<Use, m, n, k, T, Layout>::storage_element_type &value) {
    for (auto &x : f.x)
        x = value;
}

template <class Use, int m, int n, int k, class T, class Layout>
__forceinline__ void load_matrix_sync(fragment<Use, m, n, k, T, Layout> &f,
                                      const typename cuda_cpu::matrix::Element<T>::Storage *memory,
                                      unsigned ldm, CUDA_CPU_SITE) {
    static_assert(!std::is_same_v<Use, accumulator>, "load_matrix_sync needs the layout of an accumulator");
    cuda_cpu::matrix::copy_elements<false>(f, memory, ldm, std::is_same_v<Layout, row_major>, CUDA_CPU_HERE);
}

template <int m, int n, int k, class T>
__forceinline__ void
load_matrix_sync(fragment<accumulator, m, n, k, T> &f,
                 const typename fragment<accumulator, m, n, k, T>::storage_element_type *memory, unsigned ldm,
                 layout_t layout, CUDA_CPU_SITE) {
    cuda_cpu::matrix::copy_elements<false>(f, memory, ldm, layout == mem_row_major, CUDA_CPU_HERE);
}

template <int m, int n, int k, class T>
__forceinline__ void
store_matrix_sync(typename fragment<accumulator, m, n, k, T>::storage_element_type *memory,
                  const fragment<accumulator, m, n, k, T> &f, unsigned ldm, layout_t layout, CUDA_CPU_SITE) {
    auto &from = const_cast<fragment<accumulator, m, n, k, T> &>(f);
    cuda_cpu::matrix::copy_elements<true>(from, memory, ldm, layout == mem_row_major, CUDA_CPU_HERE);
}

// d = a b + c for integer elements. On overflow the result saturates to INT_MAX or INT_MIN if `satf` is true,
// and wraps around otherwise. nvcc 13 accepts `satf` for integer elements only.
template <int m, int n, int k, class T, class LA, class LB>
__forceinline__ void
mma_sync(fragment<accumulator, m, n, k, int> &d, const fragment<matrix_a, m, n, k, T, LA> &a,
         const fragment<matrix_b, m, n, k, T, LB> &b, const fragment<accumulator, m, n, k, int> &c,
         bool satf = false, CUDA_CPU_SITE) {
    cuda_cpu::matrix::multiply(d, a, b, c, satf, CUDA_CPU_HERE);
}
template <int m, int n, int k, class T, class LA, class LB, class C, class D>
__forceinline__ void mma_sync(fragment<accumulator, m, n, k, D> &d,
                              const fragment<matrix_a, m, n, k, T, LA> &a,
                              const fragment<matrix_b, m, n, k, T, LB> &b,
                              const fragment<accumulator, m, n, k, C> &c, CUDA_CPU_SITE) {
    cuda_cpu::matrix::multiply(d, a, b, c, false, CUDA_CPU_HERE);
}

} // namespace nvcuda::wmma

#endif // __CUDACC__
#include "cuda_cpu/letters_on.h"
