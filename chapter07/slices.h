// SPDX-License-Identifier: MIT
// texture_3d's animation: a slice that moves through the volume. Below the line the value that a texture
// returns, on the host.
#ifndef CHAPTER07_SLICES_H
#define CHAPTER07_SLICES_H

#include "../common/book.h"
#include "../common/cpu_anim.h"

// The value of a texel: a whole number, so that floats are exact. It rises and falls between 0 and 250 with
// the distance from a corner of the volume.
__host__ __device__ static inline float texel(size_t x, size_t y, size_t z) {
    int rest = (x * x + 3 * y * y + 5 * z * z) / 8 % 500;
    return abs(rest - 250);
}

// side * side pixels show all of the width and the height, so most of them lie between texels.
__global__ void draw_slice(uchar4 *pixels, size_t side, cudaTextureObject_t texture, cudaExtent extent,
                           float z) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= side || y >= side)
        return;
    float grey =
        tex3D<float>(texture, (x + 0.5f) * extent.width / side, (y + 0.5f) * extent.height / side, z);
    pixels[x + y * side] = make_uchar4(grey, grey, grey, 255);
}

static size_t side = 512; // --size, pixels
static int last_ticks;    // of the last frame

struct Slices {
    CPUAnimBitmap *bitmap;
    uchar4 *dev_pixels;
    cudaTextureObject_t texture;
    cudaExtent extent;
};

// The slice goes from the first texels to the last ones in 60 frames, and back.
static void generate_slice(void *data, int ticks) {
    Slices *s = (Slices *)data;
    last_ticks = ticks;
    float z = 0.5f + (s->extent.depth - 1) * (1 - fabsf(1 - ticks % 120 / 60.0f));
    dim3 blocks((side + 15) / 16, (side + 15) / 16), threads(16, 16);
    draw_slice<<<blocks, threads>>>(s->dev_pixels, side, s->texture, s->extent, z);
    HANDLE_LAUNCH();
    HANDLE_ERROR(
        cudaMemcpy(s->bitmap->get_ptr(), s->dev_pixels, s->bitmap->image_size(), cudaMemcpyDeviceToHost));
}

// ---------------------------------------------------------------------------------------- proof

static cudaExtent whole; // the size of the volume

static inline double expected_texel(double x, double y, double z) {
    return fabs(fmod(floor((x * x + 3 * y * y + 5 * z * z) / 8), 500) - 250);
}

// What the texture returns at a point: the texel, or the mean of the eight nearest ones in double. *error is
// its largest error: the weights have 8 fractional bits in each direction, and the last one may be off by
// one.
static inline double fetched(double x, double y, double z, bool linear, double *error) {
    auto clamped = [](double i, size_t n) { return (size_t)fmin(fmax(i, 0), n - 1.0); };
    auto at = [&](double x, double y, double z) {
        return expected_texel(clamped(x, whole.width), clamped(y, whole.height), clamped(z, whole.depth));
    };
    *error = 0;
    if (!linear)
        return at(floor(x), floor(y), floor(z));
    x -= 0.5, y -= 0.5, z -= 0.5;
    double sum = 0, least = INFINITY, most = -INFINITY, a = x - floor(x), b = y - floor(y), c = z - floor(z);
    for (int corner = 0; corner < 8; corner++) {
        int dx = corner & 1, dy = corner >> 1 & 1, dz = corner >> 2;
        double value = at(floor(x) + dx, floor(y) + dy, floor(z) + dz);
        sum += value * (dx ? a : 1 - a) * (dy ? b : 1 - b) * (dz ? c : 1 - c);
        least = fmin(least, value);
        most = fmax(most, value);
    }
    *error = 3 * (most - least) / 256 + 1e-4;
    return sum;
}

static void expect_slice(size_t x, size_t y, const unsigned char *got, unsigned char *expected) {
    int step = last_ticks % 120; // 0 and 60: at the centres of the first and the last texels
    double z = 0.5 + (whole.depth - 1) * ((step < 60 ? step : 120 - step) / 60.0), error;
    double value = fetched((x + 0.5) * whole.width / side, (y + 0.5) * whole.height / side, z, true, &error);
    for (int i = 0; i < 3; i++)
        expected[i] = byte_near(value, error, got[i]);
    expected[3] = 255;
}

static inline bool check_slice(const unsigned char *pixels) {
    return check_picture("slice", pixels, side, side, expect_slice, 0);
}

#endif
