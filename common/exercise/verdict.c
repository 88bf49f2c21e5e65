// SPDX-License-Identifier: MIT
// Linked with exercises (make exercise), whose main the linker renames to __real_main (--wrap=main): says
// whether the check of the program has passed. A kernel that ends the process, by exit() or an error, gets no
// "right".
//
// For make grade the environment variable EXERCISE_GRADED is set. Then a word is read from descriptor 3
// before main runs, and is written with the verdict to descriptor 4, so that output of the submission is not
// taken for the verdict.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

static char word[64];

static void read_word(void) {
    size_t n = 0;
    for (ssize_t got; n < sizeof(word) - 1 && (got = read(3, word + n, sizeof(word) - 1 - n)) > 0;)
        n += (size_t)got;
    word[strcspn(word, "\n")] = 0;
    close(3);
    unsetenv("EXERCISE_GRADED");
}

int __wrap_main(int argc, char **argv) {
    const int graded = getenv("EXERCISE_GRADED") != NULL;
    if (graded)
        read_word();
    const int status = __real_main(argc, argv);
    const char *verdict = status == 0 ? "right" : status == 2 ? "not checked" : "wrong";
    fflush(stdout);
    if (graded)
        dprintf(4, "%s %s\n", word, verdict);
    else
        fprintf(stderr, "%s: %s\n",
                argc > 0 && strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : "exercise", verdict);
    return status;
}
