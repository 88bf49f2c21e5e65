// SPDX-License-Identifier: MIT
// What one access of a warp costs, counted from the addresses: sectors of global memory, turns of the banks
// of shared memory.
#ifndef COMMON_PROOFS_BANKS_H
#define COMMON_PROOFS_BANKS_H

#include "../book.h"

#define LANES             32
#define BANKS             32
#define WORDS_OF_A_SECTOR 8 // 32 bytes

// How many different values of key(lane) the first `lanes` lanes have.
template <class Key> static inline int count_different(int lanes, Key key) {
    int different = 0;
    for (int lane = 0; lane < lanes; lane++) {
        bool first = true;
        for (int other = 0; other < lane; other++)
            first = first && key(other) != key(lane);
        different += first;
    }
    return different;
}

// The number of accesses that a bank serves one after the other: the largest number of different words that
// the lanes want from one bank. word[lane] is the word of shared memory that the lane accesses.
static inline int turns(const int *word) {
    int most = 0;
    for (int bank = 0; bank < BANKS; bank++) {
        int wanted[LANES], lanes = 0; // the words in this bank
        for (int lane = 0; lane < LANES; lane++)
            if (word[lane] % BANKS == bank)
                wanted[lanes++] = word[lane];
        most = max_of(most, count_different(lanes, [&](int i) { return wanted[i]; }));
    }
    return most;
}

// The number of 32-byte sectors of global memory in which the words of `lanes` lanes lie. The array starts at
// the beginning of a sector, as all memory from cudaMalloc does.
static inline int sectors(const size_t *word, int lanes) {
    return count_different(lanes, [&](int lane) { return word[lane] / WORDS_OF_A_SECTOR; });
}

#endif
