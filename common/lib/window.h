// SPDX-License-Identifier: MIT
// A window with a picture in it, over freeglut.
#ifndef COMMON_LIB_WINDOW_H
#define COMMON_LIB_WINDOW_H

#include <signal.h>
#include "display.h"

// Why there can be no window here; NULL when there can.
const char *window_problem(void);

// Opens a window for the canvas, unless there is one already. Returns a problem, or NULL.
const char *window_open(const Canvas *canvas);

// Shows the canvas in its window and comes back when the user has closed it, when *stop is set or,
// with --frames, after so many frames. Returns a problem, or NULL.
const char *window_show(const Canvas *canvas, const volatile sig_atomic_t *stop);

#endif
