// SPDX-License-Identifier: MIT
// Checks of Fourier transforms, for fft_2d.cu and its variants: some bins against the sum that defines them,
// forward and back against the input, and impulses, whose spectra are known.
#ifndef CHAPTER12_FFT_CHECK_H
#define CHAPTER12_FFT_CHECK_H

#include "../common/book.h"

// ---------------------------------------------------------------------------------------- proof

const double PI = 3.14159265358979323846;

// The largest error of a transform of n points, relative to the root mean square of its results. A fast
// Fourier transform has log2(n) steps. Each rounds a few times, and the errors of different steps partly
// cancel. Sizes with large prime factors are computed through transforms of two to four times the size.
static inline double fft_limit(double n) {
    return 8 * (log2(n) + 3) * 0x1p-24;
}

// exp(-2 pi i (k i / nx + l j / ny)). The products are reduced first, in integers, so that large ones lose
// nothing.
static inline void root_of_unity(size_t ki, size_t nx, size_t lj, size_t ny, double *re, double *im) {
    double turns = (double)(ki % nx) / nx + (double)(lj % ny) / ny;
    *re = cos(2 * PI * turns);
    *im = -sin(2 * PI * turns);
}

// Compares some random bins of the spectrum with the definition, in double. The spectrum has nx rows of `row`
// bins: ny, or ny / 2 + 1 for real input.
static inline bool check_bins(const cufftComplex *in, const cufftComplex *spectrum, size_t nx, size_t ny,
                              size_t row) {
    const int BINS = 3;
    float got[2 * BINS];
    double expected[2 * BINS],
        scale = 1 / sqrt((double)nx * ny); // then the bins are about as large as the input
    for (int b = 0; b < BINS; b++) {
        size_t k = random_bits() % nx, l = random_bits() % row;
        double sum_re = 0, sum_im = 0, re, im;
        for (size_t i = 0; i < nx; i++)
            for (size_t j = 0; j < ny; j++) {
                root_of_unity(k * i, nx, l * j, ny, &re, &im);
                cufftComplex x = in[i * ny + j];
                sum_re += x.x * re - x.y * im;
                sum_im += x.x * im + x.y * re;
            }
        cufftComplex bin = spectrum[k * row + l];
        printf("bin (%zu, %zu) = %.6g %+.6g i, by definition %.6g %+.6g i\n", k, l, bin.x, bin.y, sum_re,
               sum_im);
        got[2 * b] = bin.x * scale, got[2 * b + 1] = bin.y * scale;
        expected[2 * b] = sum_re * scale, expected[2 * b + 1] = sum_im * scale;
    }
    return check_floats("bin", got, expected, 2 * BINS, fft_limit((double)nx * ny));
}

// Returns the scale factor f that minimizes the sum of (f * in[i] - out[i])^2 (least squares), for i < n.
static inline double factor_of(const float *out, const float *in, size_t n) {
    double product = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        product += (double)out[i] * in[i];
        square += (double)in[i] * in[i];
    }
    return product / square;
}

// Divides `out` by the number of points and compares it with the input.
static inline bool check_back(float *out, const float *in, size_t n, size_t points) {
    double *expected = host_array<double>(n), worst = 0;
    for (size_t i = 0; i < n; i++) {
        expected[i] = in[i];
        out[i] /= points;
        worst = fmax(worst, fabs(out[i] - expected[i]));
    }
    printf("Divided by %zu: the largest error is %.2g\n", points, worst);
    bool ok = check_floats("back", out, expected, n, 2 * fft_limit(points));
    free(expected);
    return ok;
}

// An impulse, one number among zeros, contains all frequencies in equal parts. If it is at (0, 0), every bin
// is 1. If it is at (a, b), bin (k, l) is exp(-2 pi i (k a / nx + l b / ny)): the phase changes, the
// magnitude does not.
static inline bool check_impulses(cufftHandle plan, cufftComplex *idata, cufftComplex *odata, size_t nx,
                                  size_t ny) {
    size_t n = nx * ny, place[] = {0, random_bits() % nx * ny + random_bits() % ny};
    cufftComplex one = make_cuComplex(1, 0), *out = host_array<cufftComplex>(n);
    double *expected = host_array<double>(2 * n);
    bool ok = true;
    for (size_t at : place) {
        HANDLE_ERROR(cudaMemset(idata, 0, n * sizeof(cufftComplex)));
        HANDLE_ERROR(cudaMemcpy(idata + at, &one, sizeof(one), cudaMemcpyHostToDevice));
        HANDLE_CUFFT(cufftExecC2C(plan, idata, odata, CUFFT_FORWARD));
        HANDLE_ERROR(cudaMemcpy(out, odata, n * sizeof(cufftComplex), cudaMemcpyDeviceToHost));
        double least = INFINITY, most = 0;
        for (size_t i = 0; i < n; i++) {
            root_of_unity(i / ny * (at / ny), nx, i % ny * (at % ny), ny, &expected[2 * i],
                          &expected[2 * i + 1]);
            double magnitude = hypot(out[i].x, out[i].y);
            least = fmin(least, magnitude);
            most = fmax(most, magnitude);
        }
        printf("Impulse at (%zu, %zu): all magnitudes are from %.7f to %.7f\n", at / ny, at % ny, least,
               most);
        ok = check_floats("impulse", (float *)out, expected, 2 * n, fft_limit(n)) && ok;
    }
    free(out);
    free(expected);
    return ok;
}

#endif
