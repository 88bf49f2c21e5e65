// SPDX-License-Identifier: MIT
/*
 * transpose: transposing a matrix, with scattered and with coalesced accesses
 *
 * Teaches: A transpose reads rows and writes columns, so either its reads or its writes are scattered.
 *          Here the lanes of a warp read one row, in 4 sectors of 32 bytes, but write a column, in 32
 *          sectors, of which they use 4 bytes each. Through a tile in shared memory both sides are
 *          coalesced. Then the warp reads a column of the tile, which is a bank conflict of 32 lanes,
 *          unless the rows of the tile are padded.
 * Terms:   transpose, coalesced access, sector, tile, shared memory, bank conflict, padding, effective
 *          bandwidth, profiler
 * Book:    12.2.7 (course); R 7.5 (rows and columns)
 * Build:   nvcc -o transpose chapter12/transpose.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/transpose
 * Differs: the book shows a profiler's picture of such a pair, without code; docs/tools.md shows today's
 *          profilers on this one. The times of the CPU back end depend on the caches of the CPU and
 *          say nothing about a GPU.
 * Check:   --size 100 --height 70
 */
#include "../common/book.h"

#define TILE 32 // rows and columns of a tile
#define ROWS 8  // rows of a block of threads: each thread moves TILE / ROWS = 4 elements

static size_t width = CPU_BACKEND ? 2048 : 4096; // --size
static size_t height = 0;                        // --height; 0: as --size
typedef void Kernel(const float *in, float *out, size_t w, size_t h);
static float time_kernel(Kernel *kernel, const float *dev_in, float *dev_out);
static bool check(int k, const float *in, const float *out);

// `in` has h rows of w elements. A copy is the limit for a transpose: it reads rows and writes rows.
__global__ void copy(const float *in, float *out, size_t w, size_t h) {
    size_t x = (size_t)blockIdx.x * TILE + threadIdx.x;
    for (size_t y = (size_t)blockIdx.y * TILE + threadIdx.y, end = min(h, y + TILE); y < end; y += ROWS)
        if (x < w)
            out[y * w + x] = in[y * w + x];
}

// The lanes of a warp have consecutive x: their reads, along a row, are coalesced; their writes go to 32
// different rows and are not.
__global__ void transpose_naive(const float *in, float *out, size_t w, size_t h) {
    size_t x = (size_t)blockIdx.x * TILE + threadIdx.x;
    for (size_t y = (size_t)blockIdx.y * TILE + threadIdx.y, end = min(h, y + TILE); y < end; y += ROWS)
        if (x < w)
            out[x * h + y] = in[y * w + x];
}

// The block reads rows into the tile, waits, and writes rows of the output, which are columns of the tile.
// Rows of the tile are 32 words apart, so all words of a column are in one bank.
__global__ void transpose_tile(const float *in, float *out, size_t w, size_t h) {
    __shared__ float tile[TILE][TILE];
    size_t left = (size_t)blockIdx.x * TILE, top = (size_t)blockIdx.y * TILE;
    for (int row = threadIdx.y; row < TILE; row += ROWS)
        if (left + threadIdx.x < w && top + row < h)
            tile[row][threadIdx.x] = in[(top + row) * w + left + threadIdx.x];
    __syncthreads();
    for (int column = threadIdx.y; column < TILE; column += ROWS)
        if (top + threadIdx.x < h && left + column < w)
            out[(left + column) * h + top + threadIdx.x] = tile[threadIdx.x][column];
}

// The same with one more word in each row of the tile: the words of a column are in 32 different banks.
__global__ void transpose(const float *in, float *out, size_t w, size_t h) {
    __shared__ float tile[TILE][TILE + 1];
    size_t left = (size_t)blockIdx.x * TILE, top = (size_t)blockIdx.y * TILE;
    for (int row = threadIdx.y; row < TILE; row += ROWS)
        if (left + threadIdx.x < w && top + row < h)
            tile[row][threadIdx.x] = in[(top + row) * w + left + threadIdx.x];
    __syncthreads();
    for (int column = threadIdx.y; column < TILE; column += ROWS)
        if (top + threadIdx.x < h && left + column < w)
            out[(left + column) * h + top + threadIdx.x] = tile[threadIdx.x][column];
}

// The most sectors of 32 bytes in which the floats of the lanes of a warp lie. The lanes access floats that
// are `stride` apart in global memory, lane 0 one of `rows` floats that are `step` apart, the first at the
// beginning of a sector.
static int sectors(size_t stride, size_t lanes, size_t step, size_t rows) {
    int most = 1;
    for (size_t row = 0; row < min_of<size_t>(rows, 8); row++) {
        int count = 1;
        for (size_t lane = 1; lane < min_of<size_t>(lanes, 32); lane++)
            count += (row * step + lane * stride) / 8 != (row * step + (lane - 1) * stride) / 8;
        most = max_of(most, count);
    }
    return most;
}

// The accesses that a bank serves one after the other: the largest number of lanes whose words are in one
// bank. The 32 lanes read words that are `pitch` apart in shared memory, which has 32 banks.
static int turns(int pitch) {
    int lanes[32] = {0}, most = 0; // lanes of each bank
    for (int lane = 0; lane < 32; lane++)
        lanes[lane * pitch % 32]++;
    for (int bank = 0; bank < 32; bank++)
        most = max_of(most, lanes[bank]);
    return most;
}

static const struct {
    const char *name;
    Kernel *kernel;
    bool scattered; // whether a warp writes a column
    int pitch;      // of the tile; 0: none
} kernels[] = {{"copy", copy, false, 0},
               {"naive", transpose_naive, true, 0},
               {"tile", transpose_tile, false, TILE},
               {"tile, padded rows", transpose, false, TILE + 1}};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t n = width * height, bytes = n * sizeof(float);
    float *in = (float *)malloc(bytes), *out = (float *)malloc(bytes), *dev_in, *dev_out;
    HANDLE_NULL(in && out);
    random_floats(in, n, 1);
    HANDLE_ERROR(cudaMalloc((void **)&dev_in, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_out, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, bytes, cudaMemcpyHostToDevice));

    printf("%zu rows of %zu floats. Sectors and turns are the most of a warp's access.\n", height, width);
    dim3 blocks((width + TILE - 1) / TILE, (height + TILE - 1) / TILE), threads(TILE, ROWS);
    bool ok = true;
    for (int k = 0; k < 4; k++) {
        HANDLE_ERROR(cudaMemset(dev_out, 0xff, bytes));
        kernels[k].kernel<<<blocks, threads>>>(dev_in, dev_out, width, height);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(out, dev_out, bytes, cudaMemcpyDeviceToHost));
        ok = check(k, in, out) && ok;

        // Each element is read once and written once.
        float ms = time_kernel(kernels[k].kernel, dev_in, dev_out);
        printf("%-18s %8.3f ms %7.1f GB/s", kernels[k].name, ms, 2 * bytes / ms / 1e6);
        printf("   sectors: read %2d, write %2d", sectors(1, width, width, height),
               kernels[k].scattered ? sectors(height, width, 1, height)
               : kernels[k].pitch   ? sectors(1, height, height, width)
                                    : sectors(1, width, width, height));
        if (kernels[k].pitch)
            printf("   turns in shared memory: %2d", turns(kernels[k].pitch));
        printf("\n");
    }

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    free(in);
    free(out);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/timing.h" // median_ms()

void settings(int argc, char **argv) {
    if (CPU_BACKEND) // not square, and tiles that are not full
        height = width - 11;
    configure(argc, argv, "Transposes a matrix in three ways, beside a copy.", TIMES,
              {OPTION_SIZE("size", &width, 1, 1 << 20, "elements in a row"),
               OPTION_SIZE("height", &height, 0, 1 << 20, "rows; 0: as many as elements in a row")});
    height = height ? height : width;
    if ((height + TILE - 1) / TILE > 65535) // blocks in y, on every device
        quit(EXIT_USAGE, "--height %zu: at most %d", height, 65535 * TILE);
    require_memory(3 * width * height * sizeof(float), 2 * width * height * sizeof(float));
}

static float time_kernel(Kernel *kernel, const float *dev_in, float *dev_out) {
    dim3 blocks((width + TILE - 1) / TILE, (height + TILE - 1) / TILE), threads(TILE, ROWS);
    return median_ms([&] { kernel<<<blocks, threads>>>(dev_in, dev_out, width, height); });
}

// A transposition copies elements, so all bits must be equal. turns() computes the bank conflicts from the
// pitch in the table, so the tile of the kernel must be at least as large as one with that pitch.
static bool check(int k, const float *in, const float *out) {
    cudaFuncAttributes compiled;
    HANDLE_ERROR(cudaFuncGetAttributes(&compiled, kernels[k].kernel));
    size_t bytes = TILE * kernels[k].pitch * sizeof(float);
    bool ok = check_value("the tile has its pitch", compiled.sharedSizeBytes >= bytes, 1, 0);
    if (k >= 2)
        ok = check_value("turns", turns(kernels[k].pitch), k == 2 ? 32 : 1, 0) && ok;
    auto moved = [=](size_t i) { return ((const int *)in)[k > 0 ? i % height * width + i / height : i]; };
    return check_ints(kernels[k].name, (const int *)out, width * height, moved) && ok;
}

// Task: The row-major matrix `in` has h rows of w floats. A block has TILE x ROWS threads and moves a tile of
// TILE x TILE elements: each thread moves the elements of the tile in its column, beginning with its row, in
// steps of ROWS rows. Elements beyond the edges are left out.
// copy(): out has the same rows and columns as `in`.
// transpose_naive(): out has w rows of h floats; element (row, column) of `in` becomes element (column, row)
// of out. No shared memory is used, and a warp reads a row.
// transpose_tile(): The same result as transpose_naive(), through a tile in shared memory that has TILE rows
// of TILE floats. The block reads rows of `in` into the tile, waits at a barrier that all threads reach, and
// writes rows of out, which are columns of the tile. So a warp reads a row of `in` and writes a row of out.
// transpose(): As transpose_tile(), but the rows of the tile are padded with one float.
