// SPDX-License-Identifier: MIT
/*
 * julia_cpu: the Julia set, pixel by pixel on the host
 *
 * Teaches: Each pixel stands for a point of the complex plane, and whether the point belongs to the
 *          Julia set depends on no other pixel. On the host two nested loops visit the pixels one
 *          after the other; julia_gpu replaces them with a grid of blocks.
 * Terms:   Julia set, complex plane, host
 * Book:    4.2.2 (CPU)
 * Run:     ./bin/chapter04/julia_cpu --output julia.png
 * Differs: size, scale, c, the colours and the number of iterations are options, and --animate moves c
 *          towards the origin and back. julia() returns the number of steps, for the colours, where the
 *          book returns 0 or 1. Half the size is not rounded down, so a size of 1 does not divide by 0.
 * Picture: as chapter04/julia_gpu
 * Check:   --size 200 | --size 100 --colors steps
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "julia.h" // view, check_julia()

struct cuComplex {
    float r, i;
    float magnitude2(void) const { return r * r + i * i; }
    cuComplex operator*(const cuComplex &a) const { return {r * a.r - i * a.i, i * a.r + r * a.i}; }
    cuComplex operator+(const cuComplex &a) const { return {r + a.r, i + a.i}; }
};

// Iterates a = a * a + c. The point belongs to the set when a stays bounded. Once the squared magnitude of a
// exceeds 1000, a certainly diverges: the function returns the number of steps before the one that exceeded
// the limit. If no step does, a counts as bounded, and the function returns view.iterations.
static int julia(size_t x, size_t y) {
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

static void kernel(unsigned char *ptr) {
    for (size_t y = 0; y < view.size; y++)
        for (size_t x = 0; x < view.size; x++) {
            size_t offset = x + y * view.size;
            int steps = julia(x, y);
            ptr[offset * 4 + 0] = steps == view.iterations ? 255 : 0;
            ptr[offset * 4 + 1] = 0;
            ptr[offset * 4 + 2] = 0;
            ptr[offset * 4 + 3] = 255;
            color_by_steps(ptr + offset * 4, steps, view); // with --colors steps
        }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    CPUBitmap bitmap(view.size, view.size);
    kernel(bitmap.get_ptr());
    bitmap.display_and_exit();
    return check_julia(bitmap.get_ptr()) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

// With --animate the program shows the animation and ends here; main draws the single picture.
void settings(int argc, char **argv) {
    julia_settings(argc, argv, "Draws a Julia set on the host.", HOST_ONLY);
    if (animate)
        exit(animate_julia(kernel));
}

// Task: julia(): Pixel (x, y) represents the complex number a with the real part view.scale * (h - x) / h and
// the imaginary part view.scale * (h - y) / h, where h is half of view.size, all in float. Iterate
// a = a * a + c at most view.iterations times, where c = (view.real, view.imag). Count the iterations from 0.
// Return the number of the first iteration after which the squared magnitude of a exceeds 1000, or
// view.iterations if there is none.
// kernel(): For each pixel (x, y) of the picture, call julia(x, y). The pixel is 4 bytes at
// ptr + 4 * (x + y * view.size): red is 255 if the result is view.iterations, otherwise 0; green is 0; blue
// is 0; alpha is 255. Then call color_by_steps(address of the pixel, steps, view), where steps is the result
// of julia().
