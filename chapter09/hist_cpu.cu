// SPDX-License-Identifier: MIT
/*
 * hist_cpu: how often each byte occurs, counted by the host
 *
 * Teaches: A histogram counts how often each value occurs. With one thread that is one line: read a
 *          byte, add 1 to its bin. On the device the same line goes wrong, because many threads add
 *          to the same bin at once, and that is what this chapter is about.
 * Book:    9.4.1
 * Run:     ./bin/chapter09/hist_cpu
 * Differs: bins have 64 bits, so that more than 4 GiB can be counted, and are verified by counting
 *          down. --fill takes data that are not spread evenly.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../common/book.h"
#include "../common/memory.h"

#define SIZE (100 * 1024 * 1024)
#define BINS 256

enum { RANDOM, EQUAL, SKEWED };

static unsigned char *make_data(size_t size, int fill) {
    unsigned char *data = (unsigned char *)big_random_block(size);
    if (fill == EQUAL)
        memset(data, data[0], size);
    for (size_t i = 0; fill == SKEWED && i < size; i++)
        data[i] = data[i] * data[i] * data[i] >> 16; // small values often, 0 for one byte in six
    return data;
}

// Counts down, from the histogram to nothing: each bin must end at 0.
static bool verify(unsigned long long *histo, const unsigned char *buffer, size_t size) {
    for (size_t i = 0; i < size; i++)
        histo[buffer[i]]--;
    int wrong = 0;
    for (int bin = 0; bin < BINS; bin++)
        if (histo[bin] != 0 && wrong++ < 5)
            fprintf(stderr, "bin %d: %+lld\n", bin, (long long)histo[bin]);
    if (wrong > 0)
        fprintf(stderr, "%d of %d bins are off by that much\n", wrong, BINS);
    return wrong == 0;
}

static double now(void) { // ms
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    size_t size = SIZE;
    int fill = RANDOM;
    const Option own[] = {OPTION_SIZE("size", &size, 1, 1LL << 44, "bytes to count"),
                          OPTION_WORD("fill", &fill, "random|equal|skewed", "what the bytes are"),
                          OPTION_END};
    parse_options(argc, argv, "Counts how often each byte occurs.", HOST_ONLY | TIMES, own);
    select_device();
    require_memory(size, 0);
    unsigned char *buffer = make_data(size, fill);

    double start = now();
    unsigned long long histo[BINS] = {};
    for (size_t i = 0; i < size; i++)
        histo[buffer[i]]++;
    double elapsed = now() - start;
    printf("Time to generate:  %3.1f ms, %.3f GB/s\n", elapsed, size / elapsed / 1e6);

    inject_error(histo, sizeof(histo));
    unsigned long long histoCount = 0;
    for (int i = 0; i < BINS; i++)
        histoCount += histo[i];
    printf("Histogram Sum:  %llu\n", histoCount);
    bool ok = verify(histo, buffer, size);

    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
