// SPDX-License-Identifier: MIT
/*
 * texture_interop: a kernel writes a texture of OpenGL, and a shader draws it
 *
 * Teaches: Textures of OpenGL are CUDA arrays, which a kernel writes through a surface object. The
 *          picture is a textured quad: what is drawn this way can be turned, scaled and lit, and
 *          unlike glDrawPixels it is still in OpenGL's core profile.
 * Book:    8.2 (course)
 * Run:     ./bin/chapter08/texture_interop --output texture.png
 * Needs:   gl
 * Picture: yes
 */
#define GL_GLEXT_PROTOTYPES // declares what OpenGL has had since 1.2
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
    int ticks; // of the frame drawn last
    GLuint texture, vertices, program;
    cudaGraphicsResource_t resource; // NULL where interop is refused, which has
    cudaArray_t array;               // an array instead, and memory to copy it through
    unsigned char *host;
};

// Squares within squares; whole numbers, so that every machine makes the same of them.
__host__ __device__ static uchar4 colour(unsigned x, unsigned y, int ticks) {
    return make_uchar4((x ^ y) + ticks, y / 2, (x & y) - 2 * ticks, 255);
}

__global__ void kernel(cudaSurfaceObject_t surface, size_t size, int ticks) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x < (int)size && y < (int)size)
        surf2Dwrite(colour(x, y, ticks), surface, x * (int)sizeof(uchar4), y); // x in bytes
}

static void run_kernel(cudaArray_t array, size_t size, int ticks) {
    cudaResourceDesc desc = {};
    desc.resType = cudaResourceTypeArray;
    desc.res.array.array = array;
    cudaSurfaceObject_t surface;
    HANDLE_ERROR(cudaCreateSurfaceObject(&surface, &desc));
    unsigned side = (size + 15) / 16;
    dim3 blocks(side, side), threads(16, 16);
    kernel<<<blocks, threads>>>(surface, size, ticks);
    HANDLE_LAUNCH();
    HANDLE_ERROR(cudaDestroySurfaceObject(surface));
}

static void generate_frame(void *data, int ticks) {
    DataBlock *d = (DataBlock *)data;
    d->ticks = ticks;
    if (d->resource) {
        cudaArray_t array;
        HANDLE_ERROR(cudaGraphicsMapResources(1, &d->resource, NULL));
        HANDLE_ERROR(cudaGraphicsSubResourceGetMappedArray(&array, d->resource, 0, 0));
        run_kernel(array, d->size, ticks);
        HANDLE_ERROR(cudaGraphicsUnmapResources(1, &d->resource, NULL));
    } else {
        run_kernel(d->array, d->size, ticks);
        HANDLE_ERROR(cudaMemcpy2DFromArray(d->host, d->size * 4, d->array, 0, 0, d->size * 4,
                                           d->size, cudaMemcpyDeviceToHost));
        glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, d->size, d->size, GL_RGBA, GL_UNSIGNED_BYTE,
                        d->host);
    }
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

// Four vertices in the corners of the picture, and a texture that covers them. The vertex shader
// knows their places by their numbers, so there are no buffers.
static void create_quad(DataBlock *d) {
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
    d->program = glCreateProgram();
    glAttachShader(d->program, vertex);
    glAttachShader(d->program, fragment);
    glLinkProgram(d->program);
    glDeleteShader(vertex);
    glDeleteShader(fragment);
    glGenVertexArrays(1, &d->vertices);
    glGenTextures(1, &d->texture);
    glBindTexture(GL_TEXTURE_2D, d->texture);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST); // there are no mipmaps
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, d->size, d->size, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
}

static void draw_quad(void *data) {
    DataBlock *d = (DataBlock *)data;
    glUseProgram(d->program);
    glBindVertexArray(d->vertices);
    glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
    glBindVertexArray(0);
    glUseProgram(0);
}

static void release(void *data) {
    DataBlock *d = (DataBlock *)data;
    if (d->resource)
        HANDLE_ERROR(cudaGraphicsUnregisterResource(d->resource));
    HANDLE_ERROR(cudaFreeArray(d->array));
    free(d->host);
    glDeleteTextures(1, &d->texture);
    glDeleteVertexArrays(1, &d->vertices);
    glDeleteProgram(d->program);
}

static bool check(const DataBlock *d, const unsigned char *pixels) {
    uchar4 *expected = (uchar4 *)malloc(d->bytes);
    HANDLE_NULL(expected);
    for (size_t i = 0; i < d->size * d->size; i++)
        expected[i] = colour(i % d->size, i / d->size, d->ticks);
    bool ok = check_pixels("pixel", pixels, (unsigned char *)expected, d->size * d->size, 0);
    free(expected);
    return ok;
}

int main(int argc, char **argv) {
    DataBlock data = {};
    data.size = DIM;
    const Option own[] = {OPTION_SIZE("size", &data.size, 1, 16384, "pixels a side"), OPTION_END};
    parse_options(argc, argv, "Animates a texture of OpenGL.", ANIMATION, own);
    select_device();
    data.bytes = data.size * data.size * 4;
    require_memory(6 * data.bytes, data.bytes);

    Canvas canvas = {};
    canvas.width = canvas.height = data.size;
    canvas.pixels = (unsigned char *)calloc(data.bytes, 1);
    HANDLE_NULL(canvas.pixels);
    canvas.data = &data;
    canvas.frame = generate_frame;
    canvas.draw = draw_quad;
    canvas.release = release;
    gl_context_open(&canvas, options.device);
    create_quad(&data);
    if (!INTEROP_WORKS(cudaGraphicsGLRegisterImage(&data.resource, data.texture, GL_TEXTURE_2D,
                                                   cudaGraphicsRegisterFlagsSurfaceLoadStore))) {
        cudaChannelFormatDesc rgba = cudaCreateChannelDesc<uchar4>();
        data.resource = NULL;
        HANDLE_ERROR(
            cudaMallocArray(&data.array, &rgba, data.size, data.size, cudaArraySurfaceLoadStore));
        HANDLE_NULL(data.host = (unsigned char *)malloc(data.bytes));
    }

    display_canvas(&canvas); // leaves in the pixels what was drawn last
    inject_error(canvas.pixels, data.bytes);
    bool ok = check(&data, canvas.pixels);
    if (ok)
        printf("Frame %d is right, as OpenGL drew it.\n", data.ticks);
    free(canvas.pixels);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
