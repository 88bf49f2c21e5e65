// SPDX-License-Identifier: MIT
// Headers with a few functions each: complex numbers, copies to shared memory, marks for profilers.
#include <cuComplex.h>
#include <cuda_pipeline.h>
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

TEST(complex_numbers) {
    const double expected[][2] = {{4, -2},  {2, -6},   {11, 2},   {-1, -2},   {3, 4}, {5, -1},
                                  {21, 22}, {-4, -28}, {-4, -10}, {5, 5e200}, {1, 0}};
    const Device<cuDoubleComplex> device(11);
    complex_kernel<<<1, 1>>>(device.data);
    const auto got = device.host();
    for (int i = 0; i < 11; i++)
        if (!EXPECT(fabs(got[i].x - expected[i][0]) <= 1e-6 * fabs(expected[i][0]) &&
                    fabs(got[i].y - expected[i][1]) <= 1e-6 * fabs(expected[i][1])))
            fprintf(stderr, "%d: %g %g\n", i, got[i].x, got[i].y);
    EXPECT(cuCmul(make_cuDoubleComplex(0, 1), make_cuDoubleComplex(0, 1)).x == -1 &&
           CUDA_R_32F == 0); // on the host
}

// Waits for its first batch of copies only: the other one is not there yet.
__global__ void copy_kernel(const int4 *in, int4 *out) {
    __shared__ int4 cells[32], later[32];
    __pipeline_memcpy_async(&cells[threadIdx.x], &in[threadIdx.x], sizeof(int4), threadIdx.x == 5 ? 8 : 0);
    __pipeline_commit();
    __pipeline_memcpy_async(&later[threadIdx.x], &in[threadIdx.x], sizeof(int4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[threadIdx.x] = cells[31 - threadIdx.x];
    out[32 + threadIdx.x] = later[threadIdx.x];
}

TEST(copies_to_shared_memory) {
    auto in = made(32, [](int i) { return make_int4(i, i + 1, i + 2, i + 3); });
    const Device<int4> from(in), to(64);
    copy_kernel<<<1, 32>>>(from.data, to.data);
    const auto out = to.host();
    in[5].z = in[5].w = 0;
    for (int i = 0; i < 32; i++)
        EXPECT(memcmp(&out[i], &in[31 - i], sizeof in[0]) == 0 && out[32 + i].y == -1);
}

#ifdef __CU2CPP__ // with nvcc: sensors
TEST(nvml_knows_the_devices_and_has_no_sensors) {
    unsigned count = 0;
    nvmlDevice_t device = NULL;
    nvmlMemory_t memory = {};
    nvmlUtilization_t used;
    char name[NVML_DEVICE_NAME_BUFFER_SIZE];
    cudaDeviceProp p;
    CALL(nvmlInit());
    CALL(nvmlDeviceGetCount(&count));
    EXPECT((int)count == device_count());
    EXPECT(nvmlDeviceGetHandleByIndex(count, &device) == NVML_ERROR_INVALID_ARGUMENT);
    CALL(nvmlDeviceGetHandleByIndex(0, &device));
    CALL(nvmlDeviceGetName(device, name, sizeof name));
    OK(cudaGetDeviceProperties(&p, 0));
    EXPECT(strcmp(name, p.name) == 0 && nvmlDeviceGetName(device, name, 1) == NVML_ERROR_INSUFFICIENT_SIZE);
    const Device<char> allocated(1 << 20);
    CALL(nvmlDeviceGetMemoryInfo(device, &memory));
    EXPECT(memory.total == p.totalGlobalMem && memory.used >= 1 << 20);
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
