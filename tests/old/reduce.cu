// SPDX-License-Identifier: MIT
// The last warp of a reduction without barriers, as it was written when the lanes of a warp ran in step.
#include "../common/book.h"
#define N 256
__global__ void reduce(int *in, int *out) {
    __shared__ int s[N];
    int tid = threadIdx.x;
    s[tid] = in[tid + blockIdx.x * N];
    __syncthreads();
    for (int i = N / 2; i > 32; i >>= 1) {
        if (tid < i)
            s[tid] += s[tid + i];
        __syncthreads();
    }
    if (tid < 32) {
        volatile int *v = s;
        v[tid] += v[tid + 32];
        v[tid] += v[tid + 16];
        v[tid] += v[tid + 8];
        v[tid] += v[tid + 4];
        v[tid] += v[tid + 2];
        v[tid] += v[tid + 1];
    }
    if (tid == 0)
        out[blockIdx.x] = s[0];
}
int main() {
    int h[4 * N], r[4], want[4] = {0};
    for (int i = 0; i < 4 * N; i++) {
        h[i] = i % 100;
        want[i / N] += h[i];
    }
    int *d, *o;
    cudaMalloc((void **)&d, sizeof h);
    cudaMalloc((void **)&o, sizeof r);
    cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
    reduce<<<4, N>>>(d, o);
    cudaMemcpy(r, o, sizeof r, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 4; i++)
        printf("%d %d\n", r[i], want[i]);
}
