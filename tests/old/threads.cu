// SPDX-License-Identifier: MIT
// Chapters 9 to 11: a histogram, streams, zero-copy memory, a host thread for each device, and cutil.
#include "../common/book.h"
#include <cutil_inline.h>

#define SIZE       (64 * 1024)
#define imin(a, b) (a < b ? a : b)

const int N = 33 * 1024;
const int threadsPerBlock = 256;
const int blocksPerGrid = imin(32, (N + threadsPerBlock - 1) / threadsPerBlock);

__global__ void histo_kernel(unsigned char *buffer, long size, unsigned int *histo) {
    __shared__ unsigned int temp[256];
    temp[threadIdx.x] = 0;
    __syncthreads();
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int offset = __umul24(blockDim.x, gridDim.x);
    while (i < size) {
        atomicAdd(&temp[buffer[i]], 1);
        i += offset;
    }
    __syncthreads();
    atomicAdd(&(histo[threadIdx.x]), temp[threadIdx.x]);
}

__global__ void add_one(int *a, int *c, int n) {
    int idx = threadIdx.x + blockIdx.x * blockDim.x;
    if (idx < n)
        c[idx] = a[idx] + 1;
}

__global__ void dot(int size, float *a, float *b, float *c) {
    __shared__ float cache[threadsPerBlock];
    int tid = threadIdx.x + blockIdx.x * blockDim.x;
    int cacheIndex = threadIdx.x;
    float temp = 0;
    while (tid < size) {
        temp += a[tid] * b[tid];
        tid += blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();
    int i = blockDim.x / 2;
    while (i != 0) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
        i /= 2;
    }
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
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
    float returnValue;
};

void *routine(void *pvoidData) {
    DataStruct *data = (DataStruct *)pvoidData;
    if (data->deviceID != 0) {
        HANDLE_ERROR(cudaSetDevice(data->deviceID));
        HANDLE_ERROR(cudaSetDeviceFlags(cudaDeviceMapHost));
    }
    float *dev_a, *dev_b, *dev_partial_c;
    float *partial_c = (float *)malloc(blocksPerGrid * sizeof(float));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_a, data->a, 0));
    HANDLE_ERROR(cudaHostGetDevicePointer(&dev_b, data->b, 0));
    HANDLE_ERROR(cudaMalloc((void **)&dev_partial_c, blocksPerGrid * sizeof(float)));
    dev_a += data->offset;
    dev_b += data->offset;
    dot<<<blocksPerGrid, threadsPerBlock>>>(data->size, dev_a, dev_b, dev_partial_c);
    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    float c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(partial_c);
    data->returnValue = c;
    return 0;
}

int main(int argc, char **argv) {
    cutilDeviceInit(argc, argv);

    // histogram
    unsigned char *buffer = (unsigned char *)big_random_block(SIZE);
    unsigned char *dev_buffer;
    unsigned int *dev_histo, histo[256];
    cutilSafeCall(cudaMalloc((void **)&dev_buffer, SIZE));
    cutilSafeCall(cudaMemcpy(dev_buffer, buffer, SIZE, cudaMemcpyHostToDevice));
    cutilSafeCall(cudaMalloc((void **)&dev_histo, 256 * sizeof(int)));
    cutilSafeCall(cudaMemset(dev_histo, 0, 256 * sizeof(int)));
    unsigned int timer;
    cutilCheckError(cutCreateTimer(&timer));
    cutilCheckError(cutStartTimer(timer));
    histo_kernel<<<4, 256>>>(dev_buffer, SIZE, dev_histo);
    cutilCheckMsg("histo_kernel");
    cutilCheckError(cutStopTimer(timer));
    if (cutGetTimerValue(timer) <= 0)
        printf("the timer is wrong\n");
    CUDA_SAFE_CALL(cudaMemcpy(histo, dev_histo, 256 * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < SIZE; i++)
        histo[buffer[i]]--;
    for (int i = 0; i < 256; i++)
        if (histo[i] != 0)
            printf("Failure at %d!\n", i);

    // two streams
    cudaStream_t stream[2];
    int *host, *dev[2], *more = big_random_block_int(4);
    free(more);
    HANDLE_ERROR(cudaHostAlloc((void **)&host, 2 * SIZE * sizeof(int), cudaHostAllocDefault));
    for (int i = 0; i < SIZE; i++)
        host[i] = i;
    for (int s = 0; s < 2; s++) {
        HANDLE_ERROR(cudaStreamCreate(&stream[s]));
        HANDLE_ERROR(cudaMalloc((void **)&dev[s], SIZE * sizeof(int)));
        int half = SIZE / 2;
        HANDLE_ERROR(
            cudaMemcpyAsync(dev[s], host + s * half, half * sizeof(int), cudaMemcpyHostToDevice, stream[s]));
        add_one<<<half / 256, 256, 0, stream[s]>>>(dev[s], dev[s] + half, half);
        HANDLE_ERROR(cudaMemcpyAsync(host + SIZE + s * half, dev[s] + half, half * sizeof(int),
                                     cudaMemcpyDeviceToHost, stream[s]));
    }
    for (int s = 0; s < 2; s++)
        HANDLE_ERROR(cudaStreamSynchronize(stream[s]));
    for (int i = 0; i < SIZE; i++)
        if (host[SIZE + i] != i + 1) {
            printf("stream: wrong at %d\n", i);
            break;
        }

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
    for (int i = 0; i < N; i++) {
        a[i] = 1;
        b[i] = 2;
    }
    DataStruct data[2];
    for (int i = 0; i < 2; i++) {
        data[i].deviceID = i % deviceCount;
        data[i].offset = i * N / 2;
        data[i].size = N / 2;
        data[i].a = a;
        data[i].b = b;
    }
    CUTThread thread = start_thread(routine, &(data[1]));
    routine(&(data[0]));
    end_thread(thread);
    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFreeHost(b));
    printf("Value calculated: %f\n", data[0].returnValue + data[1].returnValue);
    cutilExit(argc, argv);
}
