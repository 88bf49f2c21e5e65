// SPDX-License-Identifier: MIT
/*
 * matmul_ladder: matrix product, from a thread per element to tensor cores with the accuracy of float
 *
 * Teaches: A matrix product is compute-bound if its operands are used often enough after each load: a tile
 *          in shared memory serves all threads of a block, and an outer product in registers needs few loads
 *          for many FMA instructions. Vectorized loads without bank conflicts and asynchronous copies take
 *          few instructions of their own. Tensor cores multiply numbers with fewer bits, many times as fast
 *          as FMA instructions multiply floats, and the errors are no larger when each float is split into
 *          three such numbers. For a small product the sum over k is split, so that all warps have work.
 * Terms:   matrix product, arithmetic intensity, compute-bound, tiling, outer product, vectorized load,
 *          bank conflict, asynchronous copy, double buffering, tensor core, bfloat16, partial sum,
 *          latency, cuBLAS
 * Book:    5.3.1 (ladder)
 * After:   chapter05/dot_ladder
 * Rungs:   0 global memory (one thread per element); 1 tiles (shared by the threads of a block); 2 registers
 *          (8 x 8 elements per thread); 3 vectorized loads (float4, no bank conflicts); 4 asynchronous
 *          copies (three stages, warp tiles, 16 x 8); 5 tensor cores (each float as three bfloat16 numbers);
 *          6 split K (small tiles, over the warps of a block; over blocks)
 * Build:   nvcc -o matmul_ladder chapter05/matmul_ladder.cu common/lib/[a-z]*.c -arch=sm_90a
 * Run:     ./bin/chapter05/matmul_ladder --size 8192
 * Differs: any shape. The error of an element is printed relative to the sum of the |a[i][j] * b[j][k]| in
 *          its dot product. --fill selects data with large rounding errors.
 * Needs:   arch=90a
 * Limit:   the tensor cores. The last rung leaves the time of splitting the matrices, and of the wait after
 *          each slice, when its sums are added in float. Of small products: the launch and memory latency.
 * Bench:   128 256 512 1024 4096 8192
 * Check:   --shape 129x70x45 --fill wide | --size 129 | --size 20
 */
#include "../common/book.h"
#include "../common/bench.h"
#include <mutex>
#include <cuda_bf16.h>
#include <cuda_pipeline_primitives.h> // __pipeline_memcpy_async()
#ifdef HAVE_CUBLAS
#include <cublas_v2.h>
#endif
#ifdef HAVE_CUTLASS
#pragma nv_diag_suppress 20015 // no warning: CUTLASS calls constexpr functions of the host in device code
#include <cutlass/gemm/device/gemm.h>
#endif

const unsigned TILE = 32;              // rungs 0 and 1: a block has TILE x TILE threads, one per element
const unsigned BLOCK = 128, DEPTH = 8; // rungs 2 and 3: a block computes BLOCK x BLOCK elements with 256
const unsigned OWN = 8;                // threads, each of them OWN x OWN; its tiles are DEPTH deep

#define FILLS "uniform|positive|wide|scaled"
enum { UNIFORM = 1, POSITIVE, WIDE, SCALED };

static size_t size = BENCH_SIZE(4096, 160); // --size
static int fill;                            // --fill: 0: all data sets, else UNIFORM to SCALED
static size_t m, n, k;                      // --shape: a has m x k elements, b k x n, c m x n
static float *dev_a, *dev_b, *dev_c;        // all stored by rows
static void *workspace;                     // of the last rung
static void make_matrices(int fill);

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
__device__ static float at(const float *x, unsigned row, unsigned col, unsigned rows, unsigned cols) {
    return row < rows && col < cols ? x[row * cols + col] : 0;
}

__device__ static void put(float *x, float value, size_t row, size_t col, size_t rows, size_t cols) {
    if (row < rows && col < cols)
        x[row * cols + col] = value;
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
    put(c, sum, row, col, m, n);
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
            put(c, sum[i][j], top + y + i, left + x + j, m, n);
}

// Rung 3: vectorized loads. A thread's elements are four groups of 4 x 4, 64 apart, so neighbouring threads
// load neighbouring float4 of tile_b, and there are no bank conflicts. tile_a is transposed, so that a column
// of it can be loaded as float4 too; its rows are one float4 longer, so that the transposed stores have
// no bank conflicts either.
__device__ static float4 four_at(const float *x, unsigned row, unsigned col, unsigned rows, unsigned cols,
                                 unsigned step = 1) {
    if (cols % 4 != 0) // not all rows are aligned to 16 bytes
        return make_float4(at(x, row, col, rows, cols), at(x, row, col + step, rows, cols),
                           at(x, row, col + 2 * step, rows, cols), at(x, row, col + 3 * step, rows, cols));
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
        for (unsigned j = 0; j < OWN; j++)
            put(c, sum[i][j], top + 4 * y + i / 4 * 64 + i % 4, left + 4 * x + j / 4 * 64 + j % 4, m, n);
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
        for (unsigned j = 0; j < COLS; j++)
            put(c, sum[i][j], top + y + i / 4 * 16 + i % 4, left + x + j / 4 * 32 + j % 4, m, n);
}

// Rung 5: tensor cores, with the accuracy of float arithmetic.
//
// Tensor cores multiply small matrices of bfloat16 numbers at 15 times the rate of FMA instructions. bfloat16
// has the exponents of float and 8 of its 24 significant bits, so three such numbers hold a float exactly:
// x = high + middle + low. A product of two floats is a sum of nine products. Three of them are smaller than
// 2^-24 times the product and are omitted:
//
//     a * b = low * high + middle * middle + high * low + middle * high + high * middle + high * high
//
// Tensor cores compute each product exactly, but they round sums toward zero. Such rounding errors are
// biased, so they do not cancel. Therefore the tensor cores sum only the products of SLICE columns of a,
// those of the low parts first. This partial sum is added to the element of c with a float addition, which
// rounds to nearest; the technique is called promotion. With 32 columns the errors are a fifth of those of
// cuBLAS in float; with 256 columns they would be larger than those of cuBLAS.
//
// 1. pack_parts() splits a and b. It stores the parts tile by tile, in the order in which they are read, and
//    pads the edges with zeros. So a tile is copied as one piece, and the product needs no bounds checks.
// 2. multiply_parts() computes c. In each block one thread, the producer, copies tiles to shared memory, and
//    256 threads, the consumers, multiply them. The tiles are in a ring of stages. For each stage there is
//    a barrier that tells the consumers that it is full, and one that tells the producer that it is empty.
//
// Infinities and numbers that bfloat16 rounds to infinity (2^128 - 2^119 and above) give NaN. Numbers below
// 2^-110 lose their last bits, because bfloat16 has no bits below 2^-133.

const unsigned SIDE = 128;                      // a block computes tiles of SIDE x SIDE elements of c
const unsigned SLICE = 32;                      // columns of a tile of a, rows of a tile of b
const unsigned PARTS = 3;                       // bfloat16 numbers of a float
const unsigned PART_BYTES = SIDE * SLICE * 2;   // one part of a tile
const unsigned TILE_BYTES = PARTS * PART_BYTES; // all parts of a tile
const unsigned STAGES = 4;                      // of the ring; each has a tile of a and one of b
const unsigned WARPGROUP = 128;                 // threads: four warps execute a wgmma instruction together
const unsigned CONSUMERS = SIDE / 64;           // warpgroups; each computes 64 rows of the tile of c

// The pairs of parts of a and b that are multiplied. Part 0 is the high one.
__device__ static const unsigned PAIRS[6][2] = {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};

static unsigned multiprocessors;

// c is divided into rows * cols tiles, the dimension k into depth slices. In rung 6 several blocks, `shares`,
// compute the same tile of c, each the products of a part of the slices. Here one block computes a tile.
struct Tiles {
    unsigned rows, cols, depth, shares;
};

static Tiles tensor_tiles(void) {
    return {(unsigned)((m + SIDE - 1) / SIDE), (unsigned)((n + SIDE - 1) / SIDE),
            (unsigned)((k + SLICE - 1) / SLICE), 1};
}

static size_t parts_bytes(void) { // bytes of the parts of both matrices
    Tiles tiles = tensor_tiles();
    return (size_t)(tiles.rows + tiles.cols) * tiles.depth * TILE_BYTES;
}

// The workspace has the parts of both matrices, then the sums that blocks of rung 6 store.
const size_t MOST_SUMS = 1 << 21;

static size_t workspace_bytes(void) {
    return parts_bytes() + MOST_SUMS * sizeof(float);
}

// ---- splitting ----

// Splits 8 floats. The differences are exact, since a float minus its leading bits has fewer bits.
__device__ static void split(const float (&x)[8], uint4 (&parts)[PARTS]) {
    float rest[8];
    for (int i = 0; i < 8; i++)
        rest[i] = x[i];
    for (unsigned p = 0; p < PARTS; p++) {
        __nv_bfloat162 pair[4];
        for (int i = 0; i < 4; i++) {
            pair[i] = __floats2bfloat162_rn(rest[2 * i], rest[2 * i + 1]);
            rest[2 * i] -= __low2float(pair[i]);
            rest[2 * i + 1] -= __high2float(pair[i]);
        }
        memcpy(&parts[p], pair, sizeof pair);
    }
}

// Tensor cores read matrices of 8 rows of 8 numbers, 16 bytes a row, 128 contiguous bytes in all. So a part
// of a tile is stored as SLICE / 8 columns, each with 8 numbers of every row. b is stored transposed, so that
// both operands are K-major: the index that is summed over is contiguous in memory.
template <bool transposed>
__device__ static void pack_tile(const float *x, uint4 *packed, size_t rows, size_t k, size_t row,
                                 size_t first) {
    for (unsigned i = threadIdx.x; i < SIDE * (SLICE / 8); i += blockDim.x) {
        // Neighbouring threads read neighbouring elements: a row of b, or 32 bytes each of a row of a.
        unsigned r = transposed ? i % SIDE : i / (SLICE / 8), col = transposed ? i / SIDE : i % (SLICE / 8);
        unsigned y = row + r, z = first + 8 * col;
        alignas(16) float eight[8];
        for (unsigned j = 0; j < 8; j++)
            if (transposed)
                eight[j] = at(x, z + j, y, k, rows);
            else if (j % 4 == 0)
                *(float4 *)&eight[j] = four_at(x, y, z + j, rows, k);
        uint4 parts[PARTS];
        split(eight, parts);
        for (unsigned p = 0; p < PARTS; p++)
            packed[(p * (SLICE / 8) + col) * SIDE + r] = parts[p];
    }
}

// One block packs one tile. blockIdx.x is its index along k. blockIdx.y is first the index of a tile of a,
// along the rows of c, then that of a tile of b, along the columns of c.
__global__ void __launch_bounds__(256)
    pack_parts(const float *a, const float *b, uint4 *packed, size_t m, size_t n, size_t k, Tiles tiles) {
    unsigned z = blockIdx.x, y = blockIdx.y;
    packed += ((size_t)y * tiles.depth + z) * (TILE_BYTES / sizeof(uint4));
    if (y < tiles.rows)
        pack_tile<false>(a, packed, m, k, (size_t)y * SIDE, (size_t)z * SLICE);
    else
        pack_tile<true>(b, packed, n, k, (size_t)(y - tiles.rows) * SIDE, (size_t)z * SLICE);
}

__device__ static unsigned finished[MOST_SUMS / 2048]; // rung 6: how many blocks of each tile have ended

#ifdef __CUDA_ARCH_FEAT_SM90_ALL // code for sm_90a, the only architecture with wgmma
#define HAS_WGMMA true

// ---- PTX instructions that CUDA C has no functions for ----

__device__ static unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// A barrier in shared memory (mbarrier). Its current phase completes when `arrivals` threads have arrived and
// all bytes that they have announced (expect_tx) have been copied; then the next phase begins.
__device__ static void barrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ static void barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at the barrier and announces how many bytes will be copied in this phase.
__device__ static void barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

// Waits for the end of the first, third, fifth phase … if `parity` is 0, and of the second, fourth … if it
// is 1. With 1 it does not wait while the first phase lasts.
__device__ static void barrier_wait(unsigned barrier, unsigned parity) {
    unsigned ended = 0;
    while (!ended)
        asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(ended)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

// Starts a bulk copy of contiguous bytes from global to shared memory. It is asynchronous, and its completion
// counts at the barrier.
__device__ static void copy_bulk(unsigned to, const void *from, unsigned bytes, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

// A descriptor says where an operand lies in shared memory: its address, the distance of two columns of 8
// numbers (SIDE rows of 16 bytes) and that of two groups of 8 rows in a column (128 bytes), each divided
// by 16.
__device__ static unsigned long long descriptor(unsigned address) {
    return address / 16 | (unsigned long long)SIDE << 16 | 8ull << 32;
}

// wgmma: a warpgroup multiplies a 64 x 16 by a 16 x 128 matrix. The 64 x 128 accumulators are in 64 registers
// of each of its threads; if `add` is 0, their old values are ignored. The instruction is asynchronous: the
// registers must not be used before wgmma_wait().
#define SUMS(x)                                                                                              \
    FOUR(x, 0), FOUR(x, 4), FOUR(x, 8), FOUR(x, 12), FOUR(x, 16), FOUR(x, 20), FOUR(x, 24), FOUR(x, 28),     \
        FOUR(x, 32), FOUR(x, 36), FOUR(x, 40), FOUR(x, 44), FOUR(x, 48), FOUR(x, 52), FOUR(x, 56),           \
        FOUR(x, 60)
#define FOUR(x, i) "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3])

__device__ static void wgmma(float (&sum)[64], unsigned long long a, unsigned long long b, int add) {
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %66, 0;\n\t"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                 "}, %64, %65, p, 1, 1, 0, 0;\n\t}" // p: whether to add; then the signs and majors of a and b
                 : SUMS(sum)
                 : "l"(a), "l"(b), "r"(add));
}

// Waits for all wgmma instructions of this warpgroup. The accumulators are operands of the asm statement, so
// that the compiler does not use them earlier.
__device__ static void wgmma_wait(float (&sum)[64]) {
    asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;"
                 : SUMS(sum)::"memory");
}

// ---- the product ----

// Multiplies the tiles of one stage: 64 rows of a by SIDE columns of b, for each of the six pairs of parts
__device__ static void multiply_tile(float (&sum)[64], unsigned a, unsigned b) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); // earlier uses of the registers are done
#pragma unroll
    for (unsigned i = 0; i < 6; i++)
#pragma unroll
        for (unsigned step = 0; step < PART_BYTES; step += 2 * SIDE * 16) // two columns of 8 numbers
            wgmma(sum, descriptor(a + PAIRS[i][0] * PART_BYTES + step),
                  descriptor(b + PAIRS[i][1] * PART_BYTES + step), i + step > 0);
}

// Maps the number of a tile of c to its row and column. Tiles that are computed at the same time belong to a
// group that is GROUP tiles high, so that they share tiles of a and b in the L2 cache.
__device__ static inline void place_tile(unsigned tile, Tiles tiles, unsigned &row, unsigned &col) {
    const unsigned GROUP = 8;
    unsigned first = tile / (GROUP * tiles.cols) * GROUP, i = tile % (GROUP * tiles.cols);
    unsigned height = min(GROUP, tiles.rows - first);
    row = first + i % height, col = i / height;
}

// A barrier that only the consumers reach; the producer does not wait at it.
__device__ static void consumers_wait(void) {
    asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS * WARPGROUP) : "memory");
}

// In rung 6 each block of a tile stores its sums in global memory. In the block that ends last, `sum` becomes
// the total of all blocks, added in the same order each time, and the function returns true.
__device__ static bool add_shares(float (&sum)[64], float4 *sums, unsigned tile, unsigned share,
                                  unsigned shares) {
    const unsigned COUNT = SIDE * SIDE / 4; // float4 of a tile
    __shared__ bool last;
    sums += (size_t)tile * shares * COUNT + threadIdx.x;
#pragma unroll
    for (unsigned i = 0; i < 16; i++)
        sums[share * COUNT + i * CONSUMERS * WARPGROUP] =
            make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
    __threadfence(); // the sums are visible to the block that ends last
    consumers_wait();
    if (threadIdx.x == 0)
        last = atomicInc(&finished[tile], shares - 1) == shares - 1; // then 0 again
    consumers_wait();
    if (!last)
        return false;
    __threadfence();
    for (unsigned i = 0; i < 64; i++)
        sum[i] = 0;
    for (; shares > 0; shares--, sums += COUNT) {
        float4 v[16];
        for (unsigned i = 0; i < 16; i++) // all loads are issued before the first addition
            v[i] = sums[i * CONSUMERS * WARPGROUP];
        for (unsigned i = 0; i < 64; i++)
            sum[i] += (&v[i / 4].x)[i % 4];
    }
    return true;
}

#else
#define HAS_WGMMA false
#endif

// A persistent kernel: one block per multiprocessor, which computes several tiles of c one after another. The
// producer is up to STAGES tiles ahead of the consumers, also while they store a tile of c. With SHARES, in
// rung 6, blockIdx.y is the number of a share.
template <bool SHARES>
__global__ void __launch_bounds__((1 + CONSUMERS) * WARPGROUP, 1)
    multiply_parts(const char *packed, float *c, size_t m, size_t n, Tiles tiles, float4 *sums) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ __align__(128) char ring[];
    __shared__ unsigned long long barriers[2 * STAGES]; // 8 bytes each
    unsigned full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0)
        for (unsigned s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);                           // the producer
            barrier_init(empty + 8 * s, CONSUMERS * WARPGROUP / 32); // a lane of each warp
        }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // makes the barriers visible to bulk copies
    __syncthreads();

    unsigned use = 0; // counts the uses of stages
    unsigned group = threadIdx.x / WARPGROUP, count = tiles.rows * tiles.cols, row, col;
    const unsigned share = SHARES ? blockIdx.y : 0; // the block multiplies the slices first to last - 1
    const unsigned first = SHARES ? share * tiles.depth / tiles.shares : 0;
    const unsigned last = SHARES ? (share + 1) * tiles.depth / tiles.shares : tiles.depth;
    // Registers: three warpgroups begin with 168 a thread, and 3 * 168 = 504 = 40 + 2 * 232.
    if (group == CONSUMERS) { // the producer needs few registers; it releases the others for the consumers
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x % WARPGROUP)
            return;
        for (unsigned tile = blockIdx.x; tile < count; tile += gridDim.x) {
            place_tile(tile, tiles, row, col);
            const char *a = packed + ((size_t)row * tiles.depth + first) * TILE_BYTES;
            const char *b = packed + ((size_t)(tiles.rows + col) * tiles.depth + first) * TILE_BYTES;
            for (unsigned z = first; z < last; z++, use++, a += TILE_BYTES, b += TILE_BYTES) {
                unsigned s = use % STAGES, barrier = full + 8 * s;
                unsigned stage = shared_address(ring) + s * 2 * TILE_BYTES;
                barrier_wait(empty + 8 * s, (use / STAGES + 1) % 2);
                barrier_expect(barrier, 2 * TILE_BYTES);
                copy_bulk(stage, a, TILE_BYTES, barrier);
                copy_bulk(stage + TILE_BYTES, b, TILE_BYTES, barrier);
            }
        }
        return;
    }

    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    unsigned lane = threadIdx.x % 32;
    for (unsigned tile = blockIdx.x; tile < count; tile += gridDim.x) {
        float sum[64], partial[64];
        for (unsigned i = 0; i < 64; i++)
            sum[i] = 0;
        for (unsigned z = first; z < last; z++, use++) {
            unsigned s = use % STAGES, stage = shared_address(ring) + s * 2 * TILE_BYTES;
            barrier_wait(full + 8 * s, use / STAGES % 2);
            multiply_tile(partial, stage + group * 64 * 16, stage + TILE_BYTES);
            wgmma_wait(partial);
            if (lane == 0)
                barrier_arrive(empty + 8 * s);
            for (unsigned i = 0; i < 64; i++) // the promotion
                sum[i] += partial[i];
        }
        if (SHARES && !add_shares(sum, sums, tile, share, tiles.shares))
            continue;

        // A thread has the sums of two rows, y and y + 8: two neighbouring columns of each group of 8
        // columns.
        place_tile(tile, tiles, row, col);
        size_t y = (size_t)row * SIDE + threadIdx.x / 32 * 16 + lane / 4,
               x = (size_t)col * SIDE + lane % 4 * 2;
        for (unsigned i = 0; i < 64; i += 2) {
            size_t at_y = y + i / 2 % 2 * 8, at_x = x + i / 4 * 8;
            if (at_y < m && at_x < n && n % 2 == 0)
                *(float2 *)&c[at_y * n + at_x] = make_float2(sum[i], sum[i + 1]);
            else
                for (unsigned j = 0; j < 2; j++)
                    put(c, sum[i + j], at_y, at_x + j, m, n);
        }
    }
#else
    (void)packed, (void)c, (void)m, (void)n, (void)tiles, (void)sums; // not launched
#endif
}

// Whether the code that the device runs has been compiled for sm_90a
__device__ static bool has_wgmma = HAS_WGMMA;

static const char *tensor_needs(void) {
    bool has = false;
    HANDLE_ERROR(cudaMemcpyFromSymbol(&has, has_wgmma, sizeof has));
    return has ? NULL : "needs sm_90a";
}

static void run_tiles(Tiles tiles) {
    pack_parts<<<dim3(tiles.depth, tiles.rows + tiles.cols), 256>>>(dev_a, dev_b, (uint4 *)workspace, m, n, k,
                                                                    tiles);
    HANDLE_LAUNCH();
    unsigned bytes = STAGES * 2 * TILE_BYTES, blocks = min_of(multiprocessors, tiles.rows * tiles.cols);
    auto kernel = bench_shared(tiles.shares > 1 ? multiply_parts<true> : multiply_parts<false>, bytes);
    kernel<<<dim3(blocks, tiles.shares), (1 + CONSUMERS) * WARPGROUP, bytes>>>(
        (char *)workspace, dev_c, m, n, tiles, (float4 *)((char *)workspace + parts_bytes()));
    HANDLE_LAUNCH();
}

static void run_tensor(void) {
    run_tiles(tensor_tiles());
}

// Rung 6: split K. For a product of 512 x 512 elements rung 5 has 16 tiles, so most multiprocessors are idle,
// and packing takes longer than the product. Here tiles are small, and k is split over the warps of a block:
// each multiplies every WARPS-th strip, STRIP columns of a by STRIP rows of b. No two warps of a block use
// the same element, so tiles in shared memory would save no load. Each thread loads its elements into
// registers and splits them there. While a strip is multiplied, the next one is loaded. At the end the sums
// of the warps are added in shared memory.
//
// If there are few tiles, k is split over blocks as well, gridDim.z for a tile. They store their sums, and
// the one that ends last adds them, in the same order each time.
//
// For larger products the tiles of rung 5 are faster. If there are fewer of them than multiprocessors,
// several blocks compute each tile in the same way (add_shares()).
const unsigned STRIP = 16; // depth of an mma instruction

// mma: a warp multiplies a 16 x 16 by a 16 x 8 matrix. Thread 4 * y + x of the warp has four of the sums:
// rows y and y + 8, columns 2 * x and 2 * x + 1.
__device__ static void mma(float (&sum)[4], uint4 a, unsigned b, unsigned b_below) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b), "r"(b_below));
#endif
}

__device__ static float4 sum_of(const float4 *x, unsigned count, unsigned step) {
    float4 total = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (unsigned i = 0; i < count; i++) {
        float4 v = x[i * step];
        total.x += v.x, total.y += v.y, total.z += v.z, total.w += v.w;
    }
    return total;
}

// A tile has HIGH * 16 x WIDE * 32 elements.
template <unsigned HIGH, unsigned WIDE, unsigned WARPS>
__global__ void __launch_bounds__(WARPS * 32, HIGH *WIDE == 2 ? 3 : 2)
    multiply_strips(const float *a, const float *b, float *c, size_t m, size_t n, size_t k, float4 *sums) {
    __shared__ float4 partial[WARPS][16 * HIGH][8 * WIDE + 1]; // one float4 more: no bank conflicts
    unsigned warp = threadIdx.x / 32, y = threadIdx.x % 32 / 4, x = threadIdx.x % 4;
    size_t top = (size_t)blockIdx.y * 16 * HIGH, left = (size_t)blockIdx.x * 32 * WIDE;

    // An mma instruction takes columns 2 * x, 2 * x + 1, 2 * x + 8 and 2 * x + 9 of a, and the same rows of
    // b, from a thread. The order of a sum does not matter, so here they are four neighbours, one float4 of
    // a. If rows are not aligned, they are 4 apart, so that neighbouring threads load neighbours. In the same
    // way column y of each of four products is one of four columns of b, neighbours or 8 apart.
    unsigned step_k = k % 4 ? 4 : 1, step_n = n % 4 ? 8 : 1, four = n % 4 ? 1 : 4;
    float4 in_a[2 * HIGH], in_b[WIDE][4];
    auto load = [&](unsigned first) { // zeros beyond the edges
        first += x * (4 / step_k);
        for (unsigned i = 0; i < 2 * HIGH; i++)
            in_a[i] = four_at(a, top + y + 8 * i, first, m, k, step_k);
        for (unsigned i = 0; i < WIDE; i++)
            for (unsigned j = 0; j < 4; j++)
                in_b[i][j] = four_at(b, first + j * step_k, left + 32 * i + y * four, k, n, step_n);
    };
    float sum[HIGH][4 * WIDE][4] = {};
    unsigned first = (blockIdx.z * WARPS + warp) * STRIP, hop = gridDim.z * WARPS * STRIP;
    load(first);
    for (; first < k; first += hop) {
        uint4 part_a[HIGH][PARTS], part_b[2 * WIDE][PARTS]; // of b: for two products each
        for (unsigned i = 0; i < HIGH; i++) {
            float4 v = in_a[2 * i], w = in_a[2 * i + 1];
            split({v.x, v.y, w.x, w.y, v.z, v.w, w.z, w.w}, part_a[i]);
        }
        for (unsigned i = 0; i < WIDE; i++) {
            float4 p = in_b[i][0], q = in_b[i][1], r = in_b[i][2], s = in_b[i][3];
            split({p.x, q.x, r.x, s.x, p.y, q.y, r.y, s.y}, part_b[2 * i]);
            split({p.z, q.z, r.z, s.z, p.w, q.w, r.w, s.w}, part_b[2 * i + 1]);
        }
        load(first + hop);
        for (unsigned z = 0; z < 4 * WIDE; z += 4) {
            // The products of high parts are summed alone, so that fewer of their bits are cut off.
            float high[HIGH][4][4] = {}, low[HIGH][4][4] = {};
#pragma unroll
            for (unsigned p = 0; p < 6; p++)
                for (unsigned i = 0; i < HIGH; i++)
                    for (unsigned j = 0; j < 4; j++) {
                        uint4 v = part_a[i][PAIRS[p][0]], w = part_b[(z + j) / 2][PAIRS[p][1]];
                        mma(p < 5 ? low[i][j] : high[i][j], v, j % 2 ? w.z : w.x, j % 2 ? w.w : w.y);
                    }
            for (unsigned i = 0; i < HIGH; i++)
                for (unsigned j = 0; j < 4; j++)
                    for (unsigned e = 0; e < 4; e++)
                        sum[i][z + j][e] += high[i][j][e] + low[i][j][e];
        }
    }

    for (unsigned i = 0; i < HIGH; i++)
        for (unsigned z = 0; z < WIDE; z++)
            for (unsigned e = 0; e < 4; e++) {
                float(*v)[4] = &sum[i][4 * z];
                partial[warp][16 * i + y + e / 2 * 8][8 * z + 2 * x + e % 2] =
                    make_float4(v[0][e], v[1][e], v[2][e], v[3][e]);
            }
    __syncthreads();
    const unsigned COUNT = 16 * HIGH * 8 * WIDE; // float4 of a tile
    unsigned tile = blockIdx.y * gridDim.x + blockIdx.x;
    sums += tile * gridDim.z * COUNT;
    auto store = [&](unsigned i, float4 total) {
        size_t row = top + i / (8 * WIDE), col = left + i / 8 % WIDE * 32 + i % 8 * four;
        if (row < m && col < n && n % 4 == 0)
            *(float4 *)&c[row * n + col] = total;
        else
            for (unsigned j = 0; j < 4; j++)
                put(c, (&total.x)[j], row, col + j * step_n, m, n);
    };
    for (unsigned i = threadIdx.x; i < COUNT; i += WARPS * 32) {
        float4 total =
            sum_of(&partial[0][i / (8 * WIDE)][i % (8 * WIDE)], WARPS, sizeof partial[0] / sizeof total);
        if (gridDim.z == 1)
            store(i, total);
        else
            sums[blockIdx.z * COUNT + i] = total;
    }
    if (gridDim.z == 1)
        return;
    __threadfence(); // the sums are visible to the block that ends last
    __syncthreads();
    unsigned others = gridDim.z - 1;
    if (!__syncthreads_or(threadIdx.x == 0 && atomicInc(&finished[tile], others) == others)) // then 0 again
        return;
    __threadfence();
    for (unsigned i = threadIdx.x; i < COUNT; i += WARPS * 32)
        store(i, sum_of(sums + i, gridDim.z, COUNT));
}

// A vector times a matrix, where m or n is 1: each element of the matrix is used once, so this is bound by
// loads. A thread loads WIDTH floats at once: of a row of b if a is the vector (ROW), otherwise of a row of
// a. Each element of c has several threads, and each of them adds a share of its k products.
template <unsigned WIDTH> struct alignas(4 * WIDTH) Floats { float x[WIDTH]; };

template <bool ROW, unsigned WIDTH>
__global__ void __launch_bounds__(1024)
    multiply_vector(const float *a, const float *b, float *c, size_t m, size_t n, size_t k) {
    typedef Floats<WIDTH> Load;
    __shared__ Load sums[1024];
    unsigned share = ROW ? threadIdx.y : threadIdx.x, shares = ROW ? blockDim.y : blockDim.x;
    const unsigned BATCH = WIDTH == 4 ? 4 : 8, step = ROW ? 1 : WIDTH;
    unsigned self = threadIdx.y * blockDim.x + threadIdx.x;
    size_t out =
        ROW ? (blockIdx.x * blockDim.x + threadIdx.x) * WIDTH : blockIdx.x * blockDim.y + threadIdx.y;
    bool inside = out < (ROW ? n : m);
    Load sum = {};
    for (size_t i = share * step; inside && i < k; i += BATCH * shares * step) {
        Load v[BATCH] = {}, w[BATCH] = {};
#pragma unroll
        for (unsigned t = 0; t < BATCH; t++) { // all loads are issued before the first product
            size_t at = i + t * shares * step;
            if (at < k) {
                v[t] = *(const Load *)(ROW ? b + at * n + out : a + out * k + at);
                w[t] = ROW ? Load{a[at]} : *(const Load *)(b + at);
            }
        }
        for (unsigned t = 0; t < BATCH; t++)
            for (unsigned j = 0; j < WIDTH; j++)
                sum.x[ROW ? j : 0] += v[t].x[j] * w[t].x[ROW ? 0 : j];
    }
    sums[self] = sum;
    for (unsigned half = shares / 2; half > 0; half /= 2) {
        __syncthreads();
        if (share < half)
            for (unsigned j = 0; j < WIDTH; j++)
                sums[self].x[j] += sums[self + half * (ROW ? blockDim.x : 1)].x[j];
    }
    if (share == 0 && inside)
        for (unsigned j = 0; j < (ROW ? WIDTH : 1); j++)
            c[out + j] = sums[self].x[j];
}

typedef void (*Kernel)(const float *a, const float *b, float *c, size_t m, size_t n, size_t k);

struct Strips {
    unsigned rows, cols, warps; // of a tile
    unsigned at_once;           // blocks on a multiprocessor
    double strip; // nanoseconds for a strip of a warp, if the others of a multiprocessor work too
    decltype(&multiply_strips<1, 1, 8>) kernel;
    dim3 blocks = {};
    double ns = 0;
};

static Strips strips;     // no kernel: the tiles of rung 5 are faster
static Tiles split_tiles; // the tiles of rung 5, and how many blocks compute each

// The number of blocks, or of tiles, of the multiprocessor that gets the most
static unsigned most(unsigned blocks) {
    return (blocks + multiprocessors - 1) / multiprocessors;
}

// Chooses what is fastest on an H200. The figures are fitted to measured times: of rung 5 with its packing,
// the terms of its tiles, the stores to c, and the sums of shares; of this rung with a launch, the strips,
// the latency of each round in which all multiprocessors get new blocks, and the split over blocks.
static void choose_strips(void) {
    Tiles t = split_tiles = tensor_tiles();
    strips.ns = INFINITY;
    for (t.shares = 1; !tensor_needs() && t.shares <= t.depth; t.shares++) {
        unsigned blocks = t.rows * t.cols * t.shares;
        double ns = 9000 + 26.0 * SLICE * ((t.depth - 1) / t.shares + 1) * most(blocks) + 1e-3 * m * n +
                    (t.shares > 1 ? 3000 + 1000 * t.shares : 0);
        if (ns < strips.ns && (t.shares == 1 || blocks <= MOST_SUMS / SIDE / SIDE))
            strips.ns = ns, split_tiles.shares = t.shares;
    }
    for (Strips s : {Strips{16, 32, 8, 2, 52, multiply_strips<1, 1, 8>},
                     Strips{32, 32, 4, 3, 86, multiply_strips<2, 1, 4>},
                     Strips{32, 64, 4, 2, n % 4 || k % 4 ? 315.0 : 175.0, multiply_strips<2, 2, 4>},
                     Strips{32, 32, 1, 12, 77, multiply_strips<2, 1, 1>}})
        for (unsigned split = 1; split <= 128; split *= 2) {
            s.blocks = dim3((n - 1) / s.cols + 1, (m - 1) / s.rows + 1, split);
            unsigned blocks = s.blocks.x * s.blocks.y * split,
                     turns = (k - 1) / (s.warps * split * STRIP) + 1;
            unsigned fills = (most(blocks) - 1) / s.at_once + 1;
            s.ns = 3500 + s.strip * most(blocks) * (s.warps * turns + 4) + fills * (500 + 180.0 * turns) +
                   (split > 1 ? 2100 + 70.0 * split : 0);
            if (s.ns < strips.ns && (split == 1 || blocks <= sizeof finished / sizeof *finished))
                strips = s;
        }
}

template <bool ROW, unsigned WIDTH> static void run_vector(void) {
    unsigned most_shares = (k - 1) / (ROW ? 4 : 4 * WIDTH);
    unsigned few = most_shares / (WIDTH == 4 ? 1 : 2), shares = few < 8 ? 8 : few < 16 ? 16 : 32;
    unsigned wide = ROW        ? (n < 1024 * WIDTH ? 8 : 32) // elements of a block
                    : m < 256  ? 1
                    : m < 4096 ? 4
                               : 256 / shares;
    unsigned blocks = ((ROW ? n : m) - 1) / wide + 1, threads = ROW ? wide / WIDTH : wide;
    unsigned each = ROW || WIDTH == 4 ? most(blocks) : (most(blocks) + 3) / 4;
    while (shares <= most_shares && 2 * shares * threads * each <= 1024)
        shares *= 2;
    multiply_vector<ROW, WIDTH>
        <<<blocks, ROW ? dim3(threads, shares) : dim3(shares, threads)>>>(dev_a, dev_b, dev_c, m, n, k);
    HANDLE_LAUNCH();
}

static void run_split(void) {
    if (n == 1)
        return k % 4 ? run_vector<false, 1>() : run_vector<false, 4>();
    if (m == 1)
        return n % 4 ? run_vector<true, 1>() : run_vector<true, 4>();
    if (!strips.kernel)
        return run_tiles(split_tiles);
    strips.kernel<<<strips.blocks, 32 * strips.warps>>>(dev_a, dev_b, dev_c, m, n, k, (float4 *)workspace);
    HANDLE_LAUNCH();
}

static const char *split_needs(void) {
    cudaFuncAttributes compiled;
    HANDLE_ERROR(cudaFuncGetAttributes(&compiled, multiply_strips<1, 1, 8>));
    return compiled.ptxVersion < 80 ? "needs sm_80" : NULL;
}

// The limit of a device that can run rung 5: the wgmma instructions of that rung alone, on zeros in shared
// memory
const unsigned ALONE_TILES = BENCH_SIZE(1024, 1); // of each block

__global__ void __launch_bounds__(CONSUMERS *WARPGROUP) multiply_alone(float *c) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(128) char tiles[TILE_BYTES]; // used as those of a and of b
    float partial[64], sum = 0;
    for (unsigned i = threadIdx.x; i < sizeof tiles; i += blockDim.x)
        tiles[i] = 0;
    __syncthreads();
    for (unsigned i = 0; i < ALONE_TILES; i++) {
        multiply_tile(partial, shared_address(tiles), shared_address(tiles));
        wgmma_wait(partial);
        sum += partial[0]; // without a use of it, nvcc leaves products out
    }
    if (sum != 0) // never
        *c = 0;
#else
    (void)c;                                                          // not launched
#endif
}

static void run_tensor_alone(void) {
    multiply_alone<<<2 * multiprocessors, CONSUMERS * WARPGROUP>>>(dev_c);
    HANDLE_LAUNCH();
}

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
static void run_cublas(const void *a, const void *b, cudaDataType_t type, cublasComputeType_t compute) {
    const float one = 1, zero = 0;
    if (cublasGemmEx(cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, type, n, a, type, k, &zero, dev_c,
                     CUDA_R_32F, n, compute, CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS)
        quit(EXIT_FAILURE, "cublasGemmEx failed");
}

__global__ void round_to_bfloat16(const float *x, __nv_bfloat16 *rounded, size_t n) {
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
        rounded[i] = __float2bfloat16_rn(x[i]);
}

static void run_cublas_bfloat16(void) {
    __nv_bfloat16 *a = (__nv_bfloat16 *)workspace, *b = a + m * k;
    round_to_bfloat16<<<1024, 256>>>(dev_a, a, m * k);
    HANDLE_LAUNCH();
    round_to_bfloat16<<<1024, 256>>>(dev_b, b, k * n);
    HANDLE_LAUNCH();
    run_cublas(a, b, CUDA_R_16BF, CUBLAS_COMPUTE_32F);
}
#endif

#ifdef HAVE_CUTLASS
// CUTLASS with 3xTF32: each float is a sum of two TF32 numbers, so a product of floats is three products on
// the tensor cores. A load or store has WIDE floats, so n and k must be multiples of WIDE.
template <int WIDE> static void run_cutlass(void) {
    using namespace cutlass;
    using Rows = layout::RowMajor;
    using Store = epilogue::thread::LinearCombination<float, WIDE, float, float>;
    gemm::device::Gemm<float, Rows, float, Rows, float, Rows, float, arch::OpClassTensorOp, arch::Sm80,
                       gemm::GemmShape<128, 128, 16>, gemm::GemmShape<64, 32, 16>, gemm::GemmShape<16, 8, 8>,
                       Store, gemm::threadblock::GemmIdentityThreadblockSwizzle<>, 3, WIDE, WIDE, false,
                       arch::OpMultiplyAddFastF32>
        product;
    const int rows = m, cols = n, depth = k;
    typename decltype(product)::Arguments arguments({rows, cols, depth}, {dev_a, depth}, {dev_b, cols},
                                                    {dev_c, cols}, {dev_c, cols}, {1, 0});
    if (product(arguments) != Status::kSuccess)
        quit(EXIT_FAILURE, "CUTLASS failed");
}
#endif

static Rung rungs[] = {
    {"global memory", "one thread per element", [] { run(matmul, TILE, dim3(TILE, TILE)); }},
    {"tiles", "shared by the threads of a block", [] { run(matmul_tiles, TILE, dim3(TILE, TILE)); }},
    {"registers", "8 x 8 elements per thread", [] { run(matmul_registers, BLOCK, 256); }},
    {"vectorized loads", "float4, no bank conflicts", [] { run(matmul_vectors, BLOCK, 256); }},
    {"asynchronous copies", "three stages, warp tiles, 16 x 8",
     [] { run(n % 4 ? matmul_async<1> : matmul_async<4>, BLOCK, WORKERS, RING * sizeof(Tile)); }},
    {"tensor cores", "each float as three bfloat16 numbers", run_tensor, RUNG, 90, 0, tensor_needs},
    {"split K", "small tiles, over the warps of a block; over blocks", run_split, RUNG, 0, 0, split_needs},
#ifdef HAVE_CUBLAS
    {"cuBLAS FP32", "CUBLAS_COMPUTE_32F_PEDANTIC",
     [] { run_cublas(dev_a, dev_b, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC); }, LIBRARY},
    {"cuBLAS TF32", "tensor cores, operands of 11 bits",
     [] { run_cublas(dev_a, dev_b, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32); }, INACCURATE},
    {"cuBLAS BF16", "tensor cores, operands of 8 bits", run_cublas_bfloat16, INACCURATE},
#endif
#ifdef HAVE_CUTLASS
    {"CUTLASS 3xTF32", "each float as two TF32 numbers",
     [] { n % 4 || k % 4 ? run_cutlass<1>() : run_cutlass<4>(); }, LIBRARY, 80},
#endif
    {"tensor cores alone", "six products of bfloat16", run_tensor_alone, LIMIT, 90, 0, tensor_needs},
    {"FMA alone", "without memory", [] { bench_fma(dev_c); }, LIMIT, 0, 2 * BENCH_FMAS},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    bench_malloc(&dev_a, m * k * sizeof(float));
    bench_malloc(&dev_b, k * n * sizeof(float));
    bench_malloc(&dev_c, m * n * sizeof(float));
    bench_malloc(&workspace, workspace_bytes());
    for (Kernel kernel : {matmul_async<1>, matmul_async<4>})
        HANDLE_ERROR(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, RING * sizeof(Tile)));
#ifdef HAVE_CUBLAS
    if (cublasCreate(&cublas) != CUBLAS_STATUS_SUCCESS)
        quit(EXIT_FAILURE, "cuBLAS does not start");
#endif

    const char *names[] = {NULL, "uniform", "positive", "wide exponents", "scaled"};
    for (int data = UNIFORM; data <= SCALED; data++)
        if (fill == 0 || fill == data) {
            make_matrices(data);
            bench.data = names[data];
            bench_run(rungs);
        }

#ifdef HAVE_CUBLAS
    cublasDestroy(cublas);
#endif
    return bench_finish();
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    const char *shape = NULL;
    char more;
    configure(argc, argv, "Matrix product, from the text's kernel to the fastest.", LADDER,
              {OPTION_SIZE("size", &size, 1, 65535, "rows and columns of the matrices"),
               OPTION_TEXT("shape", &shape, "MxNxK instead of --size: a has M x K elements, b K x N"),
               OPTION_WORD("fill", &fill, "all|" FILLS, "the elements")});
    m = n = k = size;
    if (shape && (sscanf(shape, "%zux%zux%zu%c", &m, &n, &k, &more) != 3 || m - 1 > 65534 || n - 1 > 65534 ||
                  k - 1 > 65534))
        quit(EXIT_USAGE, "--shape %s: must be three numbers from 1 to 65535, such as 33x70x9", shape);
    size_t bytes = (m * k + k * n + m * n) * sizeof(float) + workspace_bytes();
    require_memory((m * k + k * n) * sizeof(float) + m * n * (sizeof(double) + 2 * sizeof(float)),
                   bytes + m * n * (sizeof(double) + sizeof(float)) + bench_memory(0));
    bench.size = size;
    bench.title = std::to_string(m) + " x " + std::to_string(k) + " times " + std::to_string(k) + " x " +
                  std::to_string(n) + " floats";
    bench.work = 2.0 * m * n * k; // a product and an addition for each of k terms
    bench.unit = "GFLOP/s";
    bench.footprint = (m * k + k * n + m * n) * sizeof(float);
    multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
    choose_strips();
    Rung &tensor = std::end(rungs)[-2], &fma = std::end(rungs)[-1];
    tensor.work = 2.0 * SIDE * SIDE * SLICE * ALONE_TILES * 2 * multiprocessors;
    fma.kind = tensor_needs() ? LIMIT : ALONE;
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_c, 0xff, m * n * sizeof(float))); // NaN
    HANDLE_ERROR(cudaMemset(workspace, 0xff, workspace_bytes()));
}

// The reference, with a thread per element: its sum in double, and the sum of the magnitudes
static std::vector<double> exact;
static std::vector<float> scale;

__global__ void multiply_in_double(const float *a, const float *b, double *expected, float *magnitude,
                                   size_t m, size_t n, size_t k) {
    size_t col = threadIdx.x + blockIdx.x * 32, row = threadIdx.y + blockIdx.y * 32;
    if (row >= m || col >= n)
        return;
    double sum = 0, magnitudes = 0;
    for (size_t i = 0; i < k; i++) {
        double product = (double)a[row * k + i] * b[i * n + col]; // exact
        sum += product;
        magnitudes += fabs(product);
    }
    expected[row * n + col] = sum;
    magnitude[row * n + col] = magnitudes;
}

// Numbers from -1 to 1. POSITIVE: from 0 to 1, whose sums round most. WIDE: times 2^-40 to 2^40, each with an
// exponent of its own, from the last of its 24 random bits. SCALED: times 2^40 or 2^-40, the same for a row
// of a or a column of b.
static void make_matrix(float *matrix, int fill, size_t rows, size_t cols, bool scale_rows) {
    HostArray<float> x(rows * cols), factor(scale_rows ? rows : cols);
    random_floats(x, rows * cols, 1);
    for (size_t i = 0; i < (scale_rows ? rows : cols); i++)
        factor[i] = random_bits() % 2 ? 0x1p40f : 0x1p-40f;
    in_threads(fill == POSITIVE ? 0 : rows * cols, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++) {
            int exponent = (int)(x[i] * 0x1p24f) % 81 - 40;
            x[i] = 2 * x[i] - 1;
            if (fill == WIDE)
                x[i] = ldexpf(x[i], exponent);
            if (fill == SCALED)
                x[i] *= factor[scale_rows ? i / cols : i % cols];
        }
    });
    HANDLE_ERROR(cudaMemcpy(matrix, x, rows * cols * sizeof(float), cudaMemcpyHostToDevice));
}

// Fills both matrices and computes the reference.
static void make_matrices(int fill) {
    make_matrix(dev_a, fill, m, k, true);
    make_matrix(dev_b, fill, k, n, false);
    DeviceArray<double> dev_expected(m * n);
    DeviceArray<float> dev_magnitude(m * n);
    multiply_in_double<<<dim3((n + 32 - 1) / 32, (m + 32 - 1) / 32), dim3(32, 32)>>>(
        dev_a, dev_b, dev_expected, dev_magnitude, m, n, k);
    HANDLE_LAUNCH();
    exact.resize(m * n);
    scale.resize(m * n);
    HANDLE_ERROR(cudaMemcpy(exact.data(), dev_expected, m * n * sizeof(double), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaMemcpy(scale.data(), dev_magnitude, m * n * sizeof(float), cudaMemcpyDeviceToHost));
}

// The largest and the root mean square error of a product, relative to the sums of magnitudes. NaN ends a
// loop, as the largest one.
static BenchError product_errors(void) {
    HostArray<float> c(dev_c, m * n);
    BenchError error = {};
    std::mutex adding;
    in_threads(m * n, [&](size_t begin, size_t end) {
        double most = 0, squares = 0;
        for (size_t i = begin; i < end && !isnan(most); i++) {
            double off = fabs(c[i] - exact[i]), relative = off == 0 ? 0 : off / scale[i];
            most = relative <= most ? most : relative;
            squares += relative * relative;
        }
        std::lock_guard<std::mutex> lock(adding);
        error.max = most <= error.max || isnan(error.max) ? error.max : most;
        error.rms += squares;
    });
    error.rms = sqrt(error.rms / (m * n));
    return error;
}

// Each of k products and additions rounds by at most 2^-24 of its result, whatever their order. The rungs
// on tensor cores leave out 2^-24 of a product. TF32 cuts the operands down to 11 bits, so each product may
// be off by 2^-9. bfloat16 has 8 bits; rounded to nearest, each operand is off by 2^-8, their product by 2^-7
// + 2^-16.
static double error_bound(const char *name) {
    return (likely_roundings(k) + 3) * 0x1p-24 + (strcmp(name, "cuBLAS TF32") == 0   ? 0x1p-9
                                                  : strcmp(name, "cuBLAS BF16") == 0 ? 0x1.008p-7
                                                                                     : 0);
}

static bool check(const char *name, BenchError *error) {
    *error = product_errors();
    return check_value((std::string(name) + ": error in units of its bound").c_str(),
                       error->max / error_bound(name), 0, 1);
}
