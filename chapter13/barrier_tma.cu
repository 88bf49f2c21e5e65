// SPDX-License-Identifier: MIT
/*
 * barrier_tma: a box filter whose tiles are copied by the hardware, and barriers that wait for the bytes
 *
 * Teaches: A barrier object has two calls in place of __syncthreads(): a thread arrives and gets a token, and
 *          waits with the token later. The wait ends when all threads have arrived and the asynchronous
 *          copies of the barrier are complete. Where the device has the Tensor Memory Accelerator (TMA), one
 *          thread copies a whole tile by one instruction: a tensor map, which the host encodes, says where
 *          the rows of the array lie and how large a tile is. Then the barrier also counts the bytes that
 *          have been copied.
 * Terms:   Tensor Memory Accelerator, asynchronous copy, barrier, tile, halo, shared memory
 * Book:    12.2.5 (after the book)
 * Since:   CUDA 12.5, compute capability 9.0 (H100)
 * After:   chapter13/pipeline_blur
 * Build:   nvcc -o barrier_tma chapter13/barrier_tma.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/barrier_tma --size 8000
 * Differs: the filter of chapter13/pipeline_blur; here the picture has a margin, so that each tile has all of
 *          its halo.
 * Needs:   sm=90
 * Check:   --size 150 | --size 7
 */
#include <cuda.h>
#include <cuda/barrier>
#include "../common/book.h"
#include "../common/timing.h" // median_ms()

#pragma nv_diag_suppress static_var_with_dynamic_init // no warning for barriers in shared memory

// A block computes a tile of WIDTH x HEIGHT pixels, one in each thread: the means of squares of 5 x 5 pixels.
// With its halo of RADIUS pixels on each side a tile has ROWS x ROW pixels.
const int WIDTH = 32, HEIGHT = 8, RADIUS = 2, ROW = WIDTH + 2 * RADIUS, ROWS = HEIGHT + 2 * RADIUS;

// A tile in shared memory. A row has a multiple of 16 bytes, and the tile begins at a multiple of 128 bytes:
// the Tensor Memory Accelerator needs both.
struct alignas(128) Tile {
    float pixel[ROWS][ROW];
};

typedef cuda::barrier<cuda::thread_scope_block> barrier;
namespace cde = cuda::device::experimental;

static size_t size = 1024; // --size
static bool check(const char *name, float ms, float *dev_out, const float *in, size_t pitch);

// Computes the pixel of this thread from the tile. tile.pixel[0][0] is the upper left corner of the halo.
__device__ void box(const Tile &tile, float *out, int size) {
    int x = threadIdx.x + blockIdx.x * WIDTH, y = threadIdx.y + blockIdx.y * HEIGHT;
    float sum = 0, side = 2 * RADIUS + 1;
    for (int j = 0; j < side; j++)
        for (int i = 0; i < side; i++)
            sum += tile.pixel[threadIdx.y + j][threadIdx.x + i];
    if (x < size && y < size)
        out[x + (size_t)y * size] = sum / (side * side);
}

// Each of the first ROWS threads begins the asynchronous copy of a row of the tile.
__global__ void box_rows(const float *in, size_t pitch, float *out, int size) {
    __shared__ Tile tile;
    __shared__ barrier copied;
    unsigned t = threadIdx.x + threadIdx.y * WIDTH;
    if (t == 0)
        init(&copied, WIDTH * HEIGHT); // the number of threads that arrive
    __syncthreads();

    if (t < ROWS)
        cuda::memcpy_async(tile.pixel[t], &in[blockIdx.x * WIDTH + (blockIdx.y * HEIGHT + t) * pitch],
                           cuda::aligned_size_t<16>(sizeof(tile.pixel[t])), copied);
    barrier::arrival_token token = copied.arrive();
    // Here a thread could do something else that does not need the tile.
    copied.wait(std::move(token)); // until all threads have arrived and the copies are complete
    box(tile, out, size);
}

// The same with one copy of the whole tile, by a tensor map. __grid_constant__: the instruction needs the
// address of the parameter itself, and not that of a copy in local memory. Devices before compute
// capability 9.0 have no tensor maps: for them this kernel is empty, and it is not launched.
__global__ void box_map(const __grid_constant__ CUtensorMap map, float *out, int size) {
#ifdef __cccl_lib_local_barrier_arrive_tx // by <cuda/barrier>, for compute capability 9.0 and later
    __shared__ Tile tile;
    __shared__ barrier copied;
    bool first = threadIdx.x + threadIdx.y == 0;
    if (first) {
        init(&copied, WIDTH * HEIGHT);
        cde::fence_proxy_async_shared_cta(); // so that the accelerator sees the result of init()
    }
    __syncthreads();

    if (first) { // one thread begins the copy, and adds its bytes to those that the barrier waits for
        cde::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, blockIdx.x * WIDTH, blockIdx.y * HEIGHT,
                                                      copied);
        cuda::device::barrier_expect_tx(copied, sizeof(tile.pixel));
    }
    barrier::arrival_token token = copied.arrive();
    copied.wait(std::move(token)); // until all threads and all bytes have arrived
    box(tile, out, size);
#endif
}

// Encodes the tensor map of an array of rows x pitch floats. cuTensorMapEncodeTiled is a function of the
// driver API. Its address comes from the runtime, so the program is not linked with the library of the
// driver.
static CUtensorMap tensor_map(float *dev_in, size_t pitch, size_t rows) {
    decltype(&cuTensorMapEncodeTiled) encode;
    HANDLE_ERROR(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000,
                                                  cudaEnableDefault, NULL));
    CUtensorMap map;
    cuuint64_t sizes[] = {pitch, rows}, strides[] = {pitch * sizeof(float)}; // bytes from row to row
    cuuint32_t box[] = {ROW, ROWS}, steps[] = {1, 1};
    if (encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, dev_in, sizes, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
        quit(EXIT_FAILURE, "cuTensorMapEncodeTiled refuses the map");
    return map;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    dim3 threads(WIDTH, HEIGHT), blocks((size + WIDTH - 1) / WIDTH, (size + HEIGHT - 1) / HEIGHT);
    size_t pitch = blocks.x * WIDTH + 2 * RADIUS, rows = blocks.y * HEIGHT + 2 * RADIUS; // with the margin
    float *in = (float *)malloc(pitch * rows * sizeof(float)), *dev_in, *dev_out;
    HANDLE_NULL(in);
    for (size_t i = 0; i < pitch * rows; i++)
        in[i] = random_bits() % 256;
    HANDLE_ERROR(cudaMalloc((void **)&dev_in, pitch * rows * sizeof(float)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_out, size * size * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_in, in, pitch * rows * sizeof(float), cudaMemcpyHostToDevice));

    float ms = median_ms([=] { box_rows<<<blocks, threads>>>(dev_in, pitch, dev_out, size); });
    bool ok = check("rows", ms, dev_out, in, pitch);
    CUtensorMap map = tensor_map(dev_in, pitch, rows);
    ms = median_ms([=] { box_map<<<blocks, threads>>>(map, dev_out, size); });
    ok = check("tile", ms, dev_out, in, pitch) && ok;

    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    free(in);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/yardstick.h" // print_share()

void settings(int argc, char **argv) {
    configure(argc, argv, "Blurs a picture with tiles that the Tensor Memory Accelerator copies.", TIMES,
              {OPTION_SIZE("size", &size, 1, 32768, "pixels a side")});
    cudaFuncAttributes compiled;
    HANDLE_ERROR(cudaFuncGetAttributes(&compiled, box_map));
    if (!CPU_BACKEND && (device_attribute(cudaDevAttrComputeCapabilityMajor) < 9 || compiled.ptxVersion < 90))
        quit(EXIT_WAIVED, "needs tensor maps: a device of compute capability 9.0, and code for it");
    const size_t pixels = (size + WIDTH + 2 * RADIUS) * (size + HEIGHT + 2 * RADIUS);
    require_memory(2 * pixels * sizeof(float), 2 * pixels * sizeof(float));
    printf("The fastest: ./bin/chapter13/pipeline_blur --size %zu\n", size);
}

// Prints the time of a kernel, and compares its output with the reference. Before that it overwrites the
// output on the device, for the next kernel. The kernel rounds once, in the division: sums of 25 bytes are
// exact.
static bool check(const char *name, float ms, float *dev_out, const float *in, size_t pitch) {
    print_share(name, ms, 2 * size * size * sizeof(float));
    const HostArray<float> out(dev_out, size * size);
    HANDLE_ERROR(cudaMemset(dev_out, 0xff, size * size * sizeof(float))); // NaN
    return check_floats(name, out, size * size, 0x1p-24, [&](size_t pixel) {
        const float *const corner = &in[pixel % size + pixel / size * pitch];
        double sum = 0;
        for (int i = 0; i < 25; i++)
            sum += corner[i % 5 + i / 5 * pitch];
        return sum / 25;
    });
}

// Task: none: each of its two kernels shows most of the other one. By hand: take out one wait(), or
// barrier_expect_tx(), and see when the picture is wrong.
