// SPDX-License-Identifier: MIT
// WebAssembly: functions of Linux that Emscripten's C library lacks. There is one processor, one thread, no
// other program and no signal.
#include <cerrno>
#include <cstring>
#include <emscripten.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <string>
#include <typeinfo>
#include <unistd.h>
#include <vector>

static auto &at_the_end = *new std::vector<void (*)()>;

extern "C" {

int at_quick_exit(void (*function)()) {
    at_the_end.push_back(function);
    return 0;
}

void quick_exit(int status) {
    for (; !at_the_end.empty(); at_the_end.pop_back())
        at_the_end.back()();
    _exit(status);
}

int sched_getaffinity(pid_t, size_t, cpu_set_t *set) {
    CPU_ZERO(set);
    CPU_SET(0, set);
    return 0;
}

int __sched_cpucount(size_t, const cpu_set_t *) {
    return 1;
}

int memfd_create(const char *, unsigned) {
    errno = ENOSYS;
    return -1;
}

int posix_spawnp(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                 char *const *, char *const *) {
    return ENOENT;
}

int prctl(int, ...) {
    errno = ENOSYS;
    return -1;
}

int pthread_kill(pthread_t, int) {
    return 0;
}

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

namespace __cxxabiv1 {
extern "C" std::type_info *__cxa_current_exception_type() { // exceptions are off: throw ends the program
    return nullptr;
}
} // namespace __cxxabiv1

// Runs before other constructors, which use the name of the program: the C library leaves it empty. And when
// fibers have switched the stack, Emscripten drops the value that main returns. No other stack is left by a
// return.
__attribute__((constructor(101))) static void start() {
    emscripten_run_script(
        "{ const rewind = Asyncify.doRewind;"
        "  Asyncify.doRewind = data => { const s = rewind(data); Asyncify.currData || exit(s) } }");
    const std::string name = emscripten_run_script_string("thisProgram.replace(/.*\\/|[.]js$/g, '')");
    program_invocation_short_name = strdup(name.c_str());
}
