// SPDX-License-Identifier: MIT
// Arrays of three dimensions, layers, cubemaps and mipmaps: copies, fetches and surfaces. The expected
// values come from the formulas of the programming guide, written anew here. Everything is legal CUDA and
// gives the same on a GPU: coordinates are multiples of 1/64 of a texel, in volumes of 1/4, so that the
// fractions of 8 bits are exact, and in volumes their products too.
#include <cmath>
#include <cstdint>
#include <functional>
#include "device.h"

constexpr int W = 8, H = 4, D = 4, POINTS = 96;

static float texel(int x, int y, int z) {
    return (float)((x * 37 + y * 71 + z * 13 + 5) % 251) / 8 - 10;
}

struct Point {
    float x, y, z, level;
    int layer;
};

static std::vector<Point> points() {
    return made(POINTS, [](int k) {
        return Point{(float)(k * 37 % 1024) / 64 - 4, (float)(k * 53 % 640) / 64 - 3,
                     (float)(k * 29 % 512) / 64 - 2, (float)(k % 13) / 4 - 0.5f, k % 7 - 1};
    });
}

// A change of a direction. Along the direction itself the place on the cube stays the same.
__device__ float4 cube_step(const Point &p, bool along) {
    const float ax = fabsf(p.x), ay = fabsf(p.y), az = fabsf(p.z), step = exp2f(p.level) / 4;
    if (along)
        return make_float4(p.x * 16 * step, p.y * 16 * step, p.z * 16 * step, 0);
    if (az > ax && az > ay)
        return make_float4(step * az, 0, 0, 0);
    return ay > ax ? make_float4(0, 0, step * ay, 0) : make_float4(0, step * ax, 0, 0);
}

__device__ float by_pointer(cudaTextureObject_t t, const Point &p) {
    float x;
    tex3D(&x, t, p.x, p.y, p.z);
    return x;
}

// One of the four texels, of the first component or of the second
__device__ float gathered(cudaTextureObject_t t, const Point &p) {
    const float4 v = p.level < 1 ? tex2Dgather<float4>(t, p.x, p.y) : tex2Dgather<float4>(t, p.x, p.y, 1);
    const float all[] = {v.x, v.y, v.z, v.w};
    return all[p.layer & 3];
}

// The fetches, each at a point
#define FETCH(name, ...)                                                                                     \
    struct name {                                                                                            \
        static __device__ float at(cudaTextureObject_t t, const Point &p) { return __VA_ARGS__; }            \
    };
FETCH(volume, p.layer & 1 ? tex3D<float>(t, p.x, p.y, p.z) : by_pointer(t, p))
FETCH(flat, tex2D<float>(t, p.x, p.y))
FETCH(layers_1d, tex1DLayered<float>(t, p.x, p.layer))
FETCH(layers_2d, tex2DLayered<float>(t, p.x, p.y, p.layer))
FETCH(cube, texCubemap<float>(t, p.x, p.y, p.z))
FETCH(cube_layers, texCubemapLayered<float>(t, p.x, p.y, p.z, p.layer))
FETCH(levels_2d, tex2DLod<float>(t, p.x / W, p.y / H, p.level))
FETCH(levels_3d, tex3DLod<float>(t, p.x / W, p.y / H, p.z / D, p.level))
// Steps of 2^level texels of the first level; of cubemaps, of 8 x 8, one across and one out of the face
FETCH(gradient_2d,
      tex2DGrad<float>(t, p.x / W, p.y / H, make_float2(exp2f(p.level) / W, 0), make_float2(0, 0)))
FETCH(gradient_cube, texCubemapGrad<float>(t, p.x, p.y, p.z, cube_step(p, false), cube_step(p, true)))
FETCH(gradient_cube_layers,
      texCubemapLayeredGrad<float>(t, p.x, p.y, p.z, p.layer, cube_step(p, false), cube_step(p, true)))
FETCH(gather, gathered(t, p))

template <class Fetch> __global__ void fetch(float *out, const Point *points, cudaTextureObject_t t) {
    out[threadIdx.x] = Fetch::at(t, points[threadIdx.x]);
}

// ---- the reference ----

typedef std::function<double(int, int, int)> Texels;

static int clamp_to(double i, int n) {
    return i < 0 ? 0 : i >= n ? n - 1 : (int)std::floor(i);
}

// The reference of a linear filter in one to three dimensions, with clamped coordinates in texels. A
// dimension of size 0 is not used. The weight of the last of four texels is rounded to a multiple of 1/256;
// the others are computed from it.
static double filtered(const Texels &at, const double c[3], const int size[3]) {
    double base[3] = {0, 0, 0}, part[3] = {0, 0, 0};
    for (int d = 0; d < 3; d++)
        if (size[d]) {
            base[d] = std::floor(c[d] - 0.5);
            part[d] = c[d] - 0.5 - base[d];
        }
    const double both = std::floor(part[0] * part[1] * 256 + 0.5) / 256;
    const double flat[4] = {1 - part[0] - part[1] + both, part[0] - both, part[1] - both, both};
    double sum = 0;
    for (int corner = 0; corner < 8; corner++) {
        int index[3];
        for (int d = 0; d < 3; d++)
            index[d] = size[d] ? clamp_to(base[d] + (corner >> d & 1), size[d]) : 0;
        sum += flat[corner & 3] * (corner >> 2 ? part[2] : 1 - part[2]) * at(index[0], index[1], index[2]);
    }
    return sum;
}

static int layer_of(const Point &p, int n) { // a negative index is a large unsigned one
    return p.layer < 0 ? n - 1 : clamp_to(p.layer, n);
}

// ---- set-up ----

static const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();

static std::vector<float> copy_out(cudaArray_t array, size_t w, size_t h, size_t d) {
    std::vector<float> host(w * h * d);
    cudaMemcpy3DParms p = box(host, w, h, d);
    p.srcPtr = {};
    p.srcArray = array;
    p.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&p));
    return host;
}
// at(x, y, z) for every place of a box, in the order of memory
template <class T = float, class F> static std::vector<T> all(size_t w, size_t h, size_t d, F at) {
    std::vector<T> list;
    for (size_t z = 0; z < d; z++)
        for (size_t y = 0; y < h; y++)
            for (size_t x = 0; x < w; x++)
                list.push_back((T)at((int)x, (int)y, (int)z));
    return list;
}
static void fill(cudaArray_t array, size_t w, size_t h, size_t d, const Texels &at) {
    copy_in(array, all(w, h, d, at), w, h, d);
}

struct Scene {
    cudaArray_t array = NULL;
    cudaMipmappedArray_t mipmapped = NULL;
    cudaTextureObject_t texture = 0;
    std::vector<Point> list = points();

    ~Scene() {
        OK(cudaDestroyTextureObject(texture));
        OK(cudaFreeArray(array));
        OK(cudaFreeMipmappedArray(mipmapped));
    }
    void make(cudaExtent extent, unsigned flags, const cudaChannelFormatDesc &format = floats) {
        OK(cudaFreeArray(array));
        OK(cudaMalloc3DArray(&array, &format, extent, flags));
    }
    void make_levels(cudaExtent extent, unsigned levels, unsigned flags = 0) {
        OK(cudaFreeMipmappedArray(mipmapped));
        OK(cudaMallocMipmappedArray(&mipmapped, &floats, extent, levels, flags));
    }
    void view(bool linear, bool normalized, cudaTextureDesc desc = {}) {
        OK(cudaDestroyTextureObject(texture));
        cudaResourceDesc resource = of_array(array);
        if (mipmapped) {
            resource.resType = cudaResourceTypeMipmappedArray;
            resource.res.mipmap.mipmap = mipmapped;
        }
        for (auto &m : desc.addressMode)
            m = cudaAddressModeClamp;
        desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
        desc.normalizedCoords = normalized;
        OK(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    }
    // Fetches at all points; expected(point) is NAN where no value is expected.
    template <class Fetch, class Expected> void check(Expected expected, double tolerance = 2e-3) {
        const Device<Point> device(list);
        const auto got = WRITTEN(float, POINTS, fetch<Fetch><<<1, POINTS>>>(out, device.data, texture));
        for (int k = 0; k < POINTS; k++) {
            const Point &p = list[k];
            const double value = expected(p);
            if (!EXPECT(std::isnan(value) || std::fabs(got[k] - value) <= tolerance))
                fprintf(stderr, "point %d (%g %g %g, layer %d, level %g): %g, expected %g\n", k, p.x, p.y,
                        p.z, p.layer, p.level, got[k], value);
        }
    }
};

// ---- cases ----

TEST(weights_of_a_filter_are_256ths) { // as an H200 rounds them
    static const struct {
        int dimensions, corner, x, y, z, weight; // fractions in 256ths
    } known[] = {{2, 0, 1, 128, 0, 128},    {2, 1, 1, 128, 0, 0},     {2, 2, 1, 128, 0, 127},
                 {2, 3, 1, 128, 0, 1},      {2, 1, 255, 77, 0, 178},  {2, 3, 128, 128, 0, 64},
                 {3, 0, 51, 128, 51, 82},   {3, 0, 128, 77, 192, 22}, {3, 1, 77, 3, 128, 39},
                 {3, 1, 128, 150, 200, 12}, {3, 2, 1, 150, 51, 120},  {3, 3, 51, 77, 128, 8},
                 {3, 3, 128, 3, 200, 0},    {3, 4, 51, 150, 192, 64}, {3, 5, 77, 77, 200, 42},
                 {3, 6, 51, 3, 192, 2},     {3, 6, 128, 3, 0, 0},     {3, 7, 128, 128, 51, 13}};
    Scene s;
    for (const auto &k : known) {
        const bool three = k.dimensions == 3;
        s.make(make_cudaExtent(2, 2, three ? 2 : 0), 0);
        fill(s.array, 2, 2, three ? 2 : 1,
             [&](int x, int y, int z) { return x + 2 * y + 4 * z == k.corner; });
        s.view(true, false);
        s.list.assign(POINTS, {0.5f + k.x / 256.0f, 0.5f + k.y / 256.0f, 0.5f + k.z / 256.0f, 0, 0});
        const auto weight = [&](const Point &) { return k.weight / 256.0; };
        three ? s.check<volume>(weight, 0) : s.check<flat>(weight, 0);
    }
}

// The direction to a place within a face, u and v from -1 to 1
static void point_to(Point &p, int face, float u, float v, float size) {
    const float axis[6][3] = {{1, v, u}, {-1, v, u}, {u, 1, v}, {u, -1, v}, {u, v, 1}, {u, v, -1}};
    p.x = axis[face][0] * size, p.y = axis[face][1] * size, p.z = axis[face][2] * size;
}

// The guide's table: the slice of a cubemap in a direction, and the coordinates on it
static int slice_of(const Point &p, int layers, double &s, double &t) {
    struct Row {
        double m, s, t;
    };
    const double x = p.x, y = p.y, z = p.z, ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    const int face = ax > ay && ax > az   ? (x >= 0 ? 0 : 1)
                     : ay > ax && ay > az ? (y >= 0 ? 2 : 3)
                                          : (z >= 0 ? 4 : 5);
    const Row rows[6] = {{x, -z, -y}, {-x, z, -y}, {y, x, z}, {-y, x, -z}, {z, x, -y}, {-z, -x, -y}};
    s = (rows[face].s / rows[face].m + 1) / 2;
    t = (rows[face].t / rows[face].m + 1) / 2;
    return 6 * (layers > 1 ? layer_of(p, layers) : 0) + face;
}

static unsigned cube_flags(int layers) {
    return layers > 1 ? cudaArrayCubemap | cudaArrayLayered : cudaArrayCubemap;
}

TEST(cubemaps) {
    Scene s;
    const int N = 8;
    for (int k = 0; k < POINTS; k++) // away from texel edges
        point_to(s.list[k], k % 6, ((float)(k * 5 % 8) + 0.25f) / 4 - 1, ((float)(k * 3 % 8) + 0.75f) / 4 - 1,
                 k % 2 ? 0.5f : 2);
    for (int layers : {1, 3}) {
        s.make(make_cudaExtent(N, N, (size_t)6 * layers), cube_flags(layers));
        fill(s.array, N, N, (size_t)6 * layers, texel);
        s.view(false, true);
        const auto expected = [&](const Point &p) {
            double u, v;
            const int slice = slice_of(p, layers, u, v);
            return texel(clamp_to(u * N, N), clamp_to(v * N, N), slice);
        };
        layers > 1 ? s.check<cube_layers>(expected) : s.check<cube>(expected);
    }
    cudaArray_t none;
    for (const cudaExtent extent : {make_cudaExtent(8, 4, 6), make_cudaExtent(8, 8, 5)})
        EXPECT(cudaMalloc3DArray(&none, &floats, extent, cudaArrayCubemap) == cudaErrorInvalidValue);
}

TEST(mipmaps) {
    enum { lod_2d, lod_3d, grad_2d };
    Scene s;
    for (int kind : {lod_2d, lod_3d, grad_2d}) {
        const bool three = kind == lod_3d;
        s.make_levels(make_cudaExtent(W, H, three ? D : 0), 10);
        cudaArray_t level;
        const int levels = 4; // 8, 4, 2, 1
        EXPECT(last(cudaGetMipmappedArrayLevel(&level, s.mipmapped, levels)) == cudaErrorInvalidValue);
        for (int l = 0; l < levels; l++) {
            OK(cudaGetMipmappedArrayLevel(&level, s.mipmapped, l));
            const auto e = STORED(cudaExtent, cudaArrayGetInfo(NULL, &it, NULL, level));
            EXPECT(e.width == (size_t)(W >> l) && e.height == (size_t)(H >> l ? H >> l : 1) &&
                   e.depth == (size_t)(three ? (D >> l ? D >> l : 1) : 0));
            fill(level, e.width, e.height, e.depth ? e.depth : 1,
                 [l](int x, int y, int z) { return texel(x, y, z) + 100 * l; });
        }
        for (cudaTextureFilterMode between : {cudaFilterModePoint, cudaFilterModeLinear})
            for (float bias : {0.0f, 0.75f}) {
                cudaTextureDesc desc = {};
                desc.mipmapFilterMode = between;
                desc.mipmapLevelBias = desc.minMipmapLevelClamp = bias;
                desc.maxMipmapLevelClamp = 2.5f;
                s.view(true, true, desc);
                const auto expected = [&](const Point &p) -> double {
                    const double wanted = p.level + bias;
                    const double lod = wanted < bias ? bias : wanted > 2.5 ? 2.5 : wanted;
                    if (between == cudaFilterModePoint && lod - std::floor(lod) == 0.5)
                        return NAN; // which level is nearer depends on the rounding
                    const auto on_level = [&](int l) {
                        const auto side = [l](int n) { return n >> l ? n >> l : 1; };
                        const int size[3] = {side(W), side(H), three ? side(D) : 0};
                        const double c[3] = {p.x / W * size[0], p.y / H * size[1], p.z / D * size[2]};
                        return filtered([l](int x, int y, int z) { return texel(x, y, z) + 100 * l; }, c,
                                        size);
                    };
                    const int base = (int)std::floor(between == cudaFilterModePoint ? lod + 0.5 : lod);
                    const double part = between == cudaFilterModePoint ? 0 : lod - base;
                    return part ? (1 - part) * on_level(base) + part * on_level(base + 1) : on_level(base);
                };
                kind == lod_2d   ? s.check<levels_2d>(expected, 0.3) // weights between levels are coarse
                : kind == lod_3d ? s.check<levels_3d>(expected, 0.3)
                                 : s.check<gradient_2d>(expected, 0.5);
            }
    }
}

TEST(gradients_of_cubemaps) {
    Scene s;
    const int N = 8, levels = 4;
    for (int k = 0; k < POINTS; k++) { // the direction of a cube's corner, and others
        point_to(s.list[k], k % 3 == 0 ? 0 : k % 3 * 2 + 1, k % 16 / 8.0f - 0.95f, k % 5 / 3.0f - 0.6f,
                 k % 2 ? 0.5f : 2);
        s.list[k].level = (float)(k / 3 % levels);
    }
    for (int layers : {1, 3}) {
        s.make_levels(make_cudaExtent(N, N, (size_t)6 * layers), levels, cube_flags(layers));
        for (int l = 0; l < levels; l++) { // each texel of a level holds its number and that of the slice
            const auto level = STORED(cudaArray_t, cudaGetMipmappedArrayLevel(&it, s.mipmapped, l));
            fill(level, N >> l, N >> l, (size_t)6 * layers, [l](int, int, int z) { return 100 * l + z; });
        }
        cudaTextureDesc desc = {};
        desc.maxMipmapLevelClamp = 99;
        s.view(false, true, desc);
        const auto expected = [&](const Point &p) -> double {
#ifndef __CU2CPP__ // An H200 chooses a finer level for large gradients: it takes differences, not
                   // derivatives.
            if (p.level > 1)
                return NAN;
#endif
            double u, v;
            return 100 * p.level + (float)slice_of(p, layers, u, v);
        };
        layers > 1 ? s.check<gradient_cube_layers>(expected) : s.check<gradient_cube>(expected);
    }
}

TEST(gathers) {
    Scene s;
    const auto numbers = all(2 * W, H, 1, [](int x, int y, int) { return texel(x / 2, y, x % 2); });
    s.array = array_of(numbers, W, H, cudaArrayTextureGather, cudaCreateChannelDesc<float2>());
    s.view(false, false);
    s.check<gather>(
        [&](const Point &p) {
            const int which = p.layer & 3, dx = which == 1 || which == 2, dy = which < 2;
            const int x = (int)std::floor(p.x - 0.5) + dx, y = (int)std::floor(p.y - 0.5) + dy;
            return texel(clamp_to(x, W), clamp_to(y, H), p.level < 1 ? 0 : 1);
        },
        0);
}

TEST(half_floats_and_srgb) {
    Scene s;
    const cudaChannelFormatDesc half = cudaCreateChannelDescHalf();
    EXPECT(half.x == 16 && half.y == 0 && half.f == cudaChannelFormatKindFloat);
    std::vector<uint16_t> bits = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000, 0x3555, 0x4248};
    std::vector<double> values = {
        1, -2, 65504, 6.103515625e-5f, 5.9604644775390625e-8f, 0, 0.333251953125f, 3.140625f};
    std::vector<unsigned char> bytes = {0, 5, 10, 11, 60, 128, 200, 255, 1, 30};
    bits.resize(2 * W), values.resize(2 * W), bytes.resize(2 * W);
    const auto at_point = [&](const Point &p) { return values[layer_of(p, 2) * W + clamp_to(p.x, W)]; };
    s.make(make_cudaExtent(W, 0, 2), cudaArrayLayered, half);
    copy_in(s.array, bits, W, 1, 2);
    s.view(false, false);
    s.check<layers_1d>(at_point, 0);

    s.make(make_cudaExtent(W, 0, 2), cudaArrayLayered, cudaCreateChannelDesc<unsigned char>());
    copy_in(s.array, bytes, W, 1, 2);
    for (int i = 0; i < 2 * W; i++) {
        const double c = bytes[i] / 255.0;
        values[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
    }
    cudaTextureDesc desc = {};
    desc.readMode = cudaReadModeNormalizedFloat;
    desc.sRGB = true;
    s.view(false, false, desc);
    s.check<layers_1d>(at_point);
}

// ---- surfaces ----

// Adds 1000 to an element.
#define INCREASE(surface, ...) surface##write(surface##read<float>(s, __VA_ARGS__) + 1000, s, __VA_ARGS__)

__global__ void shift(cudaSurfaceObject_t s, int kind) {
    const int x = threadIdx.x * 4, y = threadIdx.y, z = threadIdx.z;
    if (kind == 0)
        INCREASE(surf3D, x, y, z);
    else if (kind == 1) {
        float v;
        surf2DLayeredread(&v, s, x, y, z);
        surf2DLayeredwrite(v + 1000, s, x, y, z);
    } else if (kind == 2)
        INCREASE(surfCubemap, x, y, z);
    else if (kind == 3)
        INCREASE(surf1DLayered, x, z);
    else if (kind == 4)
        INCREASE(surf2D, x, y);
    else {
        INCREASE(surf1D, x);
        surf1Dwrite(5.0f, s, x ? W * 4 : -4, cudaBoundaryModeZero);
    }
    if (x == 0 && y == 0 && z == 0 && kind == 0) { // outside: ignored, and 0
        surf3Dwrite(5.0f, s, 0, 0, 99, cudaBoundaryModeZero);
        surf3Dwrite(surf3Dread<float>(s, -4, 0, 0, cudaBoundaryModeZero) + 7, s, W * 4, 0, 0,
                    cudaBoundaryModeZero);
    }
}

TEST(surfaces) {
    const struct {
        cudaExtent extent;
        unsigned flags;
    } kinds[] = {{{W, H, D}, 0},
                 {{W, H, 3}, cudaArrayLayered},
                 {{4, 4, 6}, cudaArrayCubemap},
                 {{W, 0, 5}, cudaArrayLayered},
                 {{W, H, 0}, 0},
                 {{W, 0, 0}, 0}};
    for (int kind = 0; kind < 6; kind++) {
        const cudaExtent e = kinds[kind].extent;
        const size_t rows = e.height ? e.height : 1, depth = e.depth ? e.depth : 1;
        const unsigned flags = kinds[kind].flags | cudaArraySurfaceLoadStore;
        const auto array = STORED(cudaArray_t, cudaMalloc3DArray(&it, &floats, e, flags));
        fill(array, e.width, rows, depth, texel);
        shift<<<1, dim3((unsigned)e.width, (unsigned)rows, (unsigned)depth)>>>(surface_of(array), kind);
        OK(cudaGetLastError());
        EXPECT(copy_out(array, e.width, rows, depth) ==
               all(e.width, rows, depth, [](int x, int y, int z) { return texel(x, y, z) + 1000; }));
    }
}

// ---- boxes ----

TEST(boxes_are_copied_and_filled) {
    const size_t w = 50, h = 7, d = 5;
    const auto memory = STORED(cudaPitchedPtr, cudaMalloc3D(&it, make_cudaExtent(w, h, d)));
    EXPECT(memory.pitch >= w && memory.xsize == w && memory.ysize == h);
    OK(cudaMemset3D(memory, 1, make_cudaExtent(w, h, d)));
    cudaPitchedPtr inner = memory; // 20 x 3 x 2 bytes at (10, 2, 1)
    inner.ptr = (char *)memory.ptr + (1 * h + 2) * memory.pitch + 10;
    OK(cudaMemset3D(inner, 9, make_cudaExtent(20, 3, 2)));
    std::vector<unsigned char> whole(w * h * d), part(60 * 8 * 4, 77);
    cudaMemcpy3DParms p = box(whole, w, h, d);
    p.srcPtr = memory;
    p.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&p));
    EXPECT(whole == all<unsigned char>(w, h, d, [](int x, int y, int z) {
               return x >= 10 && x < 30 && y >= 2 && y < 5 && z >= 1 && z < 3 ? 9 : 1;
           }));
    p.srcPos = make_cudaPos(5, 1, 1);
    p.dstPtr = make_cudaPitchedPtr(part.data(), 60, 60, 8);
    p.dstPos = make_cudaPos(3, 2, 1);
    p.extent = make_cudaExtent(15, 4, 2);
    OK(cudaMemcpy3DAsync(&p, 0));
    OK(cudaStreamSynchronize(0));
    EXPECT(part == all<unsigned char>(60, 8, 4, [&](size_t x, size_t y, size_t z) {
               const bool copied = x >= 3 && x < 18 && y >= 2 && y < 6 && z >= 1 && z < 3;
               return copied ? whole[(z * h + y - 1) * w + x + 2] : 77;
           }));
    p.extent = make_cudaExtent(51, 1, 1); // wider than a row
    EXPECT(cudaMemcpy3D(&p) != cudaSuccess || p.extent.width <= memory.pitch);
    p.srcPtr.ptr = NULL;
    EXPECT(cudaMemcpy3D(&p) == cudaErrorInvalidValue);
}

TEST(arrays_are_copied_in_part) {
    const auto a = STORED(cudaArray_t, cudaMalloc3DArray(&it, &floats, make_cudaExtent(W, H, D)));
    const auto b = STORED(cudaArray_t, cudaMalloc3DArray(&it, &floats, make_cudaExtent(W, H, D)));
    fill(a, W, H, D, texel);
    fill(b, W, H, D, [](int, int, int) { return 0; });
    cudaMemcpy3DParms p = {// positions in texels
                           a, {2, 1, 1}, {}, b, {0, 0, 2}, {}, {4, 2, 2}, cudaMemcpyDeviceToDevice};
    OK(cudaMemcpy3D(&p));
    EXPECT(copy_out(b, W, H, D) == all(W, H, D, [](int x, int y, int z) {
               return x < 4 && y < 2 && z >= 2 ? texel(x + 2, y + 1, z - 1) : 0;
           }));
    p.extent = make_cudaExtent(7, 1, 1);
    EXPECT(cudaMemcpy3D(&p) == cudaErrorInvalidValue);
}
