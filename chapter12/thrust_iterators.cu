// SPDX-License-Identifier: MIT
/*
 * thrust_iterators: iterators that compute their elements, and one that joins arrays
 *
 * Teaches: An algorithm of Thrust reads its input through an iterator, and the input need not be in memory.
 *          A constant iterator always gives the same value, a counting iterator the next number, and a
 *          transform iterator a function of what another iterator gives. A sum of squares then needs neither
 *          an array of squares nor the pass that writes it. A zip iterator gives tuples of the elements of
 *          several arrays: a structure of arrays is used like an array of structures, and its accesses are
 *          coalesced.
 * Terms:   Thrust, iterator, fusion, pass, structure of arrays, coalesced access, bandwidth
 * Book:    12.4 (course); T Thrust (iterators)
 * After:   chapter12/thrust_vectors
 * Build:   nvcc -o thrust_iterators chapter12/thrust_iterators.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/thrust_iterators --size 64M
 * Needs:   libs=thrust
 * Check:   --size 1000
 */
#include <vector>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/fill.h>
#include <thrust/functional.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>
#include "../common/book.h"
#include "../common/timing.h"
#include "libraries.h" // handle_exceptions()

#define N (1024 * 1024)

typedef thrust::tuple<int, char> Pair;

struct Square {
    __host__ __device__ unsigned long long operator()(unsigned long long x) const { return x * x; }
};

// The square of the distance from the origin, of a point whose coordinates are in three arrays or in one
struct Point {
    int x, y, z;
};

struct Distance {
    __host__ __device__ int operator()(const thrust::tuple<int, int, int> &p) const {
        int x = thrust::get<0>(p), y = thrust::get<1>(p), z = thrust::get<2>(p);
        return x * x + y * y + z * z;
    }
    __host__ __device__ int operator()(const Point &p) const { return p.x * p.x + p.y * p.y + p.z * p.z; }
};

static size_t n = N; // --size
static std::vector<int> x, y, z;
static void show(const char *name, int bytes, float ms);
static bool check_squares(const char *name, unsigned long long sum);
static bool check_distances(const char *name, const thrust::device_vector<int> &dev_distances);

// The course's examples, with three elements each
static bool small_examples(void) {
    thrust::constant_iterator<int> ten(10); // 10 10 10
    int constant = thrust::reduce(ten, ten + 3);

    thrust::counting_iterator<int> from_ten(10); // 10 11 12
    int counting = thrust::reduce(from_ten, from_ten + 3);

    const int tens[] = {10, 20, 30};
    thrust::device_vector<int> numbers(tens, tens + 3);
    auto negative = thrust::make_transform_iterator(numbers.begin(), thrust::negate<int>()); // -10 -20 -30
    int transformed = thrust::reduce(negative, negative + 3);

    const char xyz[] = {'x', 'y', 'z'};
    thrust::device_vector<char> letters(xyz, xyz + 3);
    auto pairs = thrust::make_zip_iterator(thrust::make_tuple(numbers.begin(), letters.begin()));
    Pair first = pairs[0], most = thrust::reduce(pairs, pairs + 3, first, thrust::maximum<Pair>());

    printf("sums: constant %d, counting %d, transformed %d\n", constant, counting, transformed);
    printf("the largest pair: (%d, '%c')\n", thrust::get<0>(most), thrust::get<1>(most));
    const int got[] = {constant, counting, transformed, thrust::get<0>(most), thrust::get<1>(most)};
    const int expected[] = {30, 33, -60, 30, 'z'};
    return check_ints("small examples", got, expected, 5);
}

// Two algorithms with an array between them, then one algorithm that squares what it reads
static bool sum_squares(void) {
    thrust::device_vector<int> numbers = x, squares(n);
    unsigned long long sum;
    float ms = median_ms([&] {
        thrust::transform(numbers.begin(), numbers.end(), squares.begin(), Square());
        sum = thrust::reduce(squares.begin(), squares.end(), 0ULL);
    });
    show("squares in an array:", 12, ms);
    bool ok = check_squares("squares in an array", sum);

    auto square = thrust::make_transform_iterator(numbers.begin(), Square());
    sum = 0;
    ms = median_ms([&] { sum = thrust::reduce(square, square + n, 0ULL); });
    show("transform iterator:", 4, ms);
    return check_squares("transform iterator", sum) && ok;
}

// The lanes of a warp read consecutive ints of each array (coalesced), but every third int of the structures
// (a stride of 12 bytes).
static bool points(void) {
    thrust::device_vector<int> dev_x = x, dev_y = y, dev_z = z, distances(n);
    auto zip = thrust::make_zip_iterator(thrust::make_tuple(dev_x.begin(), dev_y.begin(), dev_z.begin()));
    float ms = median_ms([&] { thrust::transform(zip, zip + n, distances.begin(), Distance()); });
    show("structure of arrays:", 16, ms);
    bool ok = check_distances("structure of arrays", distances);

    std::vector<Point> structures(n);
    for (size_t i = 0; i < n; i++)
        structures[i] = {x[i], y[i], z[i]};
    thrust::device_vector<Point> dev = structures;
    thrust::fill(distances.begin(), distances.end(), -1);
    ms = median_ms([&] { thrust::transform(dev.begin(), dev.end(), distances.begin(), Distance()); });
    show("array of structures:", 16, ms);
    return check_distances("array of structures", distances) && ok;
}

int main(int argc, char **argv) {
    settings(argc, argv);
    bool ok = small_examples();
    ok = sum_squares() && ok;
    ok = points() && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    handle_exceptions();
    configure(argc, argv, "Iterators of Thrust: constant, counting, transform and zip.", TIMES,
              {OPTION_SIZE("size", &n, 1, INT_MAX, "numbers, and points")});
    require_memory(8 * n * sizeof(int), 8 * n * sizeof(int));
    // Below 2^14, so that a sum of three squares fits an int
    for (std::vector<int> *numbers : {&x, &y, &z})
        for (size_t i = 0; i < n; i++)
            numbers->push_back(random_bits() % (1 << 14));
}

static void show(const char *name, int bytes, float ms) {
    printf("%-22s %2d bytes per element, %10.3f ms, %8.3f GB/s\n", name, bytes, ms, n * bytes / ms / 1e6);
}

static bool check_squares(const char *name, unsigned long long sum) {
    unsigned long long expected = 0;
    for (int number : x)
        expected += (unsigned long long)number * number;
    return check_counts(name, &sum, &expected, 1);
}

static bool check_distances(const char *name, const thrust::device_vector<int> &dev_distances) {
    std::vector<int> got(n);
    thrust::copy(dev_distances.begin(), dev_distances.end(), got.begin());
    return check_ints(name, got.data(), n, [](size_t i) { return x[i] * x[i] + y[i] * y[i] + z[i] * z[i]; });
}

// Task: sum_squares(): Compute the sum of the squares of x, n ints, on the device in two ways, each timed
// with median_ms() and checked. First: transform with Square() into a device_vector of ints, then reduce it
// as unsigned long long; call show("squares in an array:", 12, ms) and
// check_squares("squares in an array", sum). Second: reduce the values of a transform iterator, without an
// array of squares; call show("transform iterator:", 4, ms) and check_squares("transform iterator", sum).
// Return whether both checks are true.
