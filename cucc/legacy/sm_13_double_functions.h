// SPDX-License-Identifier: MIT
#include <cuda_runtime.h> // has the content of this header since CUDA 12
