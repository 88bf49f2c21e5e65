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
 * Differs: the size is an option and need not be a multiple of 16. Dragging in the window moves the centre,
 *          which the kernel therefore gets as arguments.
 * Picture: yes
 * Check:   --size 100 --frames 2
 */
#include "../common/book.h"
#include "../common/cpu_anim.h"
#include "../common/checks/ripple.h"

#define DIM 1024

struct DataBlock {
    unsigned char *dev_bitmap;
    CPUAnimBitmap *bitmap;
};

static size_t size = DIM;        // --size
static float centre_x, centre_y; // where the waves start, in pixels
static void move_centre(void *data, int, int, int x, int y);
static bool check_frame(const CPUAnimBitmap &bitmap);

__global__ void kernel(unsigned char *ptr, size_t size, float centre_x, float centre_y, int ticks) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;

    float fx = x - centre_x;
    float fy = y - centre_y;
    float d = sqrtf(fx * fx + fy * fy);
    unsigned char grey = 128.0f + 127.0f * cosf(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f);
    ptr[offset * 4 + 0] = grey;
    ptr[offset * 4 + 1] = grey;
    ptr[offset * 4 + 2] = grey;
    ptr[offset * 4 + 3] = 255;
}

static void generate_frame(void *data, int ticks) {
    DataBlock *d = (DataBlock *)data;
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<blocks, threads>>>(d->dev_bitmap, size, centre_x, centre_y, ticks);
    HANDLE_LAUNCH();
    HANDLE_ERROR(
        cudaMemcpy(d->bitmap->get_ptr(), d->dev_bitmap, d->bitmap->image_size(), cudaMemcpyDeviceToHost));
}

static void cleanup(void *data) {
    HANDLE_ERROR(cudaFree(((DataBlock *)data)->dev_bitmap));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    DataBlock data;
    CPUAnimBitmap bitmap(size, size, &data);
    data.bitmap = &bitmap;
    HANDLE_ERROR(cudaMalloc(&data.dev_bitmap, bitmap.image_size()));

    bitmap.click_drag(move_centre);
    bitmap.anim_and_exit(generate_frame, cleanup);
    return check_frame(bitmap) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv,
              "Animates a ripple, drawn on the device. In a window, dragging the mouse moves its centre.",
              ANIMATION, {OPTION_SIZE("size", &size, 1, 65535, "pixels a side")});
    require_memory(size * size * 4, size * size * 4);
    centre_x = centre_y = size / 2;
}

// Dragging in the window moves the centre.
static bool moved = false;

static void move_centre(void *, int, int, int x, int y) {
    moved = true;
    centre_x = x;
    centre_y = y;
}

// Compares the last frame and an earlier one, which is drawn once more. The centre of the waves is that of
// the picture unless the mouse has moved it.
static bool check_frame(const CPUAnimBitmap &bitmap) {
    float centre = size / 2, x = moved ? centre_x : centre, y = moved ? centre_y : centre;
    {
        Smaller picture(size, EARLIER_SIZE);
        CPUAnimBitmap earlier(size, size);
        DeviceArray<unsigned char> dev_earlier(earlier.image_size(), 0);
        DataBlock data = {dev_earlier, &earlier};
        generate_frame(&data, EARLIER);
        earlier_right = is_ripple(earlier.get_ptr(), size, x, y, EARLIER);
    }
    return check_ripple(bitmap.get_ptr(), size, x, y, bitmap.ticks);
}

// Task: kernel(): Blocks of 16 x 16 threads cover a picture of size x size pixels, one thread per pixel: the
// thread with the coordinates (x, y) in the grid computes pixel (x, y). Threads outside the picture do
// nothing. Let d be the distance of (x, y) from (centre_x, centre_y). The grey value is
// 128 + 127 * cos(d / 10 - ticks / 7) / (d / 10 + 1), all in float. The pixel is 4 bytes at
// ptr + 4 * (x + y * size): red, green and blue are the grey value, and alpha is 255.
