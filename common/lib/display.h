// SPDX-License-Identifier: MIT
// Shows pictures: in a window where there is a display, otherwise in a file (--output, or a name made
// from the program's), with a preview on a terminal. Pixels are RGBA, 4 bytes each, the bottom row
// first, as OpenGL draws them; alpha is not shown.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// A picture, and for an animation the function that draws it. Callbacks get `data` and may be NULL.
typedef struct Canvas {
    unsigned char *pixels;
    size_t width, height;
    void *data;
    // Draws frame `ticks`, from 0 on, into the pixels. NULL: a still picture.
    void (*frame)(void *data, int ticks);
    // The mouse was dragged from (x0, y0), where its button was pressed, to (x1, y1); called for each
    // movement. In pixels of the picture, y counting upwards.
    void (*drag)(void *data, int x0, int y0, int x1, int y1);
    // A key was pressed, other than Esc and q, which close the window.
    void (*key)(void *data, unsigned char key);
    // Draws the picture with OpenGL. Needs gl_context_open(), which sets read_back and close below.
    // The drawn picture is read back into `pixels`: for a file each frame, for a window the last one.
    void (*draw)(void *data);
    // Frees the OpenGL objects of draw and frame, while the context still exists.
    void (*release)(void *data);
    void (*read_back)(const struct Canvas *canvas);
    void (*close)(const struct Canvas *canvas);
} Canvas;

// Whether a picture goes to a window, as the options and DISPLAY say.
bool display_in_window(void);

// Opens the window for the canvas before it is shown, so that OpenGL has a context. Returns false when
// the picture goes to a file.
bool display_open_window(const Canvas *canvas);

// Shows the canvas in a window until it is closed, at most 60 frames per second; or writes it to a
// file, --frames frames of an animation. A still format keeps the last frame; a numbered sequence has
// one file per frame. A file error ends the program (one line, EXIT_FAILURE). SIGINT, SIGTERM and
// SIGHUP end an animation and complete its file; the program then continues, and its exit status is
// 128 + signal instead of 0.
void display_canvas(const Canvas *canvas);

#ifdef __cplusplus
}
#endif
