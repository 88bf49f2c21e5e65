// SPDX-License-Identifier: MIT
/*
 * heat_2d: heat simulation that reads two-dimensional textures
 *
 * Teaches: A two-dimensional texture is read with tex2D at a column and a row. With the address mode
 *          clamp a coordinate beyond an edge reads the edge, so the kernel needs no code for the
 *          boundary condition. The memory of such a texture has a pitch: rows are stored one after the
 *          other, and each begins at an aligned address.
 * Terms:   texture object, tex2D, address mode, clamp, boundary condition, pitch, cudaMallocPitch,
 *          stencil
 * Book:    7.3.5
 * Build:   nvcc -o heat_2d chapter07/heat_2d.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/heat_2d --output heat.png
 * Differs: texture objects replace the page's texture references and the flag dstOut; the memory is from
 *          cudaMallocPitch, and clamp is set and not only relied on. The rest is as in heat. The book
 *          found 2-D textures as fast as 1-D ones; heat_ladder compares them today.
 * Picture: as chapter07/heat
 * Check:   --size 100 --frames 2 --iterations 10 --speed 0.2 | --size 1 --frames 1
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
    size_t pitch; // of the buffers: bytes from row to row
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    cudaTextureObject_t texConstSrc, texIn, texOut; // of the same memory
    CPUAnimBitmap *bitmap;
    cudaEvent_t start, stop;
    float totalTime, frames; // of all frames: the time in ms, and their number
};

static size_t size = DIM;                               // --size
static int steps = 90;                                  // --iterations, time steps of a frame
static float speed = SPEED;                             // --speed
static void warm(DataBlock *d, int, int, int x, int y); // a drag in a window warms the cells at (x, y)
static bool check(DataBlock *d);

// One step of the heat equation: the temperature of each cell moves towards those of its four neighbours. x
// and y are signed, since x - 1 and y - 1 may be -1, which the address mode clamps to 0.
__global__ void blend_kernel(float *dst, cudaTextureObject_t texIn, size_t pitch, int size, float speed) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * pitch; // pitch: floats from row to row

    float t = tex2D<float>(texIn, x, y - 1);
    float l = tex2D<float>(texIn, x - 1, y);
    float c = tex2D<float>(texIn, x, y);
    float r = tex2D<float>(texIn, x + 1, y);
    float b = tex2D<float>(texIn, x, y + 1);
    dst[offset] = c + speed * ((t - c) + (b - c) + (l - c) + (r - c));
}

// Re-imposes the heaters: texConstSrc holds the temperature of each heater cell, and 0 elsewhere.
__global__ void copy_const_kernel(float *iptr, cudaTextureObject_t texConstSrc, size_t pitch, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * pitch;
    float c = tex2D<float>(texConstSrc, x, y);
    if (c != 0)
        iptr[offset] = c;
}

static void anim_gpu(DataBlock *d, int) {
    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    size_t pitch = d->pitch / sizeof(float);
    for (int i = 0; i < steps; i++) {
        float *in = d->dev_inSrc, *out = d->dev_outSrc;
        copy_const_kernel<<<blocks, threads>>>(in, d->texConstSrc, pitch, size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks, threads>>>(out, d->texIn, pitch, size, speed);
        HANDLE_LAUNCH();
        swap(d->dev_inSrc, d->dev_outSrc); // ping-pong buffers: the output is the input of the next step
        swap(d->texIn, d->texOut);
    }
    float_to_color<<<blocks, threads>>>(d->output_bitmap, d->dev_inSrc, size, size, d->pitch);
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
    HANDLE_ERROR(cudaDestroyTextureObject(d->texIn));
    HANDLE_ERROR(cudaDestroyTextureObject(d->texOut));
    HANDLE_ERROR(cudaDestroyTextureObject(d->texConstSrc));
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

    size_t imageSize = bitmap.image_size(), width = size * sizeof(float); // width: bytes of a row
    HANDLE_ERROR(cudaMalloc(&data.output_bitmap, imageSize));
    // Three buffers with rows of the same width have the same pitch, which each call stores.
    HANDLE_ERROR(cudaMallocPitch(&data.dev_inSrc, &data.pitch, width, size));
    HANDLE_ERROR(cudaMallocPitch(&data.dev_outSrc, &data.pitch, width, size));
    HANDLE_ERROR(cudaMallocPitch(&data.dev_constSrc, &data.pitch, width, size));

    // The page declares texture<float, 2> texIn, and binds it here by cudaBindTexture2D(NULL, texIn,
    // data.dev_inSrc, desc, DIM, DIM, sizeof(float) * DIM). The resource has these arguments, with our pitch.
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    cudaResourceDesc resource = {}; // which memory a texture is
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.desc = desc;
    resource.res.pitch2D.width = resource.res.pitch2D.height = size;
    resource.res.pitch2D.pitchInBytes = data.pitch;
    cudaTextureDesc reading = {};
    reading.addressMode[0] = reading.addressMode[1] = cudaAddressModeClamp; // of x and of y
    reading.filterMode = cudaFilterModePoint;                               // the nearest texel
    reading.readMode = cudaReadModeElementType;                             // floats as they are
    resource.res.pitch2D.devPtr = data.dev_constSrc;
    HANDLE_ERROR(cudaCreateTextureObject(&data.texConstSrc, &resource, &reading, NULL));
    resource.res.pitch2D.devPtr = data.dev_inSrc;
    HANDLE_ERROR(cudaCreateTextureObject(&data.texIn, &resource, &reading, NULL));
    resource.res.pitch2D.devPtr = data.dev_outSrc;
    HANDLE_ERROR(cudaCreateTextureObject(&data.texOut, &resource, &reading, NULL));

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
    HANDLE_ERROR(
        cudaMemcpy2D(data.dev_constSrc, data.pitch, temp, width, width, size, cudaMemcpyHostToDevice));

    // The initial temperatures: the heaters, and a warm corner, which cools down.
    for (size_t i = 0; i < size * size; i++)
        if (on_page(i % size) < 200 && on_page(i / size) >= 800)
            temp[i] = MAX_TEMP;
    HANDLE_ERROR(cudaMemcpy2D(data.dev_inSrc, data.pitch, temp, width, width, size, cudaMemcpyHostToDevice));
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
    // A texture of pitched memory has at most 65000 rows.
    heat_settings(argc, argv, "Heat that spreads over a plate, read through 2D textures; a drag warms it.",
                  &size, 65000, &steps, &speed);
}

static void warm(DataBlock *d, int, int, int x, int y) {
    warm_cells(d->dev_inSrc, d->pitch, size, x, y);
}

static void step(DataBlock *d) {
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    size_t pitch = d->pitch / sizeof(float);
    copy_const_kernel<<<blocks, threads>>>(d->dev_inSrc, d->texConstSrc, pitch, size);
    HANDLE_LAUNCH();
    blend_kernel<<<blocks, threads>>>(d->dev_outSrc, d->texIn, pitch, size, speed);
    HANDLE_LAUNCH();
    swap(d->dev_inSrc, d->dev_outSrc);
    swap(d->texIn, d->texOut);
}

static bool check(DataBlock *d) {
    return check_plate(d, step, d->pitch, size, steps, speed);
}

// Task: blend_kernel(): One thread per cell of a plate of size x size cells: the thread with the coordinates
// (x, y) in the grid handles cell (x, y). Threads outside the plate do nothing. The thread reads from the
// texture texIn the temperature c of its cell and the temperatures t, b, l and r of the neighbours at the top
// (y - 1), at the bottom (y + 1), left (x - 1) and right (x + 1). It stores
// c + speed * ((t - c) + (b - c) + (l - c) + (r - c)), added in this order, in column x of row y of dst. The
// rows of dst begin `pitch` floats apart. tex2D<float>(texture, x, y) reads a cell. The texture clamps
// coordinates, so cells at an edge need no other code.
// copy_const_kernel(): One thread per cell. It reads the two-dimensional texture texConstSrc at (x, y). If
// the value is not 0, it stores the value in column x of row y of iptr. The rows of iptr begin `pitch` floats
// apart. tex2D reads a cell here too. Threads outside the plate do nothing.
