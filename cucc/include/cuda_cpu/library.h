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

} // namespace cuda_cpu

// The first lines of a library's function: they return if there is no handle, or if its arguments are wrong.
// The library's header defines CUDA_CPU_LIBRARY, its namespace, and CUDA_CPU_RESULT(name), its status.
#define CUDA_CPU_HANDLE                                                                                      \
    namespace cpu = cuda_cpu::CUDA_CPU_LIBRARY;                                                              \
    if (!handle)                                                                                             \
    return CUDA_CPU_RESULT(NOT_INITIALIZED)
#define CUDA_CPU_REQUIRE(condition)                                                                          \
    if (!(condition))                                                                                        \
    return CUDA_CPU_RESULT(INVALID_VALUE)
#define CUDA_CPU_VALID(condition)                                                                            \
    CUDA_CPU_HANDLE;                                                                                         \
    CUDA_CPU_REQUIRE(condition)

// Begins a function
#define CUDA_CPU_DEFINE(name, ...) static inline decltype(CUDA_CPU_RESULT(SUCCESS)) name(__VA_ARGS__)

// The functions that make and destroy a handle, a pointer to a Context, and those for one of its members.
// DEFINE(name, parameters) and FUNCTION(name, parameters after the handle) begin a function of the library.
#define CUDA_CPU_HANDLES(DEFINE, library, Context)                                                           \
    DEFINE(library##Create, Context **handle) {                                                              \
        CUDA_CPU_REQUIRE(handle);                                                                            \
        *handle = cudaFree(nullptr) == cudaSuccess ? new Context : nullptr; /* null: no device */            \
        return *handle ? CUDA_CPU_RESULT(SUCCESS) : CUDA_CPU_RESULT(NOT_INITIALIZED);                        \
    }                                                                                                        \
    DEFINE(library##Destroy, Context *handle) {                                                              \
        delete handle;                                                                                       \
        return handle ? CUDA_CPU_RESULT(SUCCESS) : CUDA_CPU_RESULT(NOT_INITIALIZED);                         \
    }
#define CUDA_CPU_SETTING(FUNCTION, Name, type, member)                                                       \
    FUNCTION(Set##Name, type value) {                                                                        \
        CUDA_CPU_HANDLE;                                                                                     \
        handle->member = value;                                                                              \
        return CUDA_CPU_RESULT(SUCCESS);                                                                     \
    }                                                                                                        \
    FUNCTION(Get##Name, type *value) {                                                                       \
        CUDA_CPU_VALID(value);                                                                               \
        *value = handle->member;                                                                             \
        return CUDA_CPU_RESULT(SUCCESS);                                                                     \
    }
