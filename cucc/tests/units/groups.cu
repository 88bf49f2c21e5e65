// SPDX-License-Identifier: MIT
// Cooperative groups, cooperative launches, active lanes, attributes of kernels and occupancy.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include "device.h"

namespace cg = cooperative_groups;

// ---- active lanes, and tiles of several warps; smaller tiles: ../conformance ----

__global__ void active_in_branches(unsigned *masks) {
    if (threadIdx.x % 4 == 0)
        masks[threadIdx.x] = __activemask();
    else
        masks[threadIdx.x] = __activemask();
}

// Two calls on one line are two places, also in templates, loops and macros.
#define BOTH(out, a, b) (threadIdx.x % 4 == 0 ? (out) = (a) : (out) = (b))
template <class T> __global__ void active_on_a_line(T *masks) {
    for (int i = 0; i < 2; i++)
        BOTH(masks[threadIdx.x], __activemask(), cg::coalesced_threads().ballot(1) ? __activemask() : 0);
}

__global__ void coalesced_on_a_line(unsigned *sizes) {
    BOTH(sizes[threadIdx.x], cg::coalesced_threads().size(), cg::coalesced_threads().size());
}

TEST(places_on_a_line) {
    const auto mask = [](int t) { return t % 4 ? ~0x11111111u : 0x11111111u; };
    EXPECT(WRITTEN(unsigned, 32, active_on_a_line<<<1, 32>>>(out)) == made(32, mask));
    const auto size = [](int t) { return t % 4 ? 24u : 8u; };
    EXPECT(WRITTEN(unsigned, 32, coalesced_on_a_line<<<1, 32>>>(out)) == made(32, size));
}

TEST(active_lanes_of_a_branch) {
    const auto mask = [](int t) { return (t % 4 ? ~0x11111111u : 0x11111111u) & (t < 32 ? ~0u : 0xff); };
    EXPECT(WRITTEN(unsigned, 40, active_in_branches<<<1, 40>>>(out)) == made(40, mask));
}

// Tiles of several warps
template <int SIZE> __global__ void block_tiles(int *good, bool diverge) {
    __shared__ cg::block_tile_memory<256> memory;
    __shared__ int cells[256];
    const cg::thread_block block = cg::this_thread_block(memory);
    const auto tile = cg::tiled_partition<SIZE>(block);
    const int t = (int)threadIdx.x, first = t / SIZE * SIZE, end = first + SIZE;
    if (diverge && tile.meta_group_rank() == 1) { // the other tiles have nothing to wait for
        good[t] = 1;
        return;
    }
    const int before = (first + t - 1) * (t - first) / 2;
    bool right = cg::reduce(tile, t, cg::plus<int>()) == (first + end - 1) * SIZE / 2 &&
                 cg::reduce(tile, (short)t, cg::greater<short>()) == end - 1 &&
                 cg::inclusive_scan(tile, t) == before + t &&
                 cg::exclusive_scan(tile, t, cg::plus<int>()) == before && tile.shfl(t, 3) == first + 3 &&
                 tile.any(t == 70) == (first <= 70 && 70 < end) && tile.all(t < 64) == (end <= 64) &&
                 (int)tile.thread_rank() == t - first && (int)tile.meta_group_rank() == t / SIZE &&
                 (int)tile.size() == SIZE;
    for (int round = 0; round < 3; ++round) { // each thread writes what its neighbour reads
        cells[t] = t + round;
        tile.sync();
        right &= t + 1 == end || cells[t + 1] == t + 1 + round;
        tile.sync();
    }
    good[t] = right;
}

TEST(tiles_of_several_warps) {
    EXPECT(good(block_tiles<64>, 192, false) && good(block_tiles<64>, 192, true));
    EXPECT(good(block_tiles<128>, 256, false) && good(block_tiles<256>, 256, false));
}

// ---- cooperative launches ----

__global__ void pass_on(int *cells, int rounds, int *valid) {
    cg::grid_group grid = cg::this_grid();
    const int n = (int)grid.size(), i = (int)grid.thread_rank();
    if (i == 0)
        *valid = grid.is_valid();
    for (int round = 0; round < rounds; ++round) {
        const int next = cells[(i + 1) % n];
        grid.sync();
        cells[i] = next;
        grid.sync();
    }
}

TEST(grid_barrier) {
    int processors, per_processor;
    OK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    for (int threads : {1, 33, 1024}) {
        OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, pass_on, threads, 0));
        const int blocks = processors * per_processor, n = blocks * threads;
        const Device<int> cells(made(n, [](int i) { return i; })), valid(1);
        int rounds = 7;
        void *arguments[] = {(void *)&cells.data, &rounds, (void *)&valid.data};
        OK(cudaLaunchCooperativeKernel(pass_on, blocks, threads, arguments));
        EXPECT(cells.host() == made(n, [=](int i) { return (i + rounds) % n; }));
        EXPECT(valid.host()[0] == 1);
        EXPECT(cudaLaunchCooperativeKernel(pass_on, blocks + 1, threads, arguments) ==
               cudaErrorCooperativeLaunchTooLarge);
        EXPECT(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
    }
}

// ---- attributes and occupancy ----

template <int N> __global__ void with_shared(float *out) {
    __shared__ float cells[N];
    cells[threadIdx.x] = 1;
    out[threadIdx.x] = cells[threadIdx.x];
}

TEST(occupancy) {
    int grid, block, processors;
    const auto blocks = [](auto kernel, int threads, int dynamic) {
        int n = -1, same = -2;
        OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, threads, dynamic));
        OK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&same, kernel, threads, dynamic, 0));
        return n == same ? n : -1;
    };
    const auto with_bytes = [](size_t bytes) { // of shared memory
        const auto p = STORED(cudaDeviceProp, cudaGetDeviceProperties(&it, 0));
        return (int)(p.sharedMemPerMultiprocessor / (bytes + p.reservedSharedMemPerBlock));
    };
    OK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    EXPECT(blocks(active_in_branches, 256, 0) == 8); // 2048 threads
    EXPECT(blocks(active_in_branches, 33, 0) == 32); // 64 warps
    EXPECT(blocks(active_in_branches, 1, 0) == 32);  // the limit of blocks
    EXPECT(blocks(active_in_branches, 32, 40 << 10) == with_bytes(40 << 10));
    EXPECT(blocks(with_shared<10000>, 32, 0) == with_bytes(40000));
    EXPECT(blocks(active_in_branches, 2000, 0) == 0);
    OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, active_in_branches, 0, 0));
    EXPECT(block == 1024 && grid == 2 * processors);
    OK(cudaOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, active_in_branches, 0, 200, 0));
    EXPECT(block == 128); // 16 blocks of 4 warps fill all 64 warps, 9 blocks of 7 do not
}

// ---- parts of groups ----

__device__ int sum_of(cg::thread_group group, int *cells, int value) { // as in the programming guide
    const int rank = (int)group.thread_rank();
    for (int i = (int)group.size() / 2; i > 0; i /= 2) {
        cells[rank] = value;
        group.sync();
        if (rank < i)
            value += cells[rank + i];
        group.sync();
    }
    return value;
}

__global__ void sums_of_any_group(int *good) {
    __shared__ int cells[128];
    const cg::thread_block block = cg::this_thread_block();
    const int t = (int)block.thread_rank();
    const int all = sum_of(block, cells, t);
    const cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block); // the type without the parent
    const int part = sum_of(tile, &cells[t / 16 * 16], t);
    const cg::thread_group group = cg::tiled_partition(block, 8);
    const int small = sum_of(group, &cells[t / 8 * 8], t);
    const cg::thread_block_tile<4> quad = cg::tiled_partition<4>(cg::tiled_partition<32>(block)), copy = quad;
    good[t] = (t > 0 || all == 127 * 64) && (tile.thread_rank() > 0 || part == 16 * t + 120) &&
              (group.thread_rank() > 0 || small == 8 * t + 28) && cg::tiled_partition(group, 4).size() == 4 &&
              (int)copy.meta_group_rank() == t % 32 / 4 && copy.meta_group_size() == 8 &&
              (int)copy.thread_rank() == t % 4 && cg::this_thread().size() == 1;
}

TEST(groups_as_parameters) {
    EXPECT(good(sums_of_any_group, 128));
}

__global__ void partitions(int *good) {
    const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    const int t = (int)tile.thread_rank(), number = t / 8;
    const auto odd = cg::binary_partition(tile, t % 2 == 1);
    const auto label = cg::labeled_partition(tile, 10 * number);
    bool right = odd.size() == 16 && (int)odd.thread_rank() == t / 2 && (int)odd.meta_group_rank() == t % 2 &&
                 odd.meta_group_size() == 2 && label.size() == 8 && (int)label.thread_rank() == t % 8 &&
                 (int)label.meta_group_rank() == number && label.meta_group_size() == 4 &&
                 cg::reduce(label, t, cg::plus<int>()) == 64 * number + 28;
    if (t < 21) {
        const auto part = cg::tiled_partition(cg::coalesced_threads(), 8);
        right &= part.size() == (t < 16 ? 8 : 5) && (int)part.thread_rank() == t % 8 &&
                 (int)part.meta_group_rank() == number && part.meta_group_size() == 3 &&
                 part.shfl(t, 1) == 8 * number + 1;
    }
    good[t] = right && tile.match_any(t / 8) == 0xffu << t / 8 * 8;
}

TEST(parts_by_predicate_and_label) {
    EXPECT(good(partitions, 32));
}

// ---- values of any type ----

struct Big { // 24 bytes
    double x;
    int a, b;
    float c;
    __host__ __device__ bool operator==(const Big &other) const {
        return x == other.x && a == other.a && b == other.b && c == other.c;
    }
};

__global__ void big_values(int *out) {
    const auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    const int t = (int)tile.thread_rank();
    const auto of = [](int i) { return Big{i * 1e-9, i, -i, i + 0.5f}; };
    bool good = tile.shfl(of(t), 5) == of(5) && tile.shfl_xor(of(t), 3) == of(t ^ 3) &&
                tile.shfl_up(of(t), 1) == of(t ? t - 1 : 0) &&
                tile.shfl_down(of(t), 1) == of(t < 31 ? t + 1 : 31);
    const char c = tile.shfl((char)t, 9);
    const short s = tile.shfl((short)(-t), 9);
    const float4 v = cg::reduce(tile, make_float4((float)t, 1, (float)-t, 0), [](float4 p, float4 q) {
        return make_float4(p.x + q.x, p.y + q.y, fminf(p.z, q.z), fmaxf(p.w, q.w));
    });
    const double least = cg::reduce(tile, (double)(t * t - 10 * t), cg::less<double>());
    const unsigned bits = cg::reduce(tile, 1u << t, cg::bit_or<unsigned>());
    good = good && c == 9 && s == -9 && v.x == 496 && v.y == 32 && v.z == -31 && v.w == 0 && least == -25 &&
           bits == ~0u;
    out[t] = good;
}

TEST(groups_move_values_of_any_type) {
    EXPECT(good(big_values, 32));
}

// Scans of tiles: ../conformance
__global__ void scan_of_a_branch(int *good) {
    good[threadIdx.x] =
        threadIdx.x % 3 != 1 ||
        cg::exclusive_scan(cg::coalesced_threads(), 2, cg::plus<int>()) == 2 * (int)(threadIdx.x / 3);
}

TEST(prefix_sums_of_active_lanes) {
    EXPECT(good(scan_of_a_branch, 32));
}

// ---- copies, and one thread of a group ----

__global__ void copies(const int *in, int n, int *out) {
    extern __shared__ int cells[];
    const cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, cells, in, sizeof(int) * (size_t)n);
    cg::wait(block);
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        out[i] = cells[n - 1 - i];
    auto token = block.barrier_arrive();
    block.barrier_wait(std::move(token));
    const auto tile = cg::tiled_partition<32>(block);
    cg::memcpy_async(tile, cells, 8, in, 5); // 5 elements
    cg::wait_prior<0>(tile);
    cg::invoke_one(tile, [&] { out[n] = cells[4]; });
    const int seven = cg::invoke_one_broadcast(tile, [] { return 7; });
    out[n + 1 + (int)threadIdx.x] = seven;
}

TEST(copies_by_a_group) {
    const int n = 999;
    const Device<int> in(made(n, [](int i) { return 3 * i; }));
    const auto got = WRITTEN(int, n + 65, copies<<<1, 32, n * sizeof(int)>>>(in.data, n, out));
    for (int i = 0; i < n; ++i)
        EXPECT(got[i] == 3 * (n - 1 - i));
    EXPECT(got[n] == 12 && got[n + 1] == 7 && got[n + 32] == 7);
}
