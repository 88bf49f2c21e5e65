// SPDX-License-Identifier: MIT
// CPUAnimBitmap: an animation whose frames a program writes into host memory.
#pragma once

#include "cpu_bitmap.h"

// get_ptr() and image_size() are those of CPUBitmap. Every callback gets the constructor's `data`.
class CPUAnimBitmap : public CPUBitmap {
  public:
    using CPUBitmap::CPUBitmap;

    // In a window, calls drag(data, x0, y0, x1, y1) when the left mouse button is pressed and whenever
    // the mouse moves while it is held: from pixel (x0, y0), where it was pressed, to (x1, y1). y
    // counts upwards, as the rows of the picture do.
    void click_drag(void (*drag)(void *data, int x0, int y0, int x1, int y1)) { canvas.drag = drag; }

    // In a window, calls key(data, key) when a key other than Esc and q is pressed.
    void key_press(void (*key)(void *data, unsigned char key)) { canvas.key = key; }

    // Calls frame(data, ticks) for ticks = 0, 1, … and shows each frame in a window or writes it to a
    // file. Then calls exit_fn(data) and returns, so that main can check the result. Data is the type that
    // the constructor's `data` points to. enable_if_t keeps the second argument out of the deduction of Data,
    // so that it may be NULL.
    template <class Data>
    void anim_and_exit(void (*frame)(Data *data, int ticks),
                       void (*exit_fn)(std::enable_if_t<true, Data> *data) = NULL) {
        static auto typed = frame; // static, since a lambda with captures is no function pointer
        typed = frame;
        canvas.frame = [](void *data, int ticks) {
            if (before_frame)
                before_frame(data, ticks);
            typed((Data *)data, ticks);
        };
        display_canvas(&canvas);
        if (exit_fn)
            exit_fn((Data *)canvas.data);
    }
};
