// SPDX-License-Identifier: MIT
// With the CUDA system this header declares thrust::cuda::par too.
#pragma once
#include_next <thrust/execution_policy.h>
#include <thrust/system/cuda/execution_policy.h>
