// SPDX-License-Identifier: MIT
// Kernels with cooperative groups: the comment before each says how it runs, as in split.cu.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
namespace cg = cooperative_groups;

__device__ unsigned rank() {
    return threadIdx.x + blockDim.x * threadIdx.y;
}
struct Large {
    double a, b;
};
struct Rank {
    int value;
};
__device__ Rank operator+(Rank a, Rank b) {
    return {a.value + b.value + (int)threadIdx.x};
}
namespace own {
template <class G, class Op> __device__ int reduce(const G &g, int x, Op op) {
    return g.shfl(op(x, x), 1);
}
} // namespace own
template <class Group> __device__ float sum_of(const Group &g, float v) {
    for (int k = g.size() / 2; k > 0; k /= 2)
        v += g.shfl_down(v, k);
    return g.shfl(v, 0);
}
template <unsigned N> __device__ int scan_of(cg::thread_block_tile<N> tile, int v) {
    for (unsigned k = 1; k < tile.num_threads(); k *= 2) {
        const int before = tile.shfl_up(v, k);
        v += tile.thread_rank() >= k ? before : 0;
    }
    return v;
}
__device__ unsigned parts(cg::thread_group block, cg::thread_block_tile<32> &tile, unsigned v) {
    __shared__ unsigned sums[32];
    auto four = cg::tiled_partition<4>(tile);
    if (tile.thread_rank() == 0)
        sums[tile.meta_group_rank()] = v;
    cg::sync(block);
    v += sums[(tile.meta_group_rank() + 1) % tile.meta_group_size()] + four.meta_group_size() +
         block.size() / -2;
    block.sync();
    return v + four.shfl_xor(v, 5) * (four.meta_group_rank() + 1);
}

// split
__global__ void tiles(int *x) {
    constexpr int EIGHT = 8;
    const cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    const auto eight = cg::tiled_partition<EIGHT>(cg::this_thread_block());
    int v = x[block.thread_rank()];
    const float f = cg::reduce(eight, 1.0f / (v | 1), cg::plus<float>{});
    const double d = cg::reduce(tile, (double)v / 3, cooperative_groups::greater<double>());
    const long long wide = cg::reduce(tile, (long long)v << 40, ::cg::bit_and<long long>());
    v += (int)(sum_of(tile, f) * 100) ^ (int)(sum_of(eight, f) * 1000) ^ (int)d ^ (int)(wide >> 40);
    v += scan_of<8>(eight, v) + scan_of(tile, v) + eight.all(v & 2) + tile.any(v == 7);
    if (tile.meta_group_rank() == 0)
        v ^= cg::reduce(tile, (short)v, cg::less<short>());
    const Large large = eight.shfl_down(Large{v * 1.0, f * 2.0}, 1);
    const char letter = tile.shfl_up((char)v, 2);
    x[block.thread_rank()] = v + parts(block, tile, v) + letter + (int)large.b + block.group_index().x;
}

// split
__global__ void returned(int *x) {
    if (rank() % 8 == 4)
        return;
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    cg::this_thread_block().sync();
    x[rank()] += cg::reduce(tile, x[rank()], cg::plus<int>());
}

// fibers: threads may wait in 'shfl', or it is not known here
__global__ void shadowed(int *x) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    int v = tile.shfl(x[rank()], 1);
    for (int tile = 0; tile < 2; tile++)
        v += tile;
    x[rank()] += v;
}

// fibers: threads may wait in 'shfl', or it is not known here
__global__ void several_warps(int *x) {
    auto tile = cg::tiled_partition<64>(cg::this_thread_block());
    x[rank()] += tile.shfl(x[rank()], 1);
}

// fibers: the operation of a reduction is not known
__global__ void asking_addition(int *x) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    x[rank()] = cg::reduce(tile, Rank{x[rank()]}, cg::plus<Rank>()).value;
}

template <class T> struct less {
    __device__ T operator()(T a, T b) const { return a + b * threadIdx.x; }
};

// fibers: the operation of a reduction is not known
__global__ void own_operation(int *x) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    x[rank()] = cg::reduce(tile, x[rank()], less<int>());
}

// fibers: threads may wait in 'reduce', or it is not known here
__global__ void own_reduction(int *x) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    x[rank()] += own::reduce(tile, x[rank()], cg::plus<int>());
}

// fibers: threads may wait in 'sync', or it is not known here
__global__ void found_by_argument(int *x) {
    sync(cg::this_thread_block());
    auto block = cg::this_thread_block(), same = block;
    sync(same);
    x[rank()]++;
}

int main() {
    unsigned *data;
    cudaMallocManaged(&data, 128 * sizeof(int));
    for (auto kernel : {tiles, returned, shadowed, several_warps, asking_addition, own_operation,
                        own_reduction, found_by_argument})
        for (dim3 block : {dim3(64), dim3(96), dim3(50), dim3(16, 8), dim3(7, 5), dim3(32, 3)}) {
            unsigned hash = 2166136261u;
            for (int i = 0; i < 128; i++)
                data[i] = i * 7 % 31;
            kernel<<<1, block>>>((int *)data);
            cudaError_t error = cudaDeviceSynchronize();
            for (int i = 0; i < 128; i++)
                hash = (hash ^ data[i]) * 16777619u;
            printf("%u %s\n", hash, cudaGetErrorString(error));
        }
}
