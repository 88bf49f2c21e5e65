// SPDX-License-Identifier: MIT
// CUB: collective operations of the threads of a block. All threads store their items in the temporary
// storage, and after a barrier the first thread combines them. In total this is no more work than a tree
// with a barrier for each level.
#pragma once
#include <algorithm>
#include "cub_warp.h"
#include "letters_off.h"

namespace cub {

// ---- reductions and scans of a block ----

// The first thread gets the result.
template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0>
class BlockReduce : public cu_collective<cu_storage<T, X * Y * Z>> {
    CUDA_CPU_CUB(BlockReduce);

  public:
    template <class Op> T Reduce(T item, Op op, int valid = X * Y * Z) {
        s[rank] = item;
        barrier();
        if (rank == 0) {
            for (int step = 1; step < valid; step *= 2) // pairwise, for small rounding errors
                for (int i = 0; i + step < valid; i += 2 * step)
                    s[i] = op(s[i], s[i + step]);
            item = s[0];
        }
        return item;
    }
    template <int N, class Op> T Reduce(T (&items)[N], Op op) { return Reduce(ThreadReduce(items, op), op); }
    T Sum(T item, int valid = X * Y * Z) { return Reduce(item, cub::Sum(), valid); }
    template <int N> T Sum(T (&items)[N]) { return Reduce(items, cub::Sum()); }
};

template <class T, int N> struct cu_scan_storage {
    cu_storage<T, N> items;
    cu_storage<T, 1> seed;
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
class BlockScan : public cu_collective<cu_scan_storage<T, X * Y * Z>> {
    CUDA_CPU_CUB(BlockScan);
    static constexpr int threads = X * Y * Z;

    struct Before { // the combined items before those of this thread, if there are any
        bool some;
        T value;
        template <class Op> T then(Op &op, T item) { return some ? op(value, item) : item; }
    };

    template <class Op> Before before(const T &mine, Op &op, T &aggregate) {
        s.items[rank] = mine;
        barrier();
        if (rank == 0)
            for (int i = 1; i < threads; ++i)
                s.items[i] = op(s.items[i - 1], s.items[i]);
        barrier();
        aggregate = s.items[threads - 1];
        return {rank > 0, rank > 0 ? s.items[rank - 1] : T(mine)};
    }
    template <class Op> Before before(const T &mine, Op &op) {
        T aggregate;
        return before(mine, op, aggregate);
    }
    // With a prefix that the program's callback, called by the first warp, computes from the aggregate.
    template <class Op, class Callback> Before before(const T &mine, Op &op, Callback &callback) {
        T aggregate;
        const Before in_block = before(mine, op, aggregate);
        if (rank < 32) {
            const T seed = callback(aggregate);
            if (rank == 0)
                s.seed[0] = seed;
        }
        barrier();
        return after(s.seed[0], op, in_block);
    }
    template <class Op> Before after(T initial, Op &op, Before b) {
        return {true, b.some ? T(op(initial, b.value)) : initial};
    }
    template <int N, class Op> void inclusive(T (&in)[N], T (&out)[N], Op &op, Before b) {
        for (int i = 0; i < N; ++i) {
            out[i] = b.then(op, in[i]);
            b = {true, out[i]};
        }
    }
    template <int N, class Op> void exclusive(T (&in)[N], T (&out)[N], Op &op, Before b) {
        for (int i = 0; i < N; ++i) {
            T item = in[i]; // `out` may be `in`
            out[i] = b.value;
            b = {true, b.then(op, item)};
        }
    }
    typedef T (&One)[1];

  public:
    // Without an initial value, the first thread's first result is undefined. `aggregate` is the
    // variable that gets the result of all items, or a callback that returns the prefix, or is left out.
#define CUDA_CPU_CUB_SCAN(Scan, scan)                                                                        \
    template <int N, class Op, class... Aggregate>                                                           \
    void Scan(T(&in)[N], T(&out)[N], Op op, Aggregate &...aggregate) {                                       \
        scan(in, out, op, before(ThreadReduce(in, op), op, aggregate...));                                   \
    }                                                                                                        \
    template <int N, class Op, class... Aggregate>                                                           \
    void Scan(T(&in)[N], T(&out)[N], T initial, Op op, Aggregate &...aggregate) {                            \
        scan(in, out, op, after(initial, op, before(ThreadReduce(in, op), op, aggregate...)));               \
    }
    CUDA_CPU_CUB_SCAN(ExclusiveScan, exclusive)
    CUDA_CPU_CUB_SCAN(InclusiveScan, inclusive)
    template <int N, class... Aggregate> void ExclusiveSum(T (&in)[N], T (&out)[N], Aggregate &...aggregate) {
        if constexpr ((std::is_same_v<Aggregate, T> && ...))
            ExclusiveScan(in, out, T(), Sum(), aggregate...);
        else // a prefix callback, which returns the initial value of the scan
            ExclusiveScan(in, out, Sum(), aggregate...);
    }
    template <int N, class... Aggregate> void InclusiveSum(T (&in)[N], T (&out)[N], Aggregate &...aggregate) {
        InclusiveScan(in, out, Sum(), aggregate...);
    }
    // Forms with one item per thread
#define CUDA_CPU_CUB_ONE(Scan)                                                                               \
    template <class... More> void Scan(T in, T &out, More &&...more) {                                       \
        Scan((One)in, (One)out, std::forward<More>(more)...);                                                \
    }
    CUDA_CPU_CUB_ONE(ExclusiveScan)
    CUDA_CPU_CUB_ONE(InclusiveScan)
    CUDA_CPU_CUB_ONE(ExclusiveSum)
    CUDA_CPU_CUB_ONE(InclusiveSum)
};

// ---- loads and stores ----

// Copies the N items of a thread to memory (STORE) or from memory, up to element `valid`. Item i is element i
// * threads + rank in the striped arrangement, rank * N + i in the blocked one.
template <bool STORE, bool STRIPED, class It, class T, int N>
void cu_copy(int rank, int threads, It it, T (&items)[N], int valid) {
    for (int i = 0; i < N; ++i) {
        const int place = STRIPED ? i * threads + rank : rank * N + i;
        if (place >= valid)
            continue;
        if constexpr (STORE)
            it[place] = items[i];
        else
            items[i] = it[place];
    }
}
constexpr int cu_all = std::numeric_limits<int>::max();

// TYPES are the template parameters before T; the items are those of `threads` threads.
#define CUDA_CPU_CUB_DIRECT(Striped, STRIPED, TYPES, threads)                                                \
    template <CUDA_CPU_LIST TYPES class T, int N, class It>                                                  \
    void LoadDirect##Striped(int rank, It it, T(&items)[N], int valid = cu_all) {                            \
        cu_copy<false, STRIPED>(rank, threads, it, items, valid);                                            \
    }                                                                                                        \
    template <CUDA_CPU_LIST TYPES class T, int N, class It, class Default>                                   \
    void LoadDirect##Striped(int rank, It it, T(&items)[N], int valid, Default other) {                      \
        std::fill(items, items + N, T(other));                                                               \
        cu_copy<false, STRIPED>(rank, threads, it, items, valid);                                            \
    }                                                                                                        \
    template <CUDA_CPU_LIST TYPES class T, int N, class It>                                                  \
    void StoreDirect##Striped(int rank, It it, T(&items)[N], int valid = cu_all) {                           \
        cu_copy<true, STRIPED>(rank, threads, it, items, valid);                                             \
    }
CUDA_CPU_CUB_DIRECT(Blocked, false, (), 0)
CUDA_CPU_CUB_DIRECT(Striped, true, (int THREADS, ), THREADS)

template <class T, int N, bool STRIPED, int THREADS> class cu_load_store {
  protected:
    const int rank = (int)cuda_cpu::thread_rank() % THREADS;

  public:
    typedef cu_no_storage TempStorage;
    cu_load_store() {}
    explicit cu_load_store(cu_no_storage &) {}
    // `more`: nothing, or the number of valid items, or this number and a value for the items beyond it
    template <class It, class... More> void Load(It it, T (&items)[N], More... more) {
        if constexpr (STRIPED)
            LoadDirectStriped<THREADS>(rank, it, items, more...);
        else
            LoadDirectBlocked(rank, it, items, more...);
    }
    template <class It> void Store(It it, T (&items)[N], int valid = cu_all) {
        cu_copy<true, STRIPED>(rank, THREADS, it, items, valid);
    }
};
template <class T, int X, int N, BlockLoadAlgorithm HOW = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int = 0>
struct BlockLoad : cu_load_store<T, N, HOW == BLOCK_LOAD_STRIPED, X * Y * Z> {
    using BlockLoad::cu_load_store::cu_load_store;
};
template <class T, int X, int N, BlockStoreAlgorithm HOW = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1, int = 0>
struct BlockStore : cu_load_store<T, N, HOW == BLOCK_STORE_STRIPED, X * Y * Z> {
    using BlockStore::cu_load_store::cu_load_store;
};
// ---- exchanges of items ----

template <class T, int X, int N, bool = false, int Y = 1, int Z = 1, int = 0>
class BlockExchange : public cu_collective<cu_storage<T, X * Y * Z * N>> {
    CUDA_CPU_CUB(BlockExchange);
    static constexpr int threads = X * Y * Z;
    static int blocked(int rank, int i) { return rank * N + i; }
    static int striped(int rank, int i) { return i * threads + rank; }
    static int warp_striped(int rank, int i) {
        const int first = rank / 32 * 32, size = std::min(threads - first, 32);
        return first * N + i * size + rank % 32;
    }
    // Stores item i at index from(rank, i), then loads it from index to(rank, i).
    template <class U, class From, class To> void move(T (&in)[N], U (&out)[N], From from, To to) {
        for (int i = 0; i < N; ++i)
            s[from(rank, i)] = in[i];
        barrier();
        for (int i = 0; i < N; ++i)
            out[i] = s[to(rank, i)];
    }

  public:
#define CUDA_CPU_CUB_MOVE(NAME, from, to)                                                                    \
    template <class U> void NAME(T(&in)[N], U(&out)[N]) {                                                    \
        move(in, out, from, to);                                                                             \
    }                                                                                                        \
    void NAME(T(&items)[N]) {                                                                                \
        NAME(items, items);                                                                                  \
    }
    CUDA_CPU_CUB_MOVE(StripedToBlocked, striped, blocked)
    CUDA_CPU_CUB_MOVE(BlockedToStriped, blocked, striped)
    CUDA_CPU_CUB_MOVE(WarpStripedToBlocked, warp_striped, blocked)
    CUDA_CPU_CUB_MOVE(BlockedToWarpStriped, blocked, warp_striped)
#define CUDA_CPU_CUB_SCATTER(NAME, to)                                                                       \
    template <class U, class Rank> void NAME(T(&in)[N], U(&out)[N], Rank(&ranks)[N]) {                       \
        const auto given = [&](int, int i) { return (int)ranks[i]; };                                        \
        move(in, out, given, to);                                                                            \
    }                                                                                                        \
    template <class Rank> void NAME(T(&items)[N], Rank(&ranks)[N]) {                                         \
        NAME(items, items, ranks);                                                                           \
    }
    CUDA_CPU_CUB_SCATTER(ScatterToBlocked, blocked)
    CUDA_CPU_CUB_SCATTER(ScatterToStriped, striped)
};

// ---- sorting in a block ----

template <class Key, class Value, int N> struct cu_sort_storage {
    cu_storage<Key, N> keys;
    cu_storage<Value, N> values;
};
// The first thread sorts all keys, together with their values. The sort is stable.
template <class Key, int X, int N, class Value = NullType, int = 4, bool = true,
          BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int Y = 1, int Z = 1, int = 0>
class BlockRadixSort : public cu_collective<cu_sort_storage<Key, Value, X * Y * Z * N>> {
    CUDA_CPU_CUB(BlockRadixSort);
    static constexpr int threads = X * Y * Z, all_bits = 8 * sizeof(Key);
    template <bool STRIPED> void sort(Key (&keys)[N], Value (*values)[N], cu_by_bits<Key> less) {
        cu_copy<true, false>(rank, threads, &s.keys[0], keys, cu_all);
        if (values)
            cu_copy<true, false>(rank, threads, &s.values[0], *values, cu_all);
        barrier();
        if (rank == 0)
            for (int i = 1; i < threads * N; ++i) {
                const Key key = s.keys[i];
                const int place = (int)(std::upper_bound(&s.keys[0], &s.keys[0] + i, key, less) - &s.keys[0]);
                std::move_backward(&s.keys[0] + place, &s.keys[0] + i, &s.keys[0] + i + 1);
                s.keys[place] = key;
                if (values)
                    std::rotate(&s.values[0] + place, &s.values[0] + i, &s.values[0] + i + 1);
            }
        barrier();
        cu_copy<false, STRIPED>(rank, threads, &s.keys[0], keys, cu_all);
        if (values)
            cu_copy<false, STRIPED>(rank, threads, &s.values[0], *values, cu_all);
    }

  public:
#define CUDA_CPU_CUB_SORT(NAME, STRIPED, UP)                                                                 \
    void NAME(Key(&keys)[N], int begin = 0, int end = all_bits) {                                            \
        sort<STRIPED>(keys, nullptr, {begin, end, UP});                                                      \
    }                                                                                                        \
    void NAME(Key(&keys)[N], Value(&values)[N], int begin = 0, int end = all_bits) {                         \
        sort<STRIPED>(keys, &values, {begin, end, UP});                                                      \
    }
    CUDA_CPU_CUB_SORT(Sort, false, true)
    CUDA_CPU_CUB_SORT(SortDescending, false, false)
    CUDA_CPU_CUB_SORT(SortBlockedToStriped, true, true)
    CUDA_CPU_CUB_SORT(SortDescendingBlockedToStriped, true, false)
};

// ---- neighbours ----

template <class T, int X, int Y = 1, int Z = 1, int = 0>
class BlockAdjacentDifference : public cu_collective<cu_storage<T, 2 * X * Y * Z>> {
    CUDA_CPU_CUB(BlockAdjacentDifference);
    static constexpr int threads = X * Y * Z;
    // The address of an argument that may be left out
    static T *given() { return nullptr; }
    static T *given(T &item) { return &item; }
    static T *given(T &&item) { return &item; } // converted from another type
    template <int N, class U, class Op> void subtract(T (&in)[N], U (&out)[N], Op op, bool left, T *other) {
        s[rank] = in[0];
        s[threads + rank] = in[N - 1];
        barrier();
        const T before = rank > 0 ? s[threads + rank - 1] : in[0],
                after = rank + 1 < threads ? s[rank + 1] : in[N - 1];
        const bool at_end = left ? rank == 0 : rank == threads - 1;
        T items[N];
        std::copy(in, in + N, items); // `out` may be `in`
        for (int i = 0; i < N; ++i) {
            const bool outermost = i == (left ? 0 : N - 1);
            if (!outermost)
                out[i] = op(items[i], items[left ? i - 1 : i + 1]);
            else if (!at_end)
                out[i] = op(items[i], left ? before : after);
            else
                out[i] = other ? U(op(items[i], *other)) : U(items[i]);
        }
    }

  public:
#define CUDA_CPU_CUB_SUBTRACT(NAME, LEFT)                                                                    \
    template <int N, class U, class Op, class... Beyond>                                                     \
    void NAME(T(&in)[N], U(&out)[N], Op op, Beyond... beyond) {                                              \
        subtract(in, out, op, LEFT, given(beyond...));                                                       \
    }
    CUDA_CPU_CUB_SUBTRACT(SubtractLeft, true)
    CUDA_CPU_CUB_SUBTRACT(SubtractRight, false)
};

} // namespace cub

#include "letters_on.h"
