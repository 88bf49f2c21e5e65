// SPDX-License-Identifier: MIT
// A window that shows a picture, made with freeglut. The event loop is our own, because freeglut's
// glutMainLoop ends the program.
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "../options.h"
#include "window.h"

#if HAVE_GLUT
#include <GL/freeglut.h>

static struct {
    const Canvas *canvas;
    int id;                           // 0: closed
    bool done;                        // the user has closed it, or pressed Esc or q
    int rows;                         // height of the window
    int left, bottom, across, upward; // position and size of the picture in the window
    bool dragging;
    int x, y;           // where the drag began, in pixels of the picture
    double next, since; // in seconds: when the next frame is due; when counting frames began
    int frames;
} window;

// On an error freeglut would end the program. This handler jumps back to the function that called
// freeglut instead.
static jmp_buf caller;
static char reason[256];

static void failed(const char *format, va_list values) {
    vsnprintf(reason, sizeof(reason), format, values);
    longjmp(caller, 1);
}

static void warned(const char *format, va_list values) {
    (void)format;
    (void)values;
}

const char *window_problem(void) {
    static bool ready;
    const char *display = getenv("DISPLAY");
    char *argv[] = {(char *)options.program, NULL};
    int argc = 1;
    if (ready)
        return NULL;
    if (!display || !*display)
        return "there is no display, DISPLAY is not set";
    if (setjmp(caller))
        return reason;
    glutInitErrorFunc(failed);
    glutInitWarningFunc(warned);
    glutInit(&argc, argv);
    glutSetOption(GLUT_ACTION_ON_WINDOW_CLOSE, GLUT_ACTION_CONTINUE_EXECUTION);
    ready = true;
    return NULL;
}

// Called on a change of the window's size: scales the picture to fit and centres it.
static void place(int columns, int rows) {
    double scale = fmin((double)columns / window.canvas->width, (double)rows / window.canvas->height);
    window.across = (int)fmax(1, round(window.canvas->width * scale));
    window.upward = (int)fmax(1, round(window.canvas->height * scale));
    window.left = (columns - window.across) / 2;
    window.bottom = (rows - window.upward) / 2;
    window.rows = rows;
    glViewport(window.left, window.bottom, window.across, window.upward);
}

static void draw(void) {
    glClear(GL_COLOR_BUFFER_BIT);
    glRasterPos2f(-1, -1);
    // A picture that is larger than its window is drawn a quarter of a pixel larger: rounding must not
    // leave the last column or row of the window without a pixel.
    float across = window.across + ((size_t)window.across < window.canvas->width ? 0.25f : 0);
    float upward = window.upward + ((size_t)window.upward < window.canvas->height ? 0.25f : 0);
    glPixelZoom(across / window.canvas->width, upward / window.canvas->height);
    if (window.canvas->draw)
        window.canvas->draw(window.canvas->data);
    else
        glDrawPixels((GLsizei)window.canvas->width, (GLsizei)window.canvas->height, GL_RGBA, GL_UNSIGNED_BYTE,
                     window.canvas->pixels);
    glutSwapBuffers();
}

// Called before the window is destroyed, by the user or by us, while its context still exists.
static void closed(void) {
    window.id = 0;
    window.done = true;
    if (window.canvas->close) {
        window.canvas->read_back(window.canvas);
        window.canvas->close(window.canvas);
    }
}

static void key_pressed(unsigned char key, int x, int y) {
    (void)x;
    (void)y;
    if (key == 27 || key == 'q' || key == 'Q')
        window.done = true; // freeglut fails if the window is destroyed here, perhaps twice
    else if (window.canvas->key)
        window.canvas->key(window.canvas->data, key);
}

// Converts a pixel of the window, y = 0 at the top, to the pixel of the picture drawn there.
static void find_pixel(int *x, int *y) {
    double column = (*x - window.left + 0.5) * window.canvas->width / window.across;
    double row = (window.rows - 1 - *y - window.bottom + 0.5) * window.canvas->height / window.upward;
    *x = (int)fmax(0, fmin(floor(column), window.canvas->width - 1.0));
    *y = (int)fmax(0, fmin(floor(row), window.canvas->height - 1.0));
}

static void mouse_moved(int x, int y) {
    if (!window.dragging || !window.canvas->drag)
        return;
    find_pixel(&x, &y);
    window.canvas->drag(window.canvas->data, window.x, window.y, x, y);
}

static void button_changed(int button, int state, int x, int y) {
    if (button != GLUT_LEFT_BUTTON)
        return;
    if (state == GLUT_DOWN) {
        window.dragging = true;
        window.x = x;
        window.y = y;
        find_pixel(&window.x, &window.y);
    }
    mouse_moved(x, y);
    window.dragging = state == GLUT_DOWN;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *window_open(const Canvas *canvas) {
    const char *problem = window_problem();
    if (window.id != 0)
        return NULL;
    if (!problem && (canvas->width == 0 || canvas->height == 0))
        problem = "an empty picture";
    if (problem)
        return problem;
    if (setjmp(caller))
        return reason;
    window.canvas = canvas;
    // At most nine tenths of the screen; small pictures are enlarged.
    double scale = fmin(0.9 * glutGet(GLUT_SCREEN_WIDTH) / window.canvas->width,
                        0.9 * glutGet(GLUT_SCREEN_HEIGHT) / window.canvas->height);
    scale = fmin(scale, fmax(1, floor(256 / fmax(window.canvas->width, window.canvas->height))));
    glutInitWindowSize((int)fmax(1, round(window.canvas->width * scale)),
                       (int)fmax(1, round(window.canvas->height * scale)));
    glutInitDisplayMode(GLUT_RGBA | GLUT_DOUBLE);
    glutInitContextFlags(getenv("GL_DEBUG") ? GLUT_DEBUG : 0);
    window.id = glutCreateWindow(options.program);
    glutReshapeFunc(place);
    glutDisplayFunc(draw);
    glutCloseFunc(closed);
    glutKeyboardFunc(key_pressed);
    glutIgnoreKeyRepeat(1);
    glutMouseFunc(button_changed);
    glutMotionFunc(mouse_moved);
    window.done = window.dragging = false;
    window.since = window.next = seconds();
    window.frames = 0;
    return NULL;
}

// Called after each frame: waits, for at most 60 frames per second, and shows the rate in the title.
static void keep_pace(void) {
    double now = seconds();
    if (now < window.next)
        usleep((useconds_t)(1e6 * (window.next - now)));
    window.next = fmax(window.next, now) + 1.0 / 60;
    window.frames++;
    if (window.canvas->frame && now - window.since >= 0.5) {
        char title[NAME_MAX + 40];
        snprintf(title, sizeof(title), "%s: %.1f frames/s", options.program,
                 window.frames / (now - window.since));
        glutSetWindowTitle(title);
        window.since = now;
        window.frames = 0;
    }
}

const char *window_show(const Canvas *canvas, const volatile sig_atomic_t *stop) {
    const size_t end = canvas->frame && options.frames_given ? options.frames : SIZE_MAX;
    if (setjmp(caller))
        return reason;
    size_t ticks = 0;
    do {
        if (canvas->frame) {
            canvas->frame(canvas->data, (int)ticks);
            glutPostRedisplay();
        } else if (seconds() >= window.since + 0.5) {
            // A still picture is drawn again twice a second: Mesa loses the first frame of a window whose
            // size changes before that frame is drawn.
            glutPostRedisplay();
            window.since = seconds();
        }
        glutMainLoopEvent();
        if (!window.done)
            keep_pace();
    } while (++ticks < end && !*stop && !window.done);
    if (window.id != 0) {
        glutDestroyWindow(window.id);
        glutMainLoopEvent();
    }
    return NULL;
}

#else
const char *window_problem(void) {
    return "built without freeglut (Debian: freeglut3-dev)";
}

const char *window_open(const Canvas *canvas) {
    (void)canvas;
    return window_problem();
}

const char *window_show(const Canvas *canvas, const volatile sig_atomic_t *stop) {
    (void)canvas;
    (void)stop;
    return window_problem();
}
#endif
