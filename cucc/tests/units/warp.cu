// SPDX-License-Identifier: MIT
// Warp operations in divergent warps. Values in whole warps: ../conformance.
#include "device.h"

// Lanes with different masks take different branches; a rendezvous does not wait for a lane that
// has returned.
__global__ void halves(int *out) {
    const int t = (int)threadIdx.x;
    if (t % 32 >= 24)
        return;
    const unsigned even = 0x55555555, odd = 0xaaaaaaaa;
    int value = t;
    if (t % 2 == 0)
        for (int i = 2; i < 32; i *= 2)
            value += __shfl_xor_sync(even, value, i) & 0;
    else
        value += __reduce_add_sync(odd, 1u);
    __syncwarp();
    out[t] = value;
}

TEST(masks_and_lanes_that_left) {
    const auto expected = [](int t) { return t % 32 >= 24 ? 0 : t % 2 ? t + 12 : t; };
    EXPECT(WRITTEN(int, 64, halves<<<1, 64>>>(out)) == made(64, expected));
}

// A warp that polls in a loop with warp operations does not keep a warp from starting, or from
// continuing after a barrier, that it waits for.
__global__ void poll_with_a_warp(volatile int *flags) {
    for (int round = 0; round < 2; ++round) {
        if (threadIdx.x / 32 == 1)
            while (__any_sync(~0u, flags[round] == 0))
                ;
        else if (threadIdx.x == 70)
            flags[round] = 1;
        __syncthreads();
    }
}

TEST(warp_that_polls_with_warp_operations) {
    EXPECT(WRITTEN(int, 2, poll_with_a_warp<<<1, 96>>>(out)) == std::vector<int>(2, 1));
}

// Every thread reads total[0] after the barrier, and a warp writes it after a shuffle: a race, which has
// no effect on a GPU, because its warps advance together. It has none here either, in the usual order.
__global__ void read_then_shuffle_then_write(int *wrong) {
    __shared__ int total[32];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0)
        total[warp] = 1;
    for (int round = 1; round <= 3; ++round) {
        __syncthreads();
        if (threadIdx.x == 0)
            for (unsigned i = 1; i < blockDim.x / 32; ++i)
                total[0] += total[i];
        __syncthreads();
        const int seen = total[0];
        int sum = round + 1;
        for (int offset = 16; offset > 0; offset /= 2)
            sum += __shfl_xor_sync(~0u, sum, offset);
        if (lane == 0)
            total[warp] = sum / 32;
        if (seen != round * (int)blockDim.x / 32)
            atomicAdd(wrong, 1);
    }
}

TEST(all_warps_get_from_a_barrier_to_their_next_warp_operation) {
    if (getenv("CUDA_CPU_SCHEDULE"))
        return;
    for (int threads : {64, 256, 1024})
        EXPECT(WRITTEN(int, 1, read_then_shuffle_then_write<<<3, threads>>>(out))[0] == 0);
}
