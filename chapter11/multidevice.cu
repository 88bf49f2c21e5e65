// SPDX-License-Identifier: MIT
/*
 * multidevice: dot product on several GPUs, one host thread for each
 *
 * Teaches: Each host thread has a current device, which its CUDA calls use; cudaSetDevice() selects it.
 *          Here one host thread for each GPU copies a part of the vectors to its device and computes
 *          a partial sum there, and the host adds the partial sums.
 * Terms:   host thread, device, dot product, partial sum, scaling
 * Book:    11.3
 * Build:   nvcc -o multidevice chapter11/multidevice.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter11/multidevice --gpus 2
 * Differs: any number of devices, and an array of threads where the page has one. The result is compared with
 *          the closed form. One host thread is enough today, and devices of different speed need parts of
 *          different length: one_thread.
 * Needs:   gpus=2
 * Check:   --size 100000 | --size 3 | --size 2
 */
#include "../common/book.h"
#include "gpus.h" // gpus, device_id[], expect_device()

#define imin(a, b) ((a) < (b) ? (a) : (b))
#define N          (33 * 1024 * 1024)
const int threadsPerBlock = 256;

static size_t n = N; // --size
static bool check(float c);

struct DataStruct {
    int deviceID;
    size_t size; // elements of its part
    float *a;    // its part of the vectors, in pageable host memory
    float *b;
    float returnValue;
};

__global__ void dot(size_t size, const float *a, const float *b, float *c) {
    __shared__ float cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    int cacheIndex = threadIdx.x;

    float temp = 0;
    while (tid < size) {
        temp += a[tid] * b[tid];
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();

    for (int i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

// Runs in one host thread for each device.
static void *routine(void *pvoidData) {
    struct DataStruct *data = (struct DataStruct *)pvoidData;
    if (data->size == 0) // more devices than elements
        return NULL;
    HANDLE_ERROR(cudaSetDevice(data->deviceID)); // the current device of this host thread only

    size_t size = data->size;
    int blocksPerGrid = imin(32, (size + threadsPerBlock - 1) / threadsPerBlock);
    float *a = data->a, *b = data->b;
    float *partial_c = (float *)malloc(blocksPerGrid * sizeof(float));
    HANDLE_NULL(partial_c);
    float *dev_a, *dev_b, *dev_partial_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, size * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, size * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, size * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, size * sizeof(float), cudaMemcpyHostToDevice));

    dot<<<blocksPerGrid, threadsPerBlock>>>(size, dev_a, dev_b, dev_partial_c);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    float c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    expect_device(dev_a, data->deviceID); // for the check: no other device computed this part

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(partial_c);
    data->returnValue = c;
    return NULL;
}

int main(int argc, char **argv) {
    settings(argc, argv); // ends the program if there are too few devices
    int deviceCount;
    HANDLE_ERROR(cudaGetDeviceCount(&deviceCount));
    deviceCount = imin(deviceCount, gpus); // --gpus

    float *a = (float *)malloc(n * sizeof(float)), *b = (float *)malloc(n * sizeof(float));
    HANDLE_NULL(a && b);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }

    // Equal parts, n / 2 elements with two devices. The last part also has the remainder.
    struct DataStruct data[MAX_GPUS];
    size_t part = n / deviceCount;
    for (int i = 0; i < deviceCount; i++) {
        data[i].deviceID = device_id[i];
        data[i].size = i < deviceCount - 1 ? part : n - i * part;
        data[i].a = a + i * part;
        data[i].b = b + i * part;
        data[i].returnValue = 0;
    }

    // One new host thread for each device but the last, which this thread uses itself.
    CUTThread thread[MAX_GPUS];
    for (int i = 0; i < deviceCount - 1; i++)
        thread[i] = start_thread(routine, &data[i]);
    routine(&data[deviceCount - 1]);
    for (int i = 0; i < deviceCount - 1; i++)
        end_thread(thread[i]);

    float c = 0;
    for (int i = 0; i < deviceCount; i++) {
        printf("GPU %d: %zu elements\n", data[i].deviceID, data[i].size);
        c += data[i].returnValue;
    }
    printf("Value calculated:  %f\n", c);
    bool ok = check(c);

    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/dot.h" // check_dot(), tree_additions()

void settings(int argc, char **argv) {
    parse_options(argc, argv, "Dot product on several devices.", 0,
                  {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"), OPTION_GPUS});
    choose_gpus();
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        require_memory(2 * n * sizeof(float), 2 * (n / gpus + gpus) * sizeof(float));
    }
    HANDLE_ERROR(cudaSetDevice(options.device));
}

// Each product goes through the additions of its thread, those of the tree, of the blocks and of the devices.
// A device uses at most 32 blocks, and its part is at most n / gpus + gpus elements long.
static bool check(float c) {
    return check_dot("dot product", c, n, tree_additions(n / gpus + gpus, 32, threadsPerBlock) + gpus) &&
           check_value("memory on another device", elsewhere, 0, 0);
}

// Task: routine(): pvoidData points to a DataStruct. If its size is 0, return NULL. Otherwise select the
// device with cudaSetDevice(deviceID), and compute the dot product of the parts a and b, of `size` elements
// each: allocate device memory, copy the parts to the device, launch dot with blocksPerGrid blocks, at most
// 32, of threadsPerBlock threads, copy the partial sums of the blocks to the host, and add them there. Call
// expect_device(dev_a, deviceID). Free all memory, store the sum in returnValue, and return NULL.
