// SPDX-License-Identifier: MIT
/*
 * Cooperative groups on the CPU back end: thread blocks, tiles of a warp, coalesced groups, and the
 * grid of a cooperative launch. They call the barriers and warp operations of kernel.h.
 */
#pragma once
#define _COOPERATIVE_GROUPS_H_
#include "cuda_runtime.h"

namespace cooperative_groups {

// The threads of this block.
class thread_block {
  public:
    static void sync(CUDA_CPU_SITE) { __syncthreads(cu_file, cu_line); }
    static unsigned thread_rank() { return cuda_cpu::thread_rank(); }
    static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned size() { return num_threads(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 dim_threads() { return blockDim; }
    static dim3 group_dim() { return blockDim; }
};

inline thread_block this_thread_block() {
    return {};
}

// All threads of a cooperative launch. In any other launch is_valid() is false and sync() is an
// error.
class grid_group {
  public:
    bool is_valid() const { return cuda_cpu::in_cooperative_launch(); }
    void sync(CUDA_CPU_SITE) const {
        cuda_cpu::block_barrier(cuda_cpu::BlockVote::grid, false, CUDA_CPU_HERE);
    }
    static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long block_rank() {
        return blockIdx.x +
               (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned long long size() { return num_threads(); }
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
    }
    static dim3 block_index() { return blockIdx; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 group_dim() { return gridDim; }
};

inline grid_group this_grid() {
    return {};
}

namespace detail {

// A set of lanes of a warp, as a mask. Ranks number the lanes of the mask from the lowest.
class lanes {
  public:
    void sync(CUDA_CPU_SITE) const { __syncwarp(mask, cu_file, cu_line); }
    unsigned num_threads() const { return (unsigned)__builtin_popcount(mask); }
    unsigned size() const { return num_threads(); }
    unsigned thread_rank() const {
        return (unsigned)__builtin_popcount(mask & ((1u << cuda_cpu::lane()) - 1));
    }
    int any(int predicate, CUDA_CPU_SITE) const { return __any_sync(mask, predicate, cu_file, cu_line); }
    int all(int predicate, CUDA_CPU_SITE) const { return __all_sync(mask, predicate, cu_file, cu_line); }
    unsigned ballot(int predicate, CUDA_CPU_SITE) const {
        return by_rank(__ballot_sync(mask, predicate, cu_file, cu_line));
    }
    template <class T> unsigned match_any(T value, CUDA_CPU_SITE) const {
        return by_rank(__match_any_sync(mask, value, cu_file, cu_line));
    }
    template <class T> unsigned match_all(T value, int &predicate, CUDA_CPU_SITE) const {
        return by_rank(__match_all_sync(mask, value, &predicate, cu_file, cu_line));
    }
    template <class T> T shfl(T value, unsigned rank, CUDA_CPU_SITE) const {
        return __shfl_sync(mask, value, lane_of(rank % num_threads()), 32, cu_file, cu_line);
    }
    template <class T> T shfl_up(T value, unsigned delta, CUDA_CPU_SITE) const {
        const unsigned rank = thread_rank();
        return __shfl_sync(mask, value, lane_of(rank < delta ? rank : rank - delta), 32, cu_file, cu_line);
    }
    template <class T> T shfl_down(T value, unsigned delta, CUDA_CPU_SITE) const {
        const unsigned rank = thread_rank(), n = num_threads();
        return __shfl_sync(mask, value, lane_of(delta < n && rank + delta < n ? rank + delta : rank), 32,
                           cu_file, cu_line);
    }

  protected:
    explicit lanes(unsigned m) : mask(m) {}

    int lane_of(unsigned rank) const { // position of the rank-th bit of the mask
        unsigned left = mask;
        for (; rank > 0; --rank)
            left &= left - 1;
        return __builtin_ctz(left);
    }
    unsigned by_rank(unsigned lanes) const { // converts a lane mask to a mask of ranks
        unsigned ranks = 0, rank = 0;
        for (unsigned left = mask; left; left &= left - 1, ++rank)
            ranks |= (lanes >> __builtin_ctz(left) & 1) << rank;
        return ranks;
    }

    unsigned mask;
};

// The lanes of the calling thread's tile of `size` threads that the block has.
inline unsigned tile_mask(unsigned size) {
    const unsigned thread = thread_block::thread_rank(), lane = thread % 32, first = lane / size * size;
    const unsigned here = thread_block::num_threads() - (thread - lane);
    const unsigned tile = (size == 32 ? ~0u : (1u << size) - 1) << first;
    return here >= 32 ? tile : tile & ((1u << here) - 1);
}

} // namespace detail

// The lanes that called coalesced_threads() together.
class coalesced_group : public detail::lanes {
  public:
    unsigned meta_group_rank() const { return 0; }
    unsigned meta_group_size() const { return 1; }

  private:
    explicit coalesced_group(unsigned m) : lanes(m) {}
    friend coalesced_group coalesced_threads(const char *, int);
};

inline coalesced_group coalesced_threads(CUDA_CPU_SITE) {
    return coalesced_group(__activemask(cu_file, cu_line));
}

// A tile of a block: SIZE threads of one warp, where SIZE is a power of two up to 32.
template <unsigned SIZE, class Parent = void> class thread_block_tile : public detail::lanes {
    static_assert(SIZE > 0 && SIZE <= 32 && (SIZE & (SIZE - 1)) == 0, "a power of two up to 32");

  public:
    thread_block_tile() : lanes(detail::tile_mask(SIZE)) {}
    static constexpr unsigned num_threads() { return SIZE; }
    static constexpr unsigned size() { return SIZE; }
    static unsigned thread_rank() { return thread_block::thread_rank() % SIZE; }
    static unsigned meta_group_rank() { return thread_block::thread_rank() / SIZE; }
    static unsigned meta_group_size() { return (thread_block::num_threads() + SIZE - 1) / SIZE; }
    template <class T> T shfl(T value, int rank, CUDA_CPU_SITE) const {
        return __shfl_sync(mask, value, rank, SIZE, cu_file, cu_line);
    }
    template <class T> T shfl_up(T value, unsigned delta, CUDA_CPU_SITE) const {
        return __shfl_up_sync(mask, value, delta, SIZE, cu_file, cu_line);
    }
    template <class T> T shfl_down(T value, unsigned delta, CUDA_CPU_SITE) const {
        return __shfl_down_sync(mask, value, delta, SIZE, cu_file, cu_line);
    }
    template <class T> T shfl_xor(T value, unsigned ranks, CUDA_CPU_SITE) const {
        return __shfl_xor_sync(mask, value, (int)ranks, SIZE, cu_file, cu_line);
    }
};

template <unsigned SIZE, class Group> thread_block_tile<SIZE, Group> tiled_partition(const Group &) {
    return {};
}

template <class Group> void sync(const Group &group, CUDA_CPU_SITE) {
    group.sync(cu_file, cu_line);
}

// Operators for reduce().
template <class T> struct plus {
    T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
    T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
    T operator()(T a, T b) const { return a & b; }
};
template <class T> struct bit_or {
    T operator()(T a, T b) const { return a | b; }
};
template <class T> struct bit_xor {
    T operator()(T a, T b) const { return a ^ b; }
};

// Reduces the values of all lanes in the order of their ranks. Every lane gets the result.
template <class Group, class T, class Op> T reduce(const Group &group, T value, Op op, CUDA_CPU_SITE) {
    T total = group.shfl(value, 0, cu_file, cu_line);
    for (unsigned rank = 1; rank < group.size(); ++rank)
        total = op(total, group.shfl(value, rank, cu_file, cu_line));
    return total;
}

} // namespace cooperative_groups
