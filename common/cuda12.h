// SPDX-License-Identifier: MIT
// CUDA 12 has these calls of CUDA 13 under other names.
#pragma once
#include <cuda_runtime.h>

#if CUDART_VERSION < 13000
#undef cudaStreamGetCaptureInfo
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#define cudaMemPrefetchAsync     cudaMemPrefetchAsync_v2
#define cudaMemAdvise            cudaMemAdvise_v2
#endif
