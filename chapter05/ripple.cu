// SPDX-License-Identifier: MIT
/*
 * ripple: an animation with a two-dimensional grid of two-dimensional blocks
 *
 * Teaches: Blocks and threads can both have two dimensions. Blocks of 16 x 16 threads cover the
 *          picture, and each thread computes the grey value of one pixel. The grid is rounded up to
 *          whole blocks, so threads beyond the edge of the picture return at once.
 * Terms:   block, thread, two-dimensional grid, dim3, threadIdx, blockDim, tail
 * Book:    5.2.2
 * Build:   nvcc -o ripple chapter05/ripple.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/ripple --output ripple.webp
 * Differs: the size is an option and need not be a multiple of 16.
 * Picture: yes
 * Check:   --size 101 --frames 2
 * Web:     --size 512 --frames 60
 */
#include "../common/book.h"
#include "../common/cpu_anim.h"

#define DIM 1024

struct DataBlock {
    unsigned char *dev_bitmap;
    CPUAnimBitmap *bitmap;
};

static size_t size = DIM; // --size
static bool check(const unsigned char *pixels, int ticks);

// Drawn in docs/drawings.md#a-picture-in-blocks-of-threads
__global__ void kernel(unsigned char *ptr, size_t size, int ticks) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;

    float fx = x - (float)(size / 2); // from the centre, where the waves start
    float fy = y - (float)(size / 2);
    float d = sqrtf(fx * fx + fy * fy);
    unsigned char grey = 128.0f + 127.0f * cosf(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f);
    ptr[offset * 4 + 0] = grey;
    ptr[offset * 4 + 1] = grey;
    ptr[offset * 4 + 2] = grey;
    ptr[offset * 4 + 3] = 255;
}

static void generate_frame(DataBlock *d, int ticks) {
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<blocks, threads>>>(d->dev_bitmap, size, ticks);
    HANDLE_LAUNCH();
    HANDLE_ERROR(
        cudaMemcpy(d->bitmap->get_ptr(), d->dev_bitmap, d->bitmap->image_size(), cudaMemcpyDeviceToHost));
}

static void cleanup(DataBlock *d) {
    HANDLE_ERROR(cudaFree(d->dev_bitmap));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    DataBlock data;
    CPUAnimBitmap bitmap(size, size, &data);
    data.bitmap = &bitmap;
    HANDLE_ERROR(cudaMalloc(&data.dev_bitmap, bitmap.image_size()));

    bitmap.anim_and_exit(generate_frame, cleanup);
    return check(bitmap.get_ptr(), bitmap.ticks) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/ripple.h"

void settings(int argc, char **argv) {
    configure(argc, argv, "Animates a ripple, drawn on the device.", ANIMATION,
              {OPTION_SIZE("size", &size, 1, 65535, "pixels a side")});
    require_memory(size * size * 4, size * size * 4);
}

static bool check(const unsigned char *pixels, int ticks) {
    return check_ripple(pixels, size, size / 2, size / 2, ticks);
}

// Task: kernel(): Blocks of 16 x 16 threads cover a picture of size x size pixels, one thread per pixel: the
// thread with the coordinates (x, y) in the grid computes pixel (x, y). Threads outside the picture do
// nothing. Let d be the distance of (x, y) from (size / 2, size / 2), in whole numbers. The grey value is
// 128 + 127 * cos(d / 10 - ticks / 7) / (d / 10 + 1), all in float. The pixel is 4 bytes at
// ptr + 4 * (x + y * size): red, green and blue are the grey value, and alpha is 255.
