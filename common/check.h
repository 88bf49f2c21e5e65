// SPDX-License-Identifier: MIT
// Compares a result with its reference. Each check returns true when they match; otherwise it prints
// the first mismatches and their number to stderr. NaN never passes, nor does an empty array. With
// --inject-error a check changes one element of the result before it compares, so it must fail; the
// tests use this to confirm that a program detects a wrong result.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Compares two arrays of n elements: each got[i] must be equal to expected[i]. `name` is the name of the
// array in error messages, such as "c" in "c[5]: got 1, expected 2".
bool check_ints(const char *name, const int *got, const int *expected, size_t n);
bool check_counts(const char *name, const unsigned long long *got, const unsigned long long *expected,
                  size_t n);

// Compares two arrays of n elements: got[i] may differ from expected[i] by tol * max(1, |expected[i]|).
bool check_floats(const char *name, const float *got, const double *expected, size_t n, double tol);

// Checks one number; it may differ by tol * max(1, |expected|).
bool check_value(const char *name, double got, double expected, double tol);

// For a tolerance: the number of roundings to allow for out of m, at most m. The roundings of random
// data go up and down and partly cancel: their sum exceeds 8 sqrt(m) less than once in 10^13 times
// (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019).
double likely_roundings(double m);

// A picture: RGBA pixels, 4 bytes each, the bottom row first. `expect` writes the expected pixel for
// (x, y); it also gets the actual one, for values that float may round up or down (see byte_near).
// At most the fraction `fraction_allowed` (0 to 1) of the pixels may differ in colour; alpha must
// always match.
bool check_picture(const char *name, const unsigned char *got, size_t width, size_t height,
                   void (*expect)(size_t x, size_t y, const unsigned char *got, unsigned char *expected),
                   double fraction_allowed);

// The expected byte of a pixel that the device computes in float and truncates. `value` is the exact
// value and `tol` the largest rounding error: returns `got` when a value within tol truncates to it,
// otherwise the truncated `value`.
unsigned char byte_near(double value, double tol, unsigned char got);

// Compares two pictures of `pixels` pixels in RGBA format, that is 4 * pixels bytes each.
// The limits are those of check_picture.
bool check_pixels(const char *name, const unsigned char *got, const unsigned char *expected, size_t pixels,
                  double fraction_allowed);

#ifdef __cplusplus
}
#endif
