// SPDX-License-Identifier: MIT
/*
 * texture_interpolation: what a texture gives between two texels
 *
 * Teaches: A texture can be read anywhere, also between its texels: it gives the nearest one, or
 *          mixes the two on either side. Texel i reaches from i to i + 1, so its own value is
 *          found in the middle, at i + 0.5. In normalised coordinates the whole texture reaches
 *          from 0 to 1.
 * Book:    7.3.5 (course, textures 1)
 * Run:     ./bin/chapter07/texture_interpolation
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include "../common/book.h"

#define N 10

enum { POINT, LINEAR, NORMALISED_POINT, NORMALISED_LINEAR, KINDS };

// Reads a texture of N texels at points from before its beginning to behind its end: point k is at
// (k + 0.5) / per_texel - 1.
__global__ void kernel(float *values, cudaTextureObject_t texture, bool normalised, int points,
                       int per_texel) {
    int k = threadIdx.x + blockIdx.x * blockDim.x;
    if (k >= points)
        return;
    float x = (k + 0.5f) / per_texel - 1;
    values[k] = tex1D<float>(texture, normalised ? x / N : x);
}

static cudaTextureObject_t make_texture(cudaArray_t array, int kind) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc desc = {};
    desc.addressMode[0] = cudaAddressModeClamp;
    desc.filterMode =
        kind == LINEAR || kind == NORMALISED_LINEAR ? cudaFilterModeLinear : cudaFilterModePoint;
    desc.readMode = cudaReadModeElementType;
    desc.normalizedCoords = kind == NORMALISED_POINT || kind == NORMALISED_LINEAR;
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    return texture;
}

static int clamp(double i) {
    return (int)fmin(fmax(i, 0), N - 1);
}

// Whether a value is right. Between two texels the weight has 8 bits behind the point and may be
// off by one of them. An odd number of points in a texel has one where float can round a point to
// the texel's other side; no point lies closer to an edge than that otherwise.
static bool right(float got, const float *texels, double x, bool linear) {
    if (!linear)
        return got == texels[clamp(floor(x - 1e-5))] || got == texels[clamp(floor(x + 1e-5))];
    double i = floor(x - 0.5), weight = x - 0.5 - i;
    double a = texels[clamp(i)], b = texels[clamp(i + 1)];
    return fabs(got - (a + weight * (b - a))) <= fabs(b - a) / 256 + 1e-5;
}

int main(int argc, char **argv) {
    int per_texel = 4;
    const Option own[] = {OPTION_INT("points", &per_texel, 1, 1000, "points to read in each texel"),
                          OPTION_END};
    parse_options(argc, argv, "Reads a texture between its texels.", 0, own);
    select_device();

    float texels[N];
    for (int i = 0; i < N; i++)
        texels[i] = i * i;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    HANDLE_ERROR(cudaMallocArray(&array, &format, N));
    HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, texels, sizeof texels, sizeof texels, 1,
                                     cudaMemcpyHostToDevice));

    int points = (N + 2) * per_texel;
    size_t bytes = points * sizeof(float);
    float *values = (float *)malloc(KINDS * bytes), *dev_values;
    HANDLE_NULL(values);
    HANDLE_ERROR(cudaMalloc((void **)&dev_values, bytes));
    for (int kind = 0; kind < KINDS; kind++) {
        cudaTextureObject_t texture = make_texture(array, kind);
        kernel<<<(points + 255) / 256, 256>>>(dev_values, texture, kind >= NORMALISED_POINT, points,
                                              per_texel);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(values + kind * points, dev_values, bytes, cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaDestroyTextureObject(texture));
    }
    inject_error(values, KINDS * bytes);

    int wrong = 0;
    printf("Texel i is i * i, for i from 0 to %d.\n", N - 1);
    printf("         unnormalised      normalised\n");
    printf("     x   point  linear   point  linear\n");
    for (int k = 0; k < points; k++) {
        double x = (k + 0.5) / per_texel - 1;
        printf("%6.3f", x);
        for (int kind = 0; kind < KINDS; kind++) {
            float value = values[kind * points + k];
            bool ok = right(value, texels, x, kind == LINEAR || kind == NORMALISED_LINEAR);
            printf(" %7.3f%s", value, ok ? "" : "?");
            wrong += !ok;
        }
        printf("\n");
    }
    if (wrong)
        fprintf(stderr, "%d of %d values are wrong, those with a question mark\n", wrong,
                KINDS * points);

    HANDLE_ERROR(cudaFree(dev_values));
    HANDLE_ERROR(cudaFreeArray(array));
    free(values);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
