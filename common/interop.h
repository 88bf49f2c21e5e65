// SPDX-License-Identifier: MIT
// What a program needs in which CUDA and OpenGL share memory: the headers of both, an OpenGL context
// (gl_context.h), and INTEROP_WORKS. Programs that include this need OpenGL.
#ifndef COMMON_INTEROP_H
#define COMMON_INTEROP_H

#ifndef GL_GLEXT_PROTOTYPES
#define GL_GLEXT_PROTOTYPES // gl.h and glext.h declare functions newer than OpenGL 1.1 only then
#endif
#include <GL/gl.h>
#include <GL/glext.h>
#include <cuda_gl_interop.h>
#include "book.h"
#include "lib/gl_context.h"

// Whether CUDA could register a buffer or texture of OpenGL. The driver refuses where OpenGL does not
// run on the GPU (Mesa, WSL2, an X display on another machine): cudaErrorOperatingSystem through EGL,
// cudaErrorUnknown in a window. Then this prints one line, and the program must copy through the host.
// Mistakes of the program (no context, no such buffer, a buffer without storage) give other errors and
// end it.
#define INTEROP_WORKS(call) interop_works(call, __FILE__, __LINE__)

static inline bool interop_works(cudaError_t error, const char *file, int line) {
    if (error != cudaErrorOperatingSystem && error != cudaErrorUnknown) {
        handle_error(error, "registering with CUDA", file, line);
        return true;
    }
    (void)!cudaGetLastError(); // clears the error, which the next HANDLE_LAUNCH() would report
    fprintf(stderr, "%s: CUDA cannot use this OpenGL (%s): copying through the host\n", options.program,
            cudaGetErrorName(error));
    return false;
}

#endif
