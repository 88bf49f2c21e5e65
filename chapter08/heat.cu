// SPDX-License-Identifier: MIT
/*
 * heat: a heat simulation drawn from a pixel buffer of OpenGL
 *
 * Teaches: With interoperability the kernel that turns temperatures into colours writes into OpenGL's
 *          pixel buffer, so the copy of each frame to the host and back, which chapter 7 makes, is not
 *          needed. The program measures both ways and prints the ratio.
 * Terms:   interoperability, pixel buffer, stencil, ping-pong buffers, event, elapsed time
 * Book:    8.4
 * Run:     ./bin/chapter08/heat --output heat.png
 * Differs: the kernels read global memory as chapter 7's heat_gmem does, since the copies are what is
 *          compared, not the memory that kernels read. The temperatures are checked against the host in
 *          double, and the picture that OpenGL drew against the colours of the final temperatures.
 * Needs:   gl
 * Picture: as chapter07/heat
 * Check:   --size 100 --frames 2 --iterations 10
 */
#include <time.h>
#include "../common/book.h"
#include "../common/color.h"
#include "../common/gpu_anim.h"
#include "../common/proofs/heat.h" // DIM, SPEED, STEPS, place_heaters(), place_heat(), check_frames()

struct DataBlock {
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    float *dev_before; // the temperatures before the last frame, for the check
    cudaEvent_t start, middle, stop;
    float totalTime, stepTime; // ms of all frames; of the time steps of all frames but the first
    size_t frames;
};

static size_t size = DIM; // --size
static int steps = STEPS; // --iterations, time steps per frame
static double time_to_opengl(GPUAnimBitmap *bitmap, bool through_host);
static void print_times(const DataBlock *d, double mapped, double copied);
static bool check(const DataBlock &d, const unsigned char *drawn);

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

    // Boundary condition: coordinates are clamped at the edges.
    size_t left = x > 0 ? offset - 1 : offset;
    size_t right = x < size - 1 ? offset + 1 : offset;
    size_t below = y > 0 ? offset - size : offset;
    size_t above = y < size - 1 ? offset + size : offset;
    float t = inSrc[offset];
    outSrc[offset] =
        t + SPEED * ((inSrc[above] - t) + (inSrc[below] - t) + (inSrc[left] - t) + (inSrc[right] - t));
}

// Turns the current temperatures into colours, without a time step. `pixels` is the mapped pixel buffer.
static void colour_frame(uchar4 *pixels, void *data, int) {
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    float_to_color<<<blocks, threads>>>(pixels, ((DataBlock *)data)->dev_inSrc, size, size,
                                        size * sizeof(float));
    HANDLE_LAUNCH();
}

static void generate_frame(uchar4 *pixels, void *data, int ticks) {
    DataBlock *d = (DataBlock *)data;
    HANDLE_ERROR(
        cudaMemcpy(d->dev_before, d->dev_inSrc, size * size * sizeof(float), cudaMemcpyDeviceToDevice));

    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    for (int i = 0; i < steps; i++) {
        copy_const_kernel<<<blocks, threads>>>(d->dev_inSrc, d->dev_constSrc, size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks, threads>>>(d->dev_outSrc, d->dev_inSrc, size);
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
    d->stepTime += d->frames > 0 ? elapsed : 0; // the first frame warms up
    d->frames++;
    printf("Average Time per frame:  %3.1f ms\n", d->totalTime / d->frames);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    DataBlock data = {};
    GPUAnimBitmap bitmap(size, size, &data);
    HANDLE_ERROR(cudaEventCreate(&data.start));
    HANDLE_ERROR(cudaEventCreate(&data.middle));
    HANDLE_ERROR(cudaEventCreate(&data.stop));

    size_t bytes = size * size * sizeof(float);
    HANDLE_ERROR(cudaMalloc(&data.dev_inSrc, bytes));
    HANDLE_ERROR(cudaMalloc(&data.dev_outSrc, bytes));
    HANDLE_ERROR(cudaMalloc(&data.dev_constSrc, bytes));
    HANDLE_ERROR(cudaMalloc(&data.dev_before, bytes));

    float *heaters = host_array<float>(size * size), *temperatures = host_array<float>(size * size);
    place_heaters(heaters, size);
    place_heat(temperatures, heaters, size);
    HANDLE_ERROR(cudaMemcpy(data.dev_constSrc, heaters, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(data.dev_inSrc, temperatures, bytes, cudaMemcpyHostToDevice));

    double mapped = time_to_opengl(&bitmap, false), copied = time_to_opengl(&bitmap, true);
    bitmap.anim_and_exit(generate_frame);
    print_times(&data, mapped, copied);
    bool ok = check(data, bitmap.last_frame());

    free(heaters);
    free(temperatures);
    HANDLE_ERROR(cudaFree(data.dev_inSrc));
    HANDLE_ERROR(cudaFree(data.dev_outSrc));
    HANDLE_ERROR(cudaFree(data.dev_constSrc));
    HANDLE_ERROR(cudaFree(data.dev_before));
    HANDLE_ERROR(cudaEventDestroy(data.start));
    HANDLE_ERROR(cudaEventDestroy(data.middle));
    HANDLE_ERROR(cudaEventDestroy(data.stop));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    options.frames = 5; // of an animation in a file
    configure(argc, argv, "Heat that spreads over a plate, in OpenGL's memory.", ANIMATION | TIMES,
              {OPTION_SIZE("size", &size, 1, 16384, "cells a side"),
               OPTION_INT("iterations", &steps, 1, 10000, "steps in a frame")});
    require_memory(11 * size * size * sizeof(float), 6 * size * size * sizeof(float));
}

// The median time, in milliseconds, from temperatures to pixels that OpenGL can draw. The host's clock
// measures it, because events would not see what OpenGL copies. One run warms up.
static double time_to_opengl(GPUAnimBitmap *bitmap, bool through_host) {
    const int runs = 11;
    double ms[runs];
    for (int i = -1; i < runs; i++) {
        timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        bitmap->make_frame(colour_frame, 0, through_host);
        glFinish();
        HANDLE_ERROR(cudaDeviceSynchronize());
        clock_gettime(CLOCK_MONOTONIC, &after);
        if (i >= 0)
            ms[i] = 1e3 * (after.tv_sec - before.tv_sec) + 1e-6 * (after.tv_nsec - before.tv_nsec);
    }
    std::sort(ms, ms + runs);
    return ms[runs / 2];
}

static void print_times(const DataBlock *d, double mapped, double copied) {
    printf("From device to OpenGL:   %.3f ms by interop, %.3f ms through the host\n", mapped, copied);
    if (d->frames == 1)
        return;
    double ms = d->stepTime / (d->frames - 1);
    printf("A whole frame:           %.3f ms by interop, %.3f ms through the host, ratio %.2f\n", ms + mapped,
           ms + copied, (ms + copied) / (ms + mapped));
}

static bool check(const DataBlock &d, const unsigned char *drawn) {
    return check_frames(d.dev_inSrc, d.dev_before, size * sizeof(float), size, d.frames, steps, SPEED, drawn);
}

// Task: copy_const_kernel(): One thread per cell of a plate of size x size cells: the thread with the
// coordinates (x, y) in the grid handles cell (x, y). If element x + y * size of cptr is not 0, the thread
// stores its value in iptr at the same index. Threads outside the plate do nothing.
// blend_kernel(): One thread per cell. Threads outside the plate do nothing. The thread reads from inSrc the
// temperature t of its cell and the temperatures a, b, l and r of the neighbours above (y + 1), below
// (y - 1), left (x - 1) and right (x + 1). A neighbour beyond an edge of the plate has the temperature of the
// cell itself. The thread stores t + SPEED * ((a - t) + (b - t) + (l - t) + (r - t)), added in this order, in
// outSrc at index x + y * size.
