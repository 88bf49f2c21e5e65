// SPDX-License-Identifier: MIT
/*
 * texture_3d: a volume in pitched memory and in a three-dimensional texture
 *
 * Teaches: A volume is read like a picture, between its texels too: linear filtering weighs the eight nearest
 *          texels. cudaMalloc3D allocates linear memory whose rows are padded to a pitch, so kernels
 *          write it through addresses. cudaMalloc3DArray allocates an array, which textures read.
 *          cudaMemcpy3D copies boxes between both and the host.
 * Terms:   texture object, CUDA array, pitch, tex3D, linear filtering, clamp
 * Book:    7.3.5 (course); N arrays (cudaMalloc3D)
 * After:   chapter07/texture_formats
 * Build:   nvcc -o texture_3d chapter07/texture_3d.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/texture_3d --output volume.png
 * Differs: the course takes the memory of cudaMalloc3D for an array. It is linear memory: an element lies
 *          pitch * (row + rows * slice) + column * size bytes after the first one.
 * Picture: yes
 * Check:   --texels 12 --size 37 --frames 125 | --texels 129 --size 20 --frames 3
 * Web:     --size 256 --frames 60
 */
#include "../common/book.h"
#include "../common/cpu_anim.h"

static size_t n = 64;     // --texels: the volume has n x (n + 1) x (n + 2) texels
static size_t side = 512; // --size, pixels
static bool check_volume(const char *name, const float *volume);
static bool check_slice(CPUAnimBitmap *bitmap);

// The value of a texel: a whole number, so that floats are exact. It rises and falls between 0 and 250 with
// the distance from a corner of the volume.
__host__ __device__ static inline float texel(size_t x, size_t y, size_t z) {
    int rest = (x * x + 3 * y * y + 5 * z * z) / 8 % 500;
    return abs(rest - 250);
}

__global__ void fill(cudaPitchedPtr memory, cudaExtent extent) {
    size_t x = threadIdx.x + blockIdx.x * blockDim.x, y = blockIdx.y, z = blockIdx.z;
    if (x >= extent.width)
        return;
    char *row = (char *)memory.ptr + memory.pitch * (y + extent.height * z);
    ((float *)row)[x] = texel(x, y, z);
}

// Until CUDA 11 the texture was a texture reference, texture<float, 3> tex, declared for the whole file.
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

struct Slices {
    CPUAnimBitmap *bitmap;
    uchar4 *dev_pixels;
    cudaTextureObject_t texture;
    cudaExtent extent;
};

// The slice goes from the first texels to the last ones in 60 frames, and back.
static void generate_slice(Slices *s, int ticks) {
    float z = 0.5f + (s->extent.depth - 1) * (1 - fabsf(1 - ticks % 120 / 60.0f));
    dim3 blocks((side + 15) / 16, (side + 15) / 16), threads(16, 16);
    draw_slice<<<blocks, threads>>>(s->dev_pixels, side, s->texture, s->extent, z);
    HANDLE_LAUNCH();
    HANDLE_ERROR(
        cudaMemcpy(s->bitmap->get_ptr(), s->dev_pixels, s->bitmap->image_size(), cudaMemcpyDeviceToHost));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    const size_t width = n, height = n + 1, depth = n + 2, count = width * height * depth;
    float *volume = (float *)malloc(count * sizeof(float));
    HANDLE_NULL(volume);

    // The width of linear memory is given in bytes, that of an array in texels.
    cudaPitchedPtr memory;
    HANDLE_ERROR(cudaMalloc3D(&memory, make_cudaExtent(width * sizeof(float), height, depth)));
    cudaExtent extent = make_cudaExtent(width, height, depth);
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    HANDLE_ERROR(cudaMalloc3DArray(&array, &format, extent));
    printf("%zu x %zu x %zu texels; rows of %zu bytes, pitch %zu\n", width, height, depth,
           width * sizeof(float), memory.pitch);
    fill<<<dim3((width + 63) / 64, height, depth), 64>>>(memory, extent);
    HANDLE_LAUNCH();

    // Copy from linear memory to the array. If one side is an array, the width of the extent is in texels,
    // not bytes.
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = memory;
    copy.dstArray = array;
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToDevice;
    HANDLE_ERROR(cudaMemcpy3D(&copy));

    // Copy both back to the host.
    cudaMemcpy3DParms back = {};
    back.srcPtr = memory;
    back.dstPtr = make_cudaPitchedPtr(volume, width * sizeof(float), width, height);
    back.extent = make_cudaExtent(width * sizeof(float), height, depth);
    back.kind = cudaMemcpyDeviceToHost;
    HANDLE_ERROR(cudaMemcpy3D(&back));
    bool ok = check_volume("linear memory", volume);

    memset(volume, 0, count * sizeof(float));
    memset(&back.srcPtr, 0, sizeof(back.srcPtr));
    back.srcArray = array;
    back.extent = extent;
    HANDLE_ERROR(cudaMemcpy3D(&back));
    ok = check_volume("array", volume) && ok;

    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = desc.addressMode[2] = cudaAddressModeClamp;
    desc.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));

    // A slice moves through the volume. Most of its pixels lie between texels.
    Slices slices = {NULL, NULL, texture, extent};
    CPUAnimBitmap bitmap(side, side, &slices);
    slices.bitmap = &bitmap;
    HANDLE_ERROR(cudaMalloc(&slices.dev_pixels, bitmap.image_size()));
    bitmap.anim_and_exit(generate_slice);
    ok = check_slice(&bitmap) && ok;

    HANDLE_ERROR(cudaFree(slices.dev_pixels));
    HANDLE_ERROR(cudaDestroyTextureObject(texture));
    HANDLE_ERROR(cudaFree(memory.ptr));
    HANDLE_ERROR(cudaFreeArray(array));
    free(volume);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    options.frames = 31; // of an animation in a file; the last one is the middle of the volume
    configure(argc, argv, "Reads a volume through a three-dimensional texture.", ANIMATION,
              {OPTION_SIZE("size", &side, 1, 16384, "pixels a side"),
               OPTION_SIZE("texels", &n, 1, 1024, "texels of a row")});
    size_t bytes = n * (n + 1) * (n + 2) * sizeof(float);
    require_memory(3 * bytes + 2 * side * side * 4, 2 * bytes + 512 * (n + 1) * (n + 2) + side * side * 4);
}

// The texel at whole coordinates, which the address mode clamps
static double expected_texel(double x, double y, double z) {
    x = fmin(fmax(x, 0), n - 1.0), y = fmin(fmax(y, 0), n), z = fmin(fmax(z, 0), n + 1.0);
    return fabs(fmod(floor((x * x + 3 * y * y + 5 * z * z) / 8), 500) - 250);
}

static double slice; // its z coordinate

// The mean of the eight nearest texels. The weights have 8 fractional bits in each direction, and the last
// one may be off by one.
static void expect_slice(size_t column, size_t row, const unsigned char *got, unsigned char *expected) {
    double x = (column + 0.5) * n / side - 0.5, y = (row + 0.5) * (n + 1) / side - 0.5, z = slice - 0.5;
    double sum = 0, least = INFINITY, most = -INFINITY, a = x - floor(x), b = y - floor(y), c = z - floor(z);
    for (int corner = 0; corner < 8; corner++) {
        int dx = corner & 1, dy = corner >> 1 & 1, dz = corner >> 2;
        double value = expected_texel(floor(x) + dx, floor(y) + dy, floor(z) + dz);
        sum += value * (dx ? a : 1 - a) * (dy ? b : 1 - b) * (dz ? c : 1 - c);
        least = fmin(least, value);
        most = fmax(most, value);
    }
    for (int i = 0; i < 3; i++)
        expected[i] = byte_near(sum, 3 * (most - least) / 256 + 1e-4, got[i]);
    expected[3] = 255;
}

// Compares every texel; all bits must be equal.
static bool check_volume(const char *name, const float *volume) {
    return check_floats(name, volume, n * (n + 1) * (n + 2), 0,
                        [](size_t i) { return expected_texel(i % n, i / n % (n + 1), i / n / (n + 1)); });
}

static bool check_slice(CPUAnimBitmap *bitmap) {
    int step = bitmap->ticks % 120; // 0 and 60: at the centres of the first and the last texels
    slice = 0.5 + (n + 1) * ((step < 60 ? step : 120 - step) / 60.0);
    return check_picture("slice", bitmap->get_ptr(), side, side, expect_slice, 0);
}

// Task: fill(): One thread per texel: the thread with the coordinates (x, y, z) stores texel(x, y, z) in a
// volume of floats. x is the x coordinate of the thread in the grid, y is blockIdx.y and z is blockIdx.z.
// Threads with x >= extent.width do nothing. The rows of the volume begin memory.pitch bytes apart, and a
// slice has extent.height rows.
