// SPDX-License-Identifier: MIT
// cucc only: the errors of arrays, texture and surface objects. What fetches return on a GPU is in volume.cu
// and ../conformance.
#include <cmath>
#include <cstdint>
#include "device.h"

static cudaArray_t make_array(size_t width, size_t height, unsigned flags = 0) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
    return STORED(cudaArray_t, cudaMallocArray(&it, &format, width, height, flags));
}

static std::vector<int> counted(size_t n) {
    return made(n, [](int i) { return i + 1; });
}

TEST(arrays_are_copied_by_rows_and_bytes) {
    const std::vector<int> in = counted(7 * 5);
    std::vector<int> out(7 * 5);
    const size_t row = 7 * sizeof(int);
    cudaArray_t a = make_array(7, 5), b = make_array(7, 5);
    OK(cudaMemcpy2DToArray(a, 0, 0, in.data(), row, row, 5, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, row, 5));
    OK(cudaMemcpy2DFromArray(out.data(), row, b, 0, 0, row, 5, cudaMemcpyDeviceToHost));
    EXPECT(in == out);

    // Two columns of three rows, from the middle of b to the edge of a
    OK(cudaMemcpy2DArrayToArray(a, 5 * sizeof(int), 2, b, sizeof(int), 1, 2 * sizeof(int), 3));
    int part[3][2];
    OK(cudaMemcpy2DFromArray(part, sizeof part[0], a, 5 * sizeof(int), 2, sizeof part[0], 3,
                             cudaMemcpyDefault));
    EXPECT(part[0][0] == in[8] && part[0][1] == in[9] && part[2][1] == in[23]);

    const Device<int> device(7 * 5);
    OK(cudaMemcpy2DFromArray(device.data, row, b, 0, 0, row, 5, cudaMemcpyDeviceToDevice));
    EXPECT(in == device.host());

    // Consecutive bytes, across the ends of rows
    OK(cudaMemcpyFromArray(out.data(), b, 4, 1, 60, cudaMemcpyDeviceToHost));
    EXPECT(memcmp(out.data(), &in[8], 60) == 0);
    OK(cudaMemcpyToArray(b, 0, 4, out.data(), row, cudaMemcpyHostToDevice));
    OK(cudaMemcpyFromArray(out.data(), b, 0, 4, row, cudaMemcpyDeviceToHost));
    EXPECT(out[0] == in[8] && out[6] == in[14]);
}

TEST(copies_beyond_an_array) {
    int buffer[64] = {};
    cudaArray_t a = make_array(4, 3);
    const auto copy = [&](size_t x, size_t y, size_t width, size_t rows, size_t pitch = 16,
                          cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
        return last(cudaMemcpy2DToArray(a, x, y, buffer, pitch, width, rows, kind));
    };
    EXPECT(copy(0, 0, 16, 3) == cudaSuccess);
    EXPECT(copy(0, 0, 0, 1) == cudaSuccess);
    EXPECT(copy(4, 0, 16, 1) == cudaErrorInvalidValue);
    EXPECT(copy(0, 1, 16, 3) == cudaErrorInvalidValue);
    EXPECT(copy(0, 0, 20, 1) == cudaErrorInvalidValue);
    EXPECT(copy(SIZE_MAX, 0, 16, 1) == cudaErrorInvalidValue);
    EXPECT(copy(0, SIZE_MAX, 16, 2) == cudaErrorInvalidValue);
    EXPECT(copy(0, 0, 16, 2, 12) == cudaErrorInvalidPitchValue);
    EXPECT(copy(0, 0, 16, 1, 16, cudaMemcpyDeviceToHost) == cudaErrorInvalidMemcpyDirection);
    EXPECT(copy(0, 0, 16, 1, 16, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
    EXPECT(last(cudaMemcpyToArray(a, 4, 2, buffer, 16, cudaMemcpyHostToDevice)) == cudaErrorInvalidValue);
    OK(cudaFreeArray(a));
    EXPECT(copy(0, 0, 16, 1) == cudaErrorInvalidResourceHandle);
    EXPECT(last(cudaFreeArray(a)) == cudaErrorInvalidResourceHandle);
    OK(cudaFreeArray(nullptr));
}

TEST(arrays_that_cannot_be) {
    cudaArray_t a;
    const auto make = [&](cudaChannelFormatDesc format, size_t width, size_t height, unsigned flags = 0) {
        return last(cudaMallocArray(&a, &format, width, height, flags));
    };
    const cudaChannelFormatKind f = cudaChannelFormatKindFloat, u = cudaChannelFormatKindUnsigned;
    EXPECT(make({32, 32, 32, 0, f}, 4, 4) == cudaErrorInvalidChannelDescriptor);
    EXPECT(make({32, 16, 0, 0, u}, 4, 4) == cudaErrorInvalidChannelDescriptor);
    EXPECT(make({64, 0, 0, 0, f}, 4, 4) == cudaErrorInvalidChannelDescriptor);
    EXPECT(make({0, 0, 0, 0, u}, 4, 4) == cudaErrorInvalidChannelDescriptor);
    EXPECT(make({8, 0, 0, 0, u}, 0, 4) == cudaErrorInvalidValue);
    EXPECT(make({8, 0, 0, 0, u}, 1 << 20, 0) == cudaErrorInvalidValue);
    EXPECT(make({8, 0, 0, 0, u}, 4, 1 << 20) == cudaErrorInvalidValue);
    EXPECT(make({8, 0, 0, 0, u}, 4, 4, cudaArrayCubemap) == cudaErrorInvalidValue);
}

static cudaResourceDesc linear(void *memory, size_t bytes) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = memory;
    r.res.linear.desc = cudaCreateChannelDesc<int>();
    r.res.linear.sizeInBytes = bytes;
    return r;
}

static cudaResourceDesc pitched(void *memory, size_t width, size_t height, size_t pitch) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = memory;
    r.res.pitch2D.desc = cudaCreateChannelDesc<int>();
    r.res.pitch2D.width = width;
    r.res.pitch2D.height = height;
    r.res.pitch2D.pitchInBytes = pitch;
    return r;
}

static cudaError_t create(const cudaResourceDesc &resource, const cudaTextureDesc &desc = {}) {
    cudaTextureObject_t t = 0;
    const cudaError_t error = cudaCreateTextureObject(&t, &resource, &desc, nullptr);
    if (error == cudaSuccess)
        OK(cudaDestroyTextureObject(t));
    return last(error);
}
static cudaTextureObject_t texture_of(const cudaResourceDesc &resource, const cudaTextureDesc &desc = {}) {
    return STORED(cudaTextureObject_t, cudaCreateTextureObject(&it, &resource, &desc, nullptr));
}

TEST(textures_that_cannot_be) {
    char *const memory = STORED(char *, cudaMalloc(&it, 4096));
    int on_host[256];
    EXPECT(create(linear(memory, 4096)) == cudaSuccess);
    EXPECT(create(linear(memory + 512, 1024)) == cudaSuccess);
    EXPECT(create(linear(memory + 4, 1024)) == cudaErrorInvalidValue); // alignment
    EXPECT(create(linear(memory, 4100)) == cudaSuccess);               // past the end; see what_ends_a_kernel
    EXPECT(create(linear(memory, 0)) == cudaErrorInvalidValue);
    EXPECT(create(linear(on_host, 1024)) == cudaErrorInvalidValue);
    EXPECT(create(pitched(memory, 8, 128, 32)) == cudaSuccess);
    EXPECT(create(pitched(memory, 7, 128, 32)) == cudaSuccess);
    EXPECT(create(pitched(memory, 8, 129, 32)) == cudaErrorInvalidValue); // past the end
    EXPECT(create(pitched(memory, 9, 8, 32)) == cudaErrorInvalidValue);   // rows overlap
    EXPECT(create(pitched(memory, 9, 8, 36)) == cudaErrorInvalidValue);   // pitch alignment
    EXPECT(create(pitched(memory + 32, 8, 8, 32)) == cudaErrorInvalidValue);
    EXPECT(create(pitched(memory, 8, 0, 32)) == cudaErrorInvalidValue);
    cudaResourceDesc three = linear(memory, 1024);
    three.res.linear.desc = {32, 32, 32, 0, cudaChannelFormatKindSigned};
    EXPECT(create(three) == cudaErrorInvalidChannelDescriptor);

    cudaTextureDesc filtered = {};
    filtered.filterMode = cudaFilterModeLinear;
    EXPECT(create(pitched(memory, 8, 8, 32), filtered) == cudaErrorInvalidFilterSetting);
    cudaResourceDesc floats = pitched(memory, 8, 8, 32);
    floats.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    EXPECT(create(floats, filtered) == cudaSuccess);
    cudaTextureDesc normalised = {};
    normalised.readMode = cudaReadModeNormalizedFloat;
    EXPECT(create(pitched(memory, 8, 8, 32), normalised) == cudaErrorInvalidNormSetting);
    EXPECT(create(floats, normalised) == cudaErrorInvalidNormSetting);
    cudaTextureDesc wrong = {};
    memset(&wrong.addressMode[1], 4, 1);
    EXPECT(create(floats, wrong) == cudaErrorInvalidValue);

    cudaArray_t array = make_array(4, 4);
    EXPECT(create(of_array(array)) == cudaSuccess);
    OK(cudaFreeArray(array));
    EXPECT(create(of_array(array)) == cudaErrorInvalidResourceHandle);
    OK(cudaFree(memory));
    EXPECT(create(linear(memory, 1024)) == cudaErrorInvalidValue); // freed
}

TEST(textures_describe_themselves_until_destroyed) {
    char *const memory = STORED(char *, cudaMalloc(&it, 1024));
    const cudaResourceDesc resource = linear(memory, 1024);
    cudaTextureDesc desc = {};
    desc.addressMode[0] = cudaAddressModeMirror;
    cudaTextureObject_t t = texture_of(resource, desc);
    cudaResourceDesc got;
    OK(cudaGetTextureObjectResourceDesc(&got, t));
    EXPECT(got.resType == cudaResourceTypeLinear && got.res.linear.devPtr == memory);
    const auto same = STORED(cudaTextureDesc, cudaGetTextureObjectTextureDesc(&it, t));
    EXPECT(same.addressMode[0] == cudaAddressModeMirror);
    OK(cudaDestroyTextureObject(t));
    EXPECT(last(cudaGetTextureObjectResourceDesc(&got, t)) == cudaErrorInvalidValue);
    EXPECT(last(cudaDestroyTextureObject(t)) == cudaErrorInvalidValue);
    EXPECT(last(cudaCreateTextureObject(&t, nullptr, &desc, nullptr)) == cudaErrorInvalidValue);
    EXPECT(last(cudaCreateTextureObject(&t, &resource, nullptr, nullptr)) == cudaErrorInvalidResourceHandle);
}

// ---- texels of 1, 2 and 4 numbers ----

template <class T> __device__ void put(double *out, T v) {
    out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
}

// Both forms of the fetch functions, which return the same values, and a fetch outside; of linear memory also
// one before it
template <class T> __global__ void read_texels(double *out, cudaTextureObject_t t, bool is_linear) {
    T same;
    if (is_linear)
        tex1Dfetch(&same, t, 1);
    else
        tex2D(&same, t, 0.75f, 0.5f);
    put(out, is_linear ? tex1Dfetch<T>(t, 1) : tex2D<T>(t, 0.75f, 0.5f));
    put(out + 4, same);
    put(out + 8, is_linear ? tex1Dfetch<T>(t, 2) : tex2D<T>(t, -5.0f, 0.5f));
    put(out + 12, is_linear ? tex1Dfetch<T>(t, -1) : tex2D<T>(t, 5.0f, 0.5f));
}

// The second of two texels of n numbers, read as four: the missing ones are 0. Beyond linear memory all are.
template <class C, class T> static void check_texels(int n) {
    const std::vector<C> in = made(2 * n, [n](int i) { return (C)(i < n ? i + 1 : 11 * (i - n + 1)); });
    const size_t bytes = 2 * n * sizeof(C);
    cudaChannelFormatDesc format = cudaCreateChannelDesc<C>();
    format.y = n > 1 ? format.x : 0;
    format.z = format.w = n > 2 ? format.x : 0;
    const cudaArray_t array = array_of(in, 2, 1, 0, format);
    const Device<C> memory(in);
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeBorder;
    // The border colour has the type that the fetch returns: float or int.
    const float colours[] = {5, 6, 7, 8};
    const int numbers[] = {5, 6, 7, 8};
    memcpy(desc.borderColor, C(0.5) != 0 ? (const void *)colours : numbers, sizeof colours);
    for (bool is_linear : {false, true}) {
        cudaResourceDesc resource = is_linear ? linear(memory.data, bytes) : of_array(array);
        if (is_linear)
            resource.res.linear.desc = format;
        desc.normalizedCoords = !is_linear;
        const cudaTextureObject_t t = texture_of(resource, desc);
        const auto got = WRITTEN(double, 16, read_texels<T><<<1, 1>>>(out, t, is_linear));
        for (int c = 0; c < 4; c++) {
            EXPECT(got[c] == (c < n ? 11 * (c + 1) : 0) && got[4 + c] == got[c]);
            EXPECT(got[8 + c] == (c < n && !is_linear ? 5 + c : 0) && got[12 + c] == got[8 + c]);
        }
    }
}

TEST(components) {
    for (int n : {1, 2, 4}) {
        check_texels<float, float4>(n);
        check_texels<int, int4>(n);
        check_texels<unsigned char, uint4>(n);
        check_texels<short, int4>(n);
    }
}

// ---- normalised values ----

// Fetches a texel, the border next to it, and the point halfway between the two.
__global__ void fetch_normalised(cudaTextureObject_t t, float *out) {
    out[0] = tex2D<float>(t, 0.5f, 0.5f);
    out[1] = tex2D<float>(t, -5, 0.5f);
    out[2] = tex2D<float>(t, 0, 0.5f);
}

template <class C> static std::vector<float> fetch_texel(C texel, float border, bool filtered = false) {
    cudaTextureDesc desc = {};
    desc.addressMode[0] = cudaAddressModeBorder;
    desc.addressMode[1] = cudaAddressModeClamp;
    desc.filterMode = filtered ? cudaFilterModeLinear : cudaFilterModePoint;
    desc.readMode = cudaReadModeNormalizedFloat;
    desc.borderColor[0] = border;
    const cudaTextureObject_t t = texture_of(of_array(array_of<C>({texel}, 1, 1)), desc);
    return WRITTEN(float, 3, fetch_normalised<<<1, 1>>>(t, out));
}

TEST_OF(the_smallest_value_is_less_than_minus_1_until_it_is_filtered, signed char, short) {
    const int least = std::numeric_limits<T>::min();
    const std::vector<float> plain = fetch_texel<T>(least, 1), filtered = fetch_texel<T>(least, 1, true);
    EXPECT(plain[0] == -1 && plain[1] == 1 && filtered[0] == -1 && filtered[1] == 1);
    EXPECT(filtered[2] == (float)(0.5 + 0.5 * (least / (float)(-least - 1)))); // a GPU's has fewer bits
}

template <class C> static float border_of(float colour) {
    return fetch_texel<C>(0, colour)[1];
}

TEST(halves_in_the_border_become_the_number_nearer_to_0) {
    const struct {
        float colour, number; // of a signed char
    } known[] = {{0.5f, 63}, {-0.5f, -63}, {0.75f, 95}, {-0.75f, -95}, {-0.25f, -32}, {-2, -127}};
    for (const auto &k : known)
        EXPECT(border_of<signed char>(k.colour) == k.number / 127);
    EXPECT(!std::signbit(border_of<signed char>(-0.001f)));
    EXPECT(border_of<short>(0.5f) == 16383 / 32767.0f && border_of<short>(-0.5f) == -16383 / 32767.0f);
    EXPECT(border_of<unsigned char>(0.5f) == 127 / 255.0f && border_of<unsigned char>(-0.5f) == 0);
}

// ---- surfaces ----

__global__ void shift_2d(cudaSurfaceObject_t s, int *out, cudaSurfaceBoundaryMode mode) {
    const int x = (int)threadIdx.x - 2, y = (int)threadIdx.y - 2;
    const int v = surf2Dread<int>(s, x * 4, y, mode);
    int same;
    surf2Dread(&same, s, x * 4, y, mode);
    out[threadIdx.x + threadIdx.y * blockDim.x] = v == same ? v : -1;
}

__global__ void fetch_row(cudaTextureObject_t t, float *out) {
    out[threadIdx.x] = tex1D<float>(t, threadIdx.x + 0.5f);
}

__global__ void fetch_2d(cudaTextureObject_t t, float x, float y, float *out) {
    *out = tex2D<float>(t, x, y);
}

TEST(a_texel_with_the_weight_0_does_not_count) { // as on an H200
    const cudaArray_t a = array_of<float>({1, INFINITY, NAN, 3}, 2, 2);
    cudaTextureDesc desc = {};
    desc.filterMode = cudaFilterModeLinear;
    const cudaTextureObject_t t = texture_of(of_array(a), desc);
    const auto fetch = [&](float x, float y) {
        return WRITTEN(float, 1, fetch_2d<<<1, 1>>>(t, x, y, out))[0];
    };
    EXPECT(fetch(0.5f, 0.5f) == 1 && fetch(1.5f, 1.5f) == 3 && std::isinf(fetch(1, 0.5f)));
    EXPECT(std::isnan(fetch(0.5f, 1)));
}

TEST(an_array_of_n_by_1_is_read_in_one_dimension) {
    const std::vector<float> texels = {1, 2, 3, 4};
    const cudaTextureObject_t t = texture_of(of_array(array_of(texels, 4, 1)));
    EXPECT(WRITTEN(float, 4, fetch_row<<<1, 4>>>(t, out)) == texels);
}

TEST(surfaces_are_read_outside) {
    const std::vector<int> texels = counted(4 * 3);
    const cudaArray_t a = array_of(texels, 4, 3, cudaArraySurfaceLoadStore);
    const cudaSurfaceObject_t s = surface_of(a);
    for (cudaSurfaceBoundaryMode mode : {cudaBoundaryModeZero, cudaBoundaryModeClamp}) {
        const auto wanted = [&](int i) {
            const int x = i % 8 - 2, y = i / 8 - 2;
            const int cx = x < 0 ? 0 : x > 3 ? 3 : x, cy = y < 0 ? 0 : y > 2 ? 2 : y;
            return (x == cx && y == cy) || mode == cudaBoundaryModeClamp ? texels[4 * cy + cx] : 0;
        };
        EXPECT(WRITTEN(int, 8 * 7, shift_2d<<<1, dim3(8, 7)>>>(s, out, mode)) == made(8 * 7, wanted));
    }
    cudaChannelFormatDesc format;
    cudaExtent extent;
    unsigned flags;
    OK(cudaArrayGetInfo(&format, &extent, &flags, a));
    EXPECT(format.x == 32 && format.y == 0 && format.f == cudaChannelFormatKindSigned);
    EXPECT(extent.width == 4 && extent.height == 3 && extent.depth == 0 &&
           flags == cudaArraySurfaceLoadStore);
    EXPECT(STORED(cudaChannelFormatDesc, cudaGetChannelDesc(&it, a)).x == 32);
    OK(cudaDestroySurfaceObject(s));
    EXPECT(last(cudaDestroySurfaceObject(s)) == cudaErrorInvalidValue);
}

#ifdef __CU2CPP__ // device code that an algorithm of Thrust calls runs outside kernels
TEST(a_fetch_outside_a_kernel) {
    ends_well(under({"CUDA_CPU_CHECK=0"}, [] {
        const cudaArray_t a = array_of(counted(4), 4, 1);
        EXPECT(tex2D<int>(texture_of(of_array(a)), 2.5f, 0.5f) == 3);
        cudaTextureDesc desc = {};
        desc.addressMode[0] = cudaAddressModeBorder; // not inlined
        EXPECT(tex2D<int>(texture_of(of_array(a), desc), 2.5f, 0.5f) == 3);
    }));
}
#endif

TEST(surfaces_that_cannot_be) {
    cudaArray_t a = make_array(4, 4);
    cudaSurfaceObject_t s;
    const cudaResourceDesc plain = of_array(a);
    OK(cudaCreateSurfaceObject(&s, &plain)); // without cudaArraySurfaceLoadStore, too, as on a GPU
    OK(cudaDestroySurfaceObject(s));
    OK(cudaDeviceReset()); // frees arrays too
    EXPECT(last(cudaFreeArray(a)) == cudaErrorInvalidResourceHandle);
    EXPECT(last(cudaCreateSurfaceObject(&s, &plain)) == cudaErrorInvalidResourceHandle);
}

// ---- accesses that end the program ----

__global__ void write_at(cudaSurfaceObject_t s, int x, int y) {
    surf2Dwrite(1, s, x, y);
}
__global__ void fetch_at(cudaTextureObject_t t, int i, int *out) {
    *out = tex1Dfetch<int>(t, i);
}

static cudaSurfaceObject_t surface_4_by_4() {
    return surface_of(make_array(4, 4, cudaArraySurfaceLoadStore));
}

TEST(what_ends_a_kernel) {
    ends_with(in_child([] { write_at<<<1, 1>>>(surface_4_by_4(), 16, 0); }),
              {"byte 16 of row 0 is outside 4 rows of 16 bytes", "write_at", "texture.cu:"});
    ends_with(in_child([] { write_at<<<1, 1>>>(surface_4_by_4(), 2, 0); }),
              {"misaligned: byte 2 of a row for a value of 4 bytes", "write_at", "texture.cu:"});
    ends_with(in_child([] {
                  const Device<float> memory(256);
                  fetch_2d<<<1, 1>>>(texture_of(linear(memory.data, 1024)), 0, 0, memory.data);
              }),
              {"the object is of linear memory, which tex1Dfetch reads", "fetch_2d", "texture.cu:"});
}

// NVIDIA's convolutionFFT2D makes a texture that is larger than its memory. A GPU accepts it; texels beyond
// the memory are whatever lies there.
static int fetched_at(int i) {
    const Device<int> memory(std::vector<int>(8, 0x01010101));
    const cudaTextureObject_t t = texture_of(linear(memory.data, 1000 * sizeof(int)));
    return WRITTEN(int, 1, fetch_at<<<1, 1>>>(t, i, out))[0];
}
TEST(linear_memory_that_ends_before_the_texture) {
    EXPECT(fetched_at(7) == 0x01010101 && fetched_at(-1) == 0 && fetched_at(1000) == 0);
    ends_with(in_child([] { fetched_at(8); }), {"tex1Dfetch", "texel 8 is beyond the memory", "8 texels"});
}
