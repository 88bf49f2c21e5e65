// SPDX-License-Identifier: MIT
// Barriers and shared memory on the CPU back end.
#include "device.h"

// A tree reduction for any number of threads, used with static and with dynamic shared memory.
__device__ int sum_tree(int *cache, int value) {
    cache[threadIdx.x] = value;
    __syncthreads();
    for (unsigned n = blockDim.x; n > 1;) {
        const unsigned half = (n + 1) / 2;
        if (threadIdx.x + half < n)
            cache[threadIdx.x] += cache[threadIdx.x + half];
        __syncthreads();
        n = half;
    }
    return cache[0];
}

template <int SIZE> __global__ void sum_static(const int *in, int *out) {
    __shared__ int cache[SIZE];
    const int sum = sum_tree(cache, in[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

__global__ void sum_dynamic(const int *in, int *out) {
    extern __shared__ int cache[];
    const int sum = sum_tree(cache, in[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

static void check_sums(unsigned blocks, unsigned threads) {
    std::vector<int> values(blocks * threads), sums(blocks);
    for (size_t i = 0; i < values.size(); ++i)
        sums[i / threads] += values[i] = (int)((unsigned)i * 2654435761u >> 20);
    const Device<int> in(values), out(blocks), out2(blocks);
    sum_static<1024><<<blocks, threads>>>(in.data, out.data);
    sum_dynamic<<<blocks, threads, threads * sizeof(int)>>>(in.data, out2.data);
    EXPECT(out.host() == sums && out2.host() == sums);
}

// The stacks of a host thread's kernels are freed when the thread ends, and later allocations reuse
// their addresses. No poisoned memory of AddressSanitizer may be left there.
TEST(host_threads_come_and_go) {
    for (int round = 0; round < 100; ++round)
        in_threads(3, [](int) { check_sums(2, 97); });
}

TEST(reductions_on_odd_grids) {
    for (unsigned threads : {1, 2, 3, 31, 33, 257, 1000, 1024})
        check_sums(7, threads);
    check_sums(1001, 48);
}

__global__ void fresh(float *out) {
    __shared__ float a[4];
    extern __shared__ float b[];
    out[blockIdx.x] = a[3] + b[0];
    a[3] = b[0] = 1;
}

TEST(shared_memory_is_fresh_in_each_block) {
    const Device<float> out(100);
    fresh<<<100, 1, 4>>>(out.data);
    for (float value : out.host())
        EXPECT(value > 1e38f);
}

// Threads that have returned count as arrived. Of n threads, n - 1 - i are left in round i, and thread i is
// one of those whose predicates are true in that round.
__global__ void shrink(int *out) {
    __shared__ int last;
    const int t = (int)threadIdx.x, n = (int)blockDim.x;
    for (int i = 0; i < n; ++i) {
        if (t == i) {
            last = t;
            return;
        }
        const int here = __syncthreads_count(1), odd = __syncthreads_count(t % 2);
        const bool all = __syncthreads_and(t > i), any = __syncthreads_or(t <= i);
        if (here != n - 1 - i || odd != n / 2 - (i + 1) / 2 || !all || any || last != i)
            atomicAdd(out, 1);
        __syncthreads();
    }
}

TEST(returned_threads_count_as_arrived) {
    for (unsigned n : {1u, 2u, 33u, 64u, 300u}) {
        const Device<int> wrong(1);
        shrink<<<2, n>>>(wrong.data);
        EXPECT(wrong.host()[0] == 0);
    }
}

// Warps meet in two branches, with values that they exchange there.
__global__ void meet_in_branches(int *good) {
    __shared__ int values[512];
    const unsigned t = threadIdx.x, other = blockDim.x - 1 - t;
    int sum = 0;
    for (int i = 0; i < 20; ++i) {
        values[t] = i + (int)t;
        if (t / 32 % 2 == i % 2u)
            __syncthreads();
        else
            __syncthreads();
        sum += values[other];
        __syncthreads();
    }
    good[t] = sum == 20 * (int)other + 190;
}

TEST(a_barrier_in_each_branch) {
    for (unsigned threads : {33u, 64u, 128u, 500u})
        EXPECT(good(meet_in_branches, threads));
}
