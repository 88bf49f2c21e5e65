// SPDX-License-Identifier: MIT
// Mathematical constants in float (_F) and double, with the toolkit's names.
#pragma once
#define __MATH_CONSTANTS_H__
#include "cuda_runtime.h"

#define CUDART_INF_F        __int_as_float(0x7f800000)
#define CUDART_NAN_F        __int_as_float(0x7fffffff)
#define CUDART_MIN_DENORM_F __int_as_float(1)
#define CUDART_MAX_NORMAL_F __int_as_float(0x7f7fffff)
#define CUDART_NEG_ZERO_F   (-0.0f)
#define CUDART_ZERO_F       0.0f
#define CUDART_ONE_F        1.0f
#define CUDART_SQRT_HALF_F  0.707106781f
#define CUDART_SQRT_TWO_F   1.41421356f
#define CUDART_PIO4_F       0.785398163f
#define CUDART_PIO2_F       1.57079633f
#define CUDART_2_OVER_PI_F  0.636619772f
#define CUDART_PI_F         3.14159265f
#define CUDART_L2E_F        1.44269504f
#define CUDART_LN2_F        0.693147181f

#define CUDART_INF        __longlong_as_double(0x7ff0000000000000)
#define CUDART_NAN        __longlong_as_double((long long)0xfff8000000000000)
#define CUDART_MIN_DENORM __longlong_as_double(1)
#define CUDART_NEG_ZERO   (-0.0)
#define CUDART_ZERO       0.0
#define CUDART_ONE        1.0
#define CUDART_SQRT_HALF  0.7071067811865476
#define CUDART_SQRT_TWO   1.4142135623730951
#define CUDART_PIO4       0.7853981633974483
#define CUDART_PIO2       1.5707963267948966
#define CUDART_2_OVER_PI  0.6366197723675814
#define CUDART_PI         3.141592653589793
#define CUDART_L2E        1.4426950408889634
#define CUDART_LN2        0.6931471805599453
