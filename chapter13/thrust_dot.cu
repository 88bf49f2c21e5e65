// SPDX-License-Identifier: MIT
/*
 * thrust_dot: dot product without a kernel, by Thrust and by CUB
 *
 * Teaches: For a reduction, a scan or a sort one calls a library today. Thrust has vectors, which
 *          allocate and copy, and algorithms for them; a call waits for its result. CUB is what Thrust
 *          calls on the device: it works in a stream, on memory that the program has allocated, and
 *          leaves its result there, so that it can also be part of a graph. Both choose blocks and
 *          threads for the device that they find.
 * Terms:   Thrust, CUB, reduction, dot product, fusion, effective bandwidth
 * Book:    5.3.1 (after the book)
 * Since:   Thrust: CUDA 4.0; CUB: CUDA 11.0; on every GPU that the toolkit supports
 * After:   chapter13/groups_dot
 * Run:     ./bin/chapter13/thrust_dot --size 32M
 * Differs: as chapter05/dot, whose kernel is timed beside them; chapter05/dot_ladder has faster ones.
 *          On the CPU back end Thrust and CUB run in one thread.
 * Needs:   libs=thrust
 * Check:   --size 1000 | --size 100003
 */
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_reduce.cuh>
#include <numeric>
#include "../common/book.h"
#include "../common/proofs/dot.h" // fill_dot(), check_dot()
#include "../common/timing.h"
#include "../chapter12/libraries.h" // handle_exceptions()

#define N (33 * 1024)

static size_t n = N; // --size
static bool check(float c, float cub_c, thrust::device_vector<float> &a, thrust::device_vector<float> &b);

// What CUB adds: the product i. Host and device may call it.
struct Product {
    const float *a, *b;
    __host__ __device__ float operator()(size_t i) const { return a[i] * b[i]; }
};

// The sum of all products, in *dev_c. If storage is NULL, the call only computes `bytes`, the size of the
// memory that it needs for partial sums. An iterator is read like a pointer: this one computes product i from
// the number i when element i is read, so that neither the numbers nor the products are stored.
static void cub_dot(void *storage, size_t &bytes, const float *dev_a, const float *dev_b, float *dev_c) {
    auto products =
        thrust::make_transform_iterator(thrust::counting_iterator<size_t>(0), Product{dev_a, dev_b});
    HANDLE_ERROR(
        cub::DeviceReduce::Reduce(storage, bytes, products, dev_c, (int)n, thrust::plus<float>(), 0.0f));
}

int main(int argc, char **argv) {
    settings(argc, argv);
    thrust::host_vector<float> a(n), b(n);
    fill_dot(a.data(), b.data(), n);

    // The whole program of chapter 5: the vectors allocate and copy, and free their memory at the end.
    thrust::device_vector<float> dev_a = a, dev_b = b;
    float c = thrust::inner_product(dev_a.begin(), dev_a.end(), dev_b.begin(), 0.0f);
    printf("Does GPU value %.6g = %.6g?\n", c, expected_dot(n));

    // CUB takes pointers. Its memory is allocated once and serves many calls; Thrust allocates in each call.
    float *in_a = thrust::raw_pointer_cast(dev_a.data()), *in_b = thrust::raw_pointer_cast(dev_b.data());
    float *dev_c, cub_c;
    void *storage;
    size_t bytes = 0;
    cub_dot(NULL, bytes, in_a, in_b, NULL);
    HANDLE_ERROR(cudaMalloc(&storage, bytes));
    HANDLE_ERROR(cudaMalloc(&dev_c, sizeof(float)));
    cub_dot(storage, bytes, in_a, in_b, dev_c);
    HANDLE_ERROR(cudaMemcpy(&cub_c, dev_c, sizeof(float), cudaMemcpyDeviceToHost)); // waits
    bool ok = check(c, cub_c, dev_a, dev_b);

    HANDLE_ERROR(cudaFree(dev_c));
    HANDLE_ERROR(cudaFree(storage));
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------------------- proof

void settings(int argc, char **argv) {
    handle_exceptions();
    configure(argc, argv, "Dot product of two vectors by Thrust and by CUB.", TIMES,
              {OPTION_SIZE("size", &n, 1, 1 << 30, "elements in a vector")});
    require_memory(2 * n * sizeof(float), 2 * n * sizeof(float) + n / 8);
}

// The kernel of section 5.3.1
__global__ void dot(const float *a, const float *b, float *c, size_t n) {
    __shared__ float cache[256];
    float temp = 0;
    for (size_t tid = threadIdx.x + (size_t)blockIdx.x * blockDim.x; tid < n;
         tid += (size_t)blockDim.x * gridDim.x)
        temp += a[tid] * b[tid];
    cache[threadIdx.x] = temp;
    __syncthreads();
    for (unsigned i = blockDim.x / 2; i > 0; i /= 2) {
        if (threadIdx.x < i)
            cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        c[blockIdx.x] = cache[0];
}

// Prints the time until the host has the result, and checks the result. The order of additions is that of the
// library: nothing but the number of roundings is known.
template <class Run> static bool time_dot(const char *name, Run run) {
    float c = NAN;
    float ms = median_ms([&] { c = run(); });
    printf("%-28s %.4f ms, %.1f GB/s\n", name, ms, 2 * n * sizeof(float) / ms / 1e6);
    return check_dot(name, c, n, likely_roundings(n));
}

static bool check(float c, float cub_c, thrust::device_vector<float> &a, thrust::device_vector<float> &b) {
    bool ok = check_dot("dot product by Thrust", c, n, likely_roundings(n));
    ok = check_dot("dot product by CUB", cub_c, n, likely_roundings(n)) && ok;

    const int blocks = 32, many = 1056; // of the book, and 8 for each multiprocessor of an H200
    float *dev_a = thrust::raw_pointer_cast(a.data()), *dev_b = thrust::raw_pointer_cast(b.data());
    HostArray<float> partial_c(many);
    DeviceArray<float> dev_partial_c(many), dev_c(1);
    size_t bytes = 0;
    cub_dot(NULL, bytes, dev_a, dev_b, NULL);
    DeviceArray<char> storage(bytes);
    auto by_hand = [&](int blocks) {
        dot<<<blocks, 256>>>(dev_a, dev_b, dev_partial_c, n);
        HANDLE_LAUNCH();
        HANDLE_ERROR(cudaMemcpy(partial_c, dev_partial_c, blocks * sizeof(float), cudaMemcpyDeviceToHost));
        return std::accumulate(+partial_c, partial_c + blocks, 0.0f);
    };
    auto by_cub = [&] {
        cub_dot(storage, bytes, dev_a, dev_b, dev_c);
        return HostArray<float>(dev_c, 1)[0];
    };
    auto by_thrust = [&] { return thrust::inner_product(a.begin(), a.end(), b.begin(), 0.0f); };
    ok = time_dot("dot() of the book, 32 blocks", [&] { return by_hand(blocks); }) && ok;
    ok = time_dot("dot(), 1056 blocks", [&] { return by_hand(many); }) && ok;
    ok = time_dot("thrust::inner_product", by_thrust) && ok;
    ok = time_dot("cub::DeviceReduce::Reduce", by_cub) && ok;
    printf("More kernels by hand: ./bin/chapter05/dot_ladder --size %zu\n", n);

    // A loss of the first elements changes the sum less than rounding does. Of ones every element counts, and
    // up to 2^24 their sum is exact.
    Smaller few(n, 1 << 24);
    a.assign(n, 1);
    b.assign(n, 1);
    return check_value("ones by Thrust", by_thrust(), n, 0) && check_value("ones by CUB", by_cub(), n, 0) &&
           ok;
}

// Task: cub_dot(): Call cub::DeviceReduce::Reduce so that it stores the sum of dev_a[i] * dev_b[i] over all
// i < n in *dev_c, with `storage` and `bytes` as its memory for partial sums. Its input is an iterator whose
// element i is the product i; nothing as long as the vectors may be allocated.
