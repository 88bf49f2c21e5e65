// SPDX-License-Identifier: MIT
// A program with a picture, in C and without CUDA. Its one case takes the options of a program:
//     picture draw -- --output x.png --width 30
// tests/test_common.py looks at what comes out.
#include "../../common/display.h"
#include "../../common/options.h"
#include "../../common/random.h"
#include "../unit.h"

static size_t width = 12, height = 8;
static unsigned char *pixels;

// Red grows to the right, green upwards, blue with time.
static void frame(void *data, int ticks) {
    (void)data;
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            unsigned char *p = &pixels[(y * width + x) * 4];
            p[0] = (unsigned char)(x * 255 / width);
            p[1] = (unsigned char)(y * 255 / height);
            p[2] = (unsigned char)(ticks * 10);
            p[3] = 255;
        }
}

TEST(draw) {
    char *argv[32] = {(char *)"picture"};
    int argc = 1;
    bool animate = false, noise = false;
    const Option own[] = {OPTION_SIZE("width", &width, 1, 65536, "pixels a row"),
                          OPTION_SIZE("height", &height, 1, 65536, "rows"),
                          OPTION_FLAG("animate", &animate, "draw frames"),
                          OPTION_FLAG("noise", &noise, "draw noise"), OPTION_END};
    for (char **word = unit_arguments; *word && argc < 31; word++)
        argv[argc++] = *word;
    parse_options(argc, argv, "Draws a test picture.", PICTURE | ANIMATION, own);
    pixels = big_random_block(width * height * 4);
    if (animate) {
        display_animation(frame, NULL, pixels, width, height);
    } else {
        if (!noise)
            frame(NULL, 0);
        display_picture(pixels, width, height);
    }
    free(pixels);
}
