// SPDX-License-Identifier: MIT
// For the part below the "check" line of the programs of the Julia set. They define `struct View` and `view`.
#pragma once

#include "../common/checks/julia.h"

static double iterations; // of the whole picture, after check_julia()

static inline void julia_settings(int argc, char **argv, const char *doc, unsigned uses) {
    configure(
        argc, argv, doc, uses,
        {OPTION_SIZE("size", &view.size, 1, 65535, "pixels a side"), // a grid has at most 65535 blocks in y
         OPTION_FLOAT("scale", &view.scale, 1e-6, 1e6, "shows -scale to scale on both axes"),
         OPTION_FLOAT("real", &view.real, -2, 2, "real part of c"),
         OPTION_FLOAT("imag", &view.imag, -2, 2, "imaginary part of c"),
         OPTION_INT("iterations", &view.iterations, 1, 1000000,
                    "iterations after which a point counts as part of the set")});
    size_t bytes = view.size * view.size * 4;
    require_memory(3 * bytes, uses & HOST_ONLY ? 0 : bytes);
}

// Compares a picture of `view` with the reference. After 200 iterations hardly a pixel shows whether the
// limit of the squared magnitude is 1000 or 100, or whether an iteration is left out. With few
// iterations many pixels show it, so the programs have a run with few iterations in their Check: field.
static inline bool check_julia(const unsigned char *pixels) {
    size_t count = view.size * view.size;
    HostArray<int> steps(count);
    HostArray<unsigned char> expected(count * 4);
    double allowed = reference_steps(view, false, steps);
    iterations = 0;
    for (size_t i = 0; i < count; i++) {
        iterations += min_of(steps[i] + 1, view.iterations);
        expected[4 * i + 0] = steps[i] == view.iterations ? 255 : 0;
        expected[4 * i + 1] = expected[4 * i + 2] = 0;
        expected[4 * i + 3] = 255;
    }
    return check_pixels("pixel", pixels, expected, count, allowed);
}
