// SPDX-License-Identifier: MIT
// An OpenGL context (compatibility profile, 3.3 or newer): the context of a window, or one without a
// window, from EGL.
#pragma once

#include "display.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes a context current for the canvas, whose size and pixels are set; draw and release may follow. If
// display_canvas will show a window, it is the context of that window; otherwise it belongs to the
// EGL device that is CUDA's device `cuda_device`, or to the first EGL device that works.
// display_canvas draws with it and closes it. Without a context the program ends with one line and
// EXIT_WAIVED.
//
// With GL_DEBUG in the environment, OpenGL's error messages are printed to stderr, and so are the
// OpenGL objects that still exist when the context is closed.
void gl_context_open(Canvas *canvas, int cuda_device);

// Draws the canvas into a framebuffer object of the current context, and reads its pixels back.
void gl_read_back(const Canvas *canvas);

#ifdef __cplusplus
}
#endif
