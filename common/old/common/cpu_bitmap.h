// SPDX-License-Identifier: MIT
// The cpu_bitmap.h that old listings expect: ours, and GLUT, which some of them use through it.
#pragma once

#include "../../cpu_bitmap.h"

#if __has_include(<GL/glut.h>)
#include <GL/glut.h>
// For listings that look up functions of OpenGL by themselves
extern "C" void (*glXGetProcAddress(const GLubyte *name))(void);
#define GET_PROC_ADDRESS(name) glXGetProcAddress((const GLubyte *)(name))
#endif
