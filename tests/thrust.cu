// SPDX-License-Identifier: MIT
// Thrust from the system's package with the CPU back end: test_cucc.py compiles this where the package is
// installed.
#include "unit.h"
#include <algorithm>
#include <numeric>
#include <set>
#include <thrust/binary_search.h>
#include <thrust/complex.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/generate.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/logical.h>
#include <thrust/pair.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>
#include <vector>

#ifdef __CUDA_ARCH__ // tested in a program of Thrust's: the headers are preprocessed twice
#define ON_DEVICE 1
#else
#define ON_DEVICE 0
#endif

typedef thrust::device_vector<int> Ints;

static const int N = 1000;

struct Square {
    __host__ __device__ int operator()(int x) const { return x * x; }
};

struct Odd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};

struct Saxpy {
    float a;
    __host__ __device__ float operator()(thrust::tuple<float, float> t) const {
        return a * thrust::get<0>(t) + thrust::get<1>(t);
    }
};

// The same numbers for both sides
static std::vector<int> numbers(int range) {
    thrust::minstd_rand random(7);
    thrust::uniform_int_distribution<int> any(0, range - 1);
    std::vector<int> all(N);
    std::generate(all.begin(), all.end(), [&] { return any(random); });
    return all;
}

template <class T> static std::vector<T> host(const thrust::device_vector<T> &v) {
    std::vector<T> all(v.size());
    thrust::copy(v.begin(), v.end(), all.begin());
    return all;
}

__global__ static void twice(int *data, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] *= 2;
}

__global__ static void sort_columns(int *data, int *device, int rows) {
    int *mine = data + threadIdx.x * rows;
    thrust::sort(thrust::seq, mine, mine + rows);
    if (threadIdx.x == 0)
        *device = ON_DEVICE;
}

TEST(memory) {
    std::vector<int> expected = numbers(100);
    Ints v(expected.begin(), expected.end());
    int *p = thrust::raw_pointer_cast(v.data());
    cudaPointerAttributes attributes;
    EXPECT(cudaPointerGetAttributes(&attributes, p) == cudaSuccess &&
           attributes.type == cudaMemoryTypeDevice);
    twice<<<(N + 127) / 128, 128>>>(p, N);
    EXPECT(cudaDeviceSynchronize() == cudaSuccess);
    for (int &x : expected)
        x *= 2;
    std::vector<int> got(N);
    EXPECT(cudaMemcpy(got.data(), p, N * sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess &&
           got == expected);

    thrust::device_ptr<int> d = thrust::device_malloc<int>(N);
    EXPECT(cudaMemcpy(d.get(), p, N * sizeof(int), cudaMemcpyDeviceToDevice) == cudaSuccess);
    EXPECT(thrust::equal(d, d + N, v.begin()) && d[3] == expected[3]);
    thrust::device_free(d);
    EXPECT(cudaPointerGetAttributes(&attributes, d.get()) == cudaSuccess &&
           attributes.type == cudaMemoryTypeUnregistered);

    int *raw;
    EXPECT(cudaMalloc(&raw, N * sizeof(int)) == cudaSuccess);
    thrust::device_ptr<int> wrapped = thrust::device_pointer_cast(raw);
    thrust::fill(wrapped, wrapped + N, 4);
    wrapped[1] = 5;
    EXPECT(thrust::reduce(wrapped, wrapped + N) == 4 * N + 1);
    thrust::sequence(thrust::device, raw, raw + N);
    EXPECT(thrust::reduce(thrust::device, raw, raw + N) == N * (N - 1) / 2);
    EXPECT(cudaFree(raw) == cudaSuccess);
}

TEST(memory_that_is_used_up) {
    bool caught = false;
    try {
        thrust::device_vector<char> v((size_t)1 << 60);
    } catch (const std::bad_alloc &error) {
        caught = strstr(error.what(), "out of memory");
    }
    EXPECT(caught);
    cudaGetLastError();
}

TEST(sorting) {
    std::vector<int> keys = numbers(50), values(N), order(N);
    std::iota(order.begin(), order.end(), 0);
    Ints k(keys.begin(), keys.end()), v(N);
    thrust::sequence(v.begin(), v.end());
    thrust::stable_sort_by_key(k.begin(), k.end(), v.begin());
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    EXPECT(host(v) == order);
    thrust::sort(k.begin(), k.end(), thrust::greater<int>());
    std::sort(keys.begin(), keys.end(), std::greater<int>());
    EXPECT(host(k) == keys);
    EXPECT(thrust::is_sorted(k.begin(), k.end(), thrust::greater<int>()));
    // in place of a sort by key: a sort of pairs
    auto zip = thrust::make_zip_iterator(thrust::make_tuple(v.begin(), k.begin()));
    thrust::sort(zip, zip + N);
    EXPECT(thrust::equal(v.begin(), v.end(), thrust::counting_iterator<int>(0)));
}

TEST(reductions) {
    const std::vector<int> all = numbers(1000);
    const Ints v(all.begin(), all.end());
    EXPECT(thrust::reduce(v.begin(), v.end(), 0, thrust::maximum<int>()) ==
           *std::max_element(all.begin(), all.end()));
    EXPECT(thrust::transform_reduce(v.begin(), v.end(), Square(), 0, thrust::plus<int>()) ==
           std::inner_product(all.begin(), all.end(), all.begin(), 0));
    EXPECT(thrust::inner_product(v.begin(), v.end(), v.begin(), 0) ==
           std::inner_product(all.begin(), all.end(), all.begin(), 0));
    EXPECT(thrust::count_if(v.begin(), v.end(), Odd()) == std::count_if(all.begin(), all.end(), Odd()));
    EXPECT(thrust::min_element(v.begin(), v.end()) - v.begin() ==
           std::min_element(all.begin(), all.end()) - all.begin());
    const auto both = thrust::minmax_element(v.begin(), v.end());
    EXPECT(*both.second == *std::max_element(all.begin(), all.end()));
    EXPECT(thrust::find(v.begin(), v.end(), all[77]) - v.begin() ==
           std::find(all.begin(), all.end(), all[77]) - all.begin());
    EXPECT(thrust::all_of(v.begin(), v.end(), thrust::placeholders::_1 < 1000));
}

TEST(reductions_by_key) {
    std::vector<int> all = numbers(20);
    std::sort(all.begin(), all.end());
    Ints k(all.begin(), all.end()), keys(N), counts(N);
    const auto end = thrust::reduce_by_key(k.begin(), k.end(), thrust::constant_iterator<int>(1),
                                           keys.begin(), counts.begin());
    const std::set<int> different(all.begin(), all.end());
    EXPECT((size_t)(end.first - keys.begin()) == different.size());
    for (size_t i = 0; i < different.size(); ++i)
        EXPECT(counts[i] == std::count(all.begin(), all.end(), (int)keys[i]));
    k.erase(thrust::unique(k.begin(), k.end()), k.end());
    EXPECT(host(k) == std::vector<int>(different.begin(), different.end()));
    // the cumulative histogram by binary search
    Ints sorted(all.begin(), all.end()), below(20);
    thrust::upper_bound(sorted.begin(), sorted.end(), thrust::counting_iterator<int>(0),
                        thrust::counting_iterator<int>(20), below.begin());
    EXPECT(below[9] == std::upper_bound(all.begin(), all.end(), 9) - all.begin() && below[19] == N);
}

TEST(scans) {
    std::vector<int> all = numbers(10), sums(N);
    Ints v(all.begin(), all.end()), w(N);
    thrust::inclusive_scan(v.begin(), v.end(), w.begin());
    std::partial_sum(all.begin(), all.end(), sums.begin());
    EXPECT(host(w) == sums);
    thrust::exclusive_scan(v.begin(), v.end(), w.begin(), 100);
    EXPECT(w[0] == 100 && w[N - 1] == 100 + sums[N - 2]);
    thrust::exclusive_scan_by_key(v.begin(), v.end(), thrust::constant_iterator<int>(1), w.begin());
    EXPECT(w[0] == 0);
}

TEST(transformations) {
    const std::vector<int> all = numbers(100);
    const Ints v(all.begin(), all.end());
    Ints w(N), map(N);
    thrust::transform(v.begin(), v.end(), w.begin(), [] __device__(int x) { return 3 * x + 1; });
    EXPECT(w[5] == 3 * all[5] + 1);
    using namespace thrust::placeholders;
    thrust::transform(v.begin(), v.end(), w.begin(), w.begin(), 2 * _1 + _2);
    EXPECT(w[6] == 5 * all[6] + 1);
    thrust::tabulate(w.begin(), w.end(), Square());
    EXPECT(w[31] == 961);
    thrust::sequence(map.rbegin(), map.rend());
    thrust::gather(map.begin(), map.end(), v.begin(), w.begin());
    EXPECT(w[0] == all[N - 1] && w[N - 1] == all[0]);
    thrust::scatter(w.begin(), w.end(), map.begin(), w.begin() + 0);
    EXPECT(thrust::reduce(thrust::make_permutation_iterator(v.begin(), map.begin()),
                          thrust::make_permutation_iterator(v.begin(), map.end())) ==
           std::accumulate(all.begin(), all.end(), 0));
    EXPECT(thrust::reduce(thrust::make_transform_iterator(v.begin(), Square()),
                          thrust::make_transform_iterator(v.begin() + 1, Square())) == all[0] * all[0]);
    int seen = 0;
    thrust::for_each_n(thrust::counting_iterator<int>(0), N, [&] __host__ __device__(int i) { seen += i; });
    EXPECT(seen == N * (N - 1) / 2);
    const auto end = thrust::copy_if(v.begin(), v.end(), w.begin(), Odd());
    EXPECT(end - w.begin() == std::count_if(all.begin(), all.end(), Odd()));
    const auto middle = thrust::partition(w.begin(), w.end(), Odd());
    EXPECT(std::count_if(w.begin(), middle, Odd()) == middle - w.begin());
    thrust::replace_if(w.begin(), w.end(), Odd(), 0);
    EXPECT(thrust::none_of(w.begin(), w.end(), Odd()));
}

TEST(tuples_and_complex) {
    thrust::device_vector<float> x(N, 2.0f), y(N, 1.0f), z(N);
    thrust::transform(thrust::make_zip_iterator(thrust::make_tuple(x.begin(), y.begin())),
                      thrust::make_zip_iterator(thrust::make_tuple(x.end(), y.end())), z.begin(), Saxpy{3});
    EXPECT(z[0] == 7 && z[N - 1] == 7);
    thrust::device_vector<thrust::complex<double>> c(8, thrust::complex<double>(0, 1));
    const thrust::complex<double> product = thrust::reduce(
        c.begin(), c.begin() + 6, thrust::complex<double>(1), thrust::multiplies<thrust::complex<double>>());
    EXPECT(product == thrust::complex<double>(-1) &&
           thrust::abs(thrust::exp(thrust::complex<double>(0, 3))) - 1 < 1e-15);
    const thrust::pair<int, float> p = thrust::make_pair(1, 2.5f);
    EXPECT(p.first == 1 && p.second == 2.5f);
    thrust::host_vector<float> h = z;
    thrust::generate(h.begin(), h.end(), [] { return 1.5f; });
    z = h;
    EXPECT(thrust::reduce(z.begin(), z.end()) == 1.5f * N);
}

TEST(policies) {
    std::vector<int> all = numbers(1000);
    Ints v(all.begin(), all.end());
    cudaStream_t stream;
    EXPECT(cudaStreamCreate(&stream) == cudaSuccess);
    int *p = thrust::raw_pointer_cast(v.data());
    twice<<<(N + 127) / 128, 128, 0, stream>>>(p, N);
    thrust::sort(thrust::cuda::par.on(stream), v.begin(), v.end());
    for (int &x : all)
        x *= 2;
    std::sort(all.begin(), all.end());
    EXPECT(host(v) == all);
    thrust::device_allocator<char> allocator;
    EXPECT(thrust::reduce(thrust::cuda::par, p, p + N) ==
           thrust::reduce(thrust::host, all.begin(), all.end()));
    EXPECT(thrust::reduce(thrust::cuda::par(allocator), p, p + N) == thrust::reduce(v.begin(), v.end()));
    EXPECT(thrust::reduce(thrust::cuda::par(allocator).on(stream), p, p + N) ==
           thrust::reduce(v.begin(), v.end()));
    EXPECT(thrust::reduce(thrust::cuda::par_nosync.on(stream), p, p + N) ==
           thrust::reduce(v.begin(), v.end()));

    // An algorithm cannot be captured.
    cudaGraph_t graph;
    bool refused = false;
    EXPECT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    try {
        thrust::fill(thrust::cuda::par.on(stream), v.begin(), v.end(), 0);
    } catch (const thrust::system_error &) {
        refused = true;
    }
    EXPECT(refused && host(v) == all);
    cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();
    EXPECT(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST(in_kernels) {
    std::vector<int> all = numbers(1000);
    Ints v(all.begin(), all.end()), device(1);
    sort_columns<<<1, 10>>>(thrust::raw_pointer_cast(v.data()), device.data().get(), N / 10);
    EXPECT(cudaDeviceSynchronize() == cudaSuccess && device[0] == 1);
    for (int column = 0; column < 10; ++column)
        std::sort(all.begin() + column * N / 10, all.begin() + (column + 1) * N / 10);
    EXPECT(host(v) == all);
}
