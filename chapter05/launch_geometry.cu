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
 * Book:    5.2.2 (course); R 7.2 (grid and block); R warps; C 2 (blockDim)
 * Build:   nvcc -o launch_geometry chapter05/launch_geometry.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/launch_geometry --grid-x 4 --grid-y 4 --block-x 3 --block-y 3
 * Differs: for thread (3,5) of block (12,8) in blocks of 16 x 16 the book counts 128 threads above it. There
 *          are 8 * 16 + 5 = 133. A size of 0, which one of the courses allows, is an error of the launch.
 * Check:   --grid-x 2 --block-x 5 --block-y 9
 */
#include "../common/book.h"

static int grid_x = 3, grid_y = 2, block_x = 4, block_y = 3; // --grid-x, --grid-y, --block-x, --block-y

// The position of a thread in the grid, as the thread itself records it.
struct Place {
    uint3 block, thread;           // the built-in variables blockIdx and threadIdx
    unsigned in_block, warp, lane; // numbers of the thread and of its warp in the block, and of its lane
};

struct Launch {
    dim3 grid, block;
};

static void print_launch(Launch l, const Place *places, size_t n);
static void print_places(const Place *places);
static bool check_places(Launch l, const Place *places, size_t n);

// Each thread stores its position at the index x + y * width + z * width * height. So x, the column, varies
// fastest, and y is the row. Matrix elements are usually written in the other order: row, column.
__global__ void record(Place *places) {
    size_t width = (size_t)gridDim.x * blockDim.x, height = (size_t)gridDim.y * blockDim.y;
    size_t x = threadIdx.x + blockIdx.x * blockDim.x;
    size_t y = threadIdx.y + blockIdx.y * blockDim.y;
    size_t z = threadIdx.z + blockIdx.z * blockDim.z;
    unsigned in_block = threadIdx.x + threadIdx.y * blockDim.x + threadIdx.z * blockDim.x * blockDim.y;
    Place place = {blockIdx, threadIdx, in_block, in_block / 32, in_block % 32};
    places[x + y * width + z * width * height] = place;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    const Launch launches[] = {
        {8, 16},                                // (8,1,1), (16,1,1)
        {dim3(48 / 16, 32 / 16), dim3(16, 16)}, // a picture of 48 x 32 pixels
        {dim3(13, 9), dim3(16, 16)},            // 208 x 144 pixels
        {1, dim3(10, 10)},
        {dim3(2, 2, 2), dim3(4, 4, 4)},
        {dim3(grid_x, grid_y), dim3(block_x, block_y)},
    };
    int right = 0; // checks that have passed
    printf("grid         block        blocks   threads of a block   threads   warps of a block   "
           "lanes of the last warp\n");
    for (int i = 0; i < 6; i++) {
        Launch l = launches[i];
        size_t n = (size_t)l.grid.x * l.grid.y * l.grid.z * l.block.x * l.block.y * l.block.z;
        Place *places = (Place *)malloc(n * sizeof(Place)), *dev_places;
        HANDLE_NULL(places);
        HANDLE_ERROR(cudaMalloc(&dev_places, n * sizeof(Place)));
        HANDLE_ERROR(cudaMemset(dev_places, 0xff, n * sizeof(Place))); // shows places that no thread writes

        record<<<l.grid, l.block>>>(dev_places);
        HANDLE_LAUNCH();

        HANDLE_ERROR(cudaMemcpy(places, dev_places, n * sizeof(Place), cudaMemcpyDeviceToHost));
        print_launch(l, places, n);
        if (i == 5)
            print_places(places);
        right += check_places(l, places, n);
        HANDLE_ERROR(cudaFree(dev_places));
        free(places);
    }
    return check_value("right rows", right, 6, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#define MOST (1 << 20) // threads of a launch

void settings(int argc, char **argv) {
    parse_options(argc, argv, "Shows how the threads of a launch are numbered and put into warps.", 0,
                  {OPTION_INT("grid-x", &grid_x, 1, 65535, "blocks of the last grid in x"),
                   OPTION_INT("grid-y", &grid_y, 1, 65535, "blocks of the last grid in y"),
                   OPTION_INT("block-x", &block_x, 1, 1024, "threads of its blocks in x"),
                   OPTION_INT("block-y", &block_y, 1, 1024, "threads of its blocks in y")});
    int threads = block_x * block_y;
    if (threads > 1024)
        quit(EXIT_USAGE, "a block has at most 1024 threads, and %d x %d are %d", block_x, block_y, threads);
    if ((double)grid_x * grid_y * threads > MOST)
        quit(EXIT_USAGE, "a launch has at most %d threads here", MOST);
    select_device();
}

// Prints a row of the table; if the grid has a block (12,8), also the position of one of its threads.
static void print_launch(Launch l, const Place *places, size_t n) {
    dim3 g = l.grid, b = l.block;
    printf("(%2u,%2u,%2u)   (%2u,%2u,%2u)   %6u %20u %9zu %18u %24u\n", g.x, g.y, g.z, b.x, b.y, b.z,
           g.x * g.y * g.z, b.x * b.y * b.z, n, places[n - 1].warp + 1, places[n - 1].lane + 1);
    for (size_t i = 0; i < n; i++)
        if (places[i].block.x == 12 && places[i].block.y == 8 && places[i].thread.x == 3 &&
            places[i].thread.y == 5)
            printf("    thread (3,5) of block (12,8) has %zu threads to its left and %zu above\n",
                   i % (g.x * b.x), i / (g.x * b.x));
}

// Prints the last launch: the number of each thread in its block, with bars and empty lines between the
// blocks.
static void print_places(const Place *places) {
    int width = grid_x * block_x, height = grid_y * block_y;
    printf("\n");
    for (int y = 0; y < height && width <= 20; y++) {
        for (int x = 0; x < width; x++)
            printf("%s%4u", x > 0 && x % block_x == 0 ? " |" : "", places[x + y * width].in_block);
        printf("%s", y % block_y == block_y - 1 ? "\n\n" : "\n");
    }
}

// Compares each stored position with the position that belongs to its index. There are as many entries as
// threads, so if all are right, each index was written by one thread.
static bool check_places(Launch l, const Place *places, size_t n) {
    dim3 g = l.grid, b = l.block;
    HostArray<Place> expected(n);
    Place *next = expected;
    for (unsigned z = 0; z < g.z * b.z; z++)
        for (unsigned y = 0; y < g.y * b.y; y++)
            for (unsigned x = 0; x < g.x * b.x; x++) {
                uint3 thread = make_uint3(x % b.x, y % b.y, z % b.z);
                unsigned in_block = (thread.z * b.y + thread.y) * b.x + thread.x, warp = in_block / 32;
                *next++ = {make_uint3(x / b.x, y / b.y, z / b.z), thread, in_block, warp,
                           in_block - 32 * warp};
            }
    return check_ints("places", (const int *)places, (const int *)+expected, n * sizeof(Place) / sizeof(int));
}

// Task: record(): Each thread stores its position in places[x + y * width + z * width * height], where x, y
// and z are the coordinates of the thread in the grid, and width and height are the size of the grid in
// threads. The members of the Place are blockIdx, threadIdx, the index of the thread in its block (x varies
// fastest, then y, then z), the number of its warp, and its lane: 32 threads in the order of this index are a
// warp.
