// SPDX-License-Identifier: MIT
/*
 * thrust_sort: ints, and structures with a key, sorted by Thrust
 *
 * Teaches: Thrust has the algorithms of the C++ standard library for arrays on the device: they take
 *          iterators, and the vector that these belong to decides where an algorithm runs. Thrust sorts
 *          numbers with a radix sort, several bits per pass. Of structures it only knows how to compare
 *          them, so that it takes a merge sort, which is slower. With the keys in an array of their own,
 *          stable_sort_by_key is a radix sort again.
 * Terms:   Thrust, radix sort, merge sort, stable sort, structure of arrays, throughput
 * Book:    12.4 (course); T Thrust (sorting)
 * After:   chapter12/thrust_iterators
 * Build:   nvcc -o thrust_sort chapter12/thrust_sort.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/thrust_sort --size 16M
 * Needs:   libs=thrust
 * Check:   --size 1000 --input few
 */
#include <vector>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/pair.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include "../common/book.h"
#include "../common/timing.h"
#include "libraries.h" // handle_exceptions()

#define N 1000000

typedef thrust::pair<int, int> Item; // the key, and the number of the element in the input

struct BySmallerKey {
    __host__ __device__ bool operator()(const Item &a, const Item &b) const { return a.first < b.first; }
};

static size_t n = N; // --size
static std::vector<int> keys;
static std::vector<Item> items, expected;
static void fill(void);
static void show(const char *name, float ms);
static bool check(const char *name, const std::vector<int> &sorted); // keys
static bool check(const char *name, const std::vector<Item> &sorted);

static bool sort_ints(void) {
    thrust::device_vector<int> input = keys, dev(n);
    float ms = median_ms([&] { thrust::sort(dev.begin(), dev.end()); }, [&] { dev = input; });
    show("ints, radix sort:", ms);

    std::vector<int> sorted(n);
    thrust::copy(dev.begin(), dev.end(), sorted.begin());
    return check("ints", sorted);
}

static bool sort_structures(void) {
    thrust::device_vector<Item> input = items, dev(n);
    float ms =
        median_ms([&] { thrust::stable_sort(dev.begin(), dev.end(), BySmallerKey()); }, [&] { dev = input; });
    show("structures, merge sort:", ms);

    std::vector<Item> sorted(n);
    thrust::copy(dev.begin(), dev.end(), sorted.begin());
    return check("structures", sorted);
}

// A structure of arrays: the keys in one array, the numbers in another, which is moved as the keys are.
static bool sort_arrays(void) {
    thrust::device_vector<int> input = keys, dev_keys(n), dev_numbers(n);
    float ms =
        median_ms([&] { thrust::stable_sort_by_key(dev_keys.begin(), dev_keys.end(), dev_numbers.begin()); },
                  [&] {
                      dev_keys = input;
                      thrust::sequence(dev_numbers.begin(), dev_numbers.end()); // 0, 1, 2, …
                  });
    show("keys and numbers, radix sort:", ms);

    std::vector<int> sorted(n), numbers(n);
    thrust::copy(dev_keys.begin(), dev_keys.end(), sorted.begin());
    thrust::copy(dev_numbers.begin(), dev_numbers.end(), numbers.begin());
    std::vector<Item> both(n);
    for (size_t i = 0; i < n; i++)
        both[i] = Item(sorted[i], numbers[i]);
    return check("keys and numbers", both);
}

int main(int argc, char **argv) {
    settings(argc, argv);
    fill();
    expected = items;
    float ms = host_ms([] { std::stable_sort(expected.begin(), expected.end(), BySmallerKey()); });
    show("host, std::stable_sort:", ms);

    bool ok = sort_ints();
    ok = sort_structures() && ok;
    ok = sort_arrays() && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

static int input = 0; // --input

void settings(int argc, char **argv) {
    handle_exceptions();
    configure(
        argc, argv, "Sorts ints and structures with Thrust.", TIMES,
        {OPTION_SIZE("size", &n, 1, INT_MAX, "elements to sort"),
         OPTION_WORD(
             "input", &input, "random|few|equal|sorted|reversed",
             "the keys: from the whole range of int, only -5 to 4, all the same, in or against the order")});
    require_memory(12 * n * sizeof(int), 8 * n * sizeof(int));
}

static void fill(void) {
    for (size_t i = 0; i < n; i++) {
        int random = random_bits(),
            keys_of[] = {random, (int)((unsigned)random % 10) - 5, -7, (int)i, -(int)i};
        keys.push_back(i == n / 2 && input == 0 ? INT_MIN : keys_of[input]);
        items.push_back(Item(keys[i], i));
    }
}

static void show(const char *name, float ms) {
    printf("%-30s %10.3f ms, %10.3f Mkeys/s\n", name, ms, n / ms / 1e3);
}

static bool check(const char *name, const std::vector<int> &sorted) {
    return check_ints(name, sorted.data(), n, [](size_t i) { return expected[i].first; });
}

// Structures of two ints are compared as 2n ints. Equal keys must be in the order of their numbers.
static bool check(const char *name, const std::vector<Item> &sorted) {
    return check_ints(name, &sorted[0].first, &expected[0].first, 2 * n);
}

// Task: sort_ints(): Sort a device_vector that is initialized with a copy of `keys`, with thrust::sort.
// Measure the time with median_ms(sort, reset), where reset makes the copy again before each run. Call
// show("ints, radix sort:", ms), copy the result to a std::vector on the host, and return
// check("ints", that vector).
// sort_structures(): The same for `items`, with thrust::stable_sort and BySmallerKey(),
// show("structures, merge sort:", ms) and check("structures", that vector).
// sort_arrays(): Sort the keys, in one vector, and with them the numbers 0, 1, 2, … in another one, with
// thrust::stable_sort_by_key; reset makes both vectors again. Call show("keys and numbers, radix sort:", ms),
// and return check("keys and numbers", a vector of Item with both).
