// SPDX-License-Identifier: MIT
/*
 * julia_gpu: the Julia set, one block for each pixel
 *
 * Teaches: A grid can have two dimensions, as a picture has. The block with the index (blockIdx.x,
 *          blockIdx.y) computes the pixel at (x, y): whether its point of the complex plane belongs
 *          to the Julia set. The kernel calls device functions, also those of a structure.
 * Terms:   two-dimensional grid, dim3, blockIdx, gridDim, Julia set, complex plane, device function
 * Book:    4.2.2 (GPU)
 * Build:   nvcc -o julia_gpu chapter04/julia_gpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter04/julia_gpu --output julia.png
 * Differs: size, scale, c and the number of iterations are options. Half the size is not rounded down, so a
 *          size of 1 does not divide by 0.
 * Picture: yes
 * Check:   --size 97 --iterations 3 | --size 200 --scale 1.2 --imag 0.1
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"

#define DIM 1000

struct View {
    size_t size;             // pixels a side
    float scale, real, imag; // the picture shows -scale to scale on both axes; c is real + imag * i
    int iterations;          // after which a point counts as part of the set
};
static View view = {DIM, 1.5f, -0.8f, 0.156f, 200}; // --size, --scale, --real and --imag, --iterations
static bool check_julia(const unsigned char *pixels);

struct cuComplex {
    float r, i;
    __device__ float magnitude2(void) const { return r * r + i * i; }
    __device__ cuComplex operator*(cuComplex a) const { return {r * a.r - i * a.i, i * a.r + r * a.i}; }
    __device__ cuComplex operator+(cuComplex a) const { return {r + a.r, i + a.i}; }
};

// Iterates a = a * a + c. The point belongs to the set when a stays bounded. Once the squared magnitude of a
// exceeds 1000, a certainly diverges, and the function returns 0. If it never does so, a counts as bounded,
// and the function returns 1.
__device__ int julia(unsigned x, unsigned y, View v) {
    // The coordinates fall from scale to -scale, so the picture is turned by 180 degrees. It looks the same,
    // because a and -a have the same square.
    float half = v.size / 2.0f;
    float jx = v.scale * (half - x) / half;
    float jy = v.scale * (half - y) / half;

    cuComplex c = {v.real, v.imag};
    cuComplex a = {jx, jy};
    for (int i = 0; i < v.iterations; i++) {
        a = a * a + c;
        if (a.magnitude2() > 1000)
            return 0;
    }
    return 1;
}

// v is a copy of `view`: device code cannot read a variable of the host.
__global__ void kernel(unsigned char *ptr, View v) {
    unsigned x = blockIdx.x, y = blockIdx.y;
    size_t offset = x + (size_t)y * gridDim.x; // in a large picture offset * 4 exceeds 32 bits

    int juliaValue = julia(x, y, v);
    ptr[offset * 4 + 0] = 255 * juliaValue;
    ptr[offset * 4 + 1] = 0;
    ptr[offset * 4 + 2] = 0;
    ptr[offset * 4 + 3] = 255;
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
    HANDLE_ERROR(cudaFree(dev_bitmap));
    bitmap.display_and_exit();
    return check_julia(bitmap.get_ptr()) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "julia.h" // julia_settings(), check_julia()

void settings(int argc, char **argv) {
    julia_settings(argc, argv, "Draws a Julia set on the device.", PICTURE);
}

// Task: julia(): Pixel (x, y) represents the complex number a with the real part v.scale * (h - x) / h and
// the imaginary part v.scale * (h - y) / h, where h is half of v.size, all in float. Iterate a = a * a + c at
// most v.iterations times, where c = (v.real, v.imag). Return 0 if the squared magnitude of a exceeds 1000
// after one of the iterations, otherwise 1. kernel(): The grid has v.size x v.size blocks of one thread. The
// thread of block (x, y) calls julia(x, y, v) and computes pixel (x, y). The pixel is 4 bytes at ptr + 4 * (x
// + y * width), where width is the width of the grid in blocks: red is 255 if the result is 1, otherwise 0.
// Green is 0, blue is 0, and alpha is 255.
