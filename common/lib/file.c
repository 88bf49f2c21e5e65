// SPDX-License-Identifier: MIT
// Writes files atomically.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../file.h"
#include "../options.h"

// ---- deleting an unfinished file when the program ends

static NewFile *volatile unfinished; // begun, and neither ended nor discarded
static pthread_t writer;             // the thread that writes files
static bool (*continues)(int number);

static void discard_unfinished(void) {
    if (unfinished)
        file_discard(unfinished);
}

// The system calls the handler in any thread. In the thread that writes files none is begun after it.
static void interrupted(int number) {
    if (!pthread_equal(pthread_self(), writer)) {
        pthread_kill(writer, number);
        return;
    }
    if (continues && continues(number))
        return;
    discard_unfinished();
    signal(number, SIG_DFL);
    raise(number);
}

void file_catch_signals(bool (*goes_on)(int number)) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    static bool done;
    if (goes_on)
        continues = goes_on;
    if (done)
        return;
    done = true;
    writer = pthread_self();
    atexit(discard_unfinished);
    at_quick_exit(discard_unfinished); // the CPU back end ends so after an error in a kernel
    for (int i = 0; i < 3; i++) {
        struct sigaction action = {.sa_handler = interrupted, .sa_flags = SA_RESTART}, old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

// ---- writing a file

// Opens a target that is written directly. A pipe that no process reads would wait for a reader for ever.
static const char *open_special(const char *path, mode_t mode, int *fd) {
    if (!S_ISCHR(mode) && !S_ISFIFO(mode))
        return "it is neither a file nor a character device nor a pipe";
    *fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (*fd < 0)
        return errno == ENXIO && S_ISFIFO(mode) ? "no process reads this pipe" : strerror(errno);
    fcntl(*fd, F_SETFL, 0); // writing waits until there is room
    return NULL;
}

// Creates the temporary file of file->target, with the mode of the file that it replaces, or the usual one.
static const char *create_temporary(NewFile *file, const char *ending, const struct stat *old, int *fd) {
    sigset_t all, before;
    const char *slash = strrchr(file->target, '/');
    int folder = slash ? (int)(slash + 1 - file->target) : 0;
    if (snprintf(file->name, PATH_MAX, "%.*s.unfinished-XXXXXX%s", folder, file->target, ending) >= PATH_MAX)
        return strerror(ENAMETOOLONG);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // until the handler knows the file
    *fd = mkostemps(file->name, (int)strlen(ending), O_CLOEXEC);
    file->temporary = *fd >= 0;
    unfinished = *fd >= 0 ? file : NULL;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (*fd < 0)
        return strerror(errno);
    mode_t mask = umask(0);
    umask(mask);
    (void)!fchmod(*fd, old ? old->st_mode & 0777 : 0666 & ~mask); // some file systems have no modes
    return NULL;
}

// Returns the descriptor of the new file in *fd.
static const char *begin(NewFile *file, const char *path, const char *ending, int *fd) {
    struct stat status;
    file_catch_signals(NULL);
    file->temporary = false;
    file->stream = NULL;
    bool exists = stat(path, &status) == 0;
    if (!exists && errno != ENOENT)
        return strerror(errno);
    if (exists && S_ISDIR(status.st_mode))
        return strerror(EISDIR);
    if (exists && access(path, W_OK) != 0)
        return strerror(errno);
    if (exists && !S_ISREG(status.st_mode)) {
        strcpy(file->name, path);
        return open_special(path, status.st_mode, fd);
    }
    // The target of a symbolic link is replaced, not the link. stat() has refused paths that are too long.
    if (!(exists ? realpath(path, file->target) : strcpy(file->target, path)))
        return strerror(errno);
    return create_temporary(file, ending, exists ? &status : NULL, fd);
}

const char *file_begin(NewFile *file, const char *path, const char *ending) {
    int fd;
    const char *problem = begin(file, path, ending, &fd);
    if (file->temporary) // a pipe stays open: its reader must not see an end before the data
        close(fd);
    return problem;
}

const char *file_open(NewFile *file, const char *path) {
    int fd;
    const char *problem = begin(file, path, ".tmp", &fd);
    if (problem)
        return problem;
    file->stream = fdopen(fd, "wb");
    if (!file->stream) {
        problem = strerror(errno);
        close(fd);
        file_discard(file);
    }
    return problem;
}

const char *file_end(NewFile *file) {
    if (file->stream) {
        bool failed = ferror(file->stream); // the reason of an earlier failure is lost: EIO stands for it
        errno = EIO;
        if (fclose(file->stream) != 0 || failed)
            return strerror(errno);
    }
    if (file->temporary && rename(file->name, file->target) != 0)
        return strerror(errno);
    unfinished = NULL;
    return NULL;
}

void file_discard(NewFile *file) {
    if (file->temporary)
        unlink(file->name);
    unfinished = NULL;
}

void file_check(const char *path) {
    NewFile file;
    const char *problem = file_begin(&file, path, ".tmp");
    file_discard(&file);
    if (problem)
        quit(EXIT_FAILURE, "cannot write %s: %s", path, problem);
}
