// SPDX-License-Identifier: MIT
// Texture references: texture<T, dimensions, read mode> name; at file scope, which CUDA 12 removed.
//
// A reference holds the handle of a texture object. Binding creates the object and stores its handle in the
// reference on the current device, where a fetch through the reference reads it. With nvcc the reference is
// therefore a __constant__ variable; the word `texture` is a macro there. On the CPU back end it is a class,
// whose handle the runtime keeps for each device as it keeps the values of variables.
#pragma once

#ifdef __CU2CPP__
#define LEGACY_CONSTEXPR
#define LEGACY_SITE , CUDA_CPU_SITE
#define LEGACY_HERE , cu_file, cu_line
#else
#define LEGACY_CONSTEXPR constexpr
#define LEGACY_SITE
#define LEGACY_HERE
#endif

#ifndef cudaTextureType1D
#define cudaTextureType1D        0x01
#define cudaTextureType2D        0x02
#define cudaTextureType3D        0x03
#define cudaTextureTypeCubemap   0x0C
#define cudaTextureType1DLayered 0xF1
#define cudaTextureType2DLayered 0xF2
#endif

namespace legacy {

void apply_changes();

// A member that a program may also set while the reference is bound: the change takes effect at once.
template <class T> struct Field {
    T value;

    constexpr Field(T value) : value(value) {}
    Field(const Field &) = default;
    constexpr operator T() const { return value; }
    Field &operator=(T changed) {
        value = changed;
        apply_changes();
        return *this;
    }
    Field &operator=(const Field &other) { return *this = other.value; }
};

// Texels by their type: the component, their number, and what cudaReadModeNormalizedFloat returns.
template <class T> struct Element;
#define LEGACY_ELEMENT(T, C, n, F)                                                                           \
    template <> struct Element<T> {                                                                          \
        typedef C Component;                                                                                 \
        typedef F Floats;                                                                                    \
        static constexpr int components = n;                                                                 \
    };
#define LEGACY_ELEMENTS(name, C)                                                                             \
    LEGACY_ELEMENT(C, C, 1, float)                                                                           \
    LEGACY_ELEMENT(name##1, C, 1, float1)                                                                    \
    LEGACY_ELEMENT(name##2, C, 2, float2)                                                                    \
    LEGACY_ELEMENT(name##4, C, 4, float4)
LEGACY_ELEMENT(char, signed char, 1, float)
LEGACY_ELEMENTS(char, signed char)
LEGACY_ELEMENTS(uchar, unsigned char)
LEGACY_ELEMENTS(short, short)
LEGACY_ELEMENTS(ushort, unsigned short)
LEGACY_ELEMENTS(int, int)
LEGACY_ELEMENTS(uint, unsigned)
LEGACY_ELEMENTS(float, float)
#undef LEGACY_ELEMENT
#undef LEGACY_ELEMENTS

template <class T> constexpr cudaChannelFormatDesc format_of() {
    typedef typename Element<T>::Component C;
    constexpr int bits = 8 * sizeof(C), n = Element<T>::components;
    return {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0,
            std::is_floating_point<C>::value ? cudaChannelFormatKindFloat
            : std::is_signed<C>::value       ? cudaChannelFormatKindSigned
                                             : cudaChannelFormatKindUnsigned};
}

template <class T, cudaTextureReadMode mode>
using Fetched =
    typename std::conditional<mode == cudaReadModeNormalizedFloat, typename Element<T>::Floats, T>::type;

} // namespace legacy

// The part of a reference that does not depend on its type
struct textureReference {
    legacy::Field<int> normalized; // whether the coordinates are
    legacy::Field<cudaTextureFilterMode> filterMode;
    legacy::Field<cudaTextureAddressMode> addressMode[3];
    cudaChannelFormatDesc channelDesc;
    legacy::Field<int> sRGB;
    legacy::Field<unsigned> maxAnisotropy;
    legacy::Field<cudaTextureFilterMode> mipmapFilterMode;
    legacy::Field<float> mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;

    cudaTextureReadMode legacy_mode;    // not part of CUDA's structure
    cudaTextureObject_t legacy_texture; // on each device: the object that is bound, 0 if none is

    LEGACY_CONSTEXPR textureReference(int normalized, cudaTextureFilterMode filter,
                                      cudaTextureAddressMode address, cudaChannelFormatDesc desc,
                                      cudaTextureReadMode mode)
        : normalized(normalized), filterMode(filter), addressMode{address, address, address},
          channelDesc(desc), sRGB(0), maxAnisotropy(0), mipmapFilterMode(cudaFilterModePoint),
          mipmapLevelBias(0), minMipmapLevelClamp(0), maxMipmapLevelClamp(0), legacy_mode(mode),
          legacy_texture(0) {
#ifdef __CU2CPP__
        cuda_cpu::per_device_variable(&legacy_texture, sizeof legacy_texture);
#endif
    }
};

namespace legacy {

template <class T, int dimensions = cudaTextureType1D, cudaTextureReadMode mode = cudaReadModeElementType>
struct TextureReference : textureReference {
    LEGACY_CONSTEXPR TextureReference(int normalized = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
                                      cudaTextureAddressMode address = cudaAddressModeClamp)
        : textureReference(normalized, filter, address, format_of<T>(), mode) {}
    LEGACY_CONSTEXPR TextureReference(int normalized, cudaTextureFilterMode filter,
                                      cudaTextureAddressMode address, cudaChannelFormatDesc desc)
        : textureReference(normalized, filter, address, desc, mode) {}
};

// A parameter that may be an object, as in C++, or its address, as in C
template <class T> struct ObjectOrAddress {
    const T *address;
    ObjectOrAddress(const T *p) : address(p) {}
    ObjectOrAddress(const T &object) : address(&object) {}
};
typedef ObjectOrAddress<textureReference> Reference;
typedef ObjectOrAddress<cudaChannelFormatDesc> Format;

// The memory or array that a texture reference is bound to on one device
struct Binding {
    cudaResourceDesc resource;
    cudaTextureDesc modes;
    cudaTextureObject_t object;
    size_t offset; // in bytes, from the address of the texture to the one that the program bound
};

struct Bindings {
    std::mutex mutex;
    std::map<std::pair<textureReference *, int>, Binding> all; // by reference and device
};

inline Bindings &bindings() {
    static Bindings &all = *new Bindings; // never destroyed: other static objects may still unbind
    return all;
}

inline cudaTextureDesc modes_of(const textureReference &r) {
    cudaTextureDesc modes;
    memset(&modes, 0, sizeof modes);
    std::copy_n(r.addressMode, 3, modes.addressMode);
    modes.filterMode = r.filterMode;
    modes.readMode = r.legacy_mode;
    modes.sRGB = r.sRGB;
    modes.normalizedCoords = r.normalized;
    modes.maxAnisotropy = r.maxAnisotropy;
    modes.mipmapFilterMode = r.mipmapFilterMode;
    modes.mipmapLevelBias = r.mipmapLevelBias;
    modes.minMipmapLevelClamp = r.minMipmapLevelClamp;
    modes.maxMipmapLevelClamp = r.maxMipmapLevelClamp;
    return modes;
}

// Stores the handle in the reference on the current device, after all kernels that use the present one.
inline cudaError_t set_handle(textureReference &r, cudaTextureObject_t object) {
#ifdef __CU2CPP__
    return cudaMemcpyToSymbol((const void *)&r.legacy_texture, &object, sizeof object);
#else
    return cudaMemcpyToSymbol((const void *)&r, &object, sizeof object,
                              (size_t)((char *)&r.legacy_texture - (char *)&r));
#endif
}

#ifndef __CU2CPP__
// The host's copy of a __constant__ variable does not have the initial values that the program wrote; only
// the device's has. Takes those of members that still have the default.
inline cudaError_t take_initial_values(textureReference &r) {
    alignas(textureReference) char memory[sizeof r];
    const cudaError_t error = cudaMemcpyFromSymbol(memory, (const void *)&r, sizeof r);
    if (error != cudaSuccess)
        return error;
    const textureReference &device = *(const textureReference *)memory;
    if (r.normalized == 0)
        r.normalized.value = device.normalized;
    if (r.filterMode == cudaFilterModePoint)
        r.filterMode.value = device.filterMode;
    for (int i = 0; i < 3; ++i)
        if (r.addressMode[i] == cudaAddressModeClamp)
            r.addressMode[i].value = device.addressMode[i];
    return cudaSuccess;
}
#endif

// Creates the texture object of a binding and puts it in the place of the present one. The caller holds the
// mutex and has made the binding's device the current one.
inline cudaError_t install(textureReference &r, Binding &binding, cudaTextureObject_t old) {
    binding.modes = modes_of(r);
    cudaError_t error = cudaCreateTextureObject(&binding.object, &binding.resource, &binding.modes, nullptr);
    if (error == cudaSuccess)
        error = set_handle(r, binding.object);
    if (error == cudaSuccess && old)
        cudaDestroyTextureObject(old);
    return error;
}

inline cudaError_t bind(Reference reference, const cudaResourceDesc &resource, size_t offset) {
    textureReference &r = *const_cast<textureReference *>(reference.address);
    int device;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess)
        return error;
    std::lock_guard<std::mutex> lock(bindings().mutex);
#ifndef __CU2CPP__
    const auto first = bindings().all.lower_bound({&r, 0});
    if (first == bindings().all.end() || first->first.first != &r)
        error = take_initial_values(r);
    if (error != cudaSuccess)
        return error;
#endif
    Binding &known = bindings().all[{&r, device}];
    Binding binding = {resource, {}, 0, offset};
    error = install(r, binding, known.object);
    if (error == cudaSuccess)
        known = binding;
    return error;
}

// Gives every bound reference whose members have changed an object with the new modes.
inline void apply_changes() {
    Bindings &b = bindings();
    int current;
    std::lock_guard<std::mutex> lock(b.mutex);
    if (b.all.empty() || cudaGetDevice(&current) != cudaSuccess)
        return;
    for (auto &one : b.all) {
        textureReference &r = *one.first.first;
        const cudaTextureDesc modes = modes_of(r);
        if (!one.second.object || memcmp(&modes, &one.second.modes, sizeof modes) == 0)
            continue;
        cudaSetDevice(one.first.second);
        Binding changed = one.second;
        if (install(r, changed, one.second.object) == cudaSuccess)
            one.second = changed;
        cudaSetDevice(current);
    }
}

// A texture begins at an address that the device's alignment divides. For others, the texture begins
// earlier, and the program adds `offset` bytes to its coordinates.
inline cudaError_t align(const void *&pointer, size_t *offset, size_t &apart) {
    int device, alignment = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&alignment, cudaDevAttrTextureAlignment, device);
    if (error != cudaSuccess)
        return error;
    apart = (uintptr_t)pointer % (uintptr_t)alignment;
    if (apart && !offset) {
        fprintf(stderr,
                "cudaBindTexture: the address is no multiple of %d bytes, so an offset is needed, "
                "but the pointer for it is NULL\n",
                alignment);
        return cudaErrorInvalidValue;
    }
    pointer = (const char *)pointer - apart;
    if (offset)
        *offset = apart;
    return cudaSuccess;
}

inline size_t texel_bytes(const cudaChannelFormatDesc &desc) {
    return (size_t)(desc.x + desc.y + desc.z + desc.w) / 8;
}

// The bytes that a texture over linear memory may have: to the end of the allocation, up to a limit.
inline size_t most_bytes(const void *pointer, const cudaChannelFormatDesc &desc) {
    const size_t texel = texel_bytes(desc);
    int device = 0, texels = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&texels, cudaDevAttrMaxTexture1DLinearWidth, device);
    size_t bytes = (size_t)texels * texel;
#ifdef __CU2CPP__
    bytes = std::min(bytes, cuda_cpu::bytes_from(pointer));
#else
    const auto range_of =
        driver_function<CUresult (*)(CUdeviceptr *, size_t *, CUdeviceptr)>("cuMemGetAddressRange");
    CUdeviceptr base;
    size_t size;
    if (range_of && range_of(&base, &size, (CUdeviceptr)pointer) == CUDA_SUCCESS)
        bytes = std::min(bytes, (size_t)(base + size - (CUdeviceptr)pointer));
#endif
    return texel ? bytes / texel * texel : 0;
}

} // namespace legacy

// ---- binding ----

inline cudaError_t cudaBindTexture(size_t *offset, legacy::Reference reference, const void *pointer,
                                   legacy::Format desc, size_t bytes = UINT_MAX) {
    size_t apart;
    if (const cudaError_t error = legacy::align(pointer, offset, apart))
        return error;
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = const_cast<void *>(pointer);
    resource.res.linear.desc = *desc.address;
    // UINT_MAX, the default, means up to the end of the allocation.
    resource.res.linear.sizeInBytes =
        bytes == UINT_MAX ? legacy::most_bytes(pointer, *desc.address) : bytes + apart;
    return legacy::bind(reference, resource, apart);
}

inline cudaError_t cudaBindTexture2D(size_t *offset, legacy::Reference reference, const void *pointer,
                                     legacy::Format desc, size_t width, size_t height, size_t pitch) {
    size_t apart;
    if (const cudaError_t error = legacy::align(pointer, offset, apart))
        return error;
    const size_t texel = legacy::texel_bytes(*desc.address);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = const_cast<void *>(pointer);
    resource.res.pitch2D.desc = *desc.address;
    resource.res.pitch2D.width = width + (texel ? apart / texel : 0);
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    return legacy::bind(reference, resource, apart);
}

inline cudaError_t cudaBindTextureToArray(legacy::Reference reference, cudaArray_const_t array,
                                          legacy::Format = nullptr) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = const_cast<cudaArray_t>(array);
    return legacy::bind(reference, resource, 0);
}

// Unbinds on the current device.
inline cudaError_t cudaUnbindTexture(legacy::Reference reference) {
    textureReference &r = *const_cast<textureReference *>(reference.address);
    int device;
    if (const cudaError_t error = cudaGetDevice(&device))
        return error;
    std::lock_guard<std::mutex> lock(legacy::bindings().mutex);
    const auto found = legacy::bindings().all.find({&r, device});
    if (found == legacy::bindings().all.end() || !found->second.object)
        return cudaSuccess;
    const cudaTextureObject_t object = found->second.object;
    legacy::bindings().all.erase(found);
    const cudaError_t error = legacy::set_handle(r, 0);
    cudaDestroyTextureObject(object);
    return error;
}

inline cudaError_t cudaGetTextureAlignmentOffset(size_t *offset, legacy::Reference reference) {
    int device;
    if (const cudaError_t error = cudaGetDevice(&device))
        return error;
    std::lock_guard<std::mutex> lock(legacy::bindings().mutex);
    const auto found =
        legacy::bindings().all.find({const_cast<textureReference *>(reference.address), device});
    if (found == legacy::bindings().all.end() || !found->second.object)
        return cudaErrorInvalidTextureBinding;
    *offset = found->second.offset;
    return cudaSuccess;
}

inline cudaError_t cudaGetTextureReference(const textureReference **reference, legacy::Reference symbol) {
    *reference = symbol.address;
    return symbol.address ? cudaSuccess : cudaErrorInvalidTexture;
}

inline cudaError_t cudaBindTexture(size_t *offset, legacy::Reference reference, const void *pointer,
                                   size_t bytes = UINT_MAX) {
    return cudaBindTexture(offset, reference, pointer, reference.address->channelDesc, bytes);
}
inline cudaError_t cudaBindTexture2D(size_t *offset, legacy::Reference reference, const void *pointer,
                                     size_t width, size_t height, size_t pitch) {
    return cudaBindTexture2D(offset, reference, pointer, reference.address->channelDesc, width, height,
                             pitch);
}

// ---- fetches ----

// dimensions: those of the reference; parameters and arguments: the coordinates
#define LEGACY_FETCH(name, dimensions, parameters, arguments)                                                \
    template <class T, cudaTextureReadMode mode>                                                             \
    inline __device__ legacy::Fetched<T, mode> name(                                                         \
        const legacy::TextureReference<T, dimensions, mode> &reference,                                      \
        LEGACY_LIST parameters LEGACY_SITE) {                                                                \
        return name<legacy::Fetched<T, mode>>(legacy::handle(reference, #name LEGACY_HERE),                  \
                                              LEGACY_LIST arguments LEGACY_HERE);                            \
    }
#define LEGACY_LIST(...) __VA_ARGS__

namespace legacy {

inline __device__ cudaTextureObject_t handle(const textureReference &reference,
                                             const char *call LEGACY_SITE) {
    (void)call;
#ifdef __CU2CPP__
    if (!reference.legacy_texture)
        cuda_cpu::unbound_reference(call, cu_file, cu_line);
#endif
    return reference.legacy_texture;
}

} // namespace legacy

LEGACY_FETCH(tex1Dfetch, 1, (int x), (x))
LEGACY_FETCH(tex1D, 1, (float x), (x))
LEGACY_FETCH(tex2D, 2, (float x, float y), (x, y))
LEGACY_FETCH(tex3D, 3, (float x, float y, float z), (x, y, z))
LEGACY_FETCH(tex1DLayered, cudaTextureType1DLayered, (float x, int layer), (x, layer))
LEGACY_FETCH(tex2DLayered, cudaTextureType2DLayered, (float x, float y, int layer), (x, y, layer))
LEGACY_FETCH(texCubemap, cudaTextureTypeCubemap, (float x, float y, float z), (x, y, z))
#undef LEGACY_FETCH
#undef LEGACY_LIST
#undef LEGACY_CONSTEXPR
#undef LEGACY_SITE
#undef LEGACY_HERE

// The macro must be a name without ::, because headers of OpenGL have parameters that are called texture.
#ifndef __CU2CPP__
template <class T, int dimensions = cudaTextureType1D, cudaTextureReadMode mode = cudaReadModeElementType>
using legacy_texture = legacy::TextureReference<T, dimensions, mode>;
#define texture __constant__ legacy_texture
#else
template <class T, int dimensions = cudaTextureType1D, cudaTextureReadMode mode = cudaReadModeElementType>
using texture = legacy::TextureReference<T, dimensions, mode>;
#endif
