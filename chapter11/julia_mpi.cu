// SPDX-License-Identifier: MIT
/*
 * julia_mpi: the Julia set on GPUs of different speed, with MPI and dynamic load balancing
 *
 * Teaches: The tiles of a picture take unequal times and the GPUs of a cluster may have different speeds, so
 *          ranks with equally many tiles finish at different times. Three distributions are compared:
 *          contiguous tiles, tiles in turn (round-robin), and dynamic scheduling. With dynamic scheduling
 *          rank 0 holds a counter, from which a rank that has finished a tile takes the number of the next
 *          tile. MPI_Fetch_and_op reads and increments it atomically, as atomicAdd does in device memory.
 * Terms:   load balancing, static scheduling, dynamic scheduling, round-robin, one-sided communication,
 *          MPI window, rank, Julia set
 * Book:    11.5 (after the book)
 * Build:   nvcc -o julia_mpi chapter11/julia_mpi.cu common/lib/[a-z]*.c -ccbin mpicxx
 * Run:     mpirun -np 2 ./bin/chapter11/julia_mpi --slower 4 --output julia_mpi.png
 * Needs:   libs=mpi
 * Check:   --size 61 --tile 21 --iterations 8 --slower 2
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "ranks.h" // rank, ranks, HANDLE_MPI

// What the picture shows
struct View {
    size_t size;      // pixels a side
    float scale;      // the picture shows -scale to scale on both axes
    float real, imag; // c
    int iterations;   // after which a point counts as part of the set
};

static View view = {1000, 1.5f, -0.8f, 0.156f, 200}; // --size and --iterations change it
static int side = 50, slower = 1;                    // --tile: pixels a side; --slower
static int tiles, tiles_per_row;                     // of the picture
static uchar4 *dev_tile, *picture; // picture: this rank's tiles; after MPI_Reduce, all on rank 0
static int *rank_of_tile;          // the rank that drew each tile, or -1; at the end, on rank 0, of all tiles
static int *steps;                 // on rank 0: of every pixel, for the check
static double allowed;             // on rank 0: the fraction of the pixels that may differ from the reference
static MPI_Win window;             // makes the counter in the memory of rank 0 accessible to all ranks

static bool try_distribution(const char *name, void (*draw_tiles)(void));

// Dark colors, different for neighbouring ranks. Red is for the points of the set.
static uchar4 color_of_rank(int rank) {
    return make_uchar4(0, rank * 80 % 200, rank * 120 % 220, 255);
}

// Draws a tile, whose first pixel is (left, top). The color of the background shows which rank has drawn it.
__global__ void kernel(uchar4 *ptr, View view, int left, int top, int side, uchar4 background) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= side || y >= side)
        return;
    float half = view.size / 2.0f;
    float r = view.scale * (half - (left + x)) / half, i = view.scale * (half - (top + y)) / half;
    int step = 0;
    for (; step < view.iterations; step++) { // a = a * a + c, with a = (r, i)
        float old = r;
        r = r * r - i * i + view.real;
        i = i * old + old * i + view.imag;
        if (r * r + i * i > 1000)
            break;
    }
    ptr[x + y * side] = step == view.iterations ? make_uchar4(255, 0, 0, 255) : background;
}

// The last rank draws each tile as many times as --slower says, as if its GPU were slower by this factor.
static void draw(int tile) {
    int left = tile % tiles_per_row * side, top = tile / tiles_per_row * side;
    int width = min_of(side, view.size - left), height = min_of(side, view.size - top);
    dim3 threads(8, 16), blocks((side + 7) / 8, (side + 15) / 16);
    for (int times = rank == ranks - 1 ? slower : 1; times > 0; times--)
        kernel<<<blocks, threads>>>(dev_tile, view, left, top, side, color_of_rank(rank));
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy2D(picture + left + top * view.size, view.size * sizeof(uchar4), dev_tile,
                              side * sizeof(uchar4), width * sizeof(uchar4), height, cudaMemcpyDeviceToHost));
    rank_of_tile[tile] = rank;
}

// Static scheduling, block distribution: each rank draws an equal number of contiguous tiles.
static void contiguous(void) {
    for (long i = (long)tiles * rank / ranks; i < (long)tiles * (rank + 1) / ranks; i++)
        draw(i);
}

// Static scheduling, cyclic distribution: neighbouring tiles, whose times are similar, go to different ranks.
static void round_robin(void) {
    for (int i = rank; i < tiles; i += ranks)
        draw(i);
}

// Dynamic scheduling: a rank takes the next tile when it has finished one, so a slower rank takes fewer.
// The call is one-sided: rank 0 does not call a function to answer it. MPI_Win_flush waits for the result.
static int next_tile(void) {
    int one = 1, next;
    HANDLE_MPI(MPI_Fetch_and_op(&one, &next, MPI_INT, 0, 0, MPI_SUM, window));
    HANDLE_MPI(MPI_Win_flush(0, window));
    return next;
}

static void dynamic(void) {
    int tile = next_tile();
    while (tile < tiles) {
        draw(tile);
        tile = next_tile();
    }
}

int main(int argc, char **argv) {
    settings(argc, argv); // before MPI, so that --help works where MPI cannot start
    HANDLE_MPI(MPI_Init(&argc, &argv));
    HANDLE_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    HANDLE_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    settings_of_ranks();

    CPUBitmap bitmap(view.size, view.size);
    picture = (uchar4 *)bitmap.get_ptr();
    rank_of_tile = (int *)malloc(tiles * sizeof(int));
    HANDLE_NULL(rank_of_tile);
    HANDLE_ERROR(cudaMalloc(&dev_tile, side * side * sizeof(uchar4)));
    int *counter; // rank 0 has it; the windows of the other ranks are empty
    HANDLE_MPI(MPI_Win_allocate(rank == 0 ? sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                                &counter, &window));
    HANDLE_MPI(MPI_Win_lock_all(0, window)); // one-sided operations are allowed from here on

    bool ok = try_distribution("contiguous", contiguous);
    ok = try_distribution("round-robin", round_robin) && ok;
    ok = try_distribution("dynamic", dynamic) && ok;

    if (rank == 0)
        bitmap.display_and_exit();
    HANDLE_MPI(MPI_Win_unlock_all(window));
    HANDLE_MPI(MPI_Win_free(&window));
    HANDLE_ERROR(cudaFree(dev_tile));
    free(rank_of_tile);
    free(steps);
    HANDLE_MPI(MPI_Finalize());
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/julia.h" // reference_steps()

void settings(int argc, char **argv) {
    options_of_ranks(
        argc, argv, "Draws a Julia set on one GPU per MPI process.", PICTURE | TIMES,
        {OPTION_SIZE("size", &view.size, 1, 32768, "pixels a side"),
         OPTION_INT("iterations", &view.iterations, 1, 1000000, "iterations for a point of the set"),
         OPTION_INT("tile", &side, 1, 8192, "pixels a side of a tile"),
         OPTION_INT("slower", &slower, 1, 1000, "the last rank takes as many times as long for a tile"),
         OPTION_EXCLUSIVE});
}

static void settings_of_ranks(void) {
    share_options();
    select_device_of_rank();
    side = min_of(side, view.size);
    tiles_per_row = (view.size + side - 1) / side;
    tiles = tiles_per_row * tiles_per_row;
    size_t bytes = view.size * view.size * sizeof(uchar4);
    require_memory_for_ranks(3 * bytes + tiles * sizeof(int), side * side * sizeof(uchar4));
    if (rank == 0) {
        steps = host_array<int>(view.size * view.size);
        allowed = reference_steps(view, false, steps);
        printf("%d tiles, %d rank%s", tiles, ranks, ranks == 1 ? "" : "s");
        printf(slower == 1 ? "\n" : ", the last one %d times slower\n", slower);
        printf("distribution       time   load balance   tiles of each rank\n");
    }
}

// Draws the tiles of this rank, and returns how many milliseconds that took.
static double draw_part(void (*draw_tiles)(void)) {
    int zero = 0;
    memset(picture, 0, view.size * view.size * sizeof(uchar4));
    // A pixel that no thread writes keeps alpha 0; the check expects alpha 255 everywhere.
    HANDLE_ERROR(cudaMemset(dev_tile, 0, side * side * sizeof(uchar4)));
    std::fill(rank_of_tile, rank_of_tile + tiles, -1);
    if (rank == 0) { // sets the counter to 0
        HANDLE_MPI(MPI_Accumulate(&zero, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, window));
        HANDLE_MPI(MPI_Win_flush(0, window));
    }
    HANDLE_MPI(MPI_Barrier(MPI_COMM_WORLD));
    double ms = MPI_Wtime() * -1e3;
    draw_tiles();
    ms += MPI_Wtime() * 1e3;
    HANDLE_MPI(MPI_Barrier(MPI_COMM_WORLD));
    return ms;
}

// Collects the picture on rank 0, and checks there that the distribution assigns every tile to a rank, to the
// right one if it is static, and that the tile has the color of that rank. With dynamic scheduling every rank
// takes one number too many, and ends. Returns the same on all ranks.
static bool gather(const char *name, void (*draw_tiles)(void)) {
    int ok = true;
    size_t count = view.size * view.size;
    // Pixels and tiles that a rank has not drawn are 0 and -1, so bitwise or and maximum combine all ranks.
    const void *pixels = rank == 0 ? MPI_IN_PLACE : picture, *drawn = rank == 0 ? MPI_IN_PLACE : rank_of_tile;
    HANDLE_MPI(MPI_Reduce(pixels, picture, count, MPI_UINT32_T, MPI_BOR, 0, MPI_COMM_WORLD));
    HANDLE_MPI(MPI_Reduce(drawn, rank_of_tile, tiles, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD));
    if (rank == 0) {
        HostArray<uchar4> expected(count);
        int wrong = 0;
        for (long i = 0; i < tiles; i++)
            wrong += draw_tiles == contiguous    ? rank_of_tile[i] != ((i + 1) * ranks - 1) / tiles
                     : draw_tiles == round_robin ? rank_of_tile[i] != i % ranks
                                                 : rank_of_tile[i] < 0;
        std::string of = std::string(name) + ": ";
        int taken = draw_tiles == dynamic ? tiles + ranks : 0;
        ok = check_value((of + "tiles of a wrong rank or of none").c_str(), wrong, 0, 0);
        ok = check_value((of + "numbers taken from the counter").c_str(), next_tile(), taken, 0) && ok;
        for (size_t i = 0; i < count; i++) {
            int drawn_by = rank_of_tile[i % view.size / side + i / view.size / side * tiles_per_row];
            expected[i] = steps[i] == view.iterations ? make_uchar4(255, 0, 0, 255) : color_of_rank(drawn_by);
        }
        ok = check_pixels(name, (unsigned char *)picture, (unsigned char *)+expected, count, allowed) && ok;
    }
    HANDLE_MPI(MPI_Bcast(&ok, 1, MPI_INT, 0, MPI_COMM_WORLD));
    return ok;
}

// Runs a distribution twice, first to warm up, and prints its row: the time of the slowest rank, and the load
// balance, which is the mean time of the ranks divided by the longest. Returns the same on all ranks.
static bool try_distribution(const char *name, void (*draw_tiles)(void)) {
    double longest, sum;
    draw_part(draw_tiles);
    double ms = draw_part(draw_tiles);
    HANDLE_MPI(MPI_Reduce(&ms, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    HANDLE_MPI(MPI_Reduce(&ms, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD));
    bool ok = gather(name, draw_tiles);
    if (rank == 0) {
        printf("%-12s %7.3f ms          %3.0f %%  ", name, longest, 100 * sum / ranks / longest);
        for (int r = 0; r < ranks; r++)
            printf(" %td", std::count(rank_of_tile, rank_of_tile + tiles, r));
        printf("\n");
    }
    return ok;
}

// Task: kernel(): One thread per pixel of a tile of side x side pixels; threads beyond the tile do nothing.
// Pixel (x, y) of the tile is ptr[x + y * side], and pixel (left + x, top + y) of the picture. As in
// chapter04/julia_gpu, with c = (view.real, view.imag), it is red, (255, 0, 0, 255), if the squared magnitude
// of a stays at most 1000 in view.iterations steps of a = a * a + c, otherwise `background`.
// contiguous(): Block distribution: rank r draws the tiles from number tiles * r / ranks up to the one before
// the first tile of rank r + 1. draw(number) draws a tile.
// round_robin(): Cyclic distribution: the tiles are assigned to the ranks in turn, tile 0 to rank 0.
// next_tile(): Add 1 to the counter at offset 0 of `window` on rank 0 by MPI_Fetch_and_op, wait for the
// result with MPI_Win_flush, and return the old value. Each call is in HANDLE_MPI().
// dynamic(): Dynamic scheduling: draw the tiles that next_tile() returns, as long as they are below `tiles`.
