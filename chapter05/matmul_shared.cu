// SPDX-License-Identifier: MIT
/*
 * matmul_shared: matrix product by tiles in shared memory
 *
 * Teaches: The threads of a block need the same rows of a and columns of b. They load them together
 *          into shared memory, a tile of 32 x 32 elements at a time, and use each element 32 times. So
 *          global memory is read 32 times less often: the arithmetic intensity is 32 times as high. One
 *          barrier separates loading a tile from using it, and another one using it from loading the next.
 * Terms:   tiling, tile, shared memory, barrier, __syncthreads, matrix product, global memory,
 *          padding, arithmetic intensity
 * Book:    5.3.1 (course, product of matrices 3)
 * Run:     ./bin/chapter05/matmul_shared --size 2000
 * Differs: any width, not only multiples of 32: tiles are padded with zeros.
 * Check:   --size 64
 */
#include <chrono>
#include "../common/book.h"
#include "../common/timing.h" // median_ms(); chapter 6 shows the events that it uses
#include "matmul.h"           // n, matmul_operations(), fill_matrix(), check_product()

#define TILE 32 // a tile has TILE x TILE elements, a block as many threads

__global__ void matmul(const float *a, const float *b, float *c, size_t n) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    size_t col = x + blockIdx.x * TILE;
    size_t row = y + blockIdx.y * TILE;

    float sum = 0;
    for (size_t first = 0; first < n; first += TILE) {
        // Where a tile extends beyond the edge it is padded with zeros, which do not change the sum.
        tile_a[y][x] = row < n && first + x < n ? a[row * n + first + x] : 0;
        tile_b[y][x] = first + y < n && col < n ? b[(first + y) * n + col] : 0;
        __syncthreads(); // the tiles are complete

        for (unsigned k = 0; k < TILE; k++)
            sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads(); // all threads have used the tiles, so the next ones can be loaded
    }
    if (row < n && col < n)
        c[row * n + col] = sum;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = n * n * sizeof(float);
    float *a = host_array<float>(n * n), *b = host_array<float>(n * n), *c = host_array<float>(n * n);
    fill_matrix(a);
    fill_matrix(b);

    float *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_c, bytes));

    auto start = std::chrono::steady_clock::now();
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));
    dim3 blocks((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), threads(TILE, TILE);
    matmul<<<blocks, threads>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost)); // waits for the kernel
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    printf("Time to multiply:  %.1f ms, with copies\n", elapsed.count());
    bool ok = check_product(a, b, c);

    HANDLE_ERROR(
        cudaMemset(dev_c, 0xff, bytes)); // NaN, so that the check finds elements that are not written
    float ms = median_ms([&] { matmul<<<blocks, threads>>>(dev_a, dev_b, dev_c, n); });
    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));
    ok = ok && check_product(a, b, c);
    printf("Kernel:            %.3f ms, %.1f GFLOP/s\n", ms, matmul_operations() / ms / 1e6);
    printf("Reads of each element from global memory: %zu\n", (n + TILE - 1) / TILE);
    if (ok)
        printf("The product of the %zu x %zu matrices is right.\n", n, n);

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    const Option own[] = {OPTION_SIZE("size", &n, 1, 65535, "width of the matrices"), OPTION_END};
    parse_options(argc, argv, "Multiplies two matrices by tiles in shared memory.", TIMES, own);
    select_device();
    require_memory(3 * n * n * sizeof(float), 3 * n * n * sizeof(float));
}
