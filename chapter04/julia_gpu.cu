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
 * Differs: size, scale, c, the colors and the number of iterations are options, and --animate moves c towards
 *          the origin and back. Half the size is not rounded down, so a size of 1 does not divide by 0.
 *          The book's DataBlock is left out, since nothing reads it.
 * Picture: yes
 * Check:   --size 200 --scale 1.2 --imag 0.1 | --size 100 --colors steps
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "julia.h" // struct View, check_julia()

#define DIM 1000

View view = {DIM, 1.5f, -0.8f, 0.156f, 200}; // --size, --scale, --real and --imag, --iterations

struct cuComplex {
    float r, i;
    __device__ float magnitude2(void) const { return r * r + i * i; }
    __device__ cuComplex operator*(const cuComplex &a) const {
        return {r * a.r - i * a.i, i * a.r + r * a.i};
    }
    __device__ cuComplex operator+(const cuComplex &a) const { return {r + a.r, i + a.i}; }
};

// Iterates a = a * a + c. The point belongs to the set when a stays bounded. Once the squared magnitude of a
// exceeds 1000, a certainly diverges, and the function returns 0. If it never does so, a counts as bounded,
// and the function returns 1.
__device__ int julia(unsigned x, unsigned y, const View &view) {
    float half = view.size / 2.0f;
    float jx = view.scale * (half - x) / half;
    float jy = view.scale * (half - y) / half;

    cuComplex c = {view.real, view.imag};
    cuComplex a = {jx, jy};
    for (int i = 0; i < view.iterations; i++) {
        a = a * a + c;
        if (a.magnitude2() > 1000)
            return 0;
    }
    return 1;
}

__global__ void kernel(unsigned char *ptr, View view) {
    unsigned x = blockIdx.x, y = blockIdx.y;
    size_t offset = x + (size_t)y * gridDim.x;

    int juliaValue = julia(x, y, view);
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

// The kernel of --colors steps: counts the steps before the one after which the point certainly diverges.
__global__ void draw_steps(unsigned char *ptr, View view) {
    unsigned x = blockIdx.x, y = blockIdx.y;
    float half = view.size / 2.0f;
    cuComplex c = {view.real, view.imag};
    cuComplex a = {view.scale * (half - x) / half, view.scale * (half - y) / half};
    int steps = 0;
    while (steps < view.iterations && (a = a * a + c).magnitude2() <= 1000)
        steps++;
    color_by_steps(ptr + 4 * (x + (size_t)y * gridDim.x), steps, view.iterations);
}

// Draws as main does.
static void draw(unsigned char *pixels) {
    size_t bytes = view.size * view.size * 4;
    DeviceArray<unsigned char> dev_bitmap(bytes);
    HANDLE_ERROR(cudaMemset(dev_bitmap, 0x5a, bytes));
    (colors == STEPS ? draw_steps : kernel)<<<dim3(view.size, view.size), 1>>>(dev_bitmap, view);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(pixels, dev_bitmap, bytes, cudaMemcpyDeviceToHost));
}

void settings(int argc, char **argv) {
    julia_settings(argc, argv, "Draws a Julia set on the device.", 0, draw);
}

// Task: julia(): Pixel (x, y) represents the complex number a with the real part view.scale * (h - x) / h and
// the imaginary part view.scale * (h - y) / h, where h is half of view.size, all in float. Iterate
// a = a * a + c at most view.iterations times, where c = (view.real, view.imag). Return 0 if the squared
// magnitude of a exceeds 1000 after one of the iterations, otherwise 1.
// kernel(): The grid has view.size x view.size blocks of one thread. The thread of block (x, y) calls
// julia(x, y, view) and computes pixel (x, y). The pixel is 4 bytes at ptr + 4 * (x + y * width), where width
// is the width of the grid in blocks: red is 255 if the result is 1, otherwise 0. Green is 0, blue is 0, and
// alpha is 255.
