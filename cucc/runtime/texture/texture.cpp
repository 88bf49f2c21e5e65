// SPDX-License-Identifier: MIT
// The texture and surface objects through which kernels access arrays and memory. A texture or surface
// handle is the address of its object, so that a kernel needs no lookup.
#include "stream.h"
#include "texture.h"

#include <climits>
#include <cmath>

namespace cuda_cpu {
namespace {

struct TextureObject : Texture { // a handle is the address of the base class object
    using Base = Texture;
    cudaResourceDesc resource;
    cudaTextureDesc desc;
    int device;
    Level level_table[32];
};

struct SurfaceObject : Surface {
    using Base = Surface;
    cudaResourceDesc resource;
    int device;
};

template <class Object> unsigned long long enter(Object *object) {
    return (unsigned long long)static_cast<const typename Object::Base *>(live<Object>().add(object));
}

Shape shape_of(const cudaArray &array) {
    const bool layers = array.flags & cudaArrayLayered;
    if (array.flags & cudaArrayCubemap)
        return layers ? Shape::cube_layers : Shape::cube;
    if (layers)
        return array.height ? Shape::two_layers : Shape::one_layers;
    return array.depth ? Shape::three : array.height ? Shape::two : Shape::one;
}

void look_at_levels(TextureObject &t, const cudaArray *const *levels, unsigned count) {
    t.shape = shape_of(*levels[0]);
    t.data = levels[0]->data;
    t.pitch = levels[0]->row_bytes;
    t.level_count = (int)count;
    for (unsigned l = 0; l < count; ++l) {
        const cudaArray &a = *levels[l];
        t.level_table[l] = {a.data,       a.row_bytes,   a.slice_bytes(),
                            (int)a.width, (int)a.rows(), (int)a.slices()};
    }
}

cudaError_t look_at(const char *call, const cudaResourceDesc &r, TextureObject &t) {
    const cudaDeviceProp &device = properties(current_device());
    cudaChannelFormatDesc format;
    size_t width, height;
    switch (r.resType) {
    case cudaResourceTypeArray:
    case cudaResourceTypeMipmappedArray: {
        const cudaArray *one = r.res.array.array, *const *levels = &one;
        unsigned count = 1;
        if (r.resType == cudaResourceTypeArray) {
            TRY(check_array(call, one));
        } else {
            TRY(check_mipmapped_array(call, r.res.mipmap.mipmap));
            levels = r.res.mipmap.mipmap->levels;
            count = r.res.mipmap.mipmap->count;
        }
        look_at_levels(t, levels, count);
        format = levels[0]->desc;
        width = levels[0]->width;
        height = levels[0]->rows();
        break;
    }
    case cudaResourceTypeLinear:
    case cudaResourceTypePitch2D: {
        const bool linear = r.resType == cudaResourceTypeLinear;
        const auto &p = r.res.pitch2D; // begins with the same members as r.res.linear
        format = p.desc;
        const size_t size = texel_bytes(format);
        if (!size)
            return bad_format(call, format);
        t.shape = linear ? Shape::linear : Shape::two;
        t.data = (const char *)p.devPtr;
        t.pitch = linear ? 0 : p.pitchInBytes;
        width = linear ? r.res.linear.sizeInBytes / size : p.width;
        height = linear ? 1 : p.height;
        int limit[3] = {0, 1, INT_MAX};
        if (linear)
            cudaDeviceGetAttribute(limit, cudaDevAttrMaxTexture1DLinearWidth, current_device());
        else
            std::copy_n(device.maxTexture2DLinear, 3, limit);
        FAIL_IF(width == 0 || height == 0 || width > (size_t)limit[0] || height > (size_t)limit[1],
                cudaErrorInvalidValue, "%zu x %zu texels, the limit is %d x %d", width, height, limit[0],
                limit[1]);
        FAIL_IF((uintptr_t)t.data % device.textureAlignment, cudaErrorInvalidValue,
                "%p is not a multiple of textureAlignment, which is %zu", (const void *)t.data,
                device.textureAlignment);
        FAIL_IF(!linear && (t.pitch < width * size || t.pitch > (size_t)limit[2] ||
                            t.pitch % device.texturePitchAlignment),
                cudaErrorInvalidValue,
                "the pitch is %zu: it must be a multiple of texturePitchAlignment, "
                "which is %zu, from a row's %zu bytes to %d",
                t.pitch, device.texturePitchAlignment, width * size, limit[2]);
        // As on a GPU, linear memory may end before the texture does. fetch() refuses the texels beyond it.
        t.declared = (int)width;
        if (const auto a = find_allocation(t.data); a && linear)
            width = std::min(width, (size_t)(a->base + a->size - t.data) / size);
        TRY(check_range(call, linear ? "linear memory" : "pitched memory", t.data,
                        linear ? width * size : t.pitch * (height - 1) + width * size, Accessor::device));
        break;
    }
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
        unknown("addressMode", d.addressMode[1], cudaAddressModeBorder) ||
        unknown("addressMode", d.addressMode[2], cudaAddressModeBorder) ||
        unknown("mipmapFilterMode", d.mipmapFilterMode, cudaFilterModeLinear))
        return cudaErrorInvalidValue;
    t.normalized_values = d.readMode == cudaReadModeNormalizedFloat;
    t.srgb = d.sRGB && t.normalized_values && t.bits == 8 && t.kind == cudaChannelFormatKindUnsigned;
    t.levels_filtered = d.mipmapFilterMode == cudaFilterModeLinear;
    t.level_bias = d.mipmapLevelBias;
    t.least_level = d.minMipmapLevelClamp;
    t.most_level = d.maxMipmapLevelClamp;
    FAIL_IF(t.level_count > 1 && !d.normalizedCoords, cudaErrorInvalidValue,
            "a mipmapped array needs normalised coordinates");
    FAIL_IF(t.normalized_values && t.bits == 32, cudaErrorInvalidNormSetting,
            "only integers of 8 and 16 bits can be read as normalised floats");
    if (t.kind == cudaChannelFormatKindFloat)
        t.normalized_values = false; // half floats need no conversion
    const bool floats = t.normalized_values || t.kind == cudaChannelFormatKindFloat;
    FAIL_IF(t.shape != Shape::linear && d.filterMode == cudaFilterModeLinear && !floats,
            cudaErrorInvalidFilterSetting,
            "only texels read as floats can be filtered, these are integers of %d bits", t.bits);
    t.filtered = d.filterMode == cudaFilterModeLinear;
    t.normalized_coordinates = d.normalizedCoords;
    for (int i = 0; i < 3; ++i) {
        // Wrap and mirror need normalised coordinates; otherwise they become clamp, as specified.
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

// Finds the object of a handle, which is the address of the object's base class. Fails and returns null if
// there is none. With `taken`, also removes the object from the registry.
template <class Object>
Object *find(const char *call, const char *what, unsigned long long handle, bool taken = false) {
    Object *const object = static_cast<Object *>((typename Object::Base *)handle);
    if (taken ? live<Object>().take(object) : live<Object>().has(object))
        return object;
    fail(cudaErrorInvalidValue, "%s: 0x%llx is not a %s object, or was destroyed already", call, handle,
         what);
    return nullptr;
}

} // namespace

size_t live_texture_objects() {
    return live<TextureObject>().all.size() + live<SurfaceObject>().all.size();
}

void free_arrays_of(int device) {
    live<cudaArray>().delete_those_of(device);
    live<cudaMipmappedArray>().delete_those_of(device);
    live<TextureObject>().delete_those_of(device);
    live<SurfaceObject>().delete_those_of(device);
}

} // namespace cuda_cpu

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *desc, const cudaResourceViewDesc *view) {
    BEGIN(texture, resource);
    FAIL_IF(!desc, cudaErrorInvalidResourceHandle, "desc is NULL");
    FAIL_IF(view && view->format != cudaResViewFormatNone, cudaErrorNotSupported,
            "resource views with another format are not supported");
    TextureObject made = {};
    made.resource = *resource;
    made.desc = *desc;
    made.device = current_device();
    TRY(look_at(call, *resource, made));
    TRY(set_modes(call, *desc, made));
    TextureObject *const object = new TextureObject(made);
    object->levels = object->level_count ? object->level_table : nullptr;
    return store(texture, enter(object));
}

#define DESTROY(Texture, texture)                                                                            \
    cudaError_t cudaDestroy##Texture##Object(cuda##Texture##Object_t texture) {                              \
        BEGIN();                                                                                             \
        if (!texture)                                                                                        \
            return cudaSuccess;                                                                              \
        finish_device(-1); /* deferred work may use the object */                                            \
        const auto *const object = find<Texture##Object>(call, #texture, texture, true);                     \
        delete object;                                                                                       \
        return object ? cudaSuccess : cudaErrorInvalidValue;                                                 \
    }
#define GET(Texture, texture, Type, member)                                                                  \
    cudaError_t cudaGet##Texture##Object##Type##Desc(cuda##Type##Desc *member,                               \
                                                     cuda##Texture##Object_t texture) {                      \
        BEGIN(member);                                                                                       \
        const auto *const object = find<Texture##Object>(call, #texture, texture);                           \
        if (object)                                                                                          \
            *member = object->member;                                                                        \
        return object ? cudaSuccess : cudaErrorInvalidValue;                                                 \
    }
DESTROY(Texture, texture)
DESTROY(Surface, surface)
GET(Texture, texture, Resource, resource)
GET(Texture, texture, Texture, desc)
GET(Surface, surface, Resource, resource)
#undef GET

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *surface, const cudaResourceDesc *resource) {
    BEGIN(surface, resource);
    FAIL_IF(resource->resType != cudaResourceTypeArray, cudaErrorInvalidValue,
            "only an array can be a surface");
    const cudaArray *array = resource->res.array.array;
    TRY(check_array(call, array));
    SurfaceObject made = {};
    made.data = array->data;
    made.pitch = array->row_bytes;
    made.slice_bytes = array->slice_bytes();
    made.width_bytes = (int)array->row_bytes;
    made.height = (int)array->rows();
    made.slices = (int)array->slices();
    made.shape = shape_of(*array);
    made.resource = *resource;
    made.device = current_device();
    return store(surface, enter(new SurfaceObject(made)));
}
