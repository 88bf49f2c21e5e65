// SPDX-License-Identifier: MIT
/*
 * fft_2d: a two-dimensional Fourier transform and its inverse by cuFFT
 *
 * Teaches: cuFFT computes discrete Fourier transforms by a plan, which holds the size, the type of the
 *          numbers and the memory that the transform needs; it is made once and executed for any arrays. The
 *          transforms are not scaled: forward and back gives the input times the number of points.
 * Terms:   cuFFT, Fourier transform, plan, in place
 * Book:    12.2.2 (course); T FFT (forward and back)
 * Build:   nvcc -o fft_2d chapter12/fft_2d.cu common/lib/[a-z]*.c -lcufft
 * Run:     ./bin/chapter12/fft_2d --nx 1000 --ny 300
 * Differs: the result is divided by the number of points and compared with the input, and some bins of the
 *          spectrum with the sum that defines them.
 * Needs:   libs=cufft
 * Check:   --nx 12 --ny 20
 */
#include "../common/book.h"
#include <cufft.h>
#include "libraries.h" // HANDLE_CUFFT()

#define NX 256
#define NY 128

static int nx = NX, ny = NY; // --nx, --ny
static bool check_bins(const cufftComplex *in, const cufftComplex *out);
static double length(const cufftComplex *x, size_t n); // as of a vector
static bool check_back(const cufftComplex *in, const cufftComplex *out);

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t n = (size_t)nx * ny, bytes = n * sizeof(cufftComplex);
    cufftComplex *in = (cufftComplex *)malloc(bytes), *out = (cufftComplex *)malloc(bytes);
    HANDLE_NULL(in && out);
    for (size_t i = 0; i < n; i++) {
        in[i].x = rnd(2) - 1;
        in[i].y = rnd(2) - 1;
    }

    cufftComplex *idata, *odata;
    HANDLE_ERROR(cudaMalloc((void **)&idata, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&odata, bytes));
    HANDLE_ERROR(cudaMemcpy(idata, in, bytes, cudaMemcpyHostToDevice));

    // Element (i, j) is idata[i * ny + j]: the last dimension is contiguous. C2C: complex to complex.
    cufftHandle plan;
    HANDLE_CUFFT(cufftPlan2d(&plan, nx, ny, CUFFT_C2C));

    // Forward, out of place: odata gets the spectrum of idata.
    HANDLE_CUFFT(cufftExecC2C(plan, idata, odata, CUFFT_FORWARD));
    HANDLE_ERROR(cudaMemcpy(out, odata, bytes, cudaMemcpyDeviceToHost));
    bool ok = check_bins(in, out);

    // Back, in place: the same array is input and output.
    HANDLE_CUFFT(cufftExecC2C(plan, odata, odata, CUFFT_INVERSE));
    HANDLE_ERROR(cudaMemcpy(out, odata, bytes, cudaMemcpyDeviceToHost));
    printf("Forward and back: %.6g times the input; NX * NY = %zu\n", length(out, n) / length(in, n), n);
    for (size_t i = 0; i < n; i++) {
        out[i].x /= n;
        out[i].y /= n;
    }
    ok = check_back(in, out) && ok;

    HANDLE_CUFFT(cufftDestroy(plan));
    HANDLE_ERROR(cudaFree(idata));
    HANDLE_ERROR(cudaFree(odata));
    free(in);
    free(out);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include <complex>

void settings(int argc, char **argv) {
    configure(argc, argv, "A two-dimensional Fourier transform by cuFFT, forward and back.", 0,
              {OPTION_INT("nx", &nx, 1, 16384, "points of the first dimension"),
               OPTION_INT("ny", &ny, 1, 16384, "points of the second, contiguous dimension")});
    size_t bytes = (size_t)nx * ny * sizeof(cufftComplex);
    require_memory(5 * bytes, 4 * bytes); // cuFFT may need two arrays itself
}

// Compares random bins (k, l) with the definition: the sum of in[i, j] exp(-2 pi i (k i / nx + l j / ny)).
// The products are reduced first, in integers, so that large ones lose nothing.
static bool check_bins(const cufftComplex *in, const cufftComplex *out) {
    typedef std::complex<double> Number;
    const size_t width = nx, height = ny;
    double error = 0;
    for (int b = 0; b < 3; b++) {
        size_t k = random_bits() % width, l = random_bits() % height;
        Number sum = 0, bin(out[k * height + l].x, out[k * height + l].y);
        for (size_t n = 0; n < width * height; n++) {
            size_t i = n / height, j = n % height;
            double turns = (double)(k * i % width) / width + (double)(l * j % height) / height;
            sum += Number(in[n].x, in[n].y) * std::polar(1.0, -2 * M_PI * turns);
        }
        printf("bin (%zu, %zu) = %.6g %+.6g i, by definition %.6g %+.6g i\n", k, l, bin.real(), bin.imag(),
               sum.real(), sum.imag());
        error += std::abs(bin - sum) / sqrt((double)width * height); // bins are as large as the input then
    }
    return check_value("error of the bins", error, 0, 3 * fft_limit((double)width * height));
}

static double length(const cufftComplex *x, size_t n) {
    double square = 0;
    for (size_t i = 0; i < n; i++)
        square += (double)x[i].x * x[i].x + (double)x[i].y * x[i].y;
    return sqrt(square);
}

static bool check_back(const cufftComplex *in, const cufftComplex *out) {
    const size_t n = (size_t)nx * ny;
    double worst = 0;
    for (size_t i = 0; i < 2 * n; i++)
        worst = fmax(worst, fabs((double)(&out[0].x)[i] - (&in[0].x)[i]));
    printf("Divided by %zu: the largest error is %.2g\n", n, worst);
    return check_floats("back", &out[0].x, 2 * n, 2 * fft_limit(n), [=](size_t i) { return (&in[0].x)[i]; });
}

// Task: main(): Allocate device memory for idata and odata, and copy `in` to idata. Create a plan for a
// two-dimensional complex-to-complex transform of nx x ny numbers, execute it forward from idata to odata,
// and copy the result to `out`. Then execute the inverse transform with the same plan, in place in odata, and
// copy the result to `out` again. Destroy the plan and free the memory. Each call of cuFFT is in
// HANDLE_CUFFT().
