// SPDX-License-Identifier: MIT
// Accesses through volatile in kernels: reductions and scans of a warp without __syncwarp(), as they were
// written when the lanes of a warp ran in step, and flags that threads poll.
#include "device.h"

// ---- reductions whose last warp is unrolled ----

// A volatile pointer to dynamic shared memory; there is a warp's width of memory behind the data.
template <class T> __global__ void sum_with_a_pointer(const T *in, T *out) {
    extern __shared__ char memory[];
    T *data = (T *)memory;
    const unsigned t = threadIdx.x;
    data[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 32; half /= 2) {
        if (t < half)
            data[t] += data[t + half];
        __syncthreads();
    }
    if (t < 32) {
        volatile T *step = data;
        if (blockDim.x >= 64)
            step[t] += step[t + 32];
        step[t] += step[t + 16], step[t] += step[t + 8];
        step[t] += step[t + 4];
        step[t] += step[t + 2];
        *(step + t) += *(step + t + 1);
    }
    if (t == 0)
        out[blockIdx.x] = data[0];
}

// A device function with a volatile parameter, called with ordinary shared memory.
template <unsigned THREADS, class T> __device__ void last_warp(volatile T *data, unsigned t, T mine) {
    if (THREADS >= 64)
        data[t] = mine = mine + data[t + 32];
    if (THREADS >= 32)
        data[t] = mine = mine + data[t + 16];
    data[t] = mine = mine + data[t + 8];
    data[t] = mine = mine + data[t + 4];
    data[t] = mine = mine + data[t + 2];
    data[t] = mine = mine + data[t + 1];
}

template <unsigned THREADS, class T> __global__ void sum_with_a_function(const T *in, T *out) {
    __shared__ T data[THREADS + 32];
    const unsigned t = threadIdx.x;
    T mine = data[t] = in[blockIdx.x * THREADS + t];
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 32; half /= 2) {
        if (t < half)
            data[t] = mine = mine + data[t + half];
        __syncthreads();
    }
    if (t < 32)
        last_warp<THREADS>(data, t, mine);
    if (t == 0)
        out[blockIdx.x] = data[0];
}

// The array itself is volatile, and the active lanes become fewer from line to line.
template <unsigned THREADS, class T> __global__ void sum_with_branches(const T *in, T *out) {
    __shared__ volatile T data[THREADS], total;
    const unsigned t = threadIdx.x;
    static_assert(sizeof data == THREADS * sizeof(T), "");
    data[t] = in[blockIdx.x * THREADS + t];
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 16; half /= 2) {
        if (t < half)
            data[t] += data[t + half];
        __syncthreads();
    }
    if (t < 16)
        data[t] += data[t + 16];
    if (t < 8)
        data[t] += data[t + 8];
    if (t < 4)
        ((volatile T *)data)[t] += data[t + 4];
    if (t < 2)
        data[t] += data[t + 2];
    if (t == 0)
        total = data[0] + data[1];
    __syncthreads();
    if (t == THREADS - 1)
        out[blockIdx.x] = total;
}

template <unsigned THREADS, class T> static void reductions() {
    const unsigned blocks = 3;
    std::vector<T> in(blocks * THREADS), expected(blocks);
    for (size_t i = 0; i < in.size(); ++i)
        expected[i / THREADS] += in[i] = (T)(i * 7 % 31) - 3;
    const Device<T> dev(in);
    const size_t bytes = (THREADS + 32) * sizeof(T);
    EXPECT(WRITTEN(T, blocks, sum_with_a_pointer<<<blocks, THREADS, bytes>>>(dev.data, out)) == expected);
    EXPECT(WRITTEN(T, blocks, sum_with_a_function<THREADS><<<blocks, THREADS>>>(dev.data, out)) == expected);
    EXPECT(WRITTEN(T, blocks, sum_with_branches<THREADS><<<blocks, THREADS>>>(dev.data, out)) == expected);
}

TEST(reductions) {
    reductions<32, int>(), reductions<64, int>(), reductions<128, int>(), reductions<1024, int>();
    reductions<64, float>(), reductions<256, float>(), reductions<512, double>();
}

// ---- a scan: inclusive sums in a warp, after 32 zeros ----

extern volatile __shared__ int padded[];

__global__ void scan(int *good) {
    const int t = (int)threadIdx.x;
    volatile int *sums = padded + 32, *same = sums;
    padded[t] = 0;
    sums[t] = t;
    for (int i = 1; i < 32; i *= 2)
        same[t] = sums[t] + sums[t - i];
    good[t] = sums[t] == t * (t + 1) / 2;
}

TEST(scan_of_a_warp) {
    EXPECT(WRITTEN(int, 32, scan<<<1, 32, 64 * sizeof(int)>>>(out)) == std::vector<int>(32, 1));
}

// ---- flags ----

__global__ void poll_in_a_block(int *out) {
    __shared__ volatile int ready, value;
    if (threadIdx.x == 0)
        ready = 0;
    __syncthreads();
    if (threadIdx.x == 70) {
        value = 42;
        __threadfence_block();
        ready = 1;
    } else {
        while (!ready)
            ;
        out[threadIdx.x] = value;
    }
}

// Each thread waits for its neighbour's; no two finish at the same time.
__global__ void pass_on(volatile int *flags) {
    const int t = (int)threadIdx.x, next = t + 1;
    if (next < (int)blockDim.x)
        while (flags[next] == 0)
            ;
    flags[t] = next < (int)blockDim.x ? flags[next] + 1 : 1;
}

TEST(threads_that_poll_a_flag) {
    const auto expected = made(96, [](int t) { return t == 70 ? 0 : 42; });
    EXPECT(WRITTEN(int, 96, poll_in_a_block<<<1, 96>>>(out)) == expected);
    for (unsigned threads : {2u, 33u, 100u})
        EXPECT(WRITTEN(int, threads, pass_on<<<1, threads>>>(out))[0] == (int)threads);
}

// A thread reads two addresses in turn, its own and its neighbour's, until the neighbour's is 2.
__global__ void wait_for_neighbours(volatile int *state, int n) {
    const int v = (int)threadIdx.x;
    bool more;
    do {
        more = false;
        if (state[v] & 1) {
            if (v + 1 < n && (state[v + 1] & 1))
                more = true;
            else
                state[v] = 2;
        }
    } while (more);
}

TEST(threads_that_poll_several_addresses_in_turn) {
    const std::vector<int> ones(64, 1);
    EXPECT(WRITTEN(int, ones, wait_for_neighbours<<<1, 64>>>(out, 64)) == std::vector<int>(64, 2));
}

// ---- other uses ----

struct Pair {
    int a, b;
};

__device__ int third(const volatile int *p, volatile Pair *pair) {
    volatile int *q = (volatile int *)p, *const end = q + 3;
    volatile int plain = 1;
    int n = 0;
    while (q != end)
        n += *q++ * plain;
    pair->b = n;
    return p[2] + (q - p == 3) + (p < end ? 10 : 0) + (int)sizeof *p;
}

__global__ void other_uses(int *out) {
    __shared__ volatile int table[2][3];
    __shared__ volatile unsigned char bytes[4];
    Pair pair = {0, 0};
    for (int i = 0; i < 6; i++)
        table[i / 3][i % 3] = i;
    bytes[0] = 255;
    bytes[2] = bytes[0]++;
    bytes[1] = bytes[0];
    table[0][0] |= 6;
    table[0][1] <<= 2;
    --table[0][2];
    out[0] = third(table[1], &pair);
    out[1] = table[0][0] * 100 + table[0][1] * 10 + table[0][2];
    out[2] = pair.b + bytes[1] + (bytes[2] == 255);
    out[3] = (int)(sizeof table + sizeof bytes);
    int *unlocked = (int *)table[1];
    out[4] = unlocked[1] + max((int)table[0][0], 3) + table[1][table[0][2]] + ((char *)bytes == nullptr);
}

TEST(other_uses_of_volatile) {
    EXPECT(WRITTEN(int, 5, other_uses<<<1, 1>>>(out)) ==
           (std::vector<int>{5 + 1 + 10 + 4, 641, 13, 28, 4 + 6 + 4}));
}

// Declarations and casts whose pointers are read in step, and those that have none
template <class T> __global__ void forms(T *y, int *out) {
    typedef volatile T *Pointer;
    using Same = const volatile T *;
    volatile int single = 1, few[3] = {1, 2, 3};
    T *volatile moving = y;
    volatile T *all[3] = {y, y + 1, y + 2};
    T volatile *first = y + 0, value = 9;
    const volatile T *const braces{y}, two = 2, *third = braces + two;
    volatile T *late;
    volatile T &reference = *y;
    Pointer pointer = y + 1;
    Same same = pointer;
    for (volatile int i = 0; i < 2; i++)
        few[i] += single;
    late = first;
    *(volatile T *)y = 5;
    late[1] = ((volatile T *)&y[0])[0] + 1;
    *out = (int)(few[0] + few[1] + *moving + all[1][0] + value + *third + reference + *same +
                 sizeof(volatile int *));
}

TEST(forms_of_declarations) {
    const Device<int> y(std::vector<int>{1, 2, 3});
    EXPECT(WRITTEN(int, 1, forms<<<1, 1>>>(y.data, out))[0] == 2 + 3 + 5 + 6 + 9 + 3 + 5 + 6 + 8);
}
