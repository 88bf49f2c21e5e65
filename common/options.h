// SPDX-License-Identifier: MIT
// Command line options, which are the same in every program, and quit().
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

// Exit statuses besides EXIT_SUCCESS (result verified) and EXIT_FAILURE (wrong result, or an error).
enum {
    EXIT_WAIVED = 2, // this machine lacks what the program needs
    EXIT_USAGE = 64  // a mistake on the command line
};

// What a program uses, which decides the common options that it has.
enum {
    HOST_ONLY = 1, // uses no device unless --device asks for one
    PICTURE = 2,   // --output, --window, --no-window
    ANIMATION = 4, // the options of PICTURE, and --frames
    LADDER = 8,    // --kernel, --runs, --json (see bench.h)
    TIMES = 16     // prints times, so select_device() prints what they are measured on
};

// An option of one program. Write it with a macro below, which also checks the type of the variable.
// The value of the variable before parse_options is the default, which --help shows. An int whose
// default is outside its range means "not given", and --help shows no default.
typedef enum OptionType {
    TYPE_FLAG,
    TYPE_INT,
    TYPE_SIZE,
    TYPE_FLOAT,
    TYPE_WORD,
    TYPE_FILE,
    TYPE_TEXT
} OptionType;

typedef struct Option {
    const char *name, *help;
    OptionType type;
    void *value;       // the variable to set
    double min, max;   // range of a number
    const char *words; // for TYPE_WORD: the permitted words, separated by |
} Option;

#define OPTION_ROW(name, help, type, c_type, variable, min, max, words)                                      \
    { name, help, type, (void *)(1 ? (variable) : (c_type *)0), (double)(min), (double)(max), words }
#define OPTION_FLAG(name, variable, help) OPTION_ROW(name, help, TYPE_FLAG, bool, variable, 0, 0, NULL)
#define OPTION_INT(name, variable, min, max, help)                                                           \
    OPTION_ROW(name, help, TYPE_INT, int, variable, min, max, NULL)
// Accepts the suffixes K, M and G (powers of 1024).
#define OPTION_SIZE(name, variable, min, max, help)                                                          \
    OPTION_ROW(name, help, TYPE_SIZE, size_t, variable, min, max, NULL)
#define OPTION_FLOAT(name, variable, min, max, help)                                                         \
    OPTION_ROW(name, help, TYPE_FLOAT, float, variable, min, max, NULL)
// One word of a list such as "red|green". The int is set to the position of the word, from 0.
#define OPTION_WORD(name, variable, words, help) OPTION_ROW(name, help, TYPE_WORD, int, variable, 0, 0, words)
// A file name, as given.
#define OPTION_FILE(name, variable, help)                                                                    \
    OPTION_ROW(name, help, TYPE_FILE, const char *, variable, 0, 0, NULL)
// An option whose value is any text.
#define OPTION_TEXT(name, variable, help)                                                                    \
    OPTION_ROW(name, help, TYPE_TEXT, const char *, variable, 0, 0, NULL)
#define OPTION_END                                                                                           \
    { NULL, NULL, TYPE_FLAG, NULL, 0, 0, NULL }

// The values of the common options. The defaults are valid before parse_options too.
extern struct Options {
    const char *program; // the name in messages
    unsigned uses;       // HOST_ONLY | PICTURE | ANIMATION | LADDER | TIMES
    int device;
    bool device_given, list_devices;
    uint64_t seed;
    const char *output; // NULL: not given
    int window;         // -1: if there is a display, 0: never, 1: always
    size_t frames;
    bool frames_given;
    bool inject_error;
    int kernel; // -1: all
    int runs;   // timed runs of each kernel; 0: not given
    bool json;
    const size_t *size;  // the value of --size, NULL in a program without it …
    const char *size_of; // … and what it counts
} options;

// Reads the command line: the common options that `uses` selects, and the options of the program
// (`own`, up to OPTION_END; or NULL). `doc` is one line for --help. A mistake ends the program with
// one line and EXIT_USAGE; an --output that cannot be written, with one line and EXIT_FAILURE. After
// this call, output that cannot be written to stdout (closed pipe, full disk) is reported at exit,
// with EXIT_FAILURE.
void parse_options(int argc, char **argv, const char *doc, unsigned uses, const Option *own);

// Checks --window and --output at the end of parse_options. lib/display.c sets it, so that this file
// does not depend on the code for pictures; NULL in programs without a picture.
extern void (*check_picture_options)(void);

// Every program defines this function below its "check" line. It declares the options of the program, reads
// them and selects the device (configure, in book.h), and refuses sizes beyond the available memory.
void settings(int argc, char **argv);

// Prints one line. Its text may contain file names and arguments: control characters within it are replaced
// by question marks. The line break is not part of the printf format.
__attribute__((format(printf, 2, 3))) void print_line(FILE *file, const char *format, ...);

// Prints "program: reason" to stderr and ends the program. The reason is a printf format.
__attribute__((noreturn, format(printf, 2, 3))) void quit(int status, const char *reason, ...);

// The same without the program's name. Of several threads that fail at the same time only the first one
// prints its line and ends the program.
__attribute__((noreturn, format(printf, 2, 3))) void quit_line(int status, const char *line, ...);

// A library may end the process, by abort() or _exit(), where it cannot start. So `start` is first called in
// a child process. If that fails, the program ends with EXIT_WAIVED and one line: "needs NAME, which cannot
// start: " and the first line that the library printed.
void try_start(const char *name, void (*start)(void));

#ifdef __cplusplus
}
#endif
