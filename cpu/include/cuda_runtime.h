// SPDX-License-Identifier: MIT
// The CPU back end's stand-in for the CUDA toolkit: everything a .cu gets without asking.
#pragma once
#if defined(__CU2CPP__) && !defined(__CUDACC__)
#define __CUDACC__ // a .cu, compiled as one
#endif
#include "cuda_cpu/types.h"
#include "cuda_cpu/api.h"
#include "cuda_cpu/math.h"
#include "cuda_cpu/kernel.h"
#include "cuda_cpu/texture.h"
