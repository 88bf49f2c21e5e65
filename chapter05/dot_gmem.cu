// SPDX-License-Identifier: MIT
/*
 * dot_gmem: the dot product without shared memory
 *
 * Teaches: The device multiplies and the host adds. Without a way to work together the threads can
 *          only leave their products in global memory, and all of them travel back; dot sends back
 *          one number a block.
 * Book:    5.3.1 (before it, course)
 * Run:     ./bin/chapter05/dot_gmem
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/memory.h"

#define N (33 * 1024)

const unsigned threadsPerBlock = 256;

__global__ void multiply(const float *a, const float *b, float *c, size_t n) {
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (tid < n) // the last block may reach past the end
        c[tid] = a[tid] * b[tid];
}

// 0² + 1² + … + x²
static double sum_squares(double x) {
    return x * (x + 1) * (2 * x + 1) / 6;
}

int main(int argc, char **argv) {
    size_t n = N;
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 33, "elements in a vector"),
                          OPTION_END};
    parse_options(argc, argv, "Products on the device, their sum on the host.", 0, own);
    select_device();

    size_t bytes = n * sizeof(float);
    require_memory(3 * bytes, 3 * bytes);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(c);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = 2 * a[i];
    }

    float *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc((void **)&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_c, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));

    unsigned blocks = (n + threadsPerBlock - 1) / threadsPerBlock;
    multiply<<<blocks, threadsPerBlock>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));
    inject_error(c, bytes);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += c[i];

    // The host adds in double, so what counts is one rounding of each product and, from 2^24 on,
    // one of each input.
    double expected = 2 * sum_squares(n - 1);
    printf("Does GPU value %.6g = %.6g?\n", sum, expected);
    printf("%zu bytes came back\n", bytes);
    bool ok = check_value("dot product", sum, expected, (2 + 1) * 0x1p-24);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
