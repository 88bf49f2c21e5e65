// SPDX-License-Identifier: MIT
// The random sequence: xoshiro256**, with its state filled by splitmix64. Formulas: D. Blackman and
// S. Vigna, "Scrambled linear pseudorandom number generators", ACM Trans. Math. Softw. 47 (2021);
// G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#include <stdbool.h>
#include <string.h>
#include "../options.h"
#include "../random.h"
#include "memory.h"

typedef struct {
    uint64_t s[4];
} Stream;

static Stream stream;
static bool seeded;

static uint64_t rotate_left(uint64_t x, int bits) {
    return x << bits | x >> (64 - bits);
}

static uint64_t next(Stream *r) {
    uint64_t *s = r->s, result = rotate_left(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

void seed_random(uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        stream.s[i] = z ^ z >> 31;
    }
    seeded = true;
}

// Loops work on a local copy of the state, which the compiler keeps in registers.
static Stream take_stream(void) {
    if (!seeded)
        seed_random(options.seed);
    return stream;
}

uint64_t random_bits(void) {
    Stream local = take_stream();
    uint64_t bits = next(&local);
    stream = local;
    return bits;
}

// 24 bits, the precision of a float: the largest value, (1 - 2^-24) x, still rounds to less than x.
static float scale(uint64_t bits, float x) {
    return (float)(bits >> 40) * 0x1p-24f * x;
}

float rnd(float x) {
    return scale(random_bits(), x);
}

// Every machine that CUDA supports is little-endian, so the bytes of a number have the same order on all of
// them.
void random_bytes(void *data, size_t size) {
    Stream local = take_stream();
    unsigned char *out = data;
    for (; size >= 8; out += 8, size -= 8) {
        uint64_t bits = next(&local);
        memcpy(out, &bits, 8);
    }
    if (size > 0) {
        uint64_t bits = next(&local);
        memcpy(out, &bits, size);
    }
    stream = local;
}

void random_floats(float *data, size_t n, float x) {
    Stream local = take_stream();
    for (size_t i = 0; i < n; i++)
        data[i] = scale(next(&local), x);
    stream = local;
}

void *big_random_block(size_t size) {
    void *data = allocate_host(size, 1);
    random_bytes(data, size);
    return data;
}

int *big_random_ints(size_t n) {
    int *data = allocate_host(n, sizeof(int));
    random_bytes(data, n * sizeof(int));
    return data;
}
