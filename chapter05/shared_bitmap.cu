// SPDX-License-Identifier: MIT
/*
 * shared_bitmap: a missing barrier corrupts a picture
 *
 * Teaches: If a thread reads what another thread wrote to shared memory, a barrier must separate the write
 *          from the read. Each thread draws the value that the opposite thread of its block computed.
 *          Without __syncthreads() (--no-sync) some threads read too early. This data race is a race
 *          condition: the picture depends on the order in which the threads run.
 * Terms:   shared memory, barrier, __syncthreads, race condition, data race, dim3
 * Book:    5.3.2
 * Build:   nvcc -o shared_bitmap chapter05/shared_bitmap.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/shared_bitmap --output spheres.png
 * Differs: --no-sync draws without the barrier, and ends with status 1 when the picture is wrong: in half of
 *          the pixels on the CPU back end, where threads run one after the other. On a GPU it varies.
 * Picture: yes
 * Check:   --size 100 | --no-sync (race)
 * Web:     --size 512
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"

#define DIM 1024
#define PI  3.1415926535897932f

static size_t size = DIM; // --size
static bool no_sync;      // --no-sync
static bool check(const unsigned char *pixels);

__global__ void kernel(unsigned char *ptr, size_t size, bool sync) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;

    __shared__ float shared[16][16];
    const float period = 128.0f;
    // Neighbouring threads write words that are 16 apart. Eight lanes of a warp write to the same bank, so it
    // takes eight turns; the order [threadIdx.y][threadIdx.x] needs one (chapter05/bank_conflicts).
    shared[threadIdx.x][threadIdx.y] =
        255 * (sinf(x * 2.0f * PI / period) + 1.0f) * (sinf(y * 2.0f * PI / period) + 1.0f) / 4.0f;

    if (sync)            // for all threads, unless --no-sync leaves the barrier out
        __syncthreads(); // shared[][] is complete

    // Threads beyond the edge of the picture return only now, after the barrier: every thread of the block
    // must reach it, and other threads read the values that these have computed.
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;
    ptr[offset * 4 + 0] = 0;
    ptr[offset * 4 + 1] = shared[15 - threadIdx.x][15 - threadIdx.y];
    ptr[offset * 4 + 2] = 0;
    ptr[offset * 4 + 3] = 255;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    CPUBitmap bitmap(size, size);
    unsigned char *dev_bitmap;
    HANDLE_ERROR(cudaMalloc(&dev_bitmap, bitmap.image_size()));

    dim3 grids((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<grids, threads>>>(dev_bitmap, size, !no_sync);
    HANDLE_LAUNCH();

    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev_bitmap));
    bitmap.display_and_exit();
    return check(bitmap.get_ptr()) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Draws green spheres through shared memory.", PICTURE,
              {OPTION_SIZE("size", &size, 1, 65535, "pixels a side"),
               OPTION_FLAG("no-sync", &no_sync, "leave the barrier out")});
    require_memory(size * size * 4, size * size * 4);
}

// The expected value is that of the opposite thread. In float, each angle is rounded up to four times by
// 2^-24, and the value changes by at most 127.5 times the change of an angle. sinf and the products add a few
// roundings of 2^-24 of 255.
static void expect(size_t x, size_t y, const unsigned char *got, unsigned char *expected) {
    const double step = 2 * 3.14159265358979323846 / 128;
    double angle_x = step * (x / 16 * 16 + 15 - x % 16), angle_y = step * (y / 16 * 16 + 15 - y % 16);
    double value = 255 * (sin(angle_x) + 1) * (sin(angle_y) + 1) / 4;
    double tol = (127.5 * 4 * (angle_x + angle_y) + 255 * 10) * 0x1p-24;
    expected[0] = expected[2] = 0;
    expected[1] = byte_near(value, tol, got[1]);
    expected[3] = 255;
}

static bool check(const unsigned char *pixels) {
    bool ok = check_picture("pixel", pixels, size, size, expect, 0);
    if (ok)
        printf("All %zu pixels are right.\n", size * size);
    return ok;
}

// Task: kernel(): Blocks of 16 x 16 threads cover a picture of size x size pixels, one thread per pixel. The
// thread with the coordinates (x, y) in the grid computes
// 255 * (sin(x * 2 * PI / 128) + 1) * (sin(y * 2 * PI / 128) + 1) / 4 in float and stores it in element
// [threadIdx.x][threadIdx.y] of an array of 16 x 16 floats in shared memory. If `sync` is true, a barrier
// follows, which all threads of the block reach. Threads outside the picture store no pixel. A pixel is 4
// bytes at ptr + 4 * (x + y * size): green is element [15 - threadIdx.x][15 - threadIdx.y] of the array,
// which another thread has computed; red and blue are 0; alpha is 255.
