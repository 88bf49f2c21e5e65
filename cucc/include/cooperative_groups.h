// SPDX-License-Identifier: MIT
// Cooperative groups. They call the barriers and warp operations of kernel.h. The headers in
// cooperative_groups/ add reduce(), the scans and memcpy_async().
#pragma once
#include "cuda_cpu/letters_off.h"
#include "cuda_runtime.h"
#ifdef __CUDACC__ // groups are for kernels; a host source may include the header

namespace cooperative_groups {

// The base class of all groups; functions can take any group as a parameter of this type. A group is a block,
// a grid, a set of lanes of a warp (given by a lane mask), or a tile of several warps (given by its size).
// The lanes of a mask have ranks in ascending order.
class thread_group {
  public:
    void sync(CUDA_CPU_SITE) const {
        if (kind == Kind::lanes)
            __syncwarp(mask, cu_file, cu_line);
        else if (kind == Kind::tile)
            cuda_cpu::tile_barrier(mask, CUDA_CPU_HERE);
        else
            cuda_cpu::block_barrier(kind == Kind::block ? cuda_cpu::BlockVote::none
                                                        : cuda_cpu::BlockVote::grid,
                                    false, CUDA_CPU_HERE);
    }
    unsigned long long num_threads() const {
        const unsigned long long block = (unsigned long long)blockDim.x * blockDim.y * blockDim.z;
        return kind == Kind::lanes   ? (unsigned)__builtin_popcount(mask)
               : kind == Kind::tile  ? mask
               : kind == Kind::block ? block
                                     : block * gridDim.x * gridDim.y * gridDim.z;
    }
    unsigned long long size() const { return num_threads(); }
    unsigned long long thread_rank() const {
        if (kind == Kind::lanes)
            return (unsigned)__builtin_popcount(mask & ((1u << cuda_cpu::lane()) - 1));
        if (kind == Kind::tile)
            return cuda_cpu::thread_rank() % mask;
        return (kind == Kind::block ? 0 : block_of_grid() * blockDim.x * blockDim.y * blockDim.z) +
               cuda_cpu::thread_rank();
    }
    bool is_valid() const { return kind != Kind::grid || cuda_cpu::in_cooperative_launch(); }

  protected:
    enum class Kind { block, grid, lanes, tile };
    thread_group(Kind k, unsigned m) : kind(k), mask(m) {}
    static unsigned long long block_of_grid() {
        return blockIdx.x + gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    friend thread_group tiled_partition(const thread_group &, unsigned);

    Kind kind;
    unsigned mask;
};

// The threads of this block.
class [[maybe_unused]] thread_block : public thread_group {
  public:
    struct arrival_token {};

    static void sync(CUDA_CPU_SITE) { __syncthreads(cu_file, cu_line); }
    static unsigned thread_rank() { return cuda_cpu::thread_rank(); }
    static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned size() { return num_threads(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 dim_threads() { return blockDim; }
    static dim3 group_dim() { return blockDim; }
    // Arrive and wait as separate calls. Here wait does all the work: it is the barrier.
    static arrival_token barrier_arrive() { return {}; }
    static void barrier_wait(arrival_token &&, CUDA_CPU_SITE) { __syncthreads(cu_file, cu_line); }

  private:
    thread_block() : thread_group(Kind::block, 0) {}
    friend thread_block this_thread_block();
};

CUDA_CPU_RETURN(thread_block, this_thread_block, (), {})
// Memory that CUDA needs for tiles of several warps. It is not used here.
template <unsigned THREADS = 1024> struct block_tile_memory { char unused; };
template <unsigned THREADS> thread_block this_thread_block(block_tile_memory<THREADS> &) {
    return this_thread_block();
}

// All threads of a cooperative launch. In other launches is_valid() is false and sync() is an error.
class grid_group : public thread_group {
  public:
    struct arrival_token {};

    static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long block_rank() { return block_of_grid(); }
    static dim3 block_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 dim_threads() {
        return {gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z};
    }
    static dim3 group_dim() { return gridDim; }
    static arrival_token barrier_arrive() { return {}; }
    void barrier_wait(arrival_token &&, CUDA_CPU_SITE) const { sync(cu_file, cu_line); }

  private:
    grid_group() : thread_group(Kind::grid, 0) {}
    friend grid_group this_grid();
};

CUDA_CPU_RETURN(grid_group, this_grid, (), {})

// Clusters need compute capability 9.0 and several grids were removed from CUDA 13, so these do not compile.
class cluster_group {
  public:
    static void sync() {}
    static void barrier_arrive() {}
    static void barrier_wait() {}
    static unsigned block_rank() { return 0; }
    static unsigned num_blocks() { return 1; }
    static unsigned thread_rank() { return 0; }
    static unsigned num_threads() { return 1; }
    static dim3 block_index() { return {}; }
    static dim3 dim_blocks() { return {}; }
    static dim3 thread_index() { return {}; }
    static dim3 dim_threads() { return {}; }
    template <class T> static T *map_shared_rank(T *p, int) { return p; }
    static unsigned query_shared_rank(const void *) { return 0; }
};
template <class T = void>
__attribute__((error("the CPU back end has compute capability 8.0, which has no clusters"))) cluster_group
this_cluster();
template <class T = void>
__attribute__((error("CUDA 13 has no groups of several grids"))) grid_group this_multi_grid();

namespace detail {

// A set of lanes of a warp.
class lanes : public thread_group {
  public:
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
        return from_rank(value, rank % num_threads(), CUDA_CPU_HERE);
    }
    template <class T> T shfl_up(T value, unsigned delta, CUDA_CPU_SITE) const {
        const unsigned rank = thread_rank();
        return from_rank(value, rank < delta ? rank : rank - delta, CUDA_CPU_HERE);
    }
    template <class T> T shfl_down(T value, unsigned delta, CUDA_CPU_SITE) const {
        const unsigned rank = thread_rank(), n = num_threads();
        return from_rank(value, delta < n && rank + delta < n ? rank + delta : rank, CUDA_CPU_HERE);
    }
    // Lanes of the group for which the predicate holds, and lanes with the same value.
    unsigned lanes_where(bool predicate, CUDA_CPU_SITE) const {
        return __ballot_sync(mask, predicate, cu_file, cu_line);
    }
    template <class T> unsigned lanes_with(T value, CUDA_CPU_SITE) const {
        return __match_any_sync(mask, value, cu_file, cu_line);
    }

  protected:
    explicit lanes(unsigned m) : thread_group(Kind::lanes, m) {}

    template <class T> T from_rank(T value, unsigned rank, cuda_cpu::Site site) const {
        return cuda_cpu::shuffle(cuda_cpu::WarpOp::shuffle_index, mask, value, lane_of(rank), 32, site);
    }
    int lane_of(unsigned rank) const { // position of the mask's set bit with this rank
        unsigned left = mask;
        for (; rank > 0; --rank)
            left &= left - 1;
        return __builtin_ctz(left);
    }
    unsigned by_rank(unsigned lanes) const { // converts a lane mask to a mask of ranks
        if (mask == ~0u)
            return lanes;
        unsigned ranks = 0, rank = 0;
        for (unsigned left = mask; left; left &= left - 1, ++rank)
            ranks |= (lanes >> __builtin_ctz(left) & 1) << rank;
        return ranks;
    }
};

inline void check_tile_size(unsigned size) { // CUDA also allows only powers of two up to 32
    if (size == 0 || size > 32 || (size & (size - 1)))
        __trap();
}

} // namespace detail

class coalesced_group;
template <class Group> coalesced_group binary_partition(const Group &group, bool predicate, CUDA_CPU_SITE);
template <class Group, class Label>
coalesced_group labeled_partition(const Group &group, Label label, CUDA_CPU_SITE);

// The lanes that called coalesced_threads() together, or a part of another group.
class coalesced_group : public detail::lanes {
  public:
    unsigned meta_group_rank() const { return rank; }
    unsigned meta_group_size() const { return groups; }

  private:
    explicit coalesced_group(unsigned m, unsigned r = 0, unsigned g = 1) : lanes(m), rank(r), groups(g) {}
    friend coalesced_group coalesced_threads(int, const char *, int);
    friend coalesced_group tiled_partition(const coalesced_group &, unsigned);
    template <class Group> friend coalesced_group binary_partition(const Group &, bool, const char *, int);
    template <class Group, class Label>
    friend coalesced_group labeled_partition(const Group &, Label, const char *, int);

    unsigned rank, groups; // rank among the parts of the other group, and the number of parts
};

CUDA_CPU_RETURN(coalesced_group, coalesced_threads, (int place = 0, CUDA_CPU_SITE),
                coalesced_group(__activemask(place, cu_file, cu_line)))

namespace detail {

// A tile of a warp, or a part of such a tile.
template <unsigned SIZE> class warp_tile : public lanes {
  public:
    warp_tile() : lanes(cuda_cpu::tile_mask(SIZE)) {}
#define CUDA_CPU_SHUFFLE(name, op, Operand)                                                                  \
    template <class T> T name(T value, Operand operand, CUDA_CPU_SITE) const {                               \
        return cuda_cpu::shuffle(cuda_cpu::WarpOp::op, mask, value, (int)operand, SIZE, CUDA_CPU_HERE);      \
    }
    CUDA_CPU_SHUFFLE(shfl, shuffle_index, int)
    CUDA_CPU_SHUFFLE(shfl_up, shuffle_up, unsigned)
    CUDA_CPU_SHUFFLE(shfl_down, shuffle_down, unsigned)
    CUDA_CPU_SHUFFLE(shfl_xor, shuffle_xor, unsigned)
#undef CUDA_CPU_SHUFFLE
};

// A tile of several warps. As in CUDA, it exchanges values of 8 bytes at most.
template <unsigned SIZE> class block_tile : public thread_group {
  public:
    block_tile() : thread_group(Kind::tile, SIZE) {}
    template <class T> T shfl(T value, unsigned rank, CUDA_CPU_SITE) const {
        publish(value, CUDA_CPU_HERE);
        const T result = value_of<T>(rank % threads_here());
        cuda_cpu::tile_barrier(SIZE, CUDA_CPU_HERE);
        return result;
    }
    // Combines the values of the ranks 0 to count - 1, in this order; `count` may differ between the threads.
    template <class T, class Op> T combine(T value, unsigned count, Op &&op, CUDA_CPU_SITE) const {
        publish(value, CUDA_CPU_HERE);
        T result = value_of<T>(0);
        for (unsigned rank = 1; rank < count && rank < threads_here(); ++rank)
            result = op(result, value_of<T>(rank));
        cuda_cpu::tile_barrier(SIZE, CUDA_CPU_HERE);
        return result;
    }
    int any(int predicate, CUDA_CPU_SITE) const {
        return combine((int)(predicate != 0), SIZE, [](int a, int b) { return a | b; }, cu_file, cu_line);
    }
    int all(int predicate, CUDA_CPU_SITE) const { return !any(!predicate, cu_file, cu_line); }

  private:
    static unsigned first() { return cuda_cpu::thread_rank() / SIZE * SIZE; }
    static unsigned threads_here() { // the last tile of a block may be partial
        const unsigned left = thread_block::num_threads() - first();
        return left < SIZE ? left : SIZE;
    }
    template <class T> static void publish(T value, cuda_cpu::Site site) {
        cuda_cpu::current_block->values[cuda_cpu::thread_rank()] = cuda_cpu::to_bits(value);
        cuda_cpu::tile_barrier(SIZE, site);
    }
    template <class T> static T value_of(unsigned rank) { // valid until the tile's next barrier
        return cuda_cpu::from_bits<T>(cuda_cpu::current_block->values[first() + rank]);
    }
};

} // namespace detail

// A tile of a block: SIZE threads of one or more warps, where SIZE is a power of two. Parent is the type of
// the partitioned group; a tile converts to one of any parent.
template <unsigned SIZE, class Parent = void>
class thread_block_tile
    : public std::conditional_t<(SIZE <= 32), detail::warp_tile<SIZE>, detail::block_tile<SIZE>> {
    static_assert(SIZE > 0 && (SIZE & (SIZE - 1)) == 0, "the size of a tile is a power of two");
    static_assert(SIZE <= 1024, "a tile has 1024 threads at most");

  public:
    thread_block_tile() = default;
    template <class Other>
    thread_block_tile(const thread_block_tile<SIZE, Other> &other)
        : rank(other.meta_group_rank()), tiles(other.meta_group_size()) {}
    static constexpr unsigned num_threads() { return SIZE; }
    static constexpr unsigned size() { return SIZE; }
    static unsigned thread_rank() { return thread_block::thread_rank() % SIZE; }
    unsigned meta_group_rank() const { return rank; }
    unsigned meta_group_size() const { return tiles; }

  private:
    thread_block_tile(unsigned thread, unsigned threads)
        : rank(thread / SIZE), tiles((threads + SIZE - 1) / SIZE) {}
    template <unsigned COUNT, class Group>
    friend thread_block_tile<COUNT, Group> tiled_partition(const Group &group);

    unsigned rank = 0, tiles = 1; // rank among the tiles of the partitioned group, and their number
};

CUDA_CPU_RETURN(thread_block_tile<1>, this_thread, (), {})

// ---- parts of groups ----

template <unsigned SIZE, class Group> thread_block_tile<SIZE, Group> tiled_partition(const Group &group) {
    return {(unsigned)group.thread_rank(), (unsigned)group.num_threads()};
}

// Partitions a group into tiles of `size` threads, a run-time argument instead of a template parameter.
inline thread_group tiled_partition(const thread_group &group, unsigned size) {
    detail::check_tile_size(size);
    if (group.kind == thread_group::Kind::grid)
        __trap(); // a grid has no tiles
    return {thread_group::Kind::lanes, cuda_cpu::tile_mask(size)};
}
inline coalesced_group tiled_partition(const coalesced_group &group, unsigned size) {
    detail::check_tile_size(size);
    unsigned mask = 0;
    const unsigned n = group.size(), tile = group.thread_rank() / size;
    for (unsigned rank = tile * size; rank < n && rank < (tile + 1) * size; ++rank)
        mask |= 1u << group.lane_of(rank);
    return coalesced_group(mask, tile, (n + size - 1) / size);
}

// The lanes of the group with the same predicate, or the same label, as the caller.
template <class Group>
coalesced_group binary_partition(const Group &group, bool predicate, const char *cu_file, int cu_line) {
    const unsigned where = group.lanes_where(predicate, cu_file, cu_line),
                   all = group.lanes_where(true, cu_file, cu_line);
    if (where == 0 || where == all) // one part
        return coalesced_group(all);
    return coalesced_group(predicate ? where : all & ~where, predicate, 2);
}
template <class Group, class Label>
coalesced_group labeled_partition(const Group &group, Label label, const char *cu_file, int cu_line) {
    const unsigned mine = group.lanes_with(label, cu_file, cu_line);
    const unsigned leader =
        (unsigned)__builtin_ctz(mine); // numbers the parts in the order of their first lanes
    const unsigned leaders = group.lanes_where(cuda_cpu::lane() == leader, cu_file, cu_line);
    return coalesced_group(mine, (unsigned)__builtin_popcount(leaders & ((1u << leader) - 1)),
                           (unsigned)__builtin_popcount(leaders));
}

// ---- functions on groups ----

template <class Group> void sync(const Group &group, CUDA_CPU_SITE) {
    group.sync(cu_file, cu_line);
}
template <class Group> auto group_size(const Group &group) {
    return group.size();
}
template <class Group> auto thread_rank(const Group &group) {
    return group.thread_rank();
}

// One thread of the group calls the function. With _broadcast, all threads get its result.
template <class Group, class F, class... A> void invoke_one(const Group &group, F &&f, A &&...arguments) {
    if (group.thread_rank() == 0)
        std::forward<F>(f)(std::forward<A>(arguments)...);
}
template <class Group, class F, class... A>
auto invoke_one_broadcast(const Group &group, F &&f, A &&...arguments) {
    decltype(std::forward<F>(f)(std::forward<A>(arguments)...)) result{};
    if (group.thread_rank() == 0)
        result = std::forward<F>(f)(std::forward<A>(arguments)...);
    return group.shfl(result, 0);
}

// Operators for reduce() and the scans.
#define CUDA_CPU_OPERATION(name, expression)                                                                 \
    template <class T> struct name {                                                                         \
        T operator()(T a, T b) const { return expression; }                                                  \
    };
CUDA_CPU_OPERATION(plus, a + b)
CUDA_CPU_OPERATION(less, b < a ? b : a)
CUDA_CPU_OPERATION(greater, a < b ? b : a)
CUDA_CPU_OPERATION(bit_and, a &b)
CUDA_CPU_OPERATION(bit_or, a | b)
CUDA_CPU_OPERATION(bit_xor, a ^ b)

} // namespace cooperative_groups
#endif // __CUDACC__
#include "cuda_cpu/letters_on.h"
