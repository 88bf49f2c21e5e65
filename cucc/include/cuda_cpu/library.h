// SPDX-License-Identifier: MIT
// For the headers that stand in for NVIDIA's libraries (cublas_v2.h, cufft.h, ...).
#pragma once
#include <functional>
#include "api.h"

namespace cuda_cpu {

// Runs the work of a library's function, which reads and writes device memory, in stream order: at once,
// later (CUDA_CPU_STREAMS), or in a graph. `call` is the function's name, for messages. With `wait`, the work
// has completed on return; a captured stream refuses this.
cudaError_t library_call(const char *call, cudaStream_t stream, std::function<void()> work,
                         bool wait = false);

// A scalar argument of cuBLAS and cuSPARSE. A scalar in host memory is read when the function is called; one
// in device memory is read when the work runs.
template <class Number> struct LibraryScalar {
    const Number *device;
    Number value;
    LibraryScalar(bool on_device, const void *p) : device(on_device ? (const Number *)p : nullptr), value() {
        if (!device)
            value = *(const Number *)p;
    }
    Number operator*() const { return device ? *device : value; }
};

} // namespace cuda_cpu
