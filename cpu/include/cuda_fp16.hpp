// SPDX-License-Identifier: MIT
// A header of the toolkit. Its content is in cuda_fp16.h here.
#pragma once
#include "cuda_fp16.h"
