// SPDX-License-Identifier: MIT
// Texture fetches and surface accesses in kernels. The most common fetch reads one texel, unfiltered, at an
// unnormalized coordinate, with clamp addressing; it is inlined. All others go through sample(),
// sample_any() and fetch() in texture_fetch.cpp.
#pragma once

#include "types.h"
#include "api.h"
#include "channel.h"
#include "kernel.h"

#ifdef __cplusplus
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cuda_cpu {

// Linear memory; a 1-D array; a 2-D array or pitched memory; a 3-D array; layered 1-D and 2-D; cubemaps
enum class Shape { linear, one, two, three, one_layers, two_layers, cube, cube_layers };

// Encodes a texel format as one number.
constexpr int texel_code(int kind, int bits, int components) {
    return kind << 12 | bits << 4 | components;
}

// An array, or a level of a mipmapped array. Layers and faces are stored as slices.
struct Level {
    const char *data;
    size_t pitch, slice_bytes;
    int width, height, slices;
};

struct Texture {
    const char *data;
    size_t pitch;
    int width, height;
    int declared; // the texels of linear memory as the program says; `width` of them are in the allocation
    // If fetches of one shape are plain loads of the texel: that shape and the texel_code; otherwise -1.
    int plain;

    Shape shape;
    int kind, bits, components;
    bool filtered, normalized_coordinates, normalized_values, srgb;
    cudaTextureAddressMode mode[3];
    float border[4];

    const Level *levels; // of an array; null for linear and pitched memory
    int level_count;
    bool levels_filtered;
    float level_bias, least_level, most_level;
};

struct Surface {
    char *data;
    size_t pitch, slice_bytes; // bytes per row and per slice of the array
    int width_bytes, height, slices;
    Shape shape;
};

// The arguments of a fetch. `gathered`, if not negative, is the component that tex2Dgather takes.
struct Coordinates {
    const char *call;
    Shape shape;
    float x, y, z;
    int layer, gathered;
    bool has_gradient;
    float level;
    float dx[3], dy[3];
};

// A fetch always fills four 32-bit registers. Components that the texel does not have are 0. The
// manual does not specify the fourth component; a GPU returns 0.
void sample(const Texture &texture, Shape shape, float x, float y, uint32_t registers[4], Site site);
void fetch(const Texture &texture, int x, uint32_t registers[4], Site site);
void sample_any(const Texture &texture, const Coordinates &at, uint32_t registers[4], Site site);
// Ends the program: the fetch is through a texture reference (cucc/legacy) that is not bound here.
[[noreturn]] void unbound_reference(const char *call, const char *file, int line);

// Applies the boundary mode to an access that is out of range. With clamp, clamps x, y and z and returns
// true. With zero, returns false: a read gives 0 and a write does nothing. With trap, ends the program.
bool surface_boundary(const Surface &surface, Shape shape, int &x, int &y, int &z, size_t bytes,
                      cudaSurfaceBoundaryMode mode, Site site);

template <class C> inline C component(uint32_t bits) {
    C value;
    if constexpr (std::is_floating_point_v<C>)
        std::memcpy(&value, &bits, sizeof value);
    else
        value = (C)bits;
    return value;
}

// The types that a fetch can return, and their conversion from the registers.
template <class T> struct Texel : Channels<T> {
    using C = typename Channels<T>::Component;
    static constexpr int code = texel_code(Texel::kind, Texel::bits, Texel::components);
    static T from(const uint32_t *r) {
        if constexpr (std::is_arithmetic_v<T>)
            return (T)component<C>(r[0]);
        else if constexpr (Texel::components == 1)
            return {component<C>(r[0])};
        else if constexpr (Texel::components == 2)
            return {component<C>(r[0]), component<C>(r[1])};
        else
            return {component<C>(r[0]), component<C>(r[1]), component<C>(r[2]), component<C>(r[3])};
    }
};

// Clamps a coordinate to the texture and returns the texel's index; NaN gives 0. An integer coordinate is not
// converted to float, because that would select the same texel.
template <class X> inline int clamped(X x, int size) {
    if constexpr (std::is_integral_v<X>) {
        if (__builtin_expect((unsigned long long)x < (unsigned)size, 1))
            return (int)x;
    } else {
        if (__builtin_expect(x >= 0 && x < (float)size, 1))
            return (int)x;
    }
    return x > 0 ? size - 1 : 0;
}

template <class T> inline T read_texel(const char *from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

// Not inlined, so that the kernel does not need the registers and stack of the slow path.
template <class T> __attribute__((noinline, cold)) T slow_fetch(const Texture &texture, int x, Site site) {
    uint32_t registers[4];
    fetch(texture, x, registers, site);
    return Texel<T>::from(registers);
}
template <class T>
__attribute__((noinline, cold)) T slow_sample(const Texture &texture, Shape shape, float x, float y,
                                              Site site) {
    uint32_t registers[4];
    sample(texture, shape, x, y, registers, site);
    return Texel<T>::from(registers);
}

template <class T> inline bool is_plain(const Texture &texture, Shape shape) {
    return __builtin_expect(texture.plain == ((int)shape << 16 | Texel<T>::code), 1);
}

template <class T> inline T texture_1d_fetch(cudaTextureObject_t object, int x, Site site) {
    const Texture &texture = *(const Texture *)object;
    if (is_plain<T>(texture, Shape::linear) && (unsigned)x < (unsigned)texture.width)
        return read_texel<T>(texture.data + x * sizeof(T));
    return slow_fetch<T>(texture, x, site);
}

template <class T, class X> inline T texture_1d(cudaTextureObject_t object, X x, Site site) {
    const Texture &texture = *(const Texture *)object;
    if (is_plain<T>(texture, Shape::one))
        return read_texel<T>(texture.data + clamped(x, texture.width) * sizeof(T));
    return slow_sample<T>(texture, Shape::one, (float)x, 0, site);
}

template <class T, class X, class Y> inline T texture_2d(cudaTextureObject_t object, X x, Y y, Site site) {
    const Texture &texture = *(const Texture *)object;
    if (is_plain<T>(texture, Shape::two))
        return read_texel<T>(texture.data + clamped(y, texture.height) * texture.pitch +
                             clamped(x, texture.width) * sizeof(T));
    return slow_sample<T>(texture, Shape::two, (float)x, (float)y, site);
}

template <class T>
__attribute__((noinline)) T texture_any(cudaTextureObject_t object, Coordinates at, Site site) {
    uint32_t registers[4];
    sample_any(*(const Texture *)object, at, registers, site);
    return Texel<T>::from(registers);
}

template <class T>
inline T *surface_at(const Surface &surface, Shape shape, int x, int y, int z, cudaSurfaceBoundaryMode mode,
                     Site site) {
    const bool inside = surface.shape == shape && (unsigned)y < (unsigned)surface.height &&
                        (unsigned)z < (unsigned)surface.slices &&
                        (unsigned)x <= surface.width_bytes - sizeof(T) &&
                        (size_t)surface.width_bytes >= sizeof(T) && x % sizeof(T) == 0;
    if (!inside && !surface_boundary(surface, shape, x, y, z, sizeof(T), mode, site))
        return nullptr;
    return (T *)(surface.data + z * surface.slice_bytes + y * surface.pitch + x);
}

template <class T>
inline T surface_read(cudaSurfaceObject_t object, Shape shape, int x, int y, int z,
                      cudaSurfaceBoundaryMode mode, Site site) {
    const T *const at = surface_at<T>(*(const Surface *)object, shape, x, y, z, mode, site);
    return at ? read_texel<T>((const char *)at) : T{};
}

template <class T>
inline void surface_write(T value, cudaSurfaceObject_t object, Shape shape, int x, int y, int z,
                          cudaSurfaceBoundaryMode mode, Site site) {
    if (T *const at = surface_at<T>(*(const Surface *)object, shape, x, y, z, mode, site))
        std::memcpy(at, &value, sizeof value);
}

template <class V> inline float part(const V &v, int i) { // component i of a vector; 0 if there is none
    return i < (int)(sizeof v / sizeof(float)) ? ((const float *)&v)[i] : 0;
}

} // namespace cuda_cpu

// Defines a function in both forms: it returns the value, or stores it through its first argument. TYPES and
// PARAMETERS are lists in parentheses.
#define CUDA_CPU_BOTH(name, TYPES, PARAMETERS, ...)                                                          \
    template <CUDA_CPU_LIST TYPES> inline T name(CUDA_CPU_LIST PARAMETERS, CUDA_CPU_SITE) {                  \
        return cuda_cpu::__VA_ARGS__;                                                                        \
    }                                                                                                        \
    template <CUDA_CPU_LIST TYPES> inline void name(T *value, CUDA_CPU_LIST PARAMETERS, CUDA_CPU_SITE) {     \
        *value = cuda_cpu::__VA_ARGS__;                                                                      \
    }
// X and Y are any arithmetic types; CUDA converts them to float.
CUDA_CPU_BOTH(tex1Dfetch, (class T), (cudaTextureObject_t texture, int x),
              texture_1d_fetch<T>(texture, x, CUDA_CPU_HERE))
CUDA_CPU_BOTH(tex1D, (class T, class X), (cudaTextureObject_t texture, X x),
              texture_1d<T>(texture, x, CUDA_CPU_HERE))
CUDA_CPU_BOTH(tex2D, (class T, class X, class Y), (cudaTextureObject_t texture, X x, Y y),
              texture_2d<T>(texture, x, y, CUDA_CPU_HERE))

// The functions for arrays of more dimensions and for mipmapped arrays. `parameters` are in parentheses;
// after them come the members of Coordinates after `call`.
#define CUDA_CPU_FETCH(name, parameters, ...)                                                                \
    CUDA_CPU_BOTH(name, (class T), (cudaTextureObject_t texture, CUDA_CPU_LIST parameters),                  \
                  texture_any<T>(texture, {#name, cuda_cpu::Shape::__VA_ARGS__}, CUDA_CPU_HERE))
#define CUDA_CPU_GRADIENT                                                                                    \
    true, 0, {cuda_cpu::part(dx, 0), cuda_cpu::part(dx, 1), cuda_cpu::part(dx, 2)}, {                        \
        cuda_cpu::part(dy, 0), cuda_cpu::part(dy, 1), cuda_cpu::part(dy, 2)                                  \
    }
#define CUDA_CPU_LEVEL(lod)                                                                                  \
    false, lod, {}, {}
#define CUDA_CPU_FETCHES(name, shape, gradient, x, y, z, layer, ...)                                         \
    CUDA_CPU_FETCH(name, (__VA_ARGS__), shape, x, y, z, layer, -1, CUDA_CPU_LEVEL(0))                        \
    CUDA_CPU_FETCH(name##Lod, (__VA_ARGS__, float lod), shape, x, y, z, layer, -1, CUDA_CPU_LEVEL(lod))      \
    CUDA_CPU_FETCH(name##Grad, (__VA_ARGS__, gradient dx, gradient dy), shape, x, y, z, layer, -1,           \
                   CUDA_CPU_GRADIENT)
CUDA_CPU_FETCH(tex1DLod, (float x, float lod), one, x, 0, 0, 0, -1, CUDA_CPU_LEVEL(lod))
CUDA_CPU_FETCH(tex1DGrad, (float x, float dx, float dy), one, x, 0, 0, 0, -1, CUDA_CPU_GRADIENT)
CUDA_CPU_FETCH(tex2DLod, (float x, float y, float lod), two, x, y, 0, 0, -1, CUDA_CPU_LEVEL(lod))
CUDA_CPU_FETCH(tex2DGrad, (float x, float y, float2 dx, float2 dy), two, x, y, 0, 0, -1, CUDA_CPU_GRADIENT)
CUDA_CPU_FETCH(tex2Dgather, (float x, float y, int component = 0), two, x, y, 0, 0, component,
               CUDA_CPU_LEVEL(0))
CUDA_CPU_FETCHES(tex3D, three, float4, x, y, z, 0, float x, float y, float z)
CUDA_CPU_FETCHES(tex1DLayered, one_layers, float, x, 0, 0, layer, float x, int layer)
CUDA_CPU_FETCHES(tex2DLayered, two_layers, float2, x, y, 0, layer, float x, float y, int layer)
CUDA_CPU_FETCHES(texCubemap, cube, float4, x, y, z, 0, float x, float y, float z)
CUDA_CPU_FETCHES(texCubemapLayered, cube_layers, float4, x, y, z, layer, float x, float y, float z, int layer)
#undef CUDA_CPU_FETCH

// Surfaces. x is an offset in bytes.
#define CUDA_CPU_SURFACE(name, parameters, ...)                                                              \
    CUDA_CPU_BOTH(name##read, (class T),                                                                     \
                  (cudaSurfaceObject_t surface, CUDA_CPU_LIST parameters,                                    \
                   cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap),                                     \
                  surface_read<T>(surface, cuda_cpu::Shape::__VA_ARGS__, mode, CUDA_CPU_HERE))               \
    template <class T>                                                                                       \
    inline void name##write(T value, cudaSurfaceObject_t surface, CUDA_CPU_LIST parameters,                  \
                            cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, CUDA_CPU_SITE) {            \
        cuda_cpu::surface_write(value, surface, cuda_cpu::Shape::__VA_ARGS__, mode, CUDA_CPU_HERE);          \
    }
CUDA_CPU_SURFACE(surf1D, (int x), one, x, 0, 0)
CUDA_CPU_SURFACE(surf2D, (int x, int y), two, x, y, 0)
CUDA_CPU_SURFACE(surf3D, (int x, int y, int z), three, x, y, z)
CUDA_CPU_SURFACE(surf1DLayered, (int x, int layer), one_layers, x, 0, layer)
CUDA_CPU_SURFACE(surf2DLayered, (int x, int y, int layer), two_layers, x, y, layer)
CUDA_CPU_SURFACE(surfCubemap, (int x, int y, int face), cube, x, y, face)
CUDA_CPU_SURFACE(surfCubemapLayered, (int x, int y, int layer_face), cube_layers, x, y, layer_face)
#undef CUDA_CPU_BOTH
#endif // __cplusplus
