// SPDX-License-Identifier: MIT
// Writes files atomically: a file is written under a temporary name in the same folder and renamed
// when it is complete. Targets that are not regular files, such as devices, are written directly.
#ifndef COMMON_FILE_H
#define COMMON_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char name[PATH_MAX];   // the name to write to
    char target[PATH_MAX]; // the final name, when `name` is temporary
    bool temporary;
} NewFile;

// Begins a file; the caller then writes file->name. A temporary name ends in `ending`. Returns NULL,
// or the reason why `path` cannot be written; then there is nothing to discard.
const char *file_begin(NewFile *file, const char *path, const char *ending);

// Renames the closed file to its final name. Returns NULL, or the reason of the failure.
const char *file_end(NewFile *file);

// Deletes a file that was begun and not ended. Safe in a signal handler.
void file_discard(NewFile *file);

// Writes a whole file. Returns NULL, or the reason of the failure; then an existing file is
// unchanged and there is nothing to discard.
const char *file_save(NewFile *file, const char *path, const void *data, size_t size);

// Ends the program (one line, EXIT_FAILURE) when the file cannot be created. Called before long
// computations; creates and deletes a temporary file.
void file_check(const char *path);

#ifdef __cplusplus
}
#endif
#endif
