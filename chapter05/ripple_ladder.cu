// SPDX-License-Identifier: MIT
/*
 * ripple_ladder: one frame of the ripple, from the book's kernel to the time of a memset
 *
 * Teaches: A frame of 4 MB fits in the L2 cache, so writing it takes little longer than a launch, and a
 *          kernel is slow when it needs many instructions per pixel. Vectorized stores, fast intrinsics
 *          and symmetry make them fewer, until the kernel takes as long as a memset of the picture.
 * Terms:   vectorized store, intrinsic, two-dimensional grid, dim3, launch overhead, L2 cache,
 *          compute-bound, cold
 * Book:    5.2.2 (ladder)
 * Rungs:   0 book (16 x 16 threads); 1 vectorized stores (four pixels per thread); 2 fast intrinsics (fewer
 *          instructions); 3 symmetry (two rows at once)
 * Build:   nvcc -o ripple_ladder chapter05/ripple_ladder.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/ripple_ladder --size 1024
 * Differs: one frame is drawn, and it stays on the device. The rate counts the bytes of the picture. The
 *          time includes the launch: the last row is a kernel that does nothing.
 * Limit:   stores of the picture; the last rung takes the time of a memset.
 * Bench:   64 256 512 1024 4096
 * Check:   --size 132 --ticks 35
 */
#include "../common/book.h"
#include "../common/bench.h"
#include "../common/checks/ripple.h" // the reference

#define DIM 1024

static size_t size = BENCH_SIZE(DIM, 160); // --size, pixels a side
static int ticks = 20;                     // --ticks, the number of the frame
static unsigned centre;                    // where the waves start, in both directions
static unsigned char *dev_bitmap, *bitmap;

// Rung 0, the book's: one pixel per thread, with a store for each of its four bytes.
__global__ void kernel(unsigned char *ptr, size_t size, unsigned centre, int ticks) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;

    float fx = x - (float)centre;
    float fy = y - (float)centre;
    float d = sqrtf(fx * fx + fy * fy);
    unsigned char grey = 128.0f + 127.0f * cosf(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f);
    ptr[offset * 4 + 0] = grey;
    ptr[offset * 4 + 1] = grey;
    ptr[offset * 4 + 2] = grey;
    ptr[offset * 4 + 3] = 255;
}

// Rung 1: four pixels per thread, written with one store of 16 bytes. They share the index arithmetic.
// Rung 2: intrinsics that are one or a few instructions. sqrtf and / round correctly, and cosf reduces angles
// of any size, which takes tens of instructions. The errors of rsqrtf and __fdividef are up to 2 units in the
// last place. The error of __cosf is up to 2^-21.19 between -pi and pi, and larger beyond, because its
// argument is multiplied by a rounded 1 / (2 pi). Together the errors stay within the limit of the check,
// which is made for float (expect_ripple()).
template <bool fast> __device__ static unsigned pixel(float fx, float fy, float phase) {
    float square = fx * fx + fy * fy, grey;
    if (fast) {
        float ring = square > 0 ? square * rsqrtf(square) * 0.1f : 0;
        grey = 128.0f + __fdividef(127.0f, ring + 1.0f) * __cosf(ring - phase);
    } else {
        float ring = sqrtf(square) / 10.0f;
        grey = 128.0f + 127.0f * cosf(ring - phase) / (ring + 1.0f);
    }
    return (unsigned)grey * 0x010101 | 0xff000000;
}

template <bool fast> __device__ static uint4 four_pixels(unsigned x, float fy, unsigned centre, float phase) {
    float fx = x - (float)centre;
    return make_uint4(pixel<fast>(fx, fy, phase), pixel<fast>(fx + 1, fy, phase),
                      pixel<fast>(fx + 2, fy, phase), pixel<fast>(fx + 3, fy, phase));
}

template <bool fast> __global__ void kernel_vectors(uint4 *ptr, unsigned size, unsigned centre, float phase) {
    unsigned x = 4 * (threadIdx.x + blockIdx.x * blockDim.x), y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size)
        ptr[(x + (size_t)y * size) / 4] = four_pixels<fast>(x, y - (float)centre, centre, phase);
}

// Rung 3: the rows at the same distance above and below the centre are equal, so each thread computes four
// pixels and writes them twice. Columns are symmetric too, but the mirror images of pixels x to x + 3 begin
// at 2 * centre - x - 3, which is not a multiple of 4.
__global__ void kernel_mirror(uint4 *ptr, unsigned size, unsigned centre, float phase) {
    unsigned x = 4 * (threadIdx.x + blockIdx.x * blockDim.x), dy = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || dy > centre)
        return;
    uint4 four = four_pixels<true>(x, dy, centre, phase);
    if (centre + dy < size)
        ptr[(x + (size_t)(centre + dy) * size) / 4] = four;
    if (dy > 0)
        ptr[(x + (size_t)(centre - dy) * size) / 4] = four;
}

static void run_book(void) {
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<blocks, threads>>>(dev_bitmap, size, centre, ticks);
    HANDLE_LAUNCH();
}

// The phase ticks / 7 is reduced modulo 2 pi, the period of the cosine. Otherwise the angle of a late frame
// would be large, and its rounding error in float too.
static void run(void (*kernel)(uint4 *, unsigned, unsigned, float), size_t rows) {
    dim3 blocks((size / 4 + 31) / 32, (rows + 7) / 8), threads(32, 8);
    kernel<<<blocks, threads>>>((uint4 *)dev_bitmap, size, centre, fmod(ticks / 7.0, 2 * M_PI));
    HANDLE_LAUNCH();
}

static const char *four_need(void) {
    return size % 4 ? "needs a size that is a multiple of 4" : NULL;
}

static const Rung rungs[] = {
    {"book", "16 x 16 threads", run_book},
    {"vectorized stores", "four pixels per thread", [] { run(kernel_vectors<false>, size); }, four_need},
    {"fast intrinsics", "fewer instructions", [] { run(kernel_vectors<true>, size); }, four_need},
    {"symmetry", "two rows at once", [] { run(kernel_mirror, centre + 1); }, four_need},
    {"memset", "of the whole picture", [] { HANDLE_ERROR(cudaMemsetAsync(dev_bitmap, 0, size * size * 4)); },
     LIMIT},
};

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = size * size * 4;
    bitmap = host_array<unsigned char>(bytes);
    bench_malloc(&dev_bitmap, bytes);

    bench_run(rungs);

    return bench_finish({bitmap});
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "A frame of the ripple, from the book's kernel to the fastest.", LADDER,
              {OPTION_SIZE("size", &size, 1, 65535, "pixels a side"),
               OPTION_INT("ticks", &ticks, 0, 1000000, "number of the frame")});
    require_memory(size * size * 4, size * size * 4);
    centre = size / 2;
    ripple_x = ripple_y = centre;
    ripple_ticks = ticks;
    bench.title = std::to_string(size) + " x " + std::to_string(size) + " pixels";
    bench.size = size;
    bench.work = bench.footprint = size * size * 4; // each pixel is written once
    bench.left = [](const std::string &name) {
        return std::vector<BenchLeft>(name == "memset", {dev_bitmap, NULL, bench.footprint});
    };
}

static void poison(void) {
    HANDLE_ERROR(cudaMemset(dev_bitmap, 0x5a, size * size * 4));
}

// The limit is that of the book's program: the exact value, plus or minus at most 0.0003 in an early frame,
// without its fraction.
static bool check(const char *name, BenchError *) {
    HANDLE_ERROR(cudaMemcpy(bitmap, dev_bitmap, size * size * 4, cudaMemcpyDeviceToHost));
    return check_picture(name, bitmap, size, size, expect_ripple, 0);
}
