// SPDX-License-Identifier: MIT
/*
 * hello_world: a C program is a CUDA C program already
 *
 * Teaches: An ordinary C program is CUDA C already, since the compiler passes host code on to the
 *          host's compiler. Nothing here runs on a device.
 * Book:    3.2.1
 * Run:     ./bin/chapter03/hello_world
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../common/book.h"

int main(int argc, char **argv) {
    parse_options(argc, argv, "Prints a greeting from the host.", HOST_ONLY, NULL);
    select_device(); // none, unless --device asks for one

    char greeting[] = "Hello, World!";
    inject_error(greeting, strlen(greeting));

    printf("%s\n", greeting);

    bool ok = strcmp(greeting, "Hello, World!") == 0;
    if (!ok)
        fprintf(stderr, "%s: the greeting got garbled\n", options.program);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
