// SPDX-License-Identifier: MIT
/*
 * ray_noconst: ray tracing from global memory, timed with events
 *
 * Teaches: A ray tracer computes for each pixel which sphere the ray through it hits first, so each
 *          pixel gets a thread, and every thread reads all spheres. Here they are in global memory.
 *          ray is the same program with constant memory; compare the times of the two kernels.
 * Terms:   ray tracing, global memory, thread, two-dimensional grid, event, elapsed time
 * Book:    6.2.2; C 5.4.4 (from global memory): --block 32
 * Build:   nvcc -o ray_noconst chapter06/ray_noconst.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter06/ray_noconst --output ray.png
 * Differs: the nearest sphere is drawn; the page's kernel does not store the depth it compares with, so
 *          the last sphere covers the others.
 * Picture: as chapter06/ray
 * Check:   --size 100 --block 32 | --size 9 --spheres 2000
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"

#define DIM         1024 // the picture shows DIM x DIM units, whatever its size in pixels
#define INF         2e10f
#define SPHERES     20
#define MAX_SPHERES 2000

struct Sphere {
    float r, g, b;
    float x, y, z;
    float radius;

    // Returns the z at which the ray through (ox, oy), parallel to the z axis, meets the sphere, or -INF. The
    // viewer is at large z, so the largest z is nearest. *n becomes the brightness: the cosine of the angle
    // between the normal and the direction to the viewer, 1 in the middle of the sphere, 0 at its outline.
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

static size_t size = DIM;     // --size
static int spheres = SPHERES; // --spheres
static unsigned block = 16;   // --block, threads of a block in each direction
static void time_kernel(unsigned char *dev_bitmap, const Sphere *s);
static bool check_spheres(const unsigned char *pixels, const Sphere *s);

// Drawn in docs/drawings.md#rays-through-the-pixels-of-a-picture
__global__ void kernel(unsigned char *ptr, size_t size, const Sphere *s, int spheres) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    // From the middle of the picture, in units: x - DIM / 2 if the picture has DIM pixels a side
    float ox = (x - size / 2.0f) * (DIM / (float)size);
    float oy = (y - size / 2.0f) * (DIM / (float)size);

    float r = 0, g = 0, b = 0;
    float maxz = -INF;
    for (int i = 0; i < spheres; i++) { // every thread reads s[i] from global memory or a cache
        float fscale = 0, t = s[i].hit(ox, oy, &fscale);
        if (t > maxz) {
            r = s[i].r * fscale;
            g = s[i].g * fscale;
            b = s[i].b * fscale;
            maxz = t;
        }
    }

    size_t offset = x + y * size;
    ptr[offset * 4 + 0] = (unsigned char)(r * 255);
    ptr[offset * 4 + 1] = (unsigned char)(g * 255);
    ptr[offset * 4 + 2] = (unsigned char)(b * 255);
    ptr[offset * 4 + 3] = 255;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    // 0 is the default stream, in which everything here runs. The interval includes the host's work.
    HANDLE_ERROR(cudaEventRecord(start, 0));

    CPUBitmap bitmap(size, size);
    unsigned char *dev_bitmap;
    Sphere *s;
    HANDLE_ERROR(cudaMalloc(&dev_bitmap, bitmap.image_size()));
    HANDLE_ERROR(cudaMalloc(&s, sizeof(Sphere) * spheres));

    Sphere *temp_s = (Sphere *)malloc(sizeof(Sphere) * spheres);
    HANDLE_NULL(temp_s);
    for (int i = 0; i < spheres; i++) {
        temp_s[i].r = rnd(1.0f);
        temp_s[i].g = rnd(1.0f);
        temp_s[i].b = rnd(1.0f);
        temp_s[i].x = rnd(1000.0f) - 500;
        temp_s[i].y = rnd(1000.0f) - 500;
        temp_s[i].z = rnd(1000.0f) - 500;
        temp_s[i].radius = rnd(100.0f) + 20;
    }
    HANDLE_ERROR(cudaMemcpy(s, temp_s, sizeof(Sphere) * spheres, cudaMemcpyHostToDevice));

    dim3 grids((size + block - 1) / block, (size + block - 1) / block), threads(block, block);
    kernel<<<grids, threads>>>(dev_bitmap, size, s, spheres);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop)); // waits until the device has recorded it
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to generate:  %3.1f ms\n", elapsedTime);
    time_kernel(dev_bitmap, s);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_bitmap));
    HANDLE_ERROR(cudaFree(s));

    bitmap.display_and_exit();
    bool ok = check_spheres(bitmap.get_ptr(), temp_s);
    free(temp_s);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "spheres.h" // the options and check_spheres()

void settings(int argc, char **argv) {
    sphere_settings(argc, argv, "Draws spheres from global memory.", PICTURE | TIMES);
}

static void time_kernel(unsigned char *dev_bitmap, const Sphere *s) {
    dim3 grids((size + block - 1) / block, (size + block - 1) / block), threads(block, block);
    float ms = median_ms([&] { kernel<<<grids, threads>>>(dev_bitmap, size, s, spheres); });
    printf("Kernel:            %.3f ms, %.1f GFLOP/s\n", ms, ray_operations() / ms / 1e6);
}

// Task: kernel(): Blocks of threads cover a picture of size x size pixels: the thread with the coordinates
// (x, y) in the grid computes pixel (x, y), and threads outside do nothing. The ray of the pixel is at
// ox = (x - size / 2) * DIM / size and oy, alike, in float. For each of the spheres s[i], i < spheres,
// s[i].hit(ox, oy, &n) returns the depth where the ray meets the sphere, or -INF, and sets n to the
// brightness there. The sphere with the largest depth is seen: the pixel has its (r, g, b), multiplied by n;
// it is black if the ray meets none. Red, green and blue, as 0 to 255, and alpha, 255, are
// the bytes from ptr + 4 * (x + y * size) on.
