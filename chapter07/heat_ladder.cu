// SPDX-License-Identifier: MIT
/*
 * heat_ladder: heat that spreads over a plate, from two kernels a step to one for all steps
 *
 * Teaches: A step is so little work that a small plate spends its time on launches, and a large one
 *          on memory. Both get better when several steps are done before anything leaves the
 *          multiprocessor: a tile with a margin stays right for as many steps as the margin is
 *          wide. In the end the tiles never leave their registers and only margins are exchanged.
 * Book:    7.3.3 (ladder)
 * Run:     ./bin/chapter07/heat_ladder --size 16384
 * Differs: a plate that is random at first. The rate counts a read and a write of each cell a
 *          step, so it may pass that of memory. Recording the graph is not in the time.
 * Bench:   1024 16384
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <cooperative_groups.h>
#include "../common/bench.h"
#include "../common/book.h"
#include "../common/memory.h"
#include "../common/proofs/heat.h"
#include "heat_tiles.h"

namespace cg = cooperative_groups;

static int size, steps, multiprocessors; // size: cells a side
static float *heaters, *first, *result, *dev_heaters, *dev_first, *dev_buffers[2], *dev_result;
static double *expected;

static size_t plate_bytes(void) {
    return (size_t)size * size * sizeof(float);
}

// Rung 0, the book's: heaters in one kernel, the step in another.
__global__ void copy_const_kernel(float *iptr, const float *cptr, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size && cptr[x + (size_t)y * size] != 0)
        iptr[x + (size_t)y * size] = cptr[x + (size_t)y * size];
}

// Beyond an edge it is as warm as at the edge. 0.25 is the book's SPEED: what a cell has now drops
// out of T + 0.25 (up + down + left + right - 4 T).
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

// Where step s comes from and goes to. What the first one reads stays as it is, for the next run.
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
        copy_const_kernel<<<blocks_of(16, 16), dim3(16, 16)>>>((float *)source(s), dev_heaters,
                                                               size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks_of(16, 16), dim3(16, 16)>>>(target(s), source(s), size);
        HANDLE_LAUNCH();
    }
}

// Rung 1: who writes a cell knows whether there is a heater. After the last step heaters are as
// warm as their neighbours, for it is at the start of a step that they heat.
__device__ static void step_cell(float *out, const float *in, const float *heaters, int x, int y,
                                 int size, bool last) {
    float heater = heaters[x + (size_t)y * size];
    out[x + (size_t)y * size] = heater != 0 && !last ? heater : mean_of_neighbours(in, x, y, size);
}

__global__ void step_kernel(float *out, const float *in, const float *heaters, int size,
                            bool last) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size)
        step_cell(out, in, heaters, x, y, size, last);
}

static void start_steps(cudaStream_t stream) {
    for (int s = 0; s < steps; s++) {
        step_kernel<<<blocks_of(32, 8), dim3(32, 8), 0, stream>>>(target(s), source(s), dev_heaters,
                                                                  size, s == steps - 1);
        HANDLE_LAUNCH();
    }
}

// Rung 2: the launches are recorded once, and from then on one call starts all of them.
#ifdef __NVCC__
static cudaGraphExec_t graph;

static void record(void) {
    cudaStream_t stream;
    cudaGraph_t recorded;
    HANDLE_ERROR(cudaStreamCreate(&stream));
    HANDLE_ERROR(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    start_steps(stream);
    HANDLE_ERROR(cudaStreamEndCapture(stream, &recorded));
    HANDLE_ERROR(cudaGraphInstantiate(&graph, recorded, 0));
    HANDLE_ERROR(cudaGraphDestroy(recorded));
    HANDLE_ERROR(cudaStreamDestroy(stream));
}

static void run_graph(void) {
    target(steps - 1);
    HANDLE_ERROR(cudaGraphLaunch(graph, 0));
}
#else
static void (*const run_graph)(void) = NULL;
#endif

// Rung 3: one launch, whose blocks are all there at once and can wait for each other. On an H200
// that takes longer than the graph; but a kernel that goes on can keep what it has.
__global__ void __launch_bounds__(1024)
    grid_kernel(float *buffer0, float *buffer1, const float *first, const float *heaters, int size,
                int steps) {
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
    HANDLE_ERROR(cudaLaunchCooperativeKernel(grid_kernel, dim3(each * multiprocessors),
                                             dim3(32, 32), arguments, 0, 0));
}

// Rung 4: up to MARGIN steps of a tile from memory to memory. Few tiles have heaters; those read
// them again in each step.
__global__ void __launch_bounds__(32 * WARPS, 2)
    tile_kernel(float *out, const float *in, const float *heaters, int size, int steps, bool last) {
    __shared__ Edges edges;
    Span columns(blockIdx.x, gridDim.x, size / 4, WIDTH / 4, MARGIN / 4);
    Span rows(blockIdx.y, gridDim.y, size, HEIGHT, MARGIN);
    int x = columns.begin + threadIdx.x, y = rows.begin + threadIdx.y * ROWS, pitch = size / 4;
    const float4 *from = (const float4 *)in + x + (size_t)y * pitch;
    const float4 *heat = (const float4 *)heaters + x + (size_t)y * pitch;
    float4 t[ROWS];
    bool any = false;
    for (int r = 0; r < ROWS; r++)
        t[r] = from[(size_t)r * pitch];
    for (int r = 0; r < ROWS; r++) {
        float4 h = heat[(size_t)r * pitch];
        any |= h.x != 0 || h.y != 0 || h.z != 0 || h.w != 0;
    }
    any = __syncthreads_or(any);
    int s = 0;
    if (any)
        for (; s < steps - last; s++)
            step_tile(t, edges, s, [&](int r, float4 sum) {
                return choose(heat[(size_t)r * pitch], mean(sum));
            });
#pragma unroll 2 // no registers to move between two steps
    for (; s < steps; s++)
        step_tile(t, edges, s, [](int, float4 sum) { return mean(sum); });
    float4 *to = (float4 *)out + x + (size_t)y * pitch;
    for (int r = 0; r < ROWS; r++)
        if (columns.owns(x) && rows.owns(y + r))
            to[(size_t)r * pitch] = t[r];
}

static dim3 tiles(void) {
    return dim3(tiles_of(size / 4, WIDTH / 4, MARGIN / 4), tiles_of(size, HEIGHT, MARGIN));
}

static void run_tiles(void) {
    for (int s = 0, launch = 0; s < steps; s += MARGIN, launch++) {
        int now = steps - s < MARGIN ? steps - s : MARGIN;
        tile_kernel<<<tiles(), dim3(32, WARPS)>>>(target(launch), source(launch), dev_heaters, size,
                                                  now, s + now == steps);
        HANDLE_LAUNCH();
    }
}

// Rung 5: one launch, and a tile stays in the registers of its block. Every MARGIN steps it leaves
// what its neighbours need in global memory and takes its own margin from there. No barrier and no
// flag: temperatures are never negative, so their sign is free to tell whether they are of this
// round already. It turns each time a place is used again. Two places for a cell, used in turn,
// are enough: a tile that is to use the first one again has seen what its neighbours left in the
// second, which they did after they had read the first. A heater is a cell whose neighbours count 0
// times instead of 0.25 times.
const int PLACES = 2, THREADS = 32 * WARPS;

__global__ void __launch_bounds__(THREADS)
    resident_kernel(float *out, const float *in, const float *heaters, uint4 *exchange, int size,
                    int steps, unsigned round) {
    __shared__ Edges edges;
    Span columns(blockIdx.x, gridDim.x, size / 4, WIDTH / 4, MARGIN / 4);
    Span rows(blockIdx.y, gridDim.y, size, HEIGHT, MARGIN);
    int x = columns.begin + threadIdx.x, y = rows.begin + threadIdx.y * ROWS, pitch = size / 4;
    size_t at = x + (size_t)y * pitch;
    float4 t[ROWS], weight[ROWS], heat[ROWS];
    unsigned own = 0, gives = 0, lacks = 0; // a bit for each row
    for (int r = 0; r < ROWS; r++) {
        t[r] = ((const float4 *)in)[at + (size_t)r * pitch];
        heat[r] = ((const float4 *)heaters)[at + (size_t)r * pitch];
    }
    for (int r = 0; r < ROWS; r++) {
        weight[r] = weights(heat[r]);
        keep(weight[r]);
        bool mine = columns.owns(x) && rows.owns(y + r);
        own |= (unsigned)mine << r;
        gives |= (unsigned)(mine && (columns.shared(x) || rows.shared(y + r))) << r;
        lacks |= (unsigned)(!mine && columns.needs(x) && rows.needs(y + r)) << r;
    }

    for (int begin = 0; begin < steps; begin += MARGIN) {
        if (begin > 0) {
            unsigned sign = (round / PLACES + 1) % 2 << 31;
            uint4 *plate = exchange + round++ % PLACES * (size_t)size * pitch + at, got[ROWS];
            for (int r = 0; r < ROWS; r++)
                store_if(&plate[r * (size_t)pitch], with_sign(t[r], sign), gives >> r & 1);
            // Tests of bits, as branches would make each load wait for the one before. And a warp
            // stays together: once apart, it would go through the steps in parts.
            unsigned missing;
            do {
                missing = 0;
                for (int r = 0; r < ROWS; r++)
                    got[r] = load_if(&plate[r * (size_t)pitch], lacks >> r & 1);
                for (int r = 0; r < ROWS; r++)
                    missing |= differs(got[r], sign) & lacks << (31 - r);
#ifndef __NVCC__
                __nanosleep(20); // another block has its turn; on a GPU they all run
#endif
            } while (__any_sync(0xffffffff, missing >> 31));
            for (int r = 0; r < ROWS; r++)
                t[r] = lacks >> r & 1 ? without_sign(got[r]) : t[r];
        }
#pragma unroll 2
        for (int s = begin; s < begin + MARGIN && s < steps - 1; s++)
            step_tile(t, edges, s,
                      [&](int r, float4 sum) { return heated(sum, weight[r], heat[r]); });
    }
    step_tile(t, edges, steps - 1, [](int, float4 sum) { return mean(sum); });
    for (int r = 0; r < ROWS; r++)
        if (own >> r & 1)
            ((float4 *)out)[at + (size_t)r * pitch] = t[r];
}

static uint4 *dev_exchange;
static unsigned rounds; // exchanged so far, by all runs

static void run_resident(void) {
    void *arguments[] = {&dev_buffers[0], &dev_first, &dev_heaters, &dev_exchange,
                         &size,           &steps,     &rounds};
    dev_result = dev_buffers[0];
    HANDLE_ERROR(
        cudaLaunchCooperativeKernel(resident_kernel, tiles(), dim3(32, WARPS), arguments, 0, 0));
    rounds += (steps - 1) / MARGIN;
}

static const char *tiles_need(void) {
    return size < WIDTH || size % 4 ? "needs a size from 128 on, a multiple of 4" : NULL;
}

static const char *resident_needs(void) {
    if (tiles_need())
        return tiles_need();
    int each;
    HANDLE_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, resident_kernel, THREADS, 0));
    bool fit = tiles().x * tiles().y <= (unsigned)(each * multiprocessors);
    return fit ? NULL : "needs all tiles on the device at once";
}

static const Rung rungs[] = {
    {"book", "two kernels a step", run_book},
    {"one kernel a step", "heaters in it", [] { start_steps(0); }},
    {"a graph", "one launch of all", run_graph, RUNG, 0, 0, bench_needs_graphs},
    {"a grid barrier", "one kernel", run_grid},
    {"tiles", "eight steps in registers", run_tiles, RUNG, 0, 0, tiles_need},
    {"tiles that stay", "exchange margins", run_resident, RUNG, 0, 0, resident_needs},
};

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_buffers[0], 0xff, plate_bytes()));
    HANDLE_ERROR(cudaMemset(dev_buffers[1], 0xff, plate_bytes()));
}

static void make_reference(void) {
    size_t cells = (size_t)size * size;
    double *in;
    HANDLE_NULL(in = (double *)malloc(cells * sizeof(double)));
    HANDLE_NULL(expected = (double *)malloc(cells * sizeof(double)));
    std::copy(first, first + cells, in);
    for (int s = 0; s < steps; s++) {
        spread(expected, in, heaters, size);
        swap(in, expected);
    }
    swap(in, expected);
    free(in);
}

// Each step takes a mean, which does not enlarge errors, and rounds by 2^-24 at most.
static bool check(const char *name, BenchError *error) {
    size_t cells = (size_t)size * size, wrong = 0;
    HANDLE_ERROR(cudaMemcpy(result, dev_result, plate_bytes(), cudaMemcpyDeviceToHost));
    inject_error(result, plate_bytes());
    double sum = 0;
    error->max = 0;
    for (size_t i = 0; i < cells; i++) {
        double off = fabs(result[i] - expected[i]);
        error->max = fmax(error->max, off);
        sum += off * off;
        if (!(off <= steps * 0x1p-24) && wrong++ < 3)
            fprintf(stderr, "%s: cell %zu, %zu: got %.9g, expected %.9g\n", name, i % size,
                    i / size, result[i], expected[i]);
    }
    error->rms = sqrt(sum / cells);
    if (wrong)
        fprintf(stderr, "%s: %zu of %zu cells are wrong\n", name, wrong, cells);
    return !wrong;
}

int main(int argc, char **argv) {
    size_t side = BENCH_SIZE(DIM, 160);
    steps = 0;
    const Option own[] = {
        OPTION_SIZE("size", &side, 1, 46340, "cells a side"),
        OPTION_INT("iterations", &steps, 1, 10000, "steps; default 90, and 16 on a large plate"),
        OPTION_END};
    parse_options(argc, argv, "Heat that spreads, from the book's kernels to the fastest.", LADDER,
                  own);
    select_device();
    HANDLE_ERROR(
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, options.device));
    size = side;
    steps = steps ? steps : size > 4096 ? 16 : STEPS;

    size_t bytes = plate_bytes();
    require_memory(8 * bytes,
                   (resident_needs() ? 4 : 4 + PLACES) * bytes + bench_memory(3 * bytes));
    HANDLE_NULL(heaters = (float *)malloc(bytes));
    HANDLE_NULL(first = (float *)malloc(bytes));
    HANDLE_NULL(result = (float *)malloc(bytes));
    place_heaters(heaters, size);
    random_floats(first, size * (size_t)size, 1);
    for (size_t i = 0; i < (size_t)size * size; i++)
        first[i] = heaters[i] != 0 ? heaters[i] : first[i];
    make_reference();
    HANDLE_ERROR(cudaMalloc((void **)&dev_heaters, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_first, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_buffers[0], bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_buffers[1], bytes));
    HANDLE_ERROR(cudaMemcpy(dev_heaters, heaters, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_first, first, bytes, cudaMemcpyHostToDevice));
#ifdef __NVCC__
    record();
#endif
    if (!resident_needs()) {
        HANDLE_ERROR(cudaMalloc((void **)&dev_exchange, PLACES * bytes));
        HANDLE_ERROR(cudaMemset(dev_exchange, 0, PLACES * bytes));
    }

    char title[64];
    snprintf(title, sizeof title, "%d x %d cells, %d steps", size, size, steps);
    double work = 2.0 * bytes * steps;
    bool ok = bench_run({title, NULL, side, work, "GB/s", 3 * bytes, rungs,
                         sizeof rungs / sizeof *rungs, poison, check});
    bench_finish();

#ifdef __NVCC__
    HANDLE_ERROR(cudaGraphExecDestroy(graph));
#endif
    HANDLE_ERROR(cudaFree(dev_exchange));
    HANDLE_ERROR(cudaFree(dev_heaters));
    HANDLE_ERROR(cudaFree(dev_first));
    HANDLE_ERROR(cudaFree(dev_buffers[0]));
    HANDLE_ERROR(cudaFree(dev_buffers[1]));
    free(heaters);
    free(first);
    free(result);
    free(expected);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
