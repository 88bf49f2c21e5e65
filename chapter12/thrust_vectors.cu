// SPDX-License-Identifier: MIT
/*
 * thrust_vectors: vectors on the host and on the device, and the algorithms that use them
 *
 * Teaches: A host_vector is in host memory, a device_vector in device memory, and assigning one to the other
 *          copies all elements at once. Algorithms run where their vectors are. The host can also read or
 *          write a single element of a device_vector, but each such access is a cudaMemcpy of its own, so
 *          that a loop over the elements takes far longer than one copy.
 * Terms:   Thrust, reduction, scan, segmented scan, gather, scatter, host, device, latency
 * Book:    12.4 (course); T Thrust (vectors, algorithms, inclusive and segmented scans)
 * Build:   nvcc -o thrust_vectors chapter12/thrust_vectors.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter12/thrust_vectors
 * Differs: the random numbers are limited so that their sum fits an int; 1000 numbers of rand() overflow it.
 *          On the CPU back end device memory is host memory, and an access to an element costs nothing.
 * Needs:   libs=thrust
 * Check:   --size 500
 */
#include <list>
#include <numeric>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/fill.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include "../common/book.h"
#include "../common/timing.h" // host_ms()
#include "libraries.h"        // handle_exceptions()

#define N 1000

typedef thrust::host_vector<int> HostInts;
typedef thrust::device_vector<int> DeviceInts;

static size_t n = N;      // --size
static HostInts numbers;  // random, their sum fits an int
static HostInts negative; // random, below 0
static HostInts segments; // 0 0 0 1 1 1 1 2 …: runs of equal keys
static HostInts places;   // 0 … n - 1 in random order
static bool check(const char *name, int got, int expected);
static bool check(const char *name, const HostInts &got, const HostInts &expected);

static bool set_and_add(void) {
    HostInts host(2);
    DeviceInts device(2);
    host[0] = 13;
    host[1] = 27;
    // An assignment to device[i] copies an int to the device. Reading device[i], in the sum, copies one back.
    device[0] = 13;
    device[1] = 27;
    bool ok = check("host vector, 13 + 27", host[0] + host[1], 40);
    ok = check("device vector, 13 + 27", device[0] + device[1], 40) && ok;

    std::list<int> list = {13, 27};
    DeviceInts constructed(list.begin(), list.end());
    ok = check("list, by constructor", constructed[0] + constructed[1], 40) && ok;
    thrust::fill(device.begin(), device.end(), 7);
    ok = check("two sevens, by fill", device[0] + device[1], 14) && ok;
    thrust::copy(list.begin(), list.end(), device.begin());
    return check("list, by copy", device[0] + device[1], 40) && ok;
}

static bool sums_and_maximum(void) {
    DeviceInts device = numbers;
    int sum = thrust::reduce(numbers.begin(), numbers.end());
    bool ok = check("sum on the device = on the host", thrust::reduce(device.begin(), device.end()), sum);
    int plus = thrust::reduce(device.begin(), device.end(), 0, thrust::plus<int>());
    ok = check("sum, plus", plus, std::accumulate(numbers.begin(), numbers.end(), 0)) && ok;

    // The sum of floats is rounded, and the order of the additions is not known.
    thrust::device_vector<float> floats(numbers.begin(), numbers.end());
    float sum_of_floats = thrust::reduce(floats.begin(), floats.end(), 0.0f, thrust::plus<float>());
    printf("%-32s %11.0f\n", "sum of floats", sum_of_floats);
    ok = check_value("sum of floats", sum_of_floats, sum, n * 0x1p-24) && ok;

    // The initial value takes part: 0 is larger than all negative numbers.
    device = negative;
    thrust::maximum<int> maximum;
    int max = thrust::reduce(device.begin(), device.end(), INT_MIN, maximum);
    ok = check("maximum of negative numbers", max, *std::max_element(negative.begin(), negative.end())) && ok;
    int from_0 = thrust::reduce(device.begin(), device.end(), 0, maximum);
    return check("from 0 on, which is wrong", from_0, 0) && ok;
}

static bool prefix_sums(void) {
    DeviceInts device = numbers, keys = segments, sums(n);
    HostInts expected(n);
    thrust::inclusive_scan(device.begin(), device.end(), sums.begin());
    std::partial_sum(numbers.begin(), numbers.end(), expected.begin());
    bool ok = check("inclusive scan", sums, expected);

    // With another operator: the largest number up to each place
    thrust::inclusive_scan(device.begin(), device.end(), sums.begin(), thrust::maximum<int>());
    expected = numbers;
    for (size_t i = 1; i < n; i++)
        expected[i] = max_of(expected[i], expected[i - 1]);
    ok = check("inclusive scan, maximum", sums, expected) && ok;

    // The segmented scan begins again at each new key.
    thrust::inclusive_scan_by_key(keys.begin(), keys.end(), device.begin(), sums.begin());
    for (size_t i = 1; i < n; i++)
        expected[i] = numbers[i] + (segments[i] == segments[i - 1] ? expected[i - 1] : 0);
    return check("scan by key", sums, expected) && ok;
}

// Gather reads from given places, scatter writes to them; each works in one memory. Assignments copy the
// vectors between the two: gathered on the device, scattered on the host.
static bool gather_and_scatter(void) {
    DeviceInts device = numbers, dev_places = places, gathered(n);
    thrust::gather(dev_places.begin(), dev_places.end(), device.begin(), gathered.begin());
    HostInts host = gathered, expected(n), scattered(n, -1);
    for (size_t i = 0; i < n; i++)
        expected[i] = numbers[places[i]];
    bool ok = check("gather", host, expected);

    thrust::scatter(host.begin(), host.end(), places.begin(), scattered.begin());
    return check("scatter puts all back", scattered, numbers) && ok;
}

static bool count_copies(void) {
    DeviceInts device = numbers;
    int sum = 0;
    float single = host_ms([&] {
        for (size_t i = 0; i < n; i++)
            sum += device[i];
    });
    HostInts host;
    float whole = host_ms([&] { host = device; });
    printf("%7zu copies of      4 bytes, one per element read: %10.3f ms\n", n, single);
    printf("      1 copy   of %6zu bytes, of the vector:        %10.3f ms\n", n * sizeof(int), whole);
    return check("sum of single elements", sum, std::accumulate(host.begin(), host.end(), 0));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    bool ok = set_and_add();
    ok = sums_and_maximum() && ok;
    ok = prefix_sums() && ok;
    ok = gather_and_scatter() && ok;
    ok = count_copies() && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    handle_exceptions();
    configure(argc, argv, "Vectors of Thrust on the host and on the device.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1 << 24, "random numbers")});
    require_memory(12 * n * sizeof(int), 6 * n * sizeof(int));
    for (size_t i = 0; i < n; i++) {
        numbers.push_back(random_bits() % min_of(1 << 20, INT_MAX / n));
        negative.push_back(-1 - (int)(random_bits() % INT_MAX));
        segments.push_back(i == 0 ? 0 : segments[i - 1] + (random_bits() % 4 == 0));
        places.push_back(i);
        swap(places[i], places[random_bits() % (i + 1)]);
    }
}

static bool check(const char *name, int got, int expected) {
    printf("%-32s %11d\n", name, got);
    return check_ints(name, &got, &expected, 1);
}

static bool check(const char *name, const HostInts &got, const HostInts &expected) {
    printf("%-32s %11d last\n", name, got[n - 1]);
    return check_ints(name, got.data(), expected.data(), n);
}

// Task: prefix_sums(): On the device, compute the inclusive prefix sums of `numbers`, and check them with
// check("inclusive scan", sums, expected), where std::partial_sum computes `expected`. Then compute the
// largest of the numbers up to each place in the same way, and check("inclusive scan, maximum", sums,
// expected) with a loop on the host. Then compute the inclusive prefix sums by key, which begin again at each
// new key of `segments`, and check them with check("scan by key", sums, expected), where a loop on the host
// computes `expected`. Return whether all checks are true.
// gather_and_scatter(): On the device, gather the elements of `numbers` at the indices in `places`;
// check("gather", host, expected) compares them with the result of a loop on the host. Then scatter the
// gathered elements to the indices in `places`, and call check("scatter puts all back", scattered, numbers).
// Return whether both checks are true.
