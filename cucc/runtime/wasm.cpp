// SPDX-License-Identifier: MIT
// WebAssembly: functions of Linux that the C libraries of Emscripten and WASI lack. One processor, thread and
// program. What only WASI lacks is outside of the runtime (web/playground/linux.cpp).
#include "block.h"

#ifdef __EMSCRIPTEN__
#include <emscripten.h>
#endif
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <typeinfo>

#define LACKS(function, ...)                                                                                 \
    int function(__VA_ARGS__) {                                                                              \
        errno = ENOENT;                                                                                      \
        return -1;                                                                                           \
    }

extern "C" {

// It would delete unfinished files, which end with the program.
int at_quick_exit(void (*)()) {
    return 0;
}

void quick_exit(int status) {
    _exit(status);
}

#ifdef __EMSCRIPTEN__
int sched_getaffinity(pid_t, size_t, cpu_set_t *set) {
    CPU_ZERO(set);
    CPU_SET(0, set);
    return 0;
}

int __sched_cpucount(size_t, const cpu_set_t *) {
    return 1;
}
#endif

LACKS(prctl, int, ...)
LACKS(memfd_create, const char *, unsigned)
LACKS(pthread_kill, pthread_t, int)
LACKS(posix_spawnp, pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
      char *const *, char *const *)

// A thread of the program runs to its end when it is created.
int pthread_create(pthread_t *thread, const pthread_attr_t *, void *(*start)(void *), void *argument) {
    *thread = (pthread_t) new void *(start(argument));
    return 0;
}

int pthread_join(pthread_t thread, void **result) {
    void **const kept = (void **)thread;
    if (result)
        *result = *kept;
    delete kept;
    return 0;
}

} // extern "C"

namespace cuda_cpu {

void *find_variable(const char *, size_t *, void *) { // there is no table of names
    return nullptr;
}

#ifdef __EMSCRIPTEN__
// The address of a function is its place in a table. A call must have the right number and types of
// arguments, except from JavaScript, which converts "0" to a value of each type.
void call_without_arguments(const void *kernel) {
    EM_ASM(
        {($0 > 0 && $0 < wasmTable.length && wasmTable.get($0) || Object).apply(null, Array(256).fill("0"))},
        kernel);
}
#endif

} // namespace cuda_cpu

namespace __cxxabiv1 {
extern "C" std::type_info *__cxa_current_exception_type() { // exceptions are off: throw ends the program
    return nullptr;
}
} // namespace __cxxabiv1

#ifdef __EMSCRIPTEN__
// Runs before other constructors, which use the name of the program: the C library leaves it empty. And when
// fibers have switched the stack, Emscripten drops the value that main returns. No other stack is left by a
// return. It counts each switch as something that is still to come, and so would not end the program.
__attribute__((constructor(101))) static void start() {
    emscripten_run_script(
        "runtimeKeepalivePush = runtimeKeepalivePop = () => {};"
        "{ const rewind = Asyncify.doRewind;"
        "  Asyncify.doRewind = data => { const s = rewind(data); Asyncify.currData || exit(s) } }");
    const std::string name = emscripten_run_script_string("thisProgram.replace(/.*\\/|[.]js$/g, '')");
    program_invocation_short_name = strdup(name.c_str());
}
#endif
