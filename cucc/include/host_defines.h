// SPDX-License-Identifier: MIT
// The words that CUDA adds to C++, as far as they mean nothing to a C++ compiler, for host sources that
// include headers with them. cu2cpp translates the others, such as __shared__ and __device__.
#pragma once

#define __grid_constant__
#define __inline_hint__
#define __local_maxnreg__(n)
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __specialization_static
#define __import__
#define __export__
#define __cdecl
#define __thread__           __thread
#define __no_return__        __attribute__((noreturn))
#define __nv_pure__          __attribute__((pure))
#define __forceinline__      inline __attribute__((always_inline))
#define __align__(n)         __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#ifdef __cplusplus
#define __restrict__ __restrict
#endif
#ifndef __CU2CPP__
#define __annotate__(word)
#define __location__(word)
#define __launch_bounds__(...)
#define __maxnreg__(n)
#define __cluster_dims__(...)
#ifndef __CUDA__ // where clang parses CUDA, cuda_cpu/editor.h has defined these
#define __global__
#define __host__
#define __device__
#define __constant__
#define __managed__
#endif
#else
#define __annotate__(word) __attribute__((word))
#define __location__(word) __##word##__

// macros, as with nvcc: some programs test whether they are defined
#define __global__         __global__
#define __host__           __host__
#define __device__         __device__
#define __constant__       __constant__
#define __managed__        __managed__
#define __shared__         __shared__
#endif
