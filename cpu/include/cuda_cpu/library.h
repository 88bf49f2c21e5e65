// SPDX-License-Identifier: MIT
// For the headers that stand in for NVIDIA's libraries (cublas_v2.h, cufft.h, ...).
#pragma once
#include <functional>
#include "../cuda_runtime_api.h"

namespace cuda_cpu {

// Runs the work of a library's function, which reads and writes device memory, in stream order: at once,
// later (CUDA_CPU_STREAMS), or in a graph. `call` is the function's name, for messages. With `wait`, the work
// has completed on return; a captured stream refuses this.
cudaError_t library_call(const char *call, cudaStream_t stream, std::function<void()> work,
                         bool wait = false);

} // namespace cuda_cpu
