// SPDX-License-Identifier: MIT
// Included before every source that is compiled for the playground: what the runtime library and common/ use
// of Linux and of Emscripten, and WASI's C library lacks. A page has one thread and one program. linux.cpp
// defines the functions.
#pragma once
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define FE_TOWARDZERO 1 // WebAssembly rounds to the nearest number, so setting these has no effect
#define FE_UPWARD     2
#define FE_DOWNWARD   3

enum { PROT_NONE, PROT_READ, PROT_WRITE };
enum { MAP_SHARED = 1, MAP_PRIVATE, MAP_FIXED = 16, MAP_ANONYMOUS = 32, MAP_NORESERVE = 64, MAP_STACK = 128 };
enum { MADV_HUGEPAGE = 1, MFD_CLOEXEC = 1, MADV_DONTNEED = 4 };
#define MAP_FAILED    ((void *)-1)
#define RLIM_INFINITY (~0ull)
enum { RLIMIT_AS, RLIMIT_CORE };
#define PR_SET_PDEATHSIG 1
struct rlimit {
    unsigned long long rlim_cur, rlim_max;
};
#define WIFEXITED(status)   1
#define WEXITSTATUS(status) ((status) >> 8)
#define WIFSIGNALED(status) 0
#define WTERMSIG(status)    0

struct winsize {
    unsigned short ws_row, ws_col, ws_xpixel, ws_ypixel;
};
#define TIOCGWINSZ              0x5413
#define CLOCK_THREAD_CPUTIME_ID CLOCK_MONOTONIC
struct sigaction {
    void (*sa_handler)(int);
    sigset_t sa_mask;
    int sa_flags;
};
enum { SA_RESTART, SIG_BLOCK = 0, SIG_UNBLOCK, SIG_SETMASK };
#define sigfillset(set)                ((void)(set), 0)
#define sigaction(signal, action, old) ((void)(action), 0)
#define pthread_sigmask(how, set, old) 0

#define setjmp(buffer)         0
#define longjmp(buffer, value) quick_exit(value)
typedef int jmp_buf[1];

struct cpu_set_t {
    int unused;
};
typedef struct cpu_set_t cpu_set_t;
#define CPU_COUNT(set) 1

typedef struct {
    int unused;
} posix_spawn_file_actions_t, posix_spawnattr_t;
typedef struct {           // wasi.js knows it
    void (*entry)(void *); // the function that the fiber begins with; null once it has begun
    void *root, *argument; // the function where its calls begin: null is the program's first
    void *stack;           // the pointer to the stack
    void *saved, *end;     // where Asyncify saves the calls and their locals
} emscripten_fiber_t;

#ifdef __cplusplus
extern "C" {
#endif
void *mmap(void *place, size_t bytes, int protection, int flags, int file, off_t offset);
int munmap(void *place, size_t bytes);
int mprotect(void *place, size_t bytes, int protection);
int madvise(void *place, size_t bytes, int advice);
int memfd_create(const char *name, unsigned flags);
int getrlimit(int which, struct rlimit *limit);
int setrlimit(int which, const struct rlimit *limit);
int sched_getaffinity(pid_t, size_t, cpu_set_t *set);
int prctl(int, ...);
int pause(void);
int dup(int file);
int dup2(int file, int as);
int pipe(int files[2]);
int pipe2(int files[2], int flags);
int mkostemps(char *name, int ending, int flags);
mode_t umask(mode_t);
pid_t fork(void);
int kill(pid_t, int signal);
int pthread_kill(pthread_t, int signal);
int pthread_cancel(pthread_t);
int at_quick_exit(void (*function)(void));
void quick_exit(int status) __attribute__((noreturn));
pid_t waitpid(pid_t process, int *status, int options);
int posix_spawnp(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                 char *const *, char *const *);
int posix_spawn_file_actions_init(posix_spawn_file_actions_t *);
int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *);
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *, int, int);
void emscripten_fiber_init(emscripten_fiber_t *, void (*)(void *), void *, void *, size_t, void *, size_t);
void emscripten_fiber_init_from_current_context(emscripten_fiber_t *, void *, size_t);
void emscripten_fiber_swap(emscripten_fiber_t *from, emscripten_fiber_t *to);
extern char *program_invocation_short_name, *program_invocation_name;
#ifdef __cplusplus
}
#endif
