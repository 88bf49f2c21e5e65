// SPDX-License-Identifier: MIT
/*
 * julia_cpu: the Julia set, pixel by pixel on the host
 *
 * Teaches: Each pixel stands for a point of the complex plane, and whether the point belongs to the
 *          Julia set depends on no other pixel. On the host two nested loops visit the pixels one
 *          after the other; julia_gpu replaces them with a grid of blocks.
 * Terms:   Julia set, complex plane, host
 * Book:    4.2.2 (CPU)
 * Build:   nvcc -o julia_cpu chapter04/julia_cpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter04/julia_cpu --output julia.png
 * Differs: size, scale, c and the number of iterations are options. Half the size is not rounded down, so a
 *          size of 1 does not divide by 0.
 * Picture: as chapter04/julia_gpu
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
    float magnitude2(void) const { return r * r + i * i; }
    cuComplex operator*(cuComplex a) const { return {r * a.r - i * a.i, i * a.r + r * a.i}; }
    cuComplex operator+(cuComplex a) const { return {r + a.r, i + a.i}; }
};

// Iterates a = a * a + c. The point belongs to the set when a stays bounded. Once the squared magnitude of a
// exceeds 1000, a certainly diverges, and the function returns 0. If it never does so, a counts as bounded,
// and the function returns 1.
static int julia(size_t x, size_t y) {
    // The coordinates fall from scale to -scale, so the picture is turned by 180 degrees. It looks the same,
    // because a and -a have the same square.
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

static void kernel(unsigned char *ptr) {
    for (size_t y = 0; y < view.size; y++)
        for (size_t x = 0; x < view.size; x++) {
            size_t offset = x + y * view.size;
            int juliaValue = julia(x, y);
            ptr[offset * 4 + 0] = 255 * juliaValue;
            ptr[offset * 4 + 1] = 0;
            ptr[offset * 4 + 2] = 0;
            ptr[offset * 4 + 3] = 255;
        }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    CPUBitmap bitmap(view.size, view.size);
    kernel(bitmap.get_ptr());
    bitmap.display_and_exit();
    return check_julia(bitmap.get_ptr()) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "julia.h" // julia_settings(), check_julia()

void settings(int argc, char **argv) {
    julia_settings(argc, argv, "Draws a Julia set on the host.", HOST_ONLY | PICTURE);
}

// Task: julia(): Pixel (x, y) represents the complex number a with the real part view.scale * (h - x) / h and
// the imaginary part view.scale * (h - y) / h, where h is half of view.size, all in float. Iterate
// a = a * a + c at most view.iterations times, where c = (view.real, view.imag). Return 0 if the squared
// magnitude of a exceeds 1000 after one of the iterations, otherwise 1.
// kernel(): For each pixel (x, y) of the picture, call julia(x, y). The pixel is 4 bytes at
// ptr + 4 * (x + y * view.size): red is 255 if the result is 1, otherwise 0. Green is 0, blue is 0, and alpha
// is 255.
