// SPDX-License-Identifier: MIT
// The mistakes of the table in ../README.md: `mistakes 3` makes the third one, `mistakes 0` none of them.
#include <cstdio>
#include <cstdlib>

static int mistake;

__global__ void add_one(int *values, int n, bool unchecked) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n || unchecked)
        values[i] += 1;
}

__global__ void reverse(int *values, bool no_barrier) {
    __shared__ int all[128];
    all[threadIdx.x] = values[threadIdx.x];
    if (!no_barrier)
        __syncthreads();
    values[threadIdx.x] = all[127 - threadIdx.x];
}

__global__ void sum(int *values, int *out, bool in_branch, bool not_set) {
    __shared__ int all[128];
    const int t = threadIdx.x;
    if (!not_set || t < 100)
        all[t] = values[t];
    __syncthreads();
    for (int i = 64; i > 0; i /= 2) {
        if (t < i) {
            all[t] += all[t + i];
            if (in_branch)
                __syncthreads();
        }
        if (!in_branch)
            __syncthreads();
    }
    if (t == 0)
        *out = all[0];
}

__global__ void count(const int *values, int *out, bool not_atomic) {
    __shared__ int zeros;
    if (threadIdx.x == 0)
        zeros = 0;
    __syncthreads();
    if (values[threadIdx.x] == 0 && not_atomic)
        zeros++;
    else if (values[threadIdx.x] == 0)
        atomicAdd(&zeros, 1);
    __syncthreads();
    if (threadIdx.x == 0)
        *out = zeros;
}

#ifdef CALLED
static void plain_call(int *values) {
    add_one(values, 100, false); // no <<<>>>
}
#endif

int main(int, char **argv) {
    mistake = atoi(argv[1]);
    int *values, *out, host[128] = {};
    cudaMalloc(&values, sizeof host);
    cudaMalloc(&out, sizeof(int));
    if (mistake != 6)
        cudaMemcpy(values, host, sizeof host, mistake == 9 ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice);
    if (mistake == 9)
        cudaMemset(values, 0, sizeof host);
    add_one<<<1, mistake == 8 ? 2048 : 128>>>(values, 128, false);
    add_one<<<2, 100>>>(mistake == 3 ? host : values, 128, mistake == 2);
    reverse<<<1, 128>>>(values, mistake == 4);
    sum<<<1, 128>>>(values, out, mistake == 7, mistake == 5);
    cudaMemset(values, 0, sizeof host);
    count<<<1, 128>>>(values, out, mistake == 10);
    if (mistake == 1)
        printf("%d\n", out[0]);
    else
        cudaMemcpy(host, out, sizeof(int), cudaMemcpyDeviceToHost);
    cudaFree(values);
    cudaFree(out);
    return 0;
}
