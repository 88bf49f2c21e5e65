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
 * Build:   nvcc -o hist_gpu_gmem_atomics chapter09/hist_gpu_gmem_atomics.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter09/hist_gpu_gmem_atomics --sweep
 * Differs: bins have 64 bits, so that more than 4 GiB can be counted. The kernel is timed alone as well.
 *          --fill selects other data, and --sweep compares numbers of blocks; see docs/book-vs-today.md.
 * Check:   --size 100000
 */
#include "../common/book.h"
#include "hist_gpu.h" // --fill: fill_bytes(); --sweep: sweep_blocks(); check()

#define SIZE (100 * 1024 * 1024)

size_t size = SIZE; // --size
int blocks = 0;     // --blocks; 0: twice as many as multiprocessors
bool sweep = false; // --sweep

__global__ void histo_kernel(const unsigned char *buffer, size_t size, unsigned long long *histo) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&histo[buffer[i]], 1ULL);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (sweep)
        return sweep_blocks(histo_kernel);
    unsigned char *buffer = (unsigned char *)big_random_block(size);
    fill_bytes(buffer); // without --fill they stay random

    // The book's figure includes the allocations and the copies.
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));

    unsigned char *dev_buffer;
    unsigned long long *dev_histo;
    HANDLE_ERROR(cudaMalloc(&dev_buffer, size));
    HANDLE_ERROR(cudaMemcpy(dev_buffer, buffer, size, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMalloc(&dev_histo, 256 * sizeof(unsigned long long)));
    HANDLE_ERROR(cudaMemset(dev_histo, 0, 256 * sizeof(unsigned long long)));

    // The book found twice as many blocks as multiprocessors to be fastest.
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    if (blocks == 0)
        blocks = prop.multiProcessorCount * 2;
    histo_kernel<<<blocks, 256>>>(dev_buffer, size, dev_histo);
    HANDLE_LAUNCH();

    unsigned long long histo[256];
    HANDLE_ERROR(cudaMemcpy(histo, dev_histo, 256 * sizeof(unsigned long long), cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to generate:  %3.1f ms\n", elapsedTime);

    unsigned long long histoCount = 0;
    for (int i = 0; i < 256; i++)
        histoCount += histo[i];
    printf("Histogram Sum:  %llu\n", histoCount);
    bool ok = check(histo_kernel, dev_buffer, dev_histo, buffer, histo, histoCount);

    // The book's check, which its program with shared memory has too: the host counts the same bytes down, so
    // every bin must be 0 at the end.
    for (size_t i = 0; i < size; i++)
        histo[buffer[i]]--;
    int wrong = 0;
    for (int i = 0; i < 256; i++)
        wrong += histo[i] != 0;
    printf("Counted down on the host: %d bins are not 0\n", wrong);
    ok = ok && wrong == 0;

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_histo));
    HANDLE_ERROR(cudaFree(dev_buffer));
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    hist_gpu_settings(argc, argv, "Counts bytes on the device, in global memory.");
}

// Task: histo_kernel(): histo has 256 bins in global memory, initialized to zero. Any number of blocks of any
// number of threads count `size` bytes in a grid-stride loop: for each byte, increment bin number buffer[i]
// with a 64-bit atomic addition.
