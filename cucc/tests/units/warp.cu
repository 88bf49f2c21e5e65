// SPDX-License-Identifier: MIT
// All warp operations on full and partial warps, against results computed lane by lane.
#include <random>
#include <type_traits>
#include "device.h"

static unsigned present(unsigned threads, unsigned t) { // the lanes that exist in t's warp
    const unsigned here = threads - t / 32 * 32;
    return here >= 32 ? ~0u : (1u << here) - 1;
}

template <class T> static std::vector<T> some(unsigned n, unsigned seed, unsigned kinds) {
    std::vector<T> values(n);
    std::mt19937 random(seed);
    for (T &value : values)
        value = (T)(int)(random() % kinds) - (T)(kinds / 4);
    return values;
}

enum { INDEX, UP, DOWN, XOR };

template <class T> __global__ void shuffle(const T *in, T *out, int kind, int operand, int width) {
    const T value = in[threadIdx.x];
    out[threadIdx.x] = kind == INDEX  ? __shfl_sync(~0u, value, operand, width)
                       : kind == UP   ? __shfl_up_sync(~0u, value, operand, width)
                       : kind == DOWN ? __shfl_down_sync(~0u, value, operand, width)
                                      : __shfl_xor_sync(~0u, value, operand, width);
}

// The lane that a shuffle reads, by the rules of the programming guide; -1 where the result is
// undefined.
static int source(int kind, int lane, int operand, int width, unsigned lanes) {
    const int segment = lane / width * width, inside = lane % width;
    int from = lane;
    if (kind == INDEX)
        from = segment + operand % width;
    else if (kind == UP)
        from = inside >= operand ? lane - operand : lane;
    else if (kind == DOWN)
        from = inside + operand < width ? lane + operand : lane;
    else if ((lane ^ operand) < segment + width)
        from = lane ^ operand;
    return lanes >> from & 1 ? from : -1;
}

template <class T> static void shuffles() {
    for (unsigned threads : {1u, 2u, 31u, 32u, 45u, 1000u})
        for (int width : {32, 16, 8, 2, 1})
            for (int operand : {0, 1, 2, 5, 16, 31})
                for (int kind : {INDEX, UP, DOWN, XOR}) {
                    const auto in = some<T>(threads, threads + operand, 1000);
                    const Device<T> lanes(in), results(threads);
                    shuffle<<<1, threads>>>(lanes.data, results.data, kind, operand, width);
                    const auto out = results.host();
                    unsigned wrong = 0;
                    for (unsigned t = 0; t < threads; ++t) {
                        const int from = source(kind, t % 32, operand, width, present(threads, t));
                        if (from >= 0)
                            wrong += out[t] != in[t / 32 * 32 + from];
                        else if (std::is_floating_point<T>::value)
                            wrong += out[t] == out[t]; // an undefined value reads as NaN
                    }
                    if (!EXPECT(wrong == 0))
                        fprintf(stderr, "  %u threads, kind %d, operand %d, width %d\n", threads, kind,
                                operand, width);
                }
}

TEST(lanes_that_shuffles_read) {
    shuffles<int>(), shuffles<double>();
}

__global__ void vote(const int *in, unsigned *out) {
    const int value = in[threadIdx.x];
    unsigned *mine = out + 8 * threadIdx.x;
    mine[0] = __ballot_sync(~0u, value > 0);
    mine[1] = (unsigned)__any_sync(~0u, value == 3);
    mine[2] = (unsigned)__all_sync(~0u, value < 5);
    mine[3] = __match_any_sync(~0u, value);
    int all;
    mine[4] = __match_all_sync(~0u, value / 100, &all) ? 1u : 0u;
    mine[5] = (unsigned)all;
    mine[6] = __match_all_sync(~0u, value, &all) ? 1u : 0u;
    mine[7] = (unsigned)all;
}

TEST(votes_and_matches) {
    for (unsigned threads : {1u, 7u, 32u, 50u, 96u, 1024u})
        for (unsigned seed = 0; seed < 8; ++seed) {
            const auto in = some<int>(threads, seed, seed == 0 ? 1 : 8);
            const Device<int> lanes(in);
            const Device<unsigned> results(8 * threads);
            vote<<<1, threads>>>(lanes.data, results.data);
            const auto out = results.host();
            unsigned wrong = 0;
            for (unsigned t = 0; t < threads; ++t) {
                const unsigned lanes_here = present(threads, t);
                unsigned positive = 0, three = 0, below5 = 0, equal = 0;
                for (unsigned lane = 0; lane < 32; ++lane)
                    if (lanes_here >> lane & 1) {
                        const int value = in[t / 32 * 32 + lane];
                        positive |= (unsigned)(value > 0) << lane;
                        three |= (unsigned)(value == 3) << lane;
                        below5 |= (unsigned)(value < 5) << lane;
                        equal |= (unsigned)(value == in[t]) << lane;
                    }
                const unsigned *got = &out[8 * t];
                wrong += got[0] != positive;
                wrong += (got[1] != 0) != (three != 0);
                wrong += (got[2] != 0) != (below5 == lanes_here);
                wrong += got[3] != equal;
                wrong += got[4] != 1 || got[5] == 0; // all are 0 after the division
                wrong += got[6] != (equal == lanes_here) || (got[7] != 0) != (equal == lanes_here);
            }
            EXPECT(wrong == 0);
        }
}

__global__ void reduce(const int *in, int *out) {
    const int value = in[threadIdx.x];
    int *mine = out + 9 * threadIdx.x;
    mine[0] = __reduce_add_sync(~0u, value);
    mine[1] = __reduce_min_sync(~0u, value);
    mine[2] = __reduce_max_sync(~0u, value);
    mine[3] = (int)__reduce_add_sync(~0u, (unsigned)value);
    mine[4] = (int)__reduce_min_sync(~0u, (unsigned)value);
    mine[5] = (int)__reduce_max_sync(~0u, (unsigned)value);
    mine[6] = (int)__reduce_and_sync(~0u, (unsigned)value);
    mine[7] = (int)__reduce_or_sync(~0u, (unsigned)value);
    mine[8] = (int)__reduce_xor_sync(~0u, (unsigned)value);
}

TEST(reductions) {
    for (unsigned threads : {1u, 5u, 32u, 61u, 1024u}) {
        const auto in = some<int>(threads, threads, 1 << 20);
        const Device<int> lanes(in), results(9 * threads);
        reduce<<<1, threads>>>(lanes.data, results.data);
        const auto out = results.host();
        unsigned wrong = 0;
        for (unsigned t = 0; t < threads; ++t) {
            const unsigned first = t / 32 * 32, last = first + 32 < threads ? first + 32 : threads;
            int sum = 0, low = in[first], high = low;
            unsigned ulow = (unsigned)low, uhigh = ulow, all = ~0u, any = 0, parity = 0;
            for (unsigned i = first; i < last; ++i) {
                const int value = in[i];
                const unsigned u = (unsigned)value;
                sum += value;
                low = value < low ? value : low;
                high = value > high ? value : high;
                ulow = u < ulow ? u : ulow;
                uhigh = u > uhigh ? u : uhigh;
                all &= u;
                any |= u;
                parity ^= u;
            }
            const int expected[9] = {sum,        low,      high,     sum,        (int)ulow,
                                     (int)uhigh, (int)all, (int)any, (int)parity};
            for (int i = 0; i < 9; ++i)
                wrong += out[9 * t + i] != expected[i];
        }
        EXPECT(wrong == 0);
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
    const Device<int> lanes(64);
    halves<<<1, 64>>>(lanes.data);
    const auto out = lanes.host();
    for (int t = 0; t < 64; ++t)
        EXPECT(out[t] == (t % 32 >= 24 ? 0 : t % 2 ? t + 12 : t));
}

// All types of which CUDA shuffles values, with bits in every byte
template <class T> __device__ bool shuffles(T scale) {
    const int lane = (int)threadIdx.x;
    const T mine = (T)(lane + 1) * scale;
    return __shfl_sync(~0u, mine, 7) == (T)8 * scale &&
           __shfl_xor_sync(~0u, mine, 1) == (T)((lane ^ 1) + 1) * scale &&
           __shfl_up_sync(~0u, mine, 1) == (T)(lane ? lane : 1) * scale &&
           __shfl_down_sync(~0u, mine, 2) == (T)(lane < 30 ? lane + 3 : lane + 1) * scale;
}

__global__ void shuffles_of_all_types(int *out) {
    const bool good = shuffles<int>(-0x01010101) && shuffles<unsigned>(0x01010101u) &&
                      shuffles<long>(-0x0101010101010101) && shuffles<unsigned long>(0x0101010101010101) &&
                      shuffles<long long>(-0x0101010101010101) &&
                      shuffles<unsigned long long>(0x0101010101010101) && shuffles<float>(-1.5f) &&
                      shuffles<double>(1e-300);
    out[threadIdx.x] = good;
}

TEST(numbers_of_all_types_are_shuffled) {
    const Device<int> good(32);
    shuffles_of_all_types<<<1, 32>>>(good.data);
    all_good(good);
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
    const Device<int> flags(2);
    poll_with_a_warp<<<1, 96>>>(flags.data);
    all_good(flags);
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
    const Device<int> wrong(1);
    for (int threads : {64, 256, 1024})
        read_then_shuffle_then_write<<<3, threads>>>(wrong.data);
    EXPECT(wrong.host()[0] == 0);
}
