// SPDX-License-Identifier: MIT
// For heat_mpi: the initial temperatures and, below the line, the reference that the result is compared with.
#ifndef CHAPTER11_HEAT_REFERENCE_H
#define CHAPTER11_HEAT_REFERENCE_H

#include <vector>
#include "../common/book.h"
#include "../common/check.h"
#include "../common/proofs/heat.h" // heater_at, in_hot_corner, SPEED
#include "heat_files.h"            // checksum_of_plate
#include "heat_transports.h"       // Strip

// The initial temperature of a cell. That of a heater has a negative sign, as heat_steps expects it.
__host__ __device__ static float first_temperature(size_t x, size_t y, size_t width, size_t height) {
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

// ---------------------------------------------------------------------------------------- proof

// The host computes a reference: of a small plate all cells of the strip; of a large one, patches of cells at
// the edges of the strip, of the plate and of the heaters, for at most the first 256 steps.
const int PATCH = 16, REFERENCE_STEPS = 256;

struct Patch {
    int left, right, begin, end; // columns, rows
    std::vector<int> expected;   // the bits of its cells
};

// Computes the cells of a patch after `steps` steps, from the initial temperatures of all cells within that
// distance. It adds (upper + right) + (left + lower), in the order of the kernel, so the bits are the same.
static void make_reference(const Strip &strip, Patch &patch, int steps) {
    auto grown = [&](int by) {
        return Patch{max_of(patch.left - by, 0),
                     min_of(patch.right + by, strip.width),
                     max_of(patch.begin - by, 0),
                     min_of(patch.end + by, strip.height),
                     {}};
    };
    Patch all = grown(steps);
    size_t pitch = all.right - all.left;
    std::vector<float> in((all.end - all.begin) * pitch), out(in.size());
    auto at = [&](int x, int y) {
        return (min_of(max_of(y, 0), strip.height - 1) - all.begin) * pitch +
               (min_of(max_of(x, 0), strip.width - 1) - all.left);
    };
    for (int y = all.begin; y < all.end; y++)
        for (int x = all.left; x < all.right; x++)
            in[at(x, y)] = first_temperature(x, y, strip.width, strip.height);
    for (int left = steps - 1; left >= 0; left--, swap(in, out)) {
        Patch now = grown(left);
        for (int y = now.begin; y < now.end; y++)
            for (int x = now.left; x < now.right; x++) {
                float cell = in[at(x, y)], up = fabsf(in[at(x, y - 1)]), down = fabsf(in[at(x, y + 1)]);
                float mean = SPEED * ((up + fabsf(in[at(x + 1, y)])) + (fabsf(in[at(x - 1, y)]) + down));
                out[at(x, y)] = cell < 0 ? cell : mean;
            }
    }
    for (int y = patch.begin; y < patch.end; y++)
        patch.expected.insert(patch.expected.end(), (int *)&in[at(patch.left, y)],
                              (int *)&in[at(patch.right - 1, y)] + 1);
}

static std::vector<Patch> patches; // of this rank

static void make_patches(const Strip &strip, int steps) {
    int rows = strip.end - strip.first, w = strip.width;
    auto add = [&](int x, int y) {
        x = max_of(x, 0);
        y = max_of(y, strip.first);
        patches.push_back({x, min_of(x + PATCH, w), y, min_of(y + PATCH, strip.end), {}});
    };
    if ((rows + 2.0 * steps) * w * steps < 1 << 26)
        patches.push_back({0, w, strip.first, strip.end, {}});
    else
        for (int y : {strip.first, strip.first + rows / 2, strip.end - PATCH})
            for (int x : {0, (int)(w * 300LL / DIM) - PATCH / 2, w - PATCH})
                add(x, y);
    for (Patch &patch : patches)
        make_reference(strip, patch, steps);
}

// Compares the patches of all ranks with the reference, bit for bit. Returns the same on all ranks.
static bool check(const Strip &strip) {
    int good = true, all_good;
    for (const Patch &patch : patches) {
        size_t bytes = (patch.right - patch.left) * sizeof(int);
        std::vector<int> got(patch.expected.size());
        HANDLE_ERROR(cudaMemcpy2D(got.data(), bytes, row(strip, strip.now, patch.begin) + patch.left,
                                  pitch_of(strip) * sizeof(float), bytes, patch.end - patch.begin,
                                  cudaMemcpyDeviceToHost));
        good = check_ints("temperature", got.data(), patch.expected.data(), got.size()) && good;
    }
    HANDLE_MPI(MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    return all_good;
}

static unsigned long long checksum; // of all temperatures; the same after every transport

// Compares the checksum with that of the first transport. Returns the same on all ranks.
static bool check_checksum(const Strip &strip, const Transport &transport) {
    unsigned long long found = checksum_of_plate(strip);
    checksum = checksum ? checksum : found;
    if (rank == 0 && found != checksum)
        fprintf(stderr, "%s: the temperatures differ from those of the first transport\n", transport.name);
    return found == checksum;
}

static void print_checks(bool ok, int steps) {
    bool all = patches.size() == 1;
    printf("Checksum of all temperatures: %016llx\n", checksum);
    printf("%s to the temperatures of the host, bit for bit, after %d steps: ", ok ? "Equal" : "Not equal",
           min_of(steps, REFERENCE_STEPS));
    printf(all ? "all cells\n" : "%zu patches of %d x %d cells of each rank\n", patches.size(), PATCH, PATCH);
}

#endif
