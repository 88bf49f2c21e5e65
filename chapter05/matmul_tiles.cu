// SPDX-License-Identifier: MIT
/*
 * matmul_tiles: matrix product by tiles whose width is chosen at the launch
 *
 * Teaches: A tile of another width changes the warps of a block, its shared memory and how often global
 *          memory is read. Tiles that do not divide the width of the matrix need padding: a division that
 *          drops the remainder (--truncate) leaves rows and columns out, and products of every sum. A sum
 *          is complete only after the last phase; --phases prints those after each.
 * Terms:   tile, padding, dynamic shared memory, shared memory, barrier, matrix product
 * Book:    5.3.1 (course)
 * After:   chapter05/matmul_shared
 * Build:   nvcc -o matmul_tiles chapter05/matmul_tiles.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/matmul_tiles --size 1000 --tile 32 --truncate
 * Differs: --truncate has the division that the course prints, and ends with status 1.
 * Check:   --size 50 | --size 40 --tile 16 | --phases
 */
#include "../common/book.h"

#define WIDTH 1000

static size_t n = WIDTH; // --size, the rows and columns of a matrix
static int tile = 25;    // --tile, the rows and columns of a tile
static bool truncated;   // --truncate
static bool every_phase; // --phases
static int show_phases(void);
static void fill_matrix(float *matrix);
static int show_truncated(const float *a, const float *b, const float *c);
static bool check_product(const float *a, const float *b, const float *c);

// The width of a tile is that of a block. Both tiles are in one array of shared memory, whose size is the
// third argument of the launch. In each phase a block loads a tile of a and one of b and adds their products.
__global__ void matmul(const float *a, const float *b, float *c, size_t n, size_t phases) {
    extern __shared__ float tiles[];
    unsigned tile = blockDim.x, tx = threadIdx.x, ty = threadIdx.y;
    float *tile_a = tiles, *tile_b = tiles + tile * tile;
    size_t col = tx + blockIdx.x * tile;
    size_t row = ty + blockIdx.y * tile;

    float sum = 0;
    for (size_t phase = 0; phase < phases; phase++) {
        size_t a_col = tx + phase * tile, b_row = ty + phase * tile;
        tile_a[ty * tile + tx] = row < n && a_col < n ? a[row * n + a_col] : 0;
        tile_b[ty * tile + tx] = b_row < n && col < n ? b[b_row * n + col] : 0;
        __syncthreads();

        for (unsigned k = 0; k < tile; k++)
            sum += tile_a[ty * tile + k] * tile_b[k * tile + tx];
        __syncthreads();
    }
    if (row < n && col < n)
        c[row * n + col] = sum;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (every_phase)
        return show_phases();
    size_t bytes = n * n * sizeof(float);
    float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
    HANDLE_NULL(a && b && c);
    fill_matrix(a); // random whole numbers
    fill_matrix(b);

    float *dev_a, *dev_b, *dev_c;
    HANDLE_ERROR(cudaMalloc(&dev_a, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_b, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_c, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_a, a, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_b, b, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, bytes)); // NaN, to find elements that the kernel does not write

    // Tiles in a row of a matrix, and phases: rounded up, or with --truncate down
    size_t across = truncated ? n / tile : (n + tile - 1) / tile;
    unsigned tile_bytes = 2 * tile * tile * sizeof(float);
    dim3 blocks(across, across), threads(tile, tile);
    matmul<<<blocks, threads, tile_bytes>>>(dev_a, dev_b, dev_c, n, across);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(c, dev_c, bytes, cudaMemcpyDeviceToHost));

    printf("A block has %d warps, the last of %d lanes, and two tiles of %u bytes in all\n",
           (tile * tile + 31) / 32, (tile * tile - 1) % 32 + 1, tile_bytes);
    printf("Reads of each element from global memory: %zu\n", across);
    int status = truncated ? show_truncated(a, b, c) : check_product(a, b, c) ? EXIT_SUCCESS : EXIT_FAILURE;

    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    free(a);
    free(b);
    free(c);
    return status;
}

// ---------------------------------------------------------------------------------------- check

#include "matmul.h" // fill_matrix(), check_product(), multiply_on_host()

void settings(int argc, char **argv) {
    configure(argc, argv, "Multiplies two matrices by tiles of a chosen width.", 0,
              {OPTION_SIZE("size", &n, 1, 65535, "width of the matrices"),
               OPTION_INT("tile", &tile, 1, 32, "width of a tile"),
               OPTION_FLAG("phases", &every_phase, "prints the phases of a product of width 4 by tiles of 2"),
               OPTION_FLAG("truncate", &truncated, "wrong at sizes that the tile does not divide")});
    if (truncated && n < (size_t)tile)
        quit(EXIT_USAGE, "--truncate needs a --size of at least %d, the width of a tile", tile);
    require_memory(4 * n * n * sizeof(float), 3 * n * n * sizeof(float));
}

// Counts what the truncated division leaves out. Returns the exit status of a wrong program.
static int show_truncated(const float *a, const float *b, const float *c) {
    size_t unwritten = 0, wrong = 0, width = tile;
    HostArray<float> right(n * n);
    multiply_on_host(a, b, right);
    for (size_t i = 0; i < n * n; i++) {
        unwritten += isnan(c[i]);
        wrong += !isnan(c[i]) && c[i] != right[i];
    }
    printf("%zu / %zu = %zu, so the last %zu rows and columns are left out: %zu elements are not written.\n",
           n, width, n / width, n % width, unwritten);
    printf("The other %zu sums lack %zu of %zu products: %zu are wrong.\n", n * n - unwritten, n % width, n,
           wrong);
    return EXIT_FAILURE;
}

// a = 1 … 16 and b = 16 … 1 by rows, in blocks of 2 x 2 threads: with as many phases as are to be shown, the
// kernel stores the sums after the last of them.
static int show_phases(void) {
    float a[16], b[16], sums[16];
    for (int i = 0; i < 16; i++)
        b[15 - i] = a[i] = i + 1;
    DeviceArray<float> dev_a(a, 16), dev_b(b, 16), dev_c(16);
    bool ok = true;
    for (int phase = 0; phase < 2; phase++) {
        matmul<<<dim3(2, 2), dim3(2, 2), 8 * sizeof(float)>>>(dev_a, dev_b, dev_c, 4, phase + 1);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(sums, dev_c, sizeof(sums), cudaMemcpyDeviceToHost));
        for (int block = 0; block < 4; block++) {
            int col = block % 2 * 2, row = block / 2 * 2, k = 2 * phase;
            const float *at = a + 4 * row + k, *bt = b + 4 * k + col, *sum = sums + 4 * row + col;
            printf("phase %d, block (%d, %d): a [%g %g; %g %g], b [%g %g; %g %g], sums [%g %g; %g %g]\n",
                   phase + 1, block % 2, block / 2, at[0], at[1], at[4], at[5], bt[0], bt[1], bt[4], bt[5],
                   sum[0], sum[1], sum[4], sum[5]);
        }
        ok = check_floats("sums", sums, 16, 0,
                          [&](size_t i) {
                              double sum = 0;
                              for (int k = 0; k < 2 * (phase + 1); k++)
                                  sum += a[i / 4 * 4 + k] * b[4 * k + i % 4];
                              return sum;
                          }) &&
             ok;
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Task: matmul(): The matrix product c = a * b of n x n row-major matrices, by square tiles as wide as a
// block. The array of dynamic shared memory has room for two of them, one of a and one of b. A block computes
// a tile of c: in phase p its threads load the tile of a that is p tiles from the left, in the rows of the
// block, and the tile of b that is p tiles from the top, in its columns, with zeros outside the matrices.
// After a barrier each thread adds the products of its row and its column of the tiles to its sum. After
// another barrier comes the next of `phases` phases. Only threads inside the matrix store a result.
