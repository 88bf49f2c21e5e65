// SPDX-License-Identifier: MIT
/*
 * ray_animated: spheres that move, in constant memory
 *
 * Teaches: Constant memory is constant for a kernel, not for the host, which can write it anew
 *          between two launches. So the spheres move (space stops them), and events time a frame.
 * Book:    6.3.1 (course)
 * Run:     ./bin/chapter06/ray_animated --output ray_animated.webp
 * Picture: yes
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"
#include "../common/cpu_anim.h"
#include "../common/memory.h"

#define DIM         1024
#define SPHERES     20
#define MAX_SPHERES 2000 // 56 KB of the 64 KB that constant memory has
#define INF         2e10f
#define PERIOD      120 // frames until all spheres are back where they began
#define RUNS        11  // of the kernel alone, for its time

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

__constant__ Sphere s[MAX_SPHERES];

struct DataBlock {
    size_t size = DIM;
    int spheres = SPHERES;
    Sphere first[MAX_SPHERES], moved[MAX_SPHERES];
    uchar4 *dev_bitmap;
    CPUAnimBitmap *bitmap;
    cudaEvent_t start, stop;
    float total_time;
    int frames, missed; // missed: those that went by in a pause
    bool paused;
};

// The picture shows DIM units a side, whatever its size in pixels.
__global__ void kernel(uchar4 *ptr, size_t size, int spheres) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x;
    size_t y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float half = size / 2.0f, unit = DIM / (float)size;
    float ox = (x - half) * unit, oy = (y - half) * unit;

    float3 color = {0, 0, 0};
    float maxz = -INF;
    for (int i = 0; i < spheres; i++) { // all threads of a warp read s[i] at the same time
        float n = 0, t = s[i].hit(ox, oy, &n);
        if (t > maxz) {
            color = make_float3(s[i].r * n, s[i].g * n, s[i].b * n);
            maxz = t;
        }
    }

    ptr[x + y * size] = make_uchar4(color.x * 255, color.y * 255, color.z * 255, 255);
}

// Braces, so that the numbers are drawn from left to right.
static void place_spheres(Sphere *s, int spheres) {
    for (int i = 0; i < spheres; i++)
        s[i] = {rnd(1.0f),          rnd(1.0f),          rnd(1.0f),       rnd(1000.0f) - 500,
                rnd(1000.0f) - 500, rnd(1000.0f) - 500, rnd(100.0f) + 20};
}

// Each sphere goes round the vertical axis through the middle, all at home again after a period.
static void move_spheres(DataBlock *d, int ticks) {
    const int turns[] = {1, -1, 2, -2};
    for (int i = 0; i < d->spheres; i++) {
        const Sphere &from = d->first[i];
        double angle = 2 * M_PI * turns[i % 4] * (ticks % PERIOD) / PERIOD;
        d->moved[i] = from;
        d->moved[i].x = (float)(cos(angle) * from.x + sin(angle) * from.z);
        d->moved[i].z = (float)(cos(angle) * from.z - sin(angle) * from.x);
    }
}

// The reference, in double. In float a colour can be off by one, and where two spheres meet the one
// that is seen can be the other: ten pixels of a million may differ, or two of a small picture.
static bool check(const unsigned char *pixels, size_t size, const Sphere *s, int spheres) {
    unsigned char *expected = (unsigned char *)calloc(size * size, 4);
    HANDLE_NULL(expected);
    double half = size / 2.0, unit = (double)DIM / size;
    for (size_t i = 0; i < size * size; i++) {
        double ox = (i % size - half) * unit, oy = (i / size - half) * unit;
        double front = -INF, color[4] = {0, 0, 0, 255};
        for (const Sphere *p = s; p < s + spheres; p++) {
            double dz = sqrt(pow(p->radius, 2) - pow(ox - p->x, 2) - pow(oy - p->y, 2));
            if (!(p->z + dz > front)) // and where the ray passes by, dz is NaN
                continue;
            front = p->z + dz;
            color[0] = p->r * dz / p->radius * 255;
            color[1] = p->g * dz / p->radius * 255;
            color[2] = p->b * dz / p->radius * 255;
        }
        for (int c = 0; c < 4; c++) {
            expected[i * 4 + c] = (unsigned char)color[c];
            if (c < 3 && abs(pixels[i * 4 + c] - expected[i * 4 + c]) == 1)
                expected[i * 4 + c] = pixels[i * 4 + c];
        }
    }
    double allowed = fmax(1e-5, fmin(2.5 / (size * size), 0.125));
    bool ok = check_pixels("pixel", pixels, expected, size * size, allowed);
    free(expected);
    return ok;
}

static void draw(const DataBlock *d) {
    unsigned blocks = (d->size + 15) / 16;
    kernel<<<dim3(blocks, blocks), dim3(16, 16)>>>(d->dev_bitmap, d->size, d->spheres);
    HANDLE_LAUNCH();
}

static void generate_frame(void *data, int ticks) {
    DataBlock *d = (DataBlock *)data;
    HANDLE_ERROR(cudaEventRecord(d->start, 0));

    d->missed += d->paused;
    move_spheres(d, ticks - d->missed);
    HANDLE_ERROR(cudaMemcpyToSymbol(s, d->moved, d->spheres * sizeof(Sphere)));
    draw(d);
    HANDLE_ERROR(cudaMemcpy(d->bitmap->get_ptr(), d->dev_bitmap, d->bitmap->image_size(),
                            cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(d->stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(d->stop));
    float elapsed;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsed, d->start, d->stop));
    d->total_time += elapsed;
    d->frames++;
}

static void key_press(void *data, unsigned char key) {
    ((DataBlock *)data)->paused ^= key == ' ';
}

static void print_times(void *data) {
    DataBlock *d = (DataBlock *)data;
    printf("Average Time per frame:  %3.1f ms\n", d->total_time / d->frames);
    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    for (int i = 0; i < RUNS; i++)
        draw(d);
    HANDLE_ERROR(cudaEventRecord(d->stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(d->stop));
    float elapsed;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsed, d->start, d->stop));
    elapsed /= RUNS;
    // Every ray asks every sphere, 7 operations a question: two for dx and dy, five for the square.
    printf("Kernel:                  %.3f ms, %.1f GFLOP/s\n", elapsed,
           7.0 * d->size * d->size * d->spheres / elapsed / 1e6);
}

int main(int argc, char **argv) {
    static DataBlock d;
    const Option own[] = {OPTION_SIZE("size", &d.size, 1, 65535, "pixels a side"),
                          OPTION_INT("spheres", &d.spheres, 1, MAX_SPHERES, "how many there are"),
                          OPTION_END};
    parse_options(argc, argv, "Moving spheres; the space bar stops them.", ANIMATION | TIMES, own);
    select_device();
    size_t bytes = d.size * d.size * 4;
    require_memory(2 * bytes, bytes);

    CPUAnimBitmap bitmap(d.size, d.size, &d);
    d.bitmap = &bitmap;
    HANDLE_ERROR(cudaMalloc((void **)&d.dev_bitmap, bytes));
    HANDLE_ERROR(cudaEventCreate(&d.start));
    HANDLE_ERROR(cudaEventCreate(&d.stop));
    place_spheres(d.first, d.spheres);

    bitmap.key_press(key_press);
    bitmap.anim_and_exit(generate_frame, print_times);
    inject_error(bitmap.get_ptr(), bytes);
    bool ok = check(bitmap.get_ptr(), d.size, d.moved, d.spheres); // the last frame

    HANDLE_ERROR(cudaEventDestroy(d.start));
    HANDLE_ERROR(cudaEventDestroy(d.stop));
    HANDLE_ERROR(cudaFree(d.dev_bitmap));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
