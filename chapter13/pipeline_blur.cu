// SPDX-License-Identifier: MIT
/*
 * pipeline_blur: a box filter whose tiles are copied to shared memory while it computes others
 *
 * Teaches: An asynchronous copy goes from global to shared memory without a register, and the thread
 *          that begins it goes on at once. Copies are committed in batches, and a thread waits until
 *          all but its latest batches are complete. A stage is room for a tile in shared memory. With
 *          several stages the next tiles are copied while the block computes one: that hides the latency
 *          of global memory.
 * Terms:   pipeline, asynchronous copy, shared memory, latency hiding, double buffering, tile, halo,
 *          barrier
 * Book:    12.2.5 (after the book)
 * Since:   CUDA 11.0, compute capability 8.0 (A100, GeForce RTX 3080)
 * Build:   nvcc -o pipeline_blur chapter13/pipeline_blur.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/pipeline_blur --size 8000 --strips 2
 * Differs: box() is the kernel of chapter12/npp_blur, for floats and one radius: an asynchronous copy
 *          has 4, 8 or 16 bytes. Before compute capability 8.0 the same calls copy through registers,
 *          at once, and the waits do nothing.
 * Check:   --size 150 --strips 2 | --size 7
 */
#include <cuda_pipeline.h>
#include "../common/book.h"

#define DIM    1024
#define RADIUS 2 // the mean of 5 x 5 pixels

const int WIDTH = 32, HEIGHT = 8; // of a tile, without its halo; a block has one thread for each pixel
const int ROW = WIDTH + 2 * RADIUS, PIXELS = ROW * (HEIGHT + 2 * RADIUS); // with the halo

static size_t size = DIM; // --size
static int strips = 4;    // --strips: blocks that share the tiles of a column
static bool check(const char *name, const float *out, const float *in);
static bool time_kernels(const float *in, const float *dev_in, float *dev_out, dim3 blocks, dim3 few);

// Coordinates are clamped at the edges.
__device__ const float *pixel(const float *in, int size, int x, int y) {
    return &in[min(max(x, 0), size - 1) + (size_t)min(max(y, 0), size - 1) * size];
}

__global__ void box(const float *in, float *out, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float sum = 0, side = 2 * RADIUS + 1;
    for (int j = y - RADIUS; j <= y + RADIUS; j++)
        for (int i = x - RADIUS; i <= x + RADIUS; i++)
            sum += *pixel(in, size, i, j);
    out[x + (size_t)y * size] = sum / (side * side);
}

// Computes the pixel of this thread from a tile with its halo. `row` is the number of the tile in its column.
__device__ void blur(const float *tile, float *out, int size, int row) {
    int x = threadIdx.x + blockIdx.x * WIDTH, y = threadIdx.y + row * HEIGHT;
    float sum = 0, side = 2 * RADIUS + 1;
    for (int j = 0; j < side; j++)
        for (int i = 0; i < side; i++)
            sum += tile[threadIdx.x + i + (threadIdx.y + j) * ROW];
    if (x < size && y < size)
        out[x + (size_t)y * size] = sum / (side * side);
}

// The tile in shared memory as in chapter 5: each thread loads a few pixels into registers and stores them.
// The block waits for all of them; other blocks compute meanwhile.
__global__ void box_tile(const float *in, float *out, int size) {
    __shared__ float tile[PIXELS];
    int left = blockIdx.x * WIDTH - RADIUS, top = blockIdx.y * HEIGHT - RADIUS;
    for (int i = threadIdx.x + threadIdx.y * WIDTH; i < PIXELS; i += WIDTH * HEIGHT)
        tile[i] = *pixel(in, size, left + i % ROW, top + i / ROW);
    __syncthreads();
    blur(tile, out, size, blockIdx.y);
}

// Begins the copies of a tile with its halo. With an assignment a thread would load each pixel into a
// register and wait for it before it could store it.
__device__ void fetch(float *stage, const float *in, int size, int row) {
    int left = blockIdx.x * WIDTH - RADIUS, top = row * HEIGHT - RADIUS;
    for (int i = threadIdx.x + threadIdx.y * WIDTH; i < PIXELS; i += WIDTH * HEIGHT)
        __pipeline_memcpy_async(&stage[i], pixel(in, size, left + i % ROW, top + i / ROW), sizeof(float));
}

// A block computes every gridDim.y-th tile of a column of tiles. Its tile number t is in stage t % STAGES.
template <int STAGES> __global__ void box_pipeline(const float *in, float *out, int size) {
    __shared__ float stage[STAGES][PIXELS];
    int tiles = (size + HEIGHT - 1) / HEIGHT;
    int mine = (tiles - (int)blockIdx.y + (int)gridDim.y - 1) / (int)gridDim.y; // tiles of this block
    for (int t = 0; t < STAGES - 1; t++) {
        if (t < mine)
            fetch(stage[t], in, size, blockIdx.y + t * gridDim.y);
        __pipeline_commit();
    }
    for (int t = 0; t < mine; t++) {
        int ahead = t + STAGES - 1;
        if (ahead < mine)
            fetch(stage[ahead % STAGES], in, size, blockIdx.y + ahead * gridDim.y);
        __pipeline_commit(); // even if it is empty, so that STAGES - 1 batches follow that of each tile

        // Waits until all batches of this thread are complete, except its STAGES - 1 latest ones. After the
        // barrier the copies of the other threads are complete, too.
        __pipeline_wait_prior(STAGES - 1);
        __syncthreads();

        blur(stage[t % STAGES], out, size, blockIdx.y + t * gridDim.y);
        __syncthreads(); // all threads have read this stage, which the next fetch overwrites
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = size * size * sizeof(float);
    float *in = (float *)malloc(bytes), *out = (float *)malloc(bytes), *dev_in, *dev_out;
    HANDLE_NULL(in && out);
    for (size_t i = 0; i < size * size; i++)
        in[i] = random_bits() % 256;
    HANDLE_ERROR(cudaMalloc((void **)&dev_in, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_out, bytes));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, bytes, cudaMemcpyHostToDevice));

    // Fewer blocks than tiles, so that a block has several tiles. Several blocks on a multiprocessor hide
    // latency as well: while one waits, another computes. The fewer there are, the more the stages help.
    dim3 threads(WIDTH, HEIGHT), blocks((size + WIDTH - 1) / WIDTH, (size + HEIGHT - 1) / HEIGHT);
    dim3 few(blocks.x, min_of(strips, blocks.y));
    box_pipeline<3><<<few, threads>>>(dev_in, dev_out, size);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(out, dev_out, bytes, cudaMemcpyDeviceToHost));
    bool ok = check("3 stages", out, in);

    // The kernels without a pipeline, and one stage beside three
    ok = time_kernels(in, dev_in, dev_out, blocks, few) && ok;

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    free(in);
    free(out);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/yardstick.h" // print_share()

void settings(int argc, char **argv) {
    configure(argc, argv, "Blurs a picture with tiles that are copied asynchronously.", TIMES,
              {OPTION_SIZE("size", &size, 1, 32768, "pixels a side"),
               OPTION_INT("strips", &strips, 1, 65535, "blocks that share the tiles of a column")});
    require_memory(size * size * (3 * sizeof(float) + sizeof(double)), 2 * size * size * sizeof(float));
}

// The reference first adds the columns of each mask, in whole numbers. The kernel rounds once, in the
// division: sums of 25 bytes are exact.
static bool check(const char *name, const float *out, const float *in) {
    const int radius = 2, last = (int)size - 1;
    HostArray<long> columns(size);
    return check_floats(name, out, size * size, 0x1p-24, [&](size_t pixel) {
        const int x = pixel % size, y = pixel / size;
        for (int i = 0; x == 0 && i <= last; i++) {
            columns[i] = 0;
            for (int j = y - radius; j <= y + radius; j++)
                columns[i] += in[i + std::clamp(j, 0, last) * size];
        }
        long sum = 0;
        for (int i = x - radius; i <= x + radius; i++)
            sum += columns[std::clamp(i, 0, last)];
        return (double)sum / 25;
    });
}

static bool print_time(const char *name, const float *in, const float *dev_out, float ms) {
    print_share(name, ms, 2 * size * size * sizeof(float));
    return check(name, HostArray<float>(dev_out, size * size), in);
}

static bool time_kernels(const float *in, const float *dev_in, float *dev_out, dim3 blocks, dim3 few) {
    const dim3 threads(WIDTH, HEIGHT);
    auto clear = [=] { HANDLE_ERROR(cudaMemset(dev_out, 0xff, size * size * sizeof(float))); }; // NaN
    float ms = median_ms([=] { box<<<blocks, threads>>>(dev_in, dev_out, size); }, clear);
    bool ok = print_time("box, a thread a pixel", in, dev_out, ms);
    ms = median_ms([=] { box_tile<<<blocks, threads>>>(dev_in, dev_out, size); }, clear);
    ok = print_time("box, a tile a block", in, dev_out, ms) && ok;
    ms = median_ms([=] { box_pipeline<1><<<few, threads>>>(dev_in, dev_out, size); }, clear);
    ok = print_time("pipeline of 1 stage", in, dev_out, ms) && ok;
    ms = median_ms([=] { box_pipeline<3><<<few, threads>>>(dev_in, dev_out, size); }, clear);
    return print_time("pipeline of 3 stages", in, dev_out, ms) && ok;
}

// Task: box_pipeline(): A block has WIDTH x HEIGHT threads. It computes the tiles of WIDTH x HEIGHT pixels
// with the column blockIdx.x and the rows blockIdx.y, blockIdx.y + gridDim.y, and so on; `size` need not be a
// multiple of either. Tiles with a halo of RADIUS pixels are copied by __pipeline_memcpy_async() to STAGES
// arrays in shared memory, coordinates clamped at the edges, so that the copies of the next STAGES - 1 tiles
// are under way while the block computes one with blur().
