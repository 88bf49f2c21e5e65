// SPDX-License-Identifier: MIT
// nvcuda::wmma: products of integers, which are exact in every type, beside a loop on the host.
#include <cmath>
#include <cstdint>
#include <limits>
#include <mma.h>
#include <type_traits>
#include "device.h"

using namespace nvcuda::wmma;
using nvcuda::wmma::precision::tf32;

constexpr int WARPS = 3, BLOCKS = 2; // warps per block, blocks; each warp computes one matrix product

// ---- elements in memory ----

// The storage type, the size and the range of test values of an element type
template <class S, int n, int from, int to> struct Elements {
    using Storage = S;
    static constexpr int bits = n, low = from, high = to;
};
template <class T> struct Type : Elements<T, 8 * sizeof(T), -4, 4> {};
template <> struct Type<tf32> : Type<float> {};
template <> struct Type<signed char> : Elements<signed char, 8, -128, 127> {};
template <> struct Type<unsigned char> : Elements<unsigned char, 8, 0, 255> {};

// One matrix of rows x columns for each warp, in managed memory. Each is a submatrix of a larger array: two
// rows (column-major: columns) of other random numbers come before it and two after it.
template <class T> struct Matrices {
    using Storage = typename Type<T>::Storage;
    const int rows, columns;
    const bool by_rows;
    const int ld, size, start; // leading dimension, size of the array, offset of the submatrix, in elements
    std::vector<int> values;
    Storage *memory;

    // `padding`: added to the leading dimension, in units of 16 bytes
    Matrices(int rows, int columns, bool by_rows, int padding)
        : rows(rows), columns(columns), by_rows(by_rows),
          ld(((by_rows ? columns : rows) * Type<T>::bits + 127) / 128 * 128 / Type<T>::bits +
             padding * 128 / Type<T>::bits),
          size(ld * ((by_rows ? rows : columns) + 4)), start(2 * ld), values(WARPS * BLOCKS * size) {
        memory = managed<Storage>(values.size());
        for (size_t i = 0; i < values.size(); i++) {
            values[i] = pick(Type<T>::low, Type<T>::high);
            memory[i] = (Storage)values[i];
        }
    }
    Matrices(const Matrices &) = delete;
    ~Matrices() { OK(cudaFree(memory)); }

    size_t at(int warp, int i, int j) const {
        return (size_t)warp * size + start + (by_rows ? i * ld + j : j * ld + i);
    }
    int operator()(int warp, int i, int j) const { return values[at(warp, i, j)]; }
    // Sets the expected value of an element, which holds() compares.
    void set(int warp, int i, int j, int value) { values[at(warp, i, j)] = value; }
    // True if every element in memory, also outside of the submatrices, has its expected value.
    bool holds() const {
        for (size_t i = 0; i < values.size(); i++)
            if (!((double)memory[i] == values[i])) {
                fprintf(stderr, "  element %zu: %g, expected %d\n", i, (double)memory[i], values[i]);
                return false;
            }
        return true;
    }
};

template <class S> struct Operand { // the matrices as arguments of a kernel
    S *first;                       // element of the first matrix
    int ld, size;                   // in elements
};
template <class T> static auto operand(const Matrices<T> &m) {
    return Operand<typename Type<T>::Storage>{m.memory + m.start, m.ld, m.size};
}

// ---- products ----

// d = a b + c
template <int m, int n, int k, class T, class LA, class LB, class C, class D, class S>
__global__ void product(Operand<S> a, Operand<S> b, Operand<C> c, Operand<D> d, layout_t layout_c,
                        layout_t layout_d) {
    const int warp = blockIdx.x * WARPS + threadIdx.x / 32;
    fragment<matrix_a, m, n, k, T, LA> fa;
    fragment<matrix_b, m, n, k, T, LB> fb;
    fragment<accumulator, m, n, k, C> fc;
    fragment<accumulator, m, n, k, D> fd;
    load_matrix_sync(fa, a.first + warp * a.size, a.ld);
    load_matrix_sync(fb, b.first + warp * b.size, b.ld);
    load_matrix_sync(fc, c.first + warp * c.size, c.ld, layout_c);
    if constexpr (std::is_same_v<C, D>) { // in place
        mma_sync(fc, fa, fb, fc);
        fd = fc;
    } else
        mma_sync(fd, fa, fb, fc);
    store_matrix_sync(d.first + warp * d.size, fd, d.ld, layout_d);
}

template <int m, int n, int k, class T, class C, class D, class LA, class LB> static void products() {
    constexpr bool rows_a = std::is_same_v<LA, row_major>, rows_b = std::is_same_v<LB, row_major>;
    for (int variant = 0; variant < 8; variant++) {
        const bool rows_c = variant & 1, rows_d = variant & 2;
        const int padding = variant & 4 ? 3 : 0;
        const Matrices<T> a(m, k, rows_a, padding), b(k, n, rows_b, padding ? 1 : 0);
        const Matrices<C> c(m, n, rows_c, padding);
        Matrices<D> d(m, n, rows_d, padding ? 5 : 0);
        product<m, n, k, T, LA, LB><<<BLOCKS, WARPS * 32>>>(operand(a), operand(b), operand(c), operand(d),
                                                            rows_c ? mem_row_major : mem_col_major,
                                                            rows_d ? mem_row_major : mem_col_major);
        OK(cudaDeviceSynchronize());
        for (int warp = 0; warp < WARPS * BLOCKS; warp++)
            for (int i = 0; i < m; i++)
                for (int j = 0; j < n; j++) {
                    int sum = c(warp, i, j);
                    for (int l = 0; l < k; l++)
                        sum += a(warp, i, l) * b(warp, l, j);
                    d.set(warp, i, j, sum);
                }
        if (!EXPECT(d.holds()))
            fprintf(stderr, "  %d x %d x %d, variant %d, layouts %d %d\n", m, n, k, variant, rows_a, rows_b);
    }
}

TEST(all_shapes_and_layouts_of_half) {
    products<16, 16, 16, half, float, float, row_major, row_major>();
    products<16, 16, 16, half, float, float, row_major, col_major>();
    products<16, 16, 16, half, half, half, col_major, row_major>();
    products<16, 16, 16, half, float, float, col_major, col_major>();
    products<32, 8, 16, half, float, float, row_major, col_major>();
    products<32, 8, 16, half, half, float, col_major, row_major>();
    products<8, 32, 16, half, float, half, row_major, col_major>();
    products<8, 32, 16, half, float, float, col_major, row_major>();
}
// The other types are loaded and stored by the same code.
TEST(other_types) {
    products<16, 16, 16, __nv_bfloat16, float, float, row_major, col_major>();
    products<16, 16, 16, signed char, int, int, row_major, col_major>();
    products<32, 8, 16, unsigned char, int, int, col_major, row_major>();
    products<16, 16, 8, tf32, float, float, row_major, col_major>();
    products<8, 8, 4, double, double, double, col_major, row_major>();
}

// ---- numbers ----

// c + 16 a b: all elements of each operand are equal. Each lane stores an element of the sum.
template <class T, class C> __global__ void dot(T a, T b, C c, bool satf, C *result) {
    fragment<matrix_a, 16, 16, 16, T, row_major> fa;
    fragment<matrix_b, 16, 16, 16, T, col_major> fb;
    fragment<accumulator, 16, 16, 16, C> fc;
    fill_fragment(fa, a);
    fill_fragment(fb, b);
    fill_fragment(fc, c);
    if constexpr (std::is_same_v<C, int>)
        mma_sync(fc, fa, fb, fc, satf);
    else
        mma_sync(fc, fa, fb, fc);
    result[threadIdx.x] = fc.x[fc.num_elements - 1];
}
template <class T, class C> static C dot_of(T a, T b, C c, bool satf = false) {
    const std::vector<C> all = WRITTEN(C, 32, dot<<<1, 32>>>(a, b, c, satf, out));
    for (const C &one : all)
        EXPECT(memcmp(&one, &all[0], sizeof one) == 0);
    return all[0];
}

TEST(rounding) {
    // 2048 + 16 / 4. With rounding to half after each addition, 2048 + 1/4 would be 2048.
    EXPECT((float)dot_of<half, half>(0.5f, 0.5f, 2048.0f) == 2052);
    EXPECT(dot_of<half, float>(0.5f, 0.5f, 65536.0f) == 65540);
    EXPECT(dot_of<half, float>(49152.0f, 49152.0f, 0.0f) == 0x9p32f); // overflows half
    EXPECT(std::isinf((float)dot_of<half, half>(60000.0f, 1.0f, 0.0f)));
    EXPECT(dot_of<half, float>(0x1p-24f, 0x1p-24f, 0.0f) == 0x1p-44f); // subnormal operands
    EXPECT(dot_of<__nv_bfloat16, float>(0x1p60f, 0x1p60f, 0.0f) == 0x1p124f);
    EXPECT(std::isnan(dot_of<half, float>(std::numeric_limits<float>::quiet_NaN(), 0.0f, 1.0f)));
}

TEST(saturation) {
    const unsigned char u = 255;
    const signed char low = -128, high = 127;
    EXPECT(dot_of(u, u, INT32_MAX - 5, true) == INT32_MAX);
    EXPECT(dot_of(u, u, INT32_MAX - 5, false) == INT32_MIN + 16 * 255 * 255 - 6);
    EXPECT(dot_of(low, high, INT32_MIN + 5, true) == INT32_MIN);
    EXPECT(dot_of(low, high, INT32_MIN + 5, false) == INT32_MAX - 16 * 128 * 127 + 6);
    EXPECT(dot_of(low, low, 7, true) == 16 * 128 * 128 + 7);
}

// The product with the identity matrix, which truncates, and the conversion, which rounds
__global__ void tf32_numbers(const float *in, float *rounded, float *truncated) {
    fragment<matrix_a, 16, 16, 8, tf32, row_major> a;
    fragment<matrix_b, 16, 16, 8, tf32, row_major> b;
    fragment<accumulator, 16, 16, 8, float> d;
    __shared__ float out[256], one[128];
    for (int i = threadIdx.x; i < 128; i += 32)
        one[i] = i % 16 == i / 16;
    __syncwarp();
    load_matrix_sync(a, in, 8);
    load_matrix_sync(b, one, 16);
    fill_fragment(d, 0.0f);
    mma_sync(d, a, b, d);
    store_matrix_sync(out, d, 16, mem_row_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 128; i += 32) {
        truncated[i] = out[i / 8 * 16 + i % 8];
        rounded[i] = __float_to_tf32(in[i]);
    }
}

TEST(tf32_has_19_bits) {
    const float half_step = 0x1p-11f, largest = std::numeric_limits<float>::max();
    const struct {
        float in, rounded, truncated;
    } known[] = {{1 + half_step, 1 + 2 * half_step, 1},
                 {-1 - half_step, -1 - 2 * half_step, -1},
                 {1 + half_step - 0x1p-23f, 1, 1},
                 {1 + 3 * half_step, 1 + 4 * half_step, 1 + 2 * half_step},
                 {0x1p-140f, 0, 0},
                 {0x1.ffep0f, 2, 0x1.ffcp0f},
                 {3, 3, 3},
                 {largest, HUGE_VALF, NAN}, // infinity times 0 is NaN
                 {NAN, NAN, NAN}};
    float *const memory = managed<float>(3 * 128);
    for (int i = 0; i < 9; i++)
        memory[8 * i] = known[i].in; // a row for each
    tf32_numbers<<<1, 32>>>(memory, memory + 128, memory + 256);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 9; i++) {
        const float rounded = memory[128 + 8 * i], truncated = memory[256 + 8 * i];
        EXPECT(rounded == known[i].rounded || (std::isnan(rounded) && std::isnan(known[i].in)));
        EXPECT(truncated == known[i].truncated || std::isnan(known[i].truncated));
    }
}

// ---- fragments ----

TEST(fragments) {
    using Tf32 = fragment<matrix_a, 16, 16, 8, tf32, row_major>;
    static_assert(std::is_same_v<Tf32::element_type, tf32> &&
                  std::is_same_v<Tf32::storage_element_type, float>);
    static_assert(fragment<accumulator, 16, 16, 16, half>::num_elements == 8);
    static_assert(fragment<accumulator, 32, 8, 16, int>::num_elements == 8);
    static_assert(fragment<matrix_b, 32, 8, 16, signed char, col_major>::num_elements == 4);
    static_assert(Tf32::num_elements == 4 && fragment<accumulator, 8, 8, 4, double>::num_elements == 2);
}
