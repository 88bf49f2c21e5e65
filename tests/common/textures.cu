// SPDX-License-Identifier: MIT
// Texture fetches of every kind, printed for test_textures.py, which knows the expected values. Not in
// cucc/tests/units, because the values must be the same on a GPU.
#include <stdio.h>
#include <string.h>
#include <vector>
#include "../../common/book.h"
#include "../unit.h"

enum { W = 8, H = 4, POINTS = 160 };

struct Four {
    double x, y, z, w;
};

// "row" is "one" with an address mode for the first dimension only.
static const char *const shapes[] = {"fetch", "one", "two", "pitch", "row"};

__device__ Four widen(float v) {
    return {v, 0, 0, 0};
}
template <class T> __device__ Four widen(T v) {
    if constexpr (sizeof v == sizeof v.x)
        return {(double)v.x, 0, 0, 0};
    else if constexpr (sizeof v == 2 * sizeof v.x)
        return {(double)v.x, (double)v.y, 0, 0};
    else
        return {(double)v.x, (double)v.y, (double)v.z, (double)v.w};
}

// The type that a fetch of T returns: T, or a float type when it reads normalised floats.
template <class T, bool normalised, int n> struct Read { typedef T type; };
template <class T> struct Read<T, true, 1> { typedef float1 type; };
template <class T> struct Read<T, true, 2> { typedef float2 type; };
template <class T> struct Read<T, true, 4> { typedef float4 type; };

// Calls both forms of each fetch function, which must return the same value.
template <class T> __global__ void read(Four *out, cudaTextureObject_t texture, int shape, bool normalised) {
    int k = threadIdx.x;
    float x = k * 37 / 256.0f - 10, y = k * 53 % 2560 / 256.0f - 4;
    if (normalised) {
        x /= W;
        y /= H;
    }
    T v, same;
    if (shape == 0) {
        v = tex1Dfetch<T>(texture, k - 80);
        tex1Dfetch(&same, texture, k - 80);
    } else if (shape == 1 || shape == 4) {
        v = tex1D<T>(texture, x);
        tex1D(&same, texture, x);
    } else {
        v = tex2D<T>(texture, x, y);
        tex2D(&same, texture, x, y);
    }
    Four a = widen(v), b = widen(same);
    bool agree = a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w;
    out[k] = agree ? a : Four{-1e300, -1e300, -1e300, -1e300};
}

// A texel of the test. In signed types of 8 or 16 bits the first one is the smallest number, such as
// -128: normalised it would be less than -1 and is clamped.
template <class C> C texel(int i, int j, int c) {
    int raw = (i * 37 + j * 71 + c * 13 + 5) % 251;
    if (sizeof(C) == 1)
        return (C)(C(-1) < 0 ? raw == 5 ? -128 : raw - 125 : raw);
    if (sizeof(C) == 2)
        return (C)(C(-1) < 0 ? raw == 5 ? -32768 : raw * 257 - 32000 : raw * 257);
    if (C(0.5) != 0)
        return (C)(raw / 8.0 - 10);
    return (C)(C(-1) < 0 ? raw * 8000000ll - 1000000000 : raw * 17000000ll);
}

template <class T, class C, bool normalised_values> static void print(const char *name, int shape) {
    const int n = sizeof(T) / sizeof(C), rows = shape < 2 || shape == 4 ? 1 : H;
    C data[H][W][n];
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++)
            for (int c = 0; c < n; c++)
                data[j][i][c] = texel<C>(i, j, c);
    const size_t width = sizeof data[0];

    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
    cudaArray_t array = NULL;
    void *memory = NULL;
    size_t pitch = width;
    if (shape == 0) {
        HANDLE_ERROR(cudaMalloc(&memory, width));
        HANDLE_ERROR(cudaMemcpy(memory, data, width, cudaMemcpyHostToDevice));
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = memory;
        resource.res.linear.desc = format;
        resource.res.linear.sizeInBytes = width;
    } else if (shape == 3) {
        HANDLE_ERROR(cudaMallocPitch(&memory, &pitch, width, rows));
        HANDLE_ERROR(cudaMemcpy2D(memory, pitch, data, width, width, rows, cudaMemcpyHostToDevice));
        resource.resType = cudaResourceTypePitch2D;
        resource.res.pitch2D.devPtr = memory;
        resource.res.pitch2D.desc = format;
        resource.res.pitch2D.width = W;
        resource.res.pitch2D.height = rows;
        resource.res.pitch2D.pitchInBytes = pitch;
    } else {
        HANDLE_ERROR(cudaMallocArray(&array, &format, W, shape == 2 ? H : 0));
        HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, data, width, width, rows, cudaMemcpyHostToDevice));
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array;
    }
    Four *out;
    HANDLE_ERROR(cudaMallocManaged((void **)&out, POINTS * sizeof *out));
    const bool floats = normalised_values || C(0.5) != 0;
    for (int linear = 0; linear <= (floats && shape > 0); linear++)
        for (int normalised = 0; normalised <= (shape > 0); normalised++)
            for (int mode = 0; mode < (shape > 0 ? 4 : 1); mode++) {
                cudaTextureDesc desc;
                memset(&desc, 0, sizeof desc);
                desc.addressMode[0] = (cudaTextureAddressMode)mode;
                if (shape != 4)
                    desc.addressMode[1] = desc.addressMode[0];
                desc.filterMode = (cudaTextureFilterMode)linear;
                desc.readMode = normalised_values ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
                desc.normalizedCoords = normalised;
                // The border color has the type that the fetch returns: float or int.
                const float colours[] = {-0.5f, 0.5f, 0.25f, 1};
                const int numbers[] = {20, 40, 60, 80};
                memcpy(desc.borderColor, floats ? (const void *)colours : numbers, sizeof colours);
                cudaTextureObject_t texture;
                HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
                read<typename Read<T, normalised_values, n>::type>
                    <<<1, POINTS>>>(out, texture, shape, normalised);
                HANDLE_LAUNCH();
                HANDLE_ERROR(cudaDeviceSynchronize());
                HANDLE_ERROR(cudaDestroyTextureObject(texture));
                printf("%s %s %d %d %d %d %d", shapes[shape], name, n, normalised_values, linear, normalised,
                       mode);
                for (int k = 0; k < POINTS; k++) {
                    const double v[] = {out[k].x, out[k].y, out[k].z, out[k].w};
                    for (int c = 0; c < n; c++)
                        printf(" %.9g", v[c]);
                }
                printf("\n");
            }
    HANDLE_ERROR(cudaFree(out));
    if (memory)
        HANDLE_ERROR(cudaFree(memory));
    if (array)
        HANDLE_ERROR(cudaFreeArray(array));
}

TEST(table) {
    for (int shape = 0; shape < 5; shape++) {
        print<char1, signed char, false>("int8", shape);
        print<uchar1, unsigned char, false>("uint8", shape);
        print<uchar4, unsigned char, false>("uint8", shape);
        print<short2, short, false>("int16", shape);
        print<ushort1, unsigned short, false>("uint16", shape);
        print<int1, int, false>("int32", shape);
        print<int4, int, false>("int32", shape);
        print<uint2, unsigned, false>("uint32", shape);
        print<float1, float, false>("float32", shape);
        print<float2, float, false>("float32", shape);
        print<float4, float, false>("float32", shape);
        print<char2, signed char, true>("int8", shape);
        print<uchar1, unsigned char, true>("uint8", shape);
        print<uchar4, unsigned char, true>("uint8", shape);
        print<short1, short, true>("int16", shape);
        print<ushort4, unsigned short, true>("uint16", shape);
    }
}

// Reads texels of one or two components as four: inside the texture and in the border.
template <class T> __global__ void read_four(Four *out, cudaTextureObject_t texture) {
    out[0] = widen(tex2D<T>(texture, 0.5f, 0.5f));
    out[1] = widen(tex2D<T>(texture, -5.0f, 0.5f));
}

template <class C, class T> static void check_missing(int n) {
    const C texels[] = {11, 22};
    cudaChannelFormatDesc format = cudaCreateChannelDesc<C>();
    format.y = n == 2 ? format.x : 0;
    cudaArray_t array;
    HANDLE_ERROR(cudaMallocArray(&array, &format, 1, 1));
    HANDLE_ERROR(
        cudaMemcpy2DToArray(array, 0, 0, texels, n * sizeof(C), n * sizeof(C), 1, cudaMemcpyHostToDevice));
    cudaResourceDesc resource;
    memset(&resource, 0, sizeof resource);
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc desc;
    memset(&desc, 0, sizeof desc);
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeBorder;
    for (int c = 0; c < 4; c++) {
        const float colour = 3.0f + c;
        const int number = 3 + c;
        memcpy(&desc.borderColor[c], C(0.5) != 0 ? (const void *)&colour : &number, 4);
    }
    cudaTextureObject_t texture;
    HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    Four *out;
    HANDLE_ERROR(cudaMallocManaged((void **)&out, 2 * sizeof *out));
    read_four<T><<<1, 1>>>(out, texture);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDeviceSynchronize());
    const double second = n == 2;
    EXPECT(out[0].x == 11 && out[0].y == 22 * second && out[0].z == 0 && out[0].w == 0);
    EXPECT(out[1].x == 3 && out[1].y == 4 * second && out[1].z == 0 && out[1].w == 0);
    HANDLE_ERROR(cudaDestroyTextureObject(texture));
    HANDLE_ERROR(cudaFreeArray(array));
    HANDLE_ERROR(cudaFree(out));
}

TEST(missing_components_are_0) {
    for (int n = 1; n <= 2; n++) {
        check_missing<float, float4>(n);
        check_missing<int, int4>(n);
        check_missing<unsigned char, uint4>(n);
        check_missing<short, int4>(n);
    }
}
