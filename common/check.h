// SPDX-License-Identifier: MIT
// Comparing a result with its reference. Each check returns true when all is well; else it prints
// the first mismatches and how many there were on stderr. NaN never passes, an empty array neither.
#ifndef COMMON_CHECK_H
#define COMMON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// With --inject-error spoils one element of a device result in host memory, so that the check after
// it must fail; else does nothing. Call it on what came back from the device, before checking.
void inject_error(void *data, size_t bytes);

bool check_ints(const char *name, const int *got, const int *expected, size_t n);

// Each element may be off by tol, or by tol * |expected| where that is more.
bool check_floats(const char *name, const float *got, const double *expected, size_t n, double tol);

// One number, with the same tolerance.
bool check_value(const char *name, double got, double expected, double tol);

// For a tolerance: as many of m roundings in a row, of random data, as do not cancel out. They go
// up as well as down, and all but once in 10^13 times 8 sqrt(m) is enough (Higham and Mary, A new
// approach to probabilistic rounding error analysis, 2019). Never more than m.
double likely_roundings(double m);

// RGBA pixels, 4 bytes each. At most `fraction_allowed` (0 to 1) of them may differ in colour: a
// point on an edge can fall on either side by rounding. Alpha has no edge and must be the same.
bool check_pixels(const char *name, const unsigned char *got, const unsigned char *expected,
                  size_t pixels, double fraction_allowed);

#ifdef __cplusplus
}
#endif
#endif
