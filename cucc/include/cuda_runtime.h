// SPDX-License-Identifier: MIT
// The CPU back end's stand-in for the CUDA toolkit: everything that nvcc includes in a .cu by
// itself. A host source gets the types and the runtime's functions only, so that its own functions
// can have the names of device functions (max, rsqrtf …).
#pragma once
#define __CUDA_RUNTIME_H__
#define __HOST_DEFINES_H__
#define __CHANNEL_DESCRIPTOR_H__
#define __DEVICE_FUNCTIONS_H__
#define __DEVICE_LAUNCH_PARAMETERS_H__
#define __MATH_FUNCTIONS_H__
#include "cuda_cpu/letters_off.h"
#if defined(__CU2CPP__) && !defined(__CUDACC__)
#define __CUDACC__ // defined while a .cu is compiled, as by nvcc
#endif
#include "host_defines.h"
#include "cuda_cpu/types.h"
#include "cuda_cpu/api.h"
#include "library_types.h"
#include "cuda_cpu/channel.h"
#if defined(__CUDACC__) || defined(CUDA_CPU_ENGINE)
#include "cuda_cpu/math.h"
#include "cuda_cpu/kernel.h"
#include "cuda_cpu/texture.h"
#endif
#include "cuda_cpu/letters_on.h"
#ifdef __CUDACC__
#include "cuda_cpu/ptx.h"
#endif
