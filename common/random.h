// SPDX-License-Identifier: MIT
// Random data: one sequence of numbers, determined by --seed and the same on every machine. Each call
// continues the sequence. Not thread-safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Restarts the sequence. Without this call it starts from options.seed.
void seed_random(uint64_t seed);

// The next 64 random bits.
uint64_t random_bits(void);

// A float from 0 to x, x excluded.
float rnd(float x);

void random_bytes(void *data, size_t size);         // bytes from 0 to 255
void random_floats(float *data, size_t n, float x); // floats as rnd(x) returns them

// New arrays, to be freed with free(): `size` random bytes, or n random ints from the whole range of
// int. Ends the program when memory is short.
void *big_random_block(size_t size);
int *big_random_ints(size_t n);

#ifdef __cplusplus
}
#endif
