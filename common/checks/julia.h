// SPDX-License-Identifier: MIT
// Reference of the Julia set, which chapters 4 and 11 draw.
#pragma once

#include "../book.h"
#include "../thread.h" // in_threads()

// After how many steps the point of pixel (x, y) diverges, computed in float as in the programs, or in
// double. Points of the set have view.iterations steps.
template <typename real, class View> static int steps_of(size_t x, size_t y, const View &view) {
    real half = view.size / real(2);
    real re = view.scale * (half - x) / half, im = view.scale * (half - y) / half;
    for (int i = 0; i < view.iterations; i++) {
        real both = re * im;
        re = re * re - im * im + view.real;
        im = both + both + view.imag;
        if (re * re + im * im > 1000)
            return i;
    }
    return view.iterations;
}

// Near the boundary of the set the iteration is chaotic: a different last bit of a value can change whether
// the point diverges. nvcc fuses a multiplication and an addition (FMA), which rounds once instead of twice.
// The number of pixels that this changes is close to the number that differ between float and double (1.5 in
// 1000 of the book's picture). A check allows twice that number. In addition it allows 5 in 1000 pixels, or
// 4 pixels if that is more, for pictures in which float and double hardly differ.
//
// Fills `steps` with the steps of every pixel, computed in float, and returns the fraction of the pixels that
// may differ. `by_steps`: the colors of the picture show the steps, not only whether a pixel is in the set.
template <class View> static double reference_steps(const View &view, bool by_steps, int *steps) {
    size_t count = view.size * view.size, inside = 0, disagree = 0;
    in_threads(count, [&](size_t begin, size_t end) {
        size_t in_set = 0, differ = 0;
        for (size_t i = begin; i < end; i++) {
            steps[i] = steps_of<float>(i % view.size, i / view.size, view);
            int exact = steps_of<double>(i % view.size, i / view.size, view);
            bool in = steps[i] == view.iterations;
            in_set += in;
            differ += by_steps ? steps[i] != exact : in != (exact == view.iterations);
        }
        __atomic_fetch_add(&inside, in_set, __ATOMIC_RELAXED);
        __atomic_fetch_add(&disagree, differ, __ATOMIC_RELAXED);
    });
    if (!(options.uses & LADDER))
        printf("%zu of %zu pixels are in the set; float and double disagree about %zu\n", inside, count,
               disagree);
    double allowed = 2.0 * disagree + fmax(0.005 * count, fmin(4, count / 4));
    return fmin(allowed / count, 1);
}
