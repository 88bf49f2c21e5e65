// SPDX-License-Identifier: MIT
// What an editor (clangd, see .clangd) reads before a .cu or a header of this project. clang parses CUDA
// itself, so kernels, launches and __shared__ are real here; the runtime's types and functions are those of
// this folder. No toolkit is used, since clang knows only those that are older than itself. Nothing that is
// built includes this file.
#pragma once
#define __CUDACC__ // a .cu is being compiled

// clang's own headers need these before the first header of the C++ library.
#define __host__     __attribute__((host))
#define __device__   __attribute__((device))
#define __global__   __attribute__((global))
#define __shared__   __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__  __attribute__((managed))

// clang declares these itself for host and device, so they come before the pragma.
#include <cstdlib>
#include <exception>
#include <new>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

// Kernels may call what is declared from here on. The headers of the C++ library that programs include later
// are among it, because a function cannot be declared first with and then without this.
#pragma clang force_cuda_host_device begin
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>
#include <cuda_runtime.h>
// What <<<…>>> calls: the first one where clang finds a toolkit, the second one where there is none
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, void *stream = nullptr);
int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, void *stream = nullptr);
#pragma clang force_cuda_host_device end

// cuda_runtime.h of this folder defines some of them as nothing.
#undef __host__
#undef __device__
#undef __global__
#undef __shared__
#undef __constant__
#undef __managed__
#define __host__     __attribute__((host))
#define __device__   __attribute__((device))
#define __global__   __attribute__((global))
#define __shared__   __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__  __attribute__((managed))
