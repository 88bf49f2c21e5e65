// SPDX-License-Identifier: MIT
// What options.c uses of glibc's argp, for a C library without it: musl, and Emscripten's, which is musl too.
// --help has one line for each option, and --usage is --help.
#pragma once

#include <stdio.h>
#include "../options.h"

enum { ARGP_KEY_HELP_EXTRA = -1, OPTION_HIDDEN = 1, ARGP_HELP_STD_HELP = 0, ARGP_HELP_USAGE = 0 };

struct argp_option {
    const char *name;
    int key; // without a name: a letter
    const char *arg;
    int flags;
    const char *doc;
    int group;
};

struct argp {
    const struct argp_option *options;
    const char *doc;
    char *(*help_filter)(int key, const char *text, void *input);
};

static void argp_help(const struct argp *argp, FILE *stream, unsigned flags, char *name) {
    (void)flags;
    fprintf(stream, "Usage: %s [OPTION...]\n%s\n\n", name, argp->doc);
    for (const struct argp_option *o = argp->options; o->name || o->key || o->doc; o++)
        if (o->name && o->flags != OPTION_HIDDEN)
            fprintf(stream, "      --%s%s%s  %s\n", o->name, o->arg ? "=" : "", o->arg ? o->arg : "",
                    argp->help_filter(o->key, o->doc, NULL));
        else if (!o->name && !o->key)
            fprintf(stream, "\n %s\n", o->doc);
    fprintf(stream, "\n%s\n", argp->help_filter(ARGP_KEY_HELP_EXTRA, NULL, NULL));
}
