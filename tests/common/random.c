// SPDX-License-Identifier: MIT
// The random sequence, whose numbers tests/formulas.py computes anew for the tests of the programs. Includes
// the source itself, so that a test can set the state of the generator.
#include <math.h>
#include "../../common/lib/random.c"
#include "../../cucc/tests/unit.h"

TEST(seeds) {
    enum { N = 1001 };
    unsigned char a[N], b[N], c[N], d[N + 8];
    options.seed = 42;
    seeded = false;
    random_bytes(a, N); // the first call starts from options.seed
    random_bytes(c, N); // the second one continues
    seed_random(42);
    random_bytes(b, N);
    EXPECT(memcmp(a, b, N) == 0);
    EXPECT(memcmp(a, c, N) != 0);
    seed_random(43);
    random_bytes(b, N);
    EXPECT(memcmp(a, b, N) != 0);
    // A shorter block is the beginning of a longer one, and no byte after it is written.
    for (size_t n = 0; n < 20; n++) {
        memset(d, 0xaa, sizeof(d));
        seed_random(42);
        random_bytes(d, n);
        EXPECT(memcmp(a, d, n) == 0);
        EXPECT(d[n] == 0xaa);
    }
}

TEST(floats) {
    float data[100];
    seed_random(7);
    random_floats(data, 100, 2);
    seed_random(7);
    for (int i = 0; i < 100; i++)
        EXPECT(rnd(2) == data[i]);
    // The largest value is less than x for every x.
    for (float x = 1; x < 2; x = nextafterf(x * 1.0001f, 3))
        EXPECT(scale(UINT64_MAX, x) < x);
}

TEST(ints) {
    seed_random(3);
    int *data = big_random_ints(1000);
    uint64_t both = (uint64_t)(uint32_t)data[1] << 32 | (uint32_t)data[0];
    int negative = 0;
    for (int i = 0; i < 1000; i++)
        negative += data[i] < 0;
    EXPECT(negative > 400 && negative < 600);
    seed_random(3);
    EXPECT(random_bits() == both);
    free(data);
}

TEST(out_of_memory) {
    // The number of bytes, (SIZE_MAX / 4 + 2) * 4, does not fit in a size_t and wraps around to 4.
    struct unit_result r = IN_CHILD(big_random_ints(SIZE_MAX / sizeof(int) + 2));
    EXPECT(r.status == 1);
    EXPECT(strstr(r.err, "out of memory"));
    free(big_random_block(0));
}
