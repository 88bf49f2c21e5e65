// SPDX-License-Identifier: MIT
/*
 * constant_divergence: lanes of a warp that read different words of constant memory
 *
 * Teaches: Constant memory serves one word at a time: one that all lanes of a warp read is broadcast,
 *          different ones are read one after the other. So a warp that reads 32 words waits up to 32 times
 *          as long. Global memory serves a warp that reads neighbouring words with one access, however many
 *          different words they are.
 * Terms:   constant memory, __constant__, broadcast, warp, lane, global memory, coalesced access, latency
 * Book:    6.2.4 (after the book); C 5 (constant memory)
 * Build:   nvcc -o constant_divergence chapter06/constant_divergence.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter06/constant_divergence
 * Differs: the book describes this in its text, for the half warps of 16 threads of its time, and has no
 *          program for it. A CPU has no constant memory, so the cycles on the CPU back end do not grow.
 */
#include <set>
#include "../common/book.h"

#define LANES 32          // one warp reads
#define WORDS (LANES + 1) // 2 * READS is no multiple of it, so a lane does not end at its first word
#define READS 512
#define ROWS  6 // 1, 2, 4, 8, 16 and 32 different words

static bool check(const char *memory, const int *got, const int *word, long long cycles);

__constant__ int constant_words[WORDS];

// Lane l reads READS words, word[l] first. Each word holds the number of the next one, which is the index of
// the next read: a read cannot start before the previous one has ended, so the cycles are READS latencies.
__global__ void from_constant(const int *word, int *got, long long *cycles) {
    int at = word[threadIdx.x];
    for (int i = 0; i < 2; i++) { // the first iteration fills the cache, the second one counts
        __syncthreads();
        long long start = clock64();
        for (int r = 0; r < READS; r++)
            at = constant_words[at];
        if (threadIdx.x == 0)
            *cycles = clock64() - start;
    }
    got[threadIdx.x] = at;
}

__global__ void from_global(const int *word, int *got, long long *cycles, const int *global_words) {
    int at = word[threadIdx.x];
    for (int i = 0; i < 2; i++) {
        __syncthreads();
        long long start = clock64();
        for (int r = 0; r < READS; r++)
            at = global_words[at];
        if (threadIdx.x == 0)
            *cycles = clock64() - start;
    }
    got[threadIdx.x] = at;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int words[WORDS], *global_words, *dev_word, *dev_got;
    long long *dev_cycles;
    for (int i = 0; i < WORDS; i++)
        words[i] = (i + 1) % WORDS; // all lanes move on by one word, so the number of different words stays
    HANDLE_ERROR(cudaMemcpyToSymbol(constant_words, words, sizeof(words)));
    HANDLE_ERROR(cudaMalloc(&global_words, sizeof(words)));
    HANDLE_ERROR(cudaMemcpy(global_words, words, sizeof(words), cudaMemcpyHostToDevice));
    HANDLE_ERROR(cudaMalloc(&dev_word, LANES * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_got, LANES * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_cycles, sizeof(long long)));

    int right = 0; // checks that have passed
    for (int different = 1; different <= LANES; different *= 2) {
        int word[LANES], got[LANES];
        long long cycles[2] = {};
        for (int lane = 0; lane < LANES; lane++)
            word[lane] = lane % different;
        HANDLE_ERROR(cudaMemcpy(dev_word, word, sizeof(word), cudaMemcpyHostToDevice));
        for (int global = 0; global < 2; global++) {
            HANDLE_ERROR(cudaMemset(dev_got, 0xff, sizeof(got)));
            if (global) {
                from_global<<<1, LANES>>>(dev_word, dev_got, dev_cycles, global_words);
                HANDLE_LAUNCH();
            } else {
                from_constant<<<1, LANES>>>(dev_word, dev_got, dev_cycles);
                HANDLE_LAUNCH();
            }
            HANDLE_ERROR(cudaMemcpy(got, dev_got, sizeof(got), cudaMemcpyDeviceToHost));
            HANDLE_ERROR(cudaMemcpy(&cycles[global], dev_cycles, sizeof(long long), cudaMemcpyDeviceToHost));
            right += check(global ? "global" : "constant", got, word, cycles[global]);
        }
        printf("%2d different words\n    a read takes %.1f cycles from constant, %.1f cycles from global "
               "memory\n",
               different, (double)cycles[0] / READS, (double)cycles[1] / READS);
    }

    HANDLE_ERROR(cudaFree(global_words));
    HANDLE_ERROR(cudaFree(dev_word));
    HANDLE_ERROR(cudaFree(dev_got));
    HANDLE_ERROR(cudaFree(dev_cycles));
    return check_value("right rows", right, 2 * ROWS, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Times reads of constant memory at one and at several addresses.", TIMES);
}

// Checks the number of different words, where the reads of both iterations end, and that the cycles were
// measured. Constant memory is overwritten while global memory is read.
static bool check(const char *memory, const int *got, const int *word, long long cycles) {
    static int words[WORDS], zeros[WORDS], calls = 0;
    const bool constant = memory[0] == 'c';
    if (constant)
        HANDLE_ERROR(cudaMemcpyFromSymbol(words, constant_words, sizeof(words)));
    HANDLE_ERROR(cudaMemcpyToSymbol(constant_words, constant ? zeros : words, sizeof(words)));
    return check_value("different words", std::set<int>(word, word + LANES).size(), 1 << calls++ / 2, 0) &&
           check_ints(memory, got, LANES, [=](int lane) { return (word[lane] + 2 * READS) % WORDS; }) &&
           check_value("cycles were measured", cycles > 0, 1, 0);
}

// Task: from_constant(): The grid has one block, which is one warp. Lane l makes a chain of READS dependent
// reads: `at` starts as word[l], and each read replaces `at` by element `at` of the array constant_words in
// constant memory. The chain is executed twice; the second time starts with the last value of `at`. Before
// each of the two executions, all threads call __syncthreads(). Thread 0 measures the second execution with
// clock64() and stores its number of cycles in *cycles. At the end, lane l stores `at` in got[l].
// from_global(): The same with the array global_words in global memory.
