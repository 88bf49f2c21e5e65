// SPDX-License-Identifier: MIT
// The host side of the runtime only; also for C.
#pragma once
#include "cuda_cpu/types.h"
#include "cuda_cpu/api.h"
