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

#define N 10

static size_t n = N; // --size

struct DataBlock {
    const int *a, *b;
    int *c;
    size_t tid;   // the number of this core: its first element
    size_t cores; // the number of cores: the step to its next element
};

static void *add(void *data) {
    const DataBlock *d = (const DataBlock *)data;
    size_t tid = d->tid;
    while (tid < n) {
        d->c[tid] = d->a[tid] + d->b[tid];
        tid += d->cores;
    }
    return NULL;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    int *a = (int *)malloc(n * sizeof(int)), *b = (int *)malloc(n * sizeof(int));
    int *c = (int *)malloc(n * sizeof(int));
    HANDLE_NULL(a && b && c);

    for (size_t i = 0; i < n; i++) {
        int k = i % 46341; // 46340 is the largest number whose square fits an int
        a[i] = -k;
        b[i] = k * k;
    }
    DataBlock one_core = {a, b, c, 0, 1};
    add(&one_core);
    print_sums(a, b, c, n); // of more than 20 sums the first and the last five
    bool ok = check_sums("one core: c", c, n, -1);

    memset(c, 0xff, n * sizeof(int)); // no sums of one core are left
    DataBlock core[] = {{a, b, c, 0, 2}, {a, b, c, 1, 2}};
    CUTThread threads[] = {start_thread(add, &core[0]), start_thread(add, &core[1])};
    wait_for_threads(threads, 2);
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
