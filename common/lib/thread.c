// SPDX-License-Identifier: MIT
// Host threads, as POSIX threads.
#include <stdlib.h>
#include <string.h>
#include "../options.h"
#include "../thread.h"

static void must(int error, const char *what) {
    if (error != 0)
        quit(EXIT_FAILURE, "cannot %s a thread: %s", what, strerror(error));
}

CUTThread start_thread(CUTThreadRoutine routine, void *data) {
    CUTThread thread;
    must(pthread_create(&thread, NULL, routine, data), "start");
    return thread;
}

void end_thread(CUTThread thread) {
    must(pthread_join(thread, NULL), "end");
}

void destroy_thread(CUTThread thread) {
    must(pthread_cancel(thread), "cancel");
    end_thread(thread);
}

void wait_for_threads(const CUTThread *threads, size_t n) {
    for (size_t i = 0; i < n; i++)
        end_thread(threads[i]);
}
