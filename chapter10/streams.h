// SPDX-License-Identifier: MIT
// What the programs with one and two streams share: sizes and options, the input, the reference of their
// kernel, and what they print of the timeline.
#ifndef CHAPTER10_STREAMS_H
#define CHAPTER10_STREAMS_H

#include "../common/book.h"
#include "timeline.h"

#define N              (1024 * 1024)
#define FULL_DATA_SIZE (N * 20)

static size_t size = FULL_DATA_SIZE; // --size, elements in all
static size_t chunk = N;             // --chunk, elements that are copied and computed at a time
static const char *output;           // --output

// ---------------------------------------------------------------------------------------- proof

// `own_option` is one that only this program has.
static inline void stream_settings(int argc, char **argv, const char *doc, int streams,
                                   Option own_option = OPTION_END) {
    const Option own[] = {OPTION_SIZE("size", &size, 1, 1LL << 40, "elements in all"),
                          OPTION_SIZE("chunk", &chunk, 1, 1 << 30, "elements at a time"),
                          OPTION_FILE("output", &output, "write the timeline to FILE, an .svg"), own_option,
                          OPTION_END};
    parse_options(argc, argv, doc, TIMES, own);
    check_svg(output);
    select_device();
    chunk = min_of(chunk, size);
    require_memory(4 * size * sizeof(int), streams * 3 * chunk * sizeof(int));
}

// A device without a copy engine does not copy while a kernel runs, so several streams are no faster than
// one.
static inline void print_copy_engines(int engines) {
    printf("Copy engines: %d\n", engines);
    if (engines == 0)
        printf("The device does not overlap copies with kernels, so streams gain nothing.\n");
}

// Random numbers of 29 bits, so that the sum of three fits an int.
static inline void fill_random(int *data) {
    random_bytes(data, size * sizeof(int));
    for (size_t i = 0; i < size; i++)
        data[i] &= 0x1fffffff;
}

// The mean of data[i] and its two neighbours, which the kernel takes from the first 256 elements.
static inline float mean_of_three(const int *data, size_t i, size_t first) {
    return (data[i] + data[(i + 1) % first] + data[(i + 2) % first]) / 3.0f;
}

// Compares the whole result. Float rounds on the host as on the device, because the expression has no
// multiplication that could be fused with an addition, and the compiler does not reorder it.
static inline bool verify(const int *a, const int *b, const int *c) {
    int *expected = host_array<int>(size);
    for (size_t at = 0; at < size; at += chunk) {
        size_t n = min_of(chunk, size - at), first = min_of(n, 256);
        for (size_t i = 0; i < n; i++)
            expected[at + i] = (mean_of_three(a + at, i, first) + mean_of_three(b + at, i, first)) / 2;
    }
    bool ok = check_ints("c", c, expected, size);
    free(expected);
    return ok;
}

// Checks the steps of the timeline, prints how much overlapped and draws the timeline, with --output also
// into a file.
static inline void report(const Timeline &timeline) {
    if (!timeline.has_chunks((size + chunk - 1) / chunk))
        quit(EXIT_FAILURE, "the timeline lacks a step of a chunk");
    timeline.print_overlap();
    timeline.print();
    if (output)
        timeline.write_svg(output, options.program);
}

#endif
