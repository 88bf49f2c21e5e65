// SPDX-License-Identifier: MIT
// CUB: collectives of blocks and warps, and operations on arrays in device memory.
#include <algorithm>
#include <cub/cub.cuh>
#include <limits>
#include <numeric>
#include "device.h"

static std::vector<int> numbers(size_t n, int range) {
    return made(n, [=](int) { return pick(0, range - 1) - range / 4; });
}

static int larger(int a, int b) {
    return std::max(a, b);
}

enum { THREADS = 96, ITEMS = 3, ALL = THREADS * ITEMS };

struct Larger {
    __host__ __device__ int operator()(int a, int b) const { return a < b ? b : a; }
};
struct Minus {
    __host__ __device__ int operator()(int a, int b) const { return a - b; }
};
struct Affine { // not commutative
    int a, b;
};
struct Then {
    __host__ __device__ Affine operator()(Affine f, Affine g) const {
        return {f.a * g.a % 97, (f.b * g.a + g.b) % 97};
    }
};

// ---- blocks ----

struct Running { // the prefix of a block's tile
    int total;
    __device__ int operator()(int aggregate) {
        const int before = total;
        total += aggregate;
        return before;
    }
};

__global__ void reduce(const int *in, int *out) {
    typedef cub::BlockReduce<int, THREADS> Reduce;
    __shared__ union {
        Reduce::TempStorage reduce;
        cub::BlockReduce<Affine, 32, cub::BLOCK_REDUCE_RAKING, 3>::TempStorage affine;
    } storage;
    int items[ITEMS];
    cub::LoadDirectBlocked((int)threadIdx.x, in, items);
    const int sum = Reduce(storage.reduce).Sum(items);
    __syncthreads();
    const int largest = Reduce(storage.reduce).Reduce(items[0], Larger());
    __syncthreads();
    const int some = Reduce(storage.reduce).Sum(items[1], 50);
    __syncthreads();
    const int last = Reduce(storage.reduce).Sum(items[ITEMS - 1]);
    if (threadIdx.x == 0) {
        out[0] = sum;
        out[1] = largest;
        out[2] = some;
        out[3] = last;
    }
}
__global__ void reduce_affine(Affine *out) { // a block of 32 x 3
    typedef cub::BlockReduce<Affine, 32, cub::BLOCK_REDUCE_RAKING, 3> Reduce;
    __shared__ Reduce::TempStorage storage;
    const int rank = (int)(threadIdx.x + 32 * threadIdx.y);
    const Affine all = Reduce(storage).Reduce({rank % 7 + 1, rank}, Then());
    if (rank == 0)
        *out = all;
}

TEST(block_reduce) {
    const std::vector<int> in = numbers(ALL, 1000);
    const Device<int> from(in);
    int largest = in[0], some = 0, last = 0;
    for (size_t i = 0; i < THREADS; i++) {
        largest = std::max(largest, in[i * ITEMS]);
        some += i < 50 ? in[i * ITEMS + 1] : 0;
        last += in[i * ITEMS + ITEMS - 1];
    }
    EXPECT(WRITTEN(int, 4, reduce<<<1, THREADS>>>(from.data, out)) ==
           std::vector<int>{std::accumulate(in.begin(), in.end(), 0), largest, some, last});

    const Affine affine = WRITTEN(Affine, 1, reduce_affine<<<1, dim3(32, 3)>>>(out))[0];
    Affine all{1, 0};
    for (int i = 0; i < 96; i++)
        all = Then()(all, {i % 7 + 1, i});
    EXPECT(affine.a == all.a && affine.b == all.b);
}

__global__ void scan(const int *in, int *out) {
    typedef cub::BlockScan<int, THREADS> Scan;
    __shared__ Scan::TempStorage storage;
    int items[ITEMS], result[ITEMS], total;
    Larger op;
    cub::LoadDirectBlocked((int)threadIdx.x, in, items);
    Scan(storage).ExclusiveSum(items, result, total);
    cub::StoreDirectBlocked((int)threadIdx.x, out, result);
    __syncthreads();
    Scan(storage).InclusiveScan(items, result, op);
    cub::StoreDirectBlocked((int)threadIdx.x, out + ALL, result);
    __syncthreads();
    Running running{100};
    Scan(storage).InclusiveSum(items[0], result[0], running);
    out[2 * ALL + threadIdx.x] = result[0];
    __syncthreads();
    Scan(storage).ExclusiveScan(items[0], result[0], 7, op);
    out[2 * ALL + THREADS + threadIdx.x] = result[0];
    __syncthreads();
    int first[] = {items[0]};
    Scan(storage).InclusiveScan(first, first, 50, op);
    out[2 * ALL + 2 * THREADS + threadIdx.x] = first[0];
    if (threadIdx.x == 0)
        out[3 * ALL] = total + running.total;
}

TEST(block_scan) {
    const std::vector<int> in = numbers(ALL, 100);
    const Device<int> from(in);
    std::vector<int> expected;
    const auto firsts = made(THREADS, [&](int i) { return in[(size_t)i * ITEMS]; }); // of each thread
    const auto end = std::back_inserter(expected);
    std::exclusive_scan(in.begin(), in.end(), end, 0);
    std::inclusive_scan(in.begin(), in.end(), end, larger);
    std::inclusive_scan(firsts.begin(), firsts.end(), end, std::plus<int>(), 100);
    std::exclusive_scan(firsts.begin(), firsts.end(), end, 7, larger);
    std::inclusive_scan(firsts.begin(), firsts.end(), end, larger, 50);
    expected.push_back(std::accumulate(in.begin(), in.end(), 0) +
                       std::accumulate(firsts.begin(), firsts.end(), 100));
    EXPECT(WRITTEN(int, 3 * ALL + 1, scan<<<1, THREADS>>>(from.data, out)) == expected);
}

__global__ void exchange(const int *in, int *out) {
    __shared__ union {
        cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_STRIPED>::TempStorage load;
        cub::BlockStore<int, THREADS, ITEMS, cub::BLOCK_STORE_TRANSPOSE>::TempStorage store;
        cub::BlockExchange<int, THREADS, ITEMS>::TempStorage exchange;
        cub::BlockRadixSort<int, THREADS, ITEMS, int>::TempStorage sort;
        cub::BlockAdjacentDifference<int, THREADS>::TempStorage difference;
    } storage;
    int items[ITEMS], blocked[ITEMS], places[ITEMS];
    cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_STRIPED>(storage.load).Load(in, items, ALL - 5, -7);
    __syncthreads();
    cub::BlockExchange<int, THREADS, ITEMS>(storage.exchange).StripedToBlocked(items, blocked);
    __syncthreads();
    for (int i = 0; i < ITEMS; i++) {
        items[i] = blocked[i]; // a copy, because the transposition is in place
        places[i] = (int)threadIdx.x * ITEMS + i;
    }
    cub::BlockStore<int, THREADS, ITEMS, cub::BLOCK_STORE_TRANSPOSE>(storage.store).Store(out, items, ALL);
    __syncthreads();
    cub::BlockRadixSort<int, THREADS, ITEMS, int>(storage.sort).SortDescending(blocked, places);
    cub::StoreDirectBlocked((int)threadIdx.x, out + ALL, blocked);
    cub::StoreDirectBlocked((int)threadIdx.x, out + 2 * ALL, places);
    __syncthreads();
    int steps[ITEMS];
    cub::BlockAdjacentDifference<int, THREADS>(storage.difference).SubtractLeft(blocked, steps, Minus());
    cub::StoreDirectBlocked((int)threadIdx.x, out + 3 * ALL, steps);
}

TEST(block_exchange_and_sort) {
    std::vector<int> in = numbers(ALL, 60), places(ALL), steps(ALL);
    const Device<int> from(in);
    std::fill(in.end() - 5, in.end(), -7);
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(),
                     [&](int a, int b) { return in[(size_t)a] > in[(size_t)b]; });
    std::vector<int> expected = in;
    const auto sorted = made(ALL, [&](int i) { return in[(size_t)places[i]]; });
    for (size_t i = 0; i < ALL; i++)
        steps[i] = i == 0 ? sorted[0] : sorted[i] - sorted[i - 1];
    for (const std::vector<int> &part : {sorted, places, steps})
        expected.insert(expected.end(), part.begin(), part.end());
    EXPECT(WRITTEN(int, 4 * ALL, exchange<<<1, THREADS>>>(from.data, out)) == expected);
}

// ---- warps ----

__global__ void warps(const int *in, int *out) {
    typedef cub::WarpReduce<int> Reduce;
    typedef cub::WarpReduce<int, 8> Reduce8;
    typedef cub::WarpScan<int> Scan;
    __shared__ Reduce::TempStorage reduce[3];
    __shared__ Reduce8::TempStorage reduce8[12];
    __shared__ Scan::TempStorage scan[3];
    const int i = (int)threadIdx.x, warp = i / 32, item = in[i];
    const int sum = Reduce(reduce[warp]).Sum(item), largest = Reduce8(reduce8[i / 8]).Reduce(item, Larger());
    __syncwarp();
    int before, total, most;
    Scan(scan[warp]).ExclusiveSum(item, before, total);
    __syncwarp();
    Scan(scan[warp]).ExclusiveScan(item, most, 700, Larger());
    out[i] = i % 32 == 0 ? sum : 0;
    out[THREADS + i] = i % 8 == 0 ? largest : 0;
    out[2 * THREADS + i] = before;
    out[3 * THREADS + i] = total;
    out[4 * THREADS + i] = most;
}

TEST(warp_reduce_and_scan) {
    const std::vector<int> in = numbers(THREADS, 1000);
    const Device<int> from(in);
    std::vector<int> expected(5 * THREADS);
    for (int i = 0; i < THREADS; i++) {
        const auto warp = in.begin() + i / 32 * 32;
        const int total = std::accumulate(warp, warp + 32, 0);
        expected[(size_t)i] = i % 32 == 0 ? total : 0;
        expected[(size_t)THREADS + i] =
            i % 8 == 0 ? *std::max_element(in.begin() + i, in.begin() + i + 8) : 0;
        expected[(size_t)2 * THREADS + i] = std::accumulate(warp, in.begin() + i, 0);
        expected[(size_t)3 * THREADS + i] = total;
        expected[(size_t)4 * THREADS + i] = std::accumulate(warp, in.begin() + i, 700, larger);
    }
    EXPECT(WRITTEN(int, 5 * THREADS, warps<<<1, THREADS>>>(from.data, out)) == expected);
}

// ---- arrays ----

// Calls a function of CUB three times: for the size of its temporary storage, with storage that is too small,
// and with storage of this size.
#define CUB(function, ...)                                                                                   \
    do {                                                                                                     \
        size_t bytes = 0;                                                                                    \
        EXPECT(cub::function(nullptr, bytes, __VA_ARGS__) == cudaSuccess && bytes > 0);                      \
        const Device<char> storage(bytes);                                                                   \
        size_t less = bytes - 1;                                                                             \
        EXPECT(bytes == 1 /* it needs none */ ||                                                             \
               cub::function((void *)storage.data, less, __VA_ARGS__) == cudaErrorInvalidValue);             \
        OK(cub::function((void *)storage.data, bytes, __VA_ARGS__));                                         \
    } while (0)

struct Odd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};

TEST(device_reduce_and_scan) {
    const int N = 1000;
    const std::vector<int> in = numbers(N, 1 << 20);
    const Device<int> from(in), to(N), one(3);
    CUB(DeviceReduce::Sum, from.data, one.data, N);
    CUB(DeviceReduce::Min, from.data, one.data + 1, N);
    CUB(DeviceReduce::Reduce, from.data, one.data + 2, N, Larger(), -5);
    const auto [least, most] = std::minmax_element(in.begin(), in.end());
    EXPECT(one.host() == std::vector<int>{std::accumulate(in.begin(), in.end(), 0), *least, *most});
    CUB(DeviceReduce::TransformReduce, from.data, one.data, N, Larger(), Odd(), -5);
    EXPECT(one.host()[0] == 1);
    CUB(DeviceReduce::Max, from.data, one.data, 0); // of nothing
    EXPECT(one.host()[0] == std::numeric_limits<int>::lowest());

    std::vector<int> expected(N);
    std::partial_sum(in.begin(), in.end(), expected.begin());
    CUB(DeviceScan::InclusiveSum, from.data, to.data, N);
    EXPECT(to.host() == expected);
    std::exclusive_scan(in.begin(), in.end(), expected.begin(), 3, larger);
    CUB(DeviceScan::ExclusiveScan, from.data, to.data, Larger(), 3, N);
    EXPECT(to.host() == expected);

    // A sum in single precision of more ones than a float can count
    const Device<float> ones(std::vector<float>(1 << 20, 64.0625f)), sum(1);
    CUB(DeviceReduce::Sum, ones.data, sum.data, 1 << 20);
    EXPECT(sum.host()[0] == 64.0625f * (1 << 20));
}

TEST(device_select) {
    const int N = 500;
    std::vector<int> in = numbers(N, 4), odd, others, unique, lengths;
    std::partition_copy(in.begin(), in.end(), std::back_inserter(odd), std::back_inserter(others), Odd());
    for (size_t i = 0; i < N; i++) {
        if (i == 0 || in[i] != in[i - 1]) {
            unique.push_back(in[i]);
            lengths.push_back(0);
        }
        lengths.back()++;
    }
    const Device<int> from(in), to(N), count(1), runs(N);
    const auto result = [](const Device<int> &all, const Device<int> &n) {
        std::vector<int> v = all.host();
        v.resize((size_t)n.host()[0]);
        return v;
    };
    CUB(DeviceSelect::If, from.data, to.data, count.data, N, Odd());
    EXPECT(result(to, count) == odd);
    CUB(DeviceSelect::Unique, from.data, to.data, count.data, N);
    EXPECT(result(to, count) == unique);
    CUB(DeviceRunLengthEncode::Encode, from.data, to.data, runs.data, count.data, N);
    EXPECT(result(to, count) == unique && result(runs, count) == lengths);
    CUB(DevicePartition::If, from.data, to.data, count.data, N, Odd());
    odd.insert(odd.end(), others.rbegin(), others.rend());
    EXPECT(to.host() == odd);
}

TEST(device_sort) {
    const int N = 600;
    std::vector<float> keys(N);
    std::vector<int> values(N), expected(N);
    for (float &key : keys)
        key = pick(-100, 99) / 8.0f;
    keys[10] = 0, keys[20] = -0.0f, keys[30] = 0; // equal keys
    std::iota(values.begin(), values.end(), 0);
    expected = values;
    const Device<float> in(keys), out(keys);
    const Device<int> places(values), sorted(values);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](int a, int b) { return keys[(size_t)a] < keys[(size_t)b]; });
    CUB(DeviceRadixSort::SortPairs, in.data, out.data, places.data, sorted.data, N);
    EXPECT(sorted.host() == expected);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](int a, int b) { return keys[(size_t)a] > keys[(size_t)b]; });

    // Two buffers: the second call swaps them.
    cub::DoubleBuffer<float> both(in.data, out.data);
    std::stable_sort(keys.begin(), keys.end(), std::greater<float>());
    size_t bytes = 0;
    EXPECT(cub::DeviceRadixSort::SortKeysDescending(nullptr, bytes, both, N) == cudaSuccess);
    const Device<char> storage(bytes);
    EXPECT(both.Current() == in.data);
    EXPECT(cub::DeviceRadixSort::SortKeysDescending(storage.data, bytes, both, N) == cudaSuccess);
    EXPECT((both.Current() == in.data ? in : out).host() == keys);

    // Only some bits of the keys
    const std::vector<int> some = numbers(N, 1 << 16);
    std::vector<unsigned> bits(some.begin(), some.end());
    const Device<unsigned> from(bits), to(bits);
    CUB(DeviceRadixSort::SortKeys, from.data, to.data, N, 4, 12);
    std::stable_sort(bits.begin(), bits.end(),
                     [](unsigned a, unsigned b) { return (a >> 4 & 255) < (b >> 4 & 255); });
    EXPECT(to.host() == bits);
}

TEST(device_histogram) {
    const std::vector<int> in = numbers(1000, 100); // from -25 to 74
    const Device<int> from(in), counts(std::vector<int>(7, -1));
    std::vector<int> expected(7);
    for (int x : in)
        if (x >= -20 && x < 50)
            expected[(size_t)(x + 20) / 10]++;
    CUB(DeviceHistogram::HistogramEven, from.data, counts.data, 8, -20, 50, 1000);
    EXPECT(counts.host() == expected);
}

// The operations are work of the stream: in order with other work, also in a graph.
TEST(device_operations_in_a_graph) {
    const Device<int> from(std::vector<int>(64, 1)), to(64), total(1);
    const Device<char> storage(1 << 16);
    size_t bytes = 1 << 16;
    Captured graph;
    graph.capture([&] {
        OK(cub::DeviceScan::InclusiveSum(storage.data, bytes, from.data, to.data, 64, graph.stream));
        OK(cub::DeviceReduce::Sum(storage.data, bytes, to.data, total.data, 64, graph.stream));
    });
    EXPECT(total.host()[0] == 0);
    graph.run();
    EXPECT(total.host()[0] == 64 * 65 / 2);
}

#ifdef __CU2CPP__ // What CUDA 13 has removed from CUB still works here.
__global__ void old_operators(int *out) {
    typedef cub::KeyValuePair<int, int> Pair;
    typedef cub::BlockReduce<Pair, 64> Reduce;
    __shared__ Reduce::TempStorage storage;
    const Pair best = Reduce(storage).Reduce({(int)threadIdx.x, (int)threadIdx.x % 9}, cub::ArgMax());
    __syncthreads();
    const int least = cub::BlockReduce<int, 64>().Reduce((int)threadIdx.x + 3, cub::Min());
    if (threadIdx.x == 0) {
        out[0] = best.key;
        out[1] = best.value;
        out[2] = least;
    }
}

TEST(old_operators_and_iterators) {
    const Device<int> out(4);
    old_operators<<<1, 64>>>(out.data);
    const cub::CountingInputIterator<int> count(1);
    const cub::TransformInputIterator<bool, Odd, cub::CountingInputIterator<int>> odd(count, Odd());
    CUB(DeviceReduce::Sum, odd, out.data + 3, 11);
    EXPECT(out.host() == (std::vector<int>{8, 8, 3, 6}));
}
#endif
