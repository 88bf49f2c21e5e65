// SPDX-License-Identifier: MIT
// GPUAnimBitmap (8.3.1): an animation whose frames kernels write into a pixel buffer, from which OpenGL draws
// them without a copy through the host. Programs that include this header need OpenGL.
#pragma once

#include "book.h"
#include "cpu_anim.h"
#include "interop.h" // the headers of OpenGL, gl_context_open(), INTEROP_WORKS

// The data of the callbacks, the mouse, and the number of the last frame are those of CPUAnimBitmap. After
// anim_and_exit(), get_ptr() has the last frame as OpenGL drew it.
class GPUAnimBitmap : public CPUAnimBitmap {
  public:
    GLuint bufferObj;                // the pixel buffer for OpenGL
    cudaGraphicsResource_t resource; // the same buffer for CUDA; NULL if the driver refuses to share it
    size_t width, height;
    std::function<void(uchar4 *pixels, void *data, int ticks)> fAnim;

    GPUAnimBitmap(size_t w, size_t h, void *d = NULL) : CPUAnimBitmap(w, h, d), width(w), height(h) {
        int device;
        HANDLE_ERROR(cudaGetDevice(&device));
        canvas.draw = Draw;
        canvas.release = free_resources;
        gl_context_open(&canvas, device); // a window, or a context without one

        // Once: a buffer of OpenGL for the pixels, which is registered with CUDA
        glGenBuffers(1, &bufferObj);
        glBindBuffer(GL_PIXEL_UNPACK_BUFFER, bufferObj);
        glBufferData(GL_PIXEL_UNPACK_BUFFER, image_size(), NULL, GL_DYNAMIC_DRAW);
        if (!INTEROP_WORKS(
                cudaGraphicsGLRegisterBuffer(&resource, bufferObj, cudaGraphicsRegisterFlagsWriteDiscard)))
            resource = NULL;
    }

    // Each frame: the buffer is mapped, the callback launches a kernel that writes it, and it is unmapped.
    // While it is mapped, only CUDA may use it; after unmapping, only OpenGL.
    static void idle_func(void *self, int ticks) {
        GPUAnimBitmap *bitmap = (GPUAnimBitmap *)self;
        bitmap->ticks = ticks;
        if (!bitmap->resource) {
            bitmap->copy_frame(ticks);
            return;
        }
        uchar4 *devPtr;
        size_t size;
        HANDLE_ERROR(cudaGraphicsMapResources(1, &bitmap->resource, NULL));
        HANDLE_ERROR(cudaGraphicsResourceGetMappedPointer((void **)&devPtr, &size, bitmap->resource));
        bitmap->fAnim(devPtr, bitmap->dataBlock, ticks);
        HANDLE_ERROR(cudaGraphicsUnmapResources(1, &bitmap->resource, NULL));
    }

    // Then OpenGL draws from the buffer, which is bound: the last argument is an offset into it.
    static void Draw(void *self) {
        GPUAnimBitmap *bitmap = (GPUAnimBitmap *)self;
        glDrawPixels(bitmap->width, bitmap->height, GL_RGBA, GL_UNSIGNED_BYTE, 0);
    }

    // After the last frame, while the OpenGL context still exists
    static void free_resources(void *self) {
        GPUAnimBitmap *bitmap = (GPUAnimBitmap *)self;
        if (bitmap->resource)
            HANDLE_ERROR(cudaGraphicsUnregisterResource(bitmap->resource));
        glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
        glDeleteBuffers(1, &bitmap->bufferObj);
        HANDLE_ERROR(cudaFree(bitmap->copied));
    }

    // Calls f(pixels, data, ticks) for ticks = 0, 1, …, which must write all pixels; they are in device
    // memory, the bottom row first. Shows each frame in a window or writes it to a file. Then calls e(data)
    // and returns, so that main can check the result.
    void anim_and_exit(void (*f)(uchar4 *pixels, void *data, int ticks), void (*e)(void *data) = NULL) {
        anim_and_exit<void>(f, e);
    }

    // For callbacks with the type of the data, which need no cast
    template <class Data>
    void anim_and_exit(void (*f)(uchar4 *pixels, Data *data, int ticks), void (*e)(Data *data) = NULL) {
        fAnim = [f](uchar4 *pixels, void *data, int ticks) { f(pixels, (Data *)data, ticks); };
        canvas.frame = idle_func;
        display_canvas(&canvas);
        if (e)
            e((Data *)dataBlock);
    }

    // A frame without interoperability: the two copies through the host that it avoids
    void copy_frame(int ticks) {
        if (!copied)
            HANDLE_ERROR(cudaMalloc(&copied, image_size()));
        fAnim(copied, dataBlock, ticks);
        HANDLE_ERROR(cudaMemcpy(get_ptr(), copied, image_size(), cudaMemcpyDeviceToHost));
        glBufferSubData(GL_PIXEL_UNPACK_BUFFER, 0, image_size(), get_ptr());
    }

  private:
    uchar4 *copied = NULL; // device memory for copy_frame()
};
