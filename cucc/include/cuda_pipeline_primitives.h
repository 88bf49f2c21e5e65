// SPDX-License-Identifier: MIT
// Asynchronous copies to shared memory without libcu++. Each is complete when the call returns, so that there
// is nothing to wait for. The barriers of cuda_awbarrier_primitives.h are not here; <cuda/barrier> has the
// same.
#pragma once
#include "cuda_runtime.h"
#ifdef __CUDACC__

// Copies `size` bytes (4, 8 or 16); the last `zeros` bytes become zero instead. Other sizes end the kernel,
// as on a GPU.
inline void __pipeline_memcpy_async(void *to, const void *from, size_t size, size_t zeros = 0) {
    if ((size != 4 && size != 8 && size != 16) || zeros > size)
        __trap();
    memcpy(to, from, size - zeros);
    memset((char *)to + (size - zeros), 0, zeros);
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(size_t) {}

#endif // __CUDACC__
