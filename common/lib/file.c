// SPDX-License-Identifier: MIT
// Writes files atomically.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../file.h"
#include "../options.h"

const char *file_begin(NewFile *file, const char *path, const char *ending) {
    struct stat status;
    file->temporary = false;
    bool exists = stat(path, &status) == 0;
    if (!exists && errno != ENOENT)
        return strerror(errno);
    if (exists && S_ISDIR(status.st_mode))
        return strerror(EISDIR);
    if (exists && access(path, W_OK) != 0)
        return strerror(errno);
    if (exists && !S_ISREG(status.st_mode))
        return snprintf(file->name, PATH_MAX, "%s", path) < PATH_MAX ? NULL : strerror(ENAMETOOLONG);
    char *real = realpath(path, NULL); // replaces the target of a symbolic link, not the link
    snprintf(file->target, sizeof(file->target), "%s", real ? real : path);
    free(real);
    const char *slash = strrchr(file->target, '/');
    int length = snprintf(file->name, sizeof(file->name), "%.*s.unfinished-XXXXXX%s",
                          slash ? (int)(slash + 1 - file->target) : 0, file->target, ending);
    file->temporary = true; // before the file exists, so that a signal handler deletes it
    int fd = length < PATH_MAX ? mkostemps(file->name, (int)strlen(ending), O_CLOEXEC) : -1;
    if (fd < 0) {
        file->temporary = false;
        return strerror(length < PATH_MAX ? errno : ENAMETOOLONG);
    }
    mode_t mask = umask(0);
    umask(mask);
    // mkostemps creates files with mode 0600. Some file systems have no modes, so errors are ignored.
    (void)!fchmod(fd, exists ? status.st_mode & 0777 : 0666 & ~mask);
    close(fd);
    return NULL;
}

const char *file_end(NewFile *file) {
    if (file->temporary && rename(file->name, file->target) != 0)
        return strerror(errno);
    file->temporary = false;
    return NULL;
}

void file_discard(NewFile *file) {
    if (file->temporary)
        unlink(file->name);
    file->temporary = false;
}

const char *file_save(NewFile *file, const char *path, const void *data, size_t size) {
    const char *problem = file_begin(file, path, ".tmp");
    if (problem)
        return problem;
    FILE *stream = fopen(file->name, "wbe");
    bool good = stream && fwrite(data, 1, size, stream) == size;
    if (!stream || fclose(stream) != 0 || !good)
        problem = strerror(errno);
    else
        problem = file_end(file);
    if (problem)
        file_discard(file);
    return problem;
}

void file_check(const char *path) {
    NewFile file;
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); // a signal must not leave the temporary file behind
    const char *problem = file_begin(&file, path, ".tmp");
    file_discard(&file);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (problem)
        quit(EXIT_FAILURE, "cannot write %s: %s", path, problem);
}
