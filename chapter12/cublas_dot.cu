// SPDX-License-Identifier: MIT
/*
 * cublas_dot: dot product and saxpy by cuBLAS, beside kernels of our own
 *
 * Teaches: cuBLAS computes with vectors in device memory, and each call puts work into a stream, as a launch
 *          does. Scalars are passed by address. In host pointer mode the result of a dot product is written
 *          to host memory, so the call waits for it. In device pointer mode the result stays in device
 *          memory: the call returns at once, and the next call can use the result as its factor.
 * Terms:   cuBLAS, dot product, saxpy, pointer mode, device memory, effective bandwidth
 * Book:    12.2.3 (course); T BLAS
 * Build:   nvcc -o cublas_dot chapter12/cublas_dot.cu common/lib/[a-z]*.c -lcublas
 * Run:     ./bin/chapter12/cublas_dot --size 1M
 * Differs: the first cuBLAS, of the book's time, took scalars by value and returned results. Version 2 of the
 *          interface, from 2011, passes addresses.
 * Needs:   libs=cublas
 * Check:   --size 270000
 */
#include "../common/book.h"
#include <cublas_v2.h>
#include "libraries.h" // HANDLE_CUBLAS()

#define N (8 * 1024 * 1024)
const int threadsPerBlock = 256;
const int blocksPerGrid = 1024;

static size_t n = N;               // --size
static void fill_vector(float *x); // with random whole numbers
static bool check_dot(const char *name, float c, const float *a, const float *b);
static bool check_saxpy(const char *name, float *y, float *alpha, const float *a, const float *b);
static void time_all(cublasHandle_t handle, const float *dev_a, float *dev_b, float *dev_c);

// c += a . b
__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[threadsPerBlock];
    float temp = 0;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        temp += a[i] * b[i];
    cache[threadIdx.x] = temp;
    __syncthreads();
    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(c, cache[0]);
}

// y = alpha x + y, with the factor in device memory
__global__ void saxpy(const float *alpha, const float *x, float *y, size_t n) {
    const float factor = *alpha;
    size_t stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        y[i] = factor * x[i] + y[i];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = n * sizeof(float);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *y = (float *)malloc(bytes), c;
    HANDLE_NULL(a && b && y);
    fill_vector(a);
    fill_vector(b);

    float *dev_a, *dev_b, *dev_y, *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_y, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_y, b, bytes, cudaMemcpyHostToDevice));

    // Our own kernels: c = a . b, and y = c a + y. The second one reads its factor from device memory.
    HANDLE_ERROR(cudaMemset(dev_c, 0, sizeof(float)));
    dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
    saxpy<<<blocksPerGrid, threadsPerBlock>>>(dev_c, dev_a, dev_y, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(y, dev_y, bytes, cudaMemcpyDeviceToHost));
    printf("Kernels:                    a . b = %.9g\n", c);
    bool ok = check_dot("dot", c, a, b) && check_saxpy("saxpy", y, &c, a, b);

    // The handle holds the settings of the library: stream, pointer mode and others.
    cublasHandle_t handle;
    HANDLE_CUBLAS(cublasCreate(&handle));

    // Host pointer mode, the default: the result is in c when the call returns. The 1 after a vector is the
    // distance between its elements; a row of a matrix stored by columns would have another one.
    HANDLE_ERROR(cudaMemcpy(dev_y, b, bytes, cudaMemcpyHostToDevice));
    HANDLE_CUBLAS(cublasSdot(handle, n, dev_a, 1, dev_b, 1, &c));
    HANDLE_CUBLAS(cublasSaxpy(handle, n, &c, dev_a, 1, dev_y, 1));
    HANDLE_ERROR(cudaMemcpy(y, dev_y, bytes, cudaMemcpyDeviceToHost));
    printf("cuBLAS, scalar on host:     a . b = %.9g\n", c);
    ok = ok && check_dot("cublasSdot", c, a, b) && check_saxpy("cublasSaxpy", y, &c, a, b);

    // Device pointer mode: cublasSaxpy reads what cublasSdot has written, and the host need not wait between.
    HANDLE_ERROR(cudaMemcpy(dev_y, b, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, sizeof(float))); // NaN
    HANDLE_CUBLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
    HANDLE_CUBLAS(cublasSdot(handle, n, dev_a, 1, dev_b, 1, dev_c));
    HANDLE_CUBLAS(cublasSaxpy(handle, n, dev_c, dev_a, 1, dev_y, 1));
    HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(y, dev_y, bytes, cudaMemcpyDeviceToHost));
    printf("cuBLAS, scalar on device:   a . b = %.9g\n", c);
    ok = ok && check_dot("cublasSdot on the device", c, a, b);
    ok = ok && check_saxpy("cublasSaxpy with its factor on the device", y, &c, a, b);

    time_all(handle, dev_a, dev_y, dev_c);
    HANDLE_CUBLAS(cublasDestroy(handle));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_y));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(y);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/timing.h" // median_ms()

void settings(int argc, char **argv) {
    configure(argc, argv, "Dot product and saxpy by cuBLAS and by kernels.", TIMES,
              {OPTION_SIZE("size", &n, 1, INT_MAX, "elements in a vector")});
    require_memory(3 * n * sizeof(float), 3 * n * sizeof(float));
}

// Whole numbers from -most to most, so small that a float represents every sum exactly, in whatever order it
// is computed: n * most³ + most <= 2^24. So all results must be equal to the last bit. Beyond 2^23 elements
// this relies on random signs: a sum of n terms from -1 to 1 is of the order of sqrt(n).
static void fill_vector(float *x) {
    int most = max_of(1, (int)cbrt(0x1p23 / n));
    for (size_t i = 0; i < n; i++)
        x[i] = (int)(random_bits() % (2 * most + 1)) - most;
}

static bool check_dot(const char *name, float c, const float *a, const float *b) {
    double expected = 0;
    for (size_t i = 0; i < n; i++)
        expected += (double)a[i] * b[i];
    return check_value(name, c, expected, 0);
}

// Overwrites y and *alpha after the check, so that a result that is not computed or not copied is wrong.
static bool check_saxpy(const char *name, float *y, float *alpha, const float *a, const float *b) {
    bool ok = check_floats(name, y, n, 0, [=](size_t i) { return (double)*alpha * a[i] + b[i]; });
    std::fill(y, y + n, NAN);
    *alpha = NAN;
    return ok;
}

static void show_time(const char *name, float ms, double transfers) {
    printf("%-28s%.4f ms, %.1f GB/s\n", name, ms, transfers * n * sizeof(float) / ms / 1e6);
}

// A dot product reads two vectors; saxpy reads two and writes one.
static void time_all(cublasHandle_t handle, const float *dev_a, float *dev_b, float *dev_c) {
    float on_host;
    show_time("dot:", median_ms([&] { dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_c, n); }), 2);
    show_time("cublasSdot, on the device:",
              median_ms([&] { HANDLE_CUBLAS(cublasSdot(handle, n, dev_a, 1, dev_b, 1, dev_c)); }), 2);
    HANDLE_CUBLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
    show_time("cublasSdot, to the host:",
              median_ms([&] { HANDLE_CUBLAS(cublasSdot(handle, n, dev_a, 1, dev_b, 1, &on_host)); }), 2);
    HANDLE_CUBLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
    const float tiny = 0x1p-60f; // so small that y does not change; with 0 cuBLAS would do nothing
    HANDLE_ERROR(cudaMemcpy(dev_c, &tiny, sizeof(float), cudaMemcpyHostToDevice));
    show_time("saxpy:", median_ms([&] { saxpy<<<blocksPerGrid, threadsPerBlock>>>(dev_c, dev_a, dev_b, n); }),
              3);
    show_time("cublasSaxpy:",
              median_ms([&] { HANDLE_CUBLAS(cublasSaxpy(handle, n, dev_c, dev_a, 1, dev_b, 1)); }), 3);
}

// Task: dot(): Blocks have threadsPerBlock threads. Each thread adds the products a[i] * b[i] of a
// grid-stride loop over n elements. A tree reduction in shared memory adds the partial sums of the block's
// threads, with a barrier for all threads of the block between writing and reading. Thread 0 adds the sum of
// the block to *c with an atomic addition.
// saxpy(): In a grid-stride loop, y[i] becomes *alpha * x[i] + y[i] for all i below n.
