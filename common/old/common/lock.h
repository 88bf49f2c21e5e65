// SPDX-License-Identifier: MIT
// The Lock that old listings expect: its constructor allocates the mutex, on the current device. A copy,
// such as the argument of a kernel, does not own it, so its destructor frees nothing. The book's
// unlock() stores 1 in the mutex, so the next lock() never returns (deadlock); this one stores 0.
#pragma once

#include <cuda_runtime.h>
#include "book.h"

struct Lock {
    int *mutex; // 0: free, 1: taken

    Lock() : owner(true) {
        HANDLE_ERROR(cudaMalloc((void **)&mutex, sizeof(int)));
        HANDLE_ERROR(cudaMemset(mutex, 0, sizeof(int)));
    }
    Lock(const Lock &other) : mutex(other.mutex), owner(false) {}
    ~Lock() {
        if (owner)
            cudaFree(mutex);
    }
    Lock &operator=(const Lock &) = delete;

    __device__ void lock() {
        while (atomicCAS(mutex, 0, 1) != 0)
            ;
        __threadfence();
    }
    __device__ void unlock() {
        __threadfence();
        atomicExch(mutex, 0);
    }

  private:
    bool owner;
};
