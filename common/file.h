// SPDX-License-Identifier: MIT
// Writes files atomically: a file is written under a temporary name in the same folder and renamed
// when it is complete. Targets that are not regular files, such as devices, are written directly.
//
// A file that is begun and not ended is deleted when the program ends, also by SIGINT, SIGTERM or SIGHUP;
// only SIGKILL and a crash leave it. One file at a time can be begun.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char name[PATH_MAX];   // the name to write to
    char target[PATH_MAX]; // the final name, when `name` is temporary
    bool temporary;
    FILE *stream; // writes the file
} NewFile;

// Begins a file that is written through file->stream, or by its name, file->name, which ends in `ending` when
// it is temporary. Returns NULL, or the reason why `path` cannot be written; then there is nothing to
// discard.
const char *file_begin(NewFile *file, const char *path, const char *ending);

// Renames the complete file to its final name, after closing file->stream. Returns NULL, or the reason of
// the failure, which may be that of an earlier write to the stream. Then an existing file is unchanged, and
// the caller must call file_discard.
const char *file_end(NewFile *file);

// Deletes a file that was begun and not ended. Safe in a signal handler.
void file_discard(NewFile *file);

// Ends the program (one line, EXIT_FAILURE) when the file cannot be created. Called before long
// computations; creates and deletes a temporary file.
void file_check(const char *path);

// Makes SIGINT, SIGTERM and SIGHUP delete an unfinished file before they end the program, unless they are
// ignored (nohup). file_begin calls this too. A handler first calls `goes_on`, if it is not NULL; when
// that returns true the program continues. It may call only functions that are safe in signal handlers.
void file_catch_signals(bool (*goes_on)(int number));

#ifdef __cplusplus
}
#endif
