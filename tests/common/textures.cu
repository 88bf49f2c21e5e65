// SPDX-License-Identifier: MIT
// Texels of 1 to 4 numbers, inside a texture and in its border, on both back ends. The programs of chapter 7
// check filtering, address modes and normalized values.
#include <string.h>
#include "../../common/book.h"
#include "../unit.h"

template <class T> __device__ void put(double out[4], T v) {
    out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
}

// Calls both forms of the fetch functions, which must return the same values.
template <class T> __global__ void read_two(double (*out)[4], cudaTextureObject_t texture) {
    T same;
    put(out[0], tex2D<T>(texture, 0.75f, 0.5f));
    tex2D(&same, texture, 0.75f, 0.5f);
    put(out[1], same);
    put(out[2], tex2D<T>(texture, -5.0f, 0.5f));
}

template <class T> __global__ void read_linear(double (*out)[4], cudaTextureObject_t texture) {
    T same;
    put(out[0], tex1Dfetch<T>(texture, 1));
    tex1Dfetch(&same, texture, 1);
    put(out[1], same);
    put(out[2], tex1Dfetch<T>(texture, 2)); // beyond the end
    put(out[3], tex1Dfetch<T>(texture, -1));
}

// The second of two texels of n numbers, read as four: the missing ones are 0. Beyond linear memory all are.
template <class C, class T> static void check_texels(int n) {
    const C texels[2][4] = {{1, 2, 3, 4}, {11, 22, 33, 44}};
    const size_t bytes = n * sizeof(C);
    cudaChannelFormatDesc format = cudaCreateChannelDesc<C>();
    format.y = n > 1 ? format.x : 0;
    format.z = format.w = n > 2 ? format.x : 0;
    cudaTextureDesc desc;
    memset(&desc, 0, sizeof desc);
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeBorder;
    // The border colour has the type that the fetch returns: float or int.
    const float colours[] = {5, 6, 7, 8};
    const int numbers[] = {5, 6, 7, 8};
    memcpy(desc.borderColor, C(0.5) != 0 ? (const void *)colours : numbers, sizeof colours);
    cudaArray_t array;
    void *memory;
    double(*out)[4];
    HANDLE_ERROR(cudaMallocArray(&array, &format, 2, 1));
    HANDLE_ERROR(cudaMalloc(&memory, 2 * bytes));
    HANDLE_ERROR(cudaMallocManaged((void **)&out, 4 * sizeof *out));
    for (int i = 0; i < 2; i++) {
        HANDLE_ERROR(
            cudaMemcpy2DToArray(array, i * bytes, 0, texels[i], bytes, bytes, 1, cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemcpy((char *)memory + i * bytes, texels[i], bytes, cudaMemcpyHostToDevice));
    }
    for (int linear = 0; linear < 2; linear++) {
        cudaResourceDesc resource;
        memset(&resource, 0, sizeof resource);
        resource.resType = linear ? cudaResourceTypeLinear : cudaResourceTypeArray;
        if (linear) {
            resource.res.linear.devPtr = memory;
            resource.res.linear.desc = format;
            resource.res.linear.sizeInBytes = 2 * bytes;
        } else {
            resource.res.array.array = array;
        }
        desc.normalizedCoords = !linear;
        cudaTextureObject_t texture;
        HANDLE_ERROR(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
        (linear ? read_linear<T> : read_two<T>)<<<1, 1>>>(out, texture);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaDeviceSynchronize());
        for (int c = 0; c < 4; c++) {
            EXPECT(out[0][c] == (c < n ? 11 * (c + 1) : 0) && out[1][c] == out[0][c]);
            EXPECT(out[2][c] == (c < n && !linear ? 5 + c : 0));
            EXPECT(!linear || out[3][c] == 0);
        }
        HANDLE_ERROR(cudaDestroyTextureObject(texture));
    }
    HANDLE_ERROR(cudaFreeArray(array));
    HANDLE_ERROR(cudaFree(memory));
    HANDLE_ERROR(cudaFree(out));
}

TEST(components) {
    for (int n : {1, 2, 4}) {
        check_texels<float, float4>(n);
        check_texels<int, int4>(n);
        check_texels<unsigned char, uint4>(n);
        check_texels<short, int4>(n);
    }
}
