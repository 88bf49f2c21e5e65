// SPDX-License-Identifier: MIT
// libcu++: atomics, barriers, latches and pipelines. Threads that wait let the others of their
// block run.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/functional>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/std/array>
#include <cuda/std/atomic>
#include <cuda/std/cmath>
#include <cuda/std/complex>
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
#include <nv/target>
#include "device.h"

namespace cg = cooperative_groups;

#pragma nv_diag_suppress static_var_with_dynamic_init

// ---- atomics ----

typedef cuda::atomic<int, cuda::thread_scope_device> Counter;

__global__ void count(Counter *counter, float *sum, unsigned *most, int *signal) {
    counter->fetch_add(2, cuda::memory_order_relaxed);
    ++*counter;
    cuda::atomic_ref<float, cuda::thread_scope_device>(*sum).fetch_add(0.5f);
    cuda::atomic_ref<unsigned, cuda::thread_scope_device>(*most).fetch_max(threadIdx.x * 3 + blockIdx.x);
    cuda::std::atomic_ref<int> flag(signal[blockIdx.x]);
    if (threadIdx.x == 0) // the last thread of the block has not started here
        while (flag.load(cuda::std::memory_order_acquire) == 0)
            ;
    if (threadIdx.x == blockDim.x - 1) {
        flag.store(7, cuda::std::memory_order_release);
        flag.notify_all();
    }
    flag.wait(0);
    int seen = 3;
    if (threadIdx.x == 0 && (flag.compare_exchange_strong(seen, 5) || seen != 7))
        signal[blockIdx.x] = -1;
}

TEST(atomics_count_and_signal) {
    Device<Counter> counter(1);
    Device<float> sum(1);
    Device<unsigned> most(1);
    EXPECT(WRITTEN(int, 9, count<<<9, 100>>>(counter.data, sum.data, most.data, out)) ==
           std::vector<int>(9, 7));
    EXPECT(value_at((int *)counter.data) == 2700 && sum.host()[0] == 450 && most.host()[0] == 305);
}

// ---- barriers ----

__global__ void rounds(int *out, int n) {
    __shared__ cuda::barrier<cuda::thread_scope_block> all;
    __shared__ int cells[2][128];
    if (threadIdx.x == 0)
        init(&all, blockDim.x);
    __syncthreads();
    int mine = (int)threadIdx.x;
    for (int i = 0; i < n; i++) {
        cells[i % 2][threadIdx.x] = mine;
        auto token = all.arrive();
        all.wait(cuda::std::move(token));
        mine = cells[i % 2][(threadIdx.x + 1) % blockDim.x] + 1;
        all.arrive_and_wait();
    }
    out[threadIdx.x] = mine;
    if (threadIdx.x % 2 == 0) { // half of the threads leave
        all.arrive_and_drop();
        return;
    }
    all.arrive_and_wait();
    all.arrive_and_wait();
    out[threadIdx.x] += 1000;
}

TEST(barriers) {
    EXPECT(WRITTEN(int, 100, rounds<<<1, 100>>>(out, 7)) ==
           made(100, [](int i) { return (i + 7) % 100 + 7 + i % 2 * 1000; }));
}

__global__ void copies(const int *in, int *out, int) {
    const int n = 999;
    extern __shared__ int cells[];
    __shared__ cuda::barrier<cuda::thread_scope_block> done;
    const auto block = cg::this_thread_block();
    if (block.thread_rank() == 0)
        init(&done, block.size());
    block.sync();
    cuda::memcpy_async(block, cells, in, sizeof(int) * (size_t)n, done);
    done.arrive_and_wait();
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        out[i] = cells[n - 1 - i];
}

// A pipeline of two stages, which all threads fill and empty
template <int stages> __global__ void pipelined(const int *in, int *out, int batches) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    __shared__ int cells[stages][64];
    const auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    for (int compute = 0, fetch = 0; compute < batches; compute++) {
        for (; fetch < batches && fetch < compute + stages; fetch++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, cells[fetch % stages], in + 64 * fetch, sizeof(int) * 64, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[64 * compute + threadIdx.x] = cells[compute % stages][63 - threadIdx.x];
        pipe.consumer_release();
    }
}

// The first warp copies, the second one computes.
__global__ void divided(const int *in, int *out, int batches) {
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int cells[2][32];
    const auto block = cg::this_thread_block();
    const bool producer = threadIdx.x < 32;
    auto pipe = cuda::make_pipeline(block, &state,
                                    producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    const int t = (int)threadIdx.x % 32;
    for (int i = 0; i < batches; i++) {
        if (producer) {
            pipe.producer_acquire();
            cuda::memcpy_async(&cells[i % 2][t], &in[32 * i + t], sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            out[32 * i + t] = cells[i % 2][31 - t];
            pipe.consumer_release();
        }
    }
}

// A pipeline of one thread
__global__ void alone(const int *in, int *out, int) {
    __shared__ int cells[64];
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(&cells[threadIdx.x], &in[threadIdx.x], cuda::aligned_size_t<4>(4), pipe);
    pipe.producer_commit();
    cuda::pipeline_consumer_wait_prior<0>(pipe);
    __syncthreads();
    out[threadIdx.x] = cells[63 - threadIdx.x];
    pipe.consumer_release();
}

template <class Kernel> // each part of the array is reversed
static void check_reversed(int n, int part, int threads, int shared, Kernel kernel) {
    const Device<int> in(made(n, [](int i) { return 3 * i + 1; }));
    const auto reversed = [=](int i) { return 3 * (i / part * part + part - 1 - i % part) + 1; };
    EXPECT(WRITTEN(int, n, kernel<<<1, threads, shared>>>(in.data, out, n / part)) == made(n, reversed));
}

TEST(copies_and_pipelines) {
    check_reversed(999, 999, 96, 999 * sizeof(int), copies);
    check_reversed(640, 64, 64, 0, pipelined<2>);
    check_reversed(640, 64, 64, 0, pipelined<3>);
    check_reversed(640, 32, 64, 0, divided);
    check_reversed(64, 64, 64, 0, alone);
}

// ---- latches ----

__global__ void start_together(int *before) { // the threads that had arrived when the first one went on
    typedef cuda::latch<cuda::thread_scope_block> Latch;
    __shared__ alignas(Latch) unsigned char memory[sizeof(Latch)];
    Latch &started = *reinterpret_cast<Latch *>(memory);
    __shared__ int arrived;
    if (threadIdx.x == 0) {
        new (memory) Latch(blockDim.x);
        arrived = 0;
    }
    __syncthreads();
    atomicAdd(&arrived, 1);
    started.arrive_and_wait();
    atomicMin(before, arrived);
}

TEST(latches) {
    const Device<int> before(std::vector<int>{1000});
    start_together<<<1, 40>>>(before.data);
    EXPECT(before.host()[0] == 40);
}

// ---- the standard library, and targets ----

__global__ void standard(float *out) {
    cuda::std::array<int, 3> a = {1, 2, 3};
    cuda::std::complex<float> z(0, 1);
    z *= z;
    cuda::std::tuple<int, float> t(4, 0.5f);
    out[0] = (float)a[2] + (float)cuda::std::get<0>(t) + z.real();
    out[1] = (float)cuda::std::numeric_limits<cuda::std::uint16_t>::max();
    out[2] = cuda::std::is_same_v<cuda::std::remove_const_t<const int>, int> ? cuda::std::sqrt(16.0f) : 0;
    out[3] = (float)cuda::proclaim_return_type<int>([] { return 6; })();
    NV_IF_ELSE_TARGET(NV_IS_DEVICE, (out[4] = 1;), (out[4] = 2;))
    NV_IF_TARGET(NV_PROVIDES_SM_70, (out[5] = 1; out[5] += 1;))
}

TEST(the_standard_library) {
    EXPECT(WRITTEN(float, 6, standard<<<1, 1>>>(out)) == (std::vector<float>{6, 65535, 4, 6, 1, 2}));
    int host = 0;
    NV_IF_ELSE_TARGET(NV_IS_HOST, (host = 1;), (host = 2;))
    EXPECT(host == 1);
    volatile cuda::std::atomic<int> count(3);
    count = 4;
    ++count;
    EXPECT(count.fetch_add(2) == 5 && count.load() == 7 && count.exchange(1) == 7 && count == 1);
}
