// SPDX-License-Identifier: MIT
/*
 * hist_gpu_shmem_atomics: histogram with atomics in shared memory, one copy of the bins per block
 *
 * Teaches: Privatization: each block counts into bins of its own in shared memory and adds them to
 *          the bins in global memory at the end. There are more atomic operations than before, but
 *          only the 256 threads of a block contend for a bin, and shared memory has a much lower
 *          latency.
 * Terms:   privatization, shared memory, atomic operation, contention, histogram bin, barrier
 * Book:    9.4.2 (shared memory)
 * Build:   nvcc -o hist_gpu_shmem_atomics chapter09/hist_gpu_shmem_atomics.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter09/hist_gpu_shmem_atomics --sweep
 * Differs: the bins in global memory have 64 bits, so that more than 4 GiB can be counted. The book's
 *          check on the host is in hist_gpu_gmem_atomics only. The kernel is timed alone as well. --fill
 *          selects other data; --sweep tries other numbers of blocks and threads (docs/book-vs-today.md).
 * Check:   --size 100001 --sweep | --size 100001
 */
#include "../common/book.h"
#include "hist_gpu.h" // --fill: fill_bytes(); --sweep: sweep_blocks(); check()

#define SIZE (100 * 1024 * 1024)

size_t size = SIZE; // --size
int blocks = 0;     // --blocks; 0: twice as many as multiprocessors
bool sweep = false; // --sweep

// A block must have 256 threads: each of them clears one bin, and adds one bin to histo.
__global__ void histo_kernel(const unsigned char *buffer, size_t size, unsigned long long *histo) {
    __shared__ unsigned temp[256]; // the bins of this block
    temp[threadIdx.x] = 0;
    __syncthreads(); // the barrier: now all bins are 0

    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&temp[buffer[i]], 1);
    __syncthreads(); // the block has counted all its bytes

    atomicAdd(&histo[threadIdx.x], temp[threadIdx.x]);
}

// The same for blocks of any number of threads, fewer or more than bins: each thread clears and adds the bins
// threadIdx.x, threadIdx.x + blockDim.x and so on, if there are such bins.
__global__ void histo_any_threads(const unsigned char *buffer, size_t size, unsigned long long *histo) {
    __shared__ unsigned temp[256];
    for (unsigned bin = threadIdx.x; bin < 256; bin += blockDim.x)
        temp[bin] = 0;
    __syncthreads();

    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&temp[buffer[i]], 1);
    __syncthreads();

    for (unsigned bin = threadIdx.x; bin < 256; bin += blockDim.x)
        atomicAdd(&histo[bin], temp[bin]);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (sweep)
        return sweep_blocks(histo_kernel, histo_any_threads);
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
    blocks = max_of(blocks, least_blocks()); // so that no block counts over 2 GiB: its bins have 32 bits
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

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_histo));
    HANDLE_ERROR(cudaFree(dev_buffer));
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    hist_gpu_settings(argc, argv, "Counts bytes on the device, in shared memory first.");
}

// Task: histo_kernel(): A block has 256 threads and a private histogram of 256 bins in shared memory.
// First, each thread initializes one bin to zero. Second, the block counts its bytes of a grid-stride loop
// over `size` bytes into the private histogram, with atomic operations in shared memory. Third, each thread
// adds one bin to the bin of the same number in histo, with an atomic addition in global memory. A barrier
// for all threads of the block separates the first step from the second, and the second from the third.
// histo_any_threads(): The same for blocks of any number of threads: in the first and the third step thread i
// has the bins i, i + blockDim.x, i + 2 blockDim.x and so on, as far as they are below 256.
