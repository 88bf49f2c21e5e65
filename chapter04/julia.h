// SPDX-License-Identifier: MIT
// What the programs of the Julia set share: which Julia set to draw, and below the line the options,
// --animate and the check of the picture.
#ifndef CHAPTER04_JULIA_H
#define CHAPTER04_JULIA_H

#include "../common/book.h"
#include "../common/cpu_anim.h"

#define DIM        1000
#define ITERATIONS 200

struct View {
    size_t size;      // pixels a side
    float scale;      // the picture shows -scale to scale on both axes
    float real, imag; // c
    int iterations;   // after which a point counts as part of the set
    int colors;       // BOOK or STEPS
};

// --size, --scale, --real, --imag, --iterations, --colors
static View view = {DIM, 1.5f, -0.8f, 0.156f, ITERATIONS, 0};

// ---------------------------------------------------------------------------------------- proof

#define PERIOD 120 // frames after which --animate repeats

static bool animate = false; // --animate

enum { BOOK, STEPS }; // --colors

// With --colors steps, replaces the colour of a pixel: black in the set, and outside from black over red and
// yellow to white, the more steps the iteration took to diverge.
__host__ __device__ static inline void color_by_steps(unsigned char *pixel, int steps, const View &view) {
    if (view.colors != STEPS)
        return;
    for (int channel = 0; channel < 3; channel++) {
        int shade = 10 * steps - 255 * channel;
        pixel[channel] = steps == view.iterations || shade < 0 ? 0 : shade < 255 ? shade : 255;
    }
}

static inline void julia_settings(int argc, char **argv, const char *doc, unsigned uses) {
    const Option own[] = {
        OPTION_SIZE("size", &view.size, 1, 65535, "pixels a side"), // a grid has at most 65535 blocks in y
        OPTION_FLOAT("scale", &view.scale, 1e-6, 1e6, "shows -scale to scale on both axes"),
        OPTION_FLOAT("real", &view.real, -2, 2, "real part of c"),
        OPTION_FLOAT("imag", &view.imag, -2, 2, "imaginary part of c"),
        OPTION_INT("iterations", &view.iterations, 1, 1000000,
                   "iterations after which a point counts as part of the set"),
        OPTION_WORD("colors", &view.colors, "book|steps",
                    "red and black as in the book, or by the number of steps until a point diverges"),
        OPTION_FLAG("animate", &animate, "move c towards the origin and back"),
        OPTION_END};
    parse_options(argc, argv, doc, uses | PICTURE | ANIMATION, own);
    if (!animate && options.frames_given)
        quit(EXIT_USAGE, "--frames needs --animate");
    select_device();
    size_t bytes = view.size * view.size * 4;
    require_memory(2 * bytes, uses & HOST_ONLY ? 0 : bytes);
}

// The reference: after how many steps the point of pixel (x, y) diverges, computed in float as in the
// programs, or in double. Points of the set have view.iterations steps.
template <typename real> static int steps_of(size_t x, size_t y) {
    real half = view.size / real(2);
    real re = view.scale * (half - x) / half, im = view.scale * (half - y) / half;
    for (int i = 0; i < view.iterations; i++) {
        real old_re = re;
        re = re * re - im * im + view.real;
        im = im * old_re + old_re * im + view.imag;
        if (re * re + im * im > 1000)
            return i;
    }
    return view.iterations;
}

// Near the boundary of the set the iteration is chaotic: a different last bit of a value can change whether
// the point diverges. nvcc fuses a multiplication and an addition (FMA), which rounds once instead of twice.
// The number of pixels that this changes is close to the number that differ between float and double (1.5 in
// 1000 of the book's picture). The check allows twice that number. In addition it allows 5 in 1000 pixels, or
// 4 pixels if that is more, for pictures in which float and double hardly differ.
static inline bool check_julia(const unsigned char *pixels) {
    size_t count = view.size * view.size, inside = 0, disagree = 0;
    unsigned char *expected = host_array<unsigned char>(count * 4);
    for (size_t i = 0; i < count; i++) {
        int steps = steps_of<float>(i % view.size, i / view.size);
        int exact = steps_of<double>(i % view.size, i / view.size);
        bool in = steps == view.iterations;
        expected[4 * i + 0] = in ? 255 : 0;
        expected[4 * i + 1] = expected[4 * i + 2] = 0;
        expected[4 * i + 3] = 255;
        color_by_steps(expected + 4 * i, steps, view);
        inside += in;
        disagree += view.colors == STEPS ? steps != exact : in != (exact == view.iterations);
    }
    if (!(options.uses & LADDER))
        printf("%zu of %zu pixels are in the set; float and double disagree about %zu\n", inside, count,
               disagree);
    double allowed = 2.0 * disagree + fmax(0.005 * count, fmin(4, count / 4));
    bool ok = check_pixels("pixel", pixels, expected, count, fmin(allowed / count, 1));
    free(expected);
    return ok;
}

// For --animate: the function that draws a frame, and its data.
struct Animation {
    void (*draw)(unsigned char *pixels);
    unsigned char *pixels;
    float real, imag; // c of the first frame
};

static void julia_frame(void *data, int ticks) {
    const Animation *a = (const Animation *)data;
    // The factor goes from 1 to 0.8 and back.
    float nearer = 1 - 0.1f * (1 - cosf(6.2831853f * (ticks % PERIOD) / PERIOD));
    view.real = a->real * nearer;
    view.imag = a->imag * nearer;
    a->draw(a->pixels);
}

// Shows the animation: c moves towards the origin and back. draw(pixels) draws the Julia set of `view`.
// Returns the exit status, which the check of the last frame decides.
static inline int animate_julia(void (*draw)(unsigned char *pixels)) {
    Animation animation = {draw, NULL, view.real, view.imag};
    CPUAnimBitmap bitmap(view.size, view.size, &animation);
    animation.pixels = bitmap.get_ptr();
    bitmap.anim_and_exit(julia_frame);
    return check_julia(animation.pixels) ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
