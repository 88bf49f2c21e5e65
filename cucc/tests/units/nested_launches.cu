// SPDX-License-Identifier: MIT
// Dynamic parallelism: kernels that launch kernels. When the host's launch is complete, child grids have run.
#include <algorithm>
#include "device.h"

__global__ void put(int *to, int value) {
    *to = value;
}

// Stores the value and the number of threads per block.
__global__ void put_size(int *to, int value) {
    if (threadIdx.x == 0)
        *to = 64 * value + (int)blockDim.x;
}

__device__ unsigned size_for(int i) {
    return 1 + (unsigned)i % 31;
}

__device__ void put_by_function(int *to, int i) {
    put_size<<<1, size_for(i)>>>(to, i);
}

// The argument contains an atomic addition. After many atomics another thread of the block runs, here while
// the arguments of a launch are evaluated. Each launch must keep its own configuration.
__global__ void put_all(int *next, int *numbers, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const auto put_here = [&](int *to) { put_size<<<1, size_for(i)>>>(to, i); };
    if (i >= n)
        return;
    for (int k = 0; k < i % 64; ++k)
        atomicAdd(next + 1, 1);
    if (blockIdx.x == 1)
        put_by_function(numbers + atomicAdd(next, 1), i);
    else if (blockIdx.x == 2)
        put_here(numbers + atomicAdd(next, 1));
    else
        put_size<<<1, size_for(i)>>>(numbers + atomicAdd(next, 1), i);
}

TEST(configuration_and_arguments_are_those_of_each_thread) {
    const int n = 1000 + (int)(engine()() % 1000);
    std::vector<int> got = WRITTEN(int, n + 2, put_all<<<(n + 255) / 256, 256>>>(out + n, out, n));
    EXPECT(got[n] == n);
    got.resize(n);
    std::sort(got.begin(), got.end());
    EXPECT(got == made(n, [](int i) { return 64 * i + 1 + i % 31; }));
}

__global__ void append(int *list, int value) {
    list[++list[0]] = value;
}

__global__ void in_order(int *list, int *copy) {
    append<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 4);
    append<<<1, 1>>>(list, 1);
    append<<<1, 1>>>(list, 2);
    cudaMemcpyAsync(copy, list, 5 * sizeof(int), cudaMemcpyDeviceToDevice, 0);
    append<<<1, 1>>>(list, 3);
    cudaMemsetAsync(list + 1, 0, sizeof(int), 0);
    append<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 5);
    append<<<1, 1, 0, cudaStreamFireAndForget>>>(list + 8, 6);
}

TEST(grids_and_copies_of_a_thread_run_in_order) {
    int *list = managed<int>(16), *copy = managed<int>(5);
    in_order<<<1, 1>>>(list, copy);
    OK(cudaDeviceSynchronize());
    EXPECT(copy[0] == 2 && copy[1] == 1 && copy[2] == 2 && copy[3] == 0);
    EXPECT(list[0] == 5 && list[1] == 0 && list[2] == 2 && list[3] == 3 && list[4] == 4 && list[5] == 5);
    EXPECT(list[8] == 1 && list[9] == 6);
}

struct Levels {
    int count;     // number of grids that have run
    int failed_at; // number of the grid in which a launch failed; 0: none
    cudaError_t error;
};

// The next grid is launched into `stream`, the one after it into `next`.
__global__ void deeper(Levels *levels, cudaStream_t stream, cudaStream_t next) {
    const int here = ++levels->count;
    if (here < 3000)
        deeper<<<1, 1, 0, stream>>>(levels, next, stream);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        *levels = {levels->count, here, error};
}

// Measured on an H200 with CUDA 13.0 (2026-11-23)
TEST(the_number_of_pending_launches_limits_the_nesting_depth) {
    for (const size_t set : {2048, 100, 1, 5000}) {
        const size_t limit = set == 1 ? 32 : set;
        OK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, set));
        EXPECT(STORED(size_t, cudaDeviceGetLimit(&it, cudaLimitDevRuntimePendingLaunchCount)) == limit);
        for (const cudaStream_t stream : {(cudaStream_t)0, cudaStreamFireAndForget, cudaStreamTailLaunch}) {
            const Levels levels = WRITTEN(Levels, 1, deeper<<<1, 1>>>(out, stream, stream))[0];
            if (stream == cudaStreamTailLaunch || limit == 5000) // no grid waits for a tail launch
                EXPECT(levels.count == 3000 && levels.error == cudaSuccess);
            else
                EXPECT(levels.count == (int)limit + 1 && levels.failed_at == levels.count &&
                       levels.error == cudaErrorLaunchPendingCountExceeded);
        }
    }
    OK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 100));
    // A grid in cudaStreamTailLaunch starts when its parent grid has completed, so the nesting depth does not
    // increase. Until then both grids count as pending launches.
    const Levels levels = WRITTEN(Levels, 1, deeper<<<1, 1>>>(out, cudaStreamTailLaunch, 0))[0];
    EXPECT(levels.count == 199 && levels.failed_at == 199 &&
           levels.error == cudaErrorLaunchPendingCountExceeded);
}

__global__ void error_at_the_start(cudaError_t *error) {
    *error = cudaPeekAtLastError();
}

// Thread `bad` launches a grid with an invalid configuration, and the other threads launch a valid one.
// Thread i then stores its last error in errors[3 * i], again after a barrier, and again after a reset.
__global__ void bad_launches(int *p, cudaError_t *errors, int bad, int bytes, bool barrier) {
    const int i = (int)threadIdx.x;
    if (i == bad) {
        if (bytes)
            put<<<1, 1, (size_t)bytes>>>(p, 1);
        else
            put<<<1, 1025>>>(p, 1);
        error_at_the_start<<<1, 1>>>(errors + 3 * blockDim.x);
    } else {
        put<<<1, 1>>>(p + i, i);
    }
    errors[3 * i] = cudaPeekAtLastError();
    if (barrier)
        __syncthreads();
    errors[3 * i + 1] = cudaGetLastError();
    errors[3 * i + 2] = cudaGetLastError();
}

TEST(only_the_thread_that_has_launched_sees_the_error) {
    const int threads = 70;
    int *p = managed<int>(threads);
    cudaError_t *errors = managed<cudaError_t>(3 * threads + 1);
    for (int repetition = 0; repetition < 20; ++repetition) {
        const int bad = (int)(engine()() % threads), bytes = repetition % 3 ? 0 : 400000;
        memset(p, -1, threads * sizeof *p);
        errors[3 * threads] = cudaErrorUnknown;
        bad_launches<<<1, threads>>>(p, errors, bad, bytes, repetition & 1);
        OK(cudaGetLastError()); // the host does not see it
        OK(cudaDeviceSynchronize());
        OK(errors[3 * threads]); // the child grid does not see it either
        for (int i = 0; i < threads; ++i) {
            const cudaError_t expected = i == bad ? cudaErrorInvalidConfiguration : cudaSuccess;
            EXPECT(errors[3 * i] == expected && errors[3 * i + 1] == expected);
            OK(errors[3 * i + 2]);
            EXPECT(p[i] == (i == bad ? -1 : i));
        }
    }
}

__global__ void unknown_stream(int *p, int *error) {
    put<<<1, 1, 0, (cudaStream_t)0x7777770>>>(p, 1);
    *error = cudaGetLastError();
}

TEST(a_stream_that_does_not_exist) {
    EXPECT(WRITTEN(int, 2, unknown_stream<<<1, 1>>>(out, out + 1)) ==
           (std::vector<int>{0, cudaErrorInvalidValue}));
}

__device__ int on_device;

__global__ void where(int *device) {
    cudaGetDevice(device);
    atomicAdd(&on_device, 1);
}

__global__ void launch_where(int *devices) {
    cudaGetDevice(&devices[gridDim.x + blockIdx.x]);
    where<<<1, 1>>>(devices + blockIdx.x);
}

TEST(grids_run_on_the_device_of_the_kernel) {
    enum { BLOCKS = 2000 }; // enough for several workers
    for (int device = 0; device < std::min(device_count(), 2); device++) {
        OK(cudaSetDevice(device));
        const std::vector<int> expected(2 * BLOCKS, device);
        EXPECT(WRITTEN(int, 2 * BLOCKS, launch_where<<<BLOCKS, 1>>>(out)) == expected);
        EXPECT(STORED(int, cudaMemcpyFromSymbol(&it, on_device, sizeof it)) == BLOCKS);
    }
}

TEST(a_graph_contains_what_its_kernels_launch) {
    int *list = managed<int>(16), *next = managed<int>(2);
    Captured graph;
    graph.capture([&] {
        put_all<<<1, 8, 0, graph.stream>>>(next, list + 1, 8);
        append<<<1, 1, 0, graph.stream>>>(list + 9, 77);
    });
    EXPECT(*next == 0 && list[9] == 0);
    graph.run();
    int sum = 0;
    for (int i = 1; i <= 8; ++i)
        sum += list[i] / 64;
    EXPECT(*next == 8 && sum == 28 && list[10] == 77);
}
