// SPDX-License-Identifier: MIT
/*
 * dot_gmem: dot product without shared memory
 *
 * Teaches: The device computes the products and the host adds them. Threads that do not share memory
 *          write their products to global memory, and all of them are copied to the host; dot copies
 *          one partial sum per block.
 * Terms:   dot product, global memory, thread index, block, tail
 * Book:    5.3.1 (course)
 * Build:   nvcc -o dot_gmem chapter05/dot_gmem.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/dot_gmem --size 1M
 * Check:   --size 100000
 */
#include <chrono>
#include "../common/book.h"
#include "../common/checks/dot.h" // expected_dot()
#include "../common/timing.h"     // median_ms(); chapter 6 shows the events that it uses

#define N (33 * 1024)
const int threadsPerBlock = 256;

static size_t n = N; // --size
static bool check(double sum);

__global__ void multiply(const float *a, const float *b, float *c, size_t n) {
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (tid < n) // in the tail, the last block may have threads beyond the end
        c[tid] = a[tid] * b[tid];
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float *a = host_array<float>(n), *b = host_array<float>(n), *c = host_array<float>(n);
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }

    float *dev_a, *dev_b, *dev_c;
    auto start = std::chrono::steady_clock::now();
    HANDLE_ERROR(cudaMalloc(&dev_a, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_c, n * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, n * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, n * sizeof(float), cudaMemcpyHostToDevice));

    size_t blocks = (n + threadsPerBlock - 1) / threadsPerBlock;
    multiply<<<blocks, threadsPerBlock>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(c, dev_c, n * sizeof(float), cudaMemcpyDeviceToHost));
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += c[i];
    printf("Does GPU value %.6g = %.6g?\n", sum, expected_dot(n));
    printf("%zu bytes came back\n", n * sizeof(float));
    printf("Time to generate:  %.3f ms, with allocation and copies\n", elapsed.count());
    float ms = median_ms([&] { multiply<<<blocks, threadsPerBlock>>>(dev_a, dev_b, dev_c, n); });
    printf("Kernel:            %.3f ms\n", ms);
    bool ok = check(sum);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Products on the device, their sum on the host.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector")});
    require_memory(3 * n * sizeof(float), 3 * n * sizeof(float));
}

// The products rounded to float, as on the device, have the same sum in double. It differs from the closed
// form by three roundings: of the product and, from 2^24 on, of each factor.
static bool check(double sum) {
    double expected = 0;
    for (size_t i = 0; i < n; i++)
        expected += (float)i * (float)(2 * i);
    return check_value("dot product", sum, expected, 0) &&
           check_value("dot product", sum, expected_dot(n), 3 * 0x1p-24);
}

// Task: multiply(): One thread per element: the thread with the global index i stores a[i] * b[i] in c[i]. If
// i >= n, it does nothing. The host adds the products.
