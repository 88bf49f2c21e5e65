// SPDX-License-Identifier: MIT
// Numbers of half precision: 5 bits of exponent, 10 of significand. The functions are in cuda_cpu/half.h.
#pragma once
#define __CUDA_FP16_H__
#include "cuda_cpu/letters_off.h"
#include "cuda_runtime.h"
#include "cuda_cpu/numbers.h"

#define CUDA_CPU_H       __half
#define CUDA_CPU_H2      __half2
#define CUDA_CPU_F       half
#define CUDA_CPU_F2      half2
#define CUDA_CPU_BITS    10
#define CUDA_CPU_OTHER_H struct __nv_bfloat16
#include "cuda_cpu/half.h"

typedef __half half, nv_half, __nv_half;
typedef __half2 half2, nv_half2, __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;

#define CUDART_INF_FP16        __ushort_as_half((unsigned short)0x7c00)
#define CUDART_NAN_FP16        __ushort_as_half((unsigned short)0x7fff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bff)
#define CUDART_NEG_ZERO_FP16   __ushort_as_half((unsigned short)0x8000)
#define CUDART_ZERO_FP16       __ushort_as_half((unsigned short)0x0000)
#define CUDART_ONE_FP16        __ushort_as_half((unsigned short)0x3c00)
#include "cuda_cpu/letters_on.h"
