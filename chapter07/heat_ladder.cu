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
 * Run:     ./bin/chapter07/heat_ladder --size 16384
 * Differs: the initial temperatures are random. The rate counts one read and one write of each cell per
 *          step, so it can exceed the copy rate. Recording the graph is not part of the time.
 * Bench:   1024 16384
 * Check:   --size 100 --iterations 4
 */
#include "../common/book.h"
#include "../common/bench.h"
#include "../common/proofs/heat.h" // place_heaters(), spread()
#include <cooperative_groups.h>
#include "heat_tiles.h" // temporal blocking: the kernels of rungs 6 and 7

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
static void poison(void);
static bool check(const char *name, BenchError *error);

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
    return (size_t)size * size <= 1 << 27 ? NULL : "needs at most 2^27 cells";
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

// Rung 6: a launch computes up to 16 steps.
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

// Rung 7: one cooperative launch. Its blocks wait for each other, so all tiles must run at the same time.
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
};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = plate_bytes();
    make_plate();
    make_reference();
    HANDLE_ERROR(cudaMalloc(&dev_heaters, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_first, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_buffers[0], bytes));
    HANDLE_ERROR(cudaMalloc(&dev_buffers[1], bytes));
    HANDLE_ERROR(cudaMemcpy(dev_heaters, heaters, bytes, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_first, first, bytes, cudaMemcpyHostToDevice));
    record_graph();
    each_texture(true);
    if (!persistent_needs()) {
        HANDLE_ERROR(cudaMalloc(&dev_exchange, EXCHANGE_BUFFERS * bytes));
        HANDLE_ERROR(cudaMemset(dev_exchange, 0, EXCHANGE_BUFFERS * bytes));
    }

    Bench bench;
    bench.title =
        std::to_string(size) + " x " + std::to_string(size) + " cells, " + std::to_string(steps) + " steps";
    bench.size = size;
    bench.work = 2.0 * bytes * steps; // each step reads and writes each cell
    bench.footprint = 3 * bytes;
    bench.poison = poison;
    bench.check = check;
    bool ok = bench_run(bench, rungs);
    bench_finish();

    HANDLE_ERROR(cudaGraphExecDestroy(graph));
    each_texture(false);
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

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    size_t side = size;
    const Option own[] = {
        OPTION_SIZE("size", &side, 1, 46340, "cells a side"),
        OPTION_INT("iterations", &steps, 1, 10000, "steps; default 90, and 16 on a large plate"), OPTION_END};
    parse_options(argc, argv, "Heat simulation, from the book's kernels to the fastest.", LADDER, own);
    select_device();
    HANDLE_ERROR(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, options.device));
    size = side;
    steps = steps ? steps : size > 4096 ? 16 : STEPS;
    size_t bytes = plate_bytes(), exchange = persistent_needs() ? 0 : EXCHANGE_BUFFERS * bytes;
    require_memory(8 * bytes, 4 * bytes + exchange + bench_memory(3 * bytes));
}

// Random temperatures, and those of the heaters.
static void make_plate(void) {
    size_t cells = (size_t)size * size;
    heaters = host_array<float>(cells);
    first = host_array<float>(cells);
    place_heaters(heaters, size);
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
    double sum = 0;
    error->max = 0;
    for (size_t i = 0; i < cells; i++) {
        double off = fabs(result[i] - expected[i]);
        error->max = fmax(error->max, off);
        sum += off * off;
    }
    error->rms = sqrt(sum / cells);
    return check_floats(name, result, expected, cells, steps * 0x1p-24);
}
