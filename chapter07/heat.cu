// SPDX-License-Identifier: MIT
/*
 * heat: heat simulation that reads linear textures
 *
 * Teaches: Textures are read through a cache made for accesses near each other, such as those of a
 *          stencil. A texture object says which memory a texture is and how it is read; a kernel takes
 *          it as an argument and reads an element with tex1Dfetch. Here textures are bound to linear
 *          memory, so the kernel still computes the index of each neighbour.
 * Terms:   texture object, texture memory, texture fetch, tex1Dfetch, stencil, ping-pong buffers,
 *          heat equation
 * Book:    7.3.4
 * Run:     ./bin/chapter07/heat --output heat.png
 * Differs: texture objects in place of texture references, which CUDA 12 removed: one for each buffer,
 *          swapped with the buffers. The rest is as in heat_gmem.
 *          The book takes texture memory since the reads are near each other. On an H200 textures gain
 *          nothing, because global memory is cached too (heat_ladder: 0.85 ms with textures, 0.82 ms
 *          with global memory).
 * Picture: yes
 * Check:   --size 100 --frames 2 --iterations 10
 */
#include "../common/book.h"
#include "../common/color.h" // float_to_color
#include "../common/cpu_anim.h"
#include "heat.h" // DIM, SPEED, STEPS, place_heaters(), place_heat()

struct DataBlock {
    unsigned char *output_bitmap;
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
__global__ void copy_const_kernel(float *iptr, cudaTextureObject_t texConst, size_t size) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;
    float c = tex1Dfetch<float>(texConst, offset);
    if (c != 0)
        iptr[offset] = c;
}

// One step of the heat equation: the temperature of each cell moves towards those of its four neighbours.
__global__ void blend_kernel(float *dst, cudaTextureObject_t texIn, size_t size, float speed) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;

    // Boundary condition: beyond an edge the temperature is that of the edge.
    size_t left = x > 0 ? offset - 1 : offset;
    size_t right = x < size - 1 ? offset + 1 : offset;
    size_t below = y > 0 ? offset - size : offset;
    size_t above = y < size - 1 ? offset + size : offset;
    float t = tex1Dfetch<float>(texIn, offset);
    float l = tex1Dfetch<float>(texIn, left), r = tex1Dfetch<float>(texIn, right);
    float a = tex1Dfetch<float>(texIn, above), b = tex1Dfetch<float>(texIn, below);
    dst[offset] = t + speed * ((a - t) + (b - t) + (l - t) + (r - t));
}

static void generate_frame(void *data, int) {
    DataBlock *d = (DataBlock *)data;
    size_t bytes = size * size * sizeof(float);
    HANDLE_ERROR(cudaMemcpy(d->dev_before, d->dev_inSrc, bytes, cudaMemcpyDeviceToDevice));

    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    for (int i = 0; i < steps; i++) {
        copy_const_kernel<<<blocks, threads>>>(d->dev_inSrc, d->texConstSrc, size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks, threads>>>(d->dev_outSrc, d->texIn, size, speed);
        HANDLE_LAUNCH();
        swap(d->dev_inSrc, d->dev_outSrc); // ping-pong buffers: the output is the input of the next step
        swap(d->texIn, d->texOut);
    }
    HANDLE_ERROR(cudaEventRecord(d->middle, 0));
    float_to_color<<<blocks, threads>>>(d->output_bitmap, d->dev_inSrc, size, size, size * sizeof(float));
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

// A texture of the floats in device memory.
static cudaTextureObject_t make_texture(float *data, size_t bytes) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = data;
    resource.res.linear.desc = cudaCreateChannelDesc<float>();
    resource.res.linear.sizeInBytes = bytes;
    cudaTextureDesc desc = {}; // the defaults: tex1Dfetch uses neither filtering nor an address mode
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

    size_t bytes = size * size * sizeof(float);
    HANDLE_ERROR(cudaMalloc(&data.output_bitmap, bitmap.image_size()));
    HANDLE_ERROR(cudaMalloc(&data.dev_inSrc, bytes));
    HANDLE_ERROR(cudaMalloc(&data.dev_outSrc, bytes));
    HANDLE_ERROR(cudaMalloc(&data.dev_constSrc, bytes));
    HANDLE_ERROR(cudaMalloc(&data.dev_before, bytes));
    data.texIn = make_texture(data.dev_inSrc, bytes);
    data.texOut = make_texture(data.dev_outSrc, bytes);
    data.texConstSrc = make_texture(data.dev_constSrc, bytes);

    float *temp = host_array<float>(size * size);
    place_heaters(temp, size);
    HANDLE_ERROR(cudaMemcpy(data.dev_constSrc, temp, bytes, cudaMemcpyHostToDevice));
    place_heat(temp, temp, size);
    HANDLE_ERROR(cudaMemcpy(data.dev_inSrc, temp, bytes, cudaMemcpyHostToDevice));
    free(temp);

    bitmap.anim_and_exit(generate_frame);
    print_step_time(data.stepTime, data.frames, size, steps);
    bool ok = check_plate(data, size * sizeof(float), size, steps, speed);

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
    // A texture of linear memory has at most 2^27 elements, which is 11585 * 11585.
    heat_settings(argc, argv, "Heat that spreads over a plate, read through textures.", &size, 11585, &steps,
                  &speed);
}

// Task: copy_const_kernel(): One thread per cell of a plate of size x size cells: the thread with the
// coordinates (x, y) in the grid handles cell (x, y). It reads the texture texConst at index x + y * size. If
// the value is not 0, it stores the value in iptr at the same index. The texture is of linear memory:
// tex1Dfetch<float>(texture, index) reads a cell. Threads outside the plate do nothing.
// blend_kernel(): One thread per cell. Threads outside the plate do nothing. The thread reads from the
// texture texIn the temperature t of its cell and the temperatures a, b, l and r of the neighbours above
// (y + 1), below (y - 1), left (x - 1) and right (x + 1). A neighbour beyond an edge of the plate has the
// temperature of the cell itself. The thread stores t + speed * ((a - t) + (b - t) + (l - t) + (r - t)),
// added in this order, in dst at index x + y * size. The texture is of linear memory:
// tex1Dfetch<float>(texture, index) reads a cell.
