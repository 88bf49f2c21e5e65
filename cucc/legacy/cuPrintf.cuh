// SPDX-License-Identifier: MIT
#include "cuPrintf.cu"
