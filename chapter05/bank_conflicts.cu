// SPDX-License-Identifier: MIT
/*
 * bank_conflicts: how the words of a warp's reads fall on the banks of shared memory
 *
 * Teaches: Shared memory has 32 banks, and word w lies in bank w mod 32. Each bank gives out one
 *          word at a time, so lanes that want different words of one bank wait in line; lanes that
 *          want the same word are served together. A column of a 32 x 32 array lies in a single
 *          bank; a 33rd word in each row spreads it over all of them. A CPU has no banks, so the
 *          cycles of the CPU back end show no conflict.
 * Book:    5.3.1 (course)
 * Run:     ./bin/chapter05/bank_conflicts
 */
#include <stdio.h>
#include <stdlib.h>
#include "../common/book.h"

#define LANES 32 // of the one warp that reads
#define BANKS 32
#define WORDS (32 * 33) // 32 rows, with room for one more word in each
#define READS 512

// Lane l reads word[l] again and again. Each word holds its own number, which is where the next
// read goes: it cannot begin before this one has ended. So the cycles are those of READS reads.
__global__ void read_words(const int *word, int *got, long long *cycles) {
    __shared__ int shared[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x)
        shared[i] = i;
    __syncthreads();

    int at = word[threadIdx.x];
    for (int i = 0; i < 2; i++) { // the second time counts
        __syncthreads();
        long long start = clock64();
        for (int r = 0; r < READS; r++)
            at = shared[at];
        if (threadIdx.x == 0)
            *cycles = clock64() - start;
    }
    got[threadIdx.x] = at;
}

// The largest number of different words that the lanes want from one bank: the reads take as many
// turns.
static int turns(const int *word) {
    int most = 0;
    for (int bank = 0; bank < BANKS; bank++) {
        int different = 0;
        for (int lane = 0; lane < LANES; lane++) {
            bool first = word[lane] % BANKS == bank;
            for (int other = 0; other < lane; other++)
                first = first && word[other] != word[lane];
            different += first;
        }
        most = different > most ? different : most;
    }
    return most;
}

// Lane l wants word (factor * l + start) mod modulus.
static const struct {
    const char *name;
    int factor, start, modulus;
} patterns[] = {
    {"stride 1 (a row)", 1, 0, WORDS},
    {"stride 2", 2, 0, WORDS},
    {"stride 8", 8, 0, WORDS},
    {"stride 32 (a column)", 32, 0, WORDS},
    {"broadcast (one word)", 0, 5, WORDS},
    {"permuted (a row, shuffled)", 7, 3, 32},
    {"padded (a column, rows of 33)", 33, 0, WORDS},
};

int main(int argc, char **argv) {
    parse_options(argc, argv, "Times reads of shared memory, with and without bank conflicts.",
                  TIMES, NULL);
    select_device();
    int *dev_word, *dev_got;
    long long *dev_cycles;
    HANDLE_ERROR(cudaMalloc((void **)&dev_word, LANES * sizeof(int)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_got, LANES * sizeof(int)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_cycles, sizeof(long long)));

    bool ok = true;
    for (const auto &pattern : patterns) {
        int word[LANES], got[LANES];
        long long cycles;
        for (int lane = 0; lane < LANES; lane++)
            word[lane] = (pattern.factor * lane + pattern.start) % pattern.modulus;
        HANDLE_ERROR(cudaMemcpy(dev_word, word, sizeof word, cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaMemset(dev_got, 0xff, sizeof got));

        read_words<<<1, LANES>>>(dev_word, dev_got, dev_cycles);
        HANDLE_LAUNCH();

        HANDLE_ERROR(cudaMemcpy(got, dev_got, sizeof got, cudaMemcpyDeviceToHost));
        HANDLE_ERROR(cudaMemcpy(&cycles, dev_cycles, sizeof cycles, cudaMemcpyDeviceToHost));
        inject_error(got, sizeof got);
        printf("%-30s %2d turn%s\n", pattern.name, turns(word), turns(word) == 1 ? "" : "s");
        printf("    a read takes %.1f cycles\n    banks", (double)cycles / READS);
        for (int lane = 0; lane < LANES; lane++)
            printf(" %d", word[lane] % BANKS);
        printf("\n");
        ok = check_ints(pattern.name, got, word, LANES) && ok;
    }

    HANDLE_ERROR(cudaFree(dev_word));
    HANDLE_ERROR(cudaFree(dev_got));
    HANDLE_ERROR(cudaFree(dev_cycles));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
