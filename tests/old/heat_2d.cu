// SPDX-License-Identifier: MIT
// Chapter 8: heat with two-dimensional references, in a GPUAnimBitmap.
#include "cuda.h"
#include "../common/book.h"
#include "../common/gpu_anim.h"

#define DIM   128
#define SPEED 0.25f

texture<float, 2> texIn;
texture<float, 2> texOut;

__global__ void blend_kernel(float *dst, bool dstOut) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    int offset = x + y * blockDim.x * gridDim.x;
    float c, beside, above;
    if (dstOut) {
        c = tex2D(texIn, x, y);
        beside = tex2D(texIn, x - 1, y) + tex2D(texIn, x + 1, y);
        above = tex2D(texIn, x, y - 1) + tex2D(texIn, x, y + 1);
    } else {
        c = tex2D(texOut, x, y);
        beside = tex2D(texOut, x - 1, y) + tex2D(texOut, x + 1, y);
        above = tex2D(texOut, x, y - 1) + tex2D(texOut, x, y + 1);
    }
    dst[offset] = c + SPEED * (beside + above - 4 * c);
}

struct DataBlock {
    float *dev_inSrc, *dev_outSrc;
    float frames;
};

void anim_gpu(uchar4 *outputBitmap, DataBlock *d, int ticks) {
    dim3 blocks(DIM / 16, DIM / 16);
    dim3 threads(16, 16);
    volatile bool dstOut = true;
    for (int i = 0; i < 20; i++) {
        blend_kernel<<<blocks, threads>>>(dstOut ? d->dev_outSrc : d->dev_inSrc, dstOut);
        dstOut = !dstOut;
    }
    float_to_color<<<blocks, threads>>>(outputBitmap, d->dev_inSrc);
    ++d->frames;
}

void anim_exit(DataBlock *d) {
    cudaUnbindTexture(texIn);
    cudaUnbindTexture(texOut);
    HANDLE_ERROR(cudaFree(d->dev_inSrc));
    HANDLE_ERROR(cudaFree(d->dev_outSrc));
    printf("%g frames\n", d->frames);
}

int main(void) {
    DataBlock data;
    GPUAnimBitmap bitmap(DIM, DIM, &data);
    data.frames = 0;
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
    int size = DIM * DIM * sizeof(float);
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_inSrc, size));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_outSrc, size));
    HANDLE_ERROR(cudaBindTexture2D(NULL, texIn, data.dev_inSrc, desc, DIM, DIM, sizeof(float) * DIM));
    HANDLE_ERROR(cudaBindTexture2D(NULL, texOut, data.dev_outSrc, desc, DIM, DIM, sizeof(float) * DIM));
    float *temp = (float *)calloc(DIM * DIM, sizeof(float));
    for (int i = 0; i < DIM * DIM; i++)
        if (i % DIM > 40 && i % DIM < 80 && i / DIM > 50 && i / DIM < 70)
            temp[i] = 1;
    HANDLE_ERROR(cudaMemcpy(data.dev_inSrc, temp, size, cudaMemcpyHostToDevice));
    free(temp);
    bitmap.anim_and_exit((void (*)(uchar4 *, void *, int))anim_gpu, (void (*)(void *))anim_exit);
}
