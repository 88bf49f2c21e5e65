// SPDX-License-Identifier: MIT
/*
 * radix_sort: a sort without comparisons, one bit per pass, on the host and on the device
 *
 * Teaches: A radix sort looks at one digit per pass, the lowest first. Each pass is stable: equal digits
 *          keep their order, so that the work of earlier passes is not lost. With one bit per pass 32 passes
 *          sort ints; on the device a scan of flags gives each number its index: with bit 0 the zeros before
 *          it, with bit 1 all zeros plus the ones before it. Negative ints have a sign bit of 1, so the last
 *          pass sorts by the inverted bit.
 * Terms:   radix sort, stable sort, scan, pass, speedup
 * Book:    12.4.1 (course); N radix sort (by tens): --base 10 --passes; N radix sort (the test of a bit):
 *          --printed-test
 * After:   chapter12/scan
 * Build:   nvcc -o radix_sort chapter12/radix_sort.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/radix_sort --size 16M
 * Differs: the course tests a bit with (d & mask) > 1, which is never true for bit 0; --printed-test sorts
 *          3, 2 and negative numbers so, with status 1. --base 10 is the course's sort by decimal digits,
 *          with the number 31 that the course's result lacks. Signed ints are sorted too.
 * Check:   --size 4000
 */
#include <time.h>
#include "../common/book.h"
#include "scan.h" // scan(), the scan of scan.cu with more elements per thread

const int PASSES = 32;

static size_t n = 1 << 18;       // --size
static bool trace, printed_test; // --passes, --printed-test
static int decimal;              // --base
static int sort_decimal(void);
static int sort_by_printed_test(void);
static void show(const char *title, const int *list, size_t n);
static bool check(const char *name, const int *in, const int *sorted, size_t n);

// Whether x belongs to the right part of the list after the pass for this bit. In the last pass the numbers
// with a sign bit of 1, the negative ones, are in the left part.
__host__ __device__ bool goes_right(int x, int bit) {
    bool one = ((unsigned)x & 1u << bit) != 0;
    return bit == PASSES - 1 ? !one : one;
}

// The number of passes is even, so the sorted numbers are in `list` at the end.
static void sort_on_host(int *list, int *other, size_t n) {
    for (int bit = 0; bit < PASSES; bit++) {
        size_t place = 0;
        for (size_t i = 0; i < n; i++)
            if (!goes_right(list[i], bit))
                other[place++] = list[i];
        for (size_t i = 0; i < n; i++)
            if (goes_right(list[i], bit))
                other[place++] = list[i];
        swap(list, other);
        if (trace) {
            printf("pass %d", bit + 1);
            show(":", list, n);
        }
    }
}

__global__ void mark_left(const int *list, unsigned *flags, int bit, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n)
        flags[i] = !goes_right(list[i], bit);
}

// lefts[i] is how many numbers before number i go left; *all_lefts is how many of all do.
__global__ void move(const int *list, int *other, const unsigned *lefts, const unsigned *all_lefts, int bit,
                     size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n)
        other[goes_right(list[i], bit) ? *all_lefts + i - lefts[i] : lefts[i]] = list[i];
}

// scan() also stores the sum of all flags, behind the sums of its tiles.
static void sort_on_device(int *dev_list, int *dev_other, unsigned *dev_flags, unsigned *dev_sums) {
    const unsigned *dev_all = dev_sums + scan_sums(n) - 1;
    size_t blocks = (n + 255) / 256;
    for (int bit = 0; bit < PASSES; bit++) {
        mark_left<<<blocks, 256>>>(dev_list, dev_flags, bit, n);
        HANDLE_LAUNCH();
        scan(dev_flags, dev_flags, dev_sums, n);
        move<<<blocks, 256>>>(dev_list, dev_other, dev_flags, dev_all, bit, n);
        HANDLE_LAUNCH();
        swap(dev_list, dev_other);
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    if (decimal)
        return sort_decimal();
    if (printed_test)
        return sort_by_printed_test();
    size_t bytes = n * sizeof(int);
    int *in = (int *)malloc(bytes), *list = (int *)malloc(bytes), *other = (int *)malloc(bytes);
    HANDLE_NULL(in && list && other);
    for (size_t i = 0; i < n; i++)
        in[i] = random_bits();
    in[n / 3] = INT_MAX;
    in[n / 2] = INT_MIN;
    show("input:", in, n);

    memcpy(list, in, bytes);
    clock_t begin = clock();
    sort_on_host(list, other, n);
    clock_t end = clock();
    show("sorted:", list, n);
    printf("%zu ints, %d passes\n", n, PASSES);
    printf("host:   %10.3f ms\n", 1e3 * (end - begin) / CLOCKS_PER_SEC);
    bool ok = check("host", in, list, n);

    int *dev_list, *dev_other;
    unsigned *dev_flags, *dev_sums;
    HANDLE_ERROR(cudaMalloc((void **)&dev_list, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_other, bytes));
    HANDLE_ERROR(cudaMalloc((void **)&dev_flags, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_sums, scan_sums(n) * sizeof(unsigned)));
    cudaEvent_t start, stop;
    float ms;
    HANDLE_ERROR(cudaEventCreate(&start));
    HANDLE_ERROR(cudaEventCreate(&stop));
    for (int run = 0; run < 2; run++) { // the first run is a warm-up
        HANDLE_ERROR(cudaMemcpy(dev_list, in, bytes, cudaMemcpyHostToDevice));
        HANDLE_ERROR(cudaEventRecord(start));
        sort_on_device(dev_list, dev_other, dev_flags, dev_sums);
        HANDLE_ERROR(cudaEventRecord(stop));
    }
    HANDLE_ERROR(cudaMemcpy(other, dev_list, bytes, cudaMemcpyDeviceToHost));
    HANDLE_ERROR(cudaEventElapsedTime(&ms, start, stop));
    printf("device: %10.3f ms, %.3f Mkeys/s\n", ms, n / ms / 1e3);
    ok = check("device", in, other, n) && ok;

    HANDLE_ERROR(cudaEventDestroy(start));
    HANDLE_ERROR(cudaEventDestroy(stop));
    HANDLE_ERROR(cudaFree(dev_list));
    HANDLE_ERROR(cudaFree(dev_other));
    HANDLE_ERROR(cudaFree(dev_flags));
    HANDLE_ERROR(cudaFree(dev_sums));
    free(in);
    free(list);
    free(other);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    size_t size = 0;
    configure(argc, argv, "Radix sort of ints, on the host and on the device.", TIMES,
              {OPTION_SIZE("size", &size, 1, INT_MAX, "ints to sort, instead of 262144"),
               OPTION_WORD("base", &decimal, "2|10", "10: seven numbers by decimal digits, on the host"),
               OPTION_FLAG("passes", &trace, "print the list after each pass on the host"),
               OPTION_FLAG("printed-test", &printed_test,
                           "wrong: the course's test of a bit, which never sees bit 0")});
    if ((size > 0) + decimal + printed_test > 1)
        quit(EXIT_USAGE, "only one of --size, --base 10 and --printed-test");
    n = size ? size : n;
    require_memory(4 * n * sizeof(int), 4 * n * sizeof(int));
}

static void show(const char *title, const int *list, size_t n) {
    printf("%s", title);
    const size_t most = 16; // numbers that are shown
    for (size_t i = 0; i < min_of(n, most); i++)
        printf(" %d", list[i]);
    printf("%s\n", n > most ? " …" : "");
}

static bool check(const char *name, const int *in, const int *sorted, size_t n) {
    HostArray<int> expected(n);
    std::copy(in, in + n, +expected);
    std::sort(+expected, expected + n);
    return check_ints(name, sorted, expected, n);
}

// Each pass distributes the numbers to a list for each digit and joins these lists.
static int sort_decimal(void) {
    const int in[] = {5, 213, 55, 21, 430, 31, 20};
    int list[7], digits[10][7];
    show("input:", in, 7);
    memcpy(list, in, sizeof(in));
    for (int pass = 1, place = 1; pass <= 3; pass++, place *= 10) {
        int count[10] = {0}, k = 0;
        for (int x : list)
            digits[x / place % 10][count[x / place % 10]++] = x;
        for (int digit = 0; digit < 10; digit++)
            for (int i = 0; i < count[digit]; i++)
                list[k++] = digits[digit][i];
        if (trace) {
            printf("pass %d", pass);
            show(":", list, 7);
        }
    }
    show("sorted:", list, 7);
    return check("decimal digits", in, list, 7) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// As sort_on_host(), with the printed test.
static void print_by_printed_test(const char *name, const int *in, int count, const char *why) {
    int list[7];
    memcpy(list, in, count * sizeof(int));
    for (int bit = 0; bit < PASSES; bit++)
        std::stable_partition(list, list + count, [=](int x) { return !(((unsigned)x & 1u << bit) > 1); });
    show("sorted:", list, count);
    if (!check(name, in, list, count))
        printf("%s: wrong, as expected: %s\n", name, why);
}

static int sort_by_printed_test(void) {
    const int odd[] = {3, 2}, negative[] = {4, -2, 10, -2147483646, -8, 6, 0};
    print_by_printed_test("host", odd, 2, "the test never sees bit 0");
    print_by_printed_test("negative numbers", negative, 7, "bit 31, their sign, puts them last");
    return EXIT_FAILURE;
}

// Task: mark_left(): One thread per number: if its global index i is below n, flags[i] becomes 1 if list[i]
// goes left in the pass for this bit, that is, if goes_right() returns false, otherwise 0.
// move(): One thread per number. lefts[i] is how many of the numbers before number i go left, and *all_lefts
// is how many of all n numbers go left. If i is below n, thread i stores list[i] at its place in `other`:
// first all numbers that go left, then all that go right, in each part in the order of the list.
// sort_on_device(): For each bit from 0 to PASSES - 1: launch mark_left, compute the exclusive prefix sums of
// the flags in place with scan(dev_flags, dev_flags, dev_sums, n), launch move, and swap dev_list and
// dev_other. scan() also stores the sum of all flags, which is how many numbers go left, at
// dev_sums + scan_sums(n) - 1 in device memory.
