// SPDX-License-Identifier: MIT
/*
 * fft_2d: a two-dimensional Fourier transform and its inverse by cuFFT
 *
 * Teaches: cuFFT computes discrete Fourier transforms. A plan holds the size, the type of the numbers and the
 *          memory that the transform needs; it is made once and executed for any arrays. The transforms are
 *          not scaled: forward and back gives the input times the number of points. Real input has a
 *          symmetric spectrum, of which cuFFT stores half.
 * Terms:   cuFFT, Fourier transform, plan, in place, batch
 * Book:    12.2.2
 * Run:     ./bin/chapter12/fft_2d --real
 * Differs: the result is divided by the number of points and compared with the input. Some bins of the
 *          spectrum are compared with the sum that defines them, and an impulse must have a flat spectrum.
 *          Options transform real numbers, many rows with one plan, and one long row.
 * Needs:   libs=cufft
 * Check:   --nx 12 --ny 20 | --batch 5 --ny 32 | --real --nx 8 --ny 9
 */
#include "../common/book.h"
#include <cufft.h>
#include "libraries.h"
#include "fft_check.h" // check_bins(), check_back(), check_impulses()

#define NX 256
#define NY 128

static int nx = NX, ny = NY; // --nx, --ny

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

// ---------------------------------------------------------------------------------------- proof

#include "fft_variants.h" // what the options vary

void settings(int argc, char **argv) {
    const int largest = 16384;
    int batch = 0;
    bool real = false;
    size_t points = 0;
    const Option own[] = {
        OPTION_INT("nx", &nx, 1, largest, "points of the first dimension"),
        OPTION_INT("ny", &ny, 1, largest, "points of the second, contiguous dimension"),
        OPTION_INT("batch", &batch, 1, 1 << 20,
                   "transforms so many rows of NY points, with one call and one by one"),
        OPTION_FLAG("real", &real, "transforms real numbers, which have half the spectrum"),
        OPTION_SIZE("long", &points, 2, 1 << 27, "transforms one row of so many points, such as 16M"),
        OPTION_END};
    parse_options(argc, argv, "Fourier transforms by cuFFT, forward and back.", 0, own);
    if ((batch > 0) + real + (points > 0) > 1)
        quit(EXIT_USAGE, "only one of --batch, --real and --long");
    options.uses |= batch > 0 || points > 0 ? TIMES : 0;
    select_device();
    size_t n = points > 0 ? points : (size_t)(batch > 0 ? batch : nx) * ny;
    require_memory(4 * n * sizeof(cufftComplex),
                   4 * n * sizeof(cufftComplex)); // cuFFT may need two arrays itself
    if (real)
        exit(transform_real(nx, ny));
    if (batch > 0)
        exit(transform_batch(batch, ny));
    if (points > 0)
        exit(transform_long(points));
}

// Task: main(): Allocate device memory for idata and odata, and copy `in` to idata. Create a plan for a
// two-dimensional complex-to-complex transform of nx x ny numbers, execute it forward from idata to odata,
// and copy the result to `out`. Then execute the inverse transform with the same plan, in place in odata, and
// copy the result to `out` again. Destroy the plan and free the memory. Each call of cuFFT is in
// HANDLE_CUFFT().
