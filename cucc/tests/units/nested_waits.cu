// SPDX-License-Identifier: MIT
// cucc only: cudaDeviceSynchronize() in device code waits for child grids, as before CUDA 12. None runs
// before its parent grid has ended.
#include <numeric>
#include "device.h"

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ // with them, __trap() ends the program
__global__ void put(int *to, int value) {
    *to = value;
}

__global__ void launch_and_trap(int *p) {
    put<<<1, 1>>>(p, 1);
    __trap();
}

// The first case, because a process must not fork after it has used the device
TEST(after_a_trap_nothing_runs) {
    const unit_result result = in_child([] {
        int *p = managed<int>(1);
        launch_and_trap<<<1, 1>>>(p);
        EXPECT(cudaDeviceSynchronize() == cudaErrorLaunchFailure && *p == 0);
        _exit(unit_failures != 0); // memory cannot be freed after the error
    });
    EXPECT(result.status == 0);
}
#endif

// Recursive sum: each of two threads launches a child grid that sums one half of the numbers.
__global__ void sum(const int *numbers, int n, int *result) {
    __shared__ int *parts;
    if (n == 1) {
        *result = *numbers;
        return;
    }
    if (threadIdx.x == 0)
        cudaMalloc(&parts, 2 * sizeof(int));
    __syncthreads();
    sum<<<1, 2>>>(numbers + threadIdx.x * (unsigned)(n / 2), threadIdx.x ? n - n / 2 : n / 2,
                  parts + threadIdx.x);
    cudaDeviceSynchronize();
    __syncthreads();
    if (threadIdx.x == 0) {
        *result = parts[0] + parts[1];
        cudaFree(parts);
    }
}

__global__ void sums(const int *numbers, int n, int *results) {
    if (threadIdx.x == 0)
        sum<<<1, 2>>>(numbers + blockIdx.x * (unsigned)n, n, results + blockIdx.x);
    cudaDeviceSynchronize();
    results[blockIdx.x] *= 2;
}

TEST(a_block_waits_for_what_it_has_launched) {
    EXPECT(STORED(size_t, cudaDeviceGetLimit(&it, cudaLimitDevRuntimeSyncDepth)) == 2);
    enum { BLOCKS = 20 };
    const int n = 100 + (int)(engine()() % 100);
    const auto numbers = made(n * BLOCKS, [](int) { return pick(0, 999); });
    const Device<int> in(numbers);
    const auto expected = [&](int b) { return 2 * std::accumulate(&numbers[b * n], &numbers[b * n] + n, 0); };
    EXPECT(WRITTEN(int, BLOCKS, sums<<<BLOCKS, 1>>>(in.data, n, out)) == made(BLOCKS, expected));
}
