// SPDX-License-Identifier: MIT
// The folder that is laid out like a CUDA toolkit: finding it, and building what is missing or out of date
#include "driver.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static struct timespec built; // when the toolkit was built

static int is_newer(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)path, (void)type, (void)place;
    const struct timespec *changed = &status->st_mtim;
    return changed->tv_sec > built.tv_sec ||
           (changed->tv_sec == built.tv_sec && changed->tv_nsec > built.tv_nsec);
}

// A change of the translator makes the toolkit newer, so that makefiles compile their programs again.
static bool is_current(const Settings *s) {
    static const char *const sources[] = {"Makefile", "translate", "runtime", "include", NULL};
    struct stat status;
    if (stat(format("%s/machine", s->tools), &status) != 0)
        return false;
    built = status.st_mtim;
    for (const char *const *one = sources; *one; one++)
        if (nftw(format("%s/%s", s->home, *one), is_newer, 16, FTW_PHYS) > 0)
            return false;
    return true;
}

// Of two processes that start at once, one builds and the other waits.
static int lock(const char *path) {
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        stop("%s: %s", path, strerror(errno));
    while (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        wait_a_moment();
    return file;
}

// A folder as an argument of make, which runs in our source folder
static const char *relative(const Settings *s, const char *folder) {
    const size_t length = strlen(s->home);
    return has_prefix(folder, s->home) && folder[length] == '/' ? folder + length + 1 : folder;
}

// Runs make, and keeps what it prints until it succeeds.
static bool make_toolkit(const Settings *s) {
    List command = {0};
    Text compiler = empty_text(), printed = {0};
    for (int i = 0; i < s->cxx.count; i++)
        append_text(&compiler, format("%s%s", i ? " " : "", s->cxx.words[i]));
    add_all_of(&command, "env -u MAKEFLAGS -u GNUMAKEFLAGS -u MAKEFILES -u MAKELEVEL -u MFLAGS -u CXXFLAGS "
                         "-u CPPFLAGS make -s -C");
    ADD(&command, s->home, format("-j%d", get_nprocs()), format("BUILD=%s", relative(s, s->build)),
        format("TOOLKIT=%s", relative(s, s->tools)), format("CXX=%s", compiler.data),
        format("SANITIZE=%s", s->sanitize ? s->sanitize : ""));
    const char *log = format("%s.log", s->tools), *machine = format("%s/machine", s->tools);
    FILE *file = fopen(log, "we");
    if (!file)
        stop("%s: %s", log, strerror(errno));
    const bool made = run_command(&command, NULL, file, file) == 0;
    fclose(file);
    const int touched = made ? open(machine, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (touched >= 0 && futimens(touched, NULL) == 0 && close(touched) == 0) {
        unlink(log);
        return true;
    }
    if (made)
        fprintf(stderr, "cucc: %s: %s\n", machine, strerror(errno));
    else if (read_text(log, &printed))
        fputs(printed.data, stderr);
    return false;
}

// Sets `tools`, after building what is missing or out of date.
void find_toolkit(Settings *s) {
    const char *machine = machine_of(s), *name = name_of(s->cxx.words[0]);
    const bool installed = mode_of(format("%s/lib64", s->home));
    Text own = {0};
    if (installed && !s->sanitize && read_text(format("%s/machine", s->home), &own) &&
        !strcmp(own.data, format("%s\n", machine))) {
        s->tools = format("%s", s->home);
        return;
    }
    // All compilers for a machine can use the same library, but each has its own sanitizer libraries.
    s->tools = format("%s/%s", s->build, machine);
    if (s->sanitize && has_prefix(name, "c++"))
        name = format("g%s", name + 1);
    if (s->sanitize)
        s->tools = format("%s-%s-%s", s->tools, name, s->sanitize);
    const bool for_builds = strcmp(s->build, s->home) != 0; // not the folder of make install
    if (for_builds && is_current(s))
        return;
    if (!for_builds || access(s->build, W_OK) != 0)
        restart(s);
    const int locked = lock(format("%s/.lock", s->build));
    if (!mode_of(format("%s/machine", s->tools)))
        fprintf(stderr, "cucc: building the CPU back end in %s, once; it takes about 20 s on two cores\n",
                s->build);
    if (!is_current(s) && !make_toolkit(s))
        stop("the CPU back end does not build");
    close(locked);
}
