// SPDX-License-Identifier: MIT
// OpenGL interoperability: buffers and textures of OpenGL that kernels read and write. The
// functions that do not depend on OpenGL, such as cudaGraphicsMapResources, are in api.h.
#pragma once
#define __CUDA_GL_INTEROP_H__
#include <GL/gl.h>
#include "cuda_cpu/types.h"
#include "cuda_cpu/api.h"

#ifdef __cplusplus
namespace cuda_cpu {
extern "C" {
#endif
cudaError_t cudaGraphicsGLRegisterBuffer(cudaGraphicsResource_t *resource, GLuint buffer, unsigned int flags);
// `target` must be GL_TEXTURE_2D or GL_TEXTURE_RECTANGLE; others give cudaErrorNotSupported here.
cudaError_t cudaGraphicsGLRegisterImage(cudaGraphicsResource_t *resource, GLuint image, GLenum target,
                                        unsigned int flags);
#ifdef __cplusplus
} // extern "C"
} // namespace cuda_cpu

CUDA_CPU_NOTED(cudaGraphicsGLRegisterBuffer,
               (cudaGraphicsResource_t * resource, GLuint buffer, unsigned int flags),
               cudaGraphicsGLRegisterBuffer(resource, buffer, flags))
CUDA_CPU_NOTED(cudaGraphicsGLRegisterImage,
               (cudaGraphicsResource_t * resource, GLuint image, GLenum target, unsigned int flags),
               cudaGraphicsGLRegisterImage(resource, image, target, flags))

extern "C" {
#endif

cudaError_t cudaGLSetGLDevice(int device); // deprecated since CUDA 5

#ifdef __cplusplus
}
#endif
