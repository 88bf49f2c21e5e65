// SPDX-License-Identifier: MIT
/*
 * constant_scalars: single numbers in constant memory
 *
 * Teaches: The host writes a __constant__ variable with cudaMemcpyToSymbol, which takes the
 *          variable itself, no pointer, and kernels use it like any global. With an offset, in
 *          bytes, the copy goes to one element of an array, and cudaMemcpyFromSymbol reads back.
 * Book:    6.2.3 (course)
 * Run:     ./bin/chapter06/constant_scalars --g 1.62
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/memory.h"

#define N 1024

enum { G, M }; // places in the array

__constant__ float g, m;
__constant__ float both[2];

__global__ void from_scalars(float *a, size_t n) {
    size_t x = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (x < n)
        a[x] = m * a[x] * g;
}

__global__ void from_array(float *a, size_t n) {
    size_t x = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (x < n)
        a[x] = both[M] * a[x] * both[G];
}

int main(int argc, char **argv) {
    size_t n = N;
    float host_g = 9.81f, host_m = 2;
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements of a"),
                          OPTION_FLOAT("g", &host_g, -1e6, 1e6, "the constant g"),
                          OPTION_FLOAT("m", &host_m, -1e6, 1e6, "the constant m"), OPTION_END};
    parse_options(argc, argv, "Computes a[x] = m * a[x] * g with m and g in constant memory.", 0,
                  own);
    select_device();
    size_t bytes = n * sizeof(float);
    require_memory(3 * bytes + n * sizeof(double), bytes);

    float *a = (float *)malloc(bytes);
    float *scalars = (float *)malloc(bytes), *array = (float *)malloc(bytes);
    double *expected = (double *)malloc(n * sizeof(double));
    HANDLE_NULL(a);
    HANDLE_NULL(scalars);
    HANDLE_NULL(array);
    HANDLE_NULL(expected);
    random_floats(a, n, 100.0f);
    for (size_t x = 0; x < n; x++)
        expected[x] = host_m * a[x] * host_g; // in float: products round the same everywhere

    float *dev_a;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    unsigned blocks = (n + 255) / 256;

    // Each scalar is a symbol of its own.
    HANDLE_ERROR(cudaMemcpyToSymbol(g, &host_g, sizeof(float)));
    HANDLE_ERROR(cudaMemcpyToSymbol(m, &host_m, sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    from_scalars<<<blocks, 256>>>(dev_a, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(scalars, dev_a, bytes, cudaMemcpyDeviceToHost));

    // The elements of an array share a symbol, and the offset says which one is meant.
    HANDLE_ERROR(cudaMemcpyToSymbol(both, &host_g, sizeof(float), G * sizeof(float)));
    HANDLE_ERROR(cudaMemcpyToSymbol(both, &host_m, sizeof(float), M * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    from_array<<<blocks, 256>>>(dev_a, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(array, dev_a, bytes, cudaMemcpyDeviceToHost));

    // Back again: all of the array, and the second element alone.
    float back[2], back_m;
    HANDLE_ERROR(cudaMemcpyFromSymbol(back, both, sizeof(back)));
    HANDLE_ERROR(cudaMemcpyFromSymbol(&back_m, both, sizeof(float), M * sizeof(float)));
    printf("g = %g, m = %g\n", back[G], back_m);
    printf("a[0] = m * a[0] * g = %g * %g * %g = %g\n", back_m, a[0], back[G], array[0]);

    inject_error(array, bytes);
    bool ok = check_floats("from scalars: a", scalars, expected, n, 0);
    ok = check_floats("from the array: a", array, expected, n, 0) && ok;
    ok = check_value("g", back[G], host_g, 0) && ok;
    ok = check_value("m", back[M], host_m, 0) && check_value("m", back_m, host_m, 0) && ok;
    if (ok)
        printf("All %zu products are right, from scalars and from the array.\n", n);

    HANDLE_ERROR(cudaFree(dev_a));
    free(a);
    free(scalars);
    free(array);
    free(expected);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
