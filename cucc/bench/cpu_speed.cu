// SPDX-License-Identifier: MIT
// Times the CPU back end beside plain C loops with OpenMP that do the same work, compiled with the same
// flags. cucc/bench/cpu_speed.sh builds and runs it.
//
// Kernel and loop are timed in turn, and the median is printed with the fastest and slowest run, and the
// ratios of medians and minima. Two rounds warm up. Before each timed run the same side runs once untimed,
// so that its worker threads are awake and those of the other side sleep.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>
#include <omp.h>

#define RUNS 15

static void check(cudaError_t error, int line) {
    if (error != cudaSuccess) {
        fprintf(stderr, "cpu_speed.cu:%d: %s\n", line, cudaGetErrorString(error));
        exit(EXIT_FAILURE);
    }
}
#define HANDLE_ERROR(call) check(call, __LINE__)

static double now_ms() {
    using namespace std::chrono;
    return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

struct Times {
    std::vector<double> runs;
    double median() { return std::sort(runs.begin(), runs.end()), runs[runs.size() / 2]; }
    void print(const char *name) {
        double middle = median();
        printf("  %-28s %9.3f ms  (%.3f to %.3f)\n", name, middle, runs.front(), runs.back());
    }
};

// Times the sides in turn.
static std::vector<Times> time_in_turn(const std::vector<std::function<void()>> &sides) {
    std::vector<Times> times(sides.size());
    for (int i = -2; i < RUNS; i++)
        for (size_t side = 0; side < sides.size(); side++) {
            sides[side]();
            const double start = now_ms();
            sides[side]();
            if (i >= 0)
                times[side].runs.push_back(now_ms() - start);
        }
    HANDLE_ERROR(cudaGetLastError());
    return times;
}

static void compare(const char *title, const std::function<void()> &kernel,
                    const std::function<void()> &loop) {
    std::vector<Times> times = time_in_turn({kernel, loop});
    Times &k = times[0], &l = times[1];
    printf("%s\n", title);
    k.print("kernel");
    l.print("plain loop, OpenMP");
    printf("  %-28s %9.2f     (minima %.2f)\n", "ratio", k.median() / l.median(), k.runs[0] / l.runs[0]);
}

// ---- vector add, 2^24 ints ----

__global__ void add(const int *a, const int *b, int *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

static void add_loop(const int *a, const int *b, int *c, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

// ---- Julia set, 1000 x 1000, one block per pixel, as in chapter 4 ----

#define DIM 1000

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

__global__ void julia_kernel(unsigned char *red) {
    red[blockIdx.x + blockIdx.y * gridDim.x] = julia(blockIdx.x, blockIdx.y);
}

static void julia_loop(unsigned char *red) {
#pragma omp parallel for schedule(dynamic, 1)
    for (int y = 0; y < DIM; y++)
        for (int x = 0; x < DIM; x++)
            red[x + y * DIM] = julia(x, y);
}

// ---- dot product: tree reduction with a barrier after each step, 256 threads per block ----

#define THREADS 256
#define BLOCKS  256

__global__ void dot(const float *a, const float *b, float *c, int n) {
    __shared__ float cache[THREADS];
    float sum = 0;
    for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x)
        sum += a[i] * b[i];
    cache[threadIdx.x] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half)
            cache[threadIdx.x] += cache[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        c[blockIdx.x] = cache[0];
}

__global__ void empty() {}

// ---- barriers beside the same blocks as loops: a sum, a product of matrices by tiles, a histogram ----

#define PART  128
#define TILE  16
#define WIDTH 512

__global__ void sum_tree(const float *in, float *out, int n) {
    __shared__ float cache[PART];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cache[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int half = PART / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            cache[threadIdx.x] += cache[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = cache[0];
}

static void sum_tree_loop(const float *in, float *out, int n) {
#pragma omp parallel for
    for (int block = 0; block < (n + PART - 1) / PART; block++) {
        float cache[PART];
        for (int t = 0; t < PART; t++)
            cache[t] = block * PART + t < n ? in[block * PART + t] : 0;
        for (int half = PART / 2; half > 0; half /= 2)
            for (int t = 0; t < half; t++)
                cache[t] += cache[t + half];
        out[block] = cache[0];
    }
}

__global__ void sum_shuffles(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? in[i] : 0;
    for (int half = 16; half > 0; half /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, half);
    if (threadIdx.x % 32 == 0)
        out[i / 32] = sum;
}

static void sum_shuffles_loop(const float *in, float *out, int n) {
#pragma omp parallel for
    for (int warp = 0; warp < (n + 31) / 32; warp++) {
        float lane[32];
        for (int t = 0; t < 32; t++)
            lane[t] = warp * 32 + t < n ? in[warp * 32 + t] : 0;
        for (int half = 16; half > 0; half /= 2)
            for (int t = 0; t < half; t++)
                lane[t] += lane[t + half];
        out[warp] = lane[0];
    }
}

__global__ void product(const float *a, const float *b, float *c) {
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

__global__ void histogram(const unsigned char *bytes, int n, unsigned *counts) {
    __shared__ unsigned part[256];
    part[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&part[bytes[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], part[threadIdx.x]);
}

static void histogram_loop(const unsigned char *bytes, int n, unsigned *counts) {
#pragma omp parallel
    {
        unsigned part[256] = {};
#pragma omp for
        for (int i = 0; i < n; i++)
            part[bytes[i]]++;
#pragma omp critical
        for (int i = 0; i < 256; i++)
            counts[i] += part[i];
    }
}

// Compares kernels with barriers and warp operations with loops. x, y, z: memory for 2^24 floats each
static bool compare_barriers(float *x, float *y, float *z) {
    const int n = 10000000, parts = (n + PART - 1) / PART, matrix = WIDTH * WIDTH;
    for (int i = 0; i < n; i++)
        x[i] = i % 17 - 8;
    std::vector<float> plain(n);
    compare(
        "sum of 10^7 floats by a tree, 128 threads per block", [&] { sum_tree<<<parts, PART>>>(x, z, n); },
        [&] { sum_tree_loop(x, plain.data(), n); });
    bool ok = std::equal(z, z + parts, plain.begin());
    compare(
        "sum of 10^7 floats by shuffles", [&] { sum_shuffles<<<parts, PART>>>(x, z, n); },
        [&] { sum_shuffles_loop(x, plain.data(), n); });
    ok = ok && std::equal(z, z + n / 32, plain.begin());
    for (int i = 0; i < matrix; i++)
        y[i] = i % 13 - 6;
    compare(
        "product of matrices, 512 x 512, tiles of 16 x 16",
        [&] { product<<<dim3(WIDTH / TILE, WIDTH / TILE), dim3(TILE, TILE)>>>(x, y, z); },
        [&] { product_loop(x, y, plain.data()); });
    ok = ok && std::equal(z, z + matrix, plain.begin());
    unsigned *counts = (unsigned *)z;
    const unsigned char *bytes = (const unsigned char *)x;
    std::fill(counts, counts + 256, 0);
    std::vector<unsigned> expected(256);
    compare(
        "histogram of 4 * 10^7 bytes, in shared memory",
        [&] { histogram<<<64, 256>>>(bytes, 4 * n, counts); },
        [&] { histogram_loop(bytes, 4 * n, expected.data()); });
    return ok && std::equal(expected.begin(), expected.end(), counts);
}

int main() {
    cudaDeviceProp device;
    HANDLE_ERROR(cudaGetDeviceProperties(&device, 0));
    int workers = omp_get_max_threads();
    if (const char *value = getenv("CUDA_CPU_WORKERS"))
        workers = atoi(value);
    omp_set_num_threads(workers);
    printf("%s, %d workers, median of %d runs\n", device.name, workers, RUNS);

    const int n = 1 << 24;
    int *a, *b, *c;
    for (int **memory : {&a, &b, &c})
        HANDLE_ERROR(cudaMalloc(memory, n * sizeof(int)));
    for (int i = 0; i < n; i++) { // the host can write device memory on the CPU back end
        a[i] = i;
        b[i] = 2 * i;
    }
    compare(
        "vector add, 2^24 ints, 256 threads per block", [&] { add<<<(n + 255) / 256, 256>>>(a, b, c, n); },
        [&] { add_loop(a, b, c, n); });
    bool ok = c[n - 1] == 3 * (n - 1);

    std::vector<unsigned char> plain(DIM * DIM);
    unsigned char *red;
    HANDLE_ERROR(cudaMalloc(&red, DIM * DIM));
    compare(
        "Julia set, 1000 x 1000, one thread per block", [&] { julia_kernel<<<dim3(DIM, DIM), 1>>>(red); },
        [&] { julia_loop(plain.data()); });
    ok = ok && std::equal(plain.begin(), plain.end(), red);

    float *x = (float *)a, *y = (float *)b, *z = (float *)c;
    std::fill(x, x + BLOCKS * THREADS, 1.0f);
    std::fill(y, y + BLOCKS * THREADS, 2.0f);
    Times barriers = time_in_turn({[&] { dot<<<BLOCKS, THREADS>>>(x, y, z, BLOCKS * THREADS); }})[0];
    ok = ok && z[BLOCKS - 1] == 2 * THREADS;
    printf("dot product, %d blocks of %d threads, 9 barriers each\n", BLOCKS, THREADS);
    barriers.print("kernel");
    printf("  %-28s %9.1f ns\n", "per thread and barrier",
           barriers.median() * 1e6 * workers / (9.0 * BLOCKS * THREADS));

    Times launches = time_in_turn({[] {
        for (int j = 0; j < 1000; j++)
            empty<<<1, 1>>>();
    }})[0];
    ok = compare_barriers(x, y, z) && ok;
    printf("empty kernel, 1 block of 1 thread\n  %-28s %9.3f us\n", "per launch", launches.median());

    HANDLE_ERROR(cudaFree(a));
    HANDLE_ERROR(cudaFree(b));
    HANDLE_ERROR(cudaFree(c));
    HANDLE_ERROR(cudaFree(red));
    printf("results %s\n", ok ? "equal" : "DIFFER");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
