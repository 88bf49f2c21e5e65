// SPDX-License-Identifier: MIT
// All warp operations on full and partial warps, against results computed lane by lane.
#include <type_traits>
#include "device.h"

template <class T> static std::vector<T> some(unsigned n, unsigned seed, unsigned kinds) {
    std::vector<T> values(n);
    std::mt19937 random(seed);
    for (T &value : values)
        value = (T)(int)(random() % kinds) - (T)(kinds / 4);
    return values;
}

enum { INDEX, UP, DOWN, XOR };

// The lane that a shuffle reads, by the rules of the programming guide; -1 where the result is
// undefined.
__device__ int source(int kind, int lane, int operand, int width, int lanes) {
    const int segment = lane / width * width, inside = lane % width;
    int from = lane;
    operand &= 31; // five bits count
    if (kind == INDEX)
        from = segment + operand % width;
    else if (kind == UP)
        from = inside >= operand ? lane - operand : lane;
    else if (kind == DOWN)
        from = inside + operand < width ? lane + operand : lane;
    else if ((lane ^ operand) < segment + width)
        from = lane ^ operand;
    return from < lanes ? from : -1;
}

template <class T> __global__ void shuffle(int *good, const T *in, int kind, int operand, int width) {
    const int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    const T value = in[threadIdx.x];
    const T got = kind == INDEX  ? __shfl_sync(~0u, value, operand, width)
                  : kind == UP   ? __shfl_up_sync(~0u, value, operand, width)
                  : kind == DOWN ? __shfl_down_sync(~0u, value, operand, width)
                                 : __shfl_xor_sync(~0u, value, operand, width);
    const int from = source(kind, lane, operand, width, blockDim.x - first);
    if (from >= 0)
        good[threadIdx.x] = got == in[first + from];
    else
        good[threadIdx.x] = got != got || !std::is_floating_point<T>::value; // reads as NaN
}

template <class T> static void shuffles() {
    for (unsigned threads : {1u, 2u, 31u, 32u, 45u, 1000u})
        for (int width : {32, 16, 8, 2, 1})
            for (int operand : {0, 1, 2, 5, 16, 31, 32, 33, 63, -1})
                for (int kind : {INDEX, UP, DOWN, XOR}) {
                    std::vector<T> values = some<T>(threads, threads + operand, 1000);
                    for (T &value : values) // bits in every byte
                        value = std::is_integral<T>::value ? (T)(value * 0x0101010101010101ull) : value / 3;
                    const Device<T> in(values);
                    if (!EXPECT(good(shuffle<T>, threads, in.data, kind, operand, width)))
                        fprintf(stderr, "  %u threads, kind %d, operand %d, width %d\n", threads, kind,
                                operand, width);
                }
}

TEST(lanes_that_shuffles_read) {
    static_assert(std::is_same_v<decltype(__shfl_sync(0u, (short)0, 0)), int>, "as C++ promotes it");
    shuffles<short>(), shuffles<int>(), shuffles<unsigned>(), shuffles<long>(), shuffles<unsigned long>();
    shuffles<long long>(), shuffles<unsigned long long>(), shuffles<float>(), shuffles<double>();
}

__global__ void vote(int *good, const int *in) {
    const unsigned t = threadIdx.x, first = t / 32 * 32, end = min(first + 32, blockDim.x);
    unsigned positive = 0, three = 0, above4 = 0, equal = 0, present = 0;
    const int value = in[t];
    for (unsigned i = first; i < end; ++i) {
        const unsigned bit = 1u << i % 32;
        positive |= in[i] > 0 ? bit : 0;
        three |= in[i] == 3 ? bit : 0;
        above4 |= in[i] > 4 ? bit : 0;
        equal |= in[i] == value ? bit : 0;
        present |= bit;
    }
    int zero, same; // all are 0 after the division
    good[t] = __ballot_sync(~0u, value > 0) == positive && !__any_sync(~0u, value == 3) == !three &&
              !__all_sync(~0u, value < 5) == !!above4 && __match_any_sync(~0u, value) == equal &&
              __match_all_sync(~0u, value / 100, &zero) && zero &&
              !__match_all_sync(~0u, value, &same) == (equal != present) && !same == (equal != present);
}

TEST(votes_and_matches) {
    for (unsigned threads : {1u, 7u, 32u, 50u, 96u, 1024u})
        for (unsigned seed = 0; seed < 8; ++seed) {
            const Device<int> in(some<int>(threads, seed, seed == 0 ? 1 : 8));
            EXPECT(good(vote, threads, in.data));
        }
}

__global__ void reduce(int *good, const int *in) {
    const unsigned t = threadIdx.x, first = t / 32 * 32, end = min(first + 32, blockDim.x);
    const int value = in[t];
    int sum = 0, low = value, high = value;
    unsigned ulow = value, uhigh = value, all = ~0u, any = 0, parity = 0;
    for (unsigned i = first; i < end; ++i) {
        const unsigned u = in[i];
        sum += in[i];
        low = min(low, in[i]), high = max(high, in[i]);
        ulow = min(ulow, u), uhigh = max(uhigh, u);
        all &= u, any |= u, parity ^= u;
    }
    const unsigned mine = value;
    good[t] = __reduce_add_sync(~0u, value) == sum && __reduce_min_sync(~0u, value) == low &&
              __reduce_max_sync(~0u, value) == high && __reduce_add_sync(~0u, mine) == (unsigned)sum &&
              __reduce_min_sync(~0u, mine) == ulow && __reduce_max_sync(~0u, mine) == uhigh &&
              __reduce_and_sync(~0u, mine) == all && __reduce_or_sync(~0u, mine) == any &&
              __reduce_xor_sync(~0u, mine) == parity;
}

TEST(reductions) {
    for (unsigned threads : {1u, 5u, 32u, 61u, 1024u}) {
        const Device<int> in(some<int>(threads, threads, 1 << 20));
        EXPECT(good(reduce, threads, in.data));
    }
}

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
