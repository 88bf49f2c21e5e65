// SPDX-License-Identifier: MIT
// Where pictures go: a file, and a small preview of it when stdout is a terminal.
#define _GNU_SOURCE
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "display.h"
#include "image.h"
#include "options.h"

static const char *target(void) {
    static char name[NAME_MAX + 8];
    if (options.output)
        return options.output;
    snprintf(name, sizeof(name), "%s%s", options.program, image_default_ending());
    return name;
}

void display_check_options(void) {
    if (options.window == 1)
        quit(EXIT_USAGE, "--window: this build has no window support");
    const char *path = target(), *problem = image_problem(path);
    if (!problem && image_is_sequence(path) && !(options.uses & ANIMATION))
        problem = "this program makes one picture, not a sequence";
    if (problem)
        quit(EXIT_USAGE, "--output %s: %s", *path ? path : "''", problem);
    char *first = image_frame_path(path, 0);
    image_check_target(first);
    free(first);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

// A dimension of the terminal: what the kernel says, else the environment, else the usual.
static size_t terminal_size(unsigned short told, const char *variable, size_t usual) {
    const char *text = getenv(variable);
    long value = told ? told : text ? strtol(text, NULL, 10) : 0;
    return value > 0 && value < 10000 ? (size_t)value : usual;
}

// The mean colour of cell (x, y) when the picture is divided into columns * rows cells, y = 0 on
// top. Needs columns <= width and rows <= height.
static void average(unsigned mean[3], const unsigned char *pixels, size_t width, size_t height,
                    size_t columns, size_t rows, size_t x, size_t y) {
    size_t left = x * width / columns, right = (x + 1) * width / columns;
    size_t top = y * height / rows, bottom = (y + 1) * height / rows;
    size_t sum[3] = {0, 0, 0}, n = (right - left) * (bottom - top);
    for (size_t j = top; j < bottom; j++)
        for (size_t i = left; i < right; i++)
            for (int c = 0; c < 3; c++)
                sum[c] += pixels[((height - 1 - j) * width + i) * 4 + c];
    for (int c = 0; c < 3; c++)
        mean[c] = (unsigned)((sum[c] + n / 2) / n);
}

// Draws the picture with upper half blocks: two square cells, one over the other, a character.
static void preview(const unsigned char *pixels, size_t width, size_t height) {
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (!isatty(STDOUT_FILENO) || (no_color && *no_color) || !term || !*term ||
        strcmp(term, "dumb") == 0)
        return;
    struct winsize window = {0, 0, 0, 0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
    size_t columns = least(least(80, width), terminal_size(window.ws_col, "COLUMNS", 80));
    size_t lines = terminal_size(window.ws_row, "LINES", 24);
    // Two lines stay free, for the one above and the prompt below.
    size_t most = least(height, lines > 3 ? 2 * (lines - 2) : 2);
    size_t rows = (columns * height + width / 2) / width;
    if (rows > most) {
        rows = most;
        columns = (rows * width + height / 2) / height;
    }
    rows = rows ? rows : 1;
    columns = columns ? least(columns, width) : 1;
    for (size_t y = 0; y < rows; y += 2) {
        for (size_t x = 0; x < columns; x++) {
            unsigned c[3];
            average(c, pixels, width, height, columns, rows, x, y);
            printf("\033[38;2;%u;%u;%um", c[0], c[1], c[2]);
            if (y + 1 < rows) {
                average(c, pixels, width, height, columns, rows, x, y + 1);
                printf("\033[48;2;%u;%u;%um", c[0], c[1], c[2]);
            }
            fputs("\u2580", stdout);
        }
        puts("\033[0m");
    }
}

void display_picture(const unsigned char *pixels, size_t width, size_t height) {
    char *path = image_frame_path(target(), 0);
    image_write(path, pixels, width, height);
    printf("wrote %s (%zux%zu)\n", path, width, height);
    preview(pixels, width, height);
    free(path);
}

void display_animation(void (*frame)(void *data, int ticks), void *data,
                       const unsigned char *pixels, size_t width, size_t height) {
    bool sequence = image_is_sequence(target()), progress = isatty(STDERR_FILENO);
    for (size_t ticks = 0; ticks < options.frames; ticks++) {
        frame(data, (int)ticks);
        if (sequence || ticks + 1 == options.frames) {
            char *path = image_frame_path(target(), ticks);
            image_write(path, pixels, width, height);
            free(path);
        }
        if (progress)
            fprintf(stderr, "\rframe %zu of %zu", ticks + 1, options.frames);
    }
    if (progress)
        fputc('\n', stderr);
    if (sequence) {
        char *first = image_frame_path(target(), 0);
        char *last = image_frame_path(target(), options.frames - 1);
        printf("wrote %s to %s (%zux%zu)\n", first, last, width, height);
        free(first);
        free(last);
    } else
        printf("wrote %s (%zux%zu)\n", target(), width, height);
    preview(pixels, width, height);
}
