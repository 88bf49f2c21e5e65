// SPDX-License-Identifier: MIT
/*
 * fft_batch: Fourier transforms of many rows, by one call and by one call for each row
 *
 * Teaches: A plan for a batch transforms many rows of the same length by one call. That is faster than a call
 *          for each row: a short row keeps only a small part of the device busy, and each call launches
 *          kernels of its own. A single long row keeps all of the device busy: --rows 1 --points 16M.
 * Terms:   cuFFT, Fourier transform, batch, plan, throughput
 * Book:    12.2.2 (after the book)
 * After:   chapter12/fft_2d
 * Build:   nvcc -o fft_batch chapter12/fft_batch.cu common/lib/[a-z]*.c -lcufft
 * Run:     ./bin/chapter12/fft_batch --rows 1000 --points 4096
 * Differs: --cpu compares with FFTW, a library of the host, if the build has it.
 * Needs:   libs=cufft
 * Check:   --rows 5 --points 32 | --rows 1 --points 1000
 */
#include "../common/book.h"
#include <cufft.h>
#include "libraries.h" // HANDLE_CUFFT()

static size_t rows = 256, points = 1024; // --rows, --points
static bool with_cpu;                    // --cpu
static int compare_with_cpu(void);
static void show(const char *what, float ms);
static bool check(const char *what, cufftComplex *out);

static size_t frequency(size_t row) {
    return (7 * row + 3) % points;
}

// Fills each row with a wave of its own frequency. Then one bin of its spectrum is not zero.
static void fill_rows(cufftComplex *in) {
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < points; i++) {
            double angle = 2 * M_PI * (frequency(row) * i % points) / points;
            in[row * points + i].x = cos(angle);
            in[row * points + i].y = sin(angle);
        }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (with_cpu)
        return compare_with_cpu();
    size_t n = rows * points, bytes = n * sizeof(cufftComplex);
    cufftComplex *in = (cufftComplex *)malloc(bytes), *out = (cufftComplex *)malloc(bytes);
    HANDLE_NULL(in && out);
    fill_rows(in);

    cufftComplex *idata, *odata;
    HANDLE_ERROR(cudaMalloc((void **)&idata, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&odata, bytes));
    HANDLE_ERROR(cudaMemcpy(idata, in, bytes, cudaMemcpyHostToDevice));

    cudaEvent_t start, stop;
    float ms;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));

    // The last argument of a plan for one dimension is the number of rows.
    cufftHandle single, batch;
    HANDLE_CUFFT(cufftPlan1d(&single, points, CUFFT_C2C, 1));
    HANDLE_CUFFT(cufftPlan1d(&batch, points, CUFFT_C2C, rows));

    for (int run = 0; run < 2; run++) { // the first run is a warm-up
        HANDLE_ERROR(cudaEventRecord(start));
        for (size_t row = 0; row < rows; row++)
            HANDLE_CUFFT(cufftExecC2C(single, idata + row * points, odata + row * points, CUFFT_FORWARD));
        HANDLE_ERROR(cudaEventRecord(stop));
    }
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
    show("row by row:", ms);
    HANDLE_ERROR(cudaMemcpy(out, odata, bytes, cudaMemcpyDeviceToHost));
    bool ok = check("row by row", out);

    HANDLE_ERROR(cudaMemset(odata, 0, bytes));
    for (int run = 0; run < 2; run++) {
        HANDLE_ERROR(cudaEventRecord(start));
        HANDLE_CUFFT(cufftExecC2C(batch, idata, odata, CUFFT_FORWARD));
        HANDLE_ERROR(cudaEventRecord(stop));
    }
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
    show("one call:", ms);
    HANDLE_ERROR(cudaMemcpy(out, odata, bytes, cudaMemcpyDeviceToHost));
    ok = check("one call", out) && ok;

    HANDLE_CUFFT(cufftDestroy(single));
    HANDLE_CUFFT(cufftDestroy(batch));
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(idata));
    HANDLE_ERROR(cudaFree(odata));
    free(in);
    free(out);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/runs.h" // compare_runs()
#ifdef HAVE_FFTW
#include <fftw3.h>
#endif

void settings(int argc, char **argv) {
    configure(argc, argv, "Fourier transforms of many rows by cuFFT.", TIMES,
              {OPTION_SIZE("rows", &rows, 1, 1 << 20, "rows to transform"),
               OPTION_SIZE("points", &points, 1, 1 << 27, "points of a row, such as 16M with --rows 1"),
               OPTION_FLAG("cpu", &with_cpu, WITH_CPU)});
    size_t bytes = rows * points * sizeof(cufftComplex);
    require_memory(6 * bytes, 4 * bytes); // cuFFT may need two arrays itself
    printf("%zu row%s of %zu points, 5 n log2(n) operations per row\n", rows, rows > 1 ? "s" : "", points);
}

static void show(const char *what, float ms) {
    printf("%-12s%.3f ms, %.1f GFLOP/s\n", what, ms, 5 * rows * points * log2(points) / ms / 1e6);
}

// The spectrum of a wave has one bin that is not zero: `points`, at its frequency. Spectra are scaled so that
// their root mean square is that of the input. Overwrites them, so that a later result must be new.
static bool check(const char *what, cufftComplex *out) {
    size_t n = rows * points;
    double scale = 1 / sqrt(points);
    for (size_t i = 0; i < n; i++)
        out[i] = make_cuComplex(out[i].x * scale, out[i].y * scale);
    bool ok = check_floats(what, &out[0].x, 2 * n, 2 * fft_limit(points), [=](size_t i) {
        return i % 2 == 0 && i / 2 % points == frequency(i / 2 / points) ? sqrt(points) : 0.0;
    });
    memset(out, 0xff, n * sizeof(cufftComplex));
    return ok;
}

static int compare_with_cpu(void) {
#ifndef HAVE_FFTW
    quit(EXIT_WAIVED, "--cpu needs FFTW, which this build lacks");
#else
    size_t n = rows * points;
    int length = points;
    HostArray<cufftComplex> in(n), out(n);
    fftwf_complex *from = (fftwf_complex *)+in, *to = (fftwf_complex *)+out;
    fftwf_plan host = fftwf_plan_many_dft(1, &length, rows, from, NULL, 1, length, to, NULL, 1, length,
                                          FFTW_FORWARD, FFTW_ESTIMATE);
    fill_rows(in); // after the plan, which may overwrite its arrays
    cufftHandle plan;
    HANDLE_CUFFT(cufftPlan1d(&plan, points, CUFFT_C2C, rows));
    auto device = [&] {
        DeviceArray<cufftComplex> data(in, n);
        HANDLE_CUFFT(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
        HANDLE_ERROR(cudaMemcpy(out, data, n * sizeof(cufftComplex), cudaMemcpyDeviceToHost));
    };
    int status = compare_runs(
        "FFTW on one core; both plans are made before", device, [&] { fftwf_execute(host); },
        [&] { return check("spectrum", out); });
    fftwf_destroy_plan(host);
    HANDLE_CUFFT(cufftDestroy(plan));
    return status;
#endif
}

// Task: none: main times two ways to call cuFFT; the exercise with its calls is chapter12/fft_2d
