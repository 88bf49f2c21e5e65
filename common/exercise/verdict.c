// SPDX-License-Identifier: MIT
// Linked with exercises (make exercise), whose main the linker renames to __real_main (--wrap=main): says
// whether the check of the program has passed. A kernel that ends the process, by exit() or an error, gets no
// "right". On the CPU back end, time limits end a kernel that is in a deadlock or an endless loop
// (CUDA_CPU_WATCHDOG, CUDA_CPU_TIME_LIMIT), and a barrier that not every thread reaches ends it too.
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
    setenv("CUDA_CPU_WATCHDOG", "10", 0);
    setenv("CUDA_CPU_TIME_LIMIT", "20", 0);
    setenv("CUDA_CPU_STRICT", "1", 0);
    const int status = __real_main(argc, argv);
    const char *verdict = status == 0 ? "right" : status == 2 ? "not checked" : "wrong";
    fflush(stdout);
    if (graded)
        dprintf(4, "%s %s\n", word, verdict);
    else {
        const char *const path = argc > 0 && strrchr(argv[0], '/') ? argv[0] : "/exercise";
        const char *const program = strstr(path, "my/");
        // The result can be right in spite of a data race. So this names the command that looks for data
        // races.
        if (status == 0 && program)
            fprintf(stderr,
                    "To find data races, barriers in a branch and accesses beyond an array: "
                    "make check PROGRAM=%s\n",
                    program);
        fprintf(stderr, "%s: %s\n", strrchr(path, '/') + 1, verdict);
    }
    return status;
}
