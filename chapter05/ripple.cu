// SPDX-License-Identifier: MIT
/*
 * ripple: waves that run out from the centre, one thread for each pixel
 *
 * Teaches: Blocks and threads can both have two dimensions. A grid of 16 x 16 threads in each block
 *          covers the picture, and every thread works out the place of its pixel and how grey it
 *          is at this time.
 * Book:    5.2.2
 * Run:     ./bin/chapter05/ripple --output ripple.webp
 * Differs: the size is an option and need not be a multiple of 16, so threads beyond the edge
 *          leave. Dragging in the window moves the centre.
 * Picture: yes
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/cpu_anim.h"
#include "../common/memory.h"

#define DIM 1024

struct DataBlock {
    size_t size;
    float centre_x, centre_y; // in pixels, from the lower left
    int ticks;                // of the frame drawn last
    unsigned char *dev_bitmap;
    CPUAnimBitmap *bitmap;
};

__global__ void kernel(unsigned char *ptr, size_t size, float centre_x, float centre_y, int ticks) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + (size_t)y * size;

    float fx = x - centre_x;
    float fy = y - centre_y;
    float d = sqrtf(fx * fx + fy * fy);
    unsigned char grey =
        (unsigned char)(128.0f + 127.0f * cosf(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f));
    ptr[offset * 4 + 0] = grey;
    ptr[offset * 4 + 1] = grey;
    ptr[offset * 4 + 2] = grey;
    ptr[offset * 4 + 3] = 255;
}

static void generate_frame(void *data, int ticks) {
    DataBlock *d = (DataBlock *)data;
    d->ticks = ticks;
    unsigned side = (d->size + 15) / 16;
    dim3 blocks(side, side), threads(16, 16);
    kernel<<<blocks, threads>>>(d->dev_bitmap, d->size, d->centre_x, d->centre_y, ticks);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(d->bitmap->get_ptr(), d->dev_bitmap, d->bitmap->image_size(),
                            cudaMemcpyDeviceToHost));
}

// Dragging in the window takes the centre along.
static void move_centre(void *data, int, int, int x, int y) {
    DataBlock *d = (DataBlock *)data;
    d->centre_x = x;
    d->centre_y = y;
}

// The grey of a pixel is the whole part of its value. Where the value is so close to a whole number
// that rounding may have taken float below or above it, either is right.
static unsigned char expected_grey(const DataBlock *d, size_t x, size_t y, unsigned char got) {
    double distance = hypot(x - (double)d->centre_x, y - (double)d->centre_y);
    double ring = distance / 10, phase = d->ticks / 7.0;
    double value = 128 + 127 * cos(ring - phase) / (ring + 1);
    // Up to seven roundings make the distance and the angle, by 2^-24 of each, and pass into the
    // value times 127 / (ring + 1) at most; cosf itself and what follows are good to a few 2^-24 of
    // 255.
    double tol = (127 * 7 * (ring + phase) / (ring + 1) + 255 * 10) * 0x1p-24;
    return got >= floor(value - tol) && got <= floor(value + tol) ? got : floor(value);
}

// Checks the frame drawn last.
static bool check(const DataBlock *d) {
    const unsigned char *pixels = d->bitmap->get_ptr();
    unsigned char *expected = (unsigned char *)malloc(d->bitmap->image_size());
    HANDLE_NULL(expected);
    for (size_t y = 0; y < d->size; y++)
        for (size_t x = 0; x < d->size; x++) {
            size_t offset = x + y * d->size;
            for (int colour = 0; colour < 3; colour++)
                expected[offset * 4 + colour] = expected_grey(d, x, y, pixels[offset * 4 + colour]);
            expected[offset * 4 + 3] = 255;
        }
    bool ok = check_pixels("pixel", pixels, expected, d->size * d->size, 0);
    free(expected);
    return ok;
}

int main(int argc, char **argv) {
    DataBlock data = {DIM, 0, 0, 0, NULL, NULL};
    const Option own[] = {OPTION_SIZE("size", &data.size, 1, 65535, "pixels a side"), OPTION_END};
    parse_options(
        argc, argv,
        "Animates a ripple, drawn on the device. In a window, dragging the mouse moves its centre.",
        ANIMATION, own);
    select_device();

    size_t bytes = data.size * data.size * 4;
    require_memory(2 * bytes, bytes);
    CPUAnimBitmap bitmap(data.size, data.size, &data);
    data.bitmap = &bitmap;
    data.centre_x = data.centre_y = data.size / 2;
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_bitmap, bytes));

    bitmap.click_drag(move_centre);
    bitmap.anim_and_exit(generate_frame);
    inject_error(bitmap.get_ptr(), bytes);
    bool ok = check(&data);
    if (ok)
        printf("Frame %d is right.\n", data.ticks);

    HANDLE_ERROR(cudaFree(data.dev_bitmap));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
