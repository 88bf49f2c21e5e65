// SPDX-License-Identifier: MIT
// Needs: thrust
// Thrust from the system's package: memory, policies, streams and kernels. The algorithms are Thrust's own.
#include "device.h"
#include <algorithm>
#include <thrust/copy.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>

#ifdef __CUDA_ARCH__ // tested in a program of Thrust's: the headers are preprocessed twice
#define ON_DEVICE 1
#else
#define ON_DEVICE 0
#endif

typedef thrust::device_vector<int> Ints;

static const int N = 1000;

// The same numbers for both sides
static std::vector<int> numbers(int range) {
    return made(N, [=](int) { return pick(0, range - 1); });
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
    const auto type_of = [](int *pointer) {
        return STORED(cudaPointerAttributes, cudaPointerGetAttributes(&it, pointer)).type;
    };
    EXPECT(type_of(p) == cudaMemoryTypeDevice);
    twice<<<(N + 127) / 128, 128>>>(p, N);
    OK(cudaDeviceSynchronize());
    for (int &x : expected)
        x *= 2;
    EXPECT(host(v) == expected);

    thrust::device_ptr<int> d = thrust::device_malloc<int>(N);
    OK(cudaMemcpy(d.get(), p, N * sizeof(int), cudaMemcpyDeviceToDevice));
    EXPECT(thrust::equal(d, d + N, v.begin()) && d[3] == expected[3]);
    thrust::device_free(d);
    EXPECT(type_of(d.get()) == cudaMemoryTypeUnregistered);

    const Device<int> memory(N);
    int *const raw = memory.data;
    thrust::device_ptr<int> wrapped = thrust::device_pointer_cast(raw);
    thrust::fill(wrapped, wrapped + N, 4);
    wrapped[1] = 5;
    EXPECT(thrust::reduce(wrapped, wrapped + N) == 4 * N + 1);
    thrust::sequence(thrust::device, raw, raw + N);
    EXPECT(thrust::reduce(thrust::device, raw, raw + N) == N * (N - 1) / 2);
}

TEST(memory_that_is_used_up) {
    bool caught = false;
    try {
        thrust::device_vector<char> v((size_t)1 << 60);
    } catch (const std::bad_alloc &error) {
        caught = strstr(error.what(), "out of memory");
    }
    EXPECT(caught);
}

TEST(policies) {
    std::vector<int> all = numbers(1000);
    Ints v(all.begin(), all.end());
    const cudaStream_t stream = new_stream();
    int *p = thrust::raw_pointer_cast(v.data());
    twice<<<(N + 127) / 128, 128, 0, stream>>>(p, N);
    thrust::sort(thrust::cuda::par.on(stream), v.begin(), v.end());
    for (int &x : all)
        x *= 2;
    std::sort(all.begin(), all.end());
    EXPECT(host(v) == all);
    thrust::device_allocator<char> allocator;
    const int sum = thrust::reduce(thrust::host, all.begin(), all.end());
    EXPECT(thrust::reduce(v.begin(), v.end()) == sum);
    EXPECT(thrust::reduce(thrust::cuda::par, p, p + N) == sum);
    EXPECT(thrust::reduce(thrust::cuda::par(allocator), p, p + N) == sum);
    EXPECT(thrust::reduce(thrust::cuda::par(allocator).on(stream), p, p + N) == sum);
    EXPECT(thrust::reduce(thrust::cuda::par_nosync.on(stream), p, p + N) == sum);

    // An algorithm cannot be captured.
    cudaGraph_t graph;
    bool refused = false;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    try {
        thrust::fill(thrust::cuda::par.on(stream), v.begin(), v.end(), 0);
    } catch (const thrust::system_error &) {
        refused = true;
    }
    cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();
    EXPECT(refused && host(v) == all);
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
