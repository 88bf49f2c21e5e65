// SPDX-License-Identifier: MIT
// The matrix product on tensor cores, with the accuracy of float arithmetic: the last rung of matmul_ladder.
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
#ifndef CHAPTER05_MATMUL_TENSOR_H
#define CHAPTER05_MATMUL_TENSOR_H

#include <cuda_bf16.h>
#include "../common/book.h"

const unsigned SIDE = 128;                      // a block computes tiles of SIDE x SIDE elements of c
const unsigned SLICE = 32;                      // columns of a tile of a, rows of a tile of b
const unsigned PARTS = 3;                       // bfloat16 numbers of a float
const unsigned PART_BYTES = SIDE * SLICE * 2;   // one part of a tile
const unsigned TILE_BYTES = PARTS * PART_BYTES; // all parts of a tile
const unsigned STAGES = 4;                      // of the ring; each has a tile of a and one of b
const unsigned WARPGROUP = 128;                 // threads: four warps execute a wgmma instruction together
const unsigned CONSUMERS = SIDE / 64;           // warpgroups; each computes 64 rows of the tile of c
const unsigned GROUP = 8;                       // c is computed in groups of GROUP rows of tiles

// The numbers of tiles along the rows and columns of c, and along the dimension k that is summed over
struct Tiles {
    unsigned rows, cols, depth;
};

static inline Tiles tensor_tiles(size_t m, size_t n, size_t k) {
    return {(unsigned)((m + SIDE - 1) / SIDE), (unsigned)((n + SIDE - 1) / SIDE),
            (unsigned)((k + SLICE - 1) / SLICE)};
}

// Device memory for the parts of both matrices
static inline size_t tensor_workspace(size_t m, size_t n, size_t k) {
    Tiles tiles = tensor_tiles(m, n, k);
    return (size_t)(tiles.rows + tiles.cols) * tiles.depth * TILE_BYTES;
}

// ---- splitting ----

// Splits 8 floats. The differences are exact, since a float minus its leading bits has fewer bits.
__device__ static inline void split(const float (&x)[8], uint4 (&parts)[PARTS]) {
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
        size_t y = row + r, z = first + 8 * col;
        float eight[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        if (!transposed && k % 8 == 0 && y < rows && z < k) {
            const float4 *from = (const float4 *)(x + y * k + z);
            float4 v = from[0], w = from[1];
            eight[0] = v.x, eight[1] = v.y, eight[2] = v.z, eight[3] = v.w;
            eight[4] = w.x, eight[5] = w.y, eight[6] = w.z, eight[7] = w.w;
        } else {
            for (unsigned j = 0; j < 8; j++)
                if (y < rows && z + j < k)
                    eight[j] = transposed ? x[(z + j) * rows + y] : x[y * k + z + j];
        }
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

#ifdef __CUDA_ARCH_FEAT_SM90_ALL // code for sm_90a, the only architecture with wgmma
#define HAS_WGMMA true

// ---- PTX instructions that CUDA C has no functions for ----

__device__ static inline unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

// A barrier in shared memory (mbarrier). Its current phase completes when `arrivals` threads have arrived and
// all bytes that they have announced (expect_tx) have been copied; then the next phase begins.
__device__ static inline void barrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ static inline void barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at the barrier and announces how many bytes will be copied in this phase.
__device__ static inline void barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

// Waits for the end of the first, third, fifth phase … if `parity` is 0, and of the second, fourth … if it
// is 1. With 1 it does not wait while the first phase lasts.
__device__ static inline void barrier_wait(unsigned barrier, unsigned parity) {
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
__device__ static inline void copy_bulk(unsigned to, const void *from, unsigned bytes, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}

// A descriptor says where an operand lies in shared memory: its address, the distance of two columns of 8
// numbers (SIDE rows of 16 bytes) and that of two groups of 8 rows in a column (128 bytes), each divided
// by 16.
__device__ static inline unsigned long long descriptor(unsigned address) {
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

__device__ static inline void wgmma(float (&sum)[64], unsigned long long a, unsigned long long b, int add) {
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
__device__ static inline void wgmma_wait(float (&sum)[64]) {
    asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;"
                 : SUMS(sum)::"memory");
}

// ---- the product ----

// Multiplies the tiles of one stage: 64 rows of a by SIDE columns of b, for each of the six pairs of parts
__device__ static inline void multiply_tile(float (&sum)[64], unsigned a, unsigned b) {
    const unsigned LOW = 2 * PART_BYTES, MIDDLE = PART_BYTES, HIGH = 0;
    const unsigned pairs[][2] = {{LOW, HIGH},    {MIDDLE, MIDDLE}, {HIGH, LOW},
                                 {MIDDLE, HIGH}, {HIGH, MIDDLE},   {HIGH, HIGH}};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); // earlier uses of the registers are done
#pragma unroll
    for (unsigned i = 0; i < 6; i++)
#pragma unroll
        for (unsigned step = 0; step < PART_BYTES; step += 2 * SIDE * 16) // two columns of 8 numbers
            wgmma(sum, descriptor(a + pairs[i][0] + step), descriptor(b + pairs[i][1] + step), i + step > 0);
}

#else
#define HAS_WGMMA false
#endif

// Maps the number of a tile of c to its row and column. Tiles that are computed at the same time belong to a
// group that is GROUP tiles high, so that they share tiles of a and b in the L2 cache.
__device__ static inline void place_tile(unsigned tile, Tiles tiles, unsigned &row, unsigned &col) {
    unsigned first = tile / (GROUP * tiles.cols) * GROUP, i = tile % (GROUP * tiles.cols);
    unsigned height = min(GROUP, tiles.rows - first);
    row = first + i % height, col = i / height;
}

// A persistent kernel: one block per multiprocessor, which computes several tiles of c one after another. The
// producer is up to STAGES tiles ahead of the consumers, also while they store a tile of c.
__global__ void __launch_bounds__((1 + CONSUMERS) * WARPGROUP, 1)
    multiply_parts(const char *packed, float *c, size_t m, size_t n, Tiles tiles) {
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
    if (group == CONSUMERS) { // the producer needs few registers; it releases the others for the consumers
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x % WARPGROUP)
            return;
        for (unsigned tile = blockIdx.x; tile < count; tile += gridDim.x) {
            place_tile(tile, tiles, row, col);
            const char *a = packed + (size_t)row * tiles.depth * TILE_BYTES;
            const char *b = packed + (size_t)(tiles.rows + col) * tiles.depth * TILE_BYTES;
            for (unsigned z = 0; z < tiles.depth; z++, use++, a += TILE_BYTES, b += TILE_BYTES) {
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
        for (unsigned z = 0; z < tiles.depth; z++, use++) {
            unsigned s = use % STAGES, stage = shared_address(ring) + s * 2 * TILE_BYTES;
            barrier_wait(full + 8 * s, use / STAGES % 2);
            multiply_tile(partial, stage + group * 64 * 16, stage + TILE_BYTES);
            wgmma_wait(partial);
            if (lane == 0)
                barrier_arrive(empty + 8 * s);
            for (unsigned i = 0; i < 64; i++) // the promotion
                sum[i] += partial[i];
        }

        // A thread has the sums of two rows, y and y + 8: two neighbouring columns of each group of 8
        // columns.
        place_tile(tile, tiles, row, col);
        size_t y = (size_t)row * SIDE + threadIdx.x / 32 * 16 + lane / 4,
               x = (size_t)col * SIDE + lane % 4 * 2;
        for (unsigned i = 0; i < 64; i += 2) {
            size_t at_y = y + i / 2 % 2 * 8, at_x = x + i / 4 * 8;
            float *to = c + at_y * n + at_x;
            if (at_y < m && at_x + 1 < n && n % 2 == 0) {
                *(float2 *)to = make_float2(sum[i], sum[i + 1]);
            } else if (at_y < m) {
                for (unsigned j = 0; j < 2; j++)
                    if (at_x + j < n)
                        to[j] = sum[i + j];
            }
        }
    }
#else
    (void)packed, (void)c, (void)m, (void)n, (void)tiles; // not launched
#endif
}

// Whether the code that the device runs has been compiled for sm_90a
__device__ static bool has_wgmma = HAS_WGMMA;

static inline const char *tensor_needs(void) {
    bool has;
    HANDLE_ERROR(cudaMemcpyFromSymbol(&has, has_wgmma, sizeof has));
    return has ? NULL : "needs sm_90a";
}

// c = a * b; all matrices are stored by rows, a has m x k elements, b k x n. The workspace has
// tensor_workspace(m, n, k) bytes.
static inline void matmul_tensor(const float *a, const float *b, float *c, size_t m, size_t n, size_t k,
                                 void *workspace) {
    Tiles tiles = tensor_tiles(m, n, k);
    int multiprocessors;
    HANDLE_ERROR(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, options.device));
    pack_parts<<<dim3(tiles.depth, tiles.rows + tiles.cols), 256>>>(a, b, (uint4 *)workspace, m, n, k, tiles);
    HANDLE_LAUNCH();
    unsigned bytes = STAGES * 2 * TILE_BYTES, blocks = min_of(multiprocessors, tiles.rows * tiles.cols);
    HANDLE_ERROR(cudaFuncSetAttribute(multiply_parts, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    multiply_parts<<<blocks, (1 + CONSUMERS) * WARPGROUP, bytes>>>((const char *)workspace, c, m, n, tiles);
    HANDLE_LAUNCH();
}

#endif
