// SPDX-License-Identifier: MIT
// CPUAnimBitmap: an animation whose frames a program writes into host memory.
#pragma once

#include <functional>
#include "cpu_bitmap.h"

// get_ptr() and image_size() are those of CPUBitmap. Every callback gets the constructor's `data`.
class CPUAnimBitmap : public CPUBitmap {
  public:
    void *dataBlock;
    std::function<void(void *data, int ticks)> fAnim; // draws a frame
    std::function<void(void *data, int x0, int y0, int x1, int y1)> clickDrag;
    void (*keyPress)(void *data, unsigned char key) = NULL;
    int ticks = 0; // the number of the last frame

    CPUAnimBitmap(size_t width, size_t height, void *data = NULL)
        : CPUBitmap(width, height, this), dataBlock(data) {}

    // In a window, calls f(data, x0, y0, x1, y1) when the left mouse button is pressed and whenever
    // the mouse moves while it is held: from pixel (x0, y0), where it was pressed, to (x1, y1). y
    // counts upwards, as the rows of the picture do.
    template <class Data> void click_drag(void (*f)(Data *data, int x0, int y0, int x1, int y1)) {
        clickDrag = [f](void *data, int x0, int y0, int x1, int y1) { f((Data *)data, x0, y0, x1, y1); };
        canvas.drag = mouse_func;
    }

    // In a window, calls f(data, key) when a key other than Esc and q is pressed.
    void key_press(void (*f)(void *data, unsigned char key)) {
        keyPress = f;
        canvas.key = key_func;
    }

    // Calls f(data, ticks) for ticks = 0, 1, … and shows each frame in a window or writes it to a file. Then
    // calls e(data) and returns, so that main can check the result.
    void anim_and_exit(void (*f)(void *data, int ticks), void (*e)(void *data) = NULL) {
        anim_and_exit<void>(f, e);
    }

    // For callbacks with the type of the data, which need no cast
    template <class Data> void anim_and_exit(void (*f)(Data *data, int ticks), void (*e)(Data *data) = NULL) {
        fAnim = [f](void *data, int ticks) { f((Data *)data, ticks); };
        canvas.frame = idle_func;
        display_canvas(&canvas);
        if (e)
            e((Data *)dataBlock);
    }

  private:
    // display_canvas() calls these functions.
    static void idle_func(void *self, int ticks) {
        CPUAnimBitmap *bitmap = (CPUAnimBitmap *)self;
        bitmap->ticks = ticks;
        bitmap->fAnim(bitmap->dataBlock, ticks);
    }
    static void mouse_func(void *self, int x0, int y0, int x1, int y1) {
        ((CPUAnimBitmap *)self)->clickDrag(((CPUAnimBitmap *)self)->dataBlock, x0, y0, x1, y1);
    }
    static void key_func(void *self, unsigned char key) {
        ((CPUAnimBitmap *)self)->keyPress(((CPUAnimBitmap *)self)->dataBlock, key);
    }
};
