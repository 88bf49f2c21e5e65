// SPDX-License-Identifier: MIT
/*
 * heat_2d: heat that spreads over a plate, read through textures of two dimensions
 *
 * Teaches: A texture of two dimensions is read with tex2D at a column and a row. Beyond the edges
 *          it repeats what is there, as it was told to, so the kernel need not know the edges.
 * Book:    7.3.5
 * Run:     ./bin/chapter07/heat_2d --output heat.png
 * Differs: texture objects in place of texture references. Their memory comes from
 *          cudaMallocPitch, since each row of a texture must begin at a multiple of an alignment,
 *          and clamp addressing is asked for. The rest is as in heat.
 * Picture: as chapter07/heat
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/color.h"
#include "../common/cpu_anim.h"
#include "../common/memory.h"
#include "heat.h"

#define MAX_SIZE 65000 // rows are the most that a texture over pitched memory can have

struct DataBlock {
    size_t size = DIM;
    int steps = STEPS; // in a frame
    unsigned char *output_bitmap;
    size_t pitch; // bytes from row to row in the next three
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    cudaTextureObject_t texIn, texOut, texConstSrc; // the same memory
    float *dev_before; // the temperatures before the frame that was drawn last
    CPUAnimBitmap *bitmap;
    cudaEvent_t start, middle, stop;
    float totalTime = 0, stepTime = 0; // of all frames; of the steps in all but the first
    size_t frames = 0;
};

__device__ float *element(float *data, size_t pitch, int x, int y) {
    return (float *)((char *)data + y * pitch) + x;
}

__global__ void copy_const_kernel(float *iptr, cudaTextureObject_t texConst, size_t pitch,
                                  int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float c = tex2D<float>(texConst, x, y);
    if (c != 0)
        *element(iptr, pitch, x, y) = c;
}

__global__ void blend_kernel(float *dst, cudaTextureObject_t texIn, size_t pitch, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float t = tex2D<float>(texIn, x, y);
    float l = tex2D<float>(texIn, x - 1, y), r = tex2D<float>(texIn, x + 1, y);
    float a = tex2D<float>(texIn, x, y + 1), b = tex2D<float>(texIn, x, y - 1);
    *element(dst, pitch, x, y) = t + SPEED * ((a - t) + (b - t) + (l - t) + (r - t));
}

static void generate_frame(void *data, int) {
    DataBlock *d = (DataBlock *)data;
    HANDLE_ERROR(cudaMemcpy2D(d->dev_before, d->pitch, d->dev_inSrc, d->pitch,
                              d->size * sizeof(float), d->size, cudaMemcpyDeviceToDevice));

    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    dim3 blocks((d->size + 15) / 16, (d->size + 15) / 16), threads(16, 16);
    for (int i = 0; i < d->steps; i++) {
        copy_const_kernel<<<blocks, threads>>>(d->dev_inSrc, d->texConstSrc, d->pitch, d->size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks, threads>>>(d->dev_outSrc, d->texIn, d->pitch, d->size);
        HANDLE_LAUNCH();
        swap(d->dev_inSrc, d->dev_outSrc);
        swap(d->texIn, d->texOut);
    }
    HANDLE_ERROR(cudaEventRecord(d->middle, 0));
    float_to_color<<<blocks, threads>>>(d->output_bitmap, d->dev_inSrc, d->size, d->size, d->pitch);
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

// A texture over size rows of size floats.
static cudaTextureObject_t make_texture(float *memory, size_t pitch, size_t size) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = memory;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = resource.res.pitch2D.height = size;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
    desc.filterMode = cudaFilterModePoint;
    desc.readMode = cudaReadModeElementType;
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
    parse_options(argc, argv, "Heat that spreads over a plate, read through 2D textures.",
                  ANIMATION | TIMES, own);
    select_device();

    size_t cells = data.size * data.size, bytes = cells * sizeof(float);
    size_t width = data.size * sizeof(float); // of a row, in bytes
    require_memory(8 * bytes, 5 * bytes);
    CPUAnimBitmap bitmap(data.size, data.size, &data);
    data.bitmap = &bitmap;
    HANDLE_ERROR(cudaEventCreate(&data.start));
    HANDLE_ERROR(cudaEventCreate(&data.middle));
    HANDLE_ERROR(cudaEventCreate(&data.stop));
    HANDLE_ERROR(cudaMalloc((void **)&data.output_bitmap, bitmap.image_size()));
    HANDLE_ERROR(cudaMallocPitch((void **)&data.dev_inSrc, &data.pitch, width, data.size));
    HANDLE_ERROR(cudaMallocPitch((void **)&data.dev_outSrc, &data.pitch, width, data.size));
    HANDLE_ERROR(cudaMallocPitch((void **)&data.dev_constSrc, &data.pitch, width, data.size));
    HANDLE_ERROR(cudaMallocPitch((void **)&data.dev_before, &data.pitch, width, data.size));
    data.texIn = make_texture(data.dev_inSrc, data.pitch, data.size);
    data.texOut = make_texture(data.dev_outSrc, data.pitch, data.size);
    data.texConstSrc = make_texture(data.dev_constSrc, data.pitch, data.size);

    float *heaters = (float *)malloc(bytes), *temperatures = (float *)malloc(bytes);
    float *result = (float *)malloc(bytes);
    HANDLE_NULL(heaters);
    HANDLE_NULL(temperatures);
    HANDLE_NULL(result);
    place_heaters(heaters, data.size);
    place_heat(temperatures, heaters, data.size);
    HANDLE_ERROR(cudaMemcpy2D(data.dev_constSrc, data.pitch, heaters, width, width, data.size,
                              cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy2D(data.dev_inSrc, data.pitch, temperatures, width, width, data.size,
                              cudaMemcpyHostToDevice));

    bitmap.anim_and_exit(generate_frame);
    print_times(&data);
    HANDLE_ERROR(cudaMemcpy2D(result, width, data.dev_inSrc, data.pitch, width, data.size,
                              cudaMemcpyDeviceToHost));
    inject_error(result, bytes);
    // The whole run is done again for comparison; or when it was long, its last frame.
    size_t steps = data.frames * data.steps;
    if (!affordable(data.size, steps)) {
        steps = data.steps;
        HANDLE_ERROR(cudaMemcpy2D(temperatures, width, data.dev_before, data.pitch, width,
                                  data.size, cudaMemcpyDeviceToHost));
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
