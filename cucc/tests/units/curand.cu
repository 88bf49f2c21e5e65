// SPDX-License-Identifier: MIT
// cuRAND: the numbers that it gives, by the host API in the same order, with offsets and calls in turn, and
// in kernels; and the distributions.
#include <curand_kernel.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include "device.h"

typedef unsigned long long Seed;

// A generator of either kind, and an array for its numbers, which both can reach
struct Source {
    curandGenerator_t generator = NULL;
    void *data;

    Source(bool host, curandRngType_t type, Seed seed, size_t most) {
        OK(host ? curandCreateGeneratorHost(&generator, type) : curandCreateGenerator(&generator, type));
        if (type < CURAND_RNG_QUASI_DEFAULT)
            OK(curandSetPseudoRandomGeneratorSeed(generator, seed));
        OK(cudaMallocManaged(&data, 8 * most));
    }
    ~Source() {
        OK(curandDestroyGenerator(generator));
        OK(cudaFree(data));
    }
    Source(const Source &) = delete;
    template <class T> std::vector<T> get(size_t n) const {
        OK(cudaDeviceSynchronize());
        return {(T *)data, (T *)data + n};
    }
    // n numbers by a function of cuRAND: numbers(curandGenerateNormal, n, mean, deviation)
    template <class T, class... P, class... A>
    std::vector<T> numbers(curandStatus_t (*call)(curandGenerator_t, T *, size_t, P...), size_t n,
                           A... arguments) {
        OK(call(generator, (T *)data, n, (P)arguments...));
        return get<T>(n);
    }
    void restart(Seed offset) { OK(curandSetGeneratorOffset(generator, offset)); }
};

// A hash of all bits (FNV-1a, 64 bits)
template <class T> static uint64_t hash(const std::vector<T> &all) {
    uint64_t h = 14695981039346656037ull;
    for (size_t i = 0; i < all.size() * sizeof(T); i++)
        h = (h ^ ((const unsigned char *)all.data())[i]) * 1099511628211ull;
    return h;
}
// A sum of all numbers with varying factors: of normal numbers the last digits may differ.
template <class T> static double mixed(const std::vector<T> &all) {
    double sum = 0;
    for (size_t i = 0; i < all.size(); i++)
        sum += all[i] * (i % 101);
    return sum / all.size();
}

// Of cuRAND 10.4 (CUDA 13.0), its generators for host memory: hashes of the first 170 000 integers, uniform
// floats and uniform doubles, and sums of the normal numbers
struct Known {
    curandRngType_t type;
    Seed seed, offset;
    uint64_t integers, uniform, uniform_double;
    double normal, normal_double;
};
// clang-format off
static const Known known[] = {
    {CURAND_RNG_PSEUDO_XORWOW, 0ull, 0ull, 8203107664401366049ull, 15043540402495587667ull, 4297371792787653463ull, 0.114899956, -0.028841325397355},
    {CURAND_RNG_PSEUDO_XORWOW, 16045690984503098046ull, 100001ull, 11043777240424202950ull, 13791938953335318992ull, 9909476420675639853ull, 0.0792435141, -0.017249647119502},
    {CURAND_RNG_PSEUDO_MRG32K3A, 0ull, 0ull, 15603309669446063160ull, 12445162285649393398ull, 11473677113174310848ull, 0.0975758296, 0.097574931083266},
    {CURAND_RNG_PSEUDO_MRG32K3A, 16045690984503098046ull, 100001ull, 9119558844361129570ull, 13004052235157190470ull, 10498662143428781288ull, 0.0560595682, 0.056058726019943},
    {CURAND_RNG_PSEUDO_PHILOX4_32_10, 0ull, 0ull, 17255613429862661400ull, 17300572649079514281ull, 3244074428925761455ull, -0.0475176348, -0.17529930514236},
    {CURAND_RNG_PSEUDO_PHILOX4_32_10, 16045690984503098046ull, 100001ull, 1155629280830154625ull, 7872007585490816708ull, 17498944692636442815ull, -0.0617629065, 0.001561710486547},
    {CURAND_RNG_PSEUDO_MTGP32, 0ull, 0ull, 4238499086906898542ull, 10364209680596504525ull, 1674641425219587654ull, -0.0970081684, -0.097008176707602},
    {CURAND_RNG_PSEUDO_MTGP32, 16045690984503098046ull, 0ull, 15161623028770318611ull, 10825445446551887897ull, 14890069921934900357ull, 0.0928782468, 0.092878244079585},
    {CURAND_RNG_QUASI_SOBOL32, 0ull, 0ull, 15620532186839830437ull, 9790820699194761120ull, 16643588002436654437ull, -0.00196812524, -0.0019680909782621},
    {CURAND_RNG_QUASI_SOBOL32, 0ull, 12345ull, 12038355376536255778ull, 1277305116507503997ull, 10053787183979325445ull, -0.000636075166, -0.00063604376540496},
};
// clang-format on

TEST(numbers_are_curands) {
    const size_t n = 170000;
    for (bool host : {true, false})
        for (const Known &k : known) {
            const auto first = [&](auto call, auto... moments) {
                Source source(host, k.type, k.seed, n);
                if (k.offset)
                    source.restart(k.offset);
                return source.numbers(call, n, moments...);
            };
            const Known got = {k.type,
                               k.seed,
                               k.offset,
                               hash(first(curandGenerate)),
                               hash(first(curandGenerateUniform)),
                               hash(first(curandGenerateUniformDouble)),
                               mixed(first(curandGenerateNormal, 0, 1)),
                               mixed(first(curandGenerateNormalDouble, 0, 1))};
            // cuRAND calculates all normal numbers of MTGP32 in float.
            const double limit = k.type == CURAND_RNG_PSEUDO_MTGP32 ? 1e-5 : 1e-9;
            if (!EXPECT(got.integers == k.integers && got.uniform == k.uniform &&
                        got.uniform_double == k.uniform_double && fabs(got.normal - k.normal) < 1e-5 &&
                        fabs(got.normal_double - k.normal_double) < limit))
                fprintf(stderr,
                        "{(curandRngType_t)%d, %lluull, %lluull, %lluull, %lluull, %lluull, %.9g, %.14g},\n",
                        k.type, k.seed, k.offset, (Seed)got.integers, (Seed)got.uniform,
                        (Seed)got.uniform_double, got.normal, got.normal_double);
        }
}

// Each generator: the hash of calls of all lengths and types in turn, and of the legacy ordering
TEST(calls_in_turn_and_legacy_ordering) {
    const struct {
        curandRngType_t type;
        uint64_t in_turn, legacy;
    } expected[] = {
        {CURAND_RNG_PSEUDO_XORWOW, 12208408806041353520ull, 3002461597016244797ull},
        {CURAND_RNG_PSEUDO_MRG32K3A, 208958103192342951ull, 12187236895898262417ull},
        {CURAND_RNG_PSEUDO_PHILOX4_32_10, 13037857571079997465ull, 575033895433381698ull},
    };
    for (bool host : {true, false})
        for (const auto &e : expected) {
            uint64_t in_turn = 0;
            {
                Source source(host, e.type, 42, 300000);
                for (size_t n : {5, 0, 4098, 3, 262147, 90000}) {
                    in_turn = in_turn * 31 + hash(source.numbers(curandGenerate, n));
                    in_turn = in_turn * 31 + hash(source.numbers(curandGenerateUniformDouble, n / 2));
                    in_turn = in_turn * 31 + hash(source.numbers(curandGenerateUniform, n / 3));
                    source.numbers(curandGenerateNormal, n / 2 * 2, 0, 1); // moves on
                }
            }
            Source source(host, e.type, 42, 100000);
            OK(curandSetGeneratorOrdering(source.generator, CURAND_ORDERING_PSEUDO_LEGACY));
            const uint64_t legacy = hash(source.numbers(curandGenerate, 100000));
            if (!EXPECT(in_turn == e.in_turn && legacy == e.legacy))
                fprintf(stderr, "{(curandRngType_t)%d, %lluull, %lluull},\n", e.type, (Seed)in_turn,
                        (Seed)legacy);
        }
}

// Mean and variance, within six deviations of theirs; `fourth` is the fourth central moment
template <class T>
static bool has_moments(const std::vector<T> &all, double mean, double variance, double fourth) {
    const double n = all.size();
    double sum = 0, squares = 0;
    for (T x : all)
        sum += x;
    for (T x : all)
        squares += (x - sum / n) * (x - sum / n);
    return fabs(sum / n - mean) <= 6 * sqrt(variance / n) &&
           fabs(squares / n - variance) <= 6 * sqrt((fourth - variance * variance) / n);
}
template <class T> static std::vector<T> logarithms(std::vector<T> all) {
    for (T &x : all)
        x = std::log(x);
    return all;
}

TEST(distributions_have_their_moments) {
    const Seed seed = engine()();
    const size_t n = 200000;
    for (curandRngType_t type :
         {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A, CURAND_RNG_PSEUDO_PHILOX4_32_10,
          CURAND_RNG_PSEUDO_MTGP32, CURAND_RNG_PSEUDO_MT19937}) {
        Source s(false, type, seed, n);
        EXPECT(has_moments(s.numbers(curandGenerateNormal, n, 3, 2), 3, 4, 48));
        EXPECT(has_moments(s.numbers(curandGenerateNormalDouble, n, -1, 0.5), -1, 0.25, 3 / 16.0));
        for (double mean : {0.5, 3.5, 40.0, 5000.0})
            EXPECT(
                has_moments(s.numbers(curandGeneratePoisson, n, mean), mean, mean, mean + 3 * mean * mean));
        EXPECT(has_moments(logarithms(s.numbers(curandGenerateLogNormal, n, 1, 0.5)), 1, 0.25, 3 / 16.0));
        EXPECT(
            has_moments(logarithms(s.numbers(curandGenerateLogNormalDouble, n, 1, 0.5)), 1, 0.25, 3 / 16.0));
    }
}

TEST(sobol_numbers_of_distributions) {
    const unsigned dimensions = 20, n = 1 << 10;
    Source source(false, CURAND_RNG_QUASI_SOBOL32, 0, dimensions * n);
    OK(curandSetQuasiRandomGeneratorDimensions(source.generator, dimensions));
    EXPECT(curandGenerate(source.generator, (unsigned *)source.data, 30) ==
           CURAND_STATUS_LENGTH_NOT_MULTIPLE);

    OK(curandSetQuasiRandomGeneratorDimensions(source.generator, 1));
    source.restart(1);
    for (double mean : {0.5, 40.0}) {
        double sum = 0;
        unsigned largest = 0;
        for (unsigned x : source.numbers(curandGeneratePoisson, dimensions * n, mean)) {
            sum += x;
            largest = std::max(largest, x);
        }
        EXPECT(fabs(sum / (dimensions * n) - mean) < 0.01 * mean);
        EXPECT(largest >= (mean < 1 ? 5 : 64)); // reached with a probability of 1.7e-4 and 2.8e-4
    }
    for (float x : source.numbers(curandGenerateNormal, 1001, 0, 1)) // an odd number
        EXPECT(fabs(x) < 7);
}

TEST(wrong_arguments) {
    curandGenerator_t generator;
    unsigned x[8];
    EXPECT(curandCreateGeneratorHost(&generator, (curandRngType_t)5) == CURAND_STATUS_TYPE_ERROR);
    EXPECT(curandGenerate(NULL, x, 8) == CURAND_STATUS_NOT_INITIALIZED);
    EXPECT(curandDestroyGenerator(NULL) == CURAND_STATUS_NOT_INITIALIZED);
    OK(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_DEFAULT));
    EXPECT(curandSetQuasiRandomGeneratorDimensions(generator, 2) == CURAND_STATUS_TYPE_ERROR);
    EXPECT(curandSetGeneratorOrdering(generator, CURAND_ORDERING_QUASI_DEFAULT) ==
           CURAND_STATUS_OUT_OF_RANGE);
    EXPECT(curandGenerateNormal(generator, (float *)x, 5, 0, 1) == CURAND_STATUS_LENGTH_NOT_MULTIPLE);
    EXPECT(curandGeneratePoisson(generator, x, 8, 0) == CURAND_STATUS_OUT_OF_RANGE);
    EXPECT(curandGenerateLongLong(generator, (Seed *)x, 4) == CURAND_STATUS_TYPE_ERROR);
    OK(curandGenerateSeeds(generator));
    OK(curandGenerate(generator, x, 0));
    OK(curandDestroyGenerator(generator));
    OK(curandCreateGeneratorHost(&generator, CURAND_RNG_QUASI_DEFAULT));
    EXPECT(curandSetPseudoRandomGeneratorSeed(generator, 1) == CURAND_STATUS_TYPE_ERROR);
    EXPECT(curandSetGeneratorOrdering(generator, CURAND_ORDERING_PSEUDO_DEFAULT) ==
           CURAND_STATUS_OUT_OF_RANGE);
    EXPECT(curandSetQuasiRandomGeneratorDimensions(generator, 0) == CURAND_STATUS_OUT_OF_RANGE);
    EXPECT(curandSetQuasiRandomGeneratorDimensions(generator, 20001) == CURAND_STATUS_OUT_OF_RANGE);
    OK(curandDestroyGenerator(generator));
    OK(curandCreateGeneratorHost(&generator, CURAND_RNG_QUASI_SOBOL64));
    EXPECT(curandGenerate(generator, x, 8) == CURAND_STATUS_TYPE_ERROR);
    OK(curandDestroyGenerator(generator));
    OK(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_MTGP32));
    EXPECT(curandSetGeneratorOffset(generator, 1) == CURAND_STATUS_TYPE_ERROR);
    OK(curandDestroyGenerator(generator));
}

// Work in a stream, and in a graph, which continues the sequence each time it runs
TEST(streams_and_graphs) {
    const size_t n = 1000;
    std::vector<unsigned> expected =
        Source(true, CURAND_RNG_PSEUDO_XORWOW, 5, 3 * n).numbers(curandGenerate, 3 * n);
    Source source(false, CURAND_RNG_PSEUDO_XORWOW, 5, n);
    Captured graph;
    OK(curandSetStream(source.generator, graph.stream));
    EXPECT(source.numbers(curandGenerate, n) ==
           std::vector<unsigned>(expected.begin(), expected.begin() + n));
    graph.capture([&] { OK(curandGenerate(source.generator, (unsigned *)source.data, n)); });
    EXPECT(source.get<unsigned>(1)[0] == expected[0]); // captured, not done
    graph.run();
    EXPECT(source.get<unsigned>(n) == std::vector<unsigned>(expected.begin() + n, expected.begin() + 2 * n));
}

// ---- numbers in kernels, also after a jump; their moments are those of the functions above ----

// The first numbers of cuRAND 10.4 (CUDA 13.0) after curand_init(seed, sequence, offset): three integers, a
// uniform number in float and one in double; then approximately two normal numbers, one in double, and a
// log-normal one
struct Draws {
    Seed seed, sequence, offset;
    unsigned integers[3];
    float uniform;
    double uniform_double;
    double normal[4];
};

// clang-format off
static const Draws xorwow[] = {
    {0ull, 0ull, 0ull, {3179217846u, 1883133293u, 2220552389u}, 0.156988621f, 0.46250842073016324, {1.51097095, -0.822750092, -0.456207219, 2.62928367}},
    {16045690984503098046ull, 77ull, 5ull, {321618512u, 3388947496u, 1528814050u}, 0.644343913f, 0.96398657329730275, {-0.567062795, 0.628145576, 0.0249704543, 3.46040273}},
    {42ull, 1099511627776ull, 20015998343868ull, {3676173153u, 2428795665u, 919009737u}, 0.665089369f, 0.62442222155557148, {-1.18764389, -1.06902337, 1.15271718, 5.96748018}},
};
static const Draws philox[] = {
    {0ull, 0ull, 0ull, {1713891541u, 3781805453u, 3159862348u}, 0.605481863f, 0.97224120167084038, {-1.33784282, -0.49182865, 2.17351886, 1.23989296}},
    {16045690984503098046ull, 77ull, 5ull, {2737271297u, 1727129553u, 2550745454u}, 0.898636878f, 0.10467711510136724, {-1.13543069, -0.322903275, -0.741415204, 2.82835507}},
    {42ull, 1099511627776ull, 20015998343868ull, {3655593819u, 4037836639u, 3116769725u}, 0.629761934f, 0.207294468767941, {0.0479106568, -0.165459216, -0.149201067, 3.22664261}},
};
static const Draws mrg32k3a[] = {
    {0ull, 0ull, 0ull, {545508615u, 1368065476u, 1327943825u}, 0.825846851f, 0.22162991583362512, {0.135105282, -1.11298299, 1.08461795, 2.29102135}},
    {16045690984503098046ull, 77ull, 5ull, {3928636350u, 2694769583u, 3333988816u}, 0.871338308f, 0.24880482279700414, {-0.269641668, 0.164918378, 0.781543074, 5.1247077}},
    {42ull, 1099511627776ull, 20015998343868ull, {2450286524u, 1196605502u, 1342159164u}, 0.267706335f, 0.94902688226351017, {-0.172792748, -1.08672142, 1.61825781, 1.6767031}},
};
// clang-format on

template <class State> __global__ void known_numbers(Draws *all) {
    Draws &k = all[threadIdx.x];
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

template <class State> static void check_known(const Draws *expected) {
    const std::vector<Draws> got =
        WRITTEN(Draws, std::vector<Draws>(expected, expected + 3), known_numbers<State><<<1, 3>>>(out));
    for (int i = 0; i < 3; i++) {
        const Draws &g = got[i], &e = expected[i];
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

TEST(numbers_in_kernels_are_curands) {
    check_known<curandState>(xorwow);
    check_known<curandStatePhilox4_32_10_t>(philox);
    check_known<curandStateMRG32k3a>(mrg32k3a);
}

// ---- Sobol' numbers in kernels ----

template <class State> __device__ Seed hash_of_draws(State state) {
    Seed h = 0;
    for (int i = 0; i < 50; i++) {
        const float uniform = curand_uniform(&state);
        const double uniform_double = curand_uniform_double(&state);
        Seed bits = 0, bits_double;
        memcpy(&bits, &uniform, sizeof uniform);
        memcpy(&bits_double, &uniform_double, sizeof uniform_double);
        h = ((h * 1000003 ^ curand(&state)) * 1000003 ^ bits) * 1000003 ^ bits_double;
        if (i % 10 == 0)
            skipahead(1000 + i, &state);
    }
    return h;
}
// Of the 21 first dimensions: the sums of the hashes of 32-bit, 64-bit, and scrambled numbers
__global__ void draw(curandDirectionVectors32_t *v, curandDirectionVectors64_t *w, Seed *sums) {
    curandStateSobol32_t a;
    curandStateSobol64_t b;
    curandStateScrambledSobol32_t c;
    curandStateScrambledSobol64_t d;
    for (int i = 0; i < 21; i++) {
        const unsigned offset = i * 1234567u;
        curand_init(v[i], offset, &a);
        curand_init(w[i], (Seed)offset, &b);
        curand_init(v[i], 0x12345678u, offset, &c);
        curand_init(w[i], (Seed)0x123456789abcdef0, (Seed)offset << 20, &d);
        sums[0] += hash_of_draws(a), sums[1] += hash_of_draws(b);
        sums[2] += hash_of_draws(c), sums[3] += hash_of_draws(d);
    }
}
// n numbers of each of some dimensions, and normal numbers of the first one
__global__ void draw_each(curandDirectionVectors32_t *v, unsigned offset, unsigned *out, float *normal,
                          int n) {
    curandStateSobol32_t state;
    curand_init(v[threadIdx.x], offset, &state);
    for (int i = 0; i < n; i++)
        out[threadIdx.x * n + i] = curand(&state);
    curand_init(v[0], 0u, &state);
    for (int i = 0; i < n && threadIdx.x == 0; i++)
        normal[i] = curand_normal(&state);
}

TEST(sobol_numbers_in_kernels) {
    curandDirectionVectors32_t *v;
    curandDirectionVectors64_t *w;
    OK(curandGetDirectionVectors32(&v, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
    OK(curandGetDirectionVectors64(&w, CURAND_DIRECTION_VECTORS_64_JOEKUO6));
    const Device<unsigned> of_32(std::vector<unsigned>(v[0], v[21]));
    const Device<Seed> of_64(std::vector<Seed>(w[0], w[21]));
    const auto device_v = (curandDirectionVectors32_t *)of_32.data;
    const auto device_w = (curandDirectionVectors64_t *)of_64.data;
    EXPECT(WRITTEN(Seed, 4, draw<<<1, 1>>>(device_v, device_w, out)) ==
           (std::vector<Seed>{12813638159858534843ull, 17015451567255839969ull, 6758604727551118837ull,
                              17177164756460677892ull})); // cuRAND 10.4
    const int n = 100,
              dimensions = 20; // in two calls of a generator, which gives one dimension after the other
    const Device<float> normal(n);
    const Device<unsigned> integers(dimensions * n);
    draw_each<<<1, dimensions>>>(device_v, 7u, integers.data, normal.data, n);
    const std::vector<unsigned> each = integers.host();
    Source source(false, CURAND_RNG_QUASI_SOBOL32, 0, dimensions * n);
    OK(curandSetQuasiRandomGeneratorDimensions(source.generator, dimensions));
    source.restart(7);
    for (int call = 0; call < 2; call++)
        EXPECT(source.numbers(curandGenerate, dimensions * n / 2) == made(dimensions * n / 2, [&](int i) {
                   return each[i / (n / 2) * n + call * n / 2 + i % (n / 2)];
               }));
    const std::vector<float> expected =
        Source(true, CURAND_RNG_QUASI_SOBOL32, 0, n).numbers(curandGenerateNormal, n, 0.0f, 1.0f);
    for (int i = 0; i < n; i++)
        EXPECT(fabs(normal.host()[i] - expected[i]) < 1e-5 * (1 + fabs(expected[i])));
}

// The numbers of a quasirandom generator follow from its direction vectors and constants, and the first 2^10
// of a dimension lie in different intervals of the length 2^-10.
template <class T, class Vectors>
static void check_scrambled(curandRngType_t type, curandDirectionVectorSet_t set,
                            curandStatus_t (*vectors_of)(Vectors **, curandDirectionVectorSet_t),
                            curandStatus_t (*constants_of)(T **),
                            curandStatus_t (*generate)(curandGenerator_t, T *, size_t)) {
    const unsigned dimensions = 21, n = 1 << 10, shift = 8 * sizeof(T) - 10;
    Vectors *v;
    T *constants = NULL;
    OK(vectors_of(&v, set));
    if (constants_of)
        OK(constants_of(&constants));
    Source source(false, type, 0, dimensions * n);
    OK(curandSetQuasiRandomGeneratorDimensions(source.generator, dimensions));
    const std::vector<T> all = source.numbers(generate, dimensions * n);
    for (unsigned d = 0; d < dimensions; d++) {
        std::vector<bool> seen(n);
        T x = constants ? constants[d] : 0;
        for (unsigned i = 0; i < n; x ^= v[d][__builtin_ctz(++i)]) {
            seen[all[d * n + i] >> shift] = true;
            if (all[d * n + i] != x && !EXPECT(!"the number is that of the vectors"))
                return;
        }
        EXPECT(std::count(seen.begin(), seen.end(), true) == n);
    }
}
TEST(scrambled_and_long_sobol_numbers) {
    check_scrambled(CURAND_RNG_QUASI_SCRAMBLED_SOBOL32, CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6,
                    curandGetDirectionVectors32, curandGetScrambleConstants32, curandGenerate);
    check_scrambled(CURAND_RNG_QUASI_SCRAMBLED_SOBOL64, CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6,
                    curandGetDirectionVectors64, curandGetScrambleConstants64, curandGenerateLongLong);
    check_scrambled<Seed, curandDirectionVectors64_t>(
        CURAND_RNG_QUASI_SOBOL64, CURAND_DIRECTION_VECTORS_64_JOEKUO6, curandGetDirectionVectors64, NULL,
        curandGenerateLongLong);
}

// The first number; the others are not cuRAND's.
TEST(mt19937) {
    EXPECT(Source(true, CURAND_RNG_PSEUDO_MT19937, 0, 1).numbers(curandGenerate, 1)[0] == 2357136044u);
}
