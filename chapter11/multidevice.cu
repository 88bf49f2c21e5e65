// SPDX-License-Identifier: MIT
/*
 * multidevice: one dot product on several devices
 *
 * Teaches: A host thread has one device as its current one, so each device gets a thread. The
 *          vectors are split, every device adds up its own part, and the host adds the few numbers
 *          that come back.
 * Book:    11.3
 * Run:     ./bin/chapter11/multidevice --gpus 2
 * Differs: any number of devices, and parts that need not be equal. Time and rate of each device
 *          are shown, and the result is checked in double. --gpus 1 is there to compare with.
 * Needs:   gpus=2
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/memory.h"

#define imin(a, b) ((a) < (b) ? (a) : (b))

#define N        (33 * 1024 * 1024)
#define MAX_GPUS 64

const unsigned threadsPerBlock = 256;

__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
    unsigned cacheIndex = threadIdx.x;

    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n; tid += stride)
        temp += a[tid] * b[tid];
    cache[cacheIndex] = temp;

    __syncthreads();

    for (unsigned i = blockDim.x / 2; i != 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }

    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

// 0² + 1² + … + x²
static double sum_squares(double x) {
    return x * (x + 1) * (2 * x + 1) / 6;
}

struct DataStruct {
    int deviceID;
    size_t offset, size; // its part of the vectors
    float *a, *b;        // the whole vectors, in ordinary memory
    float returnValue;
    float ms, kernel_ms; // with the copies, and without
};

// What the thread of each device does.
static CUT_THREADPROC routine(void *pvoidData) {
    DataStruct *data = (DataStruct *)pvoidData;
    size_t n = data->size;
    if (n == 0) // more devices than elements
        CUT_THREADEND;
    HANDLE_ERROR(cudaSetDevice(data->deviceID)); // for this thread; each has its own current device

    unsigned blocks = imin(32, (n + threadsPerBlock - 1) / threadsPerBlock);
    size_t bytes = n * sizeof(float);
    float *partial_c = (float *)malloc(blocks * sizeof(float)), c = 0;
    HANDLE_NULL(partial_c);
    float *dev_a, *dev_b, *dev_partial_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_partial_c, blocks * sizeof(float)));
    cudaEvent_t start, copied, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&copied));
    HANDLE_ERROR(cudaEventCreate(&stop));

    for (int pass = 0; pass < 2; pass++) { // the first one warms up
        HANDLE_ERROR(cudaEventRecord(start, 0));
        HANDLE_ERROR(cudaMemcpy(dev_a, data->a + data->offset, bytes, cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemcpy(dev_b, data->b + data->offset, bytes, cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaEventRecord(copied, 0));
        dot<<<blocks, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, n);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(stop));
    }
    HANDLE_ERROR(cudaEventElapsedTime(&data->ms, start, stop));
    HANDLE_ERROR(cudaEventElapsedTime(&data->kernel_ms, copied, stop));
    HANDLE_ERROR(
        cudaMemcpy(partial_c, dev_partial_c, blocks * sizeof(float), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < blocks; i++)
        c += partial_c[i];

    HANDLE_ERROR(cudaEventDestroy(copied));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    free(partial_c);
    data->returnValue = c;
    CUT_THREADEND;
}

// How many devices to use. All there are when `wanted` is 0, if these are several.
static int count_gpus(int wanted) {
    int count, needed = wanted ? wanted : 2;
    HANDLE_ERROR(cudaGetDeviceCount(&count));
    if (count < needed)
        quit(EXIT_WAIVED, "needs %d GPUs, found %d", needed, count);
    return wanted ? wanted : imin(count, MAX_GPUS);
}

int main(int argc, char **argv) {
    size_t n = N;
    int gpus = 0;
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
                          OPTION_INT("gpus", &gpus, 1, MAX_GPUS, "devices to use, or else all"),
                          OPTION_END};
    parse_options(argc, argv, "Dot product on several devices.", 0, own);
    select_device();
    int count;
    gpus = count_gpus(gpus);
    HANDLE_ERROR(cudaGetDeviceCount(&count));

    // The first n % gpus parts are one element longer. --device says which device comes first.
    DataStruct data[MAX_GPUS] = {};
    for (int i = 0; i < gpus; i++) {
        data[i].deviceID = (options.device + i) % count;
        data[i].size = n / gpus + ((size_t)i < n % gpus);
        data[i].offset = i ? data[i - 1].offset + data[i - 1].size : 0;
        print_device(data[i].deviceID);
        HANDLE_ERROR(cudaSetDevice(data[i].deviceID));
        require_memory(2 * n * sizeof(float), 2 * data[i].size * sizeof(float));
    }
    HANDLE_ERROR(cudaSetDevice(options.device));
    float *a = (float *)malloc(n * sizeof(float)), *b = (float *)malloc(n * sizeof(float));
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = 2 * (float)i;
    }

    // A thread for each device but the last, which this thread serves itself.
    CUTThread threads[MAX_GPUS];
    for (int i = 0; i < gpus; i++) {
        data[i].a = a;
        data[i].b = b;
        if (i < gpus - 1)
            threads[i] = start_thread(routine, &data[i]);
    }
    routine(&data[gpus - 1]);
    wait_for_threads(threads, gpus - 1);

    float c = 0;
    for (int i = 0; i < gpus; i++) {
        const DataStruct &d = data[i];
        double bytes = 2.0 * d.size * sizeof(float); // both parts are read
        c += d.returnValue;
        if (d.size > 0)
            printf(
                "GPU %d: %zu elements, with copies %.3f ms, %.3f GB/s; kernel %.3f ms, %.3f GB/s\n",
                d.deviceID, d.size, d.ms, bytes / d.ms / 1e6, d.kernel_ms,
                bytes / d.kernel_ms / 1e6);
        else
            printf("GPU %d: nothing to do\n", d.deviceID);
    }
    inject_error(&c, sizeof(c));
    printf("Value calculated:  %f\n", c);
    // Each rounding costs 2^-24 of the sum at most: of inputs, product, a thread's sum (32 blocks,
    // or a thread an element), the halvings, the blocks and the devices.
    double roundings = 3 + ceil((double)data[0].size / (32 * threadsPerBlock)) + 8 + 32 + gpus;
    bool ok = check_value("dot product", c, 2 * sum_squares(n - 1.0), roundings * 0x1p-24);

    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
