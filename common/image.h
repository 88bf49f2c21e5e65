// SPDX-License-Identifier: MIT
// Picture files: PNG where this build has libpng, and PPM. Pixels are RGBA, 4 bytes each, the
// bottom row first; files have no alpha.
#ifndef COMMON_IMAGE_H
#define COMMON_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The ending for a file whose name the user did not choose.
const char *image_default_ending(void);

// Why no file of this name can be written, by its ending; NULL when it can.
const char *image_problem(const char *path);

// Whether the name stands for a numbered sequence: it has %d, or %04d and the like, in it.
bool image_is_sequence(const char *path);

// The name of one file of a sequence, or a copy of any other name. The caller frees it.
char *image_frame_path(const char *path, size_t frame);

// Ends the program (one line, EXIT_FAILURE) when it is plain now that the file cannot be written.
// Creates nothing.
void image_check_target(const char *path);

// Writes the file, whole or not at all: an error ends the program (one line, EXIT_FAILURE) and
// leaves what was there before. A target that is no regular file is written directly.
void image_write(const char *path, const unsigned char *pixels, size_t width, size_t height);

#ifdef __cplusplus
}
#endif
#endif
