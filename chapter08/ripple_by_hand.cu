// SPDX-License-Identifier: MIT
/*
 * ripple_by_hand: the ripple with the calls and callbacks of GLUT in the program itself
 *
 * Teaches: What GPUAnimBitmap does for ripple is written out here. GLUT has the main loop, and calls
 *          functions of the program: for each event of the keyboard and the mouse, when the window has to be
 *          drawn, and whenever no event waits. The last of them, the idle function, computes the next frame
 *          in a pixel buffer and asks GLUT to draw it. Dragging with the mouse moves the waves.
 * Terms:   interoperability, pixel buffer, frame, callback, OpenGL context, map, unmap, event
 * Book:    8.3.1 (after the book)
 * After:   chapter08/ripple
 * Build:   nvcc -o ripple_by_hand chapter08/ripple_by_hand.cu common/lib/[a-z]*.c common/old/glut.c -DHAVE_GL
 *          -lEGL -lGL -DHAVE_GLUT -lglut
 * Run:     ./bin/chapter08/ripple_by_hand --output ripple.webp
 * Differs: functions of the program stand for the member functions of the page's class. Without a display
 *          common/old/glut.c stands for freeglut: it draws into a file, and then presses Esc.
 * Needs:   gl libs=glut
 * Picture: as chapter05/ripple
 * Check:   --size 101 --frames 2
 */
#include "../common/book.h"
#include "../common/interop.h" // the headers of OpenGL, INTEROP_WORKS
#include <GL/freeglut.h>

#define DIM 1024

static size_t size = DIM;               // --size
static GLuint bufferObj;                // the pixel buffer for OpenGL
static cudaGraphicsResource_t resource; // the same buffer for CUDA; NULL if the driver refuses to share it
static int frames;                      // how many have been computed; the next one has this number
static float centre_x, centre_y;        // where the waves start, in pixels, y counting upwards
static int dragStartX, dragStartY;      // where the mouse was at the last event, y counting downwards
static cudaEvent_t start, stop;
static float totalTime;
static void copy_through_host(void);
static void check(void);
static bool right; // what check() found

__global__ void kernel(uchar4 *ptr, size_t size, float centre_x, float centre_y, int ticks) {
    unsigned x = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= size || y >= size)
        return;
    size_t offset = x + y * size;

    float fx = x - centre_x;
    float fy = y - centre_y;
    float d = sqrtf(fx * fx + fy * fy);
    unsigned char grey = 128.0f + 127.0f * cosf(d / 10.0f - ticks / 7.0f) / (d / 10.0f + 1.0f);
    ptr[offset] = make_uchar4(grey, grey, grey, 255);
}

static void generate_frame(uchar4 *pixels, int ticks) {
    dim3 grids((size + 15) / 16, (size + 15) / 16), threads(16, 16);
    kernel<<<grids, threads>>>(pixels, size, centre_x, centre_y, ticks);
    HANDLE_LAUNCH();
}

// GLUT calls it when no event waits. It computes the next frame; GLUT calls draw_func when this has returned.
static void idle_func(void) {
    float elapsedTime;
    HANDLE_ERROR(cudaEventRecord(start, 0));
    if (resource) {
        uchar4 *devPtr;
        size_t bytes;
        HANDLE_ERROR(cudaGraphicsMapResources(1, &resource, NULL));
        HANDLE_ERROR(cudaGraphicsResourceGetMappedPointer((void **)&devPtr, &bytes, resource));
        generate_frame(devPtr, frames);
        HANDLE_ERROR(cudaGraphicsUnmapResources(1, &resource, NULL));
    } else
        copy_through_host();
    HANDLE_ERROR(cudaEventRecord(stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(stop));
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, start, stop));
    totalTime += elapsedTime;
    frames++;
    glutPostRedisplay();
    if (options.frames_given && frames == (int)options.frames)
        glutLeaveMainLoop();
}

// GLUT calls it to draw the window. The pixel buffer is bound, so the last argument is an offset into it.
static void draw_func(void) {
    glDrawPixels(size, size, GL_RGBA, GL_UNSIGNED_BYTE, 0);
    glutSwapBuffers();
}

// A button of the mouse was pressed or released at (x, y).
static void mouse_func(int, int, int x, int y) {
    dragStartX = x;
    dragStartY = y;
}

// The mouse was moved to (x, y) while a button is down: the waves move with it. GLUT counts rows from the top
// of the window, OpenGL from the bottom.
static void motion_func(int x, int y) {
    centre_x += x - dragStartX;
    centre_y -= y - dragStartY;
    mouse_func(0, 0, x, y);
}

static void key_func(unsigned char key, int, int) {
    if (key == 27 || key == 'q') // 27 is Esc
        glutLeaveMainLoop();
}

// Called before the window is closed, by glutLeaveMainLoop or its button, while the context still exists.
static void close_func(void) {
    check();
    if (resource)
        HANDLE_ERROR(cudaGraphicsUnregisterResource(resource));
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    glDeleteBuffers(1, &bufferObj);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    centre_x = centre_y = size / 2;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));

    // The window with its OpenGL context, which all calls of OpenGL need
    glutInit(&argc, argv);
    glutInitDisplayMode(GLUT_DOUBLE | GLUT_RGBA);
    glutInitWindowSize(size, size);
    glutCreateWindow("ripple by hand");

    glGenBuffers(1, &bufferObj);
    glBindBuffer(GL_PIXEL_UNPACK_BUFFER, bufferObj);
    glBufferData(GL_PIXEL_UNPACK_BUFFER, size * size * 4, NULL, GL_DYNAMIC_DRAW);
    if (!INTEROP_WORKS(
            cudaGraphicsGLRegisterBuffer(&resource, bufferObj, cudaGraphicsRegisterFlagsWriteDiscard)))
        resource = NULL;

    glutKeyboardFunc(key_func);
    glutMouseFunc(mouse_func);
    glutMotionFunc(motion_func);
    glutDisplayFunc(draw_func);
    glutIdleFunc(idle_func);
    glutCloseFunc(close_func);
    // GLUT itself never returns from its main loop; freeglut does with this option.
    glutSetOption(GLUT_ACTION_ON_WINDOW_CLOSE, GLUT_ACTION_GLUTMAINLOOP_RETURNS);
    glutMainLoop();

    printf("Average Time per frame:  %3.1f ms\n", totalTime / frames);
    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/ripple.h"

void settings(int argc, char **argv) {
    configure(argc, argv, "Animates a ripple in OpenGL's memory, with GLUT.", ANIMATION | TIMES,
              {OPTION_SIZE("size", &size, 1, 16384, "pixels a side")});
    require_memory(4 * size * size * 4, size * size * 4);
}

// A frame without interoperability
static void copy_through_host(void) {
    DeviceArray<uchar4> pixels(size * size, 0);
    generate_frame(pixels, frames);
    HostArray<uchar4> host(pixels, size * size);
    glBufferSubData(GL_PIXEL_UNPACK_BUFFER, 0, size * size * 4, host);
}

static void draw(void *) {
    draw_func();
}

// The last frame, as OpenGL draws it once more, into memory; and frame EARLIER
static void check(void) {
    // First it is computed again: the mouse may have been moved since, or the window closed before any frame.
    float time = totalTime;
    totalTime = 0;
    frames -= frames > 0;
    idle_func();
    const bool timed = check_value("totalTime > 0", totalTime > 0, 1, 0);
    totalTime = time;
    HostArray<unsigned char> drawn(size * size * 4);
    Canvas canvas = {};
    canvas.pixels = drawn;
    canvas.width = canvas.height = size;
    canvas.draw = draw;
    gl_read_back(&canvas);
    // The centre, which only the mouse of a window can have moved; then a drag by four columns to the right
    // and nine rows upwards, in two steps
    const float x = centre_x, y = centre_y, middle = size / 2;
    mouse_func(GLUT_LEFT_BUTTON, GLUT_DOWN, 10, 20);
    motion_func(13, 15);
    motion_func(14, 11);
    const float places[] = {x, y, centre_x - x, centre_y - y};
    const double expected[] = {options.window ? x : middle, options.window ? y : middle, 4, 9};
    const bool follows = check_floats("centre and drag", places, expected, 4, 0);
    centre_x = x;
    centre_y = y;
    {
        Smaller picture(size, EARLIER_SIZE);
        DeviceArray<uchar4> pixels(size * size, 0);
        generate_frame(pixels, EARLIER);
        HostArray<uchar4> got(pixels, size * size);
        earlier_right = is_ripple(&got[0].x, size, centre_x, centre_y, EARLIER);
    }
    right =
        check_ripple(drawn, size, centre_x, centre_y, frames - 1, ", as OpenGL drew it") && follows && timed;
    printf("The waves start at (%g, %g).\n", centre_x, centre_y);
}

// Task: kernel(): One thread per pixel of a picture of size x size pixels: the thread with the coordinates
// (x, y) in the grid computes pixel (x, y). Threads outside the picture do nothing. Let d be the distance of
// (x, y) from (centre_x, centre_y). The grey value is 128 + 127 * cos(d / 10 - ticks / 7) / (d / 10 + 1), all
// in float. The pixel ptr[x + y * size] has the grey value as red, green and blue, and alpha 255.
// motion_func(): Move the centre of the waves as far as the mouse has moved since (dragStartX, dragStartY),
// and store (x, y) there. Rows of x and y are counted from the top, those of the centre from the bottom.
// idle_func(): Map the buffer, let generate_frame write the frame with the number `frames` into it, and unmap
// it. If resource is NULL, call copy_through_host instead. Add the time that this takes, measured with the
// events start and stop, to totalTime. Count the frame, and ask GLUT to draw the window. If --frames was
// given and the last frame is done, leave the main loop.
