// SPDX-License-Identifier: MIT
// Texture references in every form that CUDA 2 to 11 had: types, read modes, dimensions, ways to bind.
#include <cutil_inline.h>

texture<float> tex_float;
static texture<int, 1> tex_int;
texture<unsigned int, 1, cudaReadModeElementType> tex_uint;
texture<unsigned char, cudaTextureType1D, cudaReadModeNormalizedFloat> tex_bytes;
texture<short, 1, cudaReadModeNormalizedFloat> tex_short;
texture<float2, 1, cudaReadModeElementType> tex_float2;
texture<float4> tex_float4;
texture<uchar4, 2, cudaReadModeElementType> tex_pixels;
texture<uchar4, 2, cudaReadModeNormalizedFloat> tex_colors;
texture<float, 2> tex_plane;
texture<float, 2, cudaReadModeElementType> tex_array;
texture<float, 3> tex_volume;
texture<float, cudaTextureType2DLayered> tex_layers;
texture<float, 1> tex_row(false, cudaFilterModeLinear, cudaAddressModeClamp);

__global__ void linear(float *out, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n)
        return;
    float4 f = tex1Dfetch(tex_float4, i / 4);
    float2 g = tex1Dfetch(tex_float2, i / 2);
    float lanes[4] = {f.x, f.y, f.z, f.w};
    out[i] = tex1Dfetch(tex_float, i) + 10000 * tex1Dfetch(tex_int, i) + tex1Dfetch(tex_uint, i) +
             lanes[i % 4] + (i % 2 ? g.y : g.x);
    out[n + i] = tex1Dfetch(tex_bytes, i) - tex1Dfetch(tex_short, i);
}

__global__ void plane(float *out, int width) {
    int x = threadIdx.x + blockIdx.x * blockDim.x - 1, y = blockIdx.y - 1;
    uchar4 p = tex2D(tex_pixels, x, y);
    float4 c = tex2D(tex_colors, x, y);
    out[(y + 1) * width + x + 1] = tex2D(tex_plane, x, y) + p.y + 255 * c.z;
}

__global__ void array(float *out) {
    out[threadIdx.x] = tex2D(tex_array, threadIdx.x / 8.0f, 0.5f);
    out[16 + threadIdx.x] = tex1D(tex_row, threadIdx.x / 2.0f);
}

__global__ void volume(float *out) {
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    out[x + 4 * (y + 3 * z)] = tex3D(tex_volume, x, y, z) - tex2DLayered(tex_layers, x, y, z);
}

__global__ void one(float *out, int i) {
    *out = tex1Dfetch(tex_float, i);
}

static void bind_by_reference(texture<float> &reference, const float *memory) {
    reference.normalized = false;
    cutilSafeCall(cudaBindTexture(NULL, reference, memory));
}

// The headers of the C library that `cucc --legacy` includes first: programs of 2010 do not name them.
static int forgotten_includes(pthread_t thread) {
    printf("%s", "");
    assert(isnan(NAN) && FLT_MAX > INT_MAX && strlen("four") == 4 && time(NULL) > 0);
    return pthread_equal(thread, pthread_self());
}

#include "units/device.h"

const int N = 1000;
static const cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();

static const std::vector<float> values = made(N, [](int i) { return 0.25f * i; });

TEST(linear_memory_with_and_without_a_size_and_a_format) {
    const std::vector<int> ints = made(N, [](int i) { return i % 50; });
    const auto bytes = made(N, [](int i) { return (unsigned char)i; });
    const auto shorts = made(N, [](int i) { return (short)(66 * i - 32768); });
    OK(cudaThreadExit()); // resets the device
    const Device<float> dev(values);
    const Device<int> dev_ints(ints);
    const Device<unsigned char> dev_bytes(bytes);
    const Device<short> dev_shorts(shorts);
    EXPECT(forgotten_includes(pthread_self()));
    EXPECT(STORED(size_t, cudaBindTexture(&it, tex_float, dev.data, desc, N * sizeof(float))) == 0);
    OK(cudaBindTexture(NULL, tex_int, dev_ints.data, N * sizeof(int)));
    OK(cudaBindTexture(NULL, tex_uint, dev_ints.data));
    OK(cudaBindTexture(0, tex_float2, dev.data, N * sizeof(float)));
    OK(cudaBindTexture(0, tex_float4, dev.data, N * sizeof(float)));
    OK(cudaBindTexture(NULL, tex_bytes, dev_bytes.data, N));
    OK(cudaBindTexture(NULL, tex_short, dev_shorts.data, 2 * N));
    const auto got = WRITTEN(float, 2 * N, linear<<<(N + 127) / 128, 128>>>(out, N));
    for (int i = 0; i < N; i++) {
        EXPECT(got[i] == 3 * values[i] + 10001.0f * ints[i]);
        EXPECT(fabs(got[N + i] - bytes[i] / 255.0f + fmaxf(shorts[i] / 32767.0f, -1)) < 1e-6);
    }
}

TEST(memory_of_two_dimensions_with_coordinates_outside) { // they are clamped
    const int W = 32, H = 16;
    const auto pixels = made(W * H, [](int i) { return make_uchar4(1, i % 200, i % 100, 4); });
    const Device<float> dev(values);
    const Device<uchar4> dev_pixels(pixels);
    const cudaChannelFormatDesc pixel = cudaCreateChannelDesc<uchar4>();
    size_t offset;
    OK(cudaBindTexture2D(NULL, tex_plane, dev.data, desc, W, H, W * sizeof(float)));
    OK(cudaBindTexture2D(&offset, tex_pixels, dev_pixels.data, pixel, W, H, W * sizeof(uchar4)));
    OK(cudaBindTexture2D(NULL, tex_colors, dev_pixels.data, W, H, W * sizeof(uchar4)));
    const auto got = WRITTEN(float, (W + 2) * (H + 2), plane<<<dim3(1, H + 2), W + 2>>>(out, W + 2));
    for (int y = -1; y <= H; y++)
        for (int x = -1; x <= W; x++) {
            const int i = max(0, min(x, W - 1)) + W * max(0, min(y, H - 1));
            EXPECT(fabs(got[(y + 1) * (W + 2) + x + 1] - (values[i] + i % 200 + i % 100)) < 1e-3);
        }
}

TEST(arrays_with_modes_set_before_and_after_they_are_bound) {
    const float four[] = {0, 1, 2, 3};
    cudaArray *const memory = array_of<float>({0, 1, 2, 3}, 4, 1), *line;
    OK(cudaMallocArray(&line, &desc, 4));
    OK(cudaMemcpyToArray(line, 0, 0, four, sizeof(four), cudaMemcpyHostToDevice));
    OK(cudaBindTextureToArray(tex_row, line));
    tex_array.addressMode[0] = cudaAddressModeWrap;
    tex_array.addressMode[1] = cudaAddressModeClamp;
    tex_array.filterMode = cudaFilterModePoint;
    tex_array.normalized = true;
    OK(cudaBindTextureToArray(tex_array, memory, desc));
    const std::vector<float> points = WRITTEN(float, 32, array<<<1, 16>>>(out));
    for (int i = 0; i < 16; i++)
        EXPECT(points[i] == i / 2 % 4);
    tex_array.filterMode = cudaFilterModeLinear;
    const std::vector<float> got = WRITTEN(float, 32, array<<<1, 8>>>(out));
    EXPECT(got[2] == 0.5f && got[3] == 1 && got[4] == 1.5f);
    EXPECT(tex_array.filterMode == cudaFilterModeLinear);
    EXPECT(got[16] == 0 && got[18] == 0.5f && got[19] == 1 && got[23] == 3);
}

TEST(a_volume_and_its_layers) {
    cudaArray *arrays[2]; // of values[0] … and of values[100] …
    for (int i = 0; i < 2; i++) {
        OK(cudaMalloc3DArray(&arrays[i], &desc, make_cudaExtent(4, 3, 2), i ? cudaArrayLayered : 0));
        copy_in(arrays[i], std::vector<float>(&values[100 * i], &values[100 * i + 24]), 4, 3, 2);
    }
    OK(cudaBindTextureToArray(tex_volume, arrays[0], desc));
    OK(cudaBindTextureToArray(tex_layers, arrays[1]));
    EXPECT(WRITTEN(float, 24, volume<<<1, dim3(4, 3, 2)>>>(out)) ==
           made(24, [](int i) { return values[i] - values[100 + i]; }));
}

static float fetch_one(int i) {
    const float value = WRITTEN(float, 1, one<<<1, 1>>>(out, i))[0];
    OK(cudaThreadSynchronize());
    return value;
}

TEST(bound_again_and_on_each_device) {
    const Device<float> dev(values);
    size_t offset;
    bind_by_reference(tex_float, dev.data + 512);
    EXPECT(fetch_one(3) == values[515]);
    const auto reference = STORED(const textureReference *, cudaGetTextureReference(&it, &tex_float)); // in C
    OK(cudaBindTexture(NULL, reference, dev.data, &reference->channelDesc, N * sizeof(float)));
    EXPECT(fetch_one(3) == values[3]);
    EXPECT(cudaBindTexture(NULL, tex_float, dev.data + 1, 4 * sizeof(float)) == cudaErrorInvalidValue);
    OK(cudaBindTexture(&offset, tex_float, dev.data + 1, 4 * sizeof(float))); // not aligned
    EXPECT(offset == sizeof(float));
    EXPECT(fetch_one(2 + offset / sizeof(float)) == values[3]);
    EXPECT(STORED(size_t, cudaGetTextureAlignmentOffset(&it, tex_float)) == sizeof(float));
    OK(cudaUnbindTexture(tex_float));
    EXPECT(cudaGetTextureAlignmentOffset(&offset, tex_float) == cudaErrorInvalidTextureBinding);
    OK(cudaBindTexture(NULL, tex_float, dev.data, N * sizeof(float)));

    if (device_count() > 1) {
        OK(cudaSetDevice(1));
        const Device<float> other(std::vector<float>{7, 8, 9});
        OK(cudaBindTexture(NULL, tex_float, other.data, 3 * sizeof(float)));
        EXPECT(fetch_one(2) == 9);
        OK(cudaSetDevice(0));
        EXPECT(fetch_one(2) == values[2]);
        OK(cudaSetDevice(1));
        EXPECT(fetch_one(1) == 8);
        OK(cudaUnbindTexture(tex_float));
        OK(cudaSetDevice(0));
        EXPECT(fetch_one(7) == values[7]);
    }
}
