// SPDX-License-Identifier: MIT
// Host threads, as POSIX threads. An error ends the program. The names are those of the book's archive; its
// listings show CUTThread, start_thread and end_thread.
#pragma once

#include <pthread.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef pthread_t CUTThread;
typedef void *(*CUTThreadRoutine)(void *);
#define CUT_THREADPROC void *
#define CUT_THREADEND  return NULL

// Starts routine(data) in a new thread. Each thread must be ended with one of the calls below.
CUTThread start_thread(CUTThreadRoutine routine, void *data);

// Waits until the thread's routine has returned.
void end_thread(CUTThread thread);

// Cancels the thread at its next cancellation point and waits until it has ended.
void destroy_thread(CUTThread thread);

// Calls end_thread for each of n threads.
void wait_for_threads(const CUTThread *threads, size_t n);

// Calls part(begin, end, data) for ranges that together are 0 … n, at the same time in threads of their own,
// as many as there are cores (16 at most). A range has at least 65536 numbers. Returns when all calls have.
void in_threads(size_t n, void (*part)(size_t begin, size_t end, void *data), void *data);

#ifdef __cplusplus
}

// The same with a lambda: in_threads(n, [&](size_t begin, size_t end) { … });
template <class Part> static inline void in_threads(size_t n, Part part) {
    in_threads(
        n, [](size_t begin, size_t end, void *data) { (*(Part *)data)(begin, end); }, &part);
}
#endif
