// SPDX-License-Identifier: MIT
/*
 * texture_interpolation_2d: point and linear filtering in two dimensions
 *
 * Teaches: A two-dimensional array is filled by a copy and read back by a copy. In two dimensions point
 *          filtering returns the nearest texel, and linear filtering the weighted mean of the four nearest.
 * Terms:   filtering, linear filtering, point filtering, texel, CUDA array, tex2D, clamp
 * Book:    7.3.5 (course); N arrays (to and from an array)
 * After:   chapter07/texture_interpolation
 * Build:   nvcc -o texture_interpolation_2d chapter07/texture_interpolation_2d.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/texture_interpolation_2d
 * Differs: the course names functions for the copies that CUDA has deprecated; cudaMemcpy2DToArray and
 *          cudaMemcpy2DFromArray replace them.
 * Check:   --points 9
 */
#include "../common/book.h"

#define SIDE 4

static int per_texel = 2; // --points
static bool check_copy(const float *back);
static bool check(const char *name, const float *values, int points, bool linear);

// Until CUDA 11 the texture was a texture reference, texture<float, 2> tex, declared for the whole file.
// Reads from one texel before the texture to one behind it: point (i, j) is at x = (i + 0.5) / per_texel - 1,
// and at the same y with j.
__global__ void kernel(float *values, cudaTextureObject_t texture, int points, int per_texel) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int j = threadIdx.y + blockIdx.y * blockDim.y;
    if (i < points && j < points)
        values[i + j * points] =
            tex2D<float>(texture, (i + 0.5f) / per_texel - 1, (j + 0.5f) / per_texel - 1);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float texels[SIDE][SIDE], back[SIDE][SIDE];
    for (int j = 0; j < SIDE; j++)
        for (int i = 0; i < SIDE; i++)
            texels[j][i] = i * i + 10 * j;

    // To the array and back
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    size_t width = SIDE * sizeof(float); // bytes of a row
    HANDLE_ERROR(cudaMallocArray(&array, &format, SIDE, SIDE));
    HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, texels, width, width, SIDE, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy2DFromArray(back, width, array, 0, 0, width, SIDE, cudaMemcpyDeviceToHost));
    int right = check_copy(back[0]); // checks that have passed

    int points = (SIDE + 2) * per_texel;
    float *values = (float *)malloc(points * points * sizeof(float)), *dev_values;
    HANDLE_NULL(values);
    HANDLE_ERROR(cudaMalloc(&dev_values, points * points * sizeof(float)));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
    dim3 blocks((points + 15) / 16, (points + 15) / 16), threads(16, 16);
    printf("Texel (i, j) is i * i + 10 * j, for i and j from 0 to %d.\n", SIDE - 1);
    for (int linear = 0; linear < 2; linear++) {
        desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
        cudaTextureObject_t texture;
        HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
        kernel<<<blocks, threads>>>(dev_values, texture, points, per_texel);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(values, dev_values, points * points * sizeof(float), cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaDestroyTextureObject(texture));
        printf("%s\n", linear ? "linear" : "point");
        for (int at = 0; at < points * points; at++)
            printf(" %7.3f%s", values[at], (at + 1) % points ? "" : "\n");
        right += check(linear ? "linear" : "point", values, points, linear);
    }

    HANDLE_ERROR(cudaFree(dev_values));
    HANDLE_ERROR(cudaFreeArray(array));
    free(values);
    return check_value("right checks", right, 3, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Reads a two-dimensional texture between its texels.", 0,
              {OPTION_INT("points", &per_texel, 1, 100, "points to read in each texel and direction")});
}

static double texel(double x, double y) {
    int i = fmin(fmax(x, 0), SIDE - 1), j = fmin(fmax(y, 0), SIDE - 1);
    return i * i + 10 * j;
}

// The expected value at (x, y), or `got` if rounding can explain the difference. A point may lie on the edge
// of two texels, when their number per texel is odd; then any of them is right. The weights of linear
// filtering have 8 fractional bits in each direction, and the last bit may be off by one.
static double expected_value(float got, double x, double y, bool linear) {
    if (!linear) {
        for (int k = 0; k < 4; k++)
            if (got == texel(floor(x + (k % 2 ? 1e-5 : -1e-5)), floor(y + (k < 2 ? 1e-5 : -1e-5))))
                return got;
        return texel(floor(x), floor(y));
    }
    double i = floor(x - 0.5), j = floor(y - 0.5), a = x - 0.5 - i, b = y - 0.5 - j;
    double value = (1 - b) * ((1 - a) * texel(i, j) + a * texel(i + 1, j)) +
                   b * ((1 - a) * texel(i, j + 1) + a * texel(i + 1, j + 1));
    return fabs(got - value) <= 2 * (texel(i + 1, j + 1) - texel(i, j)) / 256 + 1e-5 ? got : value;
}

static bool check(const char *name, const float *values, int points, bool linear) {
    return check_floats(name, values, points * points, 0, [=](int at) {
        double x = (at % points + 0.5) / per_texel - 1, y = (at / points + 0.5) / per_texel - 1;
        return expected_value(values[at], x, y, linear);
    });
}

static bool check_copy(const float *back) {
    return check_floats("copied back", back, SIDE * SIDE, 0,
                        [](int at) { return texel(at % SIDE, at / SIDE); });
}

// Task: kernel(): Thread (i, j) of the two-dimensional grid reads the texture at x = (i + 0.5) / per_texel -
// 1 and y = (j + 0.5) / per_texel - 1, in float, and stores the value in values[i + j * points]. If i >=
// points or j >= points, it does nothing.
