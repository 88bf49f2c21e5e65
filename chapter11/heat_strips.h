// SPDX-License-Identifier: MIT
// For heat_ladder: what a kernel does to exchange halos with the GPUs above and below, and the strip of the
// plate that a GPU has. Below the line: its memory, and the reference.
#ifndef CHAPTER11_HEAT_STRIPS_H
#define CHAPTER11_HEAT_STRIPS_H

#include "../common/book.h"
#include "../common/bench.h" // BENCH_SIZE
#include <cuda/atomic>
#include "heat_steps.h" // the kernel

// ---- the exchange of halos ----

// The GPU above (0) or below (1): what a kernel needs to store the rows of its edge directly into the halo
// there. The pointers to its memory, `out` and `tell`, are those of peer-to-peer access.
struct Neighbour {
    float4 *out;          // row 0 of the plate in its output; NULL: the kernel stores nothing there
    int begin, end;       // the rows of its halo
    unsigned *tell;       // flags in its memory, one per block: the rounds that this GPU has stored
    const unsigned *hear; // flags in the memory of this GPU: the rounds that the neighbour has stored
    unsigned round;       // to wait for
};

// A flag of another GPU: the scope of its accesses is the whole system.
typedef cuda::atomic_ref<unsigned, cuda::thread_scope_system> Flag;

// The blocks at the edge of the strip wait until the halo has arrived. Their columns overlap with those of
// the blocks to the left and to the right. The acquire orders the reads of the halo after the flag.
__device__ static void wait_for_halo(const Neighbour &n) {
    unsigned block = blockIdx.x + threadIdx.x - 1;
    if (n.hear && threadIdx.y == 0 && threadIdx.x < 3 && block < gridDim.x)
        while (Flag(const_cast<unsigned &>(n.hear[block])).load(cuda::memory_order_acquire) < n.round)
            continue;
    __syncthreads();
}

// The barrier and the release order the stores of all threads of the block before the store of the flag.
__device__ static void tell_neighbour(const Neighbour &n) {
    __syncthreads();
    if (n.tell && threadIdx.y == 0 && threadIdx.x == 0)
        Flag(n.tell[blockIdx.x]).store(n.round + 1, cuda::memory_order_release);
}

// The exchange of halos with both neighbours
struct Exchange {
    Neighbour above, below;
    // Calls f for each neighbour whose halo has rows of this block.
    template <class F> __device__ void each_neighbour(F f) const {
        if (blockIdx.y == 0)
            f(above);
        if (blockIdx.y == gridDim.y - 1)
            f(below);
    }
    __device__ void wait(void) const { each_neighbour(wait_for_halo); }
    __device__ void store(int row, long long at, float4 t) const {
        if (above.out && row < above.end)
            above.out[at] = t;
        if (below.out && row >= below.begin)
            below.out[at] = t;
    }
    __device__ void tell(void) const { each_neighbour(tell_neighbour); }
};

// ---- the strip of a GPU ----

const int DEEP = 12; // steps per exchange with deep halos

// The rows from `first` to `end` of the plate, on one device. Its arrays have DEEP more rows on both sides.
struct Strip {
    int device, first, end;
    int at_once[2];             // blocks that the device runs at the same time: of single steps, and of DEEP
    float *start, *buffers[2];  // the initial temperatures, and ping-pong buffers
    unsigned *flags[2];         // set by the neighbours, one for each of their blocks
    float *on_host[2];          // the rows at its edges, on their way through the host
    cudaStream_t stream, edges; // `edges` has the higher priority
    cudaEvent_t done, edges_done, sent;
};

static int size = BENCH_SIZE(16384, 100); // --size, cells per side
static int steps = BENCH_SIZE(96, 13);    // --iterations

// Cells of a row in memory: a multiple of four, for float4.
static size_t pitch(void) {
    return (size + 3) / 4 * 4;
}

static size_t row_bytes(void) {
    return pitch() * sizeof(float);
}

// The address of row y of the plate
static float *row(const Strip &strip, float *buffer, int y) {
    return buffer + (y - strip.first + DEEP) * (long long)pitch();
}

// ---------------------------------------------------------------------------------------- proof

// On the host: the initial temperatures, and those after all steps, with a negative sign for heaters.
static float *start, *expected;

// One step of the reference. Like the kernel it adds (upper + right) + (left + lower), so that the results
// are equal bit for bit. Each host thread computes some of the rows.
struct Reference {
    const float *in;
    float *out;
    size_t begin, end;
};

static void *reference_rows(void *data) {
    const Reference &r = *(const Reference *)data;
    size_t n = size;
    for (size_t y = r.begin; y < r.end; y++) {
        const float *in = r.in + y * n, *upper = y > 0 ? in - n : in, *lower = y < n - 1 ? in + n : in;
        float *out = r.out + y * n;
        auto cell = [&](size_t x, size_t left, size_t right) {
            float up = fabsf(upper[x]), down = fabsf(lower[x]),
                  mean = SPEED * ((up + fabsf(in[right])) + (fabsf(in[left]) + down));
            out[x] = signbit(in[x]) ? in[x] : mean;
        };
        cell(0, 0, min_of(1, n - 1));
        for (size_t x = 1; x + 1 < n; x++)
            cell(x, x - 1, x + 1);
        if (n > 1)
            cell(n - 1, n - 2, n - 1);
    }
    return NULL;
}

static void make_reference(float *spare) {
    const int threads = 16;
    Reference part[threads];
    CUTThread thread[threads];
    const float *in = start;
    for (int s = 0; s < steps; s++) {
        float *out = (steps - s) % 2 ? expected : spare;
        for (int i = 0; i < threads; i++) {
            part[i] = {in, out, (size_t)size * i / threads, (size_t)size * (i + 1) / threads};
            thread[i] = start_thread(reference_rows, &part[i]);
        }
        wait_for_threads(thread, threads);
        in = out;
    }
}

static Strip make_strip(int device, int first, int end) {
    Strip strip = {};
    strip.device = device;
    strip.first = first;
    strip.end = end;
    size_t rows = end - first + 2 * DEEP, bytes = rows * row_bytes();
    Rows whole = {NULL, NULL, 0, size, size, size, DEEP};
    size_t blocks = bands_of(whole) * sizeof(unsigned), width = size * sizeof(float);
    int from = max_of(first - DEEP, 0), to = min_of(end + DEEP, size);
    int least, greatest;
    HANDLE_ERROR(cudaSetDevice(device));
    strip.at_once[0] = blocks_at_once<1, Exchange>();
    strip.at_once[1] = blocks_at_once<DEEP, Exchange>();
    HANDLE_ERROR(cudaMalloc(&strip.start, bytes));
    HANDLE_ERROR(cudaMemset(strip.start, 0, bytes)); // also the cells that fill up the last float4 of a row
    HANDLE_ERROR(cudaMemcpy2D(row(strip, strip.start, from), row_bytes(), start + (size_t)from * size, width,
                              width, to - from, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    HANDLE_ERROR(cudaStreamCreateWithPriority(&strip.stream, cudaStreamNonBlocking, least));
    HANDLE_ERROR(cudaStreamCreateWithPriority(&strip.edges, cudaStreamNonBlocking, greatest));
    for (cudaEvent_t *event : {&strip.done, &strip.edges_done, &strip.sent})
        HANDLE_ERROR(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    for (int i = 0; i < 2; i++) {
        HANDLE_ERROR(cudaMalloc(&strip.buffers[i], bytes));
        HANDLE_ERROR(cudaMalloc(&strip.flags[i], blocks));
        HANDLE_ERROR(cudaMemset(strip.flags[i], 0, blocks));
        HANDLE_ERROR(cudaHostAlloc(&strip.on_host[i], DEEP * row_bytes(), cudaHostAllocPortable));
    }
    return strip;
}

static void free_strip(const Strip &strip) {
    HANDLE_ERROR(cudaSetDevice(strip.device));
    HANDLE_ERROR(cudaFree(strip.start));
    HANDLE_ERROR(cudaStreamDestroy(strip.stream));
    HANDLE_ERROR(cudaStreamDestroy(strip.edges));
    for (cudaEvent_t event : {strip.done, strip.edges_done, strip.sent})
        HANDLE_ERROR(cudaEventDestroy(event));
    for (int i = 0; i < 2; i++) {
        HANDLE_ERROR(cudaFree(strip.buffers[i]));
        HANDLE_ERROR(cudaFree(strip.flags[i]));
        HANDLE_ERROR(cudaFreeHost(strip.on_host[i]));
    }
}

#endif
