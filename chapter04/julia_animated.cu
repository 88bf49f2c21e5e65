// SPDX-License-Identifier: MIT
/*
 * julia_animated: an animation of Julia sets, coloured by the number of steps
 *
 * Teaches: A program can launch its kernel once for each frame of an animation, with other arguments: here c
 *          moves towards the origin and back. The kernel counts the steps until a point diverges, and
 *          their number is its colour, so that the picture shows more than whether it does.
 * Terms:   Julia set, complex plane, frame, two-dimensional grid, kernel, launch
 * Book:    4.2.2 (after the book)
 * Build:   nvcc -o julia_animated chapter04/julia_animated.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter04/julia_animated --frames 10 --output julia_animated.png
 * Picture: yes
 * Check:   --size 100 --frames 2 | --size 50 --frames 1 --scale 1.2 --imag 0.1
 * Web:     --frames 60
 */
#include "../common/book.h"
#include "../common/cpu_anim.h"

#define DIM    200
#define PERIOD 120 // frames after which the animation repeats

struct View {
    size_t size;             // pixels a side
    float scale, real, imag; // the picture shows -scale to scale on both axes; c is real + imag * i
    int iterations;          // after which a point counts as part of the set
};
static View view = {DIM, 1.5f, -0.8f, 0.156f, 200}; // --size, --scale, --real and --imag, --iterations
static bool check(const unsigned char *pixels, View shown, int ticks);
static void choose(void *, int, int, int x, int y); // a drag in a window: c becomes the point at pixel (x, y)

struct DataBlock {
    unsigned char *dev_bitmap;
    CPUAnimBitmap *bitmap;
    View shown; // in the current frame
};

__global__ void kernel(unsigned char *ptr, View v) {
    unsigned x = blockIdx.x, y = blockIdx.y;
    size_t offset = x + (size_t)y * gridDim.x; // in a large picture offset * 4 exceeds 32 bits
    float half = v.size / 2.0f;
    float r = v.scale * (half - x) / half, i = v.scale * (half - y) / half;

    // Counts the steps of the point (r, i) until it is beyond the limit of julia_gpu.
    int steps;
    for (steps = 0; steps < v.iterations; steps++) {
        float old_r = r;
        r = r * r - i * i + v.real;
        i = i * old_r + old_r * i + v.imag;
        if (r * r + i * i > 1000)
            break;
    }
    // Black in the set. Outside from black over red and yellow to white, the more steps a point takes.
    for (int channel = 0; channel < 3; channel++) {
        int shade = min(max(10 * steps - 255 * channel, 0), 255);
        ptr[offset * 4 + channel] = steps == v.iterations ? 0 : shade;
    }
    ptr[offset * 4 + 3] = 255;
}

static void generate_frame(DataBlock *d, int ticks) {
    // The factor of c goes from 1 to 0.8 and back to 1.
    float nearer = 1 - 0.1f * (1 - cosf(6.2831853f * (ticks % PERIOD) / PERIOD));
    d->shown = view;
    d->shown.real *= nearer;
    d->shown.imag *= nearer;
    kernel<<<dim3(view.size, view.size), 1>>>(d->dev_bitmap, d->shown);
    HANDLE_LAUNCH();
    size_t bytes = d->bitmap->image_size();
    HANDLE_ERROR(cudaMemcpy(d->bitmap->get_ptr(), d->dev_bitmap, bytes, cudaMemcpyDeviceToHost));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    DataBlock data;
    CPUAnimBitmap bitmap(view.size, view.size, &data);
    data.bitmap = &bitmap;
    HANDLE_ERROR(cudaMalloc(&data.dev_bitmap, bitmap.image_size()));
    bitmap.click_drag(choose);
    bitmap.anim_and_exit(generate_frame);
    HANDLE_ERROR(cudaFree(data.dev_bitmap));
    return check(bitmap.get_ptr(), data.shown, bitmap.ticks) ? EXIT_SUCCESS : EXIT_FAILURE; // the last frame
}

// ---------------------------------------------------------------------------------------- check

#include "julia.h" // julia_settings()

void settings(int argc, char **argv) {
    julia_settings(argc, argv, "Draws an animation of Julia sets; a drag changes c.", ANIMATION);
}

static bool dragged; // then the last frame may have been drawn with the old c

static void choose(void *, int, int, int x, int y) {
    dragged = true;
    float half = view.size / 2.0f;
    view.real = view.scale * (half - x) / half;
    view.imag = view.scale * (half - y) / half;
}

static bool check(const unsigned char *pixels, View shown, int ticks) {
    const double nearer = 0.9 + 0.1 * cos(M_PI / 60 * (ticks % 120));
    if (!dragged && !(check_value("real part of c", shown.real, nearer * view.real, 1e-6) &&
                      check_value("imaginary part of c", shown.imag, nearer * view.imag, 1e-6)))
        return false;
    size_t count = view.size * view.size;
    HostArray<int> steps(count);
    HostArray<unsigned char> expected(count * 4, 255);
    double allowed = reference_steps(shown, true, steps);
    for (size_t i = 0; i < 3 * count; i++) {
        double shade = fmin(fmax(10.0 * steps[i / 3] - 255.0 * (i % 3), 0), 255);
        expected[i / 3 * 4 + i % 3] = steps[i / 3] == view.iterations ? 0 : shade;
    }
    return check_pixels("pixel", pixels, expected, count, allowed);
}

// Task: none: its kernel is that of julia_gpu with other colours
