// SPDX-License-Identifier: MIT
/*
 * one_thread: dot product on several GPUs of different speed, from one host thread
 *
 * Teaches: One host thread can use all GPUs: cudaSetDevice() changes its current device at any time, and
 *          asynchronous copies and kernels return at once, so the GPUs work at the same time. A stream and an
 *          event belong to the device that is current when they are created. The slowest GPU determines the
 *          total time, so GPUs of different speed get parts of different length, in proportion to their
 *          speed (load balancing).
 * Terms:   device, asynchronous copy, stream, page-locked memory, dot product, load balancing, scaling
 * Book:    11.3 (after the book)
 * After:   chapter11/multidevice
 * Build:   nvcc -o one_thread chapter11/one_thread.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter11/one_thread --gpus 2 --balance
 * Needs:   gpus=2
 * Check:   --size 30000 --share 30 | --size 2 | --size 9000 --balance
 */
#include "../common/book.h"
#include "gpus.h" // gpus, device_id[], expect_device()

#define imin(a, b) ((a) < (b) ? (a) : (b))
#define N          (33 * 1024 * 1024)
const int threadsPerBlock = 256;
const int blocksPerGrid = 32;

static size_t n = N; // --size
static int share;    // --share, per cent of the elements
static bool balance; // --balance

// What a GPU has: its stream, events in that stream, its memory, and page-locked memory for its result
struct Gpu {
    cudaStream_t stream;
    cudaEvent_t start, stop;
    float *dev_a, *dev_b, *dev_partial_c, *partial_c;
};
static bool check(float c, const size_t *part, const struct Gpu *gpu);

__global__ void dot(size_t size, const float *a, const float *b, float *c) {
    __shared__ float cache[threadsPerBlock];
    size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    int cacheIndex = threadIdx.x;

    float temp = 0;
    while (tid < size) {
        temp += a[tid] * b[tid];
        tid += (size_t)blockDim.x * gridDim.x;
    }
    cache[cacheIndex] = temp;
    __syncthreads();

    for (int i = blockDim.x / 2; i > 0; i /= 2) {
        if (cacheIndex < i)
            cache[cacheIndex] += cache[cacheIndex + i];
        __syncthreads();
    }
    if (cacheIndex == 0)
        c[blockIdx.x] = cache[0];
}

// Gives each GPU its part of the vectors, and waits for all. a and b are page-locked: from pageable memory
// the copies would not be asynchronous. Stores the time of each GPU, in milliseconds. Returns the dot
// product.
static float run(struct Gpu *gpu, const float *a, const float *b, const size_t *part, float *ms) {
    size_t offset = 0;
    for (int i = 0; i < gpus; i++) {
        struct Gpu g = gpu[i];
        size_t bytes = part[i] * sizeof(float);
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaEventRecord(g.start, g.stream));
        HANDLE_ERROR(cudaMemcpyAsync(g.dev_a, a + offset, bytes, cudaMemcpyHostToDevice, g.stream));
        HANDLE_ERROR(cudaMemcpyAsync(g.dev_b, b + offset, bytes, cudaMemcpyHostToDevice, g.stream));
        dot<<<blocksPerGrid, threadsPerBlock, 0, g.stream>>>(part[i], g.dev_a, g.dev_b, g.dev_partial_c);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpyAsync(g.partial_c, g.dev_partial_c, blocksPerGrid * sizeof(float),
                                     cudaMemcpyDeviceToHost, g.stream));
        HANDLE_ERROR(cudaEventRecord(g.stop, g.stream));
        offset += part[i];
    }

    float c = 0;
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaStreamSynchronize(gpu[i].stream));
        HANDLE_ERROR(cudaEventElapsedTime(&ms[i], gpu[i].start, gpu[i].stop));
        for (int k = 0; k < blocksPerGrid; k++)
            c += gpu[i].partial_c[k];
    }
    return c;
}

int main(int argc, char **argv) {
    settings(argc, argv); // ends the program if there are too few devices
    float *a, *b, ms[MAX_GPUS];
    HANDLE_ERROR(cudaHostAlloc(&a, n * sizeof(float), cudaHostAllocPortable));
    HANDLE_ERROR(cudaHostAlloc(&b, n * sizeof(float), cudaHostAllocPortable));
    for (size_t i = 0; i < n; i++) {
        a[i] = i;
        b[i] = i * 2;
    }
    struct Gpu gpu[MAX_GPUS];
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaStreamCreate(&gpu[i].stream));
        HANDLE_ERROR(cudaEventCreate(&gpu[i].start));
        HANDLE_ERROR(cudaEventCreate(&gpu[i].stop));
        HANDLE_ERROR(cudaMalloc(&gpu[i].dev_a, n * sizeof(float))); // its part may become as long
        HANDLE_ERROR(cudaMalloc(&gpu[i].dev_b, n * sizeof(float)));
        HANDLE_ERROR(cudaMalloc(&gpu[i].dev_partial_c, blocksPerGrid * sizeof(float)));
        HANDLE_ERROR(cudaHostAlloc(&gpu[i].partial_c, blocksPerGrid * sizeof(float), cudaHostAllocPortable));
    }

    // Equal parts of what is left, but the first as --share says. The last part is what is left.
    size_t part[MAX_GPUS], left = n;
    for (int i = 0; i < gpus; i++) {
        part[i] = i == 0 && share ? n * share / 100 : left / (gpus - i);
        left -= part[i];
    }
    run(gpu, a, b, part, ms); // warms up

    if (balance) {
        run(gpu, a, b, part, ms);
        double rate[MAX_GPUS], rates = 0; // elements per millisecond
        for (int i = 0; i < gpus; i++) {
            rate[i] = (part[i] + 1) / ms[i];
            rates += rate[i];
        }
        left = n;
        for (int i = 0; i < gpus; i++) {
            part[i] = i < gpus - 1 ? imin(left, (size_t)(n * (rate[i] / rates))) : left;
            left -= part[i];
        }
    }

    float c = run(gpu, a, b, part, ms), slowest = ms[0], fastest = ms[0];
    for (int i = 0; i < gpus; i++) {
        printf("GPU %d: %zu elements, %.3f ms\n", device_id[i], part[i], ms[i]);
        slowest = max_of(slowest, ms[i]);
        fastest = min_of(fastest, ms[i]);
    }
    printf("Slowest GPU %.3f ms, fastest %.3f ms: %.2f times as long\n", slowest, fastest, slowest / fastest);
    printf("Value calculated:  %f\n", c);
    bool ok = check(c, part, gpu);

    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        HANDLE_ERROR(cudaStreamDestroy(gpu[i].stream));
        HANDLE_ERROR(cudaEventDestroy(gpu[i].start));
        HANDLE_ERROR(cudaEventDestroy(gpu[i].stop));
        HANDLE_ERROR(cudaFree(gpu[i].dev_a));
        HANDLE_ERROR(cudaFree(gpu[i].dev_b));
        HANDLE_ERROR(cudaFree(gpu[i].dev_partial_c));
        HANDLE_ERROR(cudaFreeHost(gpu[i].partial_c));
    }
    HANDLE_ERROR(cudaFreeHost(a));
    HANDLE_ERROR(cudaFreeHost(b));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

#include "../common/checks/dot.h" // check_dot(), tree_additions()

void settings(int argc, char **argv) {
    parse_options(argc, argv, "Dot product on several devices, from one host thread.", 0,
                  {OPTION_SIZE("size", &n, 1, 1LL << 33, "elements in a vector"), OPTION_GPUS,
                   OPTION_INT("share", &share, 1, 99,
                              "per cent of the elements for the first device; equal parts if not given"),
                   OPTION_FLAG("balance", &balance,
                               "parts in proportion to the speed of the devices, which is measured first")});
    if (share && balance)
        quit(EXIT_USAGE, "--share and --balance exclude each other");
    if (share && gpus == 1)
        quit(EXIT_USAGE, "--share needs two devices");
    choose_gpus();
    name_gpus();
    for (int i = 0; i < gpus; i++) {
        HANDLE_ERROR(cudaSetDevice(device_id[i]));
        require_memory(2 * n * sizeof(float), 2 * n * sizeof(float));
    }
}

// Each product goes through the additions of its thread, those of the tree, and those on the host. With
// --balance the first part depends on measured times.
static bool check(float c, const size_t *part, const struct Gpu *gpu) {
    size_t longest = *std::max_element(part, part + gpus), first = share ? n * share / 100 : n / gpus;
    for (int i = 0; i < gpus; i++)
        expect_device(gpu[i].dev_a, device_id[i]);
    double additions = tree_additions(longest, blocksPerGrid, threadsPerBlock) + blocksPerGrid * gpus;
    return check_dot("dot product", c, n, additions) &&
           (balance || check_value("elements of the first device", part[0], first, 0)) &&
           check_value("memory on another device", elsewhere, 0, 0);
}

// Task: run(): For each device of `gpus`, whose number is device_id[i]: make it the current one, and give its
// stream, one after the other, the event start, the asynchronous copies of part[i] elements of a and b,
// beginning at element `offset`, to dev_a and dev_b, a launch of dot with blocksPerGrid blocks, the copy of
// the partial sums of its blocks to partial_c, and the event stop. After all devices have their work, wait
// for the stream of each, store in ms[i] the time between its events, and add its partial sums to the result.
