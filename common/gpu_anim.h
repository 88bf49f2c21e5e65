// SPDX-License-Identifier: MIT
// GPUAnimBitmap: an animation whose frames kernels write into a pixel buffer, from which OpenGL draws
// them without a copy through the host. Programs that include this header need OpenGL.
#pragma once

#include "book.h"
#include "cpu_bitmap.h"
#include "interop.h"

class GPUAnimBitmap : private CPUBitmap {
  public:
    typedef void (*Frame)(uchar4 *pixels, void *data, int ticks);

    // Every callback gets `data`.
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

    // The callback for the mouse, as in CPUAnimBitmap.
    void click_drag(void (*function)(void *data, int x0, int y0, int x1, int y1)) {
        drag = function;
        canvas.drag = [](void *self, int x0, int y0, int x1, int y1) {
            ((GPUAnimBitmap *)self)->drag(((GPUAnimBitmap *)self)->data, x0, y0, x1, y1);
        };
    }

    // Calls generate(pixels, data, ticks) for ticks = 0, 1, …, which must write all pixels; they are in
    // device memory, the bottom row first. Shows each frame in a window or writes it to a file. Then
    // calls exit_fn(data) and returns, so that main can check the result. Data is as in CPUAnimBitmap.
    template <class Data>
    void anim_and_exit(void (*generate)(uchar4 *pixels, Data *data, int ticks),
                       void (*exit_fn)(std::enable_if_t<true, Data> *data) = NULL) {
        static auto typed = generate;
        typed = generate;
        frame = [](uchar4 *pixels, void *data, int ticks) { typed(pixels, (Data *)data, ticks); };
        canvas.frame = [](void *self, int ticks) {
            GPUAnimBitmap *bitmap = (GPUAnimBitmap *)self;
            if (before_frame)
                before_frame(bitmap->data, ticks);
            bitmap->make_frame(bitmap->frame, ticks, false);
        };
        display_and_exit();
        if (exit_fn)
            exit_fn((Data *)data);
    }

    // After anim_and_exit(): the last frame, read back from OpenGL into host memory.
    unsigned char *last_frame() const { return get_ptr(); }

    // Generates one frame in the pixel buffer: directly, or with a copy through the host when
    // `through_host` is set or the driver refused to share the buffer.
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
            HANDLE_ERROR(cudaMalloc(&copied, image_size()));
        generate(copied, data, ticks);
        HANDLE_ERROR(cudaMemcpy(get_ptr(), copied, image_size(), cudaMemcpyDeviceToHost));
        glBufferSubData(GL_PIXEL_UNPACK_BUFFER, 0, image_size(), get_ptr());
    }

  private:
    void *data;
    GLuint buffer;
    cudaGraphicsResource_t resource;
    uchar4 *copied = NULL; // device memory for frames that are copied through the host
    Frame frame;
    void (*drag)(void *data, int x0, int y0, int x1, int y1);

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
