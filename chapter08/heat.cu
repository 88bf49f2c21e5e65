// SPDX-License-Identifier: MIT
/*
 * heat: heat that spreads over a plate, drawn without a copy through the host
 *
 * Teaches: How much the copies of chapter 7 cost. There each frame went to the host, and from there
 *          to OpenGL; here the kernel that makes colours of temperatures writes into OpenGL's
 *          buffer. The program times both ways.
 * Book:    8.4
 * Run:     ./bin/chapter08/heat --output heat.png
 * Differs: reads global memory as chapter 7's heat_gmem does, since what is compared is the way to
 *          the screen; the temperatures are compared with those of the host in double, and what
 *          OpenGL drew with the picture that comes through the host
 * Needs:   gl
 * Picture: as chapter07/heat
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "../chapter07/heat.h"
#include "../common/book.h"
#include "../common/color.h"
#include "../common/gpu_anim.h"
#include "../common/memory.h"

struct DataBlock {
    size_t size = DIM;
    int steps = STEPS; // in a frame
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    float *dev_before; // the temperatures before the frame that was drawn last
    GPUAnimBitmap *bitmap;
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

// A frame without its steps: the temperatures as they are.
static void colour_frame(uchar4 *pixels, void *data, int) {
    DataBlock *d = (DataBlock *)data;
    dim3 blocks((d->size + 15) / 16, (d->size + 15) / 16), threads(16, 16);
    float_to_color<<<blocks, threads>>>(pixels, d->dev_inSrc, d->size, d->size,
                                        d->size * sizeof(float));
    HANDLE_LAUNCH();
}

static void generate_frame(uchar4 *pixels, void *data, int ticks) {
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
    colour_frame(pixels, data, ticks);
    HANDLE_ERROR(cudaEventRecord(d->stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(d->stop));

    float elapsed;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsed, d->start, d->stop));
    d->totalTime += elapsed;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsed, d->start, d->middle));
    d->stepTime = d->frames == 0 ? 0 : d->stepTime + elapsed;
    d->frames++;
}

// Milliseconds from the temperatures to a buffer that OpenGL can draw, by the host's clock: the
// median of several times, after one that is not counted.
static double time_to_opengl(DataBlock *d, bool through_host) {
    double ms[11];
    for (int i = -1; i < 11; i++) {
        timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        d->bitmap->make_frame(colour_frame, 0, through_host);
        glFinish();
        HANDLE_ERROR(cudaDeviceSynchronize());
        clock_gettime(CLOCK_MONOTONIC, &after);
        if (i >= 0)
            ms[i] = 1e3 * (after.tv_sec - before.tv_sec) + 1e-6 * (after.tv_nsec - before.tv_nsec);
    }
    std::sort(ms, ms + 11);
    return ms[5];
}

// The book's figure, of the kernels alone; and frames with their way to OpenGL, once all is warm.
static void print_times(const DataBlock *d, double mapped, double copied) {
    printf("Average Time per frame:  %3.1f ms\n", d->totalTime / d->frames);
    printf("From device to OpenGL:   %.3f ms by interop, %.3f ms through the host\n", mapped,
           copied);
    if (d->frames == 1)
        return;
    double steps = d->stepTime / (d->frames - 1);
    printf("A whole frame:           %.3f ms by interop, %.3f ms through the host, ratio %.2f\n",
           steps + mapped, steps + copied, (steps + copied) / (steps + mapped));
}

// Whether OpenGL drew the picture that comes through the host.
static bool check_picture(DataBlock *d) {
    size_t bytes = d->bitmap->image_size();
    unsigned char *expected = (unsigned char *)malloc(bytes);
    uchar4 *pixels;
    HANDLE_NULL(expected);
    HANDLE_ERROR(cudaMalloc((void **)&pixels, bytes));
    colour_frame(pixels, d, 0);
    HANDLE_ERROR(cudaMemcpy(expected, pixels, bytes, cudaMemcpyDeviceToHost));
    bool ok = check_pixels("pixel", d->bitmap->last_frame(), expected, bytes / 4, 0);
    free(expected);
    HANDLE_ERROR(cudaFree(pixels));
    return ok;
}

int main(int argc, char **argv) {
    DataBlock data;
    options.frames = 5; // of a file
    const Option own[] = {OPTION_SIZE("size", &data.size, 1, 16384, "cells a side"),
                          OPTION_INT("iterations", &data.steps, 1, 10000, "steps in a frame"),
                          OPTION_END};
    parse_options(argc, argv, "Heat that spreads over a plate, in OpenGL's memory.",
                  ANIMATION | TIMES, own);
    select_device();

    size_t bytes = data.size * data.size * sizeof(float);
    require_memory(11 * bytes, 6 * bytes);
    GPUAnimBitmap bitmap(data.size, data.size, &data);
    data.bitmap = &bitmap;
    HANDLE_ERROR(cudaEventCreate(&data.start));
    HANDLE_ERROR(cudaEventCreate(&data.middle));
    HANDLE_ERROR(cudaEventCreate(&data.stop));
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
    double mapped = time_to_opengl(&data, false), copied = time_to_opengl(&data, true);
    bitmap.anim_and_exit(generate_frame);
    print_times(&data, mapped, copied);
    HANDLE_ERROR(cudaMemcpy(result, data.dev_inSrc, bytes, cudaMemcpyDeviceToHost));
    inject_error(result, bytes);
    // The whole run is done again for comparison; or when it was long, its last frame.
    size_t steps = data.frames * data.steps;
    if (!affordable(data.size, steps)) {
        steps = data.steps;
        HANDLE_ERROR(cudaMemcpy(temperatures, data.dev_before, bytes, cudaMemcpyDeviceToHost));
    }
    bool ok = check_picture(&data);
    ok = check_heat(result, temperatures, heaters, data.size, steps) && ok;

    free(heaters);
    free(temperatures);
    free(result);
    HANDLE_ERROR(cudaFree(data.dev_inSrc));
    HANDLE_ERROR(cudaFree(data.dev_outSrc));
    HANDLE_ERROR(cudaFree(data.dev_constSrc));
    HANDLE_ERROR(cudaFree(data.dev_before));
    HANDLE_ERROR(cudaEventDestroy(data.start));
    HANDLE_ERROR(cudaEventDestroy(data.middle));
    HANDLE_ERROR(cudaEventDestroy(data.stop));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
