// SPDX-License-Identifier: MIT
// Command line options, the same in every program, and the one way a program ends early.
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Exit status beside EXIT_SUCCESS (result verified) and EXIT_FAILURE (wrong result, or an error).
enum {
    EXIT_WAIVED = 2, // this machine lacks what the program needs
    EXIT_USAGE = 64
};

// What a program uses; decides which of the common options it has.
enum {
    HOST_ONLY = 1, // no device unless --device asks for one
    PICTURE = 2,   // --output, --window, --no-window
    ANIMATION = 4, // the same, and --frames
    LADDER = 8,    // --kernel, --json (see bench.h)
    TIMES = 16     // prints times: select_device() names the device
};

// One option of the program's own. Write rows with the macros below, which also see to it that the
// variable has the right type; its value before parse_options is the default that --help shows. An
// int that is out of its range stands for "not given", and is not shown.
typedef struct Option {
    const char *name, *help;
    bool *flag;
    int *integer;
    size_t *size;
    float *number;
    long long min, max;
    float low, high;
    const char *words; // for integer: the words that it may be, with | between
    const char **text;
} Option;

#define OPTION_FLAG(name, variable, help)                                                          \
    { name, help, variable, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL }
#define OPTION_INT(name, variable, min, max, help)                                                 \
    { name, help, NULL, variable, NULL, NULL, (long long)(min), (long long)(max), 0, 0, NULL, NULL }
// Takes the suffixes K, M, G (powers of 1024).
#define OPTION_SIZE(name, variable, min, max, help)                                                \
    { name, help, NULL, NULL, variable, NULL, (long long)(min), (long long)(max), 0, 0, NULL, NULL }
#define OPTION_FLOAT(name, variable, low, high, help)                                              \
    { name, help, NULL, NULL, NULL, variable, 0, 0, (float)(low), (float)(high), NULL, NULL }
// One of the words of a list such as "red|green"; the int becomes its place, from 0 on.
#define OPTION_WORD(name, variable, words, help)                                                   \
    { name, help, NULL, variable, NULL, NULL, 0, 0, 0, 0, words, NULL }
// The name of a file, as it was given.
#define OPTION_FILE(name, variable, help)                                                          \
    { name, help, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, variable }
#define OPTION_END                                                                                 \
    { NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL }

// The common options. The values stand before (and without) parse_options too.
extern struct Options {
    const char *program; // name in messages
    unsigned uses;       // HOST_ONLY | PICTURE | ANIMATION | LADDER | TIMES
    int device;
    bool device_given, list_devices;
    uint64_t seed;
    const char *output; // NULL: not given
    int window;         // -1: where there is one, 0: never, 1: always
    size_t frames;
    bool frames_given;
    bool inject_error;
    int kernel; // -1: all
    bool json;
} options;

// Reads the command line: the common options that `uses` asks for, and the program's own (rows up
// to OPTION_END, or NULL). `doc` is one line for --help. A mistake ends the program with one line
// and EXIT_USAGE, an output file that cannot be written with one line and EXIT_FAILURE. From here
// on, output that does not reach stdout (closed pipe, full disk) is reported at exit, status 1.
void parse_options(int argc, char **argv, const char *doc, unsigned uses, const Option *own);

// Ends the program: `program: reason` on stderr. The reason takes printf's formats.
__attribute__((noreturn, format(printf, 2, 3))) void quit(int status, const char *reason, ...);

#ifdef __cplusplus
}
#endif
#endif
