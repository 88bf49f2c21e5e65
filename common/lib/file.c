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

// Opens a device or a pipe, which is written directly. Fails, with ENXIO, if no process reads the pipe: it
// would wait for a reader for ever.
static int open_special(NewFile *file, const char *path) {
    int fd = open(strcpy(file->name, path), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0)
        fcntl(fd, F_SETFL, 0); // writing waits until there is room
    return fd;
}

// Creates the temporary file for a path that stat() has not refused as too long. If that is a symbolic link,
// its target will be replaced. The file gets the mode of the old one, or the usual mode if `old` is NULL.
static int create_temporary(NewFile *file, const char *path, const char *ending, const struct stat *old) {
    sigset_t all, before;
    if (!(old ? realpath(path, file->target) : strcpy(file->target, path)))
        return -1;
    const char *slash = strrchr(file->target, '/');
    int folder = slash ? (int)(slash + 1 - file->target) : 0;
    if (snprintf(file->name, PATH_MAX, "%.*s.unfinished-XXXXXX%s", folder, file->target, ending) >=
        PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // until the handler knows the file
    int fd = mkostemps(file->name, (int)strlen(ending), O_CLOEXEC);
    file->temporary = fd >= 0;
    unfinished = fd >= 0 ? file : NULL;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (fd >= 0) {
        mode_t mask = umask(0);
        umask(mask);
        (void)!fchmod(fd, old ? old->st_mode & 0777 : 0666 & ~mask); // some file systems have no modes
    }
    return fd;
}

const char *file_begin(NewFile *file, const char *path, const char *ending) {
    struct stat status;
    file_catch_signals(NULL);
    file->temporary = false;
    bool exists = stat(path, &status) == 0, special = exists && !S_ISREG(status.st_mode);
    if (!exists && errno != ENOENT)
        return strerror(errno);
    if (special && S_ISDIR(status.st_mode))
        return strerror(EISDIR);
    if (special && !S_ISCHR(status.st_mode) && !S_ISFIFO(status.st_mode))
        return "it is neither a file nor a character device nor a pipe";
    if (exists && access(path, W_OK) != 0)
        return strerror(errno);
    int fd =
        special ? open_special(file, path) : create_temporary(file, path, ending, exists ? &status : NULL);
    file->stream = fd < 0 ? NULL : fdopen(fd, "wb");
    if (file->stream)
        return NULL;
    bool unread = exists && S_ISFIFO(status.st_mode) && errno == ENXIO;
    const char *problem = unread ? "no process reads this pipe" : strerror(errno);
    if (fd >= 0)
        close(fd);
    file_discard(file);
    return problem;
}

const char *file_end(NewFile *file) {
    bool failed = ferror(file->stream); // the reason of an earlier failure is lost: EIO stands for it
    errno = EIO;
    if (fclose(file->stream) != 0 || failed || (file->temporary && rename(file->name, file->target) != 0))
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
    if (!problem && file.temporary) // a pipe stays open: its reader must not see an end before the data
        fclose(file.stream);
    file_discard(&file);
    if (problem)
        quit(EXIT_FAILURE, "cannot write %s: %s", path, problem);
}
