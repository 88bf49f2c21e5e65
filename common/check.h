// SPDX-License-Identifier: MIT
// Compares a result with its reference. Each check returns true when they match; else it prints the
// first mismatches and their number on stderr. NaN never passes, nor does an empty array. With
// --inject-error a check changes one element of what it is given, so it must fail: the tests use
// that to see that a program notices a wrong result.
#ifndef COMMON_CHECK_H
#define COMMON_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

bool check_ints(const char *name, const int *got, const int *expected, size_t n);
bool check_counts(const char *name, const unsigned long long *got, const unsigned long long *expected,
                  size_t n);

// Each element may be off by tol, or by tol * |expected| where that is more.
bool check_floats(const char *name, const float *got, const double *expected, size_t n, double tol);

// One number, with the same tolerance.
bool check_value(const char *name, double got, double expected, double tol);

// For a tolerance: the number of roundings to allow for out of m. Those of random data go up as
// well as down and partly cancel: 8 sqrt(m) is enough all but once in 10^13 times (Higham and Mary,
// A new approach to probabilistic rounding error analysis, 2019). Never more than m.
double likely_roundings(double m);

// A picture: RGBA pixels, 4 bytes each, the bottom row first. `expect` says which pixel belongs at
// (x, y); it is also given the pixel that is there, for values that rounding can take either way.
// At most `fraction_allowed` (0 to 1) of the pixels may differ in colour; alpha must always match.
bool check_picture(const char *name, const unsigned char *got, size_t width, size_t height,
                   void (*expect)(size_t x, size_t y, const unsigned char *got, unsigned char *expected),
                   double fraction_allowed);

// The byte that a float value is truncated to, given the value in double and how far float rounding
// can move it: `got` where that is possible, else the whole part of value.
unsigned char byte_near(double value, double tol, unsigned char got);

// The same for a picture that is there as a whole.
bool check_pixels(const char *name, const unsigned char *got, const unsigned char *expected, size_t pixels,
                  double fraction_allowed);

#ifdef __cplusplus
}
#endif
#endif
