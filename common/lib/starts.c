// SPDX-License-Identifier: MIT
// One line in place of what a library of another maker does when it cannot start.
#define _GNU_SOURCE
#include <ctype.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../options.h"

// The first line of a file that has a letter, or NULL
static const char *first_line(int fd) {
    static char text[4096];
    ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        for (char *c = line; *c; c++)
            if (isalpha((unsigned char)*c))
                return line;
    return NULL;
}

void try_start(const char *name, void (*start)(void)) {
    int says = memfd_create("stderr", MFD_CLOEXEC), status = 0;
    pid_t child = says < 0 ? -1 : fork();
    if (child == 0) {
        dup2(says, STDOUT_FILENO);
        dup2(says, STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        start();
        _exit(0);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && status != 0) {
        const char *line = first_line(says);
        quit(EXIT_WAIVED, "needs %s, which cannot start%s%s", name, line ? ": " : "", line ? line : "");
    }
    if (says >= 0)
        close(says);
}
