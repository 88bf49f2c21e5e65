// SPDX-License-Identifier: MIT
// An OpenGL context: that of a window, or one from EGL, which draws into a framebuffer object.
#if HAVE_GL
#define _GNU_SOURCE
#define GL_GLEXT_PROTOTYPES
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include "gl_context.h"
#include "../options.h"

// Mesa does not free all that it allocates. Its libraries stay loaded, so that LeakSanitizer can name
// them and leaks inside the driver can be suppressed. Leaks of the suite are still reported.
#ifdef __SANITIZE_ADDRESS__
#include <dlfcn.h>
#include <link.h>
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libEGL_mesa\nleak:_dri.so\nleak:libLLVM\n";
}

static int keep(struct dl_phdr_info *library, size_t size, void *unused) {
    (void)size, (void)unused;
    dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    return 0;
}
#define KEEP_LIBRARIES() dl_iterate_phdr(keep, NULL)
#else
#define KEEP_LIBRARIES() ((void)0)
#endif

static EGLDisplay egl = EGL_NO_DISPLAY;

// Makes a context of this display current.
static bool try_display(EGLDisplay display) {
    static const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT,
                                    EGL_NONE};
    const EGLint flags[] = {EGL_CONTEXT_OPENGL_DEBUG, getenv("GL_DEBUG") != NULL, EGL_NONE};
    EGLConfig config;
    EGLint configs = 0;
    if (display == EGL_NO_DISPLAY || !eglInitialize(display, NULL, NULL))
        return false;
    if (eglBindAPI(EGL_OPENGL_API) && eglChooseConfig(display, wanted, &config, 1, &configs) && configs > 0) {
        EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, flags);
        if (context != EGL_NO_CONTEXT && eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context)) {
            egl = display;
            return true;
        }
    }
    eglTerminate(display);
    return false;
}

static bool open_egl(int cuda_device) {
    PFNEGLGETPLATFORMDISPLAYEXTPROC get_display =
        (PFNEGLGETPLATFORMDISPLAYEXTPROC)eglGetProcAddress("eglGetPlatformDisplayEXT");
    PFNEGLQUERYDEVICESEXTPROC query_devices =
        (PFNEGLQUERYDEVICESEXTPROC)eglGetProcAddress("eglQueryDevicesEXT");
    PFNEGLQUERYDEVICEATTRIBEXTPROC query =
        (PFNEGLQUERYDEVICEATTRIBEXTPROC)eglGetProcAddress("eglQueryDeviceAttribEXT");
    EGLDeviceEXT devices[64];
    EGLint count = 0;
    if (!get_display || !query_devices || !query || !query_devices(64, devices, &count))
        count = 0;
    // Tries the EGL device that is CUDA's device first, then the others.
    for (int same = 1; same >= 0; same--)
        for (EGLint i = 0; i < count; i++) {
            EGLAttrib number = -1;
            if (!query(devices[i], EGL_CUDA_DEVICE_NV, &number))
                number = -1;
            if ((number == cuda_device) == same &&
                try_display(get_display(EGL_PLATFORM_DEVICE_EXT, devices[i], NULL)))
                return true;
        }
    return (get_display &&
            try_display(get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL))) ||
           try_display(eglGetDisplay(EGL_DEFAULT_DISPLAY));
}

static void GLAPIENTRY say(GLenum source, GLenum type, GLuint id, GLenum severity, GLsizei length,
                           const GLchar *message, const void *unused) {
    (void)source, (void)id, (void)severity, (void)length, (void)unused;
    if (type == GL_DEBUG_TYPE_ERROR || type == GL_DEBUG_TYPE_UNDEFINED_BEHAVIOR)
        fprintf(stderr, "OpenGL: %s\n", message);
}

static void check_errors(void) {
    GLenum error = glGetError();
    if (error != GL_NO_ERROR)
        quit(EXIT_FAILURE, "OpenGL: error 0x%04x%s", error,
             error == GL_OUT_OF_MEMORY ? ", out of memory"
             : getenv("GL_DEBUG")      ? ""
                                       : " (set GL_DEBUG=1 to see the cause)");
}

void gl_read_back(const Canvas *canvas) {
    GLsizei width = (GLsizei)canvas->width, height = (GLsizei)canvas->height;
    GLint most = 0;
    GLuint frame, colour;
    glGetIntegerv(GL_MAX_RENDERBUFFER_SIZE, &most);
    if (width > most || height > most)
        quit(EXIT_FAILURE, "a picture of %dx%d pixels is too large: OpenGL draws at most %dx%d here", width,
             height, most, most);
    glGenFramebuffers(1, &frame);
    glGenRenderbuffers(1, &colour);
    glBindRenderbuffer(GL_RENDERBUFFER, colour);
    glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
    glBindFramebuffer(GL_FRAMEBUFFER, frame);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, colour);
    check_errors();
    glViewport(0, 0, width, height);
    glClear(GL_COLOR_BUFFER_BIT);
    glRasterPos2f(-1, -1);
    glPixelZoom(1, 1);
    canvas->draw(canvas->data);
    glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, canvas->pixels);
    glDeleteFramebuffers(1, &frame);
    glDeleteRenderbuffers(1, &colour);
    check_errors();
}

static void close_context(const Canvas *canvas) {
    if (canvas->release)
        canvas->release(canvas->data);
    check_errors();
    for (GLuint name = 1; name < 1000 && getenv("GL_DEBUG"); name++)
        if (glIsBuffer(name) || glIsTexture(name) || glIsProgram(name) || glIsShader(name) ||
            glIsVertexArray(name) || glIsFramebuffer(name) || glIsRenderbuffer(name))
            fprintf(stderr, "OpenGL: object %u is left\n", name);
    if (egl == EGL_NO_DISPLAY)
        return;
    KEEP_LIBRARIES();
    EGLContext context = eglGetCurrentContext();
    eglMakeCurrent(egl, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    eglDestroyContext(egl, context);
    eglTerminate(egl);
    eglReleaseThread();
    egl = EGL_NO_DISPLAY;
}

void gl_context_open(Canvas *canvas, int cuda_device) {
    if (!display_open_window(canvas) && !open_egl(cuda_device))
        quit(EXIT_WAIVED, "needs OpenGL: no window is open, and no device of EGL works");
    const char *version = (const char *)glGetString(GL_VERSION);
    if (!version || atof(version) < 3.3)
        quit(EXIT_WAIVED, "needs OpenGL 3.3, this one is %s", version ? version : "unknown");
    canvas->read_back = gl_read_back;
    canvas->close = close_context;
    if (getenv("GL_DEBUG")) {
        glEnable(GL_DEBUG_OUTPUT);
        glEnable(GL_DEBUG_OUTPUT_SYNCHRONOUS);
        glDebugMessageCallback(say, NULL);
    }
}
#endif
