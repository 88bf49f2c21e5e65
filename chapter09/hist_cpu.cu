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
 * Differs: bins have 64 bits, so that more than 4 GiB can be counted. The time is elapsed time and not the
 *          time of the processor. --text counts the letters of a text, as in the book's example.
 */
#include "../common/book.h"
#include <chrono>
#include <numeric>
#include "hist.h" // check_histogram()

#define SIZE (100 * 1024 * 1024)

size_t size = SIZE; // --size

int main(int argc, char **argv) {
    settings(argc, argv);
    unsigned char *buffer = (unsigned char *)big_random_block(size);

    auto start = std::chrono::steady_clock::now();
    unsigned long long histo[256] = {};
    for (size_t i = 0; i < size; i++)
        histo[buffer[i]]++;
    auto stop = std::chrono::steady_clock::now();
    double elapsedTime = std::chrono::duration<double, std::milli>(stop - start).count();
    printf("Time to generate:  %3.1f ms, %.3f GB/s\n", elapsedTime, size / elapsedTime / 1e6);

    unsigned long long histoCount = 0;
    for (int i = 0; i < 256; i++)
        histoCount += histo[i];
    printf("Histogram Sum:  %llu\n", histoCount);
    bool ok = check_histogram(histo, buffer, histoCount);

    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// For --fill: counts as main does. Returns the exit status.
static int count_filled(void) {
    unsigned char *buffer = make_data();
    unsigned long long histo[BINS] = {};
    auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < size; i++)
        histo[buffer[i]]++;
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    printf("Time to generate:  %3.1f ms, %.3f GB/s\n", elapsed.count(), size / elapsed.count() / 1e6);
    unsigned long long sum = std::accumulate(histo, histo + BINS, 0ULL);
    printf("Histogram Sum:  %llu\n", sum);
    bool ok = check_histogram(histo, buffer, sum);
    free(buffer);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// For --text: counts the letters a to z, capitals as small letters, and prints those that occur. The
// reference searches the text once for each letter. Returns the exit status.
static int count_letters(const char *text) {
    unsigned long long histo[26] = {}, expected[26], letters = 0;
    for (const char *c = text; *c; c++)
        if ((*c | 32) >= 'a' && (*c | 32) <= 'z')
            histo[(*c | 32) - 'a']++;
    for (int i = 0; i < 26; i++) {
        size_t length = strlen(text);
        expected[i] = std::count(text, text + length, 'a' + i) + std::count(text, text + length, 'A' + i);
        if (histo[i] > 0)
            printf("%c %llu\n", 'A' + i, histo[i]);
        letters += histo[i];
    }
    printf("%llu letters\n", letters);
    return check_counts("letter", histo, expected, 26) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// With --text or --fill the program ends here.
void settings(int argc, char **argv) {
    const char *text = NULL;
    hist_settings(argc, argv, "Counts how often each byte occurs.", HOST_ONLY | TIMES,
                  OPTION_TEXT("text", &text, "count the letters of TEXT"));
    if (text)
        exit(count_letters(text));
    if (fill != RANDOM)
        exit(count_filled());
}

// Task: none: it is one loop in main, on the host; the exercises are hist_gpu_gmem_atomics and
// hist_gpu_shmem_atomics
