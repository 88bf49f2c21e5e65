// SPDX-License-Identifier: MIT
/*
 * MTGP32, Mersenne Twisters with 200 sets of parameters, for the generator of curand.cpp
 *
 *     Saito and Matsumoto, Variants of Mersenne Twister suitable for graphic processors, ACM Transactions on
 * Mathematical Software 39 (2013).
 */
#pragma once

namespace cuda_cpu::mtgp {

constexpr unsigned int words = 351;        // of the state that the recursion needs
constexpr unsigned int state_words = 1024; // of a state, a ring

struct Parameters {
    int pos, sh1, sh2;
    unsigned int tbl[16], tmp_tbl[16];
};

// A table is given by the images of single bits of its index: the others are their sums (xor).
constexpr void fill(unsigned int (&table)[16], const unsigned int (&images)[4]) {
    for (int i = 1; i < 16; ++i)
        for (int bit = 0; bit < 4; ++bit)
            table[i] ^= i >> bit & 1 ? images[bit] : 0;
}
constexpr Parameters parameters(int pos, int sh1, int sh2, const unsigned int (&recursion)[4],
                                const unsigned int (&tempering)[4]) {
    Parameters p = {pos, sh1, sh2, {}, {}};
    fill(p.tbl, recursion);
    fill(p.tmp_tbl, tempering);
    return p;
}
constexpr Parameters of_sequence[] = {
#define CUDA_CPU_MTGP(pos, sh1, sh2, r0, r1, r2, r3, t0, t1, t2, t3)                                         \
    parameters(pos, sh1, sh2, {r0, r1, r2, r3}, {t0, t1, t2, t3}),
#include "mtgp32_parameters.h"
};

// The first words of a state
inline void begin(unsigned int *s, const Parameters &p, unsigned int seed) {
    const unsigned int hidden = p.tbl[4] ^ p.tbl[8] << 16, a = hidden + (hidden >> 16), b = a + (a >> 8);
    for (unsigned int i = 0; i < words; ++i)
        s[i] = (b & 0xff) * 0x01010101;
    s[0] = seed;
    s[1] = hidden;
    for (unsigned int i = 1; i < words; ++i)
        s[i] ^= 1812433253 * (s[i - 1] ^ s[i - 1] >> 30) + i;
}
// The number at this place of the sequence; the recursion stores its next word in the state.
inline unsigned int number(unsigned int *s, unsigned int at, const Parameters &p) {
    const auto word = [s, at](unsigned int i) -> unsigned int & { return s[(at + i) % state_words]; };
    unsigned int x = (word(0) & 0xfff80000) ^ word(1), t = word(p.pos - 1);
    x ^= x << p.sh1;
    x ^= word(p.pos) >> p.sh2;
    x ^= p.tbl[x & 15];
    word(words) = x;
    t ^= t >> 16;
    return x ^ p.tmp_tbl[(t ^ t >> 8) & 15];
}

} // namespace cuda_cpu::mtgp
