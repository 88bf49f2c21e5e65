// SPDX-License-Identifier: MIT
// Commands that are shown and run, their signals, the folder of temporary files, and the end of the process
#include "driver.h"
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sigset_t blocked_at_start;
static sigset_t endings, awaited; // signals that end us; the same, and that of a child that has ended
static void (*sigpipe_at_start)(int);
static char *work; // the folder of temporary files

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    remove(path);
    return 0;
}

_Noreturn void finish(int status) {
    if (fflush(stdout) != 0) {
        status = status ? status : EXIT_FAILURE;
        if (errno != EPIPE)
            fprintf(stderr, "cucc: standard output: %s\n", strerror(errno));
    }
    if (work)
        nftw(work, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    _exit(status);
}

// What nvcc writes as "fatal"
_Noreturn void stop(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("cucc: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    finish(EXIT_FAILURE);
}

// Blocks signals, so that they arrive only in wait_for() and wait_a_moment().
void catch_signals(void) {
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    signal(SIGCHLD, SIG_DFL);
    sigpipe_at_start = signal(SIGPIPE, SIG_IGN); // a reader that has gone is an error of fflush()
    sigemptyset(&endings);
    for (int i = 0; i < 3; i++) {
        struct sigaction now;
        sigaction(numbers[i], NULL, &now);
        if (now.sa_handler != SIG_IGN) // as in a job that a shell started in the background
            sigaddset(&endings, numbers[i]);
    }
    awaited = endings;
    sigaddset(&awaited, SIGCHLD);
    sigprocmask(SIG_BLOCK, &awaited, &blocked_at_start);
}

// Ends the process with the status of a shell if there is a signal to do so.
static void end_if_signalled(const struct timespec *wait) {
    const int number = sigtimedwait(&endings, NULL, wait);
    if (number > 0)
        finish(128 + number);
}

void wait_a_moment(void) {
    end_if_signalled(&(struct timespec){.tv_nsec = 50000000});
}

static pid_t fork_child(void) {
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0)
        stop("fork: %s", strerror(errno));
    if (child == 0) {
        work = NULL; // it is the parent's
        signal(SIGPIPE, sigpipe_at_start);
        sigprocmask(SIG_SETMASK, &blocked_at_start, NULL);
    }
    return child;
}

// Waits for a child, to which a signal that ends us is passed on; one of the terminal has already reached it.
// Returns its status as a shell does.
static int wait_for(pid_t child, const char *name) {
    int status, sent = 0;
    siginfo_t signal;
    while (waitpid(child, &status, WNOHANG) != child) {
        if (sigwaitinfo(&awaited, &signal) < 0 || signal.si_signo == SIGCHLD)
            continue;
        sent = signal.si_signo;
        if (signal.si_code != SI_KERNEL)
            kill(child, sent);
    }
    if (sent)
        finish(128 + sent);
    end_if_signalled(&(struct timespec){0});
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    if (WTERMSIG(status) != SIGPIPE)
        fprintf(stderr, "cucc: %s: %s\n", name, strsignal(WTERMSIG(status)));
    return 128 + WTERMSIG(status);
}

// Runs a command with these files as its standard input and outputs; null pointers stand for ours.
int run_command(const List *command, FILE *in, FILE *out, FILE *err) {
    const pid_t child = fork_child();
    if (child == 0) {
        if ((in && dup2(fileno(in), STDIN_FILENO) < 0) || (out && dup2(fileno(out), STDOUT_FILENO) < 0) ||
            (err && dup2(fileno(err), STDERR_FILENO) < 0))
            _exit(126);
        execvp(command->words[0], command->words);
        const int missing = errno == ENOENT;
        fprintf(stderr, "cucc: %s: %s\n", command->words[0], strerror(errno));
        _exit(missing ? 127 : 126);
    }
    return wait_for(child, command->words[0]);
}

// Runs a command without input, and sets what it prints: its output or, with `errors`, its messages.
int run_captured(const List *command, bool errors, Text *printed) {
    FILE *kept = fdopen(memfd_create("printed", MFD_CLOEXEC), "r+"), *nothing = fopen("/dev/null", "r+e");
    if (!kept || !nothing)
        stop("/dev/null: %s", strerror(errno));
    const int status = run_command(command, nothing, errors ? nothing : kept, errors ? kept : nothing);
    rewind(kept);
    read_file(kept, printed);
    fclose(kept);
    fclose(nothing);
    return status;
}

// The option for a compiler whose messages run_captured() keeps for the terminal, or null
const char *color_option(void) {
    const char *terminal = isatty(STDERR_FILENO) ? getenv("TERM") : NULL;
    return terminal && strcmp(terminal, "dumb") != 0 ? "-fdiagnostics-color" : NULL;
}

// Starts cucc again, which finds a folder of the user's own to build in.
_Noreturn void restart(const Settings *s) {
    if (!s->restarted && setenv("CUCC_OWN_FOLDER", "yes", 1) == 0) {
        signal(SIGPIPE, sigpipe_at_start);
        sigprocmask(SIG_SETMASK, &blocked_at_start, NULL);
        execv(s->script, s->words);
    }
    stop("%s: cannot be written to", s->build);
}

// Prints a command in the form that nvcc uses.
void show(const Settings *s, const List *command) {
    if (!s->verbose && !s->dryrun)
        return;
    fputs("#$", stderr);
    for (int i = 0; i < command->count; i++) {
        const char *word = command->words[i];
        const bool plain = *word && !word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                                       "0123456789_.,:=+/@%^-")];
        fprintf(stderr, plain ? " %s" : " \"%s\"", word);
    }
    fputc('\n', stderr);
}

// Shows and runs a command. Returns its exit status.
int run_step(const Settings *s, const List *command) {
    show(s, command);
    return s->dryrun ? 0 : run_command(command, NULL, NULL, NULL);
}

// Shows the command, and translates in a child: the translator ends its process at an error.
int run_translation(const Settings *s, const List *command, const Translation *how) {
    show(s, command);
    if (s->dryrun)
        return 0;
    const pid_t child = fork_child();
    if (child == 0) {
        translate_file(how);
        exit(EXIT_SUCCESS);
    }
    return wait_for(child, command->words[0]);
}

// A folder for the files between the steps; finish() removes it.
const char *work_folder(void) {
    const char *folder = getenv("TMPDIR");
    if (work)
        return work;
    char *name = format("%s/tmp.XXXXXX", folder && *folder ? folder : "/tmp");
    if (!mkdtemp(name))
        stop("%s: %s", name, strerror(errno));
    return work = name;
}
