// SPDX-License-Identifier: MIT
// Unit tests in C and CUDA C++. Each source file is a test program.
//
//     TEST(adds) { EXPECT(1 + 1 == 2); }
//
// prog runs each case in a child process and shows the output of those that fail. prog NAME… runs these cases
// in its own process, for a debugger. The exit status is 1 if a case fails.
// An EXPECT whose condition is false prints `file:line: text` on stderr.
#pragma once

#include <signal.h>
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
        __atomic_add_fetch(&unit_failures, 1, __ATOMIC_RELAXED);
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

// Returns true in a new child process, which ends after so many seconds, and false when it has ended. Must be
// called before this process has started threads.
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
#define IN_CHILD(...)                                                                                        \
    ({                                                                                                       \
        struct unit_result unit_result;                                                                      \
        if (unit_fork(&unit_result, 60)) {                                                                   \
            __VA_ARGS__;                                                                                     \
            exit(EXIT_SUCCESS);                                                                              \
        }                                                                                                    \
        unit_result;                                                                                         \
    })

#ifdef __cplusplus
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

// A case for two types T: TEST_OF(adds, float, double) { EXPECT(T(1) + T(1) == T(2)); }
#define TEST_OF(name, A, B)                                                                                  \
    template <class T> static void name##_of();                                                              \
    TEST(name) {                                                                                             \
        name##_of<A>(), name##_of<B>();                                                                      \
    }                                                                                                        \
    template <class T> static void name##_of()

// A call of the runtime, the driver or a library that must succeed
#define OK(...) EXPECT((__VA_ARGS__) == 0)

// What such a call stores in `it`, before which it is -1 or NaN: EXPECT(STORED(int, cudaGetDevice(&it)) == 0)
#define STORED(T, ...)                                                                                       \
    [&] {                                                                                                    \
        T it;                                                                                                \
        memset((void *)&it, 0xff, sizeof it);                                                                \
        OK(__VA_ARGS__);                                                                                     \
        return it;                                                                                           \
    }()

// Runs body(), then exit(0), or exit(1) after a failed expectation, in a child process.
template <class Body> static unit_result in_child(Body body, unsigned seconds = 60) {
    unit_result result;
    if (unit_fork(&result, seconds)) {
        body();
        exit(unit_failures ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    return result;
}

// A program that ended with this status, and a message with all these words; `cuda on the CPU: …` begins it
static inline void ends_with(const unit_result &result, std::initializer_list<std::string> words,
                             int status = EXIT_FAILURE) {
    if (!EXPECT(result.status == status))
        fprintf(stderr, "  status %d, not %d: %s\n", result.status, status, result.err);
    for (const std::string &word : words) {
        const char *const at = strstr(result.err, word.c_str());
        if (!EXPECT(at && (at == result.err || word.find("cuda on the CPU: ") != 0)))
            fprintf(stderr, "  missing \"%s\" in: %s\n", word.c_str(), result.err);
    }
}

// Runs body(0) … body(n - 1) in threads, at the same time.
template <class Body> static void in_threads(int n, Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < n; i++)
        threads.emplace_back(body, i);
    for (std::thread &thread : threads)
        thread.join();
}
#endif

static inline int unit_run_here(int count, char **names) {
    for (int i = 0; i < count; i++) {
        const struct unit_case *test = unit_first;
        while (test && strcmp(test->name, names[i]) != 0)
            test = test->next;
        if (!test) {
            fprintf(stderr, "no such case: %s\n", names[i]);
            return 64;
        }
        test->run();
    }
    return unit_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    int cases = 0, failed = 0;
    if (argc > 1)
        return unit_run_here(argc - 1, argv + 1);
    for (const struct unit_case *test = unit_first; test; test = test->next, cases++) {
        struct unit_result result;
        if (unit_fork(&result, 100)) { // a case may take longer than its IN_CHILD
            test->run();
            exit(unit_failures ? EXIT_FAILURE : EXIT_SUCCESS);
        }
        if (result.status == EXIT_SUCCESS)
            continue;
        failed++;
        fprintf(stderr, "%s%s%s: failed", result.out, result.err, test->name);
        if (result.status != EXIT_FAILURE)
            fprintf(stderr, ", status %d", result.status);
        fputs("\n", stderr);
    }
    printf("%d cases, %d failed\n", cases, failed);
    return failed || !cases ? EXIT_FAILURE : EXIT_SUCCESS;
}
