// SPDX-License-Identifier: MIT
// Sobol' numbers for kernels, of 32 and 64 bits, scrambled or not; a part of curand_kernel.h
#pragma once

namespace cuda_cpu {

// Number i in the order of the Gray code: x is the sum (xor) of the vectors of the bits of i ^ i >> 1.
template <class State> inline void sobol_move(State *state, decltype(State::x) i) {
    state->i = i, state->x = state->c;
    for (auto gray = i ^ i >> 1; gray; gray &= gray - 1)
        state->x ^= state->direction_vectors[__builtin_ctzll(gray)];
}
template <class State, class T>
inline void sobol_begin(State *state, const T *vectors, T scramble, T offset) {
    for (size_t k = 0; k < 8 * sizeof(T); k++)
        state->direction_vectors[k] = vectors[k];
    state->c = scramble;
    sobol_move(state, offset);
}
template <class State> inline auto sobol_next(State *state) {
    const auto x = state->x;
    if (++state->i) // its lowest bit is the one that changes in the Gray code
        state->x ^= state->direction_vectors[__builtin_ctzll(state->i)];
    else
        state->x = state->c;
    return x;
}

CUDA_CPU_RETURN(double, quasi_uniform_double, (unsigned int x), x * 0x1p-32 + 0x1p-32)
CUDA_CPU_RETURN(double, quasi_uniform_double, (unsigned long long x), (double)(x >> 11) * 0x1p-53 + 0x1p-54)
CUDA_CPU_RETURN(double, quasi_normal, (unsigned int x), normcdfinv(x * 0x1p-32 + 0x1p-33))
CUDA_CPU_RETURN(double, quasi_normal, (unsigned long long x), normcdfinv(quasi_uniform_double(x)))
CUDA_CPU_RETURN(float, quasi_normal_float, (unsigned int x), (float)quasi_normal(x))
CUDA_CPU_RETURN(float, quasi_normal_float, (unsigned long long x),
                (float)quasi_normal((unsigned int)(x >> 32)))
// The least k with a probability of at most k that is not below u
inline unsigned int quasi_poisson(double u, double mean) {
    double sum = 0;
    unsigned int k = 0;
    for (int sign;; k++) {
        const double p = exp(k * log(mean) - mean - lgamma_r(k + 1.0, &sign));
        sum += p;
        if (sum >= u || (k > mean && p < 0x1p-60))
            return k;
    }
}

} // namespace cuda_cpu

// For generators that make each number from one integer: also the Mersenne Twisters
#define CUDA_CPU_QUASI(State)                                                                                \
    inline double curand_uniform_double(State *state) {                                                      \
        return cuda_cpu::quasi_uniform_double(curand(state));                                                \
    }                                                                                                        \
    inline float curand_normal(State *state) {                                                               \
        return cuda_cpu::quasi_normal_float(curand(state));                                                  \
    }                                                                                                        \
    inline double curand_normal_double(State *state) {                                                       \
        return cuda_cpu::quasi_normal(curand(state));                                                        \
    }                                                                                                        \
    inline float curand_log_normal(State *state, float mean, float deviation) {                              \
        return expf(mean + deviation * curand_normal(state));                                                \
    }                                                                                                        \
    inline double curand_log_normal_double(State *state, double mean, double deviation) {                    \
        return exp(mean + deviation * curand_normal_double(state));                                          \
    }                                                                                                        \
    inline unsigned int curand_poisson(State *state, double mean) {                                          \
        return cuda_cpu::quasi_poisson(curand_uniform_double(state), mean);                                  \
    }
#define CUDA_CPU_SOBOL(State, T)                                                                             \
    inline T curand(State *state) {                                                                          \
        return cuda_cpu::sobol_next(state);                                                                  \
    }                                                                                                        \
    template <class N> inline void skipahead(N n, State *state) {                                            \
        cuda_cpu::sobol_move(state, (T)(state->i + n));                                                      \
    }                                                                                                        \
    CUDA_CPU_QUASI(State)
#define CUDA_CPU_SOBOL_PLAIN(State, T)                                                                       \
    CUDA_CPU_SOBOL(State, T)                                                                                 \
    inline void curand_init(const T *vectors, T offset, State *state) {                                      \
        cuda_cpu::sobol_begin(state, vectors, (T)0, offset);                                                 \
    }
#define CUDA_CPU_SOBOL_SCRAMBLED(State, T)                                                                   \
    CUDA_CPU_SOBOL(State, T)                                                                                 \
    inline void curand_init(const T *vectors, T scramble, T offset, State *state) {                          \
        cuda_cpu::sobol_begin(state, vectors, scramble, offset);                                             \
    }
CUDA_CPU_SOBOL_PLAIN(curandStateSobol32_t, unsigned int)
CUDA_CPU_SOBOL_PLAIN(curandStateSobol64_t, unsigned long long)
CUDA_CPU_SOBOL_SCRAMBLED(curandStateScrambledSobol32_t, unsigned int)
CUDA_CPU_SOBOL_SCRAMBLED(curandStateScrambledSobol64_t, unsigned long long)
