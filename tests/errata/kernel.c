// SPDX-License-Identifier: MIT
// CSInParallel: CUDA in a file whose name ends with .c, which nvcc gives to the C compiler.
__global__ void kernel(int *out) {
    *out = 1;
}
