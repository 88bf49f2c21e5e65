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
 * Book:    12.2.7 (course)
 * Build:   nvcc -o transpose chapter12/transpose.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/transpose
 * Differs: the book shows a profiler's picture of such a pair, without code; docs/tools.md shows today's
 *          profilers on this one. --elements copies and fills the array by elements of 1, 4 and 16 bytes.
 *          The times of the CPU back end depend on the caches of the CPU and say nothing about a GPU.
 * Check:   --size 100 --height 70 | --elements --size 31
 */
#include <set>
#include "../common/book.h"
#include "../common/timing.h" // median_ms()

#define TILE 32 // rows and columns of a tile
#define ROWS 8  // rows of a block of threads: each thread moves TILE / ROWS = 4 elements

static size_t width = CPU_BACKEND ? 2048 : 4096; // --size
static size_t height = 0;                        // --height; 0: as --size
static bool check(const char *name, const float *in, const float *dev_out, bool transposed);
static void print_row(int kernel, float ms);

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
// Rows of the tile are `pitch` words apart. All words of a column are in one bank if pitch is 32, and in
// different banks if it is 33.
template <int pitch> __device__ void through_tile(const float *in, float *out, size_t w, size_t h) {
    __shared__ float tile[TILE][pitch];
    size_t left = (size_t)blockIdx.x * TILE, top = (size_t)blockIdx.y * TILE;
    for (int row = threadIdx.y; row < TILE; row += ROWS)
        if (left + threadIdx.x < w && top + row < h)
            tile[row][threadIdx.x] = in[(top + row) * w + left + threadIdx.x];
    __syncthreads();
    for (int column = threadIdx.y; column < TILE; column += ROWS)
        if (top + threadIdx.x < h && left + column < w)
            out[(left + column) * h + top + threadIdx.x] = tile[threadIdx.x][column];
}

__global__ void transpose_tile(const float *in, float *out, size_t w, size_t h) {
    through_tile<TILE>(in, out, w, h);
}

__global__ void transpose(const float *in, float *out, size_t w, size_t h) {
    through_tile<TILE + 1>(in, out, w, h);
}

static const struct {
    const char *name;
    void (*function)(const float *in, float *out, size_t w, size_t h);
    bool scattered; // whether a warp writes a column
    int pitch;      // of the tile; 0: none
} kernels[] = {{"copy", copy, false, 0},
               {"naive", transpose_naive, true, 0},
               {"tile", transpose_tile, false, TILE},
               {"tile, padded rows", transpose, false, TILE + 1}};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t n = width * height;
    float *in = host_array<float>(n), *dev_in, *dev_out;
    random_floats(in, n, 1);
    HANDLE_ERROR(cudaMalloc(&dev_in, n * sizeof(float)));
    HANDLE_ERROR(cudaMalloc(&dev_out, n * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, n * sizeof(float), cudaMemcpyHostToDevice));

    printf("%zu rows of %zu floats. Sectors and turns are those of a warp's access.\n", height, width);
    dim3 blocks((width + TILE - 1) / TILE, (height + TILE - 1) / TILE), threads(TILE, ROWS);
    bool ok = true;
    for (int k = 0; k < 4; k++) {
        HANDLE_ERROR(cudaMemset(dev_out, 0xff, n * sizeof(float)));
        float ms =
            median_ms([&] { kernels[k].function<<<blocks, threads>>>(dev_in, dev_out, width, height); });
        print_row(k, ms);
        ok = check(kernels[k].name, in, dev_out, k > 0) && ok;
    }

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#define LANES             32
#define BANKS             32
#define WORDS_OF_A_SECTOR 8 // 32 bytes

// The number of accesses that a bank serves one after the other: the largest number of different words that
// the lanes want from one bank. word[lane] is the word of shared memory that the lane accesses.
static int turns(const int *word) {
    std::set<int> wanted[BANKS]; // the words in each bank
    for (int lane = 0; lane < LANES; lane++)
        wanted[word[lane] % BANKS].insert(word[lane]);
    size_t most = 0;
    for (const auto &words : wanted)
        most = max_of(most, words.size());
    return most;
}

// The number of 32-byte sectors of global memory in which the words of `lanes` lanes lie. The array starts at
// the beginning of a sector, as all memory from cudaMalloc does.
static int sectors(const size_t *word, int lanes) {
    std::set<size_t> touched;
    for (int lane = 0; lane < lanes; lane++)
        touched.insert(word[lane] / WORDS_OF_A_SECTOR);
    return touched.size();
}

// One access of a full warp, the first one: where its lanes read and write, in global memory and in the tile.
static void print_row(int k, float ms) {
    size_t from[LANES], to[LANES];
    int column[LANES];
    int lanes_in = min_of(LANES, width), lanes_out = min_of(LANES, kernels[k].pitch ? height : width);
    for (int lane = 0; lane < LANES; lane++) {
        from[lane] = lane;
        to[lane] = kernels[k].scattered ? lane * height : lane;
        column[lane] = lane * kernels[k].pitch;
    }
    printf("%-18s %8.3f ms %7.1f GB/s", kernels[k].name, ms, 2e-6 * width * height * sizeof(float) / ms);
    printf("   sectors: read %2d, write %2d", sectors(from, lanes_in), sectors(to, lanes_out));
    if (kernels[k].pitch)
        printf("   turns in shared memory: %2d", turns(column));
    printf("\n");
}

// --elements. Neighbouring lanes access elements that are `apart` elements apart; blockIdx.y selects those
// between. Without an input the array is filled.
template <class T> __global__ void move(const T *in, T *out, T value, size_t n, size_t apart) {
    size_t at = (threadIdx.x + (size_t)blockIdx.x * blockDim.x) * apart + blockIdx.y;
    if (at < n)
        out[at] = in ? in[at] : value;
}

// Copies and fills `floats` floats as elements of type T.
template <class T> bool move_elements(const char *name, size_t apart, const float *in, size_t floats) {
    DeviceArray<float> dev_in(in, floats), dev_out(floats);
    size_t n = floats * sizeof(float) / sizeof(T), word[LANES];
    for (size_t lane = 0; lane < LANES; lane++)
        word[lane] = lane * apart * sizeof(T) / sizeof(float);
    T value;
    memset((void *)&value, 0x5a, sizeof(T));
    bool ok = true;
    for (bool fills : {false, true}) {
        const T *from = fills ? NULL : (const T *)+dev_in;
        HANDLE_ERROR(cudaMemset(dev_out, 0xff, floats * sizeof(float)));
        dim3 blocks((n / apart + 255) / 256, apart);
        float ms = median_ms([&] { move<<<blocks, 256>>>(from, (T *)+dev_out, value, n, apart); });
        printf("%s %-24s %8.3f ms %7.1f GB/s   sectors: %2d, bytes used of each: %2zu\n",
               fills ? "fill" : "copy", name, ms, (fills ? 1e-6 : 2e-6) * floats * sizeof(float) / ms,
               sectors(word, LANES), LANES * sizeof(T) / sectors(word, LANES));
        ok = check_ints(name, HostArray<int>((const int *)+dev_out, floats), floats,
                        [=](size_t i) { return fills ? 0x5a5a5a5a : ((const int *)in)[i]; }) &&
             ok;
    }
    return ok;
}

static int move_all_elements(void) {
    size_t floats = (width * height + 7) / 8 * 8; // whole sectors
    HostArray<float> in(floats);
    random_floats(in, floats, 1);
    printf("%zu bytes. Sectors are those of a warp's access.\n", floats * sizeof(float));
    bool ok = move_elements<char>("char", 1, in, floats);
    ok = move_elements<float>("float", 1, in, floats) && ok;
    ok = move_elements<float4>("float4", 1, in, floats) && ok;
    ok = move_elements<char>("char, 32 bytes apart", 32, in, floats) && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

void settings(int argc, char **argv) {
    bool elements = false;
    if (CPU_BACKEND) // not square, and tiles that are not full
        height = width - 11;
    configure(argc, argv, "Transposes a matrix in three ways, beside a copy.", TIMES,
              {OPTION_SIZE("size", &width, 1, 1 << 20, "elements in a row"),
               OPTION_SIZE("height", &height, 0, 1 << 20, "rows; 0: as many as elements in a row"),
               OPTION_FLAG("elements", &elements, "copies and fills by elements of 1, 4 and 16 bytes")});
    height = height ? height : width;
    if ((height + TILE - 1) / TILE > 65535) // blocks in y, on every device
        quit(EXIT_USAGE, "--height %zu: at most %d", height, 65535 * TILE);
    require_memory(3 * width * height * sizeof(float), 2 * width * height * sizeof(float));
    if (elements)
        exit(move_all_elements());
}

// Elements are moved and not computed, so all bits must be equal.
static bool check(const char *name, const float *in, const float *dev_out, bool transposed) {
    size_t n = width * height;
    HostArray<int> out((const int *)dev_out, n);
    return check_ints(name, out, n, [&](size_t i) {
        return ((const int *)in)[transposed ? i % height * width + i / height : i];
    });
}

// Task: The row-major matrix `in` has h rows of w floats. A block has TILE x ROWS threads and moves a tile of
// TILE x TILE elements: each thread moves the elements of the tile in its column, beginning with its row, in
// steps of ROWS rows. Elements beyond the edges are left out.
// copy(): out has the same rows and columns as `in`.
// transpose_naive(): out has w rows of h floats; element (row, column) of `in` becomes element (column, row)
// of out. No shared memory is used, and a warp reads a row.
// through_tile(): The same result as transpose_naive(), through a tile in shared memory that has TILE rows of
// `pitch` floats. The block reads rows of `in` into the tile, waits at a barrier that all threads reach, and
// writes rows of out, which are columns of the tile. So a warp reads a row of `in` and writes a row of out.
