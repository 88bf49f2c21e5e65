// SPDX-License-Identifier: MIT
// For programs in which CUDA and OpenGL share memory: the headers of OpenGL, the OpenGL context
// (gl_context_open), and INTEROP_WORKS. Programs that include this header need OpenGL.
#pragma once

#ifndef GL_GLEXT_PROTOTYPES
#define GL_GLEXT_PROTOTYPES // otherwise gl.h and glext.h declare no functions newer than OpenGL 1.1
#endif
#include <GL/gl.h>
#include <GL/glext.h>
#include <cuda_gl_interop.h>
#include "book.h"
#include "lib/gl_context.h"

// Whether CUDA could register a buffer or texture of OpenGL. The driver refuses where OpenGL does not
// run on the GPU (Mesa, WSL2, an X display on another machine), with cudaErrorOperatingSystem through
// EGL and cudaErrorUnknown in a window. Then this prints one line and returns false, and the program
// must copy through the host. Errors of the program (no context, no such buffer, a buffer without
// storage) have other codes and end it.
#define INTEROP_WORKS(call) interop_works(call, __FILE__, __LINE__)

static inline bool interop_works(cudaError_t error, const char *file, int line) {
    if (error != cudaErrorOperatingSystem && error != cudaErrorUnknown) {
        handle_error(error, "registering with CUDA", file, line);
        return true;
    }
    (void)!cudaGetLastError(); // clears the error, or the next HANDLE_LAUNCH() would report it
    print_line(stderr, "%s: CUDA cannot use this OpenGL (%s): copying through the host", options.program,
               cudaGetErrorName(error));
    return false;
}
