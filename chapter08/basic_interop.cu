// SPDX-License-Identifier: MIT
/*
 * basic_interop: a kernel that writes into a buffer which OpenGL draws
 *
 * Teaches: A picture for the screen need not leave the GPU. A buffer of OpenGL is registered with
 *          CUDA once; mapping it gives a pointer for a kernel, and unmapping gives it back to
 *          OpenGL, which draws from it.
 * Book:    8.2
 * Run:     ./bin/chapter08/basic_interop --output basic.png
 * Differs: common/gl_context.h gets the OpenGL context, which may be one with no window, in place
 *          of cudaChooseDevice() and cudaGLSetGLDevice(). Where the driver refuses to share the
 *          buffer, the picture is copied through the host. It is checked as OpenGL drew it.
 * Needs:   gl
 * Picture: yes
 */
#define GL_GLEXT_PROTOTYPES // declares what OpenGL has had since 1.2
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <cuda_gl_interop.h>
#include "../common/book.h"
#include "../common/gl_context.h"
#include "../common/gpu_anim.h" // INTEROP_WORKS
#include "../common/memory.h"

#define DIM 512

struct DataBlock {
    size_t size = DIM, bytes;
    GLuint bufferObj;                // the buffer, as OpenGL calls it
    cudaGraphicsResource_t resource; // and as CUDA does
};

__global__ void kernel(uchar4 *ptr, size_t size) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;

    float fx = x / (float)size - 0.5f;
    float fy = y / (float)size - 0.5f;
    unsigned char green = (unsigned char)(128 + 127 * sinf(fabsf(fx * 100) - fabsf(fy * 100)));
    ptr[x + (size_t)y * size] = make_uchar4(0, green, 0, 255);
}

static void run_kernel(uchar4 *devPtr, size_t size) {
    unsigned side = (size + 15) / 16;
    dim3 blocks(side, side), threads(16, 16);
    kernel<<<blocks, threads>>>(devPtr, size);
    HANDLE_LAUNCH();
}

// Where the driver shares the buffer, which is what this program is about.
static void generate(DataBlock *d) {
    uchar4 *devPtr;
    size_t bytes;
    HANDLE_ERROR(cudaGraphicsMapResources(1, &d->resource, NULL));
    HANDLE_ERROR(cudaGraphicsResourceGetMappedPointer((void **)&devPtr, &bytes, d->resource));
    run_kernel(devPtr, d->size);
    // OpenGL must not use the buffer before this, nor a kernel after it.
    HANDLE_ERROR(cudaGraphicsUnmapResources(1, &d->resource, NULL));
}

// And where it does not.
static void generate_and_copy(DataBlock *d, unsigned char *host) {
    uchar4 *devPtr;
    HANDLE_ERROR(cudaMalloc((void **)&devPtr, d->bytes));
    run_kernel(devPtr, d->size);
    HANDLE_ERROR(cudaMemcpy(host, devPtr, d->bytes, cudaMemcpyDeviceToHost));
    glBufferSubData(GL_PIXEL_UNPACK_BUFFER, 0, d->bytes, host);
    HANDLE_ERROR(cudaFree(devPtr));
}

// The buffer is still bound, so the last argument is an offset in it.
static void draw_func(void *data) {
    DataBlock *d = (DataBlock *)data;
    glDrawPixels((GLsizei)d->size, (GLsizei)d->size, GL_RGBA, GL_UNSIGNED_BYTE, 0);
}

// Runs while the OpenGL context is still there, however the window was closed.
static void release(void *data) {
    DataBlock *d = (DataBlock *)data;
    if (d->resource)
        HANDLE_ERROR(cudaGraphicsUnregisterResource(d->resource));
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    glDeleteBuffers(1, &d->bufferObj);
}

// Where the value is so close to a whole number that rounding may have taken float below or above
// it, either is right: it is made of eight numbers of up to 255, each rounded by 2^-24 of itself,
// the sine of an angle of up to 50, and what a sinf may be off.
static unsigned char expected_green(const DataBlock *d, size_t x, size_t y, unsigned char got) {
    double fx = x / (double)d->size - 0.5, fy = y / (double)d->size - 0.5;
    double value = 128 + 127 * sin(fabs(fx * 100) - fabs(fy * 100));
    double tol = (8 * 255 + 127 * 4 * 50) * 0x1p-24;
    return got >= floor(value - tol) && got <= floor(value + tol) ? got : floor(value);
}

static bool check(const DataBlock *d, const unsigned char *pixels) {
    unsigned char *expected = (unsigned char *)calloc(d->bytes, 1);
    HANDLE_NULL(expected);
    for (size_t y = 0; y < d->size; y++)
        for (size_t x = 0; x < d->size; x++) {
            size_t offset = 4 * (x + y * d->size);
            expected[offset + 1] = expected_green(d, x, y, pixels[offset + 1]);
            expected[offset + 3] = 255;
        }
    bool ok = check_pixels("pixel", pixels, expected, d->size * d->size, 0);
    free(expected);
    return ok;
}

int main(int argc, char **argv) {
    DataBlock data;
    const Option own[] = {OPTION_SIZE("size", &data.size, 1, 16384, "pixels a side"), OPTION_END};
    parse_options(argc, argv, "Draws a picture that a kernel writes into OpenGL's memory.", PICTURE,
                  own);
    select_device();
    data.bytes = data.size * data.size * 4;
    require_memory(5 * data.bytes, data.bytes);

    Canvas canvas = {};
    canvas.pixels = (unsigned char *)calloc(data.bytes, 1);
    HANDLE_NULL(canvas.pixels);
    canvas.width = canvas.height = data.size;
    canvas.data = &data;
    canvas.draw = draw_func;
    canvas.release = release;
    gl_context_open(&canvas, options.device);

    glGenBuffers(1, &data.bufferObj);
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, data.bufferObj);
    glBufferData(GL_PIXEL_UNPACK_BUFFER, data.bytes, NULL, GL_DYNAMIC_DRAW);
    if (INTEROP_WORKS(cudaGraphicsGLRegisterBuffer(&data.resource, data.bufferObj,
                                                   cudaGraphicsRegisterFlagsWriteDiscard))) {
        generate(&data);
    } else {
        data.resource = NULL;
        generate_and_copy(&data, canvas.pixels);
    }

    display_canvas(&canvas); // draws, and leaves in the pixels what was drawn
    inject_error(canvas.pixels, data.bytes);
    bool ok = check(&data, canvas.pixels);
    if (ok)
        puts("The picture that OpenGL drew is right.");
    free(canvas.pixels);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
