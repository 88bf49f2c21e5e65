// SPDX-License-Identifier: MIT
// Random data: one stream of numbers that --seed fixes, the same on every machine. Successive calls
// go on in the stream. For one thread at a time.
#ifndef COMMON_RANDOM_H
#define COMMON_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Starts the stream again. Without a call it starts from options.seed.
void seed_random(uint64_t seed);

// The next 64 random bits.
uint64_t random_bits(void);

// A float from 0 up to, not including, x.
float rnd(float x);

void random_bytes(void *data, size_t size);         // fills, each byte 0 to 255
void random_floats(float *data, size_t n, float x); // fills, each 0 to x as rnd(x)

// Fresh arrays, to be freed with free(): `size` bytes, or n ints of any value.
// Ends the program when there is no memory.
void *big_random_block(size_t size);
int *big_random_ints(size_t n);

#ifdef __cplusplus
}
#endif
#endif
