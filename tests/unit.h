// SPDX-License-Identifier: MIT
// Unit tests in CUDA. Each source file is a test program.
//
//     TEST(adds) { EXPECT(1 + 1 == 2); }
//
// prog runs each case in a child process and shows the output of those that fail. prog NAME runs this case in
// its own process, for a debugger. The exit status is 1 if a case fails.
// An EXPECT whose condition is false prints `file:line: text` on stderr.
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct unit_case {
    const char *name;
    void (*run)(void);
    struct unit_case *next;
};

static struct unit_case *unit_first, **unit_end = &unit_first;
static int unit_failures;

// Defines a case. Cases run in the order of the source.
#define TEST(name)                                                                                           \
    static void name##_case(void);                                                                           \
    __attribute__((constructor)) static void name##_add(void) {                                              \
        static struct unit_case self = {#name, name##_case, NULL};                                           \
        *unit_end = &self;                                                                                   \
        unit_end = &self.next;                                                                               \
    }                                                                                                        \
    static void name##_case(void)

// Records a failure and continues. Returns whether the expectation holds: if (!EXPECT(p)) return;
#define EXPECT(...) unit_expect((__VA_ARGS__) ? true : false, #__VA_ARGS__, __FILE__, __LINE__)

static inline bool unit_expect(bool holds, const char *text, const char *file, int line) {
    if (!holds) {
        fprintf(stderr, "%s:%d: expected %s\n", file, line, text);
        unit_failures++;
    }
    return holds;
}

// The exit status of a child process (128 + signal when a signal ended it) and its output.
struct unit_result {
    int status;
    char out[8192], err[8192];
};

static inline void unit_slurp(FILE *file, char *text, size_t size) {
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

// Returns true in a new child process, which ends after so many seconds, and false when it has ended.
static inline bool unit_fork(struct unit_result *result, unsigned seconds) {
    FILE *out = tmpfile(), *err = tmpfile();
    int status = 0;
    pid_t child;
    fflush(NULL);
    if (!out || !err || (child = fork()) < 0) {
        perror("unit_fork");
        abort();
    }
    if (child == 0) {
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        alarm(seconds);
        return true;
    }
    waitpid(child, &status, 0);
    result->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    unit_slurp(out, result->out, sizeof(result->out));
    unit_slurp(err, result->err, sizeof(result->err));
    return false;
}

// Executes statements, then exit(0), in a child process; for code that ends the program:
//     struct unit_result r = IN_CHILD(quit(3, "why"));
// This process must not have started threads.
#define IN_CHILD(...)                                                                                        \
    ({                                                                                                       \
        struct unit_result unit_result;                                                                      \
        if (unit_fork(&unit_result, 60)) {                                                                   \
            __VA_ARGS__;                                                                                     \
            exit(EXIT_SUCCESS);                                                                              \
        }                                                                                                    \
        unit_result;                                                                                         \
    })

int main(int argc, char **argv) {
    int cases = 0, failed = 0;
    for (struct unit_case *test = unit_first; test; test = test->next) {
        if (argc > 1 && strcmp(test->name, argv[1]) != 0)
            continue;
        struct unit_result result;
        if (argc > 1 || unit_fork(&result, 100)) { // a case may take longer than its IN_CHILD
            test->run();
            exit(unit_failures ? EXIT_FAILURE : EXIT_SUCCESS);
        }
        cases++;
        if (result.status == EXIT_SUCCESS)
            continue;
        failed++;
        fprintf(stderr, "%s%s%s: failed, status %d\n", result.out, result.err, test->name, result.status);
    }
    printf("%d cases, %d failed\n", cases, failed);
    return failed || !cases ? EXIT_FAILURE : EXIT_SUCCESS;
}
