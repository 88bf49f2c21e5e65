// SPDX-License-Identifier: MIT
/*
 * ripple: an animation that a kernel writes into a pixel buffer of OpenGL
 *
 * Teaches: GPUAnimBitmap maps a pixel buffer for each frame, calls a function that writes the frame
 *          with a kernel, unmaps the buffer and lets OpenGL draw from it. No frame is copied through
 *          the host. The kernel is that of chapter 5, with one uchar4 per pixel, which a thread
 *          writes with one instruction.
 * Terms:   interoperability, pixel buffer, frame, map, unmap, two-dimensional grid
 * Book:    8.3
 * Build:   nvcc -o ripple chapter08/ripple.cu common/lib/[a-z]*.c -DHAVE_GL -lEGL -lGL
 * Run:     ./bin/chapter08/ripple --output ripple.webp
 * Differs: the size is an option and need not be a multiple of 16. The last frame is checked as OpenGL
 *          drew it.
 * Needs:   gl
 * Picture: as chapter05/ripple
 * Check:   --size 101 --frames 2
 */
#include "../common/book.h"
#include "../common/gpu_anim.h" // GPUAnimBitmap, the page's 8.3.1

#define DIM 1024

static size_t size = DIM; // --size
static bool check(GPUAnimBitmap *bitmap);

__global__ void kernel(uchar4 *ptr, size_t size, float centre, int ticks) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;

    float fx = x - centre;
    float fy = y - centre;
    float d = sqrtf(fx * fx + fy * fy);
    unsigned char grey = 128.0f + 127.0f * cosf(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f);
    ptr[offset] = make_uchar4(grey, grey, grey, 255);
}

// GPUAnimBitmap (8.3.1, in common/gpu_anim.h) calls it for each frame with a device pointer: it has mapped
// the pixel buffer, and unmaps it afterwards.
static void generate_frame(uchar4 *pixels, void *, int ticks) {
    dim3 grids((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<grids, threads>>>(pixels, size, size / 2, ticks);
    HANDLE_LAUNCH();
}

int main(int argc, char **argv) {
    settings(argc, argv);
    GPUAnimBitmap bitmap(size, size);

    bitmap.anim_and_exit(generate_frame);
    return check(&bitmap) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/ripple.h"

void settings(int argc, char **argv) {
    configure(argc, argv, "Animates a ripple in OpenGL's memory.", ANIMATION,
              {OPTION_SIZE("size", &size, 1, 16384, "pixels a side")});
    require_memory(4 * size * size * 4, size * size * 4);
}

// The last frame, and frame EARLIER
static bool check(GPUAnimBitmap *bitmap) {
    {
        Smaller picture(size, EARLIER_SIZE);
        DeviceArray<uchar4> pixels(size * size, 0);
        generate_frame(pixels, NULL, EARLIER);
        HostArray<uchar4> drawn(pixels, size * size);
        earlier_right = is_ripple(&drawn[0].x, size, size / 2, size / 2, EARLIER);
    }
    return check_ripple(bitmap->get_ptr(), size, size / 2, size / 2, bitmap->ticks, ", as OpenGL drew it");
}

// Task: kernel(): One thread per pixel of a picture of size x size pixels: the thread with the coordinates
// (x, y) in the grid computes pixel (x, y). Threads outside the picture do nothing. Let d be the distance of
// (x, y) from (centre, centre). The grey value is 128 + 127 * cos(d / 10 - ticks / 7) / (d / 10 + 1), all in
// float. The pixel ptr[x + y * size] has the grey value as red, green and blue, and alpha 255.
// generate_frame(): Launch kernel with the arguments pixels, size, size / 2 and ticks and with blocks of
// 16 x 16 threads that cover the picture. Check the launch.
