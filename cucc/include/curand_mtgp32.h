// SPDX-License-Identifier: MIT
/*
 * MTGP32, a Mersenne Twister for the threads of a block, which share a state and make a number each, at most
 * 256. Every thread of the block must call these functions, because they have a barrier. cuRAND's header
 * curand_kernel.h has these functions too; here it has only the state's type, so that other generators can
 * be used in kernels that are split into loops.
 *
 *     Saito and Matsumoto, Variants of Mersenne Twister suitable for graphic processors, ACM Transactions on
 * Mathematical Software 39 (2013).
 */
#pragma once
#define CURAND_MTGP32_H
#define CURAND_MTGP32_HOST_H
#define CURAND_MTGP32_KERNEL_H
#include "curand_kernel.h"

#define MTGPDC_MEXP        11213
#define MTGPDC_N           351 // words of the state that the recursion needs
#define MTGPDC_FLOOR_2P    256
#define MTGPDC_CEIL_2P     512
#define MTGPDC_PARAM_TABLE mtgp32dc_params_fast_11213
#define MTGP32_STATE_MASK  (MTGP32_STATE_SIZE - 1)

#if defined(__CUDACC__) || defined(CUDA_CPU_ENGINE)
#include <vector>

namespace cuda_cpu::mtgp {

// A table is given by the images of single bits of its index: the others are their sums (xor).
constexpr void fill(unsigned int (&table)[16], const unsigned int (&images)[4]) {
    for (int i = 1; i < 16; ++i)
        for (int bit = 0; bit < 4; ++bit)
            table[i] ^= i >> bit & 1 ? images[bit] : 0;
}
constexpr mtgp32_params_fast_t parameters(int pos, int sh1, int sh2, const unsigned int (&recursion)[4],
                                          const unsigned int (&tempering)[4]) {
    mtgp32_params_fast_t p = {MTGPDC_MEXP, pos, sh1, sh2, {}, {}, {}, 0xfff80000, {}};
    fill(p.tbl, recursion);
    fill(p.tmp_tbl, tempering);
    for (int i = 0; i < 16; ++i)
        p.flt_tmp_tbl[i] = p.tmp_tbl[i] >> 9 | 0x3f800000; // of a float in [1, 2)
    return p;
}

// The first words of a state
inline void begin(unsigned int *s, const mtgp32_params_fast_t &p, unsigned int seed) {
    const unsigned int hidden = p.tbl[4] ^ p.tbl[8] << 16, a = hidden + (hidden >> 16), b = a + (a >> 8);
    for (unsigned int i = 0; i < MTGPDC_N; ++i)
        s[i] = (b & 0xff) * 0x01010101;
    s[0] = seed;
    s[1] = hidden;
    for (unsigned int i = 1; i < MTGPDC_N; ++i)
        s[i] ^= 1812433253 * (s[i - 1] ^ s[i - 1] >> 30) + i;
}
// The number at this place of the sequence; the recursion stores its next word in the state.
inline unsigned int number(unsigned int *s, unsigned int at, const mtgp32_params_fast_t &p) {
    const auto word = [s, at](unsigned int i) -> unsigned int & { return s[(at + i) & MTGP32_STATE_MASK]; };
    unsigned int x = (word(0) & p.mask) ^ word(1), t = word(p.pos - 1);
    x ^= x << p.sh1;
    x ^= word(p.pos) >> p.sh2;
    x ^= p.tbl[x & 15];
    word(MTGPDC_N) = x;
    t ^= t >> 16;
    return x ^ p.tmp_tbl[(t ^ t >> 8) & 15];
}

} // namespace cuda_cpu::mtgp

inline mtgp32_params_fast_t mtgp32dc_params_fast_11213[] = {
#define CUDA_CPU_MTGP(pos, sh1, sh2, r0, r1, r2, r3, t0, t1, t2, t3)                                         \
    cuda_cpu::mtgp::parameters(pos, sh1, sh2, {r0, r1, r2, r3}, {t0, t1, t2, t3}),
#include "cuda_cpu/mtgp32_parameters.h"
};
inline const int mtgpdc_params_11213_num = CURAND_NUM_MTGP32_PARAMS;

// Copies the parameters of all sequences to device memory.
CUDA_CPU_RETURN(curandStatus_t, curandMakeMTGP32Constants,
                (const mtgp32_params_fast_t params[], mtgp32_kernel_params_t *p),
                cudaMemcpy(p->params, params, sizeof p->params, cudaMemcpyDefault) == cudaSuccess
                    ? CURAND_STATUS_SUCCESS
                    : CURAND_STATUS_INITIALIZATION_FAILED)
// Makes n states (up to 200) in device memory, each of another sequence.
inline curandStatus_t curandMakeMTGP32KernelState(curandStateMtgp32_t *s, mtgp32_params_fast_t params[],
                                                  mtgp32_kernel_params_t *k, int n, unsigned long long seed) {
    if (n < 0 || n > CURAND_NUM_MTGP32_PARAMS)
        return CURAND_STATUS_OUT_OF_RANGE;
    std::vector<curandStateMtgp32_t> states(n);
    for (int i = 0; i < n; ++i) {
        cuda_cpu::mtgp::begin(states[i].s, params[i], (unsigned int)(seed ^ seed >> 32) + i + 1);
        states[i].pIdx = i;
        states[i].k = k;
    }
    return cudaMemcpy(s, states.data(), n * sizeof *s, cudaMemcpyDefault) == cudaSuccess
               ? CURAND_STATUS_SUCCESS
               : CURAND_STATUS_INITIALIZATION_FAILED;
}

// Number `index` of n, which the threads with the indices 0 to n - 1 make together
inline unsigned int curand_mtgp32_specific(curandStateMtgp32_t *state, unsigned int index, unsigned int n) {
    const unsigned int x =
        cuda_cpu::mtgp::number(state->s, state->offset + index, state->k->params[state->pIdx]);
    cuda_cpu::block_barrier(cuda_cpu::BlockVote::none, false, {__FILE__, __LINE__});
    if (index == 0)
        state->offset = (int)((state->offset + n) & MTGP32_STATE_MASK);
    cuda_cpu::block_barrier(cuda_cpu::BlockVote::none, false, {__FILE__, __LINE__});
    return x;
}
inline unsigned int curand(curandStateMtgp32_t *state) {
    return curand_mtgp32_specific(state, cuda_cpu::thread_rank(), blockDim.x * blockDim.y * blockDim.z);
}
CUDA_CPU_QUASI(curandStateMtgp32_t)
#endif
