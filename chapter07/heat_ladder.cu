// SPDX-License-Identifier: MIT
/*
 * heat_ladder: heat simulation, from two kernels per step to one persistent kernel
 *
 * Teaches: With temporal blocking a tile computes several time steps of a stencil in registers before its
 *          cells go back to memory, for which it needs a halo. A single step is little work, so on a
 *          small plate launch overhead dominates, on a large plate memory bandwidth. In the last rung
 *          tiles stay in registers for the whole simulation and exchange only their halos.
 * Terms:   stencil, texture memory, CUDA array, surface object, temporal blocking, halo, kernel fusion,
 *          graph, cooperative launch, grid barrier, persistent kernel, launch overhead, cooperative groups,
 *          double buffering, predication, PTX, L2 cache
 * Book:    7.3.3 (ladder)
 * Rungs:   0 book (two kernels per step); 1 1-D texture (the book's second version); 2 2-D texture (the
 *          book's third version); 3 CUDA array (surf2Dwrite writes it, tex2D reads it); 4 kernel fusion
 *          (heaters in the update); 5 CUDA graph (one launch of all steps); 6 cooperative launch (grid
 *          barrier after each step); 7 temporal blocking (rows stream through 16 steps in registers); 8
 *          persistent kernel (tiles stay in registers, halo exchange)
 * Build:   nvcc -o heat_ladder chapter07/heat_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/heat_ladder --size 16384
 * Differs: the initial temperatures are random. The rate counts one read and one write of each cell per
 *          step. Recording the graph is not part of the time.
 * Limit:   on a small plate latency: the one or two warps per scheduler wait for barriers and shuffles and
 *          issue in half of the cycles, and neighbours exchange cells every 8 or 12 steps; on a large one
 *          the instructions of the steps, of which some are computed twice.
 * Bench:   128 256 512 1024 16384
 * Check:   --size 132 --iterations 24 | --size 100 --iterations 25
 */
#include "../common/book.h"
#include "../common/bench.h"
#include "../common/checks/heat.h" // SPEED, place_heaters(), spread()
#include "../common/ptx.h"
#include <cooperative_groups.h>

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
static void fill_array(cudaArray_t array, const float *memory);

static size_t plate_bytes(void) {
    return (size_t)size * size * sizeof(float);
}

// ---- Rungs 0 to 6: one time step after another, each from global memory or textures
//
// Rung 0 is the book's: one kernel re-imposes the heaters, the other computes the step. It differs in one
// point: the book computes T + SPEED * (top + bottom + left + right - 4 T) from five cells. With SPEED = 0.25
// the old temperature T cancels out, which leaves the mean of the four neighbours, so no rung reads T.
__global__ void copy_const_kernel(float *iptr, const float *cptr, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size && cptr[x + (size_t)y * size] != 0)
        iptr[x + (size_t)y * size] = cptr[x + (size_t)y * size];
}

// Coordinates are clamped at the edges. As on the page, the top is y - 1.
__device__ static float mean_of_neighbours(const float *in, int x, int y, int size) {
    size_t at = x + (size_t)y * size;
    float left = in[x > 0 ? at - 1 : at], right = in[x < size - 1 ? at + 1 : at];
    float top = in[y > 0 ? at - size : at], bottom = in[y < size - 1 ? at + size : at];
    return SPEED * ((top + bottom) + (left + right));
}

__global__ void blend_kernel(float *outSrc, const float *inSrc, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size)
        outSrc[x + (size_t)y * size] = mean_of_neighbours(inSrc, x, y, size);
}

// The input and the output of step s: ping-pong buffers. The first step reads dev_first, which stays
// unchanged for the next run: copy_const_kernel() writes only heaters to it, which it contains already.
// target() also remembers the output in dev_result, for the check; rung 3 remembers it in result_array.
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

// Rung 1, the book's second version: the same two kernels read 1-D textures of linear memory.
__global__ void copy_const_1d(float *iptr, cudaTextureObject_t constants, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size && tex1Dfetch<float>(constants, x + y * size) != 0)
        iptr[x + (size_t)y * size] = tex1Dfetch<float>(constants, x + y * size);
}

__global__ void blend_1d(float *outSrc, cudaTextureObject_t inSrc, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y,
        at = x + y * size;
    if (x >= size || y >= size)
        return;
    float left = tex1Dfetch<float>(inSrc, x > 0 ? at - 1 : at);
    float right = tex1Dfetch<float>(inSrc, x < size - 1 ? at + 1 : at);
    float top = tex1Dfetch<float>(inSrc, y > 0 ? at - size : at);
    float bottom = tex1Dfetch<float>(inSrc, y < size - 1 ? at + size : at);
    outSrc[x + (size_t)y * size] = SPEED * ((top + bottom) + (left + right));
}

// Rung 2, the book's third version: 2-D textures, whose address mode clamps the coordinates at the edges.
__global__ void copy_const_2d(float *iptr, cudaTextureObject_t constants, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size && tex2D<float>(constants, x, y) != 0)
        iptr[x + (size_t)y * size] = tex2D<float>(constants, x, y);
}

__global__ void blend_2d(float *outSrc, cudaTextureObject_t inSrc, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float left = tex2D<float>(inSrc, x - 1, y), right = tex2D<float>(inSrc, x + 1, y);
    float top = tex2D<float>(inSrc, x, y - 1), bottom = tex2D<float>(inSrc, x, y + 1);
    outSrc[x + (size_t)y * size] = SPEED * ((top + bottom) + (left + right));
}

// Rung 3: the same two kernels with CUDA arrays. The rungs before read memory whose rows lie one after
// another: a cell is near its left and right neighbours, and far from those above and below. The layout of an
// array is opaque, and made for fetches that are near each other in both dimensions. Kernels write an array
// with surf2Dwrite, whose x is in bytes.
__global__ void copy_const_array(cudaSurfaceObject_t iptr, cudaTextureObject_t constants, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size && tex2D<float>(constants, x, y) != 0)
        surf2Dwrite(tex2D<float>(constants, x, y), iptr, x * (int)sizeof(float), y);
}

__global__ void blend_array(cudaSurfaceObject_t outSrc, cudaTextureObject_t inSrc, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float left = tex2D<float>(inSrc, x - 1, y), right = tex2D<float>(inSrc, x + 1, y);
    float top = tex2D<float>(inSrc, x, y - 1), bottom = tex2D<float>(inSrc, x, y + 1);
    surf2Dwrite(SPEED * ((top + bottom) + (left + right)), outSrc, x * (int)sizeof(float), y);
}

static const char *linear_needs(void) {
    return (size_t)size * size <= largest_linear_texture() ? NULL : "needs a smaller plate on this device";
}

static const char *plane_needs(void) {
    return size % 8 == 0 ? NULL : "needs a size that is a multiple of 8";
}

static const char *array_needs(void) {
    bool fits = size <= min_of(device_attribute(cudaDevAttrMaxSurface2DWidth),
                               device_attribute(cudaDevAttrMaxSurface2DHeight));
    return fits ? NULL : "needs a smaller plate on this device";
}

// Textures of dev_first, the two buffers and the heaters: [0] 1-D, [1] 2-D, [2] of arrays with the same data.
// 0: none, since the rung cannot be run.
static cudaTextureObject_t textures[3][4];
static cudaSurfaceObject_t surfaces[4]; // of the arrays
static cudaArray_t arrays[4], result_array;

static void make_array(int i, const float *memory, const cudaTextureDesc *desc) {
    cudaResourceDesc array = {};
    array.resType = cudaResourceTypeArray;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    HANDLE_ERROR(cudaMallocArray(&arrays[i], &format, size, size, cudaArraySurfaceLoadStore));
    fill_array(arrays[i], memory);
    array.res.array.array = arrays[i];
    HANDLE_ERROR(cudaCreateTextureObject(&textures[2][i], &array, desc, NULL));
    HANDLE_ERROR(cudaCreateSurfaceObject(&surfaces[i], &array));
}

static void make_textures(void) {
    float *memory[] = {dev_first, dev_buffers[0], dev_buffers[1], dev_heaters};
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
    for (int i = 0; i < 4; i++) {
        cudaResourceDesc linear = {}, plane = {};
        linear.resType = cudaResourceTypeLinear;
        linear.res.linear.devPtr = memory[i];
        linear.res.linear.desc = cudaCreateChannelDesc<float>();
        linear.res.linear.sizeInBytes = plate_bytes();
        plane.resType = cudaResourceTypePitch2D;
        plane.res.pitch2D.devPtr = memory[i];
        plane.res.pitch2D.desc = cudaCreateChannelDesc<float>();
        plane.res.pitch2D.width = plane.res.pitch2D.height = size;
        plane.res.pitch2D.pitchInBytes = size * sizeof(float);
        if (!linear_needs())
            HANDLE_ERROR(cudaCreateTextureObject(&textures[0][i], &linear, &desc, NULL));
        if (!plane_needs())
            HANDLE_ERROR(cudaCreateTextureObject(&textures[1][i], &plane, &desc, NULL));
        if (!array_needs())
            make_array(i, memory[i], &desc);
    }
}

static void destroy_textures(void) {
    for (int i = 0; i < 12; i++)
        if (textures[i / 4][i % 4])
            HANDLE_ERROR(cudaDestroyTextureObject(textures[i / 4][i % 4]));
    for (int i = 0; i < 4 && arrays[i]; i++) {
        HANDLE_ERROR(cudaDestroySurfaceObject(surfaces[i]));
        HANDLE_ERROR(cudaFreeArray(arrays[i]));
    }
}

typedef void (*TextureKernel)(float *out, cudaTextureObject_t in, int size);

static void run_textures(TextureKernel copy_const, TextureKernel blend, const cudaTextureObject_t *of) {
    dim3 blocks = blocks_of(16, 16), threads(16, 16);
    for (int s = 0; s < steps; s++) {
        copy_const<<<blocks, threads>>>((float *)source(s), of[3], size);
        HANDLE_LAUNCH();
        blend<<<blocks, threads>>>(target(s), of[s == 0 ? 0 : 1 + (s + 1) % 2], size);
        HANDLE_LAUNCH();
    }
}

static void run_arrays(void) {
    dim3 blocks = blocks_of(16, 16), threads(16, 16);
    for (int s = 0; s < steps; s++) {
        int in = s == 0 ? 0 : 1 + (s + 1) % 2, out = 1 + s % 2;
        copy_const_array<<<blocks, threads>>>(surfaces[in], textures[2][3], size);
        HANDLE_LAUNCH();
        blend_array<<<blocks, threads>>>(surfaces[out], textures[2][in], size);
        HANDLE_LAUNCH();
        result_array = arrays[out];
    }
}

// Rung 4: the heaters are fused into the update. The book re-imposes the heaters at the start of a step, so
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

// Rung 5: the launches of all steps are recorded once as a graph, which is started with one call.
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

// Rung 6: a cooperative launch, whose blocks all run at the same time, so that they can meet at a grid
// barrier after each step. A kernel that runs through all steps can also keep its data on the multiprocessor,
// as rung 8 does.
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

// ---- Temporal blocking, rungs 7 and 8: several time steps in registers before the cells go back to memory
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

// Rung 7, for large plates: a warp walks down a strip of the plate, 128 columns wide, and computes LEVELS
// time steps of each row. Level k of its pipeline computes time step k: it gets row after row from level k -
// 1 and gives the new values of the row before to level k + 1. For that it keeps the last row and its pairs
// with the row above it. So a cell is read and written once per LEVELS steps, and no warp waits for another
// one.
struct Level {
    float4 row, pairs;
};

// The sums of the four neighbours of the row before `next`. They are not divided by four in each step:
// all values of a level are too large by the same power of four, which is exact.
__device__ static float4 next_level(Level *of, float4 next) {
    float right = __shfl_down_sync(0xffffffff, next.x, 1);
    float4 pairs = make_float4(of->row.x + next.y, of->row.y + next.z, of->row.z + next.w, of->row.w + right);
    float first = __shfl_up_sync(0xffffffff, pairs.w, 1);
    float4 sums =
        make_float4(of->pairs.x + first, of->pairs.y + pairs.x, of->pairs.z + pairs.y, of->pairs.w + pairs.z);
    of->row = next;
    of->pairs = pairs;
    return sums;
}

// Beyond its edges the plate continues as its mirror image, which is equivalent to clamped coordinates.
__device__ static int mirrored(int i, int n) {
    return max(i < 0 ? -1 - i : i < n ? i : 2 * n - 1 - i, 0);
}

__device__ static float4 reversed(float4 v, bool is = true) {
    return make_float4(is ? v.w : v.x, is ? v.z : v.y, is ? v.y : v.z, is ? v.x : v.w);
}

__device__ static unsigned bits(float4 heater) {
    return (heater.x != 0) | (heater.y != 0) << 1 | (heater.z != 0) << 2 | (heater.w != 0) << 3;
}

// A warp loads BATCH rows while it computes the previous BATCH rows. The rows of a batch are
// nearly independent of each other, so this instruction-level parallelism hides the latency of the shuffles.
const int BATCH = 4;

__device__ static void load_rows(float4 *next, float4 *heat, const float *in, const float *heaters, int x,
                                 int y, int size) {
#pragma unroll
    for (int r = 0; r < BATCH; r++) {
        size_t at = (size_t)mirrored(y + r, size) * (size / 4) + mirrored(x, size / 4);
        next[r] = ((const float4 *)in)[at];
        heat[r] = ((const float4 *)heaters)[at];
    }
}

// All levels compute BATCH rows. Which cells are heaters: four bits per row, `recent` has those of the last
// 16 rows, and `older` those of the BATCH rows before them. A heater keeps the value that it had on the level
// before. Few rows contain heaters; for the others `heated` is false.
template <int LEVELS, bool heated>
__device__ static void all_levels(Level *levels, float4 *row, unsigned long long recent, unsigned older,
                                  bool last) {
    static_assert(LEVELS <= 16, "recent and older have the bits of 16 + BATCH rows");
#pragma unroll
    for (int k = 0; k < LEVELS; k++)
#pragma unroll
        for (int r = 0; r < BATCH; r++) {
            float4 old = levels[k].row, sums = next_level(&levels[k], row[r]);
            // Of the row in `old`: for r = 1, k = 2 it is row y - 2, the newest is y + 3, so 5.
            int age = BATCH - r + k;
            unsigned heater = age < 16 ? recent >> 4 * age % 64 : older >> 4 * (age - 16);
            if (heated && (k < LEVELS - 1 || !last)) {
                sums.x = heater & 1 ? 4 * old.x : sums.x;
                sums.y = heater & 2 ? 4 * old.y : sums.y;
                sums.z = heater & 4 ? 4 * old.z : sums.z;
                sums.w = heater & 8 ? 4 * old.w : sums.w;
            }
            row[r] = sums;
        }
}

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
    float4 next[BATCH], heat[BATCH], row[BATCH];
    Level levels[LEVELS] = {};
    float scale = 1; // of the last level
    for (int k = 0; k < LEVELS; k++)
        scale *= SPEED;
    unsigned long long recent = 0;
    load_rows(next, heat, in, heaters, x, top - LEVELS, size);
    for (int y = top - LEVELS; y < bottom + LEVELS; y += BATCH) {
        unsigned older = recent >> (64 - 4 * BATCH);
#pragma unroll
        for (int r = 0; r < BATCH; r++) {
            row[r] = turned ? reversed(next[r]) : next[r];
            recent = recent << 4 | bits(turned ? reversed(heat[r]) : heat[r]);
        }
        load_rows(next, heat, in, heaters, x, y + BATCH, size);
        if (__any_sync(0xffffffff, recent != 0 || older != 0))
            all_levels<LEVELS, true>(levels, row, recent, older, last);
        else
            all_levels<LEVELS, false>(levels, row, recent, older, last);
#pragma unroll
        for (int r = 0; r < BATCH; r++) {
            int to = y + r - LEVELS;
            if (owner && to >= top && to < bottom)
                ((float4 *)out)[(size_t)to * pitch + x] =
                    make_float4(scale * row[r].x, scale * row[r].y, scale * row[r].z, scale * row[r].w);
        }
    }
}

static const char *stream_needs(void) {
    return size < WIDTH || size % 4 ? "needs a size from 128 on, a multiple of 4" : NULL;
}

// The launches of LEVELS steps each, as many as the steps from *s on allow
template <int LEVELS> static void run_levels(int *s, int *launch) {
    int strips = (size / 4 - 1) / strip_groups(LEVELS) + 1;
    // More rows per warp: fewer are computed twice. More warps: the load is balanced better.
    int height = min_of(512, max_of(16, strips * size / (40 * multiprocessors)));
    dim3 warps(strips, (size - 1) / height + 1);
    for (; *s + LEVELS <= steps; *s += LEVELS, ++*launch) {
        stream_kernel<LEVELS><<<warps, 32>>>(target(*launch), source(*launch), dev_heaters, size, height,
                                             *s + LEVELS == steps);
        HANDLE_LAUNCH();
    }
}

// Launches of 16 steps, as many as fit, then of 4, then of 1
static void run_stream(void) {
    int s = 0, launch = 0;
    run_levels<16>(&s, &launch);
    run_levels<4>(&s, &launch);
    run_levels<1>(&s, &launch);
}

// Rung 8, for plates that fit into the registers of all multiprocessors: a block keeps its tile in registers
// through all steps. First: where the tiles are.

// The number of tiles along a side, and the first cell of tile i. Two neighbouring tiles overlap by two
// margins; the last tile may overlap the one before it by more. Sizes are in cells, or in groups of four
// columns, which a lane holds.
__host__ __device__ static int tiles_of(int size, int tile, int margin) {
    return size > tile ? (size - tile - 1) / (tile - 2 * margin) + 2 : 1;
}

__device__ static int origin(int i, int size, int tile, int margin) {
    return min(i * (tile - 2 * margin), size - tile);
}

// One dimension of a tile that begins at `begin`. It owns the cells from `own` to `end` and needs those
// within `margin` of them, even where the tile reaches further. So the dependence between tiles is symmetric:
// of two tiles each needs cells of the other, or neither does. Of its own cells those within `margin` of the
// cells of a neighbouring tile are shared: it sends them to that tile.
struct Span {
    int begin, own, end, margin;
    __device__ Span(int i, int tiles, int size, int tile, int margin) : margin(margin) {
        begin = origin(i, size, tile, margin);
        own = i > 0 ? begin + margin : -margin; // at the edge of the plate no cell is shared
        end = margin + (i < tiles - 1 ? origin(i + 1, size, tile, margin) : size);
    }
    __device__ unsigned owns(int x) const { return x >= own && x < end; }
    __device__ unsigned needs(int x) const { return x >= own - margin && x < end + margin; }
    __device__ unsigned shared(int x) const { return x < own + margin || x >= end - margin; }
};

// Every other lane, of which the number `x` is odd, holds its four columns in reversed order. So two
// neighbouring lanes have their columns x side by side, or their columns w, and a shuffle of the same
// component gets the cell beside it. At the edges of the tile a lane gets its own cell, which clamps
// coordinates without another instruction: that is right at the edge of the plate, and elsewhere the margin
// covers the error.
__device__ static float beside(float v, bool right) {
    return __shfl_sync(0xffffffff, v, right ? min(threadIdx.x + 1, 31) : max((int)threadIdx.x - 1, 0));
}

__device__ static float4 pairs_of(float4 row, float4 next, bool odd) {
    return make_float4(row.x + next.y, row.y + next.z, row.z + next.w, row.w + beside(next.w, !odd));
}

// The new values of a row. `before`: pairs of the row above and this row; `after`: pairs of this row and the
// row below; `first`: the pair that belongs to `after` and whose upper cell is in the lane beside `x`. At a
// heater the neighbours have the weight 0 instead of SPEED, and its temperature is added. That is one FMA per
// cell, without a branch.
__device__ static float4 new_row(float4 before, float first, float4 after, float4 weight, float4 heat) {
    return make_float4((before.x + first) * weight.x + heat.x, (before.y + after.x) * weight.y + heat.y,
                       (before.z + after.y) * weight.z + heat.z, (before.w + after.z) * weight.w + heat.w);
}

// The first and the last rows of each warp, in shared memory, from the edge inwards. Double buffering: warps
// use two buffers in turn, so one barrier is enough each time that they exchange rows.
template <int DEPTH> using Edges = float4[2][DEPTH][32];

// One step of the rows `begin` to `end` - 1. `before`: pairs of the row above and the first of them. Returns
// the pairs of the last one and the row below.
__device__ static float4 update(float4 *t, const float4 *weight, const float4 *heat, bool odd, int begin,
                                int end, float4 before) {
#pragma unroll
    for (int r = begin; r < end; r++) {
        float4 after = pairs_of(t[r], t[r + 1], odd);
        t[r] = new_row(before, beside(t[r].x, odd) + t[r + 1].x, after, weight[r], heat[r]);
        before = after;
    }
    return before;
}

// K steps of the rows t[0] to t[ROWS - 1], which a warp owns. A warp has a margin, too: K rows on either side
// come from the neighbouring warps, so that one barrier is enough for K steps. Beyond the tile are the mirror
// images of its own rows.
template <int K, int ROWS, int WARPS, int DEPTH>
__device__ static void advance(float4 *t, const float4 *weight, const float4 *heat, bool odd,
                               Edges<DEPTH> *edges) {
    int lane = threadIdx.x, warp = threadIdx.y;
#pragma unroll
    for (int k = 0; k < K; k++) {
        edges[warp][0][k][lane] = t[k];
        edges[warp][1][k][lane] = t[ROWS - 1 - k];
    }
    // The barrier stands in the middle of the work that needs no other warp. The first half hides the time
    // of waiting for it, the second half that of the loads after it.
    float4 second = pairs_of(t[0], t[1], odd);
    float first = beside(t[0].x, odd) + t[1].x;
    float4 before = update(t, weight, heat, odd, 1, ROWS / 2 + 1, second);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; k++) {
        t[-1 - k] = edges[max(warp - 1, 0)][warp > 0][k][lane];
        t[ROWS + k] = edges[min(warp + 1, WARPS - 1)][warp == WARPS - 1][k][lane];
    }
    update(t, weight, heat, odd, ROWS / 2 + 1, ROWS + K - 1, before);
    before = update(t, weight, heat, odd, 1 - K, 0, pairs_of(t[-K], t[1 - K], odd));
    t[0] = new_row(before, first, second, weight[0], heat[0]);
#pragma unroll
    for (int margin = K - 2; margin >= 0; margin--)
        update(t, weight, heat, odd, -margin, ROWS + margin, pairs_of(t[-margin - 1], t[-margin], odd));
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
// Double buffering suffices: rounds use two exchange buffers in turn. A tile that writes to a buffer again
// has read its neighbours' values of the round in between. They wrote those after they had read this buffer,
// because each reads a round before it writes the next. The dependence between tiles is symmetric (see Span),
// so every tile that reads a cell of this one is among those neighbours.
const int EXCHANGE_BUFFERS = 2;

__device__ static float4 weights(float4 heater) {
    return make_float4(heater.x != 0 ? 0 : SPEED, heater.y != 0 ? 0 : SPEED, heater.z != 0 ? 0 : SPEED,
                       heater.w != 0 ? 0 : SPEED);
}

// The temperatures are positive, or negative if `sign` is the sign bit.
__device__ static float4 with_sign(float4 t, unsigned sign) {
    return make_float4(__uint_as_float(__float_as_uint(fabsf(t.x)) | sign), t.y,
                       __uint_as_float(__float_as_uint(fabsf(t.z)) | sign), t.w);
}

__device__ static bool has_sign(float4 t, unsigned sign) {
    return ((__float_as_uint(t.x) ^ sign) | (__float_as_uint(t.z) ^ sign)) >> 31 == 0;
}

// A lane holds ROWS rows of its four columns. A block has WARPS warps, one above the other, and K steps for
// each barrier. `round` counts the rounds of all launches so far.
template <int ROWS, int WARPS, int MARGIN, int K>
__global__ void __launch_bounds__(32 * WARPS, 1)
    persistent_kernel(float *out, const float *in, const float *heaters, float4 *exchange, int size,
                      int steps, unsigned round) {
    __shared__ Edges<K> edges[2][WARPS];
    Span columns(blockIdx.x, gridDim.x, size / 4, WIDTH / 4, MARGIN / 4);
    Span rows(blockIdx.y, gridDim.y, size, ROWS * WARPS, MARGIN);
    int x = columns.begin + threadIdx.x, y = rows.begin + threadIdx.y * ROWS, pitch = size / 4;
    bool odd = x % 2;
    size_t at = x + (size_t)y * pitch;
    float4 with_margin[3][ROWS + 2 * K], *t = with_margin[0] + K, *weight = with_margin[1] + K,
                                         *heat = with_margin[2] + K;
    unsigned own = 0, gives = 0, lacks = 0; // one bit per row
#pragma unroll
    for (int r = 1 - K; r < ROWS + K - 1; r++)
        heat[r] = ((const float4 *)heaters)[x + (size_t)min(max(y + r, 0), size - 1) * pitch];
    for (int r = 0; r < ROWS; r++)
        t[r] = ((const float4 *)in)[at + (size_t)r * pitch];
    for (int r = 0; r < ROWS; r++) { // while the loads are under way
        unsigned mine = columns.owns(x) & rows.owns(y + r);
        own |= mine << r;
        gives |= (mine & (columns.shared(x) | rows.shared(y + r))) << r;
        lacks |= (~mine & columns.needs(x) & rows.needs(y + r)) << r;
    }
#pragma unroll
    for (int r = 1 - K; r < ROWS + K - 1; r++) {
        heat[r] = reversed(heat[r], odd);
        weight[r] = weights(heat[r]);
        keep_in_registers(weight[r]); // else nvcc computes it from heat[r] in every step
    }
    for (int r = 0; r < ROWS; r++)
        t[r] = reversed(t[r], odd);

    int turn = 0; // of the double buffer
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
                t[r] = with_sign(t[r], 0);
        }
        int s = begin, end = min(begin + MARGIN, steps - 1);
        for (; s + K <= end; s += K, turn ^= 1)
            advance<K, ROWS, WARPS, K>(t, weight, heat, odd, edges[turn]);
        for (; s < end; s++, turn ^= 1)
            advance<1, ROWS, WARPS, K>(t, weight, heat, odd, edges[turn]);
    }
    for (int r = 0; r < ROWS; r++) { // the last step does not re-impose the heaters
        weight[r] = make_float4(SPEED, SPEED, SPEED, SPEED);
        heat[r] = make_float4(0, 0, 0, 0);
    }
    advance<1, ROWS, WARPS, K>(t, weight, heat, odd, edges[turn]);
    for (int r = 0; r < ROWS; r++)
        if (own >> r & 1)
            ((float4 *)out)[at + (size_t)r * pitch] = reversed(t[r], odd);
}

// Tiles of 128 columns. The fewer rows a tile has, the less time a step takes; the deeper its margin is, the
// fewer rounds there are, and the more cells are computed twice.
struct Shape {
    void (*kernel)(float *, const float *, const float *, float4 *, int, int, unsigned);
    int height, threads, margin;
    dim3 tiles(void) const {
        return dim3(tiles_of(size / 4, WIDTH / 4, margin / 4), tiles_of(size, height, margin));
    }
};

template <int ROWS, int WARPS, int MARGIN, int K> static Shape shape_of(void) {
    return {persistent_kernel<ROWS, WARPS, MARGIN, K>, ROWS * WARPS, 32 * WARPS, MARGIN};
}

// Chooses the tiles with the fewest rows for which no multiprocessor gets two tiles. If there are none, the
// tiles with the most rows are taken, as long as all blocks can run at the same time, since they wait for
// each other. If they cannot, the result has no kernel.
static Shape shape(void) {
    const Shape shapes[] = {shape_of<7, 4, 12, 2>(), shape_of<8, 4, 12, 2>(), shape_of<11, 4, 12, 1>(),
                            shape_of<11, 8, 8, 1>()};
    for (const Shape &s : shapes) {
        int each = 1;
        if (&s == &shapes[3])
            HANDLE_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, s.kernel, s.threads, 0));
        if (s.tiles().x * s.tiles().y <= (unsigned)(each * multiprocessors))
            return s;
    }
    return {};
}

static const char *persistent_needs(void) {
    return stream_needs() ? stream_needs() : shape().kernel ? NULL : "needs all tiles on the device at once";
}

static void run_persistent(void) {
    static unsigned rounds; // of all runs so far
    static const Shape s = shape();
    void *arguments[] = {&dev_buffers[0], &dev_first, &dev_heaters, &dev_exchange, &size, &steps, &rounds};
    dev_result = dev_buffers[0];
    HANDLE_ERROR(cudaLaunchCooperativeKernel(s.kernel, s.tiles(), dim3(32, s.threads / 32), arguments, 0, 0));
    rounds += (steps - 1) / s.margin;
}

static const Rung rungs[] = {
    {"book", "two kernels per step", run_book},
    {"1-D texture", "the book's second version", [] { run_textures(copy_const_1d, blend_1d, textures[0]); },
     RUNG, 0, 0, linear_needs},
    {"2-D texture", "the book's third version", [] { run_textures(copy_const_2d, blend_2d, textures[1]); },
     RUNG, 0, 0, plane_needs},
    {"CUDA array", "surf2Dwrite writes it, tex2D reads it", run_arrays, RUNG, 0, 0, array_needs},
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
    for (float **memory : {&dev_heaters, &dev_first, &dev_buffers[0], &dev_buffers[1]})
        bench_malloc(memory, bytes);
    HANDLE_ERROR(cudaMemcpy(dev_heaters, heaters, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_first, first, bytes, cudaMemcpyHostToDevice));
    record_graph();
    make_textures();
    if (!persistent_needs()) {
        bench_malloc(&dev_exchange, EXCHANGE_BUFFERS * bytes);
        HANDLE_ERROR(cudaMemset(dev_exchange, 0, EXCHANGE_BUFFERS * bytes));
    }

    bench_run(rungs);

    HANDLE_ERROR(cudaGraphExecDestroy(graph));
    destroy_textures();
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
    require_memory(8 * bytes, 8 * bytes + exchange + bench_memory(0));
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
// of a warp see in rung 7. In a large plate the hot square is wide enough for that.
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

static void fill_array(cudaArray_t array, const float *memory) {
    size_t width = size * sizeof(float);
    HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, memory, width, width, size, cudaMemcpyDeviceToDevice));
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_buffers[0], 0xff, plate_bytes()));
    HANDLE_ERROR(cudaMemset(dev_buffers[1], 0xff, plate_bytes()));
    for (int i = 1; i <= 2 && arrays[i]; i++)
        fill_array(arrays[i], dev_buffers[0]);
    result_array = NULL;
}

// In each step a cell rounds by at most 2^-24. Later steps do not amplify that, because they take means.
static bool check(const char *name, BenchError *error) {
    size_t cells = (size_t)size * size, width = size * sizeof(float);
    if (result_array)
        HANDLE_ERROR(
            cudaMemcpy2DFromArray(result, width, result_array, 0, 0, width, size, cudaMemcpyDeviceToHost));
    else
        HANDLE_ERROR(cudaMemcpy(result, dev_result, plate_bytes(), cudaMemcpyDeviceToHost));
    error->max = error->rms = 0;
    for (size_t i = 0; i < cells; i++) {
        double off = fabs(result[i] - expected[i]);
        error->max = fmax(error->max, off);
        error->rms += off * off / cells;
    }
    error->rms = sqrt(error->rms);
    return check_floats(name, result, expected, cells, steps * 0x1p-24);
}
