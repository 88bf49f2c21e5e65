// SPDX-License-Identifier: MIT
// Memory that a kernel reads and writes through pointers to another type, as kernels with vector loads do.
#include <cuda_fp16.h>
#include "device.h"

// Copies 16 bytes through an array of T, whose elements it adds to themselves, by words of type W. `shared`:
// the array is in shared memory.
template <class T, class W, bool shared> __global__ void twice(const T *in, T *out) {
    constexpr int n = 16 / sizeof(T), words = 16 / sizeof(W);
    __shared__ alignas(16) T all[64][n];
    alignas(16) T own[n], sums[n];
    T *const values = shared ? all[threadIdx.x] : own;
    for (int i = 0; i < words; i++)
        ((W *)values)[i] = ((const W *)in)[threadIdx.x * words + i];
    for (int i = 0; i < n; i++)
        sums[i] = values[i] + values[i];
    for (int i = 0; i < words; i++)
        reinterpret_cast<W *>(out)[threadIdx.x * words + i] = *((const W *)sums + i);
}

template <class T, class W, bool shared> static void doubles_elements(const char *types) {
    const int n = 1024 / (int)sizeof(T);
    const Device<T> in(made(n, [](int i) { return T(i % 60 + 1); }));
    const auto got = WRITTEN(T, n, twice<T, W, shared><<<1, 64>>>(in.data, out));
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += (float)got[i] != 2.f * (i % 60 + 1);
    if (!EXPECT(wrong == 0))
        fprintf(stderr, "  %s: %d of %d\n", types, wrong, n);
}

template <class T> static void through_every_type(const char *type) {
#define THROUGH(W) doubles_elements<T, W, false>(type), doubles_elements<T, W, true>(type)
    THROUGH(unsigned), THROUGH(float), THROUGH(short), THROUGH(long long), THROUGH(uint4), THROUGH(float4);
}

TEST(words_of_another_type) {
    through_every_type<half>("half"), through_every_type<float>("float"), through_every_type<short>("short");
    through_every_type<int>("int"), through_every_type<double>("double");
}

// The bits of a float, and a value that a loop reads after another type has changed it
__global__ void bits(float *x, int n) {
    float f = x[0];
    int i = *(int *)&f;
    *(unsigned *)&f = i ^ 0x80000000u;
    for (int k = 0; k < n; k++)
        ((int *)x)[1] = *(int *)&x[1] + 1;
    x[0] = f;
}

TEST(bits_of_a_float) {
    const auto x = WRITTEN(float, (std::vector<float>{3, 0}), bits<<<1, 1>>>(out, 5));
    EXPECT(x[0] == -3 && memcmp(&x[1], &(const int &)5, sizeof x[1]) == 0);
}
