// SPDX-License-Identifier: MIT
// For heat_mpi and heat_checkpoint: the strip of the plate that a rank has, the launch of the kernel on its
// rows, and the check. Both programs share it, so that their plates are equal bit for bit.
#pragma once

#include <string>
#include <vector>
#include "../common/book.h"
#include "../common/checks/heat.h" // heater_at, in_hot_corner, SPEED, COLDEST
#include "heat_steps.h"            // the kernel heat_steps
#include "ranks.h"                 // MPI; rank, ranks, HANDLE_MPI

const int DEEP = 12; // most steps of a launch

// The rows from `first` to `end` of the plate. The buffers have `k` more rows on both sides, the halos.
// Side 0 is above the strip, side 1 below.
struct Strip {
    int first, end, width, height, k; // width and height of the plate; rows of a halo
    float *now, *next;            // ping-pong buffers: the newest temperatures, and those of the next step
    int neighbour[2];             // ranks; MPI_PROC_NULL at the edge of the plate
    cudaStream_t interior, edges; // `edges` has the higher priority
    cudaEvent_t interior_done, edges_done;
};

// The first row of a rank. For example, 10 rows are divided among 3 ranks into 3, 3 and 4.
static inline int first_row(int of_rank, int height) {
    return (long long)height * of_rank / ranks;
}

// Cells of a row in memory: a multiple of four, for float4
__host__ __device__ static inline size_t pitch_of(const Strip *strip) {
    return (strip->width + 3) / 4 * 4;
}

static inline size_t halo_cells(const Strip *strip) {
    return strip->k * pitch_of(strip);
}

static inline size_t buffer_bytes(const Strip *strip) {
    return (strip->end - strip->first + 2 * strip->k) * pitch_of(strip) * sizeof(float);
}

// The address of row y of the plate
__host__ __device__ static inline float *row(const Strip *strip, float *buffer, int y) {
    return buffer + (y - strip->first + strip->k) * (long long)pitch_of(strip);
}

// edge(): the rows at this side of the strip, which the neighbour needs as its halo. halo(): the rows that
// this rank receives from that neighbour.
static inline float *edge(const Strip *strip, int side) {
    return row(strip, strip->now, side == 0 ? strip->first : strip->end - strip->k);
}

static inline float *halo(const Strip *strip, int side) {
    return row(strip, strip->now, side == 0 ? strip->first - strip->k : strip->end);
}

static inline void make_strip(Strip *strip, int width, int height, int k) {
    int least, greatest;
    strip->first = first_row(rank, height);
    strip->end = first_row(rank + 1, height);
    strip->width = width;
    strip->height = height;
    strip->k = k;
    strip->neighbour[0] = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    strip->neighbour[1] = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    HANDLE_ERROR(cudaMalloc(&strip->now, buffer_bytes(strip)));
    HANDLE_ERROR(cudaMalloc(&strip->next, buffer_bytes(strip)));
    HANDLE_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    HANDLE_ERROR(cudaStreamCreateWithPriority(&strip->interior, cudaStreamNonBlocking, least));
    HANDLE_ERROR(cudaStreamCreateWithPriority(&strip->edges, cudaStreamNonBlocking, greatest));
    HANDLE_ERROR(cudaEventCreateWithFlags(&strip->interior_done, cudaEventDisableTiming));
    HANDLE_ERROR(cudaEventCreateWithFlags(&strip->edges_done, cudaEventDisableTiming));
}

static inline void free_strip(Strip *strip) {
    HANDLE_ERROR(cudaFree(strip->now));
    HANDLE_ERROR(cudaFree(strip->next));
    HANDLE_ERROR(cudaStreamDestroy(strip->interior));
    HANDLE_ERROR(cudaStreamDestroy(strip->edges));
    HANDLE_ERROR(cudaEventDestroy(strip->interior_done));
    HANDLE_ERROR(cudaEventDestroy(strip->edges_done));
}

// Steps of the next launch if `left` steps of a round are left: 12, 4 or 1, the shortest launches first.
static inline int steps_of_launch(int left) {
    return left % DEEP == 0 ? DEEP : left % 4 == 0 ? 4 : 1;
}

// Launches the kernel that computes `steps` steps of the rows from `begin` to `end`. It also reads `steps`
// rows above and below them.
static inline void launch(const Strip *strip, int steps, int begin, int end, cudaStream_t stream) {
    static const int at_once[] = {blocks_at_once<1, NoExchange>(), blocks_at_once<4, NoExchange>(),
                                  blocks_at_once<DEEP, NoExchange>()};
    if (begin >= end)
        return;
    void (*kernel)(Rows, NoExchange) = steps == DEEP ? heat_steps<DEEP, NoExchange>
                                       : steps == 4  ? heat_steps<4, NoExchange>
                                                     : heat_steps<1, NoExchange>;
    float4 *out = (float4 *)row(strip, strip->next, 0), *in = (float4 *)row(strip, strip->now, 0);
    Rows rows = {out, in, begin, end, strip->width, strip->height, (steps + 3) / 4 * 4};
    dim3 blocks = grid_of(rows, steps, at_once[steps == DEEP ? 2 : steps == 4]);
    kernel<<<blocks, dim3(32, WARPS), 0, stream>>>(rows, NoExchange());
    HANDLE_LAUNCH();
}

// The initial temperature of a cell. That of a heater has a negative sign, as heat_steps expects it.
__host__ __device__ static inline float first_temperature(size_t x, size_t y, size_t width, size_t height) {
    float heater = heater_at(x, y, width, height);
    return heater > 0 ? -heater : in_hot_corner(x, y, width, height) ? 1 : COLDEST;
}

// Writes the initial temperatures of the rows from `first` to `end`: each rank computes those of its own rows
// and of its halos.
__global__ void fill(float *cells, int first, int end, size_t width, size_t height) {
    size_t pitch = (width + 3) / 4 * 4, n = (end - first) * pitch, stride = (size_t)blockDim.x * gridDim.x;
    for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += stride)
        cells[i] = first_temperature(i % pitch, first + i / pitch, width, height);
}

// Writes the initial temperatures. The other buffer is filled with NaN, so the check finds unwritten cells.
static inline void start(const Strip *strip) {
    int first = max_of(strip->first - strip->k, 0), end = min_of(strip->end + strip->k, strip->height);
    fill<<<1024, 256>>>(row(strip, strip->now, first), first, end, strip->width, strip->height);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemset(strip->next, 0xff, buffer_bytes(strip)));
    HANDLE_ERROR(cudaDeviceSynchronize());
}

// ---------------------------------------------------------------------------------------- check

// Returns the error message of the lowest rank that has one, on all ranks; or NULL if no rank has one.
static const char *problem_of_any(const char *problem) {
    static char text[512];
    int mine = problem ? rank : ranks, lowest;
    HANDLE_MPI(MPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (lowest == ranks)
        return NULL;
    if (rank == lowest && problem != text)
        snprintf(text, sizeof(text), "%s", problem);
    HANDLE_MPI(MPI_Bcast(text, sizeof(text), MPI_CHAR, lowest, MPI_COMM_WORLD));
    return text;
}

// A sum of hash values of all cells: each depends on the index and on the bits of a cell. A sum does not
// depend on the order, so the checksum does not depend on the number of ranks.
__global__ void sum_hashes(unsigned long long *sum, Strip strip) {
    unsigned long long mine = 0, n = (unsigned long long)(strip.end - strip.first) * strip.width;
    for (unsigned long long i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) {
        int y = strip.first + i / strip.width, x = i % strip.width;
        unsigned long long hash = (unsigned long long)y * strip.width + x;
        hash = hash * 0x9e3779b97f4a7c15 + __float_as_uint(row(&strip, strip.now, y)[x]) * 0xd6e8feb86659fd93;
        hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
        mine += hash ^ hash >> 32;
    }
    atomicAdd(sum, mine);
}

static unsigned long long checksum_of_plate(const Strip *strip) {
    unsigned long long sum = 0, all;
    DeviceArray<unsigned long long> dev_sum(&sum, 1);
    sum_hashes<<<256, 256>>>(dev_sum, *strip);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(&sum, dev_sum, sizeof(sum), cudaMemcpyDeviceToHost));
    HANDLE_MPI(MPI_Allreduce(&sum, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    return all;
}

// The host computes a reference: of a small plate all cells of the strip; of a large one, patches of cells at
// the edges of the strip, of the plate and of the heaters, for at most the first 256 steps.
const int PATCH = 16, REFERENCE_STEPS = 256;

struct Patch {
    int left, right, begin, end; // columns, rows
    std::vector<int> expected;   // the bits of its cells
};
static std::vector<Patch> patches; // of this rank

// Computes the cells of a patch after `steps` steps, from the initial temperatures of all cells within that
// distance. At an edge of this area within the plate the neighbours are missing, so the temperatures there
// are wrong. In each step the wrong cells reach one cell further, and after all steps they end before the
// patch.
static void add_patch(const Strip *strip, Patch patch, int steps) {
    const int left = max_of(patch.left - steps, 0), begin = max_of(patch.begin - steps, 0);
    const size_t width = min_of(patch.right + steps, strip->width) - left;
    const size_t height = min_of(patch.end + steps, strip->height) - begin;
    std::vector<float> in(width * height), out(width * height);
    for (size_t i = 0; i < in.size(); i++)
        in[i] = first_temperature(left + i % width, begin + i / width, strip->width, strip->height);
    for (int s = 0; s < steps; s++, swap(in, out))
        reference_rows(in.data(), out.data(), width, height, 0, height);
    for (int y = patch.begin; y < patch.end; y++) {
        const int *row = (const int *)&in[(y - begin) * width + patch.left - left];
        patch.expected.insert(patch.expected.end(), row, row + (patch.right - patch.left));
    }
    patches.push_back(patch);
}

static void make_patches(const Strip *strip, int steps) {
    int rows = strip->end - strip->first, w = strip->width;
    if ((rows + 2.0 * steps) * w * steps < 1 << 26)
        return add_patch(strip, {0, w, strip->first, strip->end, {}}, steps);
    for (int y : {strip->first, strip->first + rows / 2, strip->end - PATCH})
        for (int x : {0, (int)(w * 300LL / DIM) - PATCH / 2, w - PATCH}) {
            int left = max_of(x, 0), begin = max_of(y, strip->first);
            int right = min_of(left + PATCH, w), end = min_of(begin + PATCH, strip->end);
            add_patch(strip, {left, right, begin, end, {}}, steps);
        }
}

// Compares the patches of all ranks with the reference, bit for bit. The plate has taken `steps` steps, the
// same in each call. Returns the same on all ranks.
static bool check_plate(const Strip *strip, int steps) {
    int good = true, all_good;
    if (patches.empty())
        make_patches(strip, steps);
    for (const Patch &patch : patches) {
        size_t bytes = (patch.right - patch.left) * sizeof(int);
        std::vector<int> got(patch.expected.size());
        HANDLE_ERROR(cudaMemcpy2D(got.data(), bytes, row(strip, strip->now, patch.begin) + patch.left,
                                  pitch_of(strip) * sizeof(float), bytes, patch.end - patch.begin,
                                  cudaMemcpyDeviceToHost));
        good = check_ints("temperature", got.data(), patch.expected.data(), got.size()) && good;
    }
    HANDLE_MPI(MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    return all_good;
}

static void print_checks(bool ok, int steps, unsigned long long checksum) {
    printf("Checksum of all temperatures: %016llx\n", checksum);
    printf("%s to the temperatures of the host, bit for bit, after %d steps: ", ok ? "Equal" : "Not equal",
           min_of(steps, REFERENCE_STEPS));
    printf(patches.size() == 1 ? "all cells\n" : "%zu patches of %d x %d cells of each rank\n",
           patches.size(), PATCH, PATCH);
}
