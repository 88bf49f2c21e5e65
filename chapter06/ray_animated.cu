// SPDX-License-Identifier: MIT
/*
 * ray_animated: an animation that rewrites constant memory for each frame
 *
 * Teaches: Constant memory cannot change while a kernel runs, but the host may write it between two
 *          launches. Before each frame the host moves the spheres and copies them to constant memory
 *          with cudaMemcpyToSymbol. Events time each frame.
 * Terms:   constant memory, cudaMemcpyToSymbol, __constant__, broadcast, ray tracing, frame, event,
 *          elapsed time
 * Book:    6.3.1 (course); C 5 (animated)
 * After:   chapter06/ray
 * Build:   nvcc -o ray_animated chapter06/ray_animated.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter06/ray_animated --output ray_animated.webp
 * Picture: yes
 * Check:   --size 100 --frames 2 | --size 9 --frames 2 --spheres 2000
 * Web:     --size 512 --frames 60
 */
#include "../common/book.h"
#include "../common/cpu_anim.h"
#include "spheres.h" // struct Sphere with hit(), place_spheres()

struct DataBlock {
    Sphere first[MAX_SPHERES], moved[MAX_SPHERES]; // at tick 0, and in the current frame
    uchar4 *dev_bitmap;
    CPUAnimBitmap *bitmap;
    cudaEvent_t start, stop;
    float totalTime; // of all frames
    int frames;
    int turned; // ticks that a drag of the mouse has added
    int tick;   // of the current frame, with these
};

static void time_kernel(uchar4 *dev_bitmap);
static bool check(const DataBlock *d);
static void turn(DataBlock *d, int, int, int x, int); // a drag in a window turns the spheres

// Each sphere rotates about the vertical axis through the middle, once or twice in 120 frames, one way or the
// other.
static void move_spheres(Sphere *moved, const Sphere *first, int ticks) {
    const int period = 120, turns[] = {1, -1, 2, -2};
    for (int i = 0; i < spheres; i++) {
        double angle = 2 * M_PI * turns[i % 4] * (ticks % period) / period;
        moved[i] = first[i];
        moved[i].x = cos(angle) * first[i].x + sin(angle) * first[i].z;
        moved[i].z = cos(angle) * first[i].z - sin(angle) * first[i].x;
    }
}

__constant__ Sphere s[MAX_SPHERES];

__global__ void kernel(uchar4 *ptr, size_t size, int spheres) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    float ox = (x - size / 2.0f) * (DIM / (float)size);
    float oy = (y - size / 2.0f) * (DIM / (float)size);

    float r = 0, g = 0, b = 0;
    float maxz = -INF;
    for (int i = 0; i < spheres; i++) { // broadcast: all threads of a warp read the same s[i]
        float n = 0, t = s[i].hit(ox, oy, &n);
        if (t > maxz) {
            r = s[i].r * n;
            g = s[i].g * n;
            b = s[i].b * n;
            maxz = t;
        }
    }
    ptr[x + y * size] = make_uchar4(r * 255, g * 255, b * 255, 255);
}

static void generate_frame(DataBlock *d, int ticks) {
    HANDLE_ERROR(cudaEventRecord(d->start, 0));

    d->tick = ticks + d->turned;
    move_spheres(d->moved, d->first, d->tick);
    // The copy runs after the kernels launched before it, which still read the old spheres.
    HANDLE_ERROR(cudaMemcpyToSymbol(s, d->moved, sizeof(Sphere) * spheres));

    dim3 grids((size + block - 1) / block, (size + block - 1) / block), threads(block, block);
    kernel<<<grids, threads>>>(d->dev_bitmap, size, spheres);
    HANDLE_LAUNCH();
    HANDLE_ERROR(
        cudaMemcpy(d->bitmap->get_ptr(), d->dev_bitmap, d->bitmap->image_size(), cudaMemcpyDeviceToHost));

    HANDLE_ERROR(cudaEventRecord(d->stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(d->stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, d->start, d->stop));
    d->totalTime += elapsedTime;
    d->frames++;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    static DataBlock data; // all zero
    CPUAnimBitmap bitmap(size, size, &data);
    data.bitmap = &bitmap;
    HANDLE_ERROR(cudaMalloc(&data.dev_bitmap, bitmap.image_size()));
    HANDLE_ERROR(cudaEventCreate(&data.start));
    HANDLE_ERROR(cudaEventCreate(&data.stop));
    place_spheres(data.first, spheres);

    bitmap.click_drag(turn);
    bitmap.anim_and_exit(generate_frame);
    printf("Average Time per frame:  %3.1f ms\n", data.totalTime / data.frames);
    time_kernel(data.dev_bitmap);
    bool ok = check(&data);

    HANDLE_ERROR(cudaEventDestroy(data.start));
    HANDLE_ERROR(cudaEventDestroy(data.stop));
    HANDLE_ERROR(cudaFree(data.dev_bitmap));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    sphere_settings(argc, argv, "Draws moving spheres from constant memory; a drag turns them.",
                    ANIMATION | TIMES);
}

static void turn(DataBlock *d, int, int, int x, int) {
    d->turned = 120 * x / size;
}

static void time_kernel(uchar4 *dev_bitmap) {
    dim3 grids((size + block - 1) / block, (size + block - 1) / block), threads(block, block);
    float ms = median_ms([&] { kernel<<<grids, threads>>>(dev_bitmap, size, spheres); });
    printf("Kernel:                  %.3f ms, %.1f GFLOP/s\n", ms, ray_operations() / ms / 1e6);
}

static bool check(const DataBlock *d) {
    HostArray<Sphere> own(spheres);
    place_reference(own);
    for (int i = 0; i < spheres; i++) { // rotates it, in polar coordinates
        double far = hypot((double)own[i].x, (double)own[i].z), turns[] = {1, -1, 2, -2};
        double angle = atan2((double)own[i].z, (double)own[i].x) - turns[i % 4] * (d->tick % 120) * M_PI / 60;
        own[i].x = far * cos(angle);
        own[i].z = far * sin(angle);
    }
    return check_spheres(d->bitmap->get_ptr(), d->moved, own, 1e-6);
}

// Task: kernel(): Blocks of threads cover a picture of size x size pixels: the thread with the coordinates
// (x, y) in the grid computes pixel (x, y), and threads outside do nothing. The ray of the pixel is at
// ox = (x - size / 2) * DIM / size and oy, alike, in float. For each of the spheres s[i], i < spheres,
// s[i].hit(ox, oy, &n) returns the depth where the ray meets the sphere, or -INF, and sets n to the
// brightness there. The sphere with the largest depth is seen: the pixel has its (r, g, b), multiplied by n;
// it is black if the ray meets none. Red, green and blue, as 0 to 255, and alpha, 255, are
// stored in ptr[x + y * size].
