// SPDX-License-Identifier: MIT
/*
 * bank_conflicts: access patterns of a warp to the banks of shared memory
 *
 * Teaches: Shared memory has 32 banks; word w lies in bank w mod 32, and a bank serves one word at a time.
 *          When lanes of a warp read different words of one bank, a bank conflict, it serves them one after
 *          the other; a word that several lanes read is broadcast. A column of a 32 x 32 array lies in one
 *          bank; with a 33rd word of padding in each row it lies in all banks. Threads of different warps
 *          have no conflicts with each other.
 * Terms:   bank conflict, bank, shared memory, broadcast, padding, warp, lane, stride, latency
 * Book:    5.3.1 (course); N banks; T reduction (banks)
 * After:   chapter05/divergence
 * Build:   nvcc -o bank_conflicts chapter05/bank_conflicts.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter05/bank_conflicts
 * Differs: a CPU has no banks, so the cycles on the CPU back end show no conflicts. Devices of compute
 *          capability 1, which one of the courses used, had 16 banks, and half a warp read at a time.
 */
#include "../common/book.h"

#define LANES 32
#define BANKS 32
#define WORDS (32 * 33) // 32 rows of 32 words and one word of padding
#define READS 512

// Thread l reads READS words, word[l] first. Each word holds the number of the next one, which is the address
// of the next read: a read cannot start before the previous one has ended, so the cycles are READS latencies.
__global__ void read_words(const int *word, int *got, long long *cycles) {
    __shared__ int shared[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x)
        shared[i] = (i + 1) % WORDS; // all lanes move on by one word, so the conflicts stay the same
    __syncthreads();

    int at = word[threadIdx.x];
    for (int i = 0; i < 2; i++) { // the first iteration warms up, the second one counts
        __syncthreads();
        long long start = clock64();
        for (int r = 0; r < READS; r++)
            at = shared[at];
        if (threadIdx.x == 0)
            *cycles = clock64() - start;
    }
    got[threadIdx.x] = at;
}

// Lane l reads word (factor * l + first) mod modulus.
static const struct {
    const char *name;
    int factor, first, modulus;
    bool pair;  // lanes 2 and 7 read words 50 and 178, both in bank 18, and lane 18 reads word 2
    int second; // if not 0, the word that all lanes of a second warp read
} patterns[9] = {
    {"stride 1 (a row)", 1, 0, WORDS, false, 0},
    {"stride 2", 2, 0, WORDS, false, 0},
    {"stride 8", 8, 0, WORDS, false, 0},
    {"stride 32 (a column)", 32, 0, WORDS, false, 0},
    {"broadcast (one word)", 0, 5, WORDS, false, 0},
    {"permuted (a row, shuffled)", 7, 3, 32, false, 0},
    {"padded (a column, rows of 33)", 33, 0, WORDS, false, 0},
    {"words 50 and 178 in a row", 1, 0, WORDS, true, 0},
    {"word 50, word 178 in warp 1", 0, 50, WORDS, false, 178},
};

static bool check_reads(int pattern, int threads, const int *got, const int *word, long long cycles);
static bool check_step(int step, int got);

// The number of accesses that a bank serves one after the other: the largest number of different words that
// the lanes of a warp want from one bank.
static int turns(const int *word, int lanes) {
    int most = 0;
    for (int bank = 0; bank < BANKS; bank++) {
        int wanted = 0; // different words in this bank
        for (int lane = 0; lane < lanes; lane++) {
            bool again = false; // whether an earlier lane wants the same word
            for (int earlier = 0; earlier < lane; earlier++)
                again = again || word[earlier] == word[lane];
            wanted += word[lane] % BANKS == bank && !again;
        }
        if (most < wanted)
            most = wanted;
    }
    return most;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *dev_word, *dev_got;
    long long *dev_cycles;
    HANDLE_ERROR(cudaMalloc(&dev_word, 2 * LANES * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_got, 2 * LANES * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_cycles, sizeof(long long)));

    const int words[] = {4, 31, 50, 128, 178};
    for (int i = 0; i < 5; i++)
        printf("word %d is in bank %d\n", words[i], words[i] % BANKS);

    int right = 0; // checks that have passed
    int word[2 * LANES], got[2 * LANES];
    for (int p = 0; p < 9; p++) {
        int threads = patterns[p].second ? 2 * LANES : LANES;
        long long cycles;
        for (int lane = 0; lane < LANES; lane++) {
            word[lane] = (patterns[p].factor * lane + patterns[p].first) % patterns[p].modulus;
            word[LANES + lane] = patterns[p].second;
        }
        if (patterns[p].pair) {
            word[2] = 50;
            word[7] = 178;
            word[18] = 2;
        }
        HANDLE_ERROR(cudaMemcpy(dev_word, word, sizeof(word), cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemset(dev_got, 0xff, sizeof(got)));

        read_words<<<1, threads>>>(dev_word, dev_got, dev_cycles);
        HANDLE_LAUNCH();

        HANDLE_ERROR(cudaMemcpy(got, dev_got, sizeof(got), cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaMemcpy(&cycles, dev_cycles, sizeof(cycles), cudaMemcpyDeviceToHost));
        printf("%-30s %2d turn%s\n", patterns[p].name, turns(word, LANES),
               turns(word, LANES) == 1 ? "" : "s");
        printf("    a read takes %.1f cycles\n    banks", (double)cycles / READS);
        for (int thread = 0; thread < threads; thread++)
            printf(" %d", word[thread] % BANKS);
        printf("\n");
        right += check_reads(p, threads, got, word, cycles);
    }
    // Kernel 1 with blocks of 256 threads: lane l adds word 2 * step * l + step to word 2 * step * l.
    printf("kernel 1 of reduction, turns of its steps:");
    for (int step = 1; step < 256; step *= 2) {
        int lanes = min_of(LANES, 128 / step);
        for (int lane = 0; lane < lanes; lane++)
            word[lane] = 2 * step * lane;
        printf(" %d", turns(word, lanes));
        right += check_step(step, turns(word, lanes));
    }
    printf("\n");

    HANDLE_ERROR(cudaFree(dev_word));
    HANDLE_ERROR(cudaFree(dev_got));
    HANDLE_ERROR(cudaFree(dev_cycles));
    return check_value("right rows", right, 9 + 8, 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Times reads of shared memory, with and without bank conflicts.", TIMES);
}

// Checks the turns, and the word at which the reads of both iterations end. The cycles must have been
// measured.
static bool check_reads(int pattern, int threads, const int *got, const int *word, long long cycles) {
    const int expected[9] = {1, 2, 8, 32, 1, 1, 1, 2, 1};
    return check_ints(patterns[pattern].name, got, threads,
                      [=](int thread) { return (word[thread] + 2 * READS) % WORDS; }) &&
           check_value("turns", turns(word, LANES), expected[pattern], 0) &&
           check_value("cycles were measured", cycles > 0, 1, 0);
}

// Step `step` has 128 / step additions, and its words lie in every (2 * step)-th bank.
static bool check_step(int step, int got) {
    return check_value("turns of a step", got, min_of(32, 128 / step) / max_of(1, 16 / step), 0);
}

// Task: read_words(): The grid has one block of one or two warps. The block initializes an array of WORDS
// ints in shared memory: element i has the value (i + 1) % WORDS. A barrier follows. Thread l then makes a
// chain of READS dependent reads: `at` starts as word[l], and each read replaces `at` by element `at` of the
// array. The chain is executed twice; the second time starts with the last value of `at`. Before each of the
// two executions, all threads call __syncthreads(). Thread 0 measures the second execution with clock64() and
// stores its number of cycles in *cycles. At the end, thread l stores `at` in got[l].
