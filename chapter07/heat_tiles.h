// SPDX-License-Identifier: MIT
// Temporal blocking of the heat simulation, for the last two rungs of heat_ladder: several time steps in
// registers before the cells go back to memory.
//
// A part of the plate is loaded with a halo, a margin of cells around those that it owns. At the edge of the
// halo neighbours are missing, so the values there become wrong, and wrong values spread inwards by one cell
// per step. With a margin of 16 cells the owned cells are therefore right for 16 steps. Several warps or
// blocks compute the cells of a margin; this additional work is the cost of temporal blocking.
//
// In rung 6, for large plates, a warp walks down a strip of the plate and computes 16 steps of each row. In
// rung 7, for plates that fit into the registers of all multiprocessors, a block keeps its tile in
// registers through all steps.
//
// The sum of the four neighbours takes two additions per cell instead of three: the upper and the right
// neighbour of a cell are the left and the lower neighbour of another cell. Each such pair is added once and
// used twice.
#ifndef CHAPTER07_HEAT_TILES_H
#define CHAPTER07_HEAT_TILES_H

#include "../common/book.h"
#include "../common/proofs/heat.h" // SPEED
#include "../common/ptx.h"

// A lane holds four columns, so a warp holds 128.
const int WIDTH = 128;

// ---- rung 6: rows stream through LEVELS time steps in registers ----

// A warp walks down a strip of the plate, 128 columns wide. Level k of its pipeline computes time step k: it
// gets row after row from level k - 1 and gives the new values of the row before to level k + 1. For
// that it keeps the last row and its pairs with the row above it. So a cell is read and
// written once per LEVELS steps, and no warp waits for another one.
struct Level {
    float4 row, pairs;
};

// The sums of the four neighbours of the row before `next`. They are not divided by four in each step:
// all values of a level are too large by the same power of four, which is exact.
__device__ static float4 next_level(Level &of, float4 next) {
    float right = __shfl_down_sync(0xffffffff, next.x, 1);
    float4 pairs = make_float4(of.row.x + next.y, of.row.y + next.z, of.row.z + next.w, of.row.w + right);
    float first = __shfl_up_sync(0xffffffff, pairs.w, 1);
    float4 sums =
        make_float4(of.pairs.x + first, of.pairs.y + pairs.x, of.pairs.z + pairs.y, of.pairs.w + pairs.z);
    of = {next, pairs};
    return sums;
}

// Beyond its edges the plate continues as its mirror image, which is equivalent to clamped coordinates.
__device__ static int mirrored(int i, int n) {
    return max(i < 0 ? -1 - i : i < n ? i : 2 * n - 1 - i, 0);
}

__device__ static unsigned bits(float4 heater) {
    return (heater.x != 0) | (heater.y != 0) << 1 | (heater.z != 0) << 2 | (heater.w != 0) << 3;
}

// A warp loads BATCH rows while it computes the previous BATCH rows. The rows of a batch are
// nearly independent of each other, so this instruction-level parallelism hides the latency of the shuffles.
const int BATCH = 4;

// The owned columns of a strip: the others are its halo, at least LEVELS cells on either side.
__host__ __device__ static int strip_groups(int levels) {
    return WIDTH / 4 - 2 * ((levels + 3) / 4);
}

// Each warp computes `height` rows. `last`: the launch ends with the last step, after which the heaters
// are not re-imposed.
template <int LEVELS>
__global__ void __launch_bounds__(32)
    stream_kernel(float *out, const float *in, const float *heaters, int size, int height, bool last) {
    const int halo = (LEVELS + 3) / 4; // in groups of four columns
    int lane = threadIdx.x, pitch = size / 4, x = blockIdx.x * strip_groups(LEVELS) + lane - halo;
    int top = blockIdx.y * height, bottom = min(top + height, size);
    bool owner = lane >= halo && lane < 32 - halo && x < pitch, turned = x < 0 || x >= pitch;
    float4 next[BATCH], heat[BATCH];
    auto load = [&](int y) {
#pragma unroll
        for (int r = 0; r < BATCH; r++) {
            size_t at = (size_t)mirrored(y + r, size) * pitch + mirrored(x, pitch);
            next[r] = ((const float4 *)in)[at];
            heat[r] = ((const float4 *)heaters)[at];
        }
    };
    auto turn = [&](float4 v) { return turned ? make_float4(v.w, v.z, v.y, v.x) : v; };
    Level levels[LEVELS] = {};
    float scale = 1; // of the last level
    for (int k = 0; k < LEVELS; k++)
        scale *= SPEED;
    // Which cells are heaters, four bits per row: `recent` has the bits of the last 16 rows, and `older`
    // (below) those of the BATCH rows before them
    static_assert(LEVELS <= 16, "recent and older have the bits of 16 + BATCH rows");
    unsigned long long recent = 0;
    load(top - LEVELS);
    for (int y = top - LEVELS; y < bottom + LEVELS; y += BATCH) {
        float4 row[BATCH];
        unsigned older = recent >> (64 - 4 * BATCH);
#pragma unroll
        for (int r = 0; r < BATCH; r++) {
            row[r] = turn(next[r]);
            recent = recent << 4 | bits(turn(heat[r]));
        }
        load(y + BATCH);
        // Few rows contain heaters. A heater keeps the value that it had on the level before.
        auto all_levels = [&](auto heated) {
#pragma unroll
            for (int k = 0; k < LEVELS; k++)
#pragma unroll
                for (int r = 0; r < BATCH; r++) {
                    float4 old = levels[k].row, sums = next_level(levels[k], row[r]);
                    int age = BATCH - r + k; // of the row that contains `old`
                    unsigned heater = age < 16 ? recent >> 4 * age % 64 : older >> 4 * (age - 16);
                    if (decltype(heated)::value && (k < LEVELS - 1 || !last)) {
                        sums.x = heater & 1 ? 4 * old.x : sums.x;
                        sums.y = heater & 2 ? 4 * old.y : sums.y;
                        sums.z = heater & 4 ? 4 * old.z : sums.z;
                        sums.w = heater & 8 ? 4 * old.w : sums.w;
                    }
                    row[r] = sums;
                }
        };
        if (__any_sync(0xffffffff, recent != 0 || older != 0))
            all_levels(std::true_type());
        else
            all_levels(std::false_type());
#pragma unroll
        for (int r = 0; r < BATCH; r++) {
            int to = y + r - LEVELS;
            if (owner && to >= top && to < bottom)
                ((float4 *)out)[(size_t)to * pitch + x] =
                    make_float4(scale * row[r].x, scale * row[r].y, scale * row[r].z, scale * row[r].w);
        }
    }
}

// ---- rung 7: where the tiles are ----

// A lane holds ROWS rows of its four columns. A block has WARPS warps, one above the other.
const int ROWS = 11, WARPS = 8, MARGIN = 8, HEIGHT = ROWS * WARPS;
const int TILE_THREADS = 32 * WARPS;

// The number of tiles along a side. Tiles are spread evenly, so they may overlap by more than their
// margins. Sizes are in cells, or in groups of four columns, which a lane holds.
__host__ __device__ static int tiles_of(int size, int tile, int margin) {
    return size > tile ? (size - tile - 1) / (tile - 2 * margin) + 2 : 1;
}

__device__ static int origin(int i, int tiles, int size, int tile) {
    return tiles > 1 ? (int)((long long)i * (size - tile) / (tiles - 1)) : 0;
}

// One dimension of a tile that begins at `begin`. It owns the cells from `own` to `end` and needs
// those within `margin` of them, even where the tile reaches further. So the dependence between tiles is
// symmetric: of two tiles each needs cells of the other, or neither does. Neighbours may need its cells
// at x < `below` and at x >= `above`.
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

// ---- rung 7: one time step of a tile ----

// The first and the last row of each warp, in shared memory. Double buffering: odd and even steps use
// different halves, so one barrier per step is enough.
typedef float4 Edges[2][WARPS][2][32];

// One step of the tile t. `cell` computes the new values of row r from the sums of the four neighbours.
template <typename Cell>
__device__ static void step_tile(float4 (&t)[ROWS], Edges &of_steps, int s, Cell cell) {
    auto &edges = of_steps[s % 2];
    int lane = threadIdx.x, warp = threadIdx.y;
    // Columns of the neighbouring lanes come by warp shuffle. At the edges of the tile coordinates are
    // clamped: that is right at the edge of the plate, and elsewhere the margin covers the error.
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
    // `before`: pairs of the row above and this row; `after`: pairs of this row and the row below;
    // `first`: the pair that belongs to `after` and whose upper cell is in the lane to the left.
    auto row = [&](float4 before, float first, float4 after, int r) {
        return cell(
            r, make_float4(before.x + first, before.y + after.x, before.z + after.y, before.w + after.z));
    };
    edges[warp][0][lane] = t[0];
    edges[warp][1][lane] = t[ROWS - 1];
    // The barrier stands in the middle of the work that needs no other warp. The first half hides the time
    // of waiting for it, the second half that of the loads after it.
    float4 top = t[0], bottom = t[ROWS - 1], second = pairs(t[0], t[1]), before = second;
    float4 above = top, below = bottom;
    float first = left_of(t[0]) + t[1].x, last = left_of(t[ROWS - 1]);
    for (int r = 1; r < ROWS - 1; r++) {
        if (r == ROWS / 2 + 1) {
            __syncthreads();
            if (warp > 0)
                above = edges[warp - 1][1][lane];
            if (warp < WARPS - 1)
                below = edges[warp + 1][0][lane];
        }
        float4 after = pairs(t[r], t[r + 1]);
        t[r] = row(before, left_of(t[r]) + t[r + 1].x, after, r);
        before = after;
    }
    t[0] = row(pairs(above, top), first, second, 0);
    t[ROWS - 1] = row(before, last + below.x, pairs(bottom, below), ROWS - 1);
}

__device__ static float4 mean(float4 sum) {
    return make_float4(SPEED * sum.x, SPEED * sum.y, SPEED * sum.z, SPEED * sum.w);
}

// ---- rung 7: a persistent kernel, whose tiles stay in registers and exchange their halos ----

// One launch computes all steps. Every MARGIN steps, which is a round, a tile writes the cells that its
// neighbours need to the exchange buffer in global memory and reads its own margin from there.
//
// There is no barrier, and no flag in a separate word. Temperatures are never negative, so their sign bit is
// not needed: that of the first of two cells says whether both belong to the current round. The sign changes
// each time a buffer is used again, and a tile reads two cells until they have the expected sign. The
// accesses are relaxed: values and sign are in the same word of 8 bytes, so no other access has to be
// ordered with it.
//
// Double buffering suffices: rounds use two exchange buffers in turn. A tile that writes to a buffer
// again has read its neighbours' values of the round in between from the other buffer. The neighbours
// wrote those after they had read this buffer, because each reads a round before it writes the next.
// The dependence between tiles is symmetric (see Span), so every tile that reads a cell of this one is among
// those neighbours, and no tile gets two rounds ahead of a tile that reads from it.
//
// All blocks must run at the same time, since they wait for each other: a cooperative launch.
const int EXCHANGE_BUFFERS = 2;

// At a heater the neighbours have the weight 0 instead of SPEED, and its temperature is added. That is one
// FMA per cell, without a branch.
__device__ static float4 weights(float4 heater) {
    return make_float4(heater.x != 0 ? 0 : SPEED, heater.y != 0 ? 0 : SPEED, heater.z != 0 ? 0 : SPEED,
                       heater.w != 0 ? 0 : SPEED);
}

__device__ static float4 heated(float4 sum, float4 weight, float4 heat) {
    return make_float4(sum.x * weight.x + heat.x, sum.y * weight.y + heat.y, sum.z * weight.z + heat.z,
                       sum.w * weight.w + heat.w);
}

// The temperatures are positive, or negative if `sign` is the sign bit.
__device__ static float4 with_sign(float4 t, unsigned sign) {
    return make_float4(__uint_as_float(__float_as_uint(t.x) | sign), t.y,
                       __uint_as_float(__float_as_uint(t.z) | sign), t.w);
}

__device__ static bool has_sign(float4 t, unsigned sign) {
    return ((__float_as_uint(t.x) ^ sign) | (__float_as_uint(t.z) ^ sign)) >> 31 == 0;
}

// `round` counts the rounds of all launches so far.
__global__ void __launch_bounds__(TILE_THREADS)
    persistent_kernel(float *out, const float *in, const float *heaters, float4 *exchange, int size,
                      int steps, unsigned round) {
    __shared__ Edges edges;
    Span columns(blockIdx.x, gridDim.x, size / 4, WIDTH / 4, MARGIN / 4);
    Span rows(blockIdx.y, gridDim.y, size, HEIGHT, MARGIN);
    int x = columns.begin + threadIdx.x, y = rows.begin + threadIdx.y * ROWS, pitch = size / 4;
    size_t at = x + (size_t)y * pitch;
    float4 t[ROWS], weight[ROWS], heat[ROWS];
    unsigned own = 0, gives = 0, lacks = 0; // one bit per row
    for (int r = 0; r < ROWS; r++)
        heat[r] = ((const float4 *)heaters)[at + (size_t)r * pitch];
    for (int r = 0; r < ROWS; r++)
        t[r] = ((const float4 *)in)[at + (size_t)r * pitch];
    for (int r = 0; r < ROWS; r++) { // while the loads are under way
        bool mine = columns.owns(x) && rows.owns(y + r);
        own |= (unsigned)mine << r;
        gives |= (unsigned)(mine && (columns.shared(x) || rows.shared(y + r))) << r;
        lacks |= (unsigned)(!mine && columns.needs(x) && rows.needs(y + r)) << r;
    }
    for (int r = 0; r < ROWS; r++) {
        weight[r] = weights(heat[r]);
        keep_in_registers(weight[r]); // else nvcc computes it from heat[r] in every step
    }

    for (int begin = 0; begin < steps; begin += MARGIN) {
        if (begin > 0) {
            unsigned sign = (round / EXCHANGE_BUFFERS + 1) % 2 << 31;
            float4 *plate = exchange + round++ % EXCHANGE_BUFFERS * (size_t)size * pitch + at;
            for (int r = 0; r < ROWS; r++)
                store_relaxed_if(&plate[r * (size_t)pitch], with_sign(t[r], sign), gives >> r & 1);
            // Bit operations and predication instead of branches, so that the loads of all rows are in
            // flight together. The whole warp repeats the loop until no lane misses a value: a diverged
            // warp would run the following steps in parts.
            unsigned missing = lacks;
            do {
                for (int r = 0; r < ROWS; r++)
                    load_relaxed_if(t[r], &plate[r * (size_t)pitch], missing >> r & 1);
                for (int r = 0; r < ROWS; r++)
                    missing &= ~((unsigned)has_sign(t[r], sign) << r);
                let_other_blocks_run();
            } while (__any_sync(0xffffffff, missing));
            for (int r = 0; r < ROWS; r++)
                t[r].x = fabsf(t[r].x), t[r].z = fabsf(t[r].z);
        }
#pragma unroll 2
        for (int s = begin; s < begin + MARGIN && s < steps - 1; s++)
            step_tile(t, edges, s, [&](int r, float4 sum) { return heated(sum, weight[r], heat[r]); });
    }
    step_tile(t, edges, steps - 1, [](int, float4 sum) { return mean(sum); });
    for (int r = 0; r < ROWS; r++)
        if (own >> r & 1)
            ((float4 *)out)[at + (size_t)r * pitch] = t[r];
}

#endif
