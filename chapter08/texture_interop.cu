// SPDX-License-Identifier: MIT
/*
 * texture_interop: a kernel writes into a texture of OpenGL through a surface object
 *
 * Teaches: A registered texture of OpenGL is mapped as a CUDA array. The layout of a CUDA array is opaque, so
 *          kernels write to it through a surface object, not through a pointer. OpenGL draws the texture on
 *          a rectangle with two shaders: programs that the GPU runs for each corner and for each pixel.
 *          They replace glDrawPixels, which OpenGL's core profile no longer has.
 * Terms:   interoperability, surface object, CUDA array, register a resource, map, unmap, texel
 * Book:    8.2 (course)
 * Build:   nvcc -o texture_interop chapter08/texture_interop.cu common/lib/[a-z]*.c -DHAVE_GL -lEGL -lGL
 * Run:     ./bin/chapter08/texture_interop --output texture.png
 * Needs:   gl
 * Picture: yes
 * Check:   --size 77 --frames 3
 */
#include "../common/book.h"
#include "../common/interop.h" // the headers of OpenGL, gl_context_open(), INTEROP_WORKS

#define DIM 512

static size_t size = DIM;                 // --size
static GLuint texture, vertices, program; // OpenGL objects; vertices and program draw the texture
static cudaGraphicsResource_t resource;   // the same texture for CUDA; NULL if CUDA cannot share it
static int last_ticks;                    // the number of the last frame
static void copy_through_host(int ticks);
static void check_earlier_frame(void);
static bool check(const unsigned char *pixels);

// Nested squares, in integer arithmetic, so that every machine computes the same picture.
__device__ static uchar4 colour(unsigned x, unsigned y, int ticks) {
    return make_uchar4((x ^ y) + ticks, y / 2, (x & y) - 2 * ticks, 255);
}

__global__ void kernel(cudaSurfaceObject_t surface, int size, int ticks) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < size && y < size)
        surf2Dwrite(colour(x, y, ticks), surface, x * (int)sizeof(uchar4), y); // x is in bytes
}

static void run_kernel(cudaArray_t array, int ticks) {
    cudaResourceDesc desc = {};
    desc.resType = cudaResourceTypeArray;
    desc.res.array.array = array;
    cudaSurfaceObject_t surface;
    HANDLE_ERROR(cudaCreateSurfaceObject(&surface, &desc));

    dim3 grids((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<grids, threads>>>(surface, size, ticks);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDestroySurfaceObject(surface));
}

// While the texture is mapped, only CUDA may use it; after unmapping, only OpenGL.
static void generate_frame(void *, int ticks) {
    last_ticks = ticks;
    if (!resource) {
        copy_through_host(ticks);
        return;
    }
    cudaArray_t array;
    HANDLE_ERROR(cudaGraphicsMapResources(1, &resource, NULL));
    HANDLE_ERROR(cudaGraphicsSubResourceGetMappedArray(&array, resource, 0, 0));
    run_kernel(array, ticks);
    HANDLE_ERROR(cudaGraphicsUnmapResources(1, &resource, NULL));
}

static GLuint compile(GLenum type, const char *source) {
    GLuint shader = glCreateShader(type);
    GLint ok;
    glShaderSource(shader, 1, &source, NULL);
    glCompileShader(shader);
    glGetShaderiv(shader, GL_COMPILE_STATUS, &ok);
    if (!ok) {
        char log[1000];
        glGetShaderInfoLog(shader, sizeof(log), NULL, log);
        quit(EXIT_FAILURE, "the shader does not compile: %s", log);
    }
    return shader;
}

// Creates a rectangle that covers the picture, with the texture on it. The vertex shader computes each corner
// from the number of the vertex, so no buffer of vertices is needed.
static void create_quad(void) {
    GLuint vertex = compile(GL_VERTEX_SHADER, R"(#version 330 core
        out vec2 place;
        void main() {
            place = vec2(gl_VertexID % 2, gl_VertexID / 2);
            gl_Position = vec4(2 * place - 1, 0, 1);
        })");
    GLuint fragment = compile(GL_FRAGMENT_SHADER, R"(#version 330 core
        uniform sampler2D picture;
        in vec2 place;
        out vec4 colour;
        void main() { colour = texture(picture, place); })");
    program = glCreateProgram();
    glAttachShader(program, vertex);
    glAttachShader(program, fragment);
    glLinkProgram(program);
    glDeleteShader(vertex);
    glDeleteShader(fragment);
    glGenVertexArrays(1, &vertices);
}

static void draw_quad(void *) {
    glUseProgram(program);
    glBindVertexArray(vertices);
    glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
    glBindVertexArray(0);
    glUseProgram(0);
}

// Called after the last frame, while the OpenGL context still exists.
static void release(void *) {
    check_earlier_frame();
    if (resource)
        HANDLE_ERROR(cudaGraphicsUnregisterResource(resource));
    glDeleteTextures(1, &texture);
    glDeleteVertexArrays(1, &vertices);
    glDeleteProgram(program);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    Canvas canvas = {};
    canvas.width = canvas.height = size;
    canvas.pixels = (unsigned char *)malloc(size * size * 4);
    HANDLE_NULL(canvas.pixels);
    canvas.frame = generate_frame;
    canvas.draw = draw_quad;
    canvas.release = release;
    gl_context_open(&canvas, options.device);

    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST); // the default needs mipmaps
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, size, size, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    create_quad();
    if (!INTEROP_WORKS(cudaGraphicsGLRegisterImage(&resource, texture, GL_TEXTURE_2D,
                                                   cudaGraphicsRegisterFlagsSurfaceLoadStore)))
        resource = NULL;

    display_canvas(&canvas); // calls generate_frame and draw_quad, and reads back what OpenGL drew
    bool ok = check(canvas.pixels);
    free(canvas.pixels);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Animates a texture of OpenGL.", ANIMATION,
              {OPTION_SIZE("size", &size, 1, 16384, "pixels a side")});
    require_memory(5 * size * size * 4, size * size * 4);
}

// For drivers that refuse to share the texture: the kernel writes to an array of CUDA, which is copied to the
// host, and from there into the texture.
static void draw_in_host(unsigned char *host, int ticks) {
    cudaChannelFormatDesc rgba = cudaCreateChannelDesc<uchar4>();
    cudaArray_t array;
    HANDLE_ERROR(cudaMallocArray(&array, &rgba, size, size, cudaArraySurfaceLoadStore));
    run_kernel(array, ticks);
    HANDLE_ERROR(cudaMemcpy2DFromArray(host, size * 4, array, 0, 0, size * 4, size, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFreeArray(array));
}

static void copy_through_host(int ticks) {
    HostArray<unsigned char> host(size * size * 4);
    draw_in_host(host, ticks);
    glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, size, size, GL_RGBA, GL_UNSIGNED_BYTE, host);
}

static int expected_ticks;

static void expect(size_t x, size_t y, const unsigned char *, unsigned char *expected) {
    const size_t squares[] = {(x ^ y) + expected_ticks, y / 2, (x & y) - 2 * expected_ticks, 255};
    std::copy_n(squares, 4, expected); // the remainders modulo 256
}

static bool is_frame(const char *name, const unsigned char *pixels, int ticks) {
    expected_ticks = ticks;
    return check_picture(name, pixels, size, size, expect, 0);
}

// Draws another frame again, whose number has no divisor in common with the last one's by default (119), and
// checks the texture.
static bool earlier_right;

static void check_earlier_frame(void) {
    HostArray<unsigned char> pixels(size * size * 4);
    const int last = last_ticks;
    generate_frame(NULL, last / 2);
    glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    earlier_right = is_frame("pixel of an earlier frame", pixels, last / 2);
    last_ticks = last;
}

// The last frame and, in a size that is no multiple of a block's, frame 10
static bool check(const unsigned char *pixels) {
    bool ok = is_frame("pixel", pixels, last_ticks) && earlier_right;
    Smaller picture(size, 77);
    HostArray<unsigned char> small(size * size * 4);
    draw_in_host(small, 10);
    ok = is_frame("pixel of frame 10", small, 10) && ok;
    if (ok)
        printf("Frame %d is right, as OpenGL drew it.\n", last_ticks);
    return ok;
}

// Task: kernel(): One thread per pixel of a picture of size x size pixels: the thread with the coordinates
// (x, y) in the grid writes colour(x, y, ticks) to the surface at (x, y) with surf2Dwrite(), which takes the
// x coordinate in bytes. Threads outside the picture do nothing.
