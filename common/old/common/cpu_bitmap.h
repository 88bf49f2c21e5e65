// SPDX-License-Identifier: MIT
// The cpu_bitmap.h that old listings expect: ours, and GLUT, which some of them use through it.
#ifndef COMMON_LEGACY_CPU_BITMAP_H
#define COMMON_LEGACY_CPU_BITMAP_H

#include "../../cpu_bitmap.h"

#if __has_include(<GL/glut.h>)
#include <GL/glut.h>
// For listings that look up functions of OpenGL by themselves
extern "C" void (*glXGetProcAddress(const GLubyte *name))(void);
#define GET_PROC_ADDRESS(name) glXGetProcAddress((const GLubyte *)(name))
#endif

#endif
