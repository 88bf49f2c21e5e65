// SPDX-License-Identifier: MIT
// The driver API, apart from modules, beside the runtime
#include <cuda.h>
#include <cuda_runtime.h>
#include "../unit.h"

// The context that a call stores: EXPECT(context_of(cuCtxGetCurrent) == mine)
static CUcontext context_of(CUresult (*call)(CUcontext *)) {
    return STORED(CUcontext, call(&it));
}

__global__ void increment(int *x, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        x[i]++;
}

TEST(nothing_works_before_init) { // the first case
    int count;
    EXPECT(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    EXPECT(STORED(int, cuDeviceGetCount(&it)) >= 1);
}

TEST(the_runtime_makes_the_primary_context_current) {
    OK(cuInit(0));
    EXPECT(context_of(cuCtxGetCurrent) == NULL);
    const auto primary = STORED(CUcontext, cuDevicePrimaryCtxRetain(&it, 0));
    EXPECT(cudaFree(NULL) == cudaSuccess);
    const auto mine = STORED(CUcontext, cuCtxCreate(&it, NULL, 0, 0));
    EXPECT(context_of(cuCtxGetCurrent) == mine);
    OK(cuCtxDestroy(mine));
    EXPECT(context_of(cuCtxGetCurrent) == primary);
    EXPECT(context_of(cuCtxPopCurrent) == primary);
    EXPECT(context_of(cuCtxGetCurrent) == NULL);
    OK(cuDevicePrimaryCtxRelease(0));
}

TEST(another_device_of_the_runtime_has_another_context) {
    int devices = 0;
    EXPECT(cudaGetDeviceCount(&devices) == cudaSuccess && cudaFree(NULL) == cudaSuccess);
    if (devices < 2)
        return;
    const CUcontext first = context_of(cuCtxGetCurrent);
    EXPECT(cudaSetDevice(1) == cudaSuccess);
    const CUcontext second = context_of(cuCtxGetCurrent);
    const auto primary = STORED(CUcontext, cuDevicePrimaryCtxRetain(&it, 1));
    EXPECT(first && first != second && second == primary);
}

TEST(devices) {
    char name[100];
    cudaDeviceProp p;
    OK(cuInit(0));
    CUdevice device = STORED(CUdevice, cuDeviceGet(&it, 0));
    const auto attribute = [=](int which) {
        return STORED(int, cuDeviceGetAttribute(&it, (CUdevice_attribute)which, device));
    };
    EXPECT(cudaGetDeviceProperties(&p, 0) == cudaSuccess);
    OK(cuDeviceGetName(name, sizeof name, device));
    EXPECT(strcmp(name, p.name) == 0);
    EXPECT(STORED(size_t, cuDeviceTotalMem(&it, device)) == p.totalGlobalMem);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) == p.multiProcessorCount);
    EXPECT(STORED(int, cuDriverGetVersion(&it)) >= 13000);
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == p.major);
    for (int i = 1; i <= CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X; ++i)
        attribute(i);
#ifdef __CU2CPP__
    int value;
    EXPECT(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0);
    EXPECT(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, device) == CUDA_ERROR_INVALID_VALUE);
#endif
    EXPECT(cuDeviceGet(&device, 1000) == CUDA_ERROR_INVALID_DEVICE);
    const char *text;
    OK(cuGetErrorName(CUDA_ERROR_INVALID_DEVICE, &text));
    EXPECT(strcmp(text, "CUDA_ERROR_INVALID_DEVICE") == 0);
    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    EXPECT(strcmp(text, "out of memory") == 0);
    EXPECT(cuGetErrorName((CUresult)12345, &text) == CUDA_ERROR_INVALID_VALUE);
}

TEST(contexts_are_a_stack) {
    OK(cuInit(0));
    const auto a = STORED(CUcontext, cuCtxCreate(&it, NULL, 0, 0));
    const auto b = STORED(CUcontext, cuDevicePrimaryCtxRetain(&it, 0));
    EXPECT(a != b);
    OK(cuCtxPushCurrent(b));
    EXPECT(context_of(cuCtxPopCurrent) == b);
    EXPECT(context_of(cuCtxGetCurrent) == a);
    EXPECT(STORED(CUdevice, cuCtxGetDevice(&it)) == 0);
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy(a));
}

TEST(contexts_copy_to_each_other) {
    OK(cuInit(0));
    if (STORED(int, cuDeviceGetCount(&it)) < 2)
        return;
    CUcontext context[2];
    CUdeviceptr memory[2];
    for (int i = 0; i < 2; i++) {
        OK(cuDevicePrimaryCtxRetain(&context[i], i));
        OK(cuCtxSetCurrent(context[i]));
        OK(cuMemAlloc(&memory[i], sizeof(int)));
        OK(cuMemsetD32(memory[i], 40 + i, 1));
    }
    int value = 0;
    OK(cuMemcpyPeer(memory[1], context[1], memory[0], context[0], sizeof(int)));
    OK(cuMemcpyDtoH(&value, memory[1], sizeof(int)));
    EXPECT(value == 40);
}

TEST(memory_streams_and_events) {
    CUdeviceptr p, base;
    const int n = 1000;
    OK(cuInit(0));
    OK(cuCtxSetCurrent(STORED(CUcontext, cuDevicePrimaryCtxRetain(&it, 0))));
    OK(cuMemAlloc(&p, n * sizeof(int)));
    const auto stream = STORED(CUstream, cuStreamCreate(&it, CU_STREAM_NON_BLOCKING));
    const auto start = STORED(CUevent, cuEventCreate(&it, CU_EVENT_DEFAULT));
    const auto end = STORED(CUevent, cuEventCreate(&it, CU_EVENT_DEFAULT));
    OK(cuEventRecord(start, stream));
    OK(cuMemsetD32Async(p, 0x12345678, n, stream));
    increment<<<8, 128, 0, stream>>>((int *)p, n);
    OK(cuEventRecord(end, stream));
    OK(cuEventSynchronize(end));
    EXPECT(STORED(float, cuEventElapsedTime(&it, start, end)) >= 0);
    std::vector<int> host(n);
    OK(cuMemcpyDtoH(host.data(), p, n * sizeof(int)));
    EXPECT(host == std::vector<int>(n, 0x12345679));
    OK(cuMemsetD16(p, 0xabcd, 2));
    OK(cuMemcpyDtoH(host.data(), p, 8));
    EXPECT((unsigned)host[0] == 0xabcdabcd && host[1] == 0x12345679);
    size_t bytes;
    OK(cuMemGetAddressRange(&base, &bytes, p + 100));
    EXPECT(base == p && bytes == n * sizeof(int));
    OK(cuMemFree(p));
    EXPECT(cuMemAlloc(&p, 0) == CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamDestroy(stream));
    OK(cuEventDestroy(start));
    OK(cuEventDestroy(end));
}
