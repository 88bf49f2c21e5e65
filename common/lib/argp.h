// SPDX-License-Identifier: MIT
// What options.c uses of glibc's argp, for a C library without it: musl, and Emscripten's, which is musl too.
// The messages are glibc's; --help has one line for each option, and --usage is --help.
#ifndef COMMON_LIB_ARGP_H
#define COMMON_LIB_ARGP_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../options.h"

#define error_t int
enum {
    ARGP_KEY_ARG,
    ARGP_KEY_INIT,
    ARGP_KEY_HELP_EXTRA,
    ARGP_ERR_UNKNOWN,
    OPTION_HIDDEN,
    ARGP_HELP_STD_HELP
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
    FILE *err_stream;
};

struct argp {
    const struct argp_option *options;
    error_t (*parser)(int key, char *text, struct argp_state *state);
    const char *args_doc, *doc;
    const void *children;
    char *(*help_filter)(int key, const char *text, void *input);
    const char *domain;
};

static void (*argp_program_version_hook)(FILE *stream, struct argp_state *state);

static void argp_state_help(struct argp_state *state, FILE *stream, int flags) {
    const struct argp *argp = state->root_argp;
    (void)flags;
    fprintf(stream, "Usage: %s [OPTION...]\n%s\n\n", options.program, argp->doc);
    for (const struct argp_option *o = argp->options; o->name || o->key || o->doc; o++)
        if (o->name && o->flags != OPTION_HIDDEN)
            fprintf(stream, "      --%s%s%s  %s\n", o->name, o->arg ? "=" : "", o->arg ? o->arg : "",
                    argp->help_filter(o->key, o->doc, NULL));
        else if (!o->name && !o->key)
            fprintf(stream, "\n %s\n", o->doc);
    fprintf(stream, "\n  -h, --help\n  -V, --version\n\n%s\n",
            argp->help_filter(ARGP_KEY_HELP_EXTRA, NULL, NULL));
    exit(EXIT_SUCCESS);
}

// The option with this name, or the only one that begins so
static const struct argp_option *argp_find(const struct argp *argp, const char *text, size_t length) {
    static const struct argp_option common[] = {
        {"help", 'h', NULL, 0, "", 0}, {"usage", 'h', NULL, 0, "", 0}, {"version", 'V', NULL, 0, "", 0}, {0}};
    const struct argp_option *found = NULL, *lists[] = {argp->options, common};
    for (int i = 0; i < 2; i++)
        for (const struct argp_option *o = lists[i]; o->name || o->key || o->doc; o++) {
            if (!o->name || strncmp(o->name, text, length) != 0)
                continue;
            if (!o->name[length])
                return o;
            if (found)
                quit(EXIT_USAGE, "option '--%.*s' is ambiguous; possibilities: '--%s' '--%s'", (int)length,
                     text, found->name, o->name);
            found = o;
        }
    if (!found)
        quit(EXIT_USAGE, "unrecognized option '--%s'", text);
    return found;
}

static error_t argp_parse(const struct argp *argp, int argc, char **argv, unsigned flags, int *index,
                          void *input) {
    struct argp_state state = {argp, NULL};
    bool only_arguments = false;
    (void)flags, (void)index, (void)input;
    for (int i = 1; i < argc; i++) {
        char *text = argv[i], *equals = strchr(text, '=');
        int key = ARGP_KEY_ARG;
        if (!only_arguments && strcmp(text, "--") == 0) {
            only_arguments = true;
            continue;
        }
        if (!only_arguments && strncmp(text, "--", 2) == 0) {
            text += 2;
            const struct argp_option *o =
                argp_find(argp, text, equals ? (size_t)(equals - text) : strlen(text));
            if (equals && !o->arg)
                quit(EXIT_USAGE, "option '--%s' doesn't allow an argument", o->name);
            if (o->arg && !equals && ++i == argc)
                quit(EXIT_USAGE, "option '--%s' requires an argument", o->name);
            key = o->key;
            text = equals ? equals + 1 : argv[i];
        } else if (!only_arguments && text[0] == '-' && text[1]) {
            key = text[1] == '?' ? 'h' : text[1];
            if (text[2] || !strchr("hV", key))
                quit(EXIT_USAGE, "invalid option -- '%c'", text[1]);
        }
        if (key == 'V') {
            argp_program_version_hook(stdout, &state);
            exit(EXIT_SUCCESS);
        }
        argp->parser(key, text, &state);
    }
    return 0;
}

#endif
