// SPDX-License-Identifier: MIT
// Runs the rest of the program in a child process with a time limit, for kernels that may hang. Only two
// programs use it, but the rules for pipes, signals and CUDA contexts are the same in both and easy to get
// wrong.
#pragma once

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../book.h"

// Forks, and returns in the child process. The parent waits, ends the child after `seconds`, and ends with
// the status of the child. Must be called before the first CUDA call, because a child process cannot use the
// CUDA context of its parent. The parent waits for the process and not for the device, because a kernel that
// hangs can keep its process alive even after SIGKILL: the child holds the other end of a pipe, so poll()
// returns when the child has ended.
static inline void continue_in_child(int seconds) {
    int pipe_ends[2], status;
    if (pipe(pipe_ends) != 0)
        quit(EXIT_FAILURE, "cannot make a pipe");
    pid_t child = fork();
    if (child < 0)
        quit(EXIT_FAILURE, "cannot start a process");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // the child ends when the program is killed
        return;
    }
    close(pipe_ends[1]);
    struct pollfd ended = {pipe_ends[0], POLLIN, 0};
    if (poll(&ended, 1, seconds * 1000) == 0) {
        kill(child, SIGKILL);
        poll(&ended, 1, 5000); // the driver may need seconds to stop the device
        quit(EXIT_FAILURE, "ended after %d s: the threads wait for each other", seconds);
    }
    if (waitpid(child, &status, 0) != child)
        quit(EXIT_FAILURE, "cannot wait for the process with the kernel: %s", strerror(errno));
    if (!WIFEXITED(status))
        quit(EXIT_FAILURE, "signal %d (%s) ended the process with the kernel", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
    exit(WEXITSTATUS(status));
}
