// SPDX-License-Identifier: MIT
// An old program brings its own common/, which has to be used instead of ours.
#define OWN_BOOK
#include <stdio.h>
#define HANDLE_ERROR(err) ((err) == cudaSuccess ? (void)0 : exit(EXIT_FAILURE))
