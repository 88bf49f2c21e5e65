// SPDX-License-Identifier: MIT
// CUDA 12 has these calls of CUDA 13 under other names.
#pragma once
#include <cuda_runtime.h>

#if CUDART_VERSION < 13000
#define cudaMemPrefetchAsync cudaMemPrefetchAsync_v2
#define cudaMemAdvise        cudaMemAdvise_v2
#endif
