// SPDX-License-Identifier: MIT
// CPUAnimBitmap: an animation whose frames a program draws into host memory, one after the other.
#ifndef COMMON_CPU_ANIM_H
#define COMMON_CPU_ANIM_H

#include "cpu_bitmap.h"

class CPUAnimBitmap {
  public:
    // `data` is what the frame and exit functions will be called with.
    CPUAnimBitmap(size_t width, size_t height, void *data = NULL)
        : bitmap(width, height), width(width), height(height), data(data) {}

    // The pixels: RGBA, 4 bytes each, bottom row first.
    unsigned char *get_ptr() const { return bitmap.get_ptr(); }
    // Their size in bytes.
    size_t image_size() const { return bitmap.image_size(); }

    // Draws with frame(data, ticks), ticks = 0, 1, …, and shows each frame; then runs
    // exit_fn(data) and returns.
    void anim_and_exit(void (*frame)(void *data, int ticks), void (*exit_fn)(void *data) = NULL) {
        display_animation(frame, data, get_ptr(), width, height);
        if (exit_fn)
            exit_fn(data);
    }

  private:
    CPUBitmap bitmap;
    size_t width, height;
    void *data;
};

#endif
