// SPDX-License-Identifier: MIT
// A header of the toolkit. Its content is in cuda_cpu/types.h here.
#pragma once
#include "cuda_cpu/types.h"
