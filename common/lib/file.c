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

static NewFile *volatile unfinished; // the file that is begun and neither ended nor discarded
static pthread_t home,
    writer; // the thread that handles signals: the one that began the file, otherwise `home`
static bool (*continues)(int number);

enum { SIGNALS = 3 };
static const int numbers[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction before[SIGNALS];

static void discard_unfinished(void) {
    if (unfinished)
        file_discard(unfinished);
}

static void interrupted(int number) {
    // The system calls the handler in any thread. `writer` blocks signals while it creates and while it
    // renames a file, so there the handler finds the file in a definite state, and no file is begun after it.
    if (!pthread_equal(pthread_self(), writer)) {
        pthread_kill(writer, number);
        return;
    }
    if (continues && continues(number))
        return;
    discard_unfinished();
    for (int i = 0; i < SIGNALS; i++)
        if (numbers[i] == number)
            sigaction(number, &before[i], NULL);
    raise(number);
}

void file_catch_signals(bool (*goes_on)(int number)) {
    static bool done;
    if (goes_on)
        continues = goes_on;
    if (done)
        return;
    done = true;
    home = writer = pthread_self();
    atexit(discard_unfinished);
    at_quick_exit(discard_unfinished); // the CPU back end ends so after an error in a kernel
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction action = {.sa_handler = interrupted, .sa_flags = SA_RESTART};
        if (sigaction(numbers[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

static void block_signals(sigset_t *old) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, old);
}

static void restore_signals(const sigset_t *old) {
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

// ---- beginning a file

// Refuses what could not be written, or not now: a pipe that no process reads would wait for a reader for
// ever. The pipe stays open until the program ends or has another one, because its reader would take the end
// of file_check() for the end of the data.
static const char *check_special(const char *path, mode_t mode) {
    static int held = -1;
    if (S_ISCHR(mode))
        return NULL;
    if (!S_ISFIFO(mode))
        return "it is neither a file nor a character device nor a pipe";
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENXIO ? "no process reads this pipe" : strerror(errno);
    if (held >= 0)
        close(held);
    held = fd;
    return NULL;
}

// Finds out what `path` is. If it is a regular file, *real is its name without symbolic links; the caller
// frees it. In a folder that others can write to, the file may be replaced between the two system calls. So
// stat and realpath must have found the same file.
static const char *look_up(const char *path, struct stat *status, bool *exists, char **real) {
    for (int tries = 0; tries < 1000; tries++) {
        struct stat found;
        *real = NULL;
        *exists = stat(path, status) == 0;
        if (!*exists)
            return errno == ENOENT ? NULL : strerror(errno);
        if (S_ISDIR(status->st_mode))
            return strerror(EISDIR);
        if (access(path, W_OK) != 0)
            return strerror(errno);
        if (!S_ISREG(status->st_mode))
            return check_special(path, status->st_mode);
        *real = realpath(path, NULL);
        if (*real && lstat(*real, &found) == 0 && found.st_dev == status->st_dev &&
            found.st_ino == status->st_ino)
            return NULL;
        int reason = errno;
        bool gone = *real || reason == ENOENT; // replaced, or renamed, meanwhile: look again
        free(*real);
        if (!gone)
            return strerror(reason);
    }
    return "another process replaces it again and again";
}

// Creates the temporary file, if there is one, and returns its descriptor in *fd, otherwise -1. Signals are
// blocked.
static const char *create(NewFile *file, const char *path, const char *ending, int *fd) {
    struct stat status;
    bool exists;
    char *real;
    *fd = -1;
    file->temporary = false;
    file->stream = NULL;
    file->stop = NULL;
    const char *problem = look_up(path, &status, &exists, &real);
    if (problem)
        return problem;
    if (exists && !real)
        return snprintf(file->name, PATH_MAX, "%s", path) < PATH_MAX ? NULL : strerror(ENAMETOOLONG);
    // The target of a symbolic link is replaced, not the link.
    int length = snprintf(file->target, sizeof(file->target), "%s", real ? real : path);
    free(real);
    const char *slash = strrchr(file->target, '/');
    if (length < PATH_MAX)
        length = snprintf(file->name, sizeof(file->name), "%.*s.unfinished-XXXXXX%s",
                          slash ? (int)(slash + 1 - file->target) : 0, file->target, ending);
    if (length >= PATH_MAX)
        return strerror(ENAMETOOLONG);
    *fd = mkostemps(file->name, (int)strlen(ending), O_CLOEXEC);
    if (*fd < 0)
        return strerror(errno);
    file->temporary = true;
    writer = pthread_self();
    unfinished = file;
    mode_t mask = umask(0);
    umask(mask);
    // mkostemps creates files with mode 0600. Some file systems have no modes, so errors are ignored.
    (void)!fchmod(*fd, exists ? status.st_mode & 0777 : 0666 & ~mask);
    return NULL;
}

static const char *begin(NewFile *file, const char *path, const char *ending, int *fd) {
    sigset_t old;
    file_catch_signals(NULL);
    block_signals(&old);
    const char *problem = create(file, path, ending, fd);
    restore_signals(&old);
    return problem;
}

const char *file_begin(NewFile *file, const char *path, const char *ending) {
    int fd;
    const char *problem = begin(file, path, ending, &fd);
    if (fd >= 0)
        close(fd);
    return problem;
}

const char *file_open(NewFile *file, const char *path) {
    struct stat status;
    int fd;
    const char *problem = begin(file, path, ".tmp", &fd);
    if (problem)
        return problem;
    if (!file->temporary) { // without O_TRUNC: no device has contents to lose, and a file must not lose them
        fd = open(file->name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
            close(fd);
            return "another process replaces it again and again";
        }
    }
    file->stream = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!file->stream) {
        problem = strerror(errno);
        if (fd >= 0)
            close(fd);
        file_discard(file);
    }
    return problem;
}

// ---- ending a file

const char *file_end(NewFile *file) {
    if (file->stream) {
        FILE *stream = file->stream;
        bool failed =
            ferror(stream); // an earlier write failed and its errno is lost, so the message is that of EIO
        file->stream = NULL;
        errno = EIO;
        if (fclose(stream) != 0 || failed)
            return strerror(errno);
    }
    sigset_t old;
    block_signals(&old);
    bool renamed = !file->temporary || rename(file->name, file->target) == 0;
    const char *problem = renamed ? NULL : strerror(errno);
    if (renamed) {
        file->temporary = false;
        unfinished = NULL;
        writer = home;
    }
    restore_signals(&old);
    return problem;
}

void file_discard(NewFile *file) {
    if (file->stop)
        file->stop();
    if (file->temporary)
        unlink(file->name);
    file->temporary = false;
    if (unfinished == file) {
        unfinished = NULL;
        writer = home;
    }
}

void file_check(const char *path) {
    NewFile file;
    sigset_t old;
    block_signals(&old); // the file must not outlive this function
    const char *problem = file_begin(&file, path, ".tmp");
    file_discard(&file);
    restore_signals(&old);
    if (problem)
        quit(EXIT_FAILURE, "cannot write %s: %s", path, problem);
}
