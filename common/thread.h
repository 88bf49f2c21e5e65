// SPDX-License-Identifier: MIT
// Host threads under the names that the book uses, over POSIX threads. An error ends the program.
#ifndef COMMON_THREAD_H
#define COMMON_THREAD_H

#include <pthread.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef pthread_t CUTThread;
typedef void *(*CUTThreadRoutine)(void *);
#define CUT_THREADPROC void *
#define CUT_THREADEND  return NULL

// Starts routine(data). Each thread is ended by one of the calls below, once.
CUTThread start_thread(CUTThreadRoutine routine, void *data);

// Waits until the thread's routine has returned.
void end_thread(CUTThread thread);

// Cancels the thread (at its next cancellation point) and waits until it is gone.
void destroy_thread(CUTThread thread);

// end_thread for each of n threads.
void wait_for_threads(const CUTThread *threads, size_t n);

#ifdef __cplusplus
}
#endif
#endif
