// SPDX-License-Identifier: MIT
// What this chapter's histograms share: the options, the bytes to count and the check of the bins.
#pragma once

#include "../common/book.h"
#include "../common/thread.h"

#define BINS 256

extern size_t size; // --size; every program defines it

enum { RANDOM, EQUAL, SKEWED };

static int fill = RANDOM; // --fill

// `first` and `second` are options that only some of the programs have.
static inline void hist_settings(int argc, char **argv, const char *doc, unsigned uses, Option first,
                                 Option second = OPTION_END) {
    parse_options(argc, argv, doc, uses,
                  {OPTION_SIZE("size", &size, 1, 1LL << 44, "bytes to count"),
                   OPTION_WORD("fill", &fill, "random|equal|skewed", "distribution of the bytes"), first,
                   second});
    if (first.type == TYPE_TEXT && *(const char **)first.value) // the letters of a text are counted untimed
        options.uses &= ~TIMES;
    select_device();
    require_memory(size, uses & HOST_ONLY ? 0 : size);
}

// Changes random bytes as --fill says. Random bytes spread evenly over the bins; equal bytes all belong to
// one bin; of skewed bytes one in six is 0, and small values are frequent.
static inline void fill_bytes(unsigned char *data) {
    if (fill == EQUAL)
        memset(data, data[0], size);
    in_threads(fill == SKEWED ? size : 0, [=](size_t begin, size_t end) {
        for (size_t i = begin; i < end; i++)
            data[i] = data[i] * data[i] * data[i] >> 16;
    });
}

// Compares with the bytes counted on the host. `sum` is that of all bins. Random bytes come from --seed once
// more, a part at a time, whatever has been copied to the buffer since.
static inline bool check_histogram(const unsigned long long *histo, const unsigned char *buffer,
                                   unsigned long long sum) {
    const size_t part = 1 << 16;
    unsigned char random[part];
    unsigned long long expected[BINS] = {}, all = size;
    seed_random(options.seed);
    for (size_t first = 0; first < size; first += part) {
        size_t count = min_of(part, size - first);
        random_bytes(random, count);
        for (size_t i = 0; i < count; i++)
            expected[fill == RANDOM ? random[i] : buffer[first + i]]++;
    }
    return check_counts("bin", histo, expected, BINS) && check_counts("sum", &sum, &all, 1);
}
