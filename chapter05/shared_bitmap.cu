// SPDX-License-Identifier: MIT
/*
 * shared_bitmap: a picture that comes out right only with a barrier
 *
 * Teaches: A thread that reads what another one wrote to shared memory must wait for it. Each
 *          thread draws the pixel that the thread opposite in its block has computed; --no-sync
 *          leaves the barrier out, and pixels that were read too early spoil the picture.
 * Book:    5.3.2
 * Run:     ./bin/chapter05/shared_bitmap --output spheres.png
 * Differs: --no-sync shows the picture without the barrier and ends with status 1 when it is wrong.
 *          On the CPU back end the threads then run one after the other, and the first of each two
 *          opposite ones reads too early, whatever the order: half of the pixels in a block are
 *          lost, every time. On a GPU it is chance which are.
 * Picture: yes
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "../common/memory.h"

#define DIM 1024
#define PI  3.1415926535897932f

const unsigned TILE = 16; // threads a side of a block

template <bool synchronized> __global__ void kernel(unsigned char *ptr, size_t size) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;

    __shared__ float shared[TILE][TILE];
    const float period = 128.0f;
    shared[threadIdx.x][threadIdx.y] =
        255 * (sinf(x * 2.0f * PI / period) + 1.0f) * (sinf(y * 2.0f * PI / period) + 1.0f) / 4.0f;

    if (synchronized)
        __syncthreads();

    // The threads beyond the edge of the picture stay until here: others read what they computed.
    if (x < size && y < size) {
        size_t offset = x + (size_t)y * size;
        ptr[offset * 4 + 0] = 0;
        ptr[offset * 4 + 1] = shared[TILE - 1 - threadIdx.x][TILE - 1 - threadIdx.y];
        ptr[offset * 4 + 2] = 0;
        ptr[offset * 4 + 3] = 255;
    }
}

// Each block shows its part of the wave turned by half a circle. The green of a pixel is the whole
// part of its value. Where the value is so close to a whole number that rounding may have taken
// float below or above it, either is right.
static unsigned char expected_green(size_t x, size_t y, unsigned char got) {
    const double step = 2 * 3.14159265358979323846 / 128;
    double from_x = step * (x / TILE * TILE + TILE - 1 - x % TILE);
    double from_y = step * (y / TILE * TILE + TILE - 1 - y % TILE);
    double value = 255 * (sin(from_x) + 1) * (sin(from_y) + 1) / 4;
    // Four roundings on the way to each angle, by 2^-24 of it, pass into the value times 127.5 at
    // most; sinf itself and the products are good to a few 2^-24 of 255.
    double tol = (127.5 * 4 * (from_x + from_y) + 255 * 10) * 0x1p-24;
    return got >= floor(value - tol) && got <= floor(value + tol) ? got : floor(value);
}

static bool check(const unsigned char *pixels, size_t size) {
    unsigned char *expected = (unsigned char *)calloc(size * size, 4);
    HANDLE_NULL(expected);
    for (size_t y = 0; y < size; y++)
        for (size_t x = 0; x < size; x++) {
            size_t offset = x + y * size;
            expected[offset * 4 + 1] = expected_green(x, y, pixels[offset * 4 + 1]);
            expected[offset * 4 + 3] = 255;
        }
    bool ok = check_pixels("pixel", pixels, expected, size * size, 0);
    free(expected);
    return ok;
}

int main(int argc, char **argv) {
    size_t size = DIM;
    bool no_sync = false;
    const Option own[] = {OPTION_SIZE("size", &size, 1, 65535, "pixels a side"),
                          OPTION_FLAG("no-sync", &no_sync, "leave the barrier out"), OPTION_END};
    parse_options(argc, argv, "Draws green spheres through shared memory.", PICTURE, own);
    select_device();

    size_t bytes = size * size * 4;
    require_memory(2 * bytes, bytes);
    CPUBitmap bitmap(size, size);
    unsigned char *dev_bitmap;
    HANDLE_ERROR(cudaMalloc((void **)&dev_bitmap, bytes));

    dim3 grids((size + TILE - 1) / TILE, (size + TILE - 1) / TILE), threads(TILE, TILE);
    if (no_sync) {
        kernel<false><<<grids, threads>>>(dev_bitmap, size);
        HANDLE_LAUNCH();
    } else {
        kernel<true><<<grids, threads>>>(dev_bitmap, size);
        HANDLE_LAUNCH();
    }

    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bytes, cudaMemcpyDeviceToHost));
    inject_error(bitmap.get_ptr(), bytes);
    bool ok = check(bitmap.get_ptr(), size);
    if (ok)
        printf("All %zu pixels are right.\n", size * size);
    bitmap.display_and_exit();

    HANDLE_ERROR(cudaFree(dev_bitmap));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
