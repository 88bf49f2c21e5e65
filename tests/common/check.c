// SPDX-License-Identifier: MIT
// Comparisons: what must pass, and above all what must not.
#include <limits.h>
#include <math.h>
#include "../../common/check.h"
#include "../../common/options.h"
#include "../unit.h"

// Runs one check in a child; its exit status is 0 when the check passed.
static struct unit_result checked(void (*body)(void *)) {
    return unit_child(body, NULL);
}
#define CHILD(name, call)                                                                          \
    static void name(void *unused) {                                                               \
        (void)unused;                                                                              \
        exit((call) ? 0 : 9);                                                                      \
    }

static const int ints[8] = {0, 1, 2, 3, 4, 5, 6, INT_MIN}, other[8] = {9, 1, 9, 9, 9, 9, 9, 9};
CHILD(equal_ints, check_ints("c", ints, ints, 8))
CHILD(other_ints, check_ints("c", ints, other, 8))
CHILD(last_int, check_ints("c", ints + 1, other + 1, 1) && !check_ints("c", ints + 7, other + 7, 1))
CHILD(no_ints, check_ints("c", ints, ints, 0))

TEST(ints) {
    struct unit_result r = checked(equal_ints);
    EXPECT(r.status == 0 && !*r.err && !*r.out);
    r = checked(other_ints);
    EXPECT(r.status == 9);
    EXPECT(strcmp(r.err, "c[0]: got 0, expected 9\nc[2]: got 2, expected 9\n"
                         "c[3]: got 3, expected 9\nc[4]: got 4, expected 9\n"
                         "c[5]: got 5, expected 9\nc: 7 of 8 differ\n") == 0);
    r = checked(last_int);
    EXPECT(r.status == 0);
    EXPECT(strstr(r.err, "c[0]: got -2147483648, expected 9\nc: 1 of 1 differ\n"));
    r = checked(no_ints);
    EXPECT(r.status == 9);
    EXPECT(strcmp(r.err, "c: nothing to check\n") == 0);
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
        EXPECT(check_floats("x", &rows[i].got, &rows[i].expected, 1, rows[i].tol) ==
               rows[i].passes);
        EXPECT(check_value("x", rows[i].got, rows[i].expected, rows[i].tol) == rows[i].passes);
    }
    EXPECT(likely_roundings(9) == 9 && likely_roundings(64) == 64);
    EXPECT(likely_roundings(10000) == 800);
}

static unsigned char got[400], expected[400];
CHILD(two_may, check_pixels("p", got, expected, 100, 0.02))
CHILD(one_may, check_pixels("p", got, expected, 100, 0.0199))
CHILD(none_may, check_pixels("p", got, expected, 100, 0))
CHILD(nan_may, check_pixels("p", got, expected, 100, NAN))
CHILD(all_may, check_pixels("p", got, expected, 100, 1))
CHILD(no_pixels, check_pixels("p", got, expected, 0, 1))

TEST(pixels) {
    memset(got, 255, sizeof(got));
    memset(expected, 255, sizeof(expected));
    EXPECT(checked(none_may).status == 0);
    EXPECT(checked(no_pixels).status == 9);
    got[0] = 254;
    got[4 * 99 + 2] = 0;
    EXPECT(checked(two_may).status == 0);
    EXPECT(checked(nan_may).status == 9);
    struct unit_result r = checked(one_may);
    EXPECT(r.status == 9);
    EXPECT(strcmp(r.err, "p[0]: got (254 255 255 255), expected (255 255 255 255)\n"
                         "p[99]: got (255 255 0 255), expected (255 255 255 255)\n"
                         "p: 2 of 100 differ, 1 may\n") == 0);
    r = checked(none_may);
    EXPECT(r.status == 9 && strstr(r.err, "p: 2 of 100 differ\n"));
    got[4 * 50 + 3] = 191; // alpha never may
    r = checked(all_may);
    EXPECT(r.status == 9);
    EXPECT(strstr(r.err, "p[50]: got (255 255 255 191)") == r.err);
}

// Whatever the type and the count, a changed element fails its check.
TEST(injection_is_caught) {
    float floats[5] = {0, 1, -2, 1e-30f, 1e30f};
    double reference[5];
    int copy[8];
    for (size_t n = 1; n <= 8; n++) {
        memcpy(copy, ints, sizeof(copy));
        inject_error(copy, n * sizeof(int)); // without the option: nothing
        EXPECT(check_ints("c", copy, ints, n));
        options.inject_error = true;
        inject_error(copy, n * sizeof(int));
        EXPECT(!check_ints("c", copy, ints, n));
        options.inject_error = false;
    }
    options.inject_error = true;
    for (size_t n = 1; n <= 5; n++)
        for (int zero = 0; zero < 2; zero++) {
            for (size_t i = 0; i < n; i++)
                reference[i] = floats[i] = zero ? 0 : (float)i - 2.5f;
            inject_error(floats, n * sizeof(float));
            EXPECT(!check_floats("x", floats, reference, n, 0.1));
        }
    for (size_t n = 1; n <= 3; n++) {
        double values[3] = {1, 2, 3};
        bool changed = false;
        inject_error(values, n * sizeof(double));
        for (size_t i = 0; i < n; i++)
            changed |= fabs(values[i] - (double)(i + 1)) > 0.5;
        EXPECT(changed);
    }
    for (size_t n = 1; n <= 100; n++) {
        memset(got, 0, sizeof(got));
        memset(expected, 0, sizeof(expected));
        inject_error(got, 4 * n);
        EXPECT(!check_pixels("p", got, expected, n, 0.5));
    }
    for (size_t n = 1; n <= 20; n++) {
        memset(got, 0, sizeof(got));
        inject_error(got, n);
        EXPECT(memcmp(got, expected, n) != 0);
        EXPECT(memcmp(got + n, expected + n, sizeof(got) - n) == 0);
    }
    inject_error(NULL, 0);
    options.inject_error = false;
}
