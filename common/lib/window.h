// SPDX-License-Identifier: MIT
// A window that shows a picture, made with freeglut.
#pragma once

#include <signal.h>
#include "display.h"

// The reason why no window can be opened; NULL when one can.
const char *window_problem(void);

// Opens a window for the canvas, unless it is open already. Returns NULL, or the reason of the failure.
const char *window_open(const Canvas *canvas);

// Shows the canvas in its window. Returns when the user has closed it, when *stop is set, or after
// --frames frames if that option was given. Returns NULL, or the reason of the failure.
const char *window_show(const Canvas *canvas, const volatile sig_atomic_t *stop);
