// SPDX-License-Identifier: MIT
/*
 * ray_noconst: spheres from global memory
 *
 * Teaches: A ray tracer asks for every pixel which sphere is in front there, so each pixel is a
 *          thread of its own, and every thread reads all spheres. Here they lie in global memory;
 *          ray has them in constant memory, and the two times show the difference.
 * Book:    6.2.2
 * Run:     ./bin/chapter06/ray_noconst --output ray.png
 * Differs: the nearest sphere is the one that is seen. The page's kernel never keeps the depth it
 *          compares with, so that the last sphere hides the others. Size and number of spheres are
 *          options, and the time is taken as ray takes it.
 * Picture: as chapter06/ray
 */
#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "../common/memory.h"

#define DIM         1024
#define SPHERES     20
#define MAX_SPHERES 2000 // as many as ray can draw
#define INF         2e10f
#define RUNS        11

struct Sphere {
    float r, g, b;
    float x, y, z;
    float radius;

    // Where the ray through (ox, oy) comes out of the sphere towards us: its z, or -INF when it
    // passes by. *n is how squarely it does, 1 in the middle and 0 at the rim.
    __device__ float hit(float ox, float oy, float *n) const {
        float dx = ox - x, dy = oy - y;
        float square = radius * radius - dx * dx - dy * dy;
        if (!(square > 0))
            return -INF;
        float dz = sqrtf(square);
        *n = dz / radius;
        return z + dz;
    }
};

// The picture shows DIM units a side, whatever its size in pixels.
__global__ void kernel(unsigned char *ptr, size_t size, const Sphere *s, int spheres) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x;
    size_t y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float half = size / 2.0f, unit = DIM / (float)size;
    float ox = (x - half) * unit, oy = (y - half) * unit;

    float r = 0, g = 0, b = 0;
    float maxz = -INF;
    for (int i = 0; i < spheres; i++) {
        float n = 0, t = s[i].hit(ox, oy, &n);
        if (t > maxz) {
            r = s[i].r * n;
            g = s[i].g * n;
            b = s[i].b * n;
            maxz = t;
        }
    }

    size_t offset = x + y * size;
    ptr[offset * 4 + 0] = (unsigned char)(r * 255);
    ptr[offset * 4 + 1] = (unsigned char)(g * 255);
    ptr[offset * 4 + 2] = (unsigned char)(b * 255);
    ptr[offset * 4 + 3] = 255;
}

// Braces, so that the numbers are drawn from left to right.
static void place_spheres(Sphere *s, int spheres) {
    for (int i = 0; i < spheres; i++)
        s[i] = {rnd(1.0f),          rnd(1.0f),          rnd(1.0f),       rnd(1000.0f) - 500,
                rnd(1000.0f) - 500, rnd(1000.0f) - 500, rnd(100.0f) + 20};
}

// The reference goes the other way round, from the spheres to the pixels, in double: row by row it
// paints each sphere where nothing nearer has been painted.
static void paint(unsigned char *pixels, size_t size, const Sphere *s, int spheres) {
    double *depth = (double *)malloc(size * sizeof(double));
    HANDLE_NULL(depth);
    double half = size / 2.0, unit = (double)DIM / size;
    for (size_t y = 0; y < size; y++) {
        unsigned char *row = pixels + y * size * 4;
        for (size_t x = 0; x < size; x++) {
            depth[x] = -INF;
            row[x * 4 + 3] = 255;
        }
        for (int i = 0; i < spheres; i++) {
            double radius = s[i].radius, dy = (y - half) * unit - s[i].y;
            if (!(fabs(dy) < radius))
                continue;
            for (size_t x = 0; x < size; x++) {
                double dx = (x - half) * unit - s[i].x;
                double dz = sqrt(fmax(radius * radius - dx * dx - dy * dy, 0));
                if (!(dz > 0 && s[i].z + dz > depth[x]))
                    continue;
                depth[x] = s[i].z + dz;
                row[x * 4 + 0] = (unsigned char)(s[i].r * dz / radius * 255);
                row[x * 4 + 1] = (unsigned char)(s[i].g * dz / radius * 255);
                row[x * 4 + 2] = (unsigned char)(s[i].b * dz / radius * 255);
            }
        }
    }
    free(depth);
}

// In float a colour can come out on the other side of a whole number, and then it is off by one.
// Where two spheres meet, or at a rim, even the sphere that is seen can be the other one: that is
// so for less than one pixel in a million with 1000 spheres. Ten of a million may
// differ, or two of a small picture.
static bool check(const unsigned char *pixels, size_t size, const Sphere *s, int spheres) {
    unsigned char *expected = (unsigned char *)calloc(size * size, 4);
    HANDLE_NULL(expected);
    paint(expected, size, s, spheres);
    for (size_t i = 0; i < size * size * 4; i++)
        if (i % 4 != 3 && abs(pixels[i] - expected[i]) == 1)
            expected[i] = pixels[i];
    double allowed = fmax(1e-5, fmin(2.5 / (size * size), 0.125));
    bool ok = check_pixels("pixel", pixels, expected, size * size, allowed);
    free(expected);
    return ok;
}

static void draw(unsigned char *dev_bitmap, size_t size, const Sphere *s, int spheres) {
    dim3 blocks((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<blocks, threads>>>(dev_bitmap, size, s, spheres);
    HANDLE_LAUNCH();
}

int main(int argc, char **argv) {
    size_t size = DIM;
    int spheres = SPHERES;
    const Option own[] = {OPTION_SIZE("size", &size, 1, 65535, "pixels a side"),
                          OPTION_INT("spheres", &spheres, 1, MAX_SPHERES, "how many there are"),
                          OPTION_END};
    parse_options(argc, argv, "Draws spheres from global memory.", PICTURE | TIMES, own);
    select_device();
    size_t bytes = size * size * 4;
    require_memory(2 * bytes, bytes);

    // The time that the book measures: from here until the picture is on the host.
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));

    CPUBitmap bitmap(size, size);
    unsigned char *dev_bitmap;
    Sphere *s;
    HANDLE_ERROR(cudaMalloc((void **)&dev_bitmap, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&s, spheres * sizeof(Sphere)));
    Sphere temp_s[MAX_SPHERES];
    place_spheres(temp_s, spheres);
    HANDLE_ERROR(cudaMemcpy(s, temp_s, spheres * sizeof(Sphere), cudaMemcpyHostToDevice));
    draw(dev_bitmap, size, s, spheres);
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bytes, cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop)); // until the device has come past it
    float elapsed;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsed, start, stop));
    printf("Time to generate:  %3.1f ms\n", elapsed);

    // The kernel alone, which by now is warm: the median of several runs.
    float times[RUNS];
    for (int i = 0; i < RUNS; i++) {
        HANDLE_ERROR(cudaEventRecord(start, 0));
        draw(dev_bitmap, size, s, spheres);
        HANDLE_ERROR(cudaEventRecord(stop, 0));
        HANDLE_ERROR(cudaEventSynchronize(stop));
        HANDLE_ERROR(cudaEventElapsedTime(&times[i], start, stop));
    }
    std::sort(times, times + RUNS);
    elapsed = times[RUNS / 2];
    // Every ray asks every sphere, 7 operations a question: two for dx and dy, five for the square.
    printf("Kernel:            %.3f ms, %.1f GFLOP/s\n", elapsed,
           7.0 * size * size * spheres / elapsed / 1e6);

    inject_error(bitmap.get_ptr(), bytes);
    bool ok = check(bitmap.get_ptr(), size, temp_s, spheres);
    bitmap.display_and_exit();

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(s));
    HANDLE_ERROR(cudaFree(dev_bitmap));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
