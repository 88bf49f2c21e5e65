// SPDX-License-Identifier: MIT
/*
 * fft_convolution: a picture out of focus, by Fourier transforms
 *
 * Teaches: In a convolution each pixel becomes a weighted sum of its neighbours; the Fourier transform turns
 *          it into a product of picture and filter, bin by bin. The number of operations hardly depends on
 *          the size of the filter, while a direct sum needs a product per weight of the filter and pixel.
 *          Transforms repeat the picture in all directions, so pixels at one edge are blurred into the
 *          opposite edge. Zeros beside the picture, as wide as the radius, prevent this.
 * Terms:   convolution, Fourier transform, cuFFT, zero padding
 * Book:    12.2.2 (course); T FFT (used for a filter)
 * Build:   nvcc -o fft_convolution chapter12/fft_convolution.cu common/lib/[a-z]*.c -lcufft
 * Run:     ./bin/chapter12/fft_convolution --radius 20 --output blur.png
 * Differs: the left half of the picture shows the input.
 * Needs:   libs=cufft
 * Picture: yes
 * Check:   --size 100 --radius 5 | --size 64 --border wrap
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include <cufft.h>
#include "libraries.h" // HANDLE_CUFFT()

#define DIM 512

static size_t size = DIM; // --size
static int radius = 8;    // --radius
static int wrap = 0;      // --border zero|wrap
static bool check(const float *blurred, size_t padded, const unsigned char *pixels);

// Grey from 0 to 255: discs, and a bar at the bottom
__host__ __device__ float scene(int x, int y, int size) {
    int dx = 512 * x / size % 64 - 32, dy = 512 * y / size % 64 - 32;
    return dx * dx + dy * dy < 20 * 20 || 16 * y < size ? 255 : 0;
}

// The picture in the lower left corner of padded x padded numbers, and zeros
__global__ void draw(float *picture, int size, int padded) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < padded && y < padded)
        picture[x + (size_t)y * padded] = x < size && y < size ? scene(x, y, size) : 0;
}

// a = scale a b, of complex numbers
__global__ void multiply(cufftComplex *a, const cufftComplex *b, size_t n, float scale) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n)
        a[i] = make_cuComplex(scale * (a[i].x * b[i].x - a[i].y * b[i].y),
                              scale * (a[i].x * b[i].y + a[i].y * b[i].x));
}

__global__ void to_pixels(unsigned char *ptr, const float *blurred, int size, int padded) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float grey = 2 * x < size ? scene(x, y, size) : blurred[x + (size_t)y * padded];
    unsigned char *pixel = ptr + 4 * (x + (size_t)y * size);
    pixel[0] = pixel[1] = pixel[2] = (unsigned char)(grey + 0.5f);
    pixel[3] = 255;
}

// The filter: equal weights in a disc around element (0, 0). Coordinates below 0 are at the end of the array.
static void fill_filter(float *filter, int padded) {
    memset(filter, 0, (size_t)padded * padded * sizeof(float));
    int weights = 0; // elements in the disc
    for (int dy = -radius; dy <= radius; dy++)
        for (int dx = -radius; dx <= radius; dx++)
            weights += dx * dx + dy * dy <= radius * radius;
    for (int dy = -radius; dy <= radius; dy++)
        for (int dx = -radius; dx <= radius; dx++)
            if (dx * dx + dy * dy <= radius * radius) {
                int x = (dx % padded + padded) % padded, y = (dy % padded + padded) % padded;
                filter[x + (size_t)y * padded] += 1.0f / weights;
            }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int padded = wrap ? size : size + radius;
    // Of a row of real numbers the bins 0 to padded / 2 are stored; the others are their complex conjugates.
    size_t n = (size_t)padded * padded, bins = (size_t)padded * (padded / 2 + 1);
    CPUBitmap bitmap(size, size);
    float *filter = (float *)malloc(n * sizeof(float)), *blurred = (float *)malloc(n * sizeof(float));
    HANDLE_NULL(filter && blurred);
    fill_filter(filter, padded);

    unsigned char *dev_bitmap;
    float *dev_picture, *dev_filter;
    cufftComplex *picture_bins, *filter_bins;
    HANDLE_ERROR(cudaMalloc((void **)&dev_bitmap, bitmap.image_size()));
    HANDLE_ERROR(cudaMalloc((void **)&dev_picture, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_filter, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&picture_bins, bins * sizeof(cufftComplex)));
    HANDLE_ERROR(cudaMalloc((void **)&filter_bins, bins * sizeof(cufftComplex)));
    HANDLE_ERROR(cudaMemcpy(dev_filter, filter, n * sizeof(float), cudaMemcpyHostToDevice));
    dim3 blocks((padded + 15) / 16, (padded + 15) / 16), threads(16, 16);
    draw<<<blocks, threads>>>(dev_picture, size, padded);
    HANDLE_LAUNCH();

    // R2C: real to complex, C2R: complex to real
    cufftHandle forward, back;
    HANDLE_CUFFT(cufftPlan2d(&forward, padded, padded, CUFFT_R2C));
    HANDLE_CUFFT(cufftPlan2d(&back, padded, padded, CUFFT_C2R));
    HANDLE_CUFFT(cufftExecR2C(forward, dev_picture, picture_bins));
    HANDLE_CUFFT(cufftExecR2C(forward, dev_filter, filter_bins));
    // Forward and back gives n times the picture, so the product is divided by n.
    multiply<<<(bins + 255) / 256, 256>>>(picture_bins, filter_bins, bins, 1.0f / n);
    HANDLE_LAUNCH();
    HANDLE_CUFFT(cufftExecC2R(back, picture_bins, dev_picture));
    to_pixels<<<blocks, threads>>>(dev_bitmap, dev_picture, size, padded);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(blurred, dev_picture, n * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));
    printf("Transforms of %d x %d numbers for a picture of %zu x %zu\n", padded, padded, size, size);
    bool ok = check(blurred, padded, bitmap.get_ptr());
    bitmap.display_and_exit();

    HANDLE_CUFFT(cufftDestroy(forward));
    HANDLE_CUFFT(cufftDestroy(back));
    HANDLE_ERROR(cudaFree(dev_bitmap));
    HANDLE_ERROR(cudaFree(dev_picture));
    HANDLE_ERROR(cudaFree(dev_filter));
    HANDLE_ERROR(cudaFree(picture_bins));
    HANDLE_ERROR(cudaFree(filter_bins));
    free(filter);
    free(blurred);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include <complex>

// The transform of a symmetric filter has no imaginary parts, so the kernel is tried with random numbers too.
static bool check_multiply(void) {
    const size_t n = 1000;
    cufftComplex numbers[2 * n];
    std::complex<double> expected[n];
    random_floats((float *)numbers, 4 * n, 1);
    for (size_t i = 0; i < n; i++)
        expected[i] = std::complex<double>(numbers[i].x, numbers[i].y) *
                      std::complex<double>(numbers[n + i].x, numbers[n + i].y);
    DeviceArray<cufftComplex> dev(numbers, 2 * n);
    multiply<<<(n + 255) / 256, 256>>>(dev, dev + n, n, 1);
    HANDLE_LAUNCH();
    return check_floats("product", HostArray<float>((float *)+dev, 2 * n), (double *)expected, 2 * n, 3e-7);
}

void settings(int argc, char **argv) {
    configure(argc, argv, "Blurs a picture by Fourier transforms.", PICTURE,
              {OPTION_SIZE("size", &size, 1, 8192, "pixels a side"),
               OPTION_INT("radius", &radius, 0, 1000, "radius of the filter, a disc"),
               OPTION_WORD("border", &wrap, "zero|wrap", "beside the picture: zeros, or its other side")});
    size_t n = (size + radius) * (size + radius);
    require_memory((2 * sizeof(float) + 4) * n, 6 * sizeof(float) * n); // with work areas of cuFFT
}

// The direct sum, in whole numbers: all values are 0 or 255. A row of the disc covers neighbouring pixels,
// whose sum is the difference of two sums from the left edge on.
static bool check(const float *blurred, size_t padded, const unsigned char *pixels) {
    int r = radius, side = size, width = side + 2 * r + 1;
    auto grey_of = [=](int x, int y) { // discs with a radius of 20 in squares of 64, as if `size` were 512
        bool disc = hypot(512 * x / side % 64 - 32, 512 * y / side % 64 - 32) < 20;
        return disc || y < side / 16.0 ? 255 : 0;
    };
    HostArray<long> prefix((size_t)side * width); // of row y, from x = -r on
    for (int y = 0; y < side; y++)
        for (int i = 0; i < width; i++) {
            int x = i - 1 - r, inside = (x % side + side) % side;
            prefix[i + (size_t)y * width] =
                i == 0 ? 0
                       : prefix[i - 1 + (size_t)y * width] + (x == inside || wrap ? grey_of(inside, y) : 0);
        }
    HostArray<double> expected(size * size);
    HostArray<float> got(size * size);
    HostArray<int> colors(size * size); // of the pixels, 4 bytes each
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            long sum = 0, weights = 0;
            for (int dy = -r; dy <= r; dy++) {
                int half = (int)sqrt((double)r * r - dy * dy), row = ((y + dy) % side + side) % side;
                weights += 2 * half + 1;
                if (row == y + dy || wrap)
                    sum += prefix[x + r + half + 1 + (size_t)row * width] -
                           prefix[x + r - half + (size_t)row * width];
            }
            expected[x + y * size] = (double)sum / weights / 255;
            got[x + y * size] = blurred[x + y * padded] / 255;
            unsigned char grey = (2 * x < side ? grey_of(x, y) : blurred[x + y * padded]) + 0.5f;
            colors[x + y * size] = (int)(0xff000000 | grey * 0x010101);
        }
    return check_multiply() &&
           check_floats("blurred", got, expected, size * size, 4 * fft_limit((double)padded * padded)) &&
           check_ints("pixel", (const int *)pixels, colors, size * size);
}

// Task: draw(): One thread per element of the row-major array `picture` of padded x padded floats, in which
// element (x, y) is picture[x + y * padded]. Elements with x and y below size are scene(x, y, size); the
// others are zero padding. Threads beyond the array do nothing.
// multiply(): One thread per element: if its global index i is below n, a[i] becomes scale times the product
// of the complex numbers a[i] and b[i].
// to_pixels(): One thread per pixel of size x size pixels; threads beyond the edges do nothing. The grey
// value is scene(x, y, size) in the left half, where 2 * x < size, and blurred[x + y * padded] in the right
// half. It is rounded to the nearest integer and stored as red, green and blue of the 4 bytes at
// ptr + 4 * (x + y * size), with alpha 255.
