// SPDX-License-Identifier: MIT
// CUB: collective operations of a block or warp, and operations on arrays in device memory.
#pragma once
#include "cuda_runtime.h"
#ifdef __CUDACC__
#include <chrono> // Programs get it from CUB without including it.
#include "../cuda/functional"
#include "../cuda_cpu/cub_block.h"
#include "../cuda_cpu/cub_device.h"
#endif
