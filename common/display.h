// SPDX-License-Identifier: MIT
// Where pictures go: the file that --output names, or one named after the program. Pixels are RGBA,
// 4 bytes each, the bottom row first, as OpenGL draws them; alpha is not shown.
#ifndef COMMON_DISPLAY_H
#define COMMON_DISPLAY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Refuses --window, --output and their like early when they cannot work. parse_options calls it.
void display_check_options(void);

// Shows width * height pixels. A file error ends the program: one line, EXIT_FAILURE.
void display_picture(const unsigned char *pixels, size_t width, size_t height);

// Calls frame(data, ticks) for ticks = 0, 1, … (--frames of them), which draws into `pixels`, and
// shows each. A still format keeps the last frame, a numbered sequence all of them.
void display_animation(void (*frame)(void *data, int ticks), void *data,
                       const unsigned char *pixels, size_t width, size_t height);

#ifdef __cplusplus
}
#endif
#endif
