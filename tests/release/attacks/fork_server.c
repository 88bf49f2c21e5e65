// SPDX-License-Identifier: MIT
// For command_lines.py, as LD_PRELOAD: a program is loaded once and then runs many command lines, each in a
// child process that is forked before the first constructor and main. Loading the libraries of a program
// that is built with sanitizers takes longer than most runs.
//
// A request on descriptor 198 is four numbers of 32 bits (arguments, variables of the environment, bytes,
// flags) and so many bytes: strings that end with zero bytes. They are the current folder, the files for
// stdout and stderr, the arguments beginning with argv[0], and the variables. An empty file name stands for
// a closed descriptor, "|" for a pipe that nobody reads. The answers on descriptor 199 are the process id and
// then the status of waitpid(), of 32 bits each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUESTS = 198, ANSWERS = 199, STDIN_CLOSED = 1 };

typedef int Start(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                  void (*)(void), void *);

static int receive(void *data, size_t size) {
    for (size_t n = 0; n < size;) {
        ssize_t more = read(REQUESTS, (char *)data + n, size - n);
        if (more <= 0 && errno != EINTR)
            return 0;
        n += more > 0 ? (size_t)more : 0;
    }
    return 1;
}

static void answer(int32_t number) {
    if (write(ANSWERS, &number, sizeof(number)) != sizeof(number))
        _exit(0);
}

static char *next(char **text) {
    char *found = *text;
    *text += strlen(found) + 1;
    return found;
}

static void redirect(int descriptor, const char *name) {
    int ends[2], file;
    close(descriptor);
    if (strcmp(name, "|") == 0) {
        if (pipe(ends) != 0)
            _exit(98);
        file = ends[1];
        close(ends[0]);
    } else if (!*name || (file = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600)) < 0)
        return;
    if (file != descriptor) {
        dup2(file, descriptor);
        close(file);
    }
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*at_exit)(void), void *stack_end) {
    Start *real = (Start *)dlsym(RTLD_NEXT, "__libc_start_main");
    (void)argc, (void)argv;
    for (;;) {
        uint32_t head[4];
        if (!receive(head, sizeof(head)))
            _exit(0);
        char *text = malloc(head[2]), *at = text;
        char **list = calloc(head[0] + head[1] + 2, sizeof(*list)), **environment = list + head[0] + 1;
        if (!text || !list || !receive(text, head[2]))
            _exit(0);
        int32_t status;
        pid_t child = fork();
        if (child == 0) {
            close(REQUESTS);
            close(ANSWERS);
            if (chdir(next(&at)) != 0)
                _exit(98);
            const char *out = next(&at), *err = next(&at);
            for (uint32_t i = 0; i < head[0]; i++)
                list[i] = next(&at);
            for (uint32_t i = 0; i < head[1]; i++)
                environment[i] = next(&at);
            redirect(STDERR_FILENO, err);
            redirect(STDOUT_FILENO, out);
            if (head[3] & STDIN_CLOSED)
                close(STDIN_FILENO);
            const char *slash = strrchr(list[0], '/');
            program_invocation_name = list[0];
            program_invocation_short_name = slash ? (char *)slash + 1 : list[0];
            environ = environment;
            return real(main, (int)head[0], list, init, fini, at_exit, stack_end);
        }
        answer(child);
        while (waitpid(child, &status, 0) < 0)
            if (errno != EINTR)
                _exit(0);
        answer(status);
        free(text);
        free(list);
    }
}
