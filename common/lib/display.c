// SPDX-License-Identifier: MIT
// Shows pictures in a window, or writes a file and prints a small preview when stdout is a terminal.
#define _GNU_SOURCE
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "display.h"
#include "../file.h"
#include "image.h"
#include "../options.h"
#include "window.h"

#ifdef __wasm__ // no signal ends a program, and its C library has no on_exit()
#define on_exit(function, unused) (void)function
#endif

static volatile sig_atomic_t animating; // while set, a signal ends the animation, not the program
static volatile sig_atomic_t caught;    // the signal that ended it

// In a signal handler: whether the program continues.
static bool interrupted(int number) {
    if (animating && !caught) {
        caught = number;
        return true;
    }
    return false;
}

// Runs at exit, where exit() must not be called again.
static void leave(int status, void *unused) {
    (void)unused;
    if (caught && status == EXIT_SUCCESS) {
        fflush(stdout);
        _exit(128 + caught);
    }
}

// A signal ends an animation after a frame, and the exit status then names the signal.
static void clean_up_at_the_end(void) {
    static bool done;
    if (done)
        return;
    done = true;
    on_exit(leave, NULL);
    file_catch_signals(interrupted);
}

static const char *target(bool animation) {
    static char name[NAME_MAX + 8];
    if (options.output)
        return options.output;
    snprintf(name, sizeof(name), "%s%s", options.program, image_default_ending(animation));
    return name;
}

// Prints why there is no window. Ends the program when --window asked for one.
static bool no_window(const char *problem) {
    if (options.window == 1)
        quit(EXIT_USAGE, "--window: %s", problem);
    print_line(stderr, "%s: no window: %s; writing a file", options.program, problem);
    options.window = 0;
    return false;
}

// Without --window and --no-window, a file is written when --output is given or there is no display.
bool display_in_window(void) {
    const char *display = getenv("DISPLAY");
    bool wanted = options.window < 0 ? !options.output && display && *display : options.window;
    const char *problem = wanted ? window_problem() : NULL;
    return problem ? no_window(problem) : wanted;
}

static void check_options(void) {
    clean_up_at_the_end();
    if (display_in_window())
        return;
    const char *path = target(!(options.uses & PICTURE)), *problem = image_problem(path);
    if (!problem && image_is_sequence(path) && !(options.uses & ANIMATION))
        problem = "this program makes one picture, not a sequence";
    if (problem)
        quit(EXIT_USAGE, "--output %s: %s", *path ? path : "''", problem);
    char *first = image_frame_path(path, 0);
    file_check(first);
    free(first);
}

__attribute__((constructor)) static void take_part_in_options(void) {
    check_picture_options = check_options;
}

// A dimension of the terminal: the one that the system reports, or that of the environment, or the usual
// value.
static size_t terminal_size(unsigned short told, const char *variable, size_t usual) {
    const char *text = getenv(variable);
    long value = told ? told : text ? strtol(text, NULL, 10) : 0;
    return value > 0 && value < 10000 ? (size_t)value : usual;
}

// The colours that the terminal can show.
enum Colours { NO_COLOURS, CUBE, TRUE_COLOUR }; // CUBE: 6 levels each of red, green and blue

static enum Colours terminal_colours(void) {
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM"), *more = getenv("COLORTERM");
    if ((no_color && *no_color) || !term || !*term || strcmp(term, "dumb") == 0)
        return NO_COLOURS;
    if (more && (strcmp(more, "truecolor") == 0 || strcmp(more, "24bit") == 0))
        return TRUE_COLOUR;
    return strstr(term, "256color") ? CUBE : NO_COLOURS;
}

// Whether the user's locale uses UTF-8. When the locale is not installed, which is common after ssh, its
// name decides.
static bool locale_is_utf8(void) {
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    locale_t locale = newlocale(LC_CTYPE_MASK, "", NULL);
    if (locale) {
        bool utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
        freelocale(locale);
        return utf8;
    }
    for (int i = 0; i < 3; i++) {
        const char *name = getenv(variables[i]);
        if (name && *name)
            return strcasestr(name, ".UTF-8") || strcasestr(name, ".utf8");
    }
    return false;
}

// The index of the cube's level nearest to a colour of 0 to 255. The levels are 0, 95, 135, 175, 215
// and 255.
static size_t cube_level(size_t colour) {
    return colour < 48 ? 0 : colour < 115 ? 1 : (colour - 35) / 40;
}

// Sets the terminal's text colour (plane 3) or background colour (plane 4) to the mean colour of cell
// (x, y), when the picture is divided into columns * rows cells. y = 0 is the top row.
static void set_colour(int plane, enum Colours colours, const Canvas *canvas, size_t columns, size_t rows,
                       size_t x, size_t y) {
    size_t left = x * canvas->width / columns, right = (x + 1) * canvas->width / columns;
    size_t top = y * canvas->height / rows, bottom = (y + 1) * canvas->height / rows;
    size_t mean[3] = {0, 0, 0}, n = (right - left) * (bottom - top);
    for (size_t j = top; j < bottom; j++)
        for (size_t i = left; i < right; i++)
            for (int c = 0; c < 3; c++)
                mean[c] += canvas->pixels[((canvas->height - 1 - j) * canvas->width + i) * 4 + c];
    for (int c = 0; c < 3; c++)
        mean[c] = (mean[c] + n / 2) / n;
    if (colours == TRUE_COLOUR)
        printf("\033[%d8;2;%zu;%zu;%zum", plane, mean[0], mean[1], mean[2]);
    else
        printf("\033[%d8;5;%zum", plane,
               16 + 36 * cube_level(mean[0]) + 6 * cube_level(mean[1]) + cube_level(mean[2]));
}

// Draws the picture with upper half blocks: each character shows two square cells, one above the
// other. Without UTF-8 each character is a space on a coloured background: one cell, twice as high
// as wide.
static void preview(const Canvas *canvas) {
    enum Colours colours = terminal_colours();
    if (!isatty(STDOUT_FILENO) || !colours)
        return;
    struct winsize window = {0, 0, 0, 0};
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
    // Leaves two lines for the message above and the prompt below. Small pictures are not enlarged.
    double lines = fmax(1, (double)terminal_size(window.ws_row, "LINES", 24) - 2);
    double across = fmin(80, (double)terminal_size(window.ws_col, "COLUMNS", 80));
    double scale = fmin(1, fmin(across / canvas->width, 2 * lines / canvas->height));
    bool halves = locale_is_utf8();
    size_t columns = (size_t)fmax(1, round(canvas->width * scale));
    size_t rows = (size_t)fmax(1, round(canvas->height * scale / (halves ? 1 : 2)));
    for (size_t y = 0; y < rows; y += halves ? 2 : 1) {
        for (size_t x = 0; x < columns; x++) {
            if (halves)
                set_colour(3, colours, canvas, columns, rows, x, y);
            if (!halves || y + 1 < rows)
                set_colour(4, colours, canvas, columns, rows, x, y + halves);
            fputs(halves ? "\u2580" : " ", stdout);
        }
        puts("\033[0m");
    }
}

bool display_open_window(const Canvas *canvas) {
    const char *problem = display_in_window() ? window_open(canvas) : "";
    return !problem || (*problem && no_window(problem));
}

static void write_file(const Canvas *canvas) {
    const char *path = target(canvas->frame);
    bool sequence = image_is_sequence(path) && canvas->frame, progress = isatty(STDERR_FILENO);
    bool all = image_is_animation(path) && canvas->frame, done = false;
    char *name = NULL, *first = image_frame_path(path, 0);
    size_t n = 0;
    if (all)
        image_open(path, canvas->width, canvas->height, options.frames);
    while (!done) {
        if (canvas->frame)
            canvas->frame(canvas->data, (int)n);
        if (canvas->read_back)
            canvas->read_back(canvas);
        free(name);
        name = image_frame_path(path, n++);
        done = !canvas->frame || n == options.frames || caught;
        if (all)
            image_add(canvas->pixels);
        else if (sequence || done)
            image_write(name, canvas->pixels, canvas->width, canvas->height);
        if (progress && canvas->frame)
            fprintf(stderr, "frame %zu of %zu%c", n, options.frames, done ? '\n' : '\r');
    }
    if (all)
        image_close();
    if (canvas->close)
        canvas->close(canvas);
    char frames[64] = "";
    if (canvas->frame && !sequence)
        snprintf(frames, sizeof(frames), ", %s%zu frame%s", all ? "" : "the last of ", n, n == 1 ? "" : "s");
    print_line(stdout, "wrote %s%s%s (%zux%zu%s%s)", first, sequence ? " to " : "", sequence ? name : "",
               canvas->width, canvas->height, frames, all && image_is_lossy() ? ", with loss" : "");
    if (canvas->frame && !all && !options.output)
        puts("for all frames in one file, install ffmpeg, or build with libwebp (Debian: libwebp-dev)");
    preview(canvas);
    free(first);
    free(name);
}

void display_canvas(const Canvas *canvas) {
    clean_up_at_the_end();
    animating = canvas->frame != NULL || display_in_window();
    bool shown = display_open_window(canvas);
    const char *problem = shown ? window_show(canvas, &caught) : NULL;
    if (problem)
        shown = no_window(problem);
    if (!shown)
        write_file(canvas);
    animating = false;
}
