// SPDX-License-Identifier: MIT
// Launches by functions of the runtime, and occupancy; a part of kernel.h
#pragma once

namespace cuda_cpu {
inline cudaError_t launch_by_address(const char *call, const void *kernel, const LaunchConfig &config,
                                     void **arguments, bool cooperative, Site site) {
    Function *const function = find_function(call, kernel);
    return function ? function->launch(*function, config, arguments, cooperative, site)
                    : cudaErrorInvalidDeviceFunction;
}

// The configuration of cudaLaunchKernelEx, converted where the program calls it
struct LaunchConfigAt {
    const cudaLaunchConfig_t *config;
    Site site;

    LaunchConfigAt(const cudaLaunchConfig_t *config, const char *file = __builtin_FILE(),
                   int line = __builtin_LINE())
        : config(config), site{file, line} {}
};
cudaError_t launch_by_config(const LaunchConfigAt &at, const void *kernel, void **arguments);
} // namespace cuda_cpu

#define CUDA_CPU_LAUNCH(name, cooperative)                                                                   \
    template <class T>                                                                                       \
    inline cudaError_t name(T *kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes = 0,     \
                            cudaStream_t stream = 0, CUDA_CPU_SITE) {                                        \
        return cuda_cpu::launch_by_address(#name, (const void *)kernel,                                      \
                                           {grid, block, shared_bytes, stream, false}, arguments,            \
                                           cooperative, CUDA_CPU_HERE);                                      \
    }
CUDA_CPU_LAUNCH(cudaLaunchKernel, false)
CUDA_CPU_LAUNCH(cudaLaunchCooperativeKernel, true)

template <class... P, class... A>
inline cudaError_t cudaLaunchKernelEx(cuda_cpu::LaunchConfigAt config, void (*kernel)(P...),
                                      A &&...arguments) {
    return [&](P... converted) {
        void *addresses[] = {(void *)&converted..., nullptr};
        return cuda_cpu::launch_by_config(config, (const void *)kernel, addresses);
    }(std::forward<A>(arguments)...);
}
CUDA_CPU_ANY(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
             (int *blocks, T *kernel, int threads, size_t dynamic_bytes, unsigned flags), blocks,
             (const void *)kernel, threads, dynamic_bytes, flags)
CUDA_CPU_ANY(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
             (int *blocks, T *kernel, int threads, size_t dynamic_bytes), blocks, (const void *)kernel,
             threads, dynamic_bytes)
CUDA_CPU_ANY(cudaOccupancyMaxActiveClusters, (int *clusters, T *kernel, const cudaLaunchConfig_t *config),
             clusters, (const void *)kernel, config)
CUDA_CPU_ANY(cudaOccupancyMaxPotentialClusterSize, (int *blocks, T *kernel, const cudaLaunchConfig_t *config),
             blocks, (const void *)kernel, config)
// Finds the largest block size among those with the highest occupancy, and the number of blocks that fill the
// device. shared_bytes(threads) is the dynamic shared memory of a block, in bytes.
template <class T, class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block, T *kernel,
                                                                  F shared_bytes, int limit = 0) {
    cudaFuncAttributes attributes;
    int device, processors, best = 0;
    cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    if (error == cudaSuccess)
        error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (limit <= 0 || limit > attributes.maxThreadsPerBlock)
        limit = attributes.maxThreadsPerBlock;
    *grid = *block = 0;
    for (int threads = limit; error == cudaSuccess && threads > 0; threads = (threads - 1) / 32 * 32) {
        int blocks;
        error =
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes(threads));
        if (blocks * threads > best) {
            best = blocks * threads;
            *grid = blocks * processors;
            *block = threads;
        }
    }
    return error;
}
template <class T, class F>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(int *grid, int *block, T *kernel,
                                                                           F shared_bytes, int limit = 0,
                                                                           unsigned = 0) {
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(grid, block, kernel, shared_bytes, limit);
}
template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, T *kernel,
                                                               size_t dynamic_bytes = 0, int limit = 0,
                                                               unsigned = 0) {
    return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
        grid, block, kernel, [=](int) { return dynamic_bytes; }, limit);
}
template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, T *kernel,
                                                      size_t dynamic_bytes = 0, int limit = 0) {
    return cudaOccupancyMaxPotentialBlockSizeWithFlags(grid, block, kernel, dynamic_bytes, limit);
}
