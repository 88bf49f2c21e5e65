// SPDX-License-Identifier: MIT
// Chapter 5: an endless animation with the program's own common/, which opens a window with GLUT.
#include "cuda.h"
#include "../common/book.h"
#include "../common/cpu_anim.h"

#ifndef OWN_BOOK
#error the common/ beside the program was not used
#endif

#define DIM 64

__global__ void wave(unsigned char *ptr, int ticks) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    ptr[4 * (x + y * blockDim.x * gridDim.x)] = (x + ticks) % DIM * 255 / 64;
}

struct DataBlock {
    unsigned char *dev_bitmap;
    CPUAnimBitmap *bitmap;
};

void cleanup(DataBlock *d) {
    HANDLE_ERROR(cudaFree(d->dev_bitmap));
    printf("cleaned up\n");
}

void generate_frame(DataBlock *d, int ticks) {
    wave<<<dim3(DIM / 16, DIM / 16), dim3(16, 16)>>>(d->dev_bitmap, ticks);
    HANDLE_ERROR(
        cudaMemcpy(d->bitmap->get_ptr(), d->dev_bitmap, d->bitmap->image_size(), cudaMemcpyDeviceToHost));
}

int main(void) {
    DataBlock data;
    CPUAnimBitmap bitmap(DIM, DIM, &data);
    data.bitmap = &bitmap;
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_bitmap, bitmap.image_size()));
    bitmap.anim_and_exit((void (*)(void *, int))generate_frame, (void (*)(void *))cleanup);
}
