// SPDX-License-Identifier: MIT
// Comparisons: results that must pass and results that must fail.
#include <limits.h>
#include <math.h>
#include "../../common/check.h"
#include "../../common/options.h"
#include "../../cucc/tests/unit.h"

// Runs one check in a child process. Expects that it passes in silence, or fails with this text on stderr
// (NULL: with any).
#define PASSES(call)      EXPECT(ended(IN_CHILD(exit((call) ? 0 : 9)), 0, ""))
#define FAILS(call, text) EXPECT(ended(IN_CHILD(exit((call) ? 0 : 9)), 9, text))

// Compares status and stderr. The line of stderr that names make check is removed first.
static bool ended(struct unit_result r, int status, const char *text) {
    char *hint = strstr(r.err, "check: make check "), *end = hint ? strchr(hint, '\n') + 1 : NULL;
    if (hint)
        memmove(hint, end, strlen(end) + 1);
    return r.status == status && !*r.out && (!text || strcmp(r.err, text) == 0);
}

static const int ints[8] = {0, 1, 2, 3, 4, 5, 6, INT_MIN}, other[8] = {9, 1, 9, 9, 9, 9, 9, 9};

TEST(ints) {
    PASSES(check_ints("c", ints, ints, 8));
    FAILS(check_ints("c", ints, other, 8), "c[0]: got 0, expected 9\nc[2]: got 2, expected 9\n"
                                           "c[3]: got 3, expected 9\nc[4]: got 4, expected 9\n"
                                           "c[5]: got 5, expected 9\nc: 7 of 8 differ\n");
    PASSES(check_ints("c", ints + 1, other + 1, 1));
    FAILS(check_ints("c", ints + 7, other + 7, 1), "c[0]: got -2147483648, expected 9\nc: 1 of 1 differ\n");
    FAILS(check_ints("c", ints, ints, 0), "c: nothing to check\n");
    struct unit_result twice = IN_CHILD(check_value("a", 1, 2, 0); check_value("b", 1, 2, 0));
    EXPECT(strstr(twice.err, "\ncheck: make check (or cucc --check) finds races and accesses out of bounds\n"
                             "a: 1 of 1 differ\nb: got 1,"));
}

TEST(floats) {
    // got, expected, tolerance, whether it passes
    static const struct {
        float got;
        double expected, tol;
        bool passes;
    } rows[] = {
        {1, 1, 0, true},
        {0, -0.0, 0, true},
        {1.0001f, 1, 1e-3, true},
        {1.01f, 1, 1e-3, false},
        {1e-4f, 0, 1e-3, true}, // absolute below 1
        {1e-2f, 0, 1e-3, false},
        {1e6f, 1e6 + 900, 1e-3, true}, // relative above
        {1e6f, 1e6 + 1100, 1e-3, false},
        {-1e6f, 1e6, 1e-3, false},
        {NAN, 1, 1e30, false},
        {1, NAN, 1e30, false},
        {NAN, NAN, 1e30, false},
        {INFINITY, 1, 1e30, false},
        {1, INFINITY, 1e-3, false},
        {1, -INFINITY, 1e-3, false},
        {INFINITY, INFINITY, 1e-3, false},
        {1, 1, NAN, false},
        {1, 1, -1, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        EXPECT(check_floats("x", &rows[i].got, &rows[i].expected, 1, rows[i].tol) == rows[i].passes);
        EXPECT(check_value("x", rows[i].got, rows[i].expected, rows[i].tol) == rows[i].passes);
    }
    FAILS(check_value("sum", 1.5, 1, 0.009),
          "sum: got 1.5, expected 1, difference at most 0.009: near enough "
          "to come from rounding, or from a few elements\n"
          "sum: 1 of 1 differ\n");
    FAILS(check_value("sum", 1.5, 1, 0.001),
          "sum: got 1.5, expected 1, difference at most 0.001\nsum: 1 of 1 differ\n");
    FAILS(check_value("error", 488, 0, 5),
          "error: got 488, expected 0, difference at most 5\nerror: 1 of 1 differ\n");
    EXPECT(likely_roundings(9) == 9 && likely_roundings(64) == 64);
    EXPECT(likely_roundings(10000) == 800);
}

static unsigned char got[400], expected[400];

TEST(pixels) {
    memset(got, 255, sizeof(got));
    memset(expected, 255, sizeof(expected));
    PASSES(check_pixels("p", got, expected, 100, 0));
    FAILS(check_pixels("p", got, expected, 0, 1), NULL);
    got[0] = 254;
    got[4 * 99 + 2] = 0;
    PASSES(check_pixels("p", got, expected, 100, 0.02));
    FAILS(check_pixels("p", got, expected, 100, NAN), NULL);
    FAILS(check_pixels("p", got, expected, 100, 1.01), NULL); // no fraction
    FAILS(check_pixels("p", got, expected, 100, 0.0199),
          "p[0]: got (254 255 255 255), expected (255 255 255 255)\n"
          "p[99]: got (255 255 0 255), expected (255 255 255 255)\n"
          "p: 2 of 100 differ, at most 1 may\n");
    got[4 * 50 + 3] = 191; // alpha may never differ
    FAILS(check_pixels("p", got, expected, 100, 1),
          "p[50]: got (255 255 255 191), expected (255 255 255 255)\np: 3 of 100 differ\n");
}

// Pixel (x, y) of a picture of bytes 0 to 99: the number of the pixel, and alpha 255.
static void expect_pixel(size_t x, size_t y, const unsigned char *there, unsigned char *belongs) {
    belongs[0] = (unsigned char)(x + 10 * y);
    belongs[1] = byte_near(7.9999, 0.001, there[1]); // 7, or 8 by rounding
    belongs[2] = 0;
    belongs[3] = 255;
}

static void draw_expected(void) {
    for (size_t i = 0; i < 100; i++) {
        got[4 * i] = (unsigned char)i;
        got[4 * i + 1] = i % 2 ? 7 : 8;
        got[4 * i + 2] = 0;
        got[4 * i + 3] = 255;
    }
}

TEST(picture) {
    draw_expected();
    PASSES(check_picture("p", got, 10, 10, expect_pixel, 0));
    FAILS(check_picture("p", got, 0, 10, expect_pixel, 1), NULL);
    got[4 * 42] = 24; // x and y exchanged
    FAILS(check_picture("p", got, 10, 10, expect_pixel, 0),
          "p[42]: got (24 8 0 255), expected (42 8 0 255)\np: 1 of 100 differ\n");
    PASSES(check_picture("p", got, 10, 10, expect_pixel, 0.01));
    FAILS(check_picture("p", got, 10, 10, expect_pixel, NAN), NULL);
    draw_expected();
    got[4 * 99 + 1] = 9; // neither 7 nor 8
    FAILS(check_picture("p", got, 10, 10, expect_pixel, 0), NULL);
    draw_expected();
    got[3] = 254; // alpha may never differ
    FAILS(check_picture("p", got, 10, 10, expect_pixel, 1), NULL);
}

TEST(bytes) {
    // value, tolerance, the actual byte, the expected byte
    static const struct {
        double value, tol;
        unsigned char got, belongs;
    } rows[] = {
        {7.5, 0.1, 7, 7},  {7.5, 0.1, 8, 7},  {7.5, 0.1, 6, 7},  {7.95, 0.1, 7, 7},       {7.95, 0.1, 8, 8},
        {7.95, 0.1, 9, 7}, {8.05, 0.1, 7, 7}, {8.05, 0.1, 8, 8}, {8.05, 0.1, 6, 8},       {8, 0, 8, 8},
        {8, 0, 7, 8},      {0, 0.1, 0, 0},    {0, 0.1, 255, 0},  {255.05, 0.1, 254, 254}, {255, 0.1, 0, 255},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        EXPECT(byte_near(rows[i].value, rows[i].tol, rows[i].got) == rows[i].belongs);
}

TEST(counts) {
    const unsigned long long c[3] = {0, 1ull << 40, ~0ull}, d[3] = {0, 1ull << 41, ~0ull};
    EXPECT(check_counts("c", c, c, 3));
    EXPECT(!check_counts("c", c, d, 3));
    EXPECT(check_counts("c", c, d, 1) && !check_counts("c", c, c, 0));
}
