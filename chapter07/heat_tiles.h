// SPDX-License-Identifier: MIT
// Tiles of a plate, for the last rungs of heat_ladder: where they lie, and a step of one of them.
#ifndef CHAPTER07_HEAT_TILES_H
#define CHAPTER07_HEAT_TILES_H

#include <cuda_runtime.h>
#include "heat.h"

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

// One direction of a tile: it begins at `begin`; from `own` to `end` it answers for the cells. Its
// neighbours need those below `below` and from `above` on.
struct Span {
    int begin, own, end, below, above;
    __device__ Span(int i, int tiles, int size, int tile, int margin) {
        begin = origin(i, tiles, size, tile);
        own = i == 0 ? 0 : begin + margin;
        end = i == tiles - 1 ? size : origin(i + 1, tiles, size, tile) + margin;
        below = i == 0 ? 0 : origin(i - 1, tiles, size, tile) + tile;
        above = i == tiles - 1 ? size : origin(i + 1, tiles, size, tile);
    }
    __device__ bool owns(int x) const { return x >= own && x < end; }
    __device__ bool shared(int x) const { return x < below || x >= above; }
};

// First and last row of each warp, for odd and for even steps
typedef float4 Edges[2][WARPS][2][32];

// One step of a tile. `cell` makes of the sums of four neighbours, in row r, what cells become.
template <typename Cell>
__device__ static void step_tile(float4 (&t)[ROWS], Edges &of_steps, int s, Cell cell) {
    auto &edges = of_steps[s % 2];
    int lane = threadIdx.x, warp = threadIdx.y;
    auto row = [&](float4 above, float4 t, float4 below, int r) {
        float left = __shfl_up_sync(0xffffffff, t.w, 1);
        float right = __shfl_down_sync(0xffffffff, t.x, 1);
        left = lane == 0 ? t.x : left; // the edge of the plate, or a margin
        right = lane == 31 ? t.w : right;
        return cell(
            r, make_float4((above.x + below.x) + (left + t.y), (above.y + below.y) + (t.x + t.z),
                           (above.z + below.z) + (t.y + t.w), (above.w + below.w) + (t.z + right)));
    };
    edges[warp][0][lane] = t[0];
    edges[warp][1][lane] = t[ROWS - 1];
    // What needs no other warp comes before the barrier, so that waiting costs less.
    float4 top = t[0], second = t[1], before = t[0];
    float4 bottom = t[ROWS - 1], last_but_one = t[ROWS - 2];
    for (int r = 1; r < ROWS - 1; r++) {
        float4 now = t[r];
        t[r] = row(before, now, t[r + 1], r);
        before = now;
    }
    __syncthreads();
    t[0] = row(warp > 0 ? edges[warp - 1][1][lane] : top, top, second, 0);
    t[ROWS - 1] =
        row(last_but_one, bottom, warp < WARPS - 1 ? edges[warp + 1][0][lane] : bottom, ROWS - 1);
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

// Temperatures are never negative, so that their sign bit can carry something else.
__device__ static uint4 with_sign(float4 t, unsigned sign) {
    return make_uint4(__float_as_uint(t.x) | sign, __float_as_uint(t.y) | sign,
                      __float_as_uint(t.z) | sign, __float_as_uint(t.w) | sign);
}

__device__ static float4 without_sign(uint4 t) {
    return make_float4(fabsf(__uint_as_float(t.x)), fabsf(__uint_as_float(t.y)),
                       fabsf(__uint_as_float(t.z)), fabsf(__uint_as_float(t.w)));
}

__device__ static bool all_of(uint4 t, unsigned sign) {
    return (((t.x ^ sign) | (t.y ^ sign) | (t.z ^ sign) | (t.w ^ sign)) >> 31) == 0;
}

// Waits for `takes` vectors of the margins, which lie on the plate where the list says, until they
// have the sign. The threads share them evenly, and ask for four at a time: they take long to come.
// There is nothing to sleep for on a GPU, where other warps go on by themselves; on the CPU back
// end another thread of the block has its turn meanwhile.
__device__ static void take_margins(float4 *tile, const uint4 *plate, int pitch,
                                    const unsigned short *list, int takes, unsigned sign) {
    const int threads = 32 * WARPS;
    for (int i = threadIdx.x + 32 * threadIdx.y; i < takes; i += 4 * threads) {
        int missing = 0, place[4];
        for (int k = 0; k < 4; k++)
            if (i + k * threads < takes) {
                place[k] = list[i + k * threads];
                missing |= 1 << k;
            }
        while (missing) {
            uint4 got[4];
            for (int k = 0; k < 4; k++)
                if (missing >> k & 1) // __ldcv: from memory each time
                    got[k] = __ldcv(&plate[place[k] / 32 * (size_t)pitch + place[k] % 32]);
            for (int k = 0; k < 4; k++)
                if (missing >> k & 1 && all_of(got[k], sign)) {
                    tile[place[k]] = without_sign(got[k]);
                    missing &= ~(1 << k);
                }
#ifndef __NVCC__
            __nanosleep(20);
#endif
        }
    }
}

#endif
