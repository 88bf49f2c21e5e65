// SPDX-License-Identifier: MIT
/*
 * ripple: waves that run out from the centre, drawn without a copy through the host
 *
 * Teaches: With GPUAnimBitmap every frame is written by a kernel straight into the buffer that
 *          OpenGL draws. The kernel is chapter 5's, but that a pixel is one uchar4, which a thread
 *          writes at once.
 * Book:    8.3
 * Run:     ./bin/chapter08/ripple --output ripple.webp
 * Differs: the size is an option and need not be a multiple of 16; frames are checked as OpenGL
 *          drew them
 * Needs:   gl
 * Picture: as chapter05/ripple
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/gpu_anim.h"
#include "../common/memory.h"

#define DIM 1024

struct DataBlock {
    size_t size = DIM;
    float centre; // in pixels, from the left and from below
    int ticks;    // of the frame drawn last
};

__global__ void kernel(uchar4 *ptr, size_t size, float centre, int ticks) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;

    float fx = x - centre;
    float fy = y - centre;
    float d = sqrtf(fx * fx + fy * fy);
    unsigned char grey =
        (unsigned char)(128.0f + 127.0f * cosf(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f));
    ptr[x + (size_t)y * size] = make_uchar4(grey, grey, grey, 255);
}

static void generate_frame(uchar4 *pixels, void *data, int ticks) {
    DataBlock *d = (DataBlock *)data;
    d->ticks = ticks;
    unsigned side = (d->size + 15) / 16;
    dim3 blocks(side, side), threads(16, 16);
    kernel<<<blocks, threads>>>(pixels, d->size, d->centre, ticks);
    HANDLE_LAUNCH();
}

// Where the value is so close to a whole number that rounding may have taken float below or above
// it, either grey is right. chapter05/ripple.cu says how far that reaches.
static unsigned char expected_grey(const DataBlock *d, size_t x, size_t y, unsigned char got) {
    double ring = hypot(x - (double)d->centre, y - (double)d->centre) / 10, phase = d->ticks / 7.0;
    double value = 128 + 127 * cos(ring - phase) / (ring + 1);
    double tol = (127 * 7 * (ring + phase) / (ring + 1) + 255 * 10) * 0x1p-24;
    return got >= floor(value - tol) && got <= floor(value + tol) ? got : floor(value);
}

static bool check(const DataBlock *d, const unsigned char *pixels) {
    unsigned char *expected = (unsigned char *)malloc(d->size * d->size * 4);
    HANDLE_NULL(expected);
    for (size_t i = 0; i < d->size * d->size; i++) {
        for (int colour = 0; colour < 3; colour++)
            expected[4 * i + colour] =
                expected_grey(d, i % d->size, i / d->size, pixels[4 * i + colour]);
        expected[4 * i + 3] = 255;
    }
    bool ok = check_pixels("pixel", pixels, expected, d->size * d->size, 0);
    free(expected);
    return ok;
}

int main(int argc, char **argv) {
    DataBlock data;
    const Option own[] = {OPTION_SIZE("size", &data.size, 1, 16384, "pixels a side"), OPTION_END};
    parse_options(argc, argv, "Animates a ripple in OpenGL's memory.", ANIMATION, own);
    select_device();

    size_t bytes = data.size * data.size * 4;
    require_memory(5 * bytes, bytes);
    data.centre = data.size / 2;
    GPUAnimBitmap bitmap(data.size, data.size, &data);

    bitmap.anim_and_exit(generate_frame);
    inject_error(bitmap.last_frame(), bytes);
    bool ok = check(&data, bitmap.last_frame());
    if (ok)
        printf("Frame %d is right, as OpenGL drew it.\n", data.ticks);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
