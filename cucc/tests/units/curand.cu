// SPDX-License-Identifier: MIT
// Random numbers in kernels: the numbers that cuRAND gives, also after a jump. The moments of the
// distributions are tested in curand_host.cu, for the same functions.
#include <curand_kernel.h>
#include <cmath>
#include "device.h"

typedef unsigned long long Seed;

// The first numbers of cuRAND 10.4 (CUDA 13.0) after curand_init(seed, sequence, offset): three integers, a
// uniform number in float and one in double; then approximately two normal numbers, one in double, and a
// log-normal one
struct Known {
    Seed seed, sequence, offset;
    unsigned integers[3];
    float uniform;
    double uniform_double;
    double normal[4];
};

// clang-format off
static const Known xorwow[] = {
    {0ull, 0ull, 0ull, {3179217846u, 1883133293u, 2220552389u}, 0.156988621f, 0.46250842073016324, {1.51097095, -0.822750092, -0.456207219, 2.62928367}},
    {16045690984503098046ull, 77ull, 5ull, {321618512u, 3388947496u, 1528814050u}, 0.644343913f, 0.96398657329730275, {-0.567062795, 0.628145576, 0.0249704543, 3.46040273}},
    {42ull, 1099511627776ull, 20015998343868ull, {3676173153u, 2428795665u, 919009737u}, 0.665089369f, 0.62442222155557148, {-1.18764389, -1.06902337, 1.15271718, 5.96748018}},
};
static const Known philox[] = {
    {0ull, 0ull, 0ull, {1713891541u, 3781805453u, 3159862348u}, 0.605481863f, 0.97224120167084038, {-1.33784282, -0.49182865, 2.17351886, 1.23989296}},
    {16045690984503098046ull, 77ull, 5ull, {2737271297u, 1727129553u, 2550745454u}, 0.898636878f, 0.10467711510136724, {-1.13543069, -0.322903275, -0.741415204, 2.82835507}},
    {42ull, 1099511627776ull, 20015998343868ull, {3655593819u, 4037836639u, 3116769725u}, 0.629761934f, 0.207294468767941, {0.0479106568, -0.165459216, -0.149201067, 3.22664261}},
};
static const Known mrg32k3a[] = {
    {0ull, 0ull, 0ull, {545508615u, 1368065476u, 1327943825u}, 0.825846851f, 0.22162991583362512, {0.135105282, -1.11298299, 1.08461795, 2.29102135}},
    {16045690984503098046ull, 77ull, 5ull, {3928636350u, 2694769583u, 3333988816u}, 0.871338308f, 0.24880482279700414, {-0.269641668, 0.164918378, 0.781543074, 5.1247077}},
    {42ull, 1099511627776ull, 20015998343868ull, {2450286524u, 1196605502u, 1342159164u}, 0.267706335f, 0.94902688226351017, {-0.172792748, -1.08672142, 1.61825781, 1.6767031}},
};
// clang-format on

template <class State> __global__ void known_numbers(Known *all) {
    Known &k = all[threadIdx.x];
    State state, jumped;
    curand_init(k.seed, k.sequence, k.offset, &state);
    curand_init(k.seed, k.sequence, 0, &jumped);
    skipahead(k.offset / 2, &jumped); // two jumps lead to the same place
    skipahead(k.offset - k.offset / 2, &jumped);
    for (int i = 0; i < 3; i++)
        k.integers[i] = curand(&state);
    if (curand(&jumped) != k.integers[0])
        k.integers[0] = 0;
    k.uniform = curand_uniform(&state);
    k.uniform_double = curand_uniform_double(&state);
    k.normal[0] = curand_normal(&state);
    k.normal[1] = curand_normal(&state);
    k.normal[2] = curand_normal_double(&state);
    k.normal[3] = curand_log_normal(&state, 1, 0.5f);
}

template <class State> static void check_known(const Known *expected) {
    const Device<Known> device(std::vector<Known>(expected, expected + 3));
    known_numbers<State><<<1, 3>>>(device.data);
    const std::vector<Known> got = device.host();
    for (int i = 0; i < 3; i++) {
        const Known &g = got[i], &e = expected[i];
        bool good = memcmp(g.integers, e.integers, sizeof g.integers) == 0 && g.uniform == e.uniform &&
                    g.uniform_double == e.uniform_double;
        for (int j = 0; j < 4; j++)
            good &= fabs(g.normal[j] - e.normal[j]) <= 2e-5 * (1 + fabs(e.normal[j]));
        if (!EXPECT(good))
            fprintf(stderr,
                    "seed %llu, sequence %llu, offset %llu: %u %u %u %.9g %.17g, normal %g %g %g %g\n",
                    e.seed, e.sequence, e.offset, g.integers[0], g.integers[1], g.integers[2], g.uniform,
                    g.uniform_double, g.normal[0], g.normal[1], g.normal[2], g.normal[3]);
    }
}

TEST(numbers_are_curands) {
    check_known<curandState>(xorwow);
    check_known<curandStatePhilox4_32_10_t>(philox);
    check_known<curandStateMRG32k3a>(mrg32k3a);
}
