// SPDX-License-Identifier: MIT
// Picture files.
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if HAVE_PNG
#include <png.h>
#endif
#include "image.h"
#include "options.h"

// Writers return NULL, or the reason of their failure.
typedef const char *Writer(FILE *file, const unsigned char *pixels, size_t width, size_t height);

static const char *write_ppm(FILE *file, const unsigned char *pixels, size_t width, size_t height) {
    unsigned char *row = malloc(width * 3);
    if (!row)
        return strerror(ENOMEM);
    fprintf(file, "P6\n%zu %zu\n255\n", width, height);
    for (size_t y = height; y-- > 0 && !ferror(file);) {
        const unsigned char *in = &pixels[y * width * 4];
        for (size_t x = 0; x < width; x++)
            memcpy(&row[3 * x], &in[4 * x], 3);
        fwrite(row, 3, width, file);
    }
    free(row);
    return ferror(file) ? strerror(errno) : NULL;
}

#if HAVE_PNG
static char png_reason[128];

static void png_failed(png_structp png, png_const_charp reason) {
    snprintf(png_reason, sizeof(png_reason), "%s", reason);
    png_longjmp(png, 1);
}

static void png_warned(png_structp png, png_const_charp reason) {
    (void)png;
    (void)reason; // what matters comes as an error too
}

static const char *write_png(FILE *file, const unsigned char *pixels, size_t width, size_t height) {
    if (width > PNG_UINT_31_MAX || height > PNG_UINT_31_MAX)
        return "too large for PNG";
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, png_failed, png_warned);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return strerror(ENOMEM);
    }
    if (setjmp(png_jmpbuf(png))) {
        const char *reason = ferror(file) ? strerror(errno) : png_reason;
        png_destroy_write_struct(&png, &info);
        return reason;
    }
    png_init_io(png, file);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    png_set_filler(png, 0, PNG_FILLER_AFTER); // drops the fourth byte
    for (size_t y = height; y-- > 0;)
        png_write_row(png, &pixels[y * width * 4]);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return NULL;
}
#else
#define write_png NULL
#endif

static const struct format {
    const char *ending;
    Writer *write; // NULL: not in this build
    const char *missing;
} formats[] = {
    {".png", write_png, "cannot write .png: built without libpng (Debian: libpng-dev)"},
    {".ppm", write_ppm, NULL},
};
enum { FORMATS = sizeof(formats) / sizeof(*formats) };

static const struct format *format_of(const char *path) {
    size_t length = strlen(path);
    for (int i = 0; i < FORMATS; i++) {
        size_t ending = strlen(formats[i].ending);
        if (length >= ending && strcasecmp(path + length - ending, formats[i].ending) == 0)
            return &formats[i];
    }
    return NULL;
}

const char *image_default_ending(void) {
    const struct format *format = formats;
    while (!format->write)
        format++;
    return format->ending;
}

const char *image_problem(const char *path) {
    const struct format *format = format_of(path);
    if (!format)
        return "the name must end in .png or .ppm";
    return format->write ? NULL : format->missing;
}

// Finds %d or %0Nd, which starts at *start and ends before *end; its number has *digits digits.
static bool find_number(const char *path, const char **start, const char **end, int *digits) {
    for (const char *c = path; (c = strchr(c, '%')); c++) {
        bool wide = c[1] == '0' && c[2] >= '1' && c[2] <= '9';
        *start = c;
        *digits = wide ? c[2] - '0' : 1;
        *end = c + (wide ? 4 : 2);
        if ((*end)[-1] == 'd')
            return true;
    }
    return false;
}

bool image_is_sequence(const char *path) {
    const char *start, *end;
    int digits;
    return find_number(path, &start, &end, &digits);
}

char *image_frame_path(const char *path, size_t frame) {
    const char *start, *end;
    int digits;
    char *name = NULL;
    int length = find_number(path, &start, &end, &digits)
                     ? asprintf(&name, "%.*s%0*zu%s", (int)(start - path), path, digits, frame, end)
                     : asprintf(&name, "%s", path);
    if (length < 0)
        quit(EXIT_FAILURE, "out of memory");
    return name;
}

// The length of the folder part of a path, with its slash.
static int folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

static const char *target_problem(const char *path) {
    struct stat status;
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return strerror(EISDIR);
        if (access(path, W_OK) != 0)
            return strerror(errno);
        if (!S_ISREG(status.st_mode))
            return NULL;
    } else if (errno != ENOENT)
        return strerror(errno);
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%.*s.", folder_length(path), path);
    return access(folder, W_OK | X_OK) == 0 ? NULL : strerror(errno);
}

void image_check_target(const char *path) {
    const char *problem = target_problem(path);
    if (problem)
        quit(EXIT_FAILURE, "cannot write %s: %s", path, problem);
}

// The unfinished file: a program that is interrupted leaves none behind.
static char temporary[PATH_MAX];

static void interrupted(int number) {
    unlink(temporary);
    signal(number, SIG_DFL);
    raise(number);
}

// Changes the handlers of the signals that end a program, but not one that somebody else has set.
static void replace_handlers(sighandler_t from, sighandler_t to) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        sighandler_t was = signal(numbers[i], to);
        if (was != from)
            signal(numbers[i], was);
    }
}

// Creates the temporary file in the target's folder, where a rename can put it into place.
static int create_temporary(const char *target) {
    int fd = -1;
    for (int i = 0; i < 100 && fd < 0; i++) {
        int length = snprintf(temporary, sizeof(temporary), "%.*s.picture-%ld-%d.tmp",
                              folder_length(target), target, (long)getpid(), i);
        if (length >= (int)sizeof(temporary)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

// Writes to an open file and closes it.
static const char *write_to(int fd, const struct format *format, const unsigned char *pixels,
                            size_t width, size_t height) {
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!file)
        return strerror(errno);
    const char *problem = format->write(file, pixels, width, height);
    if (fclose(file) != 0 && !problem)
        problem = strerror(errno);
    return problem;
}

void image_write(const char *path, const unsigned char *pixels, size_t width, size_t height) {
    const char *problem = width == 0 || height == 0 ? "an empty picture" : image_problem(path);
    if (!problem)
        problem = target_problem(path);
    if (problem)
        quit(EXIT_FAILURE, "cannot write %s: %s", path, problem);
    signal(SIGXFSZ, SIG_IGN); // writing past a limit on file sizes is to fail, not to kill

    const struct format *format = format_of(path);
    char *real = realpath(path, NULL); // a link stays a link
    const char *target = real ? real : path;
    struct stat status;
    bool exists = stat(target, &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
        problem = write_to(open(target, O_WRONLY | O_CLOEXEC), format, pixels, width, height);
    } else {
        replace_handlers(SIG_DFL, interrupted);
        int fd = create_temporary(target);
        if (fd >= 0 && exists)
            (void)!fchmod(fd, status.st_mode & 0777); // not every file system has modes
        problem = write_to(fd, format, pixels, width, height);
        if (!problem && rename(temporary, target) != 0)
            problem = strerror(errno);
        if (problem && fd >= 0)
            unlink(temporary);
        replace_handlers(interrupted, SIG_DFL);
    }
    free(real);
    if (problem)
        quit(EXIT_FAILURE, "cannot write %s: %s", path, problem);
}
