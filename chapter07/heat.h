// SPDX-License-Identifier: MIT
// The plate of this chapter: where its heaters are, how warm it is at first, and what the heat that
// spreads over it is compared with.
#ifndef CHAPTER07_HEAT_H
#define CHAPTER07_HEAT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/book.h"

#define DIM   1024
#define SPEED 0.25f
#define STEPS 90 // in a frame

// The heaters, and 0 where there are none. Places are those of a plate of DIM x DIM cells.
static inline void place_heaters(float *heaters, size_t size) {
    for (size_t i = 0; i < size * size; i++) {
        double x = (double)DIM * (i % size) / size, y = (double)DIM * (i / size) / size;
        bool hot = x > 300 && x < 600 && y > 310 && y < 601;
        bool cold = x >= 400 && x < 500 && y >= 800 && y < 900;
        heaters[i] = hot ? 1.0f : cold ? 0.0001f : 0;
    }
    const size_t cells[][2] = {{100, 100}, {100, 700}, {300, 300}, {700, 200}};
    for (int i = 0; i < 4; i++)
        heaters[cells[i][0] * size / DIM + cells[i][1] * size / DIM * size] =
            i == 0 ? 0.50005f : 0.0001f;
}

// At first the corner at the upper left is hot too, but nothing keeps it so.
static inline void place_heat(float *temperatures, const float *heaters, size_t size) {
    for (size_t i = 0; i < size * size; i++) {
        double x = (double)DIM * (i % size) / size, y = (double)DIM * (i / size) / size;
        temperatures[i] = x < 200 && y >= 800 ? 1.0f : heaters[i];
    }
}

// One step of the reference.
static inline void spread(double *out, double *in, const float *heaters, size_t size) {
    for (size_t i = 0; i < size * size; i++)
        if (heaters[i] != 0)
            in[i] = heaters[i];
    for (size_t y = 0; y < size; y++) {
        const double *row = in + y * size;
        const double *below = y > 0 ? row - size : row, *above = y < size - 1 ? row + size : row;
        for (size_t x = 0; x < size; x++)
            out[y * size + x] =
                (above[x] + below[x] + row[x > 0 ? x - 1 : x] + row[x < size - 1 ? x + 1 : x]) / 4;
    }
}

// Whether the reference can do so many steps in seconds: 2^30 cells.
static inline bool affordable(size_t size, size_t steps) {
    return steps <= ((size_t)1 << 30) / (size * size);
}

// Compares temperatures with those that `steps` steps in double make of `first`. Each step of the
// device rounds what it adds to a cell, and the sum, by 2^-25 at most, and later steps do not
// enlarge that, for they only take means.
static inline bool check_heat(const float *got, const float *first, const float *heaters,
                              size_t size, size_t steps) {
    size_t cells = size * size;
    double *in = (double *)malloc(cells * sizeof(double));
    double *out = (double *)malloc(cells * sizeof(double));
    HANDLE_NULL(in);
    HANDLE_NULL(out);
    std::copy(first, first + cells, in);
    for (size_t i = 0; i < steps; i++) {
        spread(out, in, heaters, size);
        swap(in, out);
    }
    double off = 0, sum = 0;
    for (size_t i = 0; i < cells; i++) {
        off = fmax(off, fabs(got[i] - in[i]));
        sum += got[i];
    }
    printf("Mean temperature: %.12f\n", sum / cells);
    printf("Largest difference from double, over %zu steps: %.1e\n", steps, off);
    bool ok = check_floats("temperature", got, in, cells, steps * 0x1p-24);
    free(in);
    free(out);
    return ok;
}

#endif
