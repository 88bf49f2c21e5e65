// SPDX-License-Identifier: MIT
/*
 * launch_geometry: the numbers of blocks, threads, warps and lanes for launches of several shapes
 *
 * Teaches: Grid and block have up to three dimensions (a size that is left out is 1), and they decide which
 *          indices each thread has and which warp it belongs to. The linear index of a thread in its block
 *          is x + y * blockDim.x + z * blockDim.x * blockDim.y. Threads 0 to 31 are the first warp of the
 *          block, threads 32 to 63 the second; if the block size is not a multiple of 32, the last warp has
 *          fewer threads.
 * Terms:   launch, grid, block, dim3, gridDim, blockDim, blockIdx, threadIdx, thread index, warp, lane,
 *          two-dimensional grid
 * Book:    5.2.2 (course)
 * Build:   nvcc -o launch_geometry chapter05/launch_geometry.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/launch_geometry --map --grid-x 4 --grid-y 4 --block-x 3 --block-y 3
 * Differs: for thread (3,5) of block (12,8) in blocks of 16 x 16 the book counts 128 threads above it. There
 *          are 8 * 16 + 5 = 133. A size of 0, which one of the courses allows, is an error of the launch.
 *          --map draws which thread of which block has each element of a matrix.
 * Check:   --grid-x 2 --grid-z 2 --block-x 5 --block-y 3 --block-z 2
 */
#include "../common/book.h"

static int grid_x = 3, grid_y = 2, grid_z = 1;    // --grid-x, --grid-y, --grid-z
static int block_x = 4, block_y = 3, block_z = 1; // --block-x, --block-y, --block-z
static bool map = false;                          // --map

// The position of a thread in the grid, as the thread itself records it.
struct Place {
    uint3 grid, block, block_index, thread_index; // the built-in variables
    unsigned in_block;                            // number of the thread in its block
    unsigned first_of_warp;                       // number of the thread in lane 0 of the same warp
    unsigned lanes;                               // a bit for each thread of the warp
};

struct Launch {
    dim3 grid, block;
};

static void print_places(const Place *places, size_t n);
static void print_launch(const Launch &launch, const Place *places, size_t n);
static bool check_places(const Launch &launch, const Place *places, size_t n);

// Each thread stores its position at the index x + y * width + z * width * height. So x, the column, varies
// fastest, and y is the row. Matrix elements are usually written in the other order: row, column.
__global__ void record(Place *places) {
    size_t width = (size_t)gridDim.x * blockDim.x, height = (size_t)gridDim.y * blockDim.y;
    size_t x = threadIdx.x + blockIdx.x * blockDim.x;
    size_t y = threadIdx.y + blockIdx.y * blockDim.y;
    size_t z = threadIdx.z + blockIdx.z * blockDim.z;
    unsigned in_block = threadIdx.x + (threadIdx.y + threadIdx.z * blockDim.y) * blockDim.x;

    // Two warp functions show which threads are in the same warp: __shfl_sync returns the value of lane 0,
    // __ballot_sync a mask with a bit for each active lane.
    unsigned first_of_warp = __shfl_sync(0xffffffff, in_block, 0);
    unsigned lanes = __ballot_sync(0xffffffff, true);
    places[x + y * width + z * width * height] = {gridDim,  blockDim,      blockIdx, threadIdx,
                                                  in_block, first_of_warp, lanes};
}

int main(int argc, char **argv) {
    settings(argc, argv);
    const Launch launches[] = {
        {dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z)},
        {8, 16},                                // (8,1,1), (16,1,1)
        {dim3(48 / 16, 32 / 16), dim3(16, 16)}, // a picture of 48 x 32 pixels
        {dim3(13, 9), dim3(16, 16)},            // 208 x 144 pixels
        {1, dim3(10, 10)},
        {dim3(2, 2, 2), dim3(4, 4, 4)},
    };
    bool ok = true;
    for (const Launch &l : launches) {
        size_t n = (size_t)l.grid.x * l.grid.y * l.grid.z * l.block.x * l.block.y * l.block.z;
        Place *places = host_array<Place>(n), *dev_places;
        HANDLE_ERROR(cudaMalloc(&dev_places, n * sizeof(Place)));
        HANDLE_ERROR(cudaMemset(dev_places, 0xff, n * sizeof(Place))); // shows places that no thread writes

        record<<<l.grid, l.block>>>(dev_places);
        HANDLE_LAUNCH();

        HANDLE_ERROR(cudaMemcpy(places, dev_places, n * sizeof(Place), cudaMemcpyDeviceToHost));
        if (&l == &launches[0])
            print_places(places, n);
        print_launch(l, places, n);
        ok = check_places(l, places, n) && ok;

        HANDLE_ERROR(cudaFree(dev_places));
        free(places);
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#define SHOWN 100       // threads in the first table
#define MOST  (1 << 20) // threads of a launch

void settings(int argc, char **argv) {
    parse_options(argc, argv, "Shows how the threads of a launch are numbered and put into warps.", 0,
                  {OPTION_INT("grid-x", &grid_x, 1, 65535, "blocks of the grid in x"),
                   OPTION_INT("grid-y", &grid_y, 1, 65535, "blocks of the grid in y"),
                   OPTION_INT("grid-z", &grid_z, 1, 65535, "blocks of the grid in z"),
                   OPTION_INT("block-x", &block_x, 1, 1024, "threads of a block in x"),
                   OPTION_INT("block-y", &block_y, 1, 1024, "threads of a block in y"),
                   OPTION_INT("block-z", &block_z, 1, 64, "threads of a block in z"),
                   OPTION_FLAG("map", &map, "draws the first launch as a matrix: one element per thread")});
    int threads = block_x * block_y * block_z;
    if (threads > 1024)
        quit(EXIT_USAGE, "a block has at most 1024 threads, and %d x %d x %d are %d", block_x, block_y,
             block_z, threads);
    if ((double)grid_x * grid_y * grid_z * threads > MOST)
        quit(EXIT_USAGE, "a launch has at most %d threads here", MOST);
    select_device();
}

// For --map: the plane z = 0 of the first launch. Each number is that of a thread in its block; bars and
// empty lines separate the blocks.
static void print_map(const Place *places) {
    for (int y = 0; y < grid_y * block_y; y++) {
        for (int x = 0; x < grid_x * block_x; x++)
            printf("%s%4u", x > 0 && x % block_x == 0 ? " |" : "", places++->in_block);
        printf("%s", y % block_y == block_y - 1 ? "\n\n" : "\n");
    }
}

static void print_places(const Place *places, size_t n) {
    if (map)
        print_map(places);
    printf("number   block        thread       in block   warp   lane   lanes of the warp\n");
    for (size_t i = 0; i < min_of(n, SHOWN); i++) {
        const Place &p = places[i];
        printf("%6zu   (%2u,%2u,%2u)   (%2u,%2u,%2u)   %8u %6u %6u %19d\n", i, p.block_index.x,
               p.block_index.y, p.block_index.z, p.thread_index.x, p.thread_index.y, p.thread_index.z,
               p.in_block, p.first_of_warp / 32, p.in_block - p.first_of_warp, __builtin_popcount(p.lanes));
    }
    if (n > SHOWN)
        printf("... %zu more ...\n", n - SHOWN);
    printf(
        "\ngrid         block        blocks   threads of a block   threads   warps of a block   lanes of the "
        "last warp\n");
}

// Prints one row of the second table; if the grid has a block (12,8), also the position of one of its
// threads.
static void print_launch(const Launch &launch, const Place *places, size_t n) {
    const dim3 &g = launch.grid, &b = launch.block;
    const Place &last = places[n - 1];
    printf("(%2u,%2u,%2u)   (%2u,%2u,%2u)   %6u %20u %9zu %18u %24d\n", g.x, g.y, g.z, b.x, b.y, b.z,
           g.x * g.y * g.z, b.x * b.y * b.z, n, last.first_of_warp / 32 + 1, __builtin_popcount(last.lanes));
    for (size_t i = 0; i < n; i++) {
        const uint3 &block = places[i].block_index, &thread = places[i].thread_index;
        if (block.x == 12 && block.y == 8 && block.z == 0 && thread.x == 3 && thread.y == 5 && thread.z == 0)
            printf("    thread (3,5) of block (12,8) has %zu threads to its left and %zu above\n",
                   i % (g.x * b.x), i / (g.x * b.x));
    }
}

// Compares each stored position with the position that belongs to its index. There are as many entries as
// threads, so if all are right, each index was written by one thread.
static bool check_places(const Launch &launch, const Place *places, size_t n) {
    const dim3 &g = launch.grid, &b = launch.block;
    unsigned size = b.x * b.y * b.z;
    HostArray<Place> expected(n);
    Place *next = expected;
    for (unsigned z = 0; z < g.z * b.z; z++)
        for (unsigned y = 0; y < g.y * b.y; y++)
            for (unsigned x = 0; x < g.x * b.x; x++) {
                uint3 block = make_uint3(x / b.x, y / b.y, z / b.z);
                uint3 thread = make_uint3(x % b.x, y % b.y, z % b.z);
                unsigned in_block = (thread.z * b.y + thread.y) * b.x + thread.x;
                unsigned first = in_block - in_block % 32, lanes = min_of(32u, size - first);
                *next++ = {
                    g, b, block, thread, in_block, first, lanes == 32 ? 0xffffffff : (1u << lanes) - 1};
            }
    return check_ints("places", (const int *)places, (const int *)+expected, n * sizeof(Place) / sizeof(int));
}

// Task: record(): Each thread stores its position in places[x + y * width + z * width * height], where x, y
// and z are the coordinates of the thread in the grid, and width and height are the size of the grid in
// threads. The members of the Place are gridDim, blockDim, blockIdx, threadIdx, the index of the thread in
// its block (x varies fastest, then y, then z), the same index of lane 0 of its warp (from __shfl_sync), and
// a mask of the active lanes of its warp (from __ballot_sync).
