// SPDX-License-Identifier: MIT
// Headers with a few functions each: complex numbers, copies to shared memory, marks for profilers, numbers
// of 8 bits.
#include <cuComplex.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <cusolver_common.h>
#include <library_types.h>
#include <nvtx3/nvToolsExt.h>
#ifdef __CU2CPP__
#include <nvml.h>
#endif
#include <cmath>
#include "device.h"

__global__ void complex_kernel(cuDoubleComplex *out) {
    const cuFloatComplex a = make_cuFloatComplex(3, -4), b = make_cuComplex(1, 2);
    const cuDoubleComplex z = make_cuDoubleComplex(3, -4), w = cuComplexFloatToDouble(b),
                          c = make_cuDoubleComplex(10, 20);
    out[0] = cuCadd(z, w), out[1] = cuCsub(z, w), out[2] = cuCmul(z, w), out[3] = cuCdiv(z, w),
    out[4] = cuConj(z);
    out[5] = make_cuDoubleComplex(cuCabs(z), cuCreal(z) + cuCimag(z)), out[6] = cuCfma(z, w, c);
    out[7] = cuComplexFloatToDouble(cuCmulf(cuCaddf(a, b), cuCsubf(a, b)));
    out[8] = cuComplexFloatToDouble(cuCfmaf(a, cuConjf(b), cuCdivf(a, a)));
    out[9] = make_cuDoubleComplex(cuCabsf(a), cuCabs(make_cuDoubleComplex(3e200, 4e200)));
    out[10] = cuCdiv(make_cuDoubleComplex(1e300, 1e300), make_cuDoubleComplex(1e300, 1e300));
}

static_assert(CUDA_EMULATION_MANTISSA_CONTROL_FIXED == 1 && CUSOLVER_R_AP == 1208 && CUSOLVER_C_AP == 1218 &&
                  CUSOLVER_IRS_REFINE_GMRES_NOPCOND == 1106,
              "the toolkit's values");

TEST(complex_numbers) {
    const double expected[][2] = {{4, -2},  {2, -6},   {11, 2},   {-1, -2},   {3, 4}, {5, -1},
                                  {21, 22}, {-4, -28}, {-4, -10}, {5, 5e200}, {1, 0}};
    const auto got = WRITTEN(cuDoubleComplex, 11, complex_kernel<<<1, 1>>>(out));
    for (int i = 0; i < 11; i++)
        if (!EXPECT(fabs(got[i].x - expected[i][0]) <= 1e-6 * fabs(expected[i][0]) &&
                    fabs(got[i].y - expected[i][1]) <= 1e-6 * fabs(expected[i][1])))
            fprintf(stderr, "%d: %g %g\n", i, got[i].x, got[i].y);
    EXPECT(cuCmul(make_cuDoubleComplex(0, 1), make_cuDoubleComplex(0, 1)).x == -1 &&
           CUDA_R_32F == 0); // on the host
}

__global__ void copy_kernel(const int4 *in, int4 *out) {
    __shared__ int4 cells[32], later[32];
    __pipeline_memcpy_async(&cells[threadIdx.x], &in[threadIdx.x], sizeof(int4), threadIdx.x == 5 ? 8 : 0);
    __pipeline_commit();
    __pipeline_memcpy_async(&later[threadIdx.x], &in[threadIdx.x], sizeof(int4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[threadIdx.x] = cells[31 - threadIdx.x];
    __pipeline_wait_prior(0);
    out[32 + threadIdx.x] = later[threadIdx.x];
}

TEST(copies_to_shared_memory) {
    auto in = made(32, [](int i) { return make_int4(i, i + 1, i + 2, i + 3); });
    const Device<int4> from(in);
    const auto got = WRITTEN(int4, 64, copy_kernel<<<1, 32>>>(from.data, out));
    const std::vector<int4> all = in;
    in[5].z = in[5].w = 0;
    for (int i = 0; i < 32; i++)
        EXPECT(memcmp(&got[i], &in[31 - i], sizeof in[0]) == 0 &&
               memcmp(&got[32 + i], &all[i], sizeof in[0]) == 0);
}

#ifdef __CU2CPP__ // with nvcc: sensors
TEST(nvml_knows_the_devices_and_has_no_sensors) {
    nvmlDevice_t device = NULL;
    nvmlUtilization_t used;
    char name[NVML_DEVICE_NAME_BUFFER_SIZE];
    OK(nvmlInit());
    const int count = STORED(unsigned, nvmlDeviceGetCount(&it));
    EXPECT(count == device_count());
    EXPECT(nvmlDeviceGetHandleByIndex(count, &device) == NVML_ERROR_INVALID_ARGUMENT);
    OK(nvmlDeviceGetHandleByIndex(0, &device));
    OK(nvmlDeviceGetName(device, name, sizeof name));
    const auto p = STORED(cudaDeviceProp, cudaGetDeviceProperties(&it, 0));
    EXPECT(strcmp(name, p.name) == 0 && nvmlDeviceGetName(device, name, 1) == NVML_ERROR_INSUFFICIENT_SIZE);
    const Device<char> allocated(1 << 20);
    const auto memory = STORED(nvmlMemory_t, nvmlDeviceGetMemoryInfo(device, &it));
    EXPECT(memory.total == p.totalGlobalMem && memory.used >= 1 << 20 && memory.used <= memory.total);
    EXPECT(nvmlDeviceGetUtilizationRates(device, &used) == NVML_ERROR_NOT_SUPPORTED);
}
#endif

TEST(marks_do_nothing_without_a_profiler) {
    nvtxEventAttributes_t event = {};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = "range";
    nvtxMark("mark");
    const nvtxRangeId_t id = nvtxRangeStartA("range");
    nvtxRangeEnd(id);
    EXPECT(nvtxRangePushA("outer") == NVTX_NO_PUSH_POP_TRACKING &&
           nvtxRangePushEx(&event) == NVTX_NO_PUSH_POP_TRACKING);
    EXPECT(nvtxRangePop() == NVTX_NO_PUSH_POP_TRACKING && nvtxRangePop() == NVTX_NO_PUSH_POP_TRACKING);
}

// ---- numbers of 8 bits: all 256 of both formats, and the conversions at each number, between neighbours and
// beyond the range ----

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
    const int n = (int)in.size();
    const Device<double> device_in(in);
    const Device<unsigned char> device_raw(n);
    const auto all = WRITTEN(float, 256, convert<Number><<<1, 1>>>(device_in.data, n, device_raw.data, out));
    const std::vector<unsigned char> raw = device_raw.host();
    for (int i = 0; i < n; i++)
        if (!EXPECT(raw[i] == expected[i]))
            fprintf(stderr, "%a: %#x, not %#x\n", in[i], raw[i], expected[i]);
    for (int i = 0; i < 256; i++) {
        const int size = i & 0x7f;
        const __half h = __nv_cvt_fp8_to_halfraw((unsigned char)i, kind);
        if (size < count)
            EXPECT(all[i] == (i & 0x80 ? -table[size] : table[size]) && std::signbit(all[i]) == (i >= 128));
        else if (infinity && size == count)
            EXPECT(std::isinf(all[i]));
        else
            EXPECT(std::isnan(all[i]));
        EXPECT((float)h == all[i] || (std::isnan((float)h) && std::isnan(all[i])));
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
}

TEST(e4m3) {
    test_format<__nv_fp8_e4m3>(__NV_E4M3, numbers(3, 0x1p-9, 127), 448, false);
    EXPECT(__nv_fp8_e4m3(1.0f).__x == 0x38);
}

TEST(e5m2) {
    test_format<__nv_fp8_e5m2>(__NV_E5M2, numbers(2, 0x1p-16, 124), 57344, true);
    EXPECT(__nv_fp8_e5m2(1.0f).__x == 0x3c);
}

TEST(vectors_of_8_bits) {
    const __nv_fp8x2_e4m3 two(float2{1, -2});
    EXPECT(two.__x == 0xc038 && float2(two).y == -2 && __low2float(__half2(two)) == 1);
    EXPECT(__nv_fp8x2_e4m3(__floats2half2_rn(1, -2)).__x == two.__x);
    EXPECT(__nv_cvt_bfloat16raw2_to_fp8x2(__floats2bfloat162_rn(1, -2), __NV_NOSAT, __NV_E4M3) == two.__x);
    const float4 four = float4(__nv_fp8x4_e5m2(float4{1, 2, 3, -4}));
    EXPECT(four.x == 1 && four.y == 2 && four.z == 3 && four.w == -4);
    EXPECT(__nv_fp8x4_e4m3(__floats2half2_rn(1, 2), __floats2half2_rn(3, -4)).__x ==
           __nv_fp8x4_e4m3(float4{1, 2, 3, -4}).__x);
}
