// SPDX-License-Identifier: MIT
// Part of the toolkit by this name; here it is all in one place.
#pragma once
#include "cuda_runtime.h"
