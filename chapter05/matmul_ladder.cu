// SPDX-License-Identifier: MIT
/*
 * matmul_ladder: matrix product, from a thread per element to tensor cores with the accuracy of float
 *
 * Teaches: A matrix product is compute-bound if its operands are used often enough after each load. A tile
 *          in shared memory serves all threads of a block. An outer product in registers needs few loads
 *          from shared memory for many FMA instructions. Vectorized loads without bank conflicts and
 *          asynchronous copies take few instructions of their own. Tensor cores multiply numbers with fewer
 *          bits, many times as fast as FMA instructions multiply floats. When each float is split into three
 *          such numbers, the errors are no larger than those of float arithmetic.
 * Terms:   matrix product, arithmetic intensity, compute-bound, tiling, outer product, vectorized load,
 *          bank conflict, asynchronous copy, double buffering, tensor core, bfloat16, cuBLAS
 * Book:    5.3.1 (ladder)
 * Run:     ./bin/chapter05/matmul_ladder --size 8192
 * Differs: any shape. The error of an element is printed relative to the sum of the |a[i][j] * b[j][k]| in
 *          its dot product. --fill selects data with large rounding errors.
 * Needs:   arch=90a
 * Bench:   1024 4096 8192
 * Check:   --size 129 --fill wide | --size 20 | --size 5
 */
#include "../common/book.h"
#include "../common/bench.h"
#include <cuda_pipeline_primitives.h> // __pipeline_memcpy_async()
#include "matmul_check.h"             // make_matrices(), product_errors(), fma_alone()
#include "matmul_tensor.h"            // matmul_tensor(), the last rung
#ifdef HAVE_CUBLAS
#include <cublas_v2.h>
#endif

const unsigned TILE = 32;              // rungs 0 and 1: a block has TILE x TILE threads, one per element
const unsigned BLOCK = 128, DEPTH = 8; // rungs 2 and 3: a block computes BLOCK x BLOCK elements with 256
const unsigned OWN = 8;                // threads, each of them OWN x OWN; its tiles are DEPTH deep

static size_t size = BENCH_SIZE(4096, 160); // --size
static int fill;                            // --fill: 0: all data sets, else UNIFORM to SCALED
static size_t m, n, k;                      // --m, --n, --k: a has m x k elements, b k x n, c m x n
static float *dev_a, *dev_b, *dev_c;        // all stored by rows
static void *workspace;                     // of the last rung
static void poison(void);
static bool check(const char *name, BenchError *error);

// Rung 0, the text's kernel: each thread computes one element, and reads a row of a and a column of b.
__global__ void matmul(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
    size_t col = threadIdx.x + blockIdx.x * TILE, row = threadIdx.y + blockIdx.y * TILE;
    if (row >= m || col >= n)
        return;
    float sum = 0;
    for (size_t i = 0; i < k; i++)
        sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}

// Loads an element of a matrix. Tiles that extend beyond the edges are padded with zeros.
__device__ static float at(const float *x, size_t row, size_t col, size_t rows, size_t cols) {
    return row < rows && col < cols ? x[row * cols + col] : 0;
}

// Rung 1: the threads of a block share tiles of a and b. Each element that they load is used TILE times.
__global__ void matmul_tiles(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    size_t col = x + blockIdx.x * TILE, row = y + blockIdx.y * TILE;
    float sum = 0;
    for (size_t first = 0; first < k; first += TILE) {
        tile_a[y][x] = at(a, row, first + x, m, k);
        tile_b[y][x] = at(b, first + y, col, k, n);
        __syncthreads();
        for (unsigned i = 0; i < TILE; i++)
            sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * n + col] = sum;
}

// Rung 2: a thread computes OWN x OWN elements. For each column of tile_a and row of tile_b it loads 2 * OWN
// floats into registers and multiplies each with each, an outer product: OWN * OWN FMA instructions. In rung
// 1 there were two loads for one FMA instruction.
__device__ static void add_outer_product(float (&sum)[OWN][OWN], const float (&col)[OWN],
                                         const float (&row)[OWN]) {
    for (unsigned i = 0; i < OWN; i++)
        for (unsigned j = 0; j < OWN; j++)
            sum[i][j] += col[i] * row[j];
}

__global__ void __launch_bounds__(256, 2)
    matmul_registers(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
    __shared__ float tile_a[BLOCK][DEPTH], tile_b[DEPTH][BLOCK];
    unsigned x = threadIdx.x % 16 * OWN, y = threadIdx.x / 16 * OWN;
    size_t left = (size_t)blockIdx.x * BLOCK, top = (size_t)blockIdx.y * BLOCK;
    float sum[OWN][OWN] = {};
    for (size_t first = 0; first < k; first += DEPTH) {
        for (unsigned i = threadIdx.x; i < BLOCK * DEPTH; i += 256) {
            tile_a[i / DEPTH][i % DEPTH] = at(a, top + i / DEPTH, first + i % DEPTH, m, k);
            tile_b[i / BLOCK][i % BLOCK] = at(b, first + i / BLOCK, left + i % BLOCK, k, n);
        }
        __syncthreads();
#pragma unroll
        for (unsigned d = 0; d < DEPTH; d++) {
            float col[OWN], row[OWN];
            for (unsigned i = 0; i < OWN; i++)
                col[i] = tile_a[y + i][d], row[i] = tile_b[d][x + i];
            add_outer_product(sum, col, row);
        }
        __syncthreads();
    }
    for (unsigned i = 0; i < OWN; i++)
        for (unsigned j = 0; j < OWN; j++)
            if (top + y + i < m && left + x + j < n)
                c[(top + y + i) * n + left + x + j] = sum[i][j];
}

// Rung 3: vectorized loads. A thread's elements are four groups of 4 x 4, 64 apart, so neighbouring threads
// load neighbouring float4 of tile_b, and there are no bank conflicts. tile_a is transposed, so that a column
// of it can be loaded as float4 too; its rows are one float4 longer, so that the transposed stores have
// no bank conflicts either.
__device__ static float4 four_at(const float *x, size_t row, size_t col, size_t rows, size_t cols) {
    if (cols % 4 != 0) // not all rows are aligned to 16 bytes
        return make_float4(at(x, row, col, rows, cols), at(x, row, col + 1, rows, cols),
                           at(x, row, col + 2, rows, cols), at(x, row, col + 3, rows, cols));
    return row < rows && col < cols ? *(const float4 *)&x[row * cols + col] : make_float4(0, 0, 0, 0);
}

__global__ void __launch_bounds__(256, 2)
    matmul_vectors(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
    __shared__ float4 tile_a[DEPTH][BLOCK / 4 + 1], tile_b[DEPTH][BLOCK / 4];
    unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
    size_t left = (size_t)blockIdx.x * BLOCK, top = (size_t)blockIdx.y * BLOCK;
    float sum[OWN][OWN] = {};
    for (size_t first = 0; first < k; first += DEPTH) {
        unsigned row = threadIdx.x / 2, col = threadIdx.x % 2 * 4; // in tile_a
        float4 v = four_at(a, top + row, first + col, m, k);
        for (unsigned i = 0; i < 4; i++)
            ((float *)tile_a[col + i])[row] = (&v.x)[i];
        row = threadIdx.x / 32, col = threadIdx.x % 32; // in tile_b
        tile_b[row][col] = four_at(b, first + row, left + 4 * col, k, n);
        __syncthreads();
#pragma unroll
        for (unsigned d = 0; d < DEPTH; d++) {
            alignas(16) float col[OWN], row[OWN];
            for (unsigned i = 0; i < OWN / 4; i++) {
                *(float4 *)&col[4 * i] = tile_a[d][y + 16 * i];
                *(float4 *)&row[4 * i] = tile_b[d][x + 16 * i];
            }
            add_outer_product(sum, col, row);
        }
        __syncthreads();
    }
    for (unsigned i = 0; i < OWN; i++)
        for (unsigned j = 0; j < OWN; j++) {
            size_t at_y = top + 4 * y + i / 4 * 64 + i % 4, at_x = left + 4 * x + j / 4 * 64 + j % 4;
            if (at_y < m && at_x < n)
                c[at_y * n + at_x] = sum[i][j];
        }
}

// Rung 4: asynchronous copies. Three tiles of a and three of b are in shared memory: while the threads
// multiply one of each, the hardware copies the next two, and no register holds what is copied. The copies
// are spread over the work on a tile, since many at once would wait for each other. One barrier per tile
// suffices. The next column and row are loaded into registers while the present ones are multiplied. Warp
// tiles: a warp computes 64 x 64 elements, a thread 16 x 8 of them, so there are 128 FMA instructions for 6
// loads.
const unsigned WORKERS = 128;       // threads of a block
const unsigned ROWS = 16, COLS = 8; // rows and columns of a thread's elements, in blocks of 4 x 4
const unsigned STEP = 16;           // depth of these tiles
const unsigned RING = 3;            // tiles of each matrix in shared memory

struct alignas(16) Tile {
    float a[STEP][BLOCK + 4], b[STEP][BLOCK]; // a is transposed
};

// Loads one column of a tile of a and one row of a tile of b into registers.
__device__ static void load_fragments(float (&col)[ROWS], float (&row)[COLS], const Tile &tile, unsigned d,
                                      unsigned y, unsigned x) {
    for (unsigned i = 0; i < ROWS; i += 4)
        *(float4 *)&col[i] = *(const float4 *)&tile.a[d][y + 4 * i];
    for (unsigned j = 0; j < COLS; j += 4)
        *(float4 *)&row[j] = *(const float4 *)&tile.b[d][x + 8 * j];
}

// A copy brings one float of a, because a is transposed on the way, and WIDTH floats of b: 4 if the rows of b
// are aligned to 16 bytes, otherwise 1.
template <unsigned WIDTH>
__global__ void __launch_bounds__(WORKERS, 2)
    matmul_async(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
    extern __shared__ Tile tiles[];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned y = warp / 2 * 64 + lane / 8 * 4, x = warp % 2 * 64 + lane % 8 * 4; // of the thread's elements
    size_t left = (size_t)blockIdx.x * BLOCK, top = (size_t)blockIdx.y * BLOCK;

    // What the thread copies: of each tile of a, columns ax and ax + 8 in every 16th row; of each tile of b,
    // every PASS-th row. Beyond the edges of c the last row or column is copied again, so that the loop needs
    // no tests; the sums that come from it are not stored.
    const unsigned PASS = WORKERS * WIDTH / BLOCK;
    unsigned ax = threadIdx.x % 8, ay = threadIdx.x / 8;
    unsigned bx = threadIdx.x % (BLOCK / WIDTH) * WIDTH, by = threadIdx.x / (BLOCK / WIDTH);
    const float *from_a[BLOCK / 16], *from_b = b + by * n + min(left + bx, n - WIDTH);
    for (unsigned i = 0; i < BLOCK / 16; i++)
        from_a[i] = a + min(top + ay + 16 * i, m - 1) * k + ax;
    unsigned first = 0; // column of a from which the next tile is copied
    auto copy_a = [&](Tile &tile, unsigned i, unsigned depth) {
        for (unsigned d = 0; d < STEP; d += 8)
            __pipeline_memcpy_async(&tile.a[ax + d][ay + 16 * i], from_a[i] + first + d, 4,
                                    depth == STEP || ax + d < depth ? 0 : 4);
    };
    auto copy_b = [&](Tile &tile, unsigned depth) {
        for (unsigned d = 0; d < STEP; d += PASS)
            __pipeline_memcpy_async(&tile.b[by + d][bx], from_b + d * n, 4 * WIDTH,
                                    depth == STEP || by + d < depth ? 0 : 4 * WIDTH);
    };
    auto advance = [&](unsigned depth) {
        first += depth;
        from_b += depth * n;
    };

    // The first tile is the one that need not be full: if STEP does not divide k, it is padded with zeros.
    unsigned count = (k + STEP - 1) / STEP, depth = k - (count - 1) * STEP;
    for (unsigned t = 0; t < RING - 1; t++, depth = STEP) {
        if (t < count) {
            for (unsigned i = 0; i < BLOCK / 16; i++)
                copy_a(tiles[t], i, depth);
            copy_b(tiles[t], depth);
            advance(depth);
        }
        __pipeline_commit();
    }
    __pipeline_wait_prior(RING - 2);
    __syncthreads();

    float sum[ROWS][COLS] = {};
    alignas(16) float col[2][ROWS], row[2][COLS];
    Tile *use = tiles, *fill = tiles + RING - 1, *end = tiles + RING;
    load_fragments(col[0], row[0], tiles[0], 0, y, x);
    for (unsigned t = 0; t < count; t++) {
        bool more = t + RING - 1 < count;
#pragma unroll
        for (unsigned d = 0; d < STEP; d++) {
            if (d == STEP - 1) { // the next tile is complete, and no thread needs the present one any more
                __pipeline_wait_prior(RING - 2);
                __syncthreads();
                use = use + 1 < end ? use + 1 : tiles;
                advance(STEP);
            }
            load_fragments(col[(d + 1) % 2], row[(d + 1) % 2], *use, (d + 1) % STEP, y, x);
            if (d % 3 == 0 && d < 12 && more) {
                copy_a(*fill, d / 3 * 2, STEP);
                copy_a(*fill, d / 3 * 2 + 1, STEP);
            }
            if (d == 12) {
                if (more)
                    copy_b(*fill, STEP);
                __pipeline_commit();
                fill = fill + 1 < end ? fill + 1 : tiles;
            }
            // Back and forth: successive FMA instructions have an operand in common, which is then read from
            // the register file only once. Its banks are what limits this loop.
            for (unsigned i = 0; i < ROWS; i++)
                for (unsigned j = 0; j < COLS; j++) {
                    unsigned e = i % 2 ? COLS - 1 - j : j;
                    sum[i][e] += col[d % 2][i] * row[d % 2][e];
                }
        }
    }
    // Single floats are stored. For float4 the compiler would keep the sums in aligned groups of four
    // registers, and more FMA instructions would have operands in the same bank of the register file.
    for (unsigned i = 0; i < ROWS; i++)
        for (unsigned j = 0; j < COLS; j++) {
            size_t at_y = top + y + i / 4 * 16 + i % 4, at_x = left + x + j / 4 * 32 + j % 4;
            if (at_y < m && at_x < n)
                c[at_y * n + at_x] = sum[i][j];
        }
}

typedef void (*Kernel)(const float *a, const float *b, float *c, size_t m, size_t n, size_t k);

// Launches a kernel in which each block computes a tile of tile x tile elements of c.
static void run(Kernel kernel, unsigned tile, dim3 threads, size_t shared = 0) {
    dim3 blocks((n + tile - 1) / tile, (m + tile - 1) / tile);
    kernel<<<blocks, threads, shared>>>(dev_a, dev_b, dev_c, m, n, k);
    HANDLE_LAUNCH();
}

#ifdef HAVE_CUBLAS
static cublasHandle_t cublas; // with its workspace

// cuBLAS stores matrices in column-major order. Row-major a, b and c are the column-major matrices a^T, b^T
// and c^T, and c^T = b^T a^T, so b is the first operand.
static void run_cublas(cublasComputeType_t type) {
    const float one = 1, zero = 0;
    if (cublasGemmEx(cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, dev_b, CUDA_R_32F, n, dev_a, CUDA_R_32F,
                     k, &zero, dev_c, CUDA_R_32F, n, type, CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS)
        quit(EXIT_FAILURE, "cublasGemmEx failed");
}
#endif

static const Rung rungs[] = {
    {"global memory", "one thread per element", [] { run(matmul, TILE, dim3(TILE, TILE)); }},
    {"tiles", "shared by the threads of a block", [] { run(matmul_tiles, TILE, dim3(TILE, TILE)); }},
    {"registers", "8 x 8 elements per thread", [] { run(matmul_registers, BLOCK, 256); }},
    {"vectorized loads", "float4, no bank conflicts", [] { run(matmul_vectors, BLOCK, 256); }},
    {"asynchronous copies", "three stages, warp tiles, 16 x 8",
     [] { run(n % 4 ? matmul_async<1> : matmul_async<4>, BLOCK, WORKERS, RING * sizeof(Tile)); }},
    {"tensor cores", "each float as three bfloat16 numbers",
     [] { matmul_tensor(dev_a, dev_b, dev_c, m, n, k, workspace); }, RUNG, 90, 0, tensor_needs},
#ifdef HAVE_CUBLAS
    {"cuBLAS FP32", "CUBLAS_COMPUTE_32F_PEDANTIC", [] { run_cublas(CUBLAS_COMPUTE_32F_PEDANTIC); }, LIBRARY},
    {"cuBLAS TF32", "tensor cores, operands of 11 bits", [] { run_cublas(CUBLAS_COMPUTE_32F_FAST_TF32); },
     INACCURATE},
#endif
    {"FMA", "instructions alone",
     [] {
         fma_alone<<<FMA_THREADS / 256, 256>>>(dev_c, 0.999f, 1);
         HANDLE_LAUNCH();
     },
     COPY_RATE, 0, 2.0 * FMA_THREADS *FMA_TURNS *FMA_CHAINS},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    HANDLE_ERROR(cudaMalloc(&dev_a, m * k * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_b, k * n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_c, m * n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&workspace, tensor_workspace(m, n, k)));
    allocate_reference(m, n);
    for (Kernel kernel : {matmul_async<1>, matmul_async<4>})
        HANDLE_ERROR(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, RING * sizeof(Tile)));
#ifdef HAVE_CUBLAS
    if (cublasCreate(&cublas) != CUBLAS_STATUS_SUCCESS)
        quit(EXIT_FAILURE, "cuBLAS does not start");
#endif

    Bench bench;
    bench.size = size;
    bench.title = std::to_string(m) + " x " + std::to_string(k) + " times " + std::to_string(k) + " x " +
                  std::to_string(n) + " floats";
    bench.work = 2.0 * m * n * k; // a product and an addition for each of k terms
    bench.unit = "GFLOP/s";
    bench.limit = "FMA";
    bench.footprint = (m * k + k * n + m * n) * sizeof(float);
    bench.poison = poison;
    bench.check = check;
    bool ok = true;
    for (int data = UNIFORM; data <= SCALED; data++)
        if (fill == 0 || fill == data) {
            make_matrices(data, dev_a, dev_b, m, n, k);
            bench.data = data == UNIFORM    ? "uniform"
                         : data == POSITIVE ? "positive"
                         : data == WIDE     ? "wide exponents"
                                            : "scaled";
            ok = bench_run(bench, rungs) && ok;
        }
    bench_finish();

#ifdef HAVE_CUBLAS
    cublasDestroy(cublas);
#endif
    free_reference();
    HANDLE_ERROR(cudaFree(dev_a));
    HANDLE_ERROR(cudaFree(dev_b));
    HANDLE_ERROR(cudaFree(dev_c));
    HANDLE_ERROR(cudaFree(workspace));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    const Option own[] = {OPTION_SIZE("size", &size, 1, 65535, "rows and columns of the matrices"),
                          OPTION_SIZE("m", &m, 1, 65535, "rows of a and of the product, instead of --size"),
                          OPTION_SIZE("n", &n, 1, 65535, "columns of b and of the product"),
                          OPTION_SIZE("k", &k, 1, 65535, "columns of a, rows of b"),
                          OPTION_WORD("fill", &fill, "all|" FILLS, "the elements"),
                          OPTION_END};
    parse_options(argc, argv, "Matrix product, from the text's kernel to the fastest.", LADDER, own);
    select_device();
    m = m ? m : size;
    n = n ? n : size;
    k = k ? k : size;
    size_t bytes = (m * k + k * n + m * n) * sizeof(float) + tensor_workspace(m, n, k);
    require_memory((m * k + k * n) * sizeof(float),
                   bytes + m * n * (sizeof(double) + sizeof(float)) + bench_memory(bytes));
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, m * n * sizeof(float))); // NaN
}

// Each of k products and additions rounds by at most 2^-24 of its result, whatever their order. The rung on
// tensor cores leaves out 2^-24 of a product. TF32 cuts the operands down to 11 bits, so each product may be
// off by 2^-9.
static bool check(const char *name, BenchError *error) {
    *error = product_errors(dev_c, m * n);
    double bound = (likely_roundings(k) + 3) * 0x1p-24 + (strcmp(name, "cuBLAS TF32") == 0 ? 0x1p-9 : 0);
    return check_value((std::string(name) + ": error in units of its bound").c_str(), error->max / bound, 0,
                       1);
}
