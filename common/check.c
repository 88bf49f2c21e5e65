// SPDX-License-Identifier: MIT
// Comparing a result with its reference.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "check.h"
#include "options.h"

enum { SHOWN = 5 }; // mismatches printed one by one

void inject_error(void *data, size_t bytes) {
    if (!options.inject_error || bytes == 0)
        return;
    // The highest bit but one of an element in the middle, whether elements have 1, 2, 4 or 8
    // bytes: a float or an int changes grossly, and of a pixel it is the alpha.
    size_t at = bytes < 4 ? bytes - 1 : bytes < 8 ? 3 : bytes / 8 / 2 * 8 + 7;
    ((unsigned char *)data)[at] ^= 0x40;
    fprintf(stderr, "%s: --inject-error: changed byte %zu of %zu\n", options.program, at, bytes);
}

static bool report(const char *name, size_t differ, size_t n, size_t allowed) {
    if (n == 0)
        fprintf(stderr, "%s: nothing to check\n", name);
    else if (differ > 0 && allowed > 0)
        fprintf(stderr, "%s: %zu of %zu differ, %zu may\n", name, differ, n, allowed);
    else if (differ > 0)
        fprintf(stderr, "%s: %zu of %zu differ\n", name, differ, n);
    return n > 0 && differ == 0;
}

static bool close_enough(double got, double expected, double tol) {
    // An infinite reference would make the tolerance infinite too.
    return isfinite(expected) && fabs(got - expected) <= tol * fmax(1, fabs(expected));
}

bool check_ints(const char *name, const int *got, const int *expected, size_t n) {
    size_t differ = 0;
    for (size_t i = 0; i < n; i++)
        if (got[i] != expected[i] && differ++ < SHOWN)
            fprintf(stderr, "%s[%zu]: got %d, expected %d\n", name, i, got[i], expected[i]);
    return report(name, differ, n, 0);
}

bool check_floats(const char *name, const float *got, const double *expected, size_t n,
                  double tol) {
    size_t differ = 0;
    for (size_t i = 0; i < n; i++)
        if (!close_enough(got[i], expected[i], tol) && differ++ < SHOWN)
            fprintf(stderr, "%s[%zu]: got %.9g, expected %.9g\n", name, i, got[i], expected[i]);
    return report(name, differ, n, 0);
}

bool check_value(const char *name, double got, double expected, double tol) {
    bool ok = close_enough(got, expected, tol);
    if (!ok)
        fprintf(stderr, "%s: got %.17g, expected %.17g\n", name, got, expected);
    return report(name, !ok, 1, 0);
}

double likely_roundings(double m) {
    return fmin(m, 8 * sqrt(m));
}

bool check_pixels(const char *name, const unsigned char *got, const unsigned char *expected,
                  size_t pixels, double fraction_allowed) {
    double limit = fraction_allowed * (double)pixels;
    size_t allowed = limit >= 1 && fraction_allowed <= 1 ? (size_t)limit : 0;
    size_t differ = 0, wrong = 0;
    for (size_t i = 0; i < pixels; i++)
        if (memcmp(&got[4 * i], &expected[4 * i], 4) != 0) {
            differ++;
            wrong += got[4 * i + 3] != expected[4 * i + 3];
        }
    if (differ <= allowed && wrong == 0 && pixels > 0)
        return true;
    for (size_t i = 0, shown = 0; i < pixels && shown < SHOWN; i++) {
        const unsigned char *g = &got[4 * i], *e = &expected[4 * i];
        // Where colours alone stay within the limit, show the pixels that do not.
        if (memcmp(g, e, 4) != 0 && (differ > allowed || g[3] != e[3])) {
            fprintf(stderr, "%s[%zu]: got (%d %d %d %d), expected (%d %d %d %d)\n", name, i, g[0],
                    g[1], g[2], g[3], e[0], e[1], e[2], e[3]);
            shown++;
        }
    }
    return report(name, differ, pixels, differ > allowed ? allowed : 0);
}
