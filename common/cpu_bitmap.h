// SPDX-License-Identifier: MIT
// CPUBitmap: a picture in host memory, which a program fills and then displays.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "lib/display.h"
#include "options.h"

class CPUBitmap {
  public:
    // All bytes are 0 at first. The exit function gets `data`.
    CPUBitmap(size_t width, size_t height, void *data = NULL) {
        if (width != 0 && height > SIZE_MAX / 4 / width)
            quit(EXIT_FAILURE, "a picture of %zux%zu pixels is too large", width, height);
        canvas.width = width;
        canvas.height = height;
        canvas.data = data;
        canvas.pixels = pixels = static_cast<unsigned char *>(calloc(image_size(), 1));
        if (!pixels)
            quit(EXIT_FAILURE, "out of memory: a picture of %zux%zu pixels", width, height);
    }
    ~CPUBitmap() { free(pixels); }
    CPUBitmap(const CPUBitmap &) = delete;
    CPUBitmap &operator=(const CPUBitmap &) = delete;

    // The pixels: RGBA, 4 bytes each, the bottom row first.
    unsigned char *get_ptr() const { return pixels; }
    // The size of the pixels in bytes.
    size_t image_size() const { return canvas.width * canvas.height * 4; }

    // Shows the picture in a window or writes it to a file, calls exit_fn(data) and returns, so that
    // main can check the result.
    void display_and_exit(void (*exit_fn)(void *data) = NULL) {
        display_canvas(&canvas);
        if (exit_fn)
            exit_fn(canvas.data);
    }

  protected:
    Canvas canvas = {};

  private:
    unsigned char *pixels;
};
