// SPDX-License-Identifier: MIT
// What the chapters without pictures do, each in a function of its own: properties, symbols, zero-copy
// memory, a host thread for each device, and locks. With cutil, and in the spellings of 2010.
#include "cuda.h"
#include "sm_11_atomic_functions.h"
#include <texture_fetch_functions.h>
#include <cutil_inline.h>
#include <cuPrintf.cu>
#include "../common/book.h"
#include "lock.h"

// ---- chapter 3: the properties of every device, among them those that CUDA 13 has removed ----

void properties(void) {
    cudaDeviceProp prop;
    int count;
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    for (int i = 0; i < count; i++) {
        HANDLE_ERROR(cudaGetDeviceProperties(&prop, i));
        printf("Name: %s\n", prop.name);
        printf("Clock rate: %d\n", prop.clockRate);
        printf("Device copy overlap: %s\n", prop.deviceOverlap ? "Enabled" : "Disabled");
        printf("Kernel execution timeout: %s\n", prop.kernelExecTimeoutEnabled ? "Enabled" : "Disabled");
        printf("Compute mode: %d\n", prop.computeMode);
        printf("Memory clock: %d\n", prop.memoryClockRate);
        printf("Total global mem: %d\n", prop.totalGlobalMem);
        printf("Max linear texture: %d\n", prop.maxTexture1DLinear > 0);
        struct cudaDeviceProp again;
        cudaGetDeviceProperties(&again, i);
        if (again.clockRate != prop.clockRate || again.major != prop.major)
            exit(1);
    }
    memset(&prop, 0, sizeof(cudaDeviceProp));
    prop.major = 1;
    prop.minor = 3;
    int dev;
    HANDLE_ERROR(cudaChooseDevice(&dev, &prop));
    HANDLE_ERROR(cudaSetDevice(dev));
    size_t stack;
    cudaThreadGetLimit(&stack, cudaLimitStackSize);
    cudaThreadSetCacheConfig(cudaFuncCachePreferL1);
    HANDLE_ERROR(cudaThreadSynchronize());
}

// ---- chapters 5 and 9 to 11 ----

#define imin(a, b) (a < b ? a : b)

const int N = 33 * 1024;
const int threadsPerBlock = 256;
const int blocksPerGrid = imin(32, (N + threadsPerBlock - 1) / threadsPerBlock);

__global__ void dot(long size, float *a, float *b, unsigned int *sum) {
    __shared__ unsigned int products[threadsPerBlock];
    products[threadIdx.x] = 0;
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < size; i += __umul24(blockDim.x, gridDim.x))
        products[threadIdx.x] += a[i] * b[i];
    atomicAdd(&(sum[0]), products[threadIdx.x]);
}

__constant__ float scale[2];
__device__ int votes[4];

__global__ void vote(float *result) {
    int lane = threadIdx.x;
    int odd = lane & 1;
    if (__any(odd) && !__all(odd))
        votes[0] = __ballot(odd);
    votes[1] = __shfl(lane, 5);
    *result = scale[0] * scale[1];
}

struct DataStruct {
    int deviceID;
    int size;
    int offset;
    float *a;
    float *b;
    unsigned int returnValue;
};

void *routine(void *pvoidData) {
    DataStruct *data = (DataStruct *)pvoidData;
    if (data->deviceID != 0) {
        HANDLE_ERROR(cudaSetDevice(data->deviceID));
        HANDLE_ERROR(cudaSetDeviceFlags(cudaDeviceMapHost));
    }
    float *dev_a, *dev_b;
    unsigned int *dev_sum;
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_a, data->a, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_b, data->b, 0));
    cutilSafeCall(cudaMalloc((void **)&dev_sum, sizeof(unsigned int)));
    cutilSafeCall(cudaMemset(dev_sum, 0, sizeof(unsigned int)));
    unsigned int timer;
    cutilCheckError(cutCreateTimer(&timer));
    cutilCheckError(cutStartTimer(timer));
    dot<<<blocksPerGrid, threadsPerBlock>>>(data->size, dev_a + data->offset, dev_b + data->offset, dev_sum);
    cutilCheckMsg("dot");
    cutilCheckError(cutStopTimer(timer));
    if (cutGetTimerValue(timer) <= 0)
        printf("the timer is wrong\n");
    CUDA_SAFE_CALL(cudaMemcpy(&data->returnValue, dev_sum, sizeof(unsigned int), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev_sum));
    return 0;
}

void chapters(void) {
    // symbols by name, and votes of a warp
    float two[2] = {3, 7}, *result, product;
    int ballot[2];
    HANDLE_ERROR(cudaMemcpyToSymbol("scale", two, sizeof(two)));
    HANDLE_ERROR(cudaMalloc((void **)&result, sizeof(float)));
    vote<<<1, 32>>>(result);
    HANDLE_ERROR(cudaMemcpyFromSymbol(ballot, "votes", sizeof(ballot)));
    HANDLE_ERROR(cudaMemcpy(&product, result, sizeof(float), cudaMemcpyDeviceToHost));
    if (product != 21 || ballot[0] != (int)0xaaaaaaaa || ballot[1] != 5)
        printf("symbols or votes: wrong: %g %x %d\n", product, ballot[0], ballot[1]);
    if (cudaMemcpyToSymbol("scale", two, sizeof(two), 4) == cudaSuccess)
        printf("a copy past the end of a symbol was accepted\n");

    // portable zero-copy memory, a host thread for each half
    int deviceCount;
    HANDLE_ERROR(cudaGetDeviceCount(&deviceCount));
    float *a, *b;
    HANDLE_ERROR(cudaHostAlloc((void **)&a, N * sizeof(float),
                               cudaHostAllocWriteCombined | cudaHostAllocPortable | cudaHostAllocMapped));
    HANDLE_ERROR(cudaHostAlloc((void **)&b, N * sizeof(float),
                               cudaHostAllocWriteCombined | cudaHostAllocPortable | cudaHostAllocMapped));
    unsigned char *buffer = (unsigned char *)big_random_block(N);
    unsigned int expected = 0;
    for (int i = 0; i < N; i++) {
        a[i] = buffer[i];
        b[i] = 2;
        expected += 2 * buffer[i];
    }
    DataStruct data[2];
    for (int i = 0; i < 2; i++) {
        data[i].deviceID = i % deviceCount;
        data[i].offset = i * N / 2;
        data[i].size = N / 2;
        data[i].a = a;
        data[i].b = b;
    }
    CUTThread thread = start_thread((CUT_THREADROUTINE)routine, &(data[1]));
    routine(&(data[0]));
    end_thread(thread);
    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFreeHost(b));
    if (data[0].returnValue + data[1].returnValue != expected)
        printf("the sum of all products is wrong\n");
}

// ---- declarations of device code, and copies ----

extern __shared__ float values[];
extern __shared__ char raw[];
static __device__ __constant__ int factor = 5;
__constant__ char text[16];

__device__ static float square(float x) {
    return __fmul_rn(x, x);
}

__global__ static void decode(char *to, float *sums) {
    int *ints = (int *)&raw[16 * sizeof(float)];
    values[threadIdx.x] = square(threadIdx.x);
    ints[threadIdx.x] = __mul24(threadIdx.x, factor);
    __syncthreads();
    sums[threadIdx.x] = values[15 - threadIdx.x] + ints[15 - threadIdx.x];
    to[threadIdx.x] = text[threadIdx.x] ? text[threadIdx.x] - 1 : 0;
    cuPrintf("thread %d\n", threadIdx.x);
}

void copies(void) {
    char letters[16], *dev_letters;
    float sums[16], *dev_sums;
    HANDLE_ERROR(cudaMalloc((void **)&dev_letters, 16));
    HANDLE_ERROR(cudaMalloc((void **)&dev_sums, 16 * sizeof(float)));
    HANDLE_ERROR(cudaMemcpyToSymbol("text", "IBM", 4));
    cudaPrintfInit();
    decode<<<1, 16, 16 * (sizeof(float) + sizeof(int))>>>(dev_letters, dev_sums);
    cudaPrintfDisplay(stdout, true);
    cudaPrintfEnd();
    HANDLE_ERROR(cudaMemcpy(letters, dev_letters, 16, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(sums, dev_sums, 16 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++)
        if (sums[i] != (15 - i) * (15 - i + 5))
            printf("wrong sum at %d\n", i);
    printf("decoded: %s\n", letters);
}

// ---- appendix A: a sum under a lock that is passed by value ----

__global__ void count_threads(Lock lock, int *total) {
    __shared__ int sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        lock.lock();
        *total += sum;
        lock.unlock();
    }
}

void appendix(void) {
    Lock one;
    int *dev_total, total = 0;
    HANDLE_ERROR(cudaMalloc((void **)&dev_total, sizeof(int)));
    HANDLE_ERROR(cudaMemset(dev_total, 0, sizeof(int)));
    count_threads<<<32, 96>>>(one, dev_total);
    count_threads<<<32, 96>>>(one, dev_total);
    HANDLE_ERROR(cudaMemcpy(&total, dev_total, sizeof(int), cudaMemcpyDeviceToHost));
    printf("%d threads counted\n", total);
}

int main(int argc, char **argv) {
    cutilDeviceInit(argc, argv);
    properties();
    chapters();
    copies();
    appendix();
    HANDLE_ERROR(cudaThreadExit());
    cutilExit(argc, argv);
}
