// SPDX-License-Identifier: MIT
// What kernels read through textures, and bounds of surfaces: address modes, filtering, mipmaps, cubemaps
#include "launch.h"
#include "texture.h"
#include "cuda_cpu/numbers.h"

#include <cmath>

namespace cuda_cpu {
namespace {

uint32_t load_integer(const char *from, int kind, int bits) {
    const bool is_signed = kind == cudaChannelFormatKindSigned;
    if (bits == 8)
        return is_signed ? (uint32_t)read_texel<int8_t>(from) : read_texel<uint8_t>(from);
    if (bits == 16)
        return is_signed ? (uint32_t)read_texel<int16_t>(from) : read_texel<uint16_t>(from);
    return read_texel<uint32_t>(from); // the bits of a float
}

bool gives_floats(const Texture &t) {
    return t.normalized_values || t.kind == cudaChannelFormatKindFloat;
}

// A coordinate split for filtering: the lower texel, and the weight of the other one, 0 to 255 of 256.
struct Place {
    long long texel;
    int next;
};

long long floor_of(double x) { // without a call of the C library
    const long long whole = (long long)x;
    return whole - (x < (double)whole);
}

Place place_of(const Texture &t, float x, int size) {
    const float position = t.normalized_coordinates ? x * (float)size : x;
    if (!(std::fabs(position) <= 0x1p40f)) // NaN, or far outside the texture
        return {position > 0 ? 1ll << 40 : position < 0 ? -(1ll << 40) : 0, 0};
    if (!t.filtered)
        return {floor_of(position), 0};
    const long long fixed = floor_of((double)position * 256 - 128 + 0.5);
    return {fixed >> 8, (int)(fixed & 255)};
}

// The weights of the texels at the corners of a cell in 256ths, from the fractions of the position. Corner 1
// is the next texel in x, 2 in y, 4 in z. The weights are whole numbers whose sum is 256: the cell is divided
// along z, then x, then y, and each part is rounded. The rules for ties are those that an H200 showed.
void weigh_corners(int x, int y, int z, int weights[8]) {
    const auto part = [](int whole, int fraction, int half) { return (whole * fraction + half) >> 8; };
    const int along_z[2] = {256 - z, z};
    for (int k = 0; k < 2; ++k) {
        const int next = part(along_z[k], x, 128), here = along_z[k] - next;
        weights[4 * k + 2] = part(here, y, 127);
        weights[4 * k + 3] = part(next, y, 128);
        weights[4 * k] = here - weights[4 * k + 2];
        weights[4 * k + 1] = next - weights[4 * k + 3];
    }
}

// Applies an address mode: returns the index of the texel to read, or -1 for the border colour.
int address(long long texel, int size, cudaTextureAddressMode mode) {
    const auto modulo = [&](long long n) { return ((texel % n) + n) % n; };
    if (texel >= 0 && texel < size)
        return (int)texel;
    switch (mode) {
    case cudaAddressModeWrap:
        return (int)modulo(size);
    case cudaAddressModeMirror: {
        const long long in_period = modulo(2ll * size);
        return (int)(in_period < size ? in_period : 2ll * size - 1 - in_period);
    }
    case cudaAddressModeBorder:
        return -1;
    default:
        return (int)std::clamp(texel, 0ll, (long long)size - 1);
    }
}

double linear_value(double srgb) {
    return srgb <= 0.04045 ? srgb / 12.92 : std::pow((srgb + 0.055) / 1.055, 2.4);
}

// Converts a component to the number that filtering uses. The smallest value of a signed normalised format is
// slightly less than -1 at this point, as on a GPU (measured with 8 bits).
double value_from(const Texture &t, const char *from, int c) {
    if (t.kind == cudaChannelFormatKindFloat)
        return t.bits == 32 ? read_texel<float>(from) : widen<10>(read_texel<uint16_t>(from));
    const uint32_t bits = load_integer(from, t.kind, t.bits);
    if (t.srgb && c < 3)
        return linear_value(bits / 255.0);
    if (t.kind == cudaChannelFormatKindUnsigned)
        return (float)bits / (float)((1 << t.bits) - 1);
    return (float)(int)bits / (float)((1 << (t.bits - 1)) - 1);
}

// The bits of a float result. A normalised result is limited to -1 only here, after filtering.
uint32_t float_bits(const Texture &t, double value) {
    return bits_as<uint32_t>((float)(t.normalized_values ? std::max(value, -1.0) : value));
}

// Linear and pitched memory, or the first level of an array, of which only the first slice is read
Level level_of(const Texture &t) {
    return {t.data, t.pitch, 0, t.width, t.height, 1};
}

// A component of a texel; a negative index means the border colour. For an integer texture, the result is in
// `bits`, and borderColor holds the bits of integers, although its type is float.
double component(const Texture &t, const Level &l, int x, int y, int z, int c, uint32_t &bits) {
    const bool border = x < 0 || y < 0 || z < 0;
    const char *const from =
        border ? (const char *)&t.border[c]
               : l.data + z * l.slice_bytes + y * l.pitch + ((size_t)x * t.components + c) * (t.bits / 8);
    if (gives_floats(t))
        return border ? t.border[c] : value_from(t, from, c);
    bits = load_integer(from, t.kind, t.bits);
    return 0;
}

uint32_t register_of(const Texture &t, int x, int y, int c) {
    uint32_t bits;
    const double value = component(t, level_of(t), x, y, 0, c, bits);
    return gives_floats(t) ? float_bits(t, value) : bits;
}

const struct {
    const char *object, *surface_call;
} shapes[] = {
    {"linear memory, which tex1Dfetch reads", ""},
    {"an array of one dimension", "surf1D"},
    {"an array or pitched memory of two dimensions", "surf2D"},
    {"an array of three dimensions", "surf3D"},
    {"layers of one dimension", "surf1DLayered"},
    {"layers of two dimensions", "surf2DLayered"},
    {"a cubemap", "surfCubemap"},
    {"layers of cubemaps", "surfCubemapLayered"},
};

void check_shape(const char *call, Shape wanted, Shape is, Site site) {
    if (wanted == is)
        return; // reached also by device code that Thrust's algorithms call outside a kernel
    in_kernel(call);
    kernel_error("%s at %s: the object is of %s", call, place(site).c_str(), shapes[(int)is].object);
}

// The cubemap face in a direction. If components are equal, z has priority, then y.
int face_of(const float d[3]) {
    const float x = std::fabs(d[0]), y = std::fabs(d[1]), z = std::fabs(d[2]);
    const int axis = z >= x && z >= y ? 2 : y >= x ? 1 : 0;
    return 2 * axis + (d[axis] < 0);
}

// Converts a direction to the axes of a face: to the right, down, and out of the cube.
void in_face(int face, const float d[3], double axes[3]) {
    static const struct {
        signed char axis, sign;
    } table[6][3] = {{{2, -1}, {1, -1}, {0, 1}}, {{2, 1}, {1, -1}, {0, -1}}, {{0, 1}, {2, 1}, {1, 1}},
                     {{0, 1}, {2, -1}, {1, -1}}, {{0, 1}, {1, -1}, {2, 1}},  {{0, -1}, {1, -1}, {2, -1}}};
    for (int i = 0; i < 3; ++i)
        axes[i] = table[face][i].sign * (double)d[table[face][i].axis];
}

// Fetches from one mipmap level: `values` as floats, and the `bits` of an integer texture.
struct LevelSampler {
    const Texture &t;
    float x, y, z;
    int dimensions, slice; // slice: the layer or face
    bool cube;

    void operator()(const Level &l, double values[4], uint32_t bits[4]) const {
        struct Axis {
            int texels[2], next;
        };
        const auto along = [&](int d, float position, int size) -> Axis {
            if (d >= dimensions)
                return {{d == 2 ? slice : 0, 0}, 0};
            const Place p = place_of(t, position, size);
            const cudaTextureAddressMode mode = cube ? cudaAddressModeClamp : t.mode[d];
            return {{address(p.texel, size, mode), address(p.texel + 1, size, mode)}, p.next};
        };
        const Axis i = along(0, x, l.width), j = along(1, y, l.height), k = along(2, z, l.slices);
        int weights[8];
        weigh_corners(i.next, j.next, k.next, weights);
        for (int c = 0; c < t.components; ++c) {
            values[c] = -0.0; // adding to it keeps the sign of 0
            const int corners = i.next | j.next | k.next ? 1 << dimensions : 1;
            for (int corner = 0; corner < corners; ++corner)
                if (weights[corner]) // so that infinity in the other texels does not count, as on a GPU
                    values[c] += weights[corner] / 256.0 *
                                 component(t, l, i.texels[corner & 1], j.texels[corner >> 1 & 1],
                                           k.texels[corner >> 2], c, bits[c]);
        }
    }
};

// Sets the registers of a texture that gives floats; for an integer texture they are set already.
void give_floats(const Texture &t, const double values[4], uint32_t registers[4]) {
    for (int c = 0; c < t.components && gives_floats(t); ++c)
        registers[c] = float_bits(t, values[c]);
}

// The mipmap level for a gradient: the base-2 logarithm of the longer of the two steps, in texels.
float level_of_gradient(const Texture &t, const Coordinates &at, int dimensions) {
    const Level &l = t.levels[0];
    const double size[3] = {(double)l.width, (double)l.height, (double)l.slices};
    const auto length = [&](const float *step) {
        double sum = 0;
        for (int d = 0; d < dimensions; ++d)
            sum += step[d] * size[d] * step[d] * size[d];
        return std::sqrt(sum);
    };
    return (float)std::log2(std::max(length(at.dx), length(at.dy)));
}

} // namespace

// A 1-D texture is a row that is read at y = 0, the edge of its only texel row. So a filtered fetch averages
// the row and the row beyond the edge, which is border with that as the second address mode, as on a GPU.
void sample(const Texture &t, Shape shape, float x, float y, uint32_t registers[4], Site site) {
    // An array of N x 1 texels may be read as a 1-D array.
    const bool row = shape == Shape::one && t.shape == Shape::two && t.height == 1;
    check_shape(shape == Shape::one ? "tex1D" : "tex2D", shape, row ? shape : t.shape, site);
    double values[4];
    std::fill(registers, registers + 4, 0u);
    LevelSampler{t, x, y, 0, 2, 0, false}(level_of(t), values, registers);
    give_floats(t, values, registers);
}

void sample_any(const Texture &t, const Coordinates &at, uint32_t registers[4], Site site) {
    check_shape(at.call, at.shape, t.shape, site);
    const bool cube = at.shape == Shape::cube || at.shape == Shape::cube_layers;
    LevelSampler sampler = {t, at.x, at.y, at.z, 2, 0, cube};
    Coordinates on_face = at; // here the gradients are relative to the face
    if (cube) {
        const float direction[3] = {at.x, at.y, at.z};
        double d[3], step[3];
        sampler.slice = face_of(direction);
        in_face(sampler.slice, direction, d);
        const auto place = [&](int i) { return (float)((d[i] / d[2] + 1) / 2); };
        sampler.x = place(0);
        sampler.y = place(1);
        for (float *gradient : {on_face.dx, on_face.dy}) { // applies the derivative of place()
            in_face(sampler.slice, gradient, step);
            for (int i = 0; i < 2; ++i)
                gradient[i] = (float)((step[i] - d[i] / d[2] * step[2]) / d[2] / 2);
        }
    } else {
        sampler.dimensions = at.shape == Shape::three                                  ? 3
                             : at.shape == Shape::one || at.shape == Shape::one_layers ? 1
                                                                                       : 2;
    }
    const Level only = level_of(t), *const levels = t.levels ? t.levels : &only;
    const auto layer = [&](int count) { // a negative index is a large unsigned one (measured)
        return (int)std::min((unsigned)at.layer, (unsigned)count - 1);
    };
    if (at.shape == Shape::one_layers || at.shape == Shape::two_layers)
        sampler.slice = layer(levels[0].slices);
    if (at.shape == Shape::cube_layers)
        sampler.slice += 6 * layer(levels[0].slices / 6);

    std::fill(registers, registers + 4, 0u);
    if (at.gathered >= 0) { // the four texels counter-clockwise, beginning at the lower left
        if (at.gathered >= t.components)
            return;
        const auto corner = [](float position, int size, const Texture &t) {
            return (long long)std::floor((t.normalized_coordinates ? position * (float)size : position) -
                                         0.5f);
        };
        const long long i = corner(at.x, t.width, t), j = corner(at.y, t.height, t);
        const int steps[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
        for (int n = 0; n < 4; ++n) {
            const int x = address(i + steps[n][0], t.width, t.mode[0]);
            const int y = address(j + steps[n][1], t.height, t.mode[1]);
            registers[n] = register_of(t, x, y, at.gathered);
        }
        return;
    }

    double values[4] = {}, next[4] = {};
    if (t.level_count > 1) {
        const float wanted = at.has_gradient ? level_of_gradient(t, on_face, sampler.dimensions) : at.level;
        float level = std::clamp(wanted + t.level_bias, t.least_level, std::max(t.least_level, t.most_level));
        level = std::clamp(level, 0.0f, (float)(t.level_count - 1));
        const int first = (int)std::floor(t.levels_filtered ? level : level + 0.5f);
        sampler(levels[first], values, registers);
        const double weight = std::floor((level - (float)first) * 256 + 0.5f) / 256;
        if (t.levels_filtered && gives_floats(t) && weight > 0 && first + 1 < t.level_count) {
            sampler(levels[first + 1], next, registers);
            for (int c = 0; c < t.components; ++c)
                values[c] = (1 - weight) * values[c] + weight * next[c];
        }
    } else {
        sampler(levels[0], values, registers);
    }
    give_floats(t, values, registers);
}

void fetch(const Texture &t, int x, uint32_t registers[4], Site site) {
    check_shape("tex1Dfetch", Shape::linear, t.shape, site);
    if (x >= t.width && x < t.declared)
        kernel_error("%s at %s: texel %d is beyond the memory of the texture, which ends after %d texels",
                     "tex1Dfetch", place(site).c_str(), x, t.width);
    std::fill(registers, registers + 4, 0u);
    for (int c = 0; c < t.components && x >= 0 && x < t.width; ++c)
        registers[c] = register_of(t, x, 0, c);
}

void unbound_reference(const char *call, const char *file, int line) {
    in_kernel(call);
    kernel_error("%s at %s: the texture reference is not bound on this device", call,
                 place({file, line}).c_str());
}

bool surface_boundary(const Surface &s, Shape shape, int &x, int &y, int &z, size_t bytes,
                      cudaSurfaceBoundaryMode mode, Site site) {
    const char *const call = shapes[(int)shape].surface_call;
    check_shape(call, shape, s.shape, site);
    const int last = s.width_bytes - (int)bytes;
    if (last < 0)
        kernel_error("%s at %s: a value of %zu bytes, but rows have %d bytes", call, place(site).c_str(),
                     bytes, s.width_bytes);
    if (x % (int)bytes)
        kernel_error("%s at %s: misaligned: byte %d of a row for a value of %zu bytes", call,
                     place(site).c_str(), x, bytes);
    if (x >= 0 && x <= last && y >= 0 && y < s.height && z >= 0 && z < s.slices)
        return true;
    if (mode == cudaBoundaryModeTrap && (s.slices > 1 || z))
        kernel_error("%s at %s: byte %d of row %d of slice %d is outside %d slices of %d rows of %d bytes",
                     call, place(site).c_str(), x, y, z, s.slices, s.height, s.width_bytes);
    if (mode == cudaBoundaryModeTrap)
        kernel_error("%s at %s: byte %d of row %d is outside %d rows of %d bytes", call, place(site).c_str(),
                     x, y, s.height, s.width_bytes);
    x = std::clamp(x, 0, last);
    y = std::clamp(y, 0, s.height - 1);
    z = std::clamp(z, 0, s.slices - 1);
    return mode == cudaBoundaryModeClamp;
}

} // namespace cuda_cpu
