// SPDX-License-Identifier: MIT
// Heat simulation of chapters 7, 8 and 11: constants, heaters and initial temperatures; below the line,
// the checks of the temperatures and of their picture.
#pragma once

#include "../book.h"
#include "../lib/display.h" // display_in_window()
#include "../thread.h"      // in_threads()
#include "../timing.h"

#define DIM     1024
#define SPEED   0.25f
#define STEPS   90      // time steps per frame
#define COLDEST 0.0001f // temperature of the coldest heaters

// The temperature of the heater at a cell, or 0. Positions are scaled from a plate of DIM x DIM cells.
__host__ __device__ static inline float heater_at(size_t x, size_t y, size_t width, size_t height) {
    auto is = [&](size_t left, size_t bottom) {
        return x == left * width / DIM && y == bottom * height / DIM;
    };
    if (is(100, 700) || is(300, 300) || is(700, 200))
        return COLDEST;
    if (is(100, 100))
        return 0.50005f;
    double u = (double)DIM * x / width, v = (double)DIM * y / height;
    bool hot = u > 300 && u < 600 && v > 310 && v < 601;
    bool cold = u >= 400 && u < 500 && v >= 800 && v < 900;
    return hot ? 1.0f : cold ? COLDEST : 0;
}

// Whether a cell is in the hot upper left corner, which is not a heater
__host__ __device__ static inline bool in_hot_corner(size_t x, size_t y, size_t width, size_t height) {
    return (double)DIM * x / width < 200 && (double)DIM * y / height >= 800;
}

// Writes the temperature of each heater, and 0 elsewhere.
static inline void place_heaters(float *heaters, size_t size) {
    in_threads(size * size, [=](size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++)
            heaters[i] = heater_at(i % size, i / size, size, size);
    });
}

// Copies the heaters and the initial temperatures, those of the heaters and of the hot corner, to the device.
static inline void copy_plate(float *dev_constSrc, float *dev_inSrc, size_t size) {
    HostArray<float> temp(size * size);
    place_heaters(temp, size);
    HANDLE_ERROR(cudaMemcpy(dev_constSrc, temp, size * size * sizeof(float), cudaMemcpyHostToDevice));
    for (size_t i = 0; i < size * size; i++)
        if (in_hot_corner(i % size, i / size, size, size))
            temp[i] = 1;
    HANDLE_ERROR(cudaMemcpy(dev_inSrc, temp, size * size * sizeof(float), cudaMemcpyHostToDevice));
}

// ---------------------------------------------------------------------------------------- check

// The largest texture of linear memory, in floats. Devices differ: it is 2^27 on older ones, 2^30 on an H200.
static inline size_t largest_linear_texture(void) {
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    size_t width;
    HANDLE_ERROR(cudaDeviceGetTexture1DLinearMaxWidth(&width, &format, options.device));
    return width;
}

// In a window on the CPU a frame has so few steps that about ten frames a second are shown. A number of steps
// that the user has chosen stays.
static inline void steps_for_window(int *steps, size_t size) {
    int few = max_of<size_t>(1, ((size_t)1 << 21) / (size * size));
    if (!CPU_BACKEND || *steps != STEPS || few >= STEPS || !display_in_window())
        return;
    printf("A frame has %d step%s in place of %d, since the CPU shows it in a window (--iterations sets the "
           "number).\n",
           few, few == 1 ? "" : "s", STEPS);
    *steps = few;
}

// For a drag in a window: makes the cells near (x, y) as warm as the hot heater. The plate is in device
// memory.
static bool warmed;
static inline void warm_cells(float *plate, size_t pitch, size_t size, int x, int y) {
    const size_t reach = size / 64, left = x - min_of(x, reach), bottom = y - min_of(y, reach);
    const size_t across = min_of(x + reach + 1, size) - left, up = min_of(y + reach + 1, size) - bottom;
    HostArray<float> hot(across * up, 1);
    HANDLE_ERROR(cudaMemcpy2D((char *)plate + bottom * pitch + left * sizeof(float), pitch, hot,
                              across * sizeof(float), across * sizeof(float), up, cudaMemcpyHostToDevice));
    warmed = true;
}

// Ends the program if a plate of size x size cells does not fit in such a texture.
static inline void require_linear_texture(size_t size) {
    if (size * size > largest_linear_texture())
        quit(EXIT_WAIVED, "needs a texture of %zu floats in linear memory, the device has at most %zu",
             size * size, largest_linear_texture());
}

// One time step of the reference: the heaters are re-imposed on `in`, then each cell becomes a weighted mean
// of itself and its neighbours, with a speed of 0.25 that of its neighbours alone. Coordinates are clamped at
// the edges.
static inline void spread(double *out, double *in, const float *heaters, size_t size, double speed = SPEED) {
    in_threads(size * size, [=](size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++)
            if (heaters[i] != 0)
                in[i] = heaters[i];
    });
    in_threads(size * size, [=](size_t begin, size_t end) {
        for (size_t y = (begin + size - 1) / size; y < (end + size - 1) / size; y++) { // rows that begin here
            const double *row = in + y * size;
            const double *top = y > 0 ? row - size : row, *bottom = y < size - 1 ? row + size : row;
            for (size_t x = 0; x < size; x++)
                out[y * size + x] =
                    (1 - 4 * speed) * row[x] +
                    speed * (top[x] + bottom[x] + row[x > 0 ? x - 1 : x] + row[x < size - 1 ? x + 1 : x]);
        }
    });
}

// Compares a picture with the temperatures in the palette of common/color.h: the hue turns once around, in
// whole degrees from 180, the saturation is full, and the lightness is the temperature. The reference
// computes the general formula from hue and lightness to red, green and blue, in double.
static inline bool check_colors(const unsigned char *pixels, const float *temperatures, size_t cells) {
    HostArray<unsigned char> expected(4 * cells);
    for (size_t i = 0; i < cells; i++) {
        const float lightness = fminf(fmaxf(temperatures[i], 0), 1);
        const double hue = 180 + (int)(360 * lightness), swing = fmin(lightness, 1 - lightness);
        for (int c = 0; c < 3; c++) {
            double k = fmod(12 - 4 * c + hue / 30, 12); // red, green and blue are 120 degrees apart
            double level = lightness - swing * fmax(-1, fmin(fmin(k - 3, 9 - k), 1));
            expected[4 * i + c] = byte_near(255 * level, 1e-3, pixels[4 * i + c]);
        }
        expected[4 * i + 3] = 255;
    }
    return check_pixels("pixel", pixels, expected, cells, 0);
}

// Rounding of a step, for temperatures below 1: of the four differences at most 2^-25 each, of their sums,
// which are below 2, 3 and 4, at most 2^-24, 2^-23 and 2^-23: 7 * 2^-24 in all, times a speed of at most 1/4;
// of the product and of the new value at most 2^-25 each: together 2.75 * 2^-24.
#define STEP_ROUNDING 0x1.6p-23

// Compares the temperatures with the reference after a number of frames, and the picture of the last one. The
// reference computes all steps in double from the initial temperatures: those of the heaters, and the hot
// corner. If that takes more than seconds, step(d) computes one more frame, and the reference the same from
// the temperatures before it; so it is after a drag, and after a window on the CPU, which then ends at once.
// A step is rounded by at most STEP_ROUNDING, in whatever order a kernel adds. (In ours the differences are
// small after the first steps: after 450 steps of the default plate the error was 9 * 2^-24.) Later steps do
// not amplify the error, because they only take means.
template <class Data>
static inline bool check_frames(Data *d, void (*step)(Data *), size_t pitch, size_t size, int steps,
                                float speed, const unsigned char *pixels) {
    size_t cells = size * size, width = size * sizeof(float), all = (size_t)d->frames * steps;
    const size_t most = (size_t)1 << (CPU_BACKEND && display_in_window() ? 22 : 29);
    bool more = warmed || all > most / cells;
    HostArray<float> got(cells), heaters(cells);
    HostArray<double> plates(2 * cells);
    double *in = plates, *out = plates + cells, off = 0, sum = 0;
    HANDLE_ERROR(cudaMemcpy2D(got, width, d->dev_inSrc, pitch, width, size, cudaMemcpyDeviceToHost));
    bool ok = warmed || check_colors(pixels, got, cells); // the picture may be that before the last drag
    place_heaters(heaters, size);
    for (size_t i = 0; i < cells; i++) {
        sum += got[i];
        in[i] = more ? got[i] : in_hot_corner(i % size, i / size, size, size) ? 1.0f : heaters[i];
    }
    printf("Mean temperature: %.12f\n", sum / cells);
    if (more) {
        all = steps;
        for (int i = 0; i < steps; i++)
            step(d);
        HANDLE_ERROR(cudaMemcpy2D(got, width, d->dev_inSrc, pitch, width, size, cudaMemcpyDeviceToHost));
    }
    for (size_t i = 0; i < all; i++) {
        spread(out, in, heaters, size, speed);
        swap(in, out);
    }
    for (size_t i = 0; i < cells; i++)
        off = fmax(off, fabs(got[i] - in[i]));
    printf("Largest difference from double, over %zu steps: %.1e\n", all, off);
    return check_floats("temperature", got, in, cells, all * STEP_ROUNDING) && ok;
}

// Compares one step from random temperatures. In a run the temperatures along most edges stay near 0, so that
// a wrong boundary condition there would not show. step(d) reads d->dev_inSrc and leaves its result there.
template <class Data>
static inline bool check_step(Data *d, void (*step)(Data *), size_t pitch, size_t size, float speed = SPEED) {
    size_t cells = size * size, width = size * sizeof(float);
    HostArray<float> got(cells), heaters(cells);
    HostArray<double> in(cells), expected(cells);
    random_floats(got, cells, 1);
    std::copy(got + 0, got + cells, in + 0);
    HANDLE_ERROR(cudaMemcpy2D(d->dev_inSrc, pitch, got, width, width, size, cudaMemcpyHostToDevice));
    step(d);
    HANDLE_ERROR(cudaMemcpy2D(got, width, d->dev_inSrc, pitch, width, size, cudaMemcpyDeviceToHost));
    place_heaters(heaters, size);
    spread(expected, in, heaters, size, speed);
    return check_floats("one step from random temperatures", got, expected, cells, STEP_ROUNDING);
}

// The same on a small plate in the same memory, whose size is no multiple of that of a block. `size` is the
// variable that step(d) reads.
template <class Data>
static inline bool check_small_step(Data *d, void (*step)(Data *), size_t &size, float speed = SPEED) {
    Smaller plate(size, 37);
    HostArray<float> heaters(size * size);
    place_heaters(heaters, size);
    HANDLE_ERROR(cudaMemcpy(d->dev_constSrc, heaters, size * size * sizeof(float), cudaMemcpyHostToDevice));
    return check_step(d, step, size * sizeof(float), size, speed);
}

// The time of the steps of one frame in milliseconds
template <class Data> static inline float time_steps(Data *d, void (*step)(Data *), int steps) {
    return median_ms([=] {
        for (int i = 0; i < steps; i++)
            step(d);
    });
}
