// SPDX-License-Identifier: MIT
// A header of the toolkit until CUDA 12. Its content is in cuda_runtime.h now.
#include <cuda_runtime.h>
