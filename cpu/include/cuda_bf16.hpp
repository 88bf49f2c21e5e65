// SPDX-License-Identifier: MIT
// A header of the toolkit. Its content is in cuda_bf16.h here.
#pragma once
#include "cuda_bf16.h"
