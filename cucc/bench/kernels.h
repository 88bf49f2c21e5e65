// SPDX-License-Identifier: MIT
// Kernels of cpu_speed.cu. They are CUDA C++ and, with these macros, OpenCL C.
#ifdef __OPENCL_VERSION__
#define INDEX(of)  ((int3)(of(0), of(1), of(2)))
#define threadIdx  INDEX(get_local_id)
#define blockIdx   INDEX(get_group_id)
#define blockDim   INDEX(get_local_size)
#define gridDim    INDEX(get_num_groups)
#define __global__ __kernel
#define __device__
#define __shared__              __local
#define GLOBAL                  __global
#define __syncthreads()         barrier(CLK_LOCAL_MEM_FENCE)
#define atomicAdd               atomic_add
#define make_float4(x, y, z, w) ((float4)(x, y, z, w))
#else
#define GLOBAL
#endif

#define DIM     1000 // pixels of the Julia set, in either direction
#define THREADS 256
#define PART    128 // threads of a block that add a tree
#define TILE    16
#define WIDTH   512 // of the matrices

__global__ void add(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

__device__ int julia(int x, int y) {
    float re = 1.5f * (DIM / 2 - x) / (DIM / 2), im = 1.5f * (DIM / 2 - y) / (DIM / 2);
    for (int i = 0; i < 200; i++) {
        float next = re * re - im * im - 0.8f;
        im = 2 * re * im + 0.156f;
        re = next;
        if (re * re + im * im > 1000)
            return 0;
    }
    return 255;
}

__global__ void julia_set(GLOBAL unsigned char *red) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < DIM && y < DIM)
        red[x + y * DIM] = julia(x, y);
}

__global__ void dot_product(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *c, int n) {
    __shared__ float cache[THREADS];
    int t = threadIdx.x;
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        sum += a[i] * b[i];
    cache[t] = sum;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (t < step)
            cache[t] += cache[t + step];
        __syncthreads();
    }
    if (t == 0)
        c[blockIdx.x] = cache[0];
}

__global__ void sum_tree(GLOBAL const float *in, GLOBAL float *out, int n) {
    __shared__ float cache[PART];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    cache[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int step = PART / 2; step > 0; step /= 2) {
        if (t < step)
            cache[t] += cache[t + step];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = cache[0];
}

__global__ void product(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *c) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    float sum = 0;
    for (int tile = 0; tile < WIDTH; tile += TILE) {
        left[threadIdx.y][threadIdx.x] = a[y * WIDTH + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * WIDTH + x];
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[y * WIDTH + x] = sum;
}

__global__ void histogram(GLOBAL const unsigned char *bytes, int n, GLOBAL unsigned *counts) {
    __shared__ unsigned part[256];
    part[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&part[bytes[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], part[threadIdx.x]);
}

__global__ void accelerations(GLOBAL const float4 *bodies, GLOBAL float4 *out, int n) {
    __shared__ float4 tile[THREADS];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = bodies[i];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += THREADS) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < THREADS; j++) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float inverse = 1.0f / sqrt(dx * dx + dy * dy + dz * dz + 0.01f);
            float s = tile[j].w * inverse * inverse * inverse;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        __syncthreads();
    }
    out[i] = make_float4(ax, ay, az, 0);
}

__device__ float normal(float d) { // the cumulative distribution, by a polynomial
    float k = 1 / (1 + 0.2316419f * fabs(d)),
          sum = k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f));
    float tail = 0.39894228f * exp(-0.5f * d * d) * k * (0.31938153f + k * (-0.356563782f + sum));
    return d > 0 ? 1 - tail : tail;
}

__global__ void black_scholes(GLOBAL const float *price, GLOBAL const float *strike,
                              GLOBAL const float *years, GLOBAL float *call, GLOBAL float *put, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float rate = 0.02f, volatility = 0.3f, spread = volatility * sqrt(years[i]);
    float d = (log(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / spread;
    float n1 = normal(d), n2 = normal(d - spread), discounted = strike[i] * exp(-rate * years[i]);
    call[i] = price[i] * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - price[i] * (1.0f - n1);
}
