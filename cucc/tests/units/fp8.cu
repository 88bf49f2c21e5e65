// SPDX-License-Identifier: MIT
// Numbers of 8 bits: all 256 of both formats, and the conversions at each number, between neighbours and
// beyond the range.
#include <cmath>
#include <cuda_fp8.h>
#include "../unit.h"

template <class Number> __global__ void convert(const double *in, int n, unsigned char *raw, float *out) {
    for (int i = 0; i < n; i++)
        raw[i] = Number(in[i]).__x;
    for (int i = 0; i < 256; i++) {
        Number x;
        x.__x = (unsigned char)i;
        out[i] = float(x);
    }
}

// The positive numbers, each by adding a step to the one before. The step doubles after each binade.
static std::vector<double> numbers(int fraction, double step, int count) {
    std::vector<double> list(1, 0);
    for (int i = 1; i < count; i++) {
        list.push_back(list.back() + step);
        if (i >= 2 << fraction && i % (1 << fraction) == 0)
            step *= 2;
    }
    return list;
}

template <class Number>
static void test_format(__nv_fp8_interpretation_t kind, const std::vector<double> &table, double largest,
                        bool infinity) {
    const int count = (int)table.size();
    EXPECT(table.back() == largest);
    std::vector<double> in;
    std::vector<int> expected;
    for (int i = 0; i < count; i++) {
        const double next = i + 1 < count ? table[i + 1] : INFINITY;
        const double middle = i + 1 < count ? (table[i] + next) / 2 : INFINITY;
        in.insert(in.end(),
                  {table[i], -table[i], std::nextafter(middle, 0), middle, std::nextafter(middle, INFINITY)});
        const bool last = i + 1 == count;
        expected.insert(expected.end(), {i, i | 0x80, i, last ? i : (i + 1) / 2 * 2, last ? i : i + 1});
    }
    double *device;
    unsigned char *raw;
    float *out;
    const int n = (int)in.size();
    OK(cudaMallocManaged(&device, n * sizeof(double)));
    OK(cudaMallocManaged(&raw, n));
    OK(cudaMallocManaged(&out, 256 * sizeof(float)));
    std::copy(in.begin(), in.end(), device);
    convert<Number><<<1, 1>>>(device, n, raw, out);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++)
        if (!EXPECT(raw[i] == expected[i]))
            fprintf(stderr, "%a: %#x, not %#x\n", in[i], raw[i], expected[i]);
    for (int i = 0; i < 256; i++) {
        const int size = i & 0x7f;
        const __half h = __nv_cvt_fp8_to_halfraw((unsigned char)i, kind);
        if (size < count)
            EXPECT(out[i] == (i & 0x80 ? -table[size] : table[size]) && std::signbit(out[i]) == (i >= 128));
        else if (infinity && size == count)
            EXPECT(std::isinf(out[i]));
        else
            EXPECT(std::isnan(out[i]));
        EXPECT((float)h == out[i] || (std::isnan((float)h) && std::isnan(out[i])));
    }
    // Beyond half a step above the largest number
    const double step = largest - table[count - 2], tie = largest + step / 2;
    const auto unbounded = [kind](double x) { return __nv_cvt_double_to_fp8(x, __NV_NOSAT, kind); };
    const int last = count - 1;
    EXPECT(unbounded(std::nextafter(tie, 0)) == last && unbounded(tie) == (last + 1) / 2 * 2);
    EXPECT(unbounded(std::nextafter(tie, INFINITY)) == count && unbounded(-INFINITY) == (count | 0x80));
    EXPECT(Number(INFINITY).__x == last && Number(-1e300).__x == (last | 0x80) && Number(NAN).__x == 0x7f);
    EXPECT(Number(1 << 30).__x == last && (int)Number(-3) == -3 && (unsigned)Number(-3) == 0);
    EXPECT(bool(Number(1)) && !bool(Number(-0.0f)) && Number(__half(2)).__x == Number(__nv_bfloat16(2)).__x);
    EXPECT(cudaFree(device) == cudaSuccess && cudaFree(raw) == cudaSuccess && cudaFree(out) == cudaSuccess);
}

TEST(e4m3) {
    test_format<__nv_fp8_e4m3>(__NV_E4M3, numbers(3, 0x1p-9, 127), 448, false);
    EXPECT(__nv_fp8_e4m3(1.0f).__x == 0x38);
}

TEST(e5m2) {
    test_format<__nv_fp8_e5m2>(__NV_E5M2, numbers(2, 0x1p-16, 124), 57344, true);
    EXPECT(__nv_fp8_e5m2(1.0f).__x == 0x3c);
}

TEST(vectors) {
    const __nv_fp8x2_e4m3 two(float2{1, -2});
    EXPECT(two.__x == 0xc038 && float2(two).y == -2 && __low2float(__half2(two)) == 1);
    EXPECT(__nv_fp8x2_e4m3(__floats2half2_rn(1, -2)).__x == two.__x);
    EXPECT(__nv_cvt_bfloat16raw2_to_fp8x2(__floats2bfloat162_rn(1, -2), __NV_NOSAT, __NV_E4M3) == two.__x);
    const float4 four = float4(__nv_fp8x4_e5m2(float4{1, 2, 3, -4}));
    EXPECT(four.x == 1 && four.y == 2 && four.z == 3 && four.w == -4);
    EXPECT(__nv_fp8x4_e4m3(__floats2half2_rn(1, 2), __floats2half2_rn(3, -4)).__x ==
           __nv_fp8x4_e4m3(float4{1, 2, 3, -4}).__x);
}
