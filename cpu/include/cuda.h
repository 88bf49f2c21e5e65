// SPDX-License-Identifier: MIT
// The driver API is not part of the CPU back end; programs that include this want its version.
#pragma once
#define CUDA_VERSION 13000
#include "cuda_runtime_api.h"
