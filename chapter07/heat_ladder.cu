// SPDX-License-Identifier: MIT
/*
 * heat_ladder: heat simulation, from two kernels per step to one persistent kernel
 *
 * Teaches: With temporal blocking a tile computes several time steps of a stencil in registers before its
 *          cells go back to memory, for which it needs a halo. A single step is little work, so on a
 *          small plate launch overhead dominates, on a large plate memory bandwidth. In the last rung
 *          tiles stay in registers for the whole simulation and exchange only their halos.
 * Terms:   stencil, texture memory, temporal blocking, halo, kernel fusion, graph, cooperative launch, grid
 *          barrier, persistent kernel, launch overhead, cooperative groups, double buffering,
 *          predication, PTX, L2 cache
 * Book:    7.3.3 (ladder)
 * Rungs:   0 book (two kernels per step); 1 1-D texture (the book's second version); 2 2-D texture (the
 *          book's third version); 3 kernel fusion (heaters in the update); 4 CUDA graph (one launch of all
 *          steps); 5 cooperative launch (grid barrier after each step); 6 temporal blocking (rows stream
 *          through 16 steps in registers); 7 persistent kernel (tiles stay in registers, halo exchange)
 * Build:   nvcc -o heat_ladder chapter07/heat_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/heat_ladder --size 16384
 * Differs: the initial temperatures are random. The rate counts one read and one write of each cell per
 *          step. Recording the graph is not part of the time.
 * Limit:   on a small plate two warps per scheduler, all that the registers hold, issue in half of the
 *          cycles, and neighbours exchange cells every eight steps; on a large one the instructions of the
 *          steps, of which some are computed twice.
 * Bench:   128 256 512 1024 16384
 * Check:   --size 132 --iterations 24 | --size 100 --iterations 25
 */
#include "../common/book.h"
#include "../common/bench.h"
#include "../common/checks/heat.h" // SPEED, place_heaters(), spread()
#include "../common/ptx.h"
#include <cooperative_groups.h>
#include <mutex>

namespace cg = cooperative_groups;

static int size = BENCH_SIZE(DIM, 160); // --size, cells per side
static int steps = 0;                   // --iterations
static int multiprocessors;             // of the device
static float *heaters, *first;          // host: the heaters, the initial temperatures
static float *dev_heaters, *dev_first, *dev_buffers[2], *dev_result;
static float4 *dev_exchange;
static float *result; // host
static double *expected;
static void make_plate(void);
static void make_reference(void);

static size_t plate_bytes(void) {
    return (size_t)size * size * sizeof(float);
}

// Rung 0, the book's: one kernel re-imposes the heaters, the other computes the step.
__global__ void copy_const_kernel(float *iptr, const float *cptr, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size && cptr[x + (size_t)y * size] != 0)
        iptr[x + (size_t)y * size] = cptr[x + (size_t)y * size];
}

// Coordinates are clamped at the edges. With SPEED = 0.25 the old temperature T cancels out of
// T + SPEED * (up + down + left + right - 4 T), which leaves the mean of the neighbours.
__device__ static float mean_of_neighbours(const float *in, int x, int y, int size) {
    size_t at = x + (size_t)y * size;
    float left = in[x > 0 ? at - 1 : at], right = in[x < size - 1 ? at + 1 : at];
    float below = in[y > 0 ? at - size : at], above = in[y < size - 1 ? at + size : at];
    return SPEED * ((above + below) + (left + right));
}

__global__ void blend_kernel(float *outSrc, const float *inSrc, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size)
        outSrc[x + (size_t)y * size] = mean_of_neighbours(inSrc, x, y, size);
}

// The input and the output of step s: ping-pong buffers. The first step reads dev_first, which stays
// unchanged for the next run: copy_const_kernel() writes only heaters to it, which it contains already.
// target() also remembers the output in dev_result, for the check.
static const float *source(int s) {
    return s == 0 ? dev_first : dev_buffers[(s + 1) % 2];
}

static float *target(int s) {
    return dev_result = dev_buffers[s % 2];
}

static dim3 blocks_of(int width, int height) {
    return dim3((size - 1) / width + 1, (size - 1) / height + 1);
}

static void run_book(void) {
    for (int s = 0; s < steps; s++) {
        copy_const_kernel<<<blocks_of(16, 16), dim3(16, 16)>>>((float *)source(s), dev_heaters, size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks_of(16, 16), dim3(16, 16)>>>(target(s), source(s), size);
        HANDLE_LAUNCH();
    }
}

// Rungs 1 and 2 are the book's texture versions: the same two kernels read through a 1-D texture of linear
// memory, and through a 2-D texture, whose address mode clamps the coordinates at the edges.
struct Linear {
    cudaTextureObject_t texture;
    int size;
    __device__ float operator()(int x, int y) const {
        return tex1Dfetch<float>(texture, min(max(x, 0), size - 1) + min(max(y, 0), size - 1) * size);
    }
};

struct Plane {
    cudaTextureObject_t texture;
    int size;
    __device__ float operator()(int x, int y) const { return tex2D<float>(texture, x, y); }
};

template <class Texture> __global__ void copy_const_texture(float *iptr, Texture constants, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size && constants(x, y) != 0)
        iptr[x + (size_t)y * size] = constants(x, y);
}

template <class Texture> __global__ void blend_texture(float *outSrc, Texture inSrc, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size)
        outSrc[x + (size_t)y * size] =
            SPEED * ((inSrc(x, y + 1) + inSrc(x, y - 1)) + (inSrc(x - 1, y) + inSrc(x + 1, y)));
}

static const char *linear_needs(void) {
    return (size_t)size * size <= largest_linear_texture() ? NULL : "needs a smaller plate on this device";
}

static const char *plane_needs(void) {
    return size % 8 == 0 ? NULL : "needs a size that is a multiple of 8";
}

static cudaTextureObject_t make_texture(const float *data, bool linear) {
    cudaResourceDesc resource = {};
    resource.resType = linear ? cudaResourceTypeLinear : cudaResourceTypePitch2D;
    if (linear) {
        resource.res.linear.devPtr = (void *)data;
        resource.res.linear.desc = cudaCreateChannelDesc<float>();
        resource.res.linear.sizeInBytes = plate_bytes();
    } else {
        resource.res.pitch2D.devPtr = (void *)data;
        resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
        resource.res.pitch2D.width = resource.res.pitch2D.height = size;
        resource.res.pitch2D.pitchInBytes = size * sizeof(float);
    }
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    return texture;
}

// textures[0] are 2-D, textures[1] are 1-D (linear). In each row: dev_first, the two buffers, the heaters.
static cudaTextureObject_t textures[2][4];

static void each_texture(bool make) {
    const float *memory[] = {dev_first, dev_buffers[0], dev_buffers[1], dev_heaters};
    for (int linear = 0; linear < 2; linear++)
        for (int i = 0; i < 4 && !(linear ? linear_needs() : plane_needs()); i++)
            if (make)
                textures[linear][i] = make_texture(memory[i], linear);
            else
                HANDLE_ERROR(cudaDestroyTextureObject(textures[linear][i]));
}

template <class Texture> static void run_textures(void) {
    const cudaTextureObject_t *of = textures[std::is_same<Texture, Linear>::value];
    for (int s = 0; s < steps; s++) {
        copy_const_texture<<<blocks_of(16, 16), dim3(16, 16)>>>((float *)source(s), Texture{of[3], size},
                                                                size);
        HANDLE_LAUNCH();
        Texture in = {of[s == 0 ? 0 : 1 + (s + 1) % 2], size};
        blend_texture<<<blocks_of(16, 16), dim3(16, 16)>>>(target(s), in, size);
        HANDLE_LAUNCH();
    }
}

// Rung 3: the heaters are fused into the update. The book re-imposes the heaters at the start of a step, so
// after the last step a heater cell, too, contains the mean of its neighbours. `last` is true in that step.
__device__ static void step_cell(float *out, const float *in, const float *heaters, int x, int y, int size,
                                 bool last) {
    float heater = heaters[x + (size_t)y * size];
    out[x + (size_t)y * size] = heater != 0 && !last ? heater : mean_of_neighbours(in, x, y, size);
}

__global__ void step_kernel(float *out, const float *in, const float *heaters, int size, bool last) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size)
        step_cell(out, in, heaters, x, y, size, last);
}

static void run_steps(cudaStream_t stream) {
    for (int s = 0; s < steps; s++) {
        step_kernel<<<blocks_of(32, 8), dim3(32, 8), 0, stream>>>(target(s), source(s), dev_heaters, size,
                                                                  s == steps - 1);
        HANDLE_LAUNCH();
    }
}

// Rung 4: the launches of all steps are recorded once as a graph, which is started with one call.
static cudaGraphExec_t graph;

static void record_graph(void) {
    cudaStream_t stream;
    cudaGraph_t recorded;
    HANDLE_ERROR(cudaStreamCreate(&stream));
    HANDLE_ERROR(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    run_steps(stream);
    HANDLE_ERROR(cudaStreamEndCapture(stream, &recorded));
    HANDLE_ERROR(cudaGraphInstantiate(&graph, recorded, 0));
    HANDLE_ERROR(cudaGraphDestroy(recorded));
    HANDLE_ERROR(cudaStreamDestroy(stream));
}

static void run_graph(void) {
    target(steps - 1);
    HANDLE_ERROR(cudaGraphLaunch(graph, 0));
}

// Rung 5: a cooperative launch, whose blocks all run at the same time, so that they can meet at a grid
// barrier after each step. On an H200 it is slower than the graph on a plate of 1024 x 1024 cells (0.49 ms,
// the graph 0.39 ms), and faster on one of 16384 x 16384 cells (18.6 ms, the graph 21.3 ms). A kernel that
// runs through all steps can also keep its data on the multiprocessor, as rung 7 does.
__global__ void __launch_bounds__(1024) grid_kernel(float *buffer0, float *buffer1, const float *first,
                                                    const float *heaters, int size, int steps) {
    int across = (size + 31) / 32;
    for (int s = 0; s < steps; s++) {
        const float *in = s == 0 ? first : s % 2 ? buffer0 : buffer1;
        for (int block = blockIdx.x; block < across * across; block += gridDim.x) {
            int x = block % across * 32 + threadIdx.x, y = block / across * 32 + threadIdx.y;
            if (x < size && y < size)
                step_cell(s % 2 ? buffer1 : buffer0, in, heaters, x, y, size, s == steps - 1);
        }
        cg::this_grid().sync();
    }
}

static void run_grid(void) {
    int each;
    target(steps - 1);
    HANDLE_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, grid_kernel, 1024, 0));
    void *arguments[] = {&dev_buffers[0], &dev_buffers[1], &dev_first, &dev_heaters, &size, &steps};
    HANDLE_ERROR(cudaLaunchCooperativeKernel(grid_kernel, dim3(each * multiprocessors), dim3(32, 32),
                                             arguments, 0, 0));
}

// ---- Temporal blocking, rungs 6 and 7: several time steps in registers before the cells go back to memory
//
// A part of the plate is loaded with a halo, a margin of cells around those that it owns. At the edge of the
// halo neighbours are missing, so the values there become wrong, and wrong values spread inwards by one cell
// per step. With a margin of 16 cells the owned cells are therefore right for 16 steps. Several warps or
// blocks compute the cells of a margin; this additional work is the cost of temporal blocking.
//
// The sum of the four neighbours takes two additions per cell instead of three: the upper and the right
// neighbour of a cell are the left and the lower neighbour of another cell. Each such pair is added once and
// used twice.

// A lane holds four columns, so a warp holds 128.
const int WIDTH = 128;

// Rung 6, for large plates: a warp walks down a strip of the plate, 128 columns wide, and computes LEVELS
// time steps of each row. Level k of its pipeline computes time step k: it gets row after row from level k -
// 1 and gives the new values of the row before to level k + 1. For that it keeps the last row and its pairs
// with the row above it. So a cell is read and written once per LEVELS steps, and no warp waits for another
// one.
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
                    // Of the row in `old`: for r = 1, k = 2 it is row y - 2, the newest is y + 3, so 5.
                    int age = BATCH - r + k;
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

// A launch computes up to 16 steps.
static const char *stream_needs(void) {
    return size < WIDTH || size % 4 ? "needs a size from 128 on, a multiple of 4" : NULL;
}

static void run_stream(void) {
    int s = 0, launch = 0;
    auto launches = [&](auto kernel, int levels) {
        int strips = (size / 4 - 1) / strip_groups(levels) + 1;
        // More rows per warp: fewer are computed twice. More warps: the load is balanced better.
        int height = min_of(512, max_of(16, strips * size / (40 * multiprocessors)));
        for (; s + levels <= steps; s += levels, launch++) {
            kernel<<<dim3(strips, (size - 1) / height + 1), 32>>>(target(launch), source(launch), dev_heaters,
                                                                  size, height, s + levels == steps);
            HANDLE_LAUNCH();
        }
    };
    launches(stream_kernel<16>, 16);
    launches(stream_kernel<4>, 4);
    launches(stream_kernel<1>, 1);
}

// Rung 7, for plates that fit into the registers of all multiprocessors: a block keeps its tile in registers
// through all steps. First: where the tiles are.

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

// One cooperative launch. Its blocks wait for each other, so all tiles must run at the same time.
static dim3 tiles(void) {
    return dim3(tiles_of(size / 4, WIDTH / 4, MARGIN / 4), tiles_of(size, HEIGHT, MARGIN));
}

static const char *persistent_needs(void) {
    if (stream_needs())
        return stream_needs();
    int each;
    HANDLE_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, persistent_kernel, TILE_THREADS, 0));
    bool fit = tiles().x * tiles().y <= (unsigned)(each * multiprocessors);
    return fit ? NULL : "needs all tiles on the device at once";
}

static void run_persistent(void) {
    static unsigned rounds; // of all runs so far
    void *arguments[] = {&dev_buffers[0], &dev_first, &dev_heaters, &dev_exchange, &size, &steps, &rounds};
    dev_result = dev_buffers[0];
    HANDLE_ERROR(cudaLaunchCooperativeKernel(persistent_kernel, tiles(), dim3(32, WARPS), arguments, 0, 0));
    rounds += (steps - 1) / MARGIN;
}

static const Rung rungs[] = {
    {"book", "two kernels per step", run_book},
    {"1-D texture", "the book's second version", run_textures<Linear>, RUNG, 0, 0, linear_needs},
    {"2-D texture", "the book's third version", run_textures<Plane>, RUNG, 0, 0, plane_needs},
    {"kernel fusion", "heaters in the update", [] { run_steps(0); }},
    {"CUDA graph", "one launch of all steps", run_graph},
    {"cooperative launch", "grid barrier after each step", run_grid},
    {"temporal blocking", "rows stream through 16 steps in registers", run_stream, RUNG, 0, 0, stream_needs},
    {"persistent kernel", "tiles stay in registers, halo exchange", run_persistent, RUNG, 0, 0,
     persistent_needs},
    {"copy of the plate", "each cell is read and written once",
     [] {
         HANDLE_ERROR(
             cudaMemcpyAsync(dev_buffers[1], dev_buffers[0], plate_bytes(), cudaMemcpyDeviceToDevice));
     },
     LIMIT},
    // A pair sum serves two cells: two additions for each, and the update.
    {"arithmetic", "three operations a cell and step", [] { bench_fma(dev_buffers[1]); }, LIMIT, 0,
     BENCH_FMAS / 3 * 2 * sizeof(float)},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = plate_bytes();
    make_plate();
    make_reference();
    bench_malloc(&dev_heaters, bytes);
    bench_malloc(&dev_first, bytes);
    bench_malloc(&dev_buffers[0], bytes);
    bench_malloc(&dev_buffers[1], bytes);
    HANDLE_ERROR(cudaMemcpy(dev_heaters, heaters, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_first, first, bytes, cudaMemcpyHostToDevice));
    record_graph();
    each_texture(true);
    if (!persistent_needs()) {
        bench_malloc(&dev_exchange, EXCHANGE_BUFFERS * bytes);
        HANDLE_ERROR(cudaMemset(dev_exchange, 0, EXCHANGE_BUFFERS * bytes));
    }

    bench_run(rungs);

    HANDLE_ERROR(cudaGraphExecDestroy(graph));
    each_texture(false);
    return bench_finish({heaters, first, result, expected});
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    size_t side = size;
    configure(argc, argv, "Heat simulation, from the book's kernels to the fastest.", LADDER,
              {OPTION_SIZE("size", &side, 1, 46340, "cells a side"),
               OPTION_INT("iterations", &steps, 1, 10000, "steps; default 90, and 16 on a large plate")});
    multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
    size = side;
    steps = steps ? steps : size > 4096 ? 16 : STEPS;
    size_t bytes = plate_bytes(), exchange = persistent_needs() ? 0 : EXCHANGE_BUFFERS * bytes;
    require_memory(8 * bytes, 4 * bytes + exchange + bench_memory(0));
    bench.title =
        std::to_string(size) + " x " + std::to_string(size) + " cells, " + std::to_string(steps) + " steps";
    bench.size = size;
    bench.work = 2.0 * bytes * steps; // each step reads and writes each cell
    bench.footprint = 3 * bytes;
    bench.left = [](const std::string &name) {
        return std::vector<BenchLeft>(name == "copy of the plate",
                                      {dev_buffers[1], dev_buffers[0], plate_bytes()});
    };
}

// Random temperatures, and those of the heaters. In a small plate a row of heaters is added, which all lanes
// of a warp see in rung 6. In a large plate the hot square is wide enough for that.
static void make_plate(void) {
    size_t cells = (size_t)size * size;
    heaters = host_array<float>(cells);
    first = host_array<float>(cells);
    place_heaters(heaters, size);
    if (size < 512)
        std::fill_n(heaters + size / 8 * size, size, 0.5f);
    random_floats(first, cells, 1);
    for (size_t i = 0; i < cells; i++)
        first[i] = heaters[i] != 0 ? heaters[i] : first[i];
}

static void make_reference(void) {
    size_t cells = (size_t)size * size;
    double *in = host_array<double>(cells);
    expected = host_array<double>(cells);
    result = host_array<float>(cells);
    std::copy(first, first + cells, in);
    for (int s = 0; s < steps; s++) {
        spread(expected, in, heaters, size);
        swap(in, expected);
    }
    swap(in, expected);
    free(in);
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_buffers[0], 0xff, plate_bytes()));
    HANDLE_ERROR(cudaMemset(dev_buffers[1], 0xff, plate_bytes()));
}

// In each step a cell rounds by at most 2^-24. Later steps do not amplify that, because they take means.
static bool check(const char *name, BenchError *error) {
    size_t cells = (size_t)size * size;
    HANDLE_ERROR(cudaMemcpy(result, dev_result, plate_bytes(), cudaMemcpyDeviceToHost));
    std::mutex one_thread;
    double max = 0, sum = 0;
    in_threads(cells, [&](size_t begin, size_t end) {
        double own_max = 0, own_sum = 0;
        for (size_t i = begin; i < end; i++) {
            double off = fabs(result[i] - expected[i]);
            own_max = fmax(own_max, off);
            own_sum += off * off;
        }
        std::lock_guard<std::mutex> lock(one_thread);
        max = fmax(max, own_max);
        sum += own_sum;
    });
    error->max = max;
    error->rms = sqrt(sum / cells);
    return check_floats(name, result, expected, cells, steps * 0x1p-24);
}
