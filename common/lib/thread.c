// SPDX-License-Identifier: MIT
// Host threads, as POSIX threads.
#define _GNU_SOURCE // sched_getaffinity
#include <sched.h>
#include <stdbool.h>
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

enum { MOST_PARTS = 16, LEAST_NUMBERS = 1 << 16 };

typedef struct {
    void (*run)(size_t begin, size_t end, void *data);
    void *data;
    size_t begin, end;
    pthread_t thread;
    bool started;
} Part;

static void *run_part(void *data) {
    Part *part = data;
    part->run(part->begin, part->end, part->data);
    return NULL;
}

// The cores on which this process may run.
static size_t cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

// The last range runs in the calling thread, and so does one whose thread cannot be started.
void in_threads(size_t n, void (*run)(size_t begin, size_t end, void *data), void *data) {
    Part parts[MOST_PARTS];
    size_t count = cores(), most = n / LEAST_NUMBERS;
    count = count < MOST_PARTS ? count : MOST_PARTS;
    count = count < most ? count : most > 0 ? most : 1;
    for (size_t i = 0; i < count; i++) {
        Part *part = &parts[i];
        *part = (Part){run, data, n / count * i, i + 1 < count ? n / count * (i + 1) : n, 0, false};
        part->started = i + 1 < count && pthread_create(&part->thread, NULL, run_part, part) == 0;
        if (!part->started)
            run_part(part);
    }
    for (size_t i = 0; i < count; i++)
        if (parts[i].started)
            end_thread(parts[i].thread);
}
