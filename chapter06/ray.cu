// SPDX-License-Identifier: MIT
/*
 * ray: ray tracing from constant memory, timed with events
 *
 * Teaches: Constant memory is for data that no thread writes and all threads of a warp read at the same
 *          address: one read is broadcast to the warp, and a cache serves the next ones. A warp is 32
 *          threads with successive numbers, here two rows of 16 pixels, that execute an instruction together;
 *          if they asked for different spheres, these would be read one after the other. Today global memory
 *          is cached too, and here it is faster on an H200 (ray_noconst): prefer constant memory only where a
 *          measurement shows a gain. Two events, time stamps that the device records, measure the time
 *          between them.
 * Terms:   constant memory, __constant__, broadcast, warp, event, elapsed time, ray tracing
 * Book:    6.2.3; C 5.6.4 (from constant memory): --block 32
 * Build:   nvcc -o ray chapter06/ray.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter06/ray --output ray.png
 * Differs: the nearest sphere is drawn; the page's kernel does not store the depth it compares with, so
 *          the last sphere covers the others. ray_ladder times both kinds of memory; docs/book-vs-today.md
 *          says why constant memory does not win.
 * Picture: yes
 * Check:   --size 100 --block 32 | --size 9 --spheres 2000 --background sky
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"

#define DIM         1024 // the picture shows DIM x DIM units, whatever its size in pixels
#define INF         2e10f
#define SPHERES     20
#define MAX_SPHERES 2000 // 56,000 bytes, 54.7 KB of the 64 KB of constant memory

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
static float3 background;     // --background
static void time_kernel(unsigned char *dev_bitmap);
static bool check_spheres(const unsigned char *pixels, const Sphere *s);

__constant__ Sphere s[MAX_SPHERES];

// Drawn in docs/drawings.md#rays-through-the-pixels-of-a-picture
__global__ void kernel(unsigned char *ptr, size_t size, int spheres, float3 background) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    // From the middle of the picture, in units: x - DIM / 2 if the picture has DIM pixels a side
    float ox = (x - size / 2.0f) * (DIM / (float)size);
    float oy = (y - size / 2.0f) * (DIM / (float)size);

    float r = background.x, g = background.y, b = background.z; // seen where the ray meets no sphere
    float maxz = -INF;
    for (int i = 0; i < spheres; i++) { // all threads of a warp read the same s[i]
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
    HANDLE_ERROR(cudaMalloc(&dev_bitmap, bitmap.image_size()));

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
    // Only the host writes constant memory. The copy takes the variable itself, not a pointer.
    HANDLE_ERROR(cudaMemcpyToSymbol(s, temp_s, sizeof(Sphere) * spheres));

    dim3 grids((size + block - 1) / block, (size + block - 1) / block), threads(block, block);
    kernel<<<grids, threads>>>(dev_bitmap, size, spheres, background);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop)); // waits until the device has recorded it
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to generate:  %3.1f ms\n", elapsedTime);
    time_kernel(dev_bitmap);

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_bitmap));

    bitmap.display_and_exit();
    bool ok = check_spheres(bitmap.get_ptr(), temp_s);
    free(temp_s);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "spheres.h" // the options and check_spheres()

void settings(int argc, char **argv) {
    const float3 colors[] = {{0, 0, 0}, {1, 1, 1}, {0.5f, 0.75f, 1}};
    int color = 0;
    sphere_settings(argc, argv, "Draws spheres from constant memory.", PICTURE | TIMES,
                    OPTION_WORD("background", &color, "black|white|sky", "colour where no sphere is"));
    background = colors[color];
    memcpy(behind, &colors[color], sizeof(behind));
}

static void time_kernel(unsigned char *dev_bitmap) {
    dim3 grids((size + block - 1) / block, (size + block - 1) / block), threads(block, block);
    float ms = median_ms([&] { kernel<<<grids, threads>>>(dev_bitmap, size, spheres, background); });
    printf("Kernel:            %.3f ms, %.1f GFLOP/s\n", ms, ray_operations() / ms / 1e6);
}

// Task: kernel(): Blocks of threads cover a picture of size x size pixels: the thread with the coordinates
// (x, y) in the grid computes pixel (x, y), and threads outside do nothing. The ray of the pixel is at
// ox = (x - size / 2) * DIM / size and oy, alike, in float. For each of the spheres s[i], i < spheres,
// s[i].hit(ox, oy, &n) returns the depth where the ray meets the sphere, or -INF, and sets n to the
// brightness there. The sphere with the largest depth is seen: the pixel has its (r, g, b), multiplied by n;
// it is `background` if the ray meets none. Red, green and blue, as 0 to 255, and alpha, 255, are
// the bytes from ptr + 4 * (x + y * size) on.
