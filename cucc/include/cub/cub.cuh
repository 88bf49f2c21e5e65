// SPDX-License-Identifier: MIT
// CUB: collective operations of a block or warp, and operations on arrays in device memory.
#pragma once
#include "cuda_runtime.h"
#ifdef __CUDACC__
// Programs get these from CUB without including them.
#include <cassert>
#include <chrono>
#if __has_include(<thrust/iterator/counting_iterator.h>)
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#endif
#include "../cuda/functional"
#include "../cuda_cpu/cub_block.h"
#include "../cuda_cpu/cub_device.h"
#endif
