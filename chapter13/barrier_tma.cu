// SPDX-License-Identifier: MIT
/*
 * barrier_tma: a box filter whose tiles arrive at a barrier, copied by all threads or by one bulk copy
 *
 * Teaches: A barrier in shared memory splits waiting in two: a thread arrives, gets a token, does other work,
 *          and waits with the token. It also waits for asynchronous copies, which arrive as threads do. From
 *          compute capability 9.0 on, one thread can start the copy of a whole tile: the tensor memory
 *          accelerator (TMA) computes the addresses, as a tensor map describes the array.
 * Terms:   arrival token, tensor map, bulk copy, asynchronous copy, barrier, shared memory, tile, halo
 * Book:    12.2.5 (after the book)
 * Since:   barrier: CUDA 11.1, compute capability 7.0; tensor map: CUDA 12.5 as written here, 9.0 (H100)
 * After:   chapter13/pipeline_blur
 * Build:   nvcc -o barrier_tma chapter13/barrier_tma.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/barrier_tma --size 8192
 * Differs: the filter of chapter13/pipeline_blur. A device before 9.0 leaves the bulk copies out. The CPU
 *          back end carries out all copies of a barrier when its phase ends.
 * Check:   --size 150 | --size 7
 */
#include <cuda.h> // CUtensorMap; without -lcuda, since main() asks for the one function
#include <cuda/barrier>
#include "../common/book.h"
typedef cuda::barrier<cuda::thread_scope_block> Barrier;
namespace cde = cuda::device::experimental;

#define DIM    1024
#define RADIUS 2 // the mean of 5 x 5 pixels

const int WIDTH = 32, HEIGHT = 8; // of a tile; a block has one thread for each of its pixels
const int STRIPS = 4;             // blocks that share the tiles of a column
const int COLUMNS = WIDTH + 2 * RADIUS, ROWS = HEIGHT + 2 * RADIUS; // with its halo

struct alignas(128) Tile { // a bulk copy begins at a multiple of 128 bytes
    float pixel[ROWS][COLUMNS];
};

static size_t size = DIM; // --size
static float *random_picture(void);
static bool has_bulk_copies(void);
static bool check(const char *name, const float *in, float *dev_out);
static void time_kernels(const float *dev_in, size_t pitch, CUtensorMap map, float *dev_out, dim3 blocks);

__device__ int inside(int i, int size) { // coordinates are clamped at the edges
    return min(max(i, 0), size - 1);
}

// Begins the copies of a tile, arrives at the barrier of the tile, and returns the token for the wait.
template <bool BULK>
__device__ Barrier::arrival_token fetch(Tile *tile, const float *in, size_t pitch, const CUtensorMap *map,
                                        int size, int row, Barrier &copied) {
    int left = blockIdx.x * WIDTH - RADIUS, top = row * HEIGHT - RADIUS;
    int thread = threadIdx.x + threadIdx.y * WIDTH;
    for (int i = thread; !BULK && i < ROWS * COLUMNS; i += WIDTH * HEIGHT) { // each thread copies pixels
        int x = inside(left + i % COLUMNS, size), y = inside(top + i / COLUMNS, size);
        cuda::memcpy_async(&tile->pixel[0][i], &in[x + y * pitch], sizeof(float), copied);
    }
#ifdef __cccl_lib_experimental_ctk12_cp_async_exposure // the header's word for compute capability 9.0
    // One thread begins the copy of all, and says how many bytes arrive at the barrier beside the threads.
    // Where the tile lies outside of the array it gets zeros.
    if (BULK && thread == 0) {
        cde::cp_async_bulk_tensor_2d_global_to_shared(tile, map, left, top, copied);
        return cuda::device::barrier_arrive_tx(copied, 1, sizeof(tile->pixel));
    }
#endif
    return copied.arrive();
}

// A block computes every gridDim.y-th tile of a column of tiles. While it computes one, the next is copied.
template <bool BULK>
__global__ void box(const float *in, size_t pitch, const __grid_constant__ CUtensorMap map, float *out,
                    int size) {
    __shared__ Tile tiles[2];
#pragma nv_diag_suppress static_var_with_dynamic_init // init() takes the place of the constructor
    __shared__ Barrier copied[2];
    int tiles_of_column = (size + HEIGHT - 1) / HEIGHT, step = gridDim.y, now = 0;
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        init(&copied[0], WIDTH * HEIGHT); // arrivals that end a phase
        init(&copied[1], WIDTH * HEIGHT);
#ifdef __cccl_lib_experimental_ctk12_cp_async_exposure
        cde::fence_proxy_async_shared_cta(); // so that bulk copies find the barriers initialized
#endif
    }
    __syncthreads();
    Barrier::arrival_token token[2];
    token[0] = fetch<BULK>(&tiles[0], in, pitch, &map, size, blockIdx.y, copied[0]);
    for (int row = blockIdx.y; row < tiles_of_column; row += step, now ^= 1) {
        if (row + step < tiles_of_column)
            token[now ^ 1] = fetch<BULK>(&tiles[now ^ 1], in, pitch, &map, size, row + step, copied[now ^ 1]);
        copied[now].wait(std::move(token[now])); // all threads have arrived, and all bytes

        int left = blockIdx.x * WIDTH - RADIUS, top = row * HEIGHT - RADIUS;
        int x = left + RADIUS + threadIdx.x, y = top + RADIUS + threadIdx.y;
        float sum = 0, side = 2 * RADIUS + 1;
        for (int j = y - RADIUS; j <= y + RADIUS; j++)
            for (int i = x - RADIUS; i <= x + RADIUS; i++)
                sum += tiles[now].pixel[inside(j, size) - top][inside(i, size) - left];
        if (x < size && y < size)
            out[x + (size_t)y * size] = sum / (side * side);
        __syncthreads(); // all have read this tile: the next fetch overwrites it
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t row = size * sizeof(float), pitch; // rows of a tensor map begin at multiples of 16 bytes
    float *in = random_picture(), *dev_in, *dev_out;
    HANDLE_ERROR(cudaMallocPitch(&dev_in, &pitch, row, size));
    HANDLE_ERROR(cudaMalloc(&dev_out, row * size));
    HANDLE_ERROR(cudaMemcpy2D(dev_in, pitch, in, row, row, size, cudaMemcpyHostToDevice));

    dim3 threads(WIDTH, HEIGHT),
        blocks((size + WIDTH - 1) / WIDTH, min_of(STRIPS, (size + HEIGHT - 1) / HEIGHT));
    CUtensorMap map = {};
    box<false><<<blocks, threads>>>(dev_in, pitch / sizeof(float), map, dev_out, size);
    HANDLE_LAUNCH();
    bool ok = check("Copies by all threads", in, dev_out);

    if (has_bulk_copies()) {
        // The map describes the array and the box that one copy moves, x first. It is an argument of the
        // kernel. A function of the driver encodes it.
        decltype(&cuTensorMapEncodeTiled) encode;
        cuuint64_t dim[] = {size, size}, stride[] = {pitch};
        cuuint32_t box_dim[] = {COLUMNS, ROWS}, step[] = {1, 1};
        HANDLE_ERROR(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, 0));
        HANDLE_ERROR((cudaError_t)encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, dev_in, dim, stride,
                                         box_dim, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                         CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
        box<true><<<blocks, threads>>>(dev_in, pitch / sizeof(float), map, dev_out, size);
        HANDLE_LAUNCH();
        ok = check("Bulk copies", in, dev_out) && ok;
    }
    time_kernels(dev_in, pitch / sizeof(float), map, dev_out, blocks);

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/yardstick.h" // print_share()

void settings(int argc, char **argv) {
    configure(argc, argv, "Blurs a picture with tiles that arrive at a barrier.", TIMES,
              {OPTION_SIZE("size", &size, 1, 32768, "pixels a side")});
    require_memory(size * size * 2 * sizeof(float), 3 * size * size * sizeof(float));
}

// Whole numbers, so that sums are exact
static float *random_picture(void) {
    float *in = (float *)malloc(size * size * sizeof(float));
    HANDLE_NULL(in);
    for (size_t i = 0; i < size * size; i++)
        in[i] = random_bits() % 256;
    return in;
}

// The kernel that runs here must have been compiled with bulk copies, too.
static bool has_bulk_copies(void) {
    cudaFuncAttributes compiled;
    HANDLE_ERROR(cudaFuncGetAttributes(&compiled, box<true>));
    int major = device_attribute(cudaDevAttrComputeCapabilityMajor);
    return CPU_BACKEND || (major >= 9 && compiled.ptxVersion >= 90);
}

// Sums of 25 bytes are exact in float, so the kernel rounds once, in the division.
static bool check(const char *name, const float *in, float *dev_out) {
    HostArray<float> out(dev_out, size * size);
    HANDLE_ERROR(cudaMemset(dev_out, 0xff, size * size * sizeof(float))); // NaN
    return check_floats(name, out, size * size, 0x1p-24, [&](size_t pixel) {
        const int x = pixel % size, y = pixel / size, last = (int)size - 1;
        float sum = 0;
        for (int i = 0; i < 25; i++)
            sum += in[std::clamp(x + i % 5 - 2, 0, last) + std::clamp(y + i / 5 - 2, 0, last) * size];
        return sum / 25.0;
    });
}

static void time_kernels(const float *dev_in, size_t pitch, CUtensorMap map, float *dev_out, dim3 blocks) {
    const dim3 threads(WIDTH, HEIGHT);
    const double bytes = 2.0 * size * size * sizeof(float);
    float ms = median_ms([=] { box<false><<<blocks, threads>>>(dev_in, pitch, map, dev_out, size); });
    print_share("Copies by all threads", ms, bytes);
    if (has_bulk_copies()) {
        ms = median_ms([=] { box<true><<<blocks, threads>>>(dev_in, pitch, map, dev_out, size); });
        print_share("Bulk copies", ms, bytes);
    }
    printf("Pipelines:  ./bin/chapter13/pipeline_blur --size %zu\n", size);
}

// Task: none: a part of its kernel is compiled for compute capability 9.0 only. By hand: take out the wait,
// or the last barrier, and see which pixels are wrong; and expect too few bytes.
