// SPDX-License-Identifier: MIT
// The functions of linux.h, for the playground: memory is that of malloc, a thread runs to its end when it is
// created, and what needs a second process fails. cucc/runtime/wasm.cpp has those that Emscripten lacks, too.
#include "linux.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <typeinfo>

#define LACKS(function, ...)                                                                                 \
    int function(__VA_ARGS__) {                                                                              \
        errno = ENOSYS;                                                                                      \
        return -1;                                                                                           \
    }
#define NOTHING(function, ...)                                                                               \
    int function(__VA_ARGS__) {                                                                              \
        return 0;                                                                                            \
    }

extern "C" {

#define PAGE(name) __attribute__((import_module("playground"), import_name(name))) // of wasi.js
int playground_name(char *to, int most) PAGE("name");
void playground_call(const void *kernel) PAGE("call");
void playground_swap(emscripten_fiber_t *from, emscripten_fiber_t *to) PAGE("swap");

char *program_invocation_name, *program_invocation_short_name;

// ---- memory ----

void *mmap(void *place, size_t bytes, int, int flags, int, off_t) {
    if (flags & MAP_FIXED)
        return place;
    void *const memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return memory ? memset(memory, 0, bytes) : MAP_FAILED;
}

int munmap(void *place, size_t) {
    free(place);
    return 0;
}

NOTHING(mprotect, void *, size_t, int)
int madvise(void *place, size_t bytes, int advice) {
    if (advice == MADV_DONTNEED)
        memset(place, 0, bytes);
    return 0;
}

// ---- threads and processes ----

// WASI's C library refuses to lock a recursive mutex again. There is one thread, so a lock has nothing to do.
NOTHING(pthread_mutex_lock, pthread_mutex_t *)
NOTHING(pthread_mutex_trylock, pthread_mutex_t *)
NOTHING(pthread_mutex_unlock, pthread_mutex_t *)
NOTHING(pthread_cancel, pthread_t)
LACKS(fork)
LACKS(kill, pid_t, int)
LACKS(waitpid, pid_t, int *, int)
NOTHING(posix_spawn_file_actions_init, posix_spawn_file_actions_t *)
NOTHING(posix_spawn_file_actions_destroy, posix_spawn_file_actions_t *)
NOTHING(posix_spawn_file_actions_adddup2, posix_spawn_file_actions_t *, int, int)
LACKS(getrlimit, int, rlimit *)
LACKS(setrlimit, int, const rlimit *)
NOTHING(sched_getaffinity, pid_t, size_t, cpu_set_t *)
LACKS(pause)

// ---- files ----

LACKS(dup, int)
LACKS(dup2, int, int)
LACKS(pipe, int *)
LACKS(pipe2, int *, int)

mode_t umask(mode_t) {
    return 022;
}

int mkostemps(char *name, int ending, int) {
    static unsigned count;
    char *const place = name + strlen(name) - ending - 6;
    char digits[7];
    snprintf(digits, sizeof digits, "%06u", count++);
    memcpy(place, digits, 6);
    return open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
}

// ---- fibers: wasi.js switches them ----

void emscripten_fiber_init(emscripten_fiber_t *fiber, void (*entry)(void *), void *argument, void *stack,
                           size_t size, void *saved, size_t bytes) {
    *fiber = {entry, (void *)entry, argument, (char *)stack + size, saved, (char *)saved + bytes};
}

void emscripten_fiber_init_from_current_context(emscripten_fiber_t *fiber, void *saved, size_t bytes) {
    *fiber = {nullptr, nullptr, nullptr, nullptr, saved, (char *)saved + bytes};
}

void emscripten_fiber_swap(emscripten_fiber_t *from, emscripten_fiber_t *to) {
    playground_swap(from, to);
}

} // extern "C"

namespace cuda_cpu {

// The address of a function is its place in a table. A call must have the right number and types of
// arguments, except from JavaScript, which converts "0" to a value of each type.
void call_without_arguments(const void *kernel) {
    playground_call(kernel);
}

} // namespace cuda_cpu

namespace __cxxabiv1 {
extern "C" { // throw ends the program
void *__cxa_allocate_exception(size_t bytes) {
    return malloc(bytes);
}
[[noreturn]] void __cxa_throw(void *, std::type_info *type, void (*)(void *)) {
    fprintf(stderr, "terminate called after throwing an instance of '%s'\n", type->name());
    _exit(134);
}
[[noreturn]] void __cxa_rethrow() {
    abort();
}
}
} // namespace __cxxabiv1

// Runs before other constructors, which use the name of the program.
__attribute__((constructor(101))) static void start() {
    static char name[256];
    name[playground_name(name, sizeof name - 1)] = '\0';
    program_invocation_name = program_invocation_short_name = name;
    setvbuf(stdout, nullptr, _IOLBF, 0); // what a program prints is shown while it runs
}
