// SPDX-License-Identifier: MIT
// The sums of random_pi.cu and the limits of their errors.
#ifndef CHAPTER12_RANDOM_PI_CHECK_H
#define CHAPTER12_RANDOM_PI_CHECK_H

#include "../common/book.h"

struct Sums {
    unsigned long long inside; // points inside the quarter circle x² + y² < 1
    double height;             // sum of the heights sqrt(1 - x²) of the quarter circle
};

// The squares of floats are exact in double, so the host counts the same points.
static inline __host__ __device__ void add_point(Sums *sums, double x, double y) {
    sums->inside += x * x + y * y < 1;
    sums->height += sqrt(1 - x * x);
}

// ---------------------------------------------------------------------------------------- proof

const double PI = 3.14159265358979323846;

static inline double by_points(Sums sums, double n) {
    return 4 * sums.inside / n;
}
static inline double by_height(Sums sums, double n) {
    return 4 * sums.height / n;
}

// The standard errors of 4 times the mean of n numbers: each point is inside with probability pi / 4; the
// squared height has the mean 2 / 3.
static inline double error_of_points(double n) {
    return sqrt(PI * (4 - PI) / n);
}
static inline double error_of_height(double n) {
    return sqrt((16 * 2 / 3.0 - PI * PI) / n);
}

static inline void print_head(void) {
    printf("%10s  | %-34s | %s\n", "", "error of the points in the circle", "error of the mean height");
    printf("%10s  | %10s %13s %9s | %10s %13s %9s %9s\n", "n", "random", "1.64/sqrt(n)", "Sobol'", "random",
           "0.89/sqrt(n)", "Sobol'", "1/n");
}

static inline void print_row(Sums random, Sums sobol, size_t n) {
    printf("%10zu  | %+10.1e %13.1e %+9.1e | %+10.1e %13.1e %+9.1e %9.1e\n", n, by_points(random, n) - PI,
           error_of_points(n), by_points(sobol, n) - PI, by_height(random, n) - PI, error_of_height(n),
           by_height(sobol, n) - PI, 1.0 / n);
}

// The same sums on the host, of the numbers in device memory
static inline bool check_sums(Sums got, const float *dev_numbers, size_t n) {
    float *numbers = host_array<float>(2 * n);
    HANDLE_ERROR(cudaMemcpy(numbers, dev_numbers, 2 * n * sizeof(float), cudaMemcpyDeviceToHost));
    Sums expected = {0, 0};
    for (size_t i = 0; i < n; i++)
        add_point(&expected, numbers[i], numbers[n + i]);
    free(numbers);
    // Rounding: n additions of numbers up to 1
    return check_counts("points inside", &got.inside, &expected.inside, 1) &&
           check_value("sum of heights", got.height, expected.height, likely_roundings(n) * 0x1p-53);
}

// A difference of more than 5 standard errors has the probability 6e-7; with 4 one run in 2000 would fail,
// since a run makes eight estimates.
static inline bool check_random(Sums sums, size_t n) {
    return check_value("pi by random points", (by_points(sums, n) - PI) / error_of_points(n), 0, 5) &&
           check_value("pi by random heights", (by_height(sums, n) - PI) / error_of_height(n), 0, 5);
}

// The height decreases from 1 to 0, so the error of its mean is at most the discrepancy of the numbers x, the
// largest difference between the share of numbers in an interval from 0 and the length of that interval. For
// the first dimension it is at most (log2(n) / 3 + 1) / n. Of 4^k points each square of side 2^-k has one, so
// only the squares that the circle crosses, fewer than 2^(k + 1), cause an error. For other n: twice as much.
static inline bool check_sobol(Sums sums, double n) {
    return check_value("pi by Sobol' heights", (by_height(sums, n) - PI) * n / 4, 0, log2(n) / 3 + 1) &&
           check_value("pi by Sobol' points", (by_points(sums, n) - PI) * sqrt(n) / 4, 0, 4);
}

#endif
