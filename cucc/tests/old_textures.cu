// SPDX-License-Identifier: MIT
// Texture references in every form that CUDA 2 to 11 had: types, read modes, dimensions, ways to bind.
#include <cuda.h>

#define CHECK(what)                                                                                          \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            printf("%s:%d: wrong: %s\n", __FILE__, __LINE__, #what);                                         \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)
#define SAFE(call) CHECK((call) == cudaSuccess)

const int N = 1000;

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
}

__global__ void normalized(float *out) {
    int i = threadIdx.x;
    out[2 * i] = tex1Dfetch(tex_bytes, i);
    out[2 * i + 1] = tex1Dfetch(tex_short, i);
}

__global__ void plane(float *out, int width) {
    int x = threadIdx.x + blockIdx.x * blockDim.x - 1, y = blockIdx.y - 1;
    uchar4 p = tex2D(tex_pixels, x, y);
    float4 c = tex2D(tex_colors, x, y);
    out[(y + 1) * width + x + 1] = tex2D(tex_plane, x, y) + p.y + 255 * c.z;
}

__global__ void array(float *out) {
    out[threadIdx.x] = tex2D(tex_array, threadIdx.x / 8.0f, 0.5f);
}

__global__ void row(float *out) {
    out[threadIdx.x] = tex1D(tex_row, threadIdx.x / 2.0f);
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
    SAFE(cudaBindTexture(NULL, reference, memory));
}

template <class T> static T *upload(const T *from, size_t n) {
    T *memory;
    SAFE(cudaMalloc((void **)&memory, n * sizeof(T)));
    SAFE(cudaMemcpy(memory, from, n * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}

static float fetch_one(float *dev_out, int i) {
    float value;
    one<<<1, 1>>>(dev_out, i);
    SAFE(cudaThreadSynchronize());
    SAFE(cudaMemcpy(&value, dev_out, sizeof(float), cudaMemcpyDeviceToHost));
    return value;
}

int main(void) {
    float values[N], out[2 * N];
    int ints[N];
    for (int i = 0; i < N; i++) {
        values[i] = 0.25f * i;
        ints[i] = i % 50;
    }
    float *dev = upload(values, N), *dev_out = upload(out, 2 * N);
    int *dev_ints = upload(ints, N);

    // linear memory, with and without a size and a format
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    size_t offset = 77;
    SAFE(cudaBindTexture(&offset, tex_float, dev, desc, N * sizeof(float)));
    CHECK(offset == 0);
    SAFE(cudaBindTexture(NULL, tex_int, dev_ints, N * sizeof(int)));
    SAFE(cudaBindTexture(NULL, tex_uint, dev_ints));
    SAFE(cudaBindTexture(0, tex_float2, dev, N * sizeof(float)));
    SAFE(cudaBindTexture(0, tex_float4, dev, N * sizeof(float)));
    linear<<<(N + 127) / 128, 128>>>(dev_out, N);
    SAFE(cudaMemcpy(out, dev_out, N * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        CHECK(out[i] == 3 * values[i] + 10001.0f * ints[i]);

    // normalised floats
    unsigned char bytes[] = {0, 1, 128, 255};
    short shorts[] = {0, 1, 32767, -32768};
    unsigned char *dev_bytes = upload(bytes, 4);
    short *dev_shorts = upload(shorts, 4);
    SAFE(cudaBindTexture(NULL, tex_bytes, dev_bytes, 4));
    SAFE(cudaBindTexture(NULL, tex_short, dev_shorts, 8));
    normalized<<<1, 4>>>(dev_out);
    SAFE(cudaMemcpy(out, dev_out, 8 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; i++) {
        CHECK(fabs(out[2 * i] - bytes[i] / 255.0f) < 1e-6);
        CHECK(fabs(out[2 * i + 1] - (i == 3 ? -1.0f : shorts[i] / 32767.0f)) < 1e-6);
    }

    // memory of two dimensions; coordinates outside are clamped
    const int W = 32, H = 16;
    uchar4 pixels[W * H];
    for (int i = 0; i < W * H; i++)
        pixels[i] = make_uchar4(1, i % 200, i % 100, 4);
    uchar4 *dev_pixels = upload(pixels, W * H);
    cudaChannelFormatDesc pixel = cudaCreateChannelDesc<uchar4>();
    SAFE(cudaBindTexture2D(NULL, tex_plane, dev, desc, W, H, W * sizeof(float)));
    SAFE(cudaBindTexture2D(&offset, tex_pixels, dev_pixels, pixel, W, H, W * sizeof(uchar4)));
    SAFE(cudaBindTexture2D(NULL, tex_colors, dev_pixels, W, H, W * sizeof(uchar4)));
    plane<<<dim3(1, H + 2), W + 2>>>(dev_out, W + 2);
    SAFE(cudaMemcpy(out, dev_out, (W + 2) * (H + 2) * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = -1; y <= H; y++)
        for (int x = -1; x <= W; x++) {
            int i = max(0, min(x, W - 1)) + W * max(0, min(y, H - 1));
            CHECK(fabs(out[(y + 1) * (W + 2) + x + 1] - (values[i] + i % 200 + i % 100)) < 1e-3);
        }

    // an array, modes set before and after it is bound
    float four[] = {0, 1, 2, 3};
    cudaArray *memory;
    SAFE(cudaMallocArray(&memory, &desc, 4, 1));
    SAFE(cudaMemcpyToArray(memory, 0, 0, four, sizeof(four), cudaMemcpyHostToDevice));
    tex_array.addressMode[0] = cudaAddressModeWrap;
    tex_array.addressMode[1] = cudaAddressModeClamp;
    tex_array.filterMode = cudaFilterModePoint;
    tex_array.normalized = true;
    SAFE(cudaBindTextureToArray(tex_array, memory, desc));
    array<<<1, 16>>>(dev_out);
    SAFE(cudaMemcpy(out, dev_out, 16 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++)
        CHECK(out[i] == i / 2 % 4);
    tex_array.filterMode = cudaFilterModeLinear;
    array<<<1, 8>>>(dev_out);
    SAFE(cudaMemcpy(out, dev_out, 8 * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(out[2] == 0.5f && out[3] == 1 && out[4] == 1.5f);
    CHECK(tex_array.filterMode == cudaFilterModeLinear);

    cudaArray *line;
    SAFE(cudaMallocArray(&line, &desc, 4));
    SAFE(cudaMemcpyToArray(line, 0, 0, four, sizeof(four), cudaMemcpyHostToDevice));
    SAFE(cudaBindTextureToArray(tex_row, line));
    row<<<1, 8>>>(dev_out);
    SAFE(cudaMemcpy(out, dev_out, 8 * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(out[0] == 0 && out[2] == 0.5f && out[3] == 1 && out[7] == 3);

    // a volume and its layers
    cudaExtent extent = make_cudaExtent(4, 3, 2);
    cudaArray *solid, *layers;
    SAFE(cudaMalloc3DArray(&solid, &desc, extent));
    SAFE(cudaMalloc3DArray(&layers, &desc, extent, cudaArrayLayered));
    cudaMemcpy3DParms copy = {0};
    copy.extent = extent;
    copy.kind = cudaMemcpyHostToDevice;
    copy.srcPtr = make_cudaPitchedPtr(values, 4 * sizeof(float), 4, 3);
    copy.dstArray = solid;
    SAFE(cudaMemcpy3D(&copy));
    copy.srcPtr = make_cudaPitchedPtr(values + 100, 4 * sizeof(float), 4, 3);
    copy.dstArray = layers;
    SAFE(cudaMemcpy3D(&copy));
    SAFE(cudaBindTextureToArray(tex_volume, solid, desc));
    SAFE(cudaBindTextureToArray(tex_layers, layers));
    volume<<<1, dim3(4, 3, 2)>>>(dev_out);
    SAFE(cudaMemcpy(out, dev_out, 24 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 24; i++)
        CHECK(out[i] == values[i] - values[100 + i]);

    // bound again, by reference, by the C interface, at an address that is not aligned
    bind_by_reference(tex_float, dev + 512);
    CHECK(fetch_one(dev_out, 3) == values[515]);
    const textureReference *reference;
    SAFE(cudaGetTextureReference(&reference, &tex_float));
    SAFE(cudaBindTexture(NULL, reference, dev, &reference->channelDesc, N * sizeof(float)));
    CHECK(fetch_one(dev_out, 3) == values[3]);
    CHECK(cudaBindTexture(NULL, tex_float, dev + 1, 4 * sizeof(float)) == cudaErrorInvalidValue);
    SAFE(cudaBindTexture(&offset, tex_float, dev + 1, 4 * sizeof(float)));
    CHECK(offset == sizeof(float));
    CHECK(fetch_one(dev_out, 2 + offset / sizeof(float)) == values[3]);
    offset = 0;
    SAFE(cudaGetTextureAlignmentOffset(&offset, tex_float));
    CHECK(offset == sizeof(float));
    SAFE(cudaUnbindTexture(tex_float));
    CHECK(cudaGetTextureAlignmentOffset(&offset, tex_float) == cudaErrorInvalidTextureBinding);
    SAFE(cudaBindTexture(NULL, tex_float, dev, N * sizeof(float)));

    // each device has its own binding
    int count;
    SAFE(cudaGetDeviceCount(&count));
    if (count > 1) {
        SAFE(cudaSetDevice(1));
        float other[] = {7, 8, 9};
        float *dev_other = upload(other, 3), *dev_value = upload(other, 1);
        SAFE(cudaBindTexture(NULL, tex_float, dev_other, sizeof(other)));
        CHECK(fetch_one(dev_value, 2) == 9);
        SAFE(cudaSetDevice(0));
        CHECK(fetch_one(dev_out, 2) == values[2]);
        SAFE(cudaSetDevice(1));
        CHECK(fetch_one(dev_value, 1) == 8);
        SAFE(cudaUnbindTexture(tex_float));
        SAFE(cudaSetDevice(0));
        CHECK(fetch_one(dev_out, 7) == values[7]);
    }
    SAFE(cudaThreadExit());
    printf("textures: right\n");
    return 0;
}
