// SPDX-License-Identifier: MIT
// Command line options: getopt reads them, and glibc's argp prints --help.
#define _GNU_SOURCE
#if __has_include(<argp.h>)
#include <argp.h>
#else
#include "argp.h"
#endif
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../options.h"
#include "printable.h"

void (*check_picture_options)(void);
struct Options options = {.window = -1, .seed = 1, .frames = 120, .kernel = -1};

// Holds two file names, as in "wrote a to b".
enum { LINE = 2 * PATH_MAX + 512 };

static void print_values(FILE *file, const char *start, const char *format, va_list values) {
    char text[LINE];
    int length = snprintf(text, sizeof(text), "%s", start);
    vsnprintf(text + length, sizeof(text) - (size_t)length, format, values);
    fprintf(file, "%s\n", printable(text));
}

void print_line(FILE *file, const char *format, ...) {
    va_list values;
    va_start(values, format);
    print_values(file, "", format, values);
    va_end(values);
}

static atomic_bool failing; // whether a thread has called quit() or quit_line()

__attribute__((noreturn)) static void end(int status, const char *start, const char *format, va_list values) {
    static _Thread_local bool first;
    if (!atomic_exchange(&failing, true))
        first = true;
    while (!first) // the first thread ends the program
        pause();
    print_values(stderr, start, format, values);
    exit(status);
}

void quit(int status, const char *reason, ...) {
    char start[NAME_MAX + 8];
    va_list values;
    snprintf(start, sizeof(start), "%.*s: ", NAME_MAX, options.program);
    va_start(values, reason);
    end(status, start, reason, values);
}

void quit_line(int status, const char *line, ...) {
    va_list values;
    va_start(values, line);
    end(status, "", line, values);
}

// Lost output must not end with status 0. Runs at exit, where exit() must not be called again. Nothing is
// printed after the line of quit(), whose status stays.
static void check_stdout(void) {
    errno = 0;
    bool lost = fflush(stdout) != 0;
    if (!lost && ferror(stdout)) // an earlier write failed; errno is no longer known
        lost = true;
    else if (!lost) // some file systems report a full disk only on close
        lost = close(dup(STDOUT_FILENO)) != 0;
    if (lost && !failing) {
        print_line(stderr, "%s: cannot write to stdout%s%s", options.program, errno ? ": " : "",
                   errno ? strerror(errno) : "");
        _exit(EXIT_FAILURE);
    }
}

// A program may be started with a standard file closed. The next file that is opened, such as a
// picture, would then get its number and receive its output. /dev/null takes its place; for stdout it
// is opened read-only, so that writing fails and is reported.
static void open_standard_files(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) < 0)
            _exit(EXIT_FAILURE);
}

// Runs before main, which may open files before it calls parse_options: MPI_Init does.
__attribute__((constructor)) static void start(void) {
    static char name[NAME_MAX + 1];
    snprintf(name, sizeof(name), "%s", program_invocation_short_name);
    options.program = printable(name);
    signal(SIGPIPE, SIG_IGN); // writing then fails with a reason instead of ending the program
    signal(SIGXFSZ, SIG_IGN);
    open_standard_files();
}

static long long parse_whole(const char *name, const char *text, long long min, long long max,
                             bool suffixes) {
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    // strtoll also accepts leading white space and a plus sign, which are mistakes here.
    bool good = errno == 0 && isdigit((unsigned char)text[text[0] == '-']);
    const char *unit = suffixes && *end ? strchr(units, *end) : NULL;
    if (unit) {
        good &= !__builtin_mul_overflow(value, 1LL << 10 * (unit - units + 1), &value);
        end++;
    }
    if (!good || *end || value < min || value > max)
        quit(EXIT_USAGE, "--%s %s: must be a whole number from %lld to %lld", name, *text ? text : "''", min,
             max);
    return value;
}

static float parse_float(const char *name, const char *text, float low, float high) {
    char *end;
    float value = strtof(text, &end);
    // Refuses inf, nan, hexadecimal numbers and white space. Overflow gives infinity: out of range.
    bool good = end != text && *end == '\0' && text[strspn(text, "0123456789+-.eE")] == '\0';
    if (!good || !(value >= low && value <= high))
        quit(EXIT_USAGE, "--%s %s: must be a number from %g to %g", name, *text ? text : "''", low, high);
    return value;
}

// The position of a word in a list such as "red|green".
static int parse_word(const char *name, const char *text, const char *words) {
    const char *word = words;
    for (int place = 0;; place++) {
        size_t length = strcspn(word, "|");
        if (strlen(text) == length && strncmp(text, word, length) == 0)
            return place;
        if (!word[length])
            quit(EXIT_USAGE, "--%s %s: must be one of %s", name, *text ? text : "''", words);
        word += length + 1;
    }
}

static const Option *own_options;
static size_t own_rows;
static bool window, no_window; // --window, --no-window

// The options that several programs have. `uses`: the flags of parse_options that a program needs for the
// option; 0: every program has it. A row without a name is the title of a group of options in --help. The row
// without a variable is --seed, which has 64 bits. An option with an empty help text is not listed.
static const struct {
    Option option;
    int group;
    unsigned uses;
} common[] = {
    {{.help = "Picture:"}, 1, PICTURE | ANIMATION},
    {OPTION_FILE(
         "output", &options.output,
         "write to FILE, whose ending is the format: .png, .webp, .gif, .mp4 and more; frame-%04d.png: "
         "each frame in a file (default: a window, or a file in the current folder named after the "
         "program)"),
     1, PICTURE | ANIMATION},
    {OPTION_FLAG("window", &window,
                 "show the picture in a window; Esc, q or its close button ends the program"),
     1, PICTURE | ANIMATION},
    {OPTION_FLAG("no-window", &no_window, "never open a window"), 1, PICTURE | ANIMATION},
    {OPTION_SIZE("frames", &options.frames, 1, INT_MAX,
                 "number of frames of an animation (default %zu; in a window, until it is closed)"),
     1, ANIMATION},
    {{.help = "Ladder:"}, 3, LADDER},
    {OPTION_INT("kernel", &options.kernel, 0, INT_MAX,
                "run this kernel alone, by its number in the table (default: all)"),
     3, LADDER},
    {OPTION_INT("runs", &options.runs, 1, 1000000,
                "time N runs of each kernel (default: as many as take about 0.1 s)"),
     3, LADDER},
    {OPTION_FLAG("json", &options.json, "print JSON instead of a table"), 3, LADDER},
    {{.help = "Device and data:"}, 2, 0},
    {OPTION_INT("device", &options.device, 0, INT_MAX, "run on device N (default 0)"), 2, 0},
    {OPTION_FLAG("list-devices", &options.list_devices, "list the devices and exit"), 2, 0},
    {{"seed", "start of the random numbers (default 1)", TYPE_INT, NULL, 0, 0, NULL}, 2, 0},
    {OPTION_FLAG("inject-error", &options.inject_error, ""), 2, 0},
};
enum { COMMON = sizeof(common) / sizeof(*common), KEY_USAGE = 999, KEY_OWN = 1000, KEY_COMMON = 2000 };

// The options that print information and end the program, and the end of the table
static const struct argp_option information[] = {
    {.key = 'h', .doc = "the same as --help", .group = -1},
    {.name = "help", .key = '?', .doc = "Give this help list", .group = -1},
    {.name = "usage", .key = KEY_USAGE, .doc = "Give a short usage message", .group = -1},
    {.name = "version", .key = 'V', .doc = "Print program version", .group = -1},
    {.name = NULL},
};
enum { INFORMATION = sizeof(information) / sizeof(*information) };

static void set_value(const Option *option, char *text) {
    if (!option->value) {
        options.seed = (uint64_t)parse_whole("seed", text, 0, LLONG_MAX, false);
        return;
    }
    long long min = (long long)option->min, max = (long long)option->max;
    options.device_given |= option->value == &options.device;
    options.frames_given |= option->value == &options.frames;
    switch (option->type) {
    case TYPE_FLAG:
        *(bool *)option->value = true;
        break;
    case TYPE_INT:
        *(int *)option->value = (int)parse_whole(option->name, text, min, max, false);
        break;
    case TYPE_SIZE:
        *(size_t *)option->value = (size_t)parse_whole(option->name, text, min, max, true);
        break;
    case TYPE_FLOAT:
        *(float *)option->value = parse_float(option->name, text, (float)option->min, (float)option->max);
        break;
    case TYPE_WORD:
        *(int *)option->value = parse_word(option->name, text, option->words);
        break;
    case TYPE_FILE:
    case TYPE_TEXT:
        *(const char **)option->value = text;
    }
}

// The --help text of an option of the program. The caller frees it.
static char *help_text(const Option *own) {
    char *text = NULL;
    const char *help = own->help, *word = own->words;
    int length = 0, number = own->type == TYPE_INT || own->type == TYPE_WORD ? *(int *)own->value : 0;
    long long min = (long long)own->min, max = (long long)own->max;
    switch (own->type) {
    case TYPE_WORD:
        for (int i = 0; i < number; i++)
            word += strcspn(word, "|") + 1;
        length = asprintf(&text, "%s: %s (default %.*s)", help, own->words, (int)strcspn(word, "|"), word);
        break;
    case TYPE_INT:
        if (number < min || number > max)
            length = asprintf(&text, "%s (from %lld to %lld)", help, min, max);
        else
            length = asprintf(&text, "%s (default %d; from %lld to %lld)", help, number, min, max);
        break;
    case TYPE_SIZE:
        length = asprintf(&text, "%s (default %zu; from %lld to %lld; K, M, G for powers of 1024)", help,
                          *(size_t *)own->value, min, max);
        break;
    case TYPE_FLOAT:
        length =
            asprintf(&text, "%s (default %g; from %g to %g)", help, *(float *)own->value, own->min, own->max);
        break;
    case TYPE_FLAG:
    case TYPE_FILE:
    case TYPE_TEXT:
        length = asprintf(&text, "%s", help);
    }
    if (length < 0)
        quit(EXIT_FAILURE, "out of memory");
    return text;
}

static char *help_filter(int key, const char *text, void *input) {
    (void)input;
    char *other = (char *)text;
    if (text && strstr(text, "%zu") && asprintf(&other, text, options.frames) < 0) // inserts the default
        other = NULL;
    if (key == ARGP_KEY_HELP_EXTRA)
        other = strdup("Exit status: 0 result verified, 1 wrong result or an error, 2 this "
                       "machine lacks what the program needs, 64 usage.");
    if (!other && text != other)
        quit(EXIT_FAILURE, "out of memory");
    return other;
}

// The option whose name differs from `wrong` by a letter, or by two neighbours that changed places
static const char *similar(const struct option *option, const char *wrong, size_t length) {
    for (; option->name; option++) {
        size_t own = strlen(option->name), same = 0, end = 0;
        size_t shorter = own < length ? own : length, longer = own + length - shorter;
        while (same < shorter && option->name[same] == wrong[same])
            same++;
        while (end < shorter - same && option->name[own - 1 - end] == wrong[length - 1 - end])
            end++;
        size_t left = longer - same - end;
        bool swapped = left == 2 && own == length && option->name[same] == wrong[same + 1];
        if (shorter > 2 && (left == 1 || swapped) &&
            strcmp(option->name, "inject-error") != 0) // which is hidden
            return option->name;
    }
    return NULL;
}

// Ends the program because of a word that getopt does not accept, with the message of glibc's getopt, which
// would print the word as it is. `letter`: of an unknown short option; 0: the word is a long option.
__attribute__((noreturn)) static void refuse(const struct option *names, const char *word, int letter) {
    if (letter)
        quit(EXIT_USAGE, "invalid option -- '%c'", letter);
    const char *name = word + 2, *found = NULL;
    char possible[LINE] = "";
    size_t length = strcspn(name, "="), end = 0;
    int count = 0;
    for (const struct option *option = names; option->name; option++) {
        if (strncmp(option->name, name, length) != 0)
            continue;
        found = option->name;
        if (!found[length]) { // its whole name
            count = 1;
            break;
        }
        count++;
        if (end < sizeof(possible))
            end += (size_t)snprintf(possible + end, sizeof(possible) - end, " '--%s'", found);
    }
    if (count > 1)
        quit(EXIT_USAGE, "option '%s' is ambiguous; possibilities:%s", word, possible);
    if (count == 1)
        quit(EXIT_USAGE, "option '--%s' %s an argument", found, name[length] ? "doesn't allow" : "requires");
    found = similar(names, name, length);
    quit(EXIT_USAGE, "unrecognized option '%s'%s%s%s", word, found ? "; did you mean --" : "",
         found ? found : "", found ? "? --help lists the options" : "");
}

static void print_version(void) {
    // The build defines SUITE_VERSION as the text of the file VERSION: 1.0.0, without quotes.
#define STRING(text)  #text
#define QUOTED(macro) STRING(macro)
    printf("%s (cuda-by-example) %s\n", options.program, QUOTED(SUITE_VERSION));
}

// Carries out the option with this key of the table that parse_options() makes.
static void act_on(int key, char *text, const struct argp *argp) {
    if (key >= KEY_OWN) {
        set_value(key >= KEY_COMMON ? &common[key - KEY_COMMON].option : &own_options[key - KEY_OWN], text);
        return;
    }
    if (key == 'V')
        print_version();
    else
        argp_help(argp, stdout, key == KEY_USAGE ? ARGP_HELP_USAGE : ARGP_HELP_STD_HELP,
                  (char *)options.program);
    exit(EXIT_SUCCESS);
}

static void parse_arguments(const struct argp *argp, size_t rows, int argc, char **argv) {
    struct option names[rows + 1];
    size_t n = 0;
    for (const struct argp_option *row = argp->options; row < argp->options + rows; row++)
        if (row->name) // '?' is what getopt returns for a mistake
            names[n++] = (struct option){row->name, row->arg != NULL, NULL, row->key == '?' ? 'h' : row->key};
    names[n] = (struct option){NULL, 0, NULL, 0};
    opterr = 0;
    for (int key; (key = getopt_long(argc, argv, "hV", names, NULL)) >= 0;) {
        if (key == '?' && optopt != '?') // a mistake, and not -?
            refuse(names, argv[optind - 1], optopt < KEY_USAGE && !strchr("hV", optopt) ? optopt : 0);
        act_on(key, optarg, argp);
    }
    if (optind < argc)
        quit(EXIT_USAGE, "%s: this program takes options only", *argv[optind] ? argv[optind] : "''");
}

void parse_options(int argc, char **argv, const char *doc, unsigned uses, const Option *own) {
    atexit(check_stdout);

    own_options = own;
    own_rows = 0;
    while (own && own[own_rows].name)
        own_rows++;
    struct argp_option table[own_rows + COMMON + INFORMATION];
    static const char *const argument[] = {NULL, "N", "N", "N", "WORD", "FILE", "TEXT"}; // by OptionType
    size_t rows = 0;
    for (; rows < own_rows; rows++) {
        if (strcmp(own[rows].name, "size") == 0 && own[rows].type == TYPE_SIZE) {
            options.size = (const size_t *)own[rows].value;
            options.size_of = own[rows].help;
        }
        table[rows] = (struct argp_option){.name = own[rows].name,
                                           .key = KEY_OWN + (int)rows,
                                           .arg = argument[own[rows].type],
                                           .doc = help_text(&own[rows])};
    }
    for (int i = 0; i < COMMON; i++) {
        const Option *option = &common[i].option;
        if (uses & common[i].uses || !common[i].uses)
            table[rows++] = (struct argp_option){.name = option->name,
                                                 .key = option->name ? KEY_COMMON + i : 0,
                                                 .arg = argument[option->type],
                                                 .flags = *option->help ? 0 : OPTION_HIDDEN,
                                                 .doc = option->help,
                                                 .group = common[i].group};
    }
    memcpy(&table[rows], information, sizeof(information));
    rows += INFORMATION;

    options.uses = uses;
    const struct argp argp = {.options = table, .doc = doc, .help_filter = help_filter};
    parse_arguments(&argp, rows, argc, argv);
    for (size_t i = 0; i < own_rows; i++)
        free((char *)table[i].doc);
    if (window && no_window)
        quit(EXIT_USAGE, "--window and --no-window contradict each other");
    if (window && options.output)
        quit(EXIT_USAGE, "--window and --output contradict each other");
    if (window || no_window)
        options.window = window;
    if (uses & (PICTURE | ANIMATION) && !options.list_devices && check_picture_options)
        check_picture_options();
}
