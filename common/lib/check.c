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

#ifdef __wasm__
static const bool has_make = false; // in a page the box "look for races" does what make check does
#else
static const bool has_make = true;
#endif

// Prints the summary line of a failed check, and before the first one a line that recommends make check. The
// order matters: scripts show the last line of stderr as the reason of a failure. Returns whether the check
// passed.
static bool report(const char *name, size_t differ, size_t n, size_t allowed) {
    static bool said;
    if (has_make && differ > 0 && !said && !options.inject_error)
        fprintf(stderr, "%s: make check (or cucc --check) finds races and accesses out of bounds\n",
                options.program);
    said = said || differ > 0;
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

// For a message: whether rounding may explain a difference, which is then not far above what the tolerance
// allows. A tolerance of 1 % or more is not for rounding.
static const char *hint(double got, double expected, double tol) {
    return tol > 0 && tol < 0.01 && close_enough(got, expected, 100 * tol)
               ? ": near enough to come from rounding, or from a few elements"
               : "";
}

// Two arrays of n elements, or of n pixels of 4 bytes.
typedef struct Arrays {
    const char *name;
    const void *got, *expected;
    size_t n;
    double tol;
    // Returns 0 if element i is right, 1 if it differs, and 2 if it may not even be one of those that are
    // allowed to differ. Prints it if that is at least `shown`.
    int (*differs)(const struct Arrays *, size_t i, int shown);
    void (*expect)(size_t x, size_t y, const unsigned char *got, unsigned char *expected); // or `expected`
    size_t width;
    size_t differ, forbidden; // elements: those that differ, and those of them that may not
} Arrays;

enum { NONE = 3 }; // for differs(): prints nothing

static void count_differences(size_t begin, size_t end, void *data) {
    Arrays *arrays = data;
    size_t differ = 0, forbidden = 0;
    for (size_t i = begin; i < end; i++) {
        int how = arrays->differs(arrays, i, NONE);
        differ += how > 0;
        forbidden += how > 1;
    }
    __atomic_fetch_add(&arrays->differ, differ, __ATOMIC_RELAXED);
    __atomic_fetch_add(&arrays->forbidden, forbidden, __ATOMIC_RELAXED);
}

static bool check_arrays(Arrays arrays, double fraction_allowed) {
    double limit = fraction_allowed * (double)arrays.n;
    size_t allowed = limit >= 1 && fraction_allowed <= 1 ? (size_t)limit : 0;
    announce_error(arrays.n);
    in_threads(arrays.n, count_differences, &arrays);
    bool few = arrays.differ <= allowed;
    if (few && arrays.forbidden == 0 && arrays.n > 0)
        return true;
    int least = few ? 2 : 1; // only those that may not differ, or all
    for (size_t i = 0, shown = 0; i < arrays.n && shown < SHOWN; i++)
        shown += arrays.differs(&arrays, i, least) >= least;
    return report(arrays.name, arrays.differ, arrays.n, few ? 0 : allowed);
}

static int ints_differ(const Arrays *arrays, size_t i, int shown) {
    int got = ((const int *)arrays->got)[i], expected = ((const int *)arrays->expected)[i];
    if (spoiled(i, arrays->n))
        got ^= 0x40000000;
    if (shown == 1 && got != expected)
        fprintf(stderr, "%s[%zu]: got %d, expected %d\n", arrays->name, i, got, expected);
    return got != expected;
}

bool check_ints(const char *name, const int *got, const int *expected, size_t n) {
    return check_arrays((Arrays){name, got, expected, n, .differs = ints_differ}, 0);
}

static int counts_differ(const Arrays *arrays, size_t i, int shown) {
    unsigned long long got = ((const unsigned long long *)arrays->got)[i],
                       expected = ((const unsigned long long *)arrays->expected)[i];
    got += spoiled(i, arrays->n);
    if (shown == 1 && got != expected)
        fprintf(stderr, "%s[%zu]: got %llu, expected %llu\n", arrays->name, i, got, expected);
    return got != expected;
}

bool check_counts(const char *name, const unsigned long long *got, const unsigned long long *expected,
                  size_t n) {
    return check_arrays((Arrays){name, got, expected, n, .differs = counts_differ}, 0);
}

static int floats_differ(const Arrays *arrays, size_t i, int shown) {
    float got = spoiled(i, arrays->n) ? NAN : ((const float *)arrays->got)[i];
    double expected = ((const double *)arrays->expected)[i];
    bool differs = !close_enough(got, expected, arrays->tol);
    if (shown == 1 && differs)
        fprintf(stderr, "%s[%zu]: got %.9g, expected %.9g, difference at most %.2g%s\n", arrays->name, i, got,
                expected, arrays->tol * fmax(1, fabs(expected)), hint(got, expected, arrays->tol));
    return differs;
}

bool check_floats(const char *name, const float *got, const double *expected, size_t n, double tol) {
    return check_arrays((Arrays){name, got, expected, n, tol, .differs = floats_differ}, 0);
}

bool check_value(const char *name, double got, double expected, double tol) {
    announce_error(1);
    if (spoiled(0, 1))
        got = NAN;
    bool ok = close_enough(got, expected, tol);
    if (!ok)
        fprintf(stderr, "%s: got %.17g, expected %.17g, difference at most %.2g%s\n", name, got, expected,
                tol * fmax(1, fabs(expected)), hint(got, expected, tol));
    return report(name, !ok, 1, 0);
}

double likely_roundings(double m) {
    return fmin(m, 8 * sqrt(m));
}

unsigned char byte_near(double value, double tol, unsigned char got) {
    return got >= floor(value - tol) && got <= floor(value + tol) ? got : (unsigned char)value;
}

static int pixels_differ(const Arrays *arrays, size_t i, int shown) {
    unsigned char got[4], expected[4];
    memcpy(got, (const unsigned char *)arrays->got + 4 * i, 4);
    if (spoiled(i, arrays->n))
        got[3] ^= 0x40; // alpha, because some pixels may differ in colour
    if (arrays->expect)
        arrays->expect(i % arrays->width, i / arrays->width, got, expected);
    else
        memcpy(expected, (const unsigned char *)arrays->expected + 4 * i, 4);
    int how = got[3] != expected[3] ? 2 : memcmp(got, expected, 4) != 0;
    if (how >= shown)
        fprintf(stderr, "%s[%zu]: got (%d %d %d %d), expected (%d %d %d %d)\n", arrays->name, i, got[0],
                got[1], got[2], got[3], expected[0], expected[1], expected[2], expected[3]);
    return how;
}

bool check_pixels(const char *name, const unsigned char *got, const unsigned char *expected, size_t pixels,
                  double fraction_allowed) {
    return check_arrays((Arrays){name, got, expected, pixels, .differs = pixels_differ}, fraction_allowed);
}

bool check_picture(const char *name, const unsigned char *got, size_t width, size_t height,
                   void (*expect)(size_t x, size_t y, const unsigned char *got, unsigned char *expected),
                   double fraction_allowed) {
    Arrays picture = {name,          got, NULL, width * height, .differs = pixels_differ, .expect = expect,
                      .width = width};
    return check_arrays(picture, fraction_allowed);
}
