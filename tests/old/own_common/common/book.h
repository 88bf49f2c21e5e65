// SPDX-License-Identifier: MIT
// An old program brings its own common/, which has to be used instead of ours.
#ifndef OWN_BOOK_H
#define OWN_BOOK_H
#include <stdio.h>

static void HandleError(cudaError_t err, const char *file, int line) {
    if (err != cudaSuccess) {
        printf("%s in %s at line %d\n", cudaGetErrorString(err), file, line);
        exit(EXIT_FAILURE);
    }
}
#define HANDLE_ERROR(err) (HandleError(err, __FILE__, __LINE__))
#define OWN_BOOK          1

__device__ unsigned char value(float v) {
    return (unsigned char)(255 * v);
}

__global__ void float_to_color(unsigned char *optr, const float *outSrc) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    int offset = x + y * blockDim.x * gridDim.x;
    optr[offset * 4 + 0] = optr[offset * 4 + 1] = value(outSrc[offset]);
    optr[offset * 4 + 2] = 0;
    optr[offset * 4 + 3] = 255;
}
#endif
