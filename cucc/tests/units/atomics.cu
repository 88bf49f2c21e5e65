// SPDX-License-Identifier: MIT
// Polling by atomics; barriers and shared memory. Values of atomics:
// ../conformance.
#include "device.h"

// Every way to read a flag by an atomic that changes nothing. The thread that sets it has not started yet.
__device__ unsigned read_by_atomic(unsigned *flag, unsigned way) {
    if (way < 3)
        return way == 0 ? atomicOr(flag, 0) : way == 1 ? atomicAnd(flag, ~0u) : atomicXor(flag, 0);
    if (way < 6)
        return way == 3 ? atomicMax(flag, 0) : way == 4 ? atomicMin(flag, ~0u) : atomicCAS(flag, 7, 7);
    if (way == 6)
        return atomicAdd(flag, 0);
    return way == 7 ? __nv_atomic_load_n(flag, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE)
                    : atomicOr(flag, 0) + atomicOr(flag + 1, 0) + atomicOr(flag + 2, 0);
}
__global__ void polls(unsigned *flags, int *out) {
    unsigned *const flag = &flags[blockIdx.x];
    if (threadIdx.x == 0)
        while (read_by_atomic(flag, blockIdx.x) == 0)
            ;
    if (threadIdx.x == blockDim.x - 1)
        atomicExch(flag, 1);
    atomicAdd(out, 1);
}

TEST(every_way_to_poll_makes_progress) {
    const Device<unsigned> flags(11);
    EXPECT(WRITTEN(int, 1, polls<<<9, 70>>>(flags.data, out))[0] == 9 * 70);
}

#ifdef __CU2CPP__
// Each thread reads once, which is no polling, so no other one runs meanwhile.
__global__ void read_once(unsigned *out) {
    out[1] += out[2]++;
    read_by_atomic(out, threadIdx.x % 2 * 6);
    out[2]--;
}

TEST(threads_that_read_once_do_not_poll) {
    EXPECT(WRITTEN(unsigned, 3, read_once<<<1, 90>>>(out)) == std::vector<unsigned>(3));
}
#endif

// The compiler's builtins on global and shared memory. Order and scope must be literals.
#define HOW __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_BLOCK
__global__ void builtins(int *global, float *sum, int *good) {
    __shared__ int shared;
    for (int *p : {global, &shared}) {
        if (threadIdx.x == 0)
            __nv_atomic_store_n(p, 5, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_BLOCK);
        __syncthreads();
        __nv_atomic_fetch_add(p, 3, HOW);
        __nv_atomic_fetch_sub(p, 1, HOW);
        __syncthreads();
        const int threads = (int)blockDim.x;
        good[threadIdx.x] +=
            __nv_atomic_load_n(p, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_BLOCK) == 5 + 2 * threads;
        __syncthreads();
        if (threadIdx.x == 0) {
            int expected = 1;
            good[0] += !__nv_atomic_compare_exchange_n(p, &expected, 7, false, __NV_ATOMIC_RELAXED, HOW) &&
                       expected == 5 + 2 * threads;
            good[0] += __nv_atomic_compare_exchange_n(p, &expected, 12, false, __NV_ATOMIC_RELAXED, HOW);
            good[0] += __nv_atomic_fetch_and(p, 6, HOW) == 12 && __nv_atomic_fetch_or(p, 3, HOW) == 4;
            good[0] += __nv_atomic_fetch_xor(p, 2, HOW) == 7 && __nv_atomic_fetch_max(p, 9, HOW) == 5;
            good[0] += __nv_atomic_fetch_min(p, -1, HOW) == 9 && __nv_atomic_exchange_n(p, 4, HOW) == -1;
        }
        __syncthreads();
    }
    __nv_atomic_fetch_add(sum, 0.5f, HOW);
    __nv_atomic_thread_fence(__NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
}

TEST(atomic_builtins) {
    const int threads = 70;
    const Device<int> global(1);
    const Device<float> sum(1);
    std::vector<int> expected(threads, 2);
    expected[0] += 10;
    EXPECT(WRITTEN(int, threads, builtins<<<1, threads>>>(global.data, sum.data, out)) == expected);
    EXPECT(sum.host()[0] == threads / 2);
}

__device__ int device_variable;
__constant__ int constant_variable;

__global__ void spaces(int *global, unsigned *out) {
    __shared__ int shared[4];
    extern __shared__ int dynamic[];
    int local = (int)threadIdx.x;
    const void *const all[] = {global, &device_variable, &shared[3], dynamic, &constant_variable, &local};
    for (int i = 0; i < 6; i++)
        out[i] =
            __isGlobal(all[i]) | __isShared(all[i]) << 1 | __isConstant(all[i]) << 2 | __isLocal(all[i]) << 3;
    shared[0] = 5;
    int *const back = (int *)__cvta_shared_to_generic(__cvta_generic_to_shared(shared));
    out[6] = (unsigned)*back;
}

TEST(addresses_have_a_space) {
    EXPECT(WRITTEN(unsigned, 7, spaces<<<1, 1, 64>>>((int *)out, out)) ==
           (std::vector<unsigned>{1, 1, 2, 2, 4, 8, 5}));
}

// ---- barriers and shared memory ----

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

template <bool STATIC> __global__ void sum(const int *in, int *out) {
    __shared__ int cache[STATIC ? 1024 : 1];
    extern __shared__ int dynamic[];
    const int sum = sum_tree(STATIC ? cache : dynamic, in[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

static void check_sums(unsigned blocks, unsigned threads) {
    std::vector<int> values(blocks * threads), sums(blocks);
    for (size_t i = 0; i < values.size(); ++i)
        sums[i / threads] += values[i] = (int)((unsigned)i * 2654435761u >> 20);
    const Device<int> in(values), out(blocks), out2(blocks);
    sum<true><<<blocks, threads>>>(in.data, out.data);
    sum<false><<<blocks, threads, threads * sizeof(int)>>>(in.data, out2.data);
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
        const bool all_odd = __syncthreads_and(t % 2), any_odd = __syncthreads_or(t % 2);
        if (here != n - 1 - i || odd != n / 2 - (i + 1) / 2 || !all || any || last != i ||
            all_odd != (odd == here) || any_odd != (odd > 0))
            atomicAdd(out, 1);
        __syncthreads();
    }
}

TEST(returned_threads_count_as_arrived) {
    for (unsigned n : {1u, 2u, 33u, 64u, 300u})
        EXPECT(WRITTEN(int, 1, shrink<<<2, n>>>(out))[0] == 0);
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
