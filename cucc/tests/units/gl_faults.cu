// SPDX-License-Identifier: MIT
// Needs: egl
// cucc only: what must be reported of OpenGL buffers and textures in kernels, and what must work.
#define GL_GLEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <cuda_gl_interop.h>
#include "device.h"

// An OpenGL context of EGL, without a window
struct Context {
    EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
    EGLContext context;

    Context() {
        const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT,
                                 EGL_NONE};
        EGLConfig config;
        EGLint configs = 0;
        EXPECT(eglInitialize(display, nullptr, nullptr) && eglBindAPI(EGL_OPENGL_API));
        EXPECT(eglChooseConfig(display, wanted, &config, 1, &configs) && configs > 0);
        context = eglCreateContext(display, config, EGL_NO_CONTEXT, nullptr);
        EXPECT(eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context));
    }
    ~Context() {
        eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
        eglDestroyContext(display, context);
        eglTerminate(display);
        eglReleaseThread();
    }
};

// A context with a registered buffer of n ints: 0, 1, 2 …
struct Scene {
    static constexpr int n = 1000;
    Context context;
    GLuint buffer;
    cudaGraphicsResource_t resource = nullptr;

    explicit Scene(unsigned flags = cudaGraphicsRegisterFlagsNone) {
        const std::vector<int> numbers = made(n, [](int i) { return i; });
        glGenBuffers(1, &buffer);
        glBindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer);
        glBufferData(GL_PIXEL_UNPACK_BUFFER, n * sizeof(int), numbers.data(), GL_DYNAMIC_DRAW);
        OK(cudaGraphicsGLRegisterBuffer(&resource, buffer, flags));
    }
    ~Scene() {
        if (resource)
            OK(cudaGraphicsUnregisterResource(resource));
        glDeleteBuffers(1, &buffer);
    }

    cudaError_t map() { return cudaGraphicsMapResources(1, &resource, 0); }
    cudaError_t unmap() { return cudaGraphicsUnmapResources(1, &resource, 0); }
    int *pointer() {
        int *p = nullptr;
        size_t bytes = 0;
        OK(cudaGraphicsResourceGetMappedPointer((void **)&p, &bytes, resource));
        EXPECT(bytes == n * sizeof(int));
        return p;
    }
    std::vector<int> content() const {
        std::vector<int> numbers(n);
        glGetBufferSubData(GL_PIXEL_UNPACK_BUFFER, 0, n * sizeof(int), numbers.data());
        return numbers;
    }
};

__global__ void twice(int *numbers, int n) {
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n)
        numbers[i] *= 2;
}

// ---- At exit. These cases fork, so they come first.

static unit_result leave(bool unmap, bool destroy, int status) {
    return in_child([=] {
        static Scene *const scene = new Scene; // deleted only on request
        OK(scene->map());
        if (unmap)
            OK(scene->unmap());
        if (destroy)
            delete scene;
        exit(unit_failures ? 1 : status);
    });
}

TEST(what_is_left_at_the_end_is_told) {
    const char *const where = "at exit buffer 1, registered at gl_faults.cu:";
    ends_with(leave(false, false, 0), {where, " is still mapped, mapped at gl_faults.cu:"}, 0);
    ends_with(leave(true, false, 0), {where, " is still registered\n"}, 0);
    ends_well(leave(true, true, 0));
    const unit_result failed = leave(false, false, 3); // a program that fails gets no further lines
    EXPECT(failed.status == 3 && failed.err[0] == '\0');
}

// ---- Buffers

TEST(what_is_discarded_is_not_there) {
    Scene scene(cudaGraphicsRegisterFlagsWriteDiscard);
    OK(scene.map());
    EXPECT(value_at(scene.pointer()) == 0x7f7f7f7f);
    OK(cudaMemset(scene.pointer(), 0, scene.n * sizeof(int)));
    OK(scene.unmap());
    EXPECT(scene.content() == std::vector<int>(scene.n, 0));
}

TEST(what_is_only_to_be_read_is_not_written) {
    for (const bool at_mapping : {false, true}) {
        Scene scene(at_mapping ? cudaGraphicsRegisterFlagsNone : cudaGraphicsRegisterFlagsReadOnly);
        if (at_mapping)
            OK(cudaGraphicsResourceSetMapFlags(scene.resource, cudaGraphicsMapFlagsReadOnly));
        WORKS(scene.map() ? cudaErrorUnknown : scene.unmap());
        OK(scene.map());
        OK(cudaMemset(scene.pointer(), 7, 1));
        FAILS(cudaErrorUnknown, "was written to", scene.unmap());
        EXPECT(scene.content()[0] == 0);
    }
}

TEST(mapped_twice) {
    Scene scene;
    WORKS(scene.map());
    FAILS(cudaErrorAlreadyMapped, "mapped already", scene.map());
    FAILS(cudaErrorAlreadyMapped, "is mapped",
          cudaGraphicsResourceSetMapFlags(scene.resource, cudaGraphicsMapFlagsNone));
    WORKS(scene.unmap());
    cudaGraphicsResource_t both[] = {scene.resource, scene.resource};
    FAILS(cudaErrorAlreadyMapped, "in the list twice", cudaGraphicsMapResources(2, both, 0));
    WORKS(scene.map());
    FAILS(cudaErrorNotMapped, "in the list twice", cudaGraphicsUnmapResources(2, both, 0));
    FAILS(cudaErrorNotMapped, "is not mapped", scene.unmap());
    void *p;
    size_t bytes;
    FAILS(cudaErrorNotMapped, "is not mapped",
          cudaGraphicsResourceGetMappedPointer(&p, &bytes, scene.resource));
    WORKS(scene.map() ? cudaErrorUnknown : scene.unmap());
}

// Draws from the bound buffer, as a program would.
static void draw() {
    GLuint texture;
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, 16, 16, 0, GL_RGBA, GL_UNSIGNED_BYTE, 0);
    glDeleteTextures(1, &texture);
}

TEST(drawn_while_mapped) {
    Scene scene;
    OK(scene.map());
    WORKS(scene.unmap());
    draw();
    EXPECT(glGetError() == GL_NO_ERROR);
    OK(scene.map());
    draw();
    FAILS(cudaErrorUnknown, "was asked to use buffer", scene.unmap());
    WORKS(scene.map() ? cudaErrorUnknown : scene.unmap());
    GLint bound; // what the program has bound stays
    glGetIntegerv(GL_PIXEL_UNPACK_BUFFER_BINDING, &bound);
    EXPECT((GLuint)bound == scene.buffer);
    glGetIntegerv(GL_COPY_READ_BUFFER_BINDING, &bound);
    EXPECT(bound == 0);
}

// What is refused while the buffer is mapped has no effect.
TEST(freed_or_unregistered_while_mapped) {
    Scene scene;
    OK(scene.map());
    int *const mapped = scene.pointer(), one;
    INVALID("belongs to a mapped OpenGL resource", cudaFree(mapped));
    INVALID("belongs to a mapped OpenGL resource", cudaFreeAsync(mapped, 0));
    FAILS(cudaErrorAlreadyMapped, "still mapped", cudaGraphicsUnregisterResource(scene.resource));
    twice<<<4, 256>>>(mapped, scene.n);
    WORKS(cudaMemcpy(&one, mapped, sizeof one, cudaMemcpyDeviceToHost));
    WORKS(scene.unmap());
    EXPECT(scene.content()[999] == 2 * 999);
    INVALID("freed", cudaFree(mapped));
    INVALID("freed", cudaMemcpy(&one, mapped, sizeof one, cudaMemcpyDeviceToHost));
}

TEST(deleted_buffers) {
    Scene scene;
    GLuint other;
    cudaGraphicsResource_t resource;
    const auto enroll = [&] { return cudaGraphicsGLRegisterBuffer(&resource, other, 0); };
    glGenBuffers(1, &other);
    FAILS(cudaErrorInvalidResourceHandle, "never bound", enroll());
    glBindBuffer(GL_ARRAY_BUFFER, other);
    FAILS(cudaErrorMemoryAllocation, "no storage", enroll());
    glBufferData(GL_ARRAY_BUFFER, 64, nullptr, GL_STATIC_DRAW);
    WORKS(enroll());
    glDeleteBuffers(1, &other);
    FAILS(cudaErrorUnknown, "was deleted", cudaGraphicsMapResources(1, &resource, 0));
    WORKS(cudaGraphicsUnregisterResource(resource));
    FAILS(cudaErrorInvalidResourceHandle, "unregistered already", cudaGraphicsUnregisterResource(resource));
    FAILS(cudaErrorInvalidResourceHandle, "was deleted", enroll());
    other = 12345;
    FAILS(cudaErrorInvalidResourceHandle, "has no buffer 12345", enroll());
    other = 0;
    INVALID("has no buffer 0", enroll());
    OK(scene.map());
    int *const mapped = scene.pointer(), one;
    glDeleteBuffers(1, &scene.buffer);
    FAILS(cudaErrorUnknown, "was deleted while", scene.unmap());
    INVALID("freed", cudaMemcpy(&one, mapped, sizeof one, cudaMemcpyDeviceToHost));
}

TEST(storage_that_changes) {
    Scene scene;
    glBufferData(GL_PIXEL_UNPACK_BUFFER, 100, nullptr, GL_STATIC_DRAW);
    FAILS(cudaErrorUnknown, "had 4000 bytes when it was registered, now it has 100", scene.map());
    glBufferData(GL_PIXEL_UNPACK_BUFFER, scene.n * sizeof(int), nullptr, GL_STATIC_DRAW);
    WORKS(scene.map());
    glBufferData(GL_PIXEL_UNPACK_BUFFER, scene.n * sizeof(int), nullptr, GL_STATIC_DRAW);
    FAILS(cudaErrorUnknown, "new storage", scene.unmap());
}

TEST(without_a_context) {
    cudaGraphicsResource_t resource;
    FAILS(cudaErrorInvalidGraphicsContext, "no OpenGL context",
          cudaGraphicsGLRegisterBuffer(&resource, 1, 0));
    Scene scene;
    OK(cudaGLSetGLDevice(1));
}

TEST(flags_that_there_are_not_and_a_reset) {
    Scene scene;
    cudaGraphicsResource_t resource;
    INVALID("not a valid flag", cudaGraphicsGLRegisterBuffer(&resource, scene.buffer, 3));
    INVALID("not a valid flag", cudaGraphicsResourceSetMapFlags(scene.resource, 3));
    INVALID("invalid list of 0", cudaGraphicsMapResources(0, &scene.resource, 0));
    OK(cudaDeviceReset());
    FAILS(cudaErrorInvalidResourceHandle, "not a graphics resource", scene.map());
    scene.resource = nullptr;
}

// ---- Textures

__global__ void next(cudaSurfaceObject_t surface, int width, int height) {
    const int x = threadIdx.x, y = blockIdx.x;
    if (x >= width || y >= height)
        return;
    uchar4 texel = surf2Dread<uchar4>(surface, x * 4, y);
    texel.x++;
    texel.y += 2;
    surf2Dwrite(texel, surface, x * 4, y);
}

TEST(a_kernel_uses_a_texture) {
    Scene scene;
    const int width = 37, height = 5;
    const auto texels = made(width * height * 4, [](int i) { return (unsigned char)(i * 7); });
    std::vector<unsigned char> got(texels.size());
    GLuint texture;
    cudaGraphicsResource_t resource;
    const auto enroll = [&](unsigned flags) {
        return cudaGraphicsGLRegisterImage(&resource, texture, GL_TEXTURE_2D, flags);
    };
    glGenTextures(1, &texture);
    FAILS(cudaErrorInvalidResourceHandle, "never bound", enroll(0));
    glBindTexture(GL_TEXTURE_2D, texture);
    INVALID("no storage", enroll(0));
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
    INVALID("a format that CUDA does not support", enroll(0));
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels.data());
    INVALID("not a valid combination", enroll(3));
    FAILS(cudaErrorNotSupported, "target", cudaGraphicsGLRegisterImage(&resource, texture, GL_TEXTURE_3D, 0));
    INVALID("target", cudaGraphicsGLRegisterImage(&resource, texture, GL_TEXTURE_1D, 0));
    WORKS(enroll(cudaGraphicsRegisterFlagsSurfaceLoadStore));

    // The program's pixel-store settings and bound buffers must have no effect.
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, scene.buffer);
    glPixelStorei(GL_UNPACK_ROW_LENGTH, 50);
    glPixelStorei(GL_PACK_SKIP_ROWS, 3);
    cudaArray_t array;
    void *p;
    size_t bytes;
    WORKS(cudaGraphicsMapResources(1, &resource, 0));
    FAILS(cudaErrorNotMappedAsPointer, "no pointer",
          cudaGraphicsResourceGetMappedPointer(&p, &bytes, resource));
    INVALID("no array 1 of level 0", cudaGraphicsSubResourceGetMappedArray(&array, resource, 1, 0));
    OK(cudaGraphicsSubResourceGetMappedArray(&array, resource, 0, 0));
    const cudaSurfaceObject_t surface = surface_of(array);
    next<<<height, 64>>>(surface, width, height);
    OK(cudaGetLastError());
    OK(cudaDestroySurfaceObject(surface));
    WORKS(cudaGraphicsUnmapResources(1, &resource, 0));
    GLint row_length;
    glGetIntegerv(GL_UNPACK_ROW_LENGTH, &row_length);
    EXPECT(row_length == 50);
    glPixelStorei(GL_UNPACK_ROW_LENGTH, 0);
    glPixelStorei(GL_PACK_SKIP_ROWS, 0);
    glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, got.data());
    for (size_t i = 0; i < texels.size(); i++)
        if (!EXPECT(got[i] == (unsigned char)(texels[i] + (i % 4 < 2 ? i % 4 + 1 : 0))))
            break;

    OK(scene.map());
    FAILS(cudaErrorNotMappedAsArray, "no array",
          cudaGraphicsSubResourceGetMappedArray(&array, scene.resource, 0, 0));
    OK(scene.unmap());
    glDeleteTextures(1, &texture);
    FAILS(cudaErrorUnknown, "was deleted", cudaGraphicsMapResources(1, &resource, 0));
    OK(cudaGraphicsUnregisterResource(resource));
}

// Texels of every format are unchanged after mapping and unmapping.
TEST(formats_of_textures) {
    const struct {
        GLenum internal, format, type;
        int bytes;
    } cases[] = {{GL_R8, GL_RED, GL_UNSIGNED_BYTE, 1},    {GL_RG16, GL_RG, GL_UNSIGNED_SHORT, 4},
                 {GL_RGBA, GL_RGBA, GL_UNSIGNED_BYTE, 4}, {GL_RGBA32F, GL_RGBA, GL_FLOAT, 16},
                 {GL_R32F, GL_RED, GL_FLOAT, 4},          {GL_R8I, GL_RED_INTEGER, GL_BYTE, 1},
                 {GL_RG16I, GL_RG_INTEGER, GL_SHORT, 4},  {GL_RGBA32UI, GL_RGBA_INTEGER, GL_UNSIGNED_INT, 16},
                 {GL_R16F, GL_RED, GL_HALF_FLOAT, 2},     {GL_RGBA16F, GL_RGBA, GL_HALF_FLOAT, 8}};
    Scene scene;
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    for (const auto &c : cases) {
        std::vector<unsigned char> texels(21 * 3 * c.bytes), got(texels.size());
        for (size_t i = 0; i < texels.size(); i++)
            texels[i] = (unsigned char)(c.type == GL_FLOAT || c.type == GL_HALF_FLOAT ? 63 : i * 7);
        GLuint texture;
        cudaGraphicsResource_t resource;
        glGenTextures(1, &texture);
        glBindTexture(GL_TEXTURE_RECTANGLE, texture);
        glTexImage2D(GL_TEXTURE_RECTANGLE, 0, c.internal, 21, 3, 0, c.format, c.type, texels.data());
        WORKS(cudaGraphicsGLRegisterImage(&resource, texture, GL_TEXTURE_RECTANGLE, 0));
        OK(cudaGraphicsMapResources(1, &resource, 0));
        const auto array = STORED(cudaArray_t, cudaGraphicsSubResourceGetMappedArray(&it, resource, 0, 0));
        cudaChannelFormatDesc desc;
        cudaExtent extent;
        OK(cudaArrayGetInfo(&desc, &extent, nullptr, array));
        EXPECT(extent.width == 21 && extent.height == 3);
        EXPECT(desc.x + desc.y + desc.z + desc.w == 8 * c.bytes);
        OK(cudaMemcpy2DFromArray(got.data(), 21 * c.bytes, array, 0, 0, 21 * c.bytes, 3,
                                 cudaMemcpyDeviceToHost));
        EXPECT(got == texels);
        for (unsigned char &byte : texels)
            byte ^= 1;
        OK(cudaMemcpy2DToArray(array, 0, 0, texels.data(), 21 * c.bytes, 21 * c.bytes, 3,
                               cudaMemcpyHostToDevice));
        OK(cudaGraphicsUnmapResources(1, &resource, 0));
        glGetTexImage(GL_TEXTURE_RECTANGLE, 0, c.format, c.type, got.data());
        EXPECT(got == texels);
        OK(cudaGraphicsUnregisterResource(resource));
        glDeleteTextures(1, &texture);
    }
}
