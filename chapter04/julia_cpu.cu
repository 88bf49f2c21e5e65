// SPDX-License-Identifier: MIT
/*
 * julia_cpu: the Julia set, pixel by pixel on the host
 *
 * Teaches: Each pixel of a Julia set is decided on its own, by the same few lines of complex
 *          arithmetic. Two nested loops visit the pixels here; julia_gpu replaces them with a
 *          grid of blocks.
 * Book:    4.2.2 (CPU)
 * Run:     ./bin/chapter04/julia_cpu --output julia.png
 * Differs: size, scale, c and the number of iterations are options, and --animate moves c towards
 *          the origin and back. Half the size is not rounded down, so that a size of 1 has no
 *          division by 0.
 * Picture: as chapter04/julia_gpu
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/cpu_anim.h"
#include "../common/cpu_bitmap.h"
#include "../common/memory.h"

#define DIM        1000
#define ITERATIONS 200
#define PERIOD     120 // frames until --animate is back where it began

struct cuComplex {
    float r, i;
    float magnitude2(void) const { return r * r + i * i; }
    cuComplex operator*(const cuComplex &a) const { return {r * a.r - i * a.i, i * a.r + r * a.i}; }
    cuComplex operator+(const cuComplex &a) const { return {r + a.r, i + a.i}; }
};

struct View {
    size_t size; // pixels a side
    float scale; // the picture shows -scale to scale on both axes
    cuComplex c; // which Julia set
    int iterations;
};

struct DataBlock {
    View view;
    cuComplex start; // c when --animate begins
    unsigned char *pixels;
};

// A point is in the set when squaring it and adding c, again and again, never takes it away. Past a
// squared distance of 1000 it is gone for good; after so many iterations it counts as staying.
bool julia(size_t x, size_t y, const View &view) {
    float half = view.size / 2.0f;
    cuComplex a = {view.scale * (half - x) / half, view.scale * (half - y) / half};
    for (int i = 0; i < view.iterations; i++) {
        a = a * a + view.c;
        if (a.magnitude2() > 1000)
            return false;
    }
    return true;
}

static void kernel(unsigned char *ptr, const View &view) {
    for (size_t y = 0; y < view.size; y++)
        for (size_t x = 0; x < view.size; x++) {
            size_t offset = x + y * view.size;

            ptr[offset * 4 + 0] = julia(x, y, view) ? 255 : 0;
            ptr[offset * 4 + 1] = 0;
            ptr[offset * 4 + 2] = 0;
            ptr[offset * 4 + 3] = 255;
        }
}

// The reference, in float as above, or in double.
template <typename real> static bool stays(const View &view, size_t x, size_t y) {
    real half = view.size / real(2);
    real re = view.scale * (half - x) / half, im = view.scale * (half - y) / half;
    for (int i = 0; i < view.iterations; i++) {
        real old_re = re;
        re = re * re - im * im + view.c.r;
        im = im * old_re + old_re * im + view.c.i;
        if (re * re + im * im > 1000)
            return false;
    }
    return true;
}

// At the edge of the set orbits are chaotic, so the last bit decides, and compilers for some
// processors fuse a multiplication and an addition into one, which rounds once, not twice. That
// moves about as many pixels as float and double disagree about (1.5 in 1000 of the book's
// picture), the allowance is twice as many. The rest is for pictures where those are so few that
// chance rules.
static bool check(const DataBlock *d) {
    size_t size = d->view.size, pixels = size * size, inside = 0, doubtful = 0;
    unsigned char *expected = (unsigned char *)calloc(pixels, 4);
    HANDLE_NULL(expected);
    for (size_t y = 0; y < size; y++)
        for (size_t x = 0; x < size; x++) {
            unsigned char *pixel = expected + (y * size + x) * 4;
            bool in = stays<float>(d->view, x, y);
            pixel[0] = in ? 255 : 0;
            pixel[3] = 255;
            inside += in;
            doubtful += in != stays<double>(d->view, x, y);
        }
    printf("%zu of %zu pixels are in the set, for %zu rounding decides\n", inside, pixels,
           doubtful);
    double allowed = 2.0 * doubtful + fmax(0.005 * pixels, fmin(4, pixels / 4));
    bool ok = check_pixels("pixel", d->pixels, expected, pixels, fmin(allowed / pixels, 1));
    free(expected);
    return ok;
}

static bool show_picture(DataBlock *d) {
    CPUBitmap bitmap(d->view.size, d->view.size);
    d->pixels = bitmap.get_ptr();
    kernel(d->pixels, d->view);
    inject_error(d->pixels, bitmap.image_size());
    bool ok = check(d);
    bitmap.display_and_exit();
    return ok;
}

static void generate_frame(void *data, int ticks) {
    DataBlock *d = (DataBlock *)data;
    float nearer = 1 - 0.1f * (1 - cosf(6.2831853f * (ticks % PERIOD) / PERIOD));
    d->view.c = {d->start.r * nearer, d->start.i * nearer};
    kernel(d->pixels, d->view);
}

static bool show_animation(DataBlock *d) {
    CPUAnimBitmap bitmap(d->view.size, d->view.size, d);
    d->pixels = bitmap.get_ptr();
    bitmap.anim_and_exit(generate_frame);
    inject_error(d->pixels, bitmap.image_size());
    return check(d); // of the last frame
}

int main(int argc, char **argv) {
    DataBlock data = {{DIM, 1.5f, {-0.8f, 0.156f}, ITERATIONS}, {}, NULL};
    View &view = data.view;
    bool animate = false;
    const Option own[] = {
        // julia_gpu can do these sizes
        OPTION_SIZE("size", &view.size, 1, 65535, "pixels a side"),
        OPTION_FLOAT("scale", &view.scale, 1e-6, 1e6, "shows -scale to scale on both axes"),
        OPTION_FLOAT("real", &view.c.r, -2, 2, "real part of c"),
        OPTION_FLOAT("imag", &view.c.i, -2, 2, "imaginary part of c"),
        OPTION_INT("iterations", &view.iterations, 1, 1000000,
                   "steps after which a point counts as in"),
        OPTION_FLAG("animate", &animate, "move c towards the origin and back"),
        OPTION_END};
    parse_options(argc, argv, "Draws a Julia set on the host.", HOST_ONLY | PICTURE | ANIMATION,
                  own);
    if (!animate && options.frames != PERIOD)
        quit(EXIT_USAGE, "--frames goes with --animate");
    select_device();
    require_memory(2 * view.size * view.size * 4, 0);

    data.start = view.c;
    bool ok = animate ? show_animation(&data) : show_picture(&data);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
