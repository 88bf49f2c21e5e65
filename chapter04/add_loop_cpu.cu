// SPDX-License-Identifier: MIT
/*
 * add_loop_cpu: adding vectors in a loop, on one core and on two
 *
 * Teaches: Adding two vectors is a loop whose steps do not depend on each other, so two cores can
 *          share it. Each starts at its own number and steps by two.
 * Book:    4.2.1 (CPU)
 * Run:     ./bin/chapter04/add_loop_cpu
 * Differs: the version for two cores, which the book describes, runs here as well, on two threads
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../common/book.h"
#include "../common/memory.h"

#define N 10

#define CORES 2

struct DataBlock {
    const int *a, *b;
    int *c;
    size_t n;
    size_t tid;    // where to start: the number of this core
    size_t stride; // how far to step: the number of cores
};

static void *add(void *data) {
    const DataBlock *d = (const DataBlock *)data;
    for (size_t i = d->tid; i < d->n; i += d->stride)
        d->c[i] = d->a[i] + d->b[i];
    return NULL;
}

static void add_on_two_cores(const int *a, const int *b, int *c, size_t n) {
    DataBlock data[CORES];
    CUTThread threads[CORES];
    for (size_t tid = 0; tid < CORES; tid++) {
        data[tid] = {a, b, c, n, tid, CORES};
        threads[tid] = start_thread(add, &data[tid]);
    }
    wait_for_threads(threads, CORES);
}

// a = -i and b = i * i. 46340 is the last i with a square that fits an int: after it, i starts
// over.
static int index_value(size_t i) {
    return (int)(i % 46341);
}

static void print_sums(const int *a, const int *b, const int *c, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (n > 20 && i == 5) {
            printf("... %zu more ...\n", n - 10);
            i = n - 5;
        }
        printf("%d + %d = %d\n", a[i], b[i], c[i]);
    }
}

int main(int argc, char **argv) {
    size_t n = N;
    const Option own[] = {OPTION_SIZE("size", &n, 1, (size_t)1 << 32, "elements in a vector"),
                          OPTION_END};
    parse_options(argc, argv, "Adds two vectors in a loop on the host.", HOST_ONLY, own);
    select_device();
    require_memory(4 * n * sizeof(int), 0);

    int *a = (int *)malloc(n * sizeof(int));
    int *b = (int *)malloc(n * sizeof(int));
    int *c = (int *)malloc(n * sizeof(int));
    int *expected = (int *)malloc(n * sizeof(int));
    HANDLE_NULL(a);
    HANDLE_NULL(b);
    HANDLE_NULL(c);
    HANDLE_NULL(expected);
    for (size_t i = 0; i < n; i++) {
        int value = index_value(i);
        a[i] = -value;
        b[i] = value * value;
        expected[i] = value * (value - 1);
        c[i] = -1; // no sum of these is odd
    }

    DataBlock alone = {a, b, c, n, 0, 1};
    add(&alone);
    print_sums(a, b, c, n);
    bool ok = check_ints("one core: c", c, expected, n);

    memset(c, 0xff, n * sizeof(int));
    add_on_two_cores(a, b, c, n);
    inject_error(c, n * sizeof(int));
    ok = check_ints("two cores: c", c, expected, n) && ok;
    if (ok)
        printf("Two cores came to the same sums.\n");

    free(a);
    free(b);
    free(c);
    free(expected);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
