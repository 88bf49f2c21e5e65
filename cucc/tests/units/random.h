// SPDX-License-Identifier: MIT
// Random numbers for unit tests, which repeat with the environment's TEST_SEED.
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <random>
#include <vector>
#include "../unit.h"

#define CALL(call) EXPECT((call) == 0)

static std::mt19937 &engine() {
    static std::mt19937 rng(getenv("TEST_SEED") ? (unsigned)atol(getenv("TEST_SEED")) : 1);
    return rng;
}
[[maybe_unused]] static int pick(int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(engine());
}

#endif
