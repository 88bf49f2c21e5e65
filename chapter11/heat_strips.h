// SPDX-License-Identifier: MIT
// The kernel of heat_ladder: several time steps of rows of the plate in one launch. With it a GPU exchanges
// halos with its neighbours, when the ladder wants the kernel to do that.
//
// This file has, from top to bottom: the exchange of halos, one time step of a row, and the kernel.
#ifndef CHAPTER11_HEAT_STRIPS_H
#define CHAPTER11_HEAT_STRIPS_H

#include "../common/book.h"
#include "../common/proofs/heat.h" // SPEED
#include <cuda/atomic>
#include <cuda_pipeline.h>
#include "../common/bench.h" // BENCH_SIZE

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

// The release orders the stores of all threads of the block, which the barrier has collected, before the
// flag.
__device__ static void tell_neighbour(const Neighbour &n) {
    __syncthreads();
    if (n.tell && threadIdx.y == 0 && threadIdx.x == 0)
        Flag(n.tell[blockIdx.x]).store(n.round + 1, cuda::memory_order_release);
}

// ---- one time step of a row ----

// A warp computes a band of 128 columns: a lane has four of them in a float4. Columns of neighbouring lanes
// come by warp shuffle. At both ends of the band they are missing: that is right at the edge of the plate,
// where coordinates are clamped; elsewhere wrong values spread by one column in each step, and the band has a
// margin for them.
const int BAND = 128, WARPS = 4; // columns of a warp; warps of a block, side by side
const int AHEAD = 4;             // rows that are loaded early

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
    // Each cell of a row plus the right neighbour in the next row. For the cell between the two they are the
    // upper and the right neighbour, and for another cell the left and the lower one.
    __device__ float4 pairs(float4 row, float4 next) const {
        return make_float4(row.x + next.y, row.y + next.z, row.z + next.w, row.w + right_of(next));
    }
    // The mean of (upper + right) + (left + lower). `before`: pairs of the row above and this one; `after`:
    // pairs of this one and the row below.
    __device__ float4 mean(float4 before, float4 row, float4 after, float4 below) const {
        return make_float4(SPEED * (before.x + (left_of(row) + below.x)), SPEED * (before.y + after.x),
                           SPEED * (before.z + after.y), SPEED * (before.w + after.z));
    }
};

// The plate stores the temperature of a heater with a negative sign. Bit i of `heaters`: cell i is one.
__device__ static unsigned heaters_of(float4 t) {
    return signbit(t.x) | signbit(t.y) << 1 | signbit(t.z) << 2 | signbit(t.w) << 3;
}

__device__ static float4 temperatures(float4 t) {
    return make_float4(fabsf(t.x), fabsf(t.y), fabsf(t.z), fabsf(t.w));
}

// A heater keeps its temperature.
__device__ static float4 choose(unsigned heaters, float4 heater, float4 otherwise) {
    return make_float4(heaters & 1 ? heater.x : otherwise.x, heaters & 2 ? heater.y : otherwise.y,
                       heaters & 4 ? heater.z : otherwise.z, heaters & 8 ? heater.w : otherwise.w);
}

// Columns beyond the plate, in its last float4, hold a copy of the last column.
__device__ static float4 clamp_columns(float4 t, int columns) {
    t.y = columns > 1 ? t.y : t.x;
    t.z = columns > 2 ? t.z : t.y;
    t.w = columns > 3 ? t.w : t.z;
    return t;
}

// ---- the kernel ----

// Rows from `begin` to `end` of the plate, and where they are. The pointers are to row 0 of the plate, also
// where a GPU does not have it.
struct Rows {
    float4 *out;
    const float4 *in;
    int begin, end;
    int size, margin; // columns of the plate, and of the margin of a band
};

__host__ __device__ static inline int bands_of(int size, int margin) {
    return size > BAND ? (size - BAND - 1) / (BAND - 2 * margin) + 2 : 1;
}

// DEPTH time steps. A warp goes down its rows and reads each of them once: as soon as row y has arrived, row
// y - 1 can take its first step, then row y - 2 its second one, and so on. So a warp needs no more than two
// rows of each step at a time, which are in registers, and it needs no barrier. It begins DEPTH rows above
// its own and ends DEPTH rows below, where it finds the halo at the edge of a strip.
template <int DEPTH>
__global__ void __launch_bounds__(32 * WARPS, DEPTH > 8 ? 3 : 4)
    heat_steps(Rows rows, Neighbour above, Neighbour below) {
    int margin = rows.margin / 4, pitch = (rows.size + 3) / 4, bands = bands_of(rows.size, rows.margin);
    int band = blockIdx.x * WARPS + threadIdx.y, x = band * (BAND / 4 - 2 * margin) + threadIdx.x;
    Lane lane = {(int)threadIdx.x, min(31, pitch - 1 - (x - (int)threadIdx.x))};
    bool owns = (band == 0 || lane.lane >= margin) &&
                (band == bands - 1 ? lane.lane <= lane.last : lane.lane < BAND / 4 - margin);
    x = min(x, pitch - 1);
    bool ragged = rows.size % 4 != 0;
    int columns = rows.size - 4 * x;
    long long all = rows.end - rows.begin;
    int begin = rows.begin + (int)(all * blockIdx.y / gridDim.y);
    int end = rows.begin + (int)(all * (blockIdx.y + 1) / gridDim.y);

    if (blockIdx.y == 0)
        wait_for_halo(above);
    if (blockIdx.y == gridDim.y - 1)
        wait_for_halo(below);

    __shared__ float4 of_warps[WARPS][AHEAD][32]; // rows on their way, to hide the latency of memory
    auto &arriving = of_warps[threadIdx.y];
    int y = max(begin - DEPTH, 0), stop = min(end + DEPTH, rows.size);
    auto at = [&](int row) { return x + (long long)row * pitch; };
    auto store = [&](int row, float4 t, unsigned heaters) {
        if (row < begin || row >= end || !owns)
            return;
        t = choose(heaters, make_float4(-t.x, -t.y, -t.z, -t.w), t);
        rows.out[at(row)] = t;
        if (above.out && row < above.end)
            above.out[at(row)] = t;
        if (below.out && row >= below.begin)
            below.out[at(row)] = t;
    };
    auto load = [&](int row) { // two rows
        for (int r = row; r < row + 2; r++)
            if (r < stop)
                __pipeline_memcpy_async(&arriving[r % AHEAD][lane.lane], &rows.in[at(r)], sizeof(float4));
        __pipeline_commit();
    };

    float4 cell[DEPTH], before[DEPTH]; // of each step the newest row, and its pairs with the one above
    unsigned long long heaters = 0;    // of the last rows, four bits for each
    unsigned hot = 0;                  // whether the band has any in them, one bit for each
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
                if (y - s >= rows.size)
                    t = cell[s]; // below the last row
                if (y - s + 1 >= rows.size)
                    u = t;
            }
            float4 pairs_t = lane.pairs(cell[s], t), pairs_u = lane.pairs(t, u);
            float4 new_t = lane.mean(before[s], cell[s], pairs_t, t),
                   new_u = lane.mean(pairs_t, t, pairs_u, u);
            if (heated.value) {
                new_t = choose(heaters >> 4 * (s + 1), cell[s], new_t);
                new_u = choose(heaters >> 4 * s, t, new_u);
            }
            cell[s] = u;
            before[s] = pairs_u;
            t = at_edge.value ? clamp_columns(new_t, columns) : new_t;
            u = at_edge.value ? clamp_columns(new_u, columns) : new_u;
        }
        store(y - DEPTH, t, heaters >> 4 * DEPTH);
        store(y - DEPTH + 1, u, heaters >> 4 * (DEPTH - 1));
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
            unsigned of_t = heaters_of(t), of_u = heaters_of(u);
            heaters = heaters << 4 | of_t;
            hot = hot << 2 | (__any_sync(0xffffffff, of_t | of_u) != 0);
            t = temperatures(t);
            u = temperatures(u);
            if (ragged || y < DEPTH || y >= stop - 1)
                all_steps(clamp_columns(t, columns), clamp_columns(u, columns), yes, yes);
            else if (hot & ((1ull << (DEPTH + 2)) - 1))
                all_steps(t, u, no, yes);
            else
                all_steps(t, u, no, no);
            heaters = heaters << 4 | of_u;
        }
    }
    if (blockIdx.y == 0)
        tell_neighbour(above);
    if (blockIdx.y == gridDim.y - 1)
        tell_neighbour(below);
}

// ---- the strip of a GPU ----

const int DEEP = 8; // steps per exchange with deep halos

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
static int steps = BENCH_SIZE(96, 10);    // --iterations

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
    size_t blocks = bands_of(size, DEEP) * sizeof(unsigned), width = size * sizeof(float);
    int from = max_of(first - DEEP, 0), to = min_of(end + DEEP, size);
    int least, greatest, multiprocessors;
    HANDLE_ERROR(cudaSetDevice(device));
    HANDLE_ERROR(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    for (int deep = 0; deep < 2; deep++) {
        HANDLE_ERROR(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &strip.at_once[deep], deep ? heat_steps<DEEP> : heat_steps<1>, 32 * WARPS, 0));
        strip.at_once[deep] *= multiprocessors;
    }
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
