// SPDX-License-Identifier: MIT
// For portable --no-portable: copies from memory that another thread has allocated.
#ifndef CHAPTER11_ANOTHER_THREAD_H
#define CHAPTER11_ANOTHER_THREAD_H

#include "../common/timing.h"
#include "parts.h"

// Arguments and results of the second host thread.
struct Copies {
    const int *from; // source in host memory, allocated by the first thread
    int *back;       // the data on the device, copied back for the check
    float ms;        // of a copy
    cudaError_t taken;
    bool at_once; // whether the asynchronous copy returned before it was done
};

// Runs in another host thread than the one that allocated the memory, with another device: copies from it,
// first with cudaMemcpy, then asynchronously.
static CUT_THREADPROC copy_elsewhere(void *pvoidData) {
    Copies *data = (Copies *)pvoidData;
    size_t bytes = n * sizeof(int);
    int *dev;
    cudaStream_t stream;
    HANDLE_ERROR(cudaSetDevice(device_id[gpus > 1]));
    HANDLE_ERROR(cudaMalloc(&dev, bytes));
    HANDLE_ERROR(cudaStreamCreate(&stream));
    data->ms = median_ms([&] { HANDLE_ERROR(cudaMemcpy(dev, data->from, bytes, cudaMemcpyHostToDevice)); });
    HANDLE_ERROR(cudaMemset(dev, 0xff, bytes));
    HANDLE_ERROR(cudaDeviceSynchronize());
    cudaError_t taken = cudaMemcpyAsync(dev, data->from, bytes, cudaMemcpyHostToDevice, stream);
    cudaError_t query = cudaStreamQuery(stream);
    data->taken = taken;
    data->at_once = query == cudaErrorNotReady;
    HANDLE_ERROR(cudaStreamSynchronize(stream));
    HANDLE_ERROR(cudaMemcpy(data->back, dev, bytes, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaStreamDestroy(stream));
    HANDLE_ERROR(cudaFree(dev));
    CUT_THREADEND;
}

// For --no-portable. Returns the exit status.
static int copy_from_another_thread(void) {
    const char *const kinds[] = {"pageable", "pinned", "portable"};
    int *source = big_random_ints(n), *back = host_array<int>(n);
    bool ok = true;
    printf("Copies by another host thread, to device %d\n", device_id[gpus > 1]);
    for (int kind = 0; kind < 3; kind++) {
        int *memory;
        if (kind == 0)
            memory = host_array<int>(n);
        else
            HANDLE_ERROR(cudaHostAlloc(&memory, n * sizeof(int),
                                       kind == 1 ? cudaHostAllocDefault : cudaHostAllocPortable));
        std::copy(source, source + n, memory);
        Copies data = {memory, back, 0, cudaSuccess, false};
        end_thread(start_thread(copy_elsewhere, &data));
        printf("%-9s memory: %.3f ms, %.3f GB/s; asynchronous copy: %s, %s\n", kinds[kind], data.ms,
               n * sizeof(int) / data.ms / 1e6, cudaGetErrorName(data.taken),
               data.at_once ? "the host went on at once" : "the host went on when it was done");
        ok = check_ints(kinds[kind], back, source, n) && ok;
        if (kind == 0)
            free(memory);
        else
            HANDLE_ERROR(cudaFreeHost(memory));
    }
    free(source);
    free(back);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
