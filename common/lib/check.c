// SPDX-License-Identifier: MIT
// Compares a result with its reference.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../check.h"
#include "../options.h"
#include "../thread.h"

enum { SHOWN = 5 }; // mismatches that are printed; the others are only counted

// Says which element --inject-error changes: the middle one of n.
static void announce_error(size_t n) {
    if (options.inject_error && n > 0)
        fprintf(stderr, "%s: --inject-error: changed element %zu of %zu\n", options.program, n / 2, n);
}

static bool spoiled(size_t i, size_t n) {
    return options.inject_error && i == n / 2;
}

// Prints the summary line of a failed check. Returns whether the check passed.
static bool report(const char *name, size_t differ, size_t n, size_t allowed) {
    if (n == 0)
        fprintf(stderr, "%s: nothing to check\n", name);
    else if (differ > 0 && allowed > 0)
        fprintf(stderr, "%s: %zu of %zu differ, at most %zu may\n", name, differ, n, allowed);
    else if (differ > 0)
        fprintf(stderr, "%s: %zu of %zu differ\n", name, differ, n);
    return n > 0 && differ == 0;
}

static bool close_enough(double got, double expected, double tol) {
    // With an infinite reference the tolerance is infinite, and every number would pass, so it is refused.
    return isfinite(expected) && fabs(got - expected) <= tol * fmax(1, fabs(expected));
}

// Two arrays of n elements.
typedef struct Arrays {
    const char *name;
    const void *got, *expected;
    size_t n;
    double tol;
    // Whether element i differs. With `show` it is printed then.
    bool (*differs)(const struct Arrays *, size_t i, bool show);
    size_t differ; // elements
} Arrays;

static void count_differences(size_t begin, size_t end, void *data) {
    Arrays *arrays = data;
    size_t differ = 0;
    for (size_t i = begin; i < end; i++)
        differ += arrays->differs(arrays, i, false);
    __atomic_fetch_add(&arrays->differ, differ, __ATOMIC_RELAXED);
}

static bool check_arrays(Arrays arrays) {
    announce_error(arrays.n);
    in_threads(arrays.n, count_differences, &arrays);
    for (size_t i = 0, shown = 0; i < arrays.n && shown < SHOWN && arrays.differ > 0; i++)
        shown += arrays.differs(&arrays, i, true);
    return report(arrays.name, arrays.differ, arrays.n, 0);
}

static bool ints_differ(const Arrays *arrays, size_t i, bool show) {
    int got = ((const int *)arrays->got)[i], expected = ((const int *)arrays->expected)[i];
    if (spoiled(i, arrays->n))
        got ^= 0x40000000;
    if (show && got != expected)
        fprintf(stderr, "%s[%zu]: got %d, expected %d\n", arrays->name, i, got, expected);
    return got != expected;
}

bool check_ints(const char *name, const int *got, const int *expected, size_t n) {
    return check_arrays((Arrays){name, got, expected, n, 0, ints_differ, 0});
}

static bool counts_differ(const Arrays *arrays, size_t i, bool show) {
    unsigned long long got = ((const unsigned long long *)arrays->got)[i],
                       expected = ((const unsigned long long *)arrays->expected)[i];
    got += spoiled(i, arrays->n);
    if (show && got != expected)
        fprintf(stderr, "%s[%zu]: got %llu, expected %llu\n", arrays->name, i, got, expected);
    return got != expected;
}

bool check_counts(const char *name, const unsigned long long *got, const unsigned long long *expected,
                  size_t n) {
    return check_arrays((Arrays){name, got, expected, n, 0, counts_differ, 0});
}

static bool floats_differ(const Arrays *arrays, size_t i, bool show) {
    float got = spoiled(i, arrays->n) ? NAN : ((const float *)arrays->got)[i];
    double expected = ((const double *)arrays->expected)[i];
    bool differs = !close_enough(got, expected, arrays->tol);
    if (show && differs)
        fprintf(stderr, "%s[%zu]: got %.9g, expected %.9g, difference at most %.2g\n", arrays->name, i, got,
                expected, arrays->tol * fmax(1, fabs(expected)));
    return differs;
}

bool check_floats(const char *name, const float *got, const double *expected, size_t n, double tol) {
    return check_arrays((Arrays){name, got, expected, n, tol, floats_differ, 0});
}

bool check_value(const char *name, double got, double expected, double tol) {
    announce_error(1);
    if (spoiled(0, 1))
        got = NAN;
    bool ok = close_enough(got, expected, tol);
    if (!ok)
        fprintf(stderr, "%s: got %.17g, expected %.17g, difference at most %.2g\n", name, got, expected,
                tol * fmax(1, fabs(expected)));
    return report(name, !ok, 1, 0);
}

double likely_roundings(double m) {
    return fmin(m, 8 * sqrt(m));
}

unsigned char byte_near(double value, double tol, unsigned char got) {
    return got >= floor(value - tol) && got <= floor(value + tol) ? got : (unsigned char)value;
}

// A picture and what it is compared with: the pixels `expected`, or those that `expect` computes.
typedef struct {
    const char *name;
    size_t width, pixels;
    const unsigned char *got, *expected;
    void (*expect)(size_t x, size_t y, const unsigned char *got, unsigned char *expected);
} Picture;

// Copies pixel i and the expected pixel. Returns whether they differ.
static bool differs(const Picture *p, size_t i, unsigned char *got, unsigned char *expected) {
    memcpy(got, &p->got[4 * i], 4);
    if (spoiled(i, p->pixels))
        got[3] ^= 0x40; // alpha, because some pixels may differ in colour
    if (p->expect)
        p->expect(i % p->width, i / p->width, got, expected);
    else
        memcpy(expected, &p->expected[4 * i], 4);
    return memcmp(got, expected, 4) != 0;
}

static bool compare(const Picture *p, double fraction_allowed) {
    double limit = fraction_allowed * (double)p->pixels;
    size_t allowed = limit >= 1 && fraction_allowed <= 1 ? (size_t)limit : 0;
    size_t differ = 0, wrong_alpha = 0;
    unsigned char got[4], expected[4];
    announce_error(p->pixels);
    for (size_t i = 0; i < p->pixels; i++)
        if (differs(p, i, got, expected)) {
            differ++;
            wrong_alpha += got[3] != expected[3];
        }
    if (differ <= allowed && wrong_alpha == 0 && p->pixels > 0)
        return true;
    for (size_t i = 0, shown = 0; i < p->pixels && shown < SHOWN; i++)
        // When few enough pixels differ, the check failed because of alpha: show only those pixels.
        if (differs(p, i, got, expected) && (differ > allowed || got[3] != expected[3])) {
            fprintf(stderr, "%s[%zu]: got (%d %d %d %d), expected (%d %d %d %d)\n", p->name, i, got[0],
                    got[1], got[2], got[3], expected[0], expected[1], expected[2], expected[3]);
            shown++;
        }
    return report(p->name, differ, p->pixels, differ > allowed ? allowed : 0);
}

bool check_pixels(const char *name, const unsigned char *got, const unsigned char *expected, size_t pixels,
                  double fraction_allowed) {
    Picture picture = {name, pixels ? pixels : 1, pixels, got, expected, NULL};
    return compare(&picture, fraction_allowed);
}

bool check_picture(const char *name, const unsigned char *got, size_t width, size_t height,
                   void (*expect)(size_t x, size_t y, const unsigned char *got, unsigned char *expected),
                   double fraction_allowed) {
    Picture picture = {name, width, width * height, got, NULL, expect};
    return compare(&picture, fraction_allowed);
}
