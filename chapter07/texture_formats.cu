// SPDX-License-Identifier: MIT
/*
 * texture_formats: textures that convert packed and whole numbers to floats
 *
 * Teaches: Texture units convert packed and whole numbers to floats while they read. With the read mode
 *          normalized float, a texel of 8 or 16 bits becomes a float from 0 to 1, or from -1 to 1 if it is
 *          signed, and the four bytes of a uchar4 become a float4. That takes a quarter or a half of the
 *          memory of floats and no instructions. Such a texture can be filtered too, which a texture of
 *          whole numbers cannot.
 * Terms:   texture object, texel, texture fetch, tex1Dfetch, normalized float, linear filtering, CUDA array,
 *          tex1D
 * Book:    7.3.5 (course); N textures (normalized texels)
 * After:   chapter07/texture_modes
 * Build:   nvcc -o texture_formats chapter07/texture_formats.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/texture_formats
 * Differs: the course reads element 10 of unsigned short numbers and keeps the result in an unsigned short,
 *          in which every fraction is 0. Here it is kept in a float.
 */
#include "../common/book.h"

#define ELEMENTS 1001

static void make_texels(void *texels, cudaChannelFormatDesc format);
static int value_of(const void *texels, int i, cudaChannelFormatDesc format);
static bool check(const char *name, cudaChannelFormatDesc format, const void *texels, const float *fetched,
                  const float *filtered);

__global__ void fetch(float *out, cudaTextureObject_t texture) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < ELEMENTS)
        out[i] = tex1Dfetch<float>(texture, i);
}

// The four bytes of a uchar4 arrive as the four floats of a float4.
__global__ void fetch4(float4 *out, cudaTextureObject_t texture) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < ELEMENTS)
        out[i] = tex1Dfetch<float4>(texture, i);
}

// Between texels i and i + 1: the mean of both
__global__ void fetch_between(float *out, cudaTextureObject_t texture) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < ELEMENTS - 1)
        out[i] = tex1D<float>(texture, i + 1.0f);
}

static cudaTextureObject_t make_texture(cudaResourceDesc resource, cudaTextureFilterMode filter) {
    cudaTextureDesc desc = {};
    desc.addressMode[0] = cudaAddressModeClamp;
    desc.filterMode = filter;
    desc.readMode = cudaReadModeNormalizedFloat; // whole numbers become floats in [0, 1] or [-1, 1]
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    return texture;
}

// Reads each texel of linear memory, and, from a CUDA array, which filtering in one dimension needs, between
// each two texels.
// The format has the number of bits of each component of a texel: x, y, z and w.
static bool test(const char *name, cudaChannelFormatDesc format) {
    size_t bytes = ELEMENTS * (format.x + format.y + format.z + format.w) / 8;
    int channels = format.w ? 4 : 1, blocks = (ELEMENTS + 255) / 256;
    void *texels = malloc(bytes), *dev_texels;
    float *fetched = (float *)malloc(ELEMENTS * channels * sizeof(float));
    float *filtered = (float *)malloc(ELEMENTS * sizeof(float)), *dev_out;
    HANDLE_NULL(texels && fetched && filtered);
    make_texels(texels, format);
    HANDLE_ERROR(cudaMalloc(&dev_texels, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_out, ELEMENTS * channels * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_texels, texels, bytes, cudaMemcpyHostToDevice));

    // With a texture reference, texture<unsigned short, 1, cudaReadModeNormalizedFloat> tex in the course,
    // this was cudaBindTexture(NULL, tex, dev_texels, bytes).
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = dev_texels;
    resource.res.linear.desc = format;
    resource.res.linear.sizeInBytes = bytes;
    cudaTextureObject_t texture = make_texture(resource, cudaFilterModePoint);
    if (channels == 1)
        fetch<<<blocks, 256>>>(dev_out, texture);
    else
        fetch4<<<blocks, 256>>>((float4 *)dev_out, texture);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(fetched, dev_out, ELEMENTS * channels * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaDestroyTextureObject(texture));

    printf("%s\n", name);
    if (channels == 1) {
        for (int i = 0; i < 8; i++)
            printf("  %6d is read as %9.6f\n", value_of(texels, i, format), fetched[i]);

        cudaArray_t array;
        HANDLE_ERROR(cudaMallocArray(&array, &format, ELEMENTS));
        HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, texels, bytes, bytes, 1, cudaMemcpyHostToDevice));
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array;
        texture = make_texture(resource, cudaFilterModeLinear);
        fetch_between<<<blocks, 256>>>(dev_out, texture);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(filtered, dev_out, ELEMENTS * sizeof(float), cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaDestroyTextureObject(texture));
        HANDLE_ERROR(cudaFreeArray(array));
    } else {
        const unsigned char *first = (const unsigned char *)texels;
        printf("  (%d, %d, %d, %d) is read as (%.6f, %.6f, %.6f, %.6f)\n", first[0], first[1], first[2],
               first[3], fetched[0], fetched[1], fetched[2], fetched[3]);
    }
    bool ok = check(name, format, texels, fetched, filtered);

    HANDLE_ERROR(cudaFree(dev_texels));
    HANDLE_ERROR(cudaFree(dev_out));
    free(texels);
    free(fetched);
    free(filtered);
    return ok;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int right = test("unsigned char", cudaCreateChannelDesc<unsigned char>());
    right += test("signed char", cudaCreateChannelDesc<signed char>());
    right += test("unsigned short", cudaCreateChannelDesc<unsigned short>());
    right += test("short", cudaCreateChannelDesc<short>());
    right += test("uchar4", cudaCreateChannelDesc<uchar4>());
    return check_value("right formats", right, 5, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Reads textures of small whole numbers as floats.");
}

// Component i of the texels
static int value_of(const void *texels, int i, cudaChannelFormatDesc format) {
    if (format.f == cudaChannelFormatKindSigned)
        return format.x == 8 ? ((const signed char *)texels)[i] : ((const short *)texels)[i];
    return format.x == 8 ? ((const unsigned char *)texels)[i] : ((const unsigned short *)texels)[i];
}

// The largest value of the components
static int largest(cudaChannelFormatDesc format) {
    return (1 << (format.x - (format.f == cudaChannelFormatKindSigned))) - 1;
}

// Random texels, but first the smallest and the largest values, and some between them
static void make_texels(void *texels, cudaChannelFormatDesc format) {
    const int most = largest(format), bytes = format.x / 8;
    const int with_sign[] = {-most - 1, -most, 0, 1, 10, most / 2, most - 1, most};
    const int without_sign[] = {0, 1, 2, 10, most / 2, most / 2 + 1, most - 1, most},
              packed[] = {0, 255, 127, 128};
    const int *first = format.w ? packed : format.f == cudaChannelFormatKindSigned ? with_sign : without_sign;
    random_bytes(texels, ELEMENTS * (format.w ? 4 : bytes));
    for (int i = 0; i < (format.w ? 4 : 8); i++)
        memcpy((char *)texels + i * bytes, &first[i], bytes);
}

// Compares with the formulas in double: a component divided by the largest value, but at least -1. (For
// signed types both the smallest value and the one after it give -1.) The filter averages the quotients
// before they are limited to -1. It weighs with 8 fractional bits and may be off by the last one, and an H200
// rounds filtered numbers to 16 bits.
static bool check(const char *name, cudaChannelFormatDesc format, const void *texels, const float *fetched,
                  const float *filtered) {
    const double scale = largest(format);
    bool ok = check_floats(name, fetched, ELEMENTS * (format.w ? 4 : 1), 1e-6,
                           [=](int i) { return fmax(value_of(texels, i, format) / scale, -1); });
    if (format.w)
        return ok;
    return ok && check_floats("between two texels", filtered, ELEMENTS - 1, 0, [=](int i) {
               double left = value_of(texels, i, format) / scale,
                      right = value_of(texels, i + 1, format) / scale;
               double mean = fmax((left + right) / 2, -1), off = fabs(right - left) / 256 + 1.0 / 65000;
               return fabs(filtered[i] - mean) <= off ? filtered[i] : mean;
           });
}

// Task: fetch(): The thread with the global index i reads texel i of the texture of linear memory as a float
// and stores it in out[i]. If i >= ELEMENTS, it does nothing.
// fetch4(): The same, but a texel is read as a float4.
// fetch_between(): The thread with the global index i reads the texture of a CUDA array at the coordinate
// i + 1, halfway between the centres of the texels i and i + 1, and stores the float in out[i]. If
// i >= ELEMENTS - 1, it does nothing.
// make_texture(): Return a texture object for the resource. The address mode of the coordinate is clamp, the
// filter mode is the argument `filter`, and the read mode converts integer texels to floats, between 0 and 1
// if they are unsigned, between -1 and 1 if they are signed.
