// SPDX-License-Identifier: MIT
/*
 * hist_gpu_gmem_atomics: histogram with atomics in global memory
 *
 * Teaches: atomicAdd() makes the increment of a bin one indivisible operation, so no thread loses
 *          another one's addition. Atomic operations on the same bin are carried out one after the
 *          other: with thousands of threads and 256 bins, contention limits the speed, most of all
 *          when many bytes are equal.
 * Terms:   atomic operation, atomicAdd, contention, histogram, histogram bin, grid-stride loop
 * Book:    9.4.2 (global memory)
 * Run:     ./bin/chapter09/hist_gpu_gmem_atomics --sweep
 * Differs: bins have 64 bits, so that more than 4 GiB can be counted. --fill selects data that do not
 *          spread evenly over the bins. The kernel is timed alone as well. --blocks sets the number of
 *          blocks, and --sweep compares many numbers. The book's GPU took four times as long as its CPU,
 *          and two blocks per multiprocessor were fastest. An H200 takes half the time of its host's CPU,
 *          and is fastest with so many blocks that each thread counts one byte (2026-11-22).
 * Check:   --size 100000
 */
#include "../common/book.h"
#include "../common/timing.h"
#include "hist.h"     // SIZE, BINS, size, make_data(), check_histogram()
#include "hist_gpu.h" // blocks_given, sweep_blocks()

__global__ void histo_kernel(const unsigned char *buffer, size_t size, unsigned long long *histo) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&histo[buffer[i]], 1ULL);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned char *buffer = make_data();

    // Twice as many blocks as multiprocessors, if --blocks is not given: the book found that to be fastest.
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    unsigned blocks = blocks_given ? blocks_given : prop.multiProcessorCount * 2;

    // The book's figure includes the allocations and the copies.
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));

    unsigned char *dev_buffer;
    unsigned long long *dev_histo, histo[BINS], again[BINS];
    HANDLE_ERROR(cudaMalloc(&dev_buffer, size));
    HANDLE_ERROR(cudaMemcpy(dev_buffer, buffer, size, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMalloc(&dev_histo, sizeof(histo)));
    HANDLE_ERROR(cudaMemset(dev_histo, 0, sizeof(histo)));

    histo_kernel<<<blocks, BINS>>>(dev_buffer, size, dev_histo);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(histo, dev_histo, sizeof(histo), cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to generate:  %3.1f ms\n", elapsedTime);

    float ms = median_ms([&] { histo_kernel<<<blocks, BINS>>>(dev_buffer, size, dev_histo); },
                         [&] { HANDLE_ERROR(cudaMemset(dev_histo, 0, sizeof(histo))); });
    printf("Kernel:            %.3f ms, %.3f GB/s\n", ms, size / ms / 1e6);
    HANDLE_ERROR(cudaMemcpy(again, dev_histo, sizeof(histo), cudaMemcpyDeviceToHost));

    unsigned long long histoCount = 0;
    for (int i = 0; i < BINS; i++)
        histoCount += histo[i];
    printf("Histogram Sum:  %llu\n", histoCount);
    bool ok = check_histogram(histo, buffer, histoCount) && check_last_run(again, histo);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_histo));
    HANDLE_ERROR(cudaFree(dev_buffer));
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    hist_gpu_settings(argc, argv, "Counts bytes on the device, in global memory.", histo_kernel);
}

// Task: histo_kernel(): histo has 256 bins in global memory, initialized to zero. Any number of blocks of any
// number of threads count `size` bytes in a grid-stride loop: for each byte, increment bin number buffer[i]
// with a 64-bit atomic addition.
