// SPDX-License-Identifier: MIT
// CPUAnimBitmap: an animation whose frames a program draws into host memory, one after the other.
#ifndef COMMON_CPU_ANIM_H
#define COMMON_CPU_ANIM_H

#include "cpu_bitmap.h"

// Has get_ptr() and image_size() of CPUBitmap. Its `data` is what all functions are called with.
class CPUAnimBitmap : public CPUBitmap {
  public:
    using CPUBitmap::CPUBitmap;

    // In a window, calls drag(data, x0, y0, x1, y1) while the mouse is dragged from one pixel of
    // the picture to another, y counting upwards as the rows do; the first time when its button is
    // pressed.
    void click_drag(void (*drag)(void *data, int x0, int y0, int x1, int y1)) { canvas.drag = drag; }

    // In a window, calls key(data, key) when a key is pressed, but not for Esc and q.
    void key_press(void (*key)(void *data, unsigned char key)) { canvas.key = key; }

    // Draws with frame(data, ticks), ticks = 0, 1, …, and shows each frame in a window or writes
    // them to a file; then runs exit_fn(data) and returns: the program ends with the status of its
    // own check.
    void anim_and_exit(void (*frame)(void *data, int ticks), void (*exit_fn)(void *data) = NULL) {
        canvas.frame = frame;
        display_and_exit(exit_fn);
    }
};

#endif
