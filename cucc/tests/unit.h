// SPDX-License-Identifier: MIT
// Unit tests in CUDA. Each source file is a test program.
//
//     TEST(adds) { EXPECT(1 + 1 == 2); }
//
// prog runs each case in a child process and shows the output of those that fail. prog NAME… runs these cases
// in its own process, for a debugger. The exit status is 1 if a case fails.
// An EXPECT whose condition is false prints `file:line: text` on stderr.
#pragma once

#include <initializer_list>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <string.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct unit_case {
    static std::vector<unit_case> &all() { // a function: the cases register before main()
        static std::vector<unit_case> cases;
        return cases;
    }
    const char *name;
    void (*run)();
    unit_case(const char *name, void (*run)()) : name(name), run(run) { all().push_back(*this); }
};

static int unit_failures;

// Defines a case. Cases run in the order of the source.
#define TEST(name)                                                                                           \
    static void name##_case();                                                                               \
    static const unit_case name##_self(#name, name##_case);                                                  \
    static void name##_case()

// A case for two types T: TEST_OF(adds, float, double) { EXPECT(T(1) + T(1) == T(2)); }
#define TEST_OF(name, A, B)                                                                                  \
    template <class T> static void name##_of();                                                              \
    TEST(name) {                                                                                             \
        name##_of<A>(), name##_of<B>();                                                                      \
    }                                                                                                        \
    template <class T> static void name##_of()

// Records a failure and continues. Returns whether the expectation holds: if (!EXPECT(p)) return;
#define EXPECT(...) unit_expect((__VA_ARGS__) ? true : false, #__VA_ARGS__, __FILE__, __LINE__)

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

// Runs body(), then exit(0), or exit(1) after a failed expectation, in a child process; for code that ends
// the program. Must be called before this process has started threads.
template <class Body> static unit_result in_child(Body body, unsigned seconds = 60) {
    unit_result result;
    FILE *out = tmpfile(), *err = tmpfile();
    int status = 0;
    pid_t child;
    fflush(NULL);
    if (!out || !err || (child = fork()) < 0) {
        perror("in_child");
        abort();
    }
    if (child == 0) {
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        alarm(seconds);
        body();
        exit(unit_failures ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    waitpid(child, &status, 0);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    unit_slurp(out, result.out, sizeof(result.out));
    unit_slurp(err, result.err, sizeof(result.err));
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

int main(int argc, char **argv) {
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        const unit_case *found = NULL;
        for (const unit_case &test : unit_case::all())
            found = strcmp(test.name, argv[i]) == 0 ? &test : found;
        if (!found) {
            fprintf(stderr, "%s: no such case: %s\n", argv[0], argv[i]);
            return 64;
        }
        found->run();
    }
    if (argc > 1)
        return unit_failures ? EXIT_FAILURE : EXIT_SUCCESS;
    for (const unit_case &test : unit_case::all()) {
        const unsigned seconds = 100;
        const unit_result result = in_child(test.run, seconds);
        if (result.status == EXIT_SUCCESS)
            continue;
        failed++;
        fprintf(stderr, "%s%s%s: failed", result.out, result.err, test.name);
        if (result.status == 128 + SIGALRM)
            fprintf(stderr, ", not done after %u s", seconds);
        else if (result.status != EXIT_FAILURE)
            fprintf(stderr, ", status %d", result.status);
        fputs("\n", stderr);
    }
    printf("%zu cases, %d failed\n", unit_case::all().size(), failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
