// SPDX-License-Identifier: MIT
/*
 * dot_gmem: dot product without shared memory
 *
 * Teaches: The device computes the products and the host adds them. Threads that do not share memory
 *          write their products to global memory, and all of them are copied to the host; dot copies
 *          one partial sum per block.
 * Terms:   dot product, global memory, thread index, block, tail
 * Book:    5.3.1 (course); C 3 (Dot-GM)
 * Build:   nvcc -o dot_gmem chapter05/dot_gmem.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/dot_gmem --size 1M
 * Check:   --size 100000
 */
#include "../common/book.h"

#define sum_squares(x) ((x) * ((x) + 1) * (2 * (x) + 1) / 6) // 0² + 1² + ... + x²

#define N (33 * 1024)
const int threadsPerBlock = 256;

static size_t n = N; // --size
static bool check(double sum, const float *dev_c);

__global__ void multiply(const float *a, const float *b, float *c, size_t n) {
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (tid < n) // in the tail, the last block may have threads beyond the end
        c[tid] = a[tid] * b[tid];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float *a = (float *)malloc(n * sizeof(float)), *b = (float *)malloc(n * sizeof(float));
    float *c = (float *)malloc(n * sizeof(float));
    HANDLE_NULL(a && b && c);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }

    // An event records the time at which the device has done all work before it (chapter 6).
    cudaEvent_t start, stop;
    float *dev_a, *dev_b, *dev_c, elapsedTime;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start));
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_c, n * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));

    size_t blocks = (n + threadsPerBlock - 1) / threadsPerBlock;
    multiply<<<blocks, threadsPerBlock>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, n * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventRecord(stop));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += c[i];
    printf("Does GPU value %.6g = %.6g?\n", sum, 2 * sum_squares(n - 1.0));
    printf("%zu bytes came back\n", n * sizeof(float));
    printf("Time to generate:  %.3f ms, with allocation and copies\n", elapsedTime);

    HANDLE_ERROR(cudaMemset(dev_c, 0xff, n * sizeof(float))); // NaN, to check this launch too
    HANDLE_ERROR(cudaEventRecord(start));
    multiply<<<blocks, threadsPerBlock>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaEventRecord(stop));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Kernel:            %.3f ms\n", elapsedTime);
    bool ok = check(sum, dev_c);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/dot.h" // expected_dot()

void settings(int argc, char **argv) {
    configure(argc, argv, "Products on the device, their sum on the host.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector")});
    require_memory(4 * n * sizeof(float), 3 * n * sizeof(float));
}

// The products rounded to float, as on the device, have the same sum in double. It differs from the closed
// form by three roundings: of the product and, from 2^24 on, of each factor.
static bool check(double sum, const float *dev_c) {
    double expected = 0, second = 0;
    HostArray<float> c(dev_c, n);
    for (size_t i = 0; i < n; i++) {
        expected += (float)i * (float)(2 * i);
        second += c[i];
    }
    return check_value("dot product", sum, expected, 0) &&
           check_value("dot product of the second launch", second, expected, 0) &&
           check_value("dot product", sum, expected_dot(n), 3 * 0x1p-24);
}

// Task: multiply(): One thread per element: the thread with the global index i stores a[i] * b[i] in c[i]. If
// i >= n, it does nothing. The host adds the products.
