// SPDX-License-Identifier: MIT
// Chapter 7: heat with three texture references over linear memory, and an animation that never ends.
#include "cuda.h"
#include "../common/book.h"
#include "../common/cpu_anim.h"

#define DIM   128
#define SPEED 0.25f

texture<float> texConstSrc;
texture<float> texIn;
texture<float> texOut;

__global__ void blend_kernel(float *dst, bool dstOut) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    int offset = x + y * blockDim.x * gridDim.x;
    int left = x == 0 ? offset : offset - 1;
    int right = x == DIM - 1 ? offset : offset + 1;
    int top = y == 0 ? offset : offset - DIM;
    int bottom = y == DIM - 1 ? offset : offset + DIM;
    float t, l, c, r, b;
    if (dstOut) {
        t = tex1Dfetch(texIn, top);
        l = tex1Dfetch(texIn, left);
        c = tex1Dfetch(texIn, offset);
        r = tex1Dfetch(texIn, right);
        b = tex1Dfetch(texIn, bottom);
    } else {
        t = tex1Dfetch(texOut, top);
        l = tex1Dfetch(texOut, left);
        c = tex1Dfetch(texOut, offset);
        r = tex1Dfetch(texOut, right);
        b = tex1Dfetch(texOut, bottom);
    }
    dst[offset] = c + SPEED * (t + b + r + l - 4 * c);
}

__global__ void copy_const_kernel(float *iptr) {
    int x = threadIdx.x + blockIdx.x * blockDim.x;
    int y = threadIdx.y + blockIdx.y * blockDim.y;
    int offset = x + y * blockDim.x * gridDim.x;
    float c = tex1Dfetch(texConstSrc, offset);
    if (c != 0)
        iptr[offset] = c;
}

struct DataBlock {
    unsigned char *output_bitmap;
    float *dev_inSrc, *dev_outSrc, *dev_constSrc;
    CPUAnimBitmap *bitmap;
    cudaEvent_t start, stop;
    float totalTime, frames;
};

void anim_gpu(DataBlock *d, int ticks) {
    HANDLE_ERROR(cudaEventRecord(d->start, 0));
    dim3 blocks(DIM / 16, DIM / 16);
    dim3 threads(16, 16);
    volatile bool dstOut = true;
    for (int i = 0; i < 20; i++) {
        float *in = dstOut ? d->dev_inSrc : d->dev_outSrc;
        float *out = dstOut ? d->dev_outSrc : d->dev_inSrc;
        copy_const_kernel<<<blocks, threads>>>(in);
        blend_kernel<<<blocks, threads>>>(out, dstOut);
        dstOut = !dstOut;
    }
    float_to_color<<<blocks, threads>>>(d->output_bitmap, d->dev_inSrc);
    HANDLE_ERROR(
        cudaMemcpy(d->bitmap->get_ptr(), d->output_bitmap, d->bitmap->image_size(), cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventRecord(d->stop, 0));
    HANDLE_ERROR(cudaEventSynchronize(d->stop));
    float elapsedTime;
    HANDLE_ERROR(cudaEventElapsedTime(&elapsedTime, d->start, d->stop));
    d->totalTime += elapsedTime;
    ++d->frames;
}

void anim_exit(DataBlock *d) {
    cudaUnbindTexture(texIn);
    cudaUnbindTexture(texOut);
    cudaUnbindTexture(texConstSrc);
    HANDLE_ERROR(cudaFree(d->dev_inSrc));
    HANDLE_ERROR(cudaFree(d->dev_outSrc));
    HANDLE_ERROR(cudaFree(d->dev_constSrc));
    HANDLE_ERROR(cudaEventDestroy(d->start));
    HANDLE_ERROR(cudaEventDestroy(d->stop));
    printf("%g frames\n", d->frames);
}

int main(void) {
    DataBlock data;
    CPUAnimBitmap bitmap(DIM, DIM, &data);
    data.bitmap = &bitmap;
    data.totalTime = 0;
    data.frames = 0;
    HANDLE_ERROR(cudaEventCreate(&data.start));
    HANDLE_ERROR(cudaEventCreate(&data.stop));
    int size = DIM * DIM * sizeof(float);
    HANDLE_ERROR(cudaMalloc((void **)&data.output_bitmap, bitmap.image_size()));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_inSrc, size));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_outSrc, size));
    HANDLE_ERROR(cudaMalloc((void **)&data.dev_constSrc, size));
    HANDLE_ERROR(cudaBindTexture(NULL, texConstSrc, data.dev_constSrc, size));
    HANDLE_ERROR(cudaBindTexture(NULL, texIn, data.dev_inSrc, size));
    HANDLE_ERROR(cudaBindTexture(NULL, texOut, data.dev_outSrc, size));
    float *temp = (float *)calloc(DIM * DIM, sizeof(float));
    for (int i = 0; i < DIM * DIM; i++)
        if (i % DIM > 40 && i % DIM < 80 && i / DIM > 50 && i / DIM < 70)
            temp[i] = 1;
    HANDLE_ERROR(cudaMemcpy(data.dev_constSrc, temp, size, cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMemcpy(data.dev_inSrc, temp, size, cudaMemcpyHostToDevice));
    free(temp);
    bitmap.anim_and_exit((void (*)(void *, int))anim_gpu, (void (*)(void *))anim_exit);
}
