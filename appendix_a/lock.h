// SPDX-License-Identifier: MIT
// A lock in device memory, for the threads of a kernel. A Lock is a pointer: kernels take it by
// value, and init() and release() are calls of their own, since constructor and destructor would
// run once a copy.
#ifndef APPENDIX_A_LOCK_H
#define APPENDIX_A_LOCK_H

#include <type_traits>
#include "../common/book.h"

struct Lock {
    int *mutex; // 0: free, 1: taken

    // On the host, on the current device.
    void init(void) {
        HANDLE_ERROR(cudaMalloc((void **)&mutex, sizeof(int)));
        HANDLE_ERROR(cudaMemset(mutex, 0, sizeof(int)));
    }
    void release(void) {
        HANDLE_ERROR(cudaFree(mutex));
        mutex = NULL;
    }

    // Whoever changes the 0 to 1 has the lock. The fence keeps what comes after from being done, or
    // read from a cache, before.
    __device__ void lock(void) {
        while (atomicCAS(mutex, 0, 1) != 0)
            ;
        __threadfence();
    }

    // The fence first: whoever gets the lock next must see what was written under it.
    __device__ void unlock(void) {
        __threadfence();
        atomicExch(mutex, 0);
    }
};

static_assert(std::is_trivially_copyable<Lock>::value, "a Lock is passed to kernels by value");

#endif
