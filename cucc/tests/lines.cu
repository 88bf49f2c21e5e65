// SPDX-License-Identifier: MIT
// Each kind of region, launch, declaration and function. test_lines.py makes an error on each line.
// Where the lines end is what is tested.
// clang-format off
#define TWICE(x)                                                                                             \
    ((x) +                                                                                                   \
     (x))
__device__ volatile int out[64];
__constant__ int table[4];
__device__ int simple(int x) {
    out[0] = x;
    return x + 1;
}
__device__ int exchanged(int *s,
                         int x) {
    s[threadIdx.x] = x;
    out[1] = x;
    __syncthreads();

    x = s[63 - threadIdx.x];
    out[2] = x;
    __syncthreads();
    return x;
}
__device__ int lanes(int x) {
    for (int d = 16; d > 0; d /= 2) {
        x += __shfl_xor_sync(~0u, x, d);

        out[3] = x;
    }
    return x;
}
template <typename T, int n> __global__ void tree(T *p) {
    __shared__ T s[n];
    int t = threadIdx.x,
        u = t + 1;
    s[t] = p[t];

    __syncthreads();
    for (int d = n / 2; d > 0; d /= 2) {

        if (t < d) {
            s[t] += s[t + d];
        }
        __syncthreads();
    }

    if (t == 0)
        p[0] = s[0];
    out[4] = u;
}
__global__ void regions(int *p, int n) {
    __shared__ int s[64];
    extern __shared__ int more[];
    const int t = threadIdx.x;
    int a = p[t], b = 2;
    if (t >= n)
        return;

    s[t] = a;
    out[5] = a;
    __syncthreads();

    /* a comment
       of two lines */
    b = s[63 - t];

    out[6] = TWICE(b);
    __syncthreads();
#pragma unroll 4
    for (int i = t; i < n; i += blockDim.x) {
        p[i] = b;

        out[7] = b;
    }
    __syncthreads();
    {

        int c = s[t];
        out[8] = c;
        __syncthreads();

        do {
            out[9] = c;
            __syncthreads();

            c = n;
        } while (n < 3);
    }
    if (n > 3) {
        out[10] = b;
        __syncthreads();

    } else {
        __syncthreads();
        out[11] = b;

    }
    b = exchanged(s,
                  b);
    out[12] = b;
    b = lanes(b) +
        simple(b);
    out[13] = b;
    __syncwarp();
    more[0] = b;
    p[t] = more[0];
}
__global__ void plain(int *p) {
    int x = threadIdx.x;
    auto f = [&](int y) {
        out[14] = y;
        return y;
    };

    p[x] = f(x) << 3;
    out[15] = x;
}
int main() {
    int *p;
    cudaMallocManaged(&p, 4096);

    regions<<<1,
              64,
              4>>>(p,
                   64);
    tree<int, 64><<<1, 64>>>(p);

    plain<<<1, 64>>>(p);
    cudaDeviceSynchronize();

    printf("%d\n",
           p[0]);
    return 0;
}
