// SPDX-License-Identifier: MIT
// The driver API is not part of the CPU back end. Programs include this header for CUDA_VERSION.
#pragma once
#define CUDA_VERSION 13000
#include "cuda_runtime_api.h"
