// SPDX-License-Identifier: MIT
/*
 * vertex_interop: a kernel moves the vertices of a surface that OpenGL draws
 *
 * Teaches: OpenGL shares vertex buffers with CUDA in the same way as pixel buffers. The kernel writes
 *          the positions of the vertices, here the heights of chapter 5's ripple, and OpenGL draws the
 *          triangles between them in perspective. No vertex is copied through the host.
 * Terms:   interoperability, vertex buffer, buffer object, register a resource, map, unmap, frame
 * Book:    8.2 (after the book)
 * Build:   nvcc -o vertex_interop chapter08/vertex_interop.cu common/lib/[a-z]*.c -DHAVE_GL -lEGL -lGL
 * Run:     ./bin/chapter08/vertex_interop --output vertices.png
 * Differs: the book names vertex buffers in its text, and has no program. The vertices are read back
 *          from OpenGL and checked after the last frame.
 * Needs:   gl
 * Picture: yes
 * Check:   --vertices 150 --size 200 --frames 1 | --vertices 19 --size 200 --frames 2
 */
#include "../common/book.h"
#include "../common/interop.h" // OpenGL, gl_context_open(), INTEROP_WORKS, Canvas, display_canvas()

#define DIM      512
#define VERTICES 256
#define HEIGHT   0.25f // of the highest wave; the surface is 2 units wide

static size_t size = DIM;   // --size, pixels a side
static size_t n = VERTICES; // --vertices, of a side of the surface
static int last_ticks;      // the number of the last frame
static GLuint buffer, indices, colours;
static cudaGraphicsResource_t resource; // the vertex buffer for CUDA; NULL if CUDA cannot share it
static float4 *vertices;                // host: the vertices of the last frame, read back from OpenGL
static void copy_through_host(int ticks);
static bool check(const unsigned char *pixels);

// y points upwards. w = 1 marks a position.
__global__ void kernel(float4 *vertices, size_t n, int ticks) {
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned j = threadIdx.y + blockIdx.y * blockDim.y;
    if (i >= n || j >= n)
        return;
    float fx = i - n / 2.0f;
    float fz = j - n / 2.0f;
    float d = sqrtf(fx * fx + fz * fz);
    float wave = cosf(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f);
    vertices[i + j * n] = make_float4(fx / (n / 2.0f), HEIGHT * wave, fz / (n / 2.0f), 1);
}

static void run_kernel(float4 *vertices, int ticks) {
    dim3 grids((n + 15) / 16, (n + 15) / 16), threads(16, 16);
    kernel<<<grids, threads>>>(vertices, n, ticks);
    HANDLE_LAUNCH();
}

// While the vertex buffer is mapped, only CUDA may use it; after unmapping, only OpenGL.
static void generate_frame(void *, int ticks) {
    last_ticks = ticks;
    if (!resource) {
        copy_through_host(ticks);
        return;
    }
    float4 *devPtr;
    size_t bytes;
    HANDLE_ERROR(cudaGraphicsMapResources(1, &resource, NULL));
    HANDLE_ERROR(cudaGraphicsResourceGetMappedPointer((void **)&devPtr, &bytes, resource));
    run_kernel(devPtr, ticks);
    HANDLE_ERROR(cudaGraphicsUnmapResources(1, &resource, NULL));
}

// Between two rows of vertices lies a strip of triangles, whose corners are taken from both in turn.
static void make_triangles(void) {
    size_t bytes = 2 * n * (n - 1) * sizeof(GLuint);
    GLuint *corners = (GLuint *)malloc(bytes);
    HANDLE_NULL(corners);
    for (size_t i = 0; i < n * (n - 1); i++) {
        corners[2 * i] = i;
        corners[2 * i + 1] = i + n;
    }
    glGenBuffers(1, &indices);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, indices);
    glBufferData(GL_ELEMENT_ARRAY_BUFFER, bytes, corners, GL_STATIC_DRAW);
    free(corners);
}

// The camera looks down on the surface at 40 degrees, from a distance of 3. The colour of a point depends on
// its height y: a texture of two texels is read at y / HEIGHT + 1/2. Between the middles of its texels, at
// 1/4 and 3/4, it is interpolated; beyond them it is clamped.
static void place_camera(void) {
    glMatrixMode(GL_PROJECTION);
    glLoadIdentity();
    glFrustum(-0.4, 0.4, -0.4, 0.4, 1, 10);
    glMatrixMode(GL_MODELVIEW);
    glLoadIdentity();
    glTranslatef(0, 0.15f, -3);
    glRotatef(40, 1, 0, 0);

    const unsigned char low_and_high[] = {0, 32, 96, 255, 255, 255, 255, 255};
    const float plane[] = {0, 1 / HEIGHT, 0, 0.5f};
    glGenTextures(1, &colours);
    glBindTexture(GL_TEXTURE_1D, colours);
    glTexParameteri(GL_TEXTURE_1D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
    glTexParameteri(GL_TEXTURE_1D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
    glTexImage1D(GL_TEXTURE_1D, 0, GL_RGBA8, 2, 0, GL_RGBA, GL_UNSIGNED_BYTE, low_and_high);
    glTexEnvi(GL_TEXTURE_ENV, GL_TEXTURE_ENV_MODE, GL_REPLACE);
    glTexGeni(GL_S, GL_TEXTURE_GEN_MODE, GL_OBJECT_LINEAR);
    glTexGenfv(GL_S, GL_OBJECT_PLANE, plane);
    glEnable(GL_TEXTURE_GEN_S);
    glEnable(GL_TEXTURE_1D);
}

// The buffers are bound, so the last arguments are offsets into them. The strips are drawn from the farthest
// to the nearest, so that near waves hide what is behind them.
static void draw_func(void *) {
    glVertexPointer(4, GL_FLOAT, 0, 0);
    for (size_t strip = 0; strip + 1 < n; strip++)
        glDrawElements(GL_TRIANGLE_STRIP, 2 * n, GL_UNSIGNED_INT, (void *)(strip * 2 * n * sizeof(GLuint)));
}

// Called after the last frame, while the OpenGL context still exists.
static void release(void *) {
    if (resource)
        HANDLE_ERROR(cudaGraphicsUnregisterResource(resource));
    glGetBufferSubData(GL_ARRAY_BUFFER, 0, n * n * sizeof(float4), vertices);
    GLuint buffers[] = {buffer, indices};
    glDeleteBuffers(2, buffers);
    glDeleteTextures(1, &colours);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    Canvas canvas = {};
    canvas.width = canvas.height = size;
    canvas.pixels = (unsigned char *)malloc(size * size * 4);
    vertices = (float4 *)malloc(n * n * sizeof(float4));
    HANDLE_NULL(canvas.pixels && vertices);
    canvas.frame = generate_frame;
    canvas.draw = draw_func;
    canvas.release = release;
    gl_context_open(&canvas, options.device);

    glGenBuffers(1, &buffer);
    glBindBuffer(GL_ARRAY_BUFFER, buffer);
    glBufferData(GL_ARRAY_BUFFER, n * n * sizeof(float4), NULL, GL_DYNAMIC_DRAW);
    glEnableClientState(GL_VERTEX_ARRAY);
    make_triangles();
    place_camera();
    if (!INTEROP_WORKS(
            cudaGraphicsGLRegisterBuffer(&resource, buffer, cudaGraphicsRegisterFlagsWriteDiscard)))
        resource = NULL;

    display_canvas(&canvas); // calls generate_frame and draw_func, and at the end release
    bool ok = check(canvas.pixels);
    free(canvas.pixels);
    free(vertices);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    options.frames = 45; // of an animation in a file; in the last one the middle is highest
    configure(argc, argv, "Animates a surface whose vertices a kernel moves.", ANIMATION,
              {OPTION_SIZE("size", &size, 1, 16384, "pixels a side"),
               OPTION_SIZE("vertices", &n, 2, 4096, "vertices of a side of the surface")});
    require_memory(7 * size * size * 4 + 10 * n * n * sizeof(float4), 2 * n * n * sizeof(float4));
}

// For drivers that refuse to share the buffer.
static void copy_through_host(int ticks) {
    DeviceArray<float4> devPtr(n * n);
    run_kernel(devPtr, ticks);
    HANDLE_ERROR(cudaMemcpy(vertices, devPtr, n * n * sizeof(float4), cudaMemcpyDeviceToHost));
    glBufferSubData(GL_ARRAY_BUFFER, 0, n * n * sizeof(float4), vertices);
}

// All coordinates against the formula in double, within 1e-5. In a very long animation the rounding of the
// angle exceeds that: at most seven roundings go into it.
static bool check_vertices(const float4 *vertices, int ticks) {
    const double half = n / 2.0, height = 0.25, tol = fmax(1e-5, 7 * height * (ticks / 7.0) * 0x1p-24);
    return check_floats("coordinate", &vertices[0].x, 4 * n * n, tol, [=](size_t i) {
        double fx = i / 4 % n - half, fz = i / 4 / n - half, ring = hypot(fx, fz) / 10;
        double wave = cos(ring - ticks / 7.0) / (ring + 1);
        const double position[] = {fx / half, height * wave, fz / half, 1};
        return position[i % 4];
    });
}

// A vertex as the camera sees it, in pixels
static double2 seen(float4 v) {
    double angle = 40 * M_PI / 180, up = v.y * cos(angle) - v.z * sin(angle) + 0.15;
    double half = 0.4 * (3 - v.y * sin(angle) - v.z * cos(angle)); // of the picture's width at this point
    return make_double2((v.x / half + 1) / 2 * size, (up / half + 1) / 2 * size);
}

// The distance of c from the line through a and b; its sign says on which side c is.
static double distance(double2 a, double2 b, double2 c) {
    return ((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)) / hypot(b.x - a.x, b.y - a.y);
}

// How much of the higher colour each pixel may show, from 0 to 1; -1 is the background, which is black.
static float *least, *most;

static double share(float4 v) {
    return fmin(fmax(2 * v.y / 0.25 + 0.5, 0), 1);
}

// If the centre of a pixel is more than a tenth of a pixel inside the triangle, the pixel shows it, with a
// colour between those of the corners. If it is less than that inside or outside, the pixel may show it.
static void draw_triangle(float4 v0, float4 v1, float4 v2) {
    const double2 a = seen(v0), b = seen(v1), c = seen(v2);
    const double low = fmin(share(v0), fmin(share(v1), share(v2))), side = copysign(1, distance(a, b, c));
    const double high = fmax(share(v0), fmax(share(v1), share(v2)));
    const size_t left = fmax(fmin(a.x, fmin(b.x, c.x)) - 1, 0),
                 right = fmin(fmax(fmax(a.x, fmax(b.x, c.x)) + 1, 0), size);
    const size_t below = fmax(fmin(a.y, fmin(b.y, c.y)) - 1, 0),
                 above = fmin(fmax(fmax(a.y, fmax(b.y, c.y)) + 1, 0), size);
    for (size_t y = below; y < above; y++)
        for (size_t x = left; x < right; x++) {
            const double2 p = make_double2(x + 0.5, y + 0.5);
            const double inside =
                fmin(side * distance(a, b, p), fmin(side * distance(b, c, p), side * distance(c, a, p)));
            if (inside < -0.1)
                continue;
            const size_t i = x + y * size;
            least[i] = inside > 0.1 ? low : fmin(low, least[i]);
            most[i] = inside > 0.1 ? high : fmax(high, most[i]);
        }
}

// OpenGL interpolates and rounds in its own way, which changes a colour by at most 2.
static void expect(size_t x, size_t y, const unsigned char *got, unsigned char *expected) {
    const double lowest[] = {0, 32, 96}, range[] = {least[x + y * size], most[x + y * size]};
    for (int c = 0; c < 3; c++) {
        double colour[2];
        for (int k = 0; k < 2; k++)
            colour[k] = range[k] < 0 ? 0 : lowest[c] + (255 - lowest[c]) * range[k];
        expected[c] = colour[0] - 2 <= got[c] && got[c] <= colour[1] + 2 ? got[c] : colour[0];
    }
    expected[3] = got[3];
}

// Compares the picture with the triangles of the vertices, drawn in the same order. Of those that the camera
// sees edge-on, another version of OpenGL may show a pixel less or more.
static bool check_triangles(const unsigned char *pixels) {
    HostArray<float> low(size * size, -1), high(size * size, -1);
    least = low;
    most = high;
    for (size_t j = 0; j + 1 < n; j++)
        for (size_t i = 0; i + 1 < n; i++) {
            const float4 *v = vertices + i + j * n;
            draw_triangle(v[0], v[n], v[1]);
            draw_triangle(v[n], v[1], v[n + 1]);
        }
    return check_picture("pixel", pixels, size, size, expect, 1e-4);
}

// Frame 10 of a small surface, whose side is no multiple of a block's
static bool check_small_surface(void) {
    Smaller surface(n, 77);
    DeviceArray<float4> devPtr(n * n, 0xff);
    run_kernel(devPtr, 10);
    return check_vertices(HostArray<float4>(devPtr, n * n), 10);
}

static bool check(const unsigned char *pixels) {
    bool ok = check_vertices(vertices, last_ticks) && check_triangles(pixels) && check_small_surface();
    if (ok)
        printf("The vertices of frame %d are right, as OpenGL has them.\n", last_ticks);
    return ok;
}

// Task: kernel(): One thread per vertex of a surface of n x n vertices: the thread with the coordinates
// (i, j) in the grid computes vertices[i + j * n]. Threads outside the surface do nothing. Let fx = i - n / 2
// and fz = j - n / 2, and let d be the length of (fx, fz), all in float. The vertex has x = fx / (n / 2),
// y = HEIGHT * cos(d / 10 - ticks / 7) / (d / 10 + 1), z = fz / (n / 2) and w = 1.
