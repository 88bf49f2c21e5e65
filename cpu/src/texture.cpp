// SPDX-License-Identifier: MIT
/*
 * The texture and surface objects through which kernels access arrays and memory.
 *
 * A texture or surface handle is the address of its object, so that a kernel needs no lookup.
 */
#include "array.h"
#include "block.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

namespace cuda_cpu {

namespace {

struct TextureObject : Texture { // a handle is the address of the base
    cudaResourceDesc resource;
    cudaTextureDesc desc;
    int device;
};

struct SurfaceObject : Surface {
    cudaResourceDesc resource;
    int device;
};

struct Objects {
    std::mutex mutex;
    std::set<TextureObject *> textures;
    std::set<SurfaceObject *> surfaces;
};

// Never destroyed: host threads may use it while the process exits.
Objects &objects() {
    static Objects &all = *new Objects;
    return all;
}

// ---- textures ----

// Sets the resource of a texture: texel format, address and size.
cudaError_t look_at(const char *call, const cudaResourceDesc &r, TextureObject &t) {
    const cudaDeviceProp &device = properties(current_device());
    cudaChannelFormatDesc format;
    size_t width, height = 1;
    const auto misaligned = [&](const void *pointer) {
        return fail(cudaErrorInvalidValue, "%s: %p is not a multiple of textureAlignment, which is %zu", call,
                    pointer, device.textureAlignment);
    };
    const auto too_large = [&](size_t limit_x, size_t limit_y) {
        return fail(cudaErrorInvalidValue, "%s: %zu x %zu texels, the limit is %zu x %zu", call, width,
                    height, limit_x, limit_y);
    };
    switch (r.resType) {
    case cudaResourceTypeArray: {
        const cudaArray *array = r.res.array.array;
        if (!array_known(call, array))
            return cudaErrorInvalidResourceHandle;
        format = array->desc;
        t.shape = array->height ? Shape::two : Shape::one;
        t.data = array->data;
        t.pitch = array->row_bytes;
        width = array->width;
        height = array->rows();
        break;
    }
    case cudaResourceTypeLinear: {
        format = r.res.linear.desc;
        const size_t size = texel_bytes(format);
        if (!size)
            return bad_format(call, format);
        t.shape = Shape::linear;
        t.data = (const char *)r.res.linear.devPtr;
        t.pitch = 0;
        width = r.res.linear.sizeInBytes / size;
        int limit;
        cudaDeviceGetAttribute(&limit, cudaDevAttrMaxTexture1DLinearWidth, current_device());
        if (width == 0 || width > (size_t)limit)
            return too_large(limit, 1);
        if ((uintptr_t)t.data % device.textureAlignment)
            return misaligned(t.data);
        if (const cudaError_t error =
                check_range(call, "linear memory", t.data, r.res.linear.sizeInBytes, Side::device))
            return error;
        break;
    }
    case cudaResourceTypePitch2D: {
        const auto &p = r.res.pitch2D;
        format = p.desc;
        const size_t size = texel_bytes(format);
        if (!size)
            return bad_format(call, format);
        t.shape = Shape::two;
        t.data = (const char *)p.devPtr;
        t.pitch = p.pitchInBytes;
        width = p.width;
        height = p.height;
        const int *limit = device.maxTexture2DLinear;
        if (width == 0 || height == 0 || width > (size_t)limit[0] || height > (size_t)limit[1])
            return too_large(limit[0], limit[1]);
        if ((uintptr_t)t.data % device.textureAlignment)
            return misaligned(t.data);
        if (t.pitch < width * size || t.pitch > (size_t)limit[2] || t.pitch % device.texturePitchAlignment)
            return fail(cudaErrorInvalidValue,
                        "%s: the pitch is %zu: it must be a multiple of texturePitchAlignment, "
                        "which is %zu, from a row's %zu bytes to %d",
                        call, t.pitch, device.texturePitchAlignment, width * size, limit[2]);
        if (const cudaError_t error = check_range(call, "pitched memory", t.data,
                                                  t.pitch * (height - 1) + width * size, Side::device))
            return error;
        break;
    }
    case cudaResourceTypeMipmappedArray:
        return fail(cudaErrorNotSupported, "%s: mipmaps are not supported", call);
    default:
        return fail(cudaErrorInvalidValue, "%s: there is no type of resource %d", call, (int)r.resType);
    }
    t.width = (int)width;
    t.height = (int)height;
    t.kind = format.f;
    t.bits = format.x;
    t.components = format.w ? 4 : format.y ? 2 : 1;
    return cudaSuccess;
}

// Rounds a component of the border colour to the texture's 8- or 16-bit format, because a GPU
// stores it in that format. Ties round towards 0 (measured).
float in_format(float colour, int kind, int bits) {
    const bool is_signed = kind == cudaChannelFormatKindSigned;
    const float most = (float)((1 << (bits - is_signed)) - 1);
    const float wanted = std::clamp(colour, is_signed ? -1.0f : 0.0f, 1.0f) * most;
    const int nearest = (int)std::ceil(std::fabs(wanted) - 0.5f);
    return (float)(wanted < 0 ? -nearest : nearest) / most;
}

// Sets the modes of a texture: addressing, filtering, and conversion to float.
cudaError_t set_modes(const char *call, const cudaTextureDesc &d, TextureObject &t) {
    // Read as integers, because a program may have stored an invalid value in the enumeration.
    const auto unknown = [&](const char *what, const auto &value, int last) {
        int number;
        std::memcpy(&number, &value, sizeof number);
        if (number >= 0 && number <= last)
            return false;
        fail(cudaErrorInvalidValue, "%s: there is no %s %d", call, what, number);
        return true;
    };
    if (unknown("filterMode", d.filterMode, cudaFilterModeLinear) ||
        unknown("readMode", d.readMode, cudaReadModeNormalizedFloat) ||
        unknown("addressMode", d.addressMode[0], cudaAddressModeBorder) ||
        unknown("addressMode", d.addressMode[1], cudaAddressModeBorder))
        return cudaErrorInvalidValue;
    if (d.sRGB)
        return fail(cudaErrorNotSupported, "%s: sRGB is not supported", call);
    t.normalized_values = d.readMode == cudaReadModeNormalizedFloat;
    if (t.normalized_values && t.bits == 32)
        return fail(cudaErrorInvalidNormSetting,
                    "%s: only integers of 8 and 16 bits can be read as normalised floats", call);
    const bool floats = t.normalized_values || t.kind == cudaChannelFormatKindFloat;
    if (t.shape != Shape::linear && d.filterMode == cudaFilterModeLinear && !floats)
        return fail(cudaErrorInvalidFilterSetting,
                    "%s: only texels read as floats can be filtered, these are integers of %d bits", call,
                    t.bits);
    t.filtered = d.filterMode == cudaFilterModeLinear;
    t.normalized_coordinates = d.normalizedCoords;
    for (int i = 0; i < 2; ++i) {
        // Wrap and mirror need normalised coordinates; otherwise the manual replaces them by clamp.
        const bool repeats =
            d.addressMode[i] == cudaAddressModeWrap || d.addressMode[i] == cudaAddressModeMirror;
        t.mode[i] = repeats && !t.normalized_coordinates ? cudaAddressModeClamp : d.addressMode[i];
    }
    for (int c = 0; c < 4; ++c)
        t.border[c] = t.normalized_values ? in_format(d.borderColor[c], t.kind, t.bits) : d.borderColor[c];
    const bool clamps =
        t.mode[0] == cudaAddressModeClamp && (t.shape == Shape::one || t.mode[1] == cudaAddressModeClamp);
    const bool plain = !t.normalized_values &&
                       (t.shape == Shape::linear || (!t.filtered && !t.normalized_coordinates && clamps));
    t.plain = plain ? (int)t.shape << 16 | texel_code(t.kind, t.bits, t.components) : -1;
    return cudaSuccess;
}

// The object of a handle, which is the address of the object's base. Fails and returns null when
// there is no such object. `taken` also removes it from the registry.
template <class Base, class Object>
Object *find(const char *call, const char *what, std::set<Object *> &known, unsigned long long handle,
             bool taken = false) {
    std::lock_guard lock(objects().mutex);
    const auto found = known.find(static_cast<Object *>((Base *)handle));
    if (found == known.end()) {
        fail(cudaErrorInvalidValue, "%s: 0x%llx is not a %s object, or was destroyed already", call, handle,
             what);
        return nullptr;
    }
    Object *const object = *found;
    if (taken)
        known.erase(found);
    return object;
}

TextureObject *find_texture(const char *call, cudaTextureObject_t texture, bool taken = false) {
    return find<Texture>(call, "texture", objects().textures, texture, taken);
}

SurfaceObject *find_surface(const char *call, cudaSurfaceObject_t surface, bool taken = false) {
    return find<Surface>(call, "surface", objects().surfaces, surface, taken);
}

// ---- in kernels ----

template <class C> C load(const char *from) {
    C value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

uint32_t load_integer(const char *from, int kind, int bits) {
    const bool is_signed = kind == cudaChannelFormatKindSigned;
    if (bits == 8)
        return is_signed ? (uint32_t)load<int8_t>(from) : load<uint8_t>(from);
    if (bits == 16)
        return is_signed ? (uint32_t)load<int16_t>(from) : load<uint16_t>(from);
    return load<uint32_t>(from); // for a float, its bits
}

uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

bool gives_floats(const Texture &t) {
    return t.normalized_values || t.kind == cudaChannelFormatKindFloat;
}

// A coordinate split for filtering: the lower of the two texels, and the weight of the other one in
// 256ths, 0 to 255.
struct Place {
    long long texel;
    int next;
};

Place place_of(const Texture &t, float x, int size) {
    const float position = t.normalized_coordinates ? x * (float)size : x;
    if (!(std::fabs(position) <= 0x1p40f)) // NaN, or far outside
        return {position > 0 ? 1ll << 40 : position < 0 ? -(1ll << 40) : 0, 0};
    if (!t.filtered)
        return {(long long)std::floor(position), 0};
    const long long fixed = (long long)std::floor((double)position * 256 - 128 + 0.5);
    return {fixed >> 8, (int)(fixed & 255)};
}

// Applies an address mode: the texel to read, -1 for the border.
int address(long long texel, int size, cudaTextureAddressMode mode) {
    const auto modulo = [&](long long n) { return ((texel % n) + n) % n; };
    switch (mode) {
    case cudaAddressModeWrap:
        return (int)modulo(size);
    case cudaAddressModeMirror: {
        const long long in_period = modulo(2ll * size);
        return (int)(in_period < size ? in_period : 2ll * size - 1 - in_period);
    }
    case cudaAddressModeBorder:
        return texel >= 0 && texel < size ? (int)texel : -1;
    default:
        return (int)std::clamp(texel, 0ll, (long long)size - 1);
    }
}

// A component as the float that filtering uses. The smallest value of a signed normalised format is
// slightly less than -1 at this point, as on a GPU (measured with 8 bits).
double value_at(const Texture &t, int x, int y, int c) {
    if (x < 0 || y < 0)
        return t.border[c];
    const int bytes = t.bits / 8;
    const char *const from = t.data + y * t.pitch + ((size_t)x * t.components + c) * bytes;
    if (t.bits == 32)
        return load<float>(from);
    const uint32_t bits = load_integer(from, t.kind, t.bits);
    if (t.kind == cudaChannelFormatKindUnsigned)
        return (float)bits / (float)((1 << t.bits) - 1);
    return (float)(int)bits / (float)((1 << (t.bits - 1)) - 1);
}

// The bits of a float result. A normalised result is limited to -1 only here, after filtering.
uint32_t float_bits(const Texture &t, double value) {
    return bits_of((float)(t.normalized_values ? std::max(value, -1.0) : value));
}

uint32_t integer_at(const Texture &t, int x, int y, int c) {
    // For an integer texture, borderColor holds the bits of integers, although its type is float.
    const char *const from = x < 0 || y < 0
                                 ? (const char *)&t.border[c]
                                 : t.data + y * t.pitch + ((size_t)x * t.components + c) * (t.bits / 8);
    return load_integer(from, t.kind, t.bits);
}

const char *shape_name(Shape shape) {
    return shape == Shape::linear ? "linear memory, which tex1Dfetch reads"
           : shape == Shape::one  ? "an array of one dimension"
                                  : "an array or pitched memory of two dimensions";
}

std::string place(Site site) {
    return std::string(base_name(site.file)) + ":" + std::to_string(site.line);
}

void check_shape(const char *call, Shape wanted, Shape is, Site site) {
    in_kernel(call);
    if (wanted != is)
        kernel_error("%s at %s: the object is of %s", call, place(site).c_str(), shape_name(is));
}

} // namespace

void sample(const Texture &t, Shape shape, float x, float y, uint32_t registers[4], Site site) {
    check_shape(shape == Shape::one ? "tex1D" : "tex2D", shape, t.shape, site);
    // A 1-D texture is a row that is read at y = 0, the edge of its only texel row. So a filtered
    // fetch averages the row and the row beyond the edge. With an address mode that stays within
    // the texture this is the same row; with border as the second address mode the result is half
    // border, as on a GPU.
    const Place px = place_of(t, x, t.width), py = place_of(t, y, t.height);
    const int x0 = address(px.texel, t.width, t.mode[0]);
    const int y0 = address(py.texel, t.height, t.mode[1]);
    std::fill(registers, registers + 4, 0u);
    if (!t.filtered) {
        const bool floats = gives_floats(t);
        for (int c = 0; c < t.components; ++c)
            registers[c] = floats ? float_bits(t, value_at(t, x0, y0, c)) : integer_at(t, x0, y0, c);
        return;
    }
    const int x1 = address(px.texel + 1, t.width, t.mode[0]);
    const int y1 = address(py.texel + 1, t.height, t.mode[1]);
    const double a = px.next / 256.0, b = py.next / 256.0;
    for (int c = 0; c < t.components; ++c) {
        const double below = (1 - a) * value_at(t, x0, y0, c) + a * value_at(t, x1, y0, c);
        const double above = (1 - a) * value_at(t, x0, y1, c) + a * value_at(t, x1, y1, c);
        registers[c] = float_bits(t, (1 - b) * below + b * above);
    }
}

void fetch(const Texture &t, int x, uint32_t registers[4], Site site) {
    check_shape("tex1Dfetch", Shape::linear, t.shape, site);
    const bool floats = gives_floats(t), inside = x >= 0 && x < t.width;
    std::fill(registers, registers + 4, 0u);
    if (!inside)
        return;
    for (int c = 0; c < t.components; ++c)
        registers[c] = floats ? float_bits(t, value_at(t, x, 0, c)) : integer_at(t, x, 0, c);
}

void unbound_reference(const char *call, const char *file, int line) {
    in_kernel(call);
    kernel_error("%s at %s: the texture reference is not bound on this device", call,
                 place({file, line}).c_str());
}

bool surface_boundary(const Surface &s, Shape shape, int &x, int &y, size_t bytes,
                      cudaSurfaceBoundaryMode mode, Site site) {
    const char *const call = shape == Shape::one ? "surf1D" : "surf2D";
    check_shape(call, shape, s.shape, site);
    const int last = s.width_bytes - (int)bytes;
    if (last < 0)
        kernel_error("%s at %s: a value of %zu bytes, but rows have %d bytes", call, place(site).c_str(),
                     bytes, s.width_bytes);
    if (x % (int)bytes)
        kernel_error("%s at %s: misaligned: byte %d of a row for a value of %zu bytes", call,
                     place(site).c_str(), x, bytes);
    if (x >= 0 && x <= last && y >= 0 && y < s.height)
        return true;
    if (mode == cudaBoundaryModeTrap)
        kernel_error("%s at %s: byte %d of row %d is outside %d rows of %d bytes", call, place(site).c_str(),
                     x, y, s.height, s.width_bytes);
    x = std::clamp(x, 0, last);
    y = std::clamp(y, 0, s.height - 1);
    return mode == cudaBoundaryModeClamp;
}

void free_arrays_of(int device) {
    Objects &all = objects();
    std::lock_guard lock(all.mutex);
    const auto forget_all = [&](auto &known) {
        for (auto i = known.begin(); i != known.end();) {
            auto *const object = *i;
            if (object->device != device) {
                ++i;
                continue;
            }
            i = known.erase(i);
            delete object;
        }
    };
    forget_arrays_of(device);
    forget_all(all.textures);
    forget_all(all.surfaces);
}

} // namespace cuda_cpu

using namespace cuda_cpu;

extern "C" {

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *desc, const cudaResourceViewDesc *view) {
    BEGIN();
    NOT_NULL(texture);
    NOT_NULL(resource);
    if (!desc)
        return fail(cudaErrorInvalidResourceHandle, "%s: desc is NULL", __func__);
    if (view)
        return fail(cudaErrorNotSupported, "%s: resource views are not supported", __func__);
    TextureObject made = {};
    made.resource = *resource;
    made.desc = *desc;
    made.device = current_device();
    if (const cudaError_t error = look_at(__func__, *resource, made))
        return error;
    if (const cudaError_t error = set_modes(__func__, *desc, made))
        return error;
    TextureObject *const object = new TextureObject(made);
    *texture = (cudaTextureObject_t) static_cast<const Texture *>(object);
    Objects &all = objects();
    std::lock_guard lock(all.mutex);
    all.textures.insert(object);
    return cudaSuccess;
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
    BEGIN();
    if (!texture)
        return cudaSuccess;
    const TextureObject *const object = find_texture(__func__, texture, true);
    delete object;
    return object ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc *resource, cudaTextureObject_t texture) {
    BEGIN();
    NOT_NULL(resource);
    const TextureObject *const object = find_texture(__func__, texture);
    if (!object)
        return cudaErrorInvalidValue;
    *resource = object->resource;
    return cudaSuccess;
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc *desc, cudaTextureObject_t texture) {
    BEGIN();
    NOT_NULL(desc);
    const TextureObject *const object = find_texture(__func__, texture);
    if (!object)
        return cudaErrorInvalidValue;
    *desc = object->desc;
    return cudaSuccess;
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *surface, const cudaResourceDesc *resource) {
    BEGIN();
    NOT_NULL(surface);
    NOT_NULL(resource);
    if (resource->resType != cudaResourceTypeArray)
        return fail(cudaErrorInvalidValue, "%s: only an array can be a surface", __func__);
    const cudaArray *array = resource->res.array.array;
    if (!array_known(__func__, array))
        return cudaErrorInvalidResourceHandle;
    if (!(array->flags & cudaArraySurfaceLoadStore))
        return fail(cudaErrorInvalidValue, "%s: the array was allocated without cudaArraySurfaceLoadStore",
                    __func__);
    SurfaceObject made = {};
    made.data = array->data;
    made.pitch = array->row_bytes;
    made.width_bytes = (int)array->row_bytes;
    made.height = (int)array->rows();
    made.shape = array->height ? Shape::two : Shape::one;
    made.resource = *resource;
    made.device = current_device();
    SurfaceObject *const object = new SurfaceObject(made);
    *surface = (cudaSurfaceObject_t) static_cast<const Surface *>(object);
    Objects &all = objects();
    std::lock_guard lock(all.mutex);
    all.surfaces.insert(object);
    return cudaSuccess;
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface) {
    BEGIN();
    if (!surface)
        return cudaSuccess;
    const SurfaceObject *const object = find_surface(__func__, surface, true);
    delete object;
    return object ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *resource, cudaSurfaceObject_t surface) {
    BEGIN();
    NOT_NULL(resource);
    const SurfaceObject *const object = find_surface(__func__, surface);
    if (!object)
        return cudaErrorInvalidValue;
    *resource = object->resource;
    return cudaSuccess;
}

} // extern "C"
