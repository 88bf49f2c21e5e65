// SPDX-License-Identifier: MIT
/*
 * heat_gmem: heat that spreads over a plate, from global memory
 *
 * Teaches: A simulation goes from one buffer to another and then swaps the two. In each step every
 *          cell moves towards the mean of its four neighbours, while heaters keep their warmth. So
 *          a thread reads five cells, which the threads beside it read as well.
 * Book:    7.3.3
 * Run:     ./bin/chapter07/heat_gmem --output heat.png
 * Differs: temperatures are compared with those of the host in double. Differences to the
 *          neighbours are added up, which rounds less than a sum less four times the cell. Any
 *          size, with the heaters on the same part of the plate, and any number of steps a frame.
 * Picture: as chapter07/heat
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/color.h"
#include "../common/cpu_anim.h"
#include "../common/memory.h"
#include "heat.h"

struct DataBlock {
    size_t size = DIM;
    int steps = STEPS; // in a frame
    unsigned char *output_bitmap;
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    float *dev_before; // the temperatures before the frame that was drawn last
    CPUAnimBitmap *bitmap;
    cudaEvent_t start, middle, stop;
    float totalTime = 0, stepTime = 0; // of all frames; of the steps in all but the first
    size_t frames = 0;
};

__global__ void copy_const_kernel(float *iptr, const float *cptr, size_t size) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x;
    size_t y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;
    if (cptr[offset] != 0)
        iptr[offset] = cptr[offset];
}

__global__ void blend_kernel(float *outSrc, const float *inSrc, size_t size) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x;
    size_t y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;

    // Beyond an edge it is as warm as at the edge.
    size_t left = x > 0 ? offset - 1 : offset;
    size_t right = x < size - 1 ? offset + 1 : offset;
    size_t below = y > 0 ? offset - size : offset;
    size_t above = y < size - 1 ? offset + size : offset;
    float t = inSrc[offset];
    outSrc[offset] = t + SPEED * ((inSrc[above] - t) + (inSrc[below] - t) + (inSrc[left] - t) +
                                  (inSrc[right] - t));
}

static void generate_frame(void *data, int) {
    DataBlock *d = (DataBlock *)data;
    HANDLE_ERROR(cudaMemcpy(d->dev_before, d->dev_inSrc, d->size * d->size * sizeof(float),
                            cudaMemcpyDeviceToDevice));

    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    dim3 blocks((d->size + 15) / 16, (d->size + 15) / 16), threads(16, 16);
    for (int i = 0; i < d->steps; i++) {
        copy_const_kernel<<<blocks, threads>>>(d->dev_inSrc, d->dev_constSrc, d->size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks, threads>>>(d->dev_outSrc, d->dev_inSrc, d->size);
        HANDLE_LAUNCH();
        swap(d->dev_inSrc, d->dev_outSrc);
    }
    HANDLE_ERROR(cudaEventRecord(d->middle, 0));
    float_to_color<<<blocks, threads>>>(d->output_bitmap, d->dev_inSrc, d->size, d->size,
                                        d->size * sizeof(float));
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(d->bitmap->get_ptr(), d->output_bitmap, d->bitmap->image_size(),
                            cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventRecord(d->stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(d->stop));

    float elapsed;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsed, d->start, d->stop));
    d->totalTime += elapsed;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsed, d->start, d->middle));
    d->stepTime = d->frames == 0 ? 0 : d->stepTime + elapsed;
    d->frames++;
}

// The book's figure, and a step alone once everything is warm. It reads each cell and its heater,
// and writes the cell; what threads read that were read before come from the cache.
static void print_times(const DataBlock *d) {
    printf("Average Time per frame:  %3.1f ms\n", d->totalTime / d->frames);
    if (d->frames == 1)
        return;
    float step = d->stepTime / (d->frames - 1) / d->steps;
    printf("Step:                    %.3f ms, %.1f GB/s\n", step,
           3.0 * sizeof(float) * d->size * d->size / step / 1e6);
}

int main(int argc, char **argv) {
    DataBlock data;
    options.frames = 5; // of a file
    const Option own[] = {OPTION_SIZE("size", &data.size, 1, 65535, "cells a side"),
                          OPTION_INT("iterations", &data.steps, 1, 10000, "steps in a frame"),
                          OPTION_END};
    parse_options(argc, argv, "Heat that spreads over a plate.", ANIMATION | TIMES, own);
    select_device();

    size_t cells = data.size * data.size, bytes = cells * sizeof(float);
    require_memory(8 * bytes, 5 * bytes);
    CPUAnimBitmap bitmap(data.size, data.size, &data);
    data.bitmap = &bitmap;
    HANDLE_ERROR(cudaEventCreate(&data.start));
    HANDLE_ERROR(cudaEventCreate(&data.middle));
    HANDLE_ERROR(cudaEventCreate(&data.stop));
    HANDLE_ERROR(cudaMalloc((void **)&data.output_bitmap, bitmap.image_size()));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_inSrc, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_outSrc, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_constSrc, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_before, bytes));

    float *heaters = (float *)malloc(bytes), *temperatures = (float *)malloc(bytes);
    float *result = (float *)malloc(bytes);
    HANDLE_NULL(heaters);
    HANDLE_NULL(temperatures);
    HANDLE_NULL(result);
    place_heaters(heaters, data.size);
    place_heat(temperatures, heaters, data.size);
    HANDLE_ERROR(cudaMemcpy(data.dev_constSrc, heaters, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(data.dev_inSrc, temperatures, bytes, cudaMemcpyHostToDevice));

    bitmap.anim_and_exit(generate_frame);
    print_times(&data);
    HANDLE_ERROR(cudaMemcpy(result, data.dev_inSrc, bytes, cudaMemcpyDeviceToHost));
    inject_error(result, bytes);
    // The whole run is done again for comparison; or when it was long, its last frame.
    size_t steps = data.frames * data.steps;
    if (!affordable(data.size, steps)) {
        steps = data.steps;
        HANDLE_ERROR(cudaMemcpy(temperatures, data.dev_before, bytes, cudaMemcpyDeviceToHost));
    }
    bool ok = check_heat(result, temperatures, heaters, data.size, steps);

    free(heaters);
    free(temperatures);
    free(result);
    HANDLE_ERROR(cudaFree(data.output_bitmap));
    HANDLE_ERROR(cudaFree(data.dev_inSrc));
    HANDLE_ERROR(cudaFree(data.dev_outSrc));
    HANDLE_ERROR(cudaFree(data.dev_constSrc));
    HANDLE_ERROR(cudaFree(data.dev_before));
    HANDLE_ERROR(cudaEventDestroy(data.start));
    HANDLE_ERROR(cudaEventDestroy(data.middle));
    HANDLE_ERROR(cudaEventDestroy(data.stop));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
