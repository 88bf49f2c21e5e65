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
 * Book:    12.4.1 (course)
 * After:   chapter12/scan
 * Build:   nvcc -o radix_sort chapter12/radix_sort.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/radix_sort --size 16M
 * Differs: the course tests a bit with (d & mask) > 1, which is never true for bit 0; with --printed-test
 *          so does the program, on an input that it cannot sort, with status 1. --base 10 is the course's
 *          sort by decimal digits, without the number 31 that it forgets. Signed ints are sorted too.
 * Check:   --size 500
 */
#include <chrono>
#include <string>
#include <vector>
#include "../common/book.h"
#include "../common/timing.h"
#include "scan.h" // scan()

const int PASSES = 32;

typedef std::vector<int> Ints;

static size_t n = 0;              // --size
static Ints in;                   // --numbers, or random
static bool trace = false;        // --passes
static bool printed_test = false; // --printed-test
static void show(std::string name, const Ints &list);
static bool check(const char *name, Ints &sorted);

// Whether x belongs to the right part of the list after the pass for this bit. In the last pass the numbers
// with a sign bit of 1, the negative ones, are in the left part.
__host__ __device__ bool goes_right(int x, int bit, bool printed_test) {
    unsigned masked = (unsigned)x & 1u << bit;
    bool one = masked > (printed_test ? 1 : 0);
    return bit == PASSES - 1 ? !one : one;
}

static void sort_on_host(Ints &list) {
    Ints other(n);
    for (int bit = 0; bit < PASSES; bit++) {
        size_t place = 0;
        for (int x : list)
            if (!goes_right(x, bit, printed_test))
                other[place++] = x;
        for (int x : list)
            if (goes_right(x, bit, printed_test))
                other[place++] = x;
        swap(list, other);
        if (trace)
            show("pass " + std::to_string(bit + 1), list);
    }
}

__global__ void mark_left(const int *list, unsigned *flags, int bit, bool printed_test, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n)
        flags[i] = !goes_right(list[i], bit, printed_test);
}

// lefts[i] is how many numbers before number i go left; *all_lefts is how many of all do.
__global__ void move(const int *list, int *other, const unsigned *lefts, const unsigned *all_lefts, int bit,
                     bool printed_test, size_t n) {
    size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x;
    if (i < n)
        other[goes_right(list[i], bit, printed_test) ? *all_lefts + i - lefts[i] : lefts[i]] = list[i];
}

// Each pass swaps the input and output arrays. The number of passes is even, so the caller's dev_list has the
// sorted list at the end.
static void sort_on_device(int *dev_list, int *dev_other, unsigned *dev_flags, unsigned *dev_sums) {
    const unsigned *dev_all = dev_sums + scan_sums(n) - 1;
    size_t blocks = (n + 255) / 256;
    for (int bit = 0; bit < PASSES; bit++) {
        mark_left<<<blocks, 256>>>(dev_list, dev_flags, bit, printed_test, n);
        HANDLE_LAUNCH();
        scan(dev_flags, dev_flags, dev_sums, n);
        move<<<blocks, 256>>>(dev_list, dev_other, dev_flags, dev_all, bit, printed_test, n);
        HANDLE_LAUNCH();
        swap(dev_list, dev_other);
    }
}

int main(int argc, char **argv) {
    settings(argc, argv);
    Ints list = in;
    show("input", in);
    auto start = std::chrono::steady_clock::now();
    sort_on_host(list);
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    show("sorted", list);
    printf("%zu ints, %d passes\n", n, PASSES);
    printf("host:   %10.3f ms\n", elapsed.count());
    bool ok = check("host", list);

    int *dev_list, *dev_other;
    unsigned *dev_flags, *dev_sums;
    HANDLE_ERROR(cudaMalloc(&dev_list, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_other, n * sizeof(int)));
    HANDLE_ERROR(cudaMalloc(&dev_flags, n * sizeof(unsigned)));
    HANDLE_ERROR(cudaMalloc(&dev_sums, scan_sums(n) * sizeof(unsigned)));
    auto reset = [&] {
        HANDLE_ERROR(cudaMemcpy(dev_list, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    };
    float ms = median_ms([&] { sort_on_device(dev_list, dev_other, dev_flags, dev_sums); }, reset);
    printf("device: %10.3f ms, %.3f Mkeys/s\n", ms, n / ms / 1e3);
    HANDLE_ERROR(cudaMemcpy(list.data(), dev_list, n * sizeof(int), cudaMemcpyDeviceToHost));
    ok = check("device", list) && ok;

    HANDLE_ERROR(cudaFree(dev_list));
    HANDLE_ERROR(cudaFree(dev_other));
    HANDLE_ERROR(cudaFree(dev_flags));
    HANDLE_ERROR(cudaFree(dev_sums));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

// --base 10, on the host: each pass distributes the numbers to a list for each digit and joins these lists.
// In C the digits of a negative number are negative too, from -9 to 0, so that negative numbers need no other
// treatment. There are as many passes as the longest number has digits.
static bool sort_decimal(void) {
    Ints list = in, digits[19];
    show("input", in);
    for (long long place = 1, pass = 1, more = 1; more; place *= 10, pass++) {
        more = 0;
        for (int x : list) {
            digits[x / place % 10 + 9].push_back(x);
            more |= x / place / 10 != 0;
        }
        list.clear();
        for (Ints &digit : digits) {
            list.insert(list.end(), digit.begin(), digit.end());
            digit.clear();
        }
        if (trace)
            show("pass " + std::to_string(pass), list);
    }
    show("sorted", list);
    return check("decimal digits", list);
}

static void parse_numbers(const char *text) {
    const char *rest = text;
    char *end;
    do {
        long value = strtol(rest, &end, 10);
        if (end == rest || (*end && *end != ',') || value != (int)value)
            quit(EXIT_USAGE, "--numbers %s: must be ints with commas between them", text);
        in.push_back(value);
        rest = end + 1;
    } while (*end);
}

// --printed-test: a sort by all bits but bit 0 must leave some numbers in the wrong order. Random numbers get
// such a pair.
static void need_wrong_order(bool given) {
    if (!given && n > 1)
        in[0] = 3, in[1] = 2;
    Ints sorted = in;
    std::stable_sort(sorted.begin(), sorted.end(), [](int a, int b) { return a >> 1 < b >> 1; });
    if (std::is_sorted(sorted.begin(), sorted.end()))
        quit(EXIT_USAGE, "--printed-test: needs an odd number before the even number below it, as in 3,2");
}

void settings(int argc, char **argv) {
    const char *list = NULL; // --numbers
    int decimal = 0;         // --base
    parse_options(
        argc, argv, "Radix sort of ints, on the host and on the device.", TIMES,
        {OPTION_SIZE("size", &n, 1, INT_MAX, "random ints, instead of 262144"),
         OPTION_TEXT("numbers", &list, "ints to sort, such as 5,213,-7, instead of random ones"),
         OPTION_WORD("base", &decimal, "2|10", "the digits: bits, or decimal digits (on the host only)"),
         OPTION_FLAG("passes", &trace, "print the list after each pass on the host"),
         OPTION_FLAG("printed-test", &printed_test,
                     "wrong: the course's test of a bit, which never sees bit 0")});
    if (n && list)
        quit(EXIT_USAGE, "--size and --numbers exclude each other");
    if (decimal && printed_test)
        quit(EXIT_USAGE, "--printed-test is a test of bits, not for --base 10");
    if (!n && !list)
        list = decimal ? "5,213,55,21,430,31,20" : printed_test ? "3,2" : NULL;
    if (list)
        parse_numbers(list);
    n = list ? in.size() : n ? n : 1 << 18;
    select_device();
    require_memory(4 * n * sizeof(int), 4 * n * sizeof(int));
    for (size_t i = 0; in.size() < n; i++) // random ints, with the smallest and the largest among them
        in.push_back(i == n / 2 ? INT_MIN : i == n / 3 ? INT_MAX : (int)random_bits());
    if (decimal)
        exit(sort_decimal() ? EXIT_SUCCESS : EXIT_FAILURE);
    if (printed_test)
        need_wrong_order(list != NULL);
}

static void show(std::string name, const Ints &list) {
    const size_t most = 16; // numbers that are shown
    printf("%s:", name.c_str());
    for (size_t i = 0; i < min_of(n, most); i++)
        printf(" %d", list[i]);
    printf("%s\n", n > most ? " …" : "");
}

// Overwrites `sorted` afterwards, so that a copy that was left out is noticed.
static bool check(const char *name, Ints &sorted) {
    Ints expected = in;
    std::sort(expected.begin(), expected.end());
    bool ok = check_ints(name, sorted.data(), expected.data(), n);
    std::transform(expected.begin(), expected.end(), sorted.begin(), [](int x) { return ~x; });
    if (printed_test && !ok)
        printf("%s: wrong, as expected: the test never sees bit 0\n", name);
    return ok;
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
