// SPDX-License-Identifier: MIT
// What options.c uses of glibc's argp, for a C library without it: musl, and Emscripten's, which is musl too.
// --help has one line for each option, and --usage is --help.
#pragma once

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "../options.h"

#define error_t int
enum {
    ARGP_KEY_ARG,
    ARGP_KEY_ERROR,
    ARGP_KEY_HELP_EXTRA,
    ARGP_ERR_UNKNOWN,
    OPTION_HIDDEN,
    ARGP_HELP_STD_HELP = 0,
    ARGP_HELP_USAGE = 0,
    ARGP_HELP_EXIT_OK = 0,
    ARGP_NO_ERRS = 0,
    ARGP_NO_HELP = 0
};

struct argp_option {
    const char *name;
    int key; // without a name: a letter
    const char *arg;
    int flags;
    const char *doc;
    int group;
};

struct argp_state {
    const struct argp *root_argp;
    char **argv;
    int next;
    unsigned flags;
};

struct argp {
    const struct argp_option *options;
    error_t (*parser)(int key, char *text, struct argp_state *state);
    const char *doc;
    char *(*help_filter)(int key, const char *text, void *input);
};

static void argp_state_help(struct argp_state *state, FILE *stream, unsigned what) {
    const struct argp *argp = state->root_argp;
    (void)what;
    fprintf(stream, "Usage: %s [OPTION...]\n%s\n\n", options.program, argp->doc);
    for (const struct argp_option *o = argp->options; o->name || o->key || o->doc; o++)
        if (o->name && o->flags != OPTION_HIDDEN)
            fprintf(stream, "      --%s%s%s  %s\n", o->name, o->arg ? "=" : "", o->arg ? o->arg : "",
                    argp->help_filter(o->key, o->doc, NULL));
        else if (!o->name && !o->key)
            fprintf(stream, "\n %s\n", o->doc);
    fprintf(stream, "\n%s\n", argp->help_filter(ARGP_KEY_HELP_EXTRA, NULL, NULL));
    exit(EXIT_SUCCESS);
}

static error_t argp_parse(const struct argp *argp, int argc, char **argv, unsigned flags, int *index,
                          void *input) {
    struct argp_state state = {.root_argp = argp, .argv = argv};
    struct option names[100] = {{NULL, 0, NULL, 0}};
    int n = 0, key;
    (void)flags, (void)index, (void)input;
    for (const struct argp_option *o = argp->options; n < 99 && (o->name || o->key || o->doc); o++)
        if (o->name) // getopt_long returns '?' for a mistake
            names[n++] = (struct option){o->name, o->arg != NULL, NULL, o->key == '?' ? 'h' : o->key};
    opterr = 0;
    while ((key = getopt_long(argc, argv, "hV", names, NULL)) >= 0) {
        state.next = optind;
        argp->parser(key == '?' ? ARGP_KEY_ERROR : key, optarg, &state);
    }
    if (optind < argc)
        argp->parser(ARGP_KEY_ARG, argv[optind], &state);
    return 0;
}
