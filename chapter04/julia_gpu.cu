// SPDX-License-Identifier: MIT
/*
 * julia_gpu: the Julia set, one block for each pixel
 *
 * Teaches: A grid can have two dimensions, as a picture has. The block with the index (blockIdx.x,
 *          blockIdx.y) computes the pixel at (x, y): whether its point of the complex plane belongs
 *          to the Julia set. The kernel calls device functions, also those of a structure. It is
 *          compute-bound: up to 200 iterations for each pixel that is written.
 * Terms:   two-dimensional grid, dim3, blockIdx, gridDim, Julia set, complex plane, device
 *          function, compute-bound
 * Book:    4.2.2 (GPU)
 * Run:     ./bin/chapter04/julia_gpu --output julia.png
 * Differs: size, scale, c, the colours and the number of iterations are options, and --animate moves c
 *          towards the origin and back. julia() returns the number of steps, for the colours, where the
 *          book returns 0 or 1. Half the size is not rounded down, so a size of 1 does not divide by 0.
 * Picture: yes
 * Check:   --size 200 | --size 100 --colors steps
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "julia.h" // struct View, view, check_julia()

struct cuComplex {
    float r, i;
    __device__ float magnitude2(void) const { return r * r + i * i; }
    __device__ cuComplex operator*(const cuComplex &a) const {
        return {r * a.r - i * a.i, i * a.r + r * a.i};
    }
    __device__ cuComplex operator+(const cuComplex &a) const { return {r + a.r, i + a.i}; }
};

// Iterates a = a * a + c. The point belongs to the set when a stays bounded. Once the squared magnitude of a
// exceeds 1000, a certainly diverges: the function returns the number of steps before the one that exceeded
// the limit. If no step does, a counts as bounded, and the function returns view.iterations.
__device__ int julia(unsigned x, unsigned y, const View &view) {
    float half = view.size / 2.0f;
    float jx = view.scale * (half - x) / half;
    float jy = view.scale * (half - y) / half;

    cuComplex c = {view.real, view.imag};
    cuComplex a = {jx, jy};
    for (int i = 0; i < view.iterations; i++) {
        a = a * a + c;
        if (a.magnitude2() > 1000)
            return i;
    }
    return view.iterations;
}

__global__ void kernel(unsigned char *ptr, View view) {
    unsigned x = blockIdx.x, y = blockIdx.y;
    size_t offset = x + (size_t)y * gridDim.x;

    int steps = julia(x, y, view);
    ptr[offset * 4 + 0] = steps == view.iterations ? 255 : 0;
    ptr[offset * 4 + 1] = 0;
    ptr[offset * 4 + 2] = 0;
    ptr[offset * 4 + 3] = 255;
    color_by_steps(ptr + offset * 4, steps, view); // with --colors steps
}

int main(int argc, char **argv) {
    settings(argc, argv);
    CPUBitmap bitmap(view.size, view.size);
    unsigned char *dev_bitmap;
    HANDLE_ERROR(cudaMalloc(&dev_bitmap, bitmap.image_size()));

    dim3 grid(view.size, view.size);
    kernel<<<grid, 1>>>(dev_bitmap, view);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));
    bitmap.display_and_exit();
    HANDLE_ERROR(cudaFree(dev_bitmap));
    return check_julia(bitmap.get_ptr()) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

// For --animate: draws a frame as main draws the picture.
static unsigned char *dev_frame;

static void draw_frame(unsigned char *pixels) {
    dim3 grid(view.size, view.size);
    kernel<<<grid, 1>>>(dev_frame, view);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(pixels, dev_frame, view.size * view.size * 4, cudaMemcpyDeviceToHost));
}

static int show_animation(void) {
    HANDLE_ERROR(cudaMalloc(&dev_frame, view.size * view.size * 4));
    int status = animate_julia(draw_frame);
    HANDLE_ERROR(cudaFree(dev_frame));
    return status;
}

// With --animate the program shows the animation and ends here; main draws the single picture.
void settings(int argc, char **argv) {
    julia_settings(argc, argv, "Draws a Julia set on the device.", 0);
    if (animate)
        exit(show_animation());
}

// Task: julia(): Pixel (x, y) represents the complex number a with the real part view.scale * (h - x) / h and
// the imaginary part view.scale * (h - y) / h, where h is half of view.size, all in float. Iterate
// a = a * a + c at most view.iterations times, where c = (view.real, view.imag). Count the iterations from 0.
// Return the number of the first iteration after which the squared magnitude of a exceeds 1000, or
// view.iterations if there is none.
// kernel(): The grid has view.size x view.size blocks of one thread. The thread of block (x, y) calls
// julia(x, y, view) and computes pixel (x, y). The pixel is 4 bytes at ptr + 4 * (x + y * width), where width
// is the width of the grid in blocks: red is 255 if the result is view.iterations, otherwise 0; green is 0;
// blue is 0; alpha is 255. Then the thread calls color_by_steps(address of the pixel, steps, view), where
// steps is the result of julia().
