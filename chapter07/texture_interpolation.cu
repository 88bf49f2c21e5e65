// SPDX-License-Identifier: MIT
/*
 * texture_interpolation: point and linear filtering of a texture
 *
 * Teaches: A texture can be read at any coordinate, also between its texels. Point filtering returns the
 *          nearest texel, linear filtering the weighted mean of the two nearest. Texel i extends from i to
 *          i + 1, so its exact value is at its centre, i + 0.5. In normalized coordinates the whole texture
 *          extends from 0 to 1.
 * Terms:   filtering, linear filtering, point filtering, texel, normalized coordinates, CUDA array,
 *          tex1D, clamp
 * Book:    7.3.5 (course); N textures (filters)
 * After:   chapter07/pitched_memory
 * Build:   nvcc -o texture_interpolation chapter07/texture_interpolation.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/texture_interpolation
 * Differs: the course fills the array with a function that CUDA has deprecated; cudaMemcpy2DToArray
 *          replaces it. With --whole --points 1 the coordinates are the course's, whole numbers: linear
 *          filtering returns the mean of texels x - 1 and x there, and not texel x.
 * Check:   --points 107 | --points 1 --whole
 */
#include "../common/book.h"

#define N 10

enum { POINT, LINEAR, NORMALIZED_POINT, NORMALIZED_LINEAR, KINDS };

static int per_texel = 4; // --points
static float shift = 0.5; // 0 with --whole
static bool check(const float *values, int points);

// Reads a texture of N texels from one texel before its beginning to one behind its end: point k is at
// (k + shift) / per_texel - 1.
__global__ void kernel(float *values, cudaTextureObject_t texture, bool normalized, int points, int per_texel,
                       float shift) {
    int k = threadIdx.x + blockIdx.x * blockDim.x;
    if (k >= points)
        return;
    float x = (k + shift) / per_texel - 1;
    values[k] = tex1D<float>(texture, normalized ? x / N : x);
}

// Until CUDA 11 this was a texture reference: texture<float, 1, cudaReadModeElementType> tex, declared for
// the whole file, which kernels read by tex1D(tex, x). The comments show the lines that set it.
static cudaTextureObject_t make_texture(cudaArray_t array, int kind) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array; // cudaBindTextureToArray(tex, array);
    cudaTextureDesc desc = {};
    desc.addressMode[0] = cudaAddressModeClamp; // tex.addressMode[0] = cudaAddressModeClamp;
    desc.filterMode =                           // tex.filterMode = cudaFilterModeLinear;
        kind == LINEAR || kind == NORMALIZED_LINEAR ? cudaFilterModeLinear : cudaFilterModePoint;
    desc.readMode = cudaReadModeElementType; // the third argument of texture<...>
    desc.normalizedCoords = kind == NORMALIZED_POINT || kind == NORMALIZED_LINEAR; // tex.normalized = true;
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    return texture;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    float texels[N];
    for (int i = 0; i < N; i++)
        texels[i] = i * i;

    // Linear filtering in one dimension needs a CUDA array. Its layout is not documented: a program
    // writes to it with a copy and reads it with texture fetches.
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    HANDLE_ERROR(cudaMallocArray(&array, &format, N));
    HANDLE_ERROR(
        cudaMemcpy2DToArray(array, 0, 0, texels, sizeof(texels), sizeof(texels), 1, cudaMemcpyHostToDevice));

    int points = (N + 2) * per_texel;
    float *values = (float *)malloc(KINDS * points * sizeof(float)), *dev_values;
    HANDLE_NULL(values);
    HANDLE_ERROR(cudaMalloc(&dev_values, points * sizeof(float)));
    for (int kind = 0; kind < KINDS; kind++) {
        cudaTextureObject_t texture = make_texture(array, kind);
        kernel<<<(points + 255) / 256, 256>>>(dev_values, texture, kind >= NORMALIZED_POINT, points,
                                              per_texel, shift);
        HANDLE_LAUNCH();
        HANDLE_ERROR(
            cudaMemcpy(&values[kind * points], dev_values, points * sizeof(float), cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaDestroyTextureObject(texture)); // cudaUnbindTexture(tex);
    }

    printf("Texel i is i * i, for i from 0 to %d.\n", N - 1);
    printf("         unnormalized      normalized\n");
    printf("     x   point  linear   point  linear\n");
    for (int k = 0; k < points; k++) {
        printf("%6.3f", (k + shift) / per_texel - 1);
        for (int kind = 0; kind < KINDS; kind++)
            printf(" %7.3f", values[kind * points + k]);
        printf("\n");
    }
    bool ok = check(values, points);

    HANDLE_ERROR(cudaFree(dev_values));
    HANDLE_ERROR(cudaFreeArray(array));
    free(values);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    bool whole = false;
    configure(argc, argv, "Reads a texture between its texels.", 0,
              {OPTION_INT("points", &per_texel, 1, 1000, "points to read in each texel"),
               OPTION_FLAG("whole", &whole, "the first of them at a whole number, where the texel begins")});
    shift = whole ? 0 : 0.5;
}

static double texel(double i) {
    int clamped = fmin(fmax(i, 0), N - 1);
    return clamped * clamped;
}

// The expected value at x, or `got` if rounding can explain the difference. A point may lie on the edge of
// two texels, when their number per texel is odd; rounding decides which of the two point filtering reads.
// The weights of linear filtering have 8 fractional bits, and the last bit may be off by one.
static double expected_value(float got, double x, bool linear) {
    if (!linear)
        return got == texel(floor(x - 1e-5)) ? got : texel(floor(x + 1e-5));
    double left = floor(x - 0.5), a = x - 0.5 - left, step = texel(left + 1) - texel(left);
    double value = texel(left) + a * step;
    return fabs(got - value) <= fabs(step) / 256 + 1e-5 ? got : value;
}

static bool check(const float *values, int points) {
    const char *const names[KINDS] = {"point", "linear", "normalized, point", "normalized, linear"};
    bool ok = true;
    for (int kind = 0; kind < KINDS; kind++) {
        const float *got = values + kind * points;
        ok = check_floats(names[kind], got, points, 0,
                          [=](int k) {
                              double x = (k + (double)shift) / per_texel - 1;
                              return expected_value(got[k], x, kind == LINEAR || kind == NORMALIZED_LINEAR);
                          }) &&
             ok;
    }
    return ok;
}

// Task: kernel(): The thread with the global index k reads the one-dimensional texture, which has N texels,
// at the coordinate x = (k + shift) / per_texel - 1, in float, and stores the value in values[k]. If
// `normalized` is true, the coordinate is x / N instead. If k >= points, the thread does nothing.
// make_texture(): Return a texture object for the CUDA array. The address mode is clamp, and the read mode
// returns the floats unchanged. The filter mode is linear for the kinds LINEAR and NORMALIZED_LINEAR, and
// point for the others. The coordinates are normalized for the kinds NORMALIZED_POINT and NORMALIZED_LINEAR.
