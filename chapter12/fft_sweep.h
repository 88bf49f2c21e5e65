// SPDX-License-Identifier: MIT
// Of fft_convolution.cu: --sweep, the time of a blur by Fourier transforms and by direct sums for several
// radii, and the check of its kernel multiply().
#ifndef CHAPTER12_FFT_SWEEP_H
#define CHAPTER12_FFT_SWEEP_H

#include <complex>
#include "../common/timing.h"

// ---------------------------------------------------------------------------------------- proof

// The transform of a symmetric filter has no imaginary parts, so the kernel is tried with random numbers too.
static bool check_multiply(void) {
    const size_t n = 1000;
    cufftComplex numbers[2 * n], got[n], *dev;
    std::complex<double> expected[n];
    random_floats((float *)numbers, 4 * n, 1);
    for (size_t i = 0; i < n; i++)
        expected[i] = std::complex<double>(numbers[i].x, numbers[i].y) *
                      std::complex<double>(numbers[n + i].x, numbers[n + i].y);
    HANDLE_ERROR(cudaMalloc(&dev, sizeof(numbers)));
    HANDLE_ERROR(cudaMemcpy(dev, numbers, sizeof(numbers), cudaMemcpyHostToDevice));
    multiply<<<(n + 255) / 256, 256>>>(dev, dev + n, n, 1);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev));
    return check_floats("product", (float *)got, (double *)expected, 2 * n, 3e-7);
}

// Direct convolution, one thread per pixel: the mean of the pixels in a disc around it. Pixels outside the
// picture count as zero.
__global__ void add_directly(float *out, const float *picture, int size, int radius) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y, weights = 0;
    if (x >= size || y >= size)
        return;
    float sum = 0;
    for (int dy = -radius; dy <= radius; dy++)
        for (int dx = -radius; dx <= radius; dx++)
            if (dx * dx + dy * dy <= radius * radius) {
                weights++;
                if (x + dx >= 0 && x + dx < size && y + dy >= 0 && y + dy < size)
                    sum += picture[x + dx + (size_t)(y + dy) * size];
            }
    out[x + (size_t)y * size] = sum / weights;
}

// The largest difference of the two results, in greys, at the same place of arrays with different row lengths
static inline float largest_difference(const float *direct, const float *padded_rows, int size, int padded) {
    float *a = host_array<float>((size_t)size * size), *b = host_array<float>((size_t)padded * size),
          worst = 0;
    HANDLE_ERROR(cudaMemcpy(a, direct, (size_t)size * size * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(b, padded_rows, (size_t)padded * size * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            float difference = fabsf(a[x + (size_t)y * size] - b[x + (size_t)y * padded]);
            if (!(difference <= worst))
                worst = difference;
        }
    free(a);
    free(b);
    return worst;
}

static inline int sweep(int size) {
    const int radii[] = {1, 2, 4, 8, 16, 32};
    bool ok = true;
    wrap = 0;
    printf("%6s %8s %12s %12s\n", "radius", "weights", "direct sum", "transforms");
    for (int r : radii) {
        radius = r;
        int padded = size + r, weights = 0;
        size_t n = (size_t)padded * padded, bins = (size_t)padded * (padded / 2 + 1);
        float *filter = host_array<float>(n), *dev_sharp, *dev_picture, *dev_filter, *dev_direct;
        cufftComplex *picture_bins, *filter_bins;
        cufftHandle forward, back;
        fill_filter(filter, padded);
        for (size_t i = 0; i < n; i++)
            weights += filter[i] > 0;
        HANDLE_ERROR(cudaMalloc(&dev_sharp, (size_t)size * size * sizeof(float)));
        HANDLE_ERROR(cudaMalloc(&dev_direct, (size_t)size * size * sizeof(float)));
        HANDLE_ERROR(cudaMalloc(&dev_picture, n * sizeof(float)));
        HANDLE_ERROR(cudaMalloc(&dev_filter, n * sizeof(float)));
        HANDLE_ERROR(cudaMalloc(&picture_bins, bins * sizeof(cufftComplex)));
        HANDLE_ERROR(cudaMalloc(&filter_bins, bins * sizeof(cufftComplex)));
        HANDLE_ERROR(cudaMemcpy(dev_filter, filter, n * sizeof(float), cudaMemcpyHostToDevice));
        dim3 blocks((padded + 15) / 16, (padded + 15) / 16), threads(16, 16);
        draw<<<blocks, threads>>>(dev_sharp, size, size);
        HANDLE_LAUNCH();
        HANDLE_CUFFT(cufftPlan2d(&forward, padded, padded, CUFFT_R2C));
        HANDLE_CUFFT(cufftPlan2d(&back, padded, padded, CUFFT_C2R));
        HANDLE_CUFFT(cufftExecR2C(forward, dev_filter, filter_bins)); // once for all pictures

        float direct = median_ms([&] { add_directly<<<blocks, threads>>>(dev_direct, dev_sharp, size, r); });
        float by_transforms = median_ms(
            [&] {
                HANDLE_CUFFT(cufftExecR2C(forward, dev_picture, picture_bins));
                multiply<<<(bins + 255) / 256, 256>>>(picture_bins, filter_bins, bins, 1.0f / n);
                HANDLE_CUFFT(cufftExecC2R(back, picture_bins, dev_picture));
            },
            [&] {
                draw<<<blocks, threads>>>(dev_picture, size, padded);
                HANDLE_LAUNCH();
            });
        printf("%6d %8d %9.3f ms %9.3f ms\n", r, weights, direct, by_transforms);
        ok = check_value("direct sum and transforms",
                         largest_difference(dev_direct, dev_picture, size, padded), 0,
                         255 * 4 * fft_limit(n) + 0.01) &&
             ok;

        HANDLE_CUFFT(cufftDestroy(forward));
        HANDLE_CUFFT(cufftDestroy(back));
        HANDLE_ERROR(cudaFree(dev_sharp));
        HANDLE_ERROR(cudaFree(dev_direct));
        HANDLE_ERROR(cudaFree(dev_picture));
        HANDLE_ERROR(cudaFree(dev_filter));
        HANDLE_ERROR(cudaFree(picture_bins));
        HANDLE_ERROR(cudaFree(filter_bins));
        free(filter);
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
