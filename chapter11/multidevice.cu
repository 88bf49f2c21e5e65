// SPDX-License-Identifier: MIT
/*
 * multidevice: dot product on several GPUs, one host thread for each
 *
 * Teaches: Each host thread has a current device, which its CUDA calls use; cudaSetDevice() selects it.
 *          Here one host thread for each GPU copies a part of the vectors to its device and computes
 *          a partial sum there. The host adds the partial sums of the GPUs.
 * Terms:   host thread, device, context, dot product, partial sum, scaling
 * Book:    11.3
 * Run:     ./bin/chapter11/multidevice --gpus 2
 * Differs: any number of devices; the vectors need not divide evenly. Time and rate of each device are
 *          printed. The result is compared with the closed form. Compare with --gpus 1 to see the
 *          scaling.
 * Needs:   gpus=2
 */
#include "../common/book.h"
#include "../common/timing.h"
#include "gpus.h" // N, n, gpus, device_id[], part_size(), check_parts()

struct DataStruct {
    int deviceID;
    size_t size;    // elements of its part
    const float *a; // its part of the vectors, in pageable host memory
    const float *b;
    float returnValue;
    float ms, kernel_ms; // with the copies to the device, and of the kernel alone
};

__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];

    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n; tid += stride)
        temp += a[tid] * b[tid];
    cache[threadIdx.x] = temp;
    __syncthreads();

    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        c[blockIdx.x] = cache[0];
}

// Runs in one host thread for each device.
static CUT_THREADPROC routine(void *pvoidData) {
    DataStruct *data = (DataStruct *)pvoidData;
    size_t size = data->size;
    if (size == 0) // more devices than elements
        CUT_THREADEND;
    HANDLE_ERROR(cudaSetDevice(data->deviceID)); // the current device of this host thread only

    int blocksPerGrid = min_of(32, (size + threadsPerBlock - 1) / threadsPerBlock);
    float *partial_c = host_array<float>(blocksPerGrid);
    float *dev_a, *dev_b, *dev_partial_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, size * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, size * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_partial_c, blocksPerGrid * sizeof(float)));

    auto kernel = [&] { dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_partial_c, size); };
    data->ms = median_ms([&] {
        HANDLE_ERROR(cudaMemcpy(dev_a, data->a, size * sizeof(float), cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemcpy(dev_b, data->b, size * sizeof(float), cudaMemcpyHostToDevice));
        kernel();
    });
    data->kernel_ms = median_ms(kernel);

    HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost));
    float c = 0;
    for (int i = 0; i < blocksPerGrid; i++)
        c += partial_c[i];
    data->returnValue = c;

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_partial_c));
    free(partial_c);
    CUT_THREADEND;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float *a = host_array<float>(n), *b = host_array<float>(n);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }

    DataStruct data[MAX_GPUS] = {};
    size_t offset = 0;
    for (int i = 0; i < gpus; i++) {
        data[i].deviceID = device_id[i];
        data[i].size = part_size(i);
        data[i].a = a + offset;
        data[i].b = b + offset;
        offset += data[i].size;
    }

    // One new host thread for each device but the last, which this thread uses itself.
    CUTThread threads[MAX_GPUS];
    for (int i = 0; i < gpus - 1; i++)
        threads[i] = start_thread(routine, &data[i]);
    routine(&data[gpus - 1]);
    wait_for_threads(threads, gpus - 1);

    float c = 0;
    for (int i = 0; i < gpus; i++) {
        const DataStruct &d = data[i];
        c += d.returnValue;
        double bytes = 2.0 * d.size * sizeof(float); // both vectors are read
        if (d.size > 0)
            printf("GPU %d: %zu elements, with copies %.3f ms, %.3f GB/s; kernel %.3f ms, %.3f GB/s\n",
                   d.deviceID, d.size, d.ms, bytes / d.ms / 1e6, d.kernel_ms, bytes / d.kernel_ms / 1e6);
        else
            printf("GPU %d: nothing to do\n", d.deviceID);
    }
    printf("Value calculated:  %f\n", c);
    bool ok = check_parts(c);

    free(a);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    dot_settings(argc, argv, "Dot product on several devices.");
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        require_memory(2 * n * sizeof(float), 2 * part_size(i) * sizeof(float));
    }
    HANDLE_ERROR(cudaSetDevice(options.device));
}
