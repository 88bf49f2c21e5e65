// SPDX-License-Identifier: MIT
/*
 * graph_heat: the steps of the heat simulation as a graph, whose parameter is changed
 *
 * Teaches: Stream capture records launches as a graph instead of running them. The graph is checked and
 *          prepared once, and then one call launches all of its nodes, which takes the host a fraction of
 *          the time of single launches. The arguments are recorded too: to change them one records again
 *          and updates the graph that is launched.
 * Terms:   graph, stream capture, launch overhead, stencil, ping-pong buffers, heat equation
 * Book:    7.3.3 (after the book)
 * Since:   CUDA 10.2, every GPU; as written here CUDA 12.0
 * Build:   nvcc -o graph_heat chapter13/graph_heat.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/graph_heat --size 256
 * Differs: as chapter07/heat_gmem without the picture: three frames of 90 steps, launched one by one, as a
 *          graph, and as a graph with another speed.
 * Check:   --size 100 --iterations 9 --slower 0.1 | --size 37 --iterations 10
 * Web:     --size 256
 */
#include "../common/book.h"
#include "../common/checks/heat.h" // DIM, SPEED, STEPS, copy_plate(), place_heaters(), in_hot_corner()

struct DataBlock {
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    cudaStream_t stream;
};

static size_t size = DIM;     // --size
static int steps = STEPS;     // --iterations, time steps of a frame
static float slower = 0.125f; // --slower, the speed of the last frame
static bool check(DataBlock *d, cudaGraphExec_t graphExec);

// Both kernels are those of chapter07/heat_gmem.
__global__ void copy_const_kernel(float *iptr, const float *cptr, size_t size) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;
    if (cptr[offset] != 0)
        iptr[offset] = cptr[offset];
}

__global__ void blend_kernel(float *outSrc, const float *inSrc, size_t size, float speed) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;
    size_t left = x > 0 ? offset - 1 : offset;
    size_t right = x < size - 1 ? offset + 1 : offset;
    size_t top = y > 0 ? offset - size : offset;
    size_t bottom = y < size - 1 ? offset + size : offset;
    float c = inSrc[offset];
    outSrc[offset] =
        c + speed * ((inSrc[top] - c) + (inSrc[bottom] - c) + (inSrc[left] - c) + (inSrc[right] - c));
}

// The steps of a frame, two launches each. The stream is not the default stream, which cannot be captured.
static void anim_gpu(DataBlock *d, float speed) {
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    float *in = d->dev_inSrc, *out = d->dev_outSrc;
    for (int i = 0; i < steps; i++) {
        copy_const_kernel<<<blocks, threads, 0, d->stream>>>(in, d->dev_constSrc, size);
        HANDLE_LAUNCH();
        blend_kernel<<<blocks, threads, 0, d->stream>>>(out, in, size, speed);
        HANDLE_LAUNCH();
        swap(in, out);
    }
    // Pointers are recorded as they are, so each frame has to begin and end in the same buffer.
    if (in != d->dev_inSrc)
        HANDLE_ERROR(cudaMemcpyAsync(d->dev_inSrc, in, size * size * sizeof(float), cudaMemcpyDeviceToDevice,
                                     d->stream));
}

// Between the calls that begin and end the capture, launches are recorded and do not run. The graph holds
// them and their order.
static cudaGraph_t record(DataBlock *d, float speed) {
    cudaGraph_t graph;
    HANDLE_ERROR(cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeGlobal));
    anim_gpu(d, speed);
    HANDLE_ERROR(cudaStreamEndCapture(d->stream, &graph));
    return graph;
}

// Changes the arguments of the kernels in an executable graph: the frame is recorded again, and
// cudaGraphExecUpdate() copies the parameters of its nodes. If it has other nodes or edges than before, that
// call fails, and the graph has to be instantiated again. cudaGraphExecKernelNodeSetParams changes the
// arguments of a single launch without recording.
static void update(DataBlock *d, cudaGraphExec_t graphExec, float speed) {
    cudaGraph_t graph = record(d, speed);
    cudaGraphExecUpdateResultInfo why;
    HANDLE_ERROR(cudaGraphExecUpdate(graphExec, graph, &why));
    HANDLE_ERROR(cudaGraphDestroy(graph));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    DataBlock data;
    size_t bytes = size * size * sizeof(float);
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_inSrc, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_outSrc, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_constSrc, bytes));
    HANDLE_ERROR(cudaStreamCreate(&data.stream));
    copy_plate(data.dev_constSrc, data.dev_inSrc, size); // the heaters and the initial temperatures

    // The executable graph is the form of the graph that can be launched.
    cudaGraph_t graph = record(&data, SPEED);
    cudaGraphExec_t graphExec;
    HANDLE_ERROR(cudaGraphInstantiate(&graphExec, graph, 0));

    anim_gpu(&data, SPEED); // two launches a step, as in chapter 7
    HANDLE_ERROR(cudaGraphLaunch(graphExec, data.stream));
    update(&data, graphExec, slower); // changes later launches, not the one before
    HANDLE_ERROR(cudaGraphLaunch(graphExec, data.stream));
    bool ok = check(&data, graphExec); // copies the temperatures when the stream has finished

    HANDLE_ERROR(cudaGraphExecDestroy(graphExec));
    HANDLE_ERROR(cudaGraphDestroy(graph));
    HANDLE_ERROR(cudaStreamDestroy(data.stream));
    HANDLE_ERROR(cudaFree(data.dev_inSrc));
    HANDLE_ERROR(cudaFree(data.dev_outSrc));
    HANDLE_ERROR(cudaFree(data.dev_constSrc));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/yardstick.h" // plate_copy_us()

void settings(int argc, char **argv) {
    configure(argc, argv, "Heat that spreads over a plate, with the launches in a graph.", TIMES,
              {OPTION_SIZE("size", &size, 1, 8192, "cells a side"),
               OPTION_INT("iterations", &steps, 1, 1000, "steps in a frame"),
               OPTION_FLOAT("slower", &slower, 0.001f, 0.25f, "speed of the last frame")});
    size_t bytes = size * size * sizeof(float);
    require_memory(8 * bytes, 3 * bytes);
}

// Prints the median times of a step: until the calls of its frame have returned, and until it has run.
template <class Launch> static double time_frames(const char *how, DataBlock *d, Launch launch) {
    auto wait = [=] { HANDLE_ERROR(cudaStreamSynchronize(d->stream)); };
    double launched = median_of_runs([=] { return wait(), host_ms(launch); });
    double finished = median_of_runs([=] { return wait(), host_ms([=] { launch(), wait(); }); });
    printf("%s a step is launched in %.3f us, and has run after %.3f us\n", how, 1e3 * launched / steps,
           1e3 * finished / steps);
    return finished;
}

// The reference computes all frames in double. The tolerance is 1.5 * 2^-24 per step, little more than
// half of the tolerance for additions in any order, STEP_ROUNDING of common/checks/heat.h.
static bool check(DataBlock *d, cudaGraphExec_t graphExec) {
    const size_t cells = size * size;
    HostArray<float> got(d->dev_inSrc, cells), heaters(cells);
    HostArray<double> plates(2 * cells);
    double *in = plates, *out = plates + cells, sum = 0;
    place_heaters(heaters, size);
    for (size_t i = 0; i < cells; i++)
        in[i] = in_hot_corner(i % size, i / size, size, size) ? 1.0f : heaters[i];
    for (int i = 0; i < 3 * steps; i++) {
        spread(out, in, heaters, size, i < 2 * steps ? SPEED : slower);
        swap(in, out);
    }
    for (size_t i = 0; i < cells; i++)
        sum += got[i];
    printf("Mean temperature: %.9f\n", sum / cells);
    time_frames("One by one:", d, [=] { anim_gpu(d, SPEED); });
    double graph =
        time_frames("As a graph:", d, [=] { HANDLE_ERROR(cudaGraphLaunch(graphExec, d->stream)); });
    printf("Another speed: recorded again and updated in %.3f us\n",
           1e3 * median_host_ms([=] { update(d, graphExec, SPEED); }));
    double copy = plate_copy_us(d->dev_outSrc, d->dev_inSrc, cells);
    printf("A copy of the plate takes %.3f us, %.0f %% of a step as a graph\n", copy,
           100 * copy / (1e3 * graph / steps));
    printf("The fastest: ./bin/chapter07/heat_ladder --size %zu\n", size);
    return check_floats("temperature", got, in, cells, 3 * steps * 0x1.8p-24);
}

// Task: main(): Record the launches of a frame as a graph, and use it. Allocate the three arrays, each of
// `bytes` bytes, and create data.stream. After the initialization record a frame with SPEED and instantiate
// the graph, without flags. Frame 1 is launched one by one. Launch the graph in the stream for frame 2, and
// with the speed `slower` by update() for frame 3. At the end destroy the executable graph, the graph and the
// stream, and free the memory.
