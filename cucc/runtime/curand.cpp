// SPDX-License-Identifier: MIT
/*
 * cuRAND's host API. A pseudorandom generator draws from many sequences in turn, as the threads of cuRAND's
 * kernels do: XORWOW and MRG32k3a one number from each sequence, Philox four. The numbers of sequences and
 * the order were found from cuRAND's output. MTGP32 draws 256 numbers from each of 192 sequences in turn.
 *
 *     Sobol' numbers: Bratley and Fox, Algorithm 659, 1988; the direction numbers are those of Joe and Kuo,
 *     Constructing Sobol sequences with better two-dimensional projections, 2008 (new-joe-kuo-6).
 */
#define CUDA_CPU_ENGINE // declares the functions for kernels
#include <curand_kernel.h>
#include "mtgp32.h"
#include "cuda_cpu/library.h"
#include "device.h"

#include <cmath>
#include <random>
#include <sys/mman.h>
#include <variant>

// The Mersenne Twisters, as states for the functions of kernels
struct SequenceOfMtgp32 {
    unsigned s[cuda_cpu::mtgp::state_words], used, index;
};
static unsigned curand(SequenceOfMtgp32 *state) {
    return cuda_cpu::mtgp::number(state->s, state->used++, cuda_cpu::mtgp::of_sequence[state->index]);
}
struct SequenceOfMt19937 : std::mt19937 {
    using std::mt19937::mt19937;
};
static unsigned curand(SequenceOfMt19937 *state) {
    return (unsigned)(*state)();
}
CUDA_CPU_QUASI(SequenceOfMtgp32)
CUDA_CPU_QUASI(SequenceOfMt19937)

namespace cuda_cpu {
namespace {

// ---- distributions ----

// True for the states whose normal numbers are made in pairs
template <class State>
constexpr bool in_pairs =
    std::is_same_v<State, curandStateXORWOW_t> || std::is_same_v<State, curandStateMRG32k3a_t>;

// Each has: Out; one(state), or two(state) if `pairs` and the state is of that kind, which return the next
// numbers; and four(state) for Philox. If `pairs`, generate() refuses an odd count for such states.

#define DISTRIBUTION(Name, T, number, numbers)                                                               \
    struct Name {                                                                                            \
        typedef T Out;                                                                                       \
        static constexpr bool pairs = false;                                                                 \
        template <class State> T one(State &s) const { return number(&s); }                                  \
        auto four(curandStatePhilox4_32_10_t &s) const { return numbers(&s); }                               \
    };
DISTRIBUTION(Integers, unsigned, curand, curand4)
DISTRIBUTION(LongIntegers, unsigned long long, curand, curand4) // only for 64-bit Sobol' numbers
DISTRIBUTION(Uniform, float, curand_uniform, curand_uniform4)
DISTRIBUTION(UniformDouble, double, curand_uniform_double, curand_uniform4_double)

// Normal and log-normal numbers. The mean and deviation of log-normal numbers are those of their logarithms.
template <class T, bool log> struct Normal {
    typedef T Out;
    static constexpr bool pairs = true;
    T mean, deviation;

    T scaled(T x) const {
        const T y = mean + deviation * x;
        return log ? std::exp(y) : y;
    }
    template <class State> std::array<T, 2> two(State &s) const {
        if constexpr (sizeof(T) == 4) {
            const float2 x = curand_normal2(&s);
            return {scaled(x.x), scaled(x.y)};
        } else {
            const double2 x = curand_normal2_double(&s);
            return {scaled(x.x), scaled(x.y)};
        }
    }
    auto four(curandStatePhilox4_32_10_t &s) const {
        const std::array<T, 2> a = two(s), b = two(s);
        if constexpr (sizeof(T) == 4)
            return float4{a[0], a[1], b[0], b[1]};
        else
            return double4{a[0], a[1], b[0], b[1]};
    }
    template <class State> T one(State &s) const {
        return scaled(sizeof(T) == 4 ? (T)curand_normal(&s) : (T)curand_normal_double(&s));
    }
};

struct Poisson {
    typedef unsigned Out;
    static constexpr bool pairs = false;
    double mean;
    std::vector<double> below; // for the other states: below[k] is the probability of at most k

    Poisson(double mean, bool several) : mean(mean) {
        if (several) // a Poisson number takes several numbers
            return;
        double sum = 0;
        int sign; // lgamma() would store it in a global variable
        for (int k = 0; k < mean || sum < 1 - 0x1p-50; ++k) {
            const double p = std::exp(k * std::log(mean) - mean - lgamma_r(k + 1.0, &sign));
            if (k > mean && p < 0x1p-60)
                break;
            below.push_back(sum += p);
        }
    }
    uint4 four(curandStatePhilox4_32_10_t &s) const { return curand_poisson4(&s, mean); }
    template <class State> Out one(State &s) const {
        if constexpr (in_pairs<State>)
            return curand_poisson(&s, mean);
        const auto x = curand(&s);
        const double u = (unsigned)(x >> (8 * sizeof x - 32)) * 0x1p-32 + 0x1p-33;
        return (Out)(std::lower_bound(below.begin(), below.end(), u) - below.begin());
    }
};

// ---- sequences ----

// XORWOW and MRG32k3a: each sequence in turn gives a number or pair, beginning with sequence 0.
template <class State> struct SequencesInTurn {
    std::vector<State> states;
    size_t next;

    // Starts after `position` numbers.
    SequencesInTurn(unsigned long long seed, size_t sequences, unsigned long long position)
        : states(sequences), next(position % sequences) {
        State first;
        curand_init(seed, 0, position / sequences, &first);
        begin(first);
        State *const s = states.data();
        for (size_t i = 0; i < next; ++i) // these have given one number more
            curand(&s[i]);
    }
    void begin(const curandStateXORWOW_t &first) {
        states[0] = first;
        for (size_t i = 1; i < states.size(); ++i) {
            states[i] = states[i - 1];
            skipahead_sequence(1, &states[i]);
        }
    }
    void begin(const curandStateMRG32k3a_t &first) {
        mrg::Matrix a = mrg::step1, b = mrg::step2;
        for (int k = 0; k < 76; ++k) // sequences are 2^76 numbers apart
            a = mrg::product(a, a, mrg::m1), b = mrg::product(b, b, mrg::m2);
        states[0] = first;
        for (size_t i = 1; i < states.size(); ++i) {
            states[i] = states[i - 1];
            mrg::jump(states[i].s1, a, mrg::m1, 1, 0);
            mrg::jump(states[i].s2, b, mrg::m2, 1, 0);
        }
    }
    template <class Distribution>
    void fill(typename Distribution::Out *out, size_t count, const Distribution &distribution) {
        const size_t step = Distribution::pairs ? 2 : 1;
        for (size_t i = 0; i < count; i += step) {
            State &state = states[next];
            if constexpr (Distribution::pairs) {
                const auto pair = distribution.two(state);
                out[i] = pair[0], out[i + 1] = pair[1];
            } else {
                out[i] = distribution.one(state);
            }
            if (++next == states.size())
                next = 0;
        }
    }
};

// Philox: sequence 0 gives the first four numbers, sequence 1 the next four, and so on, in turn. A call may
// end within four numbers; then the next one, perhaps with another distribution, begins within them.
struct PhiloxSequences {
    unsigned long long seed, position;
    std::vector<unsigned long long> blocks; // used by each sequence; a block is four integers

    PhiloxSequences(unsigned long long seed, size_t sequences, unsigned long long position)
        : seed(seed), position(position), blocks(sequences) {
        for (size_t i = 0; i < sequences; ++i)
            blocks[i] = position / 4 / sequences + (i < position / 4 % sequences);
    }
    template <class Distribution>
    void fill(typename Distribution::Out *out, size_t count, const Distribution &distribution) {
        while (count > 0) {
            const size_t sequence = position / 4 % blocks.size(), first = position % 4,
                         n = std::min<size_t>(4 - first, count);
            unsigned long long &used = blocks[sequence];
            curandStatePhilox4_32_10_t state = {};
            state.key = {(unsigned)seed, (unsigned)(seed >> 32)};
            state.ctr = {(unsigned)used, (unsigned)(used >> 32), (unsigned)sequence, 0};
            state.output = philox(state.ctr, state.key);
            const auto four = distribution.four(state);
            std::copy_n(&four.x + first, n, out);
            out += n, count -= n, position += n;
            if (position % 4 == 0)
                used = ((unsigned long long)state.ctr.y << 32 | state.ctr.x) + (state.STATE > 0);
        }
    }
};

// MTGP32, and one sequence of MT19937. They start after `position` numbers.
struct Mtgp32 {
    std::vector<SequenceOfMtgp32> sequences{192};
    size_t position = 0;

    Mtgp32(unsigned long long seed, unsigned long long first) {
        for (unsigned i = 0; i < sequences.size(); ++i) {
            mtgp::begin(sequences[i].s, mtgp::of_sequence[i], (unsigned)(seed ^ seed >> 32) + i + 1);
            sequences[i].index = i;
        }
        for (unsigned number; position < first;)
            fill(&number, 1, Integers());
    }
    template <class Distribution>
    void fill(typename Distribution::Out *out, size_t count, const Distribution &distribution) {
        for (size_t i = 0; i < count; ++i)
            out[i] = distribution.one(sequences[position++ / 256 % sequences.size()]);
    }
};
struct Mt19937 {
    SequenceOfMt19937 sequence;

    Mt19937(unsigned long long seed, unsigned long long first) : sequence((unsigned)(seed ^ seed >> 32)) {
        sequence.discard(first);
    }
    template <class Distribution>
    void fill(typename Distribution::Out *out, size_t count, const Distribution &distribution) {
        std::generate_n(out, count, [&] { return distribution.one(sequence); });
    }
};

// From the second dimension on: degree, coefficients between the first and the last one, direction numbers
struct JoeKuo {
    unsigned char degree, coefficients, numbers[7];
};
// clang-format off
const JoeKuo joe_kuo[] = {
    {1, 0, {1}}, {2, 1, {1, 3}}, {3, 1, {1, 3, 1}}, {3, 2, {1, 1, 1}}, {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}}, {5, 2, {1, 1, 5, 5, 17}}, {5, 4, {1, 1, 5, 5, 5}}, {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}}, {5, 13, {1, 1, 1, 3, 11}}, {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}}, {6, 13, {1, 1, 1, 15, 21, 21}}, {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}}, {6, 22, {1, 3, 1, 15, 13, 25}}, {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}}, {7, 4, {1, 3, 7, 13, 13, 15, 69}}
};
// clang-format on
const unsigned max_dimensions = 1 + sizeof joe_kuo / sizeof *joe_kuo;

// Pseudorandom bits for scrambling, the same in each run (splitmix64)
unsigned long long bits_for(unsigned dimension, unsigned number) {
    unsigned long long x = (dimension * 128ull + number + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// The direction vectors of a dimension, of 32 or 64 bits. Scrambling multiplies each with a triangular matrix
// of random bits: each digit of a number then depends on the digits before it, and the numbers stay a Sobol'
// sequence. (Matoušek, On the L2-discrepancy for anchored boxes, 1998)
template <class T, int bits> void directions(unsigned dimension, bool scrambled, T (&v)[bits]) {
    for (int i = 0; i < bits; ++i)
        v[i] = (T)1 << (bits - 1 - i);
    const JoeKuo &p = joe_kuo[dimension ? dimension - 1 : 0];
    for (int i = 0; dimension && i < bits; ++i) {
        if (i < p.degree) {
            v[i] = (T)p.numbers[i] << (bits - 1 - i);
            continue;
        }
        v[i] = v[i - p.degree] ^ v[i - p.degree] >> p.degree;
        for (int k = 1; k < p.degree; ++k)
            if (p.coefficients >> (p.degree - 1 - k) & 1)
                v[i] ^= v[i - k];
    }
    for (int i = 0; scrambled && i < bits; ++i) {
        T product = 0;
        for (int k = 0; k < bits; ++k)
            if (v[i] >> k & 1)
                product ^= (T)1 << k | ((T)bits_for(dimension, k) & (((T)1 << k) - 1));
        v[i] = product;
    }
}
template <class T> T scramble(unsigned dimension) { // is added (xor) to all numbers of the dimension
    return (T)bits_for(dimension, 127);
}

// The values of `make` for our dimensions. A page without access follows: cuRAND has 20000 dimensions.
template <class Value, class Make> curandStatus_t of_all_dimensions(Value **values, Make make) {
    static Value *const all = [make] {
        const size_t bytes = max_dimensions * sizeof(Value), page = (size_t)sysconf(_SC_PAGESIZE),
                     pages = (bytes + page - 1) / page * page;
        char *const memory =
            (char *)mmap(nullptr, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory + pages, page, PROT_NONE))
            return (Value *)nullptr;
        Value *const first = (Value *)(memory + pages - bytes);
        for (unsigned d = 0; d < max_dimensions; ++d)
            make(d, first[d]);
        return first;
    }();
    *values = all;
    return all ? CURAND_STATUS_SUCCESS : CURAND_STATUS_ALLOCATION_FAILED;
}

template <class State> struct Sobol { // State: of scrambled numbers; for others the constant is 0
    unsigned dimensions;
    bool scrambled;
    unsigned long long position;

    template <class Distribution>
    void fill(typename Distribution::Out *out, size_t count, const Distribution &distribution) {
        typedef decltype(State::x) T;
        const size_t n = count / dimensions;
        for (unsigned d = 0; d < dimensions; ++d) {
            T v[8 * sizeof(T)];
            directions(d, scrambled, v);
            State state;
            curand_init(v, scrambled ? scramble<T>(d) : 0, (T)position, &state);
            std::generate_n(out + d * n, n, [&] { return distribution.one(state); });
        }
        position += n;
    }
};

// ---- generators ----

// The numbers of a generator with one seed and ordering. Made by the first call that needs them; work that
// waits in a stream or is in a graph keeps them after the generator's settings change.
struct GeneratorNumbers {
    using Sequences =
        std::variant<SequencesInTurn<curandStateXORWOW_t>, SequencesInTurn<curandStateMRG32k3a_t>,
                     PhiloxSequences, Mtgp32, Mt19937, Sobol<curandStateScrambledSobol32_t>,
                     Sobol<curandStateScrambledSobol64_t>>;
    std::mutex mutex;
    Sequences sequences;

    explicit GeneratorNumbers(Sequences made) : sequences(std::move(made)) {}

    template <class Distribution>
    void fill(typename Distribution::Out *out, size_t count, const Distribution &distribution) {
        std::lock_guard lock(mutex);
        std::visit([&](auto &one) { one.fill(out, count, distribution); }, sequences);
    }
};

} // namespace
} // namespace cuda_cpu

struct curandGenerator_st {
    curandRngType_t type;
    bool host, legacy = false;
    cudaStream_t stream = nullptr;
    unsigned long long seed = 0, position = 0;
    unsigned dimensions = 1;
    std::shared_ptr<cuda_cpu::GeneratorNumbers> numbers{};

    bool quasi() const { return type >= CURAND_RNG_QUASI_SOBOL32; }
    bool long_numbers() const { return type >= CURAND_RNG_QUASI_SOBOL64; }
    bool scrambled() const {
        return type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 || type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
    }
    bool in_pairs() const { return type == CURAND_RNG_PSEUDO_XORWOW || type == CURAND_RNG_PSEUDO_MRG32K3A; }
    bool twister() const { return type == CURAND_RNG_PSEUDO_MTGP32 || type == CURAND_RNG_PSEUDO_MT19937; }
};

// Ends a call with an error unless the condition is true.
#define REQUIRE(condition, error)                                                                            \
    if (!(condition))                                                                                        \
    return CURAND_STATUS_##error

namespace cuda_cpu {
namespace {

curandStatus_t create(curandGenerator_t *generator, curandRngType_t type, bool host) {
    REQUIRE(generator, OUT_OF_RANGE);
    *generator = nullptr;
    if (type == CURAND_RNG_PSEUDO_DEFAULT)
        type = CURAND_RNG_PSEUDO_XORWOW;
    if (type == CURAND_RNG_QUASI_DEFAULT)
        type = CURAND_RNG_QUASI_SOBOL32;
    REQUIRE((std::set{CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A, CURAND_RNG_PSEUDO_MTGP32,
                      CURAND_RNG_PSEUDO_MT19937, CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_QUASI_SOBOL32,
                      CURAND_RNG_QUASI_SCRAMBLED_SOBOL32, CURAND_RNG_QUASI_SOBOL64,
                      CURAND_RNG_QUASI_SCRAMBLED_SOBOL64}
                 .count(type)),
            TYPE_ERROR);
    REQUIRE(host || cudaFree(nullptr) == cudaSuccess, INITIALIZATION_FAILED); // no device
    *generator = new curandGenerator_st{type, host};
    return CURAND_STATUS_SUCCESS;
}

GeneratorNumbers::Sequences new_sequences(const curandGenerator_st &g) {
    switch (g.type) {
    case CURAND_RNG_PSEUDO_XORWOW:
        return SequencesInTurn<curandStateXORWOW_t>(g.seed, 4096, g.position);
    case CURAND_RNG_PSEUDO_MRG32K3A:
        return SequencesInTurn<curandStateMRG32k3a_t>(g.seed, g.legacy ? 4096 : 81920, g.position);
    case CURAND_RNG_PSEUDO_PHILOX4_32_10:
        return PhiloxSequences(g.seed, 65536, g.position);
    case CURAND_RNG_PSEUDO_MTGP32:
        return Mtgp32(g.seed, g.position);
    case CURAND_RNG_PSEUDO_MT19937:
        return Mt19937(g.seed, g.position);
    default:
        if (g.long_numbers())
            return Sobol<curandStateScrambledSobol64_t>{g.dimensions, g.scrambled(), g.position};
        return Sobol<curandStateScrambledSobol32_t>{g.dimensions, g.scrambled(), g.position};
    }
}

template <class Distribution>
curandStatus_t generate(const char *call, curandGenerator_t generator, typename Distribution::Out *out,
                        size_t count, Distribution distribution) {
    REQUIRE((std::is_same_v<Distribution, LongIntegers>)
                ? generator->long_numbers()
                : !(std::is_same_v<Distribution, Integers> && generator->long_numbers()),
            TYPE_ERROR);
    const bool pairs = Distribution::pairs && generator->in_pairs();
    const unsigned whole = generator->quasi() ? generator->dimensions : pairs ? 2 : 1;
    REQUIRE(count % whole == 0, LENGTH_NOT_MULTIPLE);
    if (count == 0)
        return CURAND_STATUS_SUCCESS;
    std::shared_ptr<GeneratorNumbers> &numbers = generator->numbers;
    if (!numbers)
        numbers = std::make_shared<GeneratorNumbers>(new_sequences(*generator));
    generator->position += count / whole;
    const auto work = [numbers = numbers, out, count, distribution] {
        numbers->fill(out, count, distribution);
    };
    if (generator->host)
        work();
    else if (library_call(call, generator->stream, work) != cudaSuccess)
        return CURAND_STATUS_LAUNCH_FAILURE;
    return CURAND_STATUS_SUCCESS;
}

} // namespace
} // namespace cuda_cpu

#define REQUIRE_GENERATOR REQUIRE(generator, NOT_INITIALIZED)
#define SIMPLE(name, parameters, change)                                                                     \
    curandStatus_t curand##name parameters {                                                                 \
        REQUIRE_GENERATOR;                                                                                   \
        change;                                                                                              \
        return CURAND_STATUS_SUCCESS;                                                                        \
    }

curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type) {
    return create(generator, type, false);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t type) {
    return create(generator, type, true);
}
SIMPLE(DestroyGenerator, (curandGenerator_t generator), delete generator)
SIMPLE(SetStream, (curandGenerator_t generator, cudaStream_t stream), generator->stream = stream)
// Settings that change the numbers: which generators have it, permitted values, and the change
#define SETTING(name, parameter, has, permitted, change)                                                     \
    curandStatus_t curandSet##name(curandGenerator_t generator, parameter) {                                 \
        REQUIRE_GENERATOR;                                                                                   \
        REQUIRE(has, TYPE_ERROR);                                                                            \
        REQUIRE(permitted, OUT_OF_RANGE);                                                                    \
        change;                                                                                              \
        generator->numbers = nullptr;                                                                        \
        return CURAND_STATUS_SUCCESS;                                                                        \
    }
SETTING(PseudoRandomGeneratorSeed, unsigned long long seed, !generator->quasi(), true, generator->seed = seed)
SETTING(GeneratorOffset, unsigned long long offset, !generator->twister(), true, generator->position = offset)
SETTING(GeneratorOrdering, curandOrdering_t order, true,
        generator->quasi()
            ? order == CURAND_ORDERING_QUASI_DEFAULT
            : order == CURAND_ORDERING_PSEUDO_BEST || order == CURAND_ORDERING_PSEUDO_DEFAULT ||
                  order == CURAND_ORDERING_PSEUDO_LEGACY || order == CURAND_ORDERING_PSEUDO_DYNAMIC,
        generator->legacy = order == CURAND_ORDERING_PSEUDO_LEGACY)
SETTING(QuasiRandomGeneratorDimensions, unsigned dimensions, generator->quasi(),
        dimensions >= 1 && dimensions <= max_dimensions, generator->dimensions = dimensions)
SIMPLE(GenerateSeeds, (curandGenerator_t generator), (void)0)

#define DIRECTIONS(bits, T)                                                                                  \
    curandStatus_t curandGetDirectionVectors##bits(curandDirectionVectors##bits##_t *vectors[],              \
                                                   curandDirectionVectorSet_t set) {                         \
        REQUIRE(vectors, OUT_OF_RANGE);                                                                      \
        if (set == CURAND_DIRECTION_VECTORS_##bits##_JOEKUO6)                                                \
            return of_all_dimensions(vectors, [](unsigned d, T(&v)[bits]) { directions(d, false, v); });     \
        if (set == CURAND_SCRAMBLED_DIRECTION_VECTORS_##bits##_JOEKUO6)                                      \
            return of_all_dimensions(vectors, [](unsigned d, T(&v)[bits]) { directions(d, true, v); });      \
        return CURAND_STATUS_OUT_OF_RANGE;                                                                   \
    }                                                                                                        \
    curandStatus_t curandGetScrambleConstants##bits(T **constants) {                                         \
        return constants ? of_all_dimensions(constants, [](unsigned d, T &x) { x = scramble<T>(d); })        \
                         : CURAND_STATUS_OUT_OF_RANGE;                                                       \
    }
DIRECTIONS(32, unsigned)
DIRECTIONS(64, unsigned long long)

#define GENERATE(Name, parameters, ...)                                                                      \
    curandStatus_t curandGenerate##Name parameters {                                                         \
        REQUIRE_GENERATOR;                                                                                   \
        return generate(__func__, generator, out, count, __VA_ARGS__);                                       \
    }
#define OUTPUT(T) curandGenerator_t generator, T *out, size_t count
GENERATE(, (OUTPUT(unsigned)), Integers())
GENERATE(LongLong, (OUTPUT(unsigned long long)), LongIntegers())
GENERATE(Uniform, (OUTPUT(float)), Uniform())
GENERATE(UniformDouble, (OUTPUT(double)), UniformDouble())
GENERATE(Normal, (OUTPUT(float), float mean, float deviation), Normal<float, false>{mean, deviation})
GENERATE(NormalDouble, (OUTPUT(double), double mean, double deviation),
         Normal<double, false>{mean, deviation})
GENERATE(LogNormal, (OUTPUT(float), float mean, float deviation), Normal<float, true>{mean, deviation})
GENERATE(LogNormalDouble, (OUTPUT(double), double mean, double deviation),
         Normal<double, true>{mean, deviation})

curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned *out, size_t count, double mean) {
    REQUIRE_GENERATOR;
    REQUIRE(mean > 0, OUT_OF_RANGE);
    return generate(
        __func__, generator, out, count,
        Poisson(mean, generator->in_pairs() || generator->type == CURAND_RNG_PSEUDO_PHILOX4_32_10));
}
