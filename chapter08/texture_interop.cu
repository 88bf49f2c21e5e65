// SPDX-License-Identifier: MIT
/*
 * texture_interop: a kernel processes a picture that OpenGL has rendered into a texture
 *
 * Teaches: A registered texture of OpenGL is mapped as a CUDA array. The layout of a CUDA array is opaque,
 *          so kernels read and write it through a surface object, not through a pointer. Here OpenGL
 *          renders into the texture, through a framebuffer object, a kernel changes the colours, and
 *          OpenGL copies the texture to the window.
 * Terms:   interoperability, surface object, CUDA array, register a resource, map, unmap, texel
 * Book:    8.2 (course); N arrays (written by kernels)
 * Build:   nvcc -o texture_interop chapter08/texture_interop.cu common/lib/[a-z]*.c -DHAVE_GL -lEGL -lGL
 * Run:     ./bin/chapter08/texture_interop --output texture.png
 * Differs: the copy of a framebuffer replaces glDrawPixels, which OpenGL's core profile no longer has.
 * Needs:   gl
 * Picture: yes
 * Check:   --size 77 --frames 3
 */
#include "../common/book.h"
#include "../common/interop.h" // the headers of OpenGL, gl_context_open(), INTEROP_WORKS

#define DIM 512

static size_t size = DIM;               // --size
static GLuint texture, framebuffer;     // OpenGL objects; rendering to the framebuffer changes the texture
static cudaGraphicsResource_t resource; // the same texture for CUDA; NULL if CUDA cannot share it
static int last_ticks;                  // the number of the last frame
static void copy_through_host(void);
static void check_earlier_frame(void);
static bool check(const unsigned char *pixels);

// Red and green become their complements, and blue shows nested squares.
__global__ void kernel(cudaSurfaceObject_t surface, int size) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    uchar4 c = surf2Dread<uchar4>(surface, x * (int)sizeof(uchar4), y); // x is in bytes
    c = make_uchar4(255 - c.x, 255 - c.y, x ^ y, 255);
    surf2Dwrite(c, surface, x * (int)sizeof(uchar4), y);
}

static void run_kernel(cudaArray_t array) {
    cudaResourceDesc desc = {};
    desc.resType = cudaResourceTypeArray;
    desc.res.array.array = array;
    cudaSurfaceObject_t surface;
    HANDLE_ERROR(cudaCreateSurfaceObject(&surface, &desc));
    dim3 grids((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<grids, threads>>>(surface, size);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDestroySurfaceObject(surface));
}

// OpenGL renders 16 stripes from left to right. Each one reaches to the right edge, and the next one covers
// all but its left part.
static void render(int ticks) {
    GLint window;
    glGetIntegerv(GL_FRAMEBUFFER_BINDING, &window);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glEnable(GL_SCISSOR_TEST);
    for (int i = 0; i < 16; i++) {
        glScissor(size * i / 16, 0, size, size);
        glClearColor(i / 15.0f, ticks % 16 / 15.0f, 0, 1);
        glClear(GL_COLOR_BUFFER_BIT);
    }
    glDisable(GL_SCISSOR_TEST);
    glBindFramebuffer(GL_FRAMEBUFFER, window);
}

// OpenGL renders, CUDA processes: while the texture is mapped, only CUDA may use it.
static void generate_frame(void *, int ticks) {
    last_ticks = ticks;
    render(ticks);
    if (!resource) {
        copy_through_host();
        return;
    }
    cudaArray_t array;
    HANDLE_ERROR(cudaGraphicsMapResources(1, &resource, NULL));
    HANDLE_ERROR(cudaGraphicsSubResourceGetMappedArray(&array, resource, 0, 0));
    run_kernel(array);
    HANDLE_ERROR(cudaGraphicsUnmapResources(1, &resource, NULL));
}

// OpenGL shows: it copies from the framebuffer with the texture to that of the window, whose size may differ.
static void draw_func(void *) {
    GLint window, view[4];
    glGetIntegerv(GL_DRAW_FRAMEBUFFER_BINDING, &window);
    glGetIntegerv(GL_VIEWPORT, view);
    glBindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer);
    glBlitFramebuffer(0, 0, size, size, view[0], view[1], view[0] + view[2], view[1] + view[3],
                      GL_COLOR_BUFFER_BIT, GL_NEAREST);
    glBindFramebuffer(GL_READ_FRAMEBUFFER, window);
}

// Called after the last frame, while the OpenGL context still exists.
static void release(void *) {
    check_earlier_frame();
    if (resource)
        HANDLE_ERROR(cudaGraphicsUnregisterResource(resource));
    glDeleteFramebuffers(1, &framebuffer);
    glDeleteTextures(1, &texture);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    Canvas canvas = {};
    canvas.width = canvas.height = size;
    canvas.pixels = (unsigned char *)malloc(size * size * 4);
    HANDLE_NULL(canvas.pixels);
    canvas.frame = generate_frame;
    canvas.draw = draw_func;
    canvas.release = release;
    gl_context_open(&canvas, options.device);

    GLint window;
    glGetIntegerv(GL_FRAMEBUFFER_BINDING, &window);
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, size, size, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST); // the default needs mipmaps
    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    glBindFramebuffer(GL_FRAMEBUFFER, window);
    if (!INTEROP_WORKS(cudaGraphicsGLRegisterImage(&resource, texture, GL_TEXTURE_2D,
                                                   cudaGraphicsRegisterFlagsSurfaceLoadStore)))
        resource = NULL;

    display_canvas(&canvas); // calls generate_frame and draw_func, and reads back what OpenGL drew
    bool ok = check(canvas.pixels);
    free(canvas.pixels);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Animates a picture that OpenGL renders and CUDA processes.", ANIMATION,
              {OPTION_SIZE("size", &size, 1, 16384, "pixels a side")});
    require_memory(5 * size * size * 4, size * size * 4);
}

// For drivers that refuse to share the texture: it is copied through the host to an array of CUDA and back.
static void copy_through_host(void) {
    const size_t width = size * 4;
    HostArray<unsigned char> host(width * size);
    cudaChannelFormatDesc rgba = cudaCreateChannelDesc<uchar4>();
    cudaArray_t array;
    HANDLE_ERROR(cudaMallocArray(&array, &rgba, size, size, cudaArraySurfaceLoadStore));
    glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, host);
    HANDLE_ERROR(cudaMemcpy2DToArray(array, 0, 0, host, width, width, size, cudaMemcpyHostToDevice));
    run_kernel(array);
    HANDLE_ERROR(cudaMemcpy2DFromArray(host, width, array, 0, 0, width, size, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFreeArray(array));
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, size, size, GL_RGBA, GL_UNSIGNED_BYTE, host);
}

static void expect(size_t x, size_t y, const unsigned char *, unsigned char *expected) {
    expected[0] = 255 - 17 * ((16 * x + 15) / size); // the number of the stripe
    expected[1] = 255 - 17 * (last_ticks % 16);
    expected[2] = x ^ y;
    expected[3] = 255;
}

// Draws another frame once more and checks the texture.
static bool earlier_right;

static void check_earlier_frame(void) {
    HostArray<unsigned char> pixels(size * size * 4);
    const int last = last_ticks;
    generate_frame(NULL, 10);
    glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    earlier_right = check_picture("pixel of frame 10", pixels, size, size, expect, 0);
    last_ticks = last;
}

static bool check(const unsigned char *pixels) {
    bool ok = check_picture("pixel", pixels, size, size, expect, 0) && earlier_right;
    if (ok)
        printf("Frame %d is right, as OpenGL drew it.\n", last_ticks);
    return ok;
}

// Task: kernel(): One thread per pixel of a picture of size x size pixels: the thread with the coordinates
// (x, y) in the grid reads the uchar4 of pixel (x, y) from the surface with surf2Dread<uchar4>(), replaces
// red and green by 255 minus their values, blue by x ^ y and alpha by 255, and writes it back with
// surf2Dwrite(). Both take the x coordinate in bytes. Threads outside the picture do nothing.
