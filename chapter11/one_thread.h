// SPDX-License-Identifier: MIT
// For multidevice --one-thread. multidevice defines DataStruct and the kernel dot.
#ifndef CHAPTER11_ONE_THREAD_H
#define CHAPTER11_ONE_THREAD_H

#include <chrono>

// For --one-thread: this thread gives each device its copies and its kernel, which all return at once, and
// then waits for all devices. Returns the exit status.
static int run_in_one_thread(void) {
    float *a, *b, *dev_a[MAX_GPUS], *dev_b[MAX_GPUS], *dev_partial_c[MAX_GPUS], *partial_c[MAX_GPUS];
    cudaStream_t stream[MAX_GPUS];
    cudaEvent_t start[MAX_GPUS], stop[MAX_GPUS];
    HANDLE_ERROR(cudaHostAlloc(&a, n * sizeof(float), cudaHostAllocPortable));
    HANDLE_ERROR(cudaHostAlloc(&b, n * sizeof(float), cudaHostAllocPortable));
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }
    // A stream and its events belong to the device that is current when they are created.
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaStreamCreate(&stream[i]));
        HANDLE_ERROR(cudaEventCreate(&start[i]));
        HANDLE_ERROR(cudaEventCreate(&stop[i]));
        HANDLE_ERROR(cudaMalloc(&dev_a[i], max_of(part[i], 1) * sizeof(float)));
        HANDLE_ERROR(cudaMalloc(&dev_b[i], max_of(part[i], 1) * sizeof(float)));
        HANDLE_ERROR(cudaMalloc(&dev_partial_c[i], 32 * sizeof(float)));
        HANDLE_ERROR(cudaHostAlloc(&partial_c[i], 32 * sizeof(float), cudaHostAllocPortable));
    }

    std::chrono::duration<double, std::milli> elapsed;
    for (int run = 0; run < 2; run++) { // the first run warms up
        auto began = std::chrono::steady_clock::now();
        size_t offset = 0;
        for (int i = 0; i < gpus; offset += part[i++]) {
            int blocks = min_of(32, (part[i] + threadsPerBlock - 1) / threadsPerBlock);
            size_t bytes = part[i] * sizeof(float);
            if (part[i] == 0)
                continue;
            HANDLE_ERROR(cudaSetDevice(device_id[i]));
            HANDLE_ERROR(cudaEventRecord(start[i], stream[i]));
            HANDLE_ERROR(cudaMemcpyAsync(dev_a[i], a + offset, bytes, cudaMemcpyHostToDevice, stream[i]));
            HANDLE_ERROR(cudaMemcpyAsync(dev_b[i], b + offset, bytes, cudaMemcpyHostToDevice, stream[i]));
            dot<<<blocks, threadsPerBlock, 0, stream[i]>>>(dev_a[i], dev_b[i], dev_partial_c[i], part[i]);
            HANDLE_LAUNCH();
            HANDLE_ERROR(cudaMemcpyAsync(partial_c[i], dev_partial_c[i], blocks * sizeof(float),
                                         cudaMemcpyDeviceToHost, stream[i]));
            HANDLE_ERROR(cudaEventRecord(stop[i], stream[i]));
        }
        for (int i = 0; i < gpus; i++)
            HANDLE_ERROR(cudaStreamSynchronize(stream[i]));
        elapsed = std::chrono::steady_clock::now() - began;
    }

    DataStruct data[MAX_GPUS] = {};
    float c = 0, sum = 0;
    for (int i = 0; i < gpus; i++) {
        int blocks = min_of(32, (part[i] + threadsPerBlock - 1) / threadsPerBlock);
        float returned = 0;
        for (int block = 0; block < blocks; block++)
            returned += partial_c[i][block];
        c += returned;
        if (part[i] > 0) {
            HANDLE_ERROR(cudaEventElapsedTime(&data[i].ms, start[i], stop[i]));
            printf("GPU %d: %zu elements, with copies %.3f ms, %.3f GB/s\n", device_id[i], part[i],
                   data[i].ms, 2.0 * part[i] * sizeof(float) / data[i].ms / 1e6);
        } else
            printf("GPU %d: nothing to do\n", device_id[i]);
        sum += data[i].ms;
    }
    print_slowest(data);
    printf("One thread for all: %.3f ms; the times of the GPUs add up to %.3f ms\n", elapsed.count(), sum);
    printf("Value calculated:  %f\n", c);
    bool ok = check_parts(c);

    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaStreamDestroy(stream[i]));
        HANDLE_ERROR(cudaEventDestroy(start[i]));
        HANDLE_ERROR(cudaEventDestroy(stop[i]));
        HANDLE_ERROR(cudaFree(dev_a[i]));
        HANDLE_ERROR(cudaFree(dev_b[i]));
        HANDLE_ERROR(cudaFree(dev_partial_c[i]));
        HANDLE_ERROR(cudaFreeHost(partial_c[i]));
    }
    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFreeHost(b));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
