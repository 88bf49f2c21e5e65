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

// ---- numbers of 8 and 16 bits on the host; in kernels: ../conformance ----

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

TEST(numbers_of_16_bits) {
    const half a = 1.5f, b = __float2half(2.25f);
    half2 v = __floats2half2_rn(3, 4);
    v = __hmul2(v, __half2half2(a));
    half c = a;
    c += b, ++c;
    const float2 f = __half22float2(v);
    EXPECT((float)(a * b) == 3.375f && f.x == 4.5f && f.y == 6 && (float)c == 4.75f && (int)c == 4 && a < b &&
           a != b);
    EXPECT(__half_as_ushort(__float2half(65520.0f)) == 0x7c00 &&
           __half_as_ushort(__float2half_rz(70000.0f)) == 0x7bff);
    EXPECT((float)__high2half(__lows2half2(v, v)) == 4.5f && (float)__hsub2(v, v).y == 0);
    const __nv_bfloat16 x = __float2bfloat16(1.00390625f), y = 3;
    EXPECT((float)x == 1 && (float)(x + y) == 4 && __bfloat162int_rz(y) == 3 && (float)half(y) == 3 &&
           (float)__nv_bfloat16(a) == 1.5f);
    EXPECT(__bfloat16_as_ushort(CUDART_INF_BF16) == 0x7f80 && __hisinf(CUDART_INF_FP16) == 1 &&
           sizeof(half) == 2 && sizeof(half2) == 4 && alignof(half2) == 4);
}
