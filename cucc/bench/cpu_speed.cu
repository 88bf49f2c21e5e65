// SPDX-License-Identifier: MIT
// Times the CPU back end beside plain C loops with OpenMP that do the same work, compiled with the same
// flags, and beside OpenCL on the same processor. cucc/bench/cpu_speed.sh builds and runs it, in this folder.
//
// Both sides are timed in turn. A row has the median and the minimum of 15 runs of either side, and the
// ratios of medians and minima. Two rounds warm up. Before each timed run the same side runs once untimed, so
// that its worker threads are awake and those of the other side sleep. With one worker, the time is that of
// the processor, which other programs disturb less.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include "kernels.h"

namespace cg = cooperative_groups;

#define RUNS 15

static bool one_worker, all_equal = true;
static float *x, *y, *z, *other; // memory of the device, which the host can use; kernels write to z

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        fprintf(stderr, "cpu_speed: %s\n", cudaGetErrorString(error));
        exit(EXIT_FAILURE);
    }
}

static double now_ms() {
    timespec now;
    clock_gettime(one_worker ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

static void compare(const char *title, const std::function<bool()> &equal,
                    const std::function<void()> &kernel, const std::function<void()> &loop) {
    const std::function<void()> *const sides[] = {&kernel, &loop};
    std::vector<double> times[2];
    memcpy(other, z, 4096); // so that a histogram is added to the same on both sides
    for (int i = -2; i < RUNS; i++)
        for (int side = 0; side < 2; side++) {
            (*sides[side])();
            const double start = now_ms();
            (*sides[side])();
            if (i >= 0)
                times[side].push_back(now_ms() - start);
        }
    check(cudaGetLastError());
    const bool same = equal();
    all_equal &= same;
    printf("%-50s", title);
    for (std::vector<double> &t : times) {
        std::sort(t.begin(), t.end());
        printf(" %8.3f %8.3f ", t[RUNS / 2], t[0]);
    }
    printf("%7.2f %6.2f%s\n", times[0][RUNS / 2] / times[1][RUNS / 2], times[0][0] / times[1][0],
           same ? "" : "  results DIFFER");
    fflush(stdout);
}

// A row for a loop, and one for OpenCL. The kernel's launch is the last argument.
#define LOOP(title, equal, loop, ...)                                                                        \
    compare(                                                                                                 \
        title, [&] { return equal; }, [&] { __VA_ARGS__; }, [&] { loop; })
#define OPENCL(title, equal, side, ...)                                                                      \
    compare(                                                                                                 \
        title, [&] { return equal; }, [&] { __VA_ARGS__; }, side)

static bool same(int n) {
    return !memcmp(z, other, n * sizeof *z);
}

// One of 500 may differ by more than the tolerance: OpenCL rounds a * b + c once where it likes, which
// changes pixels at the border of the Julia set.
template <class T> static bool close(int n, float tolerance) {
    int differ = 0;
    for (int i = 0; i < n; i++)
        differ += !(fabsf((float)((T *)z)[i] - (float)((T *)other)[i]) <= tolerance);
    return differ <= n / 500;
}

__global__ void add_3d(const float *a, const float *b, float *c, int w, int h, int d) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < w && y < h && z < d) {
        int i = (z * h + y) * w + x;
        c[i] = a[i] + b[i];
    }
}

static void add_loop(const float *a, const float *b, float *c, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

// One block per pixel, as in chapter 4.
__global__ void julia_kernel(unsigned char *red) {
    red[blockIdx.x + blockIdx.y * gridDim.x] = julia(blockIdx.x, blockIdx.y);
}

static void julia_loop(unsigned char *red) {
#pragma omp parallel for schedule(dynamic, 1)
    for (int y = 0; y < DIM; y++)
        for (int x = 0; x < DIM; x++)
            red[x + y * DIM] = julia(x, y);
}

__global__ void sum_shuffles(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? in[i] : 0;
    for (int half = 16; half > 0; half /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, half);
    if (threadIdx.x % 32 == 0)
        out[i / 32] = sum;
}

__global__ void sum_tiles(const float *in, float *out, int n) {
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = cg::reduce(tile, i < n ? in[i] : 0.0f, cg::plus<float>());
    if (tile.thread_rank() == 0)
        out[i / 32] = sum;
}

template <int SIZE> static float add_tree(float *cache) {
    for (int half = SIZE / 2; half > 0; half /= 2)
        for (int t = 0; t < half; t++)
            cache[t] += cache[t + half];
    return cache[0];
}

template <int SIZE> static void sum_loop(const float *in, float *out, int n) {
#pragma omp parallel for
    for (int part = 0; part < (n + SIZE - 1) / SIZE; part++) {
        float cache[SIZE];
        for (int t = 0; t < SIZE; t++)
            cache[t] = part * SIZE + t < n ? in[part * SIZE + t] : 0;
        out[part] = add_tree<SIZE>(cache);
    }
}

const int N = 512; // elements that a block scans, as Blelloch does it

__global__ void scan(const float *in, float *out) {
    __shared__ float temp[N];
    int t = threadIdx.x, first = blockIdx.x * N, offset = 1;
    temp[2 * t] = in[first + 2 * t];
    temp[2 * t + 1] = in[first + 2 * t + 1];
    for (int d = N / 2; d > 0; d /= 2) {
        __syncthreads();
        if (t < d)
            temp[offset * (2 * t + 2) - 1] += temp[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0)
        temp[N - 1] = 0;
    for (int d = 1; d < N; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < d) {
            int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            float sum = temp[left];
            temp[left] = temp[right];
            temp[right] += sum;
        }
    }
    __syncthreads();
    out[first + 2 * t] = temp[2 * t];
    out[first + 2 * t + 1] = temp[2 * t + 1];
}

static void scan_loop(const float *in, float *out, int n) {
#pragma omp parallel for
    for (int part = 0; part < n; part += N) {
        float sum = 0;
        for (int i = part; i < part + N; i++) {
            out[i] = sum;
            sum += in[i];
        }
    }
}

static void product_loop(const float *a, const float *b, float *c) {
#pragma omp parallel for
    for (int block = 0; block < WIDTH / TILE * (WIDTH / TILE); block++) {
        int left = block % (WIDTH / TILE) * TILE, top = block / (WIDTH / TILE) * TILE;
        float sum[TILE][TILE] = {};
        for (int tile = 0; tile < WIDTH; tile += TILE)
            for (int y = 0; y < TILE; y++)
                for (int x = 0; x < TILE; x++)
                    for (int k = 0; k < TILE; k++)
                        sum[y][x] += a[(top + y) * WIDTH + tile + k] * b[(tile + k) * WIDTH + left + x];
        for (int y = 0; y < TILE; y++)
            for (int x = 0; x < TILE; x++)
                c[(top + y) * WIDTH + left + x] = sum[y][x];
    }
}

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

__device__ float block_sum(float value) { // in the first thread
    static __shared__ float sums[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = warp_sum(value);
    if (lane == 0)
        sums[warp] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? sums[lane] : 0;
    if (warp == 0)
        value = warp_sum(value);
    return value;
}

__global__ void rmsnorm(float *out, const float *in, const float *weight, int size) {
    __shared__ float part[THREADS];
    in += blockIdx.x * size;
    out += blockIdx.x * size;
    float sum = 0;
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        sum += in[i] * in[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    float scale = 1 / sqrtf(part[0] / size + 1e-5f);
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        out[i] = weight[i] * (scale * in[i]);
}

__global__ void layernorm(float *out, const float *in, const float *weight, const float *bias, int size) {
    __shared__ float mean, scale;
    const float *row = in + blockIdx.x * size;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        sum += row[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        mean = sum / size;
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        squares += (row[i] - mean) * (row[i] - mean);
    squares = block_sum(squares);
    if (threadIdx.x == 0)
        scale = 1 / sqrtf(squares / size + 1e-5f);
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        out[blockIdx.x * size + i] = (row[i] - mean) * scale * weight[i] + bias[i];
}

static void rmsnorm_loop(float *out, const float *in, const float *weight, int rows, int size) {
#pragma omp parallel for
    for (int k = 0; k < rows; k++) {
        const float *row = in + k * size;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < size; i++)
            sum += row[i] * row[i];
        const float scale = 1 / sqrtf(sum / size + 1e-5f);
        for (int i = 0; i < size; i++)
            out[k * size + i] = weight[i] * (scale * row[i]);
    }
}

static void layernorm_loop(float *out, const float *in, const float *weight, const float *bias, int rows,
                           int size) {
#pragma omp parallel for
    for (int k = 0; k < rows; k++) {
        const float *row = in + k * size;
        float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < size; i++)
            sum += row[i];
        const float mean = sum / size;
#pragma omp simd reduction(+ : squares)
        for (int i = 0; i < size; i++)
            squares += (row[i] - mean) * (row[i] - mean);
        const float scale = 1 / sqrtf(squares / size + 1e-5f);
        for (int i = 0; i < size; i++)
            out[k * size + i] = (row[i] - mean) * scale * weight[i] + bias[i];
    }
}

static void histogram_loop(const unsigned char *bytes, int n, unsigned *counts) {
#pragma omp parallel for reduction(+ : counts[:256])
    for (int i = 0; i < n; i++)
        counts[bytes[i]]++;
}

__global__ void equal_or(int *p) {
    atomicOr(p, 0);
}

static void equal_or_loop(int *p, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        __atomic_fetch_or(p, 0, __ATOMIC_SEQ_CST);
}

static void compare_with_loops() {
    const int n = 1 << 24, m = 10000000, q = 1 << 22, size = 4096, rows = q / size;
    const int w = 250, h = 150, d = 100, volume = w * h * d;
    const dim3 cubes((w + 7) / 8, (h + 7) / 8, (d + 7) / 8), slices((w + 31) / 32, (h + 7) / 8, d);
    const dim3 tiles(WIDTH / TILE, WIDTH / TILE), tile(TILE, TILE);
    LOOP("vector add, 2^24 floats", same(n), add_loop(x, y, other, n), add<<<n / 256, 256>>>(x, y, z, n));
    LOOP("vector add, 250 x 150 x 100, blocks of 8 x 8 x 8", same(volume), add_loop(x, y, other, volume),
         add_3d<<<cubes, dim3(8, 8, 8)>>>(x, y, z, w, h, d));
    LOOP("vector add, 250 x 150 x 100, blocks of 32 x 8", same(volume), add_loop(x, y, other, volume),
         add_3d<<<slices, dim3(32, 8)>>>(x, y, z, w, h, d));
    LOOP("Julia set, 1000 x 1000, one thread per block", same(DIM * DIM / 4),
         julia_loop((unsigned char *)other), julia_kernel<<<dim3(DIM, DIM), 1>>>((unsigned char *)z));
    LOOP("sums of 128 of 10^7 floats by a tree", same(m / PART), sum_loop<PART>(x, other, m),
         sum_tree<<<m / PART, PART>>>(x, z, m));
    LOOP("sums of 32 of 10^7 floats by shuffles", same(m / 32), sum_loop<32>(x, other, m),
         sum_shuffles<<<m / PART, PART>>>(x, z, m));
    LOOP("sums of 32 of 2^22 floats by cg::reduce", same(q / 32), sum_loop<32>(x, other, q),
         sum_tiles<<<q / 256, 256>>>(x, z, q));
    LOOP("scans of 512 of 2^22 floats", same(q), scan_loop(x, other, q), scan<<<q / N, N / 2>>>(x, z));
    LOOP("product of matrices, 512 x 512, tiles of 16 x 16", same(WIDTH * WIDTH), product_loop(x, y, other),
         product<<<tiles, tile>>>(x, y, z));
    LOOP("rmsnorm, 1024 rows of 4096 floats, by a tree", same(q), rmsnorm_loop(other, x, y, rows, size),
         rmsnorm<<<rows, THREADS>>>(z, x, y, size));
    LOOP("histogram of 4 * 10^7 bytes, in shared memory", same(256),
         histogram_loop((unsigned char *)x, 4 * m, (unsigned *)other),
         histogram<<<64, 256>>>((unsigned char *)x, 4 * m, (unsigned *)z));
    LOOP("2^20 times atomicOr(p, 0)", same(256), equal_or_loop((int *)other, 1 << 20),
         equal_or<<<4096, 256>>>((int *)z));
    LOOP("layernorm, 1024 rows of 4096 floats, by shuffles", close<float>(q, 1e-3f),
         layernorm_loop(other, x, y, x, rows, size), layernorm<<<rows, THREADS>>>(z, x, y, x, size));
}

#ifdef HAVE_OPENCL
#define CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_TARGET_OPENCL_VERSION  120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#include <CL/opencl.hpp>
#include <fstream>

static const cl::Context context(CL_DEVICE_TYPE_CPU);
static const cl::CommandQueue queue(context);
static cl::Program program;

template <class... Arguments>
static std::function<void()> opencl(const char *name, dim3 blocks, dim3 threads,
                                    const Arguments &...arguments) {
    cl::Kernel kernel(program, name);
    cl_uint i = 0;
    (kernel.setArg(i++, arguments), ...);
    const cl::NDRange block(threads.x, threads.y), all(blocks.x * threads.x, blocks.y * threads.y);
    return [=] {
        queue.enqueueNDRangeKernel(kernel, cl::NullRange, all, block);
        queue.finish();
    };
}

static cl::Buffer buffer(float *memory, int n) { // on a processor it is this memory, not a copy
    return cl::Buffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, n * sizeof *memory, memory);
}

static void compare_with_opencl() {
    const int n = 1 << 24, bodies = 4096, options = 1 << 20;
    const dim3 tiles(WIDTH / TILE, WIDTH / TILE), tile(TILE, TILE), picture((DIM + 15) / 16, (DIM + 15) / 16);
    const cl::Buffer a = buffer(x, n), b = buffer(y, n), out = buffer(other, n), put = buffer(y + n, n),
                     prices = buffer(x + n, n);
    std::ifstream file("kernels.h");
    program = cl::Program(context, std::string(std::istreambuf_iterator<char>(file), {}), true);
    printf("beside OpenCL, %s\n", context.getInfo<CL_CONTEXT_DEVICES>()[0].getInfo<CL_DEVICE_NAME>().c_str());
    OPENCL("vector add, 2^24 floats", same(n), opencl("add", n / 256, 256, a, b, out, n),
           add<<<n / 256, 256>>>(x, y, z, n));
    OPENCL("Julia set, 1000 x 1000, 16 x 16 threads per block", close<unsigned char>(DIM * DIM, 0),
           opencl("julia_set", picture, tile, out), julia_set<<<picture, tile>>>((unsigned char *)z));
    OPENCL("product of matrices, 512 x 512, tiles of 16 x 16", same(WIDTH * WIDTH),
           opencl("product", tiles, tile, a, b, out), product<<<tiles, tile>>>(x, y, z));
    OPENCL("dot product of 2^24 floats, 256 blocks", same(256),
           opencl("dot_product", 256, THREADS, a, b, out, n), dot_product<<<256, THREADS>>>(x, y, z, n));
    OPENCL("sums of 128 of 2^24 floats by a tree", same(n / PART),
           opencl("sum_tree", n / PART, PART, a, out, n), sum_tree<<<n / PART, PART>>>(x, z, n));
    OPENCL("histogram of 2^24 bytes, in shared memory", same(256), opencl("histogram", 64, 256, a, n, out),
           histogram<<<64, 256>>>((unsigned char *)x, n, (unsigned *)z));
    OPENCL("n-body, 4096 bodies, tiles in shared memory", close<float>(4 * bodies, 0.01f),
           opencl("accelerations", bodies / THREADS, THREADS, a, out, bodies),
           accelerations<<<bodies / THREADS, THREADS>>>((float4 *)x, (float4 *)z, bodies));
    OPENCL("Black-Scholes, 2^20 options", close<float>(options, 0.001f),
           opencl("black_scholes", options / 256, 256, prices, b, b, out, put, options),
           black_scholes<<<options / 256, 256>>>(x + n, y, y, z, y + n, options));
}
#endif

int main() {
    const char *workers = getenv("CUDA_CPU_WORKERS"); // cpu_speed.sh sets it
    one_worker = workers && !strcmp(workers, "1");
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0));
    printf("%s, %s workers, ms of %s time; kernel, other side, ratio: median and minimum of %d runs\n",
           device.name, workers ? workers : "all", one_worker ? "processor" : "wall", RUNS);
    const int n = 1 << 24;
    for (float **memory : {&x, &y, &z, &other})
        check(cudaMallocManaged(memory, 2 * n * sizeof(float)));
    for (int i = 0; i < n; i++) { // sums of small integers are exact in any order
        x[i] = i % 17 - 8;
        x[n + i] = 5 + i % 25;
        y[i] = 1 + i % 99;
    }
    printf("beside plain loops with OpenMP\n");
    compare_with_loops();
#ifdef HAVE_OPENCL
    compare_with_opencl();
#endif
    for (float *memory : {x, y, z, other})
        check(cudaFree(memory));
    printf("results %s\n", all_equal ? "equal" : "DIFFER");
    return all_equal ? EXIT_SUCCESS : EXIT_FAILURE;
}
