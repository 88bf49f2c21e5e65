// SPDX-License-Identifier: MIT
/*
 * hist_gpu_gmem_atomics: how often each byte occurs, counted in global memory
 *
 * Teaches: With atomicAdd() many threads can add to one bin and not one addition is lost. But those
 *          that meet at a bin wait for each other, and thousands of threads share 256 bins: the
 *          time goes into waiting in line, the more so the more bytes are equal.
 * Book:    9.4.2 (global memory)
 * Run:     ./bin/chapter09/hist_gpu_gmem_atomics
 * Differs: bins have 64 bits, so that more than 4 GiB can be counted. --fill takes data that are
 *          not spread evenly. The kernel is timed alone as well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>
#include "../common/book.h"
#include "../common/memory.h"

#define SIZE (100 * 1024 * 1024)
#define BINS 256
#define RUNS 11

enum { RANDOM, EQUAL, SKEWED };

__global__ void histo_kernel(const unsigned char *buffer, size_t size, unsigned long long *histo) {
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < size; i += stride)
        atomicAdd(&histo[buffer[i]], 1ULL);
}

static unsigned char *make_data(size_t size, int fill) {
    unsigned char *data = (unsigned char *)big_random_block(size);
    if (fill == EQUAL)
        memset(data, data[0], size);
    for (size_t i = 0; fill == SKEWED && i < size; i++)
        data[i] = data[i] * data[i] * data[i] >> 16; // small values often, 0 for one byte in six
    return data;
}

// Counts down, from the histogram to nothing: each bin must end at 0.
static bool verify(unsigned long long *histo, const unsigned char *buffer, size_t size) {
    for (size_t i = 0; i < size; i++)
        histo[buffer[i]]--;
    int wrong = 0;
    for (int bin = 0; bin < BINS; bin++)
        if (histo[bin] != 0 && wrong++ < 5)
            fprintf(stderr, "bin %d: %+lld\n", bin, (long long)histo[bin]);
    if (wrong > 0)
        fprintf(stderr, "%d of %d bins are off by that much\n", wrong, BINS);
    return wrong == 0;
}

int main(int argc, char **argv) {
    size_t size = SIZE;
    int fill = RANDOM;
    const Option own[] = {OPTION_SIZE("size", &size, 1, 1LL << 44, "bytes to count"),
                          OPTION_WORD("fill", &fill, "random|equal|skewed", "what the bytes are"),
                          OPTION_END};
    parse_options(argc, argv, "Counts bytes on the device, in global memory.", TIMES, own);
    select_device();
    require_memory(size, size);
    unsigned char *buffer = make_data(size, fill);

    // Twice as many blocks as multiprocessors: for this kernel the book found that to be fastest.
    cudaDeviceProp prop;
    HANDLE_ERROR(cudaGetDeviceProperties(&prop, options.device));
    unsigned blocks = prop.multiProcessorCount * 2;

    // The time that the book measures: from the empty device to the histogram on the host.
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));

    unsigned char *dev_buffer;
    unsigned long long *dev_histo, histo[BINS], again[BINS];
    HANDLE_ERROR(cudaMalloc((void **)&dev_buffer, size));
    HANDLE_ERROR(cudaMemcpy(dev_buffer, buffer, size, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMalloc((void **)&dev_histo, sizeof(histo)));
    HANDLE_ERROR(cudaMemset(dev_histo, 0, sizeof(histo)));
    histo_kernel<<<blocks, BINS>>>(dev_buffer, size, dev_histo);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(histo, dev_histo, sizeof(histo), cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    float elapsed;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsed, start, stop));
    printf("Time to generate:  %3.1f ms\n", elapsed);

    // The kernel alone, which by now is warm: the median of RUNS runs, or of those that a second
    // has room for.
    float ms[RUNS], total = 0;
    int runs = 0;
    while (runs < RUNS && total < 1000) {
        HANDLE_ERROR(cudaMemset(dev_histo, 0, sizeof(histo)));
        HANDLE_ERROR(cudaEventRecord(start, 0));
        histo_kernel<<<blocks, BINS>>>(dev_buffer, size, dev_histo);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&ms[runs], start, stop));
        total += ms[runs++];
    }
    std::nth_element(ms, ms + runs / 2, ms + runs);
    printf("Kernel:            %.3f ms, %.3f GB/s\n", ms[runs / 2], size / ms[runs / 2] / 1e6);
    HANDLE_ERROR(cudaMemcpy(again, dev_histo, sizeof(histo), cudaMemcpyDeviceToHost));

    inject_error(histo, sizeof(histo));
    unsigned long long histoCount = 0;
    for (int i = 0; i < BINS; i++)
        histoCount += histo[i];
    printf("Histogram Sum:  %llu\n", histoCount);
    bool ok = memcmp(histo, again, sizeof(histo)) == 0;
    if (!ok)
        fprintf(stderr, "the first and the last run differ\n");
    ok = verify(histo, buffer, size) && ok;

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_histo));
    HANDLE_ERROR(cudaFree(dev_buffer));
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
