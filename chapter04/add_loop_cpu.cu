// SPDX-License-Identifier: MIT
/*
 * add_loop_cpu: vector addition on the host, on one core and on two
 *
 * Teaches: Vector addition is a loop whose iterations do not depend on each other, so two cores can
 *          share it: one adds the even elements, the other one the odd elements. Each starts at its own
 *          number and steps by the number of cores, the stride.
 * Terms:   vector addition, host, host thread, stride
 * Book:    4.2.1 (CPU)
 * Build:   nvcc -o add_loop_cpu chapter04/add_loop_cpu.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter04/add_loop_cpu --size 1000
 * Differs: the version for two cores, which the book describes, runs too, on two host threads.
 * Check:   --size 1001
 */
#include "../common/book.h"
#include "../common/checks/add.h"

#define N     10
#define CORES 2

static size_t n = N; // --size

struct DataBlock {
    const int *a, *b;
    int *c;
    size_t tid;   // the number of this core: its first element
    size_t cores; // the number of cores: the step to its next element
};

static void *add(void *data) {
    const DataBlock *d = (const DataBlock *)data;
    for (size_t tid = d->tid; tid < n; tid += d->cores)
        d->c[tid] = d->a[tid] + d->b[tid];
    return NULL;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *a = host_array<int>(n), *b = host_array<int>(n), *c = host_array<int>(n);
    fill_vectors(a, b, n, -1);        // a[i] = -k, b[i] = k * k with k = i % 46341
    memset(c, 0xff, n * sizeof(int)); // -1, which is not among the sums: they are even

    DataBlock one_core = {a, b, c, 0, 1};
    add(&one_core);
    print_sums(a, b, c, n);
    bool ok = check_sums("one core: c", c, n, -1);

    memset(c, 0xff, n * sizeof(int));
    DataBlock core[CORES];
    CUTThread threads[CORES];
    for (size_t tid = 0; tid < CORES; tid++) {
        core[tid] = {a, b, c, tid, CORES};
        threads[tid] = start_thread(add, &core[tid]);
    }
    wait_for_threads(threads, CORES);
    ok = check_sums("two cores: c", c, n, -1) && ok;
    if (ok)
        printf("Two cores computed the same sums.\n");

    free(a);
    free(b);
    free(c);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    configure(argc, argv, "Adds two vectors in a loop on the host.", HOST_ONLY,
              {OPTION_SIZE("size", &n, 1, 1LL << 32, "elements in a vector")});
    require_memory(4 * n * sizeof(int), 0);
}

// Task: add(): data points to a DataBlock; let d be this pointer. The function runs on core number d->tid of
// d->cores cores. It stores a[i] + b[i] in c[i], where a, b and c are the arrays of the DataBlock, for
// i = d->tid, d->tid + d->cores, d->tid + 2 * d->cores and so on, while i < n. Each element is computed by
// exactly one core. Return NULL.
