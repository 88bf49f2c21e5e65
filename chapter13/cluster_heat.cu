// SPDX-License-Identifier: MIT
/*
 * cluster_heat: all steps of the heat simulation in one launch, in the shared memory of a cluster
 *
 * Teaches: The blocks of a cluster run at the same time, and each reads the shared memory of the others:
 *          distributed shared memory. A small plate fits into it, a strip of rows for each block. A step then
 *          needs no launch and no global memory: a block reads two rows of its neighbours, and a barrier of
 *          the cluster, which waits for 8 blocks only, stands between two steps.
 * Terms:   cluster, distributed shared memory, halo, grid barrier, graph, heat equation
 * Book:    7.3.3 (after the book)
 * Since:   CUDA 11.8, compute capability 9.0 (H100)
 * After:   chapter13/graph_heat
 * Build:   nvcc -o cluster_heat chapter13/cluster_heat.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/cluster_heat --size 256
 * Differs: as chapter13/graph_heat, but heaters are fused into the update. On an H200 the cluster is the
 *          fastest for 64 x 64 cells, no faster than grid barriers for 128 x 128, and slower for more. The
 *          CPU back end has no clusters: there the program is waived.
 * Needs:   sm=90
 * Check:   --size 100 --iterations 9 | --size 37 --iterations 10
 */
#include <cooperative_groups.h>
#include "../common/book.h"
#include "../common/checks/heat.h" // DIM, SPEED, STEPS, place_heaters(), in_hot_corner()

namespace cg = cooperative_groups;

#define BLOCKS  8   // of the cluster; every device that has clusters allows 8
#define LARGEST 448 // rows and columns of a plate that fits: two strips of 56 rows take 196 KiB

static size_t size = 64;  // --size
static int steps = STEPS; // --iterations
static float *dev_inSrc, *dev_outSrc, *dev_constSrc;
static bool check(const char *how, void (*frame)(void));

// The new temperature of cell x of a row; `top` is the row before it, `bottom` the row after it.
__device__ float blend(const float *row, const float *top, const float *bottom, int x, int size,
                       float heater) {
    float c = row[x], left = row[max(x - 1, 0)], right = row[min(x + 1, size - 1)];
    return heater != 0 ? heater : c + SPEED * ((top[x] - c) + (bottom[x] - c) + (left - c) + (right - c));
}

// All steps in one launch: the plate is in global memory, and a barrier of the grid stands between two steps.
__global__ void grid_kernel(float *outSrc, float *inSrc, const float *cptr, int size, int steps) {
    for (int i = 0; i < steps; i++) {
        for (int y = threadIdx.y + blockIdx.x * blockDim.y; y < size; y += gridDim.x * blockDim.y)
            for (int x = threadIdx.x; x < size; x += blockDim.x)
                outSrc[x + y * size] =
                    blend(&inSrc[y * size], &inSrc[max(y - 1, 0) * size], &inSrc[min(y + 1, size - 1) * size],
                          x, size, cptr[x + y * size]);
        cg::this_grid().sync();
        float *swapped = inSrc;
        inSrc = outSrc;
        outSrc = swapped;
    }
}

// All steps in one launch of one cluster. Block b computes `rows` rows, from row b * rows on. For devices
// before compute capability 9.0 the kernel is compiled empty, and is not launched.
__global__ void cluster_kernel(float *plate, const float *cptr, int size, int steps) {
#if __CUDA_ARCH__ >= 900
    extern __shared__ float strips[];
    cg::cluster_group cluster = cg::this_cluster();
    int rows = (size + BLOCKS - 1) / BLOCKS, block = cluster.block_rank(), first = block * rows;
    float *in = strips, *out = strips + rows * size;
    for (int y = threadIdx.y; y < rows && first + y < size; y += blockDim.y)
        for (int x = threadIdx.x; x < size; x += blockDim.x)
            in[x + y * size] = plate[x + (first + y) * size];
    for (int i = 0; i < steps; i++) {
        // All blocks have written `in`, and none reads `out` any more. The rows above and below a strip
        // belong to other blocks: map_shared_rank() turns the address of `in` here into that of `in` there.
        cluster.sync();
        const float *above = block > 0 ? cluster.map_shared_rank(in, block - 1) + (rows - 1) * size : in;
        const float *below = block < BLOCKS - 1 ? cluster.map_shared_rank(in, block + 1) : in;
        for (int y = threadIdx.y; y < rows && first + y < size; y += blockDim.y) {
            const float *row = in + y * size, *top = y > 0 ? row - size : block > 0 ? above : row;
            const float *bottom = first + y == size - 1 ? row : y < rows - 1 ? row + size : below;
            for (int x = threadIdx.x; x < size; x += blockDim.x)
                out[x + y * size] = blend(row, top, bottom, x, size, cptr[x + (first + y) * size]);
        }
        float *swapped = in;
        in = out;
        out = swapped;
    }
    for (int y = threadIdx.y; y < rows && first + y < size; y += blockDim.y)
        for (int x = threadIdx.x; x < size; x += blockDim.x)
            plate[x + (first + y) * size] = in[x + y * size];
    cluster.sync(); // a neighbour may still read the shared memory of this block
#else
    (void)plate, (void)cptr, (void)size, (void)steps;
#endif
}

// by_grid() and by_cluster() each replace the temperatures in dev_inSrc by those after a frame. A step of
// grid_kernel swaps both arrays; the number of steps is even, so the last one writes dev_inSrc.
static void by_grid(void) {
    int n = size;
    void *arguments[] = {&dev_outSrc, &dev_inSrc, &dev_constSrc, &n, &steps};
    dim3 blocks(min_of((size + 3) / 4, device_attribute(cudaDevAttrMultiProcessorCount))), threads(128, 4);
    HANDLE_ERROR(cudaLaunchCooperativeKernel(grid_kernel, blocks, threads, arguments, 0, 0));
}

// If the kernel is declared with __cluster_dims__(BLOCKS, 1, 1), <<<>>> launches a cluster as well.
static void by_cluster(void) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = BLOCKS;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    size_t shared = 2 * ((size + BLOCKS - 1) / BLOCKS) * size * sizeof(float);
    HANDLE_ERROR(cudaFuncSetAttribute(cluster_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    cudaLaunchConfig_t config = {dim3(BLOCKS), dim3(128, 8), shared, 0, &attribute, 1};
    HANDLE_ERROR(cudaLaunchKernelEx(&config, cluster_kernel, dev_inSrc, dev_constSrc, (int)size, steps));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = size * size * sizeof(float);
    HANDLE_ERROR(cudaMalloc((void **)&dev_inSrc, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_outSrc, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_constSrc, bytes));
    bool ok = check("Grid barriers:", by_grid);
    ok = check("Cluster:", by_cluster) && ok;
    HANDLE_ERROR(cudaFree(dev_inSrc));
    HANDLE_ERROR(cudaFree(dev_outSrc));
    HANDLE_ERROR(cudaFree(dev_constSrc));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/yardstick.h" // plate_copy_us()

void settings(int argc, char **argv) {
    configure(argc, argv, "Heat that spreads over a plate in the shared memory of a cluster.", TIMES,
              {OPTION_SIZE("size", &size, 1, LARGEST, "cells a side"),
               OPTION_INT("iterations", &steps, 2, 1000, "steps in a frame")});
    cudaFuncAttributes compiled;
    HANDLE_ERROR(cudaFuncGetAttributes(&compiled, cluster_kernel));
    if (!device_attribute(cudaDevAttrClusterLaunch) || compiled.ptxVersion < 90)
        quit(EXIT_WAIVED, "needs clusters of blocks: a device of compute capability 9.0, and code for it");
    steps = steps / 2 * 2;
    require_memory(8 * size * size * sizeof(float), 3 * size * size * sizeof(float));
    printf("The fastest: ./bin/chapter07/heat_ladder --size %zu\n", size);
}

// Times a frame, then computes one from the initial temperatures and compares it with the same in double.
// A step may differ by 2^-24, less than half of STEP_ROUNDING in common/checks/heat.h.
static bool check(const char *how, void (*frame)(void)) {
    const size_t cells = size * size;
    HostArray<float> heaters(cells), start(cells);
    HostArray<double> plates(2 * cells);
    double *in = plates, *out = plates + cells;
    place_heaters(heaters, size);
    for (size_t i = 0; i < cells; i++)
        in[i] = start[i] =
            heaters[i] == 0 && in_hot_corner(i % size, i / size, size, size) ? 1.0f : heaters[i];
    HANDLE_ERROR(cudaMemcpy(dev_constSrc, heaters, cells * sizeof(float), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(dev_inSrc, start, cells * sizeof(float), cudaMemcpyHostToDevice));
    double us = 1e3 * median_ms(frame), copy = plate_copy_us(dev_outSrc, dev_inSrc, cells);
    printf("%-14s a step takes %.3f us; a copy of the plate %.3f us, %.1f %% of all steps\n", how, us / steps,
           copy, 100 * copy / us);
    HANDLE_ERROR(cudaMemcpy(dev_inSrc, start, cells * sizeof(float), cudaMemcpyHostToDevice));
    frame();
    HostArray<float> got(dev_inSrc, cells);
    for (int i = 0; i < steps; i++) {
        spread(out, in, heaters, size);
        swap(in, out);
    }
    for (size_t i = 0; i < cells; i++)
        in[i] = heaters[i] != 0 ? heaters[i] : in[i];
    return check_floats(how, got, in, cells, steps * 0x1p-24);
}

// Task: none: its kernel is compiled for compute capability 9.0 only, and the CPU back end has no clusters.
// By hand: take out one cluster.sync() at a time, and see when the temperatures are wrong.
