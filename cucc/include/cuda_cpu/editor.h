// SPDX-License-Identifier: MIT
// An editor (clangd, see .clangd) reads this file before a .cu or a header of this project. clang has a
// parser for CUDA, so it understands __global__, <<<…>>> and __shared__ without cu2cpp. The types and
// functions of the runtime come from this folder and not from a toolkit, because a version of clang supports
// only toolkits older than itself. The build does not use this file.
#pragma once
#define __CUDACC__ // a .cu is being compiled

// clang's own headers need these before the first header of the C++ library.
#define __host__     __attribute__((host))
#define __device__   __attribute__((device))
#define __global__   __attribute__((global))
#define __shared__   __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__  __attribute__((managed))

// clang itself declares these for host and device, so they are included before the pragma.
#include <cstdlib>
#include <exception>
#include <new>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

// Kernels may call every function that is declared from here to the end of this pragma. Headers that programs
// include later stand here too, because clang refuses declarations with other attributes.
#pragma clang force_cuda_host_device begin
#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstring>
#include <deque>
#include <future>
#include <iostream>
#include <list>
#include <memory>
#include <regex>
#include <string>
#include <valarray>
#include <vector>
#include <cuda_runtime.h>
// clang calls the first function for <<<…>>> if it finds a CUDA toolkit, otherwise the second one.
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, void *stream = nullptr);
int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, void *stream = nullptr);
#pragma clang force_cuda_host_device end
