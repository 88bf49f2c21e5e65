// SPDX-License-Identifier: MIT
// The command line: which options are accepted, the messages for mistakes, and the defaults.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include "../../common/lib/display.h"
#include "../../common/lib/printable.h"
#include "../../common/options.h"
#include "../../common/random.h"
#include "../../cucc/tests/unit.h"

static size_t size = 1000;
static int iterations = 200;
static float scale = 1.5f;
static bool zoom;
static int color = 1;
static const char *file, *words;
static const Option own[] = {OPTION_SIZE("size", &size, 1, 65536, "pixels a side"),
                             OPTION_INT("iterations", &iterations, -5, 1000, "steps"),
                             OPTION_FLOAT("scale", &scale, 0.1, 100, "half a side"),
                             OPTION_FLAG("zoom", &zoom, "animate"),
                             OPTION_WORD("color", &color, "red|green|greenish", "what color"),
                             OPTION_FILE("log", &file, "where to"),
                             OPTION_TEXT("words", &words, "what to say"),
                             OPTION_END};

static unsigned uses = PICTURE | ANIMATION;

// Links the code for pictures, as a program with a picture does.
void (*const with_pictures)(const Canvas *) = display_canvas;

// Parses a line of words separated by blanks and prints the values of the options. `text` is static,
// because options.output points into it after the call.
static void parse(const char *line) {
    static char text[256];
    char *argv[32] = {(char *)"here/prog"}, *save = NULL;
    int argc = 1;
    options.program = program_invocation_short_name = (char *)"prog";
    snprintf(text, sizeof(text), "%s", line);
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    parse_options(argc, argv, "A test.", uses, own);
    printf("size %zu iterations %d scale %g zoom %d device %d given %d list %d seed %llu output %s "
           "window %d frames %zu inject %d uses %u color %d log %s;",
           size, iterations, scale, zoom, options.device, options.device_given, options.list_devices,
           (unsigned long long)options.seed, options.output ? options.output : "-", options.window,
           options.frames, options.inject_error, options.uses, color, file ? file : "-");
}

static bool expect(const char *line, int status, const char *text) {
    struct unit_result r = IN_CHILD(parse(line));
    const char *said = status ? r.err : r.out;
    // An error is exactly one line on stderr, with nothing on stdout.
    bool good = r.status == status && *(status ? r.out : r.err) == '\0' &&
                (!status || strchr(said, '\n') == said + strlen(said) - 1) && strstr(said, text);
    if (!EXPECT(good))
        fprintf(stderr, "  %s: status %d\n%s%s", line, r.status, r.out, r.err);
    return good;
}

// Expects that the option refuses each of the words, which are separated by blanks.
static void expect_refused(const char *option, const char *words, const char *reason) {
    char text[256], line[64], message[128], *save = NULL;
    snprintf(text, sizeof(text), "%s", words);
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        snprintf(line, sizeof(line), "%s %s", option, word);
        snprintf(message, sizeof(message), "prog: %s: %s", line, reason);
        expect(line, 64, message);
    }
    snprintf(line, sizeof(line), "%s=", option);
    snprintf(message, sizeof(message), "prog: %s '': %s", option, reason);
    expect(line, 64, message);
}

TEST(defaults) {
    expect("", 0,
           "size 1000 iterations 200 scale 1.5 zoom 0 device 0 given 0 list 0 seed 1 "
           "output - window -1 frames 120 inject 0 uses 6");
}

TEST(values) {
    expect("--size 1 --iterations=-5 --scale 1e-1 --zoom --device 3 --seed 9223372036854775807 "
           "--output x.ppm --no-window --frames 7 --inject-error --list-devices",
           0,
           "size 1 iterations -5 scale 0.1 zoom 1 device 3 given 1 list 1 seed 9223372036854775807 "
           "output x.ppm window 0 frames 7 inject 1 ");
    expect("--size 1K", 0, "size 1024 ");
    expect("--size=64K", 0, "size 65536 ");
    expect("--size 7 --size 8", 0, "size 8 ");
    expect("--scale 100", 0, "scale 100 ");
    expect("--scale .5", 0, "scale 0.5 ");
    expect("--iterations 0", 0, "iterations 0 ");
    expect("--device 0", 0, "device 0 given 1 ");
    expect("--no-w", 0, "window 0 "); // getopt accepts unambiguous abbreviations
}

TEST(words_and_files) {
    expect("", 0, " color 1 log -;");
    expect("--color red", 0, " color 0 log -;");
    expect("--color=green", 0, " color 1 log -;");
    expect("--color greenish --log a|b", 0, " color 2 log a|b;");
    expect("--log=", 0, " color 1 log ;");
    expect_refused("--color", "blue re redd gree red|green | RED 0", "must be one of red|green|greenish\n");
    expect("--color", 64, "prog: option '--color' requires an argument\n");
    expect("--log", 64, "prog: option '--log' requires an argument\n");
}

TEST(refused_numbers) {
    expect_refused("--size",
                   "0 -1 -0 65537 99999999999999 abc 1x 1Kx 1k 65K 1KK 9999999G 1.5 1e3 0x10 +1 "
                   "9223372036854775807G - K 9223372036854775808",
                   "must be a whole number from 1 to 65536\n");
    expect("--size=\t1", 64, "prog: --size ?1: must be ");
    expect("--size=1\n2", 64, "prog: --size 1?2: must be ");
    expect("--iterations -6", 64, "prog: --iterations -6: must be a whole number from -5 to 1000\n");
    expect("--iterations 4294967297", 64, "whole number from -5 to 1000\n");
    expect("--iterations 1K", 64, "whole number from -5 to 1000\n");
    expect("--device 4294967296", 64, "whole number from 0 to 2147483647\n");
    expect("--seed 9223372036854775808", 64, "whole number from 0 to 9223372036854775807\n");
}

TEST(refused_floats) {
    expect_refused("--scale", "nan inf -inf 1e39 1e999 0.09 100.1 0 -1 x 1x 1e 0x1 . 1,5 -",
                   "must be a number from 0.1 to 100\n");
}

TEST(refused_options) {
    expect("--nothing", 64, "prog: unrecognized option '--nothing'\n");
    expect("--sise 3", 64,
           "prog: unrecognized option '--sise'; did you mean --size? --help lists the options\n");
    expect("--isze=3", 64, "; did you mean --size? --help");
    expect("--itertions", 64, "; did you mean --iterations? --help");
    expect("--inyect-error", 64,
           "prog: unrecognized option '--inyect-error'\n"); // which --help does not list
    expect("--sezi", 64, "prog: unrecognized option '--sezi'\n");
    expect("-x", 64, "prog: invalid option -- 'x'\n");
    expect("--size", 64, "prog: option '--size' requires an argument\n");
    expect("--zoom=1", 64, "prog: option '--zoom' doesn't allow an argument\n");
    expect("--s 1", 64, "prog: option '--s' is ambiguous; ");
    expect("more", 64, "prog: more: this program takes options only\n");
    expect("--zoom -- more", 64, "prog: more: this program takes options only\n");
    expect("--window --no-window", 64, "prog: --window and --no-window contradict each other\n");
    expect("--no-window --window", 64, "prog: --window and --no-window contradict each other\n");
    expect("--window --output x.ppm", 64, "prog: --window and --output contradict each other\n");
}

TEST(refused_outputs) {
    uses = PICTURE | ANIMATION;
    expect_refused("--output", "x.tiff x png x.png.gz x.mp3", "the name must end in .png, .ppm, ");
    setenv("PATH", "/nonexistent", 1);
    expect("--output x.gif", 64,
           "prog: --output x.gif: needs ffmpeg, which is not installed (Debian: ffmpeg)\n");
    expect("--output no/x.ppm", 1, "prog: cannot write no/x.ppm: No such file or directory\n");
    expect("--output no/%d.ppm", 1, "prog: cannot write no/0.ppm: No such file or directory\n");
    expect("--output f%d.ppm", 0, "output f%d.ppm ");
    uses = PICTURE;
    expect("--output f%d.ppm", 64,
           "prog: --output f%d.ppm: this program makes one picture, not a sequence\n");
    expect("--output 5%.ppm", 0, "output 5%.ppm ");
#if !HAVE_PNG
    expect("--output x.png", 64,
           "prog: --output x.png: cannot write .png: built without libpng (Debian: libpng-dev)\n");
#endif
#if HAVE_WEBP
    expect("--output x.webp", 0, "output x.webp ");
#else
    expect("--output x.webp", 64, "x.webp: cannot write .webp: built without libwebp (Debian: ");
#endif
}

TEST(only_what_applies) {
    uses = PICTURE;
    expect("--frames 3", 64, "unrecognized option '--frames'");
    expect("--output x.ppm", 0, "output x.ppm ");
    uses = ANIMATION;
    expect("--frames 3 --output x.ppm", 0, "output x.ppm window -1 frames 3 ");
    uses = HOST_ONLY;
    expect("--output x.ppm", 64, "unrecognized option '--output'");
    expect("--window", 64, "unrecognized option '--window'");
    expect("--no-window", 64, "unrecognized option '--no-window'");
    expect("--frames 3", 64, "unrecognized option '--frames'");
    expect("--device 1 --seed 2 --list-devices", 0, "device 1 given 1 list 1 seed 2 ");
}

TEST(without_parse_options) {
    char expected[256];
    struct unit_result r = IN_CHILD({
        printf("%s %d %llu %d %zu %d", options.program, options.device, (unsigned long long)options.seed,
               options.window, options.frames, options.inject_error);
        free(big_random_block(10));
        quit(3, "%s\n%d", "a", 5);
    });
    snprintf(expected, sizeof(expected), "%s 0 1 -1 120 0", program_invocation_short_name);
    EXPECT(r.status == 3 && strcmp(r.out, expected) == 0);
    snprintf(expected, sizeof(expected), "%s: a?5\n", program_invocation_short_name);
    EXPECT(strcmp(r.err, expected) == 0);
}

// lost_output starts this case with stdin and stdout closed.
TEST(a_file_is_not_standard_output) {
    char *argv[] = {(char *)"prog", NULL};
    parse_options(1, argv, "A test.", 0, NULL);
    EXPECT(open("/dev/null", O_RDONLY) > STDERR_FILENO);
}

// stdout or stderr is closed or cannot be written: the program reports once that output was lost.
TEST(lost_output) {
    char *argv[] = {(char *)"prog", (char *)"a_file_is_not_standard_output", NULL};
    struct unit_result r = IN_CHILD({
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        execv("/proc/self/exe", argv);
        exit(9);
    });
    EXPECT(r.status == 0 && !*r.err);
    r = IN_CHILD(close(STDERR_FILENO), parse("--size 0"));
    EXPECT(r.status == 64 && !*r.out);
    r = IN_CHILD(close(STDERR_FILENO), parse(""));
    EXPECT(r.status == 0 && *r.out);
}

// ---- lines with text from outside

TEST(printable_texts) {
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"", ""},
        {"a b~", "a b~"},
        {"\x1b[31m\t\n\r\a\x7f", "?[31m?????"},
        {"\u00e9 \u20ac \U0001f600 \u00a0", "\u00e9 \u20ac \U0001f600 \u00a0"},
        {"a\xc2\x9b"
         "31m\xc2\x80",
         "a?31m?"},                        // control characters of 8 bits, in UTF-8
        {"\u2028x\u202ey\u2066", "?x?y?"}, // line separator, directions of writing
        {"\x9b\xff\xc3", "???"},           // not UTF-8
        {"\xc3(\xe2\x82", "?(??"},
        {"\xc0\x9b\xe0\x82\x9b\xf0\x80\x82\x9b", "?????????"}, // too long for their codes
        {"\xf4\x90\x80\x80", "????"},                          // beyond Unicode
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[64];
        strcpy(text, rows[i].text);
        EXPECT(printable(text) == text && strcmp(text, rows[i].shown) == 0);
    }
}

// getopt prints its messages itself.
TEST(messages_of_getopt) {
    expect("--no\x1b[31m", 64, "prog: unrecognized option '--no?[31m'\n");
    expect("--no\xc2\x9b=1", 64, "prog: unrecognized option '--no?=1'\n");
    expect("-\x9b", 64, "prog: invalid option -- '?'\n");
    expect("--s=\x1b", 64, "prog: option '--s=?' is ambiguous; possibilities: ");
    expect("\x1b[31m", 64, "prog: ?[31m: this program takes options only\n");
    expect("--words=\x1b", 0, "size 1000 "); // values stay as they are
}

static pthread_barrier_t all_fail;

static void *fail(void *number) {
    pthread_barrier_wait(&all_fail);
    if ((size_t)number % 2)
        quit(5, "thread %zu", (size_t)number);
    quit_line(5, "prog: thread %zu", (size_t)number);
}
static void fail_together(void) {
    enum { THREADS = 8 };
    pthread_t thread;
    options.program = "prog";
    pthread_barrier_init(&all_fail, NULL, THREADS);
    for (size_t i = 1; i < THREADS; i++)
        pthread_create(&thread, NULL, fail, (void *)i);
    fail(NULL);
}

// Of several threads that fail at the same time one prints its line.
TEST(threads_that_fail_together) {
    for (int i = 0; i < 20; i++) {
        struct unit_result r = IN_CHILD(fail_together());
        EXPECT(r.status == 5 && strncmp(r.err, "prog: thread ", 13) == 0);
        EXPECT(strchr(r.err, '\n') == r.err + strlen(r.err) - 1);
    }
}
