// SPDX-License-Identifier: MIT
// Where pictures go: a window where there is a display, else a file, the one that --output names or
// one named after the program, and a preview of it on a terminal. Pixels are RGBA, 4 bytes each,
// the bottom row first, as OpenGL draws them; alpha is not shown.
#ifndef COMMON_LIB_DISPLAY_H
#define COMMON_LIB_DISPLAY_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// A picture, and for an animation what draws it. The functions are called with `data`; NULL: none.
typedef struct Canvas {
    unsigned char *pixels;
    size_t width, height;
    void *data;
    // Draws frame number ticks, 0 being the first, into the pixels. None: a still.
    void (*frame)(void *data, int ticks);
    // The mouse has gone from (x0, y0), where its button was pressed, to (x1, y1), and may go on.
    // Pixels of the picture, y counting upwards as the rows do.
    void (*drag)(void *data, int x0, int y0, int x1, int y1);
    // A key was pressed, none of those that close the window (Esc, q).
    void (*key)(void *data, unsigned char key);
    // Draws the picture with OpenGL, after gl_context_open(), which sets the two below. Then the
    // pixels hold what OpenGL has drawn: in a file each frame, after a window was closed the last.
    void (*draw)(void *data);
    // Frees what draw and frame use of OpenGL, while its context is still there.
    void (*release)(void *data);
    void (*read_back)(const struct Canvas *canvas);
    void (*close)(const struct Canvas *canvas);
} Canvas;

// Opens the window that the canvas will be shown in, so that OpenGL has a context before that.
// False when there is to be none.
bool display_open_window(const Canvas *canvas);

// Shows the canvas: in a window until it is closed, an animation with at most 60 frames a second;
// or in a file, an animation with --frames of them. Of these a still format keeps the last, and a
// numbered sequence each in a file of its own. An error of the file ends the program: one line,
// EXIT_FAILURE. SIGINT, SIGTERM and SIGHUP end an animation and close its file; the program then
// goes on to its end, with status 128 + signal in place of 0.
void display_canvas(const Canvas *canvas);

#ifdef __cplusplus
}
#endif
#endif
