// SPDX-License-Identifier: MIT
// Appendix A as printed: unlock() stores 1, so the second thread that wants the lock waits for ever.
#include "../common/book.h"

struct Lock {
    int *mutex;
    Lock(void) {
        int state = 0;
        HANDLE_ERROR(cudaMalloc((void **)&mutex, sizeof(int)));
        HANDLE_ERROR(cudaMemcpy(mutex, &state, sizeof(int), cudaMemcpyHostToDevice));
    }
    __device__ void lock(void) {
        while (atomicCAS(mutex, 0, 1) != 0)
            ;
    }
    __device__ void unlock(void) { atomicExch(mutex, 1); }
};

__global__ void count(Lock lock, int *total) {
    if (threadIdx.x == 0) {
        lock.lock();
        *total += 1;
        lock.unlock();
    }
}

int main(void) {
    Lock lock;
    int *total;
    HANDLE_ERROR(cudaMalloc((void **)&total, sizeof(int)));
    printf("before\n");
    count<<<4, 64>>>(lock, total);
    HANDLE_ERROR(cudaThreadSynchronize());
    printf("never printed\n");
}
