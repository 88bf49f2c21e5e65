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

// One option of the program's own. Write rows with the macros below, which also check the type of the
// variable. Its value before parse_options is the default that --help shows. An int outside its range
// stands for "not given"; its default is not shown.
typedef enum OptionType { TYPE_FLAG, TYPE_INT, TYPE_SIZE, TYPE_FLOAT, TYPE_WORD, TYPE_FILE } OptionType;

typedef struct Option {
    const char *name, *help;
    OptionType type;
    void *value;       // the variable that it sets
    double min, max;   // of a number
    const char *words; // of a word: the list of them, separated by |
} Option;

#define OPTION_ROW(name, help, type, c_type, variable, min, max, words)                                      \
    { name, help, type, (void *)(1 ? (variable) : (c_type *)0), (double)(min), (double)(max), words }
#define OPTION_FLAG(name, variable, help) OPTION_ROW(name, help, TYPE_FLAG, bool, variable, 0, 0, NULL)
#define OPTION_INT(name, variable, min, max, help)                                                           \
    OPTION_ROW(name, help, TYPE_INT, int, variable, min, max, NULL)
// Takes the suffixes K, M, G (powers of 1024).
#define OPTION_SIZE(name, variable, min, max, help)                                                          \
    OPTION_ROW(name, help, TYPE_SIZE, size_t, variable, min, max, NULL)
#define OPTION_FLOAT(name, variable, min, max, help)                                                         \
    OPTION_ROW(name, help, TYPE_FLOAT, float, variable, min, max, NULL)
// One of the words of a list such as "red|green"; the int becomes its place, from 0 on.
#define OPTION_WORD(name, variable, words, help) OPTION_ROW(name, help, TYPE_WORD, int, variable, 0, 0, words)
// The name of a file, as it was given.
#define OPTION_FILE(name, variable, help)                                                                    \
    OPTION_ROW(name, help, TYPE_FILE, const char *, variable, 0, 0, NULL)
#define OPTION_END                                                                                           \
    { NULL, NULL, TYPE_FLAG, NULL, 0, 0, NULL }

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

// Set by the part of common/ that shows pictures: checks --window and --output at the end of
// parse_options. NULL in programs without a picture.
extern void (*check_picture_options)(void);

// Every program defines this below the line "proof": it declares its options, calls parse_options and
// select_device, and refuses sizes beyond the available memory.
void settings(int argc, char **argv);

// Ends the program: `program: reason` on stderr. The reason takes printf's formats.
__attribute__((noreturn, format(printf, 2, 3))) void quit(int status, const char *reason, ...);

#ifdef __cplusplus
}
#endif
#endif
