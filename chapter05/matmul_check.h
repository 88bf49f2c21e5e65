// SPDX-License-Identifier: MIT
// For matmul_ladder.cu: matrices that are easy and hard to multiply, their product in double, the errors of
// other products of them, and the rate of FMA instructions.
#ifndef CHAPTER05_MATMUL_CHECK_H
#define CHAPTER05_MATMUL_CHECK_H

#include "../common/book.h"
#include "../common/bench.h"

// ---------------------------------------------------------------------------------------- proof

#define FILLS "uniform|positive|wide|scaled"
enum { UNIFORM = 1, POSITIVE, WIDE, SCALED };

// The reference, with a thread per element: its sum in double, and the sum of the magnitudes
static double *dev_expected;
static float *dev_magnitude;

__global__ void multiply_in_double(const float *a, const float *b, double *expected, float *magnitude,
                                   size_t m, size_t n, size_t k) {
    size_t col = threadIdx.x + blockIdx.x * 32, row = threadIdx.y + blockIdx.y * 32;
    if (row >= m || col >= n)
        return;
    double sum = 0, magnitudes = 0;
    for (size_t i = 0; i < k; i++) {
        double product = (double)a[row * k + i] * b[i * n + col]; // exact
        sum += product;
        magnitudes += fabs(product);
    }
    expected[row * n + col] = sum;
    magnitude[row * n + col] = magnitudes;
}

// The errors of c, relative to the sums of magnitudes: the largest one, and the sum of their squares. Doubles
// that are not negative compare like the integers with the same bits; NaN is larger than any number.
struct Errors {
    unsigned long long max;
    double squares;
};
static Errors *dev_errors;

__global__ void find_errors(const float *c, const double *expected, const float *magnitude, size_t elements,
                            Errors *errors) {
    double squares = 0;
    unsigned long long max = 0;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < elements;
         i += blockDim.x * gridDim.x) {
        double off = fabs(c[i] - expected[i]);
        double error = off == 0 ? 0 : off / magnitude[i];
        max = ::max(max, (unsigned long long)__double_as_longlong(error));
        squares += error * error;
    }
    atomicMax(&errors->max, max);
    atomicAdd(&errors->squares, squares);
}

static inline void allocate_reference(size_t m, size_t n) {
    HANDLE_ERROR(cudaMalloc(&dev_expected, m * n * sizeof(double)));
    HANDLE_ERROR(cudaMalloc(&dev_magnitude, m * n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_errors, sizeof(Errors)));
}

static inline void free_reference(void) {
    HANDLE_ERROR(cudaFree(dev_expected));
    HANDLE_ERROR(cudaFree(dev_magnitude));
    HANDLE_ERROR(cudaFree(dev_errors));
}

// Numbers from -1 to 1. POSITIVE: from 0 to 1, whose sums round most. WIDE: times 2^-40 to 2^40, each with an
// exponent of its own. SCALED: times 2^40 or 2^-40, the same for a row of a or a column of b.
static inline float *make_matrix(int fill, size_t rows, size_t cols, bool scale_rows) {
    float *x = host_array<float>(rows * cols);
    random_floats(x, rows * cols, 1);
    size_t lines = scale_rows ? rows : cols;
    float *scale = host_array<float>(lines);
    for (size_t i = 0; i < lines; i++)
        scale[i] = random_bits() % 2 ? 0x1p40f : 0x1p-40f;
    for (size_t i = 0; i < rows * cols && fill != POSITIVE; i++) {
        x[i] = 2 * x[i] - 1;
        if (fill == WIDE)
            x[i] = ldexpf(x[i], (int)(random_bits() % 81) - 40);
        if (fill == SCALED)
            x[i] *= scale[scale_rows ? i / cols : i % cols];
    }
    free(scale);
    return x;
}

// Fills both matrices and computes the reference, some elements of which are computed again on the host.
static inline void make_matrices(int fill, float *dev_a, float *dev_b, size_t m, size_t n, size_t k) {
    float *a = make_matrix(fill, m, k, true), *b = make_matrix(fill, k, n, false);
    HANDLE_ERROR(cudaMemcpy(dev_a, a, m * k * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, k * n * sizeof(float), cudaMemcpyHostToDevice));
    multiply_in_double<<<dim3((n + 32 - 1) / 32, (m + 32 - 1) / 32), dim3(32, 32)>>>(
        dev_a, dev_b, dev_expected, dev_magnitude, m, n, k);
    HANDLE_LAUNCH();
    for (int turn = 0; turn < 16; turn++) {
        size_t row = random_bits() % m, col = random_bits() % n;
        double sum = 0, magnitude = 0, got;
        for (size_t i = 0; i < k; i++) {
            sum += (double)a[row * k + i] * b[i * n + col];
            magnitude += fabs((double)a[row * k + i] * b[i * n + col]);
        }
        HANDLE_ERROR(cudaMemcpy(&got, &dev_expected[row * n + col], sizeof got, cudaMemcpyDeviceToHost));
        if (!(fabs(got - sum) <= k * 0x1p-52 * magnitude))
            quit(EXIT_FAILURE, "the reference has %g in row %zu, column %zu, and the host %g", got, row, col,
                 sum);
    }
    free(a);
    free(b);
}

// The largest and the root mean square error of a product
static inline BenchError product_errors(const float *dev_c, size_t elements) {
    Errors errors = {0, 0};
    BenchError error;
    HANDLE_ERROR(cudaMemcpy(dev_errors, &errors, sizeof errors, cudaMemcpyHostToDevice));
    find_errors<<<256, 256>>>(dev_c, dev_expected, dev_magnitude, elements, dev_errors);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(&errors, dev_errors, sizeof errors, cudaMemcpyDeviceToHost));
    memcpy(&error.max, &errors.max, sizeof error.max);
    error.rms = sqrt(errors.squares / elements);
    return error;
}

// The limit: FMA instructions alone, on registers
const size_t FMA_THREADS = BENCH_SIZE(1 << 24, 1 << 11);
const unsigned FMA_TURNS = 128, FMA_CHAINS = 16; // of each thread; the chains are independent

__global__ void __launch_bounds__(256) fma_alone(float *out, float x, float y) {
    float sum[FMA_CHAINS];
    for (unsigned i = 0; i < FMA_CHAINS; i++)
        sum[i] = threadIdx.x + i;
#pragma unroll 16
    for (unsigned turn = 0; turn < FMA_TURNS; turn++)
        for (unsigned i = 0; i < FMA_CHAINS; i++)
            sum[i] = sum[i] * x + y;
    for (unsigned i = 1; i < FMA_CHAINS; i++)
        sum[0] += sum[i];
    if (sum[0] == 0) // never, but the compiler does not know it and keeps the loop
        *out = 0;
}

#endif
