// SPDX-License-Identifier: MIT
#ifndef OWN_GL_HELPER_H
#define OWN_GL_HELPER_H
#include <GL/glut.h>
#include <GL/glext.h>
#include <GL/glx.h>
#define GET_PROC_ADDRESS(str) glXGetProcAddress((const GLubyte *)str)
#endif
