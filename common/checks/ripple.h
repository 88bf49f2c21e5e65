// SPDX-License-Identifier: MIT
// Check of the ripple that chapters 5 and 8 draw.
#pragma once

#include "../book.h"

// The frame to check: where the waves start, in pixels, and its number.
static double ripple_x, ripple_y, ripple_ticks;

static void expect_ripple(size_t x, size_t y, const unsigned char *got, unsigned char *expected) {
    double ring = hypot(x - ripple_x, y - ripple_y) / 10, phase = ripple_ticks / 7;
    double value = 128 + 127 * cos(ring - phase) / (ring + 1);
    // In float, up to seven roundings of 2^-24 go into the distance and the angle; 127 / (ring + 1) is
    // how much of them reaches the value. cosf and the operations after it add a few 2^-24 of 255.
    double tol = (127 * 7 * (ring + phase) / (ring + 1) + 255 * 10) * 0x1p-24;
    for (int color = 0; color < 3; color++)
        expected[color] = byte_near(value, tol, got[color]);
    expected[3] = 255;
}

// Compares frame `ticks` of a ripple with its centre at (x, y) with a reference computed on the host.
static inline bool is_ripple(const unsigned char *pixels, size_t size, float x, float y, int ticks) {
    ripple_x = x;
    ripple_y = y;
    ripple_ticks = ticks;
    return check_picture("pixel", pixels, size, size, expect_ripple, 0);
}

// Programs with OpenGL also draw frame EARLIER, whose angle EARLIER / 7 is no whole number, in --size but at
// most EARLIER_SIZE pixels a side, and set earlier_right. (In frame 119, the last one by default, 119 / 7 is
// 17 in integers too, so a program that divides integers would pass.)
const int EARLIER = 10, EARLIER_SIZE = 101;
static bool earlier_right = true;

// As is_ripple(), and prints a line if the frame is right. `addition` is appended to that line.
static inline bool check_ripple(const unsigned char *pixels, size_t size, float x, float y, int ticks,
                                const char *addition = "") {
    bool ok = is_ripple(pixels, size, x, y, ticks) && earlier_right;
    if (ok)
        printf("Frame %d is right%s.\n", ticks, addition);
    return ok;
}
