// SPDX-License-Identifier: MIT
/*
 * A library for LD_PRELOAD that makes one request of a program fail, for test_exhausted.py and others.
 *
 * REFUSE=memory:7 fails the seventh request for memory, REFUSE=memory:7+ also all later ones. The kinds:
 *
 *   memory   malloc, calloc, realloc, aligned allocations, operator new; mmap
 *   files    opening a file or a pipe's stream, closing, renaming, file modes
 *   reads    of these, opening a file for reading
 *   starts   threads, processes and pipes
 *
 * Requests are counted from the start of the program's own code. Only those are counted that are made by the
 * program itself, by the C and C++ libraries on its behalf, or by libpng and libwebp: other libraries, such
 * as OpenGL, have error handling of their own. Before a request fails, a line "refused: malloc" goes to
 * stderr.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum Kind { NONE, MEMORY, FILES, READS, STARTS };

static enum Kind kind; // what fails; NONE until the constructor has run
static bool from_then_on;
static unsigned long long first;
static atomic_ullong requests;
static atomic_bool announced; // whether the line is written

// ---- whose requests count ----

enum { C_LIBRARY = 1, CPP_LIBRARY = 2, OTHERS = 4, THIS = 8 }; // OTHERS: the program, libpng, libwebp

static int owner_of(void *code) {
    static const struct {
        const char *begin;
        int owner;
    } names[] = {{"refuse.", THIS},
                 {"libc.so", C_LIBRARY},
                 {"libstdc++.so", CPP_LIBRARY},
                 {"libpng", OTHERS},
                 {"libwebp", OTHERS}};
    struct dl_find_object object; // of glibc 2.35, which takes no lock and no memory
    if (_dl_find_object(code, &object) != 0)
        return 0;
    const char *const path = object.dlfo_link_map->l_name, *const slash = strrchr(path, '/');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(slash ? slash + 1 : path, names[i].begin, strlen(names[i].begin)) == 0)
            return names[i].owner;
    return *path ? 0 : OTHERS;
}

// Whether the caller is one of these, and not the C or C++ library on behalf of a library that does not
// count.
static bool called_by(void *caller, int owners) {
    static _Thread_local bool looking; // backtrace() may allocate memory
    const int owner = owner_of(caller);
    if (!(owner & owners) || looking)
        return false;
    if (owner == OTHERS)
        return true;
    void *frames[32];
    looking = true;
    const int count = backtrace(frames, sizeof frames / sizeof *frames);
    looking = false;
    for (int i = 0; i < count; i++)
        if (!(owner_of(frames[i]) & (THIS | C_LIBRARY | CPP_LIBRARY)))
            return owner_of(frames[i]) == OTHERS;
    return true;
}

// Whether this request fails. Sets errno then.
static bool refuse(enum Kind of, void *caller, int owners, const char *name, int error) {
    if (of != kind || !called_by(caller, owners))
        return false;
    const unsigned long long number = ++requests;
    if (number != first && !(from_then_on && number > first))
        return false;
    if (number == first) {
        char text[64];
        const int length = snprintf(text, sizeof text, "refused: %s\n", name);
        (void)!syscall(SYS_write, STDERR_FILENO, text, (size_t)length);
        announced = true;
    }
    while (!announced) // the program may end as soon as a request fails
        sched_yield();
    errno = error;
    return true;
}

#define CALLER     __builtin_return_address(0)
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// ---- memory ----

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

#define NO_MEMORY(name) refuse(MEMORY, CALLER, C_LIBRARY | OTHERS, name, ENOMEM)

#define ALLOCATES(name, parameters, real)                                                                    \
    void *name parameters {                                                                                  \
        return NO_MEMORY(#name) ? NULL : __libc_##real;                                                      \
    }
ALLOCATES(malloc, (size_t bytes), malloc(bytes))
ALLOCATES(calloc, (size_t count, size_t bytes), calloc(count, bytes))
ALLOCATES(realloc, (void *memory, size_t bytes), realloc(memory, bytes))
ALLOCATES(aligned_alloc, (size_t alignment, size_t bytes), memalign(alignment, bytes))

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    if (NO_MEMORY("posix_memalign"))
        return ENOMEM;
    *memory = __libc_memalign(alignment, bytes);
    return *memory ? 0 : ENOMEM;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    return refuse(MEMORY, CALLER, OTHERS, "mmap", ENOMEM)
               ? MAP_FAILED
               : REAL(mmap)(at, bytes, protection, flags, file, offset);
}

// operator new, in its forms for objects, arrays and aligned types. A request that cannot be fulfilled makes
// the one of the C++ library throw std::bad_alloc.
#define OPERATOR_NEW(symbol)                                                                                 \
    void *symbol(size_t bytes, uintptr_t more) {                                                             \
        const bool refused = refuse(MEMORY, CALLER, CPP_LIBRARY | OTHERS, "operator new", ENOMEM);           \
        return ((void *(*)(size_t, uintptr_t))dlsym(RTLD_NEXT, #symbol))(refused ? PTRDIFF_MAX : bytes,      \
                                                                         more);                              \
    }
OPERATOR_NEW(_Znwm)
OPERATOR_NEW(_Znam)
OPERATOR_NEW(_ZnwmSt11align_val_t)
OPERATOR_NEW(_ZnamSt11align_val_t)
OPERATOR_NEW(_ZnwmRKSt9nothrow_t)
OPERATOR_NEW(_ZnamRKSt9nothrow_t)

// ---- files ----

#define NO_FILE(name, error) refuse(FILES, CALLER, CPP_LIBRARY | OTHERS, name, error)

#define OPEN_STREAM(name)                                                                                    \
    FILE *name(const char *path, const char *mode) {                                                         \
        const bool reads = !strpbrk(mode, "wa+");                                                            \
        if (NO_FILE("fopen", EMFILE) ||                                                                      \
            (reads && refuse(READS, CALLER, CPP_LIBRARY | OTHERS, "fopen", EMFILE)))                         \
            return NULL;                                                                                     \
        return REAL(name)(path, mode);                                                                       \
    }
OPEN_STREAM(fopen)
OPEN_STREAM(fopen64)

FILE *fdopen(int file, const char *mode) {
    return NO_FILE("fdopen", ENOMEM) ? NULL : REAL(fdopen)(file, mode);
}

int fclose(FILE *stream) {
    const bool refused = NO_FILE("fclose", ENOSPC);
    const int result = REAL(fclose)(stream);
    if (refused)
        errno = ENOSPC;
    return refused ? EOF : result;
}

#define OPEN(name)                                                                                           \
    int name(const char *path, int flags, ...) {                                                             \
        va_list more;                                                                                        \
        va_start(more, flags);                                                                               \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                        \
        va_end(more);                                                                                        \
        return NO_FILE("open", EMFILE) ? -1 : REAL(name)(path, flags, mode);                                 \
    }
OPEN(open)
OPEN(open64)

// A function that returns -1 and sets errno
#define FAILS(of, error, type, name, parameters, ...)                                                        \
    type name parameters {                                                                                   \
        return refuse(of, CALLER, CPP_LIBRARY | OTHERS, #name, error) ? -1 : REAL(name)(__VA_ARGS__);        \
    }
FAILS(FILES, ENOSPC, int, mkostemps, (char *name, int ending, int flags), name, ending, flags)
FAILS(FILES, ENOSPC, int, mkostemps64, (char *name, int ending, int flags), name, ending, flags)
FAILS(FILES, ENOSPC, int, mkstemp, (char *name), name)
FAILS(FILES, EIO, int, rename, (const char *from, const char *to), from, to)
FAILS(FILES, EPERM, int, fchmod, (int file, mode_t mode), file, mode)
FAILS(FILES, EMFILE, int, memfd_create, (const char *name, unsigned flags), name, flags)
FAILS(FILES, EIO, int, fsync, (int file), file)
FAILS(FILES, EIO, int, ftruncate, (int file, off_t bytes), file, bytes)

// ---- threads, processes, pipes ----

FAILS(STARTS, EAGAIN, pid_t, fork, (void), )
FAILS(STARTS, EMFILE, int, pipe, (int ends[2]), ends)
FAILS(STARTS, EMFILE, int, pipe2, (int ends[2], int flags), ends, flags)

#define NO_START(name) refuse(STARTS, CALLER, CPP_LIBRARY | OTHERS, name, EAGAIN)

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                   void *data) {
    return NO_START("pthread_create") ? EAGAIN : REAL(pthread_create)(thread, attributes, routine, data);
}

int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment) {
    return NO_START("posix_spawnp")
               ? EAGAIN
               : REAL(posix_spawnp)(child, file, actions, attributes, arguments, environment);
}

// ---- the setting ----

// Processes that the program starts, such as ffmpeg, are left alone.
__attribute__((constructor)) static void begin(void) {
    static const char *const names[] = {"memory:", "files:", "reads:", "starts:"};
    const char *const setting = getenv("REFUSE"), *number = NULL;
    enum Kind chosen = NONE;
    while (!number && chosen < STARTS) {
        const char *const name = names[chosen++];
        if (setting && strncmp(setting, name, strlen(name)) == 0)
            number = setting + strlen(name);
    }
    if (!number) {
        fputs("refuse: REFUSE must be memory, files, reads or starts, then : and a number\n", stderr);
        _exit(64);
    }
    char *end;
    first = strtoull(number, &end, 10);
    from_then_on = *end == '+';
    backtrace(&(void *){NULL}, 1); // loads what it needs
    unsetenv("LD_PRELOAD");
    unsetenv("REFUSE");
    kind = chosen;
}
