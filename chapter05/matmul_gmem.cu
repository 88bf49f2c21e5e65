// SPDX-License-Identifier: MIT
/*
 * matmul_gmem: matrix product from global memory
 *
 * Teaches: Each thread computes one element of the product from a row of a and a column of b, which it
 *          reads from global memory. Threads of one row of the product read the same row of a, and
 *          threads of one column read the same column of b, so each element of a and b is read n times.
 *          With --columns the threads of a warp run down a column, and their accesses are not coalesced.
 * Terms:   matrix product, global memory, two-dimensional grid, dim3, coalesced access, sector, tail
 * Book:    5.3.1 (course); R 7.5 (matrix product, the bound by memory); R 7.5 (coalescing): --columns; C
 *          4.3.3 (from global memory); C 4.3.3 (five runs, the ratio to the CPU): --cpu; C 4.4 (the bound by
 *          memory)
 * After:   chapter05/matmul_cpu
 * Build:   nvcc -o matmul_gmem chapter05/matmul_gmem.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/matmul_gmem --size 2000 --columns
 * Check:   --size 50 | --size 37 --columns
 */
#include "../common/book.h"

#define WIDTH 1024
#define TILE  32 // a block has TILE x TILE threads

static size_t n = WIDTH; // --size, the rows and columns of a matrix
static bool columns;     // --columns
static bool with_cpu;    // --cpu
static int compare_with_cpu(void);
static void fill_matrix(float *matrix);
static void time_kernel(const float *dev_a, const float *dev_b, float *dev_c);
static void print_sectors(void);
static bool check_product(const float *a, const float *b, const float *c);

// The threads of a warp have the same row and neighbouring columns. Their reads of b and their writes of c
// are coalesced: 32 neighbouring floats are 128 bytes, which are four sectors of 32 bytes when they are
// aligned. Their reads of a are one address, so one sector serves the whole warp.
__global__ void matmul(const float *a, const float *b, float *c, size_t n) {
    size_t col = threadIdx.x + blockIdx.x * blockDim.x;
    size_t row = threadIdx.y + blockIdx.y * blockDim.y;
    if (row >= n || col >= n) // blocks at the edge may have threads beyond it
        return;

    float sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

// The same with rows and columns exchanged: the threads of a warp have the same column and neighbouring rows.
// Their accesses to a and c are n elements apart, up to 32 sectors for a warp.
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

static void launch(const float *dev_a, const float *dev_b, float *dev_c) {
    dim3 blocks((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), threads(TILE, TILE);
    if (columns)
        matmul_columns<<<blocks, threads>>>(dev_a, dev_b, dev_c, n);
    else
        matmul<<<blocks, threads>>>(dev_a, dev_b, dev_c, n);
    HANDLE_LAUNCH();
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (with_cpu)
        return compare_with_cpu();
    size_t bytes = n * n * sizeof(float);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
    HANDLE_NULL(a && b && c);
    fill_matrix(a); // random whole numbers
    fill_matrix(b);

    // An event is a time stamp that the device records. Chapter 6 explains these calls.
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));

    float *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_c, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));
    launch(dev_a, dev_b, dev_c);
    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to multiply:  %.1f ms, with allocation and copies\n", elapsedTime);
    time_kernel(dev_a, dev_b, dev_c);
    print_sectors();
    printf("Reads of each element from global memory: %zu\n", n);
    bool ok = check_product(a, b, c);

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

#include "matmul.h" // fill_matrix(), check_product(), time_kernel(), compare_with_cpu()

void settings(int argc, char **argv) {
    configure(argc, argv, "Multiplies two matrices, reading from global memory.", TIMES,
              {OPTION_SIZE("size", &n, 1, 65535, "width of the matrices"),
               OPTION_FLAG("cpu", &with_cpu, WITH_CPU),
               OPTION_FLAG("columns", &columns, "the threads of a warp run down a column")});
    require_memory(3 * n * n * sizeof(float), 3 * n * n * sizeof(float));
}

// The sectors of 32 bytes that the lanes of a warp touch: lane l accesses float `first` + l * `stride` of a
// matrix that begins at a sector.
static size_t sectors(size_t first, size_t stride) {
    size_t count = 1;
    for (size_t lane = 1; lane < min_of<size_t>(32, n); lane++)
        count += (first + lane * stride) / 8 != (first + (lane - 1) * stride) / 8;
    return count;
}

// If n is no multiple of 8, most rows begin within a sector, and 32 neighbouring floats lie in five sectors.
static void print_access(const char *access, size_t stride) {
    size_t least = 32, most = 1;
    for (size_t i = 0; i < min_of<size_t>(8, n); i++) { // each place in a sector at which lane 0 can be
        least = min_of(least, sectors(columns ? i : i * n, stride));
        most = max_of(most, sectors(columns ? i : i * n, stride));
    }
    printf(least < most ? "%s %zu or %zu" : "%s %zu", access, least, most);
}

static void print_sectors(void) {
    print_access("Sectors of a warp for a read of a:", columns ? n : 0);
    print_access(", for a read of b:", columns ? 0 : 1);
    print_access(", for a write of c:", columns ? n : 1);
    printf("\n");
}

// Task: matmul(): Blocks of TILE x TILE threads cover the n x n matrix c, one thread per element. The thread
// with the coordinates (col, row) in the grid computes c[row * n + col], the dot product of row `row` of a
// and column `col` of b. All three matrices are row-major. Threads outside the matrix do nothing.
// matmul_columns(): The same, but the x coordinate of the thread is the row and the y coordinate the column.
