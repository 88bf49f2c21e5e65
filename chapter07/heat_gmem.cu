// SPDX-License-Identifier: MIT
/*
 * heat_gmem: heat simulation in global memory
 *
 * Teaches: A stencil computes each cell of a grid from its neighbours. A time step of the heat equation
 *          adds, to the temperature of each cell, k times the differences between its four neighbours and
 *          the cell; the temperatures of heaters are constant. A time step reads one buffer and writes
 *          another, and then the pointers are swapped (ping-pong buffers). With a larger k (--speed) the
 *          plate reaches its steady state in fewer steps; above 0.25 the simulation is unstable.
 * Terms:   stencil, ping-pong buffers, heat equation, boundary condition, steady state,
 *          global memory, event
 * Book:    7.3.3
 * Build:   nvcc -o heat_gmem chapter07/heat_gmem.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/heat_gmem --output heat.png
 * Differs: differences to the neighbours are added, which rounds less than the page's sum minus four
 *          times the cell. The buffers are swapped after each step, so a frame may have an odd number of
 *          steps. For a size other than 1024 the heaters are scaled with the plate.
 * Picture: as chapter07/heat
 * Check:   --size 100 --frames 2 --iterations 10 --speed 0.2
 * Web:     --size 200 --frames 60 --iterations 15
 */
#include "../common/book.h"
#include "../common/color.h" // float_to_color
#include "../common/cpu_anim.h"

#define DIM      1024
#define MAX_TEMP 1.0f
#define MIN_TEMP 0.0001f
#define SPEED    0.25f

// The page's plate has DIM x DIM cells. on_page: a column or row of ours, scaled to it; cell: the index of
// one of its cells on our plate.
#define on_page(i) ((double)DIM * (i) / size)
#define cell(x, y) (size * (x) / DIM + size * (y) / DIM * size)

struct DataBlock {
    unsigned char *output_bitmap;
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    CPUAnimBitmap *bitmap;
    cudaEvent_t start, stop;
    float totalTime, frames; // of all frames: the time in ms, and their number
};

static size_t size = DIM;                               // --size
static int steps = 90;                                  // --iterations, time steps of a frame
static float speed = SPEED;                             // --speed
static void warm(DataBlock *d, int, int, int x, int y); // a drag in a window warms the cells at (x, y)
static bool check(DataBlock *d);

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
// Drawn in docs/drawings.md#one-step-of-heat-and-its-buffers
__global__ void blend_kernel(float *outSrc, const float *inSrc, size_t size, float speed) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;

    // Boundary condition: beyond an edge the temperature is that of the edge. The page calls y - 1 the top.
    size_t left = x > 0 ? offset - 1 : offset;
    size_t right = x < size - 1 ? offset + 1 : offset;
    size_t top = y > 0 ? offset - size : offset;
    size_t bottom = y < size - 1 ? offset + size : offset;
    float c = inSrc[offset];
    outSrc[offset] =
        c + speed * ((inSrc[top] - c) + (inSrc[bottom] - c) + (inSrc[left] - c) + (inSrc[right] - c));
}

static void anim_gpu(DataBlock *d, int) {
    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    for (int i = 0; i < steps; i++) {
        float *in = d->dev_inSrc, *out = d->dev_outSrc;
        copy_const_kernel<<<blocks, threads>>>(in, d->dev_constSrc, size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks, threads>>>(out, in, size, speed);
        HANDLE_LAUNCH();
        swap(d->dev_inSrc, d->dev_outSrc); // ping-pong buffers: the output is the input of the next step
    }
    float_to_color<<<blocks, threads>>>(d->output_bitmap, d->dev_inSrc, size, size, size * sizeof(float));
    HANDLE_LAUNCH();
    HANDLE_ERROR(
        cudaMemcpy(d->bitmap->get_ptr(), d->output_bitmap, d->bitmap->image_size(), cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(d->stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(d->stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, d->start, d->stop));
    d->totalTime += elapsedTime;
    ++d->frames;
    printf("Average Time per frame:  %3.1f ms\n", d->totalTime / d->frames);
}

static void anim_exit(DataBlock *d) {
    HANDLE_ERROR(cudaFree(d->output_bitmap));
    HANDLE_ERROR(cudaFree(d->dev_inSrc));
    HANDLE_ERROR(cudaFree(d->dev_outSrc));
    HANDLE_ERROR(cudaFree(d->dev_constSrc));
    HANDLE_ERROR(cudaEventDestroy(d->start));
    HANDLE_ERROR(cudaEventDestroy(d->stop));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    DataBlock data;
    CPUAnimBitmap bitmap(size, size, &data);
    data.bitmap = &bitmap;
    data.totalTime = 0;
    data.frames = 0;
    HANDLE_ERROR(cudaEventCreate(&data.start));
    HANDLE_ERROR(cudaEventCreate(&data.stop));

    size_t imageSize = bitmap.image_size(); // also of the temperatures: a float has 4 bytes, as a pixel
    HANDLE_ERROR(cudaMalloc(&data.output_bitmap, imageSize));
    HANDLE_ERROR(cudaMalloc(&data.dev_inSrc, imageSize));
    HANDLE_ERROR(cudaMalloc(&data.dev_outSrc, imageSize));
    HANDLE_ERROR(cudaMalloc(&data.dev_constSrc, imageSize));

    // The heaters: two areas and four cells
    float *temp = (float *)malloc(imageSize);
    HANDLE_NULL(temp);
    for (size_t i = 0; i < size * size; i++) {
        double x = on_page(i % size), y = on_page(i / size);
        temp[i] = 0;
        if (x > 300 && x < 600 && y > 310 && y < 601)
            temp[i] = MAX_TEMP;
        if (x >= 400 && x < 500 && y >= 800 && y < 900)
            temp[i] = MIN_TEMP;
    }
    temp[cell(100, 100)] = (MAX_TEMP + MIN_TEMP) / 2;
    temp[cell(100, 700)] = MIN_TEMP;
    temp[cell(300, 300)] = MIN_TEMP;
    temp[cell(700, 200)] = MIN_TEMP;
    HANDLE_ERROR(cudaMemcpy(data.dev_constSrc, temp, imageSize, cudaMemcpyHostToDevice));

    // The initial temperatures: the heaters, and a warm corner, which cools down.
    for (size_t i = 0; i < size * size; i++)
        if (on_page(i % size) < 200 && on_page(i / size) >= 800)
            temp[i] = MAX_TEMP;
    HANDLE_ERROR(cudaMemcpy(data.dev_inSrc, temp, imageSize, cudaMemcpyHostToDevice));
    free(temp);

    bitmap.click_drag(warm);
    bitmap.anim_and_exit(anim_gpu);
    bool ok = check(&data);
    anim_exit(&data); // the page passes it to anim_and_exit(); here main calls it, after the check
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "heat.h" // heat_settings(), check_plate()

void settings(int argc, char **argv) {
    heat_settings(argc, argv, "Heat that spreads over a plate; a drag warms it.", &size, 65535, &steps,
                  &speed);
}

static void warm(DataBlock *d, int, int, int x, int y) {
    warm_cells(d->dev_inSrc, size * sizeof(float), size, x, y);
}

static void step(DataBlock *d) {
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    copy_const_kernel<<<blocks, threads>>>(d->dev_inSrc, d->dev_constSrc, size);
    HANDLE_LAUNCH();
    blend_kernel<<<blocks, threads>>>(d->dev_outSrc, d->dev_inSrc, size, speed);
    HANDLE_LAUNCH();
    swap(d->dev_inSrc, d->dev_outSrc);
}

static bool check(DataBlock *d) {
    bool ok = check_plate(d, step, size * sizeof(float), size, steps, speed);
    return check_small_step(d, step, size, speed) && ok;
}

// Task: copy_const_kernel(): One thread per cell of a plate of size x size cells: the thread with the
// coordinates (x, y) in the grid handles cell (x, y). If element x + y * size of cptr is not 0, the thread
// stores its value in iptr at the same index. Threads outside the plate do nothing.
// blend_kernel(): One thread per cell. Threads outside the plate do nothing. The thread reads from inSrc the
// temperature c of its cell and the temperatures t, b, l and r of the neighbours at the top (y - 1), at the
// bottom (y + 1), left (x - 1) and right (x + 1). A neighbour beyond an edge of the plate has the temperature
// of the cell itself. The thread stores c + speed * ((t - c) + (b - c) + (l - c) + (r - c)), added in this
// order, in outSrc at index x + y * size.
