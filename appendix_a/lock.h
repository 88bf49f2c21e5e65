// SPDX-License-Identifier: MIT
// A mutex in device memory that the threads of a kernel lock and unlock. A Lock holds only the pointer to it,
// so kernels take a Lock by value. There is no destructor: it would also run for the copy that a launch
// makes, and free the mutex while the kernel uses it. So the host calls release() at the end.
#pragma once

#include "../common/book.h"

struct Lock {
    int *mutex; // 0: free, 1: taken

    // On the host: the mutex is allocated on the current device.
    Lock(void) {
        HANDLE_ERROR(cudaMalloc((void **)&mutex, sizeof(int)));
        HANDLE_ERROR(cudaMemset(mutex, 0, sizeof(int)));
    }
    void release(void) { HANDLE_ERROR(cudaFree(mutex)); }

    // The thread whose compare-and-swap changes 0 to 1 holds the lock. The memory fence after it
    // (acquire) keeps the reads and writes of the critical section from taking effect earlier, and
    // its reads from returning stale values of a cache.
    __device__ void lock(void) {
        while (atomicCAS(mutex, 0, 1) != 0)
            ;
        __threadfence();
    }

    // The memory fence before the exchange (release) makes the writes of the critical section visible
    // to the thread that takes the lock next.
    __device__ void unlock(void) {
        __threadfence();
        atomicExch(mutex, 0);
    }
};
