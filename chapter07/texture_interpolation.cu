// SPDX-License-Identifier: MIT
/*
 * texture_interpolation: point and linear filtering of a texture
 *
 * Teaches: A texture can be read at any coordinate, also between its texels. Point filtering returns the
 *          nearest texel, linear filtering the weighted mean of the two nearest, or in two dimensions of the
 *          four nearest. Texel i extends from i to i + 1, so its exact value is at its centre, i + 0.5. In
 *          normalized coordinates the whole texture extends from 0 to 1.
 * Terms:   filtering, linear filtering, point filtering, texel, normalized coordinates, CUDA array,
 *          tex1D, tex2D, clamp
 * Book:    7.3.5 (course)
 * After:   chapter07/pitched_memory
 * Build:   nvcc -o texture_interpolation chapter07/texture_interpolation.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/texture_interpolation --2d
 * Differs: --2d reads a texture of 4 x 4 texels, and copies it to an array and back. The course names
 *          functions for these copies that CUDA has deprecated; cudaMemcpy2DToArray and
 *          cudaMemcpy2DFromArray replace them.
 * Check:   --points 107 | --points 9 --2d
 */
#include "../common/book.h"

#define N 10

enum { POINT, LINEAR, NORMALIZED_POINT, NORMALIZED_LINEAR, KINDS };

static int per_texel = 4; // --points
static bool check(const float *values, const float *texels, int kind, int points);

// Reads a texture of N texels from one texel before its beginning to one behind its end: point k is at
// (k + 0.5) / per_texel - 1.
__global__ void kernel(float *values, cudaTextureObject_t texture, bool normalized, int points,
                       int per_texel) {
    int k = threadIdx.x + blockIdx.x * blockDim.x;
    if (k >= points)
        return;
    float x = (k + 0.5f) / per_texel - 1;
    values[k] = tex1D<float>(texture, normalized ? x / N : x);
}

static cudaTextureObject_t make_texture(cudaArray_t array, int kind) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
    desc.filterMode =
        kind == LINEAR || kind == NORMALIZED_LINEAR ? cudaFilterModeLinear : cudaFilterModePoint;
    desc.readMode = cudaReadModeElementType;
    desc.normalizedCoords = kind == NORMALIZED_POINT || kind == NORMALIZED_LINEAR;
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    return texture;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float texels[N];
    for (int i = 0; i < N; i++)
        texels[i] = i * i;

    // Linear filtering needs a CUDA array. A program does not know the layout of an array; it writes to it
    // with a copy and reads it with texture fetches.
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    HANDLE_ERROR(cudaMallocArray(&array, &format, N));
    HANDLE_ERROR(
        cudaMemcpy2DToArray(array, 0, 0, texels, sizeof(texels), sizeof(texels), 1, cudaMemcpyHostToDevice));

    int points = (N + 2) * per_texel;
    float *values = host_array<float>(KINDS * points), *dev_values;
    HANDLE_ERROR(cudaMalloc(&dev_values, points * sizeof(float)));
    bool ok = true;
    for (int kind = 0; kind < KINDS; kind++) {
        cudaTextureObject_t texture = make_texture(array, kind);
        kernel<<<(points + 255) / 256, 256>>>(dev_values, texture, kind >= NORMALIZED_POINT, points,
                                              per_texel);
        HANDLE_LAUNCH();
        float *row = values + kind * points;
        HANDLE_ERROR(cudaMemcpy(row, dev_values, points * sizeof(float), cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaDestroyTextureObject(texture));
        ok = check(row, texels, kind, points) && ok;
    }

    printf("Texel i is i * i, for i from 0 to %d.\n", N - 1);
    printf("         unnormalized      normalized\n");
    printf("     x   point  linear   point  linear\n");
    for (int k = 0; k < points; k++) {
        printf("%6.3f", (k + 0.5) / per_texel - 1);
        for (int kind = 0; kind < KINDS; kind++)
            printf(" %7.3f", values[kind * points + k]);
        printf("\n");
    }

    HANDLE_ERROR(cudaFree(dev_values));
    HANDLE_ERROR(cudaFreeArray(array));
    free(values);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#define SIDE 4 // texels of the texture for --2d, in each direction

// The expected value at (x, y) of a texture of columns x rows texels, or `got` if rounding can explain the
// difference. The weights of linear filtering have 8 fractional bits, and the last bit may be off by one, in
// each direction. In point filtering a point may lie on the edge of two texels, when their number per texel
// is odd; rounding decides which of the two is read, so both are right.
static double expected_value(float got, const float *texels, int columns, int rows, double x, double y,
                             bool linear) {
    auto texel = [&](double i, double j) {
        return texels[(int)fmin(fmax(i, 0), columns - 1) + (int)fmin(fmax(j, 0), rows - 1) * columns];
    };
    if (!linear) {
        for (double dx : {-1e-5, 1e-5})
            for (double dy : {-1e-5, 1e-5})
                if (got == texel(floor(x + dx), floor(y + dy)))
                    return got;
        return texel(floor(x), floor(y));
    }
    double i = floor(x - 0.5), j = floor(y - 0.5), a = x - 0.5 - i, b = y - 0.5 - j;
    double around[] = {texel(i, j), texel(i + 1, j), texel(i, j + 1), texel(i + 1, j + 1)};
    double value =
        (1 - b) * ((1 - a) * around[0] + a * around[1]) + b * ((1 - a) * around[2] + a * around[3]);
    double most = *std::max_element(around, around + 4), least = *std::min_element(around, around + 4);
    return fabs(got - value) <= (rows > 1 ? 2 : 1) * (most - least) / 256 + 1e-5 ? got : value;
}

// Point (i, j) is at x = (i + 0.5) / per_texel - 1, and y likewise with j.
__global__ void kernel_2d(float *values, cudaTextureObject_t texture, int points, int per_texel) {
    int i = threadIdx.x + blockIdx.x * blockDim.x, j = threadIdx.y + blockIdx.y * blockDim.y;
    if (i < points && j < points)
        values[i + j * points] =
            tex2D<float>(texture, (i + 0.5f) / per_texel - 1, (j + 0.5f) / per_texel - 1);
}

// For --2d. Returns the exit status.
static int read_in_two_dimensions(void) {
    float texels[SIDE][SIDE], back[SIDE][SIDE];
    for (int j = 0; j < SIDE; j++)
        for (int i = 0; i < SIDE; i++)
            texels[j][i] = i * i + 10 * j;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    HANDLE_ERROR(cudaMallocArray(&array, &format, SIDE, SIDE));
    HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, texels, sizeof(texels[0]), sizeof(texels[0]), SIDE,
                                     cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy2DFromArray(back, sizeof(back[0]), array, 0, 0, sizeof(back[0]), SIDE,
                                       cudaMemcpyDeviceToHost));
    // Compared as ints: the copies must not change a bit.
    bool ok = check_ints("copied back", (const int *)back, (const int *)texels, SIDE * SIDE);

    int points = (SIDE + 2) * per_texel;
    size_t count = (size_t)points * points;
    DeviceArray<float> dev_values(count);
    printf("Texel (i, j) is i * i + 10 * j, for i and j from 0 to %d.\n", SIDE - 1);
    for (int kind : {POINT, LINEAR}) {
        cudaTextureObject_t texture = make_texture(array, kind);
        dim3 blocks((points + 15) / 16, (points + 15) / 16), threads(16, 16);
        kernel_2d<<<blocks, threads>>>(dev_values, texture, points, per_texel);
        HANDLE_LAUNCH();
        HostArray<float> values(dev_values, count);
        HANDLE_ERROR(cudaDestroyTextureObject(texture));
        const char *name = kind == POINT ? "point" : "linear";
        printf("%s\n", name);
        for (size_t at = 0; at < count; at++)
            printf(" %7.3f%s", values[at], (at + 1) % points ? "" : "\n");
        auto expected = [&](size_t at) {
            return expected_value(values[at], texels[0], SIDE, SIDE, (at % points + 0.5) / per_texel - 1,
                                  (at / points + 0.5) / per_texel - 1, kind == LINEAR);
        };
        ok = check_floats(name, values, count, 0, expected) && ok;
    }
    HANDLE_ERROR(cudaFreeArray(array));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With --2d the program ends here.
void settings(int argc, char **argv) {
    bool two_dimensions = false;
    parse_options(argc, argv, "Reads a texture between its texels.", 0,
                  {OPTION_INT("points", &per_texel, 1, 1000, "points to read in each texel"),
                   OPTION_FLAG("2d", &two_dimensions, "a texture of 4 x 4 texels")});
    if (two_dimensions && per_texel > 100)
        quit(EXIT_USAGE, "--points %d: with --2d at most 100", per_texel);
    select_device();
    if (two_dimensions)
        exit(read_in_two_dimensions());
}

static bool check(const float *values, const float *, int kind, int points) {
    float texels[N];
    for (int i = 0; i < N; i++)
        texels[i] = i * i;
    const char *const names[KINDS] = {"point", "linear", "normalized, point", "normalized, linear"};
    bool linear = kind == LINEAR || kind == NORMALIZED_LINEAR;
    auto expected = [&](int k) {
        return expected_value(values[k], texels, N, 1, (k + 0.5) / per_texel - 1, 0.5, linear);
    };
    bool ok = check_floats(names[kind], values, points, 0, expected);
    static const float *first; // the values of the first kind; those of the others are printed from behind it
    first = kind == POINT ? values : first;
    return ok && values == first + kind * points;
}

// Task: kernel(): The thread with the global index k reads the one-dimensional texture, which has N texels,
// at the coordinate x = (k + 0.5) / per_texel - 1, in float, and stores the value in values[k]. If
// `normalized` is true, the coordinate is x / N instead. If k >= points, the thread does nothing.
// make_texture(): Return a texture object for the CUDA array. The address mode is clamp, and the read mode
// returns the floats unchanged. The filter mode is linear for the kinds LINEAR and NORMALIZED_LINEAR, and
// point for the others. The coordinates are normalized for the kinds NORMALIZED_POINT and NORMALIZED_LINEAR.
