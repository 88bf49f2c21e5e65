// SPDX-License-Identifier: MIT
/*
 * fft_2d: a two-dimensional Fourier transform and its inverse by cuFFT
 *
 * Teaches: cuFFT computes discrete Fourier transforms by a plan, which holds the size, the type of the
 *          numbers and the memory that the transform needs; it is made once and executed for any arrays. The
 *          transforms are not scaled: forward and back gives the input times the number of points. Real
 *          input has a symmetric spectrum, of which cuFFT stores half.
 * Terms:   cuFFT, Fourier transform, plan, in place, batch
 * Book:    12.2.2 (lab)
 * Build:   nvcc -o fft_2d chapter12/fft_2d.cu common/lib/[a-z]*.c -lcufft
 * Run:     ./bin/chapter12/fft_2d --real
 * Differs: the result is divided by the number of points and compared with the input, and some bins with the
 *          sum that defines them; an impulse must have a flat spectrum. Options transform real numbers, many
 *          rows with one plan, one long row, a volume; --cpu compares with FFTW.
 * Needs:   libs=cufft
 * Check:   --nx 12 --ny 20 | --batch 5 --ny 32 | --real --nx 8 --ny 9 | --nx 6 --ny 7 --nz 5
 */
#include "../common/book.h"
#include "../common/checks/runs.h"
#include "../common/timing.h"
#include <cufft.h>
#include "libraries.h"
#ifdef HAVE_FFTW
#include <fftw3.h>
#endif

#define NX 256
#define NY 128

static int nx = NX, ny = NY; // --nx, --ny
static bool check_bins(const cufftComplex *in, const cufftComplex *spectrum, size_t nx, size_t ny,
                       size_t row);
static double factor_of(const float *out, const float *in, size_t n);
static bool check_back(float *out, const float *in, size_t n, size_t points);
static bool check_impulses(cufftHandle plan, cufftComplex *idata, cufftComplex *odata, size_t nx, size_t ny);

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t n = (size_t)nx * ny, bytes = n * sizeof(cufftComplex);
    cufftComplex *in = host_array<cufftComplex>(n), *out = host_array<cufftComplex>(n);
    for (size_t i = 0; i < n; i++)
        in[i].x = rnd(2) - 1, in[i].y = rnd(2) - 1;

    cufftComplex *idata, *odata;
    HANDLE_ERROR(cudaMalloc(&idata, bytes));
    HANDLE_ERROR(cudaMalloc(&odata, bytes));
    HANDLE_ERROR(cudaMemcpy(idata, in, bytes, cudaMemcpyHostToDevice));

    // Element (i, j) is idata[i * ny + j]: the last dimension is contiguous.
    cufftHandle plan;
    HANDLE_CUFFT(cufftPlan2d(&plan, nx, ny, CUFFT_C2C));

    // Forward, out of place
    HANDLE_CUFFT(cufftExecC2C(plan, idata, odata, CUFFT_FORWARD));
    HANDLE_ERROR(cudaMemcpy(out, odata, bytes, cudaMemcpyDeviceToHost));
    bool ok = check_bins(in, out, nx, ny, ny);

    // Back, in place: the same array is input and output.
    HANDLE_CUFFT(cufftExecC2C(plan, odata, odata, CUFFT_INVERSE));
    HANDLE_ERROR(cudaMemcpy(out, odata, bytes, cudaMemcpyDeviceToHost));
    printf("Forward and back: %.6g times the input; NX * NY = %zu\n",
           factor_of((float *)out, (float *)in, 2 * n), n);
    ok = check_back((float *)out, (float *)in, 2 * n, n) && ok;
    ok = check_impulses(plan, idata, odata, nx, ny) && ok;

    HANDLE_CUFFT(cufftDestroy(plan));
    HANDLE_ERROR(cudaFree(idata));
    HANDLE_ERROR(cudaFree(odata));
    free(in);
    free(out);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// exp(-2 pi i (k i / nx + l j / ny)). The products are reduced first, in integers, so that large ones lose
// nothing.
static void root_of_unity(size_t ki, size_t nx, size_t lj, size_t ny, double *re, double *im) {
    double turns = (double)(ki % nx) / nx + (double)(lj % ny) / ny;
    *re = cos(2 * M_PI * turns);
    *im = -sin(2 * M_PI * turns);
}

// Compares some random bins of the spectrum with the definition, in double. The spectrum has nx rows of `row`
// bins: ny, or ny / 2 + 1 for real input.
static bool check_bins(const cufftComplex *in, const cufftComplex *spectrum, size_t nx, size_t ny,
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
static double factor_of(const float *out, const float *in, size_t n) {
    double product = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        product += (double)out[i] * in[i];
        square += (double)in[i] * in[i];
    }
    return product / square;
}

// Divides `out` by the number of points and compares it with the input.
static bool check_back(float *out, const float *in, size_t n, size_t points) {
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        out[i] /= points;
        worst = fmax(worst, fabs((double)out[i] - in[i]));
    }
    printf("Divided by %zu: the largest error is %.2g\n", points, worst);
    return check_floats("back", out, n, 2 * fft_limit(points), [=](size_t i) { return in[i]; });
}

// An impulse, one number among zeros, contains all frequencies in equal parts. If it is at (0, 0), every bin
// is 1. If it is at (a, b), bin (k, l) is exp(-2 pi i (k a / nx + l b / ny)): the phase changes, the
// magnitude does not.
static bool check_impulses(cufftHandle plan, cufftComplex *idata, cufftComplex *odata, size_t nx, size_t ny) {
    size_t n = nx * ny, place[] = {0, random_bits() % nx * ny + random_bits() % ny};
    cufftComplex one = make_cuComplex(1, 0);
    HostArray<cufftComplex> out(n);
    HostArray<double> expected(2 * n);
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
        ok = check_floats("impulse", (float *)+out, expected, 2 * n, fft_limit(n)) && ok;
    }
    return ok;
}

// ---- what the options vary: real numbers, a batch of rows, and one long row

// In the spectrum X of real numbers, bin (nx - k, ny - l) is the complex conjugate of bin (k, l). So a
// transform from real to complex stores bins 0 to ny / 2 of each row. The transform back may overwrite its
// input.
static int transform_real(int nx, int ny) {
    size_t n = (size_t)nx * ny, row = ny / 2 + 1;
    HostArray<float> in(n);
    HostArray<cufftComplex> wide(n);
    for (size_t i = 0; i < n; i++)
        wide[i] = make_cuComplex(in[i] = rnd(2) - 1, 0);
    DeviceArray<float> dev_in(in, n);
    DeviceArray<cufftComplex> dev_spectrum(nx * row);

    cufftHandle forward, back;
    HANDLE_CUFFT(cufftPlan2d(&forward, nx, ny, CUFFT_R2C));
    HANDLE_CUFFT(cufftPlan2d(&back, nx, ny, CUFFT_C2R));
    HANDLE_CUFFT(cufftExecR2C(forward, dev_in, dev_spectrum));
    HostArray<cufftComplex> spectrum(dev_spectrum, nx * row);
    HANDLE_CUFFT(cufftExecC2R(back, dev_spectrum, dev_in));
    HostArray<float> out(dev_in, n);
    printf("%d x %d real numbers have %d x %zu bins\n", nx, ny, nx, row);
    bool ok = check_bins(wide, spectrum, nx, ny, row);
    printf("Forward and back: %.6g times the input; NX * NY = %zu\n", factor_of(out, in, n), n);
    ok = check_back(out, in, n, n) && ok;

    HANDLE_CUFFT(cufftDestroy(forward));
    HANDLE_CUFFT(cufftDestroy(back));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Transforms `rows` rows of `points` points forward and back, each row by itself.
struct Rows {
    size_t rows, points, n = rows * points, bytes = n * sizeof(cufftComplex);
    HostArray<cufftComplex> in{n}, out{n};
    DeviceArray<cufftComplex> dev_in{n}, dev_out{n};

    Rows(size_t rows, size_t points) : rows(rows), points(points) {
        for (size_t i = 0; i < n; i++)
            in[i].x = rnd(2) - 1, in[i].y = rnd(2) - 1;
        HANDLE_ERROR(cudaMemcpy(dev_in, in, bytes, cudaMemcpyHostToDevice));
    }
    // Prints the time of the forward transforms, which `forward` computes from dev_in to dev_out.
    template <class Forward> void time(const char *what, Forward forward) {
        float ms = median_ms(forward);
        printf("%-12s%.3f ms, %.1f GFLOP/s\n", what, ms, 5 * n * log2(points) / ms / 1e6);
    }
    // Checks dev_out. Some bins are compared with their definition, in the first and in the last row.
    bool check(cufftHandle plan) {
        HANDLE_ERROR(cudaMemcpy(out, dev_out, bytes, cudaMemcpyDeviceToHost));
        bool ok = check_bins(in, out, 1, points, points);
        if (rows > 1)
            ok = check_bins(in + n - points, out + n - points, 1, points, points) && ok;
        HANDLE_CUFFT(cufftExecC2C(plan, dev_out, dev_out, CUFFT_INVERSE));
        HANDLE_ERROR(cudaMemcpy(out, dev_out, bytes, cudaMemcpyDeviceToHost));
        return check_back((float *)+out, (float *)+in, 2 * n, points) && ok;
    }
};

// A plan for a batch transforms all rows in one call. That is faster than a call for each row: a short row
// keeps only a small part of the device busy, and each call launches kernels of its own. A long row keeps all
// of it busy: --long.
static int transform_batch(int rows, int points) {
    Rows all(rows, points);
    cufftHandle batch, single;
    HANDLE_CUFFT(cufftPlan1d(&batch, points, CUFFT_C2C, rows));
    HANDLE_CUFFT(cufftPlan1d(&single, points, CUFFT_C2C, 1));
    printf("%d row%s of %d points, 5 n log2(n) operations per row\n", rows, rows > 1 ? "s" : "", points);
    bool ok = true;
    if (rows > 1) {
        all.time("row by row:", [&] {
            for (size_t r = 0; r < all.n; r += points)
                HANDLE_CUFFT(cufftExecC2C(single, all.dev_in + r, all.dev_out + r, CUFFT_FORWARD));
        });
        ok = all.check(batch);
    }
    all.time("one call:", [&] { HANDLE_CUFFT(cufftExecC2C(batch, all.dev_in, all.dev_out, CUFFT_FORWARD)); });
    ok = all.check(batch) && ok;
    HANDLE_CUFFT(cufftDestroy(batch));
    HANDLE_CUFFT(cufftDestroy(single));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// --cpu. The spectrum of a first transform is compared with the definition, and those of all runs with it.
static int compare_with_cpu(void) {
#ifndef HAVE_FFTW
    quit(EXIT_WAIVED, "--cpu needs FFTW, which this build lacks");
#else
    size_t n = (size_t)nx * ny, bytes = n * sizeof(cufftComplex);
    Rows all(nx, ny);
    HostArray<cufftComplex> out(n);
    fftwf_plan host = fftwf_plan_dft_2d(nx, ny, (fftwf_complex *)+all.in, (fftwf_complex *)+out, FFTW_FORWARD,
                                        FFTW_ESTIMATE);
    cufftHandle plan;
    HANDLE_CUFFT(cufftPlan2d(&plan, nx, ny, CUFFT_C2C));
    HANDLE_CUFFT(cufftExecC2C(plan, all.dev_in, all.dev_out, CUFFT_FORWARD));
    HANDLE_ERROR(cudaMemcpy(all.out, all.dev_out, bytes, cudaMemcpyDeviceToHost));
    bool ok = check_bins(all.in, all.out, nx, ny, ny);
    auto device = [&] {
        DeviceArray<cufftComplex> dev_in(all.in, n), dev_out(n);
        HANDLE_CUFFT(cufftExecC2C(plan, dev_in, dev_out, CUFFT_FORWARD));
        HANDLE_ERROR(cudaMemcpy(out, dev_out, bytes, cudaMemcpyDeviceToHost));
    };
    auto check = [&] {
        const float *expected = (float *)+all.out, scale = 1 / sqrtf(n);
        for (size_t i = 0; i < n; i++)
            out[i].x *= scale, out[i].y *= scale;
        bool ok = check_floats("spectrum", (float *)+out, 2 * n, 2 * fft_limit(n),
                               [=](size_t i) { return expected[i] * scale; });
        memset(out, 0xff, bytes);
        return ok;
    };
    const char *how = "FFTW on one core; both plans are made before";
    int status = compare_runs(
        how, device, [&] { fftwf_execute(host); }, check);
    fftwf_destroy_plan(host);
    HANDLE_CUFFT(cufftDestroy(plan));
    return ok ? status : EXIT_FAILURE;
#endif
}

// Three dimensions: element (i, j, k) is number (i ny + j) nz + k. The input is an impulse at (a, b, c), so
// bin (k, l, m) is exp(-2 pi i (k a / nx + l b / ny + m c / nz)).
static int transform_volume(size_t nz) {
    size_t n = nx * ny * nz, a = random_bits() % nx, b = random_bits() % ny, c = random_bits() % nz;
    HostArray<cufftComplex> in(n, {0, 0});
    in[(a * ny + b) * nz + c].x = 1;
    DeviceArray<cufftComplex> data(in, n);
    cufftHandle plan;
    HANDLE_CUFFT(cufftPlan3d(&plan, nx, ny, nz, CUFFT_C2C));
    HANDLE_CUFFT(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
    HostArray<cufftComplex> out(data, n);
    bool ok = check_floats("bin", &out[0].x, 2 * n, fft_limit(n), [=](size_t i) {
        double turns = (double)(i / 2 % nz * c % nz) / nz, re, im;
        root_of_unity(i / 2 / nz / ny * a, nx, i / 2 / nz % ny * b, ny, &re, &im);
        return i % 2 ? im * cos(2 * M_PI * turns) - re * sin(2 * M_PI * turns)
                     : re * cos(2 * M_PI * turns) + im * sin(2 * M_PI * turns);
    });
    HANDLE_CUFFT(cufftExecC2C(plan, data, data, CUFFT_INVERSE));
    HANDLE_CUFFT(cufftDestroy(plan));
    ok = check_back(&HostArray<cufftComplex>(data, n)[0].x, &in[0].x, 2 * n, n) && ok;
    printf("%d x %d x %zu bins of an impulse\n", nx, ny, nz);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

void settings(int argc, char **argv) {
    const int largest = 16384;
    int batch = 0;
    bool real = false, with_cpu = false;
    size_t points = 0, nz = 0;
    parse_options(
        argc, argv, "Fourier transforms by cuFFT, forward and back.", 0,
        {OPTION_INT("nx", &nx, 1, largest, "points of the first dimension"),
         OPTION_INT("ny", &ny, 1, largest, "points of the second, contiguous dimension"),
         OPTION_SIZE("nz", &nz, 1, largest, "a third dimension, which is then the contiguous one"),
         OPTION_INT("batch", &batch, 1, 1 << 20,
                    "transforms so many rows of NY points, with one call and one by one"),
         OPTION_FLAG("real", &real, "transforms real numbers, which have half the spectrum"),
         OPTION_FLAG("cpu", &with_cpu, WITH_CPU),
         OPTION_SIZE("long", &points, 2, 1 << 27, "transforms one row of so many points, such as 16M")});
    if ((batch > 0) + real + (points > 0) + (nz > 0) + with_cpu > 1)
        quit(EXIT_USAGE, "only one of --batch, --real, --long, --nz and --cpu");
    options.uses |= batch > 0 || points > 0 || with_cpu ? TIMES : 0;
    select_device();
    size_t n = points > 0 ? points : (size_t)(batch > 0 ? batch : nx) * ny * max_of(nz, 1);
    require_memory(4 * n * sizeof(cufftComplex),
                   4 * n * sizeof(cufftComplex)); // cuFFT may need two arrays itself
    if (real)
        exit(transform_real(nx, ny));
    if (with_cpu)
        exit(compare_with_cpu());
    if (batch > 0)
        exit(transform_batch(batch, ny));
    if (points > 0)
        exit(transform_batch(1, points));
    if (nz > 0)
        exit(transform_volume(nz));
}

// Task: main(): Allocate device memory for idata and odata, and copy `in` to idata. Create a plan for a
// two-dimensional complex-to-complex transform of nx x ny numbers, execute it forward from idata to odata,
// and copy the result to `out`. Then execute the inverse transform with the same plan, in place in odata, and
// copy the result to `out` again. Destroy the plan and free the memory. Each call of cuFFT is in
// HANDLE_CUFFT().
