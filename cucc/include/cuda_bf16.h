// SPDX-License-Identifier: MIT
// Numbers of bfloat16: 8 bits of exponent, 7 of significand. The functions are in cuda_cpu/half.h.
#pragma once
#define __CUDA_BF16_H__
#include "cuda_cpu/letters_off.h"
#include "cuda_fp16.h"

#define CUDA_CPU_H       __nv_bfloat16
#define CUDA_CPU_H2      __nv_bfloat162
#define CUDA_CPU_F       bfloat16
#define CUDA_CPU_F2      bfloat162
#define CUDA_CPU_BITS    7
#define CUDA_CPU_OTHER_H __half
#include "cuda_cpu/half.h"

inline __half::__half(const __nv_bfloat16 &x) : __half((float)x) {}
inline __nv_bfloat16::__nv_bfloat16(const __half &x) : __nv_bfloat16((float)x) {}

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define CUDART_INF_BF16        __ushort_as_bfloat16((unsigned short)0x7f80)
#define CUDART_NAN_BF16        __ushort_as_bfloat16((unsigned short)0x7fff)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16((unsigned short)0x0001)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7f7f)
#define CUDART_NEG_ZERO_BF16   __ushort_as_bfloat16((unsigned short)0x8000)
#define CUDART_ZERO_BF16       __ushort_as_bfloat16((unsigned short)0x0000)
#define CUDART_ONE_BF16        __ushort_as_bfloat16((unsigned short)0x3f80)
#include "cuda_cpu/letters_on.h"
