// SPDX-License-Identifier: MIT
// Textures of the conformance test. Texels and fractions of coordinates are such that the weights and sums of
// filters are exact.
#pragma once
#include "conformance.h"

// Coordinates: multiples of 1/64 of a texel, in the texture and around it; in volumes of 1/4
#define RANDOM(j) in.u[j][i + (i < SPECIAL * SPECIAL ? SPECIAL * SPECIAL : 0)]
#define PLACE(j)  ((float)(RANDOM(j) >> 7 & 2047) / 64 - 8)
#define WHOLE(j)  ((float)(RANDOM(j) >> 7 & 127) / 4 - 8)
#define LAYER     (int)(RANDOM(2) >> 9) % 7 - 1

// A GPU's filter of numbers of 8 and 16 bits has no more bits than 16. Of two formats of 16 bits, two of
// 4,096 results are so near to the limit between two numbers of 8 bits that they fall on either side of it.
__device__ inline float to_8_bits(float x) {
    return floorf(x * 256 + 0.37f);
}
__device__ inline float2 to_8_bits(float2 v) {
    return make_float2(to_8_bits(v.x), to_8_bits(v.y));
}
__device__ inline float4 to_8_bits(float4 v) {
    return make_float4(to_8_bits(v.x), to_8_bits(v.y), to_8_bits(v.z), to_8_bits(v.w));
}

// Memory of the texture by its flags: an array, or linear and pitched memory
enum { LINEAR = 1 << 20, PITCHED = 1 << 21 };

template <class T> static T texel(int k, int c) {
    typedef typename std::conditional<std::is_same<T, __half>::value, float, T>::type Number;
    return (T)(Number)(std::is_integral<T>::value ? (k * 73 + c * 59) * 0x10305
                                                  : (k * 37 + c * 71 + 5) % 251 / Number(8) - 10);
}

template <class T, class C>
static cudaTextureObject_t texture_of(cudaExtent size, unsigned flags, cudaTextureFilterMode filter,
                                      cudaTextureAddressMode mode, bool normalized,
                                      cudaTextureReadMode read) {
    const int n = sizeof(T) / sizeof(C);
    const size_t w = size.width, h = std::max<size_t>(size.height, 1), d = std::max<size_t>(size.depth, 1);
    std::vector<C> texels(w * h * d * n);
    for (size_t k = 0; k < texels.size(); k++)
        texels[k] = texel<C>((int)k / n, (int)k % n);
    cudaChannelFormatDesc format = cudaCreateChannelDescHalf();
    if constexpr (!std::is_same<T, __half>::value)
        format = cudaCreateChannelDesc<T>();
    cudaResourceDesc resource = {};
    if (flags & (LINEAR | PITCHED)) {
        size_t pitch = texels.size() * sizeof(C);
        char *memory;
        if (flags & PITCHED)
            cudaMallocPitch(&memory, &pitch, w * sizeof(T), h);
        else
            cudaMalloc(&memory, pitch);
        cudaMemcpy2D(memory, pitch, texels.data(), w * sizeof(T), w * sizeof(T), h, cudaMemcpyHostToDevice);
        resource.resType = flags & PITCHED ? cudaResourceTypePitch2D : cudaResourceTypeLinear;
        if (flags & PITCHED)
            resource.res.pitch2D = {memory, format, w, h, pitch};
        else
            resource.res.linear = {memory, format, w * sizeof(T)};
    } else {
        cudaMemcpy3DParms copy = {};
        cudaMalloc3DArray(&resource.res.array.array, &format, size, flags);
        copy.srcPtr = make_cudaPitchedPtr(texels.data(), w * sizeof(T), w, h);
        copy.dstArray = resource.res.array.array;
        copy.extent = make_cudaExtent(w, h, d);
        copy.kind = cudaMemcpyHostToDevice;
        cudaMemcpy3D(&copy);
    }
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = desc.addressMode[2] = mode;
    desc.filterMode = filter;
    desc.normalizedCoords = normalized;
    desc.readMode = read;
    cudaTextureObject_t texture = 0;
    if (const cudaError_t status = cudaCreateTextureObject(&texture, &resource, &desc, nullptr)) {
        fprintf(stderr, "a texture: %s\n", cudaGetErrorString(status));
        exit(EXIT_FAILURE);
    }
    return texture;
}

#define TEXTURE(id, name, R, expression, list, made)                                                         \
    KERNEL(id, R, out[i] = expression;)                                                                      \
    RECORD(id, name, R, list, {}, [] { return made; })
