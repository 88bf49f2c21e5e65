// SPDX-License-Identifier: MIT
// What the programs of the Julia set share: which Julia set to draw, and below the line the options,
// --animate and the check of the picture.
#pragma once

#include "../common/book.h"
#include "../common/cpu_anim.h"
#include "../common/checks/julia.h"

struct View {
    size_t size;      // pixels a side
    float scale;      // the picture shows -scale to scale on both axes
    float real, imag; // c
    int iterations;   // after which a point counts as part of the set
};

// Every program defines it with the book's values; --size, --scale, --real, --imag and --iterations change
// it.
extern View view;

// ---------------------------------------------------------------------------------------- check

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

// Draws the Julia set of `view` in host memory, as main does, or with the colours of --colors.
static void (*draw_view)(unsigned char *pixels);

// Compares a picture of `view` with the reference (common/checks/julia.h). At most the fraction `allowed` of
// the pixels may differ.
static inline bool is_julia(const unsigned char *pixels, const int *steps, double allowed) {
    size_t count = view.size * view.size;
    HostArray<unsigned char> expected(count * 4);
    for (size_t i = 0; i < count; i++) {
        expected[4 * i + 0] = steps[i] == view.iterations ? 255 : 0;
        expected[4 * i + 1] = expected[4 * i + 2] = 0;
        expected[4 * i + 3] = 255;
        if (colors == STEPS)
            color_by_steps(expected + 4 * i, steps[i], view.iterations);
    }
    return check_pixels("pixel", pixels, expected, count, allowed);
}

// After 200 iterations hardly a pixel shows whether the limit of the squared magnitude is 1000 or 100, or
// whether an iteration is left out; after three many do, and only rounding at the limit changes one.
static inline bool check_few_iterations(void) {
    const View shown = view;
    view = {97, 1.5f, -0.8f, 0.156f, 3};
    size_t count = view.size * view.size;
    HostArray<int> steps(count);
    HostArray<unsigned char> pixels(count * 4);
    for (size_t i = 0; i < count; i++)
        steps[i] = steps_of<float>(i % view.size, i / view.size, view);
    draw_view(pixels);
    bool ok = is_julia(pixels, steps, 4.0 / count);
    view = shown;
    return ok;
}

static inline bool check_julia(const unsigned char *pixels) {
    HostArray<int> steps(view.size * view.size);
    double allowed = reference_steps(view, colors == STEPS, steps);
    bool ok = is_julia(pixels, steps, allowed);
    return (!draw_view || check_few_iterations()) && ok;
}

static View first; // for --animate: the view of the first frame

// In an animation c moves towards the origin and back: the factor goes from 1 to 0.8 and back to 1.
static void julia_frame(CPUAnimBitmap **bitmap, int ticks) {
    float nearer = 1 - 0.1f * (1 - cosf(6.2831853f * (ticks % PERIOD) / PERIOD));
    view.real = first.real * nearer;
    view.imag = first.imag * nearer;
    draw_view((*bitmap)->get_ptr());
}

// For --animate and --colors steps: shows the animation, or one picture. Returns the exit status, which the
// check of the last frame decides.
static inline int show_variant(void) {
    CPUAnimBitmap *shown, bitmap(view.size, view.size, &shown);
    shown = &bitmap;
    first = view;
    if (animate) {
        bitmap.anim_and_exit(julia_frame);
    } else {
        draw_view(bitmap.get_ptr());
        bitmap.display_and_exit();
    }
    return check_julia(bitmap.get_ptr()) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With --animate or --colors steps the program ends here; main draws the single picture of the page.
static inline void julia_settings(int argc, char **argv, const char *doc, unsigned uses,
                                  void (*draw)(unsigned char *pixels)) {
    const View page = {view.size, 1.5f, -0.8f, 0.156f, 200};
    if (memcmp(&view, &page, sizeof(view)) != 0)
        quit(EXIT_FAILURE, "the default picture is not that of the page");
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
    draw_view = draw;
    if (animate || colors == STEPS)
        exit(show_variant());
}
