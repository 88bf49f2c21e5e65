// SPDX-License-Identifier: MIT
// What the programs of the Julia set share: which Julia set to draw, and below the line the options,
// --animate and the check of the picture.
#ifndef CHAPTER04_JULIA_H
#define CHAPTER04_JULIA_H

#include "../common/book.h"
#include "../common/cpu_anim.h"
#include "../common/proofs/julia.h"

struct View {
    size_t size;      // pixels a side
    float scale;      // the picture shows -scale to scale on both axes
    float real, imag; // c
    int iterations;   // after which a point counts as part of the set
};

// Every program defines it with the book's values; --size, --scale, --real, --imag and --iterations change
// it.
extern View view;

// ---------------------------------------------------------------------------------------- proof

#define PERIOD 120 // frames after which --animate repeats

enum { BOOK, STEPS };

static bool animate = false; // --animate
static int colors = BOOK;    // --colors

// The pixel of --colors steps: black in the set, and outside from black over red and yellow to white, the
// more steps the iteration took to diverge.
__host__ __device__ static inline void color_by_steps(unsigned char *pixel, int steps, int iterations) {
    for (int channel = 0; channel < 3; channel++) {
        int shade = 10 * steps - 255 * channel;
        pixel[channel] = steps == iterations || shade < 0 ? 0 : shade < 255 ? shade : 255;
    }
    pixel[3] = 255;
}

static inline void julia_settings(int argc, char **argv, const char *doc, unsigned uses) {
    parse_options(
        argc, argv, doc, uses | PICTURE | ANIMATION,
        {OPTION_SIZE("size", &view.size, 1, 65535, "pixels a side"), // a grid has at most 65535 blocks in y
         OPTION_FLOAT("scale", &view.scale, 1e-6, 1e6, "shows -scale to scale on both axes"),
         OPTION_FLOAT("real", &view.real, -2, 2, "real part of c"),
         OPTION_FLOAT("imag", &view.imag, -2, 2, "imaginary part of c"),
         OPTION_INT("iterations", &view.iterations, 1, 1000000,
                    "iterations after which a point counts as part of the set"),
         OPTION_WORD("colors", &colors, "book|steps",
                     "red and black as in the book, or by the number of steps until a point diverges"),
         OPTION_FLAG("animate", &animate, "move c towards the origin and back")});
    if (!animate && options.frames_given)
        quit(EXIT_USAGE, "--frames needs --animate");
    select_device();
    size_t bytes = view.size * view.size * 4;
    require_memory(3 * bytes, uses & HOST_ONLY ? 0 : bytes);
}

// Compares the picture with the reference (common/proofs/julia.h).
static inline bool check_julia(const unsigned char *pixels) {
    size_t count = view.size * view.size;
    HostArray<int> steps(count);
    HostArray<unsigned char> expected(count * 4);
    double allowed = reference_steps(view, colors == STEPS, steps);
    for (size_t i = 0; i < count; i++) {
        expected[4 * i + 0] = steps[i] == view.iterations ? 255 : 0;
        expected[4 * i + 1] = expected[4 * i + 2] = 0;
        expected[4 * i + 3] = 255;
        if (colors == STEPS)
            color_by_steps(expected + 4 * i, steps[i], view.iterations);
    }
    return check_pixels("pixel", pixels, expected, count, allowed);
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

// For --animate and --colors steps: shows the animation, or one picture. Returns the exit status.
static inline int show_variant(void (*draw)(unsigned char *pixels)) {
    if (animate)
        return animate_julia(draw);
    CPUBitmap bitmap(view.size, view.size);
    draw(bitmap.get_ptr());
    bitmap.display_and_exit();
    return check_julia(bitmap.get_ptr()) ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
