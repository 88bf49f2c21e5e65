// SPDX-License-Identifier: MIT
/*
 * hist_cpu: histogram on the host
 *
 * Teaches: A histogram counts how often each value occurs. With one thread that takes one line: read a
 *          byte and increment its bin. With many threads the same line is a race condition, because an
 *          increment is a read-modify-write, and several threads increment one bin at the same time.
 * Terms:   histogram, histogram bin, read-modify-write, race condition, host
 * Book:    9.4.1
 * Build:   nvcc -o hist_cpu chapter09/hist_cpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter09/hist_cpu --text "Programming with CUDA C"
 * Differs: bins have 64 bits, so that more than 4 GiB can be counted. --text counts the letters of a text, as
 *          in the book's example.
 */
#include "../common/book.h"
#include <time.h>
#include "hist.h" // --fill: fill_bytes(); check_histogram()

#define SIZE (100 * 1024 * 1024)

size_t size = SIZE;      // --size
static const char *text; // --text
static int count_letters(void);

int main(int argc, char **argv) {
    settings(argc, argv);
    if (text)
        return count_letters();
    unsigned char *buffer = (unsigned char *)big_random_block(size);
    fill_bytes(buffer); // without --fill they stay random

    clock_t start, stop;
    unsigned long long histo[256];
    for (int i = 0; i < 256; i++)
        histo[i] = 0;
    start = clock();
    for (size_t i = 0; i < size; i++)
        histo[buffer[i]]++;
    stop = clock();
    float elapsedTime = (float)(stop - start) / CLOCKS_PER_SEC * 1000;
    printf("Time to generate:  %3.1f ms\n", elapsedTime);

    unsigned long long histoCount = 0;
    for (int i = 0; i < 256; i++)
        histoCount += histo[i];
    printf("Histogram Sum:  %llu\n", histoCount);
    bool ok = check_histogram(histo, buffer, histoCount);

    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// Counts the letters a to z, capitals as small letters, and prints those that occur. The reference searches
// the text once for each letter. Returns the exit status.
static int count_letters(void) {
    unsigned long long histo[26] = {}, expected[26], letters = 0;
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if ((text[i] | 32) >= 'a' && (text[i] | 32) <= 'z')
            histo[(text[i] | 32) - 'a']++;
    for (int i = 0; i < 26; i++) {
        expected[i] = std::count(text, text + length, 'a' + i) + std::count(text, text + length, 'A' + i);
        if (histo[i] > 0)
            printf("%c %llu\n", 'A' + i, histo[i]);
        letters += histo[i];
    }
    printf("%llu letters\n", letters);
    return check_counts("letter", histo, expected, 26) ? EXIT_SUCCESS : EXIT_FAILURE;
}

void settings(int argc, char **argv) {
    hist_settings(argc, argv, "Counts how often each byte occurs.", HOST_ONLY | TIMES,
                  OPTION_TEXT("text", &text, "count the letters of TEXT"));
}

// Task: none: it is one loop in main, on the host; the exercises are hist_gpu_gmem_atomics and
// hist_gpu_shmem_atomics
