// SPDX-License-Identifier: MIT
/*
 * heat_2d: heat simulation that reads two-dimensional textures
 *
 * Teaches: A two-dimensional texture is read with tex2D at a column and a row. With the address mode
 *          clamp a coordinate beyond an edge reads the edge, so the kernel needs no code for the
 *          boundary condition. The memory of such a texture has a pitch: each row begins at an aligned
 *          address.
 * Terms:   texture object, tex2D, address mode, clamp, boundary condition, pitch, cudaMallocPitch,
 *          stencil
 * Book:    7.3.5
 * Run:     ./bin/chapter07/heat_2d --output heat.png
 * Differs: texture objects in place of texture references; memory from cudaMallocPitch, and clamp is
 *          set and not only relied on. The rest is as in heat.
 *          The book found 2-D textures as fast as 1-D ones; on an H200 they take 1.2 times as long
 *          (heat_ladder).
 * Picture: as chapter07/heat
 * Check:   --size 100 --frames 2 --iterations 10
 */
#include "../common/book.h"
#include "../common/color.h" // float_to_color
#include "../common/cpu_anim.h"
#include "heat.h" // DIM, SPEED, STEPS, place_heaters(), place_heat()

struct DataBlock {
    unsigned char *output_bitmap;
    size_t pitch; // bytes from row to row of the buffers
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    cudaTextureObject_t texIn, texOut, texConstSrc; // of the same memory
    float *dev_before;                              // the temperatures before the last frame, for the check
    CPUAnimBitmap *bitmap;
    cudaEvent_t start, middle, stop;   // of a frame; middle: after its steps
    float totalTime = 0, stepTime = 0; // of all frames; of the steps in all but the first
    size_t frames = 0;
};

static size_t size = DIM;   // --size
static int steps = STEPS;   // --iterations
static float speed = SPEED; // --speed

// Re-imposes the heaters: texConst holds the temperature of each heater cell, and 0 elsewhere.
__global__ void copy_const_kernel(float *iptr, cudaTextureObject_t texConst, size_t pitch, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float c = tex2D<float>(texConst, x, y);
    if (c != 0)
        ((float *)((char *)iptr + y * pitch))[x] = c; // row y begins after y * pitch bytes
}

// One step of the heat equation: the temperature of each cell moves towards those of its four neighbours. x
// and y are signed, since x - 1 and y - 1 may be -1, which the address mode clamps to 0.
__global__ void blend_kernel(float *dst, cudaTextureObject_t texIn, size_t pitch, int size, float speed) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float t = tex2D<float>(texIn, x, y);
    float l = tex2D<float>(texIn, x - 1, y), r = tex2D<float>(texIn, x + 1, y);
    float a = tex2D<float>(texIn, x, y + 1), b = tex2D<float>(texIn, x, y - 1);
    ((float *)((char *)dst + y * pitch))[x] = t + speed * ((a - t) + (b - t) + (l - t) + (r - t));
}

static void generate_frame(void *data, int) {
    DataBlock *d = (DataBlock *)data;
    HANDLE_ERROR(cudaMemcpy2D(d->dev_before, d->pitch, d->dev_inSrc, d->pitch, size * sizeof(float), size,
                              cudaMemcpyDeviceToDevice));

    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    for (int i = 0; i < steps; i++) {
        copy_const_kernel<<<blocks, threads>>>(d->dev_inSrc, d->texConstSrc, d->pitch, size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks, threads>>>(d->dev_outSrc, d->texIn, d->pitch, size, speed);
        HANDLE_LAUNCH();
        swap(d->dev_inSrc, d->dev_outSrc); // the output is the input of the next step
        swap(d->texIn, d->texOut);
    }
    HANDLE_ERROR(cudaEventRecord(d->middle, 0));
    float_to_color<<<blocks, threads>>>(d->output_bitmap, d->dev_inSrc, size, size, d->pitch);
    HANDLE_LAUNCH();
    HANDLE_ERROR(
        cudaMemcpy(d->bitmap->get_ptr(), d->output_bitmap, d->bitmap->image_size(), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventRecord(d->stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(d->stop));

    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, d->start, d->stop));
    d->totalTime += elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, d->start, d->middle));
    d->stepTime += d->frames > 0 ? elapsedTime : 0;
    d->frames++;
    printf("Average Time per frame:  %3.1f ms\n", d->totalTime / d->frames);
}

// A texture of size x size floats in rows of pitch bytes.
static cudaTextureObject_t make_texture(float *data, size_t pitch) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = data;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = resource.res.pitch2D.height = size;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp; // of x and of y
    desc.filterMode = cudaFilterModePoint;                            // the nearest texel
    desc.readMode = cudaReadModeElementType;                          // floats as they are
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    return texture;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    DataBlock data;
    CPUAnimBitmap bitmap(size, size, &data);
    data.bitmap = &bitmap;
    HANDLE_ERROR(cudaEventCreate(&data.start));
    HANDLE_ERROR(cudaEventCreate(&data.middle));
    HANDLE_ERROR(cudaEventCreate(&data.stop));

    size_t width = size * sizeof(float); // of a row, in bytes
    HANDLE_ERROR(cudaMalloc(&data.output_bitmap, bitmap.image_size()));
    HANDLE_ERROR(cudaMallocPitch(&data.dev_inSrc, &data.pitch, width, size));
    HANDLE_ERROR(cudaMallocPitch(&data.dev_outSrc, &data.pitch, width, size));
    HANDLE_ERROR(cudaMallocPitch(&data.dev_constSrc, &data.pitch, width, size));
    HANDLE_ERROR(cudaMallocPitch(&data.dev_before, &data.pitch, width, size));
    data.texIn = make_texture(data.dev_inSrc, data.pitch);
    data.texOut = make_texture(data.dev_outSrc, data.pitch);
    data.texConstSrc = make_texture(data.dev_constSrc, data.pitch);

    float *temp = host_array<float>(size * size);
    place_heaters(temp, size);
    HANDLE_ERROR(
        cudaMemcpy2D(data.dev_constSrc, data.pitch, temp, width, width, size, cudaMemcpyHostToDevice));
    place_heat(temp, temp, size);
    HANDLE_ERROR(cudaMemcpy2D(data.dev_inSrc, data.pitch, temp, width, width, size, cudaMemcpyHostToDevice));
    free(temp);

    bitmap.anim_and_exit(generate_frame);
    print_step_time(data.stepTime, data.frames, size, steps);
    bool ok = check_plate(data, data.pitch, size, steps, speed);

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

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    // A texture of pitched memory has at most 65000 rows.
    heat_settings(argc, argv, "Heat that spreads over a plate, read through 2D textures.", &size, 65000,
                  &steps, &speed);
}

// Task: copy_const_kernel(): One thread per cell of a plate of size x size cells: the thread with the
// coordinates (x, y) in the grid handles cell (x, y). It reads the two-dimensional texture texConst at
// (x, y). If the value is not 0, it stores the value in column x of row y of iptr. The rows of iptr begin
// `pitch` bytes apart. tex2D<float>(texture, x, y) reads a cell. Threads outside the plate do nothing.
// blend_kernel(): One thread per cell. Threads outside the plate do nothing. The thread reads from the
// texture texIn the temperature t of its cell and the temperatures a, b, l and r of the neighbours above
// (y + 1), below (y - 1), left (x - 1) and right (x + 1). It stores
// t + speed * ((a - t) + (b - t) + (l - t) + (r - t)), added in this order, in column x of row y of dst. The
// rows of dst begin `pitch` bytes apart. tex2D<float>(texture, x, y) reads a cell. The texture clamps
// coordinates, so cells at an edge need no other code.
// make_texture(): Return a texture object for size x size floats in device memory, in rows that begin `pitch`
// bytes apart. The address mode of both coordinates is clamp, the filter mode is point, and the read mode
// returns the floats unchanged.
