// SPDX-License-Identifier: MIT
// The kernel of chapter 10, which works on one chunk after the other: its input, and the check of its result.
#pragma once

#include "../book.h"

extern size_t size, chunk; // --size and --chunk, which each program defines with the sizes of the book

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

// Compares the whole result, which the host computes in float as the device does: no multiplication could be
// fused with an addition. All arrays must be page-locked.
static inline bool verify(const int *a, const int *b, const int *c) {
    const int *const arrays[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        cudaPointerAttributes memory;
        HANDLE_ERROR(cudaPointerGetAttributes(&memory, arrays[i]));
        if (!check_value("page-locked memory", memory.type == cudaMemoryTypeHost, 1, 0))
            return false;
    }
    return check_ints("c", c, size, [=](size_t i) {
        size_t at = i / chunk * chunk, first = min_of(min_of(chunk, size - at), 256);
        return (mean_of_three(a + at, i - at, first) + mean_of_three(b + at, i - at, first)) / 2;
    });
}
