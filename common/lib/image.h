// SPDX-License-Identifier: MIT
// Picture files: PPM, PNG where this build has libpng, animated WebP where it has libwebp, and the
// video formats of ffmpeg where that is installed. Pixels are RGBA, 4 bytes each, the bottom row
// first; alpha is not written. Files are written atomically (file.h). An error ends the program (one
// line, EXIT_FAILURE), and an existing file stays unchanged.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The ending of a file whose name the user did not choose. Without libwebp and ffmpeg an animation has
// the ending of a still picture, which then holds its last frame.
const char *image_default_ending(bool animation);

// The reason why no file with this ending can be written; NULL when it can.
const char *image_problem(const char *path);

// Whether the name stands for a numbered sequence: it contains %d, %04d or the like.
bool image_is_sequence(const char *path);

// Whether one file of this name holds all frames of an animation.
bool image_is_animation(const char *path);

// The name of the file for a frame of a sequence; a copy of any other name. The caller frees it.
char *image_frame_path(const char *path, size_t frame);

// Write a file: open, add one frame (or more, for an animation), close. Only one file can be open.
// `frames` is the number of frames that will be added. A .webp is lossless if about 5 MB suffice for
// that, otherwise slightly lossy.
void image_open(const char *path, size_t width, size_t height, size_t frames);
void image_add(const unsigned char *pixels);
void image_close(void);

// Whether the last .webp is lossy.
bool image_is_lossy(void);

// Writes a file with one frame.
void image_write(const char *path, const unsigned char *pixels, size_t width, size_t height);
