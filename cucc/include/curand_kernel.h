// SPDX-License-Identifier: MIT
/*
 * cuRAND's generators for kernels: XORWOW (curandState), Philox4x32-10, MRG32k3a and Sobol' numbers; what
 * agrees with cuRAND is in docs/libraries.md. The constants of seeding were found from its output.
 *
 *     XORWOW: Marsaglia, Xorshift RNGs, 2003.  Philox: Salmon et al., Parallel random numbers: as easy as 1,
 * 2, 3, 2011. MRG32k3a: L'Ecuyer, Good parameters for combined multiple recursive random number generators,
 * 1999.
 */
#pragma once
#include "cuda_cpu/letters_off.h"
#include "cuda_runtime.h"
#include "curand.h"

namespace cuda_cpu {
// Normal numbers are made in pairs. The second one of a pair is kept for the next call of the same function;
// a call of another function for normal numbers drops it.
enum class Kept : unsigned char { none, normal, log_normal };
struct KeptNumbers {
    Kept kind, kind_double;
    float one;
    double one_double;
};
} // namespace cuda_cpu

struct curandStateXORWOW {
    unsigned int d, v[5];
    cuda_cpu::KeptNumbers kept;
};
struct curandStatePhilox4_32_10 {
    uint4 ctr, output;
    uint2 key;
    unsigned int STATE; // index of the next component of `output`
    cuda_cpu::KeptNumbers kept;
};
struct curandStateMRG32k3a {
    unsigned int s1[3], s2[3];
    cuda_cpu::KeptNumbers kept;
};
typedef struct curandStateXORWOW curandStateXORWOW_t, curandState, curandState_t;
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef struct curandStateMRG32k3a curandStateMRG32k3a_t;

#define CUDA_CPU_SOBOL_STATE(name, T, bits)                                                                  \
    typedef struct name {                                                                                    \
        T i, x, c;                                                                                           \
        T direction_vectors[bits];                                                                           \
    } name##_t;
CUDA_CPU_SOBOL_STATE(curandStateSobol32, unsigned int, 32)
CUDA_CPU_SOBOL_STATE(curandStateSobol64, unsigned long long, 64)
CUDA_CPU_SOBOL_STATE(curandStateScrambledSobol32, unsigned int, 32)
CUDA_CPU_SOBOL_STATE(curandStateScrambledSobol64, unsigned long long, 64)

// The functions are for kernels; host sources have the states.
#if defined(__CUDACC__) || defined(CUDA_CPU_ENGINE)
#include <array>

// ---- XORWOW: five words of xorshift, which is linear over the bits, and a counter ----

namespace cuda_cpu::xorwow {

typedef std::array<unsigned int, 5> Bits; // 160 bits

inline void step(unsigned int *v) {
    const unsigned int t = v[0] ^ v[0] >> 2;
    for (int i = 0; i < 4; ++i)
        v[i] = v[i + 1];
    v[4] ^= v[4] << 4 ^ t ^ t << 1;
}

// The effect of 2^k steps on each bit of the state. It is linear: jump() adds (xor) images of the set bits.
struct Jumps {
    std::array<Bits, 160> powers[131];

    static Bits image(const std::array<Bits, 160> &of, const Bits &v) {
        Bits sum = {};
        for (int word = 0; word < 5; ++word)
            for (unsigned int left = v[word]; left; left &= left - 1) {
                const Bits &one = of[32 * word + __builtin_ctz(left)];
                for (int i = 0; i < 5; ++i)
                    sum[i] ^= one[i];
            }
        return sum;
    }
    Jumps() {
        for (int bit = 0; bit < 160; ++bit) {
            Bits v = {};
            v[bit / 32] = 1u << bit % 32;
            step(v.data());
            powers[0][bit] = v;
        }
        for (int k = 1; k < 131; ++k)
            for (int bit = 0; bit < 160; ++bit)
                powers[k][bit] = image(powers[k - 1], powers[k - 1][bit]);
    }
};

// Advances the state by n 2^first steps.
inline void jump(curandStateXORWOW &state, unsigned long long n, int first) {
    static const Jumps &jumps = *new Jumps; // computed once, by the first call
    Bits v = {state.v[0], state.v[1], state.v[2], state.v[3], state.v[4]};
    for (int k = first; n; ++k, n >>= 1)
        if (n & 1)
            v = Jumps::image(jumps.powers[k], v);
    for (int i = 0; i < 5; ++i)
        state.v[i] = v[i];
}

} // namespace cuda_cpu::xorwow

inline unsigned int curand(curandStateXORWOW_t *state) {
    cuda_cpu::xorwow::step(state->v);
    state->d += 362437;
    return state->v[4] + state->d;
}
inline void skipahead(unsigned long long n, curandStateXORWOW_t *state) {
    if (n)
        cuda_cpu::xorwow::jump(*state, n, 0);
    state->d += 362437 * (unsigned int)n;
}
// Sequences are 2^67 numbers apart.
inline void skipahead_sequence(unsigned long long n, curandStateXORWOW_t *state) {
    if (n)
        cuda_cpu::xorwow::jump(*state, n, 67);
}
inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                        curandStateXORWOW_t *state) {
    const unsigned int a = 1099087573u * ((unsigned int)seed ^ 0xaad26b49);
    const unsigned int b = 2591861531u * ((unsigned int)(seed >> 32) ^ 0xf7dcefdd);
    *state = {6615241 + a + b, {123456789 + a, 362436069 ^ a, 521288629 + b, 88675123 ^ b, 5783321 + a}, {}};
    skipahead_sequence(sequence, state);
    skipahead(offset, state);
}

// ---- Philox: a counter and a key, mixed in ten rounds ----

namespace cuda_cpu {
inline uint4 philox(uint4 c, uint2 key) {
    for (int round = 0; round < 10; ++round) {
        const unsigned long long p = 0xd2511f53ull * c.x, q = 0xcd9e8d57ull * c.z;
        c = {(unsigned int)(q >> 32) ^ c.y ^ key.x, (unsigned int)q, (unsigned int)(p >> 32) ^ c.w ^ key.y,
             (unsigned int)p};
        key.x += 0x9e3779b9, key.y += 0xbb67ae85;
    }
    return c;
}
inline void advance(uint4 &counter, unsigned long long n) {
    const unsigned long long low = (unsigned long long)counter.y << 32 | counter.x, sum = low + n;
    counter.x = (unsigned int)sum, counter.y = (unsigned int)(sum >> 32);
    if (sum < low && ++counter.z == 0)
        ++counter.w;
}
} // namespace cuda_cpu

inline unsigned int curand(curandStatePhilox4_32_10_t *state) {
    const unsigned int result = (&state->output.x)[state->STATE];
    if (++state->STATE == 4) {
        state->STATE = 0;
        cuda_cpu::advance(state->ctr, 1);
        state->output = cuda_cpu::philox(state->ctr, state->key);
    }
    return result;
}
inline uint4 curand4(curandStatePhilox4_32_10_t *state) {
    const unsigned int x = curand(state), y = curand(state), z = curand(state);
    return {x, y, z, curand(state)};
}
inline void skipahead(unsigned long long n, curandStatePhilox4_32_10_t *state) {
    state->STATE += (unsigned int)(n & 3);
    cuda_cpu::advance(state->ctr, n / 4 + state->STATE / 4);
    state->STATE %= 4;
    state->output = cuda_cpu::philox(state->ctr, state->key);
}
// The sequence is the upper half of the counter.
inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t *state) {
    const unsigned long long sum = ((unsigned long long)state->ctr.w << 32 | state->ctr.z) + n;
    state->ctr.z = (unsigned int)sum, state->ctr.w = (unsigned int)(sum >> 32);
    state->output = cuda_cpu::philox(state->ctr, state->key);
}
inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                        curandStatePhilox4_32_10_t *state) {
    *state = {};
    state->key = {(unsigned int)seed, (unsigned int)(seed >> 32)};
    skipahead_sequence(sequence, state);
    skipahead(offset, state);
}

// ---- MRG32k3a: two recursions of order three, modulo two primes ----

namespace cuda_cpu::mrg {

constexpr unsigned long long m1 = 4294967087, m2 = 4294944443;
typedef std::array<std::array<unsigned long long, 3>, 3> Matrix;

inline Matrix product(const Matrix &a, const Matrix &b, unsigned long long m) {
    Matrix c = {};
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 3; ++k)
                c[i][j] = (c[i][j] + a[i][k] * b[k][j] % m) % m;
    return c;
}

// Advances the state by n 2^first steps.
inline void jump(unsigned int *s, Matrix a, unsigned long long m, unsigned long long n, int first) {
    for (int k = 0; k < first; ++k)
        a = product(a, a, m);
    for (; n; n >>= 1, a = product(a, a, m)) {
        if (!(n & 1))
            continue;
        const unsigned long long old[] = {s[0], s[1], s[2]};
        for (int i = 0; i < 3; ++i)
            s[i] = (unsigned int)((a[i][0] * old[0] % m + a[i][1] * old[1] % m + a[i][2] * old[2] % m) % m);
    }
}

// One step of each recursion
const Matrix step1 = {{{0, 1, 0}, {0, 0, 1}, {m1 - 810728, 1403580, 0}}};
const Matrix step2 = {{{0, 1, 0}, {0, 0, 1}, {m2 - 1370589, 0, 527612}}};

inline void jump(curandStateMRG32k3a &state, unsigned long long n, int first) {
    jump(state.s1, step1, m1, n, first);
    jump(state.s2, step2, m2, n, first);
}

// The next number, an integer from 1 to m1.
inline double next(curandStateMRG32k3a &state) {
    unsigned int *const s = state.s1, *const t = state.s2;
    const unsigned int a = (unsigned int)((1403580ull * s[1] + 810728ull * (m1 - s[0])) % m1);
    const unsigned int b = (unsigned int)((527612ull * t[2] + 1370589ull * (m2 - t[0])) % m2);
    s[0] = s[1], s[1] = s[2], s[2] = a;
    t[0] = t[1], t[1] = t[2], t[2] = b;
    return a <= b ? (double)(a + m1 - b) : (double)(a - b);
}

} // namespace cuda_cpu::mrg

CUDA_CPU_RETURN(unsigned int, curand, (curandStateMRG32k3a_t * state),
                (unsigned int)(cuda_cpu::mrg::next(*state) * 1.000000048662))
CUDA_CPU_RETURN(void, skipahead, (unsigned long long n, curandStateMRG32k3a_t *state),
                cuda_cpu::mrg::jump(*state, n, 0))
// Sequences are 2^127 numbers apart, subsequences 2^76.
CUDA_CPU_RETURN(void, skipahead_subsequence, (unsigned long long n, curandStateMRG32k3a_t *state),
                cuda_cpu::mrg::jump(*state, n, 76))
CUDA_CPU_RETURN(void, skipahead_sequence, (unsigned long long n, curandStateMRG32k3a_t *state),
                cuda_cpu::mrg::jump(*state, n, 127))
inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                        curandStateMRG32k3a_t *state) {
    using namespace cuda_cpu::mrg;
    const unsigned long long a = seed ? (unsigned int)seed ^ 0x55555555u : 1;
    const unsigned long long b = seed ? (unsigned int)(seed >> 32) ^ 0xaaaaaaaau : 1;
    *state = {};
    for (int i = 0; i < 3; ++i) {
        state->s1[i] = (unsigned int)((i == 1 ? b : a) * 12345 % m1);
        state->s2[i] = (unsigned int)((i == 1 ? a : b) * 12345 % m2);
    }
    skipahead_subsequence(sequence, state);
    skipahead(offset, state);
}

// ---- uniform numbers: greater than 0, at most 1 ----

namespace cuda_cpu {
CUDA_CPU_RETURN(float, uniform, (unsigned int x), (float)x * 0x1p-32f + 0x1p-33f)
CUDA_CPU_RETURN(float, uniform, (unsigned long long x), uniform((unsigned int)(x >> 32)))
inline double uniform(unsigned int x, unsigned int y) { // uses 53 bits
    return (double)(x ^ (unsigned long long)y << 21) * 0x1p-53 + 0x1p-54;
}
} // namespace cuda_cpu

template <class State> inline float curand_uniform(State *state) {
    return cuda_cpu::uniform(curand(state));
}
CUDA_CPU_RETURN(float, curand_uniform, (curandStateMRG32k3a_t * state),
                (float)(cuda_cpu::mrg::next(*state) * 2.3283065498378288e-10))
inline double curand_uniform_double(curandStateXORWOW_t *state) {
    const unsigned int x = curand(state);
    return cuda_cpu::uniform(x, curand(state));
}
inline double curand_uniform_double(curandStatePhilox4_32_10_t *state) { // uses only 32 bits, as cuRAND does
    return curand(state) * 0x1p-32 + 0x1p-32;
}
CUDA_CPU_RETURN(double, curand_uniform_double, (curandStateMRG32k3a_t * state),
                cuda_cpu::mrg::next(*state) * 2.3283065498378288e-10)
inline float4 curand_uniform4(curandStatePhilox4_32_10_t *state) {
    const uint4 x = curand4(state);
    return {cuda_cpu::uniform(x.x), cuda_cpu::uniform(x.y), cuda_cpu::uniform(x.z), cuda_cpu::uniform(x.w)};
}
inline double2 curand_uniform2_double(curandStatePhilox4_32_10_t *state) {
    const uint4 x = curand4(state);
    return {cuda_cpu::uniform(x.x, x.y), cuda_cpu::uniform(x.z, x.w)};
}
inline double4 curand_uniform4_double(curandStatePhilox4_32_10_t *state) {
    const double2 a = curand_uniform2_double(state), b = curand_uniform2_double(state);
    return {a.x, a.y, b.x, b.y};
}

// ---- normal numbers, in pairs (Box and Muller) ----

namespace cuda_cpu {
inline float2 normal_pair(float u, float angle) {
    const float radius = sqrtf(-2 * logf(u));
    return {radius * sinf(angle), radius * cosf(angle)};
}
inline double2 normal_pair(double u, double turn) { // `turn` is the angle in half turns
    const double radius = sqrt(-2 * log(u));
    double s, c;
    sincospi(turn, &s, &c);
    return {radius * s, radius * c};
}
inline float2 normal_pair(unsigned int x, unsigned int y) {
    return normal_pair(uniform(x), (float)y * (0x1p-32f * 6.2831855f) + 0x1p-33f * 6.2831855f);
}
} // namespace cuda_cpu

template <class State> inline float2 curand_normal2(State *state) {
    const unsigned int x = curand(state);
    return cuda_cpu::normal_pair(x, curand(state));
}
inline float2 curand_normal2(curandStateMRG32k3a_t *state) {
    const float u = curand_uniform(state);
    return cuda_cpu::normal_pair(u, curand_uniform(state) * 6.2831855f);
}
template <class State> inline double2 curand_normal2_double(State *state) {
    const double u = curand_uniform_double(state);
    return cuda_cpu::normal_pair(u, 2 * curand_uniform_double(state));
}
inline double2 curand_normal2_double(curandStatePhilox4_32_10_t *state) {
    const double2 u = curand_uniform2_double(state);
    return cuda_cpu::normal_pair(u.x, 2 * u.y);
}
inline float4 curand_normal4(curandStatePhilox4_32_10_t *state) {
    const uint4 x = curand4(state);
    const float2 a = cuda_cpu::normal_pair(x.x, x.y), b = cuda_cpu::normal_pair(x.z, x.w);
    return {a.x, a.y, b.x, b.y};
}
inline double4 curand_normal4_double(curandStatePhilox4_32_10_t *state) {
    const double2 a = curand_normal2_double(state), b = curand_normal2_double(state);
    return {a.x, a.y, b.x, b.y};
}
namespace cuda_cpu {
// True if a number of the wanted kind is kept. A kept number of another kind is dropped.
inline bool take(Kept &kind, Kept wanted) {
    const bool found = kind == wanted;
    kind = found ? Kept::none : wanted;
    return found;
}
} // namespace cuda_cpu

// A kept log-normal number has the mean and deviation of the call that made it, as in cuRAND. `suffix` and
// `f` are the parts of names that float and double do not share.
#define CUDA_CPU_NORMAL(T, suffix, f)                                                                        \
    template <class State> inline T curand_normal##suffix(State *state) {                                    \
        if (cuda_cpu::take(state->kept.kind##suffix, cuda_cpu::Kept::normal))                                \
            return state->kept.one##suffix;                                                                  \
        const T##2 pair = curand_normal2##suffix(state);                                                     \
        state->kept.one##suffix = pair.y;                                                                    \
        return pair.x;                                                                                       \
    }                                                                                                        \
    template <class State> inline T##2 curand_log_normal2##suffix(State *state, T mean, T deviation) {       \
        const T##2 n = curand_normal2##suffix(state);                                                        \
        return {exp##f(mean + deviation * n.x), exp##f(mean + deviation * n.y)};                             \
    }                                                                                                        \
    template <class State> inline T curand_log_normal##suffix(State *state, T mean, T deviation) {           \
        if (cuda_cpu::take(state->kept.kind##suffix, cuda_cpu::Kept::log_normal))                            \
            return state->kept.one##suffix;                                                                  \
        const T##2 pair = curand_log_normal2##suffix(state, mean, deviation);                                \
        state->kept.one##suffix = pair.y;                                                                    \
        return pair.x;                                                                                       \
    }                                                                                                        \
    inline T##4 curand_log_normal4##suffix(curandStatePhilox4_32_10_t *state, T mean, T deviation) {         \
        const T##4 n = curand_normal4##suffix(state);                                                        \
        return {exp##f(mean + deviation * n.x), exp##f(mean + deviation * n.y),                              \
                exp##f(mean + deviation * n.z), exp##f(mean + deviation * n.w)};                             \
    }
CUDA_CPU_NORMAL(float, , f)
CUDA_CPU_NORMAL(double, _double, )

// ---- Poisson numbers ----

// Returns a random number with the Poisson distribution. For a mean below 10: Knuth's algorithm, which
// multiplies uniform random numbers until the product is below exp(-mean), and returns how many were
// multiplied, minus one. For larger means: the transformed rejection method (W. Hoermann, The transformed
// rejection method for generating Poisson random variables, 1993).
template <class State> inline unsigned int curand_poisson(State *state, double mean) {
    if (mean < 10) {
        const double limit = exp(-mean);
        unsigned int count = 0;
        for (double p = curand_uniform(state); p > limit; p *= curand_uniform(state))
            ++count;
        return count;
    }
    const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b,
                 acceptance = 1.1239 + 1.1328 / (b - 3.4);
    int sign; // lgamma() would store it in a global variable
    for (;;) {
        const double u = curand_uniform_double(state) - 0.5, v = curand_uniform_double(state),
                     us = 0.5 - fabs(u);
        const double k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
            return (unsigned int)k;
        if (k >= 0 && (us >= 0.013 || v <= us) &&
            log(v * acceptance / (a / (us * us) + b)) <= k * log(mean) - mean - lgamma_r(k + 1, &sign))
            return (unsigned int)k;
    }
}
inline uint4 curand_poisson4(curandStatePhilox4_32_10_t *state, double mean) {
    const unsigned int x = curand_poisson(state, mean), y = curand_poisson(state, mean),
                       z = curand_poisson(state, mean);
    return {x, y, z, curand_poisson(state, mean)};
}

#include "cuda_cpu/sobol.h"
#endif
#include "cuda_cpu/letters_on.h"
