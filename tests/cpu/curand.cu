// SPDX-License-Identifier: MIT
// Random numbers in kernels: the numbers that cuRAND gives, jumps, and distributions.
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>
#include "../unit.h"

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
    {1234ull, 0ull, 0ull, {624778773u, 1867875844u, 3739671282u}, 0.455165118f, 0.58241812519857272, {-1.74271762, 0.409659863, -1.31180541, 1.5243535}},
    {1234ull, 1ull, 0ull, {3522650202u, 3978931785u, 2198015705u}, 0.537593544f, 0.01752351558224724, {-1.20457506, 0.385954112, -1.39301042, 1.5806849}},
    {16045690984503098046ull, 77ull, 5ull, {321618512u, 3388947496u, 1528814050u}, 0.644343913f, 0.96398657329730275, {-0.567062795, 0.628145576, 0.0249704543, 3.46040273}},
    {42ull, 1099511627776ull, 20015998343868ull, {3676173153u, 2428795665u, 919009737u}, 0.665089369f, 0.62442222155557148, {-1.18764389, -1.06902337, 1.15271718, 5.96748018}},
};
static const Known philox[] = {
    {0ull, 0ull, 0ull, {1713891541u, 3781805453u, 3159862348u}, 0.605481863f, 0.97224120167084038, {-1.33784282, -0.49182865, 2.17351886, 1.23989296}},
    {1234ull, 0ull, 0ull, {546353992u, 3665621163u, 1140953199u}, 0.796055257f, 0.62083233660086989, {-0.299034804, 2.06982613, -1.59424063, 1.58014023}},
    {1234ull, 1ull, 0ull, {3507855656u, 1392278645u, 3354607383u}, 0.0589176342f, 0.027627848088741302, {0.902600646, 1.0201354, 1.09079445, 4.13760424}},
    {16045690984503098046ull, 77ull, 5ull, {2737271297u, 1727129553u, 2550745454u}, 0.898636878f, 0.10467711510136724, {-1.13543069, -0.322903275, -0.741415204, 2.82835507}},
    {42ull, 1099511627776ull, 20015998343868ull, {3655593819u, 4037836639u, 3116769725u}, 0.629761934f, 0.207294468767941, {0.0479106568, -0.165459216, -0.149201067, 3.22664261}},
};
static const Known mrg32k3a[] = {
    {0ull, 0ull, 0ull, {545508615u, 1368065476u, 1327943825u}, 0.825846851f, 0.22162991583362512, {0.135105282, -1.11298299, 1.08461795, 2.29102135}},
    {1234ull, 0ull, 0ull, {3379073520u, 2521876100u, 213678209u}, 0.373551488f, 0.52457002355603854, {0.123897441, -0.170371205, 0.596180342, 3.23952842}},
    {1234ull, 1ull, 0ull, {653317650u, 2890950871u, 2749090064u}, 0.561128855f, 0.46389150851250754, {0.770713568, -0.878119946, 1.41936636, 9.80785465}},
    {16045690984503098046ull, 77ull, 5ull, {3928636350u, 2694769583u, 3333988816u}, 0.871338308f, 0.24880482279700414, {-0.269641668, 0.164918378, 0.781543074, 5.1247077}},
    {42ull, 1099511627776ull, 20015998343868ull, {2450286524u, 1196605502u, 1342159164u}, 0.267706335f, 0.94902688226351017, {-0.172792748, -1.08672142, 1.61825781, 1.6767031}},
};
// clang-format on

template <class State> __global__ void known_numbers(Known *all) {
    Known &k = all[threadIdx.x];
    State state;
    curand_init(k.seed, k.sequence, k.offset, &state);
    for (int i = 0; i < 3; i++)
        k.integers[i] = curand(&state);
    k.uniform = curand_uniform(&state);
    k.uniform_double = curand_uniform_double(&state);
    k.normal[0] = curand_normal(&state);
    k.normal[1] = curand_normal(&state);
    k.normal[2] = curand_normal_double(&state);
    k.normal[3] = curand_log_normal(&state, 1, 0.5f);
}

template <class State> static void check_known(const Known *expected) {
    Known *device, got[5];
    OK(cudaMalloc(&device, sizeof got));
    OK(cudaMemcpy(device, expected, sizeof got, cudaMemcpyHostToDevice));
    known_numbers<State><<<1, 5>>>(device);
    OK(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 5; i++) {
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
    OK(cudaFree(device));
}

TEST(xorwow_numbers_are_curands) {
    check_known<curandState>(xorwow);
}
TEST(philox_numbers_are_curands) {
    check_known<curandStatePhilox4_32_10_t>(philox);
}
TEST(mrg32k3a_numbers_are_curands) {
    check_known<curandStateMRG32k3a>(mrg32k3a);
}

__global__ void fours(uint4 *integers, double *numbers) {
    curandStatePhilox4_32_10_t state;
    curand_init(99, 5, 3, &state);
    *integers = curand4(&state);
    const float4 u = curand_uniform4(&state);
    const double2 d = curand_uniform2_double(&state);
    const float4 n = curand_normal4(&state);
    const double2 e = curand_normal2_double(&state);
    const double all[] = {u.x, u.y, u.z, u.w, d.x, d.y, n.x, n.y, n.z, n.w, e.x, e.y};
    for (int i = 0; i < 12; i++)
        numbers[i] = all[i];
}

TEST(philox_gives_four_at_once) {
    const double expected[] = {0.372338563,        0.345654368,         0.0935830548, 0.532929182,
                               0.7056183552620483, 0.69959656292224426, 0.726860702,  -1.77358699,
                               0.236253157,        0.812069893,         0.247158198,  0.565874327};
    uint4 *integers, i4;
    double *numbers, got[12];
    OK(cudaMalloc(&integers, sizeof i4));
    OK(cudaMalloc(&numbers, sizeof got));
    fours<<<1, 1>>>(integers, numbers);
    OK(cudaMemcpy(&i4, integers, sizeof i4, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(got, numbers, sizeof got, cudaMemcpyDeviceToHost));
    const unsigned want[] = {4096097244u, 174882764u, 2799724637u, 592107955u};
    EXPECT(i4.x == want[0] && i4.y == want[1] && i4.z == want[2] && i4.w == want[3]);
    for (int i = 0; i < 12; i++)
        EXPECT(fabs(got[i] - expected[i]) <= (i < 4 ? 1e-8 : i < 6 ? 0 : 2e-5));
    OK(cudaFree(integers));
    OK(cudaFree(numbers));
}

// A jump of n leads to where n calls lead.
template <class State> __global__ void jumps(Seed seed, int *wrong) {
    State walked, jumped;
    curand_init(seed, threadIdx.x, 0, &walked);
    curand_init(seed, threadIdx.x, 7 * threadIdx.x, &jumped);
    for (unsigned i = 0; i < 7 * threadIdx.x; i++)
        curand(&walked);
    if (curand(&walked) != curand(&jumped))
        atomicAdd(wrong, 1);
    skipahead(1000 + threadIdx.x, &jumped);
    for (unsigned i = 0; i < 1000 + threadIdx.x; i++)
        curand(&walked);
    if (curand(&walked) != curand(&jumped))
        atomicAdd(wrong, 1);
}

TEST(jumps_lead_where_calls_lead) {
    const Seed seed = (Seed)time(NULL);
    fprintf(stderr, "seed %llu\n", seed);
    int *wrong, host = 1;
    OK(cudaMalloc(&wrong, sizeof host));
    OK(cudaMemset(wrong, 0, sizeof host));
    jumps<curandState><<<1, 40>>>(seed, wrong);
    jumps<curandStatePhilox4_32_10_t><<<1, 40>>>(seed, wrong);
    jumps<curandStateMRG32k3a><<<1, 40>>>(seed, wrong);
    OK(cudaMemcpy(&host, wrong, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host == 0);
    OK(cudaFree(wrong));
}

// ---- distributions: means and variances ----

enum { kinds = 7 };

template <class State> __global__ void sums(Seed seed, int n, double *moments) {
    State state;
    curand_init(seed, blockIdx.x * blockDim.x + threadIdx.x, 0, &state);
    for (int kind = 0; kind < kinds; kind++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < n; i++) {
            const double x = kind == 0   ? curand_uniform(&state)
                             : kind == 1 ? curand_uniform_double(&state)
                             : kind == 2 ? curand_normal(&state)
                             : kind == 3 ? curand_normal_double(&state)
                             : kind == 4 ? (double)curand_poisson(&state, 3.5)
                             : kind == 5 ? (double)curand_poisson(&state, 40)
                                         : (double)curand_poisson(&state, 5000);
            sum += x, squares += x * x;
        }
        atomicAdd(&moments[2 * kind], sum);
        atomicAdd(&moments[2 * kind + 1], squares);
    }
}

template <class State> static void check_moments() {
    const int n = 100, threads = 2048;
    const double total = (double)n * threads, means[] = {0.5, 0.5, 0, 0, 3.5, 40, 5000},
                 variances[] = {1 / 12.0, 1 / 12.0, 1, 1, 3.5, 40, 5000};
    const Seed seed = (Seed)time(NULL);
    double *device, got[2 * kinds];
    OK(cudaMalloc(&device, sizeof got));
    OK(cudaMemset(device, 0, sizeof got));
    sums<State><<<threads / 64, 64>>>(seed, n, device);
    OK(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
    for (int k = 0; k < kinds;
         k++) { // within six deviations; the fourth moment is at most 3.3 variances squared
        const double mean = got[2 * k] / total, variance = got[2 * k + 1] / total - mean * mean;
        if (!EXPECT(fabs(mean - means[k]) <= 6 * sqrt(variances[k] / total) &&
                    fabs(variance - variances[k]) <= 6 * variances[k] * sqrt(2.3 / total)))
            fprintf(stderr, "seed %llu, distribution %d: mean %g, variance %g\n", seed, k, mean, variance);
    }
    OK(cudaFree(device));
}

TEST(distributions_have_their_moments) {
    check_moments<curandState>(), check_moments<curandStatePhilox4_32_10_t>(),
        check_moments<curandStateMRG32k3a>();
}
