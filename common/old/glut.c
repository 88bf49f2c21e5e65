// SPDX-License-Identifier: MIT
// GLUT without a display, for programs that call it themselves: those of `make old`, and
// chapter08/ripple_by_hand. They link this file in front of freeglut. If a window is to be shown, every call
// is passed on to freeglut. Otherwise the window is a framebuffer object, and glutMainLoop draws it as
// display.h does: into a file, a number of frames if the program animates; then it presses Esc and ends the
// program.
#if HAVE_GL && HAVE_GLUT
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <EGL/egl.h>
#include <GL/freeglut.h>
#include <GL/glext.h>
#include "../lib/display.h"
#include "../lib/gl_context.h"
#include "../options.h"

typedef struct Timer {
    void (*call)(int value);
    int value;
    struct Timer *next;
} Timer;

static struct {
    Canvas canvas;
    void (*display)(void);
    void (*reshape)(int width, int height);
    void (*keyboard)(unsigned char key, int x, int y);
    void (*idle)(void);
    void (*close)(void);
    Timer *timers;
    GLuint frame, buffers[2];                         // the framebuffer object
    void (*end)(const Canvas *canvas);                // closes the context
    bool open, reshaped, posted;                      // posted: the display callback is wanted again
    bool returns;                                     // glutMainLoop returns when the window is closed
    int number;                                       // of the frame
} window = {.canvas = {.width = 300, .height = 300}}; // GLUT's default

static bool has_display(void) {
    const char *display = getenv("DISPLAY");
    return options.window < 0 ? !options.output && display && *display : options.window;
}

static double milliseconds(void) {
    static double start = -1;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double time = 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
    if (start < 0)
        start = time;
    return time - start;
}

// PASS_ON(type, name, parameters, arguments): in a function of that name, with a display, calls freeglut's.
#define PASS_ON(type, name, parameters, arguments)                                                           \
    static type(*freeglut) parameters;                                                                       \
    if (has_display()) {                                                                                     \
        if (!freeglut && !(*(void **)&freeglut = dlsym(RTLD_NEXT, #name)))                                   \
            quit(EXIT_FAILURE, "freeglut has no " #name);                                                    \
        return freeglut arguments;                                                                           \
    }

// Defines a GLUT function: it calls freeglut's function if there is a display, otherwise the code that
// follows.
#define DEFINE(type, name, parameters, arguments, ...)                                                       \
    type name parameters {                                                                                   \
        PASS_ON(type, name, parameters, arguments)                                                           \
        __VA_ARGS__;                                                                                         \
    }
#define IGNORE(name, parameters, arguments) DEFINE(void, name, parameters, arguments, (void)0)
#define STORE(name, member, parameters)                                                                      \
    DEFINE(void, name, (void(*call) parameters), (call), window.member = call)

// window.c may have called it, to find out whether there is a display. A second call would be an error, and
// so would be its handler of errors after that.
void glutInit(int *argc, char **argv) {
    static bool called;
    if (called) {
        glutInitErrorFunc(NULL);
        return;
    }
    called = true;
    PASS_ON(void, glutInit, (int *, char **), (argc, argv))
}
IGNORE(glutInitDisplayMode, (unsigned mode), (mode))
IGNORE(glutInitWindowPosition, (int x, int y), (x, y))
IGNORE(glutSetWindow, (int window), (window))
IGNORE(glutSetWindowTitle, (const char *title), (title))
IGNORE(glutSetIconTitle, (const char *title), (title))
IGNORE(glutPositionWindow, (int x, int y), (x, y))
IGNORE(glutReshapeWindow, (int width, int height), (width, height))
IGNORE(glutFullScreen, (void), ())
IGNORE(glutShowWindow, (void), ())
IGNORE(glutHideWindow, (void), ())
IGNORE(glutIconifyWindow, (void), ())
IGNORE(glutPopWindow, (void), ())
IGNORE(glutSetCursor, (int cursor), (cursor))
IGNORE(glutIgnoreKeyRepeat, (int ignore), (ignore))
IGNORE(glutMouseFunc, (void (*call)(int, int, int, int)), (call))
IGNORE(glutMotionFunc, (void (*call)(int, int)), (call))
IGNORE(glutPassiveMotionFunc, (void (*call)(int, int)), (call))
IGNORE(glutEntryFunc, (void (*call)(int)), (call))
IGNORE(glutVisibilityFunc, (void (*call)(int)), (call))
IGNORE(glutSpecialFunc, (void (*call)(int, int, int)), (call))
IGNORE(glutSpecialUpFunc, (void (*call)(int, int, int)), (call))
IGNORE(glutKeyboardUpFunc, (void (*call)(unsigned char, int, int)), (call))
IGNORE(glutAddMenuEntry, (const char *label, int value), (label, value))
IGNORE(glutAddSubMenu, (const char *label, int menu), (label, menu))
IGNORE(glutAttachMenu, (int button), (button))
IGNORE(glutDetachMenu, (int button), (button))
IGNORE(glutSetMenu, (int menu), (menu))
IGNORE(glutBitmapCharacter, (void *font, int character), (font, character))
IGNORE(glutBitmapString, (void *font, const unsigned char *text), (font, text))
IGNORE(glutStrokeCharacter, (void *font, int character), (font, character))

void glutInitWindowSize(int width, int height) {
    PASS_ON(void, glutInitWindowSize, (int, int), (width, height))
    window.canvas.width = width > 0 ? (size_t)width : 300;
    window.canvas.height = height > 0 ? (size_t)height : 300;
}

// Calls the program's callbacks for one picture, and reads it back.
static void read_back(const Canvas *canvas) {
    GLsizei width = (GLsizei)canvas->width, height = (GLsizei)canvas->height;
    if (window.reshape && !window.reshaped)
        window.reshape(width, height);
    window.reshaped = true;
    window.posted = false;
    if (window.display)
        window.display();
    glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, canvas->pixels);
    while (glGetError() != GL_NO_ERROR)
        ; // removes OpenGL errors of earlier calls of the program
}

static void draw(void *unused) {
    (void)unused;
}

static void *gl_function(const char *name) {
    void *function = (void *)eglGetProcAddress(name);
    if (!function)
        quit(EXIT_WAIVED, "OpenGL has no %s here", name);
    return function;
}

// The program may have variables with the names of OpenGL's newer functions, so the linker must not find
// these here.
static void make_framebuffer(GLsizei width, GLsizei height) {
    PFNGLGENFRAMEBUFFERSPROC gen_framebuffers = gl_function("glGenFramebuffers");
    PFNGLBINDFRAMEBUFFERPROC bind_framebuffer = gl_function("glBindFramebuffer");
    PFNGLGENRENDERBUFFERSPROC gen_renderbuffers = gl_function("glGenRenderbuffers");
    PFNGLBINDRENDERBUFFERPROC bind_renderbuffer = gl_function("glBindRenderbuffer");
    PFNGLRENDERBUFFERSTORAGEPROC storage = gl_function("glRenderbufferStorage");
    PFNGLFRAMEBUFFERRENDERBUFFERPROC attach = gl_function("glFramebufferRenderbuffer");
    const GLuint *buffers = window.buffers;
    gen_framebuffers(1, &window.frame);
    gen_renderbuffers(2, window.buffers);
    bind_framebuffer(GL_FRAMEBUFFER, window.frame);
    bind_renderbuffer(GL_RENDERBUFFER, buffers[0]);
    storage(GL_RENDERBUFFER, GL_RGBA8, width, height);
    attach(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, buffers[0]);
    bind_renderbuffer(GL_RENDERBUFFER, buffers[1]);
    storage(GL_RENDERBUFFER, GL_DEPTH24_STENCIL8, width, height);
    attach(GL_FRAMEBUFFER, GL_DEPTH_STENCIL_ATTACHMENT, GL_RENDERBUFFER, buffers[1]);
    glViewport(0, 0, width, height);
    glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT);
}

// As freeglut does when its main loop returns
static void close_context(void) {
    PFNGLDELETEFRAMEBUFFERSPROC delete_framebuffers = gl_function("glDeleteFramebuffers");
    PFNGLDELETERENDERBUFFERSPROC delete_renderbuffers = gl_function("glDeleteRenderbuffers");
    delete_framebuffers(1, &window.frame);
    delete_renderbuffers(2, window.buffers);
    while (glGetError() != GL_NO_ERROR)
        ;
    window.end(&window.canvas);
}

int glutCreateWindow(const char *title) {
    PASS_ON(int, glutCreateWindow, (const char *), (title))
    Canvas *canvas = &window.canvas;
    if (window.open)
        quit(EXIT_FAILURE, "only one window is possible without a display");
    canvas->pixels = calloc(canvas->width * canvas->height, 4);
    if (!canvas->pixels)
        quit(EXIT_FAILURE, "out of memory: a picture of %zux%zu pixels", canvas->width, canvas->height);
    canvas->draw = draw;
    options.window = 0;
    gl_context_open(canvas, options.device);
    make_framebuffer((GLsizei)canvas->width, (GLsizei)canvas->height);
    canvas->read_back = read_back;
    window.end = canvas->close;
    canvas->close = NULL; // the program's last callback still uses the context
    window.open = true;
    return 1;
}

DEFINE(int, glutGetWindow, (void), (), return window.open)
DEFINE(int, glutGetModifiers, (void), (), return 0)
DEFINE(int, glutCreateMenu, (void (*call)(int)), (call), return 1)
DEFINE(GLUTproc, glutGetProcAddress, (const char *name), (name), return (GLUTproc)eglGetProcAddress(name))

STORE(glutDisplayFunc, display, (void))
STORE(glutReshapeFunc, reshape, (int, int))
STORE(glutKeyboardFunc, keyboard, (unsigned char, int, int))
STORE(glutIdleFunc, idle, (void))
STORE(glutCloseFunc, close, (void))
STORE(glutWMCloseFunc, close, (void))

void glutTimerFunc(unsigned delay, void (*call)(int), int value) {
    PASS_ON(void, glutTimerFunc, (unsigned, void (*)(int), int), (delay, call, value))
    Timer *timer = malloc(sizeof(*timer));
    if (!timer)
        quit(EXIT_FAILURE, "out of memory");
    *timer = (Timer){call, value, window.timers};
    window.timers = timer;
}

DEFINE(void, glutPostRedisplay, (void), (), window.posted = true)
DEFINE(void, glutSwapBuffers, (void), (), glFlush())

int glutGet(GLenum what) {
    PASS_ON(int, glutGet, (GLenum), (what))
    switch (what) {
    case GLUT_ELAPSED_TIME:
        return (int)milliseconds();
    case GLUT_WINDOW_WIDTH:
    case GLUT_SCREEN_WIDTH:
    case GLUT_INIT_WINDOW_WIDTH:
        return (int)window.canvas.width;
    case GLUT_WINDOW_HEIGHT:
    case GLUT_SCREEN_HEIGHT:
    case GLUT_INIT_WINDOW_HEIGHT:
        return (int)window.canvas.height;
    case GLUT_WINDOW_DOUBLEBUFFER:
    case GLUT_WINDOW_RGBA:
    case GLUT_DISPLAY_MODE_POSSIBLE:
        return 1;
    default:
        return 0;
    }
}

DEFINE(void, glutSetOption, (GLenum what, int value), (what, value),
       window.returns = what == GLUT_ACTION_ON_WINDOW_CLOSE ? value != GLUT_ACTION_EXIT : window.returns)

// What GLUT does between two pictures. Timers do not wait: their time has come with the next frame.
static void next_frame(void *unused, int ticks) {
    Timer *due = window.timers;
    (void)unused;
    window.number = ticks;
    window.timers = NULL;
    while (due) {
        Timer *timer = due;
        due = timer->next;
        timer->call(timer->value);
        free(timer);
    }
    if (window.idle)
        window.idle();
}

DEFINE(void, glutLeaveMainLoop, (void), (), options.frames = (size_t)window.number + 1)
DEFINE(void, glutDestroyWindow, (int number), (number), options.frames = (size_t)window.number + 1)

void glutMainLoop(void) {
    PASS_ON(void, glutMainLoop, (void), ())
    if (!window.open)
        quit(EXIT_FAILURE, "glutMainLoop without a window");
    if (!window.idle && !window.timers)
        read_back(&window.canvas); // shows whether the display callback asks for another picture
    if (window.idle || window.timers || window.posted)
        window.canvas.frame = next_frame;
    display_canvas(&window.canvas);
    for (const char *key = "\033qQ"; window.keyboard && *key; key++)
        window.keyboard((unsigned char)*key, 0, 0); // usually ends the program
    if (window.close)
        window.close();
    if (!window.returns)
        exit(EXIT_SUCCESS);
    close_context();
}
#endif
