// SPDX-License-Identifier: MIT
/*
 * heat_gmem: heat simulation in global memory
 *
 * Teaches: A stencil computes each cell of a grid from its neighbours. A time step of the heat equation
 *          adds, to the temperature of each cell, k times the differences between its four neighbours and
 *          the cell; the temperatures of heaters are constant. A time step reads one buffer and writes
 *          another, and then the pointers are swapped (ping-pong buffers). Five threads read each cell
 *          from global memory: its own and those of its four neighbours. With a larger k (--speed) the
 *          plate reaches its steady state in fewer steps; above 0.25 the simulation is unstable.
 * Terms:   stencil, ping-pong buffers, heat equation, boundary condition, steady state,
 *          global memory, event
 * Book:    7.3.3
 * Run:     ./bin/chapter07/heat_gmem --output heat.png
 * Differs: differences to the neighbours are added, which rounds less than the book's sum minus four
 *          times the cell. The buffers are swapped in each step, so a frame may have an odd number of
 *          steps. For a size other than 1024 the heaters are scaled with the plate. k is --speed.
 * Picture: as chapter07/heat
 * Check:   --size 100 --frames 2 --iterations 10
 */
#include "../common/book.h"
#include "../common/color.h" // float_to_color
#include "../common/cpu_anim.h"
#include "heat.h" // DIM, SPEED, STEPS, place_heaters(), place_heat()

struct DataBlock {
    unsigned char *output_bitmap;
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    float *dev_before; // the temperatures before the last frame, for the check
    CPUAnimBitmap *bitmap;
    cudaEvent_t start, middle, stop;   // of a frame; middle: after its steps
    float totalTime = 0, stepTime = 0; // of all frames; of the steps in all but the first
    size_t frames = 0;
};

static size_t size = DIM;   // --size
static int steps = STEPS;   // --iterations
static float speed = SPEED; // --speed

// Re-imposes the heaters: cptr holds the temperature of each heater cell, and 0 elsewhere.
__global__ void copy_const_kernel(float *iptr, const float *cptr, size_t size) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;
    if (cptr[offset] != 0)
        iptr[offset] = cptr[offset];
}

// One step of the heat equation: the temperature of each cell moves towards those of its four neighbours.
__global__ void blend_kernel(float *outSrc, const float *inSrc, size_t size, float speed) {
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
    float t = inSrc[offset];
    outSrc[offset] =
        t + speed * ((inSrc[above] - t) + (inSrc[below] - t) + (inSrc[left] - t) + (inSrc[right] - t));
}

static void generate_frame(void *data, int) {
    DataBlock *d = (DataBlock *)data;
    size_t bytes = size * size * sizeof(float);
    HANDLE_ERROR(cudaMemcpy(d->dev_before, d->dev_inSrc, bytes, cudaMemcpyDeviceToDevice));

    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    for (int i = 0; i < steps; i++) {
        copy_const_kernel<<<blocks, threads>>>(d->dev_inSrc, d->dev_constSrc, size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks, threads>>>(d->dev_outSrc, d->dev_inSrc, size, speed);
        HANDLE_LAUNCH();
        swap(d->dev_inSrc, d->dev_outSrc); // the output is the input of the next step
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

    float *temp = host_array<float>(size * size);
    place_heaters(temp, size);
    HANDLE_ERROR(cudaMemcpy(data.dev_constSrc, temp, bytes, cudaMemcpyHostToDevice));
    place_heat(temp, temp, size);
    HANDLE_ERROR(cudaMemcpy(data.dev_inSrc, temp, bytes, cudaMemcpyHostToDevice));
    free(temp);

    bitmap.anim_and_exit(generate_frame);
    print_step_time(data.stepTime, data.frames, size, steps);
    bool ok = check_plate(data, size * sizeof(float), size, steps, speed);

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
    heat_settings(argc, argv, "Heat that spreads over a plate.", &size, 65535, &steps, &speed);
}

// Task: copy_const_kernel(): One thread per cell of a plate of size x size cells: the thread with the
// coordinates (x, y) in the grid handles cell (x, y). If element x + y * size of cptr is not 0, the thread
// stores its value in iptr at the same index. Threads outside the plate do nothing.
// blend_kernel(): One thread per cell. Threads outside the plate do nothing. The thread reads from inSrc the
// temperature t of its cell and the temperatures a, b, l and r of the neighbours above (y + 1), below
// (y - 1), left (x - 1) and right (x + 1). A neighbour beyond an edge of the plate has the temperature of the
// cell itself. The thread stores t + speed * ((a - t) + (b - t) + (l - t) + (r - t)), added in this order, in
// outSrc at index x + y * size.
