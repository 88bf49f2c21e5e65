// SPDX-License-Identifier: MIT
// For heat_ladder and heat_mpi: several time steps of the heat simulation in one launch. Both programs share
// this long kernel, so that their results are equal bit for bit and their times can be compared.
//
// The plate: temperatures are nonnegative. A negative sign marks a heater: a heater of temperature t is
// stored as -t, so no separate array of heaters is needed. Each row is padded to a multiple of four floats.
//
// This file has, from top to bottom: one time step of a row, the kernel, its grid, and the reference.
#pragma once

#include <cuda_pipeline.h>
#include "../common/book.h"
#include "../common/checks/heat.h" // SPEED

static_assert(SPEED == 0.25f, "a cell becomes the mean of its four neighbours");

// ---- one time step of a row ----

// A warp computes a band of 128 columns: a lane has four of them in a float4. Columns of neighbouring lanes
// come by warp shuffle. At both ends of the band they are missing: that is right at the edge of the plate,
// where coordinates are clamped; elsewhere wrong values spread by one column in each step, and the band has a
// margin for them.
const int BAND = 128, WARPS = 2; // columns of a warp; warps of a block, side by side
const int AHEAD = 4;             // rows that are loaded in advance

struct Lane {
    int lane, last; // `last`: the lane with the last column of the plate, or of the band
    __device__ float left_of(float4 row) const {
        float left = __shfl_up_sync(0xffffffff, row.w, 1);
        return lane == 0 ? row.x : left;
    }
    __device__ float right_of(float4 row) const {
        float right = __shfl_down_sync(0xffffffff, row.x, 1);
        return lane == last ? row.w : right;
    }
    // Returns four sums, one for each column x of the lane: cell (x, y) plus cell (x + 1, y + 1), if `row` is
    // row y and `next` is row y + 1. Two cells need such a sum: these are the upper and the right neighbour
    // of cell (x, y + 1), and the left and the lower neighbour of cell (x + 1, y).
    __device__ float4 pairs(float4 row, float4 next) const {
        return make_float4(fabsf(row.x) + fabsf(next.y), fabsf(row.y) + fabsf(next.z),
                           fabsf(row.z) + fabsf(next.w), fabsf(row.w) + fabsf(right_of(next)));
    }
    // The sums (upper + right) + (left + lower) of a row. `before`: pairs of the row above and this one;
    // `after`: pairs of this one and the row below.
    __device__ float4 sums(float4 before, float4 row, float4 after, float4 below) const {
        return make_float4(before.x + (fabsf(left_of(row)) + fabsf(below.x)), before.y + after.x,
                           before.z + after.y, before.w + after.z);
    }
};

__device__ static float4 scaled(float factor, float4 t) {
    return make_float4(factor * t.x, factor * t.y, factor * t.z, factor * t.w);
}

// A heater, which is negative, keeps its temperature. A sum is four times a mean.
__device__ static float4 keep_heaters(float4 cell, float4 sum) {
    return make_float4(cell.x < 0 ? 4 * cell.x : sum.x, cell.y < 0 ? 4 * cell.y : sum.y,
                       cell.z < 0 ? 4 * cell.z : sum.z, cell.w < 0 ? 4 * cell.w : sum.w);
}

__device__ static bool has_heaters(float4 t) {
    return fminf(fminf(t.x, t.y), fminf(t.z, t.w)) < 0;
}

// Columns beyond the plate, in its last float4, hold a copy of the last column.
__device__ static float4 clamp_columns(float4 t, int columns) {
    t.y = columns > 1 ? t.y : t.x;
    t.z = columns > 2 ? t.z : t.y;
    t.w = columns > 3 ? t.w : t.z;
    return t;
}

// ---- the kernel ----

// Rows from `begin` to `end` of the plate, and where they are. The pointers are to row 0 of the plate, even
// if another GPU has that row.
struct Rows {
    float4 *out;
    const float4 *in;
    int begin, end;
    int width, height, margin; // columns and rows of the plate; columns of the margin of a band
};

__host__ __device__ static inline int bands_of(const Rows &rows) {
    return rows.width > BAND ? (rows.width - BAND - 1) / (BAND - 2 * rows.margin) + 2 : 1;
}

// For a kernel that exchanges no halos
struct NoExchange {
    __device__ void wait(void) const {}
    __device__ void store(int, long long, float4) const {}
    __device__ void tell(void) const {}
};

// DEPTH time steps. A warp goes down its rows and reads each of them once: as soon as row y has arrived, row
// y - 1 can take its first step, then row y - 2 its second one, and so on. So a warp needs no more than two
// rows of each step at a time, which are in registers, and it needs no barrier. It begins DEPTH rows above
// its own and ends DEPTH rows below.
template <int DEPTH, class Exchange>
__global__ void __launch_bounds__(32 * WARPS, 6) heat_steps(Rows rows, Exchange exchange) {
    int margin = rows.margin / 4, pitch = (rows.width + 3) / 4, bands = bands_of(rows);
    int band = blockIdx.x * WARPS + threadIdx.y, x = band * (BAND / 4 - 2 * margin) + threadIdx.x;
    Lane lane = {(int)threadIdx.x, min(31, pitch - 1 - (x - (int)threadIdx.x))};
    bool owns = (band == 0 || lane.lane >= margin) &&
                (band == bands - 1 ? lane.lane <= lane.last : lane.lane < BAND / 4 - margin);
    x = min(x, pitch - 1);
    bool ragged = rows.width % 4 != 0;
    int columns = rows.width - 4 * x;
    long long all = rows.end - rows.begin;
    int begin = rows.begin + (int)(all * blockIdx.y / gridDim.y);
    int end = rows.begin + (int)(all * (blockIdx.y + 1) / gridDim.y);

    exchange.wait();

    __shared__ float4 of_warps[WARPS][AHEAD][32]; // rows loaded in advance, to hide the latency of memory
    auto &arriving = of_warps[threadIdx.y];
    int y = max(begin - DEPTH, 0), stop = min(end + DEPTH, rows.height);
    auto at = [&](int row) { return x + (long long)row * pitch; };
    auto store = [&](int row, float4 t) {
        if (row < begin || row >= end || !owns)
            return;
        rows.out[at(row)] = t;
        exchange.store(row, at(row), t);
    };
    auto load = [&](int row) { // two rows
        for (int r = row; r < row + 2; r++)
            if (r < stop)
                __pipeline_memcpy_async(&arriving[r % AHEAD][lane.lane], &rows.in[at(r)], sizeof(float4));
        __pipeline_commit();
    };

    float4 cell[DEPTH], before[DEPTH]; // of each step: the newest row, and its pairs with the row above
    unsigned hot = 0; // which of the last rows have heaters in this band, one bit for two rows
    // All steps of the rows for which t = row y and u = row y + 1 have arrived. `at_edge`: the plate may
    // begin or end at one of the rows or columns. `heated`: there may be heaters.
    auto all_steps = [&](float4 t, float4 u, auto at_edge, auto heated) {
#pragma unroll
        for (int s = 0; s < DEPTH; s++) { // t is row y - s after s steps, u the one below
            if (at_edge.value) {
                if (y - s == 0)
                    cell[s] = t; // above the first row
                if (y - s + 1 == 0)
                    t = u;
                if (y - s >= rows.height)
                    t = cell[s]; // below the last row
                if (y - s + 1 >= rows.height)
                    u = t;
            }
            float4 pairs_t = lane.pairs(cell[s], t), pairs_u = lane.pairs(t, u);
            float4 new_t = lane.sums(before[s], cell[s], pairs_t, t),
                   new_u = lane.sums(pairs_t, t, pairs_u, u);
            if (heated.value) {
                new_t = keep_heaters(cell[s], new_t);
                new_u = keep_heaters(t, new_u);
            }
            cell[s] = u;
            before[s] = pairs_u;
            t = at_edge.value ? clamp_columns(new_t, columns) : new_t;
            u = at_edge.value ? clamp_columns(new_u, columns) : new_u;
        }
        const float back = 1.0f / (1ull << 2 * DEPTH); // the sums of all steps become means
        store(y - DEPTH, scaled(back, t));
        store(y - DEPTH + 1, scaled(back, u));
    };
    std::true_type yes;
    std::false_type no;
    if (band < bands) {
        for (int i = 0; i < AHEAD; i += 2)
            load(y + i);
        for (; y < end + DEPTH; y += 2) {
            __pipeline_wait_prior(AHEAD / 2 - 1);
            float4 t = arriving[y % AHEAD][lane.lane], u = arriving[(y + 1) % AHEAD][lane.lane];
            load(y + AHEAD);
            hot = hot << 1 | (__any_sync(0xffffffff, has_heaters(t) || has_heaters(u)) != 0);
            if (ragged || y < DEPTH || y >= stop - 1)
                all_steps(clamp_columns(t, columns), clamp_columns(u, columns), yes, yes);
            else if (hot & ((2u << (DEPTH + 1) / 2) - 1))
                all_steps(t, u, no, yes);
            else
                all_steps(t, u, no, no);
        }
    }
    exchange.tell();
}

// ---- its grid ----

// The number of blocks of heat_steps<depth> that the current device runs at the same time
template <int DEPTH, class Exchange> static int blocks_at_once(void) {
    int device, blocks;
    HANDLE_ERROR(cudaGetDevice(&device));
    HANDLE_ERROR(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, heat_steps<DEPTH, Exchange>, 32 * WARPS, 0));
    return blocks * device_attribute(cudaDevAttrMultiProcessorCount, device);
}

// The grid for these rows of the plate. `at_once`: the number of blocks that run at the same time. A block
// has about 400 rows. It also computes `depth` rows above and below them, and compared with 400 rows this
// redundant work is small. With depth 1 the kernel is memory-bound, and a block has 16 rows, so that blocks
// that run at the same time read neighbouring rows. On a small plate blocks have fewer rows, so that
// `at_once` blocks can run at the same time, but at least 4 * depth.
static inline dim3 grid_of(const Rows &rows, int depth, int at_once) {
    int height = rows.end - rows.begin;
    unsigned across = (bands_of(rows) + WARPS - 1) / WARPS;
    int blocks = max_of(at_once / across, height / (depth == 1 ? 16 : 400));
    return dim3(across, max_of(1, min_of(blocks, height / (4 * depth))));
}

// ---- the reference, on the host ----

// One step for rows `begin` to `end` of a part of the plate, which has width x height cells. Coordinates are
// clamped at its edges. Like the kernel it adds (upper + right) + (left + lower), so that the results are
// equal bit for bit.
static inline void reference_rows(const float *part, float *result, size_t width, size_t height, size_t begin,
                                  size_t end) {
    for (size_t y = begin; y < end; y++) {
        const float *in = part + y * width, *upper = y > 0 ? in - width : in,
                    *lower = y < height - 1 ? in + width : in;
        float *out = result + y * width;
        auto cell = [&](size_t x, size_t left, size_t right) {
            float up = fabsf(upper[x]), down = fabsf(lower[x]),
                  mean = SPEED * ((up + fabsf(in[right])) + (fabsf(in[left]) + down));
            out[x] = signbit(in[x]) ? in[x] : mean;
        };
        cell(0, 0, min_of(1, width - 1));
        for (size_t x = 1; x + 1 < width; x++)
            cell(x, x - 1, x + 1);
        if (width > 1)
            cell(width - 1, width - 2, width - 1);
    }
}
