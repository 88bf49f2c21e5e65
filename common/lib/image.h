// SPDX-License-Identifier: MIT
// Picture files: PNG where this build has libpng, animated WebP where it has libwebp, PPM, and the
// video formats of ffmpeg where that is installed. Pixels are RGBA, 4 bytes each, the bottom row
// first; files have no alpha. A file is there whole or not at all: until it is closed it has
// another name. An error ends the program (one line, EXIT_FAILURE) and leaves what was there
// before.
#ifndef COMMON_LIB_IMAGE_H
#define COMMON_LIB_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

// The ending for a file whose name the user did not choose. Without libwebp and ffmpeg that of an
// animation is the same as that of a still.
const char *image_default_ending(bool animation);

// Why no file of this name can be written, by its ending; NULL when it can.
const char *image_problem(const char *path);

// Whether the name stands for a numbered sequence: it has %d, or %04d and the like, in it.
bool image_is_sequence(const char *path);

// Whether one file of this name holds all frames of an animation.
bool image_is_animation(const char *path);

// The name of one file of a sequence, or a copy of any other name. The caller frees it.
char *image_frame_path(const char *path, size_t frame);

// Writes a file, one at a time: open, add one frame (or more, to an animation), close. A target
// that is no regular file is written directly. `frames`: how many are to come; a .webp holds them
// exactly where about 5 MB suffice for that, else with a small loss.
void image_open(const char *path, size_t width, size_t height, size_t frames);
void image_add(const unsigned char *pixels);
void image_close(void);

// Whether the frames of the last .webp were compressed with loss.
bool image_is_lossy(void);

// Gives up the file that is open, if one is. Safe in a signal handler; nothing else here works
// after it.
void image_discard(void);

// A file with one frame.
void image_write(const char *path, const unsigned char *pixels, size_t width, size_t height);

#endif
