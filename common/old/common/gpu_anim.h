// SPDX-License-Identifier: MIT
// The gpu_anim.h that old listings expect: ours, also after a header of OpenGL that was included without
// GL_GLEXT_PROTOTYPES, and with GLUT.
#pragma once

#include "book.h"
#include "cpu_bitmap.h"
#include <GL/gl.h>
#include <GL/glext.h>

extern "C" {
void glGenBuffers(GLsizei count, GLuint *buffers);
void glDeleteBuffers(GLsizei count, const GLuint *buffers);
void glBindBuffer(GLenum target, GLuint buffer);
void glBufferData(GLenum target, GLsizeiptr size, const void *data, GLenum usage);
void glBufferSubData(GLenum target, GLintptr offset, GLsizeiptr size, const void *data);
}

#include "../../gpu_anim.h"
