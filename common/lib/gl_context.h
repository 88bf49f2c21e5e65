// SPDX-License-Identifier: MIT
// An OpenGL context (compatibility profile, 3.3 or newer): that of a window, or one without, by
// EGL.
#ifndef COMMON_LIB_GL_CONTEXT_H
#define COMMON_LIB_GL_CONTEXT_H

#include "display.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes a context current for the canvas, whose draw, release, size and pixels are set. It is that
// of the window which display_canvas will show, where there is to be one; else that of the EGL
// device which is CUDA's device of this number, or of the first one that works. display_canvas
// draws with it and closes it. When there is none the program ends with one line and EXIT_WAIVED.
//
// With GL_DEBUG in the environment, what OpenGL has to say of errors goes to stderr, and so does
// what the program has left in it when the context is closed.
void gl_context_open(Canvas *canvas, int cuda_device);

#ifdef __cplusplus
}
#endif
#endif
