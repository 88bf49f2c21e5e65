// SPDX-License-Identifier: MIT
// OpenGL interoperability by staging copies (docs/execution.md). While a buffer is mapped for CUDA, it is
// also mapped in OpenGL (glMapBufferRange), so that OpenGL reports an error for every other use of it.
#if HAVE_GL
#include "cuda_gl_interop.h"
#include "stream.h"
#include "texture.h"

#include <GL/glext.h>
#include <dlfcn.h>

namespace {

// A texture format that CUDA supports: 1, 2 or 4 components of 8, 16 or 32 bits.
struct Format {
    GLenum internal, format, type;
    int components, bits;
    cudaChannelFormatKind kind;

    cudaChannelFormatDesc desc() const {
        const int second = components > 1 ? bits : 0, others = components > 2 ? bits : 0;
        return {bits, second, others, others, kind};
    }
    size_t bytes() const { return (size_t)(components * bits / 8); }
};

} // namespace

struct cudaGraphicsResource {
    GLuint name;
    GLenum target; // target of a texture; 0 for a buffer
    unsigned register_flags;
    int device;
    cuda_cpu::Site registered; // where the program registered it

    size_t bytes = 0, width = 0, height = 0;
    Format format{};
    unsigned map_flags = 0;
    bool mapped = false;
    void *memory = nullptr;      // device memory of a mapped buffer
    cudaArray_t array = nullptr; // array of a mapped texture
    cuda_cpu::Site map_site{};

    std::string mapped_at() const { return cuda_cpu::told_at("mapped", map_site); }
    bool discards() const {
        return map_flags == cudaGraphicsMapFlagsWriteDiscard ||
               register_flags & cudaGraphicsRegisterFlagsWriteDiscard;
    }
    bool reads_only() const {
        return map_flags == cudaGraphicsMapFlagsReadOnly ||
               register_flags & cudaGraphicsRegisterFlagsReadOnly;
    }
};

namespace cuda_cpu {
namespace {

using Resource = cudaGraphicsResource;

// Functions newer than OpenGL 1.1. Many programs define pointers to them as variables with their names, which
// the linker would take for calls here. So the functions are looked up in the library.
#define FUNCTIONS(USE)                                                                                       \
    USE(PFNGLISBUFFERPROC, IsBuffer)                                                                         \
    USE(PFNGLBINDBUFFERPROC, BindBuffer)                                                                     \
    USE(PFNGLGETBUFFERPARAMETERIVPROC, GetBufferParameteriv)                                                 \
    USE(PFNGLGETBUFFERPARAMETERI64VPROC, GetBufferParameteri64v)                                             \
    USE(PFNGLMAPBUFFERRANGEPROC, MapBufferRange)                                                             \
    USE(PFNGLUNMAPBUFFERPROC, UnmapBuffer)                                                                   \
    USE(PFNGLGETBUFFERPOINTERVPROC, GetBufferPointerv)

void *look_up(const char *name) {
    void *library = dlopen("libGL.so.1", RTLD_LAZY | RTLD_NOLOAD); // the one that the program is linked with
    if (!library)
        library = dlopen("libOpenGL.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (void *const function = library ? dlsym(library, name) : nullptr)
        return function;
    end_program("the OpenGL library has no %s", name);
}

struct Functions {
#define MEMBER(Type, name) Type name = (Type)look_up("gl" #name);
    FUNCTIONS(MEMBER)
};

const Functions &gl() {
    static const Functions all;
    return all;
}

// Describes a resource for messages: "buffer 3, registered at ripple.cu:12".
std::string describe(const Resource &r) {
    return (r.target ? "texture " : "buffer ") + std::to_string(r.name) + told_at("registered", r.registered);
}

bool still_there(const Resource &r) {
    return r.target ? glIsTexture(r.name) : gl().IsBuffer(r.name);
}

// Binds `name` to `target` for the lifetime of the object, then restores the old binding.
class Binding {
  public:
    Binding(GLenum target, GLuint name) : target(target) {
        glGetIntegerv(query(), &before);
        bind(name);
    }
    ~Binding() { bind((GLuint)before); }

  private:
    GLenum target;
    GLint before;

    bool texture() const { return target == GL_TEXTURE_2D || target == GL_TEXTURE_RECTANGLE; }
    GLenum query() const {
        return target == GL_TEXTURE_2D          ? GL_TEXTURE_BINDING_2D
               : target == GL_TEXTURE_RECTANGLE ? GL_TEXTURE_BINDING_RECTANGLE
               : target == GL_COPY_READ_BUFFER  ? GL_COPY_READ_BUFFER_BINDING
               : target == GL_PIXEL_PACK_BUFFER ? GL_PIXEL_PACK_BUFFER_BINDING
                                                : GL_PIXEL_UNPACK_BUFFER_BINDING;
    }
    void bind(GLuint name) const {
        if (texture())
            glBindTexture(target, name);
        else
            gl().BindBuffer(target, name);
    }
};

// While it exists, OpenGL transfers pixels to and from host memory in rows without padding, whatever
// pixel-store settings and pixel buffers the program uses.
class PackedRows {
  public:
    PackedRows() {
        for (size_t i = 0; i < count; ++i) {
            glGetIntegerv(names[i], &before[i]);
            glPixelStorei(names[i], i < 2 ? 1 : 0);
        }
    }
    ~PackedRows() {
        for (size_t i = 0; i < count; ++i)
            glPixelStorei(names[i], before[i]);
    }

  private:
    static constexpr size_t count = 10;
    static constexpr GLenum names[count] = {GL_PACK_ALIGNMENT,    GL_UNPACK_ALIGNMENT, GL_PACK_ROW_LENGTH,
                                            GL_UNPACK_ROW_LENGTH, GL_PACK_SKIP_PIXELS, GL_UNPACK_SKIP_PIXELS,
                                            GL_PACK_SKIP_ROWS,    GL_UNPACK_SKIP_ROWS, GL_PACK_SWAP_BYTES,
                                            GL_UNPACK_SWAP_BYTES};
    GLint before[count];
    Binding pack{GL_PIXEL_PACK_BUFFER, 0}, unpack{GL_PIXEL_UNPACK_BUFFER, 0};
};

// Clears OpenGL's pending errors and returns the first one.
GLenum take_gl_errors() {
    const GLenum first = glGetError();
    for (int i = 0; i < 16 && glGetError() != GL_NO_ERROR; ++i)
        ;
    return first;
}

// Reports and clears earlier OpenGL errors, so that the check at unmapping sees only later ones.
void tell_earlier_errors(const char *call) {
    if (const GLenum error = take_gl_errors())
        print_line("%s: OpenGL reported an error before this call: 0x%04x", call, error);
}

cudaError_t check_context(const char *call) {
    if (const char *set = getenv("CUDA_CPU_GL"); set && strcmp(set, "refuse") == 0)
        return fail(cudaErrorOperatingSystem, "%s: refused, because CUDA_CPU_GL=refuse", call);
    const char *version = (const char *)glGetString(GL_VERSION);
    FAIL_IF(!version, cudaErrorInvalidGraphicsContext, "no OpenGL context is current in this thread");
    FAIL_IF(atof(version) < 3.1, cudaErrorNotSupported, "needs OpenGL 3.1, this context has %s", version);
    return cudaSuccess;
}

// At the exit of a program that succeeded, reports the resources that are still mapped or registered.
void tell_what_is_left(int status, void *) {
    if (status != EXIT_SUCCESS)
        return;
    std::lock_guard lock(live<Resource>().mutex);
    for (const Resource *r : live<Resource>().all)
        print_line("at exit %s is still %s", describe(*r).c_str(),
                   r->mapped ? ("mapped" + r->mapped_at()).c_str() : "registered");
}

cudaError_t add(cudaGraphicsResource_t *resource, const Resource &made) {
    static const int once = on_exit(tell_what_is_left, nullptr);
    (void)once;
    forget_graphics_of = [](int device) { live<Resource>().delete_those_of(device); };
    return store(resource, live<Resource>().add(new Resource(made)));
}

cudaError_t check_known(const char *call, Resource *r) {
    FAIL_IF(!live<Resource>().has(r), cudaErrorInvalidResourceHandle,
            "%p is not a graphics resource, or was unregistered already", (void *)r);
    return cudaSuccess;
}

cudaError_t check_mapped(const char *call, Resource *r) {
    TRY(check_known(call, r));
    return r->mapped ? cudaSuccess
                     : fail(cudaErrorNotMapped, "%s: %s is not mapped", call, describe(*r).c_str());
}

// Checks a whole list of resources before any of them is mapped or unmapped. Fails if one is invalid.
cudaError_t check_list(const char *call, int count, Resource **list, cudaStream_t stream, bool mapped) {
    BEGIN_IN();
    FAIL_IF(count < 1 || !list, cudaErrorInvalidValue, "invalid list of %d resources at %p", count,
            (void *)list);
    TRY(check_stream(call, stream));
    for (int i = 0; i < count; ++i) {
        TRY(check_known(call, list[i]));
        const Resource &r = *list[i];
        FAIL_IF(!mapped && std::count(list, list + i, list[i]), cudaErrorAlreadyMapped,
                "%s is in the list twice", describe(r).c_str());
        FAIL_IF(r.mapped && !mapped, cudaErrorAlreadyMapped, "%s is mapped already%s", describe(r).c_str(),
                r.mapped_at().c_str());
        if (mapped)
            TRY(check_mapped(call, list[i]));
    }
    return cudaSuccess;
}

// ---- buffers ----

cudaError_t map_buffer(const char *call, Resource &r) {
    const Binding bound(GL_COPY_READ_BUFFER, r.name);
    GLint64 bytes = 0;
    GLint in_use = 0;
    gl().GetBufferParameteri64v(GL_COPY_READ_BUFFER, GL_BUFFER_SIZE, &bytes);
    gl().GetBufferParameteriv(GL_COPY_READ_BUFFER, GL_BUFFER_MAPPED, &in_use);
    FAIL_IF((size_t)bytes != r.bytes, cudaErrorUnknown,
            "%s had %zu bytes when it was registered, now it has %lld", describe(r).c_str(), r.bytes,
            (long long)bytes);
    FAIL_IF(in_use, cudaErrorUnknown, "the program has mapped %s in OpenGL", describe(r).c_str());
    const void *const content =
        gl().MapBufferRange(GL_COPY_READ_BUFFER, 0, bytes, GL_MAP_READ_BIT | GL_MAP_WRITE_BIT);
    FAIL_IF(!content, cudaErrorUnknown, "OpenGL cannot map %s: error 0x%04x", describe(r).c_str(),
            take_gl_errors());
    cudaError_t error = allocate(call, &r.memory, r.bytes, MemoryKind::device, memory_of_graphics);
    if (error)
        gl().UnmapBuffer(GL_COPY_READ_BUFFER);
    else if (!r.discards()) {
        const DeviceAccess access;
        memcpy(r.memory, content, r.bytes);
    }
    return error;
}

cudaError_t unmap_buffer(const char *call, Resource &r) {
    const Binding bound(GL_COPY_READ_BUFFER, r.name);
    void *content = nullptr;
    gl().GetBufferPointerv(GL_COPY_READ_BUFFER, GL_BUFFER_MAP_POINTER, &content);
    cudaError_t error = cudaSuccess;
    const DeviceAccess access;
    if (!content)
        error = fail(cudaErrorUnknown, "%s: OpenGL unmapped %s, or gave it new storage", call,
                     describe(r).c_str());
    else if (!r.reads_only())
        memcpy(content, r.memory, r.bytes);
    else if (memcmp(content, r.memory, r.bytes) != 0)
        error = fail(cudaErrorUnknown, "%s: %s was written to, but is read-only for CUDA", call,
                     describe(r).c_str());
    if (content)
        gl().UnmapBuffer(GL_COPY_READ_BUFFER);
    free_device(call, r.memory, memory_of_graphics);
    return error;
}

// ---- textures ----

constexpr cudaChannelFormatKind sint = cudaChannelFormatKindSigned, uint = cudaChannelFormatKindUnsigned,
                                real = cudaChannelFormatKindFloat;
#define FORMATS(suffix, INTEGER, type, bits, kind)                                                           \
    {GL_R##suffix, GL_RED##INTEGER, type, 1, bits, kind},                                                    \
        {GL_RG##suffix, GL_RG##INTEGER, type, 2, bits, kind}, {                                              \
        GL_RGBA##suffix, GL_RGBA##INTEGER, type, 4, bits, kind                                               \
    }
const Format formats[] = {
    {GL_RGBA, GL_RGBA, GL_UNSIGNED_BYTE, 4, 8, uint},
    FORMATS(8, , GL_UNSIGNED_BYTE, 8, uint),
    FORMATS(16, , GL_UNSIGNED_SHORT, 16, uint),
    FORMATS(16F, , GL_HALF_FLOAT, 16, real),
    FORMATS(32F, , GL_FLOAT, 32, real),
    FORMATS(8UI, _INTEGER, GL_UNSIGNED_BYTE, 8, uint),
    FORMATS(8I, _INTEGER, GL_BYTE, 8, sint),
    FORMATS(16UI, _INTEGER, GL_UNSIGNED_SHORT, 16, uint),
    FORMATS(16I, _INTEGER, GL_SHORT, 16, sint),
    FORMATS(32UI, _INTEGER, GL_UNSIGNED_INT, 32, uint),
    FORMATS(32I, _INTEGER, GL_INT, 32, sint),
};

cudaError_t map_image(Resource &r) {
    const cudaChannelFormatDesc desc = r.format.desc();
    const unsigned flags = r.register_flags & cudaGraphicsRegisterFlagsSurfaceLoadStore
                               ? cudaArraySurfaceLoadStore
                               : cudaArrayDefault;
    TRY(cuda_cpu::cudaMallocArray(&r.array, &desc, r.width, r.height, flags));
    if (r.discards())
        return cudaSuccess;
    std::vector<char> pixels(r.bytes);
    const Binding bound(r.target, r.name);
    const PackedRows packed;
    glGetTexImage(r.target, 0, r.format.format, r.format.type, pixels.data());
    const size_t row = r.bytes / r.height;
    return cudaMemcpy2DToArray(r.array, 0, 0, pixels.data(), row, row, r.height, cudaMemcpyHostToDevice);
}

cudaError_t unmap_image(const char *call, Resource &r) {
    std::vector<char> pixels(r.bytes);
    const size_t row = r.bytes / r.height;
    FAIL_IF(cudaMemcpy2DFromArray(pixels.data(), row, r.array, 0, 0, row, r.height, cudaMemcpyDeviceToHost),
            cudaErrorUnknown, "the array of %s was freed while it was mapped", describe(r).c_str());
    if (!r.reads_only()) {
        const Binding bound(r.target, r.name);
        const PackedRows packed;
        glTexSubImage2D(r.target, 0, 0, 0, (GLsizei)r.width, (GLsizei)r.height, r.format.format,
                        r.format.type, pixels.data());
    }
    return cudaFreeArray(r.array);
}

// ---- both ----

cudaError_t unmap(const char *call, Resource &r) {
    TRY(check_context(call));
    r.mapped = false;
    if (!still_there(r)) {
        r.target ? cudaFreeArray(r.array) : free_device(call, r.memory, memory_of_graphics);
        return fail(cudaErrorUnknown, "%s: %s was deleted while it was mapped", call, describe(r).c_str());
    }
    const GLenum used = take_gl_errors();
    const cudaError_t error = r.target ? unmap_image(call, r) : unmap_buffer(call, r);
    FAIL_IF(!error && used == GL_INVALID_OPERATION, cudaErrorUnknown,
            "OpenGL was asked to use %s while it was mapped%s", describe(r).c_str(), r.mapped_at().c_str());
    if (!error && used)
        print_line("%s: OpenGL reported an error while %s was mapped: 0x%04x", call, describe(r).c_str(),
                   used);
    return error ? error : take_gl_errors() ? cudaErrorUnknown : cudaSuccess;
}

cudaError_t map_resources(const char *call, int count, cudaGraphicsResource_t *list, cudaStream_t stream) {
    TRY(check_list(call, count, list, stream, false));
    TRY(finish_device(current_device()));
    TRY(check_context(call));
    tell_earlier_errors(call);
    for (int i = 0; i < count; ++i) {
        Resource &r = *list[i];
        cudaError_t error;
        if (!still_there(r))
            error = fail(cudaErrorUnknown, "%s: %s was deleted", call, describe(r).c_str());
        else
            error = r.target ? map_image(r) : map_buffer(call, r);
        if (error) {
            while (--i >= 0)
                unmap(call, *list[i]);
            return error;
        }
        r.mapped = true;
        r.map_site = call_site;
    }
    return cudaSuccess;
}

cudaError_t unmap_resources(const char *call, int count, cudaGraphicsResource_t *list, cudaStream_t stream) {
    TRY(check_list(call, count, list, stream, true));
    // OpenGL uses the content after this call, so deferred work must run now.
    cudaError_t first = finish_device(current_device());
    for (int i = 0; i < count; ++i) {
        // All were mapped when the list was checked, so a resource that is not mapped now is in the list
        // twice. It stays unmapped, as on a GPU.
        const cudaError_t error = list[i]->mapped ? unmap(call, *list[i])
                                                  : fail(cudaErrorNotMapped, "%s: %s is in the list twice",
                                                         call, describe(*list[i]).c_str());
        if (error && !first)
            first = error;
    }
    return first;
}

cudaError_t unregister(const char *call, Resource *r) {
    BEGIN_IN();
    TRY(check_known(call, r));
    FAIL_IF(r->mapped, cudaErrorAlreadyMapped, "%s is still mapped%s", describe(*r).c_str(),
            r->mapped_at().c_str());
    live<Resource>().take(r);
    delete r;
    return cudaSuccess;
}

cudaError_t register_buffer(const char *call, cudaGraphicsResource_t *resource, GLuint buffer,
                            unsigned flags) {
    BEGIN_IN(resource);
    FAIL_IF(flags > cudaGraphicsRegisterFlagsWriteDiscard, cudaErrorInvalidValue,
            "0x%x is not a valid flag for a buffer", flags);
    TRY(check_context(call));
    tell_earlier_errors(call);
    FAIL_IF(!gl().IsBuffer(buffer), buffer ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue,
            "OpenGL has no buffer %u: it was deleted, or never bound", buffer);
    Resource made = {buffer, 0, flags, current_device(), call_site};
    GLint64 bytes = 0;
    {
        const Binding bound(GL_COPY_READ_BUFFER, buffer);
        gl().GetBufferParameteri64v(GL_COPY_READ_BUFFER, GL_BUFFER_SIZE, &bytes);
    }
    FAIL_IF(bytes == 0, cudaErrorMemoryAllocation, "buffer %u has no storage", buffer);
    made.bytes = (size_t)bytes;
    return add(resource, made);
}

} // namespace

FORWARD(cudaGraphicsGLRegisterBuffer, (cudaGraphicsResource_t * resource, GLuint buffer, unsigned flags),
        register_buffer(__func__, resource, buffer, flags))

cudaError_t cudaGraphicsGLRegisterImage(cudaGraphicsResource_t *resource, GLuint image, GLenum target,
                                        unsigned flags) {
    BEGIN(resource);
    constexpr unsigned one_access = cudaGraphicsRegisterFlagsReadOnly | cudaGraphicsRegisterFlagsWriteDiscard;
    FAIL_IF(flags > 15 || (flags & one_access) == one_access, cudaErrorInvalidValue,
            "0x%x is not a valid combination of flags", flags);
    FAIL_IF(target == GL_TEXTURE_3D || target == GL_TEXTURE_2D_ARRAY || target == GL_TEXTURE_CUBE_MAP ||
                target == GL_RENDERBUFFER,
            cudaErrorNotSupported, "images of target 0x%04x are not supported", target);
    FAIL_IF(target != GL_TEXTURE_2D && target != GL_TEXTURE_RECTANGLE, cudaErrorInvalidValue,
            "CUDA does not support images of target 0x%04x", target);
    TRY(check_context(call));
    tell_earlier_errors(call);
    FAIL_IF(!glIsTexture(image), image ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue,
            "OpenGL has no texture %u: it was deleted, or never bound", image);
    GLint width = 0, height = 0, internal = 0;
    {
        const Binding bound(target, image);
        FAIL_IF(const GLenum error = take_gl_errors(), cudaErrorInvalidValue,
                "texture %u is not of target 0x%04x (0x%04x)", image, target, error);
        glGetTexLevelParameteriv(target, 0, GL_TEXTURE_WIDTH, &width);
        glGetTexLevelParameteriv(target, 0, GL_TEXTURE_HEIGHT, &height);
        glGetTexLevelParameteriv(target, 0, GL_TEXTURE_INTERNAL_FORMAT, &internal);
    }
    FAIL_IF(width == 0 || height == 0, cudaErrorInvalidValue, "texture %u has no storage", image);
    const Format *const format = std::find_if(std::begin(formats), std::end(formats), [&](const Format &f) {
        return f.internal == (GLenum)internal;
    });
    FAIL_IF(format == std::end(formats), cudaErrorInvalidValue,
            "texture %u has a format that CUDA does not support: 0x%04x", image, (unsigned)internal);
    Resource made = {image, target, flags, current_device(), call_site};
    made.width = (size_t)width;
    made.height = (size_t)height;
    made.format = *format;
    made.bytes = made.width * made.height * format->bytes();
    return add(resource, made);
}

FORWARD(cudaGraphicsMapResources, (int count, cudaGraphicsResource_t *list, cudaStream_t stream),
        map_resources(__func__, count, list, stream))

} // namespace cuda_cpu

FORWARD(cudaGraphicsUnregisterResource, (cudaGraphicsResource_t resource), unregister(__func__, resource))

cudaError_t cudaGraphicsResourceSetMapFlags(cudaGraphicsResource_t resource, unsigned flags) {
    BEGIN();
    TRY(check_known(call, resource));
    FAIL_IF(flags > cudaGraphicsMapFlagsWriteDiscard, cudaErrorInvalidValue, "0x%x is not a valid flag",
            flags);
    FAIL_IF(resource->mapped, cudaErrorAlreadyMapped, "%s is mapped%s", describe(*resource).c_str(),
            resource->mapped_at().c_str());
    resource->map_flags = flags;
    return cudaSuccess;
}

FORWARD(cudaGraphicsUnmapResources, (int count, cudaGraphicsResource_t *list, cudaStream_t stream),
        unmap_resources(__func__, count, list, stream))

cudaError_t cudaGraphicsResourceGetMappedPointer(void **pointer, size_t *bytes,
                                                 cudaGraphicsResource_t resource) {
    BEGIN(pointer);
    TRY(check_mapped(call, resource));
    FAIL_IF(resource->target, cudaErrorNotMappedAsPointer, "%s has an array, no pointer",
            describe(*resource).c_str());
    *pointer = resource->memory;
    return store(bytes, resource->bytes);
}

cudaError_t cudaGraphicsSubResourceGetMappedArray(cudaArray_t *array, cudaGraphicsResource_t resource,
                                                  unsigned index, unsigned level) {
    BEGIN(array);
    TRY(check_mapped(call, resource));
    FAIL_IF(!resource->target, cudaErrorNotMappedAsArray, "%s has a pointer, no array",
            describe(*resource).c_str());
    FAIL_IF(index != 0 || level != 0, cudaErrorInvalidValue, "%s has no array %u of level %u",
            describe(*resource).c_str(), index, level);
    return store(array, resource->array);
}

FORWARD(cudaGLSetGLDevice, (int device), cudaSetDevice(device))
#endif
