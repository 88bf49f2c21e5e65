// SPDX-License-Identifier: MIT
// Part of the toolkit by this name; here it is all in one place.
#pragma once
#include "cuda_cpu/types.h"
#include "cuda_cpu/api.h"
