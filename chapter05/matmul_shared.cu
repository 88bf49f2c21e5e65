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
 * Book:    5.3.1 (course); C 4.5 (tiles); C 4.5 (width 1000, tiles of 32): --size 1000 --truncate; C 4.5.4
 *          (five runs, the ratio to the CPU): --cpu
 * After:   chapter05/matmul_gmem
 * Build:   nvcc -o matmul_shared chapter05/matmul_shared.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/matmul_shared --size 1000 --truncate
 * Differs: any width: tiles are padded with zeros. The course asks for a tile that divides the width, such as
 *          25 for 1000: change TILE. --truncate has its division, which drops the remainder (status 1).
 * Check:   --size 50
 */
#include "../common/book.h"

#define WIDTH 1024
#define TILE  32 // a tile has TILE x TILE elements, a block as many threads

static size_t n = WIDTH; // --size, the rows and columns of a matrix
static bool with_cpu;    // --cpu
static bool truncated;   // --truncate
static int compare_with_cpu(void);
static void fill_matrix(float *matrix);
static void time_kernel(const float *dev_a, const float *dev_b, float *dev_c);
static bool show_truncated(const float *a, const float *b, const float *c);
static bool check_product(const float *a, const float *b, const float *c);

__global__ void matmul(const float *a, const float *b, float *c, size_t n, size_t phases) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned tx = threadIdx.x, ty = threadIdx.y; // the place of the thread in the tiles
    size_t col = tx + blockIdx.x * TILE;         // and in the matrix c
    size_t row = ty + blockIdx.y * TILE;

    float sum = 0;
    for (size_t phase = 0; phase < phases; phase++) { // the sum is complete after the last phase
        size_t first = phase * TILE;
        // Each thread loads one element of a and one of b. Where a tile extends beyond the edge of the
        // matrix it is padded with zeros, which do not change the sum.
        tile_a[ty][tx] = row < n && first + tx < n ? a[row * n + first + tx] : 0;
        tile_b[ty][tx] = first + ty < n && col < n ? b[(first + ty) * n + col] : 0;
        __syncthreads(); // the tiles are complete

        for (unsigned k = 0; k < TILE; k++)
            sum += tile_a[ty][k] * tile_b[k][tx];
        __syncthreads(); // all threads have used the tiles, so the next ones can be loaded
    }
    if (row < n && col < n)
        c[row * n + col] = sum;
}

// Tiles in a row of a matrix, so as many phases
static size_t tiles(void) {
    return truncated ? n / TILE : (n + TILE - 1) / TILE;
}

static void launch(const float *dev_a, const float *dev_b, float *dev_c) {
    dim3 blocks(tiles(), tiles()), threads(TILE, TILE);
    matmul<<<blocks, threads>>>(dev_a, dev_b, dev_c, n, tiles());
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
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, bytes)); // NaN, to find elements that the kernel does not write
    launch(dev_a, dev_b, dev_c);
    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to multiply:  %.1f ms, with allocation and copies\n", elapsedTime);
    time_kernel(dev_a, dev_b, dev_c);
    printf("A block has %d warps, the last of %d lanes, and two tiles of %d bytes in all\n",
           (TILE * TILE + 31) / 32, (TILE * TILE - 1) % 32 + 1, 8 * TILE * TILE);
    printf("Reads of each element from global memory: %zu\n", tiles());
    bool ok = truncated ? show_truncated(a, b, c) : check_product(a, b, c);

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
    configure(argc, argv, "Multiplies two matrices by tiles in shared memory.", TIMES,
              {OPTION_SIZE("size", &n, 1, 65535, "width of the matrices"),
               OPTION_FLAG("cpu", &with_cpu, WITH_CPU),
               OPTION_FLAG("truncate", &truncated, "wrong at sizes that the tile does not divide")});
    if (truncated && n < TILE)
        quit(EXIT_USAGE, "--truncate: needs a --size of at least %d", TILE);
    require_memory(4 * n * n * sizeof(float), 3 * n * n * sizeof(float));
}

// Counts what the truncated division leaves out. Returns false: the product is not right.
static bool show_truncated(const float *a, const float *b, const float *c) {
    size_t unwritten = 0, wrong = 0;
    HostArray<float> right(n * n);
    multiply_on_host(a, b, right);
    for (size_t i = 0; i < n * n; i++) {
        unwritten += isnan(c[i]);
        wrong += !isnan(c[i]) && c[i] != right[i];
    }
    printf("%zu / %d = %zu, so the last %zu rows and columns are left out: %zu elements are not written.\n",
           n, TILE, n / TILE, n % TILE, unwritten);
    printf("The other %zu sums lack %zu of %zu products: %zu are wrong.\n", n * n - unwritten, n % TILE, n,
           wrong);
    return false;
}

// Task: matmul(): Tiled matrix multiplication, c = a * b. The three matrices are n x n and row-major. Blocks
// of TILE x TILE threads cover c, one thread per element. In each of `phases` phases every thread loads one
// element of a tile of a and one of a tile of b into shared memory, with zeros where a tile extends beyond
// the matrix: phase p has columns p * TILE and on of a, and as many rows of b. After a barrier each thread
// adds TILE products to its sum, and after another one the next tiles may be loaded. All threads of the block
// reach all barriers. Only threads inside the matrix store a result.
