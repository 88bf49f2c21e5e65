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
 * Book:    7.3.5 (course)
 * After:   chapter07/texture_modes
 * Build:   nvcc -o texture_formats chapter07/texture_formats.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter07/texture_formats
 * Differs: the course reads element 10 of unsigned short numbers and keeps the result in an unsigned short,
 *          in which every fraction is 0. Here it is kept in a float.
 */
#include <limits>
#include "../common/book.h"

#define ELEMENTS 1001

template <class T>
static bool check(const char *name, const T *texels, const float *fetched, const float *filtered);
template <class T> static void make_texels(T *texels);

template <class T> __global__ void fetch(float *out, cudaTextureObject_t texture) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < ELEMENTS)
        out[i] = tex1Dfetch<float>(texture, i);
}

// The four bytes of a texel arrive as the four floats of a float4.
template <> __global__ void fetch<uchar4>(float *out, cudaTextureObject_t texture) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < ELEMENTS)
        ((float4 *)out)[i] = tex1Dfetch<float4>(texture, i);
}

// Between texels i - 1 and i: the mean of both.
__global__ void fetch_between(float *out, cudaTextureObject_t texture) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < ELEMENTS)
        out[i] = tex1D<float>(texture, (float)i);
}

static cudaTextureObject_t make_texture(const cudaResourceDesc &resource, cudaTextureFilterMode filter) {
    cudaTextureDesc desc = {};
    desc.addressMode[0] = cudaAddressModeClamp;
    desc.filterMode = filter;
    desc.readMode =
        cudaReadModeNormalizedFloat; // integer texels are converted to floats in [0, 1] or [-1, 1]
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    return texture;
}

// Reads each texel of linear memory, and, from a CUDA array, which filtering needs, between each two texels.
template <class T> static bool test(const char *name) {
    const int channels = sizeof(T) == sizeof(uchar4) ? 4 : 1, blocks = (ELEMENTS + 255) / 256;
    T *texels = host_array<T>(ELEMENTS), *dev_texels;
    float *fetched = host_array<float>(ELEMENTS * channels), *filtered = host_array<float>(ELEMENTS),
          *dev_out;
    make_texels(texels);
    HANDLE_ERROR(cudaMalloc(&dev_texels, ELEMENTS * sizeof(T)));
    HANDLE_ERROR(cudaMalloc(&dev_out, ELEMENTS * channels * sizeof(float)));
    HANDLE_ERROR(cudaMemcpy(dev_texels, texels, ELEMENTS * sizeof(T), cudaMemcpyHostToDevice));

    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = dev_texels;
    resource.res.linear.desc = cudaCreateChannelDesc<T>();
    resource.res.linear.sizeInBytes = ELEMENTS * sizeof(T);
    cudaTextureObject_t texture = make_texture(resource, cudaFilterModePoint);
    fetch<T><<<blocks, 256>>>(dev_out, texture);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(fetched, dev_out, ELEMENTS * channels * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaDestroyTextureObject(texture));

    if (channels == 1) {
        cudaArray_t array;
        HANDLE_ERROR(cudaMallocArray(&array, &resource.res.linear.desc, ELEMENTS));
        HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, texels, ELEMENTS * sizeof(T), ELEMENTS * sizeof(T), 1,
                                         cudaMemcpyHostToDevice));
        resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array;
        texture = make_texture(resource, cudaFilterModeLinear);
        fetch_between<<<blocks, 256>>>(dev_out, texture);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(filtered, dev_out, ELEMENTS * sizeof(float), cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaDestroyTextureObject(texture));
        HANDLE_ERROR(cudaFreeArray(array));
    }
    bool ok = check(name, texels, fetched, filtered);

    HANDLE_ERROR(cudaFree(dev_texels));
    HANDLE_ERROR(cudaFree(dev_out));
    free(texels);
    free(fetched);
    free(filtered);
    return ok;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    bool ok = test<unsigned char>("unsigned char");
    ok = test<signed char>("signed char") && ok;
    ok = test<unsigned short>("unsigned short") && ok;
    ok = test<short>("short") && ok;
    ok = test<uchar4>("uchar4") && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Reads textures of small whole numbers as floats.");
}

// Returns the normalized value of a texel: the texel divided by the largest value of its type, but at least
// -1. (For signed types both the smallest value and the one after it give -1.)
template <class T> static double normalized(T value) {
    return fmax((double)value / std::numeric_limits<T>::max(), -1);
}

static unsigned char
    made[ELEMENTS * sizeof(uchar4)]; // the texels, whatever is copied to the lesson's array later

// Random texels, but first the smallest numbers, 0, 1, 10, the middle and the largest ones.
template <class T> static void make_texels(T *texels) {
    const long long least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    const long long first[] = {least, least + 1, 0, 1, 10, most / 2, most / 2 + 1, most - 1, most};
    random_bytes(texels, ELEMENTS * sizeof(T));
    for (int i = 0; i < 9; i++)
        texels[i] = first[i];
    memcpy(made, texels, ELEMENTS * sizeof(T));
}

template <> void make_texels(uchar4 *texels) {
    random_bytes(texels, ELEMENTS * sizeof(uchar4));
    texels[0] = make_uchar4(0, 255, 127, 128);
    memcpy(made, texels, sizeof(made));
}

// What fetch_between() reads once more, in memory that holds no results: those of fetch() begin with the same
// value.
template <class T> static void fetch_again(const T *texels, float *filtered) {
    DeviceArray<float> out(ELEMENTS, 0xff);
    cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    HANDLE_ERROR(cudaMallocArray(&resource.res.array.array, &format, ELEMENTS));
    HANDLE_ERROR(cudaMemcpy2DToArray(resource.res.array.array, 0, 0, texels, ELEMENTS * sizeof(T),
                                     ELEMENTS * sizeof(T), 1, cudaMemcpyHostToDevice));
    cudaTextureObject_t texture = make_texture(resource, cudaFilterModeLinear);
    fetch_between<<<(ELEMENTS + 255) / 256, 256>>>(out, texture);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(filtered, out, ELEMENTS * sizeof(float), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaDestroyTextureObject(texture));
    HANDLE_ERROR(cudaFreeArray(resource.res.array.array));
}

// Compares with the formulas in double. Linear filtering weighs with 8 fractional bits and may be off by the
// last one, and an H200 rounds filtered numbers to 16 bits.
template <class T>
static bool check(const char *name, const T *, const float *fetched, const float *filtered) {
    const T *texels = (const T *)made;
    double expected[ELEMENTS], between[ELEMENTS];
    printf("%s\n", name);
    for (int i = 0; i < ELEMENTS; i++) {
        expected[i] = normalized(texels[i]);
        // The filter averages the quotients before they are limited to -1.
        const double scale = std::numeric_limits<T>::max();
        double left = texels[max_of(i - 1, 0)] / scale, right = texels[i] / scale;
        double off = fabs(right - left) / 256 + 1.0 / 65000;
        between[i] = fmax((left + right) / 2, -1);
        if (fabs(filtered[i] - between[i]) <= off)
            between[i] = filtered[i];
        if (i < 9)
            printf("  %6d is read as %9.6f\n", (int)texels[i], fetched[i]);
    }
    float again[ELEMENTS];
    fetch_again(texels, again);
    return check_floats(name, fetched, expected, ELEMENTS, 1e-6) &&
           check_floats("between two texels", filtered, between, ELEMENTS, 0) &&
           check_floats("between two texels, once more", again, ELEMENTS, 0,
                        [=](int i) { return filtered[i]; });
}

template <> bool check(const char *name, const uchar4 *texels, const float *fetched, const float *) {
    printf("%s\n  (%d, %d, %d, %d) is read as (%.6f, %.6f, %.6f, %.6f)\n", name, texels[0].x, texels[0].y,
           texels[0].z, texels[0].w, fetched[0], fetched[1], fetched[2], fetched[3]);
    return check_floats(name, fetched, 4 * ELEMENTS, 1e-6, [](int i) { return normalized(made[i]); });
}

// Task: fetch(): The thread with the global index i reads texel i of the texture of linear memory as a float
// and stores it in out[i]. If i >= ELEMENTS, it does nothing. The specialization for uchar4 below is given.
// fetch_between(): The thread with the global index i reads the texture of a CUDA array at the coordinate i,
// halfway between the centres of the texels i - 1 and i, and stores the float in out[i]. If i >= ELEMENTS, it
// does nothing.
// make_texture(): Return a texture object for the resource. The address mode of the coordinate is clamp, the
// filter mode is the argument `filter`, and the read mode converts integer texels to floats, between 0 and 1
// if they are unsigned, between -1 and 1 if they are signed.
