// SPDX-License-Identifier: MIT
// Kernels that test_trace.py records.

__global__ void sum(const float *a, float *total) {
    __shared__ float cache[256];
    cache[threadIdx.x] = a[blockIdx.x * 256 + threadIdx.x]; // load
    __syncthreads();                                        // before the loop
    for (int i = 128; i != 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i]; // add
        __syncthreads();                                  // barrier of the loop
    }
    if (threadIdx.x == 0)
        total[blockIdx.x] = cache[0];
}

__global__ void stride(int step, int *out) {
    __shared__ int words[33 * 32];
    for (int i = threadIdx.x; i < 33 * 32; i += 32)
        words[i] = i;
    __syncwarp();
    out[threadIdx.x] = words[threadIdx.x * step]; // banks
}

__global__ void transpose(const float *in, float *out) {
    out[threadIdx.x * 64 + threadIdx.y] = in[threadIdx.y * 64 + threadIdx.x]; // transpose
}

__device__ __attribute__((noinline)) int few(const int *a, int n) {
    int s = 0;
    for (int i = 0; i < n; i++)
        s += a[i]; // in the function
    return s;
}
__device__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__global__ void paths(const int *a, int *b) {
    __shared__ int bins[128];
    int t = threadIdx.x;
    if (t < 4)
        bins[t * 32] = 0;
    __syncwarp();
    atomicAdd(&bins[t % 4 * 32], 1); // 24 lanes, 4 words, 1 bank
    if (t >= 20)
        return;
    int v = a[t]; // not returned
    if (t % 2)
        v += few(a, t % 4);
    else
        b[t] = 5;  // else
    b[t + 32] = v; // reconverged
    for (int i = 0; i < t / 5; i++) {
        if (i == t % 5)
            break;
        b[t] += a[i]; // in the loop
    }
    b[t + 64] = fibonacci(t % 4); // after the loop
}

__global__ void unequal(int *out) {
    int n = 0;
    for (unsigned i = 0; i < blockIdx.x % 50 * 10; i++)
        n = n * 5 + 1;
    out[blockIdx.x + gridDim.x * blockIdx.y] = n;
}

int main() {
    float *a, *b;
    cudaMalloc(&a, 1 << 16); // all memory of the kernels
    cudaMalloc(&b, 1 << 16);
    cudaMemset(a, 0, 1 << 16);
    cudaMemset(b, 0, 1 << 16);
    sum<<<32, 256>>>(a, b); // launch of sum
    const int steps[] = {1, 2, 32, 0, 33};
    for (int step : steps)
        stride<<<1, 32>>>(step, (int *)b);
    transpose<<<1, dim3(32, 8)>>>(a, b);
    cudaMemset(a, 0, 1 << 16);
    paths<<<1, 24>>>((const int *)a, (int *)b);
    unequal<<<dim3(50, 3), 1>>>((int *)b);
    unequal<<<9000, 1>>>((int *)b);
    return cudaDeviceSynchronize();
}
