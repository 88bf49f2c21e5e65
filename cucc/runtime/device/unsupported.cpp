// SPDX-License-Identifier: MIT
// Calls that the runtime has only to refuse them
#include "call.h"

#define REFUSED(call, reason, ...)                                                                           \
    extern "C" cudaError_t call(__VA_ARGS__) {                                                               \
        return cuda_cpu::fail(cudaErrorNotSupported, "%s: " reason, __func__);                               \
    }
#define CLUSTERS(call, ...)                                                                                  \
    REFUSED(call, "clusters are not supported, they need compute capability 9.0", __VA_ARGS__)
#define PROCESSES(call, ...) REFUSED(call, "sharing between processes is not supported", __VA_ARGS__)
#define EXTERNAL(call, ...)                                                                                  \
    REFUSED(call, "memory and semaphores of Vulkan and Direct3D are not supported", __VA_ARGS__)
#undef CUDA_CPU_OR
#define CUDA_CPU_OR(value) // the declarations have the default arguments
#pragma GCC diagnostic ignored "-Wunused-parameter"
CUDA_CPU_REFUSED(CLUSTERS, PROCESSES, EXTERNAL)
