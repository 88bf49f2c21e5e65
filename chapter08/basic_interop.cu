// SPDX-License-Identifier: MIT
/*
 * basic_interop: a kernel writes into a pixel buffer of OpenGL
 *
 * Teaches: CUDA and OpenGL can use the same buffer, so that a picture computed on the GPU is drawn
 *          without a copy through the host. The buffer is registered with CUDA once. Mapping it gives
 *          a device pointer for kernels, and unmapping it lets OpenGL draw from it.
 * Terms:   interoperability, pixel buffer, register a resource, map, unmap, device pointer, OpenGL
 *          context, buffer object
 * Book:    8.2
 * Build:   nvcc -o basic_interop chapter08/basic_interop.cu common/lib/[a-z]*.c -DHAVE_GL -lEGL -lGL
 * Run:     ./bin/chapter08/basic_interop --output basic.png
 * Differs: calls of GLUT on the page are in common/, to run without a window too. --device replaces
 *          cudaChooseDevice and cudaGLSetGLDevice (deprecated). Where the driver refuses to share the buffer,
 *          the host copies.
 * Needs:   gl
 * Picture: yes
 * Check:   --size 100
 */
#include "../common/book.h"
#include "../common/interop.h" // OpenGL, gl_context_open(), INTEROP_WORKS, Canvas, display_canvas()

#define DIM 512

static size_t size = DIM;               // --size
static GLuint bufferObj;                // the pixel buffer for OpenGL
static cudaGraphicsResource_t resource; // the same buffer for CUDA
static bool check(const unsigned char *pixels);

__global__ void kernel(uchar4 *ptr, size_t size) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;

    float fx = x / (float)size - 0.5f;
    float fy = y / (float)size - 0.5f;
    unsigned char green = 128 + 127 * sinf(fabsf(fx * 100) - fabsf(fy * 100));
    ptr[offset] = make_uchar4(0, green, 0, 255);
}

// On the page GLUT calls it with a key, and it ends the program. Here display_canvas() calls it after the
// last key, Esc or q, and at the end without a window, while the OpenGL context still exists.
static void key_func(void *) {
    if (resource)
        HANDLE_ERROR(cudaGraphicsUnregisterResource(resource));
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    glDeleteBuffers(1, &bufferObj);
}

static void draw_func(void *) {
    // The pixel buffer is bound, so the last argument is an offset into it, not a host pointer.
    glDrawPixels(size, size, GL_RGBA, GL_UNSIGNED_BYTE, 0);
}

// Draws without interoperability, if the driver refuses to share the buffer: the picture is copied to the
// host, and from there into the pixel buffer.
static void copy_through_host(unsigned char *host) {
    uchar4 *dev_bitmap;
    HANDLE_ERROR(cudaMalloc(&dev_bitmap, size * size * 4));
    dim3 grids((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<grids, threads>>>(dev_bitmap, size);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaMemcpy(host, dev_bitmap, size * size * 4, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev_bitmap));
    glBufferSubData(GL_PIXEL_UNPACK_BUFFER, 0, size * size * 4, host);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    size_t bytes = size * size * 4;

    // A window with an OpenGL context, for which the page calls glutInit, glutInitDisplayMode,
    // glutInitWindowSize and glutCreateWindow. Without a display the context comes from EGL, a
    // library that makes OpenGL contexts without a window.
    Canvas canvas = {};
    canvas.width = canvas.height = size;
    canvas.pixels = (unsigned char *)malloc(bytes);
    HANDLE_NULL(canvas.pixels);
    gl_context_open(&canvas, options.device);

    glGenBuffers(1, &bufferObj);
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, bufferObj);
    glBufferData(GL_PIXEL_UNPACK_BUFFER, bytes, NULL, GL_DYNAMIC_DRAW);

    // Registering is expensive, so it is done once. WriteDiscard: kernels write all of the buffer.
    if (INTEROP_WORKS(
            cudaGraphicsGLRegisterBuffer(&resource, bufferObj, cudaGraphicsRegisterFlagsWriteDiscard))) {
        // While the buffer is mapped, only CUDA may use it; after unmapping, only OpenGL.
        uchar4 *devPtr;
        HANDLE_ERROR(cudaGraphicsMapResources(1, &resource, NULL));
        HANDLE_ERROR(cudaGraphicsResourceGetMappedPointer((void **)&devPtr, &bytes, resource));

        dim3 grids((size + 15) / 16, (size + 15) / 16), threads(16, 16);
        kernel<<<grids, threads>>>(devPtr, size);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaGraphicsUnmapResources(1, &resource, NULL));
    } else {
        resource = NULL;
        copy_through_host(canvas.pixels);
    }

    // On the page: glutKeyboardFunc, glutDisplayFunc and glutMainLoop. This also reads back what was drawn.
    canvas.release = key_func;
    canvas.draw = draw_func;
    display_canvas(&canvas);
    bool ok = check(canvas.pixels);
    free(canvas.pixels);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Draws a picture that a kernel writes into OpenGL's memory.", PICTURE,
              {OPTION_SIZE("size", &size, 1, 16384, "pixels a side")});
    require_memory(4 * size * size * 4, size * size * 4);
}

// In float, up to eight results of at most 255 are rounded, each by at most 2^-24 of itself. The angle is
// at most 50; its rounding errors are multiplied by at most 127, as is the error of sinf.
static void expect(size_t x, size_t y, const unsigned char *got, unsigned char *expected) {
    double fx = x / (double)size - 0.5, fy = y / (double)size - 0.5;
    double value = 128 + 127 * sin(fabs(fx * 100) - fabs(fy * 100));
    double tol = (8 * 255 + 127 * 4 * 50) * 0x1p-24;
    expected[0] = expected[2] = 0;
    expected[1] = byte_near(value, tol, got[1]);
    expected[3] = 255;
}

// Also a picture whose size is no multiple of a block's
static bool check(const unsigned char *pixels) {
    bool ok = check_picture("pixel", pixels, size, size, expect, 0);
    Smaller picture(size, 77);
    DeviceArray<uchar4> small(size * size, 0);
    kernel<<<dim3(5, 5), dim3(16, 16)>>>(small, size);
    HANDLE_LAUNCH();
    HostArray<uchar4> got(small, size * size);
    ok = check_picture("pixel of a small picture", &got[0].x, size, size, expect, 0) && ok;
    if (ok)
        puts("The picture that OpenGL drew is right.");
    return ok;
}

// Task: kernel(): One thread per pixel of a picture of size x size pixels: the thread with the coordinates
// (x, y) in the grid computes pixel (x, y). Threads outside the picture do nothing. Let fx = x / size - 0.5
// and fy = y / size - 0.5, in float. The pixel ptr[x + y * size] has red 0, green
// 128 + 127 * sin(fabs(100 * fx) - fabs(100 * fy)), blue 0 and alpha 255.
