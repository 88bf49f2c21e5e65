// SPDX-License-Identifier: MIT
// A header of the toolkit. Its content is in cuda_runtime.h here.
#pragma once
#include "../cuda_runtime.h"
