// SPDX-License-Identifier: MIT
// The variants of fft_2d.cu: real numbers, a batch of rows, and one long row.
#ifndef CHAPTER12_FFT_VARIANTS_H
#define CHAPTER12_FFT_VARIANTS_H

#include "../common/timing.h"
#include "fft_check.h"

// ---------------------------------------------------------------------------------------- proof

// In the spectrum X of real numbers, bin (nx - k, ny - l) is the complex conjugate of bin (k, l). So a
// transform from real to complex stores bins 0 to ny / 2 of each row. The transform back may overwrite its
// input.
static inline int transform_real(int nx, int ny) {
    size_t n = (size_t)nx * ny, row = ny / 2 + 1;
    float *in = host_array<float>(n), *out = host_array<float>(n), *dev_in;
    cufftComplex *wide = host_array<cufftComplex>(n), *spectrum = host_array<cufftComplex>(nx * row),
                 *dev_spectrum;
    for (size_t i = 0; i < n; i++)
        wide[i] = make_cuComplex(in[i] = rnd(2) - 1, 0);
    HANDLE_ERROR(cudaMalloc(&dev_in, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_spectrum, nx * row * sizeof(cufftComplex)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, n * sizeof(float), cudaMemcpyHostToDevice));

    cufftHandle forward, back;
    HANDLE_CUFFT(cufftPlan2d(&forward, nx, ny, CUFFT_R2C));
    HANDLE_CUFFT(cufftPlan2d(&back, nx, ny, CUFFT_C2R));
    HANDLE_CUFFT(cufftExecR2C(forward, dev_in, dev_spectrum));
    HANDLE_ERROR(cudaMemcpy(spectrum, dev_spectrum, nx * row * sizeof(cufftComplex), cudaMemcpyDeviceToHost));
    HANDLE_CUFFT(cufftExecC2R(back, dev_spectrum, dev_in));
    HANDLE_ERROR(cudaMemcpy(out, dev_in, n * sizeof(float), cudaMemcpyDeviceToHost));
    printf("%d x %d real numbers have %d x %zu bins\n", nx, ny, nx, row);
    bool ok = check_bins(wide, spectrum, nx, ny, row);
    printf("Forward and back: %.6g times the input; NX * NY = %zu\n", factor_of(out, in, n), n);
    ok = check_back(out, in, n, n) && ok;

    HANDLE_CUFFT(cufftDestroy(forward));
    HANDLE_CUFFT(cufftDestroy(back));
    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_spectrum));
    free(in);
    free(out);
    free(wide);
    free(spectrum);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Transforms `rows` rows of `points` points forward and back, each row by itself.
struct Rows {
    size_t rows, points, n = rows * points, bytes = n * sizeof(cufftComplex);
    cufftComplex *in = host_array<cufftComplex>(n), *out = host_array<cufftComplex>(n), *dev_in, *dev_out;

    Rows(size_t rows, size_t points) : rows(rows), points(points) {
        for (size_t i = 0; i < n; i++)
            in[i].x = rnd(2) - 1, in[i].y = rnd(2) - 1;
        HANDLE_ERROR(cudaMalloc(&dev_in, bytes));
        HANDLE_ERROR(cudaMalloc(&dev_out, bytes));
        HANDLE_ERROR(cudaMemcpy(dev_in, in, bytes, cudaMemcpyHostToDevice));
    }
    ~Rows() {
        HANDLE_ERROR(cudaFree(dev_in));
        HANDLE_ERROR(cudaFree(dev_out));
        free(in);
        free(out);
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
        return check_back((float *)out, (float *)in, 2 * n, points) && ok;
    }
};

// A plan for a batch transforms all rows in one call. That is faster than a call for each row: a short row
// keeps only a small part of the device busy, and each call launches kernels of its own.
static inline int transform_batch(int rows, int points) {
    Rows all(rows, points);
    cufftHandle batch, single;
    HANDLE_CUFFT(cufftPlan1d(&batch, points, CUFFT_C2C, rows));
    HANDLE_CUFFT(cufftPlan1d(&single, points, CUFFT_C2C, 1));
    printf("%d rows of %d points, 5 n log2(n) operations per row\n", rows, points);
    all.time("row by row:", [&] {
        for (size_t r = 0; r < all.n; r += points)
            HANDLE_CUFFT(cufftExecC2C(single, all.dev_in + r, all.dev_out + r, CUFFT_FORWARD));
    });
    bool ok = all.check(batch);
    all.time("one call:", [&] { HANDLE_CUFFT(cufftExecC2C(batch, all.dev_in, all.dev_out, CUFFT_FORWARD)); });
    ok = all.check(batch) && ok;
    HANDLE_CUFFT(cufftDestroy(batch));
    HANDLE_CUFFT(cufftDestroy(single));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int transform_long(size_t points) {
    Rows row(1, points);
    cufftHandle plan;
    HANDLE_CUFFT(cufftPlan1d(&plan, points, CUFFT_C2C, 1));
    printf("one row of %zu points, 5 n log2(n) operations\n", points);
    row.time("forward:", [&] { HANDLE_CUFFT(cufftExecC2C(plan, row.dev_in, row.dev_out, CUFFT_FORWARD)); });
    bool ok = row.check(plan);
    HANDLE_CUFFT(cufftDestroy(plan));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
