// SPDX-License-Identifier: MIT
/*
 * matmul_gmem: matrix product from global memory
 *
 * Teaches: Each thread computes one element of the product from a row of a and a column of b, which it
 *          reads from global memory. Threads of one row of the product read the same row of a, and
 *          threads of one column read the same column of b, so each element of a and b is read n times.
 * Terms:   matrix product, global memory, two-dimensional grid, dim3, coalesced access, sector, tail
 * Book:    5.3.1 (course)
 * After:   chapter05/matmul_cpu
 * Build:   nvcc -o matmul_gmem chapter05/matmul_gmem.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/matmul_gmem --size 2000 --columns
 * Check:   --size 50
 */
#include <chrono>
#include "../common/book.h"
#include "../common/timing.h" // median_ms(); chapter 6 shows the events that it uses
#include "matmul.h"           // n, matmul_operations(), fill_matrix(), check_product()

#define TILE 32 // a block has TILE x TILE threads

static bool columns = false; // --columns
static void print_sectors(void);
__global__ void matmul_columns(const float *a, const float *b, float *c, size_t n);

__global__ void matmul(const float *a, const float *b, float *c, size_t n) {
    size_t col = threadIdx.x + blockIdx.x * blockDim.x;
    size_t row = threadIdx.y + blockIdx.y * blockDim.y;
    if (row >= n || col >= n) // blocks at the edge may have threads beyond it
        return;

    // The threads of a warp have the same row and neighbouring columns. So their reads of b are coalesced:
    // 32 floats are 128 bytes, which are four sectors of 32 bytes when they are aligned. Their reads of a
    // are one address, so one sector serves the whole warp.
    float sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = n * n * sizeof(float);
    float *a = host_array<float>(n * n), *b = host_array<float>(n * n), *c = host_array<float>(n * n);
    fill_matrix(a);
    fill_matrix(b);

    float *dev_a, *dev_b, *dev_c;
    auto start = std::chrono::steady_clock::now();
    HANDLE_ERROR(cudaMalloc(&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_c, bytes));

    auto kernel = columns ? matmul_columns : matmul;
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));
    dim3 blocks((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), threads(TILE, TILE);
    kernel<<<blocks, threads>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost)); // waits for the kernel
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    printf("Time to multiply:  %.1f ms, with allocation and copies\n", elapsed.count());
    bool ok = check_product(a, b, c);

    // All bytes 0xff are NaN, so the check finds elements that the next launch does not write.
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, bytes));
    float ms = median_ms([&] { kernel<<<blocks, threads>>>(dev_a, dev_b, dev_c, n); });
    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));
    ok = ok && check_product(a, b, c);
    printf("Kernel:            %.3f ms, %.1f GFLOP/s\n", ms, matmul_operations() / ms / 1e6);
    print_bound(ms);
    print_sectors();
    printf("Reads of each element from global memory: %zu\n", n);
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

// ---------------------------------------------------------------------------------------- check

// matmul with rows and columns exchanged: the threads of a warp have the same column and consecutive rows, so
// their accesses to a and c are n elements apart and not coalesced.
__global__ void matmul_columns(const float *a, const float *b, float *c, size_t n) {
    size_t row = threadIdx.x + blockIdx.x * blockDim.x;
    size_t col = threadIdx.y + blockIdx.y * blockDim.y;
    if (row >= n || col >= n)
        return;
    float sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

// The sectors of 32 bytes that the 32 lanes of a warp touch when neighbouring lanes are `stride` floats
// apart, in a matrix that begins at a sector
static int sectors(size_t stride) {
    int count = 1;
    for (size_t lane = 1; lane < 32; lane++)
        count += lane * stride / 8 != (lane - 1) * stride / 8;
    return count;
}

static void print_sectors(void) {
    printf("Sectors of a warp for a read of a: %d, for a read of b: %d, for a write of c: %d\n",
           sectors(columns ? n : 0), sectors(columns ? 0 : 1), sectors(columns ? n : 1));
}

void settings(int argc, char **argv) {
    bool with_cpu = false;
    configure(argc, argv, "Multiplies two matrices, reading from global memory.", TIMES,
              {OPTION_SIZE("size", &n, 1, 65535, "width of the matrices"),
               OPTION_FLAG("cpu", &with_cpu, WITH_CPU),
               OPTION_FLAG("columns", &columns, "the threads of a warp run down a column")});
    require_memory(3 * n * n * sizeof(float), 3 * n * n * sizeof(float));
    if (with_cpu)
        exit(compare_with_cpu([](const float *a, const float *b, float *c) {
            dim3 blocks((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), threads(TILE, TILE);
            (columns ? matmul_columns : matmul)<<<blocks, threads>>>(a, b, c, n);
        }));
}

// Task: matmul(): Blocks of TILE x TILE threads cover the n x n matrix c, one thread per element. The thread
// with the coordinates (col, row) in the grid computes c[row * n + col], the dot product of row `row` of a
// and column `col` of b. All three matrices are row-major. Threads outside the matrix do nothing.
