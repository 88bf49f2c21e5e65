// SPDX-License-Identifier: MIT
/*
 * ray: ray tracing from constant memory, timed with events
 *
 * Teaches: Data that every thread reads at the same time and no thread writes belongs in constant
 *          memory: a read is broadcast to all threads of a warp, and a cache serves the next ones.
 *          Two events, time stamps that the device records, measure the time between them.
 * Terms:   constant memory, __constant__, broadcast, warp, event, elapsed time, ray tracing
 * Book:    6.2.3
 * Run:     ./bin/chapter06/ray --output ray.png
 * Differs: the nearest sphere is drawn. The book's kernel does not store the depth it compares with,
 *          so the last sphere covers the others. The kernel alone is timed as well. Size of a block and
 *          background are options; the picture does not depend on the former. The book's kernel was up
 *          to 50 % faster than with global memory (ray_noconst). On an H200 it is slower (0.031 ms, and
 *          0.025 ms with global memory), because reads of global memory are cached too.
 * Picture: yes
 * Check:   --size 100 | --size 9 --spheres 2000
 */
#include "../common/book.h"
#include "../common/cpu_bitmap.h"
#include "../common/timing.h"
#include "spheres.h" // struct Sphere with hit(), place_spheres(), check_spheres()

__constant__ Sphere s[MAX_SPHERES];

__global__ void kernel(unsigned char *ptr, size_t size, int spheres, float3 behind) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float half = size / 2.0f, unit = DIM / (float)size; // units per pixel
    float ox = (x - half) * unit, oy = (y - half) * unit;

    float r = behind.x, g = behind.y, b = behind.z; // the background
    float maxz = -INF;
    for (int i = 0; i < spheres; i++) { // all threads of a warp read the same s[i]
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

int main(int argc, char **argv) {
    settings(argc, argv);
    cudaEvent_t start, stop;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    HANDLE_ERROR(cudaEventRecord(start, 0));

    CPUBitmap bitmap(size, size);
    unsigned char *dev_bitmap;
    HANDLE_ERROR(cudaMalloc(&dev_bitmap, bitmap.image_size()));

    // Only the host writes constant memory. The copy takes the variable itself, not a pointer.
    Sphere temp_s[MAX_SPHERES];
    place_spheres(temp_s, spheres);
    HANDLE_ERROR(cudaMemcpyToSymbol(s, temp_s, sizeof(Sphere) * spheres));

    dim3 grids((size + block - 1) / block, (size + block - 1) / block), threads(block, block);
    kernel<<<grids, threads>>>(dev_bitmap, size, spheres, backgrounds[background]);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop)); // waits until the device has recorded it
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    printf("Time to generate:  %3.1f ms\n", elapsedTime);

    float ms =
        median_ms([&] { kernel<<<grids, threads>>>(dev_bitmap, size, spheres, backgrounds[background]); });
    printf("Kernel:            %.3f ms, %.1f GFLOP/s\n", ms, ray_operations() / ms / 1e6);

    bitmap.display_and_exit();
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_bitmap));
    return check_spheres(bitmap.get_ptr(), temp_s) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    sphere_settings(argc, argv, "Draws spheres from constant memory.", PICTURE | TIMES);
}

// Task: kernel(): Blocks of threads cover a picture of size x size pixels, one thread per pixel: the thread
// with the coordinates (x, y) in the grid computes pixel (x, y). Threads outside the picture do nothing. The
// ray of the pixel is at ox = (x - size / 2) * DIM / size and oy = (y - size / 2) * DIM / size, all in float.
// For each of the spheres s[i], i < spheres, in constant memory, s[i].hit(ox, oy, &n) returns the depth of
// the point where the ray meets the sphere, and sets n to the brightness of this point; it returns -INF if
// the ray misses the sphere. The nearest sphere is the one with the largest depth. The colour of the pixel is
// (s[i].r, s[i].g, s[i].b) of the nearest sphere, multiplied by its n. If the ray meets no sphere, it is the
// background colour `behind`, with red in x, green in y and blue in z. The pixel is RGBA, 4 bytes at
// ptr + 4 * (x + y * size): red, green and blue are scaled from 0...1 to 0...255, and alpha is 255.
