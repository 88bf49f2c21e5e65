// SPDX-License-Identifier: MIT
/*
 * dependent_launch: the steps of the heat simulation, where a kernel starts before the previous one has ended
 *
 * Teaches: Between two kernels of a stream the device waits for the last block of the first one, and then
 *          starts the blocks of the second one. With programmatic dependent launch the blocks of the second
 *          kernel may start when all blocks of the first one have called
 *          cudaTriggerProgrammaticLaunchCompletion() or have ended. Before they use what the first kernel
 *          writes, they call cudaGridDependencySynchronize(), which waits until it has ended.
 * Terms:   programmatic dependent launch, launch overhead, graph, stencil, ping-pong buffers, heat equation
 * Book:    7.3.3 (after the book)
 * Since:   CUDA 11.8, compute capability 9.0 (H100)
 * After:   chapter13/graph_heat
 * Build:   nvcc -o dependent_launch chapter13/dependent_launch.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/dependent_launch --size 256
 * Differs: as chapter13/graph_heat. A device before 9.0 gets usual launches. A missing wait need not show in
 *          the temperatures; on the CPU back end make check finds it.
 * Check:   --size 100 --iterations 9 | --size 37 --iterations 10
 */
#include "../common/book.h"
#include "../common/checks/heat.h" // DIM, SPEED, STEPS, copy_plate(), check_step() and others

struct DataBlock {
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    cudaStream_t stream;
};

static size_t size = DIM / 2; // --size
static int steps = STEPS;     // --iterations
static bool supported(void);
static bool check(DataBlock *d, const char *how);
template <class Launch> static void time_steps(DataBlock *d, const char *how, Launch launch);

// In a kernel that was launched as usual, both calls have no effect. The lines above the wait may run while
// the previous kernel still runs, so they must not write, and may only read what that kernel does not write:
// here the heaters. GPUs before 9.0 lack these calls; the CPU back end (__CU2CPP__) has them.
__global__ void copy_const_kernel(float *iptr, const float *cptr, size_t size) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    size_t offset = x + y * size;
    float heater = x < size && y < size ? cptr[offset] : 0;
#if __CUDA_ARCH__ >= 900 || defined(__CU2CPP__)
    cudaTriggerProgrammaticLaunchCompletion(); // blocks of the next kernel may start where there is room
    cudaGridDependencySynchronize();           // the previous kernel has ended, and its results are visible
#endif
    if (heater != 0)
        iptr[offset] = heater;
}

__global__ void blend_kernel(float *outSrc, const float *inSrc, size_t size) {
#if __CUDA_ARCH__ >= 900 || defined(__CU2CPP__)
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;
    size_t left = x > 0 ? offset - 1 : offset, right = x < size - 1 ? offset + 1 : offset;
    size_t top = y > 0 ? offset - size : offset, bottom = y < size - 1 ? offset + size : offset;
    float c = inSrc[offset];
    outSrc[offset] =
        c + SPEED * ((inSrc[top] - c) + (inSrc[bottom] - c) + (inSrc[left] - c) + (inSrc[right] - c));
}

// The steps of a frame. A kernel that is launched with the attribute may start before the previous one ends.
static void anim_gpu(DataBlock *d, bool dependent) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    cudaLaunchConfig_t config = {blocks, threads, 0, d->stream, &attribute, dependent ? 1u : 0u};
    float *in = d->dev_inSrc, *out = d->dev_outSrc;
    for (int i = 0; i < steps; i++) {
        HANDLE_ERROR(cudaLaunchKernelEx(&config, copy_const_kernel, in, d->dev_constSrc, size));
        HANDLE_ERROR(cudaLaunchKernelEx(&config, blend_kernel, out, in, size));
        swap(in, out);
    }
    if (in != d->dev_inSrc) // a copy waits until the previous kernel has ended
        HANDLE_ERROR(cudaMemcpyAsync(d->dev_inSrc, in, size * size * sizeof(float), cudaMemcpyDeviceToDevice,
                                     d->stream));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    DataBlock data;
    size_t bytes = size * size * sizeof(float);
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_inSrc, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_outSrc, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_constSrc, bytes));
    HANDLE_ERROR(cudaStreamCreate(&data.stream));

    bool ok = true;
    for (int dependent = 0; dependent <= supported(); dependent++) {
        copy_plate(data.dev_constSrc, data.dev_inSrc, size); // the heaters and the initial temperatures
        anim_gpu(&data, dependent);
        ok = check(&data, dependent ? "dependent launches" : "launches") && ok;
        time_steps(&data,
                   dependent ? "Dependent launches:" : "One by one:", [&] { anim_gpu(&data, dependent); });

        cudaGraph_t graph; // its nodes have the attribute, too
        cudaGraphExec_t graphExec;
        HANDLE_ERROR(cudaStreamBeginCapture(data.stream, cudaStreamCaptureModeGlobal));
        anim_gpu(&data, dependent);
        HANDLE_ERROR(cudaStreamEndCapture(data.stream, &graph));
        HANDLE_ERROR(cudaGraphInstantiate(&graphExec, graph, 0));
        copy_plate(data.dev_constSrc, data.dev_inSrc, size);
        HANDLE_ERROR(cudaGraphLaunch(graphExec, data.stream));
        ok = check(&data, dependent ? "a graph of dependent launches" : "a graph") && ok;
        time_steps(&data, dependent ? "Both:" : "As a graph:", [&] {
            HANDLE_ERROR(cudaGraphLaunch(graphExec, data.stream));
        });
        HANDLE_ERROR(cudaGraphExecDestroy(graphExec));
        HANDLE_ERROR(cudaGraphDestroy(graph));
    }

    HANDLE_ERROR(cudaStreamDestroy(data.stream));
    HANDLE_ERROR(cudaFree(data.dev_inSrc));
    HANDLE_ERROR(cudaFree(data.dev_outSrc));
    HANDLE_ERROR(cudaFree(data.dev_constSrc));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/yardstick.h" // plate_copy_us()

void settings(int argc, char **argv) {
    configure(argc, argv, "Heat that spreads over a plate, by dependent launches.", TIMES,
              {OPTION_SIZE("size", &size, 1, 8192, "cells a side"),
               OPTION_INT("iterations", &steps, 1, 1000, "steps in a frame")});
    size_t bytes = size * size * sizeof(float);
    require_memory(8 * bytes, 3 * bytes);
    printf("The fastest: ./bin/chapter07/heat_ladder --size %zu\n", size);
}

// Whether the device has programmatic dependent launches, and the kernel was compiled with its wait
static bool supported(void) {
    cudaFuncAttributes compiled;
    HANDLE_ERROR(cudaFuncGetAttributes(&compiled, blend_kernel));
    int major = device_attribute(cudaDevAttrComputeCapabilityMajor);
    return CPU_BACKEND || (major >= 9 && compiled.ptxVersion >= 90);
}

static void one_step(DataBlock *d) {
    const int all = steps;
    steps = 1;
    anim_gpu(d, supported());
    HANDLE_ERROR(cudaStreamSynchronize(d->stream));
    steps = all;
}

// The reference computes the frame in double, once. The tolerance is 2^-24 per step, less than half of the
// tolerance for additions in any order, STEP_ROUNDING of common/checks/heat.h. Along most edges of the plate
// the temperatures stay near 0, so one step from random temperatures is compared as well.
static bool check(DataBlock *d, const char *how) {
    const size_t cells = size * size;
    HostArray<float> got(d->dev_inSrc, cells), heaters(cells);
    static HostArray<double> plates(2 * cells);
    static double *in = NULL, *out = plates + cells;
    place_heaters(heaters, size);
    for (size_t i = 0; i < cells && in == NULL; i++)
        plates[i] = in_hot_corner(i % size, i / size, size, size) ? 1.0f : heaters[i];
    for (int i = in == NULL ? (in = plates, 0) : steps; i < steps; i++) {
        spread(out, in, heaters, size, SPEED);
        swap(in, out);
    }
    return check_floats(how, got, in, cells, steps * 0x1p-24) &&
           check_step(d, one_step, size * sizeof(float), size);
}

template <class Launch> static void time_steps(DataBlock *d, const char *how, Launch launch) {
    auto wait = [=] { HANDLE_ERROR(cudaStreamSynchronize(d->stream)); };
    double ms = median_of_runs([&] { return wait(), host_ms([&] { launch(), wait(); }); });
    double us = 1e3 * ms / steps, copy = plate_copy_us(d->dev_outSrc, d->dev_inSrc, size * size);
    printf("%-20s a step takes %.3f us; a copy of the plate %.3f us, %.0f %% of it\n", how, us, copy,
           100 * copy / us);
}

// Task: none: its kernels are those of chapter07/heat_gmem. By hand: take out one
// cudaGridDependencySynchronize(). The temperatures may still be right, above all on a large plate: the
// blocks of a kernel find room only when most blocks of the kernel before have ended. cucc --check names the
// two lines.
