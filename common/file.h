// SPDX-License-Identifier: MIT
// Files that are there whole or not at all: until one is complete it has another name, beside its
// own. What is no regular file, such as a device behind a link, is written directly.
#ifndef COMMON_FILE_H
#define COMMON_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char name[PATH_MAX];   // what it is called now
    char target[PATH_MAX]; // and then, when that is another name
    bool temporary;        // whether it is
} NewFile;

// Begins a file: it can be written as file->name, which ends in `ending` when it is another name
// than `path`. Returns NULL, or why `path` cannot be written; there is nothing to discard then.
const char *file_begin(NewFile *file, const char *path, const char *ending);

// Gives the file, which has been closed, its own name. Returns NULL, or the reason of its failure.
const char *file_end(NewFile *file);

// Gives it up, if it has been begun and not ended. Safe in a signal handler.
void file_discard(NewFile *file);

// Writes a whole file. Returns NULL, or the reason of its failure; there is nothing to discard
// then, and what was there before is still there.
const char *file_save(NewFile *file, const char *path, const void *data, size_t size);

// Ends the program (one line, EXIT_FAILURE) when it is plain now that the file cannot be written.
// Leaves nothing behind.
void file_check(const char *path);

#ifdef __cplusplus
}
#endif
#endif
