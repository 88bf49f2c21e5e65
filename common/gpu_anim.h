// SPDX-License-Identifier: MIT
// GPUAnimBitmap: an animation whose frames kernels write into a buffer of OpenGL, which draws from
// it: no copy goes through the host. Programs that include this need OpenGL.
#ifndef COMMON_GPU_ANIM_H
#define COMMON_GPU_ANIM_H

#ifndef GL_GLEXT_PROTOTYPES
#define GL_GLEXT_PROTOTYPES
#endif
#include <GL/gl.h>
#include <GL/glext.h>
#include <cuda_gl_interop.h>
#include "book.h"
#include "cpu_bitmap.h"
#include "gl_context.h"

// Whether CUDA has registered what OpenGL has. Where the driver refuses that (an OpenGL that is not
// the GPU's: Mesa's, WSL2's, that of a display on another machine) it says so, and the program is
// to copy through the host. Of Mesa's the driver says cudaErrorOperatingSystem through EGL and
// cudaErrorUnknown in a window. Mistakes of the program (no context, no such buffer, no storage)
// have other errors, and end it.
static inline bool interop_works(cudaError_t error, const char *file, int line) {
    if (error != cudaErrorOperatingSystem && error != cudaErrorUnknown) {
        handle_error(error, "registering with CUDA", file, line);
        return true;
    }
    (void)!cudaGetLastError(); // dealt with
    fprintf(stderr, "%s: CUDA cannot use this OpenGL (%s): copying through the host\n", options.program,
            cudaGetErrorName(error));
    return false;
}
#define INTEROP_WORKS(call) interop_works(call, __FILE__, __LINE__)

class GPUAnimBitmap : private CPUBitmap {
  public:
    typedef void (*Frame)(uchar4 *pixels, void *data, int ticks);

    // All functions are called with `data`.
    GPUAnimBitmap(size_t width, size_t height, void *data = NULL)
        : CPUBitmap(width, height, this), data(data) {
        int device;
        HANDLE_ERROR(cudaGetDevice(&device));
        canvas.draw = [](void *self) { ((GPUAnimBitmap *)self)->draw(); };
        canvas.release = [](void *self) { ((GPUAnimBitmap *)self)->release(); };
        gl_context_open(&canvas, device);
        glGenBuffers(1, &buffer);
        glBindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer);
        glBufferData(GL_PIXEL_UNPACK_BUFFER, image_size(), NULL, GL_DYNAMIC_DRAW);
        if (!INTEROP_WORKS(
                cudaGraphicsGLRegisterBuffer(&resource, buffer, cudaGraphicsRegisterFlagsWriteDiscard)))
            resource = NULL;
    }

    using CPUBitmap::image_size;

    // As those of CPUAnimBitmap.
    void click_drag(void (*function)(void *data, int x0, int y0, int x1, int y1)) {
        drag = function;
        canvas.drag = [](void *self, int x0, int y0, int x1, int y1) {
            ((GPUAnimBitmap *)self)->drag(((GPUAnimBitmap *)self)->data, x0, y0, x1, y1);
        };
    }
    void key_press(void (*function)(void *data, unsigned char key)) {
        key = function;
        canvas.key = [](void *self, unsigned char pressed) {
            ((GPUAnimBitmap *)self)->key(((GPUAnimBitmap *)self)->data, pressed);
        };
    }

    // Draws with frame(pixels, data, ticks), ticks = 0, 1, …; the pixels are in device memory, the
    // bottom row first, and all of them are to be written. Each frame is shown in a window or
    // written to a file; then exit_fn(data) runs, and the program goes on.
    void anim_and_exit(Frame generate, void (*exit_fn)(void *data) = NULL) {
        frame = generate;
        canvas.frame = [](void *self, int ticks) {
            GPUAnimBitmap *bitmap = (GPUAnimBitmap *)self;
            bitmap->make_frame(bitmap->frame, ticks, false);
        };
        display_and_exit();
        if (exit_fn)
            exit_fn(data);
    }

    // After that: the last frame as OpenGL drew it, in host memory.
    unsigned char *last_frame() const { return get_ptr(); }

    // One frame, before the animation: from the kernel to OpenGL's buffer, through the host where
    // that is asked for or interop is refused.
    void make_frame(Frame generate, int ticks, bool through_host) {
        if (resource && !through_host) {
            uchar4 *pixels;
            size_t bytes;
            HANDLE_ERROR(cudaGraphicsMapResources(1, &resource, NULL));
            HANDLE_ERROR(cudaGraphicsResourceGetMappedPointer((void **)&pixels, &bytes, resource));
            generate(pixels, data, ticks);
            HANDLE_ERROR(cudaGraphicsUnmapResources(1, &resource, NULL));
            return;
        }
        if (!copied)
            HANDLE_ERROR(cudaMalloc((void **)&copied, image_size()));
        generate(copied, data, ticks);
        HANDLE_ERROR(cudaMemcpy(get_ptr(), copied, image_size(), cudaMemcpyDeviceToHost));
        glBufferSubData(GL_PIXEL_UNPACK_BUFFER, 0, image_size(), get_ptr());
    }

  private:
    void *data;
    GLuint buffer;
    cudaGraphicsResource_t resource;
    uchar4 *copied = NULL; // where frames are that go through the host
    Frame frame;
    void (*drag)(void *data, int x0, int y0, int x1, int y1);
    void (*key)(void *data, unsigned char key);

    void draw() const {
        glDrawPixels((GLsizei)canvas.width, (GLsizei)canvas.height, GL_RGBA, GL_UNSIGNED_BYTE, 0);
    }

    void release() {
        if (resource)
            HANDLE_ERROR(cudaGraphicsUnregisterResource(resource));
        glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
        glDeleteBuffers(1, &buffer);
        HANDLE_ERROR(cudaFree(copied));
    }
};

#endif
