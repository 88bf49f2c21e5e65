// SPDX-License-Identifier: MIT
/*
 * thrust_dot: dot product without a kernel, by Thrust and by CUB
 *
 * Teaches: For a reduction, a scan or a sort one calls a library today. Thrust has vectors, which
 *          allocate and copy, and algorithms for them; a call waits for its result. CUB is what Thrust
 *          calls on the device: it works in a stream, on memory that the program has allocated, and
 *          leaves its result there, so that it can also be part of a graph. Both choose the numbers of
 *          blocks and threads for the device.
 * Terms:   Thrust, CUB, reduction, dot product, fusion, effective bandwidth
 * Book:    5.3.1 (after the book)
 * Since:   Thrust: CUDA 4.0; CUB: CUDA 11.0, here 13.0; on every GPU that the toolkit supports
 * After:   chapter13/groups_dot
 * Build:   nvcc -o thrust_dot chapter13/thrust_dot.cu common/lib/[a-z]*.c
 * Run:     ./bin/chapter13/thrust_dot --size 32M
 * Differs: chapter05/dot does the same with a kernel, and chapter05/dot_ladder, whose command is
 *          printed, with faster and faster ones. On the CPU back end Thrust and CUB run in one thread.
 * Needs:   libs=thrust
 * Check:   --size 1000 | --size 100003
 */
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <cub/device/device_reduce.cuh>
#include "../common/book.h"
#include "../common/checks/dot.h"        // fill_dot(), check_dot(), fill_ones()
#include "../common/checks/exceptions.h" // handle_exceptions()
#include "../common/checks/yardstick.h"  // print_share()

#define N (33 * 1024)

static size_t n = N; // --size
template <class Thrust, class Cub>
static bool check(Thrust by_thrust, Cub by_cub, float *dev_a, float *dev_b);

// Computes product i, for CUB, which adds the products. Host and device can call it.
struct Product {
    const float *a, *b;
    __host__ __device__ float operator()(size_t i) const { return a[i] * b[i]; }
};

// Stores the sum of all products in *dev_c. If storage is NULL, the call only computes `bytes`, the size of
// the memory that it needs for partial sums. An iterator is read like a pointer. Element i of this one is the
// number i, and CUB calls Product with it, so that neither the numbers nor the products are stored.
static void cub_dot(void *storage, size_t &bytes, const float *dev_a, const float *dev_b, float *dev_c) {
    thrust::counting_iterator<size_t> numbers(0);
    Product product = {dev_a, dev_b};
    HANDLE_ERROR(cub::DeviceReduce::TransformReduce(storage, bytes, numbers, dev_c, (int)n,
                                                    thrust::plus<float>(), product, 0.0f));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    thrust::host_vector<float> a(n), b(n);
    fill_dot(a.data(), b.data(), n);

    // These lines do the whole work of the program in chapter 5: the vectors allocate memory, copy, and free
    // the memory at the end of main().
    thrust::device_vector<float> dev_a = a, dev_b = b;
    auto by_thrust = [&] { return thrust::inner_product(dev_a.begin(), dev_a.end(), dev_b.begin(), 0.0f); };
    float c = by_thrust();
    printf("Does GPU value %.6g = %.6g?\n", c, expected_dot(n));

    // CUB takes pointers. Its memory is allocated once, for many calls; Thrust allocates in each call.
    float *in_a = thrust::raw_pointer_cast(dev_a.data()), *in_b = thrust::raw_pointer_cast(dev_b.data());
    float *dev_c;
    void *storage;
    size_t bytes = 0;
    cub_dot(NULL, bytes, in_a, in_b, NULL);
    HANDLE_ERROR(cudaMalloc(&storage, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_c, sizeof(float)));
    auto by_cub = [&] {
        cub_dot(storage, bytes, in_a, in_b, dev_c);
        HANDLE_ERROR(cudaMemcpy(&c, dev_c, sizeof(float), cudaMemcpyDeviceToHost)); // waits
        return c;
    };
    bool ok = check(by_thrust, by_cub, in_a, in_b);

    HANDLE_ERROR(cudaFree(dev_c));
    HANDLE_ERROR(cudaFree(storage));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- check

void settings(int argc, char **argv) {
    handle_exceptions();
    configure(argc, argv, "Dot product of two vectors by Thrust and by CUB.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1 << 30, "elements in a vector")});
    require_memory(3 * n * sizeof(float), 2 * n * sizeof(float));
}

// Prints the time until the host has the result, and checks the result. The order of additions is that of the
// library. On a GPU no chain of them has more than 8 sqrt(n); Thrust on the CPU back end adds one product
// after another.
template <class Run> static bool time_dot(const char *name, Run run) {
    float c = NAN;
    float ms = median_ms([&] { c = run(); });
    print_share(name, ms, 2 * n * sizeof(float));
    return check_dot(name, c, n, CPU_BACKEND ? n : likely_roundings(n));
}

template <class Thrust, class Cub>
static bool check(Thrust by_thrust, Cub by_cub, float *dev_a, float *dev_b) {
    bool ok = time_dot("thrust::inner_product", by_thrust);
    ok = time_dot("cub::TransformReduce", by_cub) && ok;
    printf("The fastest: ./bin/chapter05/dot_ladder --size %zu\n", n);

    double ones = fill_ones(dev_a, dev_b, n);
    for (float count : {by_thrust(), by_cub()})
        ok = check_value("ones", count, ones, 0) && ok;
    return ok;
}

// Task: cub_dot(): Call cub::DeviceReduce::TransformReduce so that it stores the sum of dev_a[i] * dev_b[i]
// over all i < n in *dev_c, with `storage` and `bytes` as its memory for partial sums. Its input is an
// iterator whose element i is the number i; nothing as long as the vectors may be allocated.
