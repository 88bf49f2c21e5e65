// SPDX-License-Identifier: MIT
// Chapter 4: a class whose constructor is not marked __device__, which nvcc accepted in 2010, a bitmap, and a
// main as compilers on Windows accept it.
#include "../common/book.h"
#include "../common/cpu_bitmap.h"

#define DIM 100

struct cuComplex {
    float r;
    float i;
    cuComplex(float a, float b) : r(a), i(b) {}
    __device__ float magnitude2(void) { return r * r + i * i; }
    __device__ cuComplex operator*(const cuComplex &a) {
        return cuComplex(r * a.r - i * a.i, i * a.r + r * a.i);
    }
    __device__ cuComplex operator+(const cuComplex &a) { return cuComplex(r + a.r, i + a.i); }
};

__device__ int inside(int x, int y) {
    cuComplex a((float)(DIM / 2 - x) / (DIM / 2), (float)(DIM / 2 - y) / (DIM / 2));
    for (int i = 0; i < 50; i++) {
        a = a * a + cuComplex(0, 0);
        if (a.magnitude2() > 1000)
            return 0;
    }
    return 1;
}

__global__ void kernel(unsigned char *ptr) {
    int offset = blockIdx.x + blockIdx.y * gridDim.x;
    ptr[offset * 4 + 0] = 255 * inside(blockIdx.x, blockIdx.y);
    ptr[offset * 4 + 1] = 0;
    ptr[offset * 4 + 2] = 0;
    ptr[offset * 4 + 3] = 255;
}

struct DataBlock {
    unsigned char *dev_bitmap;
};

void main(void) {
    DataBlock data;
    CPUBitmap bitmap(DIM, DIM, &data);
    unsigned char *dev_bitmap;
    HANDLE_ERROR(cudaMalloc((void **)&dev_bitmap, bitmap.image_size()));
    data.dev_bitmap = dev_bitmap;
    dim3 grid(DIM, DIM);
    kernel<<<grid, 1>>>(dev_bitmap);
    HANDLE_ERROR(cudaMemcpy(bitmap.get_ptr(), dev_bitmap, bitmap.image_size(), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaFree(dev_bitmap));
    bitmap.display_and_exit();
}
