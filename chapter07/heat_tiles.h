// SPDX-License-Identifier: MIT
// Tiles of a plate, for the last rungs of heat_ladder: where they lie, and a step of one of them.
#ifndef CHAPTER07_HEAT_TILES_H
#define CHAPTER07_HEAT_TILES_H

#include <cuda_runtime.h>
#include "../common/proofs/heat.h"

// A lane holds four columns of ROWS rows in registers, a warp 128 columns, and WARPS warps stand
// one above the other. Cells near the edge of a tile lack neighbours, so what is wrong moves in by
// one cell a step: MARGIN steps need a margin of as many cells.
const int ROWS = 11, WARPS = 8, MARGIN = 8, WIDTH = 128, HEIGHT = ROWS * WARPS;

// Tiles are spread evenly; where one begins, in units of 1, or of 4 columns, which a lane has.
__host__ __device__ static int tiles_of(int size, int tile, int margin) {
    return size > tile ? (size - tile - 1) / (tile - 2 * margin) + 2 : 1;
}

__device__ static int origin(int i, int tiles, int size, int tile) {
    return tiles > 1 ? (int)((long long)i * (size - tile) / (tiles - 1)) : 0;
}

// One direction of a tile: it begins at `begin`; from `own` to `end` it answers for the cells, and
// needs those within `margin` of them, even where it reaches further. So of two tiles both need
// cells of the other or neither does, and none gets two rounds ahead of one that reads from it.
// Its neighbours may need cells below `below` and from `above` on.
struct Span {
    int begin, own, end, below, above, margin;
    __device__ Span(int i, int tiles, int size, int tile, int margin) : margin(margin) {
        begin = origin(i, tiles, size, tile);
        own = i == 0 ? 0 : begin + margin;
        end = i == tiles - 1 ? size : origin(i + 1, tiles, size, tile) + margin;
        below = i == 0 ? 0 : origin(i - 1, tiles, size, tile) + tile;
        above = i == tiles - 1 ? size : origin(i + 1, tiles, size, tile);
    }
    __device__ bool owns(int x) const { return x >= own && x < end; }
    __device__ bool needs(int x) const { return x >= own - margin && x < end + margin; }
    __device__ bool shared(int x) const { return x < below || x >= above; }
};

// First and last row of each warp, for odd and for even steps
typedef float4 Edges[2][WARPS][2][32];

// One step of a tile: `cell` makes of the sums of four neighbours, in row r, what cells become. The
// neighbours above and to the right of a cell are those to the left of and below another one. So
// each such pair is added once, which leaves two additions a cell instead of three.
template <typename Cell>
__device__ static void step_tile(float4 (&t)[ROWS], Edges &of_steps, int s, Cell cell) {
    auto &edges = of_steps[s % 2];
    int lane = threadIdx.x, warp = threadIdx.y;
    // What other lanes have. Beyond a tile is the edge of the plate, or what a margin is there for.
    auto left_of = [&](float4 row) {
        float left = __shfl_up_sync(0xffffffff, row.w, 1);
        return lane == 0 ? row.x : left;
    };
    auto right_of = [&](float4 row) {
        float right = __shfl_down_sync(0xffffffff, row.x, 1);
        return lane == 31 ? row.w : right;
    };
    auto pairs = [&](float4 row, float4 next) {
        return make_float4(row.x + next.y, row.y + next.z, row.z + next.w, row.w + right_of(next));
    };
    // `before`: pairs of the row above and this one, `after`: of this one and the row below;
    // `first` belongs to those, but its upper cell is in the lane to the left.
    auto row = [&](float4 before, float first, float4 after, int r) {
        return cell(r, make_float4(before.x + first, before.y + after.x, before.z + after.y,
                                   before.w + after.z));
    };
    edges[warp][0][lane] = t[0];
    edges[warp][1][lane] = t[ROWS - 1];
    // What needs no other warp comes before the barrier, so that waiting costs less.
    float4 top = t[0], bottom = t[ROWS - 1], second = pairs(t[0], t[1]), before = second;
    float first = left_of(t[0]) + t[1].x, last = left_of(t[ROWS - 1]);
    for (int r = 1; r < ROWS - 1; r++) {
        float4 after = pairs(t[r], t[r + 1]);
        t[r] = row(before, left_of(t[r]) + t[r + 1].x, after, r);
        before = after;
    }
    __syncthreads();
    float4 above = warp > 0 ? edges[warp - 1][1][lane] : top;
    float4 below = warp < WARPS - 1 ? edges[warp + 1][0][lane] : bottom;
    t[0] = row(pairs(above, top), first, second, 0);
    t[ROWS - 1] = row(before, last + below.x, pairs(bottom, below), ROWS - 1);
}

__device__ static float4 mean(float4 sum) {
    return make_float4(SPEED * sum.x, SPEED * sum.y, SPEED * sum.z, SPEED * sum.w);
}

__device__ static float4 choose(float4 heater, float4 otherwise) {
    return make_float4(
        heater.x != 0 ? heater.x : otherwise.x, heater.y != 0 ? heater.y : otherwise.y,
        heater.z != 0 ? heater.z : otherwise.z, heater.w != 0 ? heater.w : otherwise.w);
}

// A heater is a cell whose neighbours count 0 times instead of SPEED times.
__device__ static float4 weights(float4 heater) {
    return make_float4(heater.x != 0 ? 0 : SPEED, heater.y != 0 ? 0 : SPEED,
                       heater.z != 0 ? 0 : SPEED, heater.w != 0 ? 0 : SPEED);
}

__device__ static float4 heated(float4 sum, float4 weight, float4 heat) {
    return make_float4(sum.x * weight.x + heat.x, sum.y * weight.y + heat.y,
                       sum.z * weight.z + heat.z, sum.w * weight.w + heat.w);
}

// Computed once: without this, nvcc works out from the heaters again what they weigh, in each step.
__device__ static void keep(float4 &v) {
#ifdef __NVCC__
    asm volatile("" : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w));
#else
    (void)v;
#endif
}

// Temperatures are never negative, so that their sign bit can carry something else.
__device__ static uint4 with_sign(float4 t, unsigned sign) {
    return make_uint4(__float_as_uint(t.x) | sign, __float_as_uint(t.y) | sign,
                      __float_as_uint(t.z) | sign, __float_as_uint(t.w) | sign);
}

__device__ static float4 without_sign(uint4 t) {
    return make_float4(fabsf(__uint_as_float(t.x)), fabsf(__uint_as_float(t.y)),
                       fabsf(__uint_as_float(t.z)), fabsf(__uint_as_float(t.w)));
}

// Its first bit tells whether a sign differs.
__device__ static unsigned differs(uint4 t, unsigned sign) {
    return (t.x ^ sign) | (t.y ^ sign) | (t.z ^ sign) | (t.w ^ sign);
}

// 16 bytes to and from memory that other blocks read and write at the same time: in PTX these are
// "relaxed" accesses, each of four words that are whole, and nothing keeps them in a register or in
// the L1 cache. If not `really`, nothing is done, and what is loaded is anything: a predicate does
// that, a branch would take longer.
__device__ static void store_if(uint4 *to, uint4 v, bool really) {
#ifdef __NVCC__
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %5, 0;\n\t"
                 "@p st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};\n\t}" ::"l"(to),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"((int)really)
                 : "memory");
#else
    for (int k = 0; k < 4 && really; k++)
        __atomic_store_n(&to->x + k, (&v.x)[k], __ATOMIC_RELAXED);
#endif
}

__device__ static uint4 load_if(const uint4 *from, bool really) {
    uint4 v;
#ifdef __NVCC__
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %5, 0;\n\t"
                 "@p ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from), "r"((int)really)
                 : "memory");
#else
    for (int k = 0; k < 4; k++)
        (&v.x)[k] = really ? __atomic_load_n(&from->x + k, __ATOMIC_RELAXED) : 0;
#endif
    return v;
}

#endif
