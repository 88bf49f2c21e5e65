// SPDX-License-Identifier: MIT
/*
 * heat: heat that spreads over a plate, read through textures
 *
 * Teaches: Threads that read near each other are what textures are for. A texture object says how
 *          memory is to be read; a kernel gets it as an argument and reads through it with
 *          tex1Dfetch.
 * Book:    7.3.4
 * Run:     ./bin/chapter07/heat --output heat.png
 * Differs: texture objects, one a buffer, which are swapped with the buffers; the page's texture
 *          references left CUDA in version 12. They are swapped in every step, so that a frame may
 *          have an odd number of steps. The rest is as in heat_gmem.
 * Picture: yes
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/color.h"
#include "../common/cpu_anim.h"
#include "../common/memory.h"
#include "heat.h"

#define MAX_SIZE 11585 // 2^27 texels are the most that a texture over linear memory can have

struct DataBlock {
    size_t size = DIM;
    int steps = STEPS; // in a frame
    unsigned char *output_bitmap;
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    cudaTextureObject_t texIn, texOut, texConstSrc; // the same memory
    float *dev_before; // the temperatures before the frame that was drawn last
    CPUAnimBitmap *bitmap;
    cudaEvent_t start, middle, stop;
    float totalTime = 0, stepTime = 0; // of all frames; of the steps in all but the first
    size_t frames = 0;
};

__global__ void copy_const_kernel(float *iptr, cudaTextureObject_t texConst, size_t size) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x;
    size_t y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;
    float c = tex1Dfetch<float>(texConst, offset);
    if (c != 0)
        iptr[offset] = c;
}

__global__ void blend_kernel(float *dst, cudaTextureObject_t texIn, size_t size) {
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
    float t = tex1Dfetch<float>(texIn, offset);
    float l = tex1Dfetch<float>(texIn, left), r = tex1Dfetch<float>(texIn, right);
    float a = tex1Dfetch<float>(texIn, above), b = tex1Dfetch<float>(texIn, below);
    dst[offset] = t + SPEED * ((a - t) + (b - t) + (l - t) + (r - t));
}

static void generate_frame(void *data, int) {
    DataBlock *d = (DataBlock *)data;
    HANDLE_ERROR(cudaMemcpy(d->dev_before, d->dev_inSrc, d->size * d->size * sizeof(float),
                            cudaMemcpyDeviceToDevice));

    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    dim3 blocks((d->size + 15) / 16, (d->size + 15) / 16), threads(16, 16);
    for (int i = 0; i < d->steps; i++) {
        copy_const_kernel<<<blocks, threads>>>(d->dev_inSrc, d->texConstSrc, d->size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks, threads>>>(d->dev_outSrc, d->texIn, d->size);
        HANDLE_LAUNCH();
        swap(d->dev_inSrc, d->dev_outSrc);
        swap(d->texIn, d->texOut);
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

// A texture whose texels are the floats of an array in memory.
static cudaTextureObject_t make_texture(float *data, size_t bytes) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = data;
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = bytes;
    cudaTextureDesc desc = {}; // nothing in it counts for floats that tex1Dfetch reads
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    return texture;
}

int main(int argc, char **argv) {
    DataBlock data;
    options.frames = 5; // of a file
    const Option own[] = {OPTION_SIZE("size", &data.size, 1, MAX_SIZE, "cells a side"),
                          OPTION_INT("iterations", &data.steps, 1, 10000, "steps in a frame"),
                          OPTION_END};
    parse_options(argc, argv, "Heat that spreads over a plate, read through textures.",
                  ANIMATION | TIMES, own);
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
    data.texIn = make_texture(data.dev_inSrc, bytes);
    data.texOut = make_texture(data.dev_outSrc, bytes);
    data.texConstSrc = make_texture(data.dev_constSrc, bytes);

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
    HANDLE_ERROR(cudaDestroyTextureObject(data.texIn));
    HANDLE_ERROR(cudaDestroyTextureObject(data.texOut));
    HANDLE_ERROR(cudaDestroyTextureObject(data.texConstSrc));
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
