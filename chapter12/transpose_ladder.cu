// SPDX-License-Identifier: MIT
/*
 * transpose_ladder: transposing a matrix, from scattered writes to the rate of a copy
 *
 * Teaches: A transpose moves as many bytes as a copy and can be nearly as fast. Tiles in shared memory make
 *          reads and writes coalesced, padding removes the bank conflicts, and vectorized accesses of larger
 *          tiles keep more bytes in flight. Finally the order of the tiles decides whether whole rows are
 *          written at a time. The last kernel is faster than cuBLAS.
 * Terms:   transpose, coalesced access, tile, shared memory, bank conflict, padding, vectorized load,
 *          in flight, limit, library, cuBLAS
 * Book:    12.2.7 (ladder)
 * Rungs:   0 naive (scattered writes); 1 tile (coalesced writes, with bank conflicts); 2 padding (no bank
 *          conflicts); 3 vectorized loads (float4, tiles of 64 x 64); 4 column by column (whole rows of the
 *          output at a time)
 * Build:   nvcc -o transpose_ladder chapter12/transpose_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/transpose_ladder --size 16384
 * Differs: the book shows a profiler's picture of such kernels, without code. chapter12/transpose prints
 *          the sectors and bank conflicts of the first three. Rungs 3 and 4 need widths and heights that
 *          are multiples of 4.
 * Limit:   copies within device memory; the last rung is nearly as fast.
 * Bench:   256 1024 4096 8192 16384
 * Check:   --size 65 --height 72 | --size 72 --height 65 | --size 100 --height 72
 */
#include "../common/book.h"
#include "../common/bench.h"
#ifdef HAVE_CUBLAS
#include <cublas_v2.h>
#include "libraries.h" // HANDLE_CUBLAS()
#endif

#define TILE 32 // rows and columns of a tile, up to rung 2
#define ROWS 8  // rows of a block of threads: each thread moves TILE / ROWS = 4 elements

const unsigned SIDE = 64;              // rows and columns of a tile, from rung 3 on
const unsigned FOURS = SIDE / 4;       // float4 in a row of such a tile: one for each thread of a row
const unsigned LOADS = 4;              // rows that a thread loads
const unsigned STEP = SIDE / LOADS;    // rows between them
const unsigned THREADS = FOURS * STEP; // of a block, from rung 3 on

static size_t width = BENCH_SIZE(16384, 1024); // --size
static size_t height = 0;                      // --height; 0: as --size
static float *dev_in, *dev_out;
static float *expected, *result; // on the host
static void make_matrix(void);

// Rung 0: `in` has h rows of w elements. The lanes of a warp have consecutive x: their reads, along a row,
// are coalesced; their writes go to 32 different rows, in 32 sectors of which they use 4 bytes each.
__global__ void transpose_naive(const float *in, float *out, size_t w, size_t h) {
    size_t x = (size_t)blockIdx.x * TILE + threadIdx.x;
    for (size_t y = (size_t)blockIdx.y * TILE + threadIdx.y, end = min(h, y + TILE); y < end; y += ROWS)
        if (x < w)
            out[x * h + y] = in[y * w + x];
}

// Rungs 1 and 2: the block reads rows into the tile, waits, and writes rows of the output, which are columns
// of the tile. All words of a column are in one bank if rows are 32 words apart, and in different banks
// if they are 33 words apart.
template <int pitch> __global__ void transpose_tile(const float *in, float *out, size_t w, size_t h) {
    __shared__ float tile[TILE][pitch];
    size_t left = (size_t)blockIdx.x * TILE, top = (size_t)blockIdx.y * TILE;
    for (int k = 0; k < TILE; k += ROWS) {
        size_t row = threadIdx.y + k;
        if (left + threadIdx.x < w && top + row < h)
            tile[row][threadIdx.x] = in[(top + row) * w + left + threadIdx.x];
    }
    __syncthreads();
    for (int k = 0; k < TILE; k += ROWS) {
        size_t column = threadIdx.y + k;
        if (top + threadIdx.x < h && left + column < w)
            out[(left + column) * h + top + threadIdx.x] = tile[threadIdx.x][column];
    }
}

// Rungs 3 and 4: float4 in global memory, and tiles of 64 x 64 elements. A row of a tile is 256 bytes, and
// each thread has four loads in flight. Shared memory, which is far from its limit, is accessed word by word.
// Rows are indexed as arrays of float4: where &row[x] was cast instead, nvcc stored the words one by one.
__device__ static void move_tile(const float *in, float *out, size_t w, size_t h, size_t left, size_t top) {
    __shared__ float tile[SIDE][SIDE + 1];
    unsigned i = threadIdx.x % FOURS, x = 4 * i, y = threadIdx.x / FOURS;
    unsigned columns = min((size_t)SIDE, w - left), rows = min((size_t)SIDE, h - top);
    float4 v[LOADS];
    for (unsigned k = 0; k < LOADS; k++)
        if (x < columns && y + k * STEP < rows)
            v[k] = ((const float4 *)&in[(top + y + k * STEP) * w + left])[i];
    for (unsigned k = 0; k < LOADS; k++) {
        float *to = &tile[y + k * STEP][x];
        to[0] = v[k].x;
        to[1] = v[k].y;
        to[2] = v[k].z;
        to[3] = v[k].w;
    }
    __syncthreads();
    for (unsigned k = 0; k < LOADS; k++) {
        unsigned c = y + k * STEP;
        if (x < rows && c < columns)
            ((float4 *)&out[(left + c) * h + top])[i] =
                make_float4(tile[x][c], tile[x + 1][c], tile[x + 2][c], tile[x + 3][c]);
    }
}

__global__ void __launch_bounds__(THREADS, 4)
    transpose_vectors(const float *in, float *out, size_t w, size_t h) {
    move_tile(in, out, w, h, (size_t)blockIdx.x * SIDE, (size_t)blockIdx.y * SIDE);
}

// Blocks usually start in the order of blockIdx.x, which CUDA does not promise. In rung 3 the blocks that run
// at the same time read whole rows of the input, and write pieces of 256 bytes to all rows of the output. In
// rung 4 it is the other way round: they read pieces and write whole rows. DRAM page locality matters more
// for writes than for reads.
__global__ void __launch_bounds__(THREADS, 4)
    transpose_columns(const float *in, float *out, size_t w, size_t h) {
    move_tile(in, out, w, h, (size_t)blockIdx.y * SIDE, (size_t)blockIdx.x * SIDE);
}

typedef void Kernel(const float *in, float *out, size_t w, size_t h);

static void run_tiles(Kernel *kernel) {
    dim3 blocks((width + TILE - 1) / TILE, (height + TILE - 1) / TILE), threads(TILE, ROWS);
    kernel<<<blocks, threads>>>(dev_in, dev_out, width, height);
    HANDLE_LAUNCH();
}

static void run_vectors(Kernel *kernel, bool columns) {
    unsigned x = (width + SIDE - 1) / SIDE, y = (height + SIDE - 1) / SIDE;
    kernel<<<columns ? dim3(y, x) : dim3(x, y), THREADS>>>(dev_in, dev_out, width, height);
    HANDLE_LAUNCH();
}

// float4 accesses need rows that start at multiples of 16 bytes.
static const char *needs_fours(void) {
    return width % 4 || height % 4 ? "needs a width and a height that are multiples of 4" : NULL;
}

#ifdef HAVE_CUBLAS
static cublasHandle_t cublas;

// out = 1 * in^T + 0 * out. cuBLAS matrices are column-major, so its columns are our rows.
static void run_cublas(void) {
    const float one = 1, zero = 0;
    HANDLE_CUBLAS(cublasSgeam(cublas, CUBLAS_OP_T, CUBLAS_OP_N, height, width, &one, dev_in, width, &zero,
                              dev_out, height, dev_out, height));
}
#endif

static const Rung rungs[] = {
    {"naive", "scattered writes", [] { run_tiles(transpose_naive); }},
    {"tile", "coalesced writes, with bank conflicts", [] { run_tiles(transpose_tile<TILE>); }},
    {"padding", "no bank conflicts", [] { run_tiles(transpose_tile<TILE + 1>); }},
    {"vectorized loads", "float4, tiles of 64 x 64", [] { run_vectors(transpose_vectors, false); },
     needs_fours},
    {"column by column", "whole rows of the output at a time", [] { run_vectors(transpose_columns, true); },
     needs_fours},
#ifdef HAVE_CUBLAS
    {"cublasSgeam", "cuBLAS", run_cublas, LIBRARY},
#endif
};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = width * height * sizeof(float);
    bench_malloc(&dev_in, bytes);
    bench_malloc(&dev_out, bytes);
    make_matrix();
#ifdef HAVE_CUBLAS
    HANDLE_CUBLAS(cublasCreate(&cublas));
#endif

    bench_run(rungs);

#ifdef HAVE_CUBLAS
    HANDLE_CUBLAS(cublasDestroy(cublas));
#endif
    return bench_finish({expected});
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Transpose of a matrix, from scattered writes to the rate of a copy.", LADDER,
              {OPTION_SIZE("size", &width, 1, 1 << 20, "elements in a row"),
               OPTION_SIZE("height", &height, 0, 1 << 20, "rows; 0: as many as elements in a row")});
    height = height ? height : width;
    size_t bytes = width * height * sizeof(float);
    require_memory(2 * bytes, 2 * bytes + bench_memory(2 * bytes));
    bench.title = std::to_string(height) + " x " + std::to_string(width) + " floats";
    bench.size = width;
    bench.work = bench.footprint = 2 * bytes; // each element is read and written
}

// A random matrix, and its transpose on the host.
static void make_matrix(void) {
    size_t n = width * height;
    bench_malloc_host(&result, n * sizeof(float)); // first the input, later the output of the device
    expected = host_array<float>(n);
    random_floats(result, n, 1);
    in_threads(n, [](size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++)
            expected[i] = result[i % height * width + i / height];
    });
    HANDLE_ERROR(cudaMemcpy(dev_in, result, n * sizeof(float), cudaMemcpyHostToDevice));
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_out, 0xff, width * height * sizeof(float)));
}

// Elements are moved and not computed, so all bits must be equal.
static bool check(const char *name, BenchError *) {
    size_t n = width * height;
    HANDLE_ERROR(cudaMemcpy(result, dev_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    return check_ints(name, (const int *)result, (const int *)expected, n);
}
